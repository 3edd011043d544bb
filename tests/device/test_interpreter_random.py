"""1,000 random shaders in the interpreter and on drivers: structured ones with subgroups, and calls of functions."""

from __future__ import annotations

import function_programs
import numpy as np
import pytest
from shader_programs import COUNT, FLOAT, Generator

from vkops.debug import check

N, EACH = 64, 10
"""Invocations, and programs of a test."""


def firsts(count):
    """The first seeds of tests of so many programs, of which all but one are slow."""
    slow = (pytest.param(first, marks=pytest.mark.slow) for first in range(EACH, count, EACH))
    return [0, *slow]


WORDS = pytest.param(("uint", "int"), id="32 bits")
WIDER = pytest.param(
    ("uint64_t", "int64_t", "uint16_t", "int16_t"), marks=pytest.mark.features, id="64 and 16 bits"
)


@pytest.fixture(scope="module")
def limits(adapter):
    return adapter.limits


def run_both(device, text, seed, count, **options):
    """What an invocation's words are on the device and in the interpreter, which finds nothing wrong."""
    source = np.random.default_rng(seed).integers(0, 2**32, N, dtype=np.uint32)
    on_device = device.compile_shader(text)(source, threads=N, out=N * count).numpy()
    report = check(text, {"Source": source, "Target": 4 * N * count}, threads=N, **options)
    assert report.ok, f"seed {seed}: {report}"
    return on_device.reshape(N, count).copy(), report.buffers["Target"].reshape(N, count).copy()


@pytest.mark.parametrize("also", [WORDS, WIDER])
@pytest.mark.parametrize("first", firsts(300))
def test_structured_programs(device, limits, first, also):
    """All words are the same, except for the sign of zero."""
    for seed in range(first, first + EACH):
        text = Generator(seed, also, limits.subgroup_operations).program()
        results = run_both(device, text, seed, COUNT, subgroup_size=limits.subgroup_size)
        for each in results:
            each[:, FLOAT][each[:, FLOAT] == 1 << 31] = 0
        np.testing.assert_array_equal(*results, err_msg=f"seed {seed}")


@pytest.mark.parametrize("first", firsts(400))
def test_functions(device, limits, first):
    """Words and results of exact functions are the same, others differ by what Vulkan allows."""
    doubles = "shaderFloat64" in limits.features
    for seed in range(first, first + EACH):
        text, columns = function_programs.program(seed, doubles=doubles)
        results = run_both(device, text, seed, function_programs.COUNT)
        for n, (is_float, relative, absolute) in enumerate(columns):
            pair = [
                each[:, n].copy().view(np.float32 if is_float else np.uint32) for each in results
            ]
            (line,) = (
                line for line in text.splitlines() if f"put({n}u, " in line and "void" not in line
            )
            np.testing.assert_allclose(*pair, relative, absolute, err_msg=f"seed {seed}: {line}")


def test_every_function_of_the_table_is_called():
    texts = [function_programs.program(seed, doubles=True)[0] for seed in range(500)]
    names = {f.text.partition("(")[0] for f in function_programs.FUNCTIONS} | {
        *function_programs.STORING
    }
    assert not [name for name in names if not any(f"{name}(" in text for text in texts)]
