"""Addresses that sizes and strides reach, in elements."""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd, prod

# Steps the search for two indices with one address may take: some 10 ms.
_SEARCH_STEPS = 1 << 12

# A dimension as (stride, size - 1), the latter being the largest difference of two indices.
_Dim = tuple[int, int]


def spanned_elements(sizes: Sequence[int], strides: Sequence[int]) -> int:
    """Return the number of elements from the first to the last one addressed, gaps included."""
    return 1 + sum([(size - 1) * stride for size, stride in zip(sizes, strides, strict=True)])


def addresses_are_distinct(sizes: Sequence[int], strides: Sequence[int]) -> bool | None:
    """Return whether all indices have different addresses; None if it takes too long to tell.

    Two indices have the same address if sum(d * stride) = 0, where d is their difference in each
    dimension: not all d are 0, and each is smaller in magnitude than the size of its dimension.
    Strides are not negative.

    >>> addresses_are_distinct((2, 3), (3, 1)), addresses_are_distinct((2, 4), (3, 1))
    (True, False)
    """
    dims = [(stride, size - 1) for size, stride in zip(sizes, strides, strict=True) if size > 1]
    if any(stride == 0 for stride, _ in dims):
        return False
    dims = _without_decided(dims)
    if not dims:
        return True
    # Two dimensions that cannot be dropped overlap: d = (stride1, -stride0) / gcd is in both sizes.
    if len(dims) == 2:
        return False
    return _search(sorted(dims, reverse=True))


def may_be_distinct(sizes: Sequence[int], strides: Sequence[int]) -> bool:
    """Return whether DirectML takes these for the layout of an output (T-09).

    It does not take a stride of 0, two equal strides, or more elements than addresses.

    >>> may_be_distinct((4, 3), (6, 3)), may_be_distinct((2, 2), (3, 3))
    (True, False)
    """
    steps = [stride for size, stride in zip(sizes, strides, strict=True) if size > 1]
    is_roomy = prod(sizes) <= spanned_elements(sizes, strides)
    return 0 not in steps and len({*steps}) == len(steps) and is_roomy


def _without_decided(dims: list[_Dim]) -> list[_Dim]:
    """Repeatedly drop a dimension that cannot cause an overlap; return those that are left.

    A dimension cannot cause an overlap if one step along it is longer than all other dimensions
    together (as in packed and padded layouts), or if no multiple of its stride, up to its size, is
    a multiple of the gcd of the other strides.
    """
    for i, (stride, maximum) in enumerate(dims):
        others = dims[:i] + dims[i + 1 :]
        step = gcd(*[other for other, _ in others])
        if stride > sum(s * m for s, m in others) or maximum < step // gcd(step, stride):
            return _without_decided(others)
    return dims


def _search(dims: list[_Dim]) -> bool | None:
    """Return whether no differences sum to address 0; None if that takes over _SEARCH_STEPS.

    The search tries the differences of the dimension with the largest stride first.
    """
    # For each i, the largest sum of dimensions from i on, and the gcd of all their sums.
    reach = [sum(s * m for s, m in dims[i:]) for i in range(len(dims) + 1)]
    step = [gcd(*[s for s, _ in dims[i:]]) for i in range(len(dims) + 1)]
    if prod(m + 1 for _, m in dims) > reach[0] // step[0] + 1:  # more indices than addresses
        return False
    steps = 0

    def cancels(i: int, total: int, zero: bool) -> bool:
        """Whether dimensions from i on can sum to -total; zero: all differences so far are 0."""
        nonlocal steps
        steps += 1
        if steps > _SEARCH_STEPS:
            raise TimeoutError
        if i == len(dims):
            return not zero
        stride, maximum = dims[i]
        low = max(-maximum, -((total + reach[i + 1]) // stride))
        high = min(maximum, (reach[i + 1] - total) // stride)
        if zero:  # d and -d are the same pair of indices: the first d that is not 0 is positive
            low = 0
        # Only every period-th d leaves a multiple of the gcd of the remaining strides.
        period = step[i + 1] // step[i] or 1
        first = -total // step[i] * pow(stride // step[i], -1, period) if period > 1 else 0
        for d in range(low + (first - low) % period, high + 1, period):
            if cancels(i + 1, total + d * stride, zero and d == 0):
                return True
        return False

    try:
        return not cancels(0, 0, True)
    except TimeoutError:
        return None
