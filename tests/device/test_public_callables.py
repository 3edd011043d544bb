"""Every public callable, given arguments of any kind: an error of vkops, or a result."""

import asyncio
import inspect
from itertools import islice

import numpy as np
import onnx
import pytest
from compiled_operators import compiled
from fuzz import hostile

import vkops
import vkops.onnx.backend
from vkops import dml, dxdispatch, gpu, plan, pydirectml, shaders

BACKEND = ("is_compatible", "prepare", "run_model", "run_node", "supports_device")
OTHERS = [
    *(getattr(vkops.onnx.backend, name) for name in BACKEND), vkops.onnx.Model, vkops.onnx.Session, vkops.onnx.SessionOptions, dxdispatch.load_model,
    dxdispatch.prepare, plan.execute, plan.validate, shaders.load, gpu.DeviceInfo,
    pydirectml.Binding, pydirectml.Device, pydirectml.GraphBuilder, pydirectml.TensorDesc,
    dml.BufferTensorDesc, dml.Graph, dml.GraphDesc, dml.check_feature_support, dml.input_tensor,
    dml.reinterpret, vkops.Device, vkops.ElementwiseKernel, vkops.ReductionKernel, vkops.ScanKernel,
    vkops.kernels.random.Philox, *filter(callable, (getattr(vkops.kernels, name) for name in dir(vkops.kernels))),
    *dml.OPERATORS.values(),
]  # fmt: skip


def functions():
    left_out = vkops.devices, vkops.eye  # to the latter, a feature level is the size of a matrix
    for module in (vkops, dml, pydirectml):
        for name in module.__all__:
            each = getattr(module, name)
            ours = getattr(each, "__module__", "").startswith("vkops.")
            if ours and not isinstance(each, type) and callable(each) and each not in left_out:
                yield each


def methods(kind):
    return [name for name, _ in inspect.getmembers(kind, callable) if not name.startswith("_")]


def values():
    yield from (make() for make in hostile.SINGLE)
    yield from (10**5000, -1, 2**63, 2**100, [-(10**5000)])
    yield from ([[1], [1, 2]], "\n\x1b", np.zeros((2, 0)))


def require_clear_errors(call, names):
    """Call with each value, as one of the arguments and as all."""
    for number, value in enumerate(values()):
        for place in {-1, number % max(names, 1)}:
            args = [value if place in (-1, i) else np.arange(4) for i in range(names)]
            try:
                result = call(*args)
                if inspect.iscoroutine(result):
                    result = asyncio.run(result)
            except vkops.VkopsError as error:
                text = str(error)
                assert text.isprintable(), text
                continue
            if isinstance(result, vkops.Tensor):
                repr(result)


def required(function):
    """The number of arguments without a default, and one more where there are others."""
    parameters = inspect.signature(function).parameters.values()
    places = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return min(sum(p.default is p.empty for p in places) + 1, len(places))


@pytest.mark.parametrize(
    "function", [*functions(), *OTHERS], ids=lambda f: f"{f.__module__}.{f.__name__}"
)
def test_functions_and_classes(function):
    require_clear_errors(function, required(function))


MODEL = onnx.parser.parse_model(
    '<ir_version: 9, opset_import: ["": 18]> g (float[2, 3] x) => (float[3, 2] y) { y = Transpose(x) }'
)
INTERNAL = {
    "from_array", "fill_with", "make", "over", "placed", "clone", "is_on", "part", "settle",
    "allocate", "submit", "wait", "make_ready", "fits", "flush",
    "close", "lower", "specialize", "with_sizes", "call", "complete", "release",
    "measure_dispatches", "memory_view", "peek", "finish_writes", "resize",
}  # fmt: skip


def objects(device):
    desc = dml.BufferTensorDesc(dml.TensorDataType.INT32, [4])
    twice = dml.BufferTensorDesc(dml.TensorDataType.INT32, [8])
    tile = compiled(device, dml.TileOperatorDesc(desc, twice, [2]))
    yield device
    yield device.tensor(np.arange(6).reshape(2, 3))
    yield device.buffer(64)
    yield device.host_buffer(64)
    yield tile
    yield tile.bind([device.buffer(16)], [device.buffer(32)])
    yield dml.Graph()
    yield vkops.onnx.Session(MODEL, device)
    yield vkops.onnx.backend.prepare(MODEL)
    yield vkops.kernels.random.Philox(1)
    yield vkops.onnx.SessionOptions()
    with pydirectml.Device() as other:
        yield other
        yield pydirectml.GraphBuilder(other)


OBJECTS = 13


def test_the_methods_of_all_objects_are_called(device):
    assert len([*objects(device)]) == OBJECTS


@pytest.mark.parametrize("number", range(OBJECTS))
def test_methods(device, number):
    instances = objects(device)
    one = next(islice(instances, number, None))
    for name in methods(type(one)):
        if name not in INTERNAL:
            method = getattr(one, name)
            require_clear_errors(method, required(method))
