"""Kernels against the NumPy executor: every byte of every output, and of what lies around it."""

from __future__ import annotations

from dataclasses import replace
from itertools import accumulate, product
from operator import attrgetter, mul

import kernel_plans
import numpy as np
import pytest
from arrays import equal, run_work, small_memory
from compiled_operators import compiled
from guarded_buffers import guarded
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kernel_plans import (
    TUNINGS,
    box_plans,
    columns,
    fitting,
    grid_plans,
    padded,
    padded_plans,
    several,
    split_plans,
    stream_plans,
    window,
)
from regions import make_region
from strategies import input_bytes, plans

import vkops
from vkops.bench import WORKLOADS
from vkops.extent import slice_extents
from vkops.gpu.copies.rule import REGIONS, SHADERS
from vkops.gpu.kernels import encoding
from vkops.gpu.kernels.choice import BLOCKS, choose_kernel
from vkops.gpu.kernels.encoding import Tuning, encode
from vkops.gpu.kernels.layout import MAX_GROUPS, WORKGROUP_SIZE
from vkops.gpu.run.buffer import Buffer
from vkops.gpu.run.encoded_plan import EncodedPlan
from vkops.plan import CopyPlan, Fill, Output, Read, Region, View, execute
from vkops.plan.algebra import narrow, optimize
from vkops.plan.index_runs import pad_with_copies
from vkops.plan.indexing import IndexTensor, gather_nd
from vkops.plan.movements import copy
from vkops.shaders import spirv

on_device = settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
each_tuning = pytest.mark.parametrize("tuning", TUNINGS.values(), ids=TUNINGS)


def check(device, plan, tuning=None, seed=0, kernel=""):
    """Run on the device and with NumPy; all bytes must agree, guards and gaps included."""
    assert kernel in ("", choose_kernel(optimize(plan)).kernel.name)
    inputs = input_bytes(plan, seed)
    bound, sources, targets = guarded(device, plan, inputs, tuning)
    run_work(device, bound)
    before = [array.copy() for array in targets.arrays]
    for array, result in zip(targets.arrays, execute(plan, inputs, before), strict=True):
        array[...] = result
    sources.check()
    targets.check()


@each_tuning
@on_device
@given(plan=plans())
def test_random_plans(device, tuning, plan):
    check(device, plan, tuning)


@pytest.fixture
def wide_device(adapter):
    """A device whose kernels move integers of 64 bits where they can, whatever is faster."""
    with pytest.MonkeyPatch.context() as patch, vkops.Device(adapter.index) as device:
        queue = device.vulkan
        patch.setattr(queue, "_wide", "shaderInt64" in queue.features)
        patch.setattr(queue, "_pipelines", {})
        device.tuning = replace(device.tuning, copies=SHADERS)
        yield device


@pytest.mark.parametrize(
    ("home", "copies"),
    [
        ("device", REGIONS),
        ("staged_device", REGIONS),
        ("staged_device", None),
        ("wide_device", None),
    ],
)
@settings(on_device, max_examples=50)
@given(plan=plans())
def test_random_plans_of_devices(adapter, request, home, copies, plan):
    """With regions, runs are copied with them, whatever they cost, and the rest by shaders."""
    home = request.getfixturevalue(home)
    check(home, plan, copies and replace(home.tuning, copies=copies))


def test_kernels_with_integers_of_64_bits(wide_device, monkeypatch):
    """Strided copies, constants and indices of 16 bytes."""
    used = set()
    monkeypatch.setattr(
        "vkops.gpu.run.vulkan_device.spirv", lambda name: used.add(name) or spirv(name)
    )
    check(wide_device, window(16, [9, 7], [20, 2]))
    x = np.arange(300 * 8, dtype=np.float64).reshape(300, 8)
    rows = np.array([299, 0, -1, 7, 7])
    t = wide_device.tensor(x)
    equal(vkops.take(t, rows, axis=0), x[rows])
    padded = vkops.pad(t, ((2, 2), (0, 0)), constant_values=np.pi)
    equal(padded, np.pad(x, ((2, 2), (0, 0)), constant_values=np.pi))
    assert wide_device.vulkan._wide == ({"copy_16_wide", "gather_16_wide"} <= used)


def reversed_and_permuted(element_size, rank):
    """Column-major: the first dimension is the fastest."""
    sizes = [2, 3, 2, 3, 2, 3, 2, 5][-rank:]
    strides = [*accumulate(sizes[:-1], mul, initial=1)]
    return window(element_size, sizes, [-stride for stride in strides])


def interleaved(element_size):
    """A channel join: each element's neighbours are written by other regions."""
    pixels = View((1000,), (3,), 0)
    regions = (copy(View.packed((1000,)), pixels.shift(channel), channel) for channel in range(3))
    return CopyPlan(element_size, (4000,) * 3, (Output(12000, tuple(regions)),))


THREES = [2 * 3**k for k in range(8)]
PLANS = {
    # The words of an element that is a run of its own are a ninth dimension.
    "eight dimensions of parts of words": window(2, [2] * 8, THREES, 0, THREES[::-1]),
    "ten dimensions": window(4, [2] * 10, [3**k for k in range(10)]),
    # Some drivers end a shader's loop after 65,535 rounds without a word; ours are short.
    "more than 65,535 rounds in one dimension": window(2, [70000 * 4 + 1], [1], offset=1),
    "more regions than one table holds": kernel_plans.more_regions_than_a_table_holds(),
    **{f"constants of {size}": kernel_plans.constants(size) for size in (1, 2, 4, 8, 16)},
    **{f"interleaved elements of {size}": interleaved(size) for size in (1, 2, 4)},
    **{
        f"{rank} dimensions of elements of {size}": reversed_and_permuted(size, rank)
        for size, rank in product([1, 2, 4, 8, 16], range(1, 9))
    },
}


@each_tuning
@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_plans(device, tuning, plan):
    check(device, plan, tuning)


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
@each_tuning
def test_runs_of_bytes_at_every_alignment(device, dst, tuning):
    """Each source alignment and run length in turn; rows alternate alignments on both sides."""
    for src in range(16):
        run = 16 + (src * 7 + dst) % 45
        plan = window(1, [3, run], [run + 5, 1], src, [run + 1, 1], dst)
        check(device, plan, tuning, src, "copy_run")


@pytest.mark.parametrize(
    ("plan", "name"),
    [
        (window(4, [64], [1]), "copy_16"),
        (window(4, [64], [1], offset=1), "copy_stream_4"),
        (window(4, [5, 5], [9, 1]), "copy_stream_4"),
        (window(4, [3, 5, 5], [90, 9, 1]), "copy_run"),
        (window(4, [5, 3], [9, 1]), "copy_elements_4"),
        (window(4, [5, 3], [9, 1], 0, [4, 1]), "copy_4"),
        (window(4, [64], [-1]), "copy_reverse"),
        (window(4, [65], [-1]), "copy_elements_4"),
        (window(8, [65], [2]), "copy_elements_8"),
        (window(4, [5, 64], [-64, -1]), "copy_reverse"),
        (window(2, [5, 7], [9, 1]), "copy_stream_4"),
        (window(2, [5, 3], [9, 1]), "copy_stream_4"),
        (window(2, [3, 5, 3], [90, 9, 1]), "copy_2"),
        (window(1, [64], [2]), "copy_1"),
        (window(1, [64], [0]), "copy_run"),
        (window(1, [32, 128], [1, 0]), "copy_run"),
        (window(1, [32, 64], [1, 0]), "copy_block_1"),
        (window(8, [5, 4], [1, 0]), "copy_run"),
        (window(1, [5, 9], [1, 0]), "copy_1"),
        (window(1, [32, 48], [1, 32]), "copy_block_1"),
        (window(8, [6, 4], [1, 6]), "copy_block_8"),
        (window(4, [8, 5, 4], [1, 40, 8]), "copy_block_4"),
        (window(4, [8, 6], [1, 8]), "copy_elements_4"),  # 6 is no multiple of a block's side
        (window(4, [8, 8], [1, 9]), "copy_elements_4"),  # rows of the source begin anywhere
    ],
)
def test_choice_of_kernel(plan, name):
    assert choose_kernel(optimize(plan)).kernel.name == name


@each_tuning
@pytest.mark.parametrize("element_size", [1, 2, 4, 8])
@settings(on_device, max_examples=25)
@given(data=st.data())
def test_transposed_blocks(device, tuning, element_size, data):
    """Any order of up to seven dimensions, two of them whole blocks, padded by whole vectors."""
    side = BLOCKS[element_size].unit // element_size
    sizes = data.draw(st.lists(st.integers(1, 3), max_size=5))
    across, along = (side * data.draw(st.integers(1, 9)) for _ in range(2))
    order = data.draw(st.permutations([*sizes, along]))
    pads = st.sampled_from([0, 0, side])
    dst, step = [], across + data.draw(pads)
    for size in order:
        dst.append(step)
        step = step * size + data.draw(pads)
    dims = [(across, 1, 0), *((size, stride, 0) for size, stride in zip(order, dst, strict=True))]
    innermost = order.index(along) + 1
    src, step = {innermost: 1}, along + data.draw(pads)
    for number in data.draw(st.permutations([n for n in range(len(dims)) if n != innermost])):
        src[number] = step * data.draw(st.sampled_from([1, 1, -1]))
        step = step * dims[number][0] + data.draw(pads)
    sizes, dst_strides, _ = zip(*dims[::-1], strict=True)
    strides = [src[n] for n in range(len(dims))][::-1]
    plan = window(element_size, sizes, strides, 0, dst_strides, side * data.draw(st.integers(0, 2)))
    check(device, plan, tuning, 0, f"copy_block_{element_size}")


@pytest.mark.parametrize("element_size", [1, 2, 4, 8, 16])
@settings(on_device, max_examples=40)
@given(data=st.data())
def test_tiles(device, element_size, data):
    """Sides of one dimension or two, of part of a tile and of several, and other dimensions."""
    vector = 16 // element_size
    lengths = st.one_of(
        st.tuples(st.integers(4, 19)), st.tuples(st.integers(2, 4), st.integers(2, 9))
    )
    sizes = {}
    for name in ("across", "along"):
        first, *second = data.draw(lengths)
        sizes |= {name: first * vector, **{f"{name} 2": size for size in second}}
    sizes |= {
        f"other {k}": n for k, n in enumerate(data.draw(st.lists(st.integers(2, 3), max_size=2)))
    }

    def strides(side):
        """Those of the dimensions of a side, one after the other, and of all others, in any order."""
        inner = [name for name in sizes if name.startswith(side)]
        result, step = {}, 1
        for name in [*inner, *data.draw(st.permutations(sorted(sizes.keys() - inner)))]:
            step += vector * data.draw(st.sampled_from([0, 0, 1])) if name not in inner else 0
            result[name], step = step, step * sizes[name]
        return [result[name] for name in sizes]

    offset = vector * data.draw(st.integers(0, 2))
    source = [
        n if name.startswith("along") else n * data.draw(st.sampled_from([1, 1, -1]))
        for name, n in zip(sizes, strides("along"), strict=True)
    ]
    plan = window(element_size, [*sizes.values()], source, 0, strides("across"), offset)
    assert choose_kernel(optimize(plan), is_cpu=False).kernel.name == f"copy_tile_{element_size}"
    check(device, plan, TUNINGS["gpu"])


@pytest.mark.parametrize("count", [2, 3, 16, 100])
@pytest.mark.parametrize(("words", "rows"), [(4, 64), (4, 1000), (8, 320), (16, 320)])
def test_regions_take_turns(device, count, words, rows):
    """Invocations that run together copy a few vectors of each region, not many of one."""
    plan = columns(count, rows, words, gap=words)
    assert encode(optimize(plan), TUNINGS["gpu"]).turns
    check(device, plan, TUNINGS["gpu"])


@each_tuning
@pytest.mark.parametrize("element_size", [1, 2, 4, 8])
@pytest.mark.parametrize("rows", [1, 3, 40])
def test_reversed_vectors(device, tuning, element_size, rows):
    """Backwards in one output, forwards with rows turned around in the other."""
    side = 16 // element_size
    n = 37 * side
    backwards = copy(View((rows, n), (n, -1), n - 1), View.packed((rows, n)))
    forwards = copy(View((rows, n), (-n, 1), (rows - 1) * n), View.packed((rows, n)))
    nbytes = rows * n * element_size
    outputs = (Output(nbytes, (backwards,)), Output(nbytes, (forwards,)))
    plan = CopyPlan(element_size, (nbytes,), outputs)
    check(device, plan, tuning, 0, "copy_reverse")


@each_tuning
@pytest.mark.parametrize("element_size", [1, 2, 4, 8, 16])
@pytest.mark.parametrize("constant", [False, True])
def test_repeated_elements(device, tuning, element_size, constant):
    """One element for each row, or a constant, from and to every alignment."""
    pattern = bytes(range(1, element_size + 1))
    for dst in range(16 // element_size):
        run = 16 + (dst * 7) % 45
        target = View((9, run), (run + 1, 1), dst)
        source = Fill(pattern) if constant else Read(0, View((9, run), (dst + 1, 0), 7 * dst))
        nbytes = (dst + 9 * (run + 1)) * 16
        plan = CopyPlan(element_size, (4096,), (Output(nbytes, (Region(target, source),)),))
        check(device, plan, tuning, dst, "copy_16" if element_size == 16 else "copy_run")


@each_tuning
@pytest.mark.parametrize("element_size", [4, 8])
@pytest.mark.parametrize("group", [1, 2, 3, 5])
def test_groups_of_elements(device, tuning, element_size, group):
    """Elements with two strides, both forwards and backwards, to runs at every alignment."""
    for dst in range(4):
        groups = 16 // group + dst
        repeated = (0, 2, 0 if group * element_size < 16 else 7)
        strides = [(60, 3, 20), repeated, (3, -2, 17), (-9, 3, -2)][dst]
        row = groups * group + 1
        plan = window(element_size, [9, groups, group], strides, 0, [row, group, 1], dst)
        check(device, plan, tuning, dst, f"copy_elements_{element_size}")


@each_tuning
@on_device
@given(plan=stream_plans())
def test_streams(device, tuning, plan):
    check(device, plan, tuning)


GPUS = {
    "gpu": TUNINGS["gpu"],
    "gpu, one step": encoding.GPU,
    "gpu, small workgroups": replace(TUNINGS["gpu"], invocations=128),
}


@pytest.mark.parametrize("tuning", GPUS.values(), ids=GPUS)
@on_device
@given(plan=st.one_of(split_plans(), padded_plans(), box_plans()))
def test_plans_of_several_workgroups_with_the_settings_of_a_gpu(device, tuning, plan):
    check(device, plan, tuning)


@st.composite
def row_plans(draw):
    """Outputs as rows of a few segments of 16 bytes and more, anywhere in the source."""
    rows = draw(st.one_of(st.integers(1, 40), st.integers(100, 400)))
    size = draw(st.sampled_from([1, 1, 2, 4, 8]))
    outputs = []
    for _ in range(draw(st.integers(1, 3))):
        lengths = draw(st.lists(st.integers(16, 90), min_size=1, max_size=4))
        regions, start, row = [], 0, sum(lengths)
        for length in lengths:
            stride = draw(st.sampled_from([0, 1, length, length + 3, 97, 128, -length, -101]))
            offset = draw(st.integers(0, 40)) - min(0, stride * (rows - 1))
            source = View((rows, length), (stride, 1), offset)
            regions.append(copy(source, View((rows, length), (row, 1), start)))
            start += length
        outputs.append(regions)
    return fitting(size, *outputs)


@pytest.mark.parametrize("tuning", GPUS.values(), ids=GPUS)
@on_device
@given(plan=row_plans())
def test_rows_of_any_segments_with_the_settings_of_a_gpu(device, tuning, plan):
    check(device, plan, tuning)


@pytest.mark.parametrize("tuning", GPUS.values(), ids=GPUS)
@on_device
@given(plan=grid_plans())
def test_grids_of_parts_with_the_settings_of_a_gpu(device, tuning, plan):
    check(device, plan, tuning)


BORDERS = [
    ((3, 5, 7, 9), (0, 0, 1, 1), (0, 0, 1, 1), "reflect"),
    ((70, 110), (1, 2), (3, 4), "edge"),
    ((7, 8, 9), (2, 1, 3), (1, 2, 1), "symmetric"),
    ((9, 30), (2, 3), (0, 1), "wrap"),
    ((6, 700), (0, 1), (0, 0), "reflect"),  # three segments of a row are two
    ((40, 50, 3), (1, 1, 0), (1, 1, 0), "reflect"),  # rows and columns of three elements
    ((1001,), (7,), (5,), "reflect"),
    ((3, 3), (0, 0), (0, 4), "symmetric"),  # forwards, backwards and forwards again
]
SMALL_BORDERS = [
    ((3, 5, 7, 19), (0, 0, 1, 1), (0, 0, 1, 1), "reflect"),
    ((70, 53), (1, 2), (3, 4), "edge"),
    ((7, 8, 11), (2, 1, 3), (1, 2, 2), "symmetric"),
    ((40, 19, 3), (1, 1, 0), (1, 1, 0), "reflect"),
    ((9, 140), (2, 2), (2, 3), "reflect"),
]


@pytest.mark.parametrize(
    ("element_size", "sizes", "before", "after", "mode"),
    [
        (size, *border)
        for sizes, borders in (((1, 2), SMALL_BORDERS), ((4, 8), BORDERS))
        for size, border in product(sizes, borders)
    ],
)
def test_borders_with_the_settings_of_a_gpu(device, element_size, sizes, before, after, mode):
    plan = padded(element_size, sizes, before, after, mode)
    name = choose_kernel(optimize(plan), is_cpu=False).kernel.name
    assert name == f"copy_grid_{element_size}"
    for tuning in GPUS.values():
        check(device, plan, tuning)


def test_rows_are_copied_whatever_lies_around_the_source(device):
    """Vectors that hold no byte of the source, before it and behind it, are not read: they may not be there."""
    for offset in range(17):
        for rows, length, stride in (
            (1, 16, 16),
            (3, 17, 31),
            (4, 31, -33),
            (5, 40, 0),
            (70, 33, 47),
        ):
            first = offset - min(0, stride * (rows - 1))
            source = View((rows, length), (stride, 1), first)
            plan = fitting(1, [copy(source, View.packed((rows, length)))])
            check(device, plan, encoding.GPU)


def test_streams_whose_vectors_are_too_many_to_share(device):
    """A workgroup needs rows of the source that lie far apart, or of more than four tensors."""
    check(device, window(1, [9, 701], [100_001, 1], 1), encoding.GPU)
    parts = [View.packed((70, 21)), View((70, 21), (105, 1), 0)]
    regions = (copy(parts[0], parts[1].shift(21 * k), k) for k in range(5))
    check(device, CopyPlan(1, (1472,) * 5, (Output(7352, tuple(regions)),)), encoding.GPU)


@pytest.mark.parametrize(
    ("length", "on_gpu", "on_small_gpu"),
    [
        (21, ("copy_rows_4", "copy_rows"), ("copy_rows_4", "copy_rows")),
        (15, ("copy_stream_shared",) * 2, ("copy_stream_4",) * 2),
    ],
)
def test_streams_are_chosen_for_unaligned_splits_and_joins(length, on_gpu, on_small_gpu):
    whole, part = View.packed((50, 3 * length)), View.packed((50, length))
    parts = [whole.narrow(1, length * k, length) for k in range(3)]
    small, large = (-(-50 * length * k // 4) * 4 for k in (1, 3))
    join = Output(large, tuple(copy(part, target, k) for k, target in enumerate(parts)))
    split = tuple(Output(small, (copy(source, part),)) for source in parts)
    plans = CopyPlan(1, (small,) * 3, (join,)), CopyPlan(1, (large,), split)
    for plan, gpu, small_gpu in zip(map(optimize, plans), on_gpu, on_small_gpu, strict=True):
        assert choose_kernel(plan).kernel.name == "copy_stream_4"
        assert choose_kernel(plan, is_cpu=False).kernel.name == gpu
        assert choose_kernel(plan, is_cpu=False, invocations=128).kernel.name == small_gpu
        without_streams = choose_kernel(plan, sources=0).kernel.name
        assert without_streams == ("copy_run" if length >= 16 else "copy_1")
    many_plan = several(1, 24, 5, 6)
    assert choose_kernel(many_plan).kernel.name == "copy_stream"
    assert choose_kernel(many_plan, sources=1).kernel.name == "copy_run"


def test_what_is_no_grid_has_another_kernel():
    """Of several inputs, with gaps, of too many parts, of parts that depend on each other."""
    rows = View((6, 5), (5, 1))
    left, right = rows.narrow(1, 0, 2), rows.narrow(1, 2, 3)
    one = [copy(left.shift(1), left), copy(right.shift(9), right)]
    assert _gpu_kernel(one) == "copy_grid_4"
    assert _gpu_kernel([one[0], copy(right, right, 1)]) == "copy_4"
    assert _gpu_kernel([one[0], copy(rows.narrow(1, 3, 2), rows.narrow(1, 3, 2))]) == "copy_4"
    five = [copy(rows.narrow(1, 4 - n, 1), rows.narrow(1, n, 1)) for n in range(5)]
    assert _gpu_kernel(five) == "copy_4"
    top, bottom = (0, 2), (2, 4)
    quarters = [each.narrow(0, *half) for half in (top, bottom) for each in (left, right)]
    for last, name in ((12, "copy_grid_4"), (13, "copy_4")):
        shifts = (0, 5, 7, last)
        assert (
            _gpu_kernel([copy(q.shift(n), q) for q, n in zip(quarters, shifts, strict=True)])
            == name
        )
    row = View((19,), (1,), 1)
    apart = [
        copy(row.narrow(0, 0, 18), row.narrow(0, 0, 18)),
        copy(row.narrow(0, 3, 1), row.narrow(0, 18, 1)),
    ]
    plan = optimize(fitting(1, apart))  # whose first byte stays as it is
    assert choose_kernel(plan, is_cpu=False).kernel.name == "copy_run"


def test_a_grid_shares_no_word_with_another_dispatch(device):
    """Of an output that a copy backwards, one of each other byte, and a gather fill."""
    part = View((37,), (1,))
    copies = [copy(View((37,), (-1,), 36), part), copy(View((37,), (2,)), part.shift(37))]
    for nbytes, name in ((74, "copy_grid_1"), (76, "copy_grid_1"), (94, "copy_1")):
        plan = optimize(CopyPlan(1, (100,), (Output(nbytes, tuple(copies)),)))
        assert choose_kernel(plan, is_cpu=False).kernel.name == name
    indices = IndexTensor(1, "i4", View.packed((20, 1)))
    rows = gather_nd(Read(0, View((100,), (1,))), indices, View((20,), (1,), 74), 0)
    plan = CopyPlan(1, (100, 80), (Output(96, (*copies, rows)),))
    for tuning in GPUS.values():
        check(device, plan, tuning)


def _gpu_kernel(regions):
    return choose_kernel(optimize(fitting(4, regions)), is_cpu=False).kernel.name


@pytest.mark.parametrize("element_size", [1, 4])
def test_short_ends_of_long_runs(device, element_size):
    """A plan that is cut within a row has short runs, too; they change no kernel."""
    row = View((9, 101), (113, 1), 1)
    regions = (
        copy(row, View((9, 101), (103, 1), 3)),
        copy(View((3,), (1,), 5), View((3,), (1,), 0)),
        copy(View((7,), (9,), 2), View((7,), (2,), 9 * 103 + 1)),
    )
    nbytes = (9 * 103 + 17) * element_size
    plan = CopyPlan(element_size, (1200 * element_size,), (Output(-(-nbytes // 4) * 4, regions),))
    check(device, plan, kernel="copy_run")


def test_more_workgroups_than_one_dimension_holds(device):
    """One element per item and 64 items per workgroup: the groups spill into y."""
    plan = window(4, [MAX_GROUPS * WORKGROUP_SIZE + 100], [-1])
    check(device, plan, Tuning(1, 16, 1, workgroups=1, is_cpu=True, long_run=1))


@pytest.mark.parametrize("element_size", [1, 2, 4, 8])
@pytest.mark.parametrize("along", range(9))
def test_transposed_blocks_of_ranks_above_eight(device, element_size, along):
    """Any dimension can be contiguous in the source, including those that records cannot have."""
    side = BLOCKS[element_size].unit // element_size
    sizes = [side if axis in (along, 9) else 2 for axis in range(10)]
    order = sorted(range(10), key=lambda axis: axis != along)
    steps = accumulate([sizes[axis] for axis in order[:-1]], mul, initial=1)
    strides = dict(zip(order, steps, strict=True))
    check(device, window(element_size, sizes, [strides[axis] for axis in range(10)]))


@pytest.mark.parametrize("element_size", [1, 4])
def test_inputs_and_outputs_in_several_heaps(adapter, element_size):
    """Each pair of heaps is one dispatch; together they are the whole plan, aligned or not."""
    device = vkops.Device(adapter.index)
    small_memory(device, device.pool.max_range)
    big = 20 << 20  # larger than the first heap, so each takes one of its own
    buffers = [Buffer(device, big) for _ in range(4)]
    assert len({id(b.extents[0].resource) for b in buffers}) > 1
    data = [np.random.default_rng(i).integers(0, 256, 4096, np.uint8) for i in range(2)]
    for buffer, array in zip(buffers[:2], data, strict=True):
        buffer.write(array, big - 4096)
    whole = View.packed((4096 // element_size,))
    first, second = (0, 501), (501, 4096 // element_size - 501)
    begin, end = whole.narrow(0, *first), whole.narrow(0, *second)
    parts = [(copy(begin, begin, k), copy(end.shift(-501), end, 1 - k)) for k in range(2)]
    outputs = tuple(Output(4096, regions) for regions in parts)
    plan = CopyPlan(element_size, (4096, 4096), outputs)
    bound = [slice_extents(b.extents, big - 4096, 4096) for b in buffers]
    run_work(device, EncodedPlan(plan, device.tuning).bind(bound[:2], bound[2:]))
    for buffer, expected in zip(buffers[2:], execute(plan, data), strict=True):
        np.testing.assert_array_equal(buffer.array(big - 4096), expected)


def test_tensors_larger_than_a_buffer_are_spread(small_buffers):
    """Whatever the operator, where a tensor lies changes nothing."""
    random = np.random.default_rng(0)
    x = random.integers(0, 256, (97, 131), np.uint8)
    t = small_buffers.tensor(x)
    assert len(t.buffer.extents) == 4
    equal(t, x)
    np.testing.assert_array_equal(t.buffer.array(4000, 200), x.reshape(-1)[4000:4200])
    t.buffer.write(x.reshape(-1)[4000:4203].copy(), 4000)
    parts = vkops.split(t, [43, 44, 44], 1)
    for part, expected in zip(parts, np.split(x, [43, 87], 1), strict=True):
        equal(part, expected)
    joined = vkops.join([t, small_buffers.tensor(x[:, :7]), t], 1)
    equal(joined, np.concatenate([x, x[:, :7], x], 1))
    equal(t[::-1, ::3], x[::-1, ::3])
    for few in (np.s_[:2, ::2], np.s_[40:42, 5:2:-1], np.s_[-1:]):  # in some of the heaps
        equal(t[few].copy(), x[few])
        equal(vkops.join([t[few], t[few]]), np.concatenate([x[few]] * 2))
    y = random.integers(0, 1 << 30, (64, 80), np.int32)
    turned = small_buffers.tensor(y)[:, ::-1]
    equal(turned, y[:, ::-1])
    used = small_buffers.memory_report().used
    buffers = [v.buffer for v in (t, *parts, joined, turned)]
    assert used == sum(extent.nbytes for buffer in buffers for extent in buffer.extents)
    del t, parts, part, joined, turned, buffers
    assert small_buffers.memory_report().used == 0


def mixed(side):
    """A transposed table of words, and a few bytes that no word divides."""
    words = View.packed((side, side)).permute((1, 0))
    table = copy(words, View.packed((side, side)))
    few = make_region((3,), 1, (1,), (1, 2, (1,)))
    outputs = (Output(side * side * 4, narrow([table], 4, 1)), Output(8, (few,)))
    return CopyPlan(1, (side * side * 4, 8), outputs)


def kernels_of(device, plan, tuning=TUNINGS["cpu"]):
    inputs = [np.zeros(n, np.uint8) for n in plan.inputs]
    bound, _, _ = guarded(device, plan, inputs, tuning)
    return [dispatch.table.kernel.name for dispatch in bound]


def test_much_data_does_not_wait_for_a_few_bytes(device):
    """One dispatch for both would move all of it byte by byte."""
    large, small = mixed(512), mixed(16)
    assert kernels_of(device, large) == ["copy_block_4", "copy_1"]
    assert kernels_of(device, small) == ["copy_1"]
    check(device, large)
    check(device, small)


def test_a_border_does_not_slow_down_what_it_surrounds(device):
    """Columns of single words, beside rows that are contiguous: in one output."""
    source, target = Read(0, View.packed((60, 74, 74))), View.packed((60, 76, 76))
    padded = pad_with_copies(source, target, (0, 1, 1), (0, 1, 1), "reflect")
    nbytes = 60 * 76 * 76 * 4
    plan = CopyPlan(4, (60 * 74 * 74 * 4,), (Output(nbytes, tuple(padded)),))
    assert sorted(kernels_of(device, plan)) == ["copy_4", "copy_run"]
    check(device, plan)
    assert sorted(kernels_of(device, plan, encoding.GPU)) == ["copy_grid_4"]
    check(device, plan, encoding.GPU)


@pytest.mark.slow
@pytest.mark.parametrize("workload", WORKLOADS, ids=attrgetter("name"))
def test_workloads_with_the_settings_of_a_gpu(device, monkeypatch, workload):
    monkeypatch.setattr(device, "tuning", encoding.GPU)
    case = workload.case
    inputs = [np.ascontiguousarray(array) for array in case.inputs(np.random.default_rng(1))]
    tensors = [device.tensor(array) for array in inputs]
    outputs = [device.buffer(t.total_tensor_size_in_bytes) for _, t in case.desc.outputs]
    compiled(device, case.desc).dispatch([tensor.buffer for tensor in tensors], outputs)
    for output, expected in zip(outputs, case.numpy(inputs), strict=True):
        stored = np.ascontiguousarray(expected).reshape(-1).view(np.uint8)
        np.testing.assert_array_equal(output.array()[: stored.size], stored)
