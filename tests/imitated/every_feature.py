"""A program that uses a device in every way, and runs again and again while one call of Vulkan fails.

Its arguments are the index of an adapter, "mapped" or "staged", and attempts as JSON: for each the name of
a function ("" for all), how many of its calls succeed before one fails, and the result of that one.
"""

import faulthandler
import json
import sys
import traceback

import numpy as np
from compiled_operators import reverse
from onnx import parser

import vkops
from imitated import LOST, counts, layer
from vkops.gpu.adapters import adapter
from vkops.gpu.run import streaming
from vkops.onnx import Model, Session

SECONDS = 30  # after which a process is taken to hang
LINE = "every feature: "
"""The beginning of the lines that are printed; what else is printed is a message of a layer."""

X = np.arange(1 << 10, dtype=np.int32).reshape(32, 32)
WIDE = np.arange(1 << 20).astype(np.uint8).reshape(1 << 12, 256)
MODEL = """<ir_version: 8, opset_import: ["" : 18]>
g (int32[N, M] x) => (int32[P, Q] y) { t = Transpose (x) y = Concat <axis = 0> (t, t) }"""
SHADER = """#version 450
layout(local_size_x = 64) in;
layout(std140, binding = 0) uniform Settings { uint factor; };
layout(std430, binding = 1) readonly buffer Source { uint source[]; };
layout(std430, binding = 2) writeonly buffer Target { uint target[]; };
layout(push_constant) uniform Push { uint added; };
void main() { uint i = gl_GlobalInvocationID.x; target[i] = source[i] * factor + added; }"""
AXPY = vkops.ElementwiseKernel("int32 a, T x, T y", "T z", "z = T(a) * x + y", "axpy")


def tensors(device):
    x = device.tensor(X)
    np.testing.assert_array_equal(vkops.roll(x, 1).numpy(), np.roll(X, 1))
    x[::2] = x[1::2].copy()
    x[0] = 7
    expected = X.copy()
    expected[::2] = X[1::2]
    expected[0] = 7
    joined = vkops.join(vkops.split(x, 4), axis=1)
    np.testing.assert_array_equal(joined.numpy(), np.concatenate(np.split(expected, 4), axis=1))
    np.testing.assert_array_equal(vkops.take(x, [1, 3], axis=0).numpy(), X[[1, 3]])


def copies(device):
    """Of arrays and of tensors."""
    for source in (WIDE, device.tensor(WIDE)):
        halves = vkops.split(source, 2, axis=1, device=device)
        assert halves[1].numpy().tobytes() == WIDE[:, 128:].tobytes()
        both = vkops.join([source, source], axis=0, device=device)
        assert both.numpy().tobytes() == 2 * WIDE.tobytes()


def operators(device):
    source, target = device.buffer(X.nbytes), device.buffer(X.nbytes)
    source.write(X)
    bound = reverse(device, X.nbytes).bind([source], [target])
    for _ in range(20):
        bound.dispatch()
    bound.start().wait()
    assert target.read() == X.tobytes()[::-1]


def streams(device):
    before, streaming.CHUNK = streaming.CHUNK, 1 << 10
    try:
        source, target = device.host_buffer(X.nbytes), device.host_buffer(X.nbytes)
        source.write(X)
        reverse(device, X.nbytes).dispatch([source], [target])
        assert target.read() == X.tobytes()[::-1]
    finally:
        streaming.CHUNK = before


def models(device):
    session = Session(Model(parser.parse_model(MODEL)), device)
    (y,) = session.run({"x": device.tensor(X)})
    np.testing.assert_array_equal(y.numpy(), np.concatenate([X.T, X.T]))


def shaders(device):
    x = device.tensor(X.astype(np.uint32))
    shader = device.compile_shader(SHADER)
    y = shader(Source=x, Settings={"factor": 3}, added=1, out={"Target": X.shape}, threads=X.size)
    np.testing.assert_array_equal(y.numpy(), X * 3 + 1)


def elementwise(device):
    x = device.tensor(X)
    np.testing.assert_array_equal(AXPY(2, x, x[::-1]).numpy(), 2 * X + X[::-1])


def recordings(device):
    x = device.tensor(X)
    with device.record() as recorded:
        y = vkops.flip(vkops.roll(x, 1, axis=0), axis=0)
    for _ in range(2):
        recorded.run()
    np.testing.assert_array_equal(y.numpy(), np.flip(np.roll(X, 1, axis=0), axis=0))
    recorded.close()


def measurements(device):
    take = device.measure_dispatches()
    vkops.roll(device.tensor(X), 1)
    take()
    device.memory_report()


STEPS = (
    tensors, copies, operators, streams, models, shaders, elementwise, recordings, measurements,
)  # fmt: skip


def attempt(index, staged, name, skipped, result):
    """Run the program with a call that fails, and return its error.

    It runs once more without, on the same device, if that is open and not lost.
    """
    faulty, error, opened = layer(), None, []
    faulty.fail(name.encode(), skipped, 1, result)
    try:
        run(index, staged, opened)
    except vkops.VkopsError as found:
        error = str(found)
    faulty.fail(b"", 0, 0, 0)
    if result == LOST:
        opened.clear()
    run(index, staged, opened)
    return error


def run(index, staged, opened):
    """Run the program on the device in ``opened``, or on a new one, which is there until it closes."""
    if not opened:
        adapter.instances.cache_clear()  # a Vulkan instance is made, too
        opened.append(vkops.Device(index, staged=staged))
    for step in STEPS:
        step(opened[0])
    opened.pop().close()


def say(value):
    print(LINE, json.dumps(value), sep="", flush=True)


def main(index, kind, attempts):
    """Print the number of calls of each function, and for each attempt what is wrong, or null."""
    faulty, staged = layer(), kind == "staged"
    faulty.record(1)
    run(index, staged, [])
    say(counts())
    faulty.record(0)
    for name, skipped, result in attempts:
        faulthandler.dump_traceback_later(SECONDS, exit=True)
        try:
            error, wrong = attempt(index, staged, name, skipped, result), None
        except Exception as found:
            error, wrong = None, "".join(traceback.format_exception(found))
        say(wrong or (error if error and "\n" in error else None))


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3]))
