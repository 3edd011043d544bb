"""Division and rounding of integers upwards."""

from __future__ import annotations


def ceil_div(number: int, divisor: int) -> int:
    """Divide integers, and round the quotient up.

    >>> ceil_div(9, 4)
    3
    """
    return -(-number // divisor)


def round_up(number: int, multiple: int) -> int:
    """The smallest multiple that is not less than a number.

    >>> round_up(9, 4)
    12
    """
    return ceil_div(number, multiple) * multiple
