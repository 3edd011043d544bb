"""Draw docs/graph.svg, the picture of README.md: where the elements of a graph go.

The colours are those of the parts that the graph splits off. The labels have another colour in dark
mode.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from vkops import dml
from vkops.plan import execute

CELL, GAP, TOP = 38, 74, 30
COLOURS = ("#79b8ff", "#ffab70", "#85e89d")
STYLE = (
    "text{font:15px sans-serif;text-anchor:middle;fill:#1b1f23}.label{font-weight:bold}"
    "@media(prefers-color-scheme:dark){.label{fill:#f0f6fc}}"
)


def plan() -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """Return the numbers of the elements of the input, and of the output of the graph."""
    graph = dml.Graph()
    x = graph.input(dml.BufferTensorDesc(dml.TensorDataType.INT32, [4, 6]))
    left, middle, right = graph.split(x, 1, [1, 3, 2])
    graph.output(graph.join([right, left, middle], 1))
    source = np.arange(24, dtype=np.int32).reshape(4, 6)
    (result,) = execute(graph.desc().lower(), [source.reshape(-1).view(np.uint8)])
    return source, result.view(np.int32).reshape(4, 6)


def cells(numbers: npt.NDArray[np.int32], left: int, label: str) -> Iterator[str]:
    """Draw a tensor: a cell has the number of an element of the input, and the colour of a part."""
    yield f'<text class="label" x="{left + numbers.shape[1] * CELL // 2}" y="20">{label}</text>'
    for (row, column), number in np.ndenumerate(numbers):
        x, y = left + column * CELL, TOP + row * CELL
        colour = COLOURS[int(np.searchsorted([1, 4], number % 6, "right"))]
        side = f'width="{CELL - 2}" height="{CELL - 2}"'
        yield f'<rect x="{x}" y="{y}" {side} rx="4" fill="{colour}"/>'
        yield f'<text x="{x + CELL // 2 - 1}" y="{y + CELL // 2 + 4}">{number}</text>'


def picture() -> str:
    """Return the picture as SVG."""
    source, result = plan()
    width, height = 12 * CELL + GAP, TOP + 4 * CELL
    arrow = f'<text class="label" x="{width // 2}" y="{TOP + 2 * CELL + 5}">→</text>'
    title = "split(x, axis=1), then join([right, left, middle]): one dispatch"
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">',
        f"<title>{title}</title><style>{STYLE}</style>",
        *cells(source, 0, "input"), arrow, *cells(result, 6 * CELL + GAP, "output"), "</svg>", "",
    ])  # fmt: skip


if __name__ == "__main__":
    target = Path(sys.argv[1] if sys.argv[1:] else Path(__file__).parents[1] / "docs/graph.svg")
    target.write_text(picture(), encoding="utf-8")
