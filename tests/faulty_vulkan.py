"""Programs whose driver fails: a library comes before the loader of Vulkan."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

START = """
import ctypes, json, os, sys
import numpy as np, vkops
faulty = ctypes.CDLL(os.environ["LD_PRELOAD"])
faulty.lose.argtypes = [ctypes.c_char]
index = int(sys.argv[1])
device = vkops.Device(index, staged=sys.argv[2] == "staged")
def call(use):
    try:
        return use()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
"""


@pytest.fixture(scope="module")
def faulty(tmp_path_factory):
    """Runs a program with functions of Vulkan that fail, and returns its output."""
    source = Path(__file__).with_name("faulty_vulkan.c")
    library = tmp_path_factory.mktemp("faulty") / "faulty.so"
    compiler = shutil.which("cc") or shutil.which("gcc")
    command = [compiler, "-shared", "-fPIC", "-Wall", "-Werror", source, "-o", library, "-ldl"]
    subprocess.run(command, check=True)

    def run(program, *arguments, errors="", **variables):
        done = subprocess.run(
            [sys.executable, "-c", START + program, *map(str, arguments)],
            env={**os.environ, "LD_PRELOAD": str(library), **variables},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        assert re.fullmatch(errors, done.stderr)
        return done.stdout

    return run
