"""Output of a run: DxDispatch's lines exactly, tables, and the values of resources.

One deliberate difference from DxDispatch: INT8 and UINT8 are printed as numbers, not characters.
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
from rich.table import Table

from vkops.errors import one_line, printable
from vkops.runner.output_files import Read, chunks

FAILED = 0x80004005  # E_FAIL

_PRINTED_AT_ONCE = 1 << 16  # values, whose texts take up to a hundred bytes each


class _Console(Console):
    """Raises BrokenPipeError, which the command line reports."""

    def on_broken_pipe(self) -> None:
        raise


def show(*parts: RenderableType) -> None:
    """Print tables and texts as wide as the terminal."""
    console = _Console()
    for part in parts:
        console.print(part)


def table(title: str | None, *headings: str) -> Table:
    """Return an empty table whose cells wrap."""
    made = Table(title=title, title_justify="left")
    for heading in headings:
        made.add_column(heading, overflow="fold")
    return made


def bounded(text: str) -> str:
    """Return a text of a model, such as a name, as one printable line of bounded length."""
    return one_line(printable(text))


def info(line: str) -> None:
    """Print a message on standard output, without characters that control the terminal."""
    print(printable(line))


def complain(line: str) -> None:
    """Print a warning or an error on standard error, after all that was printed before."""
    sys.stdout.flush()
    print(one_line(line), file=sys.stderr)


@contextmanager
def progress(name: str) -> Iterator[Callable[[int, int], None]]:
    """Yield a function of the bytes done and of all bytes, which shows a bar on standard error."""
    console = Console(stderr=True)
    text = TextColumn("{task.description}", markup=False)
    columns = (text, BarColumn(), DownloadColumn(), TimeRemainingColumn())
    bar = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
    tasks: list[TaskID] = []

    def report(done: int, total: int) -> None:
        if not tasks:
            tasks.append(bar.add_task(bounded(name), total=total))
            bar.start()
        bar.update(tasks[0], completed=done)

    try:
        yield report
    finally:
        bar.stop()


def command_started(index: int, text: str) -> None:
    """Print the line of ``--print_commands`` before a command."""
    print(f"[StartCmd][{index:>4}]\t: {bounded(text)}")


def command_completed(index: int, code: int = 0, message: str = "") -> None:
    """Print the lines of ``--print_commands`` after a command; ``code`` is an HRESULT."""
    print(f"[EndCmd][{index:>4}]\t: hr={f'0x{code:x}':<10} {one_line(message)}\n")


def print_values(
    name: str, dtype: np.dtype[Any], count: int, read: Read, *, verbose: bool = False
) -> None:
    """Print so many values of a resource.

    Plain: one line. Verbose: one line per value, with its bytes in hexadecimal, and a blank line.
    """
    write = sys.stdout.write
    write(f"Resource '{bounded(name)}':" + ("\n" if verbose else ""))
    size, width, index = dtype.itemsize, len(str(count)), 0
    for chunk in chunks(read, count * size, _PRINTED_AT_ONCE * size):
        texts = format_values(np.frombuffer(chunk, dtype))
        if verbose:
            for number, text in enumerate(texts):
                word = int.from_bytes(chunk[number * size : (number + 1) * size], "little")
                write(f"[{index + number:>{width}}] {text} (0x{word:>{2 * size}X})\n")
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
