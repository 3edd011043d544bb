"""Sizes of tensors: tensors of 2^63 bytes or more are refused, whichever operator makes them."""

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx_models import model
from refusals import fault

from vkops.errors import ModelError, VkopsError
from vkops.models.onnx import default_input
from vkops.onnx import Model
from vkops.onnx.specialization import Specialization
from vkops.onnx.value_info import TensorType, value_info
from vkops.plan.size_limits import MAX_DIMENSIONS

MAX = 2**63 - 1
FLOAT = np.dtype(np.float32)


def ints(name, *values):
    return numpy_helper.from_array(np.array(values, np.int64), name)


def lowered(nodes, initializers=(), *, shape=(2, 3)):
    """Specialise a model of nodes, with input x and output y."""
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)]
    proto = model(nodes, inputs, ["y"], initializer=list(initializers))
    lowering = Model(proto, check=False).lower({"x": TensorType(FLOAT, shape)}, {})
    return Specialization(lowering)


def node(operator, inputs, **attributes):
    return helper.make_node(operator, inputs, ["y"], **attributes)


CASES = [
    (node("Tile", ["x", "a"]), ints("a", 2**62, 1), "(Tile-13) shape"),
    (node("Expand", ["x", "a"]), ints("a", 2**60, 1, 1), "(Expand-13) shape"),
    (node("ConstantOfShape", ["a"]), ints("a", 2**61), "(ConstantOfShape-9) shape"),
    (node("ConstantOfShape", ["a"]), ints("a", 0, 2**62, 2**62), "(ConstantOfShape-9) shape"),
    (node("ConstantOfShape", ["a"]), ints("a", *[1] * (MAX_DIMENSIONS + 1)), "(ConstantOfShape-9) input"),
    (node("Unsqueeze", ["x", "a"]), ints("a", *range(MAX_DIMENSIONS)), "(Unsqueeze-13) shape"),
    (node("Pad", ["x", "a"]), ints("a", 0, MAX, 0, MAX), "(Pad-18) shape"),
    (node("Pad", ["x", "a"], mode="edge"), ints("a", MAX, 0, MAX, 0), "(Pad-18) shape"),
    (node("Reshape", ["x", "a"], allowzero=1), ints("a", 0, 2**62, 2**62, 3), "(Reshape-14) shape"),
    (node("SplitToSequence", ["x", "a"], axis=1), numpy_helper.from_array(np.array(0), "a"), "(SplitToSequence-11) split"),
]  # fmt: skip


@pytest.mark.parametrize(("made", "initializer", "said"), CASES)
def test_a_tensor_that_is_too_large_is_refused_by_the_node_that_makes_it(
    made, initializer, said, message
):
    message(fault(lambda: lowered([made], [initializer]), ModelError), *said.split())


def test_the_largest_tensor_is_not_refused():
    (made,) = lowered([node("ConstantOfShape", ["a"])], [ints("a", 2**61 - 1)]).results
    assert made.shape == (2**61 - 1,)
    (made,) = lowered([node("ConstantOfShape", ["a"])], [ints("a", 2**61 - 1, 0, 1)]).results
    assert np.empty(made.shape, made.dtype).shape == (2**61 - 1, 0, 1)


def test_a_declared_input_that_is_too_large_is_refused(message):
    nodes = [node("Identity", ["x"])]
    text = fault(lambda: lowered(nodes, shape=(2**62, 0, 2**62)), ModelError)
    message(text, "input 'x': shape: ")


@pytest.mark.parametrize("elem_type", [TensorProto.FLOAT, TensorProto.STRING, TensorProto.BOOL])
@pytest.mark.parametrize("shape", [(2**62, 2**62), (2**62, 0, 2**62), (1,) * 65, (2**60,)])
def test_an_input_that_is_not_given_and_too_large_is_refused(elem_type, shape):
    """With 2^60 elements, it is too large for any tensor, or for the memory of any host."""
    entry = value_info(helper.make_tensor_value_info("x", elem_type, shape))
    with pytest.raises(VkopsError, match=r"^input 'x'( of shape \(.*\))?: (shape: got|the host)"):
        default_input(entry, shape)


def test_more_parts_than_a_node_may_make_are_refused_before_they_are_made(message):
    one = numpy_helper.from_array(np.array(1), "a")
    nodes = [
        helper.make_node("SplitToSequence", ["x", "a"], ["s"]),
        helper.make_node("ConcatFromSequence", ["s"], ["y"], axis=0),
    ]
    text = fault(lambda: lowered(nodes, [one], shape=(2**60,)), ModelError)
    message(text, "node 0, which makes 's' (SplitToSequence-11): split: ")
