"""Pictures of movements: grids of cells for small tensors, blocks for large ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from itertools import pairwise
from math import prod

from vkops.explain.blocks import rectangles
from vkops.explain.facts import Movement, Tensor, count, numbers, size_text
from vkops.explain.places import NONE, Box, Cells, boxes, cells
from vkops.plan.view import Ints, View

MOST_CELLS = 1024
"""Elements up to which a tensor is drawn cell by cell."""

MOST_IN_ALL = 4096
"""Elements that all tensors on one side of a movement may have then."""

MOST_COLUMNS, FEW_ROWS, MOST_ROWS, WRAPPED = 64, 16, 48, 32
"""Cells of a row, rows that look well, rows at most, and cells of a row where a tensor's own rows
are broken, or put side by side."""

FEW_COLUMNS = 12
"""Cells of a row up to which they are large."""

MOST_STACKED = 8
"""Cells of a column that is drawn as one."""

COLOURED = 64
"""Regions that have a colour of their own; all others share one."""

MOST_TENSORS = 32
"""Inputs, and outputs, of a movement that are drawn."""

FEW_TENSORS = 6
"""Those up to which blocks have their full height."""

MOST_RECTANGLES = 256
"""Rectangles of a block."""

LONGEST_NAME = 80


class Budget:
    """How much can still be drawn, so that a page stays small whatever the model is like."""

    def __init__(self, pieces: int) -> None:
        self._left = pieces

    def left(self, most: int) -> int:
        """Pieces that can be had, of so many."""
        return min(self._left, most)

    def take(self, pieces: int) -> None:
        """Note that they are used."""
        self._left -= pieces


def short(name: str) -> str:
    """A name that fits, ready for HTML."""
    return escape(name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "…")


def hue(region: int, regions: int) -> int:
    """The hue of a region, in degrees: as far from its neighbours' as can be."""
    if regions > COLOURED:
        regions = COLOURED
    step = 360 / regions if regions <= 6 else 137.5
    return round(250 + region * step) % 360


def picture(movement: Movement, budget: Budget) -> Iterator[str]:
    """The HTML of a figure: inputs, outputs, and which parts of them belong together."""
    yield '<figure><div class="sides">'
    for heading, tensors, role in (
        ("From", movement.inputs, "input"),
        ("To", movement.outputs, "output"),
    ):
        dense = " dense" if len(tensors) > FEW_TENSORS else ""
        yield f'<section aria-label="{role}s"><h4>{heading}</h4><div class="tensors{dense}">'
        for i, tensor in enumerate(tensors[:MOST_TENSORS]):
            most = min(MOST_CELLS, MOST_IN_ALL // min(MOST_TENSORS, len(tensors)))
            yield from _tensor(movement, tensor, i, role, most, budget)
        if len(tensors) > MOST_TENSORS:
            yield f'<p class="more">and {len(tensors) - MOST_TENSORS:,} more</p>'
        yield "</div></section>"
    yield '</div><figcaption aria-live="polite"></figcaption></figure>'


def letter(number: int, of: int) -> str:
    """What stands for an input in the cells of outputs; nothing if there is one only.

    >>> letter(0, 1), letter(2, 3), letter(2, 30)
    ('', 'c', '2:')
    """
    if of == 1:
        return ""
    return chr(ord("a") + number) if of <= 26 else f"{number}:"


def _tensor(
    movement: Movement, tensor: Tensor, number: int, role: str, most: int, budget: Budget
) -> Iterator[str]:
    size = movement.plan.element_size
    elements = tensor.nbytes // size
    found = boxes(movement, **{role: number})
    sizes = layout(tensor, size)
    nbytes = size_text(tensor.nbytes).replace(" ", "\N{NO-BREAK SPACE}")
    what = f"[{numbers(tensor.sizes)}] {tensor.type} · {nbytes}"
    if prod(sizes) == prod(tensor.sizes) and not is_packed(tensor):
        what += f", in memory [{numbers(sizes)}]"
    key = letter(number, len(movement.inputs)).rstrip(":") if role == "input" else ""
    tag = f'<b class="key">{key}</b> ' if key else ""
    told = f"{tensor.name}: {count(elements, 'element')}, {count(len(found), 'region')}"
    yield f'<div class="tensor"><p>{tag}<b>{short(tensor.name)}</b> <span>{escape(what)}</span></p>'
    label = f'role="img" aria-label="{short(told)}"'
    if elements <= budget.left(most):
        budget.take(elements)
        label += f' data-{role}="{number}" data-name="{short(tensor.name)}"'
        yield from _grid(movement, columns_of(sizes), cells(elements, found), label, role)
    else:
        yield from _block(movement, sizes, found, label, tensor.nbytes, budget)
    yield "</div>"


def layout(tensor: Tensor, size: int) -> Ints:
    """A tensor's memory as a shape, in elements of ``size`` bytes.

    >>> layout(Tensor("x", "INT64", (3, 2), (1, 3), 8, 48), 8)
    (2, 3)
    """
    elements, scale = tensor.nbytes // size, tensor.itemsize // size
    if is_packed(tensor) and tensor.sizes[1:] == (1,) and tensor.sizes[0] <= MOST_STACKED:
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
    """How many cells a row of a grid has: whole rows of the inner dimensions, if that looks well.

    >>> columns_of((6, 4)), columns_of((24, 4, 4)), columns_of((512, 2)), columns_of((1000,))
    (4, 16, 32, 32)
    """
    layouts = [(prod(sizes[:i]), prod(sizes[i:])) for i in range(len(sizes))[::-1]]
    narrow = [(rows, columns) for rows, columns in layouts if columns <= MOST_COLUMNS]
    for most in (FEW_ROWS, MOST_ROWS):
        for rows, columns in narrow:
            if rows <= most:
                return columns
    return WRAPPED // sizes[-1] * sizes[-1] or WRAPPED


def is_packed(tensor: Tensor) -> bool:
    """Whether its elements lie in memory row by row."""
    return View(tensor.sizes, tensor.strides).is_contiguous


def _grid(movement: Movement, columns: int, owned: Cells, label: str, role: str) -> Iterator[str]:
    """Cells that tell their own number in an input, in an output that of what they hold."""
    width = max(2, len(str(len(owned.owner) - 1)))
    if role == "output":
        last = letter(len(movement.inputs) - 1, len(movement.inputs))
        width = max(2, len(last) + len(str(owned.source.max())))
    many = ' class="many"' if columns > FEW_COLUMNS else ""
    size = f'style="--n:{columns};--w:{width}"'
    yield f'<div class="wide" tabindex="0"><div {label} {size}{many}>'
    yield "".join(_cells(movement, owned, role))
    yield "</div></div>"


def _cells(movement: Movement, owned: Cells, role: str) -> Iterator[str]:
    regions, inputs = movement.regions, len(movement.inputs)
    shades = _shades(owned, role)
    for i, (owner, source, place) in enumerate(zip(*(a.tolist() for a in owned), strict=True)):
        if owner == NONE:
            text = str(i) if role == "input" else ""
            yield f"<i>{text}</i>"
            continue
        style = _style(owner, len(regions), shades[i])
        if role == "input":
            yield f"<i {style}>{i}</i>"
        elif regions[owner][1].input is None:
            yield f'<i {style} data-s="">=</i>'
        else:
            yield f'<i {style} data-s="{source}.{place}">{letter(source, inputs)}{place}</i>'


def _shades(owned: Cells, role: str) -> Sequence[float]:
    """How far into what is read each cell lies, from 0 to 1."""
    places = owned.source.tolist() if role == "output" else list(range(len(owned.source)))
    used = [p for p, o in zip(places, owned.owner.tolist(), strict=True) if o != NONE and p != NONE]
    first, last = min(used, default=0), max(used, default=0)
    return [(place - first) / max(1, last - first) for place in places]


def _style(region: int, regions: int, shade: float) -> str:
    colour = _colour(region, regions, shade)
    return f'style="{colour}"' if colour else 'class="rest"'


def _colour(region: int, regions: int, shade: float) -> str:
    """A region's colour; one that is alone is shaded, to show what is turned around."""
    if regions == 1:
        return f"--h:{round(250 - 220 * shade) % 360};"
    return f"--h:{hue(region, regions)};" if region < COLOURED else ""


def _block(
    movement: Movement,
    sizes: Ints,
    found: Sequence[Box],
    label: str,
    nbytes: int,
    budget: Budget,
) -> Iterator[str]:
    """A block whose width is to scale."""
    largest = max(tensor.nbytes for tensor in (*movement.inputs, *movement.outputs))
    regions = len(movement.regions)
    most = budget.left(MOST_RECTANGLES)
    drawn = rectangles(sizes, found, COLOURED, most, shaded=regions == 1) if most else []
    budget.take(len(drawn) + 4)
    width = max(1.0, 100 * nbytes / largest)
    yield f'<div class="block" {label} style="width:{width:.4g}%">'
    for part in drawn:
        place = (
            f"left:{part.left:.4g}%;top:{part.top:.4g}%;"
            f"width:{part.width:.4g}%;height:{part.height:.4g}%"
        )
        colour = _colour(part.region, regions, part.shade)
        is_roomy = part.width * width > 400 and part.height > 20
        text = str(part.region) if colour and is_roomy and regions > 1 else ""
        rest = "" if colour else ' class="rest"'
        yield f'<i{rest} style="{colour}{place}">{text}</i>'
    yield "</div>"
