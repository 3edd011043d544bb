"""Compiled pipelines on disk, with a driver that has a pipeline cache: the layer of ``imitated``."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from imitated import environment

pytestmark = pytest.mark.system("cc")

# The arguments after the first name the things to do.
PROGRAM = f"""
import gc, json, sys
sys.path.insert(0, {str(Path(__file__).parents[1])!r})
import numpy as np
from imitated import NO_HOST_MEMORY, layer, records
import vkops

def pipelines():
    "The bytes that each cache began with, and for each pipeline whether it was in the cache."
    caches = [line.split()[0].partition("=")[2] for line in records("vkCreatePipelineCache")]
    assert all("bytes=0 " in line or "valid=1" in line for line in records("vkCreatePipelineCache"))
    from_cache = ["from_cache=1" in line for line in records("vkCreateComputePipelines")]
    return [[int(number) for number in caches], from_cache]

layer().record(1)
index, *things = sys.argv[1:]
if "refuse" in things:
    layer().fail(b"vkCreatePipelineCache", 0, 1, NO_HOST_MEMORY)
device = vkops.Device(int(index))
values = np.arange(4096, dtype=np.int32).reshape(64, 64)
x = device.tensor(values)
if "kernel" in things:
    assert (vkops.transpose(x).copy().numpy() == values.T).all()
if "shader" in things:
    shader = device.compile_shader('''#version 450
        layout(local_size_x = 64) in;
        layout(binding = 0) buffer Data {{ int data[]; }};
        void main() {{ data[gl_GlobalInvocationID.x] *= 2; }}''')
    shader(x, threads=x.size)
    assert (x.numpy() == values * 2).all()
if "lose" in things:
    layer().lose(b"vkQueueSubmit")
    try:
        vkops.transpose(x).copy()
    except vkops.DeviceError:
        print("lost", file=sys.stderr)
if "wait" in things:
    print(flush=True)
    sys.stdin.readline()
if "fail" in things:
    layer().fail(things[-1].encode(), 0, 1, NO_HOST_MEMORY)
if "drop" in things:
    device = x = shader = None
    gc.collect()
print(json.dumps(pipelines()))
"""


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "cache" / "pipelines"


@pytest.fixture
def begin(folder, adapter):
    """Begins a program that does some things."""

    def start(*things):
        return subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(adapter.index), *things],
            env=environment(VKOPS_CACHE_DIR=str(folder.parent)),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    return start


@pytest.fixture
def run(begin):
    """Runs a program that does some things; returns the bytes of caches, and which pipelines they had."""

    def finish(*things, errors="", **options):
        output, printed = begin(*things, **options).communicate(timeout=300)
        assert printed == errors
        return json.loads(output)

    return finish


def size(folder):
    """The bytes of the stored content."""
    (file,) = folder.iterdir()
    return file.stat().st_size - 32


@pytest.mark.parametrize("end", ["drop", "exit"])
def test_a_later_process_compiles_nothing_again(run, folder, end):
    """Neither kernels nor the shaders of users."""
    caches, made = run("kernel", end)
    assert caches == ([0, 0] if end == "drop" else [0])  # the second one is to merge
    kernels = [True] * len(made)
    assert set(made) == {False}
    before = size(folder)
    caches, made = run("kernel", "shader", end)
    assert (caches[0], made) == (before, [*kernels, False])
    assert size(folder) > before
    (file,) = folder.iterdir()
    before = file.stat().st_mtime_ns
    caches, made = run("kernel", "shader", end)
    assert (caches[0], made) == (size(folder), [*kernels, True])
    assert file.stat().st_mtime_ns == before  # nothing was new


@pytest.mark.parametrize("at_once", [False, True], ids=["in turn", "at once"])
def test_processes_that_end_together(begin, run, folder, at_once):
    """In turn, each keeps the pipelines of the other. At once, one can miss those of another."""
    both = begin("kernel", "wait"), begin("shader", "wait")
    for process in both:
        assert process.stdout.readline() == "\n"  # it has opened the device
    for process in both if at_once else ():
        process.stdin.write("\n")
        process.stdin.flush()
    for process in both:
        output, errors = process.communicate(timeout=300)
        assert (json.loads(output)[0], errors) == ([0], "")
    stored = size(folder)
    caches, made = run("kernel", "shader")
    assert (caches, True in made) == ([stored], True)
    assert at_once or False not in made


def test_a_driver_that_refuses_the_content_gets_none(run, folder):
    run("kernel")
    caches, made = run("kernel", "refuse")
    assert (caches, set(made)) == ([size(folder), 0], {False})


@pytest.mark.parametrize(
    "function", ["CreatePipelineCache", "MergePipelineCaches", "GetPipelineCacheData"]
)
def test_a_driver_that_fails_at_the_end_is_silent(run, folder, function):
    run("kernel", "shader", "drop", "fail", f"vk{function}")
    assert not folder.exists()


def test_a_lost_device_stores_nothing(run, folder):
    run("kernel", "lose", errors="lost\n")
    assert not folder.exists()
