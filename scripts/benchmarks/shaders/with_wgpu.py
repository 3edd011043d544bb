"""Shaders of wgpu-py. WebGPU submits a command buffer once, so each run encodes its commands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import wgpu

from benchmarks.peers.webgpu import open_device
from benchmarks.shaders import (
    AXPY_WGSL,
    BODIES,
    GROUP,
    NBODY_WGSL,
    ONE_GROUP,
    STEPS,
    Array,
    Groups,
    Runs,
)
from benchmarks.shaders.with_vkops import MANY
from vkops.gpu.adapters.adapter import DeviceInfo

_USAGE = wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC | wgpu.BufferUsage.COPY_DST


class Contender:
    """A device of wgpu."""

    def __init__(self, info: DeviceInfo) -> None:
        self._device = open_device(info)

    def axpy(self, x: Array, y: Array, groups: Groups) -> tuple[Runs, Callable[[], Array]]:
        """See ``Library``."""
        pipeline = self._pipeline(AXPY_WGSL)
        a, b = self._buffer(x), self._buffer(y)
        run = self._submitter(pipeline, [self._group(pipeline, a, b)], groups)
        runs = {"": self._waiting(run)}
        if groups == ONE_GROUP:
            runs["no waits"] = self._waiting(run, MANY)
        return runs, lambda: self._fetched(b)

    def nbody(self, bodies: Array) -> tuple[Runs, Callable[[], Array]]:
        """See ``Library``; the steps are one pass."""
        pipeline = self._pipeline(NBODY_WGSL)
        one, other = self._buffer(bodies), self._buffer(bodies)
        bound = [self._group(pipeline, one, other), self._group(pipeline, other, one)]
        run = self._submitter(pipeline, bound * (STEPS // 2), (BODIES // GROUP, 1, 1))
        return {"": self._waiting(run)}, lambda: self._fetched(one).reshape(bodies.shape)

    def compilation(self) -> Runs:
        """See ``Library``."""
        return {"": lambda: self._pipeline(NBODY_WGSL)}

    def _pipeline(self, text: str) -> Any:
        module = self._device.create_shader_module(code=text)
        compute = {"module": module, "entry_point": "main"}
        return self._device.create_compute_pipeline(layout="auto", compute=compute)

    def _buffer(self, array: Array) -> Any:
        return self._device.create_buffer_with_data(data=array, usage=_USAGE)

    def _group(self, pipeline: Any, *buffers: Any) -> Any:
        entries = [{"binding": n, "resource": {"buffer": b}} for n, b in enumerate(buffers)]
        layout = pipeline.get_bind_group_layout(0)
        return self._device.create_bind_group(layout=layout, entries=entries)

    def _submitter(self, pipeline: Any, bound: Sequence[Any], groups: Groups) -> Callable[[], None]:
        device = self._device

        def run() -> None:
            encoder = device.create_command_encoder()
            compute = encoder.begin_compute_pass()
            compute.set_pipeline(pipeline)
            for group in bound:
                compute.set_bind_group(0, group)
                compute.dispatch_workgroups(*groups)
            compute.end()
            device.queue.submit([encoder.finish()])

        return run

    def _waiting(self, run: Callable[[], None], times: int = 1) -> Callable[[], None]:
        def waited() -> None:
            for _ in range(times):
                run()
            self._device._poll_wait()  # the fastest way to wait, as in benchmarks.peers

        return waited

    def _fetched(self, buffer: Any) -> Array:
        return np.array(np.frombuffer(self._device.queue.read_buffer(buffer), np.float32))
