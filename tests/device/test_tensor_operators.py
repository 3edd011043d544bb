"""Operators that compute are refused; numbers, identity and NumPy's functions are not."""

import copy
import math
import operator
import re
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
    "lt", "le", "eq", "ne", "gt", "ge", "add", "sub", "mul", "matmul", "truediv", "floordiv", "mod",
    "pow", "lshift", "rshift", "and_", "or_", "xor",
]  # fmt: skip
FUNCTIONS = [
    *(getattr(operator, name) for name in BINARY),
    *(getattr(operator, "i" + name.rstrip("_")) for name in BINARY[6:]),
    divmod,
    operator.contains,
]


def refused(call):
    text = r"^tensor: (\S+) is not available: tensors only move data; use (?:\.numpy\(\) to compute|vkops\.kernels\.\w+) \[ARRAY-08\]$"
    with pytest.raises(vkops.InvalidDescTypeError, match=text) as caught:
        call()
    return re.match(text, str(caught.value)).group(1)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_binary_operators(device, function):
    """Whatever the other operand is, and on whichever side it is."""
    tensor = device.tensor(np.arange(3.0))
    for other in (3.0, 1, None, np.arange(3.0), np.float32(3), device.tensor([1.0]), [1, 2]):
        refused(lambda other=other: function(tensor, other))
        if function is not operator.contains and not (
            isinstance(other, list) and function in (operator.iadd, operator.imul)
        ):
            refused(lambda other=other: function(other, tensor))
    assert tensor.numpy().tolist() == [0, 1, 2]


def test_unary_operators_and_ufuncs(device):
    tensor = device.tensor([1.0, 2.0])
    functions = {
        operator.neg: "-", operator.pos: "+", operator.invert: "~", abs: "abs", round: "round",
        np.negative: "numpy.negative", np.sum: "numpy.sum", np.add.accumulate: "numpy.add",
        lambda t: np.add(1, t): "numpy.add", lambda t: np.equal(t, t): "numpy.equal",
        lambda t: np.add(np.ones(2), 1, out=t): "numpy.add", lambda t: t + 1: "+",
        lambda t: 1 + t: "+", lambda t: 2 in t: "in", lambda t: t == 1: "==", lambda t: t != 1: "!=",
    }  # fmt: skip
    for function, name in functions.items():
        assert refused(lambda function=function: function(tensor)) == name


def test_every_operator_of_numpy_s_arrays_is_there():
    """What NumPy's arrays have and tensors lack has nothing to do with computing."""
    lacking = {name for name in dir(np.ndarray) if name.startswith("__")} - set(dir(vkops.Tensor))
    unrelated = {"__buffer__", "__class_getitem__", "__delitem__", "__setstate__"}
    assert {name for name in lacking if not name.startswith("__array_")} <= unrelated
    assert REFUSED.keys() <= set(dir(vkops.Tensor))


def test_identity(device):
    """Tensors are found in containers of all kinds, weak ones included."""
    tensor, other = device.tensor([1, 2]), device.tensor([1, 2])
    assert tensor == tensor
    assert operator.ne(tensor, tensor) is False
    assert len({tensor, tensor, tensor[:], other}) == 3
    assert [other, tensor].index(other) == 0
    assert tensor in [tensor, other]
    keys, values = weakref.WeakKeyDictionary({tensor: 1}), weakref.WeakSet([tensor])
    assert keys[tensor] == 1
    assert tensor in values
    assert other not in values
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
