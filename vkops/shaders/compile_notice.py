"""A line that names the shaders that a process compiles, if this takes more than a second."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from threading import Timer

from vkops.errors import one_line

DELAY_S = 1.0

_SHOWN = 3  # names, of which the last is the shader that is being compiled

_names: list[str] = []
_seconds: list[float] = []
_calls = count()
_lines: list[str] = []
"""The line, once the logger has it."""


@contextmanager
def compiling(name: str) -> Iterator[None]:
    """Compile a shader in a block, which counts towards the second."""
    if _lines or sys.is_finalizing():  # while Python exits, a new thread would never begin
        yield
        return
    _names.append(name)
    timer = Timer(max(0.0, DELAY_S - sum(_seconds)), _say)
    timer.daemon = True
    start = time.perf_counter()
    with suppress(RuntimeError):  # the system or the end of Python allows no further thread
        timer.start()
    try:
        yield
    finally:
        timer.cancel()
        _seconds.append(time.perf_counter() - start)


def _say() -> None:
    if next(_calls):  # several threads compile
        return
    names = list(dict.fromkeys(_names))
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    line = one_line(
        f"compiling shaders, which takes more than {DELAY_S:g} s: {', '.join(names[-_SHOWN:])}"
        f"{more}; later runs take them from the cache, which `vkops warm PROGRAM` fills before"
    )
    _lines.append(line)
    logging.getLogger("vkops").warning(line)
