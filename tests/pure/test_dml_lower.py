"""Published examples of the oldest operators, and their plans."""

from __future__ import annotations

import numpy as np
import pytest
from regions import make_region

from vkops.dml import (
    BufferTensorDesc,
    ElementWiseIdentityOperatorDesc,
    JoinOperatorDesc,
    Slice1OperatorDesc,
    SliceOperatorDesc,
    SplitOperatorDesc,
    TensorDataType,
)
from vkops.plan import CopyPlan, Output, execute

U32 = TensorDataType.UINT32


def tensor(*sizes, **fields):
    return BufferTensorDesc(U32, sizes, **fields)


def values(desc, *arrays):
    """The outputs that the NumPy executor makes."""
    inputs = [np.frombuffer(array.tobytes(), np.uint8) for array in arrays]
    return [output.view(np.uint32).tolist() for output in execute(desc.lower(), inputs)]


ONE_TO_12 = np.arange(1, 13, dtype=np.uint32)
ONE_TO_16 = np.arange(1, 17, dtype=np.uint32)


@pytest.mark.parametrize(
    ("axis", "sizes", "expected"),
    [
        (2, [2, 1, 3], [[1, 2, 3, 4], [5, 6], [7, 8, 9, 10, 11, 12]]),
        (3, [1, 1], [[1, 3, 5, 7, 9, 11], [2, 4, 6, 8, 10, 12]]),
    ],
)
def test_split_check_values(axis, sizes, expected):
    """SPLIT-10, and JOIN as its inverse (JOIN-08)."""
    whole = tensor(1, 1, 6, 2)
    pieces = [
        tensor(*[size if i == axis else n for i, n in enumerate((1, 1, 6, 2))]) for size in sizes
    ]
    assert values(SplitOperatorDesc(whole, pieces, axis), ONE_TO_12) == expected
    arrays = [np.array(piece, np.uint32) for piece in expected]
    assert values(JoinOperatorDesc(pieces, whole, axis), *arrays) == [ONE_TO_12.tolist()]


@pytest.mark.parametrize(
    ("offsets", "sizes", "strides", "expected"),
    [
        ((0, 0, 1, 2), (1, 1, 3, 2), (1, 1, 1, 1), [7, 8, 11, 12, 15, 16]),
        ((0, 0, 1, 0), (1, 1, 2, 2), (1, 1, 2, 3), [5, 8, 13, 16]),
    ],
)
def test_slice_check_values(offsets, sizes, strides, expected):
    """SLICE-08."""
    desc = SliceOperatorDesc(tensor(1, 1, 4, 4), tensor(*sizes), offsets, sizes, strides)
    assert values(desc, ONE_TO_16) == [expected]


@pytest.mark.parametrize(
    ("strides", "expected"), [((1, 1, 2, 2), [2, 4, 10, 12]), ((1, 1, -2, 2), [14, 16, 6, 8])]
)
def test_slice1_check_values(strides, expected):
    """SLICE1-06."""
    desc = Slice1OperatorDesc(
        tensor(1, 1, 4, 4), tensor(1, 1, 2, 2), (0, 0, 0, 1), (1, 1, 4, 3), strides
    )
    assert values(desc, ONE_TO_16) == [expected]


def test_slice1_takes_fewer_elements_than_the_window_holds():
    """SLICE1-04 and -05: the start does not depend on the output's size."""
    desc = Slice1OperatorDesc(tensor(16), tensor(2), [3], [10], [-4])
    assert values(desc, ONE_TO_16) == [[13, 9]]


def test_identity_in_place_has_equal_layouts():
    """IDENT-04: a plan of equal tensors moves every element onto itself."""
    (output,) = ElementWiseIdentityOperatorDesc(tensor(3, 4), tensor(3, 4)).lower().outputs
    (region,) = output.regions
    assert (region.target.offset, region.target.strides) == (
        region.source_view.offset,
        region.source_view.strides,
    )


def test_plan_of_a_split():
    """One region for each output; sizes in bytes are the totals, not what the sizes imply."""
    whole = tensor(2, 6, strides=(10, 1), total_tensor_size_in_bytes=100)
    left, right = tensor(2, 2), tensor(2, 4, strides=(1, 2), total_tensor_size_in_bytes=48)
    assert SplitOperatorDesc(whole, [left, right], 1).lower() == CopyPlan(
        4,
        (100,),
        (
            Output(16, (make_region((2, 2), 0, (2, 1), (0, 0, (10, 1))),)),
            Output(48, (make_region((2, 4), 0, (1, 2), (0, 2, (10, 1))),)),
        ),
    )


def test_plan_of_a_join():
    """One region for each input."""
    left, right, whole = tensor(2, 2, strides=(0, 1)), tensor(2, 4), tensor(2, 6)
    assert JoinOperatorDesc([left, right], whole, 1).lower() == CopyPlan(
        4,
        (8, 32),
        (
            Output(
                48,
                (
                    make_region((2, 2), 0, (6, 1), (0, 0, (0, 1))),
                    make_region((2, 4), 2, (6, 1), (1, 0, (4, 1))),
                ),
            ),
        ),
    )


def test_plan_is_cached_and_no_part_of_the_value():
    desc, same = (ElementWiseIdentityOperatorDesc(tensor(3), tensor(3)) for _ in range(2))
    assert desc.lower() is desc.lower()
    assert desc == same
    assert hash(desc) == hash(same)
