"""Measure workloads with vkops, NumPy, memcpy, Kompute's buffer copy and other libraries."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

from vkops.bench.workloads import Array, BenchCase, Workload
from vkops.errors import DeviceError, OutOfDeviceMemoryError
from vkops.gpu.run import streaming
from vkops.gpu.run.buffer import Buffer
from vkops.gpu.run.open_device import OpenDevice
from vkops.tensors.tensor import Device

PreparedWorkload = tuple[Callable[[], Any], Callable[[], Sequence[Array]]]
"""A function that runs a workload once and waits for it, and one that returns the last outputs."""

Prepare = Callable[[BenchCase, Sequence[Array]], PreparedWorkload | None]
"""Prepares a workload of another library with these inputs; None if it cannot execute it."""


@dataclass(frozen=True)
class Result:
    """A workload, the bytes of its result, and the median seconds of each contender.

    The names of the fields are those in the JSON file of a report: ``work`` is the workload's name
    and ``what`` its description. ``seconds`` has ``vkops`` (a dispatch on data that is on the
    device), ``end_to_end`` (from NumPy arrays to NumPy arrays: upload, dispatch and download, which
    is a view where memory is shared), ``numpy`` (new arrays), ``numpy_into`` (arrays that exist, as
    the outputs of vkops do; not for W19 and later), ``memcpy`` (as many bytes as the result has,
    from one array to another), ``buffer_copy`` (the same through Kompute), each peer that can
    execute the workload, and ``device`` (what the device measured of the dispatch, if it did).
    """

    work: str
    what: str
    contiguous: bool
    nbytes: int
    seconds: Mapping[str, float]

    def ratio(self, contender: str = "vkops", against: str = "numpy") -> float:
        """Return the time of ``against`` divided by that of ``contender``."""
        return self.seconds[against] / self.seconds[contender]

    def gigabytes(self, contender: str) -> float:
        """Return the gigabytes that a contender reads and writes per second."""
        return 2 * self.nbytes / self.seconds[contender] / 1e9


class BufferCopy:
    """Two buffers of ``nbytes`` and the copy from one to the other by vkCmdCopyBuffer.

    Raises:
        OutOfDeviceMemoryError: a buffer would be larger than the device's largest.
    """

    def __init__(self, device: OpenDevice, nbytes: int) -> None:
        if nbytes > device.pool.max_range:
            raise OutOfDeviceMemoryError(
                f"a buffer of {nbytes} bytes: the device's largest buffer is "
                f"{device.pool.max_range} bytes"
            )
        self._device = device
        self._buffers = [Buffer(device, nbytes) for _ in range(2)]
        source, target = (buffer.extents[0].part(0, nbytes) for buffer in self._buffers)
        self._copy = streaming.regions(device, (source,), (target,))

    def run(self) -> None:
        """Copy once and wait."""
        memory = [buffer.allocation for buffer in self._buffers]
        self._device.wait(self._device.submit(self._copy, memory, memory))


def measure(
    device: Device,
    workloads: Iterable[Workload],
    peers: Mapping[str, Prepare] | None = None,
    *,
    scale: int = 1,
    rounds: int = 9,
) -> Iterator[Result]:
    """Measure workloads one by one; each contender's result is first compared with NumPy's.

    ``scale`` multiplies the first dimension of all inputs.

    Raises:
        DeviceError: a result differs from NumPy's.
        OutOfDeviceMemoryError: a workload does not fit on the device.
    """
    for workload in workloads:
        case = workload.case.scaled(scale)
        contenders = _contenders(device, workload.name, case, peers or {})
        samples: dict[str, list[float]] = {name: [] for name in contenders}
        for turn in range(rounds + 1):  # in turn, so that all run under the same conditions
            for name, run in contenders.items():
                start = perf_counter()
                run()
                elapsed = perf_counter() - start
                if turn:  # the first turn warms up
                    samples[name].append(elapsed)
        seconds = {name: median(values) for name, values in samples.items()}
        seconds |= _device_seconds(device, contenders["vkops"], rounds)
        yield Result(workload.name, workload.description, workload.contiguous, case.nbytes, seconds)


def _device_seconds(device: Device, dispatch: Callable[[], Any], rounds: int) -> dict[str, float]:
    """Time a dispatch by the device: apart from the others, because measuring takes time, too.

    A GPU that was idle has a low clock at first: it dispatches for 0.3 seconds before.
    """
    start = perf_counter()
    while not device.tuning.is_cpu and perf_counter() < start + 0.3:
        dispatch()
    take, times = device.measure_dispatches(), []
    try:
        for _ in range(rounds):
            dispatch()
            times.append(take())
    finally:
        take(stop=True)
    known = [time / 1e3 for time in times if time is not None]
    return {"device": median(known)} if known else {}


def _contenders(
    device: Device, name: str, case: BenchCase, peers: Mapping[str, Prepare]
) -> dict[str, Callable[[], Any]]:
    arrays = case.inputs(np.random.default_rng(0))
    operation = case.operation
    expected = operation.numpy(*arrays)

    def check(contender: str, results: Sequence[Array]) -> None:
        for number, (result, right) in enumerate(zip(results, expected, strict=True)):
            data = right.reshape(-1).view(np.uint8)
            # The buffers of vkops end at a whole word.
            if not np.array_equal(result.reshape(-1).view(np.uint8)[: data.size], data):
                raise DeviceError(f"{name}: output {number} of {contender} differs from NumPy's")

    inputs, outputs = (
        [device.buffer(tensor.total_tensor_size_in_bytes) for _, tensor in tensors]
        for tensors in (case.desc.inputs, case.desc.outputs)
    )
    compiled = device.compile_operator(device.create_operator(case.desc))
    operator = compiled.bind(inputs, outputs)

    def end_to_end() -> list[Array]:
        if operation.call is not None:
            return [tensor.numpy() for tensor in operation.call(*arrays, device=device)]
        tensors = [device.empty(array.shape, array.dtype) for array in expected]
        compiled.dispatch([device.tensor(array) for array in arrays], tensors)
        return [tensor.numpy() for tensor in tensors]

    def resident() -> None:
        operator.dispatch()
        device.synchronize()

    check("vkops", end_to_end())
    source = np.ones(case.nbytes, np.uint8)
    target = np.empty_like(source)
    contenders: dict[str, Callable[[], Any]] = {
        "vkops": resident,
        "end_to_end": end_to_end,
        "numpy": lambda: operation.numpy(*arrays),
        "memcpy": lambda: np.copyto(target, source),
        "buffer_copy": BufferCopy(device, case.nbytes).run,
    }
    if operation.numpy_into is not None:
        copies = [np.empty_like(array) for array in expected]
        write = partial(operation.numpy_into, copies, *arrays)
        write()
        check("NumPy", copies)
        contenders["numpy_into"] = write
    for label, prepare in peers.items():
        if program := prepare(case, arrays):
            contenders[label], results = program
            contenders[label]()
            check(label, results())
    return contenders
