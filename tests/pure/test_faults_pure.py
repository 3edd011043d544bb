"""Tools that misbehave, disks that are full, processes that are killed: an error, then all is well."""

import os
import signal
import subprocess
import sys

import pytest
import refusals
from processes import script

from vkops import shaders
from vkops.errors import ShaderCompileError
from vkops.shaders import tools

TEXT = """#version 450
layout(local_size_x_id = 0) in;
layout(std140, binding = 0) uniform U { uint n; };
layout(std430, binding = 1) buffer B { uint b[]; };
void main() { b[0] = n; }"""
CONSTANTS = {0: 4}
TOOLS = ("glslangValidator", "spirv-val", "spirv-opt")
FAULTS = {
    "fails": "exit 3",
    "says nonsense and fails": "printf '\\377\\0\\n\\nno\\n'; exit 1",
    "prints garbage": "head -c 3000 /bin/sh",
    "prints nothing": "exit 0",
    "prints half a line": "echo '%1 ='",
    "prints an empty line": "echo ' '",
    "is killed": "kill -9 $$",
    "crashes": "kill -SEGV $$",
    "hangs": "sleep 60",
    "closes its input": "exec 0<&-; sleep 0.1; exit 1",
}


@pytest.fixture(autouse=True)
def no_cache(own_cache, monkeypatch):
    monkeypatch.delenv("VKOPS_GLSLANG", raising=False)
    shaders.shader._shader.cache_clear()


def load():
    """Load a shader with the help of all tools."""
    shader = shaders.load(TEXT, constants=CONSTANTS)
    shader.with_limited_indices()
    return shader


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("tool", TOOLS)
def test_a_tool_that_misbehaves(tmp_path, monkeypatch, tool, fault):
    (tmp_path / "bin").mkdir()
    fake = script(tmp_path / "bin" / tool, FAULTS[fault])
    if fault == "hangs":
        monkeypatch.setattr(tools, "TIMEOUT_S", 0.3)
    with monkeypatch.context() as patch:
        patch.setenv("PATH", str(fake.parent), prepend=os.pathsep)
        if tool == "spirv-val" and fault.startswith("prints"):
            load()  # its status is all that it has to say
        else:
            refusals.fault(load, ShaderCompileError)
    monkeypatch.setattr(tools, "TIMEOUT_S", 30)
    assert load().local_size == (4, 1, 1)


@pytest.mark.parametrize("tool", TOOLS)
def test_a_tool_that_is_missing(tmp_path, monkeypatch, tool):
    folder = tmp_path / "bin"
    folder.mkdir()
    for other in {*TOOLS} - {tool}:
        (folder / other).symlink_to(tools.find(other, ""))
    with monkeypatch.context() as patch:
        patch.setenv("PATH", str(folder))
        patch.setattr("vkops.lavapipe.package", lambda: None)
        with pytest.raises(ShaderCompileError, match=rf"^(.*: )?{tool} is not on PATH: install it"):
            load()
    assert load().local_size == (4, 1, 1)


# -- files -----------------------------------------------------------------------------------------

WRITE = """
import sys, time
from pathlib import Path
from vkops.system.output_files import write_output
def chunks():
    yield b"new" * 1000
    print("half", flush=True)
    time.sleep(60)
write_output(Path(sys.argv[1]), chunks())
"""
STORE = """
import os, sys, time
from vkops.shaders import compiler
def slow(*paths, **folders):
    print("half", flush=True)
    time.sleep(60)
os.replace = slow
compiler._CACHE.store("key", bytes(20))
"""

HANG = """
import signal, time
def hang():  # as Kompute does: no interrupt gets in
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    print('ready', flush=True)
    time.sleep(60)
"""
SUPERVISED = f"""{HANG}
import sys, vkops.cli.supervision as s
s.HANG_SECONDS, s.main, s.CHILD = 1, hang, {HANG + "hang()"!r}
sys.exit(s.program())
"""


def killed(code, *arguments):
    """Run code, and kill it when it says that it is half done."""
    command = [sys.executable, "-c", code, *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout.readline() == "half\n"
        running.kill()
    assert running.returncode == (-signal.SIGKILL if os.name == "posix" else 1)


@pytest.mark.parametrize("before", [None, b"old"])
def test_killed_while_an_output_is_written(tmp_path, before):
    from vkops.system.output_files import write_output

    path = tmp_path / "out.npy"
    if before:
        path.write_bytes(before)
    killed(WRITE, path)
    assert (path.read_bytes() if path.exists() else None) == before
    write_output(path, [b"new"])
    assert path.read_bytes() == b"new"


def test_killed_while_a_cache_entry_is_written():
    killed(STORE)
    cache = shaders.compiler._CACHE
    assert cache.load("key") is None
    cache.store("key", bytes(20))
    assert cache.load("key") == bytes(20)


@pytest.mark.posix("interrupts of process groups", tests_only=True)
def test_an_interrupted_driver_that_hangs():
    """The child does not answer: the parent ends it, and says so."""
    streams = dict.fromkeys(["stdout", "stderr"], subprocess.PIPE)
    command = [sys.executable, "-c", SUPERVISED]
    with subprocess.Popen(command, **streams, text=True, start_new_session=True) as running:
        assert running.stdout.readline() == "ready\n"
        os.killpg(running.pid, signal.SIGINT)
        assert running.stderr.read() == "Interrupted: the driver did not answer for 1 s\n"
    assert running.returncode == 130
