"""Values of unexpected kinds in descriptors; ``fuzz/targets/descriptors.py`` tries many more."""

import math

import numpy as np
import pytest
from refusals import fault

from vkops import InvalidDescTypeError
from vkops.dml import BufferTensorDesc, TensorDataType


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (math.nan, "nan"),
        ("x" * 100, "'" + "x" * 58 + "…"),
        (10**5000, "an integer of 16610 bits"),
        ([10**5000], "a value of type list"),
    ],
    ids=["nan", "long", "huge", "nested"],
)
def test_values_in_messages(value, shown):
    text = fault(lambda: BufferTensorDesc(value, [1]), InvalidDescTypeError)
    assert text.startswith(f"data_type: got {shown}, must be one of UNKNOWN, FLOAT32, ")


def test_numpy_integers_are_integers():
    from_numpy = BufferTensorDesc(np.uint8(1), np.array([2, 3]), (np.int32(3), np.uint64(1)))
    assert from_numpy == BufferTensorDesc(TensorDataType.FLOAT32, (2, 3), (3, 1))
    assert [type(n) for n in (*from_numpy.sizes, *from_numpy.strides)] == [int] * 4
