"""The values of ids: one value for each invocation, or one for all.

A scalar, vector or matrix is an array whose first axis is that of invocations; its length is 1 if
all have the same value. An array or a struct is a list of its members.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from vkops.debug.interpreter.operations import Array
from vkops.shaders.layout import Type

Value = Any


class Place(NamedTuple):
    """A line of a source file; line 0 if it is not known."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file


class Partial(NamedTuple):
    """Numbers of which some were never written; ``message`` and ``place`` say what was read.

    ``is_computed`` says whether they are results of numbers that were read, and no copies.
    """

    numbers: Array
    missing: Array
    message: str
    place: Place
    is_computed: bool = False


class Outside(NamedTuple):
    """The invocations whose index of an array is not one of its elements."""

    name: str
    mask: Array
    indices: Array
    length: int


class Pointer(NamedTuple):
    """A place in a variable, in bytes: an integer if all invocations have the same."""

    variable: Any  # of memory.py
    type: Type
    offset: int | Array
    outside: Outside | None = None


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
    if isinstance(new, Pointer):
        before = old.offset if isinstance(old, Pointer) else None
        if isinstance(new.offset, int) and before in (None, new.offset) and new.outside is None:
            return new
        offsets = merge(_array(before), _array(new.offset), at, count)
        outside = new.outside
        if outside is not None:
            mask = merge(np.zeros(count, bool), outside.mask, at, count)
            index = merge(np.zeros(count, np.int64), outside.indices, at, count)
            outside = outside._replace(mask=mask, indices=index)
        return new._replace(offset=offsets, outside=outside)
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


def _array(offset: int | Array | None) -> Array | None:
    return np.array([offset], np.int64) if isinstance(offset, int) else offset


def _numbers(value: Value) -> Value:
    return value.numbers if isinstance(value, Partial) else value


def _missing(value: Value, shape: tuple[int, ...] = ()) -> Value:
    if isinstance(value, Partial):
        return value.missing
    return None if value is None else np.zeros(shape or value.shape, bool)


def separated(parts: list[Value]) -> tuple[list[Value], list[Array] | None, Partial | None]:
    """Separate numbers from masks of what was never written, None if all was written.

    The last result says what was read first of that.
    """
    known = next((part for part in parts if isinstance(part, Partial)), None)
    if known is None:
        return parts, None, None
    return [_numbers(p) for p in parts], [_missing(p) for p in parts], known
