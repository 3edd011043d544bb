"""A workload as strided reads of each output, or as copies of contiguous bytes."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

import numpy as np

from vkops.bench.workloads import Array, BenchCase, Join, Shape, ViewOperation


class JoinedInput(NamedTuple):
    """An input that an output is read from, with signed strides in elements.

    ``length`` is the source's size along the axis of the output.
    """

    input: int
    strides: Shape
    length: int


class Output(NamedTuple):
    """An output: its sources, one after the other along ``axis``, and the first one's offset."""

    shape: Shape
    axis: int
    offset: int
    sources: Sequence[JoinedInput]


class Copy(NamedTuple):
    """Contiguous bytes of an input that become contiguous bytes of an output."""

    input: int
    source: int
    output: int
    target: int
    nbytes: int


def reads(case: BenchCase) -> list[Output]:
    """Describe a workload as strided reads."""
    if isinstance(case.operation, Join):
        axis = case.operation.axis
        parts = [
            JoinedInput(number, _bytes(shape).strides, shape[axis])
            for number, shape in enumerate(case.shapes)
        ]
        return [Output(case.output_shapes[0], axis, 0, parts)]
    whole = _bytes(case.shapes[0])
    return [
        Output(view.shape, 0, _offset(view, whole), [JoinedInput(0, view.strides, view.shape[0])])
        for view in _views(case, whole)
    ]


def copies(case: BenchCase, limit: int) -> list[Copy] | None:
    """Describe a workload as copies of whole words; None if more than ``limit`` are needed."""
    join = isinstance(case.operation, Join)  # then the inputs are parts of the output
    whole = _bytes((case.output_shapes if join else case.shapes)[0])
    result: list[Copy] = []
    size = case.dtype.itemsize
    for number, view in enumerate(_views(case, whole)):
        run, outer = 1, view.ndim  # elements side by side, and the dimensions outside of them
        while outer and view.strides[outer - 1] == run:
            outer -= 1
            run *= view.shape[outer]
        if len(result) + prod(view.shape[:outer]) > limit:
            return None
        for i, index in enumerate(np.ndindex(view.shape[:outer])):
            offset = _offset(view, whole) + int(np.dot(index, view.strides[:outer]))
            part, all_ = (number, i * run * size), (0, offset * size)
            if run * size % 4 or all_[1] % 4:
                return None
            result.append(Copy(*(part + all_ if join else all_ + part), run * size))
    return result


def _views(case: BenchCase, array: Array) -> list[Array]:
    """Return each output as a view of the input, or for a join, each input of the output."""
    if isinstance(case.operation, Join):
        return np.split(array, len(case.shapes), case.operation.axis)
    assert isinstance(case.operation, ViewOperation)
    return case.operation.views(array)


def _bytes(shape: Shape) -> Array:
    """Make an array of bytes that stand for elements; its memory is never accessed."""
    return np.empty(shape, np.uint8)


def _offset(view: Array, whole: Array) -> int:
    return int(view.__array_interface__["data"][0] - whole.__array_interface__["data"][0])
