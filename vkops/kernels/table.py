"""The table of functions that compute one result for each element, with NumPy's meaning."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

_OPERANDS = re.compile(r"\b[xyz]\b")


class Entry(NamedTuple):
    """A function of the table.

    Attributes:
        name: the array API's name, or NumPy's.
        summary: the first sentence of its documentation.
        expressions: the GLSL for the operands ``x``, ``y`` and ``z``, whose type is ``T``, by kinds
            of data types: Booleans (b), signed integers (i), unsigned integers (u) or floats (f). A
            key has one or several of these letters.
        ufunc: the name of the function of NumPy whose rule of data types it has; "" if the result
            has the common data type of the operands.
        aliases: other names of the function in NumPy.
    """

    name: str
    summary: str
    expressions: Mapping[str, str]
    ufunc: str
    aliases: tuple[str, ...] = ()

    @property
    def operands(self) -> int:
        """The number of operands."""
        return max(1, len({*_OPERANDS.findall(" ".join(self.expressions.values()))}))

    def expression(self, kind: str) -> str | None:
        """The GLSL for a kind of data types; None if there is none."""
        return next((text for kinds, text in self.expressions.items() if kind in kinds), None)


def _row(names: str, summary: str, /, ufunc: str | None = None, **expressions: str) -> Entry:
    name, *aliases = names.split()
    if ufunc is None:  # only NumPy's own names are those of its functions
        ufunc = aliases[0] if aliases else name
    return Entry(name, summary, expressions, ufunc, (*aliases,))


def _float(names: str, summary: str, operands: str = "x") -> Entry:
    """A function of floats, which the GLSL function of its name computes."""
    return _row(names, summary, f=f"vk_{names.split()[0]}({operands})")


def _compared(name: str, summary: str, operator: str) -> Entry:
    return _row(name, summary, iuf=f"x {operator} y", b=f"int(x) {operator} int(y)")


def _logical(name: str, summary: str, operator: str) -> Entry:
    b, f = f"x {operator} y", f"vk_true(x) {operator} vk_true(y)"
    return _row(name, summary, iu=f"bool(x) {operator} bool(y)", b=b, f=f)


_ROWS = (
    # -- arithmetic --------------------------------------------------------------------------------
    _row("add", "Add elements.", iuf="x + y", b="x || y"),
    _row("subtract", "Subtract elements of the second array.", iuf="x - y"),
    _row("multiply", "Multiply elements.", iuf="x * y", b="x && y"),
    _row("divide true_divide", "Divide elements; the results are floats.", "divide",
         f="vk_div(x, y)"),
    _row(
        "floor_divide",
        "Divide elements, and round the quotients down; of integers, 0 where y is 0.",
        iuf="vk_floor_divide(x, y)",
    ),
    _row(
        "remainder mod", "Return remainders with the sign of y; of integers, 0 where y is 0.",
        "remainder", iuf="vk_remainder(x, y)",
    ),
    _row("fmod", "Return remainders with the sign of x, as C does.", iuf="vk_fmod(x, y)"),
    _row("pow power", "Raise elements to the powers of the second array.", iuf="vk_pow(x, y)"),
    _row("positive", "Return the elements themselves.", iuf="x"),
    _row("negative", "Negate elements.", iu="T(0) - x", f="vk_negative(x)"),
    _row(
        "abs absolute", "Return absolute values.",
        i="x < T(0) ? T(0) - x : x", ub="x", f="vk_abs(x)",
    ),
    _row("fabs", "Return absolute values as floats.", f="vk_abs(x)"),
    _row("square", "Return squares.", iuf="x * x"),
    _row("reciprocal", "Return 1 / x; of integers, 0 where x is 0.", iu="x == T(0) ? x : T(1) / x",
         f="vk_div(T(1), x)"),
    _row("sign", "Return -1, 0 or 1 for the sign; NaN for NaN.",
         i="x > T(0) ? T(1) : x < T(0) ? T(-1) : x", u="min(x, T(1))", f="vk_sign(x)"),
    _row("copysign", "Return elements with the signs of the second array.", f="vk_copysign(x, y)"),
    _row("nextafter", "Return the next floats towards the second array.", f="vk_nextafter(x, y)"),
    _row("maximum", "Return the larger elements; NaN if one is NaN.",
         iu="max(x, y)", b="x || y", f="vk_maximum(x, y)"),
    _row("minimum", "Return the smaller elements; NaN if one is NaN.",
         iu="min(x, y)", b="x && y", f="vk_minimum(x, y)"),
    _row("fmax", "Return the larger elements; the other one if one is NaN.",
         iu="max(x, y)", b="x || y", f="vk_isnan(x) ? y : vk_isnan(y) || x >= y ? x : y"),
    _row("fmin", "Return the smaller elements; the other one if one is NaN.",
         iu="min(x, y)", b="x && y", f="vk_isnan(x) ? y : vk_isnan(y) || x <= y ? x : y"),
    # -- rounding ----------------------------------------------------------------------------------
    _row("ceil", "Round up.", "", iub="x", f="vk_ceil(x)"),
    _row("floor", "Round down.", "", iub="x", f="vk_floor(x)"),
    _row("trunc", "Round towards 0.", "", iub="x", f="vk_trunc(x)"),
    _row("round", "Round to the nearest integer, ties to even.", "", iu="x", f="vk_round(x)"),
    _row("rint", "Round to the nearest integer, ties to even, as a float.", f="vk_round(x)"),
    # -- comparisons -------------------------------------------------------------------------------
    _compared("equal", "Return whether elements are equal.", "=="),
    _compared("not_equal", "Return whether elements are not equal.", "!="),
    _compared("less", "Return whether elements are less than those of the second array.", "<"),
    _compared("less_equal", "Return whether elements are at most those of the second array.",
              "<="),
    _compared("greater", "Return whether elements are greater than those of the second array.",
              ">"),
    _compared("greater_equal", "Return whether elements are at least those of the second array.",
              ">="),
    _row("isnan", "Return whether elements are NaN.", "isnan",
         iub="x != x", f="vk_isnan(x)"),
    _row("isinf", "Return whether elements are infinite.", "isinf",
         iub="x != x", f="vk_isinf(x)"),
    _row("isfinite", "Return whether elements are neither infinite nor NaN.", "isfinite",
         iub="x == x", f="vk_isfinite(x)"),
    _row("signbit", "Return whether the sign bit is set.", f="vk_signbit(x)"),
    # -- logic and bits ----------------------------------------------------------------------------
    _logical("logical_and", "Return whether both elements are not 0.", "&&"),
    _logical("logical_or", "Return whether one of two elements is not 0.", "||"),
    _logical("logical_xor", "Return whether exactly one of two elements is not 0.", "!="),
    _row("logical_not", "Return whether elements are 0.", b="!x", iu="x == T(0)",
         f="!vk_true(x)"),
    _row("bitwise_and", "Return the bits that both elements have.", iu="x & y", b="x && y"),
    _row("bitwise_or", "Return the bits that one of two elements has.", iu="x | y", b="x || y"),
    _row("bitwise_xor", "Return the bits that exactly one of two elements has.", iu="x ^ y",
         b="x != y"),
    _row("bitwise_invert invert bitwise_not", "Return all other bits.", iu="~x", b="!x"),
    _row("bitwise_left_shift left_shift", "Shift the bits to the left.", iu="vk_left(x, y)"),
    _row("bitwise_right_shift right_shift", "Shift the bits to the right, with the sign.",
         iu="vk_right(x, y)"),
    # -- elementary functions ----------------------------------------------------------------------
    _float("sqrt", "Return square roots."),
    _float("exp", "Return e to the powers of elements."),
    _float("exp2", "Return 2 to the powers of elements."),
    _float("expm1", "Return exp(x) - 1."),
    _float("log", "Return natural logarithms."),
    _float("log2", "Return logarithms to the base 2."),
    _float("log10", "Return logarithms to the base 10."),
    _float("log1p", "Return log(1 + x)."),
    _float("logaddexp", "Return log(exp(x) + exp(y)).", "x, y"),
    _float("hypot", "Return sqrt(x**2 + y**2), without overflow on the way.", "x, y"),
    _float("sin", "Return sines."),
    _float("cos", "Return cosines."),
    _float("tan", "Return tangents."),
    _float("asin arcsin", "Return angles by their sines."),
    _float("acos arccos", "Return angles by their cosines."),
    _float("atan arctan", "Return angles by their tangents."),
    _float("atan2 arctan2", "Return the angles of points (y, x).", "x, y"),
    _float("sinh", "Return hyperbolic sines."),
    _float("cosh", "Return hyperbolic cosines."),
    _float("tanh", "Return hyperbolic tangents."),
    _float("asinh arcsinh", "Return inverse hyperbolic sines."),
    _float("acosh arccosh", "Return inverse hyperbolic cosines."),
    _float("atanh arctanh", "Return inverse hyperbolic tangents."),
    _row("deg2rad radians", "Convert degrees to radians.", "deg2rad", f="vk_deg2rad(x)"),
    _row("rad2deg degrees", "Convert radians to degrees.", "rad2deg", f="vk_rad2deg(x)"),
    _float("heaviside", "Return 0 below 0, 1 above, and y at 0.", "x, y"),
    # -- real and imaginary parts ------------------------------------------------------------------
    _row("conj conjugate", "Return complex conjugates: of real numbers, themselves.", "",
         iufb="x"),
    _row("real", "Return real parts: of real numbers, themselves.", "", iufb="x"),
    _row("imag", "Return imaginary parts: of real numbers, 0.", "", b="false", iuf="T(0)"),
    _row("clip", "Limit elements to the range from the second array to the third one.", "",
         iu="min(max(x, y), z)", b="(x || y) && z", f="vk_minimum(vk_maximum(x, y), z)"),
)  # fmt: skip

TABLE: Mapping[str, Entry] = {entry.name: entry for entry in _ROWS}
"""The functions by their names."""
