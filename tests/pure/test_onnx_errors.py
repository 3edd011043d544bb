"""Each rule that a node, a model or an input can break, and the text of the error."""

from dataclasses import replace

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, defs, helper, numpy_helper, parser
from onnx_models import NEWEST_ONNX, evaluate, floats, info, ints, model, node_model, run, types_of
from refusals import NO_FILE, fault

from vkops.errors import ModelError
from vkops.onnx import Model
from vkops.onnx.graph import unsupported_nodes
from vkops.onnx.model_file import opset_of, read
from vkops.onnx.onnx_node import OnnxNode, schema_of
from vkops.onnx.operators import OPERATORS

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
ROW = np.arange(5, dtype=np.float32)
SCALAR = np.array(3, np.float32)
IMAGE = np.zeros((1, 6, 3, 4), np.float32)


def unsupported(proto):
    content = read(proto, check=False)
    return list(unsupported_nodes(content.proto.graph, opset_of(content.proto)))


# Operator and version, inputs, attributes (and opset, outputs), and what the error names after the
# node's label.
CASES = [
    # Split
    ("Split-1", [X], {"opset": 1, "outputs": 2, "axis": -4}, "axis"),
    ("Split-11", [X], {"opset": 11, "outputs": 2, "axis": -4}, "axis"),
    ("Split-13", [ROW, ints(3, 3)], {"opset": 13, "outputs": 2}, "split"),
    ("Split-13", [ROW, ints(2, 2, 1)], {"opset": 13, "outputs": 2}, "outputs"),
    ("Split-1", [ROW, floats(2, 3)], {"opset": 1, "outputs": 2, "split": [2, 3]}, "split"),
    ("Split-1", [ROW, floats(np.nan, 5)], {"opset": 1, "outputs": 2}, "split[0]"),
    ("Split-1", [ROW, floats(5, np.inf)], {"opset": 1, "outputs": 2}, "split[1]"),
    ("Split-13", [ROW, ints(5).reshape(1, 1)], {"opset": 13}, "split"),
    ("Split-18", [ROW, ints(2, 3)], {"outputs": 2, "num_outputs": 2}, "'split' and 'num_outputs'"),
    ("Split-18", [ROW], {"outputs": 2}, "'split' and 'num_outputs'"),
    ("Split-18", [ROW], {"num_outputs": 0}, "num_outputs"),
    ("Split-18", [ROW], {"outputs": 4, "num_outputs": 4}, "num_outputs"),
    ("SplitToSequence-11", [ROW, ints(2, 2)], {}, "split"),
    ("SplitToSequence-11", [ROW, ints(6, -1)], {}, "split[1]"),
    ("SplitToSequence-11", [X], {"axis": 3}, "axis"),
    # Concat
    ("Concat-13", [SCALAR, SCALAR], {"axis": 0}, "axis"),
    ("Concat-13", [X, X[0]], {"axis": 0}, "inputs[1]"),
    ("Concat-13", [X, X, X[:, :2]], {"axis": 0}, "inputs[2]"),
    ("Concat-13", [X, None], {"axis": 0}, "inputs[1]"),
    ("Concat-13", [X, ints(1)], {"axis": 0}, "inputs"),
    ("ConcatFromSequence-11", [[X, X]], {"axis": 4, "new_axis": 1}, "axis"),
    ("ConcatFromSequence-11", [[X, X[:1]]], {"axis": 0, "new_axis": 1}, "input_sequence[1]"),
    ("ConcatFromSequence-11", [[X, X[0]]], {"axis": 0}, "input_sequence[1]"),
    ("SequenceAt-11", [[X, X], ints(2)[0]], {}, "position"),
    ("SequenceAt-11", [[X], ints(0, 1)], {}, "position"),
    # Slice
    ("Slice-1", [X], {"opset": 1, "starts": [0, 0], "ends": [1, 1], "axes": [0]}, "starts"),
    ("Slice-1", [X], {"opset": 1, "starts": [0], "ends": [1, 1]}, "ends"),
    ("Slice-1", [ROW], {"opset": 1, "starts": [0, 0], "ends": [1, 1]}, "starts"),
    ("Slice-13", [X, ints(0), ints(1), ints(0), ints(0)], {}, "steps[0]"),
    ("Slice-13", [X, ints(0), ints(1), ints(0), ints(1, 1)], {}, "steps"),
    ("Slice-13", [SCALAR, ints(0), ints(1), ints(0)], {}, "axes[0]"),
    # CenterCropPad
    ("CenterCropPad-18", [X, ints(1, 1)], {}, "shape"),
    ("CenterCropPad-18", [ROW, ints(-1)], {}, "shape[0]"),
    ("CenterCropPad-18", [X, ints(1)], {"axes": [3]}, "axes[0]"),
    ("CenterCropPad-18", [X, ints(1, 1)], {"axes": [0, -3]}, "axes"),
    # Pad
    ("Pad-1", [ROW], {"opset": 1, "paddings": [1]}, "paddings"),
    ("Pad-2", [X], {"opset": 2, "pads": [1, 1]}, "pads"),
    ("Pad-19", [ROW, ints(1, 1)], {"opset": 19, "mode": "mirror"}, "mode"),
    ("Pad-13", [ROW, ints(-4, -2)], {"opset": 13}, "pads"),
    ("Pad-18", [X, ints(1, 1), None, ints(0, 1)], {}, "pads"),
    ("Pad-18", [ROW, ints(1, 1), floats(1, 2)], {}, "constant_value"),
    ("Pad-18", [ROW, ints(1, 1), ints(1)], {}, "constant_value"),
    ("Pad-18", [X[:, :0], ints(0, 1, 0, 0, 1, 0)], {"mode": "edge"}, "pads"),
    ("Pad-18", [ROW, ints(-5, 2)], {"mode": "reflect"}, "pads"),
    ("Pad-18", [ROW, ints(2**40, 0)], {"mode": "reflect"}, "pads"),
    ("Pad-18", [np.zeros((2,) * 11), ints(*[1] * 22)], {"mode": "edge"}, "pads"),  # too many pieces
    ("Mod-13", [ints(3), ints(0)], {}, "B"),
    ("Where-16", [np.array([True, False]), ints(1, 2, 3), ints(1)], {}, "condition, X and Y"),
    # shapes
    ("Reshape-1", [X], {"opset": 1}, "shape"),
    ("Reshape-1", [X], {"opset": 1, "shape": [5, -1]}, "shape"),
    ("Reshape-5", [X, ints(-2, 12)], {"opset": 5}, "shape[0]"),
    ("Reshape-13", [X, ints(-1, -1)], {"opset": 13}, "shape"),
    ("Reshape-14", [X, ints(2, 3, 4, 0)], {}, "shape[3]"),
    ("Reshape-14", [X, ints(5, 5)], {}, "shape"),
    ("Reshape-14", [X, ints(0, 2)], {"allowzero": 1}, "shape"),
    ("Reshape-14", [X[:0], ints(0, -1)], {"allowzero": 1}, "shape"),
    ("Reshape-14", [X[:0], ints(0, -1)], {}, "shape"),
    ("Reshape-14", [X, ints(24).reshape(1, 1)], {}, "shape"),
    ("Flatten-1", [X], {"opset": 1, "axis": -4}, "axis"),
    ("Flatten-9", [X], {"opset": 9, "axis": 4}, "axis"),
    ("Flatten-13", [SCALAR], {}, "axis"),
    ("Squeeze-1", [X], {"opset": 1, "axes": [1]}, "axes"),
    ("Squeeze-11", [X[:1]], {"opset": 11, "axes": [-4]}, "axes[0]"),
    ("Unsqueeze-11", [X], {"opset": 11, "axes": [0, -5]}, "axes"),
    ("Unsqueeze-13", [X, ints(0, 5)], {}, "axes[1]"),
    ("Transpose-1", [X], {"opset": 1, "perm": [0, 1]}, "perm"),
    ("Transpose-13", [X], {"perm": [0, 1, 3]}, "perm[2]"),
    # what repeats and chooses
    ("Gather-13", [X, ints(0, 3, -5)], {"axis": 1}, "indices[1]"),
    ("Gather-13", [X[:0], ints(0)], {}, "indices"),
    ("Gather-13", [X, floats(0)], {}, "indices"),
    ("Gather-1", [X, ints(0)], {"opset": 1, "axis": 3}, "axis"),
    ("GatherElements-13", [SCALAR, ints(0)], {}, "axis"),
    ("GatherElements-13", [X, ints(0)], {}, "indices"),
    ("GatherElements-11", [X, ints(*[0] * 27).reshape(3, 3, 3)], {"opset": 11, "axis": 1}, "indices"),
    ("GatherElements-13", [X[..., :0], ints(0).reshape(1, 1, 1)], {"axis": 2}, "indices"),
    ("GatherElements-13", [ROW, np.array([5], np.int32)], {}, "indices[0]"),
    ("GatherND-13", [X, ints(0, 1)], {"batch_dims": 1}, "batch_dims"),
    ("GatherND-12", [X, ints(0, 1)], {"opset": 12, "batch_dims": -1}, "batch_dims"),
    ("GatherND-13", [X, ints(0, 1, 2).reshape(3, 1)], {"batch_dims": 1}, "indices"),
    ("GatherND-13", [X, ints(0, 1, 2, 0, 1, 2).reshape(2, 3)], {"batch_dims": 1}, "indices"),
    ("GatherND-13", [X, ints()], {}, "indices"),
    ("GatherND-13", [np.zeros((1,) * 9), ints(*[0] * 9)], {}, "indices"),
    ("GatherND-13", [X, ints(0, -4)], {}, "indices[1]"),
    ("GatherND-13", [X, ints(3, 0, 0, 4).reshape(2, 2, 1)], {"batch_dims": 1}, "indices[0, 0, 0]"),
    ("GatherND-13", [X[:, :0], ints(0, 0)], {}, "indices"),
    ("ScatterElements-18", [ROW, ints(1), floats(1, 2)], {}, "updates"),
    ("ScatterElements-18", [ROW, ints(-6), floats(1)], {}, "indices[0]"),
    ("ScatterElements-18", [ROW, ints(1), ints(1)], {}, "updates"),
    ("ScatterND-16", [ROW, ints(1), floats(1)], {"opset": 16}, "updates"),
    ("ScatterND-11", [ROW, ints(1, 0), SCALAR], {"opset": 11}, "indices"),
    ("ScatterND-18", [SCALAR, ints(1), SCALAR], {}, "data"),
    ("ScatterND-18", [ROW, SCALAR.astype(np.int64), SCALAR], {}, "indices"),
    ("ScatterND-18", [X, ints(1, 3), X[0, 0]], {}, "indices[1]"),
    ("TensorScatter-24", [X, X], {"opset": 24, "axis": -3}, "axis"),
    ("TensorScatter-24", [X, X], {"opset": 24, "axis": 3}, "axis"),
    ("TensorScatter-24", [X[:, :2], X], {"opset": 24}, "update"),
    ("TensorScatter-24", [X, X[:1]], {"opset": 24}, "update"),
    ("TensorScatter-24", [X, SCALAR], {"opset": 24}, "update"),
    ("TensorScatter-24", [X, X, ints(0)], {"opset": 24}, "write_indices"),
    ("ReverseSequence-10", [ROW, ints(1)], {}, "input"),
    ("ReverseSequence-10", [X, ints(1, 1)], {}, "sequence_lens"),
    ("OneHot-11", [ints(1), ints(2, 3), floats(0, 1)], {}, "depth"),
    ("OneHot-11", [ints(1), ints(-1), floats(0, 1)], {}, "depth"),
    ("OneHot-11", [ints(1), floats(np.nan), floats(0, 1)], {}, "depth"),
    ("OneHot-11", [ints(1), ints(2**62), floats(0, 1)], {}, "shape"),
    ("OneHot-9", [ints(1), ints(2), floats(0, 1, 2)], {"opset": 9}, "values"),
    ("OneHot-11", [ints(1), ints(2), floats(0, 1)], {"axis": 2}, "axis"),
    ("Expand-8", [X, ints(5)], {"opset": 8}, "shape"),
    ("Expand-13", [ROW, ints(2, -2)], {}, "shape[1]"),
    ("Tile-1", [ROW, floats(-1), floats(0)], {"opset": 1}, "tiles[0]"),
    ("Tile-1", [ROW, floats(2), floats(1)], {"opset": 1}, "axis"),
    ("Tile-1", [ROW, floats(2, 2), floats(0)], {"opset": 1}, "tiles"),
    ("Tile-1", [ROW, floats(1.5), floats(0)], {"opset": 1}, "tiles[0]"),
    ("Tile-6", [X, ints(1, 2)], {"opset": 6}, "repeats"),
    ("Tile-13", [ROW, ints(-2)], {}, "repeats[0]"),
    ("DepthToSpace-1", [X], {"opset": 1, "blocksize": 1}, "input"),
    ("DepthToSpace-11", [IMAGE], {"opset": 11, "blocksize": 2}, "input"),
    ("DepthToSpace-13", [IMAGE], {"blocksize": 0}, "blocksize"),
    ("SpaceToDepth-1", [IMAGE], {"opset": 1, "blocksize": 2}, "input"),
    ("SpaceToDepth-13", [IMAGE], {"blocksize": 3}, "input"),
    ("EyeLike-9", [X], {"opset": 9}, "input"),
    ("EyeLike-22", [X[0]], {"opset": 22, "dtype": 99}, "dtype"),
    ("Trilu-14", [ROW], {}, "input"),
    ("Trilu-14", [X, ints(1, 2)], {}, "k"),
    ("Range-11", [ints(0, 1), ints(2), ints(1)], {}, "start"),
    ("Range-11", [ints(0), ints(2), ints(0)], {}, "delta"),
    ("Range-11", [floats(0), floats(np.nan), floats(1)], {}, "delta"),
    ("Range-11", [ints(0), ints(2**40), ints(1)], {}, "limit"),
    pytest.param("Range-27", [np.zeros((), np.float16)] * 3, {"opset": 27, "stash_type": 10}, "stash_type", marks=NEWEST_ONNX),
    # Resize
    ("Resize-18", [ROW, None, floats(2)], {"antialias": 1}, "antialias"),
    ("Resize-13", [ROW, None, floats(2)], {"opset": 13, "exclude_outside": 1}, "exclude_outside"),
    ("Resize-18", [ROW, None, floats(2)], {"nearest_mode": "up"}, "nearest_mode"),
    ("Resize-18", [ROW, None, floats(2)], {"coordinate_transformation_mode": "half_pixel_symmetric"}, "coordinate_transformation_mode"),
    ("Resize-18", [ROW, None, None, ints(2)], {"keep_aspect_ratio_policy": "no"}, "keep_aspect_ratio_policy"),
    ("Resize-18", [ROW, None, floats(2), ints(2)], {}, "scales and sizes"),
    ("Resize-18", [ROW, None, floats(2, 2)], {}, "scales"),
    ("Resize-18", [ROW, None, floats(2).reshape(1, 1)], {}, "scales"),
    ("Resize-18", [ROW, None, floats(0)], {}, "scales[0]"),
    ("Resize-18", [ROW, None, floats(np.nan)], {}, "scales[0]"),
    ("Resize-18", [ROW, None, None, ints(-2)], {}, "sizes[0]"),
    ("Resize-18", [ROW, None, None, ints(2, 2)], {}, "sizes"),
    ("Resize-18", [ROW[:0], None, None, ints(2)], {}, "X"),
    ("Resize-18", [X[:1], None, floats(2)], {"axes": [4]}, "axes[0]"),
    ("Resize-18", [ROW, None, floats(2)], {"coordinate_transformation_mode": "tf_crop_and_resize"}, "roi"),
    ("Resize-18", [ROW, floats(0), floats(2)], {"coordinate_transformation_mode": "tf_crop_and_resize"}, "roi"),
    ("Resize-18", [ROW, floats(0, np.inf), floats(2)], {"coordinate_transformation_mode": "tf_crop_and_resize"}, "roi"),
    ("Resize-18", [np.array(["a", "b"], object), floats(0, 2), None, ints(3)], {"coordinate_transformation_mode": "tf_crop_and_resize"}, "X"),
    ("Resize-18", [ROW, None, floats(1e9)], {}, "X"),
    # what is known beforehand
    ("ConstantOfShape-9", [ints(2, -1)], {"opset": 9}, "input[1]"),
    ("Constant-12", [], {"opset": 12}, "attributes"),
    ("Constant-12", [], {"opset": 12, "value_int": 1, "value_float": 1.0}, "attributes"),
    # arithmetic
    ("Add-1", [X, ROW[:4]], {"opset": 1}, "B"),
    ("Sub-6", [X, X[:1]], {"opset": 6}, "B"),
    ("Mul-6", [X, ROW[:4]], {"opset": 6, "broadcast": 1, "axis": 3}, "axis"),
    ("Div-6", [X, X[0]], {"opset": 6, "broadcast": 1, "axis": 2}, "axis"),
    ("Add-7", [X, ROW], {"opset": 7}, "B"),
    ("Div-14", [ints(1, 2), ints(1, 0)], {}, "B"),
    ("Mul-14", [ints(1), floats(1)], {}, "B"),
    ("Cast-1", [ROW], {"opset": 1, "to": "FLOAT33"}, "to"),
    ("Cast-13", [ROW], {"opset": 13, "to": TensorProto.STRING}, "to"),
    # types that a version does not list
    ("Split-1", [ints(1, 2)], {"opset": 1, "outputs": 2}, "input"),
    ("Concat-1", [ints(1, 2)], {"opset": 1, "axis": 0}, "inputs"),
    ("Pad-2", [ints(1, 2)], {"opset": 2, "pads": [0, 0]}, "data"),
    ("Tile-6", [ROW, np.array([1], np.int32)], {"opset": 6}, "repeats"),
    ("Add-7", [np.array([1], np.int8), np.array([1], np.int8)], {"opset": 7}, "A"),
    ("Split-18", [np.array([1], ml_dtypes.int4)], {"num_outputs": 1}, "input"),
    ("Concat-11", [np.array([1], ml_dtypes.bfloat16)], {"opset": 11, "axis": 0}, "inputs"),
    ("Identity-13", [[X]], {"opset": 13}, "input"),
]  # fmt: skip


@pytest.mark.parametrize(("operator", "inputs", "more", "field"), CASES)
def test_arguments_that_break_a_rule(operator, inputs, more, field, message):
    error = fault(lambda: run(operator.partition("-")[0], *inputs, **more), ModelError)
    message(error, f"node 0, which makes 'o0' ({operator}): {field}: ")


@pytest.mark.parametrize(
    ("operator", "inputs", "more", "field"),
    [
        ("ConcatFromSequence", ["s"], {"axis": 0}, "input_sequence"),
        ("SequenceAt", ["s", "zero"], {}, "position"),
    ],
)  # fmt: skip
def test_sequences_without_tensors(operator, inputs, more, field, message):
    nodes = [
        helper.make_node("SplitToSequence", ["x"], ["s"]),
        helper.make_node(operator, inputs, ["y"], name="last", **more),
    ]
    zero = numpy_helper.from_array(np.array(0, np.int64), "zero")
    proto = model(nodes, [info("x", ROW[:0])], ["y"], initializer=[zero])
    error = fault(lambda: evaluate(proto, {"x": ROW[:0]}), ModelError)
    message(error, f"node 'last' ({operator}-11): {field}: ")


@pytest.mark.parametrize(
    ("operator", "inputs", "name"),
    [
        ("Add", [X, X], "A"),
        ("Div", [ROW, ROW], "A"),
        ("Mul", [ints(*range(1025))] * 2, "A"),
        ("Cast", [X], "input"),
    ],
)
def test_elements_of_inputs_are_not_computed_with(operator, inputs, name, message):
    more = {"to": TensorProto.INT32} if operator == "Cast" else {}
    proto, values = node_model(operator, *inputs, **more)
    error = fault(lambda: Model(proto).lower(types_of(values), {}), ModelError)
    message(error, f"({operator}-", f": {name}: depends on graph input 'i0'")


# -- nodes -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("operator", "opset", "counts", "attributes", "field"),
    [
        ("Split", 18, (1, 1), {"parts": 1}, "parts"),
        ("Split", 13, (1, 1), {"num_outputs": 1}, "num_outputs"),
        ("Shape", 1, (1, 1), {"start": 1}, "start"),
        ("Split", 18, (1, 1), {"num_outputs": 2.0}, "num_outputs"),
        ("Pad", 2, (1, 1), {"pads": "1"}, "pads"),
        ("Concat", 13, (2, 1), {}, "axis"),
        ("Tile", 1, (2, 1), {}, "inputs"),
        ("Transpose", 13, (2, 1), {}, "inputs"),
        ("Concat", 13, (0, 1), {"axis": 0}, "inputs"),
        ("Pad", 18, (1, 1), {}, "inputs"),
        ("Transpose", 13, (1, 2), {}, "outputs"),
    ],
)  # fmt: skip
def test_nodes_are_as_their_schema_says(operator, opset, counts, attributes, field, message):
    inputs, outputs = (
        [f"{kind}{i}" for i in range(n)] for kind, n in zip("xy", counts, strict=True)
    )
    schema = schema_of(operator, opset)
    node = helper.make_node(operator, inputs, outputs, **attributes)
    label = f"node 3, which makes 'y0' ({operator}-{schema.since_version})"
    message(fault(lambda: OnnxNode(node, 3, schema), ModelError), f"{label}: {field}: ")
    with pytest.raises(ModelError, match=r"^the model breaks ONNX's rules: "):
        Model(model([node], [info(name, X) for name in inputs], outputs, opset))


def test_nodes_that_make_nothing_are_named_by_their_place(message):
    node = helper.make_node("Split", ["x"], [])
    message(
        fault(lambda: OnnxNode(node, 2, schema_of("Split", 18)), ModelError), "node 2 (Split-18): "
    )


# -- models ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", OPERATORS)
def test_nodes_of_a_version_that_is_not_known(monkeypatch, name):
    schema = defs.get_schema(name)
    version = schema.since_version
    known = replace(OPERATORS[name], newest=version - 1)
    monkeypatch.setitem(OPERATORS, name, known)
    node = helper.make_node(name, ["x"] * schema.min_input, ["y"])
    proto = model([node], [info("x", X)], ["y"], defs.onnx_opset_version())
    ((label, reason),) = unsupported(proto)
    assert label == f"node 0, which makes 'y' ({name})"
    opset = f"opset {defs.onnx_opset_version()} has {version}"
    assert reason == f"vkops knows this operator up to version {version - 1}, {opset}"


def test_a_later_version_of_an_operator_is_refused(message):
    """Also where the installed onnx knows it, which is newer than vkops then."""
    node = helper.make_node("SequenceAt", ["x", "i"], ["y"])
    inputs = [info("x", [X]), info("i", ints(0)[0])]
    older, newer = (model([node], inputs, ["y"], opset) for opset in (18, 19))
    schema = defs.get_schema("SequenceAt")
    later = defs.OpSchema(
        "SequenceAt", "", 19, inputs=schema.inputs, outputs=schema.outputs,
        type_constraints=[
            (each.type_param_str, [*each.allowed_type_strs], each.description)
            for each in schema.type_constraints
        ],
    )  # fmt: skip
    schema_of.cache_clear()
    defs.register_schema(later)
    try:
        assert Model(older).nodes[0].version == 11
        message(fault(lambda: Model(newer), ModelError), "node 0, which makes 'y' (SequenceAt): ")
    finally:
        defs.deregister_schema("SequenceAt", 19, "")
        schema_of.cache_clear()


def test_models_of_too_new_an_opset(message):
    error = fault(lambda: Model(model([], [info("x", X)], ["x"], opset=999)), ModelError)
    message(error, "opset 999", version=onnx.__version__, newest=onnx.defs.onnx_opset_version())


def test_all_nodes_that_are_not_supported_are_listed(message):
    nodes = [
        helper.make_node("Relu", ["x"], ["a"]),
        helper.make_node("Identity", ["a"], ["b"]),
        helper.make_node("Split", ["b"], ["c"], name="own", domain="com.example"),
        helper.make_node("Expand", ["c", "x"], ["y"]),
    ]
    proto = model(nodes, [info("x", X)], ["y"], opset=7)
    nodes_and_reasons = unsupported(proto)
    assert nodes_and_reasons == [
        ("node 0, which makes 'a' (Relu)", "vkops does not have this operator"),
        ("node 'own' (com.example.Split)", "vkops does not have this operator"),
        ("node 3, which makes 'y' (Expand)", "opset 7 does not have this operator"),
    ]
    error = fault(lambda: Model(proto, check=False), ModelError)
    message(error, "(Relu)", "nor 2 more nodes")


def test_the_reason_why_an_operator_is_refused(message):
    proto = model([helper.make_node("NonZero", ["x"], ["y"])], [info("x", X)], ["y"])
    ((_, reason),) = unsupported(proto)
    message(reason)


WHOLE = model(
    [helper.make_node("Identity", ["x"], ["y"])], [info("x", X)], ["y"]
).SerializeToString()


@pytest.mark.parametrize(
    "data", [b"\x08", b"\xff\xff", b"hello", b"{}", WHOLE[:-1], WHOLE[:9], b""]
)
def test_files_that_are_not_models(data, tmp_path):
    path = tmp_path / "m.onnx"
    path.write_bytes(data)
    message = r"not an ONNX model$" if data else r"not an ONNX model: it has no IR version$"
    for source in (data, path, str(path)):
        with pytest.raises(ModelError, match=message):
            Model(source)


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(ModelError, match=rf"{NO_FILE}$"):
        Model(tmp_path / "missing.onnx")
    with pytest.raises(ModelError, match=r"Is a directory$"):
        Model(tmp_path)
    with pytest.raises(ModelError, match=r"null (byte|character)"):
        Model("a\0b.onnx")


def test_strings_that_are_not_utf_8():
    constant = numpy_helper.from_array(np.array(["a"], object), "c")
    constant.string_data[0] = b"\xff"
    with pytest.raises(ModelError, match="c"):
        Model(model([], [], ["c"], initializer=[constant]))
    node = helper.make_node("Constant", [], ["c"], name="c", value_string=b"\xff")
    with pytest.raises(ModelError, match=r"node 'c' \(Constant-13\): value_string: is not UTF-8"):
        evaluate(model([node], [], ["c"]), {})


def test_outputs_of_another_type_than_declared(message):
    proto = parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 13]>
        g (float[2] x) => (int64[2] y) { y = Identity (x) }"""
    )
    error = fault(lambda: evaluate(proto, {"x": np.float32([1, 2])}), ModelError)
    message(error, "output 'y'", "tensor(int64)", "tensor(float)")
