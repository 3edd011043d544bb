"""Plans with indices, in the NumPy executor: against NumPy's own indexing."""

from dataclasses import replace
from itertools import pairwise
from math import prod

import numpy as np
import pytest
from byte_arrays import elements, poisoned
from hypothesis import given
from hypothesis import strategies as st
from indexed_plans import indexed_case

from vkops.gpu.kernels.encoding import CPU, encode
from vkops.gpu.kernels.layout import Within, word
from vkops.gpu.run import encoded_plan
from vkops.gpu.run.encoded_plan import EncodedPlan
from vkops.plan import View, execute
from vkops.plan.algebra import coalesce, narrow, optimize
from vkops.plan.cut import cut
from vkops.plan.graph import RegionGraph
from vkops.plan.indexing import IndexTensor, gather, one_hot
from vkops.plan.movements import pack
from vkops.plan.region import CopyPlan, Output, Read

SEEDS = st.integers(0, 2**32)


def check(case, plan, inputs=None):
    """All elements are NumPy's, and the gaps between them stay as they were."""
    size = case.plan.element_size
    expected = poisoned(case.plan.outputs[0].nbytes)
    elements(expected, case.target, size)[...] = case.expected
    before = [poisoned(output.nbytes) for output in plan.outputs]
    result = execute(plan, inputs or case.inputs, before)
    np.testing.assert_array_equal(np.concatenate(result), expected)


@given(seed=SEEDS)
def test_numpys_results(seed):
    case = indexed_case(seed)
    check(case, case.plan)


def test_a_single_index_may_be_the_largest_number():
    source, indices = Read(0, View.packed((3,))), IndexTensor(1, "i8", View.packed(()))
    plan = CopyPlan(1, (3, 8), (Output(1, (gather(source, indices, View.packed(()), 0),)),))
    largest = np.array([2**63 - 1], np.int64).view(np.uint8)
    assert execute(plan, [np.frombuffer(b"abc", np.uint8), largest])[0].tobytes() == b"c"


@given(seed=SEEDS)
def test_optimizing_keeps_the_meaning(seed):
    case = indexed_case(seed)
    optimized = optimize(case.plan)
    check(case, optimized)
    assert coalesce(optimized) == optimized


@given(seed=SEEDS)
def test_narrowing_keeps_the_meaning(seed):
    case = indexed_case(seed, element_size=8)
    (output,) = case.plan.outputs
    narrowed = Output(output.nbytes, narrow(output.regions, 8, 2))
    check(case, CopyPlan(2, case.plan.inputs, (narrowed,)))


@given(seed=SEEDS)
def test_cutting_keeps_the_meaning(seed):
    random = np.random.default_rng(seed)
    case = indexed_case(seed, element_size=4)
    pieces = [_pieces(random, nbytes) for nbytes in case.plan.inputs]
    pieces[1] = [case.plan.inputs[1]]  # the indices
    outputs = [_pieces(random, output.nbytes) for output in case.plan.outputs]
    arrays = [
        array
        for whole, sizes in zip(case.inputs, pieces, strict=True)
        for array in np.split(whole, np.cumsum(sizes)[:-1])
    ]
    check(case, cut(case.plan, pieces, outputs), arrays)


def _pieces(random, nbytes):
    edges = sorted({0, nbytes, *(16 * random.integers(nbytes // 16 + 1, size=2)).tolist()})
    return [stop - start for start, stop in pairwise(edges)]


@given(seed=SEEDS)
def test_fusing_copies_with_gathers_and_scatters_keeps_the_meaning(seed):
    """A window of each input and of the output, flipped, with a tensor made by indices between."""
    random = np.random.default_rng(seed)
    case = indexed_case(seed, element_size=4)
    plan, graph = case.plan, RegionGraph()
    leaves, arrays = {}, {}
    for number, array in enumerate(case.inputs):
        size = 8 if number == 1 and case.plan.outputs[0].regions[-1].indices.words == 2 else 4
        leaf = graph.leaf(array.size, size)
        backwards = View.packed((array.size // size,)).flip((0,))
        leaves[number] = graph.make([pack(backwards, input=leaf)], array.size, size)
        arrays[leaf] = array.view(f"u{size}")[::-1].copy().view(np.uint8)
    (output,) = plan.outputs
    regions = [region.renumber(leaves) for region in output.regions]
    intermediate = graph.make(regions, output.nbytes, 4)
    order = tuple(int(axis) for axis in random.permutation(len(case.target.sizes)))
    turned = case.target.permute(order).flip(order[:1])
    nbytes = 4 * case.expected.size
    result = graph.make([pack(turned, input=intermediate)], nbytes, 4)
    steps = graph.lower([result])
    for step in steps:
        outputs = execute(step.plan, [arrays[number] for number in step.reads])
        arrays.update(zip(step.makes, outputs, strict=True))
    expected = np.flip(case.expected.transpose(order), order[0])
    np.testing.assert_array_equal(arrays[result].view(np.uint32), expected.reshape(-1))
    # Stored are what a gather reads, and what is scattered to; the rest is fused.
    assert len(steps) == 2 + any(region.kind == "scatter" for region in output.regions)


@given(seed=SEEDS)
def test_nothing_is_written_within_an_empty_range(seed):
    """The NumPy executor and the region table agree on it."""
    case = indexed_case(seed, element_size=4)
    (output,) = case.plan.outputs
    region = output.regions[-1]
    empty = replace(region, indices=replace(region.indices, within=range(0)))
    plan = replace(case.plan, outputs=(Output(output.nbytes, (empty,)),))
    (made,) = execute(plan, case.inputs)
    assert not made.any()
    records = encode(optimize(plan), CPU).records
    assert not records[1::3, word(Within, "number")].any()


@pytest.mark.parametrize(("axis", "sizes"), [(0, (40, 6)), (1, (6, 40)), (1, (40, 6))])
def test_elements_below_a_word_that_are_written_at_most_once_need_one_dispatch(
    monkeypatch, axis, sizes
):
    """Of those that a one-hot marks, only as many compete for a word as it has elements."""
    monkeypatch.setattr(encoded_plan.layout, "MAX_EXCHANGES", 4)
    values = [Read(number, View((), (), 0)) for number in (0, 1)]
    for rows, parts in ((1, 1), (2, 4)):  # two marks of a row may be at one place
        one_each = tuple(rows if i == axis else n for i, n in enumerate(sizes))
        indices = IndexTensor(2, "i4", View.packed(one_each))
        _, marks = one_hot(*values, indices, View.packed(sizes), axis)
        plan = CopyPlan(1, (1, 1, 4 * prod(one_each)), (Output(prod(sizes), (marks,)),))
        assert len(EncodedPlan(plan, CPU)._tables) == parts
