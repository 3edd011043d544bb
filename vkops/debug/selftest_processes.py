"""The self-test of a driver, run in several processes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from queue import SimpleQueue

import vkops
from vkops.debug.selftest import Check, check, names
from vkops.system.processes import cores, describe

MAX_PROCESSES = 4
"""Each process takes about 0.5 s to start."""

_FAMILIES = ("gather", "scatter", "strided", "transposes")
"""Movements with the same kernels; those that compile longest come first."""


def check_in_processes(device: vkops.Device) -> Iterator[Check]:
    """Check all properties in several processes: a CPU driver compiles kernels on one core only.

    The check during which a process ends has failed.
    """
    groups: dict[str, list[str]] = {}  # by family: one process compiles each kernel
    for name in names(device):
        groups.setdefault(next(filter(name.count, _FAMILIES), name), []).append(name)
    count = min(cores(), MAX_PROCESSES)
    idle = SimpleQueue[_Child]()

    def ask(group: Sequence[str]) -> list[Check]:
        child = idle.get()
        try:
            return [child.check(name) for name in group]
        finally:
            idle.put(child)

    with ExitStack() as stack, ThreadPoolExecutor(count) as threads:
        for _ in range(count):
            idle.put(stack.enter_context(_Child(device.info.index)))
        try:
            for checks in threads.map(ask, groups.values()):
                yield from checks
        finally:
            threads.shutdown(wait=False, cancel_futures=True)


class _Child:
    """A process that runs one check after the other; it is started at the first one."""

    def __init__(self, index: int) -> None:
        self._index = index
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> _Child:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            with self._process:  # ends when its input is closed
                self._process = None

    def check(self, name: str) -> Check:
        """Run a check in the process."""
        if self._process is None:
            program = _PROGRAM.format(path=sys.path, index=self._index)
            self._process = subprocess.Popen(
                [sys.executable, "-c", program],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                start_new_session=True,  # Ctrl+C is handled by the command alone
            )
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        with suppress(BrokenPipeError):
            process.stdin.write(f"{name}\n")
            process.stdin.flush()
        if line := process.stdout.readline():
            return Check(*json.loads(line))
        self._process = None
        with suppress(BrokenPipeError), process:
            pass
        return Check(name, False, f"the process ended: {describe(process.returncode)}")


_PROGRAM = """
import sys
sys.path[:] = {path!r}
from vkops.debug.selftest_processes import serve
serve({index})
"""


def serve(index: int) -> None:
    """Run the checks that standard input names, for ``check_in_processes``."""
    with vkops.Device(index) as device:
        for line in sys.stdin:
            name = line.rstrip("\n")
            try:
                result = check(device, name)
            except Exception as error:  # keeps tracebacks out of the output
                result = Check(name, False, f"{type(error).__name__}: {error}")
            print(json.dumps(result), flush=True)
