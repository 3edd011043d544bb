"""Plans with indices, in the NumPy executor: against NumPy's own indexing."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from indexed_plans import elements, indexed_case

from vkops.plan import execute
from vkops.plan.algebra import coalesce, narrow, optimize
from vkops.plan.cut import cut
from vkops.plan.region import CopyPlan, Output

SEEDS = st.integers(0, 2**32)


def check(case, plan, inputs=None):
    """All elements are NumPy's, and the gaps between them stay as they were."""
    size = case.plan.element_size
    wanted = np.full(case.plan.outputs[0].nbytes, 0xA5, np.uint8)
    elements(wanted, case.target, size)[...] = case.expected
    before = [np.full(output.nbytes, 0xA5, np.uint8) for output in plan.outputs]
    made = execute(plan, inputs or case.inputs, before)
    np.testing.assert_array_equal(np.concatenate(made), wanted)


@settings(max_examples=300)
@given(seed=SEEDS)
def test_numpys_results(seed):
    case = indexed_case(np.random.default_rng(seed))
    check(case, case.plan)


@given(seed=SEEDS)
def test_optimizing_keeps_the_meaning(seed):
    case = indexed_case(np.random.default_rng(seed))
    optimized = optimize(case.plan)
    check(case, optimized)
    assert coalesce(optimized) == optimized


@given(seed=SEEDS)
def test_narrowing_keeps_the_meaning(seed):
    case = indexed_case(np.random.default_rng(seed), element_size=8)
    (output,) = case.plan.outputs
    narrowed = Output(output.nbytes, narrow(output.regions, 8, 2))
    check(case, CopyPlan(2, case.plan.inputs, (narrowed,)))


@given(seed=SEEDS)
def test_cutting_keeps_the_meaning(seed):
    random = np.random.default_rng(seed)
    case = indexed_case(random, element_size=4)
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
