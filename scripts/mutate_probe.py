"""Records which tests reach which places, in the copy of the tree where scripts/mutate runs all.

Each place calls ``reached`` with its number. The plugin of pytest says which test runs; child
processes have its name from pytest's variable.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

RECORD = Path(__file__).with_name("reached.txt")

_test = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" (")[0]
_seen: set[int] = set()
_open = os.open
"""The functions of the system themselves, which some tests replace."""
_write = os.write
_close = os.close


def reached(number: int) -> None:
    """Record a place, once for each test; None lets the expression there follow by ``or``."""
    if number in _seen:
        return
    _seen.add(number)
    with contextlib.suppress(OSError):  # tests limit files and their sizes
        file = _open(RECORD, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        _write(file, f"{number} {_test}\n".encode())
        _close(file)


def pytest_runtest_logstart(nodeid: str) -> None:
    """Record from now on for another test."""
    global _test
    _test = nodeid
    _seen.clear()
