"""Results that DirectML's documentation leaves open, as DirectML 1.15.4 gives them under Wine."""

from dataclasses import replace
from random import Random

import numpy as np
import pytest
from byte_arrays import POISON, poisoned
from hypothesis import given
from hypothesis import strategies as st
from operator_table import OPERATORS
from outlying_indices import outlying_case

from vkops import dml
from vkops.plan import execute, validate
from vkops.plan.algebra import optimize
from vkops.plan.cut import cut

T, B = dml.TensorDataType, dml.BufferTensorDesc
NEAREST = dml.InterpolationMode.NEAREST_NEIGHBOR
UP, DOWN = dml.AxisDirection.INCREASING, dml.AxisDirection.DECREASING
INFINITE, NAN = float("inf"), float("nan")


def sequence(dtype, start, delta, count):
    tensor = B(dtype, [count])
    desc = dml.FillValueSequenceOperatorDesc(tensor, dtype, start, delta)
    return execute(desc.lower(), [])[0].view(dtype.numpy_code)[:count]


@pytest.mark.parametrize(
    ("start", "delta", "bits"),
    [
        (0, 1e-7, "0000 0002 0004 0006 0008 000a 000c 000e 0010 0012 0014 0016"),
        (3e-8, 3e-8, "0001 0002 0003 0004 0005 0006 0007 0008 0009 000a 000b 000c"),
        (0.1, 0.1, "2e66 3266 34cc 3666 37ff 38cc 3999 3a66 3b32 3bff 3c66 3ccc"),
        (2048, 1, "6800 6800 6801 6801 6802 6802 6803 6803 6804 6804 6805 6805"),
        (-2048, -1, "e800 e800 e801 e801 e802 e802 e803 e803 e804 e804 e805 e805"),
        (65504, 20000, "7bff 7bff 7bff 7bff"),
        (-65504, -20000, "fbff fbff fbff fbff"),
        (INFINITE, 1, "7c00 7c00 7c00"),
        (-0.0, 1, "0000 3c00 4000"),
        (-0.0, -0.0, "8000 8000 8000"),
    ],
)
@pytest.mark.filterwarnings("error")
def test_sequences_of_float16_are_rounded_toward_zero(start, delta, bits):
    expected = [int(number, 16) for number in bits.split()]
    assert sequence(T.FLOAT16, start, delta, len(expected)).view("u2").tolist() == expected


@pytest.mark.parametrize("dtype", [T.FLOAT16, T.FLOAT32])
@pytest.mark.parametrize(
    ("start", "delta", "expected"),
    [
        (1, INFINITE, [NAN, INFINITE, INFINITE]),
        (1, -INFINITE, [NAN, -INFINITE, -INFINITE]),
        (INFINITE, -INFINITE, [NAN, NAN, NAN]),
        (1, NAN, [NAN, NAN, NAN]),
        (-0.0, 0.0, [0, 0, 0]),
    ],
)
@pytest.mark.filterwarnings("error")
def test_sequences_of_infinite_numbers(dtype, start, delta, expected):
    np.testing.assert_array_equal(sequence(dtype, start, delta, 3), np.array(expected, "f4"))


def chosen(operator, size, count, scale, input_offset=0.0, output_offset=0.0, direction=DOWN):
    """The index that each element of an axis copies."""
    source, target = B(T.FLOAT32, [size]), B(T.FLOAT32, [count])
    offsets = [input_offset], [output_offset]
    descs = {
        "RESAMPLE": lambda: dml.ResampleOperatorDesc(source, target, NEAREST, [scale]),
        "RESAMPLE1": lambda: dml.Resample1OperatorDesc(source, target, NEAREST, [scale], *offsets),
        "RESAMPLE2": lambda: dml.Resample2OperatorDesc(
            source, target, NEAREST, direction, [scale], *offsets
        ),
    }
    data = np.arange(size, dtype="f4").view(np.uint8)
    return execute(descs[operator]().lower(), [data])[0].view("f4").astype(int)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("RESAMPLE", 1180, 2495, 2495 / 1180), {249: 117, 748: 353, 1746: 825}),
        (("RESAMPLE2", 4, 12, 3, 0.1, -0.3, UP), {6: 2}),
        # The reciprocals of powers of two are exact.
        (("RESAMPLE2", 4000, 4000, 1, 1.4133389, -1.4133389, UP), {15: 16, 127: 128}),
        (("RESAMPLE2", 4000, 4000, 8, 0.3, -0.40000444650650024, UP), {34: 5, 42: 6, 50: 7}),
    ],
)
def test_resampled_indices_are_those_of_directml(arguments, expected):
    indices = chosen(*arguments)
    assert {index: indices[index] for index in expected} == expected


@pytest.mark.parametrize("operator", ["RESAMPLE", "RESAMPLE1", "RESAMPLE2"])
@pytest.mark.parametrize("direction", [UP, DOWN])
def test_resampling_by_one_is_a_copy(operator, direction):
    for count in (30, 40):
        indices = chosen(operator, 30, count, 1, 0.5, -0.5, direction)
        assert indices.tolist() == [min(i, 29) for i in range(count)]


@pytest.mark.filterwarnings("error")
def test_coordinates_that_are_infinite_or_nan_are_limited():
    assert chosen("RESAMPLE1", 5, 4, 2**-23).tolist() == [0, 4, 4, 4]
    assert chosen("RESAMPLE1", 5, 4, 1, 0, -np.inf).tolist() == [4, 4, 4, 4]
    assert chosen("RESAMPLE1", 5, 4, np.inf, 0, np.inf).tolist() == [0, 0, 0, 0]  # NaN
    assert chosen("RESAMPLE1", 5, 4, 3.4e38).tolist() == [0, 0, 0, 0]


# -- indices out of range --------------------------------------------------------------------------


def i32(*sizes):
    return B(T.INT32, sizes)


def int32(*numbers):
    return np.array(numbers, np.int32)


def both(desc, *inputs, before=None):
    """The output by the rule of vkops, and by that of DirectML."""
    results = []
    for indices in ("vkops", "directml"):
        data = [array.reshape(-1).view(np.uint8) for array in inputs]
        outputs = None if before is None else [before.copy().view(np.uint8)]
        (result,) = execute(desc.lower(indices), data, outputs)
        results.append(result.view(np.int32).tolist())
    return results


def test_gathered_elements_out_of_range():
    """Recorded: 3 x 4 x 2 of 0 to 23, axis 1."""
    desc = dml.GatherOperatorDesc(i32(3, 4, 2), i32(1, 1, 7), i32(3, 7, 2), 1, 1)
    numbers = int32(4, 5, 7, 8, 100, -(2**31), -5)
    of_vkops, of_directml = both(desc, np.arange(24, dtype=np.int32), numbers)
    assert of_vkops[:14] == [*[6, 7] * 5, *[0, 1] * 2]
    assert of_directml[:14] == [8, 9, 10, 11, 14, 15, 16, 17, 23, 23, 8, 9, 23, 23]
    assert of_directml[26:28] == [6, 7]  # -5 in the second row: before its first element
    desc = replace(desc, indices_tensor=B(T.UINT32, [1, 1, 7]))
    of_vkops, of_directml = both(desc, np.arange(24, dtype=np.int32), numbers)
    assert of_vkops[:14] == [6, 7] * 7
    assert of_directml[:14] == [8, 9, 10, 11, 14, 15, 16, 17, 23, 23, 0, 1, 23, 23]


def test_scattered_elements_out_of_range():
    """Recorded: 3 x 4, axis 1; the updates of index 4 go to the next row, the last one nowhere."""
    desc = dml.ScatterOperatorDesc(i32(3, 4), i32(3, 1), i32(3, 1), i32(3, 4), 1)
    data, updates = np.arange(12, dtype=np.int32), int32(90, 91, 92)
    of_vkops, of_directml = both(desc, data, int32(4, 4, 4), updates)
    assert of_vkops == data.tolist()
    assert of_directml == [0, 1, 2, 3, 90, 5, 6, 7, 91, 9, 10, 11]


def test_elements_behind_a_tensor_are_read_and_written():
    """Recorded."""
    wide = B(T.INT32, [2], total_tensor_size_in_bytes=16)
    data = int32(10, 11, 12, 13)
    desc = dml.GatherOperatorDesc(wide, i32(4), i32(4), 0, 1)
    assert both(desc, data, int32(1, 2, 3, 4)) == [[11, 11, 11, 11], [11, 12, 13, 13]]
    desc = dml.ScatterOperatorDesc(i32(2), i32(2), i32(2), wide, 0)
    results = both(desc, data[:2], int32(0, 3), int32(90, 93), before=int32(-1, -2, -3, -4))
    assert results == [[90, 11, -3, -4], [90, 11, -3, 93]]


@pytest.mark.parametrize("kind", [T.INT64, T.UINT64])
def test_lowest_bits_of_64_bit_indices(kind):
    """Recorded."""
    desc = dml.GatherOperatorDesc(i32(3), B(kind, [5]), i32(5), 0, 1)
    content = np.array([2**32, 2**32 + 1, -1, 2**31, -4], np.int64)
    of_vkops, of_directml = both(desc, int32(10, 11, 12), content)
    assert of_vkops == [12, 12, 12, 12, 10 if kind is T.INT64 else 12]
    assert of_directml == [10, 11, 12, 12, 12]


def test_an_element_that_the_memory_ends_in_is_zero():
    """Recorded."""
    table = B(T.INT64, [1], total_tensor_size_in_bytes=12)
    desc = dml.GatherOperatorDesc(table, i32(3), B(T.INT64, [3]), 0, 1)
    _, of_directml = both(desc, int32(7, 0, -1), int32(0, 1, 2))
    assert of_directml == [7, 0, 0, 0, 0, 0]


@pytest.mark.parametrize("name", ["ONE_HOT", "REVERSE_SUBSEQUENCES"])
def test_other_operators_with_indices_have_one_rule(name):
    case = OPERATORS[name].make(Random(0), T.FLOAT32, (3, 4), 1)
    assert case.desc.lower("directml") is case.desc.lower()


@given(seed=st.integers(0, 2**32))
def test_outlying_indices_address_memory(seed):
    """In plans as they are, optimized, cut into pieces, and among other bytes."""
    case, random = outlying_case(seed), np.random.default_rng(seed)
    (step,) = case.desc.lower_to_pipeline("directml").steps
    plan = optimize(step.plan)
    validate(plan)
    size = plan.element_size
    inputs = [*case.inputs]
    inputs += [np.zeros(nbytes, np.uint8) for nbytes in plan.inputs[len(inputs) :]]
    case.check(execute(plan, inputs, [case.before.copy()])[0])
    longer = [np.pad(data, (0, 64), constant_values=7) for data in inputs]
    (result,) = execute(plan, longer, [poisoned(case.before.size + 64)])
    case.check(result[:-64])
    assert (result[-64:] == POISON).all()
    pieces = [in_pieces(random, data.size, size) for data in inputs]
    pieces[1] = [inputs[1].size]
    targets = in_pieces(random, case.before.size, size)
    whole = cut(plan, pieces, [targets])
    validate(whole)
    parts = [
        part
        for data, sizes in zip(inputs, pieces, strict=True)
        for part in np.split(data, np.cumsum(sizes)[:-1])
    ]
    before = [poisoned(nbytes) for nbytes in targets]
    case.check(np.concatenate(execute(optimize(whole), parts, before)))


def in_pieces(random, nbytes, size):
    cuts = random.integers(nbytes // size + 1, size=2) * size
    return np.diff(sorted({0, nbytes, *cuts.tolist()})).tolist()


def test_elements_of_other_sizes_are_not_fused_with_outlying_indices():
    """Addresses count whole elements, whatever else is in a graph."""
    graph = dml.Graph()
    tensors = B(T.INT64, [4]), i32(3), B(T.INT8, [4])
    table, rows, small = map(graph.input, tensors)
    (taken,) = graph.add(dml.GatherOperatorDesc, [table, rows], axis=0, index_dimensions=1)
    graph.output(graph.slice1(taken, [0], [3], [-1]))
    graph.output(graph.slice1(small, [0], [4], [-1]))
    desc = graph.desc()
    limited = [
        (step.plan.element_size, region.indices.limits)
        for step in desc.lower_to_pipeline("directml").steps
        for _, region in step.plan.regions
        if region.has_limits
    ]
    assert limited == [(8, range(4))]
    assert not any(r.has_limits for step in desc.pipeline.steps for _, r in step.plan.regions)


# -- where DirectML does not do what its documentation says ---------------------------------------


@pytest.mark.parametrize(
    ("desc", "inputs", "of_directml", "of_vkops"),
    [
        (
            dml.ResampleOperatorDesc(B(T.UINT8, [4]), B(T.UINT8, [8]), NEAREST, [2]),
            [np.arange(4, dtype="u1")],
            "0 0 0 1 1 2 2 3",
            "0 0 1 1 2 2 3 3",
        ),
        (
            dml.ResampleOperatorDesc(B(T.INT8, [8]), B(T.INT8, [4]), NEAREST, [0.5]),
            [np.arange(8, dtype="i1")],
            "0 2 4 6",
            "1 3 5 7",
        ),
        (
            dml.ReverseSubsequencesOperatorDesc(i32(1, 5), B(T.UINT32, [1, 1]), i32(1, 5), 1),
            [np.arange(5, dtype="i4"), np.array([6], "u4")],
            "4 4 3 2 1",
            "4 3 2 1 0",
        ),
        (
            dml.OneHotOperatorDesc(
                i32(1, 1, 1), B(T.INT32, [1, 2, 1], strides=[3, 5, 1]), i32(1, 1, 3), 2
            ),
            [int32(1), int32(10, 11, 12, 13, 14, 15)],
            "10 11 10",
            "10 15 10",
        ),
        (
            dml.OneHotOperatorDesc(B(T.INT64, [2, 1]), i32(1, 2), i32(2, 3), 1),
            [np.array([2**32, 2**32 + 1]), int32(0, 1)],
            "1 0 0 0 1 0",
            "0 0 0 0 0 0",
        ),
        (
            dml.GatherOperatorDesc(
                i32(2, 1, 1, 1, 2, 2), i32(1, 1, 1, 1, 1, 1), i32(1, 1, 1, 1, 2, 2), 0, 5
            ),
            [np.arange(8, dtype="i4"), int32(1)],
            "4 6 7 -",
            "4 5 6 7",
        ),
        (
            dml.Upsample2dOperatorDesc(
                B(T.FLOAT16, [1, 1, 1, 2]), B(T.FLOAT16, [1, 1, 1, 4]), dml.Size2D(2, 1), NEAREST
            ),
            [np.array([0x7C01, 0xFDFF], "u2")],
            f"{0x7E01} {0x7E01} {0xFFFF} {0xFFFF}",
            f"{0x7C01} {0x7C01} {0xFDFF} {0xFDFF}",
        ),
    ],
)
@pytest.mark.parametrize("indices", ["vkops", "directml"])
def test_results_are_those_of_the_documentation(desc, inputs, of_directml, of_vkops, indices):
    """With either rule of indices; DirectML's results are recorded ("-": not written)."""
    assert of_vkops != of_directml
    plan = desc.lower(indices)
    data = [
        np.resize(array.view(np.uint8), n) for array, n in zip(inputs, plan.inputs, strict=True)
    ]
    dtype = np.dtype(desc.data_type.numpy_code.replace("f", "u"))
    (result,) = execute(plan, data)
    assert " ".join(map(str, result.view(dtype))) == of_vkops
