"""Basic indices: integers, slices, ``...`` and None, resolved for the sizes of a tensor.

Indices have the meaning that they have in NumPy. Tensors and expressions of graphs use them, each
with error messages of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from vkops.errors import show

MAX_STEP = 1 << 31
"""Larger steps of slices that select one index become 1: strides in bytes have 64 bits."""


class ErrorFormats(NamedTuple):
    """The texts of errors, as format strings."""

    ellipses: str
    too_many: str
    outside: str
    zero_step: str


def basic_index(
    sizes: Sequence[int], parts: Sequence[Any], texts: ErrorFormats
) -> list[int | range | None]:
    """Return the parts of the index that remain when ``...`` is replaced by slices.

    An integer in the result drops a dimension, and is not negative. A range has the indices to take
    of a dimension that is kept. None adds a new dimension of size 1.

    Raises:
        IndexError: an integer is out of range, or there are too many parts.
        ValueError: the step of a slice is 0.
        TypeError: a bound of a slice is not an integer.

    >>> texts = ErrorFormats("two ellipses", "{count} of {rank}", "{index} in {axis}", "step 0")
    >>> basic_index((4, 6, 5), (-1, ..., None, slice(None, None, -2)), texts)
    [3, range(0, 6), None, range(4, -1, -2)]
    """
    rank = len(sizes)
    ellipses = [i for i, part in enumerate(parts) if part is ...]
    if len(ellipses) > 1:
        raise IndexError(texts.ellipses)
    count = sum(part is not None and part is not ... for part in parts)
    if count > rank:
        raise IndexError(texts.too_many.format(count=count, rank=rank))
    place = ellipses[0] if ellipses else len(parts)
    indices: list[int | range | None] = []
    axis = 0
    for part in (*parts[:place], *[slice(None)] * (rank - count), *parts[place + 1 :]):
        if part is None:
            indices.append(None)
            continue
        size = sizes[axis]
        if isinstance(part, slice):
            if part.step == 0:
                raise ValueError(texts.zero_step.format(axis=axis))
            chosen = range(size)[part]
            if abs(chosen.step) > MAX_STEP and not chosen[1:]:
                chosen = range(chosen.start, chosen.start + len(chosen))
            indices.append(chosen)
        elif -size <= part < size:
            indices.append(part % size)
        else:
            limits = {"low": show(-size), "high": show(size - 1), "size": size}
            raise IndexError(texts.outside.format(index=show(part), axis=axis, **limits))
        axis += 1
    return indices
