"""Cutting: a plan whose inputs and outputs lie in pieces becomes one over the pieces."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import accumulate

from vkops.plan.region import CopyPlan, Ints, Output, Read, Region


def cut(
    plan: CopyPlan, inputs: Sequence[Sequence[int]], outputs: Sequence[Sequence[int]]
) -> CopyPlan:
    """Number each piece of an input or output as one of its own.

    Args:
        plan: what to move.
        inputs: for each input the bytes of its pieces, in order; whole elements.
        outputs: likewise for each output.

    Returns:
        A plan whose inputs and outputs are all pieces, one after the other.

    >>> from vkops.plan import CopyPlan, Output, View
    >>> from vkops.plan.view import copy
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
    for piece, starts, sizes in _boxes(region.sizes, region.dst_offset, region.dst_strides, edges):
        part = _box(region, starts, sizes)
        yield piece, replace(part, dst_offset=part.dst_offset - edges[piece])


def _by_source(
    region: Region, edges: Sequence[Sequence[int]], first_pieces: Sequence[int]
) -> Iterator[Region]:
    read = region.source
    if not isinstance(read, Read):
        yield region
        return
    own_edges = edges[read.input]
    for piece, starts, sizes in _boxes(region.sizes, read.offset, read.strides, own_edges):
        part = _box(region, starts, sizes)
        assert isinstance(part.source, Read)
        source = replace(
            part.source,
            input=first_pieces[read.input] + piece,
            offset=part.source.offset - own_edges[piece],
        )
        yield replace(part, source=source)


def _box(region: Region, starts: Ints, sizes: Ints) -> Region:
    """A part of a region."""
    source = region.source
    if isinstance(source, Read):
        source = replace(source, offset=_address(source.offset, source.strides, starts))
    dst_offset = _address(region.dst_offset, region.dst_strides, starts)
    return Region(sizes, dst_offset, region.dst_strides, source)


def _address(offset: int, strides: Ints, index: Ints) -> int:
    return offset + sum(i * stride for i, stride in zip(index, strides, strict=True))


def _boxes(
    sizes: Ints, offset: int, strides: Ints, edges: Sequence[int]
) -> Iterator[tuple[int, Ints, Ints]]:
    """Cut a box where its addresses cross an edge: (piece, first index, sizes) of each part."""
    reach = [(n - 1) * stride for n, stride in zip(sizes, strides, strict=True)]
    low, high = offset + sum(min(0, r) for r in reach), offset + sum(max(0, r) for r in reach)
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
            [(piece, (0,) * len(sizes), inner)] if whole else _boxes(inner, moved, strides, edges)
        )
        for number, starts, part in parts:
            yield number, (*starts[:axis], index, *starts[axis + 1 :]), part
        index += count
