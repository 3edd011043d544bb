"""How Kompute is loaded, and why not; it is replaced here by what a test needs."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

# A process that has no Kompute but what is put into sys.modules or sys.path before this.
REPORT = """
from vkops.errors import DeviceError
from vkops.gpu.adapters.kompute import load_kompute, native_state
try:
    load_kompute()
    print("loaded")
except DeviceError as error:
    print(error)
print(native_state())
"""
NEEDS_GIL = (
    "Kompute needs Python's global interpreter lock (GIL), which this process runs without: use a "
    "build of Python that has it"
)


def run(before: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", before + REPORT],
        env={**os.environ, "VKOPS_NATIVE": ""},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stderr == ""
    return done.stdout.splitlines()


def test_without_the_global_interpreter_lock_it_is_not_imported():
    """An import would switch the lock on, so neither module may be touched."""
    before = (
        "import sys\n"
        "sys._is_gil_enabled = lambda: False\n"
        "class Refused:\n"
        "    def find_spec(self, name, *_):\n"
        "        assert name not in ('kp', 'vkops_native'), name\n"
        "sys.meta_path.insert(0, Refused())\n"
    )
    assert run(before) == [NEEDS_GIL, NEEDS_GIL]


@pytest.mark.parametrize(
    ("error", "state"),
    [
        ("ModuleNotFoundError('nothing here')", "not installed (nothing here)"),
        ("ImportError('libvulkan.so.1: missing')", "cannot be loaded (libvulkan.so.1: missing)"),
    ],
)
def test_the_reason_why_it_cannot_be_imported(error, state):
    before = (
        "import sys\n"
        "class Broken:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name in ('kp', 'vkops_native'):\n"
        f"            raise {error}\n"
        "sys.meta_path.insert(0, Broken())\n"
    )
    reason = state.partition("(")[2].removesuffix(")")
    assert run(before) == [
        f"Kompute (the kp package) cannot be loaded: {reason}. scripts/wheels builds its wheel "
        "on Linux; at run time it needs libvulkan.so.1 (Debian and Ubuntu: apt install libvulkan1)",
        state,
    ]


def test_native_operations_of_another_version():
    before = (
        "import sys, types\n"
        "sys.modules['kp'] = types.ModuleType('kp')\n"
        "sys.modules['vkops_native'] = types.SimpleNamespace(interface=0)\n"
    )
    assert run(before) == [
        "loaded",
        "built for another version of vkops; scripts/wheels builds them again",
    ]
