"""Results that DirectML's documentation leaves open, as DirectML 1.15.4 gives them under Wine."""

import numpy as np
import pytest

from vkops import dml
from vkops.plan import execute

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
    # 1 / scale is infinite, and 0 times infinity is NaN.
    assert chosen("RESAMPLE1", 5, 4, 1e-40).tolist() == [0, 4, 4, 4]
    assert chosen("RESAMPLE1", 5, 4, 3.4e38).tolist() == [0, 0, 0, 0]
