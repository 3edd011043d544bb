"""Devices, operators and errors: what type checkers say, and what happens."""

from typing import Literal

import numpy as np
import numpy.typing as npt
from typing_extensions import assert_type

import vkops
from vkops import dml
from vkops.gpu.memory.pools import MemoryReport
from vkops.plan import CopyPlan, Pipeline
from vkops.runtime.compiled_operator import BindingProperties
from vkops.runtime.device import OperatorDevice

infos = vkops.devices()
assert_type(infos, list[vkops.DeviceInfo])
info = infos[0]
for text in (info.name, info.type, info.driver, info.api_version, info.driver_version):
    assert_type(text, str)
for number in (
    info.index, info.vendor_id, info.device_id, info.dedicated_memory, info.shared_memory,
    info.memory, info.max_buffer, info.max_bindings,
):  # fmt: skip
    assert_type(number, int)
assert_type(info.unified_memory, bool)

device = vkops.Device(info.index, "5_0", debug=False, alternative_levels=["JOIN"], staged=False)
assert_type(vkops.Device(indices="directml").indices, Literal["vkops", "directml"])
assert_type(device.info, vkops.DeviceInfo)
assert_type(device.name, str)
assert_type(device.feature_level, dml.FeatureLevel)
assert_type(device.alternative_levels, tuple[str, ...])
assert_type(device.memory_report(), MemoryReport)
assert_type(device.memory_report().used, int)
assert_type(
    device.check_feature_support(dml.FeatureQueryFeatureLevels(["2_0", dml.FeatureLevel.LATEST])),
    dml.FeatureDataFeatureLevels,
)
assert_type(
    device.check_feature_support(dml.FeatureQueryTensorDataTypeSupport(dml.TensorDataType.INT8)),
    dml.FeatureDataTensorDataTypeSupport,
)

# Memory
buffer = device.buffer(16)
assert_type(buffer, vkops.Buffer)
assert_type(buffer.nbytes, int)
assert_type(buffer.write(bytes(16)), None)
assert_type(buffer.fill(np.arange(4, dtype=np.int32)), None)
assert_type(buffer.read(4, 8), bytes)
assert_type(buffer.array(0, 16), npt.NDArray[np.uint8])
host = device.host_buffer(16)
assert_type(host, vkops.HostBuffer)
x = device.tensor([1, 2, 3, 4])
assert_type(x, vkops.Tensor)

# Operators
desc = dml.BufferTensorDesc(dml.TensorDataType.INT32, [4])
operator = device.create_operator(dml.ElementWiseIdentityOperatorDesc(desc, desc))
assert_type(operator, vkops.Operator)
assert_type(operator.device, OperatorDevice)
assert_type(operator.desc, dml.OperatorDesc)
compiled = device.compile_operator(operator, dml.ExecutionFlags.DISABLE_META_COMMANDS)
assert_type(compiled, vkops.CompiledOperator)
assert_type(compiled.name, str)
assert_type(compiled.plan, CopyPlan)
assert_type(compiled.pipeline, Pipeline)
assert_type(compiled.binding_properties, BindingProperties)
properties = compiled.binding_properties
for number in (properties.temporary_resource_size, properties.persistent_resource_size):
    assert_type(number, int)

target = device.buffer(16)
assert_type(compiled.dispatch([buffer], [target]), None)
assert_type(compiled.dispatch([buffer], [target], wait=True), None)
pending = compiled.dispatch([(buffer, 0, 16)], [target], wait=False)
assert_type(pending, vkops.Pending)
assert_type(pending.wait(), None)
bound = compiled.bind([buffer], [host])
assert_type(bound, vkops.BoundOperator | vkops.StreamedOperator)
assert_type(bound.dispatch(lambda done, total: None), None)
assert_type(bound.start(), vkops.Pending)


def started(wait: bool) -> vkops.Pending | None:
    """Whether to wait may be known only when it runs."""
    return compiled.dispatch([buffer], [target], wait=wait)


bound.start().wait()
assert started(False) is not None

owned = dml.BufferTensorDesc(dml.TensorDataType.INT32, [4], flags=dml.TensorFlags.OWNED_BY_DML)
keeping = device.compile_operator(
    device.create_operator(dml.ElementWiseIdentityOperatorDesc(owned, desc))
)
assert_type(keeping.initialize([buffer]), None)

graph = dml.Graph()
graph.output(graph.identity(graph.input(desc)))
assert_type(device.compile_graph(graph), vkops.CompiledOperator)
assert_type(device.compile_graph(graph.desc()), vkops.CompiledOperator)

# Errors
try:
    device.buffer(0)
except vkops.InvalidDescError as error:
    for text in (error.operator, error.field, error.message, error.rule):
        assert_type(text, str)
    parent: vkops.VkopsError = error
    builtin: ValueError = error
try:
    compiled.bind([None], [target])
except vkops.BindingError as error:
    assert_type(error.rule, str)
missing = vkops.ShaderCompileError("no compiler", file=None, line=None, log="")
assert_type(missing.file, str | None)
assert_type(missing.line, int | None)
assert_type(missing.log, str)
kinds: list[type[vkops.VkopsError]] = [
    vkops.DeviceError, vkops.FeatureLevelError, vkops.InvalidDescBufferError,
    vkops.InvalidDescIndexError, vkops.InvalidDescOverflowError, vkops.InvalidDescTypeError,
    vkops.MissingPackageError, vkops.ModelError, vkops.OutOfDeviceMemoryError,
]  # fmt: skip
memory: type[MemoryError] = vkops.OutOfDeviceMemoryError
kind: type[TypeError] = vkops.InvalidDescTypeError

with vkops.Device() as other:
    assert_type(other, vkops.Device)
    assert_type(other.close(), None)
