"""Shaders on a device in a process of their own: a driver that ends its process does not end the tests."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np

ABORTS = {"LLVM ERROR: Cannot emit physreg copy instruction": "llvmpipe"}
"""What drivers print that end the process (docs/systems.md), and a part of their names."""

PROGRAM = Path(__file__)


class DriverAbortedError(Exception):
    """The driver has ended the process of the shader; the text is what it has printed."""


def run_shaders(adapter, texts, sources, *, threads, words, staged, folder):
    """The words that each text makes of its array, or ``DriverAbortedError``."""
    folder = Path(folder)
    for n, (text, source) in enumerate(zip(texts, sources, strict=True)):
        (folder / f"{n}.comp").write_text(text)
        np.save(folder / f"{n}.npy", source)
    results = []
    while len(results) < len(texts):
        numbers = map(str, range(len(results), len(texts)))
        arguments = map(str, [PROGRAM, adapter.index, int(staged), folder, threads, words])
        command = [sys.executable, *arguments, *numbers]
        done = subprocess.run(command, capture_output=True, text=True, env=os.environ, check=False)
        while (path := folder / f"{len(results)}.out.npy").exists():
            results.append(np.load(path))
        if len(results) < len(texts):
            assert done.returncode < 0, done.stderr  # only a signal is the driver's fault
            results.append(DriverAbortedError(done.stderr))
    return results


def main(index, staged, folder, threads, words, *numbers):
    import vkops

    with vkops.Device(int(index), staged=bool(int(staged))) as device:
        for n in numbers:
            path = Path(folder, n)
            shader = device.compile_shader(path.with_suffix(".comp").read_text())
            result = shader(np.load(path.with_suffix(".npy")), threads=int(threads), out=int(words))
            np.save(path.with_suffix(".out.npy"), result.numpy())


if __name__ == "__main__":
    main(*sys.argv[1:])
