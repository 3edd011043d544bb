"""Operations on subgroups that not all compilers and devices have, against NumPy."""

import numpy as np
import pytest

from vkops.debug import check
from vkops.interpreter.subgroups import Subgroups, execute, moved
from vkops.shaders.binary import Op

OLDER = """#version 450
#extension GL_ARB_shader_ballot : require
#extension GL_ARB_shader_group_vote : require
#extension GL_ARB_gpu_shader_int64 : require
#extension GL_ARB_shader_clock : require
#extension GL_EXT_device_group : require
layout(local_size_x = 16) in;
layout(std430, binding = 0) buffer X { uint x[]; };
layout(std430, binding = 1) buffer Y { uint y[]; };
void main() {
    uint i = gl_LocalInvocationIndex, own = x[i];
    uint votes = uint(anyInvocationARB(own > 6)) + 2 * uint(allInvocationsARB(own > 6));
    y[i] = uint(ballotARB(own > 6)) + readInvocationARB(own, 3) * 1000 + readFirstInvocationARB(own) * 100000;
    y[i] += (votes + 4 * uint(allInvocationsEqualARB(own > 6)) + gl_DeviceIndex) << 28;
    if (clock2x32ARB() == uvec2(0)) y[i] = 0;
}"""


@pytest.mark.parametrize("size", [8, 16])
def test_ballots_and_votes_of_the_older_extensions(size):
    x = np.array([5, 8, 1, 9, 0, 7, 7, 2, *range(7, 15)], np.uint32)
    report = check(OLDER, [x, np.zeros(16, np.uint32)], subgroup_size=size)
    rows = x.reshape(-1, size)
    above = rows > 6
    votes = above.any(1) + 2 * above.all(1) + 4 * (above.all(1) | ~above.any(1))
    ballots = (above << np.arange(size)).sum(1)
    expected = ballots + rows[:, 3] * 1000 + rows[:, 0] * 100_000 + (votes << 28)
    np.testing.assert_array_equal(
        report.buffers["Y"].reshape(-1, size), np.tile(expected, (size, 1)).T
    )


ACTIVE = np.array([0, 1, 2, 3, 5, 6, 7, 8, 9, 11, 12, 14])  # of two subgroups of 8
GROUP = Subgroups(ACTIVE // 8, ACTIVE % 8, 8)
VALUES = np.array([3, 1, 3, 3, 1, 0, 3, 3, 9, 9, 3, 9], np.uint32)


@pytest.mark.parametrize("cluster", [None, 4])
def test_rotations(cluster):
    size, delta = cluster or 8, 3
    operands = [VALUES, np.array([delta], np.uint32)] + [np.array([size], np.uint32)] * (
        cluster is not None
    )
    sources = ACTIVE // size * size + (ACTIVE + delta) % size
    expected = [VALUES[s == ACTIVE][0] if s in ACTIVE else 77 for s in sources]
    assert moved(4431, GROUP, operands, 77).tolist() == expected


def test_partitions_and_operations_in_them():
    ballots = execute(5296, GROUP, 0, [VALUES])
    alike = (VALUES[:, None] == VALUES) & (GROUP.row[:, None] == GROUP.row)
    assert ballots[:, 0].tolist() == [sum(1 << GROUP.column[row]) for row in alike]
    assert not ballots[:, 1:].any()
    numbers = np.arange(12, dtype=np.uint32) + 1
    before = np.arange(12) < np.arange(12)[:, None]
    for operation, mask in (
        (6, alike),
        (7, alike & (before | np.eye(12, dtype=bool))),
        (8, alike & before),
    ):
        result = execute(349, GROUP, operation, [numbers, ballots])
        assert result.tolist() == (mask * numbers).sum(1).tolist()


@pytest.mark.parametrize(("opcode", "function"), [(5110, all), (5111, any)])
def test_votes_of_quads(opcode, function):
    value = VALUES == 3
    expected = [function(value[quad == ACTIVE // 4]) for quad in ACTIVE // 4]
    assert execute(opcode, GROUP, 0, [value]).tolist() == expected


LATER = Subgroups(ACTIVE[1:] // 8, ACTIVE[1:] % 8, 8)  # the first invocation is not active
MOVES = [
    (Op.GroupNonUniformBroadcast, 3, lambda own: 3),
    (Op.GroupNonUniformShuffle, 6, lambda own: 6),
    (Op.GroupNonUniformShuffleXor, 5, lambda own: own ^ 5),
    (Op.GroupNonUniformShuffleUp, 2, lambda own: own - 2),
    (Op.GroupNonUniformShuffleDown, 3, lambda own: own + 3),
    (Op.GroupNonUniformQuadBroadcast, 2, lambda own: own - own % 4 + 2),
    (Op.GroupNonUniformQuadSwap, 0, lambda own: own + (1, -1, 1, -1)[own % 4]),
    (Op.GroupNonUniformQuadSwap, 1, lambda own: own + (2, 2, -2, -2)[own % 4]),
    (Op.GroupNonUniformQuadSwap, 2, lambda own: own + (3, 1, -1, -3)[own % 4]),
]


@pytest.mark.parametrize(("opcode", "operand", "source"), MOVES)
def test_values_of_other_invocations(opcode, operand, source):
    """The value of an invocation that is not active, or of none, is not known."""
    known = {at: n for n, at in enumerate(zip(LATER.row, LATER.column, strict=True))}
    numbers = np.arange(11, dtype=np.uint32)
    expected = [known.get((row, source(own)), 77) for row, own in known]
    assert moved(opcode, LATER, [numbers, np.uint32([operand])], 77).tolist() == expected


def test_the_first_active_invocation():
    first = [LATER.row.tolist().index(row) for row in LATER.row]
    numbers = np.arange(11, dtype=np.uint32)
    assert moved(Op.GroupNonUniformBroadcastFirst, LATER, [numbers], 77).tolist() == first
    elected = execute(Op.GroupNonUniformElect, LATER, 0, [])
    assert elected.tolist() == [n == own for n, own in enumerate(first)]
    same = execute(Op.GroupNonUniformAllEqual, LATER, 0, [np.minimum(LATER.column, 1)])
    assert same.tolist() == [row == 0 for row in LATER.row]


ARITHMETIC = [
    (Op.GroupNonUniformIAdd, np.add, np.uint32([3, 2**32 - 1, 5])),
    (Op.GroupNonUniformFAdd, np.add, np.float32([0.5, -2, 3])),
    (Op.GroupNonUniformIMul, np.multiply, np.int32([-3, 2, 5])),
    (Op.GroupNonUniformFMul, np.multiply, np.float32([0.5, -2, 3])),
    (Op.GroupNonUniformSMin, np.minimum, np.int32([-3, 2, -5])),
    (Op.GroupNonUniformUMin, np.minimum, np.uint32([3, 2**32 - 1, 5])),
    (Op.GroupNonUniformFMin, np.minimum, np.float32([0.5, -2, 3])),
    (Op.GroupNonUniformSMax, np.maximum, np.int32([-3, -2, -5])),
    (Op.GroupNonUniformUMax, np.maximum, np.uint32([3, 2**32 - 1, 5])),
    (Op.GroupNonUniformFMax, np.maximum, np.float32([-0.5, -2, -3])),
    (Op.GroupNonUniformBitwiseAnd, np.bitwise_and, np.uint32([7, 13, 2**31 + 5])),
    (Op.GroupNonUniformBitwiseOr, np.bitwise_or, np.uint32([1, 4, 2**31])),
    (Op.GroupNonUniformBitwiseXor, np.bitwise_xor, np.uint32([7, 13, 2**31 + 5])),
    (Op.GroupNonUniformLogicalAnd, np.logical_and, np.array([True, True, False])),
    (Op.GroupNonUniformLogicalOr, np.logical_or, np.array([False, False, True])),
    (Op.GroupNonUniformLogicalXor, np.logical_xor, np.array([True, False, True])),
]


@pytest.mark.parametrize(("opcode", "function", "numbers"), ARITHMETIC)
def test_arithmetic_of_subgroups_and_their_parts(opcode, function, numbers):
    value, row, column = np.resize(numbers, 11), LATER.row, LATER.column
    alike = row[:, None] == row
    for operation, width, chosen in (
        (0, None, alike),
        (1, None, alike & (column <= column[:, None])),
        (2, None, alike & (column < column[:, None])),
        (3, 4, alike & (column // 4 == column[:, None] // 4)),
        (3, 8, alike),
    ):
        operands = [value] if width is None else [value, np.uint32([width])]
        result = execute(opcode, LATER, operation, operands).view(value.dtype)
        for got, which in zip(result, chosen, strict=True):
            if which.any():
                assert got == function.reduce(value[which]).astype(value.dtype)


@pytest.mark.parametrize("size", [8, 64, 128])
def test_ballots(size):
    """Bit n of the words is of invocation n, and those from the size of the subgroup on are ignored."""
    column = np.flatnonzero(np.arange(size) % 7 != 3)
    group = Subgroups(np.zeros(len(column), int), column, size)
    votes = column % 3 == 1
    ballot = execute(Op.GroupNonUniformBallot, group, 0, [votes])
    whole = sum(1 << int(n) for n in column[votes])
    assert [sum(int(word) << 32 * n for n, word in enumerate(row)) for row in ballot] == [
        whole
    ] * len(column)
    assert (execute(Op.GroupNonUniformInverseBallot, group, 0, [ballot]) == votes).all()
    ends = np.uint32([0, 1, size // 2 + 1, size - 1])
    for bit in ends:
        (found,) = {
            *execute(
                Op.GroupNonUniformBallotBitExtract, group, 0, [ballot, np.uint32([bit])]
            ).tolist()
        }
        assert found == bool(whole >> int(bit) & 1)
    beyond = ballot.copy()
    beyond.view(np.uint8)[:, size // 8 :] = 255
    for each in (ballot, beyond):
        counts = [
            execute(Op.GroupNonUniformBallotBitCount, group, n, [each]).tolist() for n in range(3)
        ]
        own = [1 << int(n) for n in column]
        assert counts == [
            [whole.bit_count()] * len(column),
            [(whole & (2 * bit - 1)).bit_count() for bit in own],
            [(whole & (bit - 1)).bit_count() for bit in own],
        ]
        lowest = execute(Op.GroupNonUniformBallotFindLSB, group, 0, [each])
        assert {*lowest.tolist()} == {int(column[votes].min())}
        highest = execute(Op.GroupNonUniformBallotFindMSB, group, 0, [each])
        assert {*highest.tolist()} == {int(column[votes].max())}
