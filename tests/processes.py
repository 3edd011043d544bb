"""Python processes of their own, for what must not share one with the other tests; their time."""

import os
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[1]


def python(*arguments):
    """What a Python process prints that ends well and complains of nothing."""
    command = [sys.executable, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout


def run_with(folder, arguments, **variables):
    """The status, output and errors of a Python process that finds modules in a folder first."""
    done = subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{ROOT}", **variables},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


@contextmanager
def cpu_time(*, below):
    """A block that takes less than so many seconds of this process, whatever else the machine does."""
    start = time.process_time()
    try:
        yield
    finally:
        assert time.process_time() - start < below
