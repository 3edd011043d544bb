"""Helpers of tests: ONNX models made of Python values, and evaluated on the host."""

import numpy as np
import pytest
from google.protobuf.internal import api_implementation
from onnx import ValueInfoProto, defs, helper
from onnx_graphs.reference import difference

from vkops.onnx import Model
from vkops.onnx.element_types import STRING, elem_type_of, moved_dtype
from vkops.onnx.lowering import LoweredSequence, string_handles
from vkops.onnx.onnx_session import lowered
from vkops.onnx.value_info import SequenceType, TensorType
from vkops.plan import execute
from vkops.plan.execute import packed_bytes

OPSET = 18
PROTOBUF_IN_PYTHON = api_implementation.Type() == "python"
"""Whether messages are objects of Python, as where protobuf has no compiled module for this Python."""


def needs_opset(opset):
    """A mark that skips tests of an opset that the installed onnx does not have."""
    lacks = defs.onnx_opset_version() < opset
    return pytest.mark.skipif(lacks, reason=f"needs an onnx with opset {opset}")


NEWEST_ONNX = needs_opset(27)
"""Before onnx 1.23, the evaluator takes minutes for some Resize nodes of random models, and fails for
results without elements. No newer onnx than 1.21 has a wheel for CPython 3.13t.
"""

CONCAT = """<ir_version: 8, opset_import: ["" : 13]>
both (float[N, 2] x0, float[N, 2] x1) => (float[M, 2] y) { y = Concat <axis = 0> (x0, x1) }"""
TWO = """<ir_version: 8, opset_import: ["" : 18]>
two (float[N] x) => (float[K] a, float[M] b) { a, b = Split <num_outputs = 2> (x) }"""
"""Models in the text form of ONNX."""


def array(dtype):
    """A function that makes an array of its arguments."""
    return lambda *values: np.array(values, dtype)


ints, int32s, int8s, floats, text = map(array, (np.int64, np.int32, np.int8, np.float32, object))


def scalar(value, dtype=np.int64):
    return np.array(value, dtype)


def info(name, value):
    """Declare a graph input or output of a value; a list stands for a sequence."""
    if isinstance(value, list):
        return helper.make_tensor_sequence_value_info(name, elem_type_of(value[0].dtype), None)
    return helper.make_tensor_value_info(name, elem_type_of(value.dtype), value.shape)


def model(nodes, inputs, outputs, opset=OPSET, **graph):
    """A model; outputs are declarations, or names of any type."""
    declared = [ValueInfoProto(name=each) if isinstance(each, str) else each for each in outputs]
    proto = helper.make_graph(nodes, "g", inputs, declared, **graph)
    opsets = [helper.make_opsetid("", opset)]
    return helper.make_model(proto, opset_imports=opsets, ir_version=8)


def node_model(operator, *inputs, outputs=1, opset=OPSET, **attributes):
    """A model of one node, and its inputs by name; None leaves an input out."""
    names = [f"i{i}" if value is not None else "" for i, value in enumerate(inputs)]
    result = [f"o{i}" for i in range(outputs)]
    node = helper.make_node(operator, names, result, **attributes)
    values = {name: value for name, value in zip(names, inputs, strict=True) if name}
    declared = [info(name, value) for name, value in values.items()]
    return model([node], declared, result, opset), values


def evaluate(proto, values):
    """Evaluate a model with inputs by name, without a device."""
    lowering = Model(proto).lower(types_of(values), values)
    return [values_of(lowering, output) for output in lowering.outputs]


def run(operator, *inputs, outputs=1, opset=OPSET, **attributes):
    """Evaluate a single node: return its output, or a list of its outputs."""
    results = evaluate(*node_model(operator, *inputs, outputs=outputs, opset=opset, **attributes))
    return results[0] if outputs == 1 else results


def run_on_device(operator, *inputs, opset=OPSET, **attributes):
    """Evaluate a single node as a device would: inputs are known only where shapes need them."""
    proto, values = node_model(operator, *inputs, opset=opset, **attributes)
    lowering = lowered(Model(proto), values)
    strings = list(lowering.strings)
    tensors = {number: packed_bytes(array) for number, array in lowering.constants.items()}
    for number, (name, _) in lowering.inputs.items():
        array = values[name]
        moved = string_handles(array, strings) if array.dtype == STRING else array
        tensors[number] = packed_bytes(moved)
    (output,) = lowering.outputs
    for step in lowering.graph.lower([output.number]):
        result = execute(step.plan, [tensors[number] for number in step.reads])
        tensors.update(zip(step.makes, result, strict=True))
    elements = tensors.get(output.number, np.empty(0, np.uint8)).view(moved_dtype(output.dtype))
    if output.dtype == STRING:
        elements = np.array([strings[handle] for handle in elements], STRING)
    return elements.reshape(output.shape)


def same(got, expected):
    """Assert that arrays or tensors, or lists of them, are the same in type, shape and bytes."""
    assert not difference(got, expected)


def types_of(values):
    """The types and shapes of inputs by name; a list is a sequence."""
    return {
        name: SequenceType(value[0].dtype, tuple(item.shape for item in value))
        if isinstance(value, list)
        else TensorType(value.dtype, value.shape)
        for name, value in values.items()
    }


def values_of(lowering, output):
    """Return the elements of an output: an array, a list of arrays, or None."""
    if isinstance(output, LoweredSequence):
        return [lowering.values(item) for item in output.items]
    return None if output is None else lowering.values(output)
