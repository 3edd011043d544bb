from collections.abc import Callable, Mapping
from typing import Any

from vkops.tensors.tensor import DeviceLike, Tensor

FUNCTIONS: Mapping[str, Callable[..., Any]]

def abs(
    x: Any, /, *, out: Any = ..., where: Any = ..., dtype: Any = ..., device: DeviceLike = ...
) -> Tensor:
    """Return absolute values."""

def absolute(
    x: Any, /, *, out: Any = ..., where: Any = ..., dtype: Any = ..., device: DeviceLike = ...
) -> Tensor:
    """Return absolute values."""

def acos(
    x: Any, /, *, out: Any = ..., where: Any = ..., dtype: Any = ..., device: DeviceLike = ...
) -> Tensor:
    """Return angles by their cosines."""

def acosh(
    x: Any, /, *, out: Any = ..., where: Any = ..., dtype: Any = ..., device: DeviceLike = ...
) -> Tensor:
    """Return inverse hyperbolic cosines."""

def add(
    x1: Any,
    x2: Any,
    /,
    *,
    out: Any = ...,
    where: Any = ...,
    dtype: Any = ...,
    device: DeviceLike = ...,
) -> Tensor:
    """Add elements."""

def arccos(
    x: Any, /, *, out: Any = ..., where: Any = ..., dtype: Any = ..., device: DeviceLike = ...
) -> Tensor:
    """Return angles by their cosines."""

def arccosh(
    x: Any, /, *, out: Any = ..., where: Any = ..., dtype: Any = ..., device: DeviceLike = ...
) -> Tensor:
    """Return inverse hyperbolic cosines."""

def arcsin(
    x: Any, /, *, out: Any = ..., where: Any = ..., dtype: Any = ..., device: DeviceLike = ...
) -> Tensor:
    """Return angles by their sines."""

def arcsinh(
    x: Any, /, *, out: Any = ..., where: Any = ..., dtype: Any = ..., device: DeviceLike = ...
) -> Tensor:
    """Return inverse hyperbolic sines."""

def arctan(
    x: Any, /, *, out: Any = ..., where: Any = ..., dtype: Any = ..., device: DeviceLike = ...
) -> Tensor:
    """Return angles by their tangents."""

def arctan2(
    x1: Any,
    x2: Any,
    /,
    *,
    out: Any = ...,
    where: Any = ...,
    dtype: Any = ...,
    device: DeviceLike = ...,
) -> Tensor:
    """Return the angles of points (y, x)."""

def arctanh(
    x: Any, /, *, out: Any = ..., where: Any = ..., dtype: Any = ..., device: DeviceLike = ...
) -> Tensor:
    """Return inverse hyperbolic tangents."""

def around(
    x: Any,
    /,
    decimals: int = ...,
    *,
    out: Any = ...,
    where: Any = ...,
    dtype: Any = ...,
    device: DeviceLike = ...,
) -> Tensor:
    """Round to a number of decimals, ties to even, as ``numpy.round``."""

def asin(
    x: Any, /, *, out: Any = ..., where: Any = ..., dtype: Any = ..., device: DeviceLike = ...
) -> Tensor:
    """Return angles by their sines."""

def asinh(
    x: Any, /, *, out: Any = ..., where: Any = ..., dtype: Any = ..., device: DeviceLike = ...
) -> Tensor:
    """Return inverse hyperbolic sines."""

def atan(
    x: Any, /, *, out: Any = ..., where: Any = ..., dtype: Any = ..., device: DeviceLike = ...
) -> Tensor:
    """Return angles by their tangents."""

def atan2(
    x1: Any,
    x2: Any,
    /,
    *,
    out: Any = ...,
    where: Any = ...,
    dtype: Any = ...,
    device: DeviceLike = ...,
) -> Tensor:
    """Return the angles of points (y, x)."""

def atanh(
    x: Any, /, *, out: Any = ..., where: Any = ..., dtype: Any = ..., device: DeviceLike = ...
) -> Tensor:
    """Return inverse hyperbolic tangents."""

def bitwise_and(
    x1: Any,
    x2: Any,
    /,
    *,
    out: Any = ...,
    where: Any = ...,
    dtype: Any = ...,
    device: DeviceLike = ...,
) -> Tensor:
    """Return the bits that both elements have."""

def bitwise_invert(
    x: Any, /, *, out: Any = ..., where: Any = ..., dtype: Any = ..., device: DeviceLike = ...
) -> Tensor:
    """Return all other bits."""

def bitwise_left_shift(
    x1: Any,
    x2: Any,
    /,
    *,
    out: Any = ...,
    where: Any = ...,
    dtype: Any = ...,
    device: DeviceLike = ...,
) -> Tensor:
    """Shift the bits to the left."""

def bitwise_not(
    x: Any, /, *, out: Any = ..., where: Any = ..., dtype: Any = ..., device: DeviceLike = ...
) -> Tensor:
    """Return all other bits."""

def bitwise_or(
    x1: Any,
    x2: Any,
    /,
    *,
    out: Any = ...,
    where: Any = ...,
    dtype: Any = ...,
    device: DeviceLike = ...,
) -> Tensor:
    """Return the bits that one of two elements has."""

def bitwise_right_shift(
    x1: Any,
    x2: Any,
    /,
    *,
    out: Any = ...,
    where: Any = ...,
    dtype: Any = ...,
    device: DeviceLike = ...,
) -> Tensor:
    """Shift the bits to the right, with the sign."""

def bitwise_xor(
    x1: Any,
    x2: Any,
    /,
    *,
    out: Any = ...,
    where: Any = ...,
    dtype: Any = ...,
    device: DeviceLike = ...,
) -> Tensor:
    """Return the bits that exactly one of two elements has."""

def ceil(
    x: Any, /, *, out: Any = ..., where: Any = ..., dtype: Any = ..., device: DeviceLike = ...
) -> Tensor:
    """Round up."""

def clip(
    x: Any,
    /,
    min: Any = ...,
    max: Any = ...,
    *,
    out: Any = ...,
    where: Any = ...,
    dtype: Any = ...,
    device: DeviceLike = ...,
) -> Tensor:
    """Limit elements to a range, as ``numpy.clip``; a limit that is None does not limit."""

def conj(
    x: Any, /, *, out: Any = ..., where: Any = ..., dtype: Any = ..., device: DeviceLike = ...
) -> Tensor:
    """Return complex conjugates: of real numbers, themselves."""

def conjugate(
    x: Any, /, *, out: Any = ..., where: Any = ..., dtype: Any = ..., device: DeviceLike = ...
) -> Tensor:
    """Return complex conjugates: of real numbers, themselves."""

def copysign(
    x1: Any,
    x2: Any,
    /,
    *,
    out: Any = ...,
    where: Any = ...,
    dtype: Any = ...,
    device: DeviceLike = ...,
) -> Tensor:
    """Return elements with the signs of the second array."""

def cos(
    x: Any, /, *, out: Any = ..., where: Any = ..., dtype: Any = ..., device: DeviceLike = ...
) -> Tensor:
    """Return cosines."""

def cosh(
    x: Any, /, *, out: Any = ..., where: Any = ..., dtype: Any = ..., device: DeviceLike = ...
) -> Tensor:
    """Return hyperbolic cosines."""

def deg2rad(
    x: Any, /, *, out: Any = ..., where: Any = ..., dtype: Any = ..., device: DeviceLike = ...
) -> Tensor:
    """Convert degrees to radians."""

def degrees(
    x: Any, /, *, out: Any = ..., where: Any = ..., dtype: Any = ..., device: DeviceLike = ...
) -> Tensor:
    """Convert radians to degrees."""

def divide(
    x1: Any,
    x2: Any,
    /,
    *,
    out: Any = ...,
    where: Any = ...,
    dtype: Any = ...,
    device: DeviceLike = ...,
) -> Tensor:
    """Divide elements; the results are floats."""

def divmod(
    x1: Any, x2: Any, /, *, out: Any = ..., where: Any = ..., device: DeviceLike = ...
) -> tuple[Tensor, Tensor]:
    """Return the quotients of ``floor_divide`` and the remainders, as ``numpy.divmod``."""

def equal(
    x1: Any,
    x2: Any,
    /,
    *,
    out: Any = ...,
    where: Any = ...,
    dtype: Any = ...,
    device: DeviceLike = ...,
) -> Tensor:
    """Return whether elements are equal."""

def exp(
    x: Any, /, *, out: Any = ..., where: Any = ..., dtype: Any = ..., device: DeviceLike = ...
) -> Tensor:
    """Return e to the powers of elements."""

def exp2(
    x: Any, /, *, out: Any = ..., where: Any = ..., dtype: Any = ..., device: DeviceLike = ...
) -> Tensor:
    """Return 2 to the powers of elements."""

def expm1(
    x: Any, /, *, out: Any = ..., where: Any = ..., dtype: Any = ..., device: DeviceLike = ...
) -> Tensor:
    """Return exp(x) - 1."""

def fabs(
    x: Any, /, *, out: Any = ..., where: Any = ..., dtype: Any = ..., device: DeviceLike = ...
) -> Tensor:
    """Return absolute values as floats."""

def floor(
    x: Any, /, *, out: Any = ..., where: Any = ..., dtype: Any = ..., device: DeviceLike = ...
) -> Tensor:
    """Round down."""

def floor_divide(
    x1: Any,
    x2: Any,
    /,
    *,
    out: Any = ...,
    where: Any = ...,
    dtype: Any = ...,
    device: DeviceLike = ...,
) -> Tensor:
    """Divide elements, and round the quotients down; of integers, 0 where y is 0."""

def fmax(
    x1: Any,
    x2: Any,
    /,
    *,
    out: Any = ...,
    where: Any = ...,
    dtype: Any = ...,
    device: DeviceLike = ...,
) -> Tensor:
    """Return the larger elements; the other one if one is NaN."""

def fmin(
    x1: Any,
    x2: Any,
    /,
    *,
    out: Any = ...,
    where: Any = ...,
    dtype: Any = ...,
    device: DeviceLike = ...,
) -> Tensor:
    """Return the smaller elements; the other one if one is NaN."""

def fmod(
    x1: Any,
    x2: Any,
    /,
    *,
    out: Any = ...,
    where: Any = ...,
    dtype: Any = ...,
    device: DeviceLike = ...,
) -> Tensor:
    """Return remainders with the sign of x, as C does."""

def greater(
    x1: Any,
    x2: Any,
    /,
    *,
    out: Any = ...,
    where: Any = ...,
    dtype: Any = ...,
    device: DeviceLike = ...,
) -> Tensor:
    """Return whether elements are greater than those of the second array."""

def greater_equal(
    x1: Any,
    x2: Any,
    /,
    *,
    out: Any = ...,
    where: Any = ...,
    dtype: Any = ...,
    device: DeviceLike = ...,
) -> Tensor:
    """Return whether elements are at least those of the second array."""

def heaviside(
    x1: Any,
    x2: Any,
    /,
    *,
    out: Any = ...,
    where: Any = ...,
    dtype: Any = ...,
    device: DeviceLike = ...,
) -> Tensor:
    """Return 0 below 0, 1 above, and y at 0."""

def hypot(
    x1: Any,
    x2: Any,
    /,
    *,
    out: Any = ...,
    where: Any = ...,
    dtype: Any = ...,
    device: DeviceLike = ...,
) -> Tensor:
    """Return sqrt(x**2 + y**2), without overflow on the way."""

def imag(
    x: Any, /, *, out: Any = ..., where: Any = ..., dtype: Any = ..., device: DeviceLike = ...
) -> Tensor:
    """Return imaginary parts: of real numbers, 0."""

def invert(
    x: Any, /, *, out: Any = ..., where: Any = ..., dtype: Any = ..., device: DeviceLike = ...
) -> Tensor:
    """Return all other bits."""

def isfinite(
    x: Any, /, *, out: Any = ..., where: Any = ..., dtype: Any = ..., device: DeviceLike = ...
) -> Tensor:
    """Return whether elements are neither infinite nor NaN."""

def isinf(
    x: Any, /, *, out: Any = ..., where: Any = ..., dtype: Any = ..., device: DeviceLike = ...
) -> Tensor:
    """Return whether elements are infinite."""

def isnan(
    x: Any, /, *, out: Any = ..., where: Any = ..., dtype: Any = ..., device: DeviceLike = ...
) -> Tensor:
    """Return whether elements are NaN."""

def left_shift(
    x1: Any,
    x2: Any,
    /,
    *,
    out: Any = ...,
    where: Any = ...,
    dtype: Any = ...,
    device: DeviceLike = ...,
) -> Tensor:
    """Shift the bits to the left."""

def less(
    x1: Any,
    x2: Any,
    /,
    *,
    out: Any = ...,
    where: Any = ...,
    dtype: Any = ...,
    device: DeviceLike = ...,
) -> Tensor:
    """Return whether elements are less than those of the second array."""

def less_equal(
    x1: Any,
    x2: Any,
    /,
    *,
    out: Any = ...,
    where: Any = ...,
    dtype: Any = ...,
    device: DeviceLike = ...,
) -> Tensor:
    """Return whether elements are at most those of the second array."""

def log(
    x: Any, /, *, out: Any = ..., where: Any = ..., dtype: Any = ..., device: DeviceLike = ...
) -> Tensor:
    """Return natural logarithms."""

def log10(
    x: Any, /, *, out: Any = ..., where: Any = ..., dtype: Any = ..., device: DeviceLike = ...
) -> Tensor:
    """Return logarithms to the base 10."""

def log1p(
    x: Any, /, *, out: Any = ..., where: Any = ..., dtype: Any = ..., device: DeviceLike = ...
) -> Tensor:
    """Return log(1 + x)."""

def log2(
    x: Any, /, *, out: Any = ..., where: Any = ..., dtype: Any = ..., device: DeviceLike = ...
) -> Tensor:
    """Return logarithms to the base 2."""

def logaddexp(
    x1: Any,
    x2: Any,
    /,
    *,
    out: Any = ...,
    where: Any = ...,
    dtype: Any = ...,
    device: DeviceLike = ...,
) -> Tensor:
    """Return log(exp(x) + exp(y))."""

def logical_and(
    x1: Any,
    x2: Any,
    /,
    *,
    out: Any = ...,
    where: Any = ...,
    dtype: Any = ...,
    device: DeviceLike = ...,
) -> Tensor:
    """Return whether both elements are not 0."""

def logical_not(
    x: Any, /, *, out: Any = ..., where: Any = ..., dtype: Any = ..., device: DeviceLike = ...
) -> Tensor:
    """Return whether elements are 0."""

def logical_or(
    x1: Any,
    x2: Any,
    /,
    *,
    out: Any = ...,
    where: Any = ...,
    dtype: Any = ...,
    device: DeviceLike = ...,
) -> Tensor:
    """Return whether one of two elements is not 0."""

def logical_xor(
    x1: Any,
    x2: Any,
    /,
    *,
    out: Any = ...,
    where: Any = ...,
    dtype: Any = ...,
    device: DeviceLike = ...,
) -> Tensor:
    """Return whether exactly one of two elements is not 0."""

def matmul(
    x1: Any,
    x2: Any,
    /,
    *,
    out: Any = ...,
    dtype: Any = ...,
    device: DeviceLike = ...,
    same_bits: bool = ...,
) -> Tensor:
    """Return the products of matrices, as ``numpy.matmul``."""

def maximum(
    x1: Any,
    x2: Any,
    /,
    *,
    out: Any = ...,
    where: Any = ...,
    dtype: Any = ...,
    device: DeviceLike = ...,
) -> Tensor:
    """Return the larger elements; NaN if one is NaN."""

def minimum(
    x1: Any,
    x2: Any,
    /,
    *,
    out: Any = ...,
    where: Any = ...,
    dtype: Any = ...,
    device: DeviceLike = ...,
) -> Tensor:
    """Return the smaller elements; NaN if one is NaN."""

def mod(
    x1: Any,
    x2: Any,
    /,
    *,
    out: Any = ...,
    where: Any = ...,
    dtype: Any = ...,
    device: DeviceLike = ...,
) -> Tensor:
    """Return remainders with the sign of y; of integers, 0 where y is 0."""

def multiply(
    x1: Any,
    x2: Any,
    /,
    *,
    out: Any = ...,
    where: Any = ...,
    dtype: Any = ...,
    device: DeviceLike = ...,
) -> Tensor:
    """Multiply elements."""

def negative(
    x: Any, /, *, out: Any = ..., where: Any = ..., dtype: Any = ..., device: DeviceLike = ...
) -> Tensor:
    """Negate elements."""

def nextafter(
    x1: Any,
    x2: Any,
    /,
    *,
    out: Any = ...,
    where: Any = ...,
    dtype: Any = ...,
    device: DeviceLike = ...,
) -> Tensor:
    """Return the next floats towards the second array."""

def not_equal(
    x1: Any,
    x2: Any,
    /,
    *,
    out: Any = ...,
    where: Any = ...,
    dtype: Any = ...,
    device: DeviceLike = ...,
) -> Tensor:
    """Return whether elements are not equal."""

def positive(
    x: Any, /, *, out: Any = ..., where: Any = ..., dtype: Any = ..., device: DeviceLike = ...
) -> Tensor:
    """Return the elements themselves."""

def pow(
    x1: Any,
    x2: Any,
    /,
    *,
    out: Any = ...,
    where: Any = ...,
    dtype: Any = ...,
    device: DeviceLike = ...,
) -> Tensor:
    """Raise elements to the powers of the second array."""

def power(
    x1: Any,
    x2: Any,
    /,
    *,
    out: Any = ...,
    where: Any = ...,
    dtype: Any = ...,
    device: DeviceLike = ...,
) -> Tensor:
    """Raise elements to the powers of the second array."""

def rad2deg(
    x: Any, /, *, out: Any = ..., where: Any = ..., dtype: Any = ..., device: DeviceLike = ...
) -> Tensor:
    """Convert radians to degrees."""

def radians(
    x: Any, /, *, out: Any = ..., where: Any = ..., dtype: Any = ..., device: DeviceLike = ...
) -> Tensor:
    """Convert degrees to radians."""

def real(
    x: Any, /, *, out: Any = ..., where: Any = ..., dtype: Any = ..., device: DeviceLike = ...
) -> Tensor:
    """Return real parts: of real numbers, themselves."""

def reciprocal(
    x: Any, /, *, out: Any = ..., where: Any = ..., dtype: Any = ..., device: DeviceLike = ...
) -> Tensor:
    """Return 1 / x; of integers, 0 where x is 0."""

def remainder(
    x1: Any,
    x2: Any,
    /,
    *,
    out: Any = ...,
    where: Any = ...,
    dtype: Any = ...,
    device: DeviceLike = ...,
) -> Tensor:
    """Return remainders with the sign of y; of integers, 0 where y is 0."""

def right_shift(
    x1: Any,
    x2: Any,
    /,
    *,
    out: Any = ...,
    where: Any = ...,
    dtype: Any = ...,
    device: DeviceLike = ...,
) -> Tensor:
    """Shift the bits to the right, with the sign."""

def rint(
    x: Any, /, *, out: Any = ..., where: Any = ..., dtype: Any = ..., device: DeviceLike = ...
) -> Tensor:
    """Round to the nearest integer, ties to even, as a float."""

def round(
    x: Any,
    /,
    decimals: int = ...,
    *,
    out: Any = ...,
    where: Any = ...,
    dtype: Any = ...,
    device: DeviceLike = ...,
) -> Tensor:
    """Round to a number of decimals, ties to even, as ``numpy.round``."""

def sign(
    x: Any, /, *, out: Any = ..., where: Any = ..., dtype: Any = ..., device: DeviceLike = ...
) -> Tensor:
    """Return -1, 0 or 1 for the sign; NaN for NaN."""

def signbit(
    x: Any, /, *, out: Any = ..., where: Any = ..., dtype: Any = ..., device: DeviceLike = ...
) -> Tensor:
    """Return whether the sign bit is set."""

def sin(
    x: Any, /, *, out: Any = ..., where: Any = ..., dtype: Any = ..., device: DeviceLike = ...
) -> Tensor:
    """Return sines."""

def sinh(
    x: Any, /, *, out: Any = ..., where: Any = ..., dtype: Any = ..., device: DeviceLike = ...
) -> Tensor:
    """Return hyperbolic sines."""

def sqrt(
    x: Any, /, *, out: Any = ..., where: Any = ..., dtype: Any = ..., device: DeviceLike = ...
) -> Tensor:
    """Return square roots."""

def square(
    x: Any, /, *, out: Any = ..., where: Any = ..., dtype: Any = ..., device: DeviceLike = ...
) -> Tensor:
    """Return squares."""

def subtract(
    x1: Any,
    x2: Any,
    /,
    *,
    out: Any = ...,
    where: Any = ...,
    dtype: Any = ...,
    device: DeviceLike = ...,
) -> Tensor:
    """Subtract elements of the second array."""

def tan(
    x: Any, /, *, out: Any = ..., where: Any = ..., dtype: Any = ..., device: DeviceLike = ...
) -> Tensor:
    """Return tangents."""

def tanh(
    x: Any, /, *, out: Any = ..., where: Any = ..., dtype: Any = ..., device: DeviceLike = ...
) -> Tensor:
    """Return hyperbolic tangents."""

def true_divide(
    x1: Any,
    x2: Any,
    /,
    *,
    out: Any = ...,
    where: Any = ...,
    dtype: Any = ...,
    device: DeviceLike = ...,
) -> Tensor:
    """Divide elements; the results are floats."""

def trunc(
    x: Any, /, *, out: Any = ..., where: Any = ..., dtype: Any = ..., device: DeviceLike = ...
) -> Tensor:
    """Round towards 0."""

def vecdot(
    x1: Any,
    x2: Any,
    /,
    *,
    axis: int = ...,
    out: Any = ...,
    dtype: Any = ...,
    device: DeviceLike = ...,
) -> Tensor:
    """Return the sums of products of elements along an axis, as ``numpy.vecdot``."""
