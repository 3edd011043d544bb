"""Operations on subgroups that not all compilers and devices have, against NumPy."""

import numpy as np
import pytest

from vkops.debug import check
from vkops.interpreter.subgroups import Subgroups, execute, moved

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
