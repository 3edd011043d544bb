"""SPIR-V's arithmetic, conversions and comparisons, as a table of NumPy functions.

Terms and numbers are those of the SPIR-V specification. Operands are arrays whose first axis is
that of invocations; of vectors, the second is that of components.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np

from vkops.shaders.binary import Op
from vkops.shaders.grammar import OPCODES
from vkops.shaders.layout import ScalarType

Array = Any
"""A NumPy array; the types of NumPy's results differ between its versions."""


ArrayFunction = Callable[..., Any]


def by_number(
    numbers: Mapping[str, int], kinds: Mapping[str, Mapping[str, ArrayFunction]]
) -> dict[int, tuple[str, ArrayFunction]]:
    """Return functions by number; with each, the type in which operands are passed.

    That is u for unsigned integers, s for signed ones, or "" for unchanged operands.
    """
    return {
        numbers[n]: (kind, f) for kind, functions in kinds.items() for n, f in functions.items()
    }


def integers(value: Array, kind: str) -> Array:
    """Return the same bits as unsigned (u) or signed (s) integers."""
    return value.view(f"{'i' if kind == 's' else 'u'}{value.itemsize}")


@cache
def dtype_of(number: ScalarType) -> np.dtype[Any]:
    """Return the type of a scalar's values."""
    return np.dtype("bool" if number.kind == "bool" else f"{number.kind}{8 * number.nbytes}")


def stored_dtype(number: ScalarType) -> np.dtype[Any]:
    """Return the type of a scalar in memory."""
    return np.dtype("u4") if number.kind == "bool" else dtype_of(number)


def converted(value: Array, dtype: np.dtype[Any]) -> Array:
    """Convert numbers; a float out of range becomes the nearest integer, and NaN becomes 0."""
    if value.dtype.kind != "f" or dtype.kind == "f":
        return value.astype(dtype, copy=False)
    limits = np.iinfo(dtype)
    inside = np.trunc(np.where(np.isnan(value), 0, value))
    low, high = inside <= float(limits.min), inside >= float(limits.max)
    result = np.where(low | high, 0, inside).astype(dtype)
    return np.where(low, limits.min, np.where(high, limits.max, result)).astype(dtype)


def divided(a: Array, b: Array) -> Array:
    """Divide integers, rounded towards zero; a division by zero returns all bits set."""
    zero = b == 0
    safe = np.where(zero, 1, b)
    if a.dtype.kind == "u":
        return np.where(zero, ~a, a // safe) | np.where(zero, a, 0).astype(a.dtype)
    return np.where(zero, -1, (a - np.fmod(a, safe)) // safe).astype(a.dtype)


def _remainder(function: ArrayFunction) -> ArrayFunction:
    """Return a function of integers; for the divisor zero it returns all bits set."""
    return lambda a, b: np.where(
        b == 0, ~np.zeros_like(b), function(a, np.where(b == 0, 1, b))
    ).astype(a.dtype)


def _shift(function: ArrayFunction, kind: str) -> ArrayFunction:
    def shifted(a: Array, b: Array) -> Array:
        count = integers(b, "u").astype(f"u{a.itemsize}") & (8 * a.itemsize - 1)
        return function(integers(a, kind), integers(count, kind))

    return shifted


def mask_of(count: Array, bits: int) -> Array:
    """Return numbers whose ``count`` lowest bits are set."""
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
    """Add axes to a scalar so that it is broadcast with a vector."""
    return number.reshape(number.shape + (1,) * (like.ndim - number.ndim))


def bit_count(value: Array) -> Array:
    """Count the bits that are set."""
    count = np.zeros(value.shape, np.uint32)
    for bit in range(8 * value.itemsize):
        count += ((value >> bit) & 1).astype(np.uint32)
    return count


def _reversed(value: Array) -> Array:
    result = np.zeros_like(value)
    for bit in range(8 * value.itemsize):
        result |= ((value >> bit) & 1) << (8 * value.itemsize - 1 - bit)
    return result


def _dot(a: Array, b: Array) -> Array:
    total = a[..., 0] * b[..., 0]
    for number in range(1, a.shape[-1]):
        total = total + a[..., number] * b[..., number]
    return total


def _integer_dot(kinds: str) -> ArrayFunction:
    """Return a function for the dot product of two vectors and an accumulator.

    An integer can stand for a vector of four bytes.
    """

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


def _product_halves(a: Array, b: Array) -> list[Array]:
    """Return the low and the high half of the product of two integers."""
    if a.itemsize < 8:
        wide = a.astype(f"{a.dtype.kind}{2 * a.itemsize}") * b
        return [wide.astype(a.dtype), (wide >> (8 * a.itemsize)).astype(a.dtype)]
    exact = a.astype(object) * b.astype(object)
    return [a * b, np.asarray(exact >> 64, dtype=a.dtype)]


def select(condition: Array, one: Array, other: Array) -> Array:
    """Select one of two values, by one condition or by a condition for each component."""
    return np.where(column(condition, one), one, other)


def _unordered(function: ArrayFunction) -> ArrayFunction:
    return lambda a, b: function(a, b) | np.isnan(a) | np.isnan(b)


def _same(value: Array) -> Array:
    return value


def _scaled(value: Array, scalar: Array) -> Array:
    return value * column(scalar, value)


TABLE = by_number(OPCODES, {
    "": {
        "Transpose": lambda m: np.swapaxes(m, 1, 2), "ConvertFToU": _same, "ConvertFToS": _same,
        "FConvert": _same, "QuantizeToF16": lambda v: v.astype(np.float16), "FNegate": np.negative,
        "FAdd": np.add, "FSub": np.subtract, "FMul": np.multiply, "FDiv": np.divide,
        "FRem": np.fmod, "FMod": lambda a, b: a - b * np.floor(a / b),
        **dict.fromkeys(("VectorTimesScalar", "MatrixTimesScalar"), _scaled),
        "VectorTimesMatrix": lambda v, m: _dot(v[:, None, :], m),
        "MatrixTimesVector": lambda m, v: _dot(np.swapaxes(m, 1, 2), v[:, None, :]),
        "MatrixTimesMatrix": lambda a, b: _dot(np.swapaxes(a, 1, 2)[:, None], b[:, :, None]),
        "OuterProduct": lambda a, b: a[:, None, :] * b[:, :, None], "Dot": _dot,
        "Any": lambda v: v.any(-1), "All": lambda v: v.all(-1), "IsNan": np.isnan,
        "IsInf": np.isinf, "IsFinite": np.isfinite, "LogicalEqual": np.equal,
        "LogicalNotEqual": np.not_equal, "LogicalOr": np.logical_or, "LogicalAnd": np.logical_and,
        "LogicalNot": np.logical_not, "Select": select, "FOrdEqual": np.equal,
        "FUnordEqual": _unordered(np.equal), "FUnordNotEqual": _unordered(np.not_equal),
        "FOrdNotEqual": lambda a, b: (a < b) | (a > b), "FOrdLessThan": np.less,
        "FUnordLessThan": _unordered(np.less), "FOrdGreaterThan": np.greater,
        "FUnordGreaterThan": _unordered(np.greater), "FOrdLessThanEqual": np.less_equal,
        "FUnordLessThanEqual": _unordered(np.less_equal), "FOrdGreaterThanEqual": np.greater_equal,
        "FUnordGreaterThanEqual": _unordered(np.greater_equal),
        "ShiftRightLogical": _shift(np.right_shift, "u"),
        "ShiftRightArithmetic": _shift(np.right_shift, "s"),
        "ShiftLeftLogical": _shift(np.left_shift, "u"),
        "BitFieldSExtract": lambda v, at, count: _extract(integers(v, "s"), at, count),
        **{f"{name}{form}": _integer_dot(kinds) for form in ("", "AccSat")
           for name, kinds in (("SDot", "ss"), ("UDot", "uu"), ("SUDot", "su"))},
    },
    "u": {
        "ConvertUToF": _same, "UConvert": _same, "IAdd": np.add, "ISub": np.subtract,
        "IMul": np.multiply, "UDiv": divided, "UMod": _remainder(np.fmod),
        "IAddCarry": lambda a, b: [a + b, (a + b < a).astype(a.dtype)],
        "ISubBorrow": lambda a, b: [a - b, (a < b).astype(a.dtype)],
        "UMulExtended": _product_halves, "IEqual": np.equal, "INotEqual": np.not_equal,
        "UGreaterThan": np.greater, "UGreaterThanEqual": np.greater_equal, "ULessThan": np.less,
        "ULessThanEqual": np.less_equal, "BitwiseOr": np.bitwise_or, "BitwiseXor": np.bitwise_xor,
        "BitwiseAnd": np.bitwise_and, "Not": np.invert, "BitFieldInsert": _insert,
        "BitFieldUExtract": _extract, "BitReverse": _reversed, "BitCount": bit_count,
    },
    "s": {
        "ConvertSToF": _same, "SConvert": _same, "SNegate": np.negative, "SDiv": divided,
        "SRem": _remainder(np.fmod), "SMod": _remainder(np.mod), "SMulExtended": _product_halves,
        "SGreaterThan": np.greater, "SGreaterThanEqual": np.greater_equal, "SLessThan": np.less,
        "SLessThanEqual": np.less_equal,
    },
})  # fmt: skip
"""By opcode. Results that are not boolean are converted to the type of the instruction."""

DIVISIONS = (Op.UDiv, Op.SDiv, Op.UMod, Op.SRem, Op.SMod)


def apply(
    entry: tuple[str, ArrayFunction], operands: list[Array], dtype: np.dtype[Any] | None
) -> Any:
    """Return the result of an operation or a function, whose table entry is ``entry``.

    ``dtype`` is the type of the result's numbers, or None if the result is a struct.
    """
    kind, function = entry
    if kind:
        operands = [integers(each, kind) if each.dtype.kind in "iu" else each for each in operands]
    result = function(*operands)
    if dtype is None or isinstance(result, list) or result.dtype == dtype or dtype.kind == "b":
        return result
    if result.dtype.kind in "iu" and dtype.kind in "iu" and result.itemsize == dtype.itemsize:
        return result.view(dtype)
    return converted(result, dtype)
