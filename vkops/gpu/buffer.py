"""Buffers: device memory that the host fills and reads back."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from operator import index
from typing import Any

import numpy as np
import numpy.typing as npt

from vkops.errors import BindingError
from vkops.gpu.executor import Executor
from vkops.gpu.memory import Range
from vkops.gpu.table import RegionTable, Tuning, encode
from vkops.plan.algebra import optimize
from vkops.plan.region import CopyPlan, Output, Read, Region

Bytes = npt.NDArray[np.uint8]

_NOTHING = np.empty(0, np.uint8)

WIDEST = 16
"""Bytes of the widest element a kernel copies."""


class Buffer:
    """A piece of device memory, made by ``Device.buffer`` and freed with this object."""

    def __init__(self, executor: Executor, nbytes: int) -> None:
        self._executor = executor
        self.nbytes = nbytes
        with executor.in_use():
            self.range = executor.memory.allocate(nbytes, self)

    def __repr__(self) -> str:
        return f"<vkops.Buffer of {self.nbytes} bytes on {self._executor.info.name!r}>"

    def is_on(self, executor: Executor) -> bool:
        """Whether the buffer belongs to that executor's device."""
        return self._executor is executor

    def write(self, data: Any, offset: int = 0) -> None:
        """Copy bytes from anything with the buffer protocol to byte ``offset``.

        Raises:
            BindingError: they do not fit (B-04).
        """
        try:
            given = memoryview(data)
            if "O" in given.format:
                raise TypeError("it holds Python objects")
            source = np.frombuffer(given, np.uint8) if given.nbytes else _NOTHING
        except (BufferError, TypeError, ValueError) as error:
            message = f"got {type(data).__name__}, must be contiguous bytes: {error}"
            raise BindingError("", "data", message, "B-04") from None
        offset, _ = self._span(offset, source.size)
        with self._executor.in_use():
            view = self.range.heap.view
            if view is not None:
                start = self.range.offset + offset
                view[start : start + source.size] = source
                return
            staging, visible = self._executor.staging()
            for start, n in _pieces(source.size, staging.nbytes):
                visible[:n] = source[start : start + n]
                self._move(staging, 0, self.range, offset + start, n)

    def read(self, offset: int = 0, nbytes: int | None = None) -> bytes:
        """Copy ``nbytes`` bytes (default: all the rest) from byte ``offset``.

        Raises:
            BindingError: the buffer ends before (B-04).
        """
        return self.array(offset, nbytes).tobytes()

    def array(self, offset: int = 0, nbytes: int | None = None) -> Bytes:
        """Read-only bytes from ``offset``: a view where the host sees the memory, else a copy.

        Raises:
            BindingError: the buffer ends before (B-04).
        """
        offset, nbytes = self._span(offset, nbytes)
        with self._executor.in_use():
            view = self.range.heap.view
            if view is not None:
                start = self.range.offset + offset
                return np.asarray(_View(self, view[start : start + nbytes]))
            result = np.empty(nbytes, np.uint8)
            staging, visible = self._executor.staging()
            for start, n in _pieces(nbytes, staging.nbytes):
                self._move(self.range, offset + start, staging, 0, n)
                result[start : start + n] = visible[:n]
        result.flags.writeable = False
        return result

    def copy_from(self, source: Range) -> None:
        """Copy a range of the same device to the start of this buffer, on the device."""
        self._move(source, 0, self.range, 0, source.nbytes)

    def _span(self, offset: Any, nbytes: Any) -> tuple[int, int]:
        """Offset and number of bytes as integers; None stands for all the rest."""
        try:
            first = index(offset)
            count = self.nbytes - first if nbytes is None else index(nbytes)
            inside = first >= 0 and count >= 0 and first + count <= self.nbytes
        except TypeError:
            inside = False
        if not inside:
            message = (
                f"got offset {offset!r:.40} and {nbytes!r:.40} bytes, must be integers from 0 and "
                f"end at {self.nbytes} or before"
            )
            raise BindingError("", "buffer", message, "B-04")
        return first, count

    def _move(self, source: Range, start: int, target: Range, to: int, nbytes: int) -> None:
        """A transfer is a plan too."""
        work = _transfer(self._executor.tuning, start, to, nbytes)
        self._executor.run(self._executor.bind(work, [source], [target]))


class _View:
    """Memory as NumPy finds it; the array made from it keeps the buffer, and so the heap, alive."""

    def __init__(self, owner: Buffer, memory: Bytes) -> None:
        self.owner = owner
        address, _ = memory.__array_interface__["data"]
        self.__array_interface__ = {**memory.__array_interface__, "data": (address, True)}


@lru_cache(maxsize=256)
def _transfer(tuning: Tuning, start: int, to: int, nbytes: int) -> RegionTable:
    region = Region((nbytes,), to, (1,), Read(0, start, (1,)))
    plan = CopyPlan(1, (start + nbytes,), (Output(to + nbytes, (region,)),))
    return encode(optimize(plan), tuning)


def _pieces(nbytes: int, most: int) -> Iterator[tuple[int, int]]:
    """(start, length) of pieces that fit in staging memory; a ragged end stands alone.

    That keeps the body on the widest kernel.
    """
    body = nbytes // WIDEST * WIDEST
    for start in range(0, body, most):
        yield start, min(most, body - start)
    if body < nbytes:
        yield body, nbytes - body
