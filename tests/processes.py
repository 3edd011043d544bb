"""Python processes of their own, for what must not share one with the other tests; their time."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import time
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path

import psutil
import pytest

ROOT = Path(__file__).parents[1]
SECONDS = 1500  # after which a process is taken to hang
HIDDEN = pytest.mark.posix("POSIX, which tests/portable hides", tests_only=True)
OWN_SITE = pytest.mark.wine("a sitecustomize of its own, as scripts/emulate has one")
IS_FREE_THREADED = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
SLANG = pytest.mark.skipif(
    (sys.platform == "win32" or IS_FREE_THREADED)
    and not (find_spec("slangpy") or shutil.which("slangc")),
    reason="needs vkops[slang]",
)
VULKAN = pytest.mark.skipif(
    not find_spec("vulkan"),
    reason="needs the package vulkan; cffi, which it needs, does not support Python 3.13t",
)
BOTH_WAYS = ["as it is", pytest.param("without POSIX", marks=HIDDEN)]


def descriptors():
    """The number of file descriptors that stay open: the least in half a second."""
    numbers = []
    for _ in range(10):
        numbers.append(len(os.listdir("/proc/self/fd")))
        time.sleep(0.05)
    return min(numbers)


def more_descriptors(held):
    """How many more descriptors than ``held`` stay open.

    Threads open some for a moment: those of Mesa's cache of shaders, and those which serve handles.
    """
    until = time.monotonic() + 20
    while (more := descriptors() - held) > 0 and time.monotonic() < until:
        pass
    return max(more, 0)


def outcome(*arguments, cwd=None, **variables):
    """The status, output and errors of a Python process with more variables in its environment."""
    return finished(sys.executable, *arguments, cwd=cwd, env={**os.environ, **variables})


def finished(*command, timeout=SECONDS, **options):
    """The status, output and errors of a program."""
    streams = {"capture_output": True, "text": True}
    command = [*map(str, command)]
    done = subprocess.run(command, **streams, timeout=timeout, check=False, **options)
    return done.returncode, without_notice(done.stdout), without_notice(done.stderr)


def without_notice(text):
    """A text without what vkops says when it has compiled for a second, on a slow machine.

    Where the root logger has a handler, which Kompute's first message installs, it has a prefix.
    """
    line = r"^(?:WARNING:vkops:)?compiling shaders, which takes more than .*\n"
    return re.sub(line, "", text, flags=re.MULTILINE)


def without_compiler(folder, **variables):
    """The environment of a process without programs: no compilers, and no other one, on PATH."""
    (folder / "no-programs").mkdir(exist_ok=True)
    hidden = {"PATH": str(folder / "no-programs"), "VKOPS_CACHE_DIR": str(folder / "empty-cache")}
    kept = {k: v for k, v in os.environ.items() if k not in ("VKOPS_GLSLANG", "VKOPS_SLANGC")}
    # A module in place of vkops_lavapipe, which has compilers.
    path = os.pathsep.join([str(ROOT / "tests/hidden"), os.environ.get("PYTHONPATH", "")])
    return kept | hidden | {"PYTHONPATH": path} | variables


def script(path, body):
    """Write a shell script that can be started as a program, where there are such scripts."""
    if not hasattr(os, "fork"):
        pytest.skip("needs POSIX: shell scripts as programs")
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


def python(*arguments):
    """What a Python process prints that ends well and complains of nothing."""
    status, printed, errors = outcome(*arguments)
    assert (status, errors) == (0, ""), errors
    return printed


def call(function, *arguments):
    """What a function of a test module prints, which runs in a process of its own and ends well.

    A process that hangs says where its threads are.
    """
    path = Path(function.__code__.co_filename)
    code = f"""import faulthandler, sys
faulthandler.dump_traceback_later({SECONDS}, exit=True)
sys.path[:0] = {[str(path.parent), str(path.parents[1])]!r}
import {path.stem} as module
module.{function.__name__}(*{arguments!r})"""
    status, printed, errors = finished(sys.executable, "-c", code, timeout=SECONDS + 60)
    assert (status, errors) == (0, ""), errors
    return printed


def run_with(folder, arguments, **variables):
    """The outcome of a Python process that finds modules in a folder first."""
    path = os.pathsep.join([str(folder), str(ROOT), os.environ.get("PYTHONPATH", "")])
    return outcome(*arguments, cwd=ROOT, **{"PYTHONPATH": path, **variables})


def wait_for_end(pid):
    """Wait until a process has ended, even if nobody asks for its status."""
    with suppress(psutil.NoSuchProcess):
        process, until = psutil.Process(pid), time.monotonic() + 60
        while process.status() != psutil.STATUS_ZOMBIE:
            assert time.monotonic() < until, f"process {pid} still runs"
            time.sleep(0.01)


@contextmanager
def cpu_time(*, below):
    """A block that takes less than so many seconds of this process, whatever else the machine does."""
    start = time.process_time()
    try:
        yield
    finally:
        assert time.process_time() - start < below
