"""Python processes of their own, for what must not share one with the other tests."""

from __future__ import annotations

import subprocess
import sys


def python(*arguments):
    """What a Python process prints that ends well and complains of nothing."""
    command = [sys.executable, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout
