"""Check and convert the arguments that callers pass for a shader; they can be of any type."""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vkops.errors import InvalidDescError, ShaderCompileError, show
from vkops.shaders.instructions import Scalar

Number = int | float

_INTEGERS = {"uint": (0, 2**32 - 1), "int": (-(2**31), 2**31 - 1), "bool": (0, 1)}
_MACRO_BITS = 64

_KINDS: Mapping[str, tuple[type | tuple[type, ...], str]] = {
    "source": ((str, Path, bytes), "GLSL text, a path or SPIR-V"),
    "constants": (Mapping, "a mapping of names or ids to numbers"),
    "defines": (Mapping, "a mapping of names to text or integers"),
    "include_dirs": ((list, tuple), "a list of paths"),
    "target_env": (str, "a string"),
    "name": (str, "a string"),
    "debug": (bool, "True or False"),
    "allow_paths": (bool, "True or False"),
}


def check_kinds(settings: Mapping[str, Any]) -> None:
    """Refuse arguments of wrong types."""
    for field, value in settings.items():
        kinds, expected = _KINDS[field]
        if not isinstance(value, kinds):
            raise ShaderCompileError(f"{field}: got {show(value)}, must be {expected}")
    for key, value in settings["defines"].items():
        long = isinstance(value, int) and value.bit_length() > _MACRO_BITS
        if not isinstance(key, str) or not isinstance(value, (str, int)) or long:
            message = f"{show(key)}: {show(value)}, must be names with text or integers"
            raise ShaderCompileError(f"defines: got {message}")
    for path in settings["include_dirs"]:
        if not isinstance(path, (str, Path)):
            raise ShaderCompileError(f"include_dirs: got {show(path)}, must be paths")
    paths = [p for p in (settings["source"],) if isinstance(p, Path)]
    for path in (*paths, *settings["include_dirs"]):
        if "\0" in str(path):
            raise ShaderCompileError(f"{str(path)!r} is not a file name")


def fitting(name: str, field: str, scalar: Scalar, number: Any, rule: str) -> Number:
    """Convert a number to the type of a scalar."""
    value: Number
    try:
        if scalar.type == "float":
            value = struct.unpack("<f", struct.pack("<f", float(number)))[0]
            fits = not isinstance(number, (str, bytes, bytearray))
        else:
            low, high = _INTEGERS[scalar.type]
            value = int(number)
            fits = value == number and low <= value <= high
    except (TypeError, ValueError, OverflowError):  # out of range, or not a number
        fits = False
    if not fits:
        raise InvalidDescError(name, field, f"got {show(number)}, must be {scalar.type}", rule)
    return value


def literal(type_: str, number: Number) -> str:
    """Format a number of a type as spirv-opt reads it."""
    if type_ == "bool":
        return "true" if number else "false"
    if math.isfinite(number):
        return repr(number)
    sign = "-" if number < 0 else ""
    return "0x1.8p+128" if math.isnan(number) else f"{sign}0x1p+128"
