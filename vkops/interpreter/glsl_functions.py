"""The functions of GLSL.std.450, as a table of NumPy functions.

Terms and numbers are those of the specification of GLSL.std.450.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from vkops.interpreter.operations import Array, by_number, column, integers


def _smooth_step(low: Array, high: Array, x: Array) -> Array:
    t = np.clip((x - low) / (high - low), 0, 1).astype(x.dtype)
    return (t * t * (3 - 2 * t)).astype(x.dtype)


def _fma(a: Array, b: Array, c: Array) -> Array:
    if a.dtype == np.float64:
        return a * b + c
    return (a.astype(np.float64) * b + c).astype(a.dtype)


def _dot(a: Array, b: Array) -> Array:
    return (a * b).sum(-1) if a.ndim > 1 else a * b


def _length(v: Array) -> Array:
    return np.sqrt(_dot(v, v))


def _refract(i: Array, n: Array, eta: Array) -> Array:
    d = column(_dot(n, i), i)
    eta = column(eta, i).astype(i.dtype)
    k = 1 - eta * eta * (1 - d * d)
    bent = eta * i - (eta * d + np.sqrt(np.maximum(k, 0))) * n
    return np.where(k < 0, 0, bent).astype(i.dtype)


def _lowest_bit(v: Array) -> Array:
    v = integers(v, "u")
    isolated = v & (~v + v.dtype.type(1))
    return np.where(v == 0, -1, _highest(isolated))


def _highest(v: Array) -> Array:
    found = np.full(v.shape, -1, np.int32)
    for bit in range(8 * v.itemsize):
        found = np.where((v >> v.dtype.type(bit)) & v.dtype.type(1), bit, found)
    return found


def _highest_signed(v: Array) -> Array:
    v = integers(v, "s")
    return _highest(integers(np.where(v < 0, ~v, v), "u"))


def _pack_norm(count: int, bits: int, *, signed: bool) -> Callable[[Array], Array]:
    scale = (1 << (bits - 1)) - 1 if signed else (1 << bits) - 1

    def pack(v: Array) -> Array:
        numbers = np.rint(np.clip(np.nan_to_num(v), -1 if signed else 0, 1) * np.float32(scale))
        whole = numbers.astype(np.int64).astype(np.uint32) & np.uint32((1 << bits) - 1)
        return sum((whole[..., k] << np.uint32(k * bits)) for k in range(count)).astype(np.uint32)

    return pack


def _unpack_norm(count: int, bits: int, *, signed: bool) -> Callable[[Array], Array]:
    scale = np.float32((1 << (bits - 1)) - 1 if signed else (1 << bits) - 1)
    kind = f"{'i' if signed else 'u'}{bits // 8}"

    def unpack(v: Array) -> Array:
        parts = np.ascontiguousarray(v).view(kind).reshape(len(v), count)
        found = parts.astype(np.float32) / scale
        return np.clip(found, -1, 1) if signed else found

    return unpack


def _minimum(a: Array, b: Array) -> Array:
    return np.where(b < a, b, a)


def _maximum(a: Array, b: Array) -> Array:
    return np.where(a < b, b, a)


def _ldexp(v: Array, exponent: Array) -> Array:
    limited = np.clip(integers(exponent, "s"), -_MAX_EXPONENT, _MAX_EXPONENT)
    return np.ldexp(v, limited.astype(np.int32)).astype(v.dtype)


def _clamp(v: Array, low: Array, high: Array) -> Array:
    return _minimum(_maximum(v, low), high)


def _inverse(m: Array) -> Array:
    singular = np.linalg.det(m.astype(np.float64)) == 0
    safe = np.where(singular[:, None, None], np.eye(m.shape[-1]), m)
    return np.where(singular[:, None, None], np.inf, np.linalg.inv(safe)).astype(m.dtype)


_DEGREE = np.pi / 180
_MAX_EXPONENT = 1 << 12
"""One that makes 0 or infinity of all floats."""

FUNCTIONS = by_number({
    "": {
        1: np.rint, 2: np.rint, 3: np.trunc, 4: np.abs, 6: np.sign, 8: np.floor, 9: np.ceil,
        10: lambda v: v - np.floor(v), 11: lambda v: v * v.dtype.type(_DEGREE),
        12: lambda v: v / v.dtype.type(_DEGREE), 13: np.sin, 14: np.cos, 15: np.tan,
        16: np.arcsin, 17: np.arccos, 18: np.arctan, 19: np.sinh, 20: np.cosh, 21: np.tanh,
        22: np.arcsinh, 23: np.arccosh, 24: np.arctanh, 25: np.arctan2, 26: np.power, 27: np.exp,
        28: np.log, 29: np.exp2, 30: np.log2, 31: np.sqrt, 32: lambda v: 1 / np.sqrt(v),
        33: lambda m: np.linalg.det(m.astype(np.float64)), 34: _inverse,
        36: lambda v: [*np.modf(v)], 37: _minimum, 40: _maximum, 43: _clamp,
        46: lambda a, b, t: a * (1 - t) + b * t, 48: lambda edge, x: np.where(x < edge, 0, 1),
        49: _smooth_step, 50: _fma, 52: lambda v: [*np.frexp(v)], 53: _ldexp,
        54: _pack_norm(4, 8, signed=True), 55: _pack_norm(4, 8, signed=False),
        56: _pack_norm(2, 16, signed=True), 57: _pack_norm(2, 16, signed=False),
        58: lambda v: np.ascontiguousarray(v.astype(np.float16)).view(np.uint32)[..., 0],
        59: lambda v: np.ascontiguousarray(v).view(np.float64)[..., 0],
        60: _unpack_norm(2, 16, signed=True), 61: _unpack_norm(2, 16, signed=False),
        62: lambda v: np.ascontiguousarray(v).view(np.float16).reshape(len(v), 2),
        63: _unpack_norm(4, 8, signed=True), 64: _unpack_norm(4, 8, signed=False),
        65: lambda v: np.ascontiguousarray(v).view(np.uint32).reshape(len(v), 2),
        66: _length, 67: lambda a, b: _length(a - b), 68: lambda a, b: np.cross(a, b),
        69: lambda v: v / column(_length(v), v),
        70: lambda n, i, other: np.where(column(_dot(other, i), n) < 0, n, -n),
        71: lambda i, n: i - 2 * column(_dot(n, i), i) * n, 72: _refract,
        79: np.fmin, 80: np.fmax, 81: lambda v, low, high: np.fmin(np.fmax(v, low), high),
    },
    "u": {38: np.minimum, 41: np.maximum, 44: _clamp, 73: _lowest_bit, 75: _highest},
    "s": {5: np.abs, 7: np.sign, 39: np.minimum, 42: np.maximum, 45: _clamp, 74: _highest_signed},
})  # fmt: skip
"""By number. Modf (35) and Frexp (51) are 36 and 52 whose second result is stored."""

STORING: dict[int, int] = {35: 36, 51: 52}


def apply(number: int, operands: list[Any], dtype: np.dtype[Any] | None) -> Any:
    """Return the result of a function; a list if it has two."""
    kind, function = FUNCTIONS[number]
    if kind:
        operands = [integers(each, kind) for each in operands]
    found = function(*operands)
    if isinstance(found, list) or dtype is None:
        return found
    if found.dtype.kind in "iu" and dtype.kind in "iu" and found.itemsize == dtype.itemsize:
        return found.view(dtype)
    return found.astype(dtype, copy=False)
