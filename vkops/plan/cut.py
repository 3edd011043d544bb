"""Cutting of plans whose inputs and outputs are stored in several pieces."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import accumulate, pairwise

from vkops.plan.region import CopyPlan, Output, Region
from vkops.plan.view import Ints, View


def cut(
    plan: CopyPlan, inputs: Sequence[Sequence[int]], outputs: Sequence[Sequence[int]]
) -> CopyPlan:
    """Make each piece of an input or output an input or output of its own.

    Args:
        plan: what to move.
        inputs: for each input the bytes of its pieces, in order; whole elements. Inputs that hold
            indices are of one piece.
        outputs: likewise for each output.

    Returns:
        A plan whose inputs and outputs are all pieces, one after the other.

    >>> from vkops.plan import CopyPlan, Output, View
    >>> from vkops.plan.movements import copy
    >>> whole = copy(View.packed((4,)), View.packed((4,)))
    >>> plan = cut(CopyPlan(4, (16,), (Output(16, (whole,)),)), [[8, 8]], [[16]])
    >>> plan.inputs, [region.source.input for region in plan.outputs[0].regions]
    ((8, 8), [0, 1])
    """
    input_edges = [_edges(pieces, plan.element_size) for pieces in inputs]
    first_pieces = list(accumulate(map(len, inputs), initial=0))
    cut_outputs: list[Output] = []
    for output, pieces in zip(plan.outputs, outputs, strict=True):
        edges = _edges(pieces, plan.element_size)
        regions: list[list[Region]] = [[] for _ in pieces]
        for region in output.regions:
            for number, part in _by_target(region, edges):
                regions[number].extend(_by_source(part, input_edges, first_pieces))
        cut_outputs += [
            Output(nbytes, tuple(part)) for nbytes, part in zip(pieces, regions, strict=True)
        ]
    sizes = tuple(nbytes for pieces in inputs for nbytes in pieces)
    return CopyPlan(plan.element_size, sizes, tuple(cut_outputs))


def _edges(pieces: Sequence[int], element_size: int) -> list[int]:
    """Elements at which pieces begin, and the end of the last."""
    return [end // element_size for end in accumulate(pieces, initial=0)]


def _by_target(region: Region, edges: Sequence[int]) -> Iterator[tuple[int, Region]]:
    if region.kind == "scatter":
        for piece, part in _by_indices(region, edges):
            yield piece, part.shift(-edges[piece], 0)
        return
    for piece, starts, sizes in _boxes(region.target, edges):
        yield piece, _part(region, starts, sizes).shift(-edges[piece], 0)


def _by_source(
    region: Region, edges: Sequence[Sequence[int]], first_pieces: Sequence[int]
) -> Iterator[Region]:
    numbers = {number: first_pieces[number] for number in region.inputs}
    input = region.input
    if input is None:
        yield region.renumber(numbers)
        return
    own_edges = edges[input]
    if region.kind == "gather":
        parts = _by_indices(region, own_edges)
    else:
        boxes = _boxes(region.source_view, own_edges)
        parts = ((piece, _part(region, starts, sizes)) for piece, starts, sizes in boxes)
    for piece, part in parts:
        copied = {input: first_pieces[input] + piece}
        yield part.shift(0, -own_edges[piece]).renumber(numbers | copied)


def _by_indices(region: Region, edges: Sequence[int]) -> Iterator[tuple[int, Region]]:
    """The region once for each piece: indices decide in which of them each element is."""
    assert region.indices is not None
    for piece, (start, stop) in enumerate(pairwise(edges)):
        within = None if len(edges) == 2 else range(stop - start)
        yield piece, replace(region, indices=replace(region.indices, within=within))


def _part(region: Region, starts: Ints, sizes: Ints) -> Region:
    """The part of a region from some indices on."""
    return region.map(lambda view: view.window(starts, sizes, (1,) * len(sizes)))


def _boxes(view: View, edges: Sequence[int]) -> Iterator[tuple[int, Ints, Ints]]:
    """Cut a view where its addresses cross an edge: (piece, first index, sizes) of each part."""
    sizes, strides, offset = view
    reach = [(n - 1) * stride for n, stride in zip(sizes, strides, strict=True)]
    low, high = view.bounds
    piece = bisect_right(edges, low) - 1
    if high < edges[piece + 1]:
        yield piece, (0,) * len(sizes), sizes
        return
    # Along the dimension that moves furthest, few indices have addresses on both sides.
    axis = max(range(len(sizes)), key=lambda d: abs(strides[d]) * (sizes[d] > 1))
    stride = strides[axis]
    first_low, first_high = low - min(0, reach[axis]), high - max(0, reach[axis])
    index = 0
    while index < sizes[axis]:
        low, high = first_low + index * stride, first_high + index * stride
        piece = bisect_right(edges, low) - 1
        whole = high < edges[piece + 1]
        count = 1
        if whole:
            room = edges[piece + 1] - 1 - high if stride > 0 else low - edges[piece]
            count = min(sizes[axis] - index, room // abs(stride) + 1)
        inner = (*sizes[:axis], count, *sizes[axis + 1 :])
        moved = offset + index * stride
        parts = (
            [(piece, (0,) * len(sizes), inner)]
            if whole
            else _boxes(View(inner, strides, moved), edges)
        )
        for number, starts, part in parts:
            yield number, (*starts[:axis], index, *starts[axis + 1 :]), part
        index += count
