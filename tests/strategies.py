"""Hypothesis strategies for copy plans, shared by the pure and the device tests."""

from itertools import pairwise, product

import numpy as np
from hypothesis import strategies as st
from regions import fitting

from vkops.plan import Fill, Read, Region, View
from vkops.plan.view import packed_strides

MAX_ELEMENTS = 4000  # of an output


@st.composite
def layouts(draw, sizes):
    """A view of those sizes in which no two elements share an address: permuted, padded, offset."""
    order = draw(st.permutations(range(len(sizes))))
    strides = [0] * len(sizes)
    step = draw(st.sampled_from([1, 1, 1, 2, 3]))
    for axis in order:
        strides[axis] = step
        step = step * sizes[axis] + draw(st.sampled_from([0, 0, 0, 1, 4]))
    return View(tuple(sizes), tuple(strides), draw(st.sampled_from([0, 0, 0, 1, 4])))


def boxes(draw, sizes):
    """Cut a box into smaller ones: (start, size) per dimension for each."""
    cuts = [draw(st.lists(st.integers(1, max(1, n - 1)), max_size=2)) for n in sizes]
    edges = [sorted({0, n, *(c for c in cut if c < n)}) for n, cut in zip(sizes, cuts, strict=True)]
    return list(product(*(list(pairwise(e)) for e in edges)))


@st.composite
def plans(draw):
    """A plan whose outputs are covered by disjoint regions with sources of every kind."""
    element_size = draw(st.sampled_from([1, 2, 4, 8, 16]))
    inputs = draw(st.integers(1, 3))
    outputs = []
    for _ in range(draw(st.integers(1, 3))):
        rank = draw(st.integers(1, 4))
        sizes = tuple(draw(st.lists(st.integers(1, 9), min_size=rank, max_size=rank)))
        if draw(st.booleans()):
            sizes = (*sizes[:-1], draw(st.sampled_from([16, 32, 64, 300])))
        while np.prod(sizes) > MAX_ELEMENTS:
            sizes = sizes[1:]
        whole = draw(layouts(sizes))
        regions = []
        for box in boxes(draw, sizes):
            starts = tuple(a for a, _ in box)
            box_sizes = tuple(b - a for a, b in box)
            target = whole.window(starts, box_sizes, (1,) * len(starts))
            source = draw(_sources(target, starts, sizes, element_size, inputs))
            backwards = tuple(draw(st.sets(st.sampled_from(range(rank)))))
            regions.append(Region(target, source).map(lambda view: view.flip(backwards)))  # noqa: B023
        outputs.append(regions)
    return fitting(element_size, *outputs, inputs=inputs, unit=16)


@st.composite
def _sources(draw, target, starts, whole, element_size, inputs):
    """Where a box comes from."""
    kind = draw(st.sampled_from(["same", "same", "packed", "strided", "fill"]))
    if kind == "fill":
        pattern = draw(st.binary(min_size=element_size, max_size=element_size))
        return Fill(pattern)
    input = draw(st.integers(0, inputs - 1))
    if kind == "same":  # the output's own layout: neighbours merge, and runs widen
        strides, first = target.strides, target.offset
    elif kind == "packed":  # a piece of a packed array of the whole box
        strides = packed_strides(whole)
        first = sum(a * s for a, s in zip(starts, strides, strict=True))
    else:
        strides = tuple(draw(st.sampled_from([-7, -4, -1, 0, 1, 2, 5, 16])) for _ in target.sizes)
        first = draw(st.sampled_from([0, 3, 8])) - View(target.sizes, strides).bounds[0]
    return Read(input, View(target.sizes, strides, first))


def input_bytes(plan, seed=0):
    """Random bytes for every input of a plan."""
    random = np.random.default_rng(seed)
    return [random.integers(0, 256, nbytes, np.uint8) for nbytes in plan.inputs]


def writes(plan):
    """How often a plan writes each byte of each output."""
    counts = []
    for output in plan.outputs:
        count = np.zeros(output.nbytes // plan.element_size, int)
        for region in output.regions:
            view = region.target
            steps = zip(np.indices(view.sizes), view.strides, strict=True)
            np.add.at(count, view.offset + sum(index * stride for index, stride in steps), 1)
        counts.append(np.repeat(count, plan.element_size))
    return counts
