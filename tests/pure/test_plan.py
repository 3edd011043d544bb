"""The plan's algebra against the NumPy executor, on random plans."""

from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from regions import make_region
from strategies import input_bytes, plans, writes

from vkops.plan import CopyPlan, Fill, Output, Read, View, execute
from vkops.plan.algebra import WIDTHS, coalesce, optimize, widen
from vkops.plan.cut import cut
from vkops.plan.index_runs import pad_count, pad_with_copies
from vkops.plan.movements import copy


def one_region(region, element_size=4):
    return CopyPlan(element_size, (1 << 16,), (Output(1 << 16, (region,)),))


def only_region(plan):
    ((region,),) = [output.regions for output in plan.outputs]
    return region


def same_result(a, b):
    inputs = input_bytes(a)
    for left, right in zip(execute(a, inputs), execute(b, inputs), strict=True):
        np.testing.assert_array_equal(left, right)


@given(plans())
def test_coalesce(plan):
    """It keeps the meaning, makes the canonical form, and leaves that as it is."""
    once = coalesce(plan)
    same_result(plan, once)
    assert coalesce(once) == once
    for output in once.outputs:
        offsets = [region.target.offset for region in output.regions]
        assert offsets == sorted(offsets)
        for region in output.regions:
            assert all(n > 1 for n in region.sizes) or region.sizes == (1,)
            assert all(a > b for a, b in pairwise((*region.target.strides, 0)))


@given(plans())
def test_optimize(plan):
    """It keeps the meaning, writes each byte once, and leaves what it made as it is."""
    best = optimize(plan)
    same_result(plan, best)
    assert optimize(best) == best
    for before, after in zip(writes(plan), writes(best), strict=True):
        assert before.max() == 1
        np.testing.assert_array_equal(before, after)
    # No wider element divides all figures; tried by brute force.
    for wider in WIDTHS:
        if wider <= best.element_size:
            break
        factor = wider // best.element_size
        assert not all(
            divides(region, factor) for output in best.outputs for region in output.regions
        )


def divides(region, factor):
    if isinstance(region.source, Fill) or region.target.offset % factor:
        return False
    dims = list(zip(region.sizes, region.target.strides, region.source_view.strides, strict=True))
    run = next((n for n, d, s in dims if (d, s) == (1, 1)), 1)
    rest = [x for _, d, s in dims if (d, s) != (1, 1) for x in (d, s)]
    return not any(x % factor for x in (region.source_view.offset, run, *rest))


def test_split_then_join_is_one_copy():
    """Pieces of a row-major array put back in place merge into one contiguous run."""
    whole = View.packed((6, 4, 10))
    regions = tuple(
        copy(whole.narrow(1, start, 1), whole.narrow(1, start, 1)) for start in range(4)
    )
    plan = CopyPlan(4, (960,), (Output(960, regions),))
    assert optimize(plan) == CopyPlan(
        16, (960,), (Output(960, (make_region((60,), 0, (1,), (0, 0, (1,))),)),)
    )


@pytest.mark.parametrize(
    ("region", "coalesced"),
    [
        # Contiguous dimensions merge, and those of size 1 go; a transpose keeps both.
        (((2, 1, 3, 4), 5, (12, 99, 4, 1), (0, 7, (24, -5, 8, 2))), ((24,), 5, (1,), (0, 7, (2,)))),
        (((3, 4), 0, (1, 3), (0, 0, (4, 1))), ((4, 3), 0, (3, 1), (0, 0, (1, 4)))),
        (((3, 4), 0, (4, 1), (0, 2, (0, 0))), ((12,), 0, (1,), (0, 2, (0,)))),
    ],
)
def test_coalesced_regions(region, coalesced):
    result = only_region(coalesce(one_region(make_region(*region))))
    assert result == make_region(*coalesced)


@pytest.mark.parametrize("other", [b"\1\2", b"\1\3"])
def test_equal_constants_merge_by_destination_alone(other):
    regions = (make_region((8,), 0, (1,), Fill(b"\1\2")), make_region((8,), 8, (1,), Fill(other)))
    result = coalesce(CopyPlan(2, (), (Output(32, regions),))).outputs[0].regions
    assert result == (regions if other != b"\1\2" else (make_region((16,), 0, (1,), Fill(other)),))


@pytest.mark.parametrize(
    ("element_size", "run", "offset", "stride", "widened"),
    [
        (4, 8, 0, 16, 16),
        (4, 8, 4, 16, 16),
        (4, 6, 0, 16, 8),
        (4, 8, 2, 16, 8),
        (4, 8, 0, 18, 8),
        (4, 7, 0, 16, 4),
        (2, 8, 0, 16, 16),
        (2, 8, 0, 12, 8),
        (2, 8, 0, 10, 4),
        (2, 8, 0, 9, 2),
        (1, 4, 0, 20, 4),
        (1, 2, 0, 20, 1),  # there is no 2-byte element to load: below a word, bytes stay bytes
        (8, 2, 0, 6, 16),
        (16, 1, 1, 3, 16),
    ],
)
def test_widen(element_size, run, offset, stride, widened):
    region = make_region((3, run), 0, (run, 1), (0, offset, (stride, 1)))
    assert widen(coalesce(one_region(region, element_size))).element_size == widened


@given(plans(), st.data())
def test_cut_keeps_meaning(plan, data):
    """Wherever inputs and outputs are cut between vectors, the pieces make up the whole."""

    def pieces(nbytes):
        cuts = data.draw(st.sets(st.integers(0, nbytes // 16), max_size=3))
        return [(b - a) * 16 for a, b in pairwise(sorted({0, nbytes // 16, *cuts}))]

    sources = [pieces(nbytes) for nbytes in plan.inputs]
    targets = [pieces(output.nbytes) for output in plan.outputs]
    inputs = input_bytes(plan)
    cut_inputs = [
        part
        for array, sizes in zip(inputs, sources, strict=True)
        for part in np.split(array, np.cumsum(sizes)[:-1])
    ]
    result = cut(plan, sources, targets)
    assert result.inputs == tuple(part.size for part in cut_inputs)
    results = iter(execute(coalesce(result), cut_inputs))
    for sizes, expected in zip(targets, execute(plan, inputs), strict=True):
        np.testing.assert_array_equal(np.concatenate([next(results) for _ in sizes]), expected)


def test_cut_makes_few_regions():
    """A box that crosses an edge becomes at most two boxes more for each dimension."""
    whole = View.packed((100, 100, 100))
    plan = CopyPlan(4, (4_000_000,), (Output(4_000_000, (copy(whole, whole),)),))
    (first, second) = cut(plan, [[4_000_000]], [[1_999_984, 2_000_016]]).outputs
    assert max(len(first.regions), len(second.regions)) <= 3


@pytest.mark.parametrize("mode", ["edge", "reflect", "symmetric", "wrap"])
@pytest.mark.parametrize("size", range(1, 6))
def test_padding_with_copies_keeps_the_source_whole(mode, size):
    """Its elements in their order are one region; ``pad_count`` knows the number of all."""
    numbers = np.arange(size, dtype=np.uint8)
    for before, after in product(range(13), range(13)):
        source, target = Read(0, View.packed((size,))), View.packed((before + size + after,))
        regions = list(pad_with_copies(source, target, (before,), (after,), mode))
        assert len(regions) == pad_count((size,), (before,), (after,), mode)
        middle = [region for region in regions if region.target.offset == before]
        assert [region.source_view.sizes for region in middle] == [(size,)] or size == 1
        nbytes = -(-target.sizes[0] // 4) * 4
        plan = CopyPlan(1, (size,), (Output(nbytes, tuple(regions)),))
        (made,) = execute(plan, [numbers])
        padded = np.pad(numbers, (before, after), mode)
        np.testing.assert_array_equal(made[: padded.size], padded)
