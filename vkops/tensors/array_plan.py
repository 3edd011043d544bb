"""Programs of array functions: memoized plans between views of memory, and the results' shapes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from math import prod
from typing import Any

from vkops.gpu.run.program import Program
from vkops.plan import indexing
from vkops.plan.algebra import coalesce
from vkops.plan.graph import Pipeline
from vkops.plan.indexing import IndexTensor
from vkops.plan.movements import copy, pack
from vkops.plan.region import CopyPlan, Output, Read, Region
from vkops.plan.view import Ints, View
from vkops.system.locks import Lock

MAX_KILOBYTES = 8192
"""Approximate size of the plans that one function keeps: 3 kB each, and 1 kB per region."""


class ArrayPlan:
    """The program of an array function, and the shapes of its results.

    Arrays without elements take no part: they have no regions, and are not among the plan's inputs
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
        """Whether the only result has the elements of all inputs, one input after the other."""
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
    """The plan that makes packed arrays of some shapes, each from its own regions.

    Inputs are views of the memory that is read; regions number only the inputs with elements.
    """
    outputs = []
    for shape, regions in zip(shapes, pieces, strict=True):
        if size := prod(shape):
            kept = [region for region in regions if prod(region.sizes)]
            outputs.append(Output(size * itemsize, tuple(kept)))
    nbytes = [view.extent * itemsize for view in inputs]
    return ArrayPlan(CopyPlan(itemsize, tuple(filter(None, nbytes)), tuple(outputs)), shapes)


class memoized(dict[Any, ArrayPlan]):  # noqa: N801  # a decorator
    """The plans that a function has built, by its arguments: ``plans[arguments]`` returns one.

    A plan that is missing is built. The oldest ones go when all together are larger than
    MAX_KILOBYTES. A dictionary finds a plan without a call of Python's.
    """

    def __init__(self, build: Callable[..., ArrayPlan]) -> None:
        super().__init__()
        self._build = build
        self._kilobytes = 0
        self._lock = Lock()

    def __missing__(self, arguments: tuple[Any, ...]) -> ArrayPlan:
        plan = self._build(*arguments)
        plan.program.name = self._build.__name__.strip("_")
        with self._lock:
            if arguments not in self and plan.kilobytes <= MAX_KILOBYTES:
                self[arguments] = plan
                self._kilobytes += plan.kilobytes
                self._remove_oldest()  # a loop here could keep the lock (test_locks.py)
        return plan

    def _remove_oldest(self) -> None:
        while self._kilobytes > MAX_KILOBYTES:
            self._kilobytes -= self.pop(next(iter(self))).kilobytes


def copy_view(view: View, itemsize: int) -> ArrayPlan:
    """The plan of a packed copy of a view."""
    return array_plan(itemsize, [view], [view.sizes], [(pack(view),)])


packing: memoized = memoized(copy_view)


@memoized
def assignment(source: View, target: View, nbytes: int, itemsize: int) -> ArrayPlan:
    """Copy a view of a tensor to a view, of the same shape, of a tensor of ``nbytes`` bytes."""
    inputs = (source.extent * itemsize,)
    plan = CopyPlan(itemsize, inputs, (Output(nbytes, (copy(source, target),)),))
    return ArrayPlan(plan, [(nbytes // itemsize,)])


# -- plans that gather and scatter: the second input has indices ----------------------------------


@memoized
def take_indices(
    source: View, indices: IndexTensor, shape: Ints, place: int, itemsize: int
) -> ArrayPlan:
    """Copy what tuples of indices select from the first axes of a view.

    The axes of the tuples begin at ``place`` in the result, of shape ``shape``.
    """
    axes = range(place, place + len(indices.view.sizes) - 1)
    target = in_front(View.packed(shape), axes)
    region = indexing.gather_nd(Read(0, source), indices, target, 0)
    return _plan(region, source, indices, shape, itemsize)


@memoized
def put_indices(
    source: View, target: View, indices: IndexTensor, place: int, nbytes: int, itemsize: int
) -> ArrayPlan:
    """Copy to what tuples of indices select from the first axes of a view of ``nbytes`` bytes.

    The axes of the tuples begin at ``place`` in the source.
    """
    axes = range(place, place + len(indices.view.sizes) - 1)
    region = indexing.scatter_nd(Read(0, in_front(source, axes)), indices, target)
    return _plan(region, source, indices, (nbytes // itemsize,), itemsize)


@memoized
def take_along(source: View, indices: IndexTensor, axis: int, itemsize: int) -> ArrayPlan:
    """Copy one element for each index, which replaces the element's own place along an axis."""
    shape = indices.view.sizes
    region = indexing.gather_elements(Read(0, source), indices, View.packed(shape), axis)
    return _plan(region, source, indices, shape, itemsize)


@memoized
def put_along(
    source: View, target: View, indices: IndexTensor, axis: int, nbytes: int, itemsize: int
) -> ArrayPlan:
    """Write one element for each index to a view of ``nbytes`` bytes."""
    region = indexing.scatter_elements(Read(0, source), indices, target, axis)
    return _plan(region, source, indices, (nbytes // itemsize,), itemsize)


@memoized
def stack_indices(views: tuple[View, ...], itemsize: int) -> ArrayPlan:
    """Stack views of the inputs, of one shape, along a new last axis."""
    shape = (*views[0].sizes, len(views))
    target, last = View.packed(shape), len(shape) - 1
    regions = [copy(view, target.take(last, i), i) for i, view in enumerate(views)]
    return array_plan(itemsize, views, [shape], [regions])


def in_front(view: View, axes: Sequence[int]) -> View:
    """The view with some axes before the others."""
    return view.permute((*axes, *[n for n in range(len(view.sizes)) if n not in axes]))


def _plan(
    region: Region, source: View, indices: IndexTensor, shape: Ints, itemsize: int
) -> ArrayPlan:
    """The plan of a region that makes an array of some shape, or writes to it."""
    if not prod(region.sizes):
        return ArrayPlan(CopyPlan(itemsize, (), ()), [shape])
    inputs = (source.extent * itemsize, indices.view.extent * int(indices.dtype[1]))
    output = Output(prod(shape) * itemsize, (region,))
    return ArrayPlan(CopyPlan(itemsize, inputs, (output,)), [shape])
