"""The traffic that is counted from region tables, against the accesses of kernels in the interpreter."""

from __future__ import annotations

from collections import Counter
from math import prod
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from indexed_plans import indexed_case
from kernel_plans import (
    TUNINGS,
    box_plans,
    columns,
    padded_plans,
    split_plans,
    stream_plans,
    window,
)
from strategies import input_bytes, plans

from vkops.bench.movements import ScatterRows
from vkops.bench.workloads import case_of
from vkops.debug.interpreter.memory import Memory
from vkops.debug.interpreter.scheduler import Run
from vkops.debug.model_dispatches import HostHeap, kernel_run
from vkops.gpu.kernels import encoding
from vkops.gpu.kernels.layout import LINE
from vkops.gpu.run import encoded_plan
from vkops.gpu.run.encoded_plan import EncodedPlan
from vkops.gpu.traffic.count import SEGMENTS, SUBGROUPS, count
from vkops.gpu.traffic.plans import ALIGNMENT, IndexValues
from vkops.plan.indexing import IndexTensor, Read, one_hot
from vkops.plan.region import CopyPlan, Output
from vkops.plan.rounding import round_up
from vkops.plan.view import View

CACHE = 4096
EXCHANGE = 230
"""OpAtomicCompareExchange."""

few = settings(max_examples=25)
GPU_TUNINGS = {"gpu": encoding.GPU, "gpu, long items": TUNINGS["gpu"], "single": TUNINGS["single"]}


class Access(NamedTuple):
    """What an invocation did: accesses with an equal ``moment`` are executed together."""

    invocation: int
    moment: int
    is_store: bool
    address: int
    nbytes: int


class Logged(Run):
    """A run that writes down each access to a tensor, by whom and when."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.accesses, self.moment, self.exchanging = [], 0, set()

    def record(self, kind, pointer, active):
        super().record(kind, pointer, active)
        memory, nbytes, is_store = pointer.variable, pointer.type.nbytes, kind != "read"
        if not isinstance(memory, Memory) or memory.kind or memory.element(0).startswith("table"):
            return
        self.moment += 1
        first = memory.addresses(pointer.type, pointer.offset, active)
        first = np.broadcast_to(first.reshape(len(first), -1)[:, 0], len(active.who)).tolist()
        for who, address in zip(active.who.tolist(), first, strict=True):
            # An exchange that follows another one repeats it: others changed the word meanwhile.
            if self.step.op != EXCHANGE or who not in self.exchanging:
                self.accesses.append(Access(who, self.moment, is_store, address, nbytes))
            (self.exchanging.add if self.step.op == EXCHANGE else self.exchanging.discard)(who)


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


def check(plan, tuning, inputs):
    """Compare the counts of all dispatches of a plan, and run them in the interpreter."""
    sizes = [*plan.inputs, *[constant.nbytes for constant in plan.constants]]
    sizes += [output.nbytes for output in plan.outputs]
    ends = np.cumsum([0, *[round_up(size, ALIGNMENT) for size in sizes]]).tolist()
    count_of_inputs = len(sizes) - len(plan.outputs)
    heap = HostHeap(np.zeros(ends[-1], np.uint8))
    for start, array in zip(ends, [*inputs, *[c.array() for c in plan.constants]], strict=False):
        heap.data[start : start + array.nbytes] = array.view(np.uint8).ravel()
    values = IndexValues(dict(zip(ends, inputs, strict=False)))
    starts = ends[:count_of_inputs], ends[count_of_inputs:-1]
    used = set()
    for _, dispatches in EncodedPlan(plan, tuning).in_one_heap(heap, *starts):
        for dispatch in dispatches:
            run = kernel_run(dispatch)
            recorded = run.case.run(kind=Logged)[0].accesses
            assert recorded
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
            used.add(dispatch.table.kernel.name)
            run.run()
    return used


@pytest.mark.parametrize("tuning", GPU_TUNINGS.values(), ids=GPU_TUNINGS)
@few
@given(plan=plans())
def test_random_plans(tuning, plan):
    check(plan, tuning, input_bytes(plan))


@pytest.mark.parametrize("tuning", GPU_TUNINGS.values(), ids=GPU_TUNINGS)
@few
@given(plan=st.one_of(stream_plans(), split_plans(), padded_plans(), box_plans()))
def test_streams_and_boxes(tuning, plan):
    check(plan, tuning, input_bytes(plan))


@pytest.mark.parametrize("tuning", GPU_TUNINGS.values(), ids=GPU_TUNINGS)
@settings(max_examples=40)
@given(seed=st.integers(0, 2**32 - 1))
def test_random_plans_with_indices(tuning, seed):
    case = indexed_case(seed)
    check(case.plan, tuning, case.inputs)


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
        (window(1, [9, 701], [1701, 1], 1), "copy_stream_shared"),
        (window(1, [9, 701], [100_001, 1], 1), "copy_stream_shared"),
        (window(4, [4, 20, 4, 60], [0, 60, 0, 1]), "copy_16"),
        (window(16, [40, 9], [16, 1], 3), "copy_16"),
        (columns(5, 192), "copy_16"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_large_plans(plan, name):
    """Of several workgroups, which the cache does not keep."""
    assert check(plan, encoding.GPU, input_bytes(plan)) == {name}


@pytest.mark.parametrize(("row", "name"), [(8, "scatter_16"), (2, "scatter_8"), (1, "scatter_4")])
def test_rows_that_are_scattered(row, name):
    case = case_of("float32", ScatterRows(), (50, row), (40, 1), (40, row))
    inputs = case.inputs(np.random.default_rng(0))
    (step,) = case.desc.pipeline.steps
    stored = [np.ascontiguousarray(inputs[number]).view(np.uint8).ravel() for number in step.reads]
    assert name in check(step.plan, encoding.GPU, stored)


@pytest.mark.parametrize("dtype", ["uint8", "float16"])
@pytest.mark.parametrize("bound", [39, 40], ids=["several dispatches", "one dispatch"])
def test_elements_below_a_word_that_are_scattered(monkeypatch, dtype, bound):
    monkeypatch.setattr(encoded_plan, "MAX_EXCHANGES", bound)
    case = case_of(dtype, ScatterRows(), (52, 1), (40, 1), (40, 1))
    inputs = case.inputs(np.random.default_rng(0))
    *_, step = case.desc.pipeline.steps
    stored = [np.ascontiguousarray(inputs[number]).view(np.uint8).ravel() for number in step.reads]
    assert f"scatter_any_{np.dtype(dtype).itemsize}" in check(step.plan, encoding.GPU, stored)


@pytest.mark.parametrize(("axis", "sizes"), [(0, (40, 6)), (1, (6, 40)), (1, (40, 6))])
def test_elements_below_a_word_that_are_written_at_most_once_need_one_dispatch(
    monkeypatch, axis, sizes
):
    """Of those that a one-hot marks, only as many compete for a word as it has elements."""
    monkeypatch.setattr(encoded_plan, "MAX_EXCHANGES", 4)
    values = [Read(number, View((), (), 0)) for number in (0, 1)]
    for rows, parts in ((1, 1), (2, 4)):  # two marks of a row may be at one place
        one_each = tuple(rows if i == axis else n for i, n in enumerate(sizes))
        indices = IndexTensor(2, "i4", View.packed(one_each))
        _, marks = one_hot(*values, indices, View.packed(sizes), axis)
        plan = CopyPlan(1, (1, 1, 4 * prod(one_each)), (Output(prod(sizes), (marks,)),))
        assert len(EncodedPlan(plan, encoding.CPU)._tables) == parts
