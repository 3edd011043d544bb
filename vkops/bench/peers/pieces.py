"""A work as strided reads of each output, or as copies of contiguous pieces."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from vkops.bench.movement import Array, Join, Shape, Split
from vkops.bench.works import Case


@dataclass(frozen=True)
class Source:
    """An input that an output is read from, with signed strides in elements."""

    input: int
    strides: Shape
    length: int
    """How far it reaches along the output's axis."""


@dataclass(frozen=True)
class Output:
    """An output, put together from its sources along ``axis``; ``origin`` is the first's offset."""

    shape: Shape
    axis: int
    origin: int
    sources: tuple[Source, ...]


@dataclass(frozen=True)
class Copy:
    """Contiguous bytes of an input that become contiguous bytes of an output."""

    input: int
    source: int
    output: int
    target: int
    nbytes: int


def reads(case: Case) -> list[Output]:
    """The work as reads."""
    if isinstance(case.movement, Join):
        axis = case.movement.axis
        parts = (
            Source(number, _bytes(shape).strides, shape[axis])
            for number, shape in enumerate(case.shapes)
        )
        return [Output(case.output_shapes[0], axis, 0, tuple(parts))]
    whole = _bytes(case.shapes[0])
    return [
        Output(view.shape, 0, _offset(view, whole), (Source(0, view.strides, view.shape[0]),))
        for view in case.movement.views(whole)
    ]


def copies(case: Case, most: int) -> list[Copy] | None:
    """The work as copies; None where there would be more than ``most``, or some of part words."""
    join = isinstance(case.movement, Join)
    if isinstance(case.movement, Join):
        whole = _bytes(case.output_shapes[0])
        lengths = tuple(shape[case.movement.axis] for shape in case.shapes)
        views = Split(case.movement.axis, lengths).views(whole)
    else:
        whole = _bytes(case.shapes[0])
        views = case.movement.views(whole)
    found: list[Copy] = []
    for number, view in enumerate(views):
        run, outer = _run(view)
        if len(found) + prod(view.shape[:outer]) > most:
            return None
        nbytes = run * case.dtype.itemsize
        for turn, index in enumerate(np.ndindex(view.shape[:outer])):
            place = _offset(view, whole) + int(np.dot(index, view.strides[:outer]))
            here, there = place * case.dtype.itemsize, turn * nbytes
            if nbytes % 4 or here % 4:
                return None
            found.append(
                Copy(number, there, 0, here, nbytes)
                if join
                else Copy(0, here, number, there, nbytes)
            )
    return found


def _bytes(shape: Shape) -> Array:
    """An array of bytes that stand for elements; its memory is never touched."""
    return np.empty(shape, np.uint8)


def _offset(view: Array, whole: Array) -> int:
    return int(view.__array_interface__["data"][0] - whole.__array_interface__["data"][0])


def _run(view: Array) -> tuple[int, int]:
    """How many elements lie side by side, and the number of dimensions outside of them."""
    run, outer = 1, view.ndim
    while outer and view.strides[outer - 1] == run:
        outer -= 1
        run *= view.shape[outer]
    return run, outer
