"""The values of ids: one value for each invocation, or one for all.

A scalar, vector or matrix is an array whose first axis is that of invocations; its length is 1 if
all have the same value. An array or a struct is a list of its members.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from vkops.interpreter.operations import Array
from vkops.shaders.layout import Type

Value = Any


class Place(NamedTuple):
    """A line of a source file; line 0 if it is not known."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file

    def seen_from(self, other: Place) -> str:
        """Return where it is in a sentence about another place; "" if that is not known."""
        where = f" in line {self.line}" if self.file == other.file else f" in {self}"
        return "" if not self.line else " in the same line" if self == other else where


class Partial(NamedTuple):
    """Numbers of which some are undefined; using those is a finding of a kind at a place.

    ``is_computed`` says whether they are results of numbers that were read, and no copies.
    """

    numbers: Array
    missing: Array
    message: str
    place: Place
    is_computed: bool = False
    kind: str = "never written"


class Outside(NamedTuple):
    """The invocations whose index of an array is not one of its elements."""

    name: str
    mask: Array
    indices: Array
    length: int | str


class Pointer(NamedTuple):
    """A place in a variable, in bytes: an integer if all invocations have the same.

    ``stride`` is that of elements by which it was moved (OpPtrAccessChain), which can be too far.
    """

    variable: Any  # of memory.py
    type: Type
    offset: int | Array
    outside: Outside | None = None
    stride: int = 0


class Choice(NamedTuple):
    """Pointers into several variables; ``which`` has the number of each invocation's."""

    pointers: tuple[Pointer, ...]
    which: Array


def take(value: Value, at: Array | None) -> Value:
    """Return the values of some invocations; None are all."""
    if at is None:
        return value
    if isinstance(value, np.ndarray):
        return value if len(value) == 1 else value[at]
    if isinstance(value, list):
        return [take(member, at) for member in value]
    if isinstance(value, Partial):
        missing = take(value.missing, at)
        numbers = take(value.numbers, at)
        return value._replace(numbers=numbers, missing=missing) if missing.any() else numbers
    if isinstance(value, Choice):
        which = value.which[at]
        if len(which) and (which == which[0]).all():
            return take(value.pointers[which[0]], at)
        return Choice(tuple(take(each, at) for each in value.pointers), which)
    if isinstance(value, Pointer):
        outside = value.outside
        if outside is not None:
            mask = take(outside.mask, at)
            outside = outside._replace(mask=mask, indices=take(outside.indices, at))
        offset = value.offset if isinstance(value.offset, int) else take(value.offset, at)
        return value._replace(offset=offset, outside=outside)
    return value


def merge(old: Value, new: Value, at: Array | None, count: int) -> Value:
    """Return ``old`` with the values of some of ``count`` invocations replaced.

    Without ``old``, a value that all of these invocations share is kept as one: no other
    invocation reads it.
    """
    if at is None:
        return new
    if isinstance(new, list):
        olds = [None] * len(new) if old is None else old
        return [merge(a, b, at, count) for a, b in zip(olds, new, strict=True)]
    if isinstance(new, (Pointer, Choice)):
        return _merged_pointers(old, new, at, count)
    if isinstance(new, Partial) or isinstance(old, Partial):
        missing = merge(_missing(old), _missing(new, _numbers(new).shape), at, count)
        numbers = merge(_numbers(old), _numbers(new), at, count)
        known = new if isinstance(new, Partial) else old
        return Partial(numbers, missing, *known[2:])
    if old is None and len(new) == 1:
        return new
    made = np.zeros((count, *new.shape[1:]), new.dtype)
    if old is not None:
        made[:] = old
    made[at] = new
    return made


def _pointers(value: Value) -> tuple[Pointer, ...]:
    return value.pointers if isinstance(value, Choice) else () if value is None else (value,)


def _merged_pointers(old: Value, new: Value, at: Array, count: int) -> Pointer | Choice:
    made = {pointer[:2]: pointer for pointer in _pointers(old)}
    for pointer in _pointers(new):
        known = made.get(pointer[:2])
        made[pointer[:2]] = _merged_places(known, pointer, at, count)
    if len(made) == 1:
        return made.popitem()[1]
    which = np.zeros(count, np.int64)
    which[:] = old.which if isinstance(old, Choice) else 0
    numbers = np.array([[*made].index(pointer[:2]) for pointer in _pointers(new)])
    which[at] = numbers[new.which if isinstance(new, Choice) else 0]
    return Choice(tuple(made.values()), which)


def _merged_places(old: Pointer | None, new: Pointer, at: Array, count: int) -> Pointer:
    first = new.offset if isinstance(new.offset, int) else 0
    old = new._replace(offset=first, outside=None) if old is None else old
    known = new.outside or old.outside
    if known is None and type(old.offset) is type(new.offset) is int and old.offset == first:
        return new
    offset, mask, index = np.zeros((3, count), np.int64)
    for pointer, rows in ((old, slice(None)), (new, at)):
        outside = pointer.outside
        offset[rows] = pointer.offset
        mask[rows], index[rows] = (0, 0) if outside is None else (outside.mask, outside.indices)
    outside = known and known._replace(mask=mask.astype(bool), indices=index)
    stride = max(old.stride, new.stride)
    return new._replace(offset=offset, outside=outside, stride=stride)


def _numbers(value: Value) -> Value:
    return value.numbers if isinstance(value, Partial) else value


def _missing(value: Value, shape: tuple[int, ...] = ()) -> Value:
    if isinstance(value, Partial):
        return value.missing
    return None if value is None else np.zeros(shape or value.shape, bool)


def separated(parts: list[Value]) -> tuple[list[Value], list[Array] | None, Partial | None]:
    """Separate numbers from masks of what is undefined, None if nothing is.

    The last result says why the first of that is.
    """
    known = next((part for part in parts if isinstance(part, Partial)), None)
    if known is None:
        return parts, None, None
    return [_numbers(p) for p in parts], [_missing(p) for p in parts], known


def rearranged(parts: Sequence[Value], move: Callable[..., Array]) -> Value:
    """Return what ``move`` makes of numbers, with marks on those that are undefined."""
    numbers, masks, known = separated([*parts])
    made = move(*numbers)
    if masks is None or known is None:
        return made
    missing = move(*masks)
    return known._replace(numbers=made, missing=missing) if missing.any() else made
