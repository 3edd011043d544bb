"""Coverage of shaders in data files of coverage.py, and the plugin by which it reports them.

For files that are not in Python, coverage.py asks a plugin which lines can run. A data file only
contains what did run. So this module also records what can run, with line numbers that are higher
by ``POSSIBLE``; the plugin separates the two. Therefore ``coverage combine`` merges both.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import coverage
from coverage.exceptions import CoverageException, NoSource

from vkops.errors import ModelError
from vkops.interpreter.coverage import FileCoverage

if TYPE_CHECKING:
    from coverage.plugin_support import Plugins
    from coverage.types import TConfigurable

    Arc = tuple[int, int]

POSSIBLE = 1 << 17
"""Added to the number of a line that can run; no file has as many lines."""

_EXIT = -1
"""The line number of a branch's end outside the function or the file."""


@contextmanager
def _data(path: Path) -> Iterator[coverage.CoverageData]:
    """Yield a data file that has been read, if it exists; ModelError if anything fails."""
    data = coverage.CoverageData(str(path))
    try:
        data.read()
        yield data
    except CoverageException as error:
        raise ModelError(f"{path}: cannot be data of coverage.py: {error}") from error
    finally:
        data.close()


def is_of_branches() -> bool:
    """Whether coverage.py is configured to record branches.

    Raises:
        ModelError: the configuration is wrong.
    """
    try:
        return bool(coverage.Coverage(data_file=None).get_option("run:branch"))
    except CoverageException as error:
        raise ModelError(f"coverage.py: {error}") from error


def add(path: Path, files: Mapping[str, FileCoverage], *, with_branches: bool) -> None:
    """Add the coverage of files, by their paths, to a data file; without files, only check it.

    Existing data keep their kind: with branches, or without.

    Raises:
        ModelError: it is damaged, or cannot be written.
    """
    with _data(path) as data:
        if data.measured_files():
            with_branches = data.has_arcs()
        if not files:
            return
        arcs = {name: {*_arcs(file)} for name, file in files.items()}
        if with_branches:
            data.add_arcs(arcs)
        else:
            data.add_lines({name: {line for line, _ in each} for name, each in arcs.items()})
        data.add_file_tracers(dict.fromkeys(files, f"{__name__}.{ShaderPlugin.__name__}"))
        data.write()


def _arcs(file: FileCoverage) -> Iterator[Arc]:
    """Yield pairs of line numbers: two equal ones for a line, two different ones for a branch.

    The numbers of everything that can run are higher by POSSIBLE. What ran is also yielded without
    this.
    """
    for line, count in file.lines.items():
        if 0 < line < POSSIBLE:
            yield line + POSSIBLE, line + POSSIBLE
            if count:
                yield line, line
    for (line, _), ways in file.branches.items():
        for way in ways:
            if line != way.line and 0 < line < POSSIBLE and way.line < POSSIBLE:
                yield line + POSSIBLE, (way.line + POSSIBLE if way.line else _EXIT)
                if way.taken:
                    yield line, way.line or _EXIT


class ShaderPlugin(coverage.CoveragePlugin):
    """Tells coverage.py which lines and branches of shaders can run."""

    def __init__(self) -> None:
        self._path = Path()

    def configure(self, config: TConfigurable) -> None:
        """Store the data file of a report."""
        self._path = Path(str(config.get_option("run:data_file")))

    def file_reporter(self, filename: str) -> coverage.FileReporter:
        """Return the object that a report asks for the lines of a file."""
        data = coverage.CoverageData(str(self._path))
        data.read()
        lines, arcs = data.lines(filename) or (), data.arcs(filename) or ()
        data.close()
        return _Reporter(filename, lines, arcs)


class _Reporter(coverage.FileReporter):
    """The lines and arcs of a file that can run, as recorded in its data."""

    def __init__(self, filename: str, lines: Iterable[int], arcs: Iterable[Arc]) -> None:
        super().__init__(filename)
        self._lines = {line - POSSIBLE for line in lines if line > POSSIBLE}
        self._arcs = {
            (line - POSSIBLE, to - POSSIBLE if to > 0 else to)
            for line, to in arcs
            if line > POSSIBLE and line != to
        }

    def source(self) -> str:
        try:
            return Path(self.filename).read_text("utf-8", "replace")
        except OSError as error:
            raise NoSource(f"No source for code: '{self.filename}'") from error

    def lines(self) -> set[int]:
        return self._lines

    def arcs(self) -> set[Arc]:
        return self._arcs

    def exit_counts(self) -> dict[int, int]:
        counts = dict.fromkeys(self._lines, 1)
        for line in {line for line, _ in self._arcs}:
            counts[line] = sum(each == line for each, _ in self._arcs)
        return counts

    def translate_lines(self, lines: Iterable[int]) -> set[int]:
        return {line for line in lines if line < POSSIBLE}

    def translate_arcs(self, arcs: Iterable[Arc]) -> set[Arc]:
        return {(line, to) for line, to in arcs if line < POSSIBLE}


def coverage_init(registry: Plugins, _options: Any = None) -> None:
    """Register the plugin; coverage.py calls this function."""
    registry.add_configurer(ShaderPlugin())
