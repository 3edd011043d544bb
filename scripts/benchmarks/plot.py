"""A report as a plot: first the ratios of all workloads, then the speed in each of them.

The ratios have one panel for NumPy and for each peer, sorted, on a logarithmic axis. The speed is
in gigabytes read and written per second, with one panel for each workload.
"""

from __future__ import annotations

from pathlib import Path
from statistics import geometric_mean
from typing import TYPE_CHECKING

from vkops.bench import Report
from vkops.bench.report import LABELS
from vkops.errors import MissingPackageError, VkopsError
from vkops.plan.rounding import ceil_div

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import SubFigure

    from vkops.bench.measure import Result

_SUFFIXES = (".png", ".svg")
_COLUMNS = 3
_COLORS = {"vkops": "#0b6e99", "memcpy": "#d5d5d5", "buffer_copy": "#d5d5d5"}
_OTHER = "#8fa3ad"
_FASTER, _SLOWER = "#0b6e99", "#c9793f"
_BAR, _PANEL_HEAD, _PART_HEAD, _WIDTH = 0.17, 0.5, 1.1, 11.0  # inches


def check(path: Path) -> None:
    """Check, before anything is measured, that a plot can be made.

    Raises:
        VkopsError: the format is unknown, or the folder does not exist.
        MissingPackageError: matplotlib is not installed.
    """
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise MissingPackageError(
            "plot: matplotlib is not installed: pip install matplotlib", name="matplotlib"
        ) from error
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

    rows = ceil_div(len(report.results), _COLUMNS)
    labels = {**LABELS, **report.peers}
    heights = (
        _PART_HEAD + _PANEL_HEAD + _BAR * len(report.results),
        _PART_HEAD + rows * (_PANEL_HEAD + _BAR * len(labels)),
    )
    figure = Figure(figsize=(_WIDTH, sum(heights)), layout="constrained")
    overall, details = figure.subfigures(2, 1, squeeze=False, height_ratios=heights).flat
    _draw_ratios(overall, report)
    _draw_speeds(details, report, labels)
    figure.savefig(path, dpi=150)


def _draw_ratios(figure: SubFigure, report: Report) -> None:
    """Draw a sorted bar for each workload that vkops and another library can execute."""
    figure.suptitle(
        f"{report.device}, {report.driver}, {report.date}\n"
        "How many times as fast as each library vkops is; left of the line at 1, it is slower",
        fontsize=11,
    )
    others = {"numpy": LABELS["numpy"], **report.peers}
    panels = figure.subplots(1, len(others), squeeze=False, sharex=True)[0]
    for axes, (name, label) in zip(panels, others.items(), strict=True):
        shared = [result for result in report.results if name in result.seconds]
        ratios = sorted(((each.ratio("vkops", name), each.work) for each in shared), reverse=True)
        mean = f"{geometric_mean(ratio for ratio, _ in ratios):.2g}" if ratios else "none"
        axes.set_title(f"against {label}\ngeometric mean {mean}", fontsize=8, loc="left")
        axes.set_xscale("log")
        axes.axvline(1, color="black", linewidth=0.8)
        for position, (ratio, _) in enumerate(ratios):
            axes.barh(position, ratio - 1, left=1, color=_FASTER if ratio >= 1 else _SLOWER)
            side = "left" if ratio >= 1 else "right"
            axes.text(ratio, position, f" {ratio:.2g} ", ha=side, va="center", fontsize=6)
        axes.set_yticks(range(len(ratios)), [work for _, work in ratios], fontsize=7)
        axes.set_ylim(len(report.results) - 0.5, -0.5)
        axes.tick_params(axis="y", length=0)
        axes.tick_params(axis="x", labelsize=7)
        axes.set_xlabel("times as fast", fontsize=7)
        axes.xaxis.set_major_formatter("{x:g}")
        axes.xaxis.set_minor_formatter("")
        axes.margins(x=0.25)
        axes.spines[["top", "right", "left"]].set_visible(False)


def _draw_speeds(figure: SubFigure, report: Report, labels: dict[str, str]) -> None:
    figure.suptitle(
        "GB read and written per second, more is better; light: a plain copy of as many bytes",
        fontsize=11,
    )
    columns = min(_COLUMNS, len(report.results))
    grid = figure.subplots(ceil_div(len(report.results), columns), columns, squeeze=False).flat
    for number, axes in enumerate(grid):
        if number < len(report.results):
            _panel(axes, report.results[number], labels, named=number % columns == 0)
            if number + columns >= len(report.results):
                axes.set_xlabel("GB/s", fontsize=7)
        else:
            axes.set_axis_off()


def _panel(axes: Axes, result: Result, labels: dict[str, str], *, named: bool) -> None:
    for position, name in enumerate(labels):
        if name not in result.seconds:
            axes.text(0, position, " cannot", va="center", fontsize=7, color="#666666")
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
