"""Buffers: memory that the host fills and reads, and that operators are bound to."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import accumulate
from operator import index
from typing import Any

import numpy as np
import numpy.typing as npt

from vkops.errors import BindingError, show
from vkops.gpu.kernels.choice import VECTOR
from vkops.gpu.kernels.encoding import Tuning
from vkops.gpu.memory import host_memory
from vkops.gpu.memory.heaps import Allocation, Range, Spread
from vkops.gpu.run.dispatch import PreparedPlan, prepare
from vkops.gpu.run.executor import Executor, with_reclaim
from vkops.gpu.run.pending import BackgroundTask
from vkops.plan.execute import Bytes, join_bytes, packed_bytes
from vkops.plan.movements import copy
from vkops.plan.region import CopyPlan, Output
from vkops.plan.rounding import round_up
from vkops.plan.view import View

MAX_PACKED_BYTES = 16 << 20
"""Bytes of arrays that are packed on the host and then copied to the device as one."""

_NOTHING = np.empty(0, np.uint8)


class Resource(ABC):
    """Bytes that operators can be bound to."""

    __slots__ = ("__weakref__", "nbytes")

    nbytes: int

    def write(self, data: Any, offset: int = 0) -> None:
        """Copy bytes from an object with the buffer protocol to byte ``offset``.

        Raises:
            BindingError: they do not fit (B-04).
        """
        try:
            given = memoryview(data)
            if "O" in given.format:
                raise TypeError("it holds Python objects")
            source = np.frombuffer(given, np.uint8) if given.nbytes else _NOTHING
        except Exception as error:
            message = f"got {type(data).__name__}, must be contiguous bytes: {error}"
            raise BindingError("", "data", message, "B-04") from None
        offset, _ = self._span(offset, source.size)
        self._store(offset, source)

    def fill(self, array: npt.NDArray[Any]) -> None:
        """Copy an array's elements, row by row, to the start.

        Raises:
            BindingError: they do not fit, or it is not an array of NumPy's without Python objects
                (B-04).
        """
        if not isinstance(array, np.ndarray) or array.dtype.hasobject:
            message = f"got {show(array)}, must be an array that holds no Python objects"
            raise BindingError("", "array", message, "B-04")
        self._span(0, array.nbytes)
        if array.nbytes:
            self._store(0, packed_bytes(array))

    def fill_with(self, arrays: Sequence[npt.NDArray[Any]]) -> None:
        """Copy the elements of arrays, one array after the other, to the start; they fit.

        The arrays have one data type, and are not views of this memory.
        """
        nbytes = sum([array.nbytes for array in arrays])
        if len(arrays) > 1 and nbytes <= MAX_PACKED_BYTES:
            packed = np.empty(nbytes, np.uint8)
            join_bytes(arrays, packed)
            arrays = [packed]
        start = 0
        for array in arrays:
            if array.nbytes:
                self._store(start, packed_bytes(array))
                start += array.nbytes

    def read(self, offset: int = 0, nbytes: int | None = None) -> bytes:
        """Copy ``nbytes`` bytes (default: all the rest) from byte ``offset``.

        Raises:
            BindingError: the buffer ends before (B-04).
        """
        return self.array(offset, nbytes).tobytes()

    def array(self, offset: int = 0, nbytes: int | None = None) -> Bytes:
        """Return read-only bytes from ``offset``: a view if the host sees the memory, else a copy.

        Raises:
            BindingError: the buffer ends before (B-04).
        """
        offset, nbytes = self._span(offset, nbytes)
        return self._fetch(offset, nbytes)

    def _span(self, offset: Any, nbytes: Any) -> tuple[int, int]:
        """Return offset and number of bytes as integers; None stands for all the rest."""
        try:
            first = index(offset)
            count = self.nbytes - first if nbytes is None else index(nbytes)
            inside = first >= 0 and count >= 0 and first + count <= self.nbytes
        except Exception:
            inside = False
        if not inside:
            message = (
                f"got offset {show(offset)} and {show(nbytes)} bytes, must be integers from 0 "
                f"and end at {self.nbytes} or before"
            )
            raise BindingError("", "buffer", message, "B-04")
        return first, count

    @abstractmethod
    def _store(self, offset: int, source: Bytes) -> None:
        """Copy bytes to byte ``offset``; they fit."""

    @abstractmethod
    def _fetch(self, offset: int, nbytes: int) -> Bytes:
        """Return read-only bytes; they are inside of the buffer."""

    @abstractmethod
    def is_on(self, executor: Executor) -> bool:
        """Whether operators of that executor's device can be bound to it."""

    @abstractmethod
    def clone(self, start: int, nbytes: int) -> Resource:
        """Return a copy of ``nbytes`` bytes from byte ``start``, a multiple of 16."""


class Buffer(Resource):
    """Device memory, allocated by ``Device.buffer`` and freed with this object."""

    __slots__ = ("_executor", "allocation")

    def __init__(self, executor: Executor, nbytes: int) -> None:
        self._executor = executor
        self.nbytes = nbytes
        self.allocation: Allocation = with_reclaim(self._allocate)

    def _allocate(self) -> Allocation:
        executor = self._executor
        return executor.locked(lambda: executor.memory.allocate(self.nbytes, self))

    def part(self, start: int, nbytes: int) -> Allocation:
        """Return the memory of some of its bytes."""
        whole = nbytes == self.nbytes
        return self.allocation if whole else self.allocation.part(start, nbytes)

    def __repr__(self) -> str:
        return f"<vkops.Buffer of {self.nbytes} bytes on {self._executor.info.name!r}>"

    def is_on(self, executor: Executor) -> bool:
        """Whether that executor's device is on the same adapter.

        Raises:
            DeviceError: the buffer's own device is closed.
        """
        self._executor.check_open()
        return self._executor.queue is executor.queue

    def clone(self, start: int, nbytes: int) -> Buffer:
        """Return a copy on the device."""
        made = Buffer(self._executor, nbytes)
        source, target = self.allocation.part(start, nbytes), made.allocation.part(0, nbytes)
        self._executor.exclusive(lambda: self._move(source, target))
        return made

    def fill_with(self, arrays: Sequence[npt.NDArray[Any]]) -> None:
        """Copy the elements of arrays; see ``Resource``."""
        nbytes = sum([array.nbytes for array in arrays])
        ranges = self.allocation.part(0, nbytes).ranges
        if len(ranges) != 1 or ranges[0].heap.view is None:
            super().fill_with(arrays)
            return
        target = ranges[0].bytes
        self._executor.exclusive(lambda: join_bytes(arrays, target))

    def _store(self, offset: int, source: Bytes) -> None:
        self._executor.reserve_staging()
        self._executor.exclusive(lambda: self._write_ranges(offset, source))

    def _fetch(self, offset: int, nbytes: int) -> Bytes:
        self._executor.reserve_staging()
        result = self._executor.exclusive(lambda: self._read_ranges(offset, nbytes))
        result.flags.writeable = False
        return result

    def _write_ranges(self, offset: int, source: Bytes) -> None:
        start = 0
        for range_ in self.allocation.part(offset, source.size).ranges:
            self._write(range_, source[start : start + range_.nbytes])
            start += range_.nbytes

    def _read_ranges(self, offset: int, nbytes: int) -> Bytes:
        ranges = self.allocation.part(offset, nbytes).ranges
        if len(ranges) == 1 and ranges[0].heap.view is not None:
            return np.asarray(_View(self, ranges[0]))
        result = np.empty(nbytes, np.uint8)
        start = 0
        for range_ in ranges:
            self._read(range_, result[start : start + range_.nbytes])
            start += range_.nbytes
        return result

    def _write(self, target: Range, source: Bytes) -> None:
        if target.heap.view is not None:
            target.bytes[...] = source
            return
        staging = self._executor.staging()
        for start, n in _pieces(source.size, staging.nbytes):
            staging.bytes[:n] = source[start : start + n]
            self._move(staging.part(0, n), target.part(start, n))

    def _read(self, source: Range, target: Bytes) -> None:
        if source.heap.view is not None:
            target[...] = source.bytes
            return
        staging = self._executor.staging()
        for start, n in _pieces(target.size, staging.nbytes):
            self._move(source.part(start, n), staging.part(0, n))
            target[start : start + n] = staging.bytes[:n]

    def _move(self, source: Allocation, target: Allocation) -> None:
        """Copy; called by ``exclusive``. A transfer is a plan too."""
        nbytes = source.nbytes
        source, start = _from_vector(source)
        target, to = _from_vector(target)
        plan = _transfer(self._executor.tuning, start, to, nbytes)
        self._executor.evaluate(plan.bind([source], [target]))


def upload(
    executor: Executor, arrays: Sequence[npt.NDArray[Any]]
) -> tuple[list[Allocation], list[Buffer]]:
    """Copy arrays to the device, row by row; many small ones at once.

    Returns:
        The memory of each array, and the buffers that must exist as long as it is used.
    """
    sizes = [round_up(array.nbytes, VECTOR) for array in arrays]
    total = sum(sizes)
    if len(arrays) > 1 and total <= min(MAX_PACKED_BYTES, executor.memory.max_range):
        packed = Buffer(executor, total)
        packed.fill_with([*map(_whole_vectors, arrays, sizes)])
        starts = accumulate(sizes, initial=0)
        return [*map(packed.allocation.part, starts, sizes)], [packed]
    buffers = [Buffer(executor, nbytes) for nbytes in sizes]
    for buffer, array in zip(buffers, arrays, strict=True):
        buffer.fill_with([array])
    return [buffer.allocation for buffer in buffers], buffers


def _whole_vectors(array: npt.NDArray[Any], nbytes: int) -> Bytes:
    """The bytes of an array, row by row, and zeros up to ``nbytes``."""
    own = packed_bytes(array)
    return own if own.size == nbytes else np.pad(own, (0, nbytes - own.size))


class HostBuffer(Resource):
    """Host memory, for more bytes than the device can hold; allocated by ``Device.host_buffer``.

    Operators that are bound to it stream it through the device.
    """

    __slots__ = ("bytes", "pending")

    def __init__(self, nbytes: int) -> None:
        self.nbytes = nbytes
        self.pending: BackgroundTask | None = None  # the stream that reads or writes it
        self.bytes: Bytes = with_reclaim(lambda: host_memory.take(nbytes))

    @classmethod
    def over(cls, memory: Bytes) -> HostBuffer:
        """Return a host buffer of memory that exists already."""
        made = cls.__new__(cls)
        made.nbytes, made.bytes, made.pending = memory.size, memory, None
        return made

    def __repr__(self) -> str:
        return f"<vkops.HostBuffer of {self.nbytes} bytes>"

    def is_on(self, executor: Executor) -> bool:
        """True: every device can use it."""
        return True

    def clone(self, start: int, nbytes: int) -> HostBuffer:
        """Return a copy on the host."""
        made = HostBuffer(nbytes)
        made.bytes[...] = self._fetch(start, nbytes)
        return made

    def settle(self) -> None:
        """Wait for the stream that reads or writes it; its own ``wait`` raises its errors."""
        if self.pending is not None:
            self.pending.finish()

    def _store(self, offset: int, source: Bytes) -> None:
        self.settle()
        self.bytes[offset : offset + source.size] = source

    def _fetch(self, offset: int, nbytes: int) -> Bytes:
        self.settle()
        result = self.bytes[offset : offset + nbytes]
        result.flags.writeable = False
        return result


def _from_vector(allocation: Allocation) -> tuple[Allocation, int]:
    """Extend an allocation to the start of its first vector; also return the bytes added.

    Kernels count from whole vectors, transfers can begin at any byte.
    """
    if isinstance(allocation, Spread):
        return allocation, 0
    start = allocation.offset % VECTOR
    return allocation.part(-start, allocation.nbytes + start), start


class _View:
    """Bytes of a buffer by NumPy's array interface; an array of them keeps the buffer alive."""

    __slots__ = ("__array_interface__", "owner")

    def __init__(self, owner: Buffer, memory: Range) -> None:
        self.owner = owner
        self.__array_interface__ = {
            "data": (memory.address, True),  # read-only
            "shape": (memory.nbytes,),
            "typestr": "|u1",
            "version": 3,
        }


@lru_cache(maxsize=256)
def _transfer(tuning: Tuning, start: int, to: int, nbytes: int) -> PreparedPlan:
    bytes_ = View.packed((nbytes,))
    region = copy(bytes_.shift(start), bytes_.shift(to))
    return prepare(CopyPlan(1, (start + nbytes,), (Output(to + nbytes, (region,)),)), tuning)


def _pieces(nbytes: int, max_length: int) -> Iterator[tuple[int, int]]:
    """The (start, length) of pieces that fit in staging memory.

    Bytes after the last whole vector are a piece of their own: the others get the widest kernel.
    """
    body = nbytes // VECTOR * VECTOR
    for start in range(0, body, max_length):
        yield start, min(max_length, body - start)
    if body < nbytes:
        yield body, nbytes - body
