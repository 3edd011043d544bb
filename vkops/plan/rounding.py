"""Division and rounding of integers upwards."""

from __future__ import annotations


def ceil_div(number: int, divisor: int) -> int:
    """Divide integers, and round the quotient up."""
    return -(-number // divisor)


def round_up(number: int, multiple: int) -> int:
    """The smallest multiple that is not less than a number."""
    return ceil_div(number, multiple) * multiple
