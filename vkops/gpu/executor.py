"""Runs region tables: one dispatch per pair of heaps, one evaluation each."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from threading import RLock
from typing import Any

import numpy as np
import numpy.typing as npt

from vkops import shaders
from vkops.errors import DeviceError, OutOfDeviceMemoryError
from vkops.gpu import adapter, host_memory, table
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

    An interrupt (KeyboardInterrupt) can come between any two steps. So what the device works on is
    known here before it begins, and what is about to change is not taken for what it was.
    """

    def __init__(self, info: adapter.DeviceInfo, *, staged: bool = False) -> None:
        if process.forked:
            raise DeviceError(FORKED)
        self.info = info
        self._lock = RLock()
        self._flights: list[Flight] = []  # first: the process settles even what is not made whole
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
        self._stream: InThread | None = None
        self._stream_lock = RLock()
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
                    self._loaded = None
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
                flight.sequence = self.sequence()
                self._flights.append(flight)
                flight.slot.start(flight.sequence, last)
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
        if self._stream is not None and not self._has_device():
            self._stream.finish()

    def _has_device(self) -> bool:
        """Whether the lock is this thread's; asked of the lock, which no interrupt confuses."""
        owned: bool = self._lock._is_owned()  # type: ignore[attr-defined]
        return owned

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

    def settle(self) -> None:
        """Wait for all that is in flight, whoever has the device."""
        with self._lock:
            self._settle()

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

    def run_traced(self, dispatch: Dispatch, spirv: bytes, beyond: table.Words) -> table.Words:
        """Run a dispatch with another build of its kernel; returns the words after its table."""
        with self.in_use():
            heap = self._new_heap(TABLE_BYTES + beyond.nbytes, mapped=True)
            assert heap.view is not None
            words = heap.view.view(np.uint32)
            words[: dispatch.words.size] = dispatch.words
            words[TABLE_BYTES // 4 :] = beyond
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

    def sequence(self) -> Any:
        """What ``start`` takes: kept by the caller, for to drop it at work would crash."""
        return self._manager.sequence()

    def start(self, sequence: Any, algorithm: Any) -> None:
        """Begin to run an algorithm with a new sequence, to be ended by ``await_sequence``."""
        # A recorded sequence cannot be started without waiting: Kompute does both.
        sequence.eval_async(self._kp.OpAlgoDispatch(algorithm))

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
        # They are on both sides, unless the host sees memory; both can be in one Vulkan heap.
        sides = {True, self.mapped}
        heaps = [adapter.tensor_heap(self.info.index, host=mapped).index for mapped in sides]
        needed = sum(sizes) * (len(heaps) if len(set(heaps)) == 1 else 1)
        left = min(self._left(mapped=mapped) for mapped in sides)
        if needed > left:
            message = f"{needed} bytes: the device has {max(left, 0)} bytes left"
            raise OutOfDeviceMemoryError(message)
        host_memory.require(len(sides) * sum(sizes))

    def record_shader(
        self,
        tensors: list[Any],
        spirv: bytes,
        groups: tuple[int, int, int],
        push_constants: bytes,
    ) -> Any:
        """A sequence that runs a shader on ``transfer_tensor``s, which are filled by then.

        One can be bound more than once.
        """
        # Twice in one copy command, it would be written by both at once.
        each = list({id(tensor): tensor for tensor in tensors}.values())
        self._manager.sequence().eval(self._kp.OpTensorSyncDevice(each))
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

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other threads away from the device, while what is in flight goes on.

        Raises:
            DeviceError: as ``in_use``.
        """
        if process.forked:
            raise DeviceError(FORKED)
        # A lock's own methods, unlike Python's, cannot be interrupted half-way.
        with self._lock:
            if self._closed:
                raise DeviceError(f"the device {self.info.name!r} is closed")
            yield

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Keep other threads away from the device and its memory, with nothing in flight.

        Raises:
            DeviceError: the device is closed, or was opened before this process was forked off.
        """
        if process.forked:
            raise DeviceError(FORKED)
        self.finish_stream()
        with self._lock:
            if self._closed:
                raise DeviceError(f"the device {self.info.name!r} is closed")
            if self._flights:
                self._settle()
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
        held = held_bytes((self.info.index, heap.index))
        left = adapter.memory_left(self.info.index, heap, held)
        return min(left, host_memory.left()) if self.info.type == "CPU" else left

    def _forget(self, heap: Heap) -> None:
        """Drop what is bound to a heap that goes."""
        self._loaded = None
        for slot in self._slots:
            slot.forget(heap)
        for key in [key for key in self._kernels if heap in (*key[1], key[2])]:
            _destroy(self._kernels.pop(key))

    def __del__(self) -> None:
        # Python collects the device with all that refers to it, in any order, in flight or not.
        if not process.forked:
            for flight in getattr(self, "_flights", ()):
                flight.finish()

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
