"""Elementwise functions and operators, as type checkers see them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from typing_extensions import assert_type

import vkops

FUNCTIONS: tuple[Callable[..., vkops.Tensor], ...] = (
    vkops.abs,
    vkops.absolute,
    vkops.acos,
    vkops.acosh,
    vkops.add,
    vkops.arccos,
    vkops.arccosh,
    vkops.arcsin,
    vkops.arcsinh,
    vkops.arctan,
    vkops.arctan2,
    vkops.arctanh,
    vkops.around,
    vkops.asin,
    vkops.asinh,
    vkops.atan,
    vkops.atan2,
    vkops.atanh,
    vkops.bitwise_and,
    vkops.bitwise_invert,
    vkops.bitwise_left_shift,
    vkops.bitwise_not,
    vkops.bitwise_or,
    vkops.bitwise_right_shift,
    vkops.bitwise_xor,
    vkops.ceil,
    vkops.clip,
    vkops.conj,
    vkops.conjugate,
    vkops.copysign,
    vkops.cos,
    vkops.cosh,
    vkops.deg2rad,
    vkops.degrees,
    vkops.divide,
    vkops.equal,
    vkops.exp,
    vkops.exp2,
    vkops.expm1,
    vkops.fabs,
    vkops.floor,
    vkops.floor_divide,
    vkops.fmax,
    vkops.fmin,
    vkops.fmod,
    vkops.greater,
    vkops.greater_equal,
    vkops.heaviside,
    vkops.hypot,
    vkops.imag,
    vkops.invert,
    vkops.isfinite,
    vkops.isinf,
    vkops.isnan,
    vkops.left_shift,
    vkops.less,
    vkops.less_equal,
    vkops.log,
    vkops.log10,
    vkops.log1p,
    vkops.log2,
    vkops.logaddexp,
    vkops.logical_and,
    vkops.logical_not,
    vkops.logical_or,
    vkops.logical_xor,
    vkops.maximum,
    vkops.minimum,
    vkops.mod,
    vkops.multiply,
    vkops.negative,
    vkops.nextafter,
    vkops.not_equal,
    vkops.positive,
    vkops.pow,
    vkops.power,
    vkops.rad2deg,
    vkops.radians,
    vkops.real,
    vkops.reciprocal,
    vkops.remainder,
    vkops.right_shift,
    vkops.rint,
    vkops.round,
    vkops.sign,
    vkops.signbit,
    vkops.sin,
    vkops.sinh,
    vkops.sqrt,
    vkops.square,
    vkops.subtract,
    vkops.tan,
    vkops.tanh,
    vkops.true_divide,
    vkops.trunc,
)

x = vkops.asarray(np.array([[1, 2], [3, 4]], np.float32))
quotients, remainders = vkops.divmod(x, 2)
results = [quotients, remainders, x + 1, 1 - x, -x, x > 2, x == 1, abs(x), vkops.add(x, x, out=x)]
for result in results:
    assert_type(result, vkops.Tensor)
assert results[2].tolist() == [[2, 3], [4, 5]]
x *= 2
assert x.tolist() == [[4, 8], [12, 16]]

x, rows = vkops.asarray([3.0, 1.0, 2.0]), vkops.asarray([[1.0, 2.0], [3.0, 4.0]])
for made in (
    vkops.all(x),
    vkops.any(x),
    vkops.argmax(x),
    vkops.argmin(x),
    vkops.argsort(x),
    vkops.count_nonzero(x),
    vkops.cumulative_prod(x),
    vkops.cumulative_sum(x),
    vkops.diff(x),
    vkops.matmul(rows, rows),
    vkops.max(x),
    vkops.mean(x),
    vkops.min(x),
    vkops.prod(x),
    vkops.searchsorted(x, x),
    vkops.sort(x),
    vkops.std(x),
    vkops.sum(x),
    vkops.tensordot(rows, rows),
    vkops.unique_values(x),
    vkops.var(x),
    vkops.vecdot(x, x),
    vkops.where(x > 1, x, 0),
    x.sum(axis=0),
    rows @ rows,
):
    assert_type(made, vkops.Tensor)
assert_type(vkops.nonzero(x), tuple[vkops.Tensor, ...])
assert_type(vkops.unique_all(x).values, vkops.Tensor)
assert_type(vkops.unique_counts(x).counts, vkops.Tensor)
assert_type(vkops.unique_inverse(x).inverse_indices, vkops.Tensor)
assert_type(vkops.can_cast(x, "float64"), bool)
assert_type(vkops.isdtype(x.dtype, "real floating"), bool)
assert_type(vkops.result_type(x, 1), np.dtype[Any])
assert_type(vkops.finfo("float32").eps, float)
assert_type(vkops.iinfo("int32").max, int)
