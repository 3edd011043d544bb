"""SPIR-V's operations on subgroups.

Operands are arranged in tables with a row for each subgroup and a column for each of its
invocations. Terms and numbers are those of the SPIR-V specification.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from vkops.interpreter.operations import Array, bit_count, integers
from vkops.shaders.binary import Op
from vkops.shaders.grammar import OPCODES

_REDUCE, _INCLUSIVE, _EXCLUSIVE, CLUSTERED = range(4)
_PARTITIONED = 6
"""The first GroupOperation for invocations that a ballot partitions."""


def _largest(dtype: np.dtype[Any]) -> Any:
    return np.inf if dtype.kind == "f" else np.iinfo(dtype).max


def _smallest(dtype: np.dtype[Any]) -> Any:
    return -np.inf if dtype.kind == "f" else np.iinfo(dtype).min


_ARITHMETIC: dict[int, tuple[str, Any, Callable[[np.dtype[Any]], Any]]] = {
    OPCODES[f"GroupNonUniform{name}"]: how
    for name, how in {
        "IAdd": ("u", np.add, lambda _: 0), "FAdd": ("", np.add, lambda _: 0),
        "IMul": ("u", np.multiply, lambda _: 1), "FMul": ("", np.multiply, lambda _: 1),
        "SMin": ("s", np.minimum, _largest), "UMin": ("u", np.minimum, _largest),
        "FMin": ("", np.fmin, _largest), "SMax": ("s", np.maximum, _smallest),
        "UMax": ("u", np.maximum, _smallest), "FMax": ("", np.fmax, _smallest),
        "BitwiseAnd": ("u", np.bitwise_and, _largest),
        "BitwiseOr": ("u", np.bitwise_or, lambda _: 0),
        "BitwiseXor": ("u", np.bitwise_xor, lambda _: 0),
        "LogicalAnd": ("", np.logical_and, lambda _: True),
        "LogicalOr": ("", np.logical_or, lambda _: False),
        "LogicalXor": ("", np.logical_xor, lambda _: False),
    }.items()
}  # fmt: skip
"""By opcode: the type in which operands are passed, the function, and its identity element."""

OLDER = {
    Op.SubgroupBallotKHR: Op.GroupNonUniformBallot,
    Op.SubgroupFirstInvocationKHR: Op.GroupNonUniformBroadcastFirst,
    Op.SubgroupAllKHR: Op.GroupNonUniformAll, Op.SubgroupAnyKHR: Op.GroupNonUniformAny,
    Op.SubgroupAllEqualKHR: Op.GroupNonUniformAllEqual,
    Op.SubgroupReadInvocationKHR: Op.GroupNonUniformBroadcast,
}  # fmt: skip
"""Operations of SPV_KHR_shader_ballot and SPV_KHR_subgroup_vote, with their present equivalents."""

OPERATIONS = Op.SUBGROUP | OLDER.keys()

WITH_OPERATION = {*_ARITHMETIC, Op.GroupNonUniformBallotBitCount}
"""The operations that have a GroupOperation operand."""

_VOTES = {
    Op.GroupNonUniformAll: ("LogicalAnd", _REDUCE),
    Op.GroupNonUniformAny: ("LogicalOr", _REDUCE),
    Op.GroupNonUniformQuadAllKHR: ("LogicalAnd", CLUSTERED),
    Op.GroupNonUniformQuadAnyKHR: ("LogicalOr", CLUSTERED),
}
"""Votes, with the equivalent arithmetic on booleans: of the subgroup, or of clusters of 4."""


@dataclass(frozen=True)
class Subgroups:
    """The positions of invocations: ``row`` is the subgroup, and ``column`` the number in it."""

    row: Array
    column: Array
    size: int

    @property
    def rows(self) -> int:
        """The number of subgroups."""
        return int(self.row.max()) + 1

    def table(self, value: Array, fill: Any = 0) -> Array:
        """Return a table of values; entries of inactive invocations are ``fill``."""
        result = np.full((self.rows, self.size, *value.shape[1:]), fill, value.dtype)
        result[self.row, self.column] = value
        return result

    def first(self) -> Array:
        """Return, for each invocation, the first active column of its subgroup."""
        return self.table(np.ones(len(self.row), bool), False).argmax(1)[self.row]


MOVES: dict[int, Callable[[Subgroups, Array, Array, int], Array]] = {
    Op.GroupNonUniformBroadcast: lambda group, own, other, cluster: other,
    Op.GroupNonUniformBroadcastFirst: lambda group, own, other, cluster: group.first(),
    Op.GroupNonUniformShuffle: lambda group, own, other, cluster: other,
    Op.GroupNonUniformShuffleXor: lambda group, own, other, cluster: own ^ other,
    Op.GroupNonUniformShuffleUp: lambda group, own, other, cluster: own - other,
    Op.GroupNonUniformShuffleDown: lambda group, own, other, cluster: own + other,
    Op.GroupNonUniformQuadBroadcast: lambda group, own, other, cluster: own // 4 * 4 + other,
    Op.GroupNonUniformQuadSwap: lambda group, own, other, cluster: own ^ (1 + other),
    Op.GroupNonUniformRotateKHR:
        lambda group, own, other, cluster: own // cluster * cluster + (own + other) % cluster,
}  # fmt: skip
"""Operations that return the value of another invocation, with functions for its number."""


def execute(opcode: int, group: Subgroups, operation: int, values: list[Array]) -> Array:
    """Return the result of an operation; ``operation`` is its GroupOperation, if it has one."""
    values = [np.broadcast_to(v, (len(group.row), *v.shape[1:])) for v in values]
    if opcode in _ARITHMETIC:
        return _arithmetic(opcode, group, operation, values)
    if opcode == Op.GroupNonUniformElect:
        return group.column == group.first()
    value = values[0]
    if opcode == Op.GroupNonUniformAllEqual:
        same = value == group.table(value)[group.row, group.first()]
        value, opcode = same.reshape(len(value), -1).all(1), Op.GroupNonUniformAll
    if opcode in _VOTES:
        name, operation = _VOTES[opcode]
        opcode = OPCODES[f"GroupNonUniform{name}"]
        return _arithmetic(opcode, group, operation, [value, np.array([4])])
    if opcode == Op.GroupNonUniformBallot:
        return words(group.table(value, False))[group.row]
    if opcode == Op.GroupNonUniformPartitionEXT:
        flat = value.reshape(len(value), -1)
        same = (flat[:, None] == flat).all(2) & (group.row[:, None] == group.row)
        one, other = np.nonzero(same)
        bits = np.zeros((len(value), group.size), bool)
        bits[one, group.column[other]] = True
        return words(bits)
    if opcode in (Op.GroupNonUniformInverseBallot, Op.GroupNonUniformBallotBitExtract):
        at = values[1].astype(np.int64) if values[1:] else group.column
        word = np.take_along_axis(value, (at // 32 % 4)[:, None], 1)[:, 0]
        return (word >> (at % 32).astype(np.uint32)) & 1 != 0
    return _ballot_bits(opcode, group, operation, value)


def _arithmetic(opcode: int, group: Subgroups, operation: int, values: list[Array]) -> Array:
    kind, function, identity = _ARITHMETIC[opcode]
    value = integers(np.ascontiguousarray(values[0]), kind) if kind else values[0]
    neutral = identity(value.dtype)
    if operation >= _PARTITIONED:
        result = np.empty_like(value)
        keys = np.column_stack([group.row, values[1]])
        distinct, parts = np.unique(keys, axis=0, return_inverse=True)
        for part in range(len(distinct)):
            rows = parts.reshape(-1) == part
            alone = Subgroups(np.zeros(rows.sum(), int), group.column[rows], group.size)
            result[rows] = _arithmetic(opcode, alone, operation - _PARTITIONED, [values[0][rows]])
        return result
    table = group.table(value, neutral)
    if operation == CLUSTERED:
        width = min(int(values[1][0]), group.size)
        parts = table.reshape(group.rows, group.size // width, width, *value.shape[1:])
        table = np.repeat(function.reduce(parts, axis=2), width, axis=1)
        return table.astype(value.dtype)[group.row, group.column]
    if operation == _REDUCE:
        return function.reduce(table, axis=1).astype(value.dtype)[group.row]
    result = function.accumulate(table, axis=1).astype(value.dtype)
    if operation == _EXCLUSIVE:
        result = np.concatenate((np.full_like(result[:, :1], neutral), result[:, :-1]), 1)
    return result[group.row, group.column]


def words(bits: Array) -> Array:
    """Return rows of bits as vectors of four words."""
    padded = np.zeros((len(bits), 128), bool)
    padded[:, : bits.shape[1]] = bits
    return np.packbits(padded, axis=1, bitorder="little").view("<u4")


def _ballot_bits(opcode: int, group: Subgroups, operation: int, value: Array) -> Array:
    columns = np.arange(128)
    bits = (value[:, columns // 32] >> (columns % 32).astype(np.uint32)) & 1 != 0
    bits &= columns < group.size
    if opcode == Op.GroupNonUniformBallotBitCount:
        column = group.column[:, None]
        limit = {_REDUCE: 128, _INCLUSIVE: column + 1, _EXCLUSIVE: column}[operation]
        return bit_count(words(bits & (columns < limit))).sum(1).astype(np.uint32)
    is_lowest = opcode == Op.GroupNonUniformBallotFindLSB
    result = bits.argmax(1) if is_lowest else 127 - bits[:, ::-1].argmax(1)
    return result.astype(np.uint32)


def moved(opcode: int, group: Subgroups, values: list[Array], fill: Any) -> Array:
    """Return the values of other invocations; ``fill`` for an inactive one."""
    values = [np.broadcast_to(v, (len(group.row), *v.shape[1:])) for v in values]
    other = values[1].astype(np.int64) if len(values) > 1 else group.column
    cluster = int(values[2][0]) if len(values) > 2 else group.size
    source = MOVES[opcode](group, group.column, other, cluster)
    result = group.table(values[0], fill)[group.row, np.clip(source, 0, group.size - 1)]
    result[(source < 0) | (source >= group.size)] = fill
    return result
