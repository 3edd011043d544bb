"""ONNX models: what type checkers say, and what happens."""

from typing import Any

import numpy as np
from onnx import ModelProto, helper, parser
from typing_extensions import assert_type

import vkops
from vkops.onnx import (
    Model,
    ModelMetadata,
    NodeArg,
    Session,
    SessionOptions,
    ValueInfo,
    backend,
    get_available_providers,
)  # fmt: skip

TEXT = """<ir_version: 9, opset_import: ["" : 18]>
halves (float[N, 4] x) => (float[N, 2] a, float[N, 2] b)
{ a, b = Split <axis = 1, num_outputs = 2> (x) }"""
proto: ModelProto = parser.parse_model(TEXT)
x = np.ones((2, 4), np.float32)

model = Model(proto, check=True)
assert_type(Model(proto.SerializeToString()), Model)
assert_type(model.opset, int)
for infos in (model.inputs, model.outputs, model.required_inputs):
    assert_type(infos, tuple[ValueInfo, ...])
for text in (model.inputs[0].name, model.inputs[0].kind):
    assert_type(text, str)
assert_type(model.inputs[0].dtype, np.dtype[Any] | None)
assert_type(model.inputs[0].shape, tuple[int | str | None, ...] | None)

device = vkops.Device()
session = Session(model, device)
assert_type(session.model, Model)
assert_type(session.device, vkops.Device)
target = device.tensor(np.zeros((2, 2), np.float32))
for results in (
    session.run({"x": x}, lambda done, total: None),
    session.run(None, {"x": x}),
    session.run(["a"], {"x": x}),
    session.run({"x": device.tensor(x)}, targets={1: target}),
):
    assert_type(results, list[Any])
initializers = session.get_overridable_initializers()
for declared in (session.get_inputs(), session.get_outputs(), initializers):
    assert_type(declared, list[NodeArg])
for text in (session.get_outputs()[0].name, session.get_outputs()[0].type):
    assert_type(text, str)
assert_type(session.get_outputs()[0].shape, list[int | str | None])

options = SessionOptions(log_severity_level=3)
options.intra_op_num_threads = 2
options.add_free_dimension_override_by_name("N", 2)
options.add_free_dimension_override_by_denotation("DATA_BATCH", 2)
options.add_session_config_entry("key", "value")
assert_type(options.get_session_config_entry("key"), str)
assert_type(get_available_providers(), list[str])
name = "VulkanExecutionProvider"
session = Session(proto, sess_options=options, providers=[name], provider_options=[{}])
session = Session(proto, providers=[(name, {"device_id": 0})])
assert_type(session.get_providers(), list[str])
assert_type(session.get_modelmeta(), ModelMetadata)
assert_type(session.get_modelmeta().custom_metadata_map, dict[str, str])
assert_type(session.get_provider_options(), dict[str, dict[str, str]])
assert_type(session.get_session_options(), SessionOptions)

rep = backend.prepare(proto, device="VULKAN")
assert_type(rep, backend.VkopsRep)
assert_type(rep.session, Session)
node = helper.make_node("Identity", ["x"], ["y"])
for outputs in (rep.run([x]), backend.run_node(node, [x])):
    assert_type(outputs, tuple[Any, ...])
for flag in (backend.supports_device("CPU"), backend.is_compatible(proto)):
    assert_type(flag, bool)
assert_type(backend.VkopsBackend.prepare(proto), backend.VkopsRep)
