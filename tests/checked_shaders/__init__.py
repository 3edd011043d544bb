"""Shaders that ``vkops debug check`` is run on: each file says what is found in it.

Its first line may have options of the command: ``// vkops debug check --groups 4``; files that they
name are in the same folder. A line with findings ends with ``//!`` and their kinds, separated by
commas; nothing else may be found. A shader of ``faulty`` has findings, one of ``correct`` has none.
A new file is a new case.
"""

import re
import shlex
from pathlib import Path
from typing import NamedTuple

from vkops.cli import debug_commands

FOLDER = Path(__file__).parent


class Case(NamedTuple):
    """A shader, the options of the command, and its findings: numbers of lines and kinds."""

    path: Path
    options: list[str]
    findings: set[tuple[int, str]]


def _read(path):
    lines = path.read_text("utf-8").splitlines()
    options = re.match(r"// vkops debug check (.*)", lines[0])
    marks = ((n, line.partition("//!")) for n, line in enumerate(lines, 1))
    findings = {
        (n, kind.strip()) for n, (_, mark, kinds) in marks if mark for kind in kinds.split(",")
    }
    return Case(path, shlex.split(options[1]) if options else [], findings)


def loaded(case):
    """Return what ``vkops.debug.check`` runs; the current folder is that of the case."""
    context = debug_commands.check.make_context("check", [case.path.name, *case.options])
    arguments = dict(context.params)
    return debug_commands.case_of(arguments.pop("target"), arguments)


FAULTY, CORRECT = (
    {path.stem: _read(path) for path in sorted((FOLDER / name).glob("*.comp"))}
    for name in ("faulty", "correct")
)
