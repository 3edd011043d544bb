"""Shaders of vkops."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import Any

import vkops
from benchmarks.shaders import (
    AXPY_GLSL,
    BODIES,
    FACTOR,
    GROUP,
    NBODY_GLSL,
    ONE_GROUP,
    STEPS,
    Array,
    Groups,
    Runs,
)

CALL, BOUND, RECORDED = "call", "bound", "recorded"
QUEUED, QUEUED_BOUND = "call, no waits", "bound, no waits"
KERNEL = "ElementwiseKernel"
MANY = 100
"""Dispatches before one wait, in the variants without waits."""

_FROM_DISK = """
import sys
import vkops
from benchmarks.shaders import with_vkops
print(with_vkops.seconds_to_compile(vkops.Device(int(sys.argv[1]))))
"""


class Contender:
    """Shaders on a device of vkops."""

    def __init__(self, device: vkops.Device) -> None:
        self._device = device

    def axpy(self, x: Array, y: Array, groups: Groups) -> tuple[Runs, Callable[[], Array]]:
        """See ``Library``."""
        device, shader = self._device, self._device.compile_shader(AXPY_GLSL)
        a, b = device.tensor(x), device.tensor(y)
        bound = shader.bound({"X": a, "Y": b}, groups)
        call = partial(shader, a, b, groups=groups)
        runs = {CALL: self._waiting(call), BOUND: self._waiting(bound.dispatch)}
        if groups == ONE_GROUP:
            runs[QUEUED] = self._waiting(call, MANY)
            runs[QUEUED_BOUND] = self._waiting(bound.dispatch, MANY)
        elif (make := getattr(vkops, KERNEL, None)) is not None:
            kernel = make("float32 a, T x, T y", "T z", "z = a * x + y")
            runs[KERNEL] = self._waiting(partial(kernel, FACTOR, a, b, b))
        return runs, lambda: b.numpy().copy()

    def nbody(self, bodies: Array) -> tuple[Runs, Callable[[], Array]]:
        """See ``Library``."""
        device, shader = self._device, self._device.compile_shader(NBODY_GLSL)
        one, other = device.tensor(bodies), device.tensor(bodies)
        pairs = [(one, other), (other, one)]
        bounds = [
            shader.bound({"Before": a, "After": b}, (BODIES // GROUP, 1, 1)) for a, b in pairs
        ]
        calls = [partial(shader, a, b, threads=BODIES) for a, b in pairs]

        def alternate(*runs: Callable[[], Any]) -> None:
            for number in range(STEPS):
                runs[number % 2]()

        with device.record() as program:
            alternate(*calls)
        return {
            CALL: self._waiting(partial(alternate, *calls)),
            BOUND: self._waiting(partial(alternate, *[each.dispatch for each in bounds])),
            RECORDED: self._waiting(program.run),
        }, lambda: one.numpy().copy()

    def compilation(self) -> Runs:
        """See ``Library``."""
        self._device.compile_shader(NBODY_GLSL)
        return {"in the process": partial(self._device.compile_shader, NBODY_GLSL)}

    def command_from_disk(self) -> list[str]:
        """A program that prints the seconds to compile a text in a new process."""
        return [sys.executable, "-c", _FROM_DISK, str(self._device.info.index)]

    def _waiting(self, run: Callable[[], Any], times: int = 1) -> Callable[[], None]:
        def waited() -> None:
            for _ in range(times):
                run()
            self._device.synchronize()

        return waited


def seconds_to_compile(device: vkops.Device) -> float:
    """Compile the text of which the SPIR-V is in the cache on disk; another shader was before."""
    device.compile_shader(AXPY_GLSL)
    start = perf_counter()
    device.compile_shader(NBODY_GLSL)
    return perf_counter() - start
