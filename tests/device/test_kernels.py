"""Kernels against the NumPy executor: every byte of every output, and of what lies around it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from strategies import input_bytes, plans

import vkops
from vkops.gpu import table
from vkops.gpu.buffer import Buffer
from vkops.gpu.executor import GROUPS_X, MAX_REGIONS
from vkops.gpu.memory import Range
from vkops.gpu.table import LANES, Tuning, choose_kernel
from vkops.plan import CopyPlan, Fill, Output, Read, Region, View, copy, execute, optimize

GUARD = 256
POISON = 0xA5
TUNINGS = {
    "cpu": replace(table.CPU, workgroups=1),
    "gpu": replace(table.GPU, workgroups=1),
    "single": Tuning(1, 1, 1, 1),
}

on_device = settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def place(device, arrays):
    """Put arrays of bytes into one buffer with poisoned guards between: (buffer, offsets)."""
    offsets, end = [], GUARD
    for array in arrays:
        offsets.append(end)
        end += -(-array.size // GUARD) * GUARD + GUARD
    image = np.full(end, POISON, np.uint8)
    for offset, array in zip(offsets, arrays, strict=True):
        image[offset : offset + array.size] = array
    buffer = Buffer(device.executor, end)
    buffer.write(image)
    return buffer, offsets, image


def ranges(buffer, offsets, arrays):
    return [
        Range(buffer.range.heap, buffer.range.offset + offset, array.size)
        for offset, array in zip(offsets, arrays, strict=True)
    ]


def check(device, plan, tuning=None, seed=0):
    """Run on the device and with NumPy; all bytes must agree, guards and gaps included."""
    executor = device.executor
    inputs = input_bytes(plan, seed)
    outputs = [np.full(output.nbytes, POISON, np.uint8) for output in plan.outputs]
    sources, source_offsets, _ = place(device, inputs or [np.zeros(16, np.uint8)])
    targets, target_offsets, image = place(device, outputs)
    work = table.encode(optimize(plan), tuning or executor.tuning)
    bound = executor.bind(
        work,
        ranges(sources, source_offsets[: len(inputs)], inputs),
        ranges(targets, target_offsets, outputs),
    )
    executor.run(bound)
    expected = image.copy()
    for offset, result in zip(target_offsets, execute(plan, inputs, outputs), strict=True):
        expected[offset : offset + result.size] = result
    np.testing.assert_array_equal(targets.array(), expected)


def window(element_size, sizes, strides, offset=0, dst_strides=None, dst_offset=0):
    """A plan with one region from an input just large enough."""
    target = View.packed(tuple(sizes))
    if dst_strides is not None:
        target = View(target.sizes, tuple(dst_strides), dst_offset)
    first = offset - sum(min(0, (n - 1) * s) for n, s in zip(sizes, strides, strict=True))
    last = first + sum(max(0, (n - 1) * s) for n, s in zip(sizes, strides, strict=True))
    end = target.offset + sum((n - 1) * s for n, s in zip(sizes, target.strides, strict=True))
    region = copy(View(tuple(sizes), tuple(strides), first), target)
    nbytes = [-(-(n + 1) * element_size // 4) * 4 for n in (last, end)]
    return CopyPlan(element_size, (nbytes[0],), (Output(nbytes[1], (region,)),))


@pytest.mark.parametrize("tuning", TUNINGS.values(), ids=TUNINGS)
@on_device
@given(plan=plans())
def test_random_plans(device, tuning, plan):
    check(device, plan, tuning)


@settings(on_device, max_examples=30)
@given(plan=plans())
def test_random_plans_through_staging(staged_device, plan):
    check(staged_device, plan)


@pytest.mark.parametrize("element_size", [1, 2, 4, 8, 16])
@pytest.mark.parametrize("rank", range(1, 9))
def test_every_rank_reversed_and_permuted(device, element_size, rank):
    sizes = [2, 3, 2, 3, 2, 3, 2, 5][-rank:]
    strides = [1] * rank
    for axis in range(1, rank):  # column-major: the first dimension is the fastest
        strides[axis] = strides[axis - 1] * sizes[axis - 1]
    check(device, window(element_size, sizes, [-s for s in strides]))


@pytest.mark.parametrize("element_size", [1, 2])
@pytest.mark.parametrize("start", range(5))
@pytest.mark.parametrize("run", range(1, 10))
def test_runs_below_a_word_at_every_alignment(device, element_size, start, run):
    """Rows of a few elements, at every position within a word on both sides."""
    row = View((7, run), (run + 3, 1), start)
    region = copy(View((7, run), (run + 1, 1), (start * 3) % 5), row)
    plan = CopyPlan(element_size, (512,), (Output(512, (region,)),))
    check(device, plan)


@pytest.mark.parametrize("dst", range(16))
@pytest.mark.parametrize("tuning", TUNINGS.values(), ids=TUNINGS)
def test_runs_of_bytes_at_every_alignment(device, dst, tuning):
    """Each source alignment and run length in turn; rows alternate alignments on both sides."""
    for src in range(16):
        run = 16 + (src * 7 + dst) % 45
        plan = window(1, [3, run], [run + 5, 1], src, [run + 1, 1], dst)
        assert choose_kernel(optimize(plan)).name == "copy_run"
        check(device, plan, tuning, seed=src)


@pytest.mark.parametrize(
    ("plan", "name"),
    [
        (window(4, [64], [1]), "copy_16"),
        (window(4, [64], [1], offset=1), "copy_run"),
        (window(4, [5, 4], [9, 1]), "copy_run"),
        (window(4, [5, 3], [9, 1]), "copy_4"),
        (window(4, [64], [-1]), "copy_4"),
        (window(2, [5, 7], [9, 1]), "copy_2"),
        (window(1, [64], [2]), "copy_1"),
    ],
)
def test_choice_of_kernel(plan, name):
    assert choose_kernel(optimize(plan)).name == name


@pytest.mark.parametrize("element_size", [1, 2, 4])
def test_interleaved_regions_share_words(device, element_size):
    """Three outputs of a channel join: each element's neighbours are written by other regions."""
    pixels = View((1000,), (3,), 0)
    regions = tuple(
        copy(View.packed((1000,)), replace(pixels, offset=channel), channel) for channel in range(3)
    )
    plan = CopyPlan(element_size, (4000,) * 3, (Output(12000, regions),))
    check(device, plan)


def test_more_regions_than_one_table_holds(device):
    count = MAX_REGIONS + 10
    regions = tuple(
        Region((3,), 4 * i, (1,), Read(0, 3 * (count - 1 - i), (1,))) for i in range(count)
    )
    plan = CopyPlan(4, (12 * count,), (Output(16 * count, regions),))
    check(device, plan)


def test_more_workgroups_than_one_dimension_holds(device):
    """One element per item and 64 items per workgroup: the groups spill into y."""
    n = GROUPS_X * LANES + 100
    check(device, window(4, [n], [-1]), Tuning(steps=1, workgroups=1, interleave=1, long_run=1))


@pytest.mark.parametrize("tuning", TUNINGS.values(), ids=TUNINGS)
def test_loops_beyond_65535_rounds_in_one_dimension(device, tuning):
    """Some drivers end a shader's loop after 65,535 rounds without a word; ours are short."""
    check(device, window(2, [70000 * 4 + 1], [1], offset=1), tuning)


def test_ranks_above_eight_are_peeled(device):
    sizes = [2] * 10
    check(device, window(4, sizes, [3**k for k in range(10)]))


@pytest.mark.parametrize("element_size", [1, 2, 4, 8, 16])
def test_constants(device, element_size):
    pattern = bytes(range(1, element_size + 1))
    regions = (
        Region((5, 7), 3, (20, 2), Fill(pattern)),
        Region((100,), 120, (1,), Fill(pattern[::-1])),
    )
    plan = CopyPlan(element_size, (), (Output(256 * element_size, regions),))
    check(device, plan)


def test_inputs_and_outputs_in_several_heaps(device):
    """Each pair of heaps is one dispatch; together they are the whole plan."""
    executor = device.executor
    big = 20 << 20  # larger than the first heap, so each takes one of its own
    buffers = [Buffer(executor, big) for _ in range(4)]
    assert len({id(b.range.heap) for b in buffers}) > 1
    data = [np.random.default_rng(i).integers(0, 256, 4096, np.uint8) for i in range(2)]
    for buffer, array in zip(buffers[:2], data, strict=True):
        buffer.write(array, big - 4096)
    whole = View.packed((1024,))
    outputs = tuple(
        Output(
            4096,
            (
                copy(whole.narrow(0, 0, 500), whole.narrow(0, 0, 500), k),
                copy(whole.narrow(0, 0, 524), whole.narrow(0, 500, 524), 1 - k),
            ),
        )
        for k in range(2)
    )
    plan = CopyPlan(4, (4096, 4096), outputs)
    bound = [Range(b.range.heap, b.range.offset + big - 4096, 4096) for b in buffers]
    executor.run(executor.bind(executor.prepare(plan), bound[:2], bound[2:]))
    for buffer, expected in zip(buffers[2:], execute(plan, data), strict=True):
        np.testing.assert_array_equal(buffer.array(big - 4096), expected)


def test_new_shapes_need_few_kernels(adapter):
    """Shapes differ, pipelines do not: one for each power of two of workgroups."""
    with vkops.Device(adapter.index) as device:
        for n in range(1, 3000, 10):
            check(device, window(4, [n], [-1]))
        assert len(device.executor._kernels) <= 5


def test_kernels_are_bounded(adapter, monkeypatch):
    """The least recently used goes; what is run again is made again."""
    monkeypatch.setattr("vkops.gpu.executor.MAX_KERNELS", 2)
    with vkops.Device(adapter.index) as device:
        for size in (1, 2, 4, 8, 16, 1):
            check(device, window(size, [9], [-1]))
            assert len(device.executor._kernels) <= 2
