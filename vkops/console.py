"""Output in the terminal: tables, messages, DxDispatch's lines, and progress."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from io import StringIO

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from vkops.errors import one_line, printable

FAILED = 0x80004005  # E_FAIL
TEXT_WIDTH = 120  # columns of tables that are made as text
FILE_WIDTH = 10_000  # columns of what is no terminal: programs that read it need whole names
shows_activity = False  # the terminal of another program is its own


class _Console(Console):
    """Raises BrokenPipeError, which the command line reports."""

    def on_broken_pipe(self) -> None:
        raise


def show(*parts: RenderableType) -> None:
    """Print tables and texts as wide as the terminal; as wide as they are to files and pipes."""
    console = _Console()
    if not (console.is_terminal or os.environ.get("COLUMNS")):
        console.width = FILE_WIDTH
    for part in parts:
        console.print(part)


def text(*parts: RenderableType) -> str:
    """Return tables and texts as lines of a width that does not depend on the terminal."""
    console = _Console(file=StringIO(), width=TEXT_WIDTH, color_system=None)
    with console.capture() as shown:
        for part in parts:
            console.print(part)
    return "\n".join(map(str.rstrip, shown.get().splitlines()))


Rows = Iterable[Sequence[str | Text]]
"""The cells of a table; strings are shown as one line of bounded length."""


def table(title: str | None, headings: Iterable[str], rows: Rows) -> Table:
    """Return a table whose cells wrap."""
    result = Table(title=title, title_justify="left")
    for heading in headings:
        result.add_column(heading, overflow="fold")
    return _filled(result, rows)


def figures(
    texts: Iterable[str],
    numbers: Iterable[str],
    rows: Rows,
    *,
    title: str | None = None,
    gap: int = 1,
) -> Table:
    """Return a table without lines, with columns of texts, then of numbers.

    Only texts after the first column wrap.
    """
    result = Table(
        title=title, title_justify="left", box=None, pad_edge=False, padding=(0, gap, 0, 0)
    )
    for number, heading in enumerate(texts):
        result.add_column(heading, no_wrap=number == 0)
    for heading in numbers:
        result.add_column(heading, justify="right", no_wrap=True)
    return _filled(result, rows)


def _filled(table: Table, rows: Rows) -> Table:
    for row in rows:
        table.add_row(*(Text(one_line(cell)) if isinstance(cell, str) else cell for cell in row))
    return table


def bounded(text: str) -> str:
    """Return a text of a model, such as a name, as one printable line of bounded length."""
    return one_line(printable(text))


def info(line: str) -> None:
    """Print a message on standard output, without characters that control the terminal."""
    print(printable(line))


def lines(label: str, text: str) -> None:
    """Print a label and, below it, the lines of a text, as ``info`` does."""
    for line in (label, *text.splitlines()):
        info(line)


def complain(line: str) -> None:
    """Print a warning or an error on standard error, after all that was printed before."""
    sys.stdout.flush()
    print(one_line(line), file=sys.stderr)


@contextmanager
def progress(name: str) -> Iterator[Callable[[int, int], None]]:
    """Yield a function of the bytes done and of all bytes, which shows a bar on standard error."""
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        TaskID,
        TextColumn,
        TimeRemainingColumn,
    )

    console = Console(stderr=True)
    text = TextColumn("{task.description}", markup=False)
    columns = (text, BarColumn(), DownloadColumn(), TimeRemainingColumn())
    disabled = not _shows_progress(console)
    bar = Progress(*columns, console=console, transient=True, disable=disabled)
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


def _shows_progress(console: Console) -> bool:
    """Whether it is a terminal, or a notebook that has widgets."""
    return console.is_terminal or (console.is_jupyter and find_spec("ipywidgets") is not None)


@contextmanager
def activity(text: Callable[[], str]) -> Iterator[None]:
    """Show what is being done on standard error, if it is a terminal, until the block ends."""
    from rich.live import Live

    console = Console(stderr=True)
    if not (shows_activity and _shows_progress(console)):
        yield
        return
    with Live(get_renderable=lambda: Text(bounded(text())), console=console, transient=True):
        yield


def command_started(index: int, text: str) -> None:
    """Print the line of ``--print_commands`` before a command."""
    print(f"[StartCmd][{index:>4}]\t: {bounded(text)}")


def command_completed(index: int, code: int = 0, message: str = "") -> None:
    """Print the lines of ``--print_commands`` after a command; ``code`` is an HRESULT."""
    print(f"[EndCmd][{index:>4}]\t: hr={f'0x{code:x}':<10} {one_line(message)}\n")
