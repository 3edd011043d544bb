"""Plans in chunks, each run by the NumPy executor on what the chunk says it needs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import input_bytes, plans

from vkops.plan import CopyPlan, Output, Read, Region, View, execute
from vkops.plan.chunks import ALIGNMENT, MAX_EXCESS, chunks, staged_bytes
from vkops.plan.movements import concat, copy, split


def run_in_chunks(plan, nbytes, inputs):
    """The outputs, as chunks that write so many bytes make them; and the bytes that were sent."""
    outputs = [np.zeros(output.nbytes, np.uint8) for output in plan.outputs]
    sent = 0
    for chunk in chunks(plan, nbytes):
        staged = np.full(staged_bytes(chunk.sources), 0xEE, np.uint8)
        for piece in chunk.sources:
            piece.packed(staged)[...] = piece.of(inputs)
            sent += piece.nbytes
        staging = np.full(staged_bytes(chunk.targets), 0xEE, np.uint8)
        for piece in chunk.targets:
            piece.packed(staging)[...] = piece.of(outputs)
        written = [staging[p.staged : p.staged + p.nbytes] for p in chunk.targets]
        assert sum(part.size for part in written) <= 2 * (nbytes + ALIGNMENT * len(outputs))
        execute(chunk.plan, [staged], written)
        for piece in chunk.targets:
            piece.of(outputs)[...] = piece.packed(staging)
    return outputs, sent


def check(plan, nbytes):
    """Run a plan in chunks and as a whole; return the bytes that the chunks were sent."""
    inputs = input_bytes(plan)
    outputs, sent = run_in_chunks(plan, nbytes, inputs)
    for output, expected in zip(outputs, execute(plan, inputs), strict=True):
        np.testing.assert_array_equal(output, expected)
    return sent


@given(plans(), st.integers(1, 8))
def test_chunks_make_the_whole(plan, count):
    sent = check(plan, -(-sum(output.nbytes for output in plan.outputs) // count))
    read = [region for _, region in plan.regions if region.inputs]
    moved = plan.element_size * sum(int(np.prod(region.sizes)) for region in read)
    # What aligns the begin of a piece is sent, too.
    assert sent <= MAX_EXCESS * moved


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("element_size", [1, 4])
def test_split_and_join_send_little_more_than_they_move(axis, element_size):
    whole = View.packed((300, 301))
    nbytes = 300 * 301 * element_size
    sizes = (100, 100, whole.sizes[axis] - 200)
    packed = [View.packed(whole.narrow(axis, 0, size).sizes) for size in sizes]
    part_bytes = [int(np.prod(part.sizes)) * element_size for part in packed]
    regions = zip(part_bytes, split(Read(0, whole), packed, axis), strict=True)
    outputs = [Output(n, (region,)) for n, region in regions]
    joined = concat([Read(k, part) for k, part in enumerate(packed)], whole, axis)
    for plan in (
        CopyPlan(element_size, (nbytes,), tuple(outputs)),
        CopyPlan(element_size, tuple(part_bytes), (Output(nbytes, tuple(joined)),)),
    ):
        assert check(plan, 16384) <= 1.1 * nbytes


def permuted(sizes, order, flipped=()):
    """A packed array's axes in another order, some of them reversed."""
    source = View.packed(sizes).permute(order).flip(flipped)
    return copy(source, View.packed(source.sizes))


@pytest.mark.parametrize("element_size", [1, 4])
@pytest.mark.parametrize(
    "region",
    [
        permuted((256, 257), (1, 0)),
        permuted((256, 257), (1, 0), (0,)),
        permuted((31, 40, 53), (2, 1, 0), (0, 1, 2)),
        permuted((31, 40, 53), (1, 2, 0)),
        permuted((20000, 3), (1, 0)),
        permuted((3, 20000), (1, 0)),
        copy(View.packed((256, 257)), View((256, 257), (1, 256))),
        copy(View.packed((256, 514)).narrow(1, 5, 257, 2), View.packed((256, 257))),
        Region(View.packed((64, 9, 100)), permuted((9, 64, 100), (1, 0, 2)).source),
    ],
)
def test_what_lies_apart_is_gathered(region, element_size):
    """The rows of a transpose are columns of the input: only their elements are sent, and once."""
    count = int(np.prod(region.sizes))
    nbytes = [element_size * view.extent for view in (region.source_view, region.target)]
    plan = CopyPlan(element_size, (nbytes[0],), (Output(nbytes[1], (region,)),))
    assert check(plan, nbytes[1] // 10) <= 2 * element_size * count + 20 * ALIGNMENT


def test_elements_that_repeat_are_sent_once():
    rows = View.packed((1000, 50)).narrow(1, 0, 1).broadcast((1000, 50))
    columns = rows.permute((1, 0))
    plan = CopyPlan(4, (200000,), (Output(200000, (copy(columns, View.packed((50, 1000))),)),))
    assert check(plan, 200000) == 4 * 1000


@pytest.mark.parametrize(("columns", "rows", "width"), [(300, (100,), 1200), (1000, (), 400_000)])
def test_contiguous_elements_are_sent_together(columns, rows, width):
    source = View.packed((100, 1000)).narrow(1, 0, columns)
    region = copy(source, View.packed(source.sizes))
    plan = CopyPlan(4, (400_000,), (Output(400 * columns, (region,)),))
    (chunk,) = chunks(plan, 400_000)
    assert [(piece.rows.sizes, piece.width) for piece in chunk.sources] == [(rows, width)]
