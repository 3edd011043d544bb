"""The operations that subgroups issue, counted for a shader whose work is known."""

import numpy as np
import pytest

from vkops import shaders
from vkops.debug import traffic

LOOP = """#version 450
layout(local_size_x = 64) in;
layout(std430, binding = 0) buffer Data { uvec4 data[]; };
void main() {
    uvec4 v = data[gl_LocalInvocationIndex];
    for (uint i = 0u; i < COUNT; ++i) v = v * 5u + i;
    data[gl_LocalInvocationIndex] = v;
}"""


def operations(text):
    shader = shaders.load(shaders.compile(text))
    counted = traffic._Counted("", traffic._WORD, "", 1, 1024, is_written=True)
    counted.fill(bytes(1024))
    result = traffic.Traffic()
    optimized = traffic._optimized(shader)
    traffic._add_run(result, 1 << 20, 1, optimized, {(0, 0): counted}, (1, 1, 1), b"")
    assert [*result.operations] == [optimized]
    return result.instructions


def test_each_time_that_a_loop_runs_counts():
    few, many, more = (operations(LOOP.replace("COUNT", f"{n}u")) for n in (100, 200, 300))
    for size in traffic.SUBGROUPS:
        each = (many[size] - few[size]) / 100 / 64
        assert each == (more[size] - many[size]) / 100 / 64
        assert each >= 4 + 4 + 1  # a multiplication and an addition of vectors, and the counter
        assert each <= 16


@pytest.mark.parametrize(("active", "share"), [(1, 0.5), (32, 0.5), (33, 1)])
def test_a_subgroup_issues_for_all_its_invocations(active, share):
    body = LOOP.replace("COUNT", f"(gl_LocalInvocationIndex < {active}u ? 100u : 0u)")
    seen, full = operations(body), operations(body.replace(f"{active}u", "64u"))
    assert np.isclose(seen[64], full[64], rtol=0.05)
    assert np.isclose(seen[32], full[32] * share, rtol=0.05)
