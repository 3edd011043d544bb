"""Runs region tables: one dispatch per pair of heaps, one evaluation each."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from ctypes import py_object, pythonapi
from dataclasses import dataclass
from functools import lru_cache
from threading import RLock
from typing import Any
from weakref import WeakSet

import numpy as np
import numpy.typing as npt

from vkops import shaders
from vkops.errors import DeviceError, OutOfDeviceMemoryError
from vkops.gpu import adapter, table
from vkops.gpu.memory import Heap, Memory, Range, held_bytes
from vkops.gpu.table import (
    DST,
    FIRST,
    HEADER_WORDS,
    LANES,
    RECORD_WORDS,
    SRC,
    Kernel,
    RegionTable,
)
from vkops.plan.algebra import optimize
from vkops.plan.region import CopyPlan

TABLE_BYTES = 1 << 20
MAX_REGIONS = (TABLE_BYTES // 4 - HEADER_WORDS) // RECORD_WORDS
MAX_KERNELS = 64
"""Recorded sequences kept. Each holds a pipeline, and old lavapipes leak some of each one made."""

GROUPS_X = 32768

STAGING_BYTES = 16 << 20


@dataclass(frozen=True, slots=True, eq=False)
class Dispatch:
    """One dispatch, ready to run: a kernel, the heaps it reads and writes, and the region table.

    ``groups`` is the number of workgroups: a power of two, so that few are ever recorded.
    """

    kernel: Kernel
    source: Heap
    target: Heap
    words: table.Words
    groups: int

    @classmethod
    def of(
        cls, kernel: Kernel, source: Heap, target: Heap, records: table.Words, items: table.Counts
    ) -> Dispatch:
        """Number the items of all regions, and put the header before the records."""
        ends = np.cumsum(items)
        total = int(ends[-1])
        records[:, FIRST] = ends - items
        header = np.array([len(records), total, 0, 0], np.uint32)
        groups = 1 << (-(-total // LANES) - 1).bit_length()
        return cls(kernel, source, target, np.concatenate([header, records.ravel()]), groups)


class Executor:
    """One Vulkan device as Kompute sees it.

    ``run`` may be called from many threads; whoever uses the memory does it under ``in_use``.
    """

    def __init__(self, info: adapter.DeviceInfo, *, staged: bool = False) -> None:
        if _process.forked:
            raise DeviceError(_FORKED)
        self.info = info
        self._lock = RLock()
        self._pid = os.getpid()
        self.mapped = info.unified_memory and not staged
        self.tuning = table.CPU if info.type == "CPU" else table.GPU
        self._kp = _kompute()
        try:
            self._manager = self._kp.Manager(info.index)
            name = self._manager.get_device_properties()["device_name"]
        except RuntimeError as error:
            raise DeviceError(f"Kompute cannot open {info.name!r}: {error}") from error
        if name != info.name:
            raise DeviceError(f"Kompute opened {name!r} where {info.name!r} was asked for")
        _process.add(self)
        self.memory = Memory(
            lambda size: self._new_heap(size, mapped=self.mapped),
            info.max_buffer,
            lambda: self._left(mapped=self.mapped),
            self._forget,
        )
        self._table = self._new_heap(TABLE_BYTES, mapped=True)
        assert self._table.view is not None
        self._words = self._table.view.view(np.uint32)
        self._staging: Heap | None = None
        self._loaded: Dispatch | None = None
        self._kernels: OrderedDict[tuple[str, int, int, int], tuple[Any, Any]] = OrderedDict()
        self._closed = False

    # -- running ----------------------------------------------------------------------------------

    def prepare(self, plan: CopyPlan) -> RegionTable:
        """Encode a plan for this device."""
        return table.encode(optimize(plan), self.tuning)

    def bind(
        self, work: RegionTable, inputs: Sequence[Range], outputs: Sequence[Range]
    ) -> list[Dispatch]:
        """Put addresses into a region table; the result can be run again and again."""
        records = work.records.copy()
        records[:, DST] += _bases(outputs, work.kernel.unit)[work.outputs]
        # Constants have input -1: the appended base 0 is theirs.
        records[:, SRC] += _bases(inputs, work.kernel.unit)[work.inputs]
        dispatches = []
        for source, target, chosen in _by_heaps(work, inputs, outputs):
            part, items = records[chosen], work.items[chosen]
            for start in range(0, len(part), MAX_REGIONS):
                piece = slice(start, start + MAX_REGIONS)
                dispatches.append(
                    Dispatch.of(work.kernel, source, target, part[piece], items[piece])
                )
        return dispatches

    def run(self, dispatches: Sequence[Dispatch]) -> None:
        """Execute bound dispatches and wait until their results are visible."""
        with self.in_use():
            for dispatch in dispatches:
                if self._loaded is not dispatch:
                    self._words[: dispatch.words.size] = dispatch.words
                    self._loaded = dispatch
                self._sequence(dispatch).eval()

    def _sequence(self, dispatch: Dispatch) -> Any:
        """The recorded sequence for a dispatch's kernel, heaps and number of workgroups."""
        key = (dispatch.kernel.name, id(dispatch.source), id(dispatch.target), dispatch.groups)
        if key in self._kernels:
            self._kernels.move_to_end(key)
            return self._kernels[key][1]
        while len(self._kernels) >= MAX_KERNELS:
            _destroy(self._kernels.popitem(last=False)[1])
        # copy_run sees the target twice, as vectors and as words; the others ignore the fourth.
        heaps = (self._table, dispatch.source, dispatch.target, dispatch.target)
        none = np.zeros(0, np.uint32)
        algorithm = self._manager.algorithm(
            [heap.tensor for heap in heaps],
            shaders.spirv(dispatch.kernel.name),
            [min(dispatch.groups, GROUPS_X), max(1, dispatch.groups // GROUPS_X), 1],
            none,
            none,
        )
        sequence = self._manager.sequence()
        sequence.record(self._kp.OpAlgoDispatch(algorithm))
        self._kernels[key] = (algorithm, sequence)
        return sequence

    def staging(self) -> tuple[Range, npt.NDArray[np.uint8]]:
        """Host-visible memory for transfers, and the host's view of it; call it under in_use."""
        if self._staging is None:
            self._staging = self._new_heap(STAGING_BYTES, mapped=True)
        assert self._staging.view is not None
        return Range(self._staging, 0, STAGING_BYTES), self._staging.view

    def transfer_tensor(self, data: table.Words) -> Any:
        """A Kompute tensor that Kompute's own copies accept."""
        kind = self._kp.TensorTypes.host if self.mapped else self._kp.TensorTypes.device
        return self._manager.tensor_t(data, kind)

    def record_copy(self, tensors: list[Any]) -> Any:
        """A sequence that copies the first tensor to the others."""
        sequence = self._manager.sequence()
        sequence.record(self._kp.OpTensorCopy(tensors))
        return sequence

    # -- life -------------------------------------------------------------------------------------

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Keep other threads away from the device.

        Raises:
            DeviceError: the device is closed, or was opened before this process was forked off.
        """
        if os.getpid() != self._pid:
            raise DeviceError(_FORKED)
        with self._lock:
            if self._closed:
                raise DeviceError(f"the device {self.info.name!r} is closed")
            yield

    def _new_heap(self, size: int, *, mapped: bool) -> Heap:
        """Take memory from the driver, having made sure that it is there."""
        left = self._left(mapped=mapped)
        if size > left:
            raise OutOfDeviceMemoryError(f"{size} bytes: the device has {max(left, 0)} bytes left")
        number = adapter.tensor_heap(self.info.index, host=mapped).index
        return Heap(self._manager, self._kp, size, (self.info.index, number), mapped=mapped)

    def _left(self, *, mapped: bool) -> int:
        """Bytes that this process can still get from the driver."""
        heap = adapter.tensor_heap(self.info.index, host=mapped)
        return adapter.memory_left(self.info.index, heap, held_bytes((self.info.index, heap.index)))

    def _forget(self, heap: Heap) -> None:
        """Drop what is bound to a heap that goes."""
        self._loaded = None
        for key in [key for key in self._kernels if id(heap) in key[1:3]]:
            _destroy(self._kernels.pop(key))

    def close(self) -> None:
        """Give everything back; memory that arrays still view stays until they go."""
        if os.getpid() != self._pid:
            return
        with self._lock:
            self._closed = True
            self._loaded = self._staging = None
            while self._kernels:
                _destroy(self._kernels.popitem()[1])
            self.memory.close()


def _destroy(kernel: tuple[Any, Any]) -> None:
    algorithm, sequence = kernel
    sequence.destroy()
    algorithm.destroy()


def _bases(ranges: Sequence[Range], size: int) -> table.Words:
    return np.array([*(r.offset // size for r in ranges), 0], np.uint32)


def _by_heaps(
    work: RegionTable, inputs: Sequence[Range], outputs: Sequence[Range]
) -> list[tuple[Heap, Heap, Any]]:
    """Split a table by (source heap, target heap); nearly always there is one pair."""
    heaps = {id(r.heap): r.heap for r in (*outputs, *inputs)}
    if len(heaps) == 1:
        (heap,) = heaps.values()
        return [(heap, heap, slice(None))]
    numbers = {key: number for number, key in enumerate(heaps)}
    # A constant reads nothing; any heap will do as its source.
    source = np.array([*(numbers[id(r.heap)] for r in inputs), 0])[work.inputs]
    target = np.array([numbers[id(r.heap)] for r in outputs])[work.outputs]
    pairs, which = np.unique(source * len(heaps) + target, return_inverse=True)
    by_number = list(heaps.values())
    return [
        (by_number[pair // len(heaps)], by_number[pair % len(heaps)], np.nonzero(which == i)[0])
        for i, pair in enumerate(pairs.tolist())
    ]


_FORKED = (
    "this process was forked off one that had opened a Vulkan device, and drivers do not survive "
    "that; open devices after forks only, or start processes by spawning"
)


class _Process:
    """What a forked process has to know: its parent's drivers had threads that are not here."""

    def __init__(self) -> None:
        self.executors: WeakSet[Executor] = WeakSet()
        self.opened = False
        self.forked = False

    def add(self, executor: Executor) -> None:
        self.executors.add(executor)
        self.opened = True

    def after_fork(self) -> None:
        self.forked = self.opened
        for executor in self.executors:
            # To destroy it would wait for threads for ever.
            pythonapi.Py_IncRef(py_object(executor._manager))


_process = _Process()
os.register_at_fork(after_in_child=_process.after_fork)


@lru_cache(maxsize=1)
def _kompute() -> Any:
    try:
        import kp
    except ImportError as error:
        raise DeviceError(
            f"Kompute (the kp package) cannot be loaded: {error}. scripts/setup builds its wheel; "
            "at run time it needs libvulkan.so.1 and libfmt (Debian and Ubuntu: libvulkan1, "
            "libfmt9 or libfmt10)"
        ) from error
    return kp
