"""Sizes of tensors: tensors of 2^63 bytes or more are refused, whichever operator makes them."""

import contextlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper
from onnx_models import model
from processes import cpu_time
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


def lowered(nodes, initializers=(), *, shape=(2, 3), opset=18):
    """Specialise a model of nodes, with input x and output y."""
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)]
    proto = model(nodes, inputs, ["y"], opset, initializer=list(initializers))
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
    message(
        fault(lambda: lowered([node("Identity", ["x"])], shape=(2**62, 0, 2**62)), ModelError),
        "input 'x': shape: ",
    )


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
    message(
        fault(lambda: lowered(nodes, [one], shape=(2**60,)), ModelError),
        "node 0, which makes 's' (SplitToSequence-11): split: ",
    )


# -- random chains ---------------------------------------------------------------------------------

HUGE = st.one_of(
    st.integers(-2, 4),
    st.integers(-(2**63), MAX),
    st.sampled_from([2**31, 2**32, 2**40, 2**61, 2**62, MAX, -(2**63)]),
)
OPERATORS = {
    "Tile": 1, "Expand": 1, "Pad": 2, "Reshape": 1, "Slice": 3, "Unsqueeze": 1, "Squeeze": 1,
    "ConstantOfShape": 1, "Shape": 0, "Size": 0, "Flatten": 0, "Transpose": 0, "Gather": 1,
    "Concat": 0, "Split": 1, "DepthToSpace": 0, "SpaceToDepth": 0, "SplitToSequence": 1,
    "Identity": 0, "Mul": 0, "CenterCropPad": 1, "GatherElements": 1, "GatherND": 1,
    "ReverseSequence": 1,
}  # fmt: skip
"""Operators, and how many lists of integers each takes where they are inputs."""

ATTRIBUTES = {
    "Tile": ["tiles", "axis"], "Pad": ["pads", "paddings"], "Reshape": ["shape"],
    "Slice": ["starts", "ends", "axes"], "Unsqueeze": ["axes"], "Squeeze": ["axes"],
    "Split": ["split", "axis"], "Concat": ["axis"], "Gather": ["axis"], "Flatten": ["axis"],
    "DepthToSpace": ["blocksize"], "SpaceToDepth": ["blocksize"], "SplitToSequence": ["axis"],
    "CenterCropPad": ["axes"], "GatherElements": ["axis"], "GatherND": ["batch_dims"],
    "ReverseSequence": ["batch_axis", "time_axis"],
}  # fmt: skip
SINGLE = {"axis", "batch_axis", "batch_dims", "blocksize", "tiles", "time_axis"}


@st.composite
def chains(draw):
    """Nodes from x to y that change sizes by huge numbers, of any opset, valid or not."""
    opset = draw(st.integers(1, 24))
    nodes, initializers, before = [], [], "x"
    count = draw(st.integers(1, 8))
    for step in range(count):
        operator = draw(st.sampled_from(sorted(OPERATORS)))
        inputs = [before] * (2 if operator in ("Concat", "Mul") else operator != "ConstantOfShape")
        if draw(st.booleans()) or operator == "ConstantOfShape":
            for _ in range(OPERATORS[operator]):
                name = f"i{len(initializers)}"
                values = draw(st.lists(HUGE, max_size=6))
                initializers.append(ints(name, *values))
                inputs.append(name)
        attributes = {}
        for name in ATTRIBUTES.get(operator, ()):
            if draw(st.booleans()):
                huge = HUGE if name in SINGLE else st.lists(HUGE, min_size=1, max_size=6)
                attributes[name] = draw(huge)
        after = "y" if step + 1 == count else f"t{step}"
        nodes.append(helper.make_node(operator, inputs, [after], **attributes))
        before = after if draw(st.integers(0, 3)) else before
    return nodes, initializers, opset, draw(st.sampled_from([(), (2, 3), (1, 4, 2, 2), (0, 5)]))


@settings(max_examples=300)
@given(chains())
def test_any_chain_of_huge_numbers_ends_in_a_result_or_one_model_error(chain):
    nodes, initializers, opset, shape = chain
    with contextlib.suppress(ModelError), cpu_time(below=2):
        lowered(nodes, initializers, shape=shape, opset=opset)
