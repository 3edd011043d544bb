"""The values of ids: one value for each invocation, or one for all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from vkops.interpreter.operations import Array
from vkops.shaders.layout import Type


class SourceLine(NamedTuple):
    """A line of a source file; line 0 if it is not known."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file

    def seen_from(self, other: SourceLine) -> str:
        """Return where it is in a sentence about another place; "" if that is not known."""
        where = f" in line {self.line}" if self.file == other.file else f" in {self}"
        return "" if not self.line else " in the same line" if self == other else where


class Reason(NamedTuple):
    """Why numbers are undefined: using them is a finding of a kind at a place.

    ``is_computed`` says whether they are results of numbers that were read, and no copies.
    """

    message: str
    place: SourceLine
    is_computed: bool = False
    kind: str = "never written"


class Numbers:
    """The scalars, vectors or matrices of invocations.

    ``array`` has one row for each invocation, or one for all if they have the same. ``missing`` is
    a mask of the numbers that are undefined, None if none is, and ``why`` says why they are.
    """

    __slots__ = ("array", "missing", "why")

    def __init__(
        self, array: Array, missing: Array | None = None, why: Reason | None = None
    ) -> None:
        self.array = array
        self.missing = self.why = None
        if missing is not None and missing.any():
            self.missing, self.why = missing, why

    @property
    def mask(self) -> Array:
        """The mask of what is undefined, even if nothing is."""
        return np.zeros(self.array.shape, bool) if self.missing is None else self.missing

    def take(self, at: Array) -> Numbers:
        """Return those of some invocations."""
        if self.missing is None:
            return self if len(self.array) == 1 else Numbers(self.array[at])
        return Numbers(rows_of(self.array, at), rows_of(self.missing, at), self.why)

    def moved(self, move: Callable[..., Array], *others: Numbers) -> Numbers:
        """Return what a function makes of these numbers and others, without changing any."""
        array, why = move(self.array, *[each.array for each in others]), self.why
        for each in (self, *others):
            if each.missing is not None:
                missing = move(self.mask, *[other.mask for other in others])
                return Numbers(array, missing, why or each.why)
        return Numbers(array)

    def marked(self, *causes: Numbers, missing: Array | None = None) -> Numbers:
        """Return results: undefined ones are where the numbers are that they are made of."""
        if all(each.missing is None for each in causes):
            return self
        if missing is None:
            missing = np.zeros(self.array.shape, bool)
            for mask in (each.mask for each in causes):  # most operations work by components
                if mask.shape[1:] != missing.shape[1:]:
                    mask = mask.reshape(len(mask), -1).any(1)
                    mask = mask.reshape(-1, *(1,) * (missing.ndim - 1))
                missing = missing | mask
        why = next((each.why for each in causes if each.why), None)
        return Numbers(self.array, missing, why and why._replace(is_computed=True))


class Outside(NamedTuple):
    """The invocations whose index of an array is not one of its elements."""

    name: str
    mask: Array
    indices: Array
    length: int | str


@dataclass(slots=True, eq=False)
class Pointer:
    """A place in a variable, in bytes: an integer if all invocations have the same.

    ``stride`` is that of elements by which it was moved (OpPtrAccessChain), which can be too far.
    """

    variable: Any  # of memory.py
    type: Type
    offset: int | Array
    outside: Outside | None = None
    stride: int = 0

    def take(self, at: Array) -> Pointer:
        """Return those of some invocations."""
        offset, outside = self.offset, self.outside
        if outside is not None:
            mask, indices = rows_of(outside.mask, at), rows_of(outside.indices, at)
            outside = outside._replace(mask=mask, indices=indices)
        offset = offset if isinstance(offset, int) else rows_of(offset, at)
        return Pointer(self.variable, self.type, offset, outside, self.stride)


@dataclass(slots=True, eq=False)
class Choice:
    """Pointers into several variables; ``which`` has the number of each invocation's."""

    pointers: tuple[Pointer, ...]
    which: Array

    def take(self, at: Array) -> Pointer | Choice:
        """Return those of some invocations."""
        which = self.which[at]
        if len(which) and (which == which[0]).all():
            return self.pointers[int(which[0])].take(at)
        return Choice(tuple(each.take(at) for each in self.pointers), which)


Value: TypeAlias = "Numbers | Pointer | Choice | tuple[Value, ...]"
"""The value of an id; an array or a struct is a tuple of its members."""


def replaced(value: Value, function: Callable[[Numbers], Numbers]) -> Value:
    """Return a value with its numbers replaced by what a function makes of them."""
    if isinstance(value, Numbers):
        return function(value)
    return tuple(replaced(m, function) for m in value) if isinstance(value, tuple) else value


def rows_of(array: Array, at: Array) -> Array:
    """Return the rows of some invocations; a single row is that of all."""
    return array if len(array) == 1 else array[at]


def take(value: Value, at: Array | None) -> Value:
    """Return the values of some invocations; None are all."""
    if at is None:
        return value
    return tuple(take(m, at) for m in value) if isinstance(value, tuple) else value.take(at)


def merge(old: Value | None, new: Value, at: Array | None, count: int) -> Value:
    """Return ``old`` with the values of some of ``count`` invocations replaced.

    Without ``old``, no other invocation reads the result.
    """
    if at is None:
        return new
    if isinstance(new, tuple):
        olds = old if isinstance(old, tuple) else (None,) * len(new)
        return tuple(merge(a, b, at, count) for a, b in zip(olds, new, strict=True))
    if not isinstance(new, Numbers):
        return _merged_pointers(old, new, at, count)
    if old is None and len(new.array) == 1:
        return new

    def put(now: Array, before: Array) -> Array:
        merged = np.empty((count, *now.shape[1:]), now.dtype)
        merged[:] = before
        merged[at] = now
        return merged

    assert old is None or isinstance(old, Numbers)
    return new.moved(put, new.take(np.zeros(1, np.int64)) if old is None else old)


def _pointers(value: Value | None) -> tuple[Pointer, ...]:
    if isinstance(value, Choice):
        return value.pointers
    return (value,) if isinstance(value, Pointer) else ()


def _merged_pointers(
    old: Value | None, new: Pointer | Choice, at: Array, count: int
) -> Pointer | Choice:
    merged = {(pointer.variable, pointer.type): pointer for pointer in _pointers(old)}
    keys = [(pointer.variable, pointer.type) for pointer in _pointers(new)]
    for key, pointer in zip(keys, _pointers(new), strict=True):
        merged[key] = _merged_places(merged.get(key), pointer, at, count)
    if len(merged) == 1:
        return merged.popitem()[1]
    which = np.zeros(count, np.int64)
    which[:] = old.which if isinstance(old, Choice) else 0
    numbers = np.array([[*merged].index(key) for key in keys])
    which[at] = numbers[new.which if isinstance(new, Choice) else 0]
    return Choice(tuple(merged.values()), which)


def _merged_places(old: Pointer | None, new: Pointer, at: Array, count: int) -> Pointer:
    first = new.offset if isinstance(new.offset, int) else 0
    old = old or Pointer(new.variable, new.type, first, None, new.stride)
    known = new.outside or old.outside
    if known is None and type(old.offset) is type(new.offset) is int and old.offset == first:
        return new
    offset, mask, index = np.zeros((3, count), np.int64)
    for pointer, rows in ((old, slice(None)), (new, at)):
        outside = pointer.outside
        offset[rows] = pointer.offset
        mask[rows], index[rows] = (0, 0) if outside is None else (outside.mask, outside.indices)
    outside = known and known._replace(mask=mask.astype(bool), indices=index)
    return Pointer(new.variable, new.type, offset, outside, max(old.stride, new.stride))
