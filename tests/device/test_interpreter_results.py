"""The interpreter of shaders against drivers."""

from __future__ import annotations

import numpy as np
import pytest
import shader_children
import usual_shaders
from shader_children import ABORTS, DriverAbortedError, run_shaders
from shader_programs import COUNT, FLOAT, SIGNED, UNSIGNED, Generator

from vkops import shaders
from vkops.debug import check

N = 64


ALL, WORDS = (*UNSIGNED, *SIGNED), ("uint", "int")
"""Types of integers; SwiftShader has only those of 32 bits."""

CASES = [*((ALL, first, False) for first in range(0, 40, 8)), (ALL, 0, True)]
CASES += [(WORDS, first, False) for first in (0, 8)]


@pytest.mark.features
@pytest.mark.parametrize(("also", "first", "staged"), CASES)
def test_random_programs(adapter, device, staged, first, also, tmp_path):
    """All integers and floats are the same, bit by bit, except for the sign of zero."""
    seeds = range(first, first + 8)
    texts = [Generator(seed, also).program() for seed in seeds]
    for text in texts:
        device.compile_shader(text)  # the driver compiles it when it runs
    sources = [np.random.default_rng(seed).integers(0, 2**32, N, dtype=np.uint32) for seed in seeds]
    on_device = run_shaders(
        adapter, texts, sources, threads=N, words=N * COUNT, staged=staged, folder=tmp_path
    )
    for seed, text, source, result in zip(seeds, texts, sources, on_device, strict=True):
        report = check(text, {"Source": source, "Target": 4 * N * COUNT}, threads=N)
        assert report.ok, str(report)
        if isinstance(result, DriverAbortedError):
            (driver,) = {ABORTS.get(line) for line in str(result).splitlines()} - {None}
            assert driver in adapter.name
            continue
        results = [each.reshape(N, COUNT).copy() for each in (result, report.buffers["Target"])]
        for each in results:
            each[:, FLOAT][each[:, FLOAT] == 1 << 31] = 0
        np.testing.assert_array_equal(*results, err_msg=f"seed {seed}")


ABORTING = """
import os, sys
sys.path.insert(0, FOLDER)
import shader_children
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
    assert str(second) == "the driver says why"
    assert (third == 3).all()


EXACT = ("reduction", "scan_with_two_arrays", "scan_with_a_tree", "histogram", "tiled_product", "transpose_by_tiles",
         "game_of_life", "bitonic_sort", "binary_search", "random_numbers", "bytes_with_atomic_or", "optional_result")  # fmt: skip


@pytest.mark.parametrize("name", EXACT)
def test_usual_shaders(any_device, name):
    (case,) = (case for case in usual_shaders.CASES if case.name == name)
    loaded = shaders.load(case.text)
    sizes = {block.point: np.arange(1024, dtype=block.dtype) for block in loaded.blocks}
    options = {key: case.options[key] for key in ("groups", "threads") if key in case.options} or {
        "groups": 1
    }
    tensors = {point: any_device.tensor(array) for point, array in sizes.items()}
    push = case.options.get("push", ())
    any_device.compile_shader(loaded).dispatch(
        tensors, options.get("groups"), push, threads=options.get("threads")
    )
    report = check(loaded, sizes, push=push, **options)
    assert report.ok, str(report)
    for point, tensor in tensors.items():
        np.testing.assert_allclose(report.buffers[point], tensor.numpy(), rtol=1e-5, err_msg=point)
