"""Checks of the axes, shapes and counts that functions with NumPy semantics take."""

from __future__ import annotations

from collections.abc import Sequence, Sized
from functools import lru_cache
from itertools import zip_longest
from math import prod
from typing import Any, NoReturn, TypeAlias

import numpy as np

from vkops.arguments.values import ArgumentName, integer, integers, refuse
from vkops.errors import InvalidDescIndexError, show
from vkops.plan import size_limits
from vkops.plan.view import Ints, View

MAX_PIECES = 1 << 20

OneOrMore: TypeAlias = int | Sequence[int]
"""A size, axis or count, or several."""


@lru_cache(maxsize=1024)
def packed(shape: Ints) -> View:
    """Return ``View.packed`` of the shape, memoized."""
    return View.packed(shape)


def refuse_index(argument: ArgumentName, message: str) -> NoReturn:
    """Raise an error that is an IndexError and a ValueError, as NumPy's AxisError is."""
    raise InvalidDescIndexError(*argument[:2], message, argument.rule)


def in_rank(name: str, axis: int, rank: int, rule: str, field: str = "axis") -> int:
    """Return an axis counted from the front; negative ones count from the end."""
    if rank == 0:
        refuse_index(ArgumentName(name, field, rule), "the array has no dimensions")
    if not -rank <= axis < rank:
        refuse_index(
            ArgumentName(name, field, rule), f"got {show(axis)}, must be {-rank} to {rank - 1}"
        )
    return axis % rank


def one_axis(name: str, axis: Any, rank: int, field: str = "axis") -> int:
    """Return an axis, converted and counted from the front (ARRAY-01)."""
    return in_rank(
        name, integer(axis, ArgumentName(name, field, "ARRAY-01")), rank, "ARRAY-01", field
    )


def two_axes(name: str, axis1: Any, axis2: Any, rank: int) -> Ints:
    """Return the arguments ``axis1`` and ``axis2``, counted from the front (ARRAY-01)."""
    return one_axis(name, axis1, rank, "axis1"), one_axis(name, axis2, rank, "axis2")


def some_axes(name: str, value: Any, rank: int, field: str = "axis") -> Ints:
    """Return one or several axes (ARRAY-01), each at most once (ARRAY-02)."""
    numbers = one_or_more(value, ArgumentName(name, field, "ARRAY-01"))
    axes = tuple([in_rank(name, axis, rank, "ARRAY-01", field) for axis in numbers])
    if len(set(axes)) < len(axes):
        refuse(name, field, f"got {show(value)}, must name each dimension once at most", "ARRAY-02")
    return axes


def may_copy(name: str, copy: Any) -> bool | None:
    """Return the argument ``copy``: True for a copy, False to forbid it, or None (ARRAY-16)."""
    if copy is None or isinstance(copy, (bool, np.bool_)):
        return None if copy is None else bool(copy)
    raise ArgumentName(name, "copy", "ARRAY-16").wrong_kind(copy, "True, False or None")


def one_or_more(value: Any, argument: ArgumentName) -> Ints:
    """Return one integer or a sequence of integers as a tuple."""
    if type(value) is int:  # by far the most frequent case
        return (value,)
    return counts(value, argument) if isinstance(value, Sized) else (integer(value, argument),)


def counts(values: Any, argument: ArgumentName) -> Ints:
    """Convert a sequence of integers to a tuple."""
    if isinstance(values, np.ndarray) and values.ndim == 1 and values.dtype.kind in "iu":
        return tuple(values.tolist())  # fast for the many elements that an array can have
    return integers(tuple(values) if type(values) is list else values, argument)


def check_not_negative(values: Ints, argument: ArgumentName) -> None:
    """Raise an error for negative sizes or counts."""
    for i, value in enumerate(values):
        if value < 0:
            message = f"got {show(value)}, must be at least 0"
            refuse(argument.operator, f"{argument.field}[{i}]", message, argument.rule)


def check_shape(name: str, shape: Ints, itemsize: int) -> None:
    """Raise an error for shapes that are too large for NumPy (ARRAY-03)."""
    try:
        size_limits.check_shape(shape, itemsize)
    except size_limits.LimitError as error:
        refuse(name, "shape", str(error), "ARRAY-03")


def sizes_of(name: str, shape: Any, itemsize: int) -> Ints:
    """Return the sizes of a new array (ARRAY-06), which are not too large for NumPy (ARRAY-03)."""
    argument = ArgumentName(name, "shape", "ARRAY-06")
    sizes = one_or_more(shape, argument)
    check_not_negative(sizes, argument)
    check_shape(name, sizes, itemsize)
    return sizes


def reshaped(name: str, shape: Ints, size: int) -> Ints:
    """Return a shape of ``size`` elements; a size of -1 is inferred (ARRAY-03)."""
    unknown = [i for i, n in enumerate(shape) if n == -1]
    others = [n for n in shape if n != -1]
    known = prod(others)
    if len(unknown) == 1 and min(others, default=1) > 0 and size % known == 0:
        (i,) = unknown
        return (*shape[:i], size // known, *shape[i + 1 :])
    if unknown or any(n < 0 for n in shape) or known != size:
        message = f"got {show(shape)}, must be sizes of {size} elements, one of them -1 at most"
        refuse(name, "shape", message, "ARRAY-03")
    return shape


def broadcast_shapes(shapes: Sequence[Ints]) -> Ints | None:
    """Return the shape that arrays of some shapes are broadcast to, or None if they cannot be.

    ``numpy.broadcast_shapes`` accepts at most 32 dimensions, and arrays have up to 64.
    """
    axes = zip_longest(*map(reversed, shapes), fillvalue=1)
    sizes = [set(axis) - {1} or {1} for axis in axes]
    if max(map(len, sizes), default=1) > 1:
        return None
    return tuple([size for (size,) in reversed(sizes)])


def check_broadcast(name: str, shape: Ints, target: Ints, *, may_drop: bool = True) -> None:
    """Raise an error for shapes that NumPy cannot broadcast.

    With ``may_drop``, additional leading sizes of 1 are dropped.
    """
    extra = max(0, len(shape) - len(target)) if may_drop else 0
    if prod(shape[:extra]) != 1 or broadcast_shapes([shape[extra:], target]) != target:
        message = f"has shape {shape}, which cannot be broadcast to {target}"
        refuse(name, "value", message, "ARRAY-10")
