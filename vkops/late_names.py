"""Public names of packages, which import each at its first use."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from pathlib import Path


def modules_of(file: str) -> Mapping[str, str]:
    """Return the public names of a package, each with its module, from the type stub beside it."""
    stub = Path(file).with_suffix(".pyi").read_text(encoding="utf-8")
    return {
        name.name: statement.module or ""
        for statement in ast.parse(stub).body
        if isinstance(statement, ast.ImportFrom)
        for name in statement.names
    }
