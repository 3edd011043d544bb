"""GLSL functions of numbers for the table of arithmetic.

Each has a text for floats, with the words of ``arithmetic.with_words``, or for integers, with ``T``
and ``U`` for the type and for the unsigned type of its size. Functions of floats use only
additions, subtractions, multiplications, divisions, square roots, and the bits of numbers.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from math import factorial
from typing import Any

import numpy as np

from vkops.elementwise.formats import GLSL_TYPES, guarded
from vkops.kernels.arithmetic import with_words

_CALL = re.compile(r"\b(vk_\w+)\(")
_NUMBER = re.compile(r"(?<![\w.])\d+\.\d+(?:e[+-]?\d+)?")
_CALL_OF_SERIES = re.compile(r"SERIES\((\w+), (\w+)\)")
_CONSTANT = re.compile(r"\b[A-Z][A-Z0-9_]*\b")

_SERIES: dict[str, tuple[Callable[[int], Fraction], int, int]] = {
    "EXP": (lambda k: Fraction(1, factorial(k + 2)), 7, 13),
    "LOG": (lambda k: Fraction(2, 2 * k + 3), 5, 12),
    "SIN": (lambda k: Fraction((-1) ** (k + 1), factorial(2 * k + 3)), 5, 9),
    "COS": (lambda k: Fraction((-1) ** k, factorial(2 * k + 4)), 4, 8),
    "ATAN": (lambda k: Fraction((-1) ** (k + 1), 2 * k + 3), 5, 11),
}
"""The coefficients of series by the number of the term, and the terms for both types of floats."""

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
FLOAT vk_nan() { return BITS_TO_FLOAT(BITS(2 * EXPONENTS + 1) << (MANTISSA - 1)); }""",
    "vk_inf": "FLOAT vk_inf() { return BITS_TO_FLOAT(BITS(EXPONENTS) << MANTISSA); }",
    "vk_bits": """
BITS vk_bits(FLOAT x) { return FLOAT_TO_BITS(x) & ((BITS(1) << SIGN) - BITS(1)); }""",
    "vk_signbit": "bool vk_signbit(FLOAT x) { return FLOAT_TO_BITS(x) >> SIGN != BITS(0); }",
    "vk_isnan": "bool vk_isnan(FLOAT x) { return vk_bits(x) > BITS(EXPONENTS) << MANTISSA; }",
    "vk_isinf": "bool vk_isinf(FLOAT x) { return vk_bits(x) == BITS(EXPONENTS) << MANTISSA; }",
    "vk_isfinite": "bool vk_isfinite(FLOAT x) { return vk_bits(x) < BITS(EXPONENTS) << MANTISSA; }",
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
    if (vk_isnan(x) || vk_isnan(y)) return vk_nan();
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
    if (a >= infinity || b > infinity || b == BITS(0)) return vk_nan();
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
    precise FLOAT quotient = x / y, rest = vk_fmod(x, y);
    if (!vk_true(y) || vk_isnan(rest)) return vk_true(y) ? rest : quotient;
    precise FLOAT whole = (x - rest) / y;
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
    "vk_sqrt": """
FLOAT vk_sqrt(FLOAT x) {
    return vk_signbit(x) && vk_true(x) ? vk_nan() : vk_true(x) && vk_isfinite(x) ? sqrt(x) : x;
}""",
    # -- exponentials and logarithms ---------------------------------------------------------------
    "vk_scaled": """
FLOAT vk_scaled(FLOAT x, int scale) {  // x * 2**scale, rounded once
    int part = scale / 2, rest = scale - part;
    precise FLOAT first = x * BITS_TO_FLOAT(BITS(part + EXPONENTS / 2) << MANTISSA);
    return first * BITS_TO_FLOAT(BITS(rest + EXPONENTS / 2) << MANTISSA);
}""",
    "vk_exp_part": """
FLOAT vk_exp_part(FLOAT r) {  // exp(r) - 1, where |r| is at most log(2) / 2
    precise FLOAT tail = r * r * SERIES(EXP, r);
    return r + tail;
}""",
    "vk_exp_rest": """
FLOAT vk_exp_rest(FLOAT x, out int scale) {  // x - scale * log(2)
    precise FLOAT whole = vk_round(x * LOG2_E), rest = x - whole * LN2_HIGH;
    scale = int(whole);
    return rest - whole * LN2_LOW;
}""",
    "vk_exp": """
FLOAT vk_exp(FLOAT x) {
    if (vk_isnan(x)) return x;
    if (x > EXP_MAX) return vk_inf();
    if (x < EXP_MIN) return FLOAT(0);
    int scale;
    precise FLOAT rest = vk_exp_rest(x, scale), result = vk_exp_part(rest) + FLOAT(1);
    return vk_scaled(result, scale);
}""",
    "vk_exp2": """
FLOAT vk_exp2(FLOAT x) {
    if (vk_isnan(x)) return x;
    if (x >= FLOAT(EXPONENTS / 2 + 1)) return vk_inf();
    if (x < FLOAT(-EXPONENTS / 2 - MANTISSA - 2)) return FLOAT(0);
    precise FLOAT whole = vk_round(x), rest = (x - whole) * LN2;
    precise FLOAT result = vk_exp_part(rest) + FLOAT(1);
    return vk_scaled(result, int(whole));
}""",
    "vk_expm1": """
FLOAT vk_expm1(FLOAT x) {
    if (vk_isnan(x) || vk_abs(x) < HALF_ULP) return x;
    if (x > EXP_MAX) return vk_inf();
    if (x < FLOAT(-2 * MANTISSA)) return FLOAT(-1);
    int scale;
    precise FLOAT rest = vk_exp_rest(x, scale), part = vk_exp_part(rest);
    if (scale > MANTISSA + 2) return vk_scaled(part + FLOAT(1), scale);
    precise FLOAT unit = vk_scaled(FLOAT(1), scale), whole = unit - FLOAT(1);
    return whole + part * unit;
}""",
    "vk_log_parts": """
FLOAT vk_log_parts(FLOAT x, out FLOAT scale, out FLOAT tail) {
    // x is 2**scale * (1 + f), and the result is f; log(1 + f) is f - tail.
    BITS bits = FLOAT_TO_BITS(x);
    int exponent = max(int(bits >> MANTISSA), 1);
    for (; bits >> MANTISSA == BITS(0); --exponent) bits <<= 1;  // below the normal numbers
    exponent -= EXPONENTS / 2;
    BITS fraction = bits & ((BITS(1) << MANTISSA) - BITS(1));
    precise FLOAT m = BITS_TO_FLOAT(fraction | BITS(EXPONENTS / 2) << MANTISSA);
    if (m > 1.4142135) { m = m * 0.5; ++exponent; }
    precise FLOAT f = m - FLOAT(1), s = f / (f + FLOAT(2)), t = s * s, square = f * f * 0.5;
    tail = square - s * (square + t * SERIES(LOG, t));
    scale = FLOAT(exponent);
    return f;
}""",
    "vk_log_special": """
bool vk_log_special(FLOAT x, out FLOAT result) {  // whether x is 0, negative, infinity or NaN
    result = !vk_true(x) ? vk_negative(vk_inf()) : vk_isnan(x) || !vk_signbit(x) ? x : vk_nan();
    return !vk_true(x) || !vk_isfinite(x) || vk_signbit(x);
}""",
    "vk_log": """
FLOAT vk_log(FLOAT x) {
    FLOAT special, scale, tail;
    if (vk_log_special(x, special)) return special;
    precise FLOAT f = vk_log_parts(x, scale, tail);
    precise FLOAT low = scale * LN2_LOW - tail, high = scale * LN2_HIGH;
    precise FLOAT sum = high + f, lost = scale != FLOAT(0) ? f - (sum - high) : FLOAT(0);
    return sum + (low + lost);
}""",
    "vk_log2": """
FLOAT vk_log2(FLOAT x) {
    FLOAT special, scale, tail;
    if (vk_log_special(x, special)) return special;
    precise FLOAT f = vk_log_parts(x, scale, tail), part = (f - tail) * LOG2_E;
    return scale + part;
}""",
    "vk_log10": """
FLOAT vk_log10(FLOAT x) {
    FLOAT special, scale, tail;
    if (vk_log_special(x, special)) return special;
    precise FLOAT f = vk_log_parts(x, scale, tail);
    precise FLOAT part = (f - tail) * LOG10_E + scale * LOG10_2_LOW;
    return scale * LOG10_2_HIGH + part;
}""",
    "vk_log1p": """
FLOAT vk_log1p(FLOAT x) {
    if (vk_isnan(x) || vk_abs(x) < HALF_ULP || (vk_isinf(x) && !vk_signbit(x))) return x;
    precise FLOAT u = x + FLOAT(1);
    if (!(u > FLOAT(0))) return vk_log(u);
    precise FLOAT lost = x < FLOAT(1) ? x - (u - FLOAT(1)) : FLOAT(1) - (u - x);
    return vk_log(u) + lost / u;
}""",
    "vk_logaddexp": """
FLOAT vk_logaddexp(FLOAT x, FLOAT y) {
    if (x == y) return x + LN2;
    precise FLOAT apart = x - y;
    if (vk_isnan(apart)) return apart;
    FLOAT most = x > y ? x : y;
    return most + vk_log1p(vk_exp(vk_negative(vk_abs(apart))));
}""",
    "vk_pow": """
FLOAT vk_pow(FLOAT x, FLOAT y) {
    if (!vk_true(y) || x == FLOAT(1)) return FLOAT(1);
    if (vk_isnan(x) || vk_isnan(y)) return vk_nan();
    if (y == FLOAT(1)) return x;
    if (y == FLOAT(2)) return x * x;
    if (y == FLOAT(-1)) return FLOAT(1) / x;
    if (y == 0.5 && vk_true(x) && !vk_isinf(x)) return vk_sqrt(x);
    precise FLOAT a = vk_abs(x), half_ = y * 0.5;
    bool is_whole = vk_trunc(y) == y, is_odd = is_whole && vk_trunc(half_) != half_;
    precise FLOAT result;
    if (!vk_true(x) || vk_isinf(x)) result = vk_true(x) == !vk_signbit(y) ? vk_inf() : FLOAT(0);
    else if (vk_isinf(y))
        return a == FLOAT(1) ? a : a > FLOAT(1) == !vk_signbit(y) ? vk_inf() : FLOAT(0);
    else if (vk_signbit(x) && !is_whole) return vk_nan();
    else {
        // y * log(a) in two parts, and exp of their sum
        FLOAT scale, tail;
        precise FLOAT f = vk_log_parts(a, scale, tail), high = scale * LN2_HIGH, sum = high + f;
        precise FLOAT low = scale * LN2_LOW - tail;
        if (scale != FLOAT(0)) low = low + (f - (sum - high));
        precise FLOAT log_ = sum + low;
        low = low - (log_ - sum);
        precise FLOAT product = log_ * y;
        BITS mask = ~((BITS(1) << (MANTISSA / 2 + 1)) - BITS(1));
        precise FLOAT l0 = BITS_TO_FLOAT(FLOAT_TO_BITS(log_) & mask), l1 = log_ - l0;
        precise FLOAT y0 = BITS_TO_FLOAT(FLOAT_TO_BITS(y) & mask), y1 = y - y0;
        precise FLOAT rest = ((l0 * y0 - product) + l0 * y1 + l1 * y0) + l1 * y1 + low * y;
        result = vk_exp(product);
        if (vk_isfinite(result) && vk_isfinite(rest)) result = result + result * rest;
    }
    return is_odd && vk_signbit(x) ? vk_negative(result) : result;
}""",
    # -- trigonometric and hyperbolic functions ----------------------------------------------------
    "vk_sin_part": """
FLOAT vk_sin_part(FLOAT x) {  // sin(x), where |x| is at most pi / 4
    precise FLOAT t = x * x, tail = x * t * SERIES(SIN, t);
    return x + tail;
}""",
    "vk_cos_part": """
FLOAT vk_cos_part(FLOAT x) {  // cos(x), where |x| is at most pi / 4
    precise FLOAT t = x * x, half_ = t * 0.5, w = FLOAT(1) - half_;
    precise FLOAT tail = t * t * SERIES(COS, t);
    return w + (((FLOAT(1) - w) - half_) + tail);
}""",
    "vk_quadrant": """
int vk_quadrant(FLOAT x, out FLOAT rest) {  // x is rest + quadrant * pi / 2, modulo 2 pi
    rest = x;
    if (vk_abs(x) < 0.7853981) return 0;
    // The integer m * 2**e times the bits of 2 / pi with values from 4 / 2**e down.
    BITS bits = vk_bits(x), m = (bits & ((BITS(1) << MANTISSA) - BITS(1))) | BITS(1) << MANTISSA;
    int at = int(bits >> MANTISSA) - EXPONENTS / 2 - MANTISSA - 2 + 32 * M_WORDS;
    const uint two_by_pi[] = TWO_BY_PI;
    uint product[V_WORDS];
    for (int k = 0; k < V_WORDS; ++k) product[k] = 0u;
    for (int k = 0; k < V_WORDS; ++k) {  // words of 2 / pi, the first one last
        int word = (at >> 5) + V_WORDS - 1 - k, shift = at & 31;
        uint part = two_by_pi[word] << shift;
        if (shift != 0) part |= two_by_pi[word + 1] >> (32 - shift);
        uint carry = 0u;
        for (int j = 0; j < M_WORDS + V_WORDS && k + j < V_WORDS; ++j) {
            uint high = 0u, low = 0u, c0, c1;
            if (j < M_WORDS) umulExtended(part, uint(m >> (32 * j)), high, low);
            low = uaddCarry(low, carry, c0);
            product[k + j] = uaddCarry(product[k + j], low, c1);
            carry = high + c0 + c1;
        }
    }
    uint last = product[V_WORDS - 1];
    int quadrant = int(last >> 30);
    bool is_above = (last & 0x20000000u) != 0u;  // more than a half: the next quadrant
    precise FLOAT fraction = FLOAT(0), unit = 2.3283064365386963e-10;
    for (int k = V_WORDS - 1; k >= 0; --k) {  // 32 bits at a time, less 2
        uint word = product[k] << 2;
        if (k > 0) word |= product[k - 1] >> 30;
        product[k] = is_above ? ~word : word;
    }
    bool begins = false;
    for (int k = V_WORDS - 1, some = 0; k >= 0 && some < M_WORDS + 1; --k) {
        begins = begins || product[k] != 0u;
        some += begins ? 1 : 0;
        // Both halves of a word are exact.
        fraction = fraction + FLOAT(product[k] & 0xffff0000u) * unit;
        fraction = fraction + FLOAT(product[k] & 0xffffu) * unit;
        unit = unit * 2.3283064365386963e-10;
    }
    rest = fraction * HALF_PI;
    if (is_above) rest = vk_negative(rest);
    quadrant += is_above ? 1 : 0;
    if (vk_signbit(x)) {
        rest = vk_negative(rest);
        quadrant = -quadrant;
    }
    return quadrant & 3;
}""",
    "vk_sin": """
FLOAT vk_sin(FLOAT x) {
    if (!vk_isfinite(x)) return vk_nan();
    FLOAT rest;
    int quadrant = vk_quadrant(x, rest);
    FLOAT result = (quadrant & 1) == 0 ? vk_sin_part(rest) : vk_cos_part(rest);
    return quadrant < 2 ? result : vk_negative(result);
}""",
    "vk_cos": """
FLOAT vk_cos(FLOAT x) {
    if (!vk_isfinite(x)) return vk_nan();
    FLOAT rest;
    int quadrant = vk_quadrant(x, rest);
    FLOAT result = (quadrant & 1) == 0 ? vk_cos_part(rest) : vk_sin_part(rest);
    return quadrant == 0 || quadrant == 3 ? result : vk_negative(result);
}""",
    "vk_tan": """
FLOAT vk_tan(FLOAT x) {
    if (!vk_isfinite(x)) return vk_nan();
    FLOAT rest;
    int quadrant = vk_quadrant(x, rest);
    if (vk_abs(rest) < TINY && (quadrant & 1) == 0) return rest;
    precise FLOAT s = vk_sin_part(rest), c = vk_cos_part(rest);
    return (quadrant & 1) == 0 ? s / c : vk_negative(c / s);
}""",
    "vk_atan_part": """
FLOAT vk_atan_part(FLOAT x) {  // atan(x), where x is from 0 to 1
    precise FLOAT c = x < 0.19891237 ? FLOAT(0) : x < 0.66817864 ? TAN_PI_8 : FLOAT(1);
    precise FLOAT base = x < 0.19891237 ? FLOAT(0) : x < 0.66817864 ? PI_8 : PI_4;
    precise FLOAT u = (x - c) / (FLOAT(1) + x * c), t = u * u, tail = u * t * SERIES(ATAN, t);
    return base + (u + tail);
}""",
    "vk_atan": """
FLOAT vk_atan(FLOAT x) {
    if (vk_isnan(x) || vk_abs(x) < TINY) return x;
    precise FLOAT a = vk_abs(x), result;
    if (a > FLOAT(1)) result = HALF_PI - (vk_atan_part(FLOAT(1) / a) - HALF_PI_LOW);
    else result = vk_atan_part(a);
    return vk_copysign(result, x);
}""",
    "vk_atan2": """
FLOAT vk_atan2(FLOAT y, FLOAT x) {
    if (vk_isnan(x) || vk_isnan(y)) return vk_nan();
    precise FLOAT a = vk_abs(x), b = vk_abs(y), result;
    if (a == b) result = vk_true(x) ? PI_4 : FLOAT(0);
    else if (b > a) result = HALF_PI - (vk_atan_part(a / b) - HALF_PI_LOW);
    else result = vk_atan_part(b / a);
    if (vk_signbit(x)) result = PI - (result - PI_LOW);
    return vk_copysign(result, y);
}""",
    "vk_asin": """
FLOAT vk_asin(FLOAT x) {
    if (vk_isnan(x) || vk_abs(x) < TINY) return x;
    if (vk_abs(x) > FLOAT(1)) return vk_nan();
    precise FLOAT square = (FLOAT(1) - x) * (FLOAT(1) + x);
    return vk_atan2(x, vk_sqrt(square));
}""",
    "vk_acos": """
FLOAT vk_acos(FLOAT x) {
    if (vk_isnan(x)) return x;
    if (vk_abs(x) > FLOAT(1)) return vk_nan();
    precise FLOAT square = (FLOAT(1) - x) * (FLOAT(1) + x);
    return vk_atan2(vk_sqrt(square), x);
}""",
    "vk_sinh": """
FLOAT vk_sinh(FLOAT x) {
    if (!vk_isfinite(x) || vk_abs(x) < TINY) return x;
    precise FLOAT a = vk_abs(x), result;
    if (a > EXP_MAX - FLOAT(1)) {
        precise FLOAT root = vk_exp(a * 0.5);
        result = (root * 0.5) * root;
    } else {
        precise FLOAT e = vk_expm1(a);
        result = 0.5 * (e + e / (e + FLOAT(1)));
    }
    return vk_copysign(result, x);
}""",
    "vk_cosh": """
FLOAT vk_cosh(FLOAT x) {
    if (!vk_isfinite(x)) return vk_abs(x);
    precise FLOAT a = vk_abs(x);
    if (a > EXP_MAX - FLOAT(1)) {
        precise FLOAT root = vk_exp(a * 0.5);
        return (root * 0.5) * root;
    }
    precise FLOAT e = vk_exp(a);
    return 0.5 * e + 0.5 / e;
}""",
    "vk_tanh": """
FLOAT vk_tanh(FLOAT x) {
    if (vk_isnan(x) || vk_abs(x) < TINY) return x;
    precise FLOAT a = vk_abs(x);
    if (a > FLOAT(MANTISSA)) return vk_copysign(FLOAT(1), x);
    precise FLOAT e = vk_expm1(a + a);
    return vk_copysign(e / (e + FLOAT(2)), x);
}""",
    "vk_asinh": """
FLOAT vk_asinh(FLOAT x) {
    if (!vk_isfinite(x) || vk_abs(x) < TINY) return x;
    precise FLOAT a = vk_abs(x), square = a * a, result;
    if (a > FLOAT(1 << 14) * FLOAT(1 << (MANTISSA / 4))) result = vk_log(a) + LN2;
    else result = vk_log1p(a + square / (FLOAT(1) + vk_sqrt(square + FLOAT(1))));
    return vk_copysign(result, x);
}""",
    "vk_acosh": """
FLOAT vk_acosh(FLOAT x) {
    if (vk_isnan(x) || (vk_isinf(x) && !vk_signbit(x))) return x;
    if (x < FLOAT(1)) return vk_nan();
    if (x > FLOAT(1 << 14) * FLOAT(1 << (MANTISSA / 4))) return vk_log(x) + LN2;
    precise FLOAT t = x - FLOAT(1);
    return vk_log1p(t + vk_sqrt(t + t + t * t));
}""",
    "vk_atanh": """
FLOAT vk_atanh(FLOAT x) {
    if (vk_isnan(x) || vk_abs(x) < TINY) return x;
    precise FLOAT a = vk_abs(x);
    if (a >= FLOAT(1)) return a > FLOAT(1) ? vk_nan() : vk_copysign(vk_inf(), x);
    return vk_copysign(0.5 * vk_log1p((a + a) / (FLOAT(1) - a)), x);
}""",
    "vk_hypot": """
FLOAT vk_hypot(FLOAT x, FLOAT y) {
    if (vk_isinf(x) || vk_isinf(y)) return vk_inf();
    precise FLOAT a = vk_abs(x), b = vk_abs(y), most = a > b ? a : b, least = a > b ? b : a;
    if (vk_isnan(x) || vk_isnan(y)) return vk_nan();
    if (!vk_true(most)) return most;
    precise FLOAT ratio = least / most, square = ratio * ratio + FLOAT(1);
    return most * vk_sqrt(square);
}""",
}  # fmt: skip


_LN2, _LN10 = (
    Fraction("0.69314718055994530941723212145817656807550013436025525412"),
    Fraction("2.30258509299404568401799145468436420760110148862877297603"),
)

_PI_BITS = 1300


@lru_cache(1)
def _pi() -> Fraction:
    """Pi, with enough bits for the largest floats. Source: Machin's formula."""

    def arctan(n: int) -> int:  # of 1 / n
        power, total, k = (1 << _PI_BITS) // n, 0, 1
        while power:
            total += power // k if k % 4 == 1 else -(power // k)
            power, k = power // (n * n), k + 2
        return total

    return Fraction(4 * (4 * arctan(5) - arctan(239)), 1 << _PI_BITS)


def _literal(value: float) -> str:
    """A number with a point, to which the suffix of a type can be added."""
    text = repr(float(value))
    return text if "." in text else text.replace("e", ".0e")


@lru_cache(2)
def _constants(name: str) -> dict[str, str]:
    """The constants of the texts for a type of floats, by their names."""
    real, pi = np.dtype(name).type, _pi()
    is_double = name == "float64"
    short = 1 << (32 if is_double else 13)  # so that a product with an exponent is exact
    values: dict[str, float] = {}
    for text, number in (("LN2", _LN2), ("LOG10_2", _LN2 / _LN10)):
        values[f"{text}_HIGH"] = high = round(number * short) / short
        values[f"{text}_LOW"] = float(number - Fraction(high))
    for text, number in (("HALF_PI", pi / 2), ("PI", pi)):
        values[text] = high = float(real(float(number)))
        values[f"{text}_LOW"] = float(number - Fraction(high))
    exact = {"LN2": _LN2, "LOG2_E": 1 / _LN2, "LOG10_E": 1 / _LN10, "PI_4": pi / 4, "PI_8": pi / 8}
    exact |= {"PI_180": pi / 180, "ONE_BY_PI_180": 180 / pi}
    values |= {text: float(number) for text, number in exact.items()}
    values["TAN_PI_8"] = 0.41421356237309503
    values["EXP_MAX"], values["EXP_MIN"] = (709.782712893384, -745.2) if is_double else (
        88.72284, -104.0)  # fmt: skip
    values["HALF_ULP"] = 2.0**-55 if is_double else 2.0**-26
    values["TINY"] = 1e-9 if is_double else 1e-4  # whose square is below the last bit
    constants = {text: f"FLOAT({_literal(real(value))})" for text, value in values.items()}
    words = 2 if is_double else 1
    bits = (971 if is_double else 104) + 32 * 3 * words + 64
    count = bits // 32 + 1
    digits = int(2 / pi * 2 ** (32 * count))
    table = [0] * words + [digits >> 32 * (count - 1 - k) & 0xFFFFFFFF for k in range(count)]
    listed = ", ".join(f"{word}u" for word in table)
    return constants | {
        "M_WORDS": f"{words}",
        "V_WORDS": f"{3 * words}",
        "TWO_BY_PI": f"uint[{len(table)}]({listed})",
    }


def _of_floats(name: str, dtype: np.dtype[Any]) -> str:
    constants = _constants(dtype.name)
    real, suffix = dtype.type, "lf" * (dtype == np.float64)

    def series(match: re.Match[str]) -> str:
        term, *counts = _SERIES[match[1]]
        numbers = [
            _literal(float(real(float(term(k))))) for k in range(counts[dtype == np.float64])
        ]
        text = numbers[-1]
        for each in numbers[-2::-1]:
            text = f"({text} * {match[2]} + {each})"
        return text

    text = _CALL_OF_SERIES.sub(series, _FLOATS[name])
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
                texts[name] = ""  # a function calls itself in its text
                add(own)
                del texts[name]
                texts[name] = guarded(f"{name}_{dtype.name}", own.strip() + "\n")

    add(text)
    return "".join(texts.values())
