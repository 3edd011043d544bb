"""``vkops debug trace``: the stores of an element that the device reports, against the plan."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from random import Random

import kernel_plans
import mixed_work
import numpy as np
import pytest
from adapters import UNDER_LAYER
from byte_arrays import described
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kernel_plans import TUNINGS, several, stream_plans, window, words
from operator_table import OPERATORS, indexed_operators
from regions import make_region
from strategies import input_bytes, plans

import vkops
from vkops import shaders
from vkops.cli import main
from vkops.debug.traced_element import Element, trace
from vkops.dml import (
    BufferTensorDesc,
    ElementWiseIdentityOperatorDesc,
    JoinOperatorDesc,
    ScatterOperatorDesc,
    Slice1OperatorDesc,
    TensorDataType,
)
from vkops.errors import BindingError, OutOfDeviceMemoryError
from vkops.extent import slice_extents
from vkops.gpu.copies import encoded
from vkops.gpu.copies.rule import COPY, REGIONS
from vkops.gpu.kernels.layout import MAX_RECORDS
from vkops.gpu.run.buffer import Buffer
from vkops.gpu.run.encoded_plan import EncodedPlan
from vkops.gpu.run.stores import stores
from vkops.plan import CopyPlan, Fill, Output, Region, View
from vkops.plan.movements import copy

pytestmark = pytest.mark.usefixtures("by_shaders")  # other than where a test says so


def bound_to(device, plan, inputs, tuning):
    """Dispatches of a plan, and where its inputs and outputs lie: in one buffer, apart."""
    sizes = [*plan.inputs, *(output.nbytes for output in plan.outputs)]
    starts = np.cumsum([256, *(-(-n // 256) * 256 + 256 for n in sizes)])
    buffer = Buffer(device.executor, int(starts[-1]))
    buffer.write(np.zeros(buffer.nbytes, np.uint8))
    places = [slice_extents(buffer.extents, int(s), n) for s, n in zip(starts, sizes, strict=False)]
    for start, data in zip(starts, inputs, strict=False):
        buffer.write(data, int(start))
    ins, outs = places[: len(inputs)], places[len(inputs) :]
    return EncodedPlan(plan, tuning).bind(ins, outs), ins, outs, buffer


def check(device, plan, picks, tuning=None):
    """Trace bytes of elements: ``picks`` are (output, region, index, byte) of each.

    Returns the kernels and commands that wrote them.
    """
    inputs = input_bytes(plan)
    dispatches, ins, outs, buffer = bound_to(device, plan, inputs, tuning or device.executor.tuning)
    size, written_by = plan.element_size, set()
    for output, number, index, byte in picks:
        region = plan.outputs[output].regions[number]
        to = region.target.offset + int(np.dot(index, region.target.strides))
        address = outs[output][0].start + to * size + byte
        (store,) = [s for d in dispatches for s in stores(device.executor, d, address)]
        if region.input is None:
            assert store.source is None
            wanted = region.source.pattern
        else:
            view = region.source_view
            at = (view.offset + int(np.dot(index, view.strides))) * size
            place = ins[region.input]
            heap, start, _ = place[0]
            assert store.source == (heap, start + at + byte)
            wanted = inputs[region.input][at : at + size].tobytes()
        start = outs[output][0].start - buffer.extents[0].start + to * size
        stored = buffer.read(start, size)[byte:] if "Copy" in store.writer else store.value
        assert stored[: size - byte] == wanted[byte:]
        written_by.add(store.writer.get("Copy") or store.writer["Kernel"])
    return written_by


def draw_picks(draw, plan, count):
    picks = []
    for _ in range(count):
        output = draw(st.integers(0, len(plan.outputs) - 1))
        number = draw(st.integers(0, len(plan.outputs[output].regions) - 1))
        sizes = plan.outputs[output].regions[number].sizes
        index = tuple(draw(st.integers(0, n - 1)) for n in sizes)
        picks.append((output, number, index, draw(st.integers(0, plan.element_size - 1))))
    return picks


@st.composite
def traced(draw, plans):
    plan = draw(plans)
    return plan, draw_picks(draw, plan, 2), draw(st.sampled_from(list(TUNINGS.values())))


# Each trace is a pipeline of its own, which takes a second and more to instrument and compile.
on_device = settings(
    max_examples=2 if UNDER_LAYER else 25,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@on_device
@given(case=traced(plans()))
def test_random_elements_of_random_plans(device, case):
    check(device, *case)


@settings(on_device, max_examples=2 if UNDER_LAYER else 5)
@given(case=traced(plans()))
def test_random_elements_through_staging(staged_device, case):
    check(staged_device, *case)


@on_device
@given(case=traced(stream_plans()))
def test_random_elements_of_streams(device, case):
    plan, picks, tuning = case
    check(device, plan, picks, replace(tuning, sources=device.executor.tuning.sources))


def by_copies(device):
    """All contiguous runs are copied by Vulkan's own copies."""
    tuning, kompute = device.executor.tuning, device.executor.queue.kompute
    return replace(tuning, copies=replace(REGIONS, images=kompute.images))


@on_device
@given(case=traced(plans()))
def test_random_elements_of_copies(device, case):
    plan, picks, _ = case
    check(device, plan, picks, by_copies(device))


def columns(rows, width, start, count):
    """Columns of an array of bytes, to a packed one."""
    part, packed = View((rows, count), (width, 1), start), View.packed((rows, count))
    return part, packed, rows * width, rows * count


@pytest.mark.parametrize(
    ("width", "start", "count", "joined", "command"),
    [
        (1 << 17, 64, 1 << 16, False, "vkCmdCopyBuffer"),
        (256, 64, 100, False, "vkCmdCopyImageToBuffer"),
        (256, 64, 100, True, "vkCmdCopyBufferToImage"),
        (63, 21, 20, False, "vkCmdCopyBufferToImage"),
        (63, 21, 21, True, "vkCmdCopyBufferToImage"),
    ],
)
def test_each_kind_of_copy(device, width, start, count, joined, command):
    rows = (1 << 20) // width
    source, target, read, written = columns(rows, width, start, count)
    if joined:
        source, target, read, written = target, source, written, read
    plan = CopyPlan(1, (words(read),), (Output(words(written), (copy(source, target),)),))
    picks = [(0, 0, index, 0) for index in ((0, 0), (rows // 3, count // 2), (rows - 70, 3))]
    if command != "vkCmdCopyBuffer" and not device.executor.queue.kompute.images:
        pytest.skip("the device has no linear images over tensors")
    if rows < 70:
        picks = picks[:2]
    assert check(device, plan, picks, by_copies(device)) == {command}


def test_a_constant_that_is_filled(device):
    plan = CopyPlan(4, (), (Output(400, (Region(View.packed((100,)), Fill(b"abcd")),)),))
    assert check(device, plan, [(0, 0, (9,), 2)], by_copies(device)) == {"vkCmdFillBuffer"}


KERNELS = {
    "copy_16": window(4, [256], [1]),
    "copy_8": window(8, [300], [3], 0, [2]),
    "copy_4": window(4, [40, 3], [9, 1], 0, [4, 1]),
    "copy_2": window(2, [7, 5, 3], [90, 9, 1]),
    "copy_1": window(1, [333], [2]),
    "copy_block_8": window(8, [6, 4], [1, 6]),
    "copy_block_4": window(4, [8, 5, 4], [1, 40, 8]),
    "copy_block_2": window(2, [16, 12], [1, 16]),
    "copy_block_1": window(1, [32, 48], [1, 32]),
    "copy_elements_8": window(8, [300], [3]),
    "copy_elements_4": window(4, [40, 3], [9, 1]),
    "copy_reverse": window(2, [5, 64], [-64, -1]),
    "copy_run": window(1, [3, 5, 37], [900, 53, 1], 3),
    "copy_stream": several(1, 24, 5, 7),
    "copy_stream_4": window(8, [50], [1], 1),
    **{f"copy_tile_{n}": window(n, [144 // n, 128 // n], [1, 144 // n]) for n in (1, 2, 4, 8, 16)},
}


def elements(plan):
    """The first and the last element of the plan's regions, and two bytes of random ones."""
    random = np.random.default_rng(5)
    regions = plan.outputs[0].regions
    yield 0, 0, (0,) * len(regions[0].sizes), 0
    yield 0, len(regions) - 1, tuple(n - 1 for n in regions[-1].sizes), plan.element_size - 1
    for number in random.integers(len(regions), size=2).tolist():
        index = tuple(random.integers(regions[number].sizes).tolist())
        yield 0, number, index, int(random.integers(plan.element_size))


@pytest.mark.parametrize("tuning", TUNINGS.values(), ids=TUNINGS)
@pytest.mark.parametrize("kernel", KERNELS)
def test_every_kernel_reports_its_stores(device, kernel, tuning):
    plan = KERNELS[kernel]
    tuning = replace(tuning, sources=device.executor.tuning.sources)
    ran = check(device, plan, elements(plan), tuning)
    if kernel == "copy_stream" and tuning.sources < 4:
        kernel = "copy_run"
    if "elements" in kernel and not tuning.is_cpu:
        kernel = f"copy_{plan.element_size}"
    if "tile" in kernel and tuning.is_cpu:
        kernel = kernel.replace("tile", "block") if plan.element_size < 16 else "copy_16"
    assert ran == {kernel}


def test_every_kernel_has_such_a_plan():
    """Those with indices have tests of their own; wide ones are never traced."""
    others = {
        name
        for name in shaders.VARIANTS
        if name.startswith(("gather", "scatter")) or name.endswith("_wide")
    }
    assert KERNELS.keys() == shaders.VARIANTS.keys() - others


@pytest.mark.parametrize("element_size", [1, 2, 4, 8, 16])
def test_constants(device, element_size):
    picks = [(0, 0, (4, 6), element_size - 1), (0, 1, (99,), 0), (0, 1, (17,), 0)]
    check(device, kernel_plans.constants(element_size), picks)


def test_more_than_one_dispatch(device):
    plan = kernel_plans.more_regions_than_a_table_holds()
    count = len(plan.outputs[0].regions)
    check(device, plan, [(0, 0, (2,), 0), (0, MAX_RECORDS - 1, (1,), 3), (0, count - 1, (0,), 1)])


@pytest.mark.parametrize("element_size", [1, 4])
def test_several_heaps(device, element_size):
    executor = device.executor
    big = 20 << 20  # larger than the first heap
    buffers = [Buffer(executor, big) for _ in range(3)]
    assert len({id(buffer.extents[0].resource) for buffer in buffers}) > 1
    n = 4096 // element_size
    regions = [
        make_region((n // 2,), n // 2 * number, (1,), (number, 1, (1,))) for number in range(2)
    ]
    plan = CopyPlan(element_size, (4096, 4096), (Output(4096, tuple(regions)),))
    ins = [slice_extents(buffer.extents, big - 4096, 4096) for buffer in buffers[:2]]
    out = slice_extents(buffers[2].extents, 512, 4096)
    data = [np.full(4096, number + 1, np.uint8) for number in range(2)]
    for buffer, array in zip(buffers, data, strict=False):
        buffer.write(array, big - 4096)
    dispatches = EncodedPlan(plan, executor.tuning).bind(ins, [out])
    for number in range(2):
        index = n // 2 * number + 5
        address = out[0].start + index * element_size
        (store,) = [s for d in dispatches for s in stores(executor, d, address)]
        ((heap, start, _),) = ins[number]
        assert store.source == (heap, start + (1 + 5) * element_size)
        assert store.value[:element_size] == bytes([number + 1]) * element_size


def test_a_byte_that_nothing_stores(device):
    plan = window(4, [5, 4], [4, 1], 0, [8, 1])
    (dispatch,), _, (out,), _ = bound_to(device, plan, input_bytes(plan), device.executor.tuning)
    for address in (out[0].start + 16, out[0].start - 4, 0):
        assert stores(device.executor, dispatch, address) == []


# -- operators -------------------------------------------------------------------------------------


def stages(device, desc, inputs, outputs, element):
    operator = device.compile_operator(device.create_operator(desc))
    return list(trace(operator, operator.bind(inputs, outputs), element))


def test_an_input_bound_twice_is_the_one_of_the_plan(device):
    """Both have the same memory; the device reads the second's, whatever it is called."""
    x, y = device.tensor(np.arange(6, dtype=np.int16)), device.buffer(24)
    part = BufferTensorDesc(TensorDataType.INT16, [6])
    whole = BufferTensorDesc(TensorDataType.INT16, [12])
    found = stages(device, JoinOperatorDesc([part, part], whole, 0), [x, x], [y], Element(0, 14, 2))
    assert [stage.name for stage in found if stage.differs] == []
    assert ("Source", "input_tensors[1], byte 2", "input_tensors[1], byte 2") in found
    assert found[-1] == ("Bytes in the output", "01 00", "01 00")


def test_in_place(device):
    x = device.tensor(np.arange(8, dtype=np.float32))
    desc = BufferTensorDesc(TensorDataType.FLOAT32, [8])
    found = stages(device, ElementWiseIdentityOperatorDesc(desc, desc), [x], [x], Element(0, 20, 4))
    assert [stage.name for stage in found if stage.differs] == []
    assert found[-1].device == np.float32(5).tobytes().hex(" ")


def test_padding_is_no_element(device):
    x, y = device.tensor(np.arange(4, dtype=np.uint8)), device.buffer(16)
    part = BufferTensorDesc(TensorDataType.UINT8, [2, 2])
    padded = BufferTensorDesc(TensorDataType.UINT8, [2, 2], [8, 1])
    desc = Slice1OperatorDesc(part, padded, [0, 0], [2, 2], [1, 1])
    with pytest.raises(BindingError) as refused:
        stages(device, desc, [x], [y], Element(0, 3, 1))
    assert refused.value.message == "byte 3 belongs to no element: the operator does not write it"


@pytest.mark.parametrize("kind", ["INT64", "FLOAT64", "INT32", "UINT16", "INT8"])
@pytest.mark.parametrize("staged", [False, True])
def test_elements_of_every_size(device, staged_device, kind, staged):
    """At offsets of the bindings and the window that no vector begins at."""
    used = staged_device if staged else device
    kind = TensorDataType[kind]
    size = kind.element_size
    x, y = used.buffer(640), used.buffer(400)
    data = np.random.default_rng(1).integers(0, 256, 70 * size, np.uint8)
    x.write(data, 16)
    source, target = BufferTensorDesc(kind, [70]), BufferTensorDesc(kind, [33])
    desc = Slice1OperatorDesc(source, target, [3], [33], [1])
    for index in (0, 1, 17, 32):
        found = stages(used, desc, [(x, 16, None)], [(y, 48, None)], Element(0, index * size, size))
        assert [stage.name for stage in found if stage.differs] == []
        at = (3 + index) * size
        assert found[-1].device == data[at : at + size].tobytes().hex(" ")


INDEXED = indexed_operators()


@pytest.mark.parametrize("kind", ["UINT8", "UINT16", "FLOAT32", "INT64"])
@pytest.mark.parametrize("name", INDEXED)
def test_operators_with_indices(device, name, kind):
    """The plan's source is computed from what the index tensor holds."""
    kind = TensorDataType[kind]
    case = OPERATORS[name].make(Random(len(name)), kind, (5, 6, 4), 1)
    inputs, outputs = mixed_work.bindings(device, Random(0), case)
    desc, size = case.desc, kind.element_size
    (tensor,) = (tensor for _, tensor in desc.outputs)
    expected = np.zeros(tensor.total_tensor_size_in_bytes, np.uint8)
    arrays = [described(t, b.read()) for (_, t), b in zip(desc.inputs, inputs, strict=True)]
    (result,) = case.expect(arrays)
    strides = [stride * size for stride in tensor.effective_strides]
    described(tensor, expected)[...] = result
    for index in ([0] * len(tensor.sizes), [n - 1 for n in tensor.sizes]):
        offset = int(np.dot(index, strides))
        found = stages(device, desc, inputs, outputs, Element(0, offset, size))
        assert [stage for stage in found if stage.differs] == []
        assert found[-1].device == expected[offset : offset + size].tobytes().hex(" ")


def scatter(kind, count, width):
    """Rows of a table of 8, written where indices say."""
    table, updates = (BufferTensorDesc(TensorDataType[kind], [n, width]) for n in (8, count))
    indices = BufferTensorDesc(TensorDataType.INT32, [count, width], [1, 0])
    return ScatterOperatorDesc(table, indices, updates, table, 0)


@pytest.mark.parametrize("kind", ["UINT8", "INT32", "FLOAT64"])
def test_of_several_updates_any_may_be_the_last(device, kind):
    desc = scatter(kind, 5, 3)
    size = desc.data_type.element_size
    table = device.tensor(np.zeros((8, 3), f"i{size}")).buffer
    rows = device.tensor(np.full(5, -3, np.int32)).buffer
    updates = device.tensor(np.arange(15, dtype=f"i{size}"))
    inputs, output = [table, rows, updates.buffer], device.buffer(8 * 3 * size)
    found = stages(device, desc, inputs, [output], Element(0, (5 * 3 + 1) * size, size))
    assert [stage for stage in found if stage.differs] == []
    (source,) = (stage.plan for stage in found if stage.name == "Source")
    assert source.startswith("updates_tensor, byte ")
    found = stages(device, desc, inputs, [output], Element(0, (4 * 3 + 1) * size, size))
    assert ("Stores of it", "1", "1") in found
    assert [stage for stage in found if stage.differs] == []


def test_more_updates_than_are_reported(device):
    memory = device.tensor(np.zeros(300, np.int32)).buffer
    inputs, output = [memory] * 3, device.buffer(8 * 3 * 4)
    found = stages(device, scatter("INT32", 20, 3), inputs, [output], Element(0, 4, 4))
    assert found[-1] == ("Stores of it", "16 or more", "16 or more")


# -- the command -----------------------------------------------------------------------------------


def values(kind, count, start=0, delta=1):
    values = {"valueStart": start, "valueDelta": delta, "valueCount": count}
    return {"initialValuesDataType": kind, "initialValues": values}


def slice1(kind, sizes, taken, strides, offsets=None, **target):
    return {
        "type": "SLICE1",
        "desc": {
            "InputTensor": {"DataType": kind, "Sizes": sizes},
            "OutputTensor": {"DataType": kind, "Sizes": taken, **target},
            "InputWindowOffsets": offsets or [0] * len(sizes),
            "InputWindowSizes": [
                n if abs(s) == 1 else n * abs(s) for n, s in zip(taken, strides, strict=True)
            ],
            "InputWindowStrides": strides,
        },
    }


def model(operator, kind, count):
    """A model with one dispatch from X to Y."""
    bindings = {"InputTensor": "X", "OutputTensor": "Y"}
    return {
        "resources": {"X": values(kind, count), "Y": values(kind, count, delta=0)},
        "dispatchables": {"it": operator},
        "commands": [{"type": "dispatch", "dispatchable": "it", "bindings": bindings}],
    }


@pytest.fixture
def vkops_trace(adapter, tmp_path, monkeypatch, capsys):
    """Trace an element of a model: status, standard output, standard error."""
    monkeypatch.delenv("VKOPS_EXPECT", raising=False)
    monkeypatch.setenv("COLUMNS", "200")

    def run(content, *arguments):
        path = tmp_path / "m.json"
        path.write_text(json.dumps(content))
        status = main(["debug", "trace", str(path), "-a", adapter.name, *arguments])
        seen = capsys.readouterr()
        assert seen.err.count("\n") == (status != 0)
        return status, seen.out, seen.err

    return run


REVERSE = slice1("INT64", [70], [33], [-2], [2], Strides=[2])
TRANSPOSE = {
    "type": "ELEMENT_WISE_IDENTITY",
    "desc": {
        "InputTensor": {"DataType": "UINT32", "Sizes": [8, 8], "Strides": [1, 8]},
        "OutputTensor": {"DataType": "UINT32", "Sizes": [8, 8]},
    },
}


def test_the_way_of_an_element(vkops_trace):
    status, out, _ = vkops_trace(model(REVERSE, "INT64", 70), "30")
    assert status == 0
    rows = re.findall(r"^│ (.*?) +│ (.*?) +│ (.*?) +│$", out, re.MULTILINE)
    assert rows[0][:2] == (
        "Region",
        "1 of 1: sizes (33,), to 0, strides (2,), from input 0 at 67, strides (-2,)",
    )
    assert [row[0] for row in rows[1:3]] == ["Stores of it", "Kernel"]
    assert rows[-3:] == [
        ("Source", "InputTensor, byte 56", "the same"),
        ("Bytes stored", "07 00 00 00 00 00 00 00", "the same"),
        ("Bytes in the output", "07 00 00 00 00 00 00 00", "the same"),
    ]
    assert out.endswith("The device did as the plan says\n")


def test_the_way_of_an_element_by_a_copy(vkops_trace, monkeypatch):
    monkeypatch.setenv(COPY, "regions")
    rows = slice1("INT32", [4, 1024], [2, 1000], [1, 1], [1, 8])
    status, out, _ = vkops_trace(model(rows, "INT32", 4096), "1,3")
    assert status == 0
    found = re.findall(r"^│ (.*?) +│ (.*?) +│ (.*?) +│$", out, re.MULTILINE)
    assert found[1:] == [
        ("Stores of it", "1", "the same"),
        ("Copy", "", "vkCmdCopyBuffer"),
        ("Region of the copy", "", "2 of 2"),
        ("Source", "InputTensor, byte 8236", "the same"),
        ("Bytes in the output", "0b 08 00 00", "the same"),
    ]


def test_a_wrong_copy_is_found(vkops_trace, monkeypatch):
    monkeypatch.setenv(COPY, "regions")
    rows = encoded.run_rows
    monkeypatch.setattr(
        encoded, "run_rows", lambda region, size: np.add(rows(region, size), [4, 0, 0])
    )
    taken = slice1("INT32", [4, 1024], [2, 1000], [1, 1], [1, 8])
    status, out, _ = vkops_trace(model(taken, "INT32", 4096), "1,3")
    assert status == 1
    assert re.search(r"│ Source +│ InputTensor, byte 8236 +│ InputTensor, byte 8240 ", out)


# What is wrong in a kernel, in which model, and where that is seen.
BUGS = {
    "a missing store": (
        "copy.comp", "target[item.dst] = constant ? pattern : element;", "", (REVERSE, "INT64", 70), "30",
        "Bytes in the output",
    ),
    "a wrong value": (
        "copy.comp", "= source[item.src];", "= source[item.src] + 1u;", (REVERSE, "INT64", 70), "30",
        "Bytes stored",
    ),
    "a wrong source": (
        "region.glsl", "item.src = head.HEAD_SRC;", "item.src = head.HEAD_SRC + 1u;", (REVERSE, "INT64", 70), "30",
        "Source",
    ),
    "a wrong stride of the source": (
        "region.glsl", "value * digit.DIGIT_SRC;", "value * (digit.DIGIT_SRC + 1u);", (REVERSE, "INT64", 70), "30",
        "Source",
    ),
    "a wrong stride of the destination": (
        "region.glsl", "value * digit.DIGIT_DST;", "value * (digit.DIGIT_DST + 1u);", (REVERSE, "INT64", 70), "31",
        "Stores of it",
    ),
    "an item left out": (
        "region.glsl", "if (rest >= head.HEADER_ITEMS)", "if (rest + 1u >= head.HEADER_ITEMS)",
        (REVERSE, "INT64", 70), "32", "Stores of it",
    ),
    "an item done twice": (
        "region.glsl", "gl_LocalInvocationIndex;\n    if (rest", "(gl_LocalInvocationIndex & ~1u);\n    if (rest",
        (REVERSE, "INT64", 70), "32", "Stores of it",
    ),
    "blocks": (
        "copy_block.comp", "source[item.src + k * block.BLOCK_ROW_SRC]", "source[item.src + (k ^ 1u) * block.BLOCK_ROW_SRC]",
        (TRANSPOSE, "UINT32", 64), "3,6", "Bytes stored",
    ),
    "reversed vectors": (
        "copy_reverse.comp", "if (size <= 4u) v = v.yxwz;", "",
        (slice1("UINT32", [64], [64], [-1]), "UINT32", 64), "11", "Bytes stored",
    ),
    "elements": (
        "copy_elements.comp", "places * group.GROUP_SRC;", "places * (group.GROUP_SRC + 1u);",
        (slice1("UINT32", [8, 9], [4, 3], [2, 3]), "UINT32", 72), "3,2", "Source",
    ),
    "runs": (
        "copy_run.comp", "uint(start) & 15u", "uint(start + 1) & 15u",
        (slice1("UINT32", [4, 5, 9], [3, 4, 7], [1, 1, 1], [1, 1, 1]), "UINT32", 180), "2,3,5", "Bytes stored",
    ),
    "streams": (
        "copy_stream.comp", "place.src += skipped;", "place.src += skipped + 1u;",
        (slice1("UINT8", [64], [50], [1], [5]), "UINT8", 64), "3", "Source",
    ),
    "joined pieces": (
        "copy_stream.comp", "(first & mask) | (others & ~mask)", "(first & mask) | (others & mask)",
        (slice1("UINT8", [64], [50], [1], [5]), "UINT8", 64), "13", "Bytes in the output",
    ),
    "bytes": (
        "copy_subword.comp", "src + (base + t) * stride;", "src + (base + t) * stride + 1u;",
        (slice1("UINT8", [64], [21], [3]), "UINT8", 64), "10", "Bytes stored",
    ),
}  # fmt: skip


@pytest.mark.parametrize("bug", BUGS)
def test_planted_bugs(vkops_trace, tmp_path, monkeypatch, bug):
    file, right, wrong, arguments, element, stage = BUGS[bug]
    folder = tmp_path / "shaders"
    shutil.copytree(shaders.source_dir(), folder)
    text = (folder / file).read_text()
    assert text.count(right) == 1
    status, out, _ = vkops_trace(model(*arguments), element)
    assert (status, out.splitlines()[-1]) == (0, "The device did as the plan says")
    (folder / file).write_text(text.replace(right, wrong))
    monkeypatch.setenv("VKOPS_SHADER_DIR", str(folder))
    status, out, err = vkops_trace(model(*arguments), element)
    assert (status, err) == (1, f"The device differs from the plan: {stage}\n"), out
    last = out.splitlines()[-2]
    assert last.startswith(f"│ {stage} ")
    assert "the same" not in last


GATHER = {
    "resources": {
        "X": values("FLOAT32", 6),
        "Rows": values("INT64", 4, -2),
        "Y": values("FLOAT32", 8, delta=0),
    },
    "dispatchables": {
        "gather": {
            "type": "GATHER",
            "desc": {
                "InputTensor": {"DataType": "FLOAT32", "Sizes": [3, 2]},
                "IndicesTensor": {"DataType": "INT64", "Sizes": [1, 4]},
                "OutputTensor": {"DataType": "FLOAT32", "Sizes": [4, 2]},
                "Axis": 0,
                "IndexDimensions": 1,
            },
        }
    },
    "commands": [
        {
            "type": "dispatch",
            "dispatchable": "gather",
            "bindings": {"InputTensor": "X", "IndicesTensor": "Rows", "OutputTensor": "Y"},
        }
    ],
}


def test_a_planted_bug_in_reading_indices(vkops_trace, tmp_path, monkeypatch):
    status, out, _ = vkops_trace(GATHER, "1,0")
    assert status == 0
    assert re.search("strides .*, moved by the indices in input 1 ", out)
    assert "InputTensor, byte 16" in out  # index -1 is the third row
    folder = tmp_path / "shaders"
    shutil.copytree(shaders.source_dir(), folder)
    file = folder / "indices.glsl"
    right = "low + term.TERM_SIZE"
    assert right in file.read_text()
    file.write_text(file.read_text().replace(right, "low + term.TERM_SIZE - 1u"))
    monkeypatch.setenv("VKOPS_SHADER_DIR", str(folder))
    status, out, err = vkops_trace(GATHER, "1,0")
    assert (status, err) == (1, "The device differs from the plan: Source\n"), out


def split(kind, sizes, parts):
    outputs = [{"DataType": kind, "Sizes": [n, *sizes[1:]]} for n in parts]
    tensor = {"DataType": kind, "Sizes": sizes}
    return {"type": "SPLIT", "desc": {"InputTensor": tensor, "OutputTensors": outputs, "Axis": 0}}


SPLIT = {
    "resources": {"X": values("UINT16", 10, 1), "A": values("UINT16", 4), "B": values("UINT16", 6)},
    "dispatchables": {"cut": split("UINT16", [10], [4, 6])},
    "commands": [
        {
            "type": "dispatch",
            "dispatchable": "cut",
            "bindings": {"InputTensor": "X", "OutputTensors": ["A", "B"]},
        }
    ],
}


@pytest.mark.parametrize(
    ("content", "arguments", "status", "named"),
    [
        (SPLIT, ["0"], 1, "--output"),
        (SPLIT, ["0", "--output", "Y"], 1, "--output"),
        (SPLIT, ["4", "--output", "OutputTensors[0]"], 1, "element (4,)"),
        (SPLIT, ["1,2", "--output", "OutputTensors[0]"], 1, "element (1, 2)"),
        (SPLIT, ["--output", "OutputTensors[0]", "--", "-1"], 1, "element (-1,)"),
        (SPLIT, ["0", "--dispatch", "2"], 1, "--dispatch"),
        ({**SPLIT, "commands": []}, ["0"], 1, "--dispatch"),
        (SPLIT, ["a"], 2, "'element'"),
        (SPLIT, ["0,"], 2, "'element'"),
    ],
)  # fmt: skip
def test_what_cannot_be_traced(vkops_trace, content, arguments, status, named, message):
    got, _, errors = vkops_trace(content, *arguments)
    assert got == status
    message(errors.removesuffix("\n"), *named.split())


def test_one_of_several_outputs(vkops_trace):
    status, out, _ = vkops_trace(SPLIT, "5", "--output", "OutputTensors[1]")
    assert status == 0
    assert "InputTensor, byte 18" in out
    assert "0a 00" in out


def test_a_later_dispatch_has_what_the_others_made(vkops_trace):
    """The same command twice, with one between that changes what it reads."""
    dispatch = SPLIT["commands"][0]
    again = {**dispatch, "bindings": {"InputTensor": "Z", "OutputTensors": ["A", "B"]}}
    content = {
        **SPLIT,
        "resources": {**SPLIT["resources"], "Z": values("UINT16", 10, 101)},
        "dispatchables": {
            **SPLIT["dispatchables"],
            "back": {
                "type": "ELEMENT_WISE_IDENTITY",
                "desc": {
                    "InputTensor": {"DataType": "UINT16", "Sizes": [4]},
                    "OutputTensor": {"DataType": "UINT16", "Sizes": [4]},
                },
            },
        },
        "commands": [
            again,
            {"type": "dispatch", "dispatchable": "back", "bindings": {"InputTensor": "A", "OutputTensor": "X"}},
            dispatch,
            {"type": "print", "resource": "A"},
        ],
    }  # fmt: skip
    status, out, _ = vkops_trace(content, "3", "--output", "OutputTensors[0]", "--dispatch", "3")
    assert status == 0
    assert "68 00" in out  # 104
    assert "Resource" not in out


def test_an_input_that_the_operator_owns(vkops_trace):
    owned = split("UINT16", [10], [4, 6])
    owned["desc"]["InputTensor"]["Flags"] = "OWNED_BY_DML"
    bindings = {"OutputTensors": ["A", "B"]}
    content = {
        **SPLIT,
        "dispatchables": {"cut": {**owned, "bindings": {"InputTensor": "X"}}},
        "commands": [{"type": "dispatch", "dispatchable": "cut", "bindings": bindings}],
    }
    status, out, err = vkops_trace(content, "5", "--output", "OutputTensors[1]")
    assert (status, err) == (0, "")
    assert "InputTensor, byte 18" in out
    assert "0a 00" in out


def test_what_is_streamed_has_no_trace(vkops_trace, monkeypatch):
    def full(self, nbytes):
        raise OutOfDeviceMemoryError("full")

    monkeypatch.setattr(vkops.Device, "buffer", full)
    assert vkops_trace(SPLIT, "0", "--output", "OutputTensors[0]")[::2] == (
        1,
        "the model does not fit on the device: operators that are streamed cannot be traced\n",
    )


@pytest.mark.parametrize("name", ["m.txt", "m.onnx", "none.json"])
def test_files_that_are_no_models(name, capsys, adapter):
    assert main(["debug", "trace", name, "0", "-a", adapter.name]) == 1
    assert capsys.readouterr().err.count("\n") == 1
