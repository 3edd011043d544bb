"""The traffic that is counted from region tables, against kernels that record their accesses."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from guarded_buffers import guarded
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from indexed_plans import indexed_case
from kernel_plans import TUNINGS, columns, stream_plans, window
from logged_kernels import LoggedKernels
from strategies import input_bytes, plans

from vkops.bench.movements import ScatterRows
from vkops.bench.workloads import case_of
from vkops.gpu.kernels import encoding
from vkops.gpu.run.encoded_plan import Dispatch
from vkops.gpu.traffic.count import LINE, SEGMENTS, SUBGROUPS, count
from vkops.gpu.traffic.plans import IndexValues

CACHE = 4096

on_device = settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
GPU_TUNINGS = {"gpu": encoding.GPU, "gpu, long items": TUNINGS["gpu"], "single": TUNINGS["single"]}


@pytest.fixture(scope="module")
def kernels(device, tmp_path_factory):
    return LoggedKernels(device.executor, tmp_path_factory.mktemp("logged"))


def by_hand(accesses):
    """The bytes of touched segments, and those that move where a cache keeps some."""
    touched, groups = Counter(), {}
    for size in SUBGROUPS:
        for segment in SEGMENTS:
            found = {
                (a.is_store, a.invocation // size, a.moment, a.address // segment) for a in accesses
            }
            for is_store, *_ in found:
                touched[is_store, size, segment] += segment
    for a in accesses:
        line = (a.is_store, a.moment, a.address // LINE)
        groups.setdefault(a.invocation // 64, set()).add(line)
    moved, window_lines, total = Counter(), set(), 0
    for group in sorted(groups):
        window_lines |= {(total // CACHE, is_store, line) for is_store, _, line in groups[group]}
        total += LINE * len(groups[group])
    for _, is_store, _ in window_lines:
        moved[is_store] += LINE
    return touched, moved


def check(device, kernels, plan, tuning, inputs):
    """Compare the counts of all dispatches of a plan, and run them with recording kernels."""
    bound, sources, _ = guarded(device, plan, inputs, tuning)
    values = IndexValues({e[0].start: a for e, a in zip(sources.extents, inputs, strict=True)})
    used = set()
    for dispatch in bound:
        assert isinstance(dispatch, Dispatch)
        recorded = kernels.run(dispatch)
        traffic = count([dispatch], values, CACHE)
        touched, moved = by_hand(recorded)
        for is_store, kind in ((False, traffic.loads), (True, traffic.stores)):
            for size in SUBGROUPS:
                for segment in SEGMENTS:
                    assert kind.segments[size, segment] == touched[is_store, size, segment]
            assert kind.memory == moved[is_store]
            own = [a for a in recorded if a.is_store == is_store]
            assert kind.active == len(own)
            assert kind.requested == sum(a.nbytes for a in own)
            assert kind.count == len({(a.invocation // 64, a.moment) for a in own})
        used.add(dispatch.kernel.name)
    return used


@pytest.mark.parametrize("tuning", GPU_TUNINGS.values(), ids=GPU_TUNINGS)
@on_device
@given(plan=plans())
def test_random_plans(device, kernels, tuning, plan):
    check(device, kernels, plan, tuning, input_bytes(plan))


@pytest.mark.parametrize("tuning", GPU_TUNINGS.values(), ids=GPU_TUNINGS)
@on_device
@given(plan=stream_plans())
def test_streams(device, kernels, tuning, plan):
    check(device, kernels, plan, tuning, input_bytes(plan))


@pytest.mark.parametrize("tuning", GPU_TUNINGS.values(), ids=GPU_TUNINGS)
@settings(on_device, max_examples=120)
@given(seed=st.integers(0, 2**32 - 1))
def test_random_plans_with_indices(device, kernels, tuning, seed):
    case = indexed_case(seed)
    check(device, kernels, case.plan, tuning, case.inputs)


@pytest.mark.parametrize(
    ("plan", "name"),
    [
        (window(4, [96, 80], [1, 96]), "copy_tile_4"),
        (window(8, [6, 40, 10], [1, 6, 240]), "copy_block_8"),
        (window(8, [60, 3, 70], [1, 60, 180]), "copy_tile_8"),
        (window(16, [20, 3, 9], [1, 180, 20]), "copy_tile_16"),
        (window(4, [16, 16, 8, 4], [1, 16, 256, 2048]), "copy_tile_4"),
        (window(1, [320, 480], [1, 320]), "copy_tile_1"),
        (window(1, [32, 48], [1, 32]), "copy_block_1"),
        (window(2, [320, 48], [1, 320]), "copy_tile_2"),
        (window(2, [320, 52], [1, 320]), "copy_block_2"),
        (window(4, [5, 640], [-640, -1]), "copy_reverse"),
        (window(8, [9, 700], [1400, 2], 0, [701, 1], 1), "copy_8"),
        (window(4, [7, 30, 100], [9000, 100, 1], 1, [3007, 100, 1], 3), "copy_run"),
        (window(1, [30, 128], [1, 0], 0, [150, 1], 7), "copy_run"),
        (columns(5, 192), "copy_16"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_large_plans(device, kernels, plan, name):
    """Of several workgroups, which the cache does not keep."""
    assert check(device, kernels, plan, encoding.GPU, input_bytes(plan)) == {name}


@pytest.mark.parametrize(("row", "name"), [(8, "scatter_16"), (2, "scatter_8"), (1, "scatter_4")])
def test_rows_that_are_scattered(device, kernels, row, name):
    case = case_of("float32", ScatterRows(), (50, row), (40, 1), (40, row))
    inputs = case.inputs(np.random.default_rng(0))
    (step,) = case.desc.pipeline.steps
    stored = [np.ascontiguousarray(inputs[number]).view(np.uint8).ravel() for number in step.reads]
    assert name in check(device, kernels, step.plan, encoding.GPU, stored)
