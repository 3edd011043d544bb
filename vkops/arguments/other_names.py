"""Names of CuPy, PyOpenCL, wgpu, Kompute and NumPy, with what to use instead.

The names are in ``other_names.txt``, which is read when an attribute is missing for the first time.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path
from typing import Any, NoReturn

FILE = Path(__file__).with_suffix(".txt")

NOTHING = "nothing: "
"""The beginning of the text of a name that has no replacement, before the reason."""


@lru_cache(maxsize=1)
def table() -> dict[str, str]:
    """Return the replacement for each name, in the order of the file.

    A name with a dot in front is an attribute of objects only, and ``*`` in a name stands for any
    letters.
    """
    text = FILE.read_text("utf-8")
    rows = [line.split("\t") for line in text.splitlines() if line and line[0] != "#"]
    return {name: instead for names, instead in rows for name in names.split()}


def row_of(name: str, *, of_module: bool) -> str | None:
    """Return the entry of the table that matches a name, or None."""
    for exact in (name,) if of_module else (f".{name}", name):
        if exact in table():
            return exact
    return next((each for each in table() if "*" in each and fnmatchcase(name, each)), None)


@lru_cache(maxsize=512)
def hint(name: str, *, of_module: bool = False) -> str:
    """Return the end of the error for a missing attribute: what to use instead; "" if unknown.

    >>> hint("create_sampler")
    ': use device.sampler(filter=, address=, normalized=)'
    >>> hint("no_such_name")
    ''
    """
    # NumPy and others often look for names with underscores: answer without reading the table.
    row = None if name[:1] == "_" else row_of(name, of_module=of_module)
    if row is None:
        return ""
    instead = table()[row].format(name=name) if "{name}" in table()[row] else table()[row]
    if instead.startswith(NOTHING):
        return f": there is no replacement: {instead.removeprefix(NOTHING)}"
    return f": use {instead}"


def suggest_names(*kinds: type) -> None:
    """For these classes, add a replacement to the error for an attribute that does not exist."""

    def missing(self: Any, name: str) -> NoReturn:
        message = f"vkops.{type(self).__name__} has no attribute {name!r}{hint(name)}"
        raise AttributeError(message, name=name, obj=self)

    for kind in kinds:
        kind.__getattr__ = missing  # type: ignore[attr-defined]
