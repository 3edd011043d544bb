"""Runs region tables: one dispatch per pair of heaps, one evaluation each."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import lru_cache
from threading import RLock, get_ident
from typing import Any

import numpy as np
import numpy.typing as npt

from vkops import shaders
from vkops.errors import DeviceError, OutOfDeviceMemoryError
from vkops.gpu import adapter, table
from vkops.gpu.dispatch import TABLE_BYTES, Dispatch, Program, Programs, prepare
from vkops.gpu.kernels import STREAM
from vkops.gpu.memory import Heap, Memory, Range, held_bytes
from vkops.gpu.pending import Flight, InThread, Slot
from vkops.gpu.process import FORKED, process
from vkops.plan.region import CopyPlan

MAX_KERNELS = 64
"""Recorded sequences kept. Each holds a pipeline, and old lavapipes leak some of each one made."""

MOST_FLIGHTS = 2
"""Dispatches that the device may work on while the host goes on."""

GROUPS_X = 32768

STAGING_BYTES = 16 << 20


_Key = tuple[str, tuple[Heap, ...], Heap, int]
"""Kernel, sources, target, workgroups."""


class Executor:
    """One Vulkan device as Kompute sees it.

    ``run`` may be called from many threads; whoever reads or writes memory does it under
    ``in_use``, which waits for what is in flight; ``locked`` does not.
    """

    def __init__(self, info: adapter.DeviceInfo, *, staged: bool = False) -> None:
        if process.forked:
            raise DeviceError(FORKED)
        self.info = info
        self._lock = RLock()
        self.mapped: bool = info.unified_memory and not staged
        # Beside its sources, a kernel sees the table, and its target twice.
        sources = STREAM.sources if info.max_bindings >= STREAM.sources + 3 else 1
        self.tuning: table.Tuning = replace(
            table.CPU if info.type == "CPU" else table.GPU, sources=sources
        )
        self._kp = _kompute()
        try:
            self._manager = self._kp.Manager(info.index, [], adapter.printf_extensions(info.index))
            name = self._manager.get_device_properties()["device_name"]
        except RuntimeError as error:
            raise DeviceError(f"Kompute cannot open {info.name!r}: {error}") from error
        if name != info.name:
            raise DeviceError(f"Kompute opened {name!r} where {info.name!r} was asked for")
        process.add(self)
        self.memory: Memory = Memory(
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
        self._kernels: OrderedDict[_Key, tuple[Any, Any]] = OrderedDict()
        self._closed = False
        self._use = _Use(self)
        self._lock_only = _Use(self, settled=False)
        self._flights: list[Flight] = []
        self._stream: InThread | None = None
        self._stream_lock = RLock()
        self._owner: int | None = None  # the thread that has the device
        self._depth = 0
        self._slots: list[Slot] = []

    # -- running ----------------------------------------------------------------------------------

    def prepare(self, plan: CopyPlan) -> Program | Programs:
        """Lay a plan out for this device."""
        return prepare(plan, self.tuning)

    def run(self, dispatches: Sequence[Dispatch]) -> None:
        """Execute bound dispatches and wait until their results are visible."""
        with self.in_use():
            for dispatch in dispatches:
                if self._loaded is not dispatch:
                    self._words[: dispatch.words.size] = dispatch.words
                    self._loaded = dispatch
                self._sequence(dispatch).eval()

    def submit(
        self,
        dispatches: Sequence[Dispatch],
        keep: object,
        reads: frozenset[Hashable],
        writes: frozenset[Hashable],
    ) -> Flight:
        """Begin to execute bound dispatches; two can be in flight, those that meet wait.

        What goes wrong is told when the flight is waited for.
        """
        flight = Flight(self, keep, reads, writes)
        self.finish_stream()
        try:
            with self.locked():
                met = any(other.meets(reads, writes) for other in self._flights)
                *first, last = dispatches
                if met or first:
                    self._settle()
                    self.run(first)
                while len(self._flights) >= MOST_FLIGHTS:
                    self._land(self._flights[0])
                flight.slot = self._free_slot()
                flight.sequence = flight.slot.start(last)
                self._flights.append(flight)
        except Exception as error:
            flight.error = error
        return flight

    def stream(self, work: Callable[[], None], meanwhile: Callable[[InThread], None]) -> InThread:
        """Begin work in a thread, when the one before is over; all others wait for it.

        ``meanwhile`` is told of it before it begins.
        """
        with self._stream_lock:
            self.finish_stream()
            self._stream = InThread(work)
            meanwhile(self._stream)
            self._stream.start()
            return self._stream

    def finish_stream(self) -> None:
        """Wait for what is streamed; not in the midst of using the device, which it waits for."""
        if self._stream is not None and self._owner != get_ident():
            self._stream.finish()

    def land(self, flight: Flight) -> None:
        """Wait for a flight, and let go of what it kept."""
        with self._lock:
            self._land(flight)

    def _land(self, flight: Flight) -> None:
        if flight in self._flights:
            flight.finish()
            self._flights.remove(flight)

    def _settle(self) -> None:
        """Wait for all that is in flight."""
        while self._flights:
            self._land(self._flights[0])

    def _free_slot(self) -> Slot:
        taken = {flight.slot for flight in self._flights}
        for slot in self._slots:
            if slot not in taken:
                return slot
        self._slots.append(Slot(self))
        return self._slots[-1]

    def _sequence(self, dispatch: Dispatch) -> Any:
        """The recorded sequence for a dispatch's kernel, heaps and number of workgroups."""
        key = (dispatch.kernel.name, dispatch.sources, dispatch.target, dispatch.groups)
        if key in self._kernels:
            self._kernels.move_to_end(key)
            return self._kernels[key][1]
        while len(self._kernels) >= MAX_KERNELS:
            _destroy(self._kernels.popitem(last=False)[1])
        algorithm = self.algorithm(dispatch, self._table)
        sequence = self._manager.sequence()
        sequence.record(self._kp.OpAlgoDispatch(algorithm))
        self._kernels[key] = (algorithm, sequence)
        return sequence

    def run_traced(self, dispatch: Dispatch, spirv: bytes, count: int) -> table.Words:
        """Run a dispatch with another build of its kernel; what that wrote beyond the table.

        ``count`` is how many words that can be.
        """
        with self.in_use():
            heap = self._new_heap(TABLE_BYTES + 4 * count, mapped=True)
            assert heap.view is not None
            words = heap.view.view(np.uint32)
            words[: dispatch.words.size] = dispatch.words
            algorithm = self.algorithm(dispatch, heap, spirv)
            self._manager.sequence().eval(self._kp.OpAlgoDispatch(algorithm))
            algorithm.destroy()
            return np.array(words[TABLE_BYTES // 4 :])

    def group_count(self, dispatch: Dispatch) -> list[int]:
        """A dispatch's workgroups in each dimension."""
        return [min(dispatch.groups, GROUPS_X), max(1, dispatch.groups // GROUPS_X), 1]

    def algorithm(self, dispatch: Dispatch, region_table: Heap, spirv: bytes | None = None) -> Any:
        """A pipeline for a dispatch's kernel, heaps and number of workgroups."""
        first, *others = dispatch.sources
        others += [first] * (dispatch.kernel.sources - len(dispatch.sources))
        # Some kernels see the target twice, as vectors and as words; the others ignore the fourth.
        heaps = (region_table, first, dispatch.target, dispatch.target, *others)
        none = np.zeros(0, np.uint32)
        return self._manager.algorithm(
            [heap.tensor for heap in heaps],
            shaders.spirv(dispatch.kernel.name) if spirv is None else spirv,
            self.group_count(dispatch),
            none,
            none,
        )

    def host_heap(self, size: int) -> Heap:
        """Memory that host and device both see."""
        return self._new_heap(size, mapped=True)

    def start(self, algorithm: Any) -> Any:
        """Begin to run an algorithm; the result is a sequence to ``eval_await``, once."""
        # A recorded sequence cannot be started without waiting: Kompute does both.
        sequence = self._manager.sequence()
        sequence.eval_async(self._kp.OpAlgoDispatch(algorithm))
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

    def check_room(self, sizes: Sequence[int]) -> None:
        """Make sure that so many ``transfer_tensor``s fit.

        Raises:
            OutOfDeviceMemoryError: they do not.
        """
        largest = max(sizes, default=0)
        if largest > self.info.max_buffer:
            message = f"{largest} bytes: a buffer has {self.info.max_buffer} at most"
            raise OutOfDeviceMemoryError(message)
        for mapped in {True, self.mapped}:  # they are on both sides, unless the host sees memory
            left = self._left(mapped=mapped)
            if sum(sizes) > left:
                message = f"{sum(sizes)} bytes: the device has {max(left, 0)} bytes left"
                raise OutOfDeviceMemoryError(message)

    def record_shader(
        self,
        tensors: list[Any],
        spirv: bytes,
        groups: tuple[int, int, int],
        push_constants: bytes,
    ) -> Any:
        """A sequence that runs a shader on ``transfer_tensor``s, which are filled by then."""
        self._manager.sequence().eval(self._kp.OpTensorSyncDevice(tensors))
        none, push = np.zeros(0, np.uint32), np.frombuffer(push_constants, np.uint32)
        algorithm = self._manager.algorithm(tensors, spirv, list(groups), none, push)
        sequence = self._manager.sequence()
        sequence.record(self._kp.OpAlgoDispatch(algorithm))
        return sequence

    def fetch(self, tensor: Any) -> None:
        """Bring what is in a ``transfer_tensor`` to where the host sees it."""
        self._manager.sequence().eval(self._kp.OpTensorSyncLocal([tensor]))

    def record_copy(self, tensors: list[Any]) -> Any:
        """A sequence that copies the first tensor to the others."""
        sequence = self._manager.sequence()
        sequence.record(self._kp.OpTensorCopy(tensors))
        return sequence

    def fits(self, nbytes: int) -> bool:
        """Whether the device can hold so much more, in memory that is not in use."""
        with self.locked():
            return self.memory.fits(nbytes)

    # -- life -------------------------------------------------------------------------------------

    def locked(self) -> AbstractContextManager[None]:
        """Keep other threads away from the device, while what is in flight goes on.

        Raises:
            DeviceError: as ``in_use``.
        """
        return self._lock_only

    def in_use(self) -> AbstractContextManager[None]:
        """Keep other threads away from the device and its memory, with nothing in flight.

        Raises:
            DeviceError: the device is closed, or was opened before this process was forked off.
        """
        return self._use

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
        for slot in self._slots:
            slot.forget(heap)
        for key in [key for key in self._kernels if heap in (*key[1], key[2])]:
            _destroy(self._kernels.pop(key))

    def close(self) -> None:
        """Give everything back; memory that arrays still view stays until they go."""
        if process.forked:
            return
        self.finish_stream()
        with self._lock:
            self._settle()
            self._closed = True
            while self._slots:
                self._slots.pop().close()
            self._loaded = self._staging = None
            while self._kernels:
                _destroy(self._kernels.popitem()[1])
            self.memory.close()


class _Use:
    """What ``Executor.in_use`` and ``locked`` give; one is entered for every tensor made."""

    __slots__ = ("_executor", "_settled")

    def __init__(self, executor: Executor, *, settled: bool = True) -> None:
        self._executor = executor
        self._settled = settled

    def __enter__(self) -> None:
        if process.forked:
            raise DeviceError(FORKED)
        executor = self._executor
        if self._settled:
            executor.finish_stream()
        executor._lock.acquire()
        if executor._closed:
            executor._lock.release()
            raise DeviceError(f"the device {executor.info.name!r} is closed")
        executor._owner = get_ident()
        executor._depth += 1
        if self._settled and executor._flights:
            executor._settle()

    def __exit__(self, *_: object) -> None:
        executor = self._executor
        executor._depth -= 1
        if not executor._depth:
            executor._owner = None
        executor._lock.release()


def _destroy(kernel: tuple[Any, Any]) -> None:
    algorithm, sequence = kernel
    sequence.destroy()
    algorithm.destroy()


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
