"""The values of ids: one value for each invocation, or one for all."""

from __future__ import annotations

from collections.abc import Callable, Iterable
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
        """Return the position as a phrase in a sentence about another line; "" if not known."""
        where = f" in line {self.line}" if self.file == other.file else f" in {self}"
        return "" if not self.line else " in the same line" if self == other else where


class Reason(NamedTuple):
    """The reason why a number is undefined; a use of the number is a finding of the kind ``kind``.

    ``place`` is the line where the invocation that uses the number got or computed it. ``block`` is
    the block that the number was read from, if the block got no values. If the number came from
    another invocation, ``origin`` is that invocation's reason. ``is_provisional`` says that the
    next variable which the number is copied to is a better one to name.
    """

    message: str
    place: SourceLine
    kind: str = "never written"
    block: str = ""
    origin: Reason | None = None
    is_provisional: bool = False

    def passed(self, how: str, place: SourceLine) -> Reason:
        """Return the reason of an invocation that gets the number from another one."""
        origin = self.origin or self
        where = origin.place.seen_from(place)
        message = f"{how}, which is undefined because an invocation{where} {origin.message}"
        return self._replace(message=message, place=place, origin=origin)


_MAX_REASONS = np.iinfo(np.uint16).max


class Numbers:
    """The scalars, vectors or matrices of invocations.

    ``array`` has one row for each invocation, or one row if all have the same value. ``missing``
    has a number for each entry of ``array``: 0 if it is defined; otherwise the number of a reason
    in ``why``, counted from 1. It is None if all are defined.
    """

    __slots__ = ("array", "missing", "why")

    def __init__(
        self, array: Array, missing: Array | None = None, why: tuple[Reason, ...] = ()
    ) -> None:
        self.array = array
        self.missing: Array | None = None
        self.why: tuple[Reason, ...] = ()
        if missing is not None and missing.any():
            self.missing, self.why = missing.astype(np.uint16, copy=False), why

    def reasons(self, numbering: dict[Reason, int]) -> Array:
        """Return ``missing`` with a dictionary's numbers of reasons, to which it adds new ones."""
        if self.missing is None:
            return np.zeros(self.array.shape, np.uint16)
        table = np.zeros(len(self.why) + 1, np.uint16)
        for number in np.unique(self.missing).tolist():
            if number:
                new = min(len(numbering) + 1, _MAX_REASONS)
                table[number] = numbering.setdefault(self.why[number - 1], new)
        return table[self.missing]

    def take(self, at: Array) -> Numbers:
        """Return the values of some invocations."""
        if self.missing is None:
            return self if len(self.array) == 1 else Numbers(self.array[at])
        return Numbers(rows_of(self.array, at), rows_of(self.missing, at), self.why)

    def moved(self, move: Callable[..., Array], *others: Numbers) -> Numbers:
        """Return the result of a function that moves these numbers and others."""
        result = Numbers(move(self.array, *[each.array for each in others]))
        return result.marked(self, *others, combine=move)

    def marked(self, *causes: Numbers, combine: Callable[..., Array] | None = None) -> Numbers:
        """Return these results, which are undefined where one of their causes is undefined.

        ``combine`` computes the reasons of the results from the reasons of the causes.
        """
        if all(each.missing is None for each in causes):
            return self
        numbering: dict[Reason, int] = {}
        reasons = [each.reasons(numbering) for each in causes]
        missing = combine(*reasons) if combine else self._first_of(reasons)
        return Numbers(self.array, missing, tuple(numbering))

    def _first_of(self, reasons: Iterable[Array]) -> Array:
        """Return the first reason for each component, as most operations work by components."""
        missing: Array = np.zeros(self.array.shape, np.uint16)
        for each in reasons:
            if each.shape[1:] != missing.shape[1:]:
                each = each.reshape(len(each), -1).max(1)
                each = each.reshape(-1, *(1,) * (missing.ndim - 1))
            missing = np.where(missing, missing, each)
        return missing


class Outside(NamedTuple):
    """The invocations whose index is not that of an element of an array."""

    name: str
    mask: Array
    indices: Array
    length: int | str


@dataclass(slots=True, eq=False)
class Pointer:
    """A position in a variable, in bytes; it is an integer if it is the same for all invocations.

    ``stride`` is the stride of the elements by which OpPtrAccessChain moved it, possibly too far.
    """

    variable: Any  # a Variable
    type: Type
    offset: int | Array
    outside: Outside | None = None
    stride: int = 0

    def take(self, at: Array) -> Pointer:
        """Return the pointers of some invocations."""
        offset, outside = self.offset, self.outside
        if outside is not None:
            mask, indices = rows_of(outside.mask, at), rows_of(outside.indices, at)
            outside = outside._replace(mask=mask, indices=indices)
        offset = offset if isinstance(offset, int) else rows_of(offset, at)
        return Pointer(self.variable, self.type, offset, outside, self.stride)


@dataclass(slots=True, eq=False)
class Choice:
    """Pointers into several variables; ``which`` has the number of each invocation's pointer."""

    pointers: tuple[Pointer, ...]
    which: Array

    def take(self, at: Array) -> Pointer | Choice:
        """Return the pointers of some invocations."""
        which = self.which[at]
        if len(which) and (which == which[0]).all():
            return self.pointers[int(which[0])].take(at)
        return Choice(tuple(each.take(at) for each in self.pointers), which)


Value: TypeAlias = "Numbers | Pointer | Choice | tuple[Value, ...]"
"""The value of an id; the value of an array or a struct is a tuple of its members."""


def replaced(value: Value, function: Callable[[Numbers], Numbers]) -> Value:
    """Return a value whose numbers are replaced by the results of a function."""
    if isinstance(value, Numbers):
        return function(value)
    return tuple(replaced(m, function) for m in value) if isinstance(value, tuple) else value


def rows_of(array: Array, at: Array) -> Array:
    """Return the rows of some invocations; a single row is the row of all."""
    return array if len(array) == 1 else array[at]


def take(value: Value, at: Array | None) -> Value:
    """Return the values of some invocations; ``at`` is None for all."""
    if at is None:
        return value
    return tuple(take(m, at) for m in value) if isinstance(value, tuple) else value.take(at)


def merge(old: Value | None, new: Value, at: Array | None, count: int) -> Value:
    """Return ``old`` with the values of some of ``count`` invocations replaced.

    If ``old`` is None, no other invocation uses the result.
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


def differ(one: Any, other: Any, at: Array) -> Array:
    """Return for which invocations two values differ."""
    if one is other:
        return np.zeros(len(at), bool)
    if isinstance(one, Numbers) and isinstance(other, Numbers):
        result = _differ(one.array, other.array, at)
        if one.missing is other.missing:
            return result
        a, b = (np.zeros(1, bool) if n.missing is None else n.missing != 0 for n in (one, other))
        a, b = (marks.reshape(len(marks), -1).any(1) for marks in (a, b))
        return result | _differ(a, b, at)
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return _differ(one, other, at)
    if isinstance(one, Pointer) and isinstance(other, Pointer) and one.variable is other.variable:
        return _differ(np.atleast_1d(one.offset), np.atleast_1d(other.offset), at)
    if isinstance(one, tuple) and isinstance(other, tuple) and len(one) == len(other):
        parts = [differ(a, b, at) for a, b in zip(one, other, strict=True)]
        return np.any(parts, axis=0) if parts else np.zeros(len(at), bool)
    return np.ones(len(at), bool)


def _differ(one: Array, other: Array, at: Array) -> Array:
    """Return which rows differ in their bits."""
    a, b = (np.ascontiguousarray(rows_of(each, at)) for each in (one, other))
    a, b = (each.view(np.uint8).reshape(len(each), -1) for each in (a, b))
    return np.broadcast_to((a != b).any(1), len(at))
