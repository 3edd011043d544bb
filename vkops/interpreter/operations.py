"""SPIR-V's arithmetic, conversions and comparisons, as a table of NumPy functions.

Terms and numbers are those of the SPIR-V specification. Operands are arrays whose first axis is
that of invocations; of vectors, the second is that of components.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from vkops.shaders.layout import Number

Array = Any
"""An array of NumPy, whose types of results differ between its versions."""


Function = Callable[..., Any]


def by_number(kinds: Mapping[str, Mapping[int, Function]]) -> dict[int, tuple[str, Function]]:
    """Return functions by number, each with how operands are taken.

    That is as unsigned integers (u), as signed ones (s), or as they are ("").
    """
    return {n: (kind, function) for kind, own in kinds.items() for n, function in own.items()}


def integers(value: Array, kind: str) -> Array:
    """Return the same bits as unsigned (u) or signed (s) integers."""
    return value.view(f"{'i' if kind == 's' else 'u'}{value.itemsize}")


def dtype_of(number: Number) -> np.dtype[Any]:
    """Return the type of a scalar's values."""
    return (
        np.dtype(bool) if number.kind == "bool" else np.dtype(f"{number.kind}{8 * number.nbytes}")
    )


def converted(value: Array, dtype: np.dtype[Any]) -> Array:
    """Convert numbers; a float that an integer cannot have is the nearest one, NaN is 0."""
    if value.dtype.kind != "f" or dtype.kind == "f":
        return value.astype(dtype, copy=False)
    limits = np.iinfo(dtype)
    inside = np.trunc(np.where(np.isnan(value), 0, value))
    low, high = inside <= float(limits.min), inside >= float(limits.max)
    made = np.where(low | high, 0, inside).astype(dtype)
    return np.where(low, limits.min, np.where(high, limits.max, made)).astype(dtype)


def divided(a: Array, b: Array) -> Array:
    """Divide integers towards zero; by zero, all bits are set."""
    zero = b == 0
    safe = np.where(zero, 1, b)
    if a.dtype.kind == "u":
        return np.where(zero, ~a, a // safe) | np.where(zero, a, 0).astype(a.dtype)
    return np.where(zero, -1, (a - np.fmod(a, safe)) // safe).astype(a.dtype)


def _remainder(function: Function) -> Function:
    """Return a function of integers; by zero, all bits are set."""
    return lambda a, b: np.where(
        b == 0, ~np.zeros_like(b), function(a, np.where(b == 0, 1, b))
    ).astype(a.dtype)


def _shift(function: Function, kind: str) -> Function:
    def shifted(a: Array, b: Array) -> Array:
        count = integers(b, "u").astype(f"u{a.itemsize}") & (8 * a.itemsize - 1)
        return function(integers(a, kind), integers(count, kind))

    return shifted


def mask_of(count: Array, bits: int) -> Array:
    """Return numbers with so many low bits."""
    one = np.uint64(1)
    count = count.astype(np.uint64)
    wide = np.where(count >= 64, ~np.uint64(0), (one << (count & np.uint64(63))) - one)
    return wide.astype(f"u{bits // 8}")


def _insert(base: Array, insert: Array, offset: Array, count: Array) -> Array:
    bits = 8 * base.itemsize
    at = column(offset, base).astype(base.dtype) & (bits - 1)
    mask = mask_of(column(count, base), bits) << at
    return (base & ~mask) | ((insert << at) & mask)


def _extract(base: Array, offset: Array, count: Array) -> Array:
    bits = 8 * base.itemsize
    count = column(count, base).astype(f"u{base.itemsize}")
    left = (bits - count - column(offset, base).astype(f"u{base.itemsize}")).astype(base.dtype)
    right = (bits - count).astype(base.dtype)
    moved = (base << (left & (bits - 1))) >> (right & (bits - 1))
    return np.where(count == 0, 0, moved).astype(base.dtype)


def column(number: Array, like: Array) -> Array:
    """Give a scalar the axes of the vector that it works on."""
    return number.reshape(number.shape + (1,) * (like.ndim - number.ndim))


def bit_count(value: Array) -> Array:
    """Count the bits that are set."""
    found = np.zeros(value.shape, np.uint32)
    for bit in range(8 * value.itemsize):
        found += ((value >> bit) & 1).astype(np.uint32)
    return found


def _reversed(value: Array) -> Array:
    found = np.zeros_like(value)
    for bit in range(8 * value.itemsize):
        found |= ((value >> bit) & 1) << (8 * value.itemsize - 1 - bit)
    return found


def _dot(a: Array, b: Array) -> Array:
    total = a[..., 0] * b[..., 0]
    for number in range(1, a.shape[-1]):
        total = total + a[..., number] * b[..., number]
    return total


def _integer_dot(kinds: str) -> Function:
    """Return the product of two vectors, of which four bytes can be an integer; with a summand."""

    def dot(*operands: Array) -> Array:
        wide = [v if v.ndim > 1 else v[:, None].view(np.uint8) for v in operands[:2]]
        a, b = (integers(v, k).astype(object) for v, k in zip(wide, kinds, strict=True))
        exact = (a * b).sum(-1)
        if not operands[2:]:
            return (exact & 0xFFFF_FFFF_FFFF_FFFF).astype(np.uint64)
        summand = integers(operands[2], kinds[0])
        limits = np.iinfo(summand.dtype)
        total = exact + summand.astype(object)
        return np.clip(total, limits.min, limits.max).astype(summand.dtype)

    return dot


_DOTS = [*map(_integer_dot, ("ss", "uu", "su"))]


def _product_halves(a: Array, b: Array) -> list[Array]:
    """Return the low and the high half of the product of two integers."""
    if a.itemsize < 8:
        wide = a.astype(f"{a.dtype.kind}{2 * a.itemsize}") * b
        return [wide.astype(a.dtype), (wide >> (8 * a.itemsize)).astype(a.dtype)]
    exact = a.astype(object) * b.astype(object)
    return [a * b, np.asarray(exact >> 64, dtype=a.dtype)]


def select(condition: Array, one: Array, other: Array) -> Array:
    """Choose one of two numbers or vectors by a condition or by one for each component."""
    return np.where(column(condition, one), one, other)


def _unordered(function: Function) -> Function:
    return lambda a, b: function(a, b) | np.isnan(a) | np.isnan(b)


def _same(value: Array) -> Array:
    return value


TABLE = by_number({
    "": {
        84: lambda m: np.swapaxes(m, 1, 2), 109: _same, 110: _same, 115: _same,
        116: lambda v: v.astype(np.float16), 127: np.negative, 129: np.add, 131: np.subtract,
        133: np.multiply, 136: np.divide, 140: np.fmod, 141: lambda a, b: a - b * np.floor(a / b),
        **dict.fromkeys((142, 143), lambda v, scalar: v * column(scalar, v)),
        144: lambda v, m: _dot(v[:, None, :], m),
        145: lambda m, v: _dot(np.swapaxes(m, 1, 2), v[:, None, :]),
        146: lambda a, b: _dot(np.swapaxes(a, 1, 2)[:, None], b[:, :, None]),
        147: lambda a, b: a[:, None, :] * b[:, :, None], 148: _dot,
        154: lambda v: v.any(-1), 155: lambda v: v.all(-1),
        156: np.isnan, 157: np.isinf, 158: np.isfinite, 164: np.equal, 165: np.not_equal,
        166: np.logical_or, 167: np.logical_and, 168: np.logical_not, 169: select,
        180: np.equal, 181: _unordered(np.equal), 183: _unordered(np.not_equal),
        182: lambda a, b: (a < b) | (a > b), 184: np.less, 185: _unordered(np.less),
        186: np.greater, 187: _unordered(np.greater),
        188: np.less_equal, 189: _unordered(np.less_equal),
        190: np.greater_equal, 191: _unordered(np.greater_equal),
        194: _shift(np.right_shift, "u"), 195: _shift(np.right_shift, "s"),
        196: _shift(np.left_shift, "u"),
        202: lambda v, at, count: _extract(integers(v, "s"), at, count),
        **dict(enumerate((*_DOTS, *_DOTS), 4450)),
    },
    "u": {
        112: _same, 113: _same, 128: np.add, 130: np.subtract, 132: np.multiply, 134: divided,
        137: _remainder(np.fmod), 149: lambda a, b: [a + b, (a + b < a).astype(a.dtype)],
        150: lambda a, b: [a - b, (a < b).astype(a.dtype)], 151: _product_halves,
        170: np.equal, 171: np.not_equal, 172: np.greater, 174: np.greater_equal, 176: np.less,
        178: np.less_equal, 197: np.bitwise_or, 198: np.bitwise_xor, 199: np.bitwise_and,
        200: np.invert, 201: _insert, 203: _extract, 204: _reversed, 205: bit_count,
    },
    "s": {
        111: _same, 114: _same, 126: np.negative, 135: divided, 138: _remainder(np.fmod),
        139: _remainder(np.mod), 152: _product_halves, 173: np.greater, 175: np.greater_equal,
        177: np.less, 179: np.less_equal,
    },
})  # fmt: skip
"""By opcode. The result is converted to the type of the instruction if it is not boolean."""

DIVISIONS = (134, 135, 137, 138, 139)
BITS: dict[int, tuple[str, int]] = {
    **dict.fromkeys((194, 195, 196), ("shifts a number of {0} bits by {1}", -1)),
    **dict.fromkeys(
        (201, 202, 203), ("uses {2} bits from bit {1} on, of a number of {0} bits", -2)
    ),
}
"""Shifts and bit fields: a sentence, and the first operand of those that count bits."""
LOGICAL = (166, 167)
"""Or, and."""


def apply(opcode: int, operands: list[Array], number: Number | None) -> Any:
    """Return the result of an operation.

    ``number`` is the scalar type of the result, or None if the result is a struct.
    """
    kind, function = TABLE[opcode]
    if kind:
        operands = [integers(each, kind) if each.dtype.kind in "iu" else each for each in operands]
    found = function(*operands)
    if number is None:
        return found
    dtype = dtype_of(number)
    if found.dtype == dtype or dtype.kind == "b":
        return found
    if found.dtype.kind in "iu" and dtype.kind in "iu" and found.itemsize == dtype.itemsize:
        return found.view(dtype)
    return converted(found, dtype)
