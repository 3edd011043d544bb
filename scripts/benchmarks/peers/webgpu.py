"""wgpu on the measured device, through its Vulkan driver.

A workload of strided copies runs as a kernel with one invocation per word of the result, or as
copies between buffers where a limited number of contiguous parts suffices, whichever is faster.
WebGPU submits a command buffer once, so each run encodes its commands.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from math import prod
from time import perf_counter
from typing import Any

import numpy as np
import wgpu

from benchmarks.peers import PeerProgram
from benchmarks.peers.strided import JoinedInput, Output, copies, reads
from vkops.bench.workloads import Array, BenchCase
from vkops.errors import DeviceError
from vkops.gpu.adapters.adapter import DeviceInfo
from vkops.plan.rounding import ceil_div, round_up

_LIMITS = ("max-buffer-size", "max-storage-buffer-binding-size")
_INPUTS = "max-storage-buffers-per-shader-stage"
_MAX_COPIES = 4096
_STORAGE = wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC | wgpu.BufferUsage.COPY_DST
_TRIALS = 3
_GROUP = 64  # invocations of a workgroup
_WORDS = {4: "u32", 8: "vec2<u32>", 16: "vec4<u32>"}


class Peer:
    """A wgpu device on the adapter that vkops is measured on."""

    label = "wgpu"
    version: str = wgpu.__version__

    def __init__(self, info: DeviceInfo) -> None:
        self._device = open_device(info)

    def prepare(self, case: BenchCase, arrays: Sequence[Array]) -> PeerProgram | None:
        """Prepare a workload; see ``Peer``."""
        if case.operation.numpy_into is None:  # it makes no views
            return None
        device, limits = self._device, self._device.limits
        nbytes = [prod(shape) * case.dtype.itemsize for shape in case.output_shapes]
        sizes = [_whole_words(n) for n in (*nbytes, *(array.nbytes for array in arrays))]
        if max(sizes) > min(limits[name] for name in _LIMITS):
            return None
        buffers = [device.create_buffer(size=size, usage=_STORAGE) for size in sizes]
        outputs, inputs = buffers[: len(nbytes)], buffers[len(nbytes) :]
        for buffer, array in zip(inputs, arrays, strict=True):
            padded = np.zeros(buffer.size, np.uint8)
            padded[: array.nbytes] = array.reshape(-1).view(np.uint8)
            device.queue.write_buffer(buffer, 0, padded)

        programs = []
        known = reads(case)
        if all(len(output.sources) < limits[_INPUTS] for output in known):
            programs.append(self._submitter(self._kernels(case, known, inputs, outputs)))
        if commands := copies(case, _MAX_COPIES):

            def encode(encoder: Any) -> None:
                for c in commands:
                    encoder.copy_buffer_to_buffer(
                        inputs[c.input], c.source, outputs[c.output], c.target, c.nbytes
                    )

            programs.append(self._submitter(encode))
        if not programs:
            return None

        def results() -> list[Array]:
            read = [np.frombuffer(device.queue.read_buffer(buffer), np.uint8) for buffer in outputs]
            return [data[:n] for data, n in zip(read, nbytes, strict=True)]

        return PeerProgram(min(programs, key=_seconds), results)

    def _submitter(self, encode: Callable[[Any], None]) -> Callable[[], None]:
        device = self._device

        def run() -> None:
            encoder = device.create_command_encoder()
            encode(encoder)
            device.queue.submit([encoder.finish()])
            # The fastest way to wait that this binding has: its on_submitted_work_done_sync is
            # broken in 0.32, and mapping a buffer takes 0.1 ms more.
            device._poll_wait()

        return run

    def _kernels(
        self,
        case: BenchCase,
        expressions: Sequence[Output],
        inputs: Sequence[Any],
        outputs: Sequence[Any],
    ) -> Callable[[Any], None]:
        device = self._device

        @cache  # outputs that differ only in their offset share a pipeline
        def pipeline(code: str) -> Any:
            module = device.create_shader_module(code=code)
            return device.create_compute_pipeline(
                layout="auto", compute={"module": module, "entry_point": "main"}
            )

        dispatches = []
        max_groups = device.limits["max-compute-workgroups-per-dimension"]
        for output, target in zip(expressions, outputs, strict=True):
            groups = ceil_div(target.size // max(4, case.dtype.itemsize), _GROUP)
            across = ceil_div(groups, ceil_div(groups, max_groups))
            kernel = pipeline(_kernel(output, case.dtype.itemsize, across))
            offset = device.create_buffer_with_data(
                data=np.array([output.offset], np.uint32), usage=wgpu.BufferUsage.UNIFORM
            )
            bound = [target, offset, *(inputs[source.input] for source in output.sources)]
            entries = [{"binding": i, "resource": {"buffer": b}} for i, b in enumerate(bound)]
            group = device.create_bind_group(
                layout=kernel.get_bind_group_layout(0), entries=entries
            )
            dispatches.append((kernel, group, across, ceil_div(groups, across)))

        def encode(encoder: Any) -> None:
            compute = encoder.begin_compute_pass()
            for kernel, group, across, down in dispatches:
                compute.set_pipeline(kernel)
                compute.set_bind_group(0, group)
                compute.dispatch_workgroups(across, down)
            compute.end()

        return encode


def _seconds(run: Callable[[], None]) -> float:
    run()
    times = []
    for _ in range(_TRIALS):
        start = perf_counter()
        run()
        times.append(perf_counter() - start)
    return min(times)


def _whole_words(nbytes: int) -> int:
    return round_up(nbytes, 4)


@cache
def open_device(info: DeviceInfo) -> Any:
    identity = ("Vulkan", info.name, info.device_id)
    for adapter in wgpu.gpu.enumerate_adapters_sync():
        if tuple(adapter.info[key] for key in ("backend_type", "device", "device_id")) == identity:
            limits = {name: adapter.limits[name] for name in (*_LIMITS, _INPUTS)}
            return adapter.request_device_sync(required_limits=limits)
    raise DeviceError(f"peer wgpu: finds no Vulkan adapter named {info.name!r}")


# -- WGSL -----------------------------------------------------------------------------------------


def _kernel(output: Output, element_size: int, across: int) -> str:
    """Write a kernel that makes an output with ``across`` workgroups in x.

    It has one invocation per element, or per word of elements that are smaller than a word. Shapes
    and strides are constants.
    """
    word = _WORDS.get(element_size, "u32")
    per_word = max(1, 4 // element_size)
    count = prod(output.shape)
    buffers = "".join(
        f"@group(0) @binding({number + 2}) var<storage, read> source{number}: array<{word}>;\n"
        for number in range(len(output.sources))
    )
    coordinates = "".join(
        f"let c{axis} = rest % {output.shape[axis]}u; rest /= {output.shape[axis]}u;\n"
        for axis in reversed(range(len(output.shape)))
    )
    branches, end = "", 0
    for number, source in enumerate(output.sources):
        start, end = end, end + source.length
        last = number == len(output.sources) - 1
        condition = "" if last else f"if (c{output.axis} < {end}u) "
        branches += f"{condition}{{ {_read(number, source, output.axis, start, element_size)} }}\n"
    store = "result[number] = element(number);"
    if per_word > 1:
        store = f"""
            var word = 0u;
            for (var k = 0u; k < {per_word}u; k++) {{
                let wanted = number * {per_word}u + k;
                if (wanted < {count}u) {{
                    word |= element(wanted) << (k * {8 * element_size}u);
                }}
            }}
            result[number] = word;"""
    return f"""
        @group(0) @binding(0) var<storage, read_write> result: array<{word}>;
        @group(0) @binding(1) var<uniform> offset: u32;
        {buffers}
        fn element(number: u32) -> {word} {{
            var rest = number;
            {coordinates}
            {branches}
        }}
        @compute @workgroup_size({_GROUP})
        fn main(@builtin(global_invocation_id) id: vec3<u32>) {{
            let number = id.y * {across * _GROUP}u + id.x;
            if (number >= {ceil_div(count, per_word)}u) {{ return; }}
            {store}
        }}"""


def _read(number: int, source: JoinedInput, joined_axis: int, start: int, element_size: int) -> str:
    """Write the statement that returns an element; negative strides work as numbers wrap."""
    terms = ["offset"]
    for axis, stride in enumerate(source.strides):
        at = f"(c{axis} - {start}u)" if axis == joined_axis and start else f"c{axis}"
        terms.append(f"{at} * {stride % 2**32}u")
    address = " + ".join(terms)
    if element_size >= 4:
        return f"return source{number}[{address}];"
    per_word, bits = 4 // element_size, 8 * element_size
    return (
        f"let at = {address}; return (source{number}[at / {per_word}u] "
        f">> (at % {per_word}u * {bits}u)) & {2**bits - 1}u;"
    )
