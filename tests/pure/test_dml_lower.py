"""Published examples of the oldest operators, and their plans."""

import numpy as np
import pytest
from regions import make_region

from vkops import dml
from vkops.plan import CopyPlan, Output, execute

U32 = dml.TensorDataType.UINT32


def tensor(*sizes, **fields):
    return dml.BufferTensorDesc(U32, sizes, **fields)


SPLIT = tensor(1, 1, 6, 2)
SLICED = tensor(1, 1, 4, 4)


@pytest.mark.parametrize(
    ("desc", "expected"),
    [
        (dml.SplitOperatorDesc(SPLIT, [tensor(1, 1, n, 2) for n in (2, 1, 3)], 2),
         [[1, 2, 3, 4], [5, 6], [7, 8, 9, 10, 11, 12]]),
        (dml.SplitOperatorDesc(SPLIT, [tensor(1, 1, 6, 1)] * 2, 3),
         [[1, 3, 5, 7, 9, 11], [2, 4, 6, 8, 10, 12]]),
        (dml.SliceOperatorDesc(SLICED, tensor(1, 1, 3, 2), (0, 0, 1, 2), (1, 1, 3, 2), (1,) * 4),
         [[7, 8, 11, 12, 15, 16]]),
        (dml.SliceOperatorDesc(SLICED, tensor(1, 1, 2, 2), (0, 0, 1, 0), (1, 1, 2, 2), (1, 1, 2, 3)),
         [[5, 8, 13, 16]]),
        (dml.Slice1OperatorDesc(SLICED, tensor(1, 1, 2, 2), (0, 0, 0, 1), (1, 1, 4, 3), (1, 1, 2, 2)),
         [[2, 4, 10, 12]]),
        (dml.Slice1OperatorDesc(SLICED, tensor(1, 1, 2, 2), (0, 0, 0, 1), (1, 1, 4, 3), (1, 1, -2, 2)),
         [[14, 16, 6, 8]]),
        (dml.Slice1OperatorDesc(tensor(16), tensor(2), [3], [10], [-4]), [[13, 9]]),
    ],
)  # fmt: skip
def test_published_values(desc, expected):
    """SPLIT-10, SLICE-08, SLICE1-04 to SLICE1-06, of the numbers 1, 2, 3 and so on."""
    numbers = np.arange(1, desc.input_tensor.total_tensor_size_in_bytes // 4 + 1, dtype=np.uint32)
    outputs = execute(desc.lower(), [numbers.view(np.uint8)])
    assert [output.view(np.uint32).tolist() for output in outputs] == expected


@pytest.mark.parametrize(
    ("scale", "offsets", "expected"),
    [
        (2, (np.nan, -0.5), [1, 1, 1]),
        (2, (0.5, np.nan), [1, 1, 1]),
        (1, (np.nan, np.nan), [1, 1, 1]),
        (1, (np.inf, -np.inf), [1, 1, 1]),  # infinity less infinity
        (2, (-np.inf, 0), [4, 4, 4]),
        (2, (0, -np.inf), [4, 4, 4]),
        (np.inf, (-2, 0), [3, 3, 3]),
        (np.inf, (0, np.inf), [1, 1, 1]),  # infinity times 0
    ],
)
@pytest.mark.parametrize("directions", [[], [0], [1]])
def test_coordinates_that_are_not_finite(scale, offsets, expected, directions):
    """DirectML 1.15.4 reads the first element where a coordinate is NaN."""
    cls = dml.Resample2OperatorDesc if directions else dml.Resample1OperatorDesc
    source, target = (dml.BufferTensorDesc(dml.TensorDataType.FLOAT32, [n]) for n in (4, 3))
    offset_arrays = [[offset] for offset in offsets]
    desc = cls(source, target, dml.InterpolationMode(0), *directions, [scale], *offset_arrays)
    (output,) = execute(desc.lower(), [np.arange(1, 5, dtype=np.float32).view(np.uint8)])
    assert output.view(np.float32).tolist() == expected


def test_plan_of_a_split():
    """One region for each output; sizes in bytes are the totals, not what the sizes imply."""
    whole = tensor(2, 6, strides=(10, 1), total_tensor_size_in_bytes=100)
    left, right = tensor(2, 2), tensor(2, 4, strides=(1, 2), total_tensor_size_in_bytes=48)
    outputs = (
        Output(16, (make_region((2, 2), 0, (2, 1), (0, 0, (10, 1))),)),
        Output(48, (make_region((2, 4), 0, (1, 2), (0, 2, (10, 1))),)),
    )
    plan = dml.SplitOperatorDesc(whole, [left, right], 1).lower()
    assert plan == CopyPlan(4, (100,), outputs)


def test_plan_is_cached_and_no_part_of_the_value():
    desc, same = (dml.ElementWiseIdentityOperatorDesc(tensor(3), tensor(3)) for _ in range(2))
    assert desc.lower() is desc.lower()
    assert desc == same
    assert hash(desc) == hash(same)
