"""ONNX models: what type checkers say, and what happens."""

from typing import Any

import numpy as np
from onnx import ModelProto, helper, parser
from typing_extensions import assert_type

import vkops
from vkops.onnx import Model, Session, ValueInfo, backend

TEXT = """<ir_version: 9, opset_import: ["" : 18]>
halves (float[N, 4] x) => (float[N, 2] a, float[N, 2] b)
{ a, b = Split <axis = 1, num_outputs = 2> (x) }"""
proto: ModelProto = parser.parse_model(TEXT)
x = np.ones((2, 4), np.float32)

model = Model(proto, check=True)
assert_type(Model(proto.SerializeToString()), Model)
assert_type(model.opset, int)
assert_type(model.inputs[0].name, str)
assert_type(model.inputs[0].kind, str)
assert_type(model.inputs[0].dtype, np.dtype[Any] | None)
assert_type(model.inputs[0].shape, tuple[int | str | None, ...] | None)
assert_type(model.outputs[0].name, str)
assert_type(model.required_inputs[0].name, str)

device = vkops.Device()
session = Session(model, device)
assert_type(session.model, Model)
assert_type(session.device, vkops.Device)
assert_type(session.run({"x": x}, lambda done, total: None), list[Any])
assert_type(session.run(None, {"x": x}), list[Any])
assert_type(session.run(["a"], {"x": x}), list[Any])
assert_type(session.get_inputs(), list[ValueInfo])
assert_type(session.get_outputs()[0].type, str | None)
target = device.tensor(np.zeros((2, 2), np.float32))
assert_type(session.run({"x": device.tensor(x)}, targets={1: target}), list[Any])

rep = backend.prepare(proto, device="VULKAN")
assert_type(rep, backend.VkopsRep)
assert_type(rep.session, Session)
assert_type(rep.run([x]), tuple[Any, ...])
assert_type(backend.supports_device("CPU"), bool)
assert_type(backend.is_compatible(proto), bool)
node = helper.make_node("Identity", ["x"], ["y"])
assert_type(backend.run_node(node, [x]), tuple[Any, ...])
assert_type(backend.VkopsBackend.prepare(proto), backend.VkopsRep)
