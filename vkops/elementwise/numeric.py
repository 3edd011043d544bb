"""GLSL functions of numbers for the table of arithmetic.

Each function has a text for floats, with the words of ``arithmetic.with_words``, or for integers,
with ``T`` for the type and ``U`` for the unsigned type of the same size. Functions of floats use
only additions, subtractions, multiplications and the bits of numbers, so they return the same bits
on every device. Where the device's division or square root is used, it is only a first estimate,
which integer arithmetic corrects.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from itertools import zip_longest
from math import comb, factorial
from typing import Any

import numpy as np

from vkops.elementwise.arithmetic import with_words
from vkops.elementwise.formats import GLSL_TYPES, guarded

_CALL = re.compile(r"\b(vk_\w+)\(")
_NUMBER = re.compile(r"(?<![\w.])\d+\.\d+(?:e[+-]?\d+)?")
_CALL_OF_SERIES = re.compile(r"SERIES\((\w+), (\w+)\)")
_CONSTANT = re.compile(r"\b[A-Z][A-Z0-9_]*\b")
_RETURNED = re.compile(r"return ([^;]*[-+*][^;]*);")
_REPEATED = re.compile(r"REPEAT\((\w+)\) \{(.*?)\n    \}", re.DOTALL)

_SERIES: dict[str, tuple[Callable[[int], Fraction], float, float, int, int]] = {
    "EXP": (lambda k: Fraction(1, factorial(k + 2)), -0.3475, 0.3475, 5, 11),
    "LOG": (lambda k: Fraction((-1) ** k, k + 3), -0.293, 0.4145, 8, 21),
    "POW": (lambda k: Fraction(2, 2 * k + 5), 0, 0.0296, 4, 10),
    "SIN": (lambda k: Fraction((-1) ** (k + 1), factorial(2 * k + 3)), 0, 0.625, 3, 7),
    "COS": (lambda k: Fraction((-1) ** k, factorial(2 * k + 4)), 0, 0.625, 3, 6),
    "ASIN": (lambda k: Fraction(comb(2 * k + 2, k + 1), (2 * k + 3) << 2 * k + 2), 0, 0.25, 5, 13),
    "ATAN": (lambda k: Fraction((-1) ** (k + 1), 2 * k + 3), 0, 0.0626, 4, 9),
}  # fmt: skip
"""For each series: its coefficients, by the number of the term; its interval; its terms by type."""

_REPEATS = {"REFINED": (0, 2), "INVERSE_STEPS": (3, 5), "ROOT_STEPS": (3, 4)}
"""The numbers of Newton steps for float32 and float64."""

_EXACT_TERMS = 60
"""The number of terms of a series that is enough for float64 in its interval."""

_INTEGERS = {
    "vk_magnitude": "U vk_magnitude(T x) { return x < T(0) ? U(0) - U(x) : U(x); }",
    "vk_floor_divide": """
T vk_floor_divide(T x, T y) {  // 0 where y is 0
    if (y == T(0)) return y;
    U a = vk_magnitude(x), b = vk_magnitude(y), quotient = a / b;
    if ((x < T(0)) == (y < T(0))) return T(quotient);
    return T(U(0) - quotient - U(quotient * b != a ? 1 : 0));
}""",
    "vk_fmod": """
T vk_fmod(T x, T y) {  // with the sign of x; 0 where y is 0
    if (y == T(0)) return y;
    U rest = vk_magnitude(x) % vk_magnitude(y);
    return T(x < T(0) ? U(0) - rest : rest);
}""",
    "vk_remainder": """
T vk_remainder(T x, T y) {  // with the sign of y; 0 where y is 0
    T rest = vk_fmod(x, y);
    return rest != T(0) && (x < T(0)) != (y < T(0)) ? rest + y : rest;
}""",
    "vk_pow": """
T vk_pow(T x, T y) {  // modulo 2**bits; 1 / x**-y, without its fraction, where y is below 0
    if (y < T(0)) return x == T(1) ? x : x + T(1) != T(0) ? T(0) : (y & T(1)) != T(0) ? x : T(1);
    T result = T(1);
    for (int k = 0; k < 64 && y != T(0); ++k) {
        if ((y & T(1)) != T(0)) result *= x;
        x *= x;
        y >>= 1;
    }
    return result;
}""",
    "vk_left": "T vk_left(T x, T y) { return U(y) < U(WIDTH) ? x << y : T(0); }",
    "vk_right": """
T vk_right(T x, T y) { return U(y) < U(WIDTH) ? x >> y : x < T(0) ? ~T(0) : T(0); }""",
}

_FLOATS = {
    "vk_nan": """
FLOAT vk_nan(FLOAT x) {  // lavapipe with LLVM 19 computes wrongly with a constant one
    return BITS_TO_FLOAT(vk_bits(x) | BITS(2 * EXPONENTS + 1) << (MANTISSA - 1));
}""",
    "vk_inf": "FLOAT vk_inf(FLOAT x) { return BITS_TO_FLOAT(BITS(EXPONENTS) << MANTISSA); }",
    "vk_bits": """
BITS vk_bits(FLOAT x) { return FLOAT_TO_BITS(x) & ((BITS(1) << SIGN) - BITS(1)); }""",
    "vk_signbit": "bool vk_signbit(FLOAT x) { return FLOAT_TO_BITS(x) >> SIGN != BITS(0); }",
    "vk_isnan": "bool vk_isnan(FLOAT x) { return vk_bits(x) > BITS(EXPONENTS) << MANTISSA; }",
    "vk_isinf": "bool vk_isinf(FLOAT x) { return vk_bits(x) == BITS(EXPONENTS) << MANTISSA; }",
    "vk_isfinite": "bool vk_isfinite(FLOAT x) { return vk_bits(x) < BITS(EXPONENTS) << MANTISSA; }",
    "vk_near": """
FLOAT vk_near(FLOAT x) {  // rounded to nearest, ties to even, below 2**(MANTISSA - 2)
    precise FLOAT moved = x + ROUNDER, whole = moved - ROUNDER;
    return whole;
}""",
    "vk_true": "bool vk_true(FLOAT x) { return vk_bits(x) != BITS(0); }",
    "vk_abs": "FLOAT vk_abs(FLOAT x) { return BITS_TO_FLOAT(vk_bits(x)); }",
    "vk_negative": """
FLOAT vk_negative(FLOAT x) { return BITS_TO_FLOAT(FLOAT_TO_BITS(x) ^ BITS(1) << SIGN); }""",
    "vk_copysign": """
FLOAT vk_copysign(FLOAT x, FLOAT y) {
    return BITS_TO_FLOAT(vk_bits(x) | (FLOAT_TO_BITS(y) >> SIGN) << SIGN);
}""",
    "vk_sign": """
FLOAT vk_sign(FLOAT x) {
    if (vk_isnan(x)) return x;
    return vk_bits(x) == BITS(0) ? FLOAT(0) : vk_signbit(x) ? FLOAT(-1) : FLOAT(1);
}""",
    "vk_nextafter": """
FLOAT vk_nextafter(FLOAT x, FLOAT y) {
    if (vk_isnan(x) || vk_isnan(y)) return vk_nan(x);
    BITS from = FLOAT_TO_BITS(x), a = vk_bits(x), b = vk_bits(y);
    if (from == FLOAT_TO_BITS(y) || (a | b) == BITS(0)) return y;
    if (a == BITS(0)) return vk_copysign(BITS_TO_FLOAT(BITS(1)), y);
    bool grows = vk_signbit(x) == vk_signbit(y) && a < b;
    return BITS_TO_FLOAT(grows ? from + BITS(1) : from - BITS(1));
}""",
    "vk_trunc": """
FLOAT vk_trunc(FLOAT x) {
    BITS bits = FLOAT_TO_BITS(x);
    int exponent = (int(bits >> MANTISSA) & EXPONENTS) - EXPONENTS / 2;
    if (exponent >= MANTISSA) return x;
    if (exponent < 0) return BITS_TO_FLOAT(bits >> SIGN << SIGN);
    return BITS_TO_FLOAT(bits & ~((BITS(1) << (MANTISSA - exponent)) - BITS(1)));
}""",
    "vk_floor": """
FLOAT vk_floor(FLOAT x) {
    precise FLOAT whole = vk_trunc(x);
    return vk_signbit(x) && FLOAT_TO_BITS(x) != FLOAT_TO_BITS(whole) ? whole - FLOAT(1) : whole;
}""",
    "vk_ceil": "FLOAT vk_ceil(FLOAT x) { return vk_negative(vk_floor(vk_negative(x))); }",
    "vk_round": """
FLOAT vk_round(FLOAT x) {  // ties to even
    precise FLOAT whole = vk_trunc(x), rest = vk_abs(x - whole), half_ = whole * 0.5;
    bool is_odd = vk_trunc(half_) != half_;
    if (!(rest > 0.5 || (rest == 0.5 && is_odd))) return whole;
    return whole + vk_copysign(FLOAT(1), x);
}""",
    "vk_fmod": """
FLOAT vk_fmod(FLOAT x, FLOAT y) {  // exact
    BITS one = BITS(1), infinity = BITS(EXPONENTS) << MANTISSA, a = vk_bits(x), b = vk_bits(y);
    if (a >= infinity || b > infinity || b == BITS(0)) return vk_nan(x);
    if (a < b) return x;
    int exponent = max(int(a >> MANTISSA), 1), last = max(int(b >> MANTISSA), 1);
    BITS fraction = (one << MANTISSA) - one;
    BITS rest = a >> MANTISSA == BITS(0) ? a : (a & fraction) | one << MANTISSA;
    BITS part = b >> MANTISSA == BITS(0) ? b : (b & fraction) | one << MANTISSA;
    rest %= part;
    for (int left = exponent - last; left > 0; left -= SIGN - MANTISSA)
        rest = (rest << min(left, SIGN - MANTISSA)) % part;
    for (; rest >> MANTISSA == BITS(0) && last > 1 && rest != BITS(0); --last) rest <<= 1;
    if (rest >> MANTISSA != BITS(0)) rest = (rest & fraction) | BITS(last) << MANTISSA;
    return vk_copysign(BITS_TO_FLOAT(rest), x);
}""",
    "vk_remainder": """
FLOAT vk_remainder(FLOAT x, FLOAT y) {  // with the sign of y
    precise FLOAT rest = vk_fmod(x, y);
    if (vk_isnan(rest)) return rest;
    if (!vk_true(rest)) return vk_copysign(FLOAT(0), y);
    return vk_signbit(rest) != vk_signbit(y) ? rest + y : rest;
}""",
    "vk_floor_divide": """
FLOAT vk_floor_divide(FLOAT x, FLOAT y) {
    precise FLOAT quotient = vk_div(x, y), rest = vk_fmod(x, y);
    if (!vk_true(y) || vk_isnan(rest)) return vk_true(y) ? rest : quotient;
    precise FLOAT whole = vk_div(x - rest, y);
    if (vk_true(rest) && vk_signbit(rest) != vk_signbit(y)) whole = whole - FLOAT(1);
    if (!vk_true(whole)) return vk_copysign(FLOAT(0), quotient);
    precise FLOAT below = vk_floor(whole);
    return whole - below > 0.5 ? below + FLOAT(1) : below;
}""",
    "vk_maximum": "FLOAT vk_maximum(FLOAT x, FLOAT y) { return vk_isnan(x) || x >= y ? x : y; }",
    "vk_minimum": "FLOAT vk_minimum(FLOAT x, FLOAT y) { return vk_isnan(x) || x <= y ? x : y; }",
    "vk_deg2rad": "FLOAT vk_deg2rad(FLOAT x) { return x * PI_180; }",
    "vk_rad2deg": "FLOAT vk_rad2deg(FLOAT x) { return x * ONE_BY_PI_180; }",
    "vk_heaviside": """
FLOAT vk_heaviside(FLOAT x, FLOAT y) {
    return vk_isnan(x) ? x : !vk_true(x) ? y : vk_signbit(x) ? FLOAT(0) : FLOAT(1);
}""",
    "vk_to_odd": """
float vk_to_odd(FLOAT x) {
    // The last bit of results that are not exact is odd, so rounding once more is right.
    precise float near = float(x);
    uint bits = floatBitsToUint(near);
    if (FLOAT(near) == x || (bits & 1u) != 0u || (bits & 0x7fffffffu) >= 0x7f800000u) return near;
    bool is_above = vk_abs(FLOAT(near)) > vk_abs(x);
    if ((bits & 0x7fffffffu) == 0u) return uintBitsToFloat(vk_signbit(x) ? 0x80000001u : 1u);
    return uintBitsToFloat(is_above ? bits - 1u : bits + 1u);
}""",
    "vk_next_bits": """
uint vk_next_bits(uint from, uint to, uint sign) {  // of floats with fewer bits
    uint a = from & ~sign, b = to & ~sign;
    if (from == to || (a | b) == 0u) return to;
    if (a == 0u) return (to & sign) | 1u;
    return (from & sign) == (to & sign) && a < b ? from + 1u : from - 1u;
}""",
    # -- division and square roots -----------------------------------------------------------------
    # Devices round division and roots differently: these are estimates, which integers correct.
    "vk_normal": """
BITS vk_normal(BITS bits, out int exponent) {  // the fraction of 1.fraction * 2**(exponent - BIAS)
    bool is_small = bits >> MANTISSA == BITS(0);
    if (is_small) bits = FLOAT_TO_BITS(FLOAT(bits));
    exponent = int(bits >> MANTISSA) - (is_small ? EXPONENTS / 2 + MANTISSA - 1 : 0);
    return bits & ((BITS(1) << MANTISSA) - BITS(1));
}""",
    "vk_signed": """
FLOAT vk_signed(BITS x) { return x >> SIGN == BITS(0) ? FLOAT(x) : -FLOAT(BITS(0) - x); }""",
    "vk_div": """
FLOAT vk_div(FLOAT x, FLOAT y) {  // rounded to nearest, ties to even
    BITS one = BITS(1), infinity = BITS(EXPONENTS) << MANTISSA, a = vk_bits(x), b = vk_bits(y);
    BITS sign = ((FLOAT_TO_BITS(x) ^ FLOAT_TO_BITS(y)) >> SIGN) << SIGN;
    int exponent, less;
    BITS m = vk_normal(a, exponent), n = vk_normal(b, less);
    BITS unit = BITS(EXPONENTS / 2) << MANTISSA, scale = BITS(EXPONENTS / 2 - MANTISSA) << MANTISSA;
    exponent += EXPONENTS / 2 - less;
    if (m < n) --exponent;
    FLOAT above = BITS_TO_FLOAT(m | (m < n ? unit + (one << MANTISSA) : unit));
    FLOAT below = BITS_TO_FLOAT(n | unit), inverse = FLOAT(float(1) / float(below));
    REPEAT(REFINED) {
        inverse += inverse * (FLOAT(1) - below * inverse);
    }
    m = (m | one << MANTISSA) << (m < n ? 1 : 0);
    n |= one << MANTISSA;
    // The quotient is from 1 to 2, with one binary digit more; the rest is taken modulo 2**bits.
    BITS quotient = BITS(above * inverse * FLOAT(one << (MANTISSA + 1)));
    BITS rest = (m << (MANTISSA + 1)) - quotient * n;
    FLOAT apart = vk_signed(rest) * inverse * BITS_TO_FLOAT(scale);
    BITS more = BITS(apart + FLOAT(1024)) - BITS(1024);
    quotient += more;
    rest -= more * n;
    if (rest >> SIGN != BITS(0)) { rest += n; --quotient; }
    else if (rest >= n) { rest -= n; ++quotient; }
    int dropped = exponent > 0 ? 1 : min(2 - exponent, MANTISSA + 3);
    BITS kept = quotient >> dropped, part = quotient & ((one << dropped) - one);
    BITS middle = one << (dropped - 1);
    if (part > middle || (part == middle && (rest | (kept & one)) != BITS(0))) ++kept;
    kept += BITS(max(exponent, 1) - 1) << MANTISSA;
    if (exponent >= EXPONENTS || a == infinity || b == BITS(0)) kept = infinity;
    else if (a == BITS(0) || b == infinity) kept = BITS(0);
    bool is_nan = a > infinity || b > infinity || (a == b && (a == infinity || a == BITS(0)));
    return is_nan ? vk_nan(x) : BITS_TO_FLOAT(sign | kept);
}""",
    "vk_sqrt": """
FLOAT vk_sqrt(FLOAT x) {  // rounded to nearest
    BITS a = vk_bits(x), one = BITS(1);
    int exponent;
    BITS m = vk_normal(a, exponent);
    int odd = (exponent - EXPONENTS / 2) & 1;
    FLOAT square = BITS_TO_FLOAT(m | BITS(EXPONENTS / 2 + odd) << MANTISSA);
    FLOAT guess = FLOAT(sqrt(float(square))), inverse = FLOAT(float(1) / float(guess + guess));
    REPEAT(REFINED) {
        guess += (square - guess * guess) * inverse;
    }
    m = (m | one << MANTISSA) << odd;
    // The root is from 1 to 2, with one binary digit more; the rest is taken modulo 2**bits.
    BITS root = BITS(guess * FLOAT(one << (MANTISSA + 1)));
    BITS rest = (m << (MANTISSA + 2)) - root * root;
    BITS scale = BITS(EXPONENTS / 2 - MANTISSA - 1) << MANTISSA;
    FLOAT apart = vk_signed(rest) * inverse * BITS_TO_FLOAT(scale);
    BITS more = BITS(apart + FLOAT(1024)) - BITS(1024);
    rest -= more * (root + root + more);
    root += more;
    if (rest >> SIGN != BITS(0)) --root;
    else if (rest > root + root) ++root;
    BITS kept = (root + one) >> 1;  // no root is in the middle of two numbers
    exponent = (exponent - EXPONENTS / 2 - odd) / 2 + EXPONENTS / 2 - 1;
    FLOAT result = BITS_TO_FLOAT(kept + (BITS(exponent) << MANTISSA));
    if (a == BITS(0) || a > BITS(EXPONENTS) << MANTISSA) return x;
    return vk_signbit(x) ? vk_nan(x) : a == BITS(EXPONENTS) << MANTISSA ? x : result;
}""",
    # The next ones do not round to nearest; they have the same bits everywhere, and cost less.
    "vk_shortened": """
FLOAT vk_shortened(FLOAT x) {  // so that a product of two has all its digits
    return BITS_TO_FLOAT((FLOAT_TO_BITS(x) >> (MANTISSA / 2 + 1)) << (MANTISSA / 2 + 1));
}""",
    "vk_inverse": """
FLOAT vk_inverse(FLOAT x) {  // 1 / x, where both are normal and x is above 0, but for 2 or 3 ulp
    precise FLOAT y = BITS_TO_FLOAT(INVERSE_BITS - FLOAT_TO_BITS(x));
    REPEAT(INVERSE_STEPS) {
        y = y + y * (FLOAT(1) - x * y);
    }
    return y;
}""",
    "vk_root": """
FLOAT vk_root(FLOAT x, FLOAT x_low, out FLOAT low) {
    // sqrt(x + x_low) and what rounding it lost, where x and 1 / x are normal, or x is 0
    precise FLOAT half_ = x * 0.5, y = BITS_TO_FLOAT(ROOT_BITS - (FLOAT_TO_BITS(x) >> 1));
    REPEAT(ROOT_STEPS) {
        y = y * (1.5 - half_ * y * y);
    }
    precise FLOAT root = vk_shortened(x * y), rest = (x - root * root) + x_low;
    precise FLOAT half_y = y * 0.5, more = rest * half_y;
    more = more + more * more * half_y;
    precise FLOAT sum = root + more, lost = more - (sum - root);
    low = lost;
    return sum;
}""",
    "vk_quotient": """
FLOAT vk_quotient(FLOAT x, FLOAT x_low, FLOAT y, FLOAT y_low, out FLOAT low) {
    // (x + x_low) / (y + y_low), where y and 1 / y are normal, and what rounding it lost
    precise FLOAT inverse = vk_inverse(y), first = vk_shortened(x * inverse), y0 = vk_shortened(y);
    precise FLOAT rest = ((x - first * y0) - first * (y - y0)) + (x_low - first * y_low);
    precise FLOAT more = rest * inverse, sum = first + more, lost = more - (sum - first);
    low = lost;
    return sum;
}""",
    "vk_product": """
FLOAT vk_product(FLOAT x, FLOAT y, out FLOAT low) {  // and what rounding it lost
    precise FLOAT x0 = vk_shortened(x), x1 = x - x0, y0 = vk_shortened(y), y1 = y - y0;
    precise FLOAT product = x * y;
    precise FLOAT lost = ((x0 * y0 - product) + x0 * y1 + x1 * y0) + x1 * y1;
    low = lost;
    return product;
}""",
    # -- exponentials and logarithms ---------------------------------------------------------------
    "vk_scaled": """
FLOAT vk_scaled(FLOAT x, int scale) {  // x * 2**scale, rounded once
    int part = scale / 2, rest = scale - part;
    precise FLOAT first = x * BITS_TO_FLOAT(BITS(part + EXPONENTS / 2) << MANTISSA);
    return first * BITS_TO_FLOAT(BITS(rest + EXPONENTS / 2) << MANTISSA);
}""",
    "vk_exp_tail": """
FLOAT vk_exp_tail(FLOAT r, FLOAT low) {  // exp(r + low) - 1 - r, where |r| is at most log(2) / 2
    precise FLOAT tail = r * r * SERIES(EXP, r) + (low + low * r);
    return tail;
}""",
    "vk_exp_rest": """
FLOAT vk_exp_rest(FLOAT x, out int scale, out FLOAT low) {  // x - scale * log(2), and what is lost
    precise FLOAT part = x * LOG2_E, whole = vk_near(part), high = x - whole * LN2_HIGH;
    precise FLOAT less = whole * LN2_LOW, rest = high - less, lost = (high - rest) - less;
    scale = int(whole);
    low = lost;
    return rest;
}""",
    "vk_exp_sum": """
FLOAT vk_exp_sum(FLOAT x, FLOAT low, FLOAT factor) {  // exp(x + low) * factor, which is 1 or 0.5
    if (vk_isnan(x)) return x;
    if (x > EXP_MAX + FLOAT(1)) return vk_inf(x);
    if (x < EXP_MIN - FLOAT(1)) return FLOAT(0);
    int scale;
    FLOAT lost;
    precise FLOAT high = vk_exp_rest(x, scale, lost), more = lost + low, rest = high + more;
    precise FLOAT tail = vk_exp_tail(rest, more - (rest - high)), result = FLOAT(1) + (rest + tail);
    return vk_scaled(result * factor, scale);
}""",
    "vk_exp": "FLOAT vk_exp(FLOAT x) { return vk_exp_sum(x, FLOAT(0), FLOAT(1)); }",
    "vk_exp2": """
FLOAT vk_exp2(FLOAT x) {
    if (vk_isnan(x)) return x;
    if (x >= FLOAT(EXPONENTS / 2 + 1)) return vk_inf(x);
    if (x < FLOAT(-EXPONENTS / 2 - MANTISSA - 2)) return FLOAT(0);
    precise FLOAT whole = vk_near(x), rest = (x - whole) * LN2;
    precise FLOAT result = FLOAT(1) + (rest + vk_exp_tail(rest, FLOAT(0)));
    return vk_scaled(result, int(whole));
}""",
    "vk_expm1_part": """
FLOAT vk_expm1_part(FLOAT x, FLOAT factor, out FLOAT low) {
    // (exp(x) - 1) * factor, which is 1 or 0.25, and what rounding it lost
    int scale;
    FLOAT less;
    precise FLOAT rest = vk_exp_rest(x, scale, less), tail = vk_exp_tail(rest, less);
    precise FLOAT unit = vk_scaled(factor, scale), whole = unit - factor, part = rest * unit;
    precise FLOAT sum = whole + part, more = (part - (sum - whole)) + tail * unit;
    precise FLOAT result = sum + more, lost = more - (result - sum);
    low = lost;
    return result;
}""",
    "vk_expm1": """
FLOAT vk_expm1(FLOAT x) {
    if (vk_isnan(x) || vk_abs(x) < HALF_ULP) return x;
    if (x > FLOAT(MANTISSA)) return vk_exp(x);
    FLOAT low;
    return x < FLOAT(-2 * MANTISSA) ? FLOAT(-1) : vk_expm1_part(x, FLOAT(1), low);
}""",
    "vk_log_parts": """
FLOAT vk_log_parts(FLOAT x, out FLOAT scale) {  // x is 2**scale * (1 + f), and the result is f
    int exponent;
    BITS fraction = vk_normal(FLOAT_TO_BITS(x), exponent);
    precise FLOAT m = BITS_TO_FLOAT(fraction | BITS(EXPONENTS / 2) << MANTISSA);
    bool is_large = m > 1.4142135;
    scale = FLOAT(exponent - EXPONENTS / 2 + (is_large ? 1 : 0));
    if (is_large) m = m * 0.5;
    return m - FLOAT(1);
}""",
    "vk_log_tail": """
FLOAT vk_log_tail(FLOAT f) {  // f - log(1 + f)
    precise FLOAT square = f * f, tail = square * 0.5 - square * f * SERIES(LOG, f);
    return tail;
}""",
    "vk_log_special": """
bool vk_log_special(FLOAT x, out FLOAT result) {  // whether x is 0, negative, infinity or NaN
    result = !vk_true(x) ? vk_negative(vk_inf(x)) : vk_isnan(x) || !vk_signbit(x) ? x : vk_nan(x);
    return !vk_true(x) || !vk_isfinite(x) || vk_signbit(x);
}""",
    "vk_log_whole": """
FLOAT vk_log_whole(FLOAT x, FLOAT more, out FLOAT low) {
    // log(x) + more is the result + low, for finite x above 0
    FLOAT scale;
    precise FLOAT f = vk_log_parts(x, scale), high = scale * LN2_HIGH, sum = high + f;
    precise FLOAT rest = scale * LN2_LOW - vk_log_tail(f) + more;
    precise FLOAT lost = scale != FLOAT(0) ? f - (sum - high) : FLOAT(0);
    rest = rest + lost;
    low = rest;
    return sum;
}""",
    "vk_log_sum": """
FLOAT vk_log_sum(FLOAT x, FLOAT more) {  // log(x) + more
    FLOAT special, low;
    if (vk_log_special(x, special)) return special;
    precise FLOAT high = vk_log_whole(x, more, low);
    return high + low;
}""",
    "vk_log": "FLOAT vk_log(FLOAT x) { return vk_log_sum(x, FLOAT(0)); }",
    "vk_log_base": """
FLOAT vk_log_base(FLOAT x, FLOAT factor, FLOAT factor_low, FLOAT unit, FLOAT unit_low) {
    // log(x) * (factor + factor_low), where the logarithm of 2 is unit + unit_low
    FLOAT special, scale, lost;
    if (vk_log_special(x, special)) return special;
    precise FLOAT f = vk_log_parts(x, scale), tail = vk_log_tail(f);
    precise FLOAT log_ = f - tail, log_low = (f - log_) - tail;
    precise FLOAT part = vk_product(log_, factor, lost), high = scale * unit, sum = high + part;
    precise FLOAT low = lost + (log_ * factor_low + log_low * factor) + scale * unit_low;
    if (scale != FLOAT(0)) low = low + (part - (sum - high));
    return sum + low;
}""",
    "vk_log2": """
FLOAT vk_log2(FLOAT x) { return vk_log_base(x, LOG2_E, LOG2_E_LOW, FLOAT(1), FLOAT(0)); }""",
    "vk_log10": """
FLOAT vk_log10(FLOAT x) {
    return vk_log_base(x, LOG10_E, LOG10_E_LOW, LOG10_2_HIGH, LOG10_2_LOW);
}""",
    "vk_log1p_sum": """
FLOAT vk_log1p_sum(FLOAT x, FLOAT low, bool is_huge) {  // log(1 + x + low), or log(2 * x)
    if (vk_isnan(x) || vk_abs(x) < HALF_ULP || (vk_isinf(x) && !vk_signbit(x))) return x;
    precise FLOAT u = is_huge ? x : x + FLOAT(1);
    precise FLOAT lost = x < FLOAT(1) ? x - (u - FLOAT(1)) : FLOAT(1) - (u - x);
    lost = (lost + low) * vk_inverse(u);
    if (!(u > FLOAT(0)) || u > ONE_BY_HALF_ULP) lost = FLOAT(0);
    return vk_log_sum(u, is_huge ? LN2 : lost);
}""",
    "vk_log1p": "FLOAT vk_log1p(FLOAT x) { return vk_log1p_sum(x, FLOAT(0), false); }",
    "vk_logaddexp": """
FLOAT vk_logaddexp(FLOAT x, FLOAT y) {
    if (x == y) return x + LN2;
    precise FLOAT apart = x - y;
    if (vk_isnan(apart)) return apart;
    precise FLOAT most = x > y ? x : y, low;
    if (vk_isinf(apart)) return vk_true(most) ? most : FLOAT(0);  // drivers drop additions of 0
    precise FLOAT least = x > y ? y : x, less = least - most;
    precise FLOAT back = less + most, lost = (least - back) + ((back - less) - most);
    precise FLOAT e = vk_exp_sum(less, lost, FLOAT(1)), u = FLOAT(1) + e;
    precise FLOAT more = (e - (u - FLOAT(1))) * vk_inverse(u);
    precise FLOAT high = vk_log_whole(u, more, low), sum = most + high;
    lost = vk_abs(most) > high ? high - (sum - most) : most - (sum - high);
    return sum + (lost + low);
}""",
    "vk_log_pair": """
FLOAT vk_log_pair(FLOAT x, out FLOAT low) {  // log(x) for x above 0, and what is lost
    FLOAT scale, lost;
    precise FLOAT f = vk_log_parts(x, scale), d = f + FLOAT(2), d_low = f - (d - FLOAT(2));
    // log(1 + f) is s * (2 + t * (2 / 3 + t * (2 / 5 + ...))), where s = f / (f + 2), t = s * s
    FLOAT s_low;
    precise FLOAT s = vk_quotient(f, FLOAT(0), d, d_low, s_low);
    precise FLOAT t = vk_product(s, s, lost), t_low = lost + s * s_low * FLOAT(2);
    precise FLOAT a = t * SERIES(POW, t), w = a + TWO_THIRDS;
    precise FLOAT w_low = (a - (w - TWO_THIRDS)) + TWO_THIRDS_LOW;
    precise FLOAT v = vk_product(t, w, lost), v_low = lost + t * w_low + t_low * w;
    precise FLOAT u = vk_product(s, v, lost), u_low = lost + s * v_low + s_low * v, two = s + s;
    precise FLOAT part = two + u, part_low = (u - (part - two)) + (u_low + (s_low + s_low));
    precise FLOAT high = scale * LN2_HIGH, sum = high + part;
    precise FLOAT rest = (part - (sum - high)) + (part_low + scale * LN2_LOW), result = sum + rest;
    rest = rest - (result - sum);
    low = rest;
    return result;
}""",
    "vk_pow": """
FLOAT vk_pow(FLOAT x, FLOAT y) {
    if (!vk_true(y) || x == FLOAT(1)) return FLOAT(1);
    if (vk_isnan(x) || vk_isnan(y)) return vk_nan(x);
    if (y == FLOAT(1)) return x;
    if (y == FLOAT(2)) return x * x;
    precise FLOAT a = vk_abs(x), half_ = y * 0.5;
    bool is_whole = vk_trunc(y) == y, is_odd = is_whole && vk_trunc(half_) != half_;
    precise FLOAT result;
    if (!vk_true(x) || vk_isinf(x)) result = vk_true(x) == !vk_signbit(y) ? vk_inf(x) : FLOAT(0);
    else if (vk_isinf(y))
        return a == FLOAT(1) ? a : a > FLOAT(1) == !vk_signbit(y) ? vk_inf(x) : FLOAT(0);
    else if (vk_signbit(x) && !is_whole) return vk_nan(x);
    else {
        FLOAT low, lost;
        precise FLOAT log_ = vk_log_pair(a, low), product = vk_product(log_, y, lost);
        if (product > EXP_MAX + FLOAT(1)) result = vk_inf(x);
        else if (product < EXP_MIN - FLOAT(1)) result = FLOAT(0);
        else result = vk_exp_sum(product, low * y + lost, FLOAT(1));
    }
    return is_odd && vk_signbit(x) ? vk_negative(result) : result;
}""",
    # -- trigonometric and hyperbolic functions ----------------------------------------------------
    "vk_sin_part": """
FLOAT vk_sin_part(FLOAT x, FLOAT low, out FLOAT lost) {  // sin(x + low), for |x| up to pi / 4
    precise FLOAT t = x * x, tail = x * t * SERIES(SIN, t) + (low - t * 0.5 * low);
    precise FLOAT sum = x + tail, rest = tail - (sum - x);
    lost = rest;
    return sum;
}""",
    "vk_cos_part": """
FLOAT vk_cos_part(FLOAT x, FLOAT low, out FLOAT lost) {  // cos(x + low), for |x| up to pi / 4
    precise FLOAT t = x * x, half_ = t * 0.5, w = FLOAT(1) - half_;
    precise FLOAT tail = ((FLOAT(1) - w) - half_) + (t * t * SERIES(COS, t) - x * low);
    precise FLOAT sum = w + tail, rest = tail - (sum - w);
    lost = rest;
    return sum;
}""",
    "vk_quadrant": """
int vk_quadrant(FLOAT x, out FLOAT rest, out FLOAT low) {
    // x is rest + low + quadrant * pi / 2, modulo 2 pi
    if (vk_abs(x) > FLOAT(400)) return vk_far_quadrant(x, rest, low);
    // The first two products are exact: the multiple of pi / 2 has 8 bits.
    precise FLOAT part = x * TWO_BY_PI, whole = vk_near(part), first = x - whole * HALF_PI_1;
    precise FLOAT less = whole * HALF_PI_2, second = first - less;
    precise FLOAT lost = ((first - second) - less) - whole * HALF_PI_3, sum = second + lost;
    rest = sum;
    lost = lost - (sum - second);
    low = lost;
    return int(whole) & 3;
}""",
    "vk_wide_product": """
BITS vk_wide_product(BITS x, BITS y, out BITS low) {
    WIDE_PRODUCT
}""",
    "vk_far_quadrant": """
int vk_far_quadrant(FLOAT x, out FLOAT rest, out FLOAT low) {  // vk_quadrant by integers
    // The integer m * 2**e times the bits of 2 / pi with values from 4 / 2**e down.
    BITS bits = vk_bits(x), m = (bits & ((BITS(1) << MANTISSA) - BITS(1))) | BITS(1) << MANTISSA;
    int at = int(bits >> MANTISSA) - EXPONENTS / 2 - MANTISSA - 2 + SIGN + 1;
    TWO_BY_PI_WORDS
    BITS c, d, first, next;
    c = vk_wide_product(m, w1, d);
    first = m * w0 + c;
    next = d + vk_wide_product(m, w2, c);
    if (next < d) ++first;
    int quadrant = int(first >> (SIGN - 1));
    bool is_above = ((first >> (SIGN - 2)) & BITS(1)) != BITS(0);  // the next one is nearer
    if (is_above) { first = ~first; next = ~next; }
    first = first << 2 | next >> (SIGN - 1);
    next <<= 2;
    // A float with half of the digits, so that its product is exact, and two with all digits
    BITS middle = first << HALF | next >> (SIGN + 1 - HALF), last = next << (3 * HALF - SIGN - 1);
    precise FLOAT a = FLOAT(first >> (SIGN + 1 - HALF)) * PART_1;
    precise FLOAT b = FLOAT(middle >> (SIGN + 1 - 2 * HALF)) * PART_2;
    precise FLOAT e = FLOAT(last >> (SIGN + 1 - 2 * HALF)) * PART_3;
    FLOAT part;
    precise FLOAT high = a * HALF_PI_SHORT, more = vk_product(b, HALF_PI, part), sum = high + more;
    precise FLOAT lost = part + (a * HALF_PI_MORE + (b * HALF_PI_LOW + e * HALF_PI));
    more = (more - (sum - high)) + lost;
    high = sum + more;
    lost = more - (high - sum);
    if (is_above) ++quadrant;
    bool turned = is_above != vk_signbit(x);
    rest = turned ? -high : high;
    low = turned ? -lost : lost;
    return (vk_signbit(x) ? -quadrant : quadrant) & 3;
}""",
    "vk_sin": """
FLOAT vk_sin(FLOAT x) {
    if (!vk_isfinite(x)) return vk_nan(x);
    if (vk_abs(x) < TINY) return x;  // -0, too
    FLOAT rest, low, lost;
    int quadrant = vk_quadrant(x, rest, low);
    FLOAT s = vk_sin_part(rest, low, lost), c = vk_cos_part(rest, low, lost);
    FLOAT result = (quadrant & 1) == 0 ? s : c;
    return quadrant < 2 ? result : vk_negative(result);
}""",
    "vk_cos": """
FLOAT vk_cos(FLOAT x) {
    if (!vk_isfinite(x)) return vk_nan(x);
    FLOAT rest, low, lost;
    int quadrant = vk_quadrant(x, rest, low);
    FLOAT s = vk_sin_part(rest, low, lost), c = vk_cos_part(rest, low, lost);
    FLOAT result = (quadrant & 1) == 0 ? c : s;
    return quadrant == 0 || quadrant == 3 ? result : vk_negative(result);
}""",
    "vk_tan": """
FLOAT vk_tan(FLOAT x) {
    if (!vk_isfinite(x)) return vk_nan(x);
    if (vk_abs(x) < TINY) return x;
    FLOAT rest, low, lost, s_low, c_low;
    int quadrant = vk_quadrant(x, rest, low);
    precise FLOAT s = vk_sin_part(rest, low, s_low), c = vk_cos_part(rest, low, c_low);
    bool turned = (quadrant & 1) != 0;
    precise FLOAT result = vk_quotient(turned ? vk_negative(c) : s, turned ? -c_low : s_low,
        turned ? s : c, turned ? s_low : c_low, lost) + lost;
    return result;
}""",
    "vk_atan_part": """
FLOAT vk_atan_part(FLOAT y, FLOAT x, out FLOAT low) {  // atan(y / x), where y is from 0 to x
    // Scaled so that x is from 2 to 4 and nothing overflows
    precise FLOAT scale = BITS_TO_FLOAT((BITS(EXPONENTS) - (vk_bits(x) >> MANTISSA)) << MANTISSA);
    precise FLOAT b = x * scale, a = y * scale;
    int part = a < b * 0.25 ? 0 : a < b * 0.71875 ? 1 : 2;
    FLOAT base = part == 0 ? FLOAT(0) : part == 1 ? ATAN_HALF : PI_4, u_low;
    FLOAT base_low = part == 0 ? FLOAT(0) : part == 1 ? ATAN_HALF_LOW : PI_4_LOW;
    // atan(base) + atan(u), where u is (a - c * b) / (b + c * a)
    precise FLOAT c = FLOAT(part) * 0.5, over = a - c * b, ca = c * a, under = b + ca;
    precise FLOAT u = vk_quotient(over, FLOAT(0), under, ca - (under - b), u_low), t = u * u;
    precise FLOAT sum = base + u, rest = u - (sum - base);
    rest = rest + (u * t * SERIES(ATAN, t) + (u_low + base_low));
    low = rest;
    return sum;
}""",
    "vk_atan": """
FLOAT vk_atan(FLOAT x) {
    precise FLOAT a = vk_abs(x), result, low, from;
    if (vk_isnan(x) || a < TINY) return x;
    bool is_steep = a > FLOAT(1);
    result = vk_atan_part(is_steep ? FLOAT(1) : a, is_steep ? a : FLOAT(1), low);
    if (is_steep) {
        from = HALF_PI - result;
        low = ((HALF_PI - from) - result) + (HALF_PI_LOW - low);
        result = from;
    }
    return vk_copysign(vk_isinf(x) ? HALF_PI : result + low, x);
}""",
    "vk_atan2": """
FLOAT vk_atan2(FLOAT y, FLOAT x) {
    if (vk_isnan(x) || vk_isnan(y)) return vk_nan(x);
    precise FLOAT a = vk_abs(x), b = vk_abs(y), result, low = FLOAT(0), from;
    bool is_steep = vk_bits(y) > vk_bits(x);
    precise FLOAT most = is_steep ? b : a, least = is_steep ? a : b;
    if (vk_bits(most) >> MANTISSA == BITS(0)) {  // below the normal numbers: multiples of the least
        least = FLOAT(vk_bits(least));
        most = FLOAT(vk_bits(most));
    }
    if (!vk_true(most)) result = FLOAT(0);
    else if (vk_bits(x) == vk_bits(y)) { result = PI_4; low = PI_4_LOW; }
    else if (vk_isinf(most)) result = FLOAT(0);
    else if (least < most * TINY) result = vk_div(least, most);
    else result = vk_atan_part(least, most, low);
    if (is_steep) {
        from = HALF_PI - result;
        low = ((HALF_PI - from) - result) + (HALF_PI_LOW - low);
        result = from;
    }
    if (vk_signbit(x)) {
        from = PI - result;
        low = ((PI - from) - result) + (PI_LOW - low);
        result = from;
    }
    return vk_copysign(result + low, y);
}""",
    "vk_asin_part": """
FLOAT vk_asin_part(FLOAT a, out FLOAT tail) {
    // asin(a) = result + tail up to 0.5, and pi / 2 - 2 * (result + tail) from there to 1
    FLOAT low;
    bool is_large = a > 0.5;
    precise FLOAT t = is_large ? (FLOAT(1) - a) * 0.5 : a * a, root = vk_root(t, FLOAT(0), low);
    precise FLOAT s = is_large ? root : a, rest = s * t * SERIES(ASIN, t);
    if (is_large) rest = rest + low;
    tail = rest;
    return s;
}""",
    "vk_asin": """
FLOAT vk_asin(FLOAT x) {
    if (vk_isnan(x) || vk_abs(x) < TINY) return x;
    if (vk_abs(x) > FLOAT(1)) return vk_nan(x);
    FLOAT tail;
    precise FLOAT s = vk_asin_part(vk_abs(x), tail), two = s + s, high = HALF_PI - two, result;
    if (vk_abs(x) > 0.5) result = high + (((HALF_PI - high) - two) + (HALF_PI_LOW - (tail + tail)));
    else result = s + tail;
    return vk_copysign(result, x);
}""",
    "vk_acos": """
FLOAT vk_acos(FLOAT x) {
    if (vk_isnan(x)) return x;
    if (vk_abs(x) > FLOAT(1)) return vk_nan(x);
    FLOAT tail;
    precise FLOAT s = vk_asin_part(vk_abs(x), tail), two = s + s, from, from_low, part, high;
    bool is_large = vk_abs(x) > 0.5;
    if (is_large && !vk_signbit(x)) return two + (tail + tail);
    from = is_large ? PI : HALF_PI;
    from_low = is_large ? PI_LOW : HALF_PI_LOW;
    part = is_large ? two : vk_copysign(s, x);
    tail = is_large ? tail + tail : vk_signbit(x) ? vk_negative(tail) : tail;
    high = from - part;
    return high + (((from - high) - part) + (from_low - tail));
}""",
    "vk_sinh": """
FLOAT vk_sinh(FLOAT x) {
    if (vk_isnan(x) || vk_abs(x) < TINY) return x;
    precise FLOAT a = vk_abs(x);
    if (a > EXP_MAX + FLOAT(1)) return vk_copysign(vk_inf(x), x);
    // 2 * (h + h / (4 * h + 1)), where h is (exp(a) - 1) / 4
    FLOAT low, g_low;
    precise FLOAT h = vk_expm1_part(a, 0.25, low), e = h * FLOAT(4), f = e + FLOAT(1);
    precise FLOAT f_low = e < FLOAT(1) ? e - (f - FLOAT(1)) : FLOAT(1) - (f - e);
    precise FLOAT g = vk_quotient(h, low, f, f_low + low * FLOAT(4), g_low);
    if (a > FLOAT(MANTISSA)) { g = 0.25; g_low = FLOAT(0); }
    precise FLOAT sum = h + g, result = (sum + ((g - (sum - h)) + (g_low + low))) * FLOAT(2);
    return vk_copysign(result, x);
}""",
    "vk_cosh": """
FLOAT vk_cosh(FLOAT x) {
    if (!vk_isfinite(x)) return vk_abs(x);
    precise FLOAT a = vk_abs(x), h = vk_exp_sum(a, FLOAT(0), 0.5);
    precise FLOAT less = 0.25 * vk_inverse(h), result = h + less;
    return a > FLOAT(MANTISSA) ? h : result;
}""",
    "vk_tanh": """
FLOAT vk_tanh(FLOAT x) {
    if (vk_isnan(x) || vk_abs(x) < TINY) return x;
    precise FLOAT a = vk_abs(x);
    if (a > FLOAT(MANTISSA)) return vk_copysign(FLOAT(1), x);
    FLOAT low, lost;
    precise FLOAT e = vk_expm1_part(a + a, FLOAT(1), low), f = e + FLOAT(2);
    precise FLOAT f_low = e < FLOAT(2) ? e - (f - FLOAT(2)) : FLOAT(2) - (f - e);
    precise FLOAT result = vk_quotient(e, low, f, f_low + low, lost) + lost;
    return vk_copysign(result, x);
}""",
    "vk_asinh": """
FLOAT vk_asinh(FLOAT x) {
    if (!vk_isfinite(x) || vk_abs(x) < TINY) return x;
    FLOAT low;
    precise FLOAT a = vk_abs(x), square = a * a, root = vk_root(square + FLOAT(1), FLOAT(0), low);
    precise FLOAT more = square * vk_inverse(FLOAT(1) + root), sum = a + more;
    bool is_huge = a > FLOAT(1 << 14) * FLOAT(1 << (MANTISSA / 4));
    low = more - (sum - a);
    return vk_copysign(vk_log1p_sum(is_huge ? a : sum, is_huge ? FLOAT(0) : low, is_huge), x);
}""",
    "vk_acosh": """
FLOAT vk_acosh(FLOAT x) {
    if (vk_isnan(x) || (vk_isinf(x) && !vk_signbit(x))) return x;
    if (x < FLOAT(1)) return vk_nan(x);
    if (x == FLOAT(1)) return FLOAT(0);
    FLOAT lost, root_low;
    precise FLOAT t = x - FLOAT(1), two = t + t, square = vk_product(t, t, lost);
    precise FLOAT sum = two + square, sum_low = (square - (sum - two)) + lost;
    precise FLOAT root = vk_root(sum, sum_low, root_low), w = t + root;
    precise FLOAT low = (t - (w - root)) + root_low;
    bool is_huge = x > FLOAT(1 << 14) * FLOAT(1 << (MANTISSA / 4));
    return vk_log1p_sum(is_huge ? x : w, low, is_huge);
}""",
    "vk_atanh": """
FLOAT vk_atanh(FLOAT x) {
    if (vk_isnan(x) || vk_abs(x) < TINY) return x;
    precise FLOAT a = vk_abs(x);
    if (a > FLOAT(1)) return vk_nan(x);
    // Not a constant, as in vk_nan; the mantissa of 1 has no bits.
    if (a == FLOAT(1)) return BITS_TO_FLOAT(FLOAT_TO_BITS(x) | BITS(EXPONENTS) << MANTISSA);
    FLOAT low;
    precise FLOAT less = FLOAT(1) - a, less_low = (FLOAT(1) - less) - a;
    precise FLOAT part = vk_quotient(a + a, FLOAT(0), less, less_low, low);
    return vk_copysign(0.5 * vk_log1p_sum(part, low, false), x);
}""",
    "vk_root_of_squares": """
FLOAT vk_root_of_squares(FLOAT x, FLOAT y, out FLOAT low) {
    // sqrt(x * x + y * y), where x is at least y and both near 1, and what rounding it lost
    FLOAT a_low, b_low;
    precise FLOAT a = vk_product(x, x, a_low), b = vk_product(y, y, b_low), sum = a + b;
    precise FLOAT sum_low = (b - (sum - a)) + (a_low + b_low);
    return vk_root(sum, sum_low, low);
}""",
    "vk_hypot": """
FLOAT vk_hypot(FLOAT x, FLOAT y) {
    if (vk_isinf(x) || vk_isinf(y)) return vk_inf(x);
    precise FLOAT a = vk_abs(x), b = vk_abs(y), most = a > b ? a : b, least = a > b ? b : a;
    if (vk_isnan(x) || vk_isnan(y)) return vk_nan(x);
    if (!vk_true(most) || least < most * HALF_ULP) return most;
    int exponent = EXPONENTS / 2 - int(vk_bits(most) >> MANTISSA);
    precise FLOAT m = vk_scaled(most, exponent), n = vk_scaled(least, exponent);
    FLOAT low;
    precise FLOAT root = vk_root_of_squares(m, n, low);
    return vk_scaled(root + low, -exponent);
}""",
}  # fmt: skip


_LN2, _LN10 = (
    Fraction("0.69314718055994530941723212145817656807550013436025525412"),
    Fraction("2.30258509299404568401799145468436420760110148862877297603"),
)

_PI_BITS = 1300


def _arctan(n: int) -> Fraction:
    """Return the angle whose tangent is 1 / n."""
    power, total, k = (1 << _PI_BITS) // n, 0, 1
    while power:
        total += power // k if k % 4 == 1 else -(power // k)
        power, k = power // (n * n), k + 2
    return Fraction(total, 1 << _PI_BITS)


@lru_cache(1)
def _pi() -> Fraction:
    """Return pi, with enough bits for the largest floats. Source: Machin's formula."""
    return 4 * (4 * _arctan(5) - _arctan(239))


@lru_cache(32)
def _polynomial(name: str, is_double: bool) -> list[str]:
    """Return the coefficients of a polynomial that approximates a series in its interval.

    The series is shortened: its last terms are replaced, one after the other, by multiples of
    Chebyshev polynomials.
    """
    term, first, last, *counts = _SERIES[name]
    low, high = Fraction(first), Fraction(last)
    # Each one is 2 * (x - middle) / half times the last one, less the one before.
    slope, constant = 2 / (high - low), -(high + low) / (high - low)
    chebyshev = [[Fraction(1)], [constant, slope]]
    terms = [term(k) for k in range(_EXACT_TERMS)]
    while len(chebyshev) < len(terms):
        before, own = chebyshev[-2:]
        moved = [Fraction(0), *own]
        pairs = zip_longest(moved, own, before, fillvalue=Fraction(0))
        chebyshev.append([2 * (slope * a + constant * b) - c for a, b, c in pairs])
    while len(terms) > counts[is_double]:
        own = chebyshev[len(terms) - 1]
        factor = terms[-1] / own[-1]
        terms = [a - factor * b for a, b in zip(terms[:-1], own, strict=False)]
    real = np.float64 if is_double else np.float32
    return [_literal(float(real(float(each)))) for each in terms]


def _words_of_two_by_pi(width: int) -> str:
    """Return the statements that set ``w0`` to ``w2`` to the bits of 2 / pi from a bit on.

    The first bit is ``at`` - ``width``. Words are selected by conditions, so that no array in
    memory is needed.
    """
    suffix, last = ("u", 4) if width == 32 else ("ul", 16)  # the last of the first words
    count = last + 4
    digits = int(2 / _pi() * 2 ** (width * (count - 1)))
    table = [digits >> width * (count - 1 - k) & ((1 << width) - 1) for k in range(count)]
    names = [f"{word:#x}{suffix}" for word in table]
    lines: list[str] = []
    step = 1 << (last.bit_length() - 1)
    while step:
        needed = 4 + step - 1
        chosen = [
            f"w{k} = is_far ? {names[k + step]} : {names[k]}" if k + step < len(names) else
            f"w{k} = {names[k]}"
            for k in range(needed)
        ]  # fmt: skip
        kind = "BITS " if not lines else ""
        lines.append(f"{'bool ' if not lines else ''}is_far = (at & {step * width}) != 0;")
        lines += [f"{kind}{text};" for text in chosen]
        names, step = [f"w{k}" for k in range(needed)], step >> 1
    lines += [f"at &= {width - 1};"]
    lines += [f"w{k} = w{k} << at | w{k + 1} >> 1 >> ({width - 1} - at);" for k in range(3)]
    return "\n    ".join(lines)


_WIDE_PRODUCTS = (
    """BITS high;
    umulExtended(x, y, high, low);
    return high;""",
    """BITS mask = BITS(0xffffffffu), a = x & mask, b = x >> 32, c = y & mask, d = y >> 32;
    BITS ac = a * c, ad = a * d + (ac >> 32), bc = b * c + (ad & mask);
    low = bc << 32 | (ac & mask);
    return b * d + (ad >> 32) + (bc >> 32);""",
)


def _literal(value: float) -> str:
    """Return a number with a decimal point, to which the suffix of a type can be appended."""
    text = repr(float(value))
    return text if "." in text else text.replace("e", ".0e")


@lru_cache(2)
def _constants(name: str) -> dict[str, str]:
    """Return the constants of the texts for a floating-point type, by their names."""
    real, pi = np.dtype(name).type, _pi()
    is_double = name == "float64"
    short = 1 << (32 if is_double else 13)  # so that a product with an exponent is exact
    values: dict[str, float] = {}
    for text, number in (("LN2", _LN2), ("LOG10_2", _LN2 / _LN10)):
        values[f"{text}_HIGH"] = high = round(number * short) / short
        values[f"{text}_LOW"] = float(number - Fraction(high))
    for text, number in (
        ("HALF_PI", pi / 2),
        ("PI", pi),
        ("TWO_THIRDS", Fraction(2, 3)),
        ("PI_4", pi / 4),
        ("ATAN_HALF", _arctan(2)),
        ("LOG2_E", 1 / _LN2),
        ("LOG10_E", 1 / _LN10),
    ):
        values[text] = high = float(real(float(number)))
        values[f"{text}_LOW"] = float(number - Fraction(high))
    half, few = (26, 44) if is_double else (12, 16)
    values["HALF_PI_SHORT"] = high = round(pi / 2 * 2**half) / 2**half
    values["HALF_PI_MORE"] = float(pi / 2 - Fraction(high))
    rest = pi / 2
    for k in (1, 2):  # of few bits, for exact products with small integers
        unit = 2 ** (few * k - 1)
        values[f"HALF_PI_{k}"] = high = round(rest * unit) / unit
        rest -= Fraction(high)
    values["HALF_PI_3"] = float(rest)
    for k in (1, 2, 3):
        values[f"PART_{k}"] = 2.0 ** (half - 2 * half * k)
    values["ROUNDER"] = 1.5 * 2.0 ** (52 if is_double else 23)
    exact = {"LN2": _LN2, "TWO_BY_PI": 2 / pi, "PI_180": pi / 180, "ONE_BY_PI_180": 180 / pi}
    values |= {text: float(number) for text, number in exact.items()}
    values["EXP_MAX"], values["EXP_MIN"] = (709.782712893384, -745.2) if is_double else (
        88.72284, -104.0)  # fmt: skip
    values["HALF_ULP"] = 2.0**-55 if is_double else 2.0**-26
    values["ONE_BY_HALF_ULP"] = 1 / values["HALF_ULP"]
    values["TINY"] = 1e-9 if is_double else 1e-4  # whose square is below the last bit
    constants = {text: f"FLOAT({_literal(real(value))})" for text, value in values.items()}
    return constants | {
        "HALF": f"{half}",
        "WIDE_PRODUCT": _WIDE_PRODUCTS[is_double],
        "TWO_BY_PI_WORDS": _words_of_two_by_pi(64 if is_double else 32),
        # These minus the bits of x, or minus half of them, estimate 1 / x and 1 / sqrt(x).
        "INVERSE_BITS": "0x7fde623822fc16e6ul" if is_double else "0x7ef311c7u",
        "ROOT_BITS": "0x5fe6eb50c7b537a9ul" if is_double else "0x5f3759dfu",
    }


def _of_floats(name: str, dtype: np.dtype[Any]) -> str:
    constants = _constants(dtype.name)
    is_double = dtype == np.float64
    suffix = "lf" * is_double

    def series(match: re.Match[str]) -> str:
        *numbers, text = _polynomial(match[1], is_double)
        for each in numbers[::-1]:
            text = f"({text} * {match[2]} + {each})"
        return text

    def repeated(match: re.Match[str]) -> str:
        return "\n    ".join([match[2].strip()] * _REPEATS[match[1]][is_double])

    text = _CALL_OF_SERIES.sub(series, _REPEATED.sub(repeated, _FLOATS[name]))
    if text.lstrip().startswith("FLOAT"):  # so that no device contracts or reorders operations
        text = _RETURNED.sub(r"{ precise FLOAT returned = \1; return returned; }", text)
    text = _CONSTANT.sub(lambda match: constants.get(match[0], match[0]), text)
    return _NUMBER.sub(lambda match: match[0] + suffix, with_words(text, dtype))


def _of_integers(name: str, dtype: np.dtype[Any]) -> str:
    type_, width = GLSL_TYPES[dtype.name], 8 * dtype.itemsize
    words = {"T": type_, "U": GLSL_TYPES[f"uint{width}"], "WIDTH": f"{width}"}
    return _CONSTANT.sub(lambda match: words.get(match[0], match[0]), _INTEGERS[name])


@lru_cache(256)
def functions(text: str, dtype: np.dtype[Any]) -> str:
    """The functions that GLSL calls, for numbers of a type of 32 or 64 bits, and those they call.

    >>> "vk_signbit" in functions("vk_floor(x)", np.dtype("float32"))
    True
    """
    texts: dict[str, str] = {}

    def add(text: str) -> None:
        for name in _CALL.findall(text):
            if name not in texts and name in (_FLOATS if dtype.kind == "f" else _INTEGERS):
                own = (_of_floats if dtype.kind == "f" else _of_integers)(name, dtype)
                texts[name] = ""  # its text contains its own name
                add(own)
                del texts[name]
                texts[name] = guarded(f"{name}_{dtype.name}", own.strip() + "\n")

    add(text)
    return "".join(texts.values())
