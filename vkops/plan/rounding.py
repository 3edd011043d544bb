"""Division and rounding of integers upwards, and the factor of a division by multiplication."""

from __future__ import annotations


def ceil_div(number: int, divisor: int) -> int:
    """Divide integers, and round the quotient up."""
    return -(-number // divisor)


def round_up(number: int, multiple: int) -> int:
    """The smallest multiple that is not less than a number."""
    return ceil_div(number, multiple) * multiple


def factor(size: int) -> int:
    """Return the factor by which shaders divide a number of 31 bits, without a division.

    number // size is (high(number * factor) + number) >> (size - 1).bit_length(), where high(x) are
    the upper 32 bits of a product. Source: Granlund and Montgomery, "Division by invariant integers
    using multiplication".

    >>> factor, number, size = factor(7), 2**31 - 1, 7
    >>> ((number * factor >> 32) + number) >> (size - 1).bit_length() == number // size
    True
    """
    return (((1 << (size - 1).bit_length()) - size) << 32) // size + 1
