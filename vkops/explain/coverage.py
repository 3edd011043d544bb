"""Coverage of shaders, for the terminal and as an HTML page."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from rich.console import RenderableType
from rich.text import Text

from vkops import console
from vkops.debug.shader_coverage import OutputFile, ShaderCoverage, coverage_file
from vkops.errors import printable
from vkops.explain.page import PAGE_CSS, part, template, write_text
from vkops.interpreter.coverage import BranchTarget, FileCoverage

MAX_FILES = 200
"""Files of which a page shows the text."""

MAX_LINES = 50_000
"""Lines of all files that a page shows."""


class SourceRow(NamedTuple):
    """A line of a file, which ran some ``times``: None if it has no code.

    The state is a class of the page.
    """

    number: int
    text: str
    times: int | None
    ways: Sequence[str]
    state: str


class FileRow(NamedTuple):
    """A file, with how much of it ran."""

    name: str
    path: str
    file: FileCoverage

    @property
    def lines(self) -> str:
        """How many lines ran."""
        return share(self.file.lines.values())

    @property
    def branches(self) -> str:
        """How many ways of branches were taken."""
        return share(way.taken for way in self.file.targets)

    @property
    def functions(self) -> str:
        """How many functions were called."""
        return share(self.file.functions.values())

    @property
    def calls(self) -> list[tuple[int, str, int]]:
        """The line, the name and the calls of each function."""
        return [(line, name, count) for (line, name), count in sorted(self.file.functions.items())]


class CoveragePage(OutputFile):
    """A page of HTML, which is written for what is added."""

    def check(self) -> None:
        with self.locked():
            pass

    def add(self, coverage: ShaderCoverage) -> ShaderCoverage:
        write_text(coverage_page(coverage), self.path)
        return coverage


def output_file(path: Path) -> OutputFile:
    """Return a file for coverage of the kind that its name says, which can be written."""
    file = CoveragePage(path) if path.suffix == ".html" else coverage_file(path)
    file.check()
    return file


def coverage_page(coverage: ShaderCoverage) -> str:
    """Return the page as text."""
    files = file_rows(coverage)
    shown, available = [], MAX_LINES
    for row in files[:MAX_FILES]:
        lines = source_rows(coverage.text(row.path), row.file)
        shown.append((row, lines[:available], max(0, len(lines) - available)))
        available = max(0, available - len(lines))
    css = PAGE_CSS + part("coverage.css")
    return template("coverage.html").render(files=files, shown=shown, css=css, total=total(files))


def file_rows(coverage: ShaderCoverage) -> list[FileRow]:
    """Return the files by their names, which are relative below the current folder."""
    here = os.getcwd()
    rows = []
    for path, file in sorted(coverage.files.items()):
        is_below = os.path.isabs(path) and Path(path).is_relative_to(here)
        rows.append(FileRow(os.path.relpath(path, here) if is_below else path, path, file))
    return rows


def total(rows: Iterable[FileRow]) -> FileRow:
    """Return the row of all files."""
    file = FileCoverage()
    for number, row in enumerate(rows):  # equal lines of different files are different lines
        at = number << 32
        file.lines.update({at + line: count for line, count in row.file.lines.items()})
        file.functions.update(
            {(at + line, name): count for (line, name), count in row.file.functions.items()}
        )
        file.branches |= {(at + line, n): ways for (line, n), ways in row.file.branches.items()}
    return FileRow("All files", "", file)


def share(counts: Iterable[int]) -> str:
    """Return how many counts are not 0: "3 of 4 (75 %)"; "" of none."""
    have_run = [count > 0 for count in counts]
    if not have_run:
        return ""
    # Only what ran whole has 100 %.
    return f"{sum(have_run)} of {len(have_run)} ({100 * sum(have_run) // len(have_run)} %)"


def source_rows(text: str, file: FileCoverage) -> list[SourceRow]:
    """Return the lines of a file; without its text, those that have code."""
    texts = dict(enumerate(text.splitlines(), 1)) or dict.fromkeys(sorted(file.lines), "")
    ways: dict[int, list[list[BranchTarget]]] = {}
    for (line, _), each in sorted(file.branches.items()):
        ways.setdefault(line, []).append(each)
    rows = []
    for number, code in texts.items():
        count = file.lines.get(number)
        taken = [way.taken for each in ways.get(number, ()) for way in each]
        state = "" if count is None else "ran" if count else "missed"
        state = "partial" if count and 0 in taken else state
        described = [_described(each) for each in ways.get(number, ())]
        rows.append(SourceRow(number, code.expandtabs(4), count, described, state))
    return rows


def _described(ways: Sequence[BranchTarget]) -> str:
    return ", ".join(f"{name}: {way.taken:,}" for name, way in zip(_names(ways), ways, strict=True))


def _names(ways: Sequence[BranchTarget]) -> list[str]:
    """Return the names of the ways of a branch, which are a condition's or a switch's."""
    if len(ways) <= 2:
        return ["true", "false"]
    return [*(f"case {number}" for number in range(1, len(ways))), "default"]


def render(coverage: ShaderCoverage) -> Iterator[RenderableType]:
    """Yield a table of the files, and lines about what did not run in each."""
    rows = file_rows(coverage)
    shown = rows + [total(rows)] * (len(rows) > 1)
    headings = "File", "Lines", "Branches", "Functions"
    yield console.table(None, headings, ((r.name, r.lines, r.branches, r.functions) for r in shown))
    for row in rows:
        for what, text in (
            ("lines not run", _not_run(row.file)),
            ("branches not taken", _not_taken(row.file)),
        ):
            if text:
                yield Text(printable(f"{row.name}: {what}: {text}"))


def _not_run(file: FileCoverage) -> str:
    """Return ranges of lines that did not run; lines without code do not end a range."""
    ranges: list[tuple[int, int]] = []
    has_ended = True
    for line, count in sorted(file.lines.items()):
        if not count:
            ranges[len(ranges) if has_ended else -1 :] = [
                (line if has_ended else ranges[-1][0], line)
            ]
        has_ended = count > 0
    return ", ".join(f"{first}-{last}" if last > first else f"{first}" for first, last in ranges)


def _not_taken(file: FileCoverage) -> str:
    """Return the ways of branches that ran which were not taken."""
    texts = []
    for (line, _), ways in sorted(file.branches.items()):
        names = [name for name, way in zip(_names(ways), ways, strict=True) if not way.taken]
        if len(names) < len(ways):
            texts += [f"{line} {name}" for name in names]
    return ", ".join(texts)
