"""Hypothesis strategies for copy plans, shared by the pure and the device tests."""

from itertools import pairwise, product

import numpy as np
from hypothesis import strategies as st

from vkops.plan import CopyPlan, Fill, Output, Read, Region, View
from vkops.plan.view import packed_strides

ELEMENT_SIZES = (1, 2, 4, 8, 16)


@st.composite
def layouts(draw, sizes, *, padded=True):
    """A view of those sizes in which no two elements share an address: permuted, padded, offset."""
    order = draw(st.permutations(range(len(sizes))))
    strides = [0] * len(sizes)
    step = draw(st.sampled_from([1, 1, 1, 2, 3])) if padded else 1
    for axis in order:
        strides[axis] = step
        step *= sizes[axis]
        if padded:
            step += draw(st.sampled_from([0, 0, 0, 1, 4]))
    offset = draw(st.sampled_from([0, 0, 0, 1, 4])) if padded else 0
    return View(tuple(sizes), tuple(strides), offset)


def boxes(draw, sizes):
    """Cut a box into smaller ones: (start, size) per dimension for each."""
    cuts = [draw(st.lists(st.integers(1, max(1, n - 1)), max_size=2)) for n in sizes]
    edges = [sorted({0, n, *(c for c in cut if c < n)}) for n, cut in zip(sizes, cuts, strict=True)]
    return list(product(*(list(pairwise(e)) for e in edges)))


@st.composite
def plans(draw, max_elements=4000, element_sizes=ELEMENT_SIZES):
    """A plan whose outputs are covered by disjoint regions with sources of every kind."""
    element_size = draw(st.sampled_from(element_sizes))
    input_count = draw(st.integers(1, 3))
    ends = [1] * input_count
    outputs = []
    for _ in range(draw(st.integers(1, 3))):
        rank = draw(st.integers(1, 4))
        sizes = tuple(draw(st.lists(st.integers(1, 9), min_size=rank, max_size=rank)))
        if draw(st.booleans()):
            sizes = (*sizes[:-1], draw(st.sampled_from([16, 32, 64, 300])))
        while np.prod(sizes) > max_elements:
            sizes = sizes[1:]
        whole = draw(layouts(sizes))
        regions = []
        for box in boxes(draw, sizes):
            starts = tuple(a for a, _ in box)
            box_sizes = tuple(b - a for a, b in box)
            target = whole.window(starts, box_sizes, (1,) * len(starts))
            source = draw(_sources(target, starts, sizes, element_size, ends))
            backwards = tuple(draw(st.sets(st.sampled_from(range(rank)))))
            regions.append(Region(target, source).map(lambda view: view.flip(backwards)))  # noqa: B023
        last = max(r.target.bounds[1] for r in regions)
        outputs.append(Output(_words((last + 1) * element_size), tuple(regions)))
    inputs = tuple(_words(end * element_size) for end in ends)
    return CopyPlan(element_size, inputs, tuple(outputs))


def _words(nbytes):
    return -(-nbytes // 16) * 16


@st.composite
def _sources(draw, target, starts, whole, element_size, ends):
    """Where a box comes from; grows ``ends[input]`` to what it reads."""
    kind = draw(st.sampled_from(["same", "same", "packed", "strided", "fill"]))
    if kind == "fill":
        pattern = draw(st.binary(min_size=element_size, max_size=element_size))
        return Fill(pattern)
    input = draw(st.integers(0, len(ends) - 1))
    if kind == "same":  # the output's own layout: neighbours merge, and runs widen
        strides, first = target.strides, target.offset
    elif kind == "packed":  # a piece of a packed array of the whole box
        strides = packed_strides(whole)
        first = sum(a * s for a, s in zip(starts, strides, strict=True))
    else:
        strides = tuple(draw(st.sampled_from([-7, -4, -1, 0, 1, 2, 5, 16])) for _ in target.sizes)
        first = draw(st.sampled_from([0, 3, 8]))
        first -= sum(min(0, (n - 1) * s) for n, s in zip(target.sizes, strides, strict=True))
    reach = sum(max(0, (n - 1) * s) for n, s in zip(target.sizes, strides, strict=True))
    ends[input] = max(ends[input], first + reach + 1)
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
