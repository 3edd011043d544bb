"""Rewrites that keep a plan's meaning: coalesce makes it small, widen makes it fast."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from math import gcd
from operator import attrgetter

from vkops.plan.region import CopyPlan, Fill, Output, Read, Region
from vkops.plan.view import View

WIDTHS = (16, 8, 4)
"""Element sizes that ``widen`` may choose, widest first; shaders load these as whole words."""


def optimize(plan: CopyPlan) -> CopyPlan:
    """Coalesce, widen, and coalesce what widening made mergeable.

    >>> from vkops.plan import CopyPlan, Output, View
    >>> from vkops.plan.movements import copy
    >>> half = copy(View.packed((8, 8)).narrow(1, 4, 4), View.packed((8, 4)))
    >>> plan = optimize(CopyPlan(4, (256,), (Output(128, (half,)),)))
    >>> plan.element_size, plan.outputs[0].regions[0].sizes
    (16, (8,))
    """
    smallest = coalesce(plan)
    widest = widen(smallest)
    return smallest if widest is smallest else coalesce(widest)


# -- coalesce ------------------------------------------------------------------------------------


def coalesce(plan: CopyPlan) -> CopyPlan:
    """Bring a plan to its canonical, smallest form: few regions with few dimensions.

    Dimensions of size 1 are dropped; dimensions that are contiguous on both sides are merged, and
    so are adjacent regions. Destination strides become positive. Dimensions are sorted by falling
    destination stride, and regions by destination. Coalescing the result changes nothing.

    >>> from vkops.plan import CopyPlan, Output, View
    >>> from vkops.plan.movements import copy
    >>> whole = copy(View.packed((2, 3, 4)), View.packed((2, 3, 4)))
    >>> coalesce(CopyPlan(4, (96,), (Output(96, (whole,)),))).outputs[0].regions[0].sizes
    (24,)
    """
    outputs = [Output(output.nbytes, merge_regions(output.regions)) for output in plan.outputs]
    return replace(plan, outputs=tuple(outputs))


# A dimension: destination stride, size, source stride, and the strides of further views. Sorted,
# this is the canonical order.
_Dim = tuple[int, ...]


def _dims(region: Region) -> list[_Dim]:
    target, source = region.target, region.source_view
    numbers = [target.strides, target.sizes, source.strides]
    if region.indices is not None:
        numbers += [view.strides for view in region.index_views]
    return list(zip(*numbers, strict=True))


def _from_dims(region: Region, dims: Iterable[_Dim], factor: int = 1) -> Region:
    """Return the region with other dimensions, in elements that are ``factor`` times as large."""
    dst_strides, sizes, src_strides, *others = zip(*dims, strict=True)
    target = View(sizes, dst_strides, region.target.offset // factor)
    source = View(sizes, src_strides, region.source_view.offset // factor)
    if region.indices is None:
        return region.with_views(target, source)
    views = zip(others, region.index_views, strict=True)
    return region.with_views(
        target, source, *[View(sizes, strides, view.offset) for strides, view in views]
    )


def coalesce_region(region: Region) -> Region:
    """Drop size-1 dimensions, merge contiguous ones, order the rest by destination stride.

    Destination strides become positive. If indices move the destination, dimensions are ordered by
    source stride instead.
    """
    target = region.target
    is_row = len(target.sizes) == 1 and target.sizes[0] != 1 and target.strides[0] > 0
    if is_row and region.indices is None:
        return region
    dims = _dims(region)
    if region.indices is None and _is_coalesced(dims):
        return region
    backwards = tuple(axis for axis, (stride, *_) in enumerate(dims) if stride < 0)
    if backwards:
        return coalesce_region(region.map(lambda view: view.flip(backwards)))
    order = _by_source if region.kind == "scatter" else None
    merged = merge_dims(sorted(dims, key=order, reverse=True))
    return _from_dims(region, merged or [(1, 1, 1, *(0 for _ in region.index_views))])


def merge_dims(dims: Iterable[_Dim]) -> list[_Dim]:
    """Merge dimensions that are contiguous in all views; drop those of size 1.

    >>> merge_dims([(12, 2, 4), (5, 1, 9), (4, 3, 8), (1, 4, 2)])
    [(12, 2, 4), (1, 12, 2)]
    """
    merged: list[_Dim] = []
    for dim in dims:
        stride, size, *strides = dim
        if size == 1:
            continue
        if merged:
            outer_stride, outer_size, *outer_strides = merged[-1]
            if outer_stride == stride * size and outer_strides == [s * size for s in strides]:
                merged[-1] = (stride, outer_size * size, *strides)
                continue
        merged.append(dim)
    return merged


def _by_source(dim: _Dim) -> tuple[int, int]:
    return abs(dim[2]), dim[0]


def _is_coalesced(dims: list[_Dim]) -> bool:
    """Whether coalescing would change nothing, as for most results of a composition."""
    before, source_before = 0, 0
    for stride, size, source_stride in reversed(dims):
        if size == 1 or stride < before:
            return False
        if (stride, source_stride) == (before, source_before):
            return False
        before, source_before = stride * size, source_stride * size
    return bool(dims)


def merge_regions(regions: Iterable[Region]) -> tuple[Region, ...]:
    """Merge neighbours until no two of them form a box together."""
    merged: list[Region] = []
    for region in sorted(map(coalesce_region, regions), key=attrgetter("target.offset")):
        # The union may in turn form a box with the region before it.
        while merged and (union := _union(merged[-1], region)) is not None:
            region = coalesce_region(union)
            merged.pop()
        merged.append(region)
    return tuple(merged)


def _union(first: Region, second: Region) -> Region | None:
    """The box that two regions form when the second continues the first along one dimension."""
    if _origin(first) != _origin(second) or first.indices or second.indices:
        return None
    step = second.target.offset - first.target.offset
    source_step = second.source_view.offset - first.source_view.offset
    dims, others = _dims(first), _dims(second)
    # A quick test for most pairs: the second does not continue the first along any dimension.
    if not any(dst * size == step for dst, size, _ in dims) and not any(
        dst == step for dst, _, _ in others
    ):
        return None
    a = {(dst, src): size for dst, size, src in dims if size != 1}
    b = {(dst, src): size for dst, size, src in others if size != 1}
    differing = {key for key in a.keys() | b.keys() if a.get(key, 1) != b.get(key, 1)}
    if len(differing) > 1:
        return None
    for key in differing or a.keys() or {(1, 1)}:
        dst, src = key
        size = a.get(key, 1)
        if step == dst * size and source_step == src * size:
            sizes = {**a, key: size + b.get(key, 1)}
            return _from_dims(first, [(d, n, s) for (d, s), n in sizes.items()])
    return None


def _origin(region: Region) -> int | Fill:
    """The input or the constant that a region copies."""
    return region.source.input if isinstance(region.source, Read) else region.source


# -- widen ---------------------------------------------------------------------------------------


def widen(plan: CopyPlan) -> CopyPlan:
    """Use the widest element of 16, 8 or 4 bytes that divides every offset, stride and run.

    A run is a dimension contiguous on both sides, without indices of its own; it shrinks as the
    element grows. A plan that cannot be widened is returned unchanged. Expects coalesced regions.

    >>> from vkops.plan import CopyPlan, Output, View
    >>> from vkops.plan.movements import copy
    >>> whole = copy(View.packed((24,)), View.packed((24,)))
    >>> plan = widen(CopyPlan(4, (96,), (Output(96, (whole,)),)))
    >>> plan.element_size, plan.outputs[0].regions[0].sizes
    (16, (6,))
    """
    regions = [region for _, region in plan.regions]
    factor = WIDTHS[0] // plan.element_size
    for region in regions:
        if factor <= 1 or (region.indices is not None and region.has_limits):
            return plan
        # Elements of several words that are scattered keep their size: see gpu/run/encoded_plan.py.
        scattered = plan.element_size > 4 and region.kind == "scatter"
        factor = 1 if scattered else gcd(factor, _common_factor(region))
    if factor <= 1 or factor * plan.element_size not in WIDTHS:
        return plan
    outputs = [
        Output(output.nbytes, tuple([_widen_region(region, factor) for region in output.regions]))
        for output in plan.outputs
    ]
    return replace(plan, element_size=plan.element_size * factor, outputs=tuple(outputs))


def _common_factor(region: Region) -> int:
    """The greatest factor that divides a region's offsets, its strides, and the size of its run."""
    factor = gcd(region.target.offset, region.source_view.offset)
    if region.indices is not None:
        factor = gcd(factor, *[term.stride for term in region.indices.terms])
    run = 1
    run_strides = _run_strides(region)
    for dst, size, *strides in _dims(region):
        if (dst, *strides) == run_strides:
            run = size
        else:
            factor = gcd(factor, dst, strides[0])
    return gcd(factor, run)


def _run_strides(region: Region) -> tuple[int, ...]:
    """Return a run's strides: in the target, the source (0 for a constant), and the indices."""
    of_indices = () if region.indices is None else (0, 0)
    return (1, int(isinstance(region.source, Read)), *of_indices)


def _scale_terms(region: Region, scale: Callable[[int], int]) -> Region:
    """A region whose indices count elements of another size."""
    if region.indices is None:
        return region
    terms = tuple(term._replace(stride=scale(term.stride)) for term in region.indices.terms)
    return replace(region, indices=replace(region.indices, terms=terms))


def _widen_region(region: Region, factor: int) -> Region:
    run_strides = _run_strides(region)
    dims = [
        (1, size // factor, *strides)
        if (dst, *strides) == run_strides
        else (dst // factor, size, strides[0] // factor, *strides[1:])
        for dst, size, *strides in _dims(region)
    ]
    if isinstance(region.source, Fill):
        region = replace(region, source=Fill(region.source.pattern * factor))
    return _from_dims(_scale_terms(region, lambda stride: stride // factor), dims, factor)


def narrow(regions: Iterable[Region], element_size: int, target_size: int) -> tuple[Region, ...]:
    """Rewrite regions for smaller elements; ``target_size`` divides ``element_size``.

    >>> from vkops.plan import View
    >>> from vkops.plan.movements import copy
    >>> [region.sizes for region in narrow([copy(View.packed((3,)), View.packed((3,)))], 8, 4)]
    [(3, 2)]
    """
    factor = element_size // target_size
    if factor == 1:
        return tuple(regions)
    return tuple(part for region in regions for part in _narrow_region(region, factor, target_size))


def _narrow_region(region: Region, factor: int, size: int) -> Iterator[Region]:
    assert not region.has_limits, "addresses count the elements of the tensor"
    narrowed = _scale_terms(region, lambda stride: stride * factor).with_views(
        _narrow_view(region.target, factor),
        _narrow_view(region.source_view, factor),
        *(view.insert(len(view.sizes), factor) for view in region.index_views),
    )
    if isinstance(region.source, Read):
        yield narrowed
        return
    for part in range(factor):
        fill = Fill(region.source.pattern[part * size : (part + 1) * size])
        yield replace(narrowed.take(len(region.sizes), part), source=fill)


def _narrow_view(view: View, factor: int) -> View:
    """A view of the same bytes as elements that are smaller by a factor."""
    strides = (*(stride * factor for stride in view.strides), 1)
    return View((*view.sizes, factor), strides, view.offset * factor)
