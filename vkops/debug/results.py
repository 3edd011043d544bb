"""Results of shaders as numbers of the types that blocks declare, and comparisons of results."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from vkops.interpreter.memory import MemoryVariable
from vkops.interpreter.operations import stored_dtype
from vkops.shaders.layout import ArrayType, ScalarType, leaves
from vkops.shaders.module import Block

Array = npt.NDArray[Any]

Tolerance = Mapping[str, tuple[float, float]]
"""Tolerances by type: relative to each number, and relative to the largest number."""

_STEPS = {f"n{nbytes}": (2**-6, 2**-7) for nbytes in (1, 2, 4)}

TOLERANCE: Tolerance = {
    "f2": (1e-3, 1e-5), "f4": (1e-3, 1e-5), "f8": (1e-3, 1e-5), **_STEPS,
}  # fmt: skip
"""Floats may be added in another order. Normalized integers ("n") of images may differ by 1."""

TOLERANCE_OF_DEVICES: Tolerance = {
    "f2": (2**-6, 2**-7), "f4": (1e-3, 2**-11), "f8": (1e-3, 1e-5), **_STEPS,
}  # fmt: skip
"""Tolerances between devices, as Vulkan allows per instruction: most for sin, cos and atan."""

TOLERANCE_OF_SAMPLES: Tolerance = {
    f"{kind}{nbytes}": (2**-4, 2**-4) for kind in "iufn" for nbytes in (1, 2, 4, 8)
}
"""Tolerances with linear samplers, whose weights may have as few as 4 bits."""


def tolerance_of(filters: Iterable[str], others: Tolerance) -> Tolerance:
    """Return the tolerance for samplers with these filters; ``others`` if none is linear."""
    return TOLERANCE_OF_SAMPLES if "linear" in filters else others


@dataclass(frozen=True)
class NumberDifference:
    """The first of ``count`` different numbers: its byte, its index, and both values."""

    at: int
    element: int
    one: str
    other: str
    count: int


def first_difference(
    block: Block | None, one: Array, other: Array, tolerance: Tolerance = TOLERANCE
) -> NumberDifference | None:
    """Return the first number that differs, or None; see ``differences``."""
    places = differences(block, one, other, tolerance)
    if not len(places):
        return None
    at = int(places[0])
    dtype = one.dtype if block is None or block.image else block.dtype or np.dtype("u4")
    values = number_at(block, one, at), number_at(block, other, at)
    return NumberDifference(at, at // dtype.itemsize, *values, len(places))


def differences(
    block: Block | None, one: Array, other: Array, tolerance: Tolerance = TOLERANCE
) -> npt.NDArray[np.int64]:
    """Return the first bytes of numbers that differ by more than the order of invocations explains.

    Floats may differ as much as additions in another order allow. The same numbers of a type in
    another order are not a difference, because shaders may append to a buffer.
    """
    places = []
    for dtype, starts in _numbers(block, one):
        at = starts[:, None] + np.arange(dtype.itemsize)
        a, b = (_bytes(data)[at].view(dtype)[:, 0] for data in (one, other))
        is_normalised = block is not None and block.image and block.image.kind == "float"
        kind = "n" if is_normalised and dtype.kind in "iu" else dtype.kind
        differs = _differences(a, b, *tolerance.get(f"{kind}{dtype.itemsize}", (0, 0)))
        if differs.any() and not (np.sort(a) == np.sort(b)).all():
            places.append(starts[differs])
    return np.sort(np.concatenate(places)) if places else np.zeros(0, np.int64)


def _differences(a: Array, b: Array, relative: float, absolute: float) -> npt.NDArray[np.bool_]:
    if not relative:
        return np.asarray(a != b)
    is_whole = a.dtype.kind != "f"
    if is_whole:
        a, b = a.astype(np.float64), b.astype(np.float64)
    size = np.nan_to_num(np.maximum(np.abs(a), np.abs(b)), posinf=0).max(initial=0)
    least = max(absolute * float(size), is_whole)
    return np.asarray(~np.isclose(a, b, rtol=relative, atol=least, equal_nan=True))


def _bytes(numbers: Array) -> npt.NDArray[np.uint8]:
    return np.ascontiguousarray(numbers).reshape(-1).view(np.uint8)


def _numbers(block: Block | None, data: Array) -> list[tuple[np.dtype[Any], npt.NDArray[np.int64]]]:
    """Return each type of number in the contents of a block, and the offsets of its numbers."""
    dtype = data.dtype if block is None or block.image else block.dtype
    if dtype is not None:
        return [(dtype, np.arange(data.nbytes // dtype.itemsize) * dtype.itemsize)]
    assert block is not None
    by_dtype: dict[np.dtype[Any], list[Any]] = {}
    for number, starts, _ in places_of(block, data.nbytes):
        by_dtype.setdefault(stored_dtype(number), []).append(starts)
    return [(dtype, np.concatenate(starts)) for dtype, starts in by_dtype.items()]


def places_of(block: Block, nbytes: int) -> Iterator[tuple[ScalarType, npt.NDArray[np.int64], int]]:
    """Yield each number of a block: its type, its offsets, and its first test value.

    In the array at the end, a number has an offset for each element, and its test values begin at
    0. Any other number has one offset, and its position is its test value.
    """
    assert block.type is not None
    for first, leaf in enumerate(leaves(block.type)):
        yield leaf.type, np.array([leaf.location]), first
    last = block.type.members[-1]
    if block.stride and isinstance(last.type, ArrayType):
        starts = np.arange(last.offset, nbytes - block.stride + 1, block.stride)
        for leaf in leaves(last.type.element):
            yield leaf.type, starts + leaf.location, 0


def number_at(block: Block | None, data: Array, at: int) -> str:
    """Return the number that contains a byte of a block, as text."""
    for dtype, starts in _numbers(block, data):
        for start in starts[(starts <= at) & (at < starts + dtype.itemsize)].tolist():
            return str(_bytes(data)[start : start + dtype.itemsize].view(dtype)[0])
    return "padding"


def numbers_in(block: Block | None, memory: MemoryVariable) -> Array:
    """Return the content of a block as numbers of its type, or as words if it has several types."""
    data, dtype = memory.contents(), (block and block.dtype) or np.dtype("u4")
    return np.frombuffer(data[: data.size // dtype.itemsize * dtype.itemsize].tobytes(), dtype)
