"""Plans that gather and scatter arrays; their first input is copied, their second has indices."""

from __future__ import annotations

from math import prod

from vkops.plan.indexing import (
    IndexTensor,
    gather_elements,
    gather_nd,
    scatter_elements,
    scatter_nd,
)
from vkops.plan.movements import copy
from vkops.plan.region import CopyPlan, Output, Read, Region
from vkops.plan.view import Ints, View
from vkops.tensors.array_plan import ArrayPlan, array_plan, memoized


@memoized
def gathering(
    source: View, indices: IndexTensor, shape: Ints, place: int, itemsize: int
) -> ArrayPlan:
    """Copy what tuples of indices select from the first axes of a view.

    The axes of the tuples begin at ``place`` in the result, of shape ``shape``.
    """
    target = _in_front(View.packed(shape), place, len(indices.view.sizes) - 1)
    region = gather_nd(Read(0, source), indices, target, 0)
    return _plan(region, source, indices, shape, itemsize)


@memoized
def scattering(
    source: View, target: View, indices: IndexTensor, place: int, nbytes: int, itemsize: int
) -> ArrayPlan:
    """Copy to what tuples of indices select from the first axes of a view of ``nbytes`` bytes.

    The axes of the tuples begin at ``place`` in the source.
    """
    updates = Read(0, _in_front(source, place, len(indices.view.sizes) - 1))
    region = scatter_nd(updates, indices, target)
    return _plan(region, source, indices, (nbytes // itemsize,), itemsize)


@memoized
def gathering_along(source: View, indices: IndexTensor, axis: int, itemsize: int) -> ArrayPlan:
    """Copy one element for each index, which replaces the element's own place along an axis."""
    shape = indices.view.sizes
    region = gather_elements(Read(0, source), indices, View.packed(shape), axis)
    return _plan(region, source, indices, shape, itemsize)


@memoized
def scattering_along(
    source: View, target: View, indices: IndexTensor, axis: int, nbytes: int, itemsize: int
) -> ArrayPlan:
    """Write one element for each index to a view of ``nbytes`` bytes."""
    region = scatter_elements(Read(0, source), indices, target, axis)
    return _plan(region, source, indices, (nbytes // itemsize,), itemsize)


@memoized
def stacking(views: tuple[View, ...], itemsize: int) -> ArrayPlan:
    """Stack views of the inputs, of one shape, along a new last axis."""
    shape = (*views[0].sizes, len(views))
    target, last = View.packed(shape), len(shape) - 1
    regions = [copy(view, target.take(last, i), i) for i, view in enumerate(views)]
    return array_plan(itemsize, views, [shape], [regions])


def _in_front(view: View, place: int, count: int) -> View:
    """The view with ``count`` axes, from ``place`` on, before the others."""
    chosen = range(place, place + count)
    others = (axis for axis in range(len(view.sizes)) if axis not in chosen)
    return view.permute((*chosen, *others))


def _plan(
    region: Region, source: View, indices: IndexTensor, shape: Ints, itemsize: int
) -> ArrayPlan:
    """The plan of a region that makes an array of some shape, or writes to it."""
    if not prod(region.sizes):
        return ArrayPlan(CopyPlan(itemsize, (), ()), [shape])
    inputs = (source.extent * itemsize, indices.view.extent * int(indices.dtype[1]))
    output = Output(prod(shape) * itemsize, (region,))
    return ArrayPlan(CopyPlan(itemsize, inputs, (output,)), [shape])
