"""What DxDispatch prints, to the letter; and resources as text.

One deliberate difference: INT8 and UINT8 are printed as numbers, not as characters.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt
from rich.console import Console, RenderableType
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)

from vkops.errors import one_line, printable
from vkops.runner.output_files import Read, chunks

FAILED = 0x80004005  # E_FAIL

_PRINTED_AT_ONCE = 1 << 16  # values, whose texts take up to a hundred bytes each


class _Console(Console):
    """Leaves it to the command line what to say when nobody reads on."""

    def on_broken_pipe(self) -> None:
        raise


def show(*parts: RenderableType) -> None:
    """Print tables and texts as wide as the terminal."""
    console = _Console()
    for part in parts:
        console.print(part)


def info(line: str) -> None:
    """Print a message on standard output.

    A model chooses names: none of its characters may control the terminal or begin another line.
    """
    end = "\n" if line.endswith("\n") else ""
    print("\t".join(map(printable, line.removesuffix(end).split("\t"))) + end)


def complain(line: str) -> None:
    """Print a warning or an error on standard error, after all that was printed before."""
    sys.stdout.flush()
    print(one_line(line), file=sys.stderr)


@contextmanager
def progress(name: str) -> Iterator[Callable[[int, int], None]]:
    """Give what shows a bar on standard error when it is told of bytes done and to do in all."""
    console = Console(stderr=True)
    columns = (TextColumn(name), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    bar = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
    tasks: list[TaskID] = []

    def report(done: int, total: int) -> None:
        if not tasks:
            tasks.append(bar.add_task(name, total=total))
            bar.start()
        bar.update(tasks[0], completed=done)

    try:
        yield report
    finally:
        bar.stop()


def command_started(index: int, text: str) -> str:
    """Return the line of ``--print_commands`` before a command."""
    return f"[StartCmd][{index:>4}]\t: {text}"


def command_completed(index: int, code: int = 0, message: str = "") -> str:
    """Return the lines of ``--print_commands`` after a command; ``code`` is an HRESULT."""
    return f"[EndCmd][{index:>4}]\t: hr={f'0x{code:x}':<10} {message}\n"


def print_values(
    name: str, dtype: np.dtype[Any], count: int, read: Read, *, verbose: bool = False
) -> None:
    """Print so many values of a resource.

    Plain: one line. Verbose: one line per value, with its bytes in hexadecimal, and a blank line.
    """
    write = sys.stdout.write
    write(f"Resource '{one_line(printable(name))}':")
    if verbose:
        write("\n")
    width, digits = len(str(count)), 2 * dtype.itemsize
    index = 0
    for values in _values(read, dtype, count):
        texts = format_values(values)
        if verbose:
            whole = values.tobytes()
            for text, start in zip(texts, range(0, len(whole), dtype.itemsize), strict=True):
                word = int.from_bytes(whole[start : start + dtype.itemsize], "little")
                write(f"[{index:>{width}}] {text} (0x{word:>{digits}X})\n")
                index += 1
        else:
            write((", " if index else " ") + ", ".join(texts))
            index += len(texts)
    write("\n")


def format_values(values: npt.NDArray[Any]) -> Sequence[str]:
    """Return numbers as a C++ stream prints them: six significant digits, integers in full."""
    if values.dtype.kind in "iuO":
        return [str(value) for value in values.tolist()]
    if values.dtype.kind == "b":
        return [str(int(value)) for value in values.tolist()]
    if values.dtype.kind == "c":
        return [f"({value.real:g},{value.imag:g})" for value in values.tolist()]
    return [f"{value:g}" for value in values.astype(np.float64).tolist()]


def _values(read: Read, dtype: np.dtype[Any], count: int) -> Iterator[npt.NDArray[Any]]:
    for chunk in chunks(read, count * dtype.itemsize, _PRINTED_AT_ONCE * dtype.itemsize):
        yield np.frombuffer(chunk, dtype)
