"""Statistics of shaders on GPUs, as tables, and compared with earlier ones."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from rich.table import Table

from vkops import console
from vkops.errors import ModelError
from vkops.system.output_files import write_output

Figures = Mapping[str, Mapping[str, Mapping[str, float]]]
"""Statistics by GPU, by shader and by name."""

TOLERANCE = 1.05
"""The factor by which a statistic may get worse."""

COLUMNS = {
    "VGPRs": "VGPRs",
    "Spilled VGPRs": "Spills",
    "Spilled SGPRs": "SGPR\nspills",
    "LDS size": "LDS\nbytes",
    "Scratch size": "Scratch\nbytes",
    "Subgroups per SIMD": "Sub-\ngroups",
    "Instructions": "In-\nstruc-\ntions",
    "VALU": "VALU",
    "SALU": "SALU",
    "VMEM": "VMEM",
    "SMEM": "SMEM",
    "Latency": "Latency",
    "Inverse Throughput": "Inverse\nthrough-\nput",
}
"""The headings of the statistics, by Mesa's names; versions before 24 have fewer."""

COMPARED = (*COLUMNS, "Branches")
"""The statistics that ``changes`` compares."""

_ONLY_IF_THERE_ARE_SOME = ("Spilled SGPRs", "LDS size", "Scratch size")

_BETTER_IF_MORE = ("Subgroups per SIMD",)


def table(title: str, shaders: Mapping[str, Mapping[str, float]]) -> Table:
    """Return a table of shaders with their statistics."""
    names = []
    for name in COLUMNS:
        values = [figures[name] for figures in shaders.values() if name in figures]
        if any(values) or (values and name not in _ONLY_IF_THERE_ARE_SOME):
            names.append(name)
    rows = (
        [shader, *[f"{figures[n]:,.0f}" if n in figures else "" for n in names]]
        for shader, figures in shaders.items()
    )
    result = console.figures(["Shader"], [COLUMNS[name] for name in names], rows, title=title)
    result.columns[0].vertical = "bottom"
    return result


class Change(NamedTuple):
    """A statistic that has changed."""

    gpu: str
    shader: str
    figure: str
    before: float
    after: float

    @property
    def is_worse(self) -> bool:
        """Whether it has become worse by more than TOLERANCE."""
        if self.figure in _BETTER_IF_MORE:
            return self.after * TOLERANCE < self.before
        return self.after > self.before * TOLERANCE


def changes(before: Figures, after: Figures) -> Iterator[Change]:
    """Yield the statistics that differ for the same shader on the same GPU."""
    for gpu, shaders in after.items():
        for shader, figures in shaders.items():
            known = before.get(gpu, {}).get(shader, {})
            for name in COMPARED:
                if name in known and name in figures and known[name] != figures[name]:
                    yield Change(gpu, shader, name, known[name], figures[name])


def table_of_changes(changes: Sequence[Change]) -> Table:
    """Return a table of statistics that have changed."""
    rows = (
        (*each[:3], f"{each.before:,.0f}", f"{each.after:,.0f}", "worse" if each.is_worse else "")
        for each in changes
    )
    return console.figures(("GPU", "Shader", "Figure"), ("Before", "Now", ""), rows)


def write(path: Path, figures: Figures) -> None:
    """Write statistics to a file, for ``read``."""
    write_output(path, [json.dumps(figures, indent=1).encode()])


def read(path: Path) -> Figures:
    """Return the statistics in a file."""
    try:
        return {
            gpu: {
                shader: {name: float(value) for name, value in figures.items()}
                for shader, figures in shaders.items()
            }
            for gpu, shaders in json.loads(path.read_bytes()).items()
        }
    except OSError as error:
        raise ModelError(f"{path}: cannot be read: {error.strerror}") from error
    except (ValueError, AttributeError, TypeError) as error:
        message = "must be a file that `vkops shader stats --json` has written"
        raise ModelError(f"{path}: {message}") from error
