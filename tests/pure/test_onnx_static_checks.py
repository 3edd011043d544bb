"""Models that cannot run because of types and attributes alone are refused before they run."""

import numpy as np
import onnx
import pytest
from refusals import fault

from vkops.errors import ModelError
from vkops.onnx import Model, Session, backend
from vkops.onnx.static_checks import check_statically

FLOATS = "float[N] x, float[N] y"


def model(inputs, nodes, opset=18):
    """A model whose outputs have no declared type."""
    text = f"""<ir_version: 8, opset_import: ["" : {opset}]>
    m ({inputs}) => (float z) {{ {nodes} }}"""
    proto = onnx.parser.parse_model(text)
    proto.graph.output[0].ClearField("type")
    return proto


# Inputs, nodes, opset, and what the error says; sizes are free but where they are the fault.
REFUSED = [
    (FLOATS, "z = Add (x, y)", 18, "node 0, which makes 'z' (Add-14)"),
    (FLOATS, "s = Shape (x)  z = Equal (x, s)", 18, "node 1, which makes 'z' (Equal-13) B"),
    (FLOATS, "t = Concat <axis = 0> (x, y)  z = Mul (t, t)", 18, "node 1, which makes 'z' (Mul-14)"),
    (FLOATS, "i = Identity (y)  z = Cast <to = 7> (i)", 18, "node 1, which makes 'z' (Cast-13)"),
    ("bool[N] c, int64[N] x, int64[N] y", "z = Where (c, x, y)", 18, "node 0, which makes 'z' (Where-16)"),
    ("int64[N, M] x", "z = Sub (x, x)", 18, "node 0, which makes 'z' (Sub-14)"),
    ("float[N] x, int64[K, L] y", "t = Gather (x, y)  z = Sub (y, y)", 18, "node 1, which makes 'z' (Sub-14)"),
    ("int64[N] y", "c = Constant <value_floats = [1.0, 2.0]> ()  t = Gather (c, y)  z = Sub (t, t)", 18, "node 2, which makes 'z' (Sub-14)"),
    ("int64[1025] x", "z = Sub (x, x)", 18, "node 0, which makes 'z' (Sub-14)"),
    ("string[N] x", "z = Cast <to = 1> (x)", 18, "node 0, which makes 'z' (Cast-13)"),
    ("float[N] x", "z = Cast <to = 99> (x)", 18, "node 0, which makes 'z' (Cast-13) to"),
    ("float[M] x", "c = Constant <value_float = 1.0> ()  z = Range (c, x, c)", 18, "node 1, which makes 'z' (Range-11)"),
    ("float[N, M] x", "z = EyeLike <dtype = 8> (x)", 18, "node 0, which makes 'z' (EyeLike-9) dtype"),
    ("float[N] x", 'p = Constant <value_ints = [1, 1]> ()  z = Pad <mode = "wrap"> (x, p)', 18, "node 1, which makes 'z' (Pad-18) mode"),
    ("float[N] x", 'z = Resize <mode = "nearest"> (x)', 18, "node 0, which makes 'z' (Resize-18)"),
    ("float[N] x, float[1] s", 'z = Resize <mode = "cubic"> (x, , s)', 18, "node 0, which makes 'z' (Resize-18) mode"),
    ("float[A, B, C, D] x", 'z = DepthToSpace <blocksize = 2, mode = "CDR"> (x)', 18, "node 0, which makes 'z' (DepthToSpace-13) mode"),
    ("float[A, B, C, D] x", "z = SpaceToDepth <blocksize = 0> (x)", 18, "node 0, which makes 'z' (SpaceToDepth-13) blocksize"),
    ("float[N] x", "z, a = Split <num_outputs = 3> (x)", 18, "node 0, which makes 'z' (Split-18) num_outputs"),
    ("float[N] x", "z, a = Split <split = [3, -1]> (x)", 11, "node 0, which makes 'z' (Split-11) split[1]"),
    ("float[A, B] x", "z = Transpose <perm = [1, 1]> (x)", 18, "node 0, which makes 'z' (Transpose-13) perm"),
    ("int64[N] x", "z = ConstantOfShape <value = int64[2] {1, 2}> (x)", 18, "node 0, which makes 'z' (ConstantOfShape-9) value"),
    ("float[N] x, int64[M] i, float[M] u", 'z = ScatterElements <reduction = "mul"> (x, i, u)', 18, "node 0, which makes 'z' (ScatterElements-18) reduction"),
    ("float[N] x, int64[M, 1] i, float[M] u", 'z = ScatterND <reduction = "add"> (x, i, u)', 18, "node 0, which makes 'z' (ScatterND-18) reduction"),
    ("float[A, B, C] x, int64[C] s", "z = ReverseSequence <batch_axis = 2> (x, s)", 18, "node 0, which makes 'z' (ReverseSequence-10) batch_axis and time_axis"),
    ("float[N] x, float[2] v", "d = Constant <value_int = 3> ()  z = OneHot (x, d, v)", 18, "node 1, which makes 'z' (OneHot-11)"),
    ("int16[N, M] x, float[2] v", "d = Constant <value_int = 3> ()  z = OneHot (x, d, v)", 18, "node 1, which makes 'z' (OneHot-11)"),
    ("float[N, M, K] x, float[N, L, K] u", 'z = TensorScatter <mode = "circular"> (x, u)', 24, "node 0, which makes 'z' (TensorScatter-24) mode"),
    # Sizes that are declared decide more.
    ("float[5] x", "z, a = Split <axis = 0> (x)", 13, "node 0, which makes 'z' (Split-13) outputs"),
    ("float[2, 3] x, float[3, 2] y", "z = Concat <axis = 0> (x, y)", 18, "node 0, which makes 'z' (Concat-13) inputs[1]"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("inputs", "nodes", "opset", "named"), REFUSED, ids=[case[3] for case in REFUSED]
)
def test_models_that_cannot_run_are_refused_without_inputs(inputs, nodes, opset, named, message):
    proto = model(inputs, nodes, opset=opset)
    error = fault(lambda: check_statically(Model(proto, check=False)), ModelError)
    message(error, *named.split())
    # A session refuses it before any device is opened.
    assert fault(lambda: Session(Model(proto, check=False)), ModelError) == error
    assert not backend.is_compatible(proto)


@pytest.mark.parametrize(
    ("inputs", "nodes"),
    [
        ("int64[N] x", "z = Add (x, x)"),
        ("float[N] x, int64[N] y", "s = Mul (y, y)  z = Reshape (x, s)"),
        ("float[N, M] x, int64[K, L] y", "t = Expand (x, y)  z = Sub (y, y)"),
        ("int16[N] x, float[2] v", "d = Constant <value_int = 3> ()  z = OneHot (x, d, v)"),
        ("int64[N, M] x, float[2] v, int64 d", "z = OneHot (x, d, v)"),
        ("float[N, M] x", "s = Shape (x)  z = Div (s, s)"),
        ("float[N] x", "z = Cast <to = 1> (x)"),
        ("float[0] x", "z = Add (x, x)"),
        ("float[N] x", "z, a, b = Split <axis = 0> (x)"),
        ("float[N, 2] x, float[N, 3] y", "z = Concat <axis = 0> (x, y)"),
        # Only an empty tensor can have such blocks and parts.
        ("float[A, B, C, D] x", f"z = DepthToSpace <blocksize = {2**31}> (x)"),
        ("float[A, B, C, D] x", f"z = SpaceToDepth <blocksize = {2**62}> (x)"),
        ("optional(seq(float[N])) x", "z = Identity (x)"),
    ],
)
def test_faults_of_sizes_and_elements_are_not_found_statically(inputs, nodes):
    check_statically(Model(model(inputs, nodes, opset=13), check=False))


def test_long_parts_of_a_split_are_not_refused_statically():
    nodes = f"z, a = Split <axis = 1, split = [{2**40}, {2**40}]> (x)"
    check_statically(Model(model("float[N, M] x", nodes, opset=11), check=False))


def test_an_input_with_a_default_may_be_a_constant():
    proto = model("float[N] x", "z = Add (x, x)")
    proto.graph.initializer.append(onnx.numpy_helper.from_array(np.ones(2, np.float32), "x"))
    check_statically(Model(proto, check=False))


def test_declared_types_of_outputs(message):
    proto = model("float[N] x", "z = Shape (x)")
    proto.graph.output[0].CopyFrom(onnx.helper.make_tensor_value_info("z", 1, None))
    message(fault(lambda: check_statically(Model(proto, check=False)), ModelError), "output 'z': ")


def test_inputs_of_other_kinds(message):
    proto = model("map(int64, float[N]) x, float[N] y", "z = Identity (y)")
    message(fault(lambda: check_statically(Model(proto, check=False)), ModelError), "input 'x': ")


@pytest.mark.parametrize("value", [None, 3, ["a.onnx"], np.arange(3)])
def test_models_are_messages_bytes_or_paths(value):
    with pytest.raises(ModelError, match=r"^model: got .*, must be a ModelProto, its bytes, or"):
        Session(value)
    assert not backend.is_compatible(value)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("x", [np.zeros(1)]), "node"),
        ((onnx.helper.make_node("Identity", ["x"], ["y"]), []), "inputs"),
        ((onnx.helper.make_node("Identity", ["x"], ["y"]), {"z": 1}), "inputs"),
        ((onnx.helper.make_node("Identity", ["x"], ["y"]), None), "input 'x'"),
    ],
)  # fmt: skip
def test_nodes_and_inputs_of_the_wrong_kind(arguments, named, message):
    message(fault(lambda: backend.run_node(*arguments), ModelError), named)


@pytest.mark.parametrize("opset", ["18", 0, 10**9, None])
def test_opsets_that_do_not_exist(opset):
    node = onnx.helper.make_node("Identity", ["x"], ["y"])
    newest = onnx.defs.onnx_opset_version()
    with pytest.raises(ModelError, match=f"^opset_version: got .*, must be 1 to {newest}$"):
        backend.run_node(node, [np.zeros(1)], opset_version=opset)
