"""Arguments of the wrong kind: one clear error, before anything is opened or read."""

import math
import os

import numpy as np
import pytest
from refusals import fault

import vkops
from vkops import InvalidDescTypeError, dml, dxdispatch, runner
from vkops.arguments.basic_index import ErrorFormats, basic_index
from vkops.dml import BufferTensorDesc, FeatureLevel, TensorDataType
from vkops.errors import DeviceError, ModelError


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"adapter": np.arange(3)}, "adapter [DEV-14]"),
        ({"adapter": 1.5}, "adapter [DEV-14]"),
        ({"adapter": True}, "adapter [DEV-14]"),
        ({"adapter": b"llvmpipe"}, "adapter [DEV-14]"),
        ({"expect": 3}, "expect [DEV-14]"),
        ({"indices": np.arange(3)}, "indices [DEV-14]"),
        ({"indices": "DirectML"}, "indices [DEV-14]"),
        ({"debug": "x"}, "debug [DEV-14]"),
        ({"staged": None}, "staged [DEV-14]"),
    ],
)  # fmt: skip
def test_devices(arguments, named, message):
    message(fault(lambda: vkops.Device(**arguments), DeviceError), *named.split())


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ((3,), "path"),
        ((None,), "path"),
        (("m.json", 3), "input_path"),
        (("m.json", None, 3), "output_path"),
        (("m.json", None, None, {}), "overrides"),
    ],
)
def test_models(arguments, named, message):
    message(fault(lambda: dxdispatch.load_model(*arguments), ModelError), *named.split())


def test_what_is_no_model(message):
    text = fault(lambda: dxdispatch.prepare("m.json", FeatureLevel.LATEST), ModelError)
    message(text, "model: ")
    message(fault(lambda: runner.run("m.json", None), ModelError), "prepared: ")


@pytest.mark.parametrize("value", ["false", 0, None, np.array([True, False])])
def test_permissions_are_true_or_false(value):
    """``allow_paths="false"`` would otherwise allow all paths."""
    for kind, read in (
        (ModelError, dxdispatch.load_model),
        (ModelError, vkops.onnx.Model),
        (vkops.ShaderCompileError, vkops.shaders.load),
    ):
        with pytest.raises(kind, match=r"^allow_paths: got .*, must be True or False$"):
            read("x", allow_paths=value)


class Failing:
    """An argument whose own methods have a fault."""

    def fail(self, *args):
        raise ZeroDivisionError("a fault of the argument's own")

    __index__ = __float__ = __len__ = __fspath__ = __repr__ = __array__ = fail


class Unprintable:
    """An argument of the wrong kind that has no text."""

    __repr__ = Failing.fail


os.PathLike.register(Failing)
DESC = dml.BufferTensorDesc(dml.TensorDataType.INT8, [4])


@pytest.mark.parametrize("value", [Failing(), Unprintable()], ids=["failing", "unprintable"])
@pytest.mark.parametrize(
    "call",
    [
        lambda value: dml.BufferTensorDesc(value, [1]),
        lambda value: dml.BufferTensorDesc(dml.TensorDataType.INT8, value),
        lambda value: dml.BufferTensorDesc(dml.TensorDataType.INT8, [value]),
        lambda value: dml.PaddingOperatorDesc(DESC, DESC, dml.PaddingMode.EDGE, value, [0], [0]),
        lambda value: dml.PaddingOperatorDesc(DESC, DESC, dml.PaddingMode.EDGE, 0, [value], [0]),
        lambda value: vkops.onnx.Model(value),
        lambda value: vkops.onnx.SessionOptions().add_free_dimension_override_by_name("N", value),
        lambda value: dxdispatch.load_model(value),
    ],
    ids=range(8),
)
def test_exceptions_of_an_argument_s_own_methods_are_raised_unchanged(call, value):
    with pytest.raises(ZeroDivisionError, match=r"^a fault of the argument's own$"):
        call(value)


# -- basic indices ---------------------------------------------------------------------------------

TEXTS = ErrorFormats("two ellipses", "{count} of {rank}", "{index} in {axis}", "step 0 in {axis}")


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        (slice(None), range(2**64)),
        (slice(None, None, 2**70), range(1)),
        (slice(None, None, -(2**70)), range(2**64 - 1, 2**64)),
        (slice(2, 3, 2**31), range(2, 3, 2**31)),
        (-1, 2**64 - 1),
    ],
)
def test_indices_of_axes_that_no_array_can_have(part, expected):
    """Sizes in descriptors are checked only after an index has been resolved."""
    assert basic_index((2**64,), (part,), TEXTS) == [expected]


@pytest.mark.parametrize(
    ("parts", "error"),
    [
        ((..., 0, ...), IndexError("two ellipses")),
        ((0, None, 0, 0), IndexError("3 of 2")),
        ((None, ..., 3), IndexError("3 in 1")),
        ((0, -4), IndexError("-4 in 1")),
        ((..., slice(None, None, 0)), ValueError("step 0 in 1")),
    ],
)
def test_indices_that_do_not_fit(parts, error):
    assert fault(lambda: basic_index((2, 3), parts, TEXTS), type(error)) == str(error)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (math.nan, "nan"),
        ("x" * 100, "'" + "x" * 58 + "…"),
        (10**5000, "an integer of 16610 bits"),
        ([10**5000], "a value of type list"),
    ],
    ids=["nan", "long", "huge", "nested"],
)
def test_values_in_messages(value, shown):
    text = fault(lambda: BufferTensorDesc(value, [1]), InvalidDescTypeError)
    assert text.startswith(f"data_type: got {shown}, must be one of UNKNOWN, FLOAT32, ")


def test_numpy_integers_are_integers():
    from_numpy = BufferTensorDesc(np.uint8(1), np.array([2, 3]), (np.int32(3), np.uint64(1)))
    assert from_numpy == BufferTensorDesc(TensorDataType.FLOAT32, (2, 3), (3, 1))
    assert [type(n) for n in (*from_numpy.sizes, *from_numpy.strides)] == [int] * 4
