"""The number of Python calls between a function and the device: most of the time of small work."""

import gc
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from compiled_operators import compiled
from instructions import calls

import vkops
from vkops import dml
from vkops.gpu.copies.rule import SHADERS
from vkops.gpu.run.buffer import Buffer

pytestmark = pytest.mark.memory

PACKAGE = str(Path(vkops.__file__).parent)


@pytest.fixture
def fresh(adapter):
    """A device with one heap, while Python collects no garbage, whose finalizers would count."""
    gc.collect()
    gc.disable()
    with vkops.Device(adapter.index) as opened:
        yield opened
    gc.enable()


def work_of(run):
    """The number of Python calls that ``run`` makes, and the files of vkops that they are in."""
    files = set()
    count = calls(run, files) - 1  # without ``run`` itself
    return count, {file for file in files if file.startswith(PACKAGE)}


@pytest.mark.usefixtures("shared_memory")
def test_a_split_that_was_done_before(fresh):
    tensor = fresh.tensor(np.arange(8, dtype=np.float32))
    for _ in range(3):
        vkops.split(tensor, 2)
    count, files = work_of(lambda: vkops.split(tensor, 2))
    assert count <= 60
    assert len(files) <= 9, sorted(files)


@pytest.mark.usefixtures("shared_memory")
def test_a_split_of_a_new_shape(fresh):
    for n in (10, 12, 14, 24):  # a kernel, or a number of workgroups, may be the first of its kind
        vkops.split(fresh.tensor(np.arange(n, dtype=np.float32)), 2)
    tensor = fresh.tensor(np.arange(16, dtype=np.float32))
    limit = 300 if fresh.tuning.is_cpu else 310  # GPUs have more kernels to choose from
    assert work_of(lambda: vkops.split(tensor, 2))[0] <= limit


AXPY = """#version 450
layout(local_size_x = 64) in;
layout(std430, binding = 0) readonly buffer X { float x[]; };
layout(std430, binding = 1) buffer Y { float y[]; };
layout(push_constant) uniform Push { float a; };
void main() { uint i = gl_GlobalInvocationID.x; if (i < y.length()) y[i] += a * x[i]; }"""


def test_a_call_of_a_shader(fresh):
    shader = fresh.compile_shader(AXPY)
    x, y = (fresh.tensor(np.arange(24, dtype=np.float32)) for _ in range(2))
    views = x.reshape(4, 6), y.reshape(6, 4).T.T
    for run, limit in (
        (lambda: shader(x, y, a=2, threads=24), 25),
        (lambda: shader(*views, threads=24, a=1.5), 25),
        (lambda: shader(x, a=2, threads=24, out=y), 26),
        (lambda: shader.dispatch({"X": x, "Y": y}, 1, [2]), 31),
    ):
        for _ in range(2):
            run()
        assert work_of(run)[0] <= limit
    assert y.tolist() == [23.5 * n for n in range(24)]


def test_a_call_of_an_elementwise_kernel(fresh):
    kernel = vkops.ElementwiseKernel("float32 a, T x, T y", "T z", "z = a * x + y")
    x, y, z = (fresh.tensor(np.arange(24, dtype=np.float32)) for _ in range(3))
    for run, limit in (
        (lambda: kernel(2, x, y, out=z), 35),
        (lambda: kernel(2, x, y, z), 35),
        (lambda: kernel(2, x, y), 45),
    ):
        for _ in range(2):
            run()
        assert work_of(run)[0] <= limit
    assert z.tolist() == [3.0 * n for n in range(24)]


def test_a_binding(fresh):
    fresh.tuning = replace(fresh.tuning, copies=SHADERS)
    whole = dml.BufferTensorDesc(dml.TensorDataType.FLOAT32, [4, 6])
    parts = [dml.BufferTensorDesc(dml.TensorDataType.FLOAT32, [n, 6]) for n in (1, 3)]
    desc = dml.SplitOperatorDesc(whole, parts, axis=0)
    operator = compiled(fresh, desc)
    inputs, outputs = [fresh.buffer(96)], [fresh.buffer(24), fresh.buffer(72)]
    operator.bind(inputs, outputs)
    assert work_of(lambda: operator.bind(inputs, outputs))[0] <= 35


def test_a_buffer_where_a_heap_has_room(fresh):
    kept = [Buffer(fresh, 1000) for _ in range(100)]
    assert work_of(lambda: kept.append(Buffer(fresh, 1000)))[0] <= 3
    assert work_of(lambda: kept.clear())[0] == 0
    assert fresh.memory_report().used == 0
