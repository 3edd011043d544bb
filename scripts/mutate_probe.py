"""Records which tests reach which places, and how long tests take, where scripts/mutate runs all.

Each place calls ``reached`` with its number. The plugin of pytest says which test runs; child
processes have its name from pytest's variable.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Any

RECORD, DURATIONS = (Path(__file__).with_name(name) for name in ("reached.txt", "seconds.txt"))

_test = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" (")[0]
_seen: set[int] = set()
_open = os.open
"""The functions of the system themselves, which some tests replace."""
_write = os.write
_close = os.close


def reached(number: int) -> None:
    """Record a place, once for each test; None lets the expression there follow by ``or``."""
    if number not in _seen:
        _seen.add(number)
        _append(RECORD, f"{number} {_test}\n")


def _append(path: Path, line: str) -> None:
    with contextlib.suppress(OSError):  # tests limit files and their sizes
        file = _open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        _write(file, line.encode())
        _close(file)


def pytest_runtest_logstart(nodeid: str) -> None:
    """Record from now on for another test."""
    global _test
    _test = nodeid
    _seen.clear()


def pytest_runtest_logreport(report: Any) -> None:
    """Record how long a test took, in the process that ran it."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        _append(DURATIONS, f"{report.duration:.3f} {report.nodeid}\n")
