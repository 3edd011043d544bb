"""Operators of tensors against those of NumPy's arrays, and conversions to Python's numbers."""

import copy
import math
import operator
import warnings
import weakref

import ml_dtypes
import numpy as np
import pytest
from arrays import dtypes, numbered, on_device
from hypothesis import given
from hypothesis import strategies as st

import vkops
from vkops.arguments.refused_operators import REFUSED

BINARY = [
    "lt", "le", "eq", "ne", "gt", "ge", "add", "sub", "mul", "truediv", "floordiv", "mod", "pow",
]  # fmt: skip
BITS = ["and_", "or_", "xor", "lshift", "rshift"]
OTHERS = (3.0, 1, np.arange(1.0, 4), np.float32(3), [1.0, 2.0, 3.0])


@pytest.mark.features
@pytest.mark.parametrize("name", BINARY)
def test_binary_operators(device, name):
    """Whatever the other operand is, and on whichever side it is."""
    function, array = getattr(operator, name), np.arange(1.0, 4)
    tensor = device.tensor(array)
    for other in (*OTHERS, device.tensor([2.0])):
        plain = np.asarray(other) if isinstance(other, vkops.Tensor) else other
        for operands, expected in (
            ((tensor, other), (array, plain)),
            ((other, tensor), (plain, array)),
        ):
            result, expected = function(*operands), function(*expected)
            assert isinstance(result, vkops.Tensor)
            assert (result.dtype, result.shape) == (expected.dtype, expected.shape)
            np.testing.assert_allclose(result.numpy(), expected, rtol=1e-15)
    for unrelated in ("text", {}, slice(3)):
        if name in ("eq", "ne"):
            assert function(tensor, unrelated) is (name == "ne")
        else:
            with pytest.raises(TypeError):
                function(tensor, unrelated)
    assert (tensor.numpy() == array).all()


@pytest.mark.parametrize("name", BITS)
def test_operators_of_bits(device, name):
    function, array = getattr(operator, name), np.array([12, -7, 1], np.int32)
    for other in (2, np.int32([1, 2, 3])):
        result = function(device.tensor(array), other)
        np.testing.assert_array_equal(result.numpy(), function(array, other))
        reflected = function(other, device.tensor(np.abs(array)))
        np.testing.assert_array_equal(reflected.numpy(), function(other, np.abs(array)))
    with pytest.raises(vkops.InvalidDescTypeError, match=r"ARITH-01"):
        function(device.tensor(array), 2.0)


def test_operators_in_place(device):
    """They write to the tensor, and to the tensor that it is a view of."""
    array = np.arange(1, 13, dtype=np.int32).reshape(3, 4)
    tensor = device.tensor(array)
    for name, other in [("add", 3), ("mul", 5), ("sub", np.int32(7)), ("floordiv", 3), ("mod", 11),
                        ("pow", 2), ("lshift", 2), ("or_", 1), ("xor", 6), ("and_", 127), ("rshift", 1)]:  # fmt: skip
        function = getattr(operator, f"i{name.rstrip('_')}")
        view, expected = tensor[1:, ::-2], array[1:, ::-2]
        assert function(view, other) is view
        function(expected, other)
        np.testing.assert_array_equal(tensor.numpy(), array)
    tensor += tensor[0]
    array += array[0].copy()
    np.testing.assert_array_equal(tensor.numpy(), array)
    with pytest.raises(vkops.InvalidDescTypeError, match=r"ARITH-02"):
        tensor /= 2
    row, repeated = tensor[0], vkops.broadcast_to(tensor, (2, 3, 4))
    with pytest.raises(vkops.InvalidDescError, match="EW-06"):
        row += tensor
    with pytest.raises(vkops.InvalidDescError, match="read-only"):
        repeated += 1
    halves = device.tensor(np.float32([1, 3]))
    halves /= 2
    assert halves.tolist() == [0.5, 1.5]


@pytest.mark.features
def test_unary_operators(device):
    array = np.array([1.5, -0.0, np.nan, -np.inf])
    tensor = device.tensor(array)
    for function in (operator.neg, operator.pos, abs):
        result, expected = function(tensor).numpy(), function(array)
        assert result.tobytes() == expected.tobytes() or np.isnan(expected[2])
        np.testing.assert_array_equal(
            np.signbit(result[[0, 1, 3]]), np.signbit(expected[[0, 1, 3]])
        )
    assert (~device.tensor([True, False])).tolist() == [False, True]
    assert [part.tolist() for part in divmod(device.tensor([7, -7]), 2)] == [[3, -4], [1, 1]]
    assert [part.tolist() for part in divmod(7, device.tensor([2, -2]))] == [[3, -4], [1, -1]]


def test_what_is_refused(device):
    """Rounding by Python's function; powers of integers below 0."""
    tensor = device.tensor(np.ones((2, 2), np.int32))
    with pytest.raises(vkops.InvalidDescTypeError, match=r"use vkops.round \[ARRAY-08\]$"):
        round(tensor)
    with pytest.raises(ValueError, match="ARITH-03"):
        _ = tensor**-1
    with pytest.raises(TypeError):
        pow(tensor, 2, 3)
    with pytest.raises(OverflowError):
        _ = tensor + 2**40
    with pytest.raises(vkops.InvalidDescTypeError):
        _ = tensor + 1j


def test_every_operator_of_numpy_s_arrays_is_there():
    """What NumPy's arrays have and tensors lack has nothing to do with computing."""
    lacking = {name for name in dir(np.ndarray) if name.startswith("__")} - set(dir(vkops.Tensor))
    unrelated = {"__buffer__", "__class_getitem__", "__delitem__", "__setstate__"}
    assert {name for name in lacking if not name.startswith("__array_")} <= unrelated
    assert REFUSED.keys() <= set(dir(vkops.Tensor))


@pytest.mark.features
def test_equality(device):
    """Tensors are compared by elements, and have no hash; lists find them as they find arrays."""
    tensor, other = device.tensor([1, 2]), device.tensor([1, 3])
    assert (tensor == other).tolist() == [True, False]
    assert (tensor != other).tolist() == [False, True]
    assert (tensor == None) is False  # noqa: E711
    with pytest.raises(TypeError, match="unhashable"):
        hash(tensor)
    with pytest.raises(TypeError, match="unhashable"):
        weakref.WeakSet([tensor])
    assert tensor in [tensor, other]
    with pytest.raises(ValueError, match="ARRAY-07"):
        _ = tensor in [other]
    with pytest.raises(ValueError, match="ARRAY-07"):
        bool(tensor)
    assert device.tensor(1) in [device.tensor(2), device.tensor(1)]
    assert (2 in tensor, 3 in tensor, device.tensor(1) in tensor) == (True, False, True)
    assert weakref.ref(tensor)() is tensor
    assert copy.deepcopy([tensor, tensor])[0].numpy().tolist() == [1, 2]


OLD_NUMPY = np.lib.NumpyVersion(np.__version__) < "2.2.0"
"""Takes arrays without elements for false, with a warning; newer ones refuse them."""
CONVERSIONS = (bool, int, float, complex, operator.index, len, iter, round, math.trunc)


def result(function, x):
    """What a function makes of it, or the built-in exceptions that it raises."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            converted = function(x)
    except Exception as error:
        kinds = (TypeError, ValueError, OverflowError)
        return [kind for kind in kinds if isinstance(error, kind)], error
    return None, None if function is iter else converted


@on_device
@given(st.sampled_from([(), (), (0,), (2,)]), dtypes, st.sampled_from(["inf", "nan", "1", "x"]))
def test_conversions_of_python(device, shape, dtype, value):
    """NumPy and vkops convert and refuse the same, with exceptions of the same kinds."""
    try:
        array = np.full(shape, value).astype(dtype)
    except (TypeError, ValueError, OverflowError):
        array = numbered(shape, dtype)
    array = np.asarray(array, dtype)
    tensor = device.tensor(array)
    for function in CONVERSIONS:
        if function is bool and not array.size and OLD_NUMPY:
            continue
        kinds, expected = result(function, array)
        kinds_of_tensor, converted = result(function, tensor)
        if kinds is None:
            assert kinds_of_tensor is None
            assert converted == expected or converted != converted
        elif function is not math.trunc:
            assert kinds_of_tensor is not None
            assert set(kinds) <= set(kinds_of_tensor)
            assert isinstance(converted, vkops.VkopsError)


def test_numbers(device):
    one = device.tensor([[7]])
    assert (int(one), float(one), complex(one), bool(one)) == (7, 7.0, 7, True)
    assert range(10)[one[0, 0]] == 7
    assert not device.tensor(0.0)
    assert float(device.tensor(np.array([2.5], ml_dtypes.bfloat16))[0]) == 2.5
