"""The formats in which elements are stored, and the types in which operations compute with them."""

from __future__ import annotations

from collections.abc import Set
from typing import Any, NamedTuple

import numpy as np

from vkops.errors import InvalidDescTypeError, import_late

GLSL_TYPES = {
    "bool": "bool", "int8": "int8_t", "int16": "int16_t", "int32": "int", "int64": "int64_t",
    "uint8": "uint8_t", "uint16": "uint16_t", "uint32": "uint", "uint64": "uint64_t",
    "float16": "float16_t", "float32": "float", "float64": "double",
}  # fmt: skip
"""The GLSL type of each data type that elements can have, in operations."""

FORMATS = dict(zip(GLSL_TYPES, "?bhiqBHIQefd", strict=True))
"""The format character of each data type, as in Python's struct module."""


class SmallFloat(NamedTuple):
    """A signed floating-point type of fewer than 32 bits.

    Attributes:
        exponent: bits of the exponent.
        mantissa: bits of the fraction.
        bias: what is added to the exponent.
        ends: ``"ieee"`` if the largest exponent is that of infinity and NaN; ``"fn"`` if there is
            no infinity, and NaN has all bits set; ``"fnuz"`` if there is no infinity, and NaN has
            the bits of -0.
    """

    exponent: int
    mantissa: int
    bias: int
    ends: str = "ieee"


_SMALL_FLOATS = {
    "float16": SmallFloat(5, 10, 15),
    "bfloat16": SmallFloat(8, 7, 127),
    "float8_e5m2": SmallFloat(5, 2, 15),
    "float8_e4m3": SmallFloat(4, 3, 7),
    "float8_e3m4": SmallFloat(3, 4, 3),
    "float8_e4m3fn": SmallFloat(4, 3, 7, "fn"),
    "float8_e4m3fnuz": SmallFloat(4, 3, 8, "fnuz"),
    "float8_e5m2fnuz": SmallFloat(5, 2, 16, "fnuz"),
    "float8_e4m3b11fnuz": SmallFloat(4, 3, 11, "fnuz"),
}

EXTENSION_FLOATS = tuple(name for name in _SMALL_FLOATS if name != "float16")
"""The types of the package ml_dtypes that elements can have; operations compute in float32."""

GLSL_TYPES |= dict.fromkeys(EXTENSION_FLOATS, "float")
KINDS = {name: "f" if "float" in name else name[0] for name in GLSL_TYPES}
"""The kind of each data type: Booleans (b), signed (i) or unsigned (u) integers, or floats (f)."""
FORMATS |= dict.fromkeys(EXTENSION_FLOATS, "f")


class Code(NamedTuple):
    """The conversion of elements of fewer than 32 bits from the lowest bits of a uint, and back.

    Attributes:
        bits: their number.
        type: the GLSL type in operations.
        decoded: the GLSL for the bits ``{0}``, all others of which are 0.
        encoded: the GLSL of the bits for the value ``{0}``; others may be set, too.
        functions: the GLSL of functions that these call.
    """

    bits: int
    type: str
    decoded: str
    encoded: str
    functions: str = ""

    def rounded(self, value: str) -> str:
        """Return the GLSL of a value rounded to a number that the bits can represent."""
        return self.decoded.format(f"({self.encoded.format(value)} & {(1 << self.bits) - 1}u)")


def guarded(name: str, text: str) -> str:
    """Return the GLSL of functions, guarded so that a shader can contain it several times."""
    return f"#ifndef _HAS_{name}\n#define _HAS_{name}\n{text}#endif\n"


def _float_code(name: str, form: SmallFloat) -> Code:
    exponent, mantissa, bias, ends = form
    bits, top, shift = exponent + mantissa, (1 << exponent) - 1, 23 - mantissa
    infinity, half = top << mantissa, (1 << (shift - 1)) - 1
    if exponent == 8:  # as for float32, with fewer bits of the fraction
        decode = f"return uintBitsToFloat(bits << {shift});"
        rounded = f"(magnitude + {half}u + (magnitude >> {shift} & 1u)) >> {shift}"
    else:
        start, smallest = (127 - bias) << 23, f"{2.0 ** (1 - bias - mantissa)!r}"
        unit = (1 - bias - mantissa + 23 + 127) << 23  # of a float whose last bit is the smallest
        special = {
            "ieee": f"if (magnitude >= {infinity}u) result = 0x7f800000u | (magnitude & "
            f"{(1 << mantissa) - 1}u) << {shift};",
            "fn": f"if (magnitude == {(1 << bits) - 1}u) result = 0x7fc00000u;",
            "fnuz": f"if (bits == {1 << bits}u) return uintBitsToFloat(0x7fc00000u);",
        }[ends]
        decode = f"""uint magnitude = bits & {(1 << bits) - 1}u, result;
    if (magnitude >> {mantissa} == 0u) result = floatBitsToUint(float(magnitude) * {smallest});
    else result = (magnitude << {shift}) + {start}u;
    {special}
    return uintBitsToFloat(result | (bits >> {bits}) << 31);"""
        # Below the normal numbers, an addition rounds the value.
        rounded = f"""magnitude < {start + (1 << 23)}u
        ? floatBitsToUint(uintBitsToFloat(magnitude) + uintBitsToFloat({unit}u)) - {unit}u
        : (magnitude - {start}u + {half}u + (magnitude >> {shift} & 1u)) >> {shift}"""
    last = {"ieee": infinity, "fn": (1 << bits) - 1, "fnuz": 1 << bits}[ends]
    nan = {"ieee": infinity | 1 << (mantissa - 1)}.get(ends, last)
    sign = f"floatBitsToUint(x) >> 31 << {bits}"
    end = f"return rounded | {sign};"
    if ends == "fnuz":
        end = f"return rounded == 0u || rounded == {last}u ? rounded : rounded | {sign};"
    return Code(
        bits + 1,
        "float",
        f"from_{name}({{0}})",
        f"to_{name}({{0}})",
        guarded(
            f"from_{name}",
            f"""float from_{name}(uint bits) {{
    {decode}
}}
uint to_{name}(float x) {{  // rounded to nearest, ties to even
    uint magnitude = floatBitsToUint(x) & 0x7fffffffu;
    uint rounded = {rounded};
    if (magnitude > 0x7f800000u) rounded = {nan}u;
    else rounded = magnitude == 0x7f800000u ? {last}u : min(rounded, {last}u);
    {end}
}}
""",
        ),
    )


CODES = {
    "bool": Code(8, "bool", "({0} != 0u)", "uint({0})"),
    **{
        f"{sign}int{bits}": Code(
            bits,
            f"{sign}int",
            "{0}" if sign else f"bitfieldExtract(int({{0}}), 0, {bits})",
            "uint({0})",
        )
        for bits in (8, 16)
        for sign in ("", "u")
    },
    **{name: _float_code(name, form) for name, form in _SMALL_FLOATS.items()},
}
"""The conversions of the data types below 32 bits; others are GLSL's own types in operations."""

ALWAYS_CODED = ("bool", *EXTENSION_FLOATS)
"""The data types that GLSL has no type for in memory."""


def dtype_of(name: str) -> np.dtype[Any]:
    """Return the data type with a name of ``GLSL_TYPES``.

    Raises:
        InvalidDescTypeError: it is one of ml_dtypes, which is not installed (T-02).
    """
    if name not in EXTENSION_FLOATS:
        return np.dtype(name)
    try:
        dtype: np.dtype[Any] = np.dtype(getattr(import_late("ml_dtypes"), name))
    except (ImportError, AttributeError) as error:
        message = f"is {name}, which needs the package ml_dtypes"
        raise InvalidDescTypeError("", "dtype", message, "T-02") from error
    return dtype


def is_known(dtype: np.dtype[Any]) -> bool:
    """Whether elements can have this data type, including its byte order."""
    return dtype.name in GLSL_TYPES and dtype.isnative


def kind_of(dtype: np.dtype[Any]) -> str:
    """Return the kind of a data type: ``"b"``, ``"i"``, ``"u"`` or ``"f"``."""
    return KINDS.get(dtype.name, dtype.kind)


def limits_of(dtype: np.dtype[Any]) -> Any:
    """Return the limits of a numeric data type, as ``numpy.finfo`` or ``numpy.iinfo`` do."""
    if kind_of(dtype) != "f":
        return np.iinfo(dtype)
    is_own = dtype.name not in EXTENSION_FLOATS
    return np.finfo(dtype) if is_own else import_late("ml_dtypes").finfo(dtype)


def words_are_read(dtype: np.dtype[Any], features: Set[str]) -> bool:
    """Whether a device reads and writes such elements as parts of 32-bit words."""
    bits = 8 * dtype.itemsize
    return bits < 32 and f"storageBuffer{bits}BitAccess" not in features
