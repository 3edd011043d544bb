"""Chosen indices of an axis, described by few runs that repeat."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from processes import cpu_time

from vkops.plan import CopyPlan, Output, Read, View, execute
from vkops.plan.index_runs import IndexRun, choose
from vkops.plan.resampling import resampled_runs
from vkops.plan.size_limits import LimitError


def nearest(size, count, scale, shift=0.0):
    """The index of an axis of ``size`` elements that each of ``count`` indices reads."""
    positions = (np.arange(count) + 0.5) / scale + shift
    return np.clip(np.floor(positions), 0, size - 1).astype(np.int64)


def indices_of(runs, count):
    """The chosen indices that runs describe; each is described once."""
    indices = np.full(count, -1, np.int64)
    for run in runs:
        for again in range(run.repeats):
            target = run.target + again * run.period + np.arange(run.size)
            assert (indices[target] == -1).all()
            indices[target] = run.start + again * run.advance + run.step * np.arange(run.size)
    return indices


@given(st.lists(st.integers(0, 5), max_size=40))
def test_any_indices(indices):
    runs = resampled_runs(np.array(indices, np.int64))
    assert indices_of(runs, len(indices)).tolist() == indices


@given(
    size=st.integers(1, 300),
    count=st.integers(1, 600),
    scale=st.floats(0.05, 20) | st.sampled_from([0.5, 2 / 3, 1, 1.5, 2, 3]),
    shift=st.floats(-5, 5) | st.sampled_from([0, 0.5, 1e9, -1e9]),
    backwards=st.booleans(),
)
def test_scaled_indices_need_few_runs(size, count, scale, shift, backwards):
    indices = nearest(size, count, scale, shift)[:: -1 if backwards else 1]
    runs = resampled_runs(indices)
    assert (indices_of(runs, count) == indices).all()
    assert len(runs) <= 5 + 2.5 * count**0.5


@pytest.mark.parametrize("size", [1, 2, 5, 640])
@pytest.mark.parametrize("factor", [1, 2, 3, 7])
def test_integer_factors_make_one_run(size, factor):
    assert len(resampled_runs(nearest(size, size * factor, factor))) == 1
    assert len(resampled_runs(nearest(size * factor, size, 1 / factor))) == 1


@pytest.mark.parametrize(
    ("size", "count", "most"),
    [(512, 768, 3), (768, 512, 2), (1024, 1536, 3), (512, 1280, 5), (1000, 777, 16)],
)
def test_fractions_make_no_more_runs_than_their_numerator(size, count, most):
    assert len(resampled_runs(nearest(size, count, count / size))) <= most


def test_clamped_ends_are_runs_of_their_own():
    assert resampled_runs(np.array([0, 0, 0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 4, 4])) == [
        IndexRun(0, 5, 0, 0),
        IndexRun(5, 2, 1, 0, repeats=3, period=2, advance=1),
        IndexRun(11, 4, 4, 0),
    ]


def test_millions_of_indices_take_no_loop():
    with cpu_time(below=5):
        assert len(resampled_runs(nearest(777_777, 3_000_000, 3_000_000 / 777_777))) < 3500


def test_indices_without_a_pattern_are_refused():
    indices = np.random.default_rng(0).integers(0, 1000, 1 << 20)
    with pytest.raises(
        LimitError, match=r"^the indices of an axis make about \d+ runs, must be 65536 at most$"
    ):
        resampled_runs(indices)


@given(st.lists(st.tuples(st.integers(1, 6), st.integers(1, 9)), min_size=1, max_size=3))
def test_regions_move_what_the_indices_say(axes):
    sizes, counts = zip(*axes, strict=True)
    chosen = [nearest(size, count, count / size, 0.3) for size, count in axes]
    source = np.arange(np.prod(sizes), dtype=np.uint8).reshape(sizes)
    regions = choose(
        Read(0, View.packed(sizes)), View.packed(counts), [*map(resampled_runs, chosen)]
    )
    nbytes = int(np.prod(counts))
    plan = CopyPlan(1, (source.size,), (Output(nbytes, tuple(regions)),))
    (made,) = execute(plan, [source.reshape(-1)])
    assert (made.reshape(counts) == source[np.ix_(*chosen)]).all()
