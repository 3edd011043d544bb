"""The counted traffic of kernels, against their accesses to real data, by everyone alone."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from indexed_plans import indexed_case
from kernel_plans import (
    TUNINGS,
    box_plans,
    columns,
    padded,
    padded_plans,
    split_plans,
    stream_plans,
    window,
)
from strategies import input_bytes, plans

from vkops.bench import workloads
from vkops.debug.host_execution import HostHeap, kernel_run
from vkops.debug.traffic import ALIGNMENT, SEGMENTS, SUBGROUPS, IndexValues, count
from vkops.gpu.kernels import encoding
from vkops.gpu.kernels.layout import LINE
from vkops.gpu.run import encoded_plan
from vkops.gpu.run.encoded_plan import EncodedPlan
from vkops.interpreter.memory import MemoryVariable
from vkops.interpreter.observer import Observer
from vkops.plan.rounding import round_up
from vkops.shaders.binary import Op

CACHE = 4096
GPU_TUNINGS = pytest.mark.parametrize("tuning", [encoding.GPU, TUNINGS["gpu"], TUNINGS["single"]])


class Log(Observer):
    """Writes down each access to tensors: invocation, moment, is_store, address, bytes.

    Those with the same moment are executed together.
    """

    def __init__(self):
        self.accesses, self.moment, self.exchanging = [], 0, set()

    def access(self, kind, pointer, active):
        memory, nbytes, is_store = pointer.variable, pointer.type.nbytes, kind != "read"
        if (
            not isinstance(memory, MemoryVariable)
            or memory.kind
            or memory.element(0).startswith("table")
        ):
            return
        self.moment += 1
        first = memory.addresses(pointer.type, pointer.offset, active)
        first = np.broadcast_to(first.reshape(len(first), -1)[:, 0], len(active.who)).tolist()
        exchanges = self.machine.step.op == Op.AtomicCompareExchange
        for who, address in zip(active.who.tolist(), first, strict=True):
            # An exchange that follows another one repeats it: others changed the word meanwhile.
            if not exchanges or who not in self.exchanging:
                self.accesses.append((who, self.moment, is_store, address, nbytes))
            (self.exchanging.add if exchanges else self.exchanging.discard)(who)


def by_hand(accesses):
    """The bytes of touched segments, and those that move where a cache keeps some."""
    touched, moved, groups = Counter(), Counter(), {}
    for size in SUBGROUPS:
        for segment in SEGMENTS:
            segments = {(s, who // size, moment, a // segment) for who, moment, s, a, _ in accesses}
            for is_store, *_ in segments:
                touched[is_store, size, segment] += segment
    for who, moment, is_store, address, _ in accesses:
        groups.setdefault(who // 64, set()).add((is_store, moment, address // LINE))
    window_lines, total = set(), 0
    for group in sorted(groups):
        window_lines |= {(total // CACHE, is_store, line) for is_store, _, line in groups[group]}
        total += LINE * len(groups[group])
    for _, is_store, _ in window_lines:
        moved[is_store] += LINE
    return touched, moved


def check(plan, tuning, inputs):
    """Compare the counts of all dispatches of a plan, and run them; return the kernels' names."""
    sizes = [*plan.inputs, *[constant.nbytes for constant in plan.constants]]
    first_output, sizes = len(sizes), [*sizes, *[output.nbytes for output in plan.outputs]]
    ends = np.cumsum([0, *[round_up(size, ALIGNMENT) for size in sizes]]).tolist()
    heap = HostHeap(np.zeros(ends[-1], np.uint8))
    for start, array in zip(ends, [*inputs, *[c.array() for c in plan.constants]], strict=False):
        heap.data[start : start + array.nbytes] = array.view(np.uint8).ravel()
    used = {region.indices.input for _, region in plan.regions if region.indices}
    values = IndexValues(plan, ends, {number: inputs[number] for number in used})
    parts = EncodedPlan(plan, tuning).in_one_heap(heap, ends[:first_output], ends[first_output:-1])
    names = set()
    for dispatch in (dispatch for _, dispatches in parts for dispatch in dispatches):
        run = kernel_run(dispatch)
        run.case.run(observers=[log := Log()])
        accesses = log.accesses
        traffic = count([dispatch], values, ends[-1], CACHE)
        touched, moved = by_hand(accesses)
        for is_store, kind in ((False, traffic.loads), (True, traffic.stores)):
            for size in SUBGROUPS:
                for segment in SEGMENTS:
                    assert kind.segments[size, segment] == touched[is_store, size, segment]
            of_kind = [each for each in accesses if each[2] == is_store]
            assert (kind.memory, kind.active) == (moved[is_store], len(of_kind))
            assert kind.requested == sum(nbytes for *_, nbytes in of_kind)
            assert kind.count == len({(who // 64, moment) for who, moment, *_ in of_kind})
        names.add(dispatch.table.kernel.name)
        run.run()
    return names


@GPU_TUNINGS
@settings(max_examples=10)
@given(plan=st.one_of(plans(), stream_plans(), split_plans(), padded_plans(), box_plans()))
def test_random_plans(tuning, plan):
    check(plan, tuning, input_bytes(plan))


@GPU_TUNINGS
@settings(max_examples=8)
@given(seed=st.integers(0, 2**32 - 1))
def test_random_plans_with_indices(tuning, seed):
    case = indexed_case(seed)
    check(case.plan, tuning, case.inputs)


@pytest.mark.parametrize(
    ("plan", "name"),
    [
        (window(4, [96, 80], [1, 96]), "copy_tile_4"),
        (window(8, [2, 40, 10], [1, 4, 160]), "copy_block_8"),
        (window(2, [320, 48], [1, 320]), "copy_tile_2"),
        (window(4, [5, 640], [-640, -1]), "copy_reverse"),
        (window(4, [7, 30, 100], [9000, 100, 1], 1, [3007, 100, 1], 3), "copy_run"),
        (window(1, [9, 701], [1701, 1], 1), "copy_rows"),
        (window(1, [90, 71], [171, 1], 1), "copy_rows"),
        (window(1, [390, 11], [171, 1], 1), "copy_stream_shared"),
        (columns(5, 192), "copy_16"),
        (padded(4, (9, 100, 60), (0, 1, 1), (0, 1, 1), "reflect"), "copy_grid_4"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_large_plans(plan, name):
    """Of several workgroups, which the cache does not keep."""
    assert check(plan, encoding.GPU, input_bytes(plan)) == {name}


@pytest.mark.parametrize(
    ("dtype", "row", "name"),
    [("float32", 8, "scatter_16"), ("float32", 1, "scatter_4"), ("float16", 1, "scatter_any_2")],
)
@pytest.mark.parametrize("bound", [39, 40], ids=["several dispatches", "one dispatch"])
def test_rows_that_are_scattered(monkeypatch, dtype, row, name, bound):
    monkeypatch.setattr(encoded_plan.layout, "MAX_EXCHANGES", bound)
    case = workloads.case(dtype, workloads.ScatterRows(), (52, row), (40, 1), (40, row))
    inputs = case.inputs(np.random.default_rng(0))
    *_, step = case.desc.pipeline.steps
    stored = [np.ascontiguousarray(inputs[number]).view(np.uint8).ravel() for number in step.reads]
    assert name in check(step.plan, encoding.GPU, stored)
