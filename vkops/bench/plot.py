"""A report as a bar plot: gigabytes read and written per second, one panel for each workload."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from vkops.bench.peers import is_installed
from vkops.bench.report import LABELS, Report
from vkops.errors import MissingPackageError, VkopsError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from vkops.bench.measure import Result

_SUFFIXES = (".png", ".svg")
_COLUMNS = 3
_COLORS = {"vkops": "#0b6e99", "memcpy": "#d5d5d5", "buffer_copy": "#d5d5d5"}
_OTHER = "#8fa3ad"
_BAR, _PANEL_HEAD, _FIGURE_HEAD, _WIDTH = 0.17, 0.5, 0.9, 11.0  # inches


def check(path: Path) -> None:
    """Check, before anything is measured, that a plot can be made.

    Raises:
        VkopsError: the format is unknown, or the folder does not exist.
        MissingPackageError: matplotlib is not installed.
    """
    if not is_installed("matplotlib"):
        raise MissingPackageError(
            "plot: matplotlib is not installed: pip install 'vkops[plot]'", name="matplotlib"
        )
    if path.suffix not in _SUFFIXES:
        raise VkopsError(f"plot: got {str(path)!r}, must end in {' or '.join(_SUFFIXES)}")
    if not path.parent.is_dir():
        raise VkopsError(f"plot: there is no folder {str(path.parent)!r}")


def plot(report: Report, path: Path) -> None:
    """Write the plot as PNG or SVG, depending on the suffix of the file's name.

    Raises:
        VkopsError: see ``check``.
        OSError: the file cannot be written.
    """
    check(path)
    from matplotlib.figure import Figure

    labels = {**LABELS, **report.peers}
    columns = min(_COLUMNS, len(report.results))
    rows = -(-len(report.results) // columns)
    height = _FIGURE_HEAD + rows * (_PANEL_HEAD + _BAR * len(labels))
    figure = Figure(figsize=(_WIDTH, height), layout="constrained")
    figure.suptitle(
        f"{report.device.name}, {report.device.driver}, {report.date}\n"
        "GB read and written per second, more is better; light: a plain copy of as many bytes",
        fontsize=11,
    )
    grid = figure.subplots(rows, columns, squeeze=False).flat
    for number, axes in enumerate(grid):
        if number < len(report.results):
            _panel(axes, report.results[number], labels, named=number % columns == 0)
        else:
            axes.set_axis_off()
    figure.savefig(path, dpi=150)


def _panel(axes: Axes, result: Result, labels: dict[str, str], *, named: bool) -> None:
    for position, name in enumerate(labels):
        if name not in result.seconds:
            axes.text(0, position, " cannot", va="center", fontsize=7, color="#999999")
            continue
        speed = result.gigabytes(name)
        axes.barh(position, speed, color=_COLORS.get(name, _OTHER))
        weight = "bold" if name == "vkops" else "normal"
        axes.text(speed, position, f" {speed:.3g}", va="center", fontsize=7, fontweight=weight)
    axes.set_title(f"{result.work}: {result.what}", fontsize=8, loc="left")
    axes.set_yticks(range(len(labels)), labels.values() if named else [], fontsize=8)
    axes.tick_params(length=0)
    axes.set_ylim(len(labels) - 0.5, -0.5)
    axes.set_xticks([])
    axes.set_xlim(
        0, 1.15 * max(result.gigabytes(name) for name in labels if name in result.seconds)
    )
    axes.spines[["top", "right", "bottom"]].set_visible(False)
