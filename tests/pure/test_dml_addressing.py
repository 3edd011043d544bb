"""T-09's exact test, against enumeration."""

import itertools
from math import prod

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from vkops.dml.addressing import addresses_are_distinct
from vkops.plan.view import packed_strides


@st.composite
def layouts(draw):
    sizes = draw(st.lists(st.integers(1, 6), min_size=1, max_size=5))
    most = draw(st.sampled_from([4, 20, 100, 1000]))
    return sizes, [draw(st.integers(0, most)) for _ in sizes]


@given(layouts())
@example(([2, 4], [3, 1]))
@example(([3, 3, 3], [6, 10, 15]))
@example(([2, 2, 2, 2], [3, 5, 6, 7]))
@settings(max_examples=500)
def test_agrees_with_enumeration(layout):
    sizes, strides = layout
    indices = itertools.product(*map(range, sizes))
    addresses = {sum(c * s for c, s in zip(index, strides, strict=True)) for index in indices}
    assert addresses_are_distinct(sizes, strides) is (len(addresses) == prod(sizes))


@given(st.data())
def test_padded_and_permuted_layouts_are_decided(data):
    """Every layout that comes from a packed one by padding, stepping and permuting."""
    sizes = data.draw(st.lists(st.integers(1, 50), min_size=1, max_size=8))
    padded = tuple(size + data.draw(st.integers(0, 5)) for size in sizes)
    step = data.draw(st.integers(1, 9))
    pairs = list(zip(sizes, (step * stride for stride in packed_strides(padded)), strict=True))
    permuted = data.draw(st.permutations(pairs))
    assert addresses_are_distinct(*zip(*permuted, strict=True)) is True


@pytest.mark.parametrize("size", [2**16, 2**16 + 1])
def test_two_dimensions_are_exact_at_any_size(size):
    """Coprime strides p and q meet first where q steps of p are p steps of q."""
    assert addresses_are_distinct((size, size), (65536, 65535)) is (size <= 2**16)
