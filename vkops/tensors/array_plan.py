"""Plans of the functions for arrays, which are memoized, and the shapes of their results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from vkops.errors import is_held
from vkops.gpu.kernels.choice import MAX_DIMS
from vkops.gpu.run.program import Program
from vkops.plan import indexing
from vkops.plan.algebra import coalesce
from vkops.plan.graph import Pipeline
from vkops.plan.indexing import IndexTensor
from vkops.plan.movements import copy, pack
from vkops.plan.region import CopyPlan, Output, Read, Region
from vkops.plan.view import Ints, View
from vkops.system.threads import cached_property, new_lock

MAX_KILOBYTES = 8192
"""The approximate size of the plans that one function caches: 3 kB each, and 1 kB per region."""


class ArrayPlan:
    """The program of an array function, and the shapes of its results.

    Arrays without elements are left out: they have no regions, and are not among the plan's inputs
    and outputs.
    """

    def __init__(self, plan: CopyPlan, shapes: Sequence[Ints]) -> None:
        self.plan = plan
        self.shapes: tuple[Ints, ...] = tuple(shapes)
        self.program: Program = Program(Pipeline.of(plan))
        self.kilobytes: int = 3 + sum([len(output.regions) for output in plan.outputs])
        self.nbytes: int = sum(plan.inputs) + sum([output.nbytes for output in plan.outputs])

    @cached_property
    def is_concatenation(self) -> bool:
        """Whether the only result is the concatenation of all inputs."""
        plan, start, whole = self.plan, 0, []
        for number, nbytes in enumerate(plan.inputs):
            elements = View.packed((nbytes // plan.element_size,))
            whole.append(Region(elements.shift(start), Read(number, elements)))
            start += elements.extent
        return len(self.shapes) == 1 and [each for _, each in coalesce(plan).regions] == whole


# -- plans of views --------------------------------------------------------------------------------


def array_plan(
    itemsize: int,
    inputs: Sequence[View],
    shapes: Sequence[Ints],
    pieces: Sequence[Sequence[Region]],
) -> ArrayPlan:
    """Return the plan that writes packed arrays of some shapes, each by its own regions.

    ``inputs`` are views of the memory that is read. The regions number only the inputs that have
    elements.
    """
    outputs = []
    for shape, regions in zip(shapes, pieces, strict=True):
        if size := prod(shape):
            kept = [region for region in regions if prod(region.sizes)]
            outputs.append(Output(size * itemsize, tuple(kept)))
    nbytes = [view.extent * itemsize for view in inputs]
    return ArrayPlan(CopyPlan(itemsize, tuple(filter(None, nbytes)), tuple(outputs)), shapes)


class memoized(dict[Any, ArrayPlan]):  # noqa: N801  # a decorator
    """A cache of the plans that a function builds: ``plans[arguments]`` returns one.

    A missing plan is built. When all plans together exceed MAX_KILOBYTES, the oldest are removed. A
    plan that exists is found by ``dict`` itself, without a call of a Python function.
    """

    def __init__(self, build: Callable[..., ArrayPlan]) -> None:
        super().__init__()
        self._build = build
        self._kilobytes = 0
        self._lock = new_lock()

    def __missing__(self, arguments: tuple[Any, ...]) -> ArrayPlan:
        plan = self._build(*arguments)
        plan.program.name = self._build.__name__.strip("_")
        if is_held(self._lock):  # in a signal handler that interrupted the lock's thread
            return plan
        with self._lock:
            if arguments not in self and plan.kilobytes <= MAX_KILOBYTES:
                self[arguments] = plan
                self._kilobytes += plan.kilobytes
                self._remove_oldest()  # one plan: a loop here could keep the lock (test_locks.py)
        return plan

    def _remove_oldest(self) -> None:
        while self._kilobytes > MAX_KILOBYTES:
            self._kilobytes -= self.pop(next(iter(self))).kilobytes


def copy_view(view: View, itemsize: int) -> ArrayPlan:
    """Return the plan of a packed copy of a view."""
    return array_plan(itemsize, [view], [view.sizes], [(pack(view),)])


packing: memoized = memoized(copy_view)


@lru_cache(maxsize=64)
def gathering(view: View, itemsize: int) -> tuple[ArrayPlan, npt.NDArray[np.int64]] | None:
    """Return the plan of a packed copy that gathers blocks of a view by indices, and the indices.

    Return None if a copy without indices has few parts.
    """
    blocks = indexing.blocks_of(view, MAX_DIMS)
    if blocks is None:
        return None
    source, places = blocks
    indices = IndexTensor(1, "i8", View.packed((len(places), 1)))
    target = View.packed((len(places), *source.sizes[1:]))
    region = indexing.gather_nd(Read(0, source), indices, target, 0)
    return _plan(region, view, indices, view.sizes, itemsize), places


@memoized
def assignment(source: View, target: View, nbytes: int, itemsize: int) -> ArrayPlan:
    """Return the plan that copies a view to another of the same shape, in ``nbytes`` bytes."""
    inputs = (source.extent * itemsize,)
    plan = CopyPlan(itemsize, inputs, (Output(nbytes, (copy(source, target),)),))
    return ArrayPlan(plan, [(nbytes // itemsize,)])


# -- plans that gather and scatter: the second input has indices ----------------------------------


@memoized
def take_indices(
    source: View, indices: IndexTensor, shape: Ints, place: int, itemsize: int
) -> ArrayPlan:
    """Return the plan that copies the elements which tuples of indices select from a view.

    The indices select along the first axes of ``source``. The axes of the tuples begin at axis
    ``place`` of the result, whose shape is ``shape``.
    """
    axes = range(place, place + len(indices.view.sizes) - 1)
    target = in_front(View.packed(shape), axes)
    region = indexing.gather_nd(Read(0, source), indices, target, 0)
    return _plan(region, source, indices, shape, itemsize)


@memoized
def put_indices(
    source: View, target: View, indices: IndexTensor, place: int, nbytes: int, itemsize: int
) -> ArrayPlan:
    """Return the plan that writes to the elements which tuples of indices select from a view.

    The indices select along the first axes of ``target``, a view of ``nbytes`` bytes. The axes of
    the tuples begin at axis ``place`` of the source.
    """
    axes = range(place, place + len(indices.view.sizes) - 1)
    region = indexing.scatter_nd(Read(0, in_front(source, axes)), indices, target)
    return _plan(region, source, indices, (nbytes // itemsize,), itemsize)


@memoized
def take_along(source: View, indices: IndexTensor, axis: int, itemsize: int) -> ArrayPlan:
    """Return the plan that reads, for each index, the element at this index along an axis."""
    shape = indices.view.sizes
    region = indexing.gather_elements(Read(0, source), indices, View.packed(shape), axis)
    return _plan(region, source, indices, shape, itemsize)


@memoized
def put_along(
    source: View, target: View, indices: IndexTensor, axis: int, nbytes: int, itemsize: int
) -> ArrayPlan:
    """Return the plan that writes the element at each index of a view along an axis."""
    region = indexing.scatter_elements(Read(0, source), indices, target, axis)
    return _plan(region, source, indices, (nbytes // itemsize,), itemsize)


@memoized
def stack_indices(views: tuple[View, ...], itemsize: int) -> ArrayPlan:
    """Return the plan that stacks views of the inputs, of one shape, along a new last axis."""
    shape = (*views[0].sizes, len(views))
    target, last = View.packed(shape), len(shape) - 1
    regions = [copy(view, target.take(last, i), i) for i, view in enumerate(views)]
    return array_plan(itemsize, views, [shape], [regions])


def in_front(view: View, axes: Sequence[int]) -> View:
    """Return the view with some axes moved before the others."""
    return view.permute((*axes, *[n for n in range(len(view.sizes)) if n not in axes]))


def _plan(
    region: Region, source: View, indices: IndexTensor, shape: Ints, itemsize: int
) -> ArrayPlan:
    """Return the plan of one region that writes an array of ``shape``."""
    if not prod(region.sizes):
        return ArrayPlan(CopyPlan(itemsize, (), ()), [shape])
    inputs = (source.extent * itemsize, indices.view.extent * int(indices.dtype[1]))
    output = Output(prod(shape) * itemsize, (region,))
    return ArrayPlan(CopyPlan(itemsize, inputs, (output,)), [shape])
