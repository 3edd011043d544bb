"""Operations whose results are undefined for some operands; a use of such a result is a finding.

The sources are the chapter on precision of Vulkan's specification, and the specifications of SPIR-V
and GLSL.std.450.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from vkops.interpreter.operations import Array, column, integers
from vkops.interpreter.subgroups import Subgroups
from vkops.interpreter.values import Numbers, Reason, SourceLine
from vkops.shaders.grammar import FUNCTIONS, OPCODES


class Misuse(NamedTuple):
    """The text of a finding, and a function that returns which results are undefined.

    The arguments of the function are the type of the result, or the subgroups, and the operands.
    The text can contain the ``bits`` of the first operand, and the numbers of the last ``spans``
    operands, in reverse order.
    """

    text: str
    spans: int
    wrong: Callable[..., Array]
    kind: str = "undefined result"


def _too_many_bits(_: Any, base: Array, *operands: Array) -> Array:
    counts = operands[-2:] if operands[1:] else operands
    wide = [integers(each, "u").astype(np.uint64) for each in counts]
    return sum(wide) >= 8 * base.itemsize + len(counts) - 1


def _not_an_integer(dtype: np.dtype[Any], value: Array) -> Array:
    limits, whole = np.iinfo(dtype), np.trunc(value.astype(np.float64))
    return ~((whole >= float(limits.min)) & (whole < float(limits.max) + 1))


def _overflow(_: Any, a: Array, b: Array) -> Array:
    a, b = integers(a, "s"), integers(b, "s")
    return (a == np.iinfo(a.dtype).min) & (b == -1)


def _nan(_: Any, *operands: Array) -> Array:
    return reduce(np.logical_or, map(np.isnan, operands))


def _crossed(kind: str) -> Callable[..., Array]:
    return lambda _, value, low, high: integers(low, kind) > integers(high, kind)


def _no_power(_: Any, x: Array, y: Array) -> Array:
    return (x < 0) | ((x == 0) & (y <= 0))


def _outside(name: str, wrong: Callable[[Array], Array]) -> Misuse:
    return Misuse(f"uses {name}({{0}})", 1, lambda _, x: wrong(x))


def _too_large(_: Any, x: Array, exponent: Array) -> Array:
    exponent = integers(exponent, "s").astype(np.int32)
    overflows = np.isfinite(x) & np.isinf(np.ldexp(x, exponent))
    return overflows | (exponent > np.finfo(x.dtype).maxexp)


def _differs(group: Subgroups, ballot: Array) -> Array:
    if len(ballot) == 1:
        return np.zeros(1, bool)
    return (ballot != group.table(ballot)[group.row, group.first()]).any(1)


_SHIFT = Misuse("shifts a number of {bits} bits by {0}", 1, _too_many_bits, "shift")
_FIELD = Misuse("uses {0} bits from bit {1} on, of a number of {bits} bits", 2,
                _too_many_bits, "shift")  # fmt: skip
_CONVERSION = Misuse("converts {0} to an integer that cannot have it", 1, _not_an_integer)
_REMAINDER = Misuse("uses the remainder of a negative number, {1} % {0}", 2,
                    lambda _, a, b: (integers(a, "s") < 0) | (integers(b, "s") < 0))  # fmt: skip
_MODULUS = Misuse("uses mod({1}, {0})", 2, lambda _, a, b: b == 0)
_EMPTY = Misuse("looks for a bit in a ballot that has none", 0, lambda _, ballot: ~ballot.any(1))
_LIMITS = "uses clamp with limits from {1} to {0}"
_LEAST = Misuse("uses min or max of NaN", 0, _nan)

OPERATIONS: Mapping[int, Misuse] = {OPCODES[name]: rule for name, rule in {
    **dict.fromkeys(("ShiftRightLogical", "ShiftRightArithmetic", "ShiftLeftLogical"), _SHIFT),
    **dict.fromkeys(("BitFieldInsert", "BitFieldSExtract", "BitFieldUExtract"), _FIELD),
    **dict.fromkeys(("ConvertFToS", "ConvertFToU"), _CONVERSION),
    **dict.fromkeys(("SRem", "SMod"), _REMAINDER),
    **dict.fromkeys(("FRem", "FMod"), _MODULUS),
    **dict.fromkeys(("GroupNonUniformBallotFindLSB", "GroupNonUniformBallotFindMSB"), _EMPTY),
    "GroupNonUniformBallotBitExtract":
        Misuse("uses bit {0} of a ballot", 1, lambda group, _, bit: bit >= group.size),
    "GroupNonUniformInverseBallot": Misuse("uses ballots that differ in a subgroup", 0, _differs),
    "SDiv": Misuse("divides {1} by {0}, which has no result", 2, _overflow),
}.items()}  # fmt: skip
"""By opcode."""

RULES: Mapping[int, Misuse] = {FUNCTIONS[name]: rule for name, rule in {
    "Pow": Misuse("uses pow({1}, {0})", 2, _no_power),
    "Atan2": Misuse("uses atan(0, 0)", 0, lambda _, y, x: (y == 0) & (x == 0)),
    "FMin": _LEAST, "FMax": _LEAST, "Sqrt": _outside("sqrt", lambda x: x < 0),
    "InverseSqrt": _outside("inversesqrt", lambda x: x <= 0),
    "Log": _outside("log", lambda x: x <= 0), "Log2": _outside("log2", lambda x: x <= 0),
    "Asin": _outside("asin", lambda x: abs(x) > 1), "Acos": _outside("acos", lambda x: abs(x) > 1),
    "Acosh": _outside("acosh", lambda x: x < 1), "Atanh": _outside("atanh", lambda x: abs(x) >= 1),
    "SmoothStep": Misuse("uses smoothstep, whose second edge is not above the first", 0,
                         lambda _, low, high, x: (low >= high) | np.zeros_like(x, bool)),
    "Ldexp": Misuse("uses ldexp({1}, {0})", 2, _too_large),
    **dict.fromkeys(("Frexp", "FrexpStruct"), _outside("frexp", lambda x: ~np.isfinite(x))),
    "MatrixInverse": Misuse("inverts a matrix whose determinant is 0", 0,
                            lambda _, m: np.linalg.det(m.astype(np.float64)) == 0),
    "NClamp": Misuse(_LIMITS, 2, lambda _, v, low, high: low > high),
    "FClamp": Misuse(f"{_LIMITS}, or of NaN", 2,
                     lambda _, v, low, high: _nan(_, v, low, high) | (low > high)),
    "SClamp": Misuse(_LIMITS, 2, _crossed("s")),
    "UClamp": Misuse(_LIMITS, 2, _crossed("u")),
    "Normalize": Misuse("normalizes a vector of zeros", 0,
                        lambda _, v: (v == 0).reshape(len(v), -1).all(1)),
}.items()}  # fmt: skip
"""By the numbers of functions."""


def undefined(
    rule: Misuse | None,
    how: np.dtype[Any] | Subgroups | None,
    operands: list[Array],
    place: SourceLine,
) -> list[Numbers]:
    """Return a value that marks undefined results, with the reason, in a list; or an empty list."""
    if rule is None or not (wrong := rule.wrong(how, *operands)).any():
        return []
    spans = (_span(each, wrong) for each in reversed(operands[-rule.spans :]) if rule.spans)
    text = rule.text.format(*spans, bits=8 * operands[0].itemsize)
    return [Numbers(wrong, wrong, (Reason(text, place, rule.kind),))]


def _span(values: Array, chosen: Array) -> str:
    """Return the values that a mask selects, as text."""
    numbers = np.broadcast_to(column(values, chosen), chosen.shape)[chosen]
    low, high = numbers.min(), numbers.max()
    return f"{low}" if low == high or low != low else f"{low} to {high}"  # NaN is both
