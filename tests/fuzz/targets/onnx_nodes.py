"""ONNX models: random ones whose nodes, attributes, types and tensors were changed."""

from pathlib import Path

import numpy as np
import onnx
from onnx import AttributeProto, TensorProto, helper, numpy_helper

from fuzz import target
from fuzz.choices import Choices
from fuzz.targets.onnx_bytes import bases, inputs_of
from vkops.onnx import Model
from vkops.onnx.onnx_session import lowered
from vkops.onnx.operators import OPERATORS
from vkops.onnx.specialization import Specialization

SIZES = [0, 1, 2, 3, 7, -1, -2, 2**16, 2**31 - 1, 2**31, 2**32, 2**40, 2**62, 2**63 - 1, -(2**63)]
TYPES = [*range(30), 1000, -1]
NAMES = [
    "axis", "axes", "perm", "to", "mode", "value", "split", "num_outputs", "keepdims", "blocksize",
    "starts", "ends", "start", "end", "shape", "pads", "allowzero", "value_ints", "sparse_value", "x",
]  # fmt: skip
LOCATIONS = ["data/words.bin", "words.bin", "../x", "/etc/passwd", "", ".", "\0", "m.onnx", "a/b"]


def changed(choices, protos):
    """A copy of a model with some changes."""
    proto = onnx.ModelProto()
    proto.CopyFrom(choices.pick(protos))
    for _ in range(choices.pick((1, 1, 1, 2, 3))):
        choices.pick(CHANGES)(choices, proto)
    return proto


def size(choices):
    return choices.pick(SIZES) if choices.one_in(2) else choices.below(12) - 3


# -- changes ---------------------------------------------------------------------------------------


def _node(choices, proto):
    if not proto.graph.node:
        proto.graph.node.add(op_type="Identity", input=["x"], output=["y"])
    return choices.pick(proto.graph.node)


def _operator(choices, proto):
    _node(choices, proto).op_type = choices.pick([*OPERATORS, "Relu", "If", ""])


def _attribute(choices, proto):
    """Another value, of the same kind or another, under the same name or another."""
    node = _node(choices, proto)
    if choices.one_in(8):
        del node.attribute[:]
        return
    values = [
        lambda: size(choices),
        lambda: [size(choices) for _ in range(choices.below(5))] or [0],
        lambda: 0.5,
        lambda: choices.pick([b"", b"reflect", b"edge", b"constant", b"CRD", b"\xff"]),
        lambda: [b"a", b"\xff"],
        lambda: _tensor(choices),
    ]
    names = [attribute.name for attribute in node.attribute] + NAMES
    name = choices.pick(names)
    new = helper.make_attribute(name, choices.pick(values)())
    if choices.one_in(10):
        new.type = choices.pick(list(AttributeProto.AttributeType.values()))
    for attribute in node.attribute:
        if attribute.name == name:
            attribute.CopyFrom(new)
            return
    node.attribute.append(new)


def _tensor(choices):
    """A tensor that may hold another number of elements than it says."""
    dims = [size(choices) for _ in range(choices.below(3))]
    tensor = TensorProto(data_type=choices.pick(TYPES[:-2]), dims=dims, name="t")
    if choices.one_in(2):
        tensor.raw_data = choices.bytes(choices.below(64))
    else:
        tensor.int64_data.extend(size(choices) for _ in range(choices.below(5)))
    return tensor


def _edge(choices, proto):
    """An input or output of a node is another tensor, a new one, or none."""
    node = _node(choices, proto)
    names = choices.pick([node.input, node.output])
    known = (n for other in proto.graph.node for n in (*other.input, *other.output))
    name = choices.pick(["", "nowhere", *known])
    if names and not choices.one_in(4):
        names[choices.below(len(names))] = name
    else:
        names.append(name)


def _nodes(choices, proto):
    """A node is gone, twice there, or elsewhere."""
    nodes = proto.graph.node
    if not nodes:
        return
    at = choices.below(len(nodes))
    copied = type(nodes[at])()
    copied.CopyFrom(nodes[at])
    kind = choices.below(3)
    if kind != 1:
        del nodes[at]
    if kind != 0:
        nodes.insert(choices.below(len(nodes) + 1), copied)


def _end(choices, proto):
    """An input or output of the graph is declared in another way."""
    ends = [*proto.graph.input, *proto.graph.output]
    if not ends:
        return
    info = choices.pick(ends)
    kind = choices.below(6)
    shape = info.type.tensor_type.shape
    if kind == 0:
        info.type.tensor_type.elem_type = choices.pick(TYPES)
    elif kind == 1 and shape.dim:
        choices.pick(shape.dim).dim_value = size(choices)
    elif kind == 2:
        shape.dim.add().dim_value = size(choices)
    elif kind == 3:
        info.ClearField("type")
    elif kind == 4:
        info.type.sequence_type.elem_type.tensor_type.elem_type = choices.pick(TYPES)
    else:
        info.name = choices.pick([other.name for other in ends] + ["", "\ufffd"])


def _initializer(choices, proto):
    """A constant has other sizes, another type, other elements, or is in a file."""
    if not proto.graph.initializer:
        proto.graph.initializer.append(_tensor(choices))
    tensor = choices.pick(proto.graph.initializer)
    kind = choices.below(6)
    if kind == 0 and tensor.dims:
        tensor.dims[choices.below(len(tensor.dims))] = size(choices)
    elif kind == 1:
        tensor.data_type = choices.pick(TYPES)
    elif kind == 2:
        tensor.raw_data = choices.bytes(choices.below(64))
    elif kind == 3:
        tensor.CopyFrom(_tensor(choices))
    elif kind == 4:
        tensor.dims.append(size(choices))
    else:
        external(choices, tensor)


def _numbers(choices, proto):
    """A list of integers, such as a shape, has other ones."""
    lists = [t for t in proto.graph.initializer if t.data_type == TensorProto.INT64]
    if lists:
        tensor = choices.pick(lists)
        values = np.array(choices.some(6, lambda: size(choices)), np.int64)
        tensor.CopyFrom(numpy_helper.from_array(values, tensor.name))


def external(choices, tensor):
    """Elements in a file, which may be none, or elsewhere."""
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value=choices.pick(LOCATIONS))
    for key in ("offset", "length"):
        if choices.one_in(2):
            text = choices.pick(["0", "4", "-1", str(2**63), "1e3", "", "x", "9" * 5000])
            tensor.external_data.add(key=key, value=text)


def _sparse(choices, proto):
    """A sparse constant, mostly a wrong one."""
    tensor = proto.graph.sparse_initializer.add(
        dims=[size(choices) for _ in range(choices.below(3))]
    )
    tensor.values.CopyFrom(_tensor(choices))
    tensor.indices.CopyFrom(_tensor(choices))
    tensor.values.name = choices.pick(["s", "t", ""])


def _function(choices, proto):
    """A function, which may call itself, in place of an operator."""
    node = _node(choices, proto)
    name = choices.pick(["f", "g", node.op_type])
    function = proto.functions.add(name=name, domain="d", input=node.input, output=node.output)
    function.opset_import.add(domain="", version=18)
    inner = function.node.add()
    inner.CopyFrom(node)
    proto.opset_import.add(domain="d", version=1)
    node.op_type, node.domain = name, "d"
    if choices.one_in(3):
        inner.op_type, inner.domain = choices.pick(["f", "g"]), "d"


def _versions(choices, proto):
    """Another opset, another domain, another version of the format."""
    kind = choices.below(4)
    if kind == 0:
        proto.opset_import.add(domain=choices.pick(["", "ai.onnx", "x"]), version=size(choices))
    elif kind == 1 and proto.opset_import:
        choices.pick(proto.opset_import).version = choices.below(30)
    elif kind == 2:
        proto.ir_version = size(choices)
    else:
        _node(choices, proto).domain = choices.pick(["ai.onnx", "x", ""])


CHANGES = [
    _operator, _attribute, _attribute, _attribute, _attribute, _edge, _edge, _nodes, _end, _end,
    _initializer, _initializer, _numbers, _sparse, _function, _versions,
]  # fmt: skip


class Target(target.Target):
    def __init__(self):
        self.bases = bases()
        self.file = Path("m.onnx")

    def check(self, data):
        choices = Choices(data)
        check, is_file = choices.one_in(3), choices.one_in(3)
        proto = changed(choices, self.bases)
        if is_file:
            self.file.write_bytes(proto.SerializeToString())
        model = Model(self.file if is_file else proto, check=check)
        Specialization(lowered(model, inputs_of(model)))
