"""Which element of a tensor belongs to which region: all elements, or some of very many."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from vkops.explain.facts import Movement
from vkops.plan.region import Fill, Read, Region
from vkops.plan.view import View

Numbers = npt.NDArray[Any]

NONE = -1
"""The region of elements that nothing reads, or writes."""


class Box(NamedTuple):
    """A region as one tensor sees it: where it lies there, and where it reads."""

    number: int
    view: View
    source: Read | Fill


def boxes(movement: Movement, *, input: int | None = None, output: int | None = None) -> list[Box]:
    """The regions that read an input, or write an output."""
    return list(_boxes(movement.regions, input, output))


def _boxes(
    regions: Sequence[tuple[int, Region]], input: int | None, output: int | None
) -> Iterator[Box]:
    for number, (written, region) in enumerate(regions):
        source = region.source
        if output == written:
            yield Box(number, region.target, source)
        elif input is not None and isinstance(source, Read) and source.input == input:
            yield Box(number, source.view, source)


class Cells(NamedTuple):
    """For each element of a tensor: its region, and the input and the element it comes from."""

    owner: Numbers
    input: Numbers
    source: Numbers


def cells(count: int, found: Sequence[Box]) -> Cells:
    """All of a tensor of ``count`` elements; the first region that reads an element has it."""
    made = Cells(*(np.full(count, NONE) for _ in range(3)))
    for box in reversed(found):
        places = _addresses(box.view)
        made.owner[places] = box.number
        if isinstance(box.source, Read):
            made.input[places] = box.source.input
            made.source[places] = _addresses(box.source.view)
    return made


def _addresses(view: View) -> Numbers:
    places = np.array([view.offset])
    for n, stride in zip(view.sizes, view.strides, strict=True):
        places = (places[:, None] + np.arange(n) * stride).ravel()
    return places


def lookup(addresses: Numbers, found: Sequence[Box], slack: int) -> tuple[Numbers, Numbers]:
    """The regions of some elements, and how far into their source each lies, from 0 to 1.

    Elements up to ``slack`` behind one of a region count as its own, if no other has them.
    """
    owner = np.full(addresses.shape, NONE)
    depth = np.zeros(addresses.shape)
    for allowed in dict.fromkeys((0, slack)):
        for box in found:
            inside, indices = _inside(addresses, box, allowed)
            inside &= owner == NONE
            owner[inside] = box.number
            if isinstance(box.source, Read) and inside.any():
                depth[inside] = _depth(box, [index[inside] for index in indices])
    return owner, depth


def _inside(addresses: Numbers, box: Box, slack: int) -> tuple[Numbers, list[Numbers]]:
    """Which elements are in a box, and their indices in it."""
    dims = list(zip(box.view.sizes, box.view.strides, strict=True))
    rest = addresses - box.view.bounds[0]
    inside = rest >= 0
    indices = [np.zeros_like(addresses) for _ in dims]
    for axis in sorted(range(len(dims)), key=lambda axis: -abs(dims[axis][1])):
        n, stride = dims[axis]
        if stride:
            index = np.clip(rest // abs(stride), 0, n - 1)
            rest = rest - index * abs(stride)
            indices[axis] = index if stride > 0 else n - 1 - index
    return inside & (rest <= slack), indices


def _depth(box: Box, indices: Sequence[Numbers]) -> Numbers:
    """Where elements lie between the first and the last that a region reads."""
    assert isinstance(box.source, Read)
    read = box.source.view
    first, last = (bound - read.offset for bound in read.bounds)
    offsets = np.zeros(indices[0].shape)
    for index, stride in zip(indices, read.strides, strict=True):
        offsets += index * float(stride)
    return (offsets - first) / max(1, last - first)
