"""wgpu on the measured device, through its Vulkan driver, as a user would write it.

A kernel with one invocation per word of the result, or buffer-to-buffer copies where the work is
few enough contiguous pieces, whichever is faster. WebGPU submits a command buffer once, so each run
encodes its commands.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from time import perf_counter
from typing import Any

import numpy as np
import wgpu

from vkops.bench.movement import Array
from vkops.bench.peers import Program
from vkops.bench.peers.pieces import Copy, Output, copies, reads
from vkops.bench.peers.wgsl import GROUP, kernel
from vkops.bench.works import Case
from vkops.errors import DeviceError
from vkops.gpu.adapter import DeviceInfo

_LIMITS = ("max-buffer-size", "max-storage-buffer-binding-size")
_INPUTS = "max-storage-buffers-per-shader-stage"
_MAX_COPIES = 4096
_STORAGE = wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC | wgpu.BufferUsage.COPY_DST
_TRIALS = 3


class Peer:
    """A wgpu device on the adapter that vkops is measured on."""

    label = "wgpu"
    version: str = wgpu.__version__

    def __init__(self, info: DeviceInfo) -> None:
        self._device = _device(info)

    def prepare(self, case: Case, arrays: Sequence[Array]) -> Program | None:
        """See the protocol."""
        device, limits = self._device, self._device.limits
        sizes = [_words(int(np.prod(shape)) * case.dtype.itemsize) for shape in case.output_shapes]
        if max(*sizes, *(_words(array.nbytes) for array in arrays)) > min(
            limits[name] for name in _LIMITS
        ):
            return None
        inputs = [_buffer(device, _words(array.nbytes)) for array in arrays]
        for buffer, array in zip(inputs, arrays, strict=True):
            padded = np.zeros(buffer.size, np.uint8)
            padded[: array.nbytes] = array.reshape(-1).view(np.uint8)
            device.queue.write_buffer(buffer, 0, padded)
        outputs = [_buffer(device, size) for size in sizes]

        ways: list[Callable[[Any], None]] = []
        wanted = reads(case)
        if all(len(output.sources) < limits[_INPUTS] for output in wanted):
            ways.append(self._kernels(case, wanted, inputs, outputs))
        commands = copies(case, _MAX_COPIES)
        if commands:
            ways.append(_copies(commands, inputs, outputs))
        if not ways:
            return None

        def results() -> list[Array]:
            read = [np.frombuffer(device.queue.read_buffer(buffer), np.uint8) for buffer in outputs]
            return [
                data[: int(np.prod(shape)) * case.dtype.itemsize]
                for data, shape in zip(read, case.output_shapes, strict=True)
            ]

        return Program(min((self._submitter(way) for way in ways), key=_seconds), results)

    def _submitter(self, encode: Callable[[Any], None]) -> Callable[[], None]:
        device = self._device

        def run() -> None:
            encoder = device.create_command_encoder()
            encode(encoder)
            device.queue.submit([encoder.finish()])
            # The quickest way to wait that this binding has; its on_submitted_work_done_sync is
            # broken in 0.32, and mapping a buffer takes 0.1 ms more.
            device._poll_wait()

        return run

    def _kernels(
        self, case: Case, wanted: Sequence[Output], inputs: Sequence[Any], outputs: Sequence[Any]
    ) -> Callable[[Any], None]:
        device = self._device

        @cache  # pieces that differ in their place alone share a pipeline
        def pipeline(code: str) -> Any:
            module = device.create_shader_module(code=code)
            return device.create_compute_pipeline(
                layout="auto", compute={"module": module, "entry_point": "main"}
            )

        dispatches = []
        most = device.limits["max-compute-workgroups-per-dimension"]
        for output, target in zip(wanted, outputs, strict=True):
            groups = -(-(target.size // max(4, case.dtype.itemsize)) // GROUP)
            across = -(-groups // -(-groups // most))
            made = pipeline(kernel(output, case.dtype.itemsize, across))
            origin = device.create_buffer_with_data(
                data=np.array([output.origin], np.uint32), usage=wgpu.BufferUsage.UNIFORM
            )
            bound = [target, origin, *(inputs[source.input] for source in output.sources)]
            group = device.create_bind_group(
                layout=made.get_bind_group_layout(0),
                entries=[
                    {"binding": number, "resource": {"buffer": buffer}}
                    for number, buffer in enumerate(bound)
                ],
            )
            dispatches.append((made, group, across, -(-groups // across)))

        def encode(encoder: Any) -> None:
            compute = encoder.begin_compute_pass()
            for made, group, across, down in dispatches:
                compute.set_pipeline(made)
                compute.set_bind_group(0, group)
                compute.dispatch_workgroups(across, down)
            compute.end()

        return encode


def _copies(
    commands: Sequence[Copy], inputs: Sequence[Any], outputs: Sequence[Any]
) -> Callable[[Any], None]:
    def encode(encoder: Any) -> None:
        for c in commands:
            encoder.copy_buffer_to_buffer(
                inputs[c.input], c.source, outputs[c.output], c.target, c.nbytes
            )

    return encode


def _seconds(run: Callable[[], None]) -> float:
    run()
    times = []
    for _ in range(_TRIALS):
        start = perf_counter()
        run()
        times.append(perf_counter() - start)
    return min(times)


def _words(nbytes: int) -> int:
    return -(-nbytes // 4) * 4


def _buffer(device: Any, nbytes: int) -> Any:
    return device.create_buffer(size=nbytes, usage=_STORAGE)


@cache
def _device(info: DeviceInfo) -> Any:
    wanted = ("Vulkan", info.name, info.device_id)
    for adapter in wgpu.gpu.enumerate_adapters_sync():
        if tuple(adapter.info[key] for key in ("backend_type", "device", "device_id")) == wanted:
            limits = {name: adapter.limits[name] for name in (*_LIMITS, _INPUTS)}
            return adapter.request_device_sync(required_limits=limits)
    raise DeviceError(f"peer wgpu: finds no Vulkan adapter named {info.name!r}")
