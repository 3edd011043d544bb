"""The interpreter of shaders against drivers."""

from __future__ import annotations

import function_programs
import numpy as np
import pytest
import shader_children
from checked_shaders import CORRECT, loaded
from shader_children import ABORTS, DriverAbortedError, run_shaders
from shader_programs import COUNT, FLOAT, SIGNED, UNSIGNED, Generator

from vkops.debug import check

N, EACH = 64, 10
"""Invocations, and programs of a test."""

TYPES = {
    "32 bits": ("uint", "int"),
    "64 and 16 bits": ("uint64_t", "int64_t", "uint16_t", "int16_t"),
    "all": (*UNSIGNED, *SIGNED),
}
"""Types of a variable of random programs; SwiftShader has only those of 32 bits."""


def slow_from(fast, first):
    return [pytest.mark.slow] if first >= fast else []


def numbers(seed):
    return np.random.default_rng(seed).integers(0, 2**32, N, dtype=np.uint32)


def interpreted(text, seed, count, **options):
    """The words of each invocation in the interpreter, which finds nothing wrong."""
    buffers = {"Source": numbers(seed), "Target": 4 * N * count}
    report = check(text, buffers, threads=N, **options)
    assert report.ok, f"seed {seed}: {report}"
    return report.buffers["Target"].reshape(N, count).copy()


@pytest.mark.features
@pytest.mark.parametrize(
    ("also", "first"),
    [
        pytest.param(also, first, marks=slow_from(fast, first))
        for also, fast in zip(TYPES, (10, 10, 40), strict=True)
        for first in range(0, 300, EACH)
    ],
)
def test_random_programs(adapter, device, first, also, tmp_path):
    """Integers and floats are the same, bit by bit, except for the sign of zero; also of staged devices."""
    seeds, limits = range(first, first + EACH), adapter.limits
    subgroups = () if also == "all" else limits.subgroup_operations
    texts = [Generator(seed, TYPES[also], subgroups).program() for seed in seeds]
    for text in texts:
        device.compile_shader(text)  # the driver compiles it when it runs
    sources, staged = [*map(numbers, seeds)], first % 20 == EACH
    on_device = run_shaders(
        adapter, texts, sources, threads=N, words=N * COUNT, staged=staged, folder=tmp_path
    )
    for seed, text, result in zip(seeds, texts, on_device, strict=True):
        expected = interpreted(text, seed, COUNT, subgroup_size=limits.subgroup_size)
        if isinstance(result, DriverAbortedError):
            (driver,) = {ABORTS.get(line) for line in str(result).splitlines()} - {None}
            assert driver in adapter.name
            continue
        results = result.reshape(N, COUNT).copy(), expected
        for each in results:
            each[:, FLOAT][each[:, FLOAT] == 1 << 31] = 0
        np.testing.assert_array_equal(*results, err_msg=f"seed {seed}")


ABORTING = """
import os, sys
sys.path.insert(0, FOLDER)
import shader_children
from checked_shaders import CORRECT, loaded
load = shader_children.np.load
def load_or_abort(path):
    if path.stem == "1":
        os.write(2, b"the driver says why")
        os.abort()
    return load(path)
shader_children.np.load = load_or_abort
shader_children.main(*sys.argv[1:])
"""


def test_a_driver_that_ends_its_process_does_not_end_the_tests(adapter, tmp_path, monkeypatch):
    """The program that stands for the driver ends at the second of three shaders."""
    text = """#version 450
        layout(local_size_x = 64) in;
        layout(binding = 0) readonly buffer Source { uint source[]; };
        layout(binding = 1) buffer Target { uint target[]; };
        void main() { target[gl_LocalInvocationIndex] = source[gl_LocalInvocationIndex] + 1u; }"""
    program = tmp_path / "aborting.py"
    program.write_text(ABORTING.replace("FOLDER", repr(str(shader_children.PROGRAM.parent))))
    monkeypatch.setattr(shader_children, "PROGRAM", program)
    sources = [np.full(N, n, np.uint32) for n in range(3)]
    first, second, third = run_shaders(
        adapter, [text] * 3, sources, threads=N, words=N, staged=False, folder=tmp_path
    )
    assert (first == 1).all()
    assert "the driver says why" in str(second)  # Windows adds a line
    assert (third == 3).all()


EXACT = ("reduction", "scan_with_two_arrays", "scan_with_a_tree", "histogram", "tiled_product", "transpose_by_tiles",
         "game_of_life", "bitonic_sort", "binary_search", "random_numbers", "bytes_with_atomic_or", "optional_result")  # fmt: skip


@pytest.mark.parametrize("name", EXACT)
def test_correct_shaders(any_device, name, monkeypatch):
    monkeypatch.chdir(CORRECT[name].path.parent)
    case = loaded(CORRECT[name])
    sizes = {block.point: np.arange(1024, dtype=block.dtype) for block in case.shader.blocks}
    tensors = {point: any_device.tensor(array) for point, array in sizes.items()}
    any_device.compile_shader(case.shader).dispatch(tensors, case.groups, case.push)
    report = check(case.shader, sizes, push=case.push, groups=case.groups)
    assert report.ok, str(report)
    for point, tensor in tensors.items():
        np.testing.assert_allclose(report.buffers[point], tensor.numpy(), rtol=1e-5, err_msg=point)


@pytest.mark.parametrize(
    "first", [pytest.param(n, marks=slow_from(EACH, n)) for n in range(0, 400, EACH)]
)
def test_functions(device, first):
    """Words and results of exact functions are the same, others differ by what Vulkan allows."""
    doubles = "shaderFloat64" in device.features
    for seed in range(first, first + EACH):
        text, columns = function_programs.program(seed, doubles=doubles)
        count = function_programs.COUNT
        on_device = device.compile_shader(text)(numbers(seed), threads=N, out=N * count).numpy()
        results = on_device.reshape(N, count), interpreted(text, seed, count)
        for n, (is_float, relative, absolute) in enumerate(columns):
            pair = [
                each[:, n].copy().view(np.float32 if is_float else np.uint32) for each in results
            ]
            (line,) = (
                line for line in text.splitlines() if f"put({n}u, " in line and "void" not in line
            )
            if not ("llvmpipe" in device.name and "roundEven(double" in line):  # docs/systems.md
                message = f"seed {seed}: {line}"
                np.testing.assert_allclose(*pair, relative, absolute, err_msg=message)


def test_every_function_of_the_table_is_called():
    texts = [function_programs.program(seed, doubles=True)[0] for seed in range(500)]
    names = {f.text.partition("(")[0] for f in function_programs.FUNCTIONS} | {
        *function_programs.STORING
    }
    assert not [name for name in names if not any(f"{name}(" in text for text in texts)]
