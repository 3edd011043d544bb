"""Coverage of shaders: the sum over dispatches and processes, and the files that it is added to."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from vkops.debug import lcov
from vkops.errors import MissingPackageError, ModelError, import_late
from vkops.interpreter.coverage import BranchTarget, Coverage, FileCoverage
from vkops.system.output_files import exclusively, write_output

_DATA = re.compile(r"\.coverage(\..*)?")
"""The names of coverage.py's data files."""


@dataclass
class ShaderCoverage:
    """How often the lines of shaders' source files ran.

    Attributes:
        files: the coverage of files by their absolute paths, and of texts by names of their own.
        texts: the texts that are not files, by these names.
    """

    files: dict[str, FileCoverage] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, observer: Coverage) -> ShaderCoverage:
        """Return the coverage of a dispatch."""
        result, sources = cls(), observer.machine.program.sources
        for name, counts in observer.files().items():
            path = os.path.abspath(name)
            if not os.path.isfile(path) and name in sources:
                path = _name_of_text(name, text := "\n".join(sources[name]) + "\n")
                result.texts[path] = text
            result.files[path] = counts
        return result

    def add(self, other: ShaderCoverage) -> None:
        """Add the coverage of other dispatches."""
        self.texts |= other.texts
        for path, file in other.files.items():
            self.files.setdefault(path, FileCoverage()).add(file)

    def text(self, path: str) -> str:
        """Return the text of a file; "" if it cannot be read."""
        try:
            return self.texts.get(path) or Path(path).read_text("utf-8", "replace")
        except (OSError, ValueError):
            return ""

    def summary(self, path: Path) -> str:
        """Return a line that summarizes the coverage written to a file."""
        files = self.files.values()
        lines = _share(count for file in files for count in file.lines.values())
        ways = _share(way.taken for file in files for way in file.targets)
        return f"coverage of shaders: {lines} lines and {ways} branches in '{path}'"

    def to_json(self, known: set[str]) -> str:
        """Return the coverage as a line of JSON, without the texts in ``known``."""
        files = {
            path: (
                [*file.lines.items()],
                [(*key, ways) for key, ways in file.branches.items()],
                [(*key, count) for key, count in file.functions.items()],
            )
            for path, file in self.files.items()
        }
        texts = {name: text for name, text in self.texts.items() if name not in known}
        return json.dumps((files, texts))

    @classmethod
    def read(cls, path: Path) -> ShaderCoverage:
        """Read a tracefile of LCOV; ModelError if it is not one."""
        return cls(lcov.read(path))

    @classmethod
    def from_json(cls, line: str) -> ShaderCoverage:
        """Return the coverage from a line of ``to_json``."""
        files, texts = json.loads(line)
        result = cls(texts=texts)
        for path, (lines, branches, functions) in files.items():
            result.files[path] = FileCoverage(
                Counter(dict(lines)),
                {
                    (line, number): [BranchTarget(*way) for way in ways]
                    for line, number, ways in branches
                },
                Counter({(line, name): count for line, name, count in functions}),
            )
        return result


def _share(counts: Iterable[int]) -> str:
    """Return the share of the counts that are not 0, as text."""
    have_run = [count > 0 for count in counts]
    return f"{sum(have_run):,} of {len(have_run):,}"


def _name_of_text(name: str, text: str) -> str:
    """Return a file name for a text; equal texts get the same name."""
    digest = hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:12]
    stem, suffix = os.path.splitext(re.sub(r"[^\w.-]+", "_", name).strip("_.") or "shader")
    return f"{stem[-80:]}-{digest}{suffix or '.comp'}"


class OutputFile(ABC):
    """A file that coverage is added to, also by several processes at the same time."""

    def __init__(self, path: Path) -> None:
        self.path: Path = Path(os.path.abspath(path))

    @abstractmethod
    def check(self) -> None:
        """Raise a ModelError, before anything runs, if the file is damaged or cannot be written."""

    @abstractmethod
    def add(self, coverage: ShaderCoverage) -> ShaderCoverage:
        """Add coverage to the file; return the sum if the file has counts, else the coverage.

        Raises:
            ModelError: it is damaged, or cannot be written.
        """

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other processes from adding to the file in the block; an OSError is a ModelError."""
        try:
            with exclusively(self.path):
                if self.path.exists() and not os.access(self.path, os.W_OK):
                    raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
                yield
        except OSError as error:
            message = f"{self.path}: cannot be written: {error.strerror or error}"
            raise ModelError(message) from error

    def with_files_of_texts(self, coverage: ShaderCoverage) -> ShaderCoverage:
        """Write texts to files in a folder beside this file; return the coverage with these."""
        folder = self.path.with_name(f"{self.path.name.lstrip('.')}.sources")
        for name, text in coverage.texts.items():
            write_output(folder / name, [text.encode("utf-8", "backslashreplace")])
        files = coverage.files.items()
        return ShaderCoverage(
            {str(folder / path) if path in coverage.texts else path: each for path, each in files}
        )


class Tracefile(OutputFile):
    """A tracefile of LCOV."""

    def check(self) -> None:
        with self.locked():
            self._known()

    def _known(self) -> ShaderCoverage:
        return ShaderCoverage(lcov.read(self.path) if self.path.exists() else {})

    def add(self, coverage: ShaderCoverage) -> ShaderCoverage:
        with self.locked():
            total = self._known()
            total.add(self.with_files_of_texts(coverage))
            lines = "".join(f"{line}\n" for line in lcov.records(total.files))
            write_output(self.path, [lines.encode("utf-8", "surrogateescape")])
        return total


class DataFile(OutputFile):
    """A data file of coverage.py."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        try:
            self._plugin = import_late("vkops.debug.coverage_plugin")
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] != "coverage":
                raise
            message = f"{path}: needs the package coverage: pip install 'vkops[coverage]'"
            raise MissingPackageError(message, name="coverage") from error
        self._with_branches = self._plugin.is_of_branches()

    def check(self) -> None:
        with self.locked():
            self._plugin.add(self.path, {}, with_branches=self._with_branches)

    def add(self, coverage: ShaderCoverage) -> ShaderCoverage:
        with self.locked():
            files = self.with_files_of_texts(coverage).files
            self._plugin.add(self.path, files, with_branches=self._with_branches)
        return coverage


def coverage_file(path: Path) -> OutputFile:
    """Return a data file of coverage.py if the name is one of these, else a tracefile of LCOV."""
    return DataFile(path) if _DATA.fullmatch(path.name) else Tracefile(path)
