"""Parts of matrices between diagonals: few regions, which cover each element once."""

from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vkops.plan import CopyPlan, Fill, Output, Read, View, execute
from vkops.plan.diagonals import fill_diagonals
from vkops.plan.unfolding import Sliding, check_unfold, unfold

sizes = st.integers(1, 40)
diagonals = st.integers(-45, 45)


def regions(source, target, begin, end):
    filled = fill_diagonals(source, target, begin, end, Fill(b"\xff"))
    return tuple(region for region in filled if prod(region.sizes))


@given(rows=sizes, columns=sizes, begin=diagonals, end=diagonals)
def test_diagonals_are_filled(rows, columns, begin, end):
    whole = View.packed((rows, columns))
    copies = regions(Read(0, whole), whole, begin, end)
    size = rows * columns
    assert sum(prod(region.sizes) for region in copies) == size
    array = np.arange(size).astype(np.uint8)
    (result,) = execute(CopyPlan(1, (size,), (Output(size, copies),)), [array])
    d = np.arange(columns) - np.arange(rows)[:, None]
    filled = (begin <= d) & (d < end) if begin <= end else (d < end) | (begin <= d)
    expected = np.where(filled, np.uint8(255), array.reshape(rows, columns))
    np.testing.assert_array_equal(result.reshape(rows, columns), expected)


@pytest.mark.parametrize("n", [1000, 2**20 - 1, 2**31])
@pytest.mark.parametrize(("begin", "end"), [(0, 1), (-(2**31), 1), (1, 0), (-300, 500)])
def test_the_number_of_regions_grows_with_the_logarithm_of_the_size(n, begin, end):
    whole = View.packed((n, n))
    assert len(regions(Read(0, whole), whole, begin, end)) <= 8 * n.bit_length()


@pytest.mark.parametrize(("padding", "count"), [((0, 0), 1), ((1, 1), 5), ((0, 1), 3), ((3, 3), 9)])
def test_windows_that_slide_take_few_regions(padding, count):
    """One copy for each part of the axis that elements of the window reach, and the padding."""
    axis = Sliding(100, 3, 1, 1, *padding)
    check_unfold([axis])
    target = View.packed((1, 3, axis.positions))
    source = Read(0, View.packed((1, 1, 100)))
    assert len(list(unfold(source, target, [axis], Fill(b"\0")))) == count
