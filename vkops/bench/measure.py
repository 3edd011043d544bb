"""Measure works: vkops, NumPy, memcpy, Kompute's buffer copy and peers, in turns in one run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

from vkops.bench.movement import Array, Join, Split, Step, Window
from vkops.bench.peers import Peer
from vkops.bench.works import Case, Work
from vkops.device import Buffer, Device
from vkops.errors import DeviceError
from vkops.gpu.buffer_copy import BufferCopy
from vkops.tensors import eager
from vkops.tensors.tensor import Tensor


@dataclass(frozen=True)
class Result:
    """One work, the bytes of its result, and each contender's median seconds.

    ``seconds`` has ``vkops`` (inputs and outputs resident on the device, from submission to
    completion), ``end_to_end`` (NumPy in to NumPy out: upload, dispatch, download, which is a view
    where memory is shared), ``numpy``, ``memcpy`` (the result's bytes, from one array to another),
    ``buffer_copy`` (the same through Kompute), and the peers that can do the work.
    """

    work: str
    what: str
    contiguous: bool
    nbytes: int
    seconds: Mapping[str, float]

    def ratio(self, contender: str = "vkops", against: str = "numpy") -> float:
        """How many times faster a contender is than another."""
        return self.seconds[against] / self.seconds[contender]

    def gigabytes(self, contender: str) -> float:
        """Gigabytes that a contender reads and writes per second."""
        return 2 * self.nbytes / self.seconds[contender] / 1e9


def measure(
    device: Device,
    works: Iterable[Work],
    peers: Mapping[str, Peer] | None = None,
    *,
    scale: int = 1,
    rounds: int = 9,
) -> Iterator[Result]:
    """Measure works one by one; each contender is checked against NumPy first.

    Raises:
        DeviceError: a result differs from NumPy's.
        OutOfDeviceMemoryError: a work does not fit.
    """
    for work in works:
        case = work.build(scale)
        seconds = _alternate(_contenders(device, work, case, peers or {}), rounds)
        yield Result(work.name, work.what, work.contiguous, case.nbytes, seconds)


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


def _contenders(
    device: Device, work: Work, case: Case, peers: Mapping[str, Peer]
) -> dict[str, Callable[[], Any]]:
    """Each contender, ready to run the case, its result found right."""
    random = np.random.default_rng(0)
    arrays = [
        random.integers(0, 256, int(np.prod(shape)) * case.dtype.itemsize, np.uint8)
        .view(case.dtype)
        .reshape(shape)
        for shape in case.shapes
    ]
    expected = case.numpy(arrays)
    bench = _Bench(device, case, arrays)
    _check("vkops", work, bench.end_to_end(), expected)
    source = np.ones(case.nbytes, np.uint8)
    target = np.empty_like(source)
    contenders: dict[str, Callable[[], Any]] = {
        "vkops": bench.operator.dispatch,
        "end_to_end": bench.end_to_end,
        "numpy": lambda: case.numpy(arrays),
        "memcpy": lambda: np.copyto(target, source),
        "buffer_copy": BufferCopy(device.executor, case.nbytes).run,
    }
    for name, peer in peers.items():
        program = peer.prepare(case, arrays)
        if program is not None:
            program.run()
            _check(name, work, program.results(), expected)
            contenders[name] = program.run
    return contenders


def _check(who: str, work: Work, got: Sequence[Array], expected: Sequence[Array]) -> None:
    for number, (result, right) in enumerate(zip(got, expected, strict=True)):
        wanted = right.reshape(-1).view(np.uint8)
        # vkops' buffers end at a whole word.
        if not np.array_equal(result.reshape(-1).view(np.uint8)[: wanted.size], wanted):
            raise DeviceError(f"{work.name}: output {number} of {who} differs from NumPy's")


class _Bench:
    """One case on the device, with memory of its own."""

    def __init__(self, device: Device, case: Case, arrays: Sequence[Array]) -> None:
        self.inputs = [_buffer(device, tensor) for _, tensor in case.desc.inputs]
        self.outputs = [_buffer(device, tensor) for _, tensor in case.desc.outputs]
        compiled = device.compile_operator(device.create_operator(case.desc))
        self.operator = compiled.bind(self.inputs, self.outputs)
        self.device = device
        self.case = case
        self.arrays = arrays

    def end_to_end(self) -> list[Array]:
        tensors = _eager(self.case, self.arrays, self.device)
        if tensors is not None:
            return [tensor.numpy() for tensor in tensors]
        for buffer, array in zip(self.inputs, self.arrays, strict=True):
            buffer.write(array)
        self.operator.dispatch()
        return [buffer.array() for buffer in self.outputs]


def _eager(case: Case, arrays: Sequence[Array], device: Device) -> list[Tensor] | None:
    """The eager function that does it, if there is one."""
    match case.movement:
        case Split(axis, sizes):
            return eager.split(arrays[0], sizes, axis, device=device)
        case Join(axis):
            return [eager.join(arrays, axis, device=device)]
        case Window(offsets, sizes):
            return [eager.slice(arrays[0], offsets, sizes, device=device)]
        case Step(strides):
            ends = zip(case.shapes[0], strides, strict=True)
            starts = [0 if stride > 0 else n - 1 for n, stride in ends]
            return [eager.slice(arrays[0], starts, case.output_shapes[0], strides, device=device)]
    return None


def _buffer(device: Device, tensor: Any) -> Buffer:
    return device.buffer(tensor.total_tensor_size_in_bytes)
