"""Shaders of one's own: what type checkers say, and what happens."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import numpy as np
from typing_extensions import assert_type

import vkops
from vkops import debug, shaders
from vkops.runtime.compiled_shader import BoundShader
from vkops.shaders.module import Block

TEXT = """#version 450
layout(local_size_x = 4) in;
layout(constant_id = 0) const uint OFFSET = 0u;
layout(std430, binding = 0) readonly buffer Source { uint source[]; };
layout(std430, binding = 1) writeonly buffer Target { uint target[]; };
layout(push_constant) uniform Push { float factor; };
void main() { uint i = gl_GlobalInvocationID.x; target[i] = uint(factor * source[i]) + OFFSET; }"""

loaded = shaders.load(
    TEXT, constants={"OFFSET": 1}, defines={"N": 4}, include_dirs=[Path()], debug=True, name="scale"
)
assert_type(loaded, shaders.Shader)
assert_type(loaded.name, str)
assert_type(loaded.spirv, bytes)
assert_type(loaded.blocks, tuple[Block, ...])
assert_type(loaded.blocks[0].point, str)
assert_type(loaded.blocks[0].readonly, bool)

device = vkops.Device()
x, y = device.tensor(np.arange(8, dtype=np.uint32)), device.buffer(32)
compiled = device.compile_shader(TEXT, constants={0: 1}, name="scale")
assert_type(compiled, vkops.CompiledShader)
assert_type(compiled.name, str)
assert_type(compiled.shader, shaders.Shader)
assert_type(compiled.dispatch({"Source": x, "Target": y}, [2], [0.5]), None)
assert memoryview(y.read()).cast("I").tolist() == [1, 1, 2, 2, 3, 3, 4, 4]

for source in (loaded, loaded.spirv, TEXT):
    assert_type(device.compile_shader(source), vkops.CompiledShader)

with compiled.bound(
    {"0": (x, 0, 16), "1": (y, 16, None)}, groups=(1, 1, 1), push_constants=[2]
) as run:
    assert_type(run, BoundShader)
    assert_type(run.dispatch(), None)
assert memoryview(y.read(16)).cast("I").tolist() == [1, 3, 5, 7]

with device.record() as program:
    assert_type(program, vkops.RecordedProgram)
    compiled.dispatch({"Source": x, "Target": y}, [2], [1])
assert_type(program.run(times=2), None)
assert_type(program.steps, tuple[str, ...])
assert memoryview(y.read()).cast("I").tolist() == [1, 2, 3, 4, 5, 6, 7, 8]
program.close()

capture: AbstractContextManager[None] = vkops.capture_call("case.zip")
use: Callable[[Path], None] = vkops.use_bundle

with vkops.profile() as profile:
    compiled.dispatch({"Source": x, "Target": y}, [2], [1])
assert_type(profile, vkops.Profile)
assert [row.count for row in profile.by_call() if row.name != "wait"] == [1]
assert_type(profile.calls[0].start, int)

image = device.image(np.zeros((3, 5, 4), np.uint8), mips=2)
assert_type(image, vkops.Image)
assert_type(image[1:, 2], vkops.Image)
assert_type(image.generate_mips().mip(1).shape, tuple[int, ...])
image[...] = 7
assert image.numpy().max() == image.tensor().numpy().max() == 7
assert_type(device.sampler("nearest", normalized=False), vkops.Sampler)

double = vkops.ElementwiseKernel("T x", "T y", "y = x + x", name="double")
assert_type(double, vkops.ElementwiseKernel)
total = vkops.ReductionKernel("T x", "T y", "x", "a + b", "y = a", "0", "total")
assert_type(total, vkops.ReductionKernel)
running = vkops.ScanKernel("T x", "T y", "x", "a + b", "y = item", name="running")
assert_type(running, vkops.ScanKernel)
assert_type(vkops.kernels.cumsum(np.ones(2, "f4"), dtype="float32"), vkops.Tensor)
assert_type(vkops.kernels.sum(np.ones(2, "f4")), vkops.Tensor)


@vkops.fuse
def fused(x: vkops.Tensor) -> vkops.Tensor:
    return vkops.kernels.sum(x)


fused(vkops.zeros(3, dtype="float32"), device=None)
generator = vkops.kernels.random.Philox(1)
assert_type(generator.integers(1, 7, 3, "int32", endpoint=True), vkops.Tensor)
assert_type(generator.random((2, 3), "float32"), vkops.Tensor)
assert_type(generator.normal(0, 1, out=generator.random(3, "float32")), vkops.Tensor)
assert_type(generator.position, int)
assert_type(double.source, str)
assert double(x).numpy().tolist() == list(range(0, 16, 2))

with debug.checking(strict=True, max_instructions=100000, compare=False, kernels=True) as checks:
    double(x)
assert_type(checks.checked, int)
assert_type(checks.not_checked.total(), int)
report = debug.check(TEXT, threads=8, push=[2])
assert_type(report.findings, tuple[debug.Finding, ...])
assert_type(debug.CheckError(report).report, debug.Report)

try:
    compiled.dispatch({"Source": x})
except vkops.BindingError as error:
    assert_type(error.rule, str)
device.close()
