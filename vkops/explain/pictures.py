"""Pictures of tensors: grids of cells for small tensors, blocks of rectangles for large ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import prod
from typing import NamedTuple

from vkops.explain.elements import NONE, Box, Elements, all_elements, boxes, rectangles
from vkops.explain.explanation import Movement, Tensor
from vkops.explain.tables import count, numbers, size_text
from vkops.plan.view import Ints, View

MAX_CELLS = 1024
"""Elements up to which a tensor is drawn cell by cell."""

MAX_CELLS_OF_A_SIDE = 4096
"""Elements that all inputs, or all outputs, of a plan may have together to be drawn as cells."""

MAX_COLUMNS, FEW_ROWS, MAX_ROWS, WRAPPED = 64, 16, 48, 32
"""Cells of a row at most, the preferred and the largest number of rows, and the cells of a row
where rows of the tensor are wrapped, or put side by side."""

FEW_COLUMNS = 12
"""Cells of a row up to which cells are large."""

MAX_STACKED = 8
"""Elements up to which a tensor of one column is drawn as a column."""

COLOURED = 64
"""Regions that have a colour of their own; all others share one."""

MAX_TENSORS = 32
"""Inputs, and outputs, of a plan that are drawn."""

MAX_RECTANGLES = 256
"""Rectangles of a block."""


class Part(NamedTuple):
    """A cell of a grid, or a rectangle of a block: its text, and its attributes in HTML."""

    text: str
    attributes: str


class Picture(NamedTuple):
    """A tensor as a grid of ``columns`` cells a row, or as a block whose width is to scale.

    ``width`` is that of a cell in characters, or that of a block in percent; ``columns`` is 0 for
    a block. ``key`` stands for an input in the cells of outputs.
    """

    name: str
    key: str
    description: str
    label: str
    columns: int
    width: float
    parts: Sequence[Part]


class Budget:
    """The number of cells and rectangles that a page may still have."""

    def __init__(self, parts: int) -> None:
        self._available = parts

    def available(self, limit: int) -> int:
        """Return how many of ``limit`` parts are available."""
        return min(self._available, limit)

    def take(self, parts: int) -> None:
        """Take parts out of the budget."""
        self._available -= parts


def style(region: int, regions: int, shade: float = 0.0) -> str:
    """The attribute for the colour of a region; a single region is shaded, to show its order."""
    if regions == 1:
        return f'style="--h:{round(250 - 220 * shade) % 360};"'
    if region >= COLOURED:
        return 'class="rest"'
    step = 360 / regions if regions <= 6 else 137.5  # neighbours differ as much as possible
    return f'style="--h:{round(250 + region * step) % 360};"'


def letter(number: int, of: int) -> str:
    """The letter for an input in the cells of outputs; empty if there is only one input.

    >>> letter(0, 1), letter(2, 3), letter(2, 30)
    ('', 'c', '2:')
    """
    if of == 1:
        return ""
    return chr(ord("a") + number) if of <= 26 else f"{number}:"


def pictures(movement: Movement, role: str, budget: Budget) -> Iterator[Picture]:
    """Draw the inputs or the outputs of a plan; ``role`` is ``"input"`` or ``"output"``."""
    tensors = movement.inputs if role == "input" else movement.outputs
    limit = min(MAX_CELLS, MAX_CELLS_OF_A_SIDE // min(MAX_TENSORS, len(tensors)))
    largest = max(tensor.nbytes for tensor in (*movement.inputs, *movement.outputs))
    for number, tensor in enumerate(tensors[:MAX_TENSORS]):
        size = movement.element_size(role, number)
        elements, sizes = tensor.nbytes // size, memory_shape(tensor, size)
        found = boxes(movement, role, number)
        if elements <= budget.available(limit):
            columns = columns_of(sizes)
            parts = _cells(movement, all_elements(elements, found), role)
            width: float = max(2, *(len(part.text) for part in parts))
            budget.take(elements)
        else:
            columns, width = 0, max(1.0, 100 * tensor.nbytes / largest)
            parts = _rectangles(movement, sizes, found, width, budget)
        nbytes = size_text(tensor.nbytes).replace(" ", "\N{NO-BREAK SPACE}")
        description = f"[{numbers(tensor.sizes)}] {tensor.type} · {nbytes}"
        if prod(sizes) == prod(tensor.sizes) and not _is_packed(tensor):
            description += f", in memory [{numbers(sizes)}]"
        key = letter(number, len(movement.inputs)).rstrip(":") if role == "input" else ""
        label = f"{tensor.name}: {count(elements, 'element')}, {count(len(found), 'region')}"
        yield Picture(tensor.name, key, description, label, columns, width, parts)


def memory_shape(tensor: Tensor, size: int) -> Ints:
    """The memory of a tensor as a shape, in elements of ``size`` bytes.

    >>> memory_shape(Tensor("x", "INT64", (3, 2), (1, 3), 8, 48), 8)
    (2, 3)
    """
    elements, scale = tensor.nbytes // size, tensor.itemsize // size
    if _is_packed(tensor) and tensor.sizes[1:] == (1,) and tensor.sizes[0] <= MAX_STACKED:
        return tensor.sizes[0], scale
    dims = zip(tensor.sizes, tensor.strides, strict=True)
    steps = {stride * scale for n, stride in dims if n > 1 and stride} | {1}
    chain: list[int] = []
    for step in sorted(steps):
        if not chain or not step % chain[-1]:
            chain.append(step)
    inner = [above // step for step, above in pairwise(chain)]
    return (-(-elements // chain[-1]), *reversed(inner))


def columns_of(sizes: Ints) -> int:
    """The cells in a row of a grid: whole rows of the inner dimensions, if that fits.

    >>> columns_of((6, 4)), columns_of((24, 4, 4)), columns_of((512, 2)), columns_of((1000,))
    (4, 16, 32, 32)
    """
    shapes = [(prod(sizes[:i]), prod(sizes[i:])) for i in range(len(sizes))[::-1]]
    for limit in (FEW_ROWS, MAX_ROWS):
        for rows, columns in shapes:
            if columns <= MAX_COLUMNS and rows <= limit:
                return columns
    return WRAPPED // sizes[-1] * sizes[-1] or WRAPPED


def _is_packed(tensor: Tensor) -> bool:
    return View(tensor.sizes, tensor.strides).is_contiguous


def _cells(movement: Movement, elements: Elements, role: str) -> list[Part]:
    """Draw cells: an input's show their own numbers, an output's those of their sources."""
    regions, inputs = movement.regions, len(movement.inputs)
    cells = []
    rows = zip(*(array.tolist() for array in (*elements, elements.shades)), strict=True)
    for i, (region, source, shade) in enumerate(rows):
        text = str(i) if role == "input" else ""
        attributes = "" if region == NONE else style(region, len(regions), shade)
        if role == "output" and region != NONE:
            input, indices = regions[region][1].input, regions[region][1].indices
            if input is None:
                text, attributes = "=", f'{attributes} data-s=""'
            elif indices is not None:
                text = f"{letter(input, inputs)}[{letter(indices.input, inputs)}]"
                attributes += f' data-s="{input}.?{indices.input}"'
            else:
                text = f"{letter(input, inputs)}{source}"
                attributes += f' data-s="{input}.{source}"'
        cells.append(Part(text, attributes))
    return cells


def _rectangles(
    movement: Movement, sizes: Ints, found: Sequence[Box], width: float, budget: Budget
) -> list[Part]:
    regions = len(movement.regions)
    limit = budget.available(MAX_RECTANGLES)
    drawn = rectangles(sizes, found, COLOURED, limit, shaded=regions == 1) if limit else []
    budget.take(len(drawn) + 4)
    parts = []
    for part in drawn:
        colour = style(part.region, regions, part.shade)
        is_roomy = part.width * width > 400 and part.height > 20
        text = str(part.region) if part.region < COLOURED and is_roomy and regions > 1 else ""
        position = (
            f"left:{part.left:.4g}%;top:{part.top:.4g}%;"
            f"width:{part.width:.4g}%;height:{part.height:.4g}%"
        )
        if colour.startswith("style"):
            parts.append(Part(text, f'{colour[:-1]}{position}"'))
        else:
            parts.append(Part(text, f'{colour} style="{position}"'))
    return parts
