"""Kernels that read indices: against NumPy, every byte of the output and of what lies around it."""

import numpy as np
import pytest
from arrays import run_work
from byte_arrays import elements
from guarded_buffers import guarded
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from indexed_plans import indexed_case
from kernel_plans import TUNINGS

from vkops.gpu.kernels.layout import MAX_EXCHANGES
from vkops.gpu.run.buffer import Buffer
from vkops.gpu.run.encoded_plan import EncodedPlan
from vkops.plan import CopyPlan, Output, Read, View
from vkops.plan.indexing import IndexTensor, scatter_elements, scatter_nd

on_device = settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])


def check(device, case, tuning=None):
    bound, sources, targets = guarded(device, case.plan, case.inputs, tuning)
    run_work(device, bound)
    (output,) = targets.arrays
    elements(output, case.target, case.plan.element_size)[...] = case.expected
    sources.check()
    targets.check()


@pytest.mark.parametrize("tuning", TUNINGS.values(), ids=TUNINGS)
@on_device
@given(seed=st.integers(0, 2**32))
def test_random_plans(device, tuning, seed):
    check(device, indexed_case(seed), tuning)


@settings(on_device, max_examples=30)
@given(seed=st.integers(0, 2**32))
def test_random_plans_through_staging(staged_device, seed):
    check(staged_device, indexed_case(seed))


@pytest.mark.parametrize(
    ("element_size", "count", "dispatches"),
    [
        *[(size, 20_000, max(1, size // 4)) for size in (1, 2, 4, 8, 16)],
        *[(size, MAX_EXCHANGES, 1) for size in (1, 2)],  # each may fail after all the others
        *[(size, MAX_EXCHANGES + 1, 4 // size) for size in (1, 2)],  # none may fail
    ],
)
def test_of_several_values_for_an_element_one_remains_whole(
    device, element_size, count, dispatches
):
    """Values whose bytes are all different: a mixture of two of them is none of them."""
    random = np.random.default_rng(element_size)
    values = random.integers(0, 256, (count, 1), np.uint8).repeat(element_size, 1)
    places = random.integers(0, 7, count).astype(np.int32)
    nbytes = 16 * element_size
    updates, indices = View.packed((count,)), IndexTensor(1, "i4", View.packed((count,)))
    region = scatter_elements(Read(0, updates), indices, View.packed((16,)), 0)
    plan = CopyPlan(element_size, (count * element_size, 4 * count), (Output(nbytes, (region,)),))
    buffers = [Buffer(device, n) for n in (*plan.inputs, nbytes)]
    for buffer, array in zip(buffers, (values, places, np.zeros(nbytes, np.uint8)), strict=True):
        buffer.write(array)
    bound = EncodedPlan(plan, device.tuning).bind(
        [buffer.extents for buffer in buffers[:2]], [buffers[2].extents]
    )
    assert len(bound) == dispatches
    for _ in range(20):
        run_work(device, bound)
        rows = buffers[2].array().reshape(16, element_size)
        for place in range(7):
            (value,) = set(rows[place].tolist())
            assert value in values[places == place]
        assert not rows[7:].any()


def test_rows_of_words_are_scattered_by_one_dispatch(device):
    """A row is moved in vectors, but its elements are words, which no dispatch writes in parts."""
    rows = View.packed((6, 8))
    updates, indices = View.packed((3, 8)), IndexTensor(1, "i4", View.packed((3, 1)))
    region = scatter_nd(Read(0, updates), indices, rows)
    plan = CopyPlan(4, (96, 12), (Output(192, (region,)),))
    buffers = [Buffer(device, n) for n in (96, 12, 192)]
    (work,) = EncodedPlan(plan, device.tuning).bind(
        [buffer.extents for buffer in buffers[:2]], [buffers[2].extents]
    )
    assert work.table.kernel.name == "scatter_16"
