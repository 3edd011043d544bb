"""Cutting of plans whose inputs and outputs are stored in several pieces."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import accumulate, pairwise, starmap

from vkops.plan.compose import Writers
from vkops.plan.region import CopyPlan, Output, Read, Region
from vkops.plan.view import View


def cut(
    plan: CopyPlan, inputs: Sequence[Sequence[int]], outputs: Sequence[Sequence[int]]
) -> CopyPlan:
    """Make each piece of an input or output an input or output of its own.

    Args:
        plan: what to move.
        inputs: for each input the sizes in bytes of its pieces, in order; each piece has whole
            elements. An input that holds indices is one piece.
        outputs: the same for each output.

    Returns:
        A plan whose inputs and outputs are all pieces, one after the other.

    >>> from vkops.plan import CopyPlan, Output, View
    >>> from vkops.plan.movements import copy
    >>> whole = copy(View.packed((4,)), View.packed((4,)))
    >>> plan = cut(CopyPlan(4, (16,), (Output(16, (whole,)),)), [[8, 8]], [[16]])
    >>> plan.inputs, [region.source.input for region in plan.outputs[0].regions]
    ((8, 8), [0, 1])
    """
    size = plan.element_size
    first_numbers = accumulate(map(len, inputs), initial=0)
    sources = [_Pieces(*cut, size) for cut in zip(inputs, first_numbers, strict=False)]
    cut_outputs: list[Output] = []
    for output, pieces in zip(plan.outputs, outputs, strict=True):
        targets = _Pieces(pieces, 0, size)
        regions: list[list[Region]] = [[] for _ in pieces]
        for region in output.regions:
            for number, part in _by_target(region, targets):
                regions[number].extend(_by_source(part, sources))
        cut_outputs += [
            Output(nbytes, tuple(part)) for nbytes, part in zip(pieces, regions, strict=True)
        ]
    sizes = tuple(nbytes for pieces in inputs for nbytes in pieces)
    return CopyPlan(size, sizes, tuple(cut_outputs))


class _Pieces:
    """The pieces of a tensor, numbered from ``first`` on.

    ``ranges`` holds the elements of each piece, by its number. ``writers`` are regions that copy
    the pieces to the tensor: composed with them, a region that reads the tensor reads pieces.
    """

    def __init__(self, sizes: Sequence[int], first: int, element_size: int) -> None:
        self.first = first
        edges = [end // element_size for end in accumulate(sizes, initial=0)]
        self.ranges = dict(enumerate(starmap(range, pairwise(edges)), first))
        self.writers = Writers(
            Region(
                View((len(range_),), (1,), range_.start), Read(number, View((len(range_),), (1,)))
            )
            for number, range_ in self.ranges.items()
            if range_
        )


def _by_target(region: Region, pieces: _Pieces) -> Iterator[tuple[int, Region]]:
    """The parts of a region in each piece of its output."""
    if region.kind == "scatter":
        for piece, range_, part in _by_indices(region, pieces):
            yield piece, part.shift(-range_.start, 0)
        return
    # With source and target exchanged, the region reads the output, and its readers can be cut.
    turned = Region(region.source_view, Read(0, region.target), region.indices)
    for part in pieces.writers.compose(turned):
        assert part.input is not None
        yield part.input, region.with_views(*(part.source_view, part.target, *part.index_views))


def _by_source(region: Region, pieces: Sequence[_Pieces]) -> Iterator[Region]:
    """The parts of a region that read one piece each."""
    input = region.input
    region = region.renumber({number: pieces[number].first for number in region.inputs})
    if input is None or len(pieces[input].ranges) == 1:
        yield region
    elif region.kind == "gather":
        for piece, range_, part in _by_indices(region, pieces[input]):
            yield replace(part, source=Read(piece, part.source_view.shift(-range_.start)))
    else:
        yield from pieces[input].writers.compose(region)


def _by_indices(region: Region, pieces: _Pieces) -> Iterator[tuple[int, range, Region]]:
    """Yield the region once for each piece, as only the indices tell which piece has an element."""
    assert region.indices is not None
    for piece, range_ in pieces.ranges.items():
        within, limits = region.indices.within, region.indices.limits
        if len(pieces.ranges) > 1:
            within = range(len(range_))
        if limits is not None:
            limits = range(limits.start - range_.start, limits.stop - range_.start)
        indices = replace(region.indices, within=within, limits=limits)
        yield piece, range_, replace(region, indices=indices)
