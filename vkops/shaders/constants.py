"""The values of a module's constants, and modules with other values of specialization constants."""

from __future__ import annotations

import struct
from array import array
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from vkops.shaders.binary import Declarations, Decoration, Op, declarations, positions
from vkops.shaders.layout import ScalarType


def _quotient(a: int, b: int) -> int:
    """Divide integers, rounding towards zero; x / 0 is 0, as SPIR-V leaves it undefined."""
    return (abs(a) // abs(b) if b else 0) * (-1 if (a < 0) != (b < 0) else 1)


# By opcode: the result from the operands as unsigned and as signed integers.
_OPERATIONS: dict[int, Callable[[Sequence[int], Sequence[int]], int]] = {
    Op.UConvert: lambda u, s: u[0], Op.SConvert: lambda u, s: s[0], Op.SNegate: lambda u, s: -s[0],
    Op.Not: lambda u, s: ~u[0], Op.IAdd: lambda u, s: u[0] + u[1],
    Op.ISub: lambda u, s: u[0] - u[1], Op.IMul: lambda u, s: u[0] * u[1],
    Op.UDiv: lambda u, s: _quotient(u[0], u[1]), Op.SDiv: lambda u, s: _quotient(s[0], s[1]),
    Op.UMod: lambda u, s: u[0] % u[1] if u[1] else 0,
    Op.SMod: lambda u, s: s[0] % s[1] if s[1] else 0,
    Op.SRem: lambda u, s: s[0] - s[1] * _quotient(s[0], s[1]),
    Op.ShiftRightLogical: lambda u, s: u[0] >> u[1],
    Op.ShiftRightArithmetic: lambda u, s: s[0] >> u[1],
    Op.ShiftLeftLogical: lambda u, s: u[0] << min(u[1], 64), Op.BitwiseOr: lambda u, s: u[0] | u[1],
    Op.BitwiseXor: lambda u, s: u[0] ^ u[1], Op.BitwiseAnd: lambda u, s: u[0] & u[1],
    Op.LogicalEqual: lambda u, s: u[0] == u[1], Op.LogicalNotEqual: lambda u, s: u[0] != u[1],
    Op.LogicalOr: lambda u, s: u[0] | u[1], Op.LogicalAnd: lambda u, s: u[0] & u[1],
    Op.LogicalNot: lambda u, s: not u[0], Op.Select: lambda u, s: u[1] if u[0] else u[2],
    Op.IEqual: lambda u, s: u[0] == u[1], Op.INotEqual: lambda u, s: u[0] != u[1],
    Op.UGreaterThan: lambda u, s: u[0] > u[1], Op.SGreaterThan: lambda u, s: s[0] > s[1],
    Op.UGreaterThanEqual: lambda u, s: u[0] >= u[1],
    Op.SGreaterThanEqual: lambda u, s: s[0] >= s[1], Op.ULessThan: lambda u, s: u[0] < u[1],
    Op.SLessThan: lambda u, s: s[0] < s[1], Op.ULessThanEqual: lambda u, s: u[0] <= u[1],
    Op.SLessThanEqual: lambda u, s: s[0] <= s[1],
}  # fmt: skip


def numbers(module: Declarations) -> dict[int, ScalarType]:
    """Return the scalar types of a module by id; LookupError if one has an unusual size."""
    types = {}
    for id_, (op, words) in module.defined.items():
        if op == Op.TypeBool:
            types[id_] = ScalarType("bool", 4)
        elif op == Op.TypeInt:
            types[id_] = ScalarType("int" if words[2] else "uint", words[1] // 8)
        elif op == Op.TypeFloat:
            types[id_] = ScalarType("float", words[1] // 8)
        if id_ in types:
            types[id_].format  # noqa: B018
    return types


def values(module: Declarations, types: Mapping[int, ScalarType]) -> dict[int, Any]:
    """Return the values of constants by id, with the defaults of specialization constants.

    Composites are tuples. A value is None if it needs an operation that is not known here; Vulkan
    allows few operations in constants.
    """
    known: dict[int, Any] = {}
    for id_, (op, words) in module.defined.items():
        if op in (Op.ConstantTrue, Op.SpecConstantTrue, Op.ConstantFalse, Op.SpecConstantFalse):
            known[id_] = int(op in (Op.ConstantTrue, Op.SpecConstantTrue))
        elif op in (Op.Constant, Op.SpecConstant):
            type_ = types[words[0]]
            data = array("I", words[2:]).tobytes()
            known[id_] = struct.unpack_from(type_.format, data)[0]
        elif op in (Op.ConstantComposite, Op.SpecConstantComposite):
            known[id_] = tuple(map(known.get, words[2:]))
        elif op == Op.ConstantNull:
            known[id_] = 0 if words[0] in types else None
        elif op == Op.SpecConstantOp:
            known[id_] = _computed(module, types, known, words)
    return known


def _computed(
    module: Declarations,
    types: Mapping[int, ScalarType],
    known: Mapping[int, Any],
    words: Sequence[int],
) -> Any:
    result, _, op, *rest = words
    if op == Op.CompositeExtract:
        value = known.get(rest[0])
        for index in rest[1:]:
            value = None if value is None else value[index]
        return value
    if op not in _OPERATIONS or result not in types or types[result].kind == "float":
        return None
    operands: list[tuple[int, ScalarType]] = []
    for id_ in rest:
        value, type_ = known.get(id_), types.get(module.defined[id_].words[0])
        if not isinstance(value, int) or type_ is None:
            return None
        operands.append((value, type_))
    unsigned = [type_.wrapped(value, signed=False) for value, type_ in operands]
    signed = [type_.wrapped(value, signed=True) for value, type_ in operands]
    return types[result].wrapped(int(_OPERATIONS[op](unsigned, signed)))


def specialized(spirv: bytes, changed: Mapping[int, bytes]) -> bytes:
    """Return a module with other values of specialization constants.

    ``changed`` has the bytes of each constant by its SpecId; those of a ``bool`` are an integer's.
    """
    if not changed:
        return spirv
    words = array("I", spirv)
    locations = {
        target[0]: decorations[Decoration.SPEC_ID][0]
        for target, decorations in declarations(spirv).decorations.items()
        if Decoration.SPEC_ID in decorations
    }
    ids = {id_: changed[location] for id_, location in locations.items() if location in changed}
    for at, op, count in positions(words):
        if op in (Op.SpecConstantTrue, Op.SpecConstantFalse) and words[at + 2] in ids:
            is_true = any(ids[words[at + 2]])
            words[at] = count << 16 | (Op.SpecConstantTrue if is_true else Op.SpecConstantFalse)
        elif op == Op.SpecConstant and words[at + 2] in ids:
            words[at + 3 : at + count] = array("I", ids[words[at + 2]])
    return words.tobytes()


def constant_key(text: str) -> str | int:
    """Return the name of a specialization constant, or its id, which has 32 bits."""
    return int(text) if text.isdecimal() and len(text) <= 10 else text
