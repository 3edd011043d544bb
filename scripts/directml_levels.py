"""Write what DirectML publishes of ranks and data types into tests/pure/directml.json.

Usage: scripts/directml_levels.py FILE...

Each file is JSON with "operators", each of which has "levels": from each "feature_level" on, the
"dims" and "data_types" of each of its "tensors". A level is left out where nothing changes.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

TARGET = Path(__file__).parents[1] / "tests/pure/directml.json"


def rows(operator: dict[str, Any]) -> dict[str, dict[str, list[Any]]]:
    """Return the ranks and data types of each tensor from each feature level on."""
    levels: dict[str, dict[str, list[Any]]] = {}
    for entry in operator["levels"]:
        row = {
            name: [tensor["dims"]["min"], tensor["dims"]["max"], *sorted(tensor["data_types"])]
            for name, tensor in entry["tensors"].items()
        }
        if row not in [*levels.values()][-1:]:
            levels[entry["feature_level"]] = row
    return levels


def text(data: dict[str, dict[str, Any]]) -> str:
    """Return the file's text, with one line for each entry of a section."""
    sections = [
        f' "{section}": {{\n'
        + ",\n".join(f'  "{name}": {json.dumps(entry)}' for name, entry in entries.items())
        + "\n }"
        for section, entries in data.items()
    ]
    return "{\n" + ",\n".join(sections) + "\n}\n"


if __name__ == "__main__":
    data = json.loads(TARGET.read_text("utf-8"))
    published: dict[str, Any] = {}
    for file in sys.argv[1:]:
        published |= json.loads(Path(file).read_text("utf-8"))["operators"]
    names = [name for name in data["operators"] if name in published]
    data["levels"] = {name: rows(published[name]) for name in names}
    TARGET.write_text(text(data), "utf-8")
