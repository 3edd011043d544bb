"""The functions of GLSL.std.450, as a table of NumPy functions.

Terms and numbers are those of the specification of GLSL.std.450.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from vkops.interpreter.operations import Array, by_number, column, integers
from vkops.shaders.grammar import FUNCTIONS as NUMBERS


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
    return _highest(v & (~v + v.dtype.type(1)))


def _highest(v: Array) -> Array:
    result = np.full(v.shape, -1, np.int32)
    for bit in range(8 * v.itemsize):
        result = np.where((v >> v.dtype.type(bit)) & v.dtype.type(1), bit, result)
    return result


def _highest_signed(v: Array) -> Array:
    return _highest(integers(np.where(v < 0, ~v, v), "u"))


def _joined(dtype: type) -> Callable[[Array], Array]:
    """Return a function that reinterprets each vector as one number with the same bits."""
    return lambda v: np.ascontiguousarray(v).view(dtype)[..., 0]


def _parts(dtype: type) -> Callable[[Array], Array]:
    """Return a function that reinterprets each number as a vector with the same bits."""
    return lambda v: np.ascontiguousarray(v).view(dtype).reshape(len(v), -1)


def _packed(dtype: type) -> Callable[[Array], Array]:
    limits = np.iinfo(dtype)

    def pack(v: Array) -> Array:
        numbers = np.clip(np.nan_to_num(v), -1 if limits.min else 0, 1) * np.float32(limits.max)
        return _joined(np.uint32)(np.rint(numbers).astype(dtype))

    return pack


def _unpacked(dtype: type) -> Callable[[Array], Array]:
    scale = np.float32(np.iinfo(dtype).max)
    return lambda v: np.maximum(_parts(dtype)(v).astype(np.float32) / scale, -1)


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
"""An exponent that turns every float into 0 or infinity."""

FUNCTIONS = by_number(NUMBERS, {
    "": {
        "Round": np.rint, "RoundEven": np.rint, "Trunc": np.trunc, "FAbs": np.abs, "FSign": np.sign,
        "Floor": np.floor, "Ceil": np.ceil, "Fract": lambda v: v - np.floor(v),
        "Radians": lambda v: v * v.dtype.type(_DEGREE),
        "Degrees": lambda v: v / v.dtype.type(_DEGREE), "Sin": np.sin, "Cos": np.cos, "Tan": np.tan,
        "Asin": np.arcsin, "Acos": np.arccos, "Atan": np.arctan, "Sinh": np.sinh, "Cosh": np.cosh,
        "Tanh": np.tanh, "Asinh": np.arcsinh, "Acosh": np.arccosh, "Atanh": np.arctanh,
        "Atan2": np.arctan2, "Pow": np.power, "Exp": np.exp, "Log": np.log, "Exp2": np.exp2,
        "Log2": np.log2, "Sqrt": np.sqrt, "InverseSqrt": lambda v: 1 / np.sqrt(v),
        "Determinant": lambda m: np.linalg.det(m.astype(np.float64)), "MatrixInverse": _inverse,
        "ModfStruct": lambda v: [*np.modf(v)], "FMin": _minimum, "FMax": _maximum, "FClamp": _clamp,
        "FMix": lambda a, b, t: a * (1 - t) + b * t,
        "Step": lambda edge, x: np.where(x < edge, 0, 1), "SmoothStep": _smooth_step, "Fma": _fma,
        "FrexpStruct": lambda v: [*np.frexp(v)], "Ldexp": _ldexp,
        "PackSnorm4x8": _packed(np.int8), "PackUnorm4x8": _packed(np.uint8),
        "PackSnorm2x16": _packed(np.int16), "PackUnorm2x16": _packed(np.uint16),
        "PackHalf2x16": lambda v: _joined(np.uint32)(v.astype(np.float16)),
        "PackDouble2x32": _joined(np.float64),
        "UnpackSnorm2x16": _unpacked(np.int16), "UnpackUnorm2x16": _unpacked(np.uint16),
        "UnpackHalf2x16": _parts(np.float16), "UnpackSnorm4x8": _unpacked(np.int8),
        "UnpackUnorm4x8": _unpacked(np.uint8), "UnpackDouble2x32": _parts(np.uint32),
        "Length": _length, "Distance": lambda a, b: _length(a - b),
        "Cross": np.cross, "Normalize": lambda v: v / column(_length(v), v),
        "FaceForward": lambda n, i, other: np.where(column(_dot(other, i), n) < 0, n, -n),
        "Reflect": lambda i, n: i - 2 * column(_dot(n, i), i) * n, "Refract": _refract,
        "NMin": np.fmin, "NMax": np.fmax,
        "NClamp": lambda v, low, high: np.fmin(np.fmax(v, low), high),
    },
    "u": {
        "UMin": np.minimum, "UMax": np.maximum, "UClamp": _clamp, "FindILsb": _lowest_bit,
        "FindUMsb": _highest,
    },
    "s": {
        "SAbs": np.abs, "SSign": np.sign, "SMin": np.minimum, "SMax": np.maximum, "SClamp": _clamp,
        "FindSMsb": _highest_signed,
    },
})  # fmt: skip
"""The functions by number."""

STORING = {NUMBERS[name]: FUNCTIONS[NUMBERS[f"{name}Struct"]] for name in ("Modf", "Frexp")}
"""Functions that store their second result, with the functions that return both."""
