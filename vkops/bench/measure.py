"""Measure works: vkops against NumPy, memcpy and Kompute's buffer copy, in turns in one run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

from vkops.bench.works import Array, Case, Work
from vkops.device import Buffer, Device
from vkops.errors import DeviceError
from vkops.gpu.buffer_copy import BufferCopy


@dataclass(frozen=True)
class Result:
    """Median seconds of each contender for one work, and the bytes of its result."""

    work: str
    what: str
    contiguous: bool
    nbytes: int
    vkops: float
    """Inputs and outputs resident on the device, from submission to completion."""
    end_to_end: float
    """NumPy in to NumPy out: upload, dispatch, download (a view where memory is shared)."""
    numpy: float
    memcpy: float
    """The result's bytes, from one array to another."""
    buffer_copy: float
    """The result's bytes, through Kompute."""

    def ratio(self, contender: str = "vkops", against: str = "numpy") -> float:
        """How many times faster a contender is than another."""
        return float(getattr(self, against) / getattr(self, contender))


def measure(
    device: Device, works: Iterable[Work], *, scale: int = 1, rounds: int = 9
) -> Iterator[Result]:
    """Measure works one by one; each is checked against NumPy first.

    Raises:
        DeviceError: a result differs from NumPy's.
        OutOfDeviceMemoryError: a work does not fit.
    """
    for work in works:
        case = work.build(scale)
        bench = _Bench(device, case)
        bench.check(work.name)
        seconds = _alternate(bench.contenders(), rounds)
        yield Result(work.name, work.what, work.contiguous, case.nbytes, **seconds)


def _alternate(contenders: dict[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """Median seconds of each, run in turns so that all see the same machine."""
    samples: dict[str, list[float]] = {name: [] for name in contenders}
    for turn in range(rounds + 1):
        for name, run in contenders.items():
            start = perf_counter()
            run()
            elapsed = perf_counter() - start
            if turn:  # the first turn warms up
                samples[name].append(elapsed)
    return {name: median(values) for name, values in samples.items()}


class _Bench:
    """One case, ready to be run by each contender."""

    def __init__(self, device: Device, case: Case) -> None:
        random = np.random.default_rng(0)
        self.case = case
        self.arrays: list[Array] = [
            random.integers(0, 256, int(np.prod(shape)) * case.dtype.itemsize, np.uint8)
            .view(case.dtype)
            .reshape(shape)
            for shape in case.shapes
        ]
        self.inputs = [_buffer(device, tensor) for _, tensor in case.desc.inputs]
        self.outputs = [_buffer(device, tensor) for _, tensor in case.desc.outputs]
        compiled = device.compile_operator(device.create_operator(case.desc))
        self.operator = compiled.bind(self.inputs, self.outputs)
        self.bytes = [array.reshape(-1).view(np.uint8) for array in self.arrays]
        self.source = np.ones(case.nbytes, np.uint8)
        self.target = np.empty_like(self.source)
        self.copy = BufferCopy(device.executor, case.nbytes)

    def end_to_end(self) -> list[Array]:
        for buffer, array in zip(self.inputs, self.bytes, strict=True):
            buffer.write(array)
        self.operator.dispatch()
        return [buffer.array() for buffer in self.outputs]

    def check(self, name: str) -> None:
        got = self.end_to_end()
        for number, (result, expected) in enumerate(
            zip(got, self.case.numpy(self.arrays), strict=True)
        ):
            wanted = expected.reshape(-1).view(np.uint8)
            if not np.array_equal(result[: wanted.size], wanted):
                raise DeviceError(f"{name}: output {number} differs from NumPy's")

    def contenders(self) -> dict[str, Callable[[], Any]]:
        return {
            "vkops": self.operator.dispatch,
            "end_to_end": self.end_to_end,
            "numpy": lambda: self.case.numpy(self.arrays),
            "memcpy": lambda: np.copyto(self.target, self.source),
            "buffer_copy": self.copy.run,
        }


def _buffer(device: Device, tensor: Any) -> Buffer:
    return device.buffer(tensor.total_tensor_size_in_bytes)
