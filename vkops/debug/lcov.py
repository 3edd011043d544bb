"""Coverage in the format of LCOV: tracefiles, which geninfo writes and genhtml reads."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from vkops.errors import ModelError, show
from vkops.interpreter.coverage import BranchTarget, FileCoverage
from vkops.system.files import read_regular

MAX_BYTES = 256 << 20
"""The maximum size in bytes of a tracefile that is read."""

_NUMBER = r"(\d{1,18})"
_FORMS = {
    "SF": re.compile("(.+)"),
    "FN": re.compile(rf"{_NUMBER},(?:\d+,)?(.+)"),
    "FNDA": re.compile(rf"{_NUMBER},(.+)"),
    "FNL": re.compile(rf"(\d+),{_NUMBER}(?:,\d+)?"),  # from LCOV 2.2 on, with FNA
    "FNA": re.compile(rf"(\d+),{_NUMBER},(.+)"),
    "BRDA": re.compile(rf"{_NUMBER},(e?\d+),.*,(?:{_NUMBER}|-)"),
    "DA": re.compile(rf"{_NUMBER},{_NUMBER}(?:,.*)?"),
    "end_of_record": re.compile("()"),
}
_TOTALS = ("", "TN", "VER", "FNF", "FNH", "BRF", "BRH", "LF", "LH", "MCDC", "MCF", "MCH")


def records(files: Mapping[str, FileCoverage]) -> Iterator[str]:
    """Yield the lines of a tracefile for files, by their paths."""
    yield "TN:"
    for path, file in sorted(files.items()):
        yield f"SF:{path}"
        named = Counter(name for _, name in file.functions)
        # The names of functions must differ in a file.
        functions = {
            f"{name}:{line}" if named[name] > 1 else name: (line, count)
            for (line, name), count in sorted(file.functions.items())
        }
        for name, (line, _) in functions.items():
            yield f"FN:{line},{name}"
        for name, (_, count) in functions.items():
            yield f"FNDA:{count},{name}"
        yield from _totals("FN", file.functions.values())
        for (line, block), ways in sorted(file.branches.items()):
            has_run = any(way.taken for way in ways)
            for number, way in enumerate(ways):
                yield f"BRDA:{line},{block},{number},{way.taken if has_run else '-'}"
        yield from _totals("BR", (way.taken for way in file.targets))
        for line, count in sorted(file.lines.items()):
            yield f"DA:{line},{count}"
        yield from _totals("L", file.lines.values())
        yield "end_of_record"


def _totals(tag: str, counts: Iterable[int]) -> Iterator[str]:
    """Yield the number of parts, and the number of parts that ran."""
    have_run = [count > 0 for count in counts]
    yield f"{tag}F:{len(have_run)}"
    yield f"{tag}H:{sum(have_run)}"


def read(path: Path) -> dict[str, FileCoverage]:
    """Read a tracefile, which another tool may have written; records of the same file are added.

    Raises:
        ModelError: it cannot be read, or it is not a tracefile.
    """
    try:
        text = read_regular(path, MAX_BYTES).decode("utf-8", "surrogateescape")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ModelError(f"{path}: cannot be read: {reason}") from error
    files: dict[str, FileCoverage] = {}
    record: list[tuple[str, tuple[str, ...]]] = []
    number = 0
    for number, line in enumerate(text.split("\n"), 1):
        tag, _, rest = line.strip().partition(":")
        if tag in _TOTALS or tag.startswith("#"):
            continue
        match = _FORMS[tag].fullmatch(rest) if tag in _FORMS else None
        if match is None or (tag == "SF") == bool(record):
            raise ModelError(f"{path}:{number}: got {show(line)}, must be a line of LCOV's format")
        record.append((tag, match.groups("0")))
        if tag == "end_of_record":
            (_, (name,)), *lines = record
            files.setdefault(name, FileCoverage()).add(_file(lines))
            record = []
    if record:
        raise ModelError(f"{path}:{number}: the last record has no end: the file is damaged")
    return files


def _file(lines: Iterable[tuple[str, tuple[str, ...]]]) -> FileCoverage:
    """Return the coverage of a file from the lines of its record, each with a tag and fields."""
    file = FileCoverage()
    branches: dict[tuple[int, str], list[BranchTarget]] = {}
    begins: dict[str, int] = {}  # first lines of functions by name or number
    calls: dict[str, tuple[str, int]] = {}
    for tag, fields in lines:
        if tag == "DA":
            file.lines[int(fields[0])] += int(fields[1])
        elif tag == "BRDA":
            branches.setdefault((int(fields[0]), fields[1]), []).append(
                BranchTarget(0, int(fields[2]))
            )
        elif tag in ("FN", "FNL"):
            first, name = fields if tag == "FN" else fields[::-1]
            begins[name] = int(first)
        elif tag in ("FNDA", "FNA"):
            key, count, name = fields if tag == "FNA" else (fields[1], *fields)
            calls[name] = key, int(count)
    for called, (key, times) in calls.items():
        begin = begins.get(key, 0)
        file.functions[begin, called.removesuffix(f":{begin}")] += times
    numbers: Counter[int] = Counter()
    for (line, _), ways in branches.items():
        file.add_branch((line, numbers[line]), ways)
        numbers[line] += 1
    return file
