"""GLSL functions with the same bits on every device, unlike GLSL's division and conversions."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from vkops.elementwise.formats import kind_of
from vkops.shaders.image_formats import HALF_MAGNITUDE

DType: TypeAlias = "np.dtype[Any]"

to_half = f"""{HALF_MAGNITUDE}
float16_t to_half(float x) {{
    uint bits = floatBitsToUint(x), rounded = half_magnitude(bits & 0x7fffffffu);
    return uint16BitsToFloat16(uint16_t(rounded | (bits >> 16 & 0x8000u)));
}}
"""
"""A function that converts a float to a float16."""

_DIVIDED = """
FLOAT divided(FLOAT x, uint n) {  // rounded to nearest, ties to even
    BITS bits = FLOAT_TO_BITS(x), one = BITS(1), fraction = bits & ((one << MANTISSA) - one);
    BITS sign = bits & (one << SIGN);
    int exponent = int(bits >> MANTISSA) & EXPONENTS;
    if (exponent == EXPONENTS || (exponent == 0 && fraction == BITS(0))) {
        bool is_nan = fraction != BITS(0) || (n == 0u && exponent == 0);
        return is_nan ? BITS_TO_FLOAT(BITS(2 * EXPONENTS + 1) << (MANTISSA - 1)) : x;
    }
    if (n == 0u) return BITS_TO_FLOAT(sign | BITS(EXPONENTS) << MANTISSA);
    if (exponent == 0) exponent = 1;
    else fraction |= one << MANTISSA;
    BITS quotient = fraction / BITS(n), rest = fraction % BITS(n);
    for (; quotient >> (MANTISSA + 2) == BITS(0); --exponent) {  // one more binary digit
        rest <<= 1;
        bool digit = rest >= BITS(n);
        quotient = (quotient << 1) | BITS(digit ? 1 : 0);
        if (digit) rest -= BITS(n);
    }
    exponent += 2;
    int dropped = exponent > 0 ? 2 : min(3 - exponent, MANTISSA + 4);
    BITS kept = quotient >> dropped, part = quotient & ((one << dropped) - one);
    BITS middle = one << (dropped - 1);
    if (part > middle || (part == middle && (rest != BITS(0) || (kept & one) != BITS(0)))) ++kept;
    if (exponent > 0) kept += BITS(exponent - 1) << MANTISSA;
    return BITS_TO_FLOAT(sign | kept);
}
"""

_IS_NAN = """
bool is_nan(FLOAT x) {
    BITS magnitude = BITS(FLOAT_TO_BITS(x)) & ((BITS(1) << SIGN) - BITS(1));
    return magnitude > BITS(EXPONENTS) << MANTISSA;
}
"""

_WORDS = ("FLOAT_TO_BITS", "BITS_TO_FLOAT", "BITS", "FLOAT", "SIGN", "MANTISSA", "EXPONENTS")
"""Words of these functions that depend on the type; a word that contains another comes first."""

_FORMS = {
    "float16": "float16BitsToUint16 uint16BitsToFloat16 uint float16_t 15 10 31",
    "float32": "floatBitsToUint uintBitsToFloat uint float 31 23 255",
    "float64": "doubleBitsToUint64 uint64BitsToDouble uint64_t double 63 52 2047",
}


def with_words(text: str, dtype: DType) -> str:
    """Return GLSL with the words for any type of floats replaced by those of one type."""
    for word, replacement in zip(_WORDS, _FORMS[dtype.name].split(), strict=True):
        text = text.replace(word, replacement)
    return text


def divided(dtype: DType) -> str:
    """Return a function that divides a float32 or a float64 by an integer of 32 bits."""
    return with_words(_DIVIDED, dtype)


def is_nan(dtype: DType) -> str:
    """Return a function that tests floats for NaN; GLSL's fails on some devices."""
    if kind_of(dtype) != "f":
        return ""
    return with_words(_IS_NAN, dtype if dtype.name in _FORMS else np.dtype(np.float32))
