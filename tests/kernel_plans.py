"""Plans that make the kernels do what they have to, and ways to share the work among invocations."""

from dataclasses import replace
from itertools import accumulate, product
from math import prod

from hypothesis import strategies as st
from regions import fitting, make_region

from vkops.gpu.kernels import encoding
from vkops.gpu.kernels.encoding import Tuning
from vkops.gpu.kernels.layout import MAX_RECORDS
from vkops.plan import CopyPlan, Fill, Output, Read, View
from vkops.plan.index_runs import pad_with_copies
from vkops.plan.movements import copy


class Long(Tuning):
    """Items have as many steps and rows as they may, in small plans, too."""

    def for_bytes(self, nbytes, step_bytes):
        return self


TUNINGS = {
    "cpu": Long(steps=40, item_bytes=0, across=8, workgroups=1, is_cpu=True, long_run=4),
    "gpu": replace(encoding.GPU, workgroups=1),
    "single": Tuning(1, 1, 1, 1, True, 1, sources=1),
}


def window(element_size, sizes, strides, offset=0, dst_strides=None, dst_offset=0):
    """A plan with one region from an input just large enough."""
    target = View.packed(tuple(sizes))
    if dst_strides is not None:
        target = View(target.sizes, tuple(dst_strides), dst_offset)
    first = offset - View(target.sizes, strides).bounds[0]
    return fitting(element_size, [copy(View(target.sizes, tuple(strides), first), target)])


def several(element_size, length, count, gap):
    """Runs that lie apart in the source, side by side in the destination."""
    run = View((length,), (1,))
    runs = [copy(run.shift((length + gap) * k), run.shift(length * k)) for k in range(count)]
    return fitting(element_size, runs)


def columns(count, rows, words=4, gap=0):
    """The parts of each row, to outputs of their own."""
    part, target = View((rows, words), (count * words + gap, 1), 0), View.packed((rows, words))
    return fitting(4, *([copy(part.shift(k * words), target)] for k in range(count)))


def constants(element_size):
    """Two regions of constants, one of them strided."""
    pattern = bytes(range(1, element_size + 1))
    regions = (
        make_region((5, 7), 3, (20, 2), Fill(pattern)),
        make_region((100,), 120, (1,), Fill(pattern[::-1])),
    )
    return CopyPlan(element_size, (), (Output(256 * element_size, regions),))


def more_regions_than_a_table_holds():
    count = MAX_RECORDS + 10
    regions = tuple(
        make_region((3,), 4 * i, (1,), (0, 3 * (count - 1 - i), (1,))) for i in range(count)
    )
    return CopyPlan(4, (12 * count,), (Output(16 * count, regions),))


def padded(element_size, sizes, before, after, mode):
    """An array with a border of its own elements."""
    whole = [sum(parts) for parts in zip(sizes, before, after, strict=True)]
    source, target = Read(0, View.packed(tuple(sizes))), View.packed(tuple(whole))
    return fitting(element_size, pad_with_copies(source, target, before, after, mode))


@st.composite
def stream_plans(draw):
    """Outputs of rows of segments, each from anywhere, of every length from 8 bytes on."""
    element_size = draw(st.sampled_from([1, 1, 2, 4]))
    outputs = []
    for _ in range(draw(st.integers(1, 2))):
        rows = draw(st.sampled_from([1, 2, 7, 50]))
        shortest = 8 // element_size
        lengths = draw(st.lists(st.integers(shortest, 40), min_size=1, max_size=7))
        row, start, regions = sum(lengths), 0, []
        for length in lengths:
            target = View((rows, length), (row, 1), start)
            stride = draw(st.sampled_from([0, 1, length, length + 3, 64, -length]))
            first = draw(st.integers(0, 40)) + max(0, -stride) * (rows - 1)
            source = View((rows, length), (stride, 1), first)
            regions.append(copy(source, target, draw(st.integers(0, 1))))
            start += length
        outputs.append(regions)
    return fitting(element_size, *outputs, unit=16)


@st.composite
def split_plans(draw):
    """Rows that are split into several outputs, which is best done together."""
    element_size, count = draw(st.sampled_from([1, 2, 4])), draw(st.integers(2, 5))
    width, rows = draw(st.integers(1, 90)), draw(st.sampled_from([1, 8, 64, 100, 256, 300]))
    row, first = count * width + draw(st.integers(0, 5)), draw(st.integers(0, 5))
    part, target = View((rows, width), (row, 1), first), View.packed((rows, width))
    return fitting(element_size, *([copy(part.shift(k * width), target)] for k in range(count)))


@st.composite
def padded_plans(draw):
    """Arrays of up to four dimensions with a border of their own elements."""
    element_size, rank = draw(st.sampled_from([1, 2, 4, 8])), draw(st.integers(1, 4))
    sizes = [draw(st.integers(3, 40 if k == rank - 1 else 9)) for k in range(rank)]
    before, after = ([draw(st.integers(0, 2)) for _ in sizes] for _ in range(2))
    return padded(element_size, sizes, before, after, draw(st.sampled_from(["reflect", "edge"])))


@st.composite
def grid_plans(draw):
    """Outputs of up to four dimensions, each of one to four parts with strides of their own."""
    element_size, rank, outputs = draw(st.sampled_from([1, 2, 4, 8])), draw(st.integers(1, 4)), []
    for _ in range(draw(st.integers(1, 2))):
        dims = []  # of each, its parts: their starts, counts, first addresses and strides
        for axis in range(rank):
            counts = draw(
                st.lists(st.integers(1, 40 if axis == rank - 1 else 5), min_size=1, max_size=4)
            )
            parts = []
            for start, count in zip(accumulate([0, *counts]), counts, strict=False):
                stride = draw(st.sampled_from([-41, -7, -1, 0, 1, 1, 5, 43]))
                first = draw(st.integers(0, 50)) - min(0, stride * (count - 1))
                parts.append((start, count, first, stride))
            dims.append(parts)
        target = View.packed(tuple([sum([part[1] for part in parts]) for parts in dims]))
        regions = []
        for cell in product(*dims):
            starts, sizes, firsts, strides = zip(*cell, strict=True)
            offset = sum([n * step for n, step in zip(starts, target.strides, strict=True)])
            source = View(sizes, strides, sum(firsts))
            regions.append(copy(source, View(sizes, target.strides, offset)))
        outputs.append(regions)
    return fitting(element_size, *outputs)


@st.composite
def box_plans(draw):
    """A box of up to 200 kB with repeated, reversed and padded dimensions in any order."""
    element_size, rank = draw(st.sampled_from([1, 2, 4, 8, 16])), draw(st.integers(2, 5))
    lengths = st.sampled_from([1, 2, 3, 4, 5, 7, 9, 16, 33, 64, 75, 128, 250])
    sizes = [draw(lengths if k >= rank - 2 else st.integers(1, 6)) for k in range(rank)]
    while prod(sizes) * element_size > 200_000:
        sizes[sizes.index(max(sizes))] //= 2
    axes, strides, step = list(range(rank))[::-1], [0] * rank, 1
    for axis in draw(st.one_of(st.just(axes), st.permutations(axes))):
        kind = draw(st.sampled_from(["", "", "", "repeated", "padded", "reversed"]))
        if kind != "repeated":
            strides[axis] = -step if kind == "reversed" else step
            step = step * sizes[axis] + (draw(st.integers(1, 9)) if kind == "padded" else 0)
    dst, offset = None, 0
    if draw(st.integers(0, 2)) == 0:
        dst, step, offset = [0] * rank, 1, draw(st.integers(0, 9))
        for axis in axes:
            dst[axis], step = step, step * sizes[axis] + draw(st.sampled_from([0, 0, 1, 3, 4]))
    first = draw(st.sampled_from([0, 1, 2, 3, 4, 8, 16]))
    return window(element_size, sizes, strides, first, dst, offset)
