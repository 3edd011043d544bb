"""SPIR-V's arithmetic, conversions and comparisons, as a table of NumPy functions.

Terms and numbers are those of the SPIR-V specification. Operands are arrays whose first axis is
that of invocations; of vectors, the second is that of components.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from vkops.shaders.layout import Number

Array = Any
"""An array of NumPy, whose types of results differ between its versions."""


class Operation(NamedTuple):
    """How to compute a result.

    Operands are taken ``as_`` unsigned integers (u), signed ones (s), or as they are (""). The
    result is converted to the type of the instruction if it is not boolean.
    """

    as_: str
    function: Callable[..., Any]


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


def remainder(a: Array, b: Array) -> Array:
    """Return the remainder with the sign of the dividend; by zero, all bits are set."""
    return np.where(b == 0, ~np.zeros_like(b), np.fmod(a, np.where(b == 0, 1, b))).astype(a.dtype)


def modulo(a: Array, b: Array) -> Array:
    """Return the remainder with the sign of the divisor; by zero, all bits are set."""
    return np.where(b == 0, ~np.zeros_like(b), np.mod(a, np.where(b == 0, 1, b))).astype(a.dtype)


def _shift(function: Callable[[Array, Array], Array], kind: str) -> Operation:
    def shifted(a: Array, b: Array) -> Array:
        count = integers(b, "u").astype(f"u{a.itemsize}") & (8 * a.itemsize - 1)
        return function(integers(a, kind), integers(count, kind))

    return Operation("", shifted)


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


def _integer_dot(kinds: str) -> Operation:
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

    return Operation("", dot)


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


def _unordered(function: Callable[[Array, Array], Array]) -> Callable[[Array, Array], Array]:
    return lambda a, b: function(a, b) | np.isnan(a) | np.isnan(b)


TABLE: dict[int, Operation] = {
    84: Operation("", lambda m: np.swapaxes(m, 1, 2)),
    109: Operation("", lambda v: v), 110: Operation("", lambda v: v),
    111: Operation("s", lambda v: v), 112: Operation("u", lambda v: v),
    113: Operation("u", lambda v: v), 114: Operation("s", lambda v: v),
    115: Operation("", lambda v: v),
    116: Operation("", lambda v: v.astype(np.float16)),
    126: Operation("s", np.negative), 127: Operation("", np.negative),
    128: Operation("u", np.add), 129: Operation("", np.add),
    130: Operation("u", np.subtract), 131: Operation("", np.subtract),
    132: Operation("u", np.multiply), 133: Operation("", np.multiply),
    134: Operation("u", divided), 135: Operation("s", divided), 136: Operation("", np.divide),
    137: Operation("u", remainder), 138: Operation("s", remainder), 139: Operation("s", modulo),
    140: Operation("", np.fmod),
    141: Operation("", lambda a, b: a - b * np.floor(a / b)),
    **dict.fromkeys((142, 143), Operation("", lambda v, scalar: v * column(scalar, v))),
    144: Operation("", lambda v, m: _dot(v[:, None, :], m)),
    145: Operation("", lambda m, v: _dot(np.swapaxes(m, 1, 2), v[:, None, :])),
    146: Operation("", lambda a, b: _dot(np.swapaxes(a, 1, 2)[:, None], b[:, :, None])),
    147: Operation("", lambda a, b: a[:, None, :] * b[:, :, None]), 148: Operation("", _dot),
    149: Operation("u", lambda a, b: [a + b, (a + b < a).astype(a.dtype)]),
    150: Operation("u", lambda a, b: [a - b, (a < b).astype(a.dtype)]),
    151: Operation("u", _product_halves), 152: Operation("s", _product_halves),
    154: Operation("", lambda v: v.any(-1)), 155: Operation("", lambda v: v.all(-1)),
    156: Operation("", np.isnan), 157: Operation("", np.isinf),
    158: Operation("", np.isfinite),
    164: Operation("", np.equal), 165: Operation("", np.not_equal),
    166: Operation("", np.logical_or), 167: Operation("", np.logical_and),
    168: Operation("", np.logical_not), 169: Operation("", select),
    170: Operation("u", np.equal), 171: Operation("u", np.not_equal),
    172: Operation("u", np.greater), 173: Operation("s", np.greater),
    174: Operation("u", np.greater_equal), 175: Operation("s", np.greater_equal),
    176: Operation("u", np.less), 177: Operation("s", np.less),
    178: Operation("u", np.less_equal), 179: Operation("s", np.less_equal),
    180: Operation("", np.equal), 181: Operation("", _unordered(np.equal)),
    182: Operation("", lambda a, b: (a < b) | (a > b)),
    183: Operation("", _unordered(np.not_equal)),
    184: Operation("", np.less), 185: Operation("", _unordered(np.less)),
    186: Operation("", np.greater), 187: Operation("", _unordered(np.greater)),
    188: Operation("", np.less_equal), 189: Operation("", _unordered(np.less_equal)),
    190: Operation("", np.greater_equal), 191: Operation("", _unordered(np.greater_equal)),
    194: _shift(np.right_shift, "u"), 195: _shift(np.right_shift, "s"),
    196: _shift(np.left_shift, "u"),
    197: Operation("u", np.bitwise_or), 198: Operation("u", np.bitwise_xor),
    199: Operation("u", np.bitwise_and), 200: Operation("u", np.invert),
    201: Operation("u", _insert),
    202: Operation("", lambda v, at, count: _extract(integers(v, "s"), at, count)),
    **dict(enumerate((*_DOTS, *_DOTS), 4450)),
    203: Operation("u", _extract), 204: Operation("u", _reversed), 205: Operation("u", bit_count),
}  # fmt: skip
"""By opcode."""

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
