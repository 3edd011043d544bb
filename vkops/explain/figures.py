"""Plans as data for the page, whose script draws any part of any tensor from them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from math import prod
from typing import Any, NamedTuple

from vkops.explain.explanation import MovementInfo, TensorInfo, number_list
from vkops.explain.tables import size_text
from vkops.plan.region import Read, Region
from vkops.plan.rounding import ceil_div
from vkops.plan.view import Ints, View

MAX_TENSORS = 32
"""Inputs, and outputs, of a plan that are drawn."""

MAX_STACKED = 8
"""Elements up to which a tensor of one column is drawn as a column."""

MAX_CELLS = 1024
"""Elements up to which a tensor is drawn as cells only."""

MAX_ADDRESS = 2**53 - 1
"""The largest address that a script can count exactly."""

COLOURED = 144
"""Regions that have a colour of their own; all others share one."""

FEW_REGIONS = 6
"""Regions up to which their colours are equally far apart."""

MAX_PARTS = 6
"""Parts that an axis of a region is divided into."""


class Colour(NamedTuple):
    """A hue in degrees, and what is added to the lightness of the page's colours."""

    hue: int
    lighter: float = 0.0

    @property
    def css(self) -> str:
        """The colour in CSS."""
        return f"oklch(calc(var(--l) + {self.lighter:g}) var(--c) {self.hue})"


class Parts(NamedTuple):
    """Parts of an axis of a region, of ``length`` indices each; the last may have fewer."""

    axis: int
    length: int
    number: int


def figure(movement: MovementInfo, budget: Iterator[object]) -> dict[str, Any]:
    """Describe a plan and its tensors; each region that is drawn takes an item of the budget.

    ``blocks`` of a region are its parts along some axes. They have equal colours in an input and in
    an output; ``colours`` has one for each, and the first of a region is that of ``colour``.
    """
    regions = [region for _, region in movement.regions]
    colours: list[Colour] = []
    tensors = (*_tensors(movement, "input"), *_tensors(movement, "output"))
    drawn = []
    for (i, (output, region)), _ in zip(enumerate(movement.regions), budget, strict=False):
        parts = blocks_of(region) if len(regions) == 1 or _is_mixed(region, len(regions)) else ()
        first = len(colours)
        colours += colours_of(i, len(regions), parts)
        drawn.append(_region(output, region, parts, first))
    return {
        "size": movement.plan.element_size,
        "tensors": [{**tensor, "place": i} for i, tensor in enumerate(tensors)],
        "regions": drawn,
        "maxCells": MAX_CELLS,
        "all": len(drawn) == len(regions),
        "colours": [tuple(colour) for colour in colours[:COLOURED]],
    }


def legend(described: Mapping[str, Any]) -> list[tuple[str, str]]:
    """For each region that is drawn and has colours, their CSS and the numbers of its blocks."""
    colours = [Colour(*colour) for colour in described["colours"]]
    firsts = [region["colour"] for region in described["regions"] if region["colour"] < COLOURED]
    entries = []
    for first, end in pairwise([*firsts, len(colours)]):
        last = end - 1
        stops = ", ".join(
            f"{colour.css} {100 * i / (end - first):.4g}% {100 * (i + 1) / (end - first):.4g}%"
            for i, colour in enumerate(colours[first:end])
        )
        entries.append(
            (f"linear-gradient(90deg, {stops})", f"blocks {first}–{last}" if last > first else "")
        )
    return entries


def hint(described: Mapping[str, Any]) -> str:
    """Say how to read and use a figure."""
    regions = described["regions"]
    texts = ["An element and its copies have the same colour"]
    if any("indices" in region for region in regions):
        texts[0] += ", and so does the index that selects them"
    texts.append("The number in a cell is that of the element of the input")
    if any(tensor["count"] > MAX_CELLS for tensor in described["tensors"]):
        what = "block" if any(region["blocks"] for region in regions) else "region"
        texts.append(f"The number in a picture of a whole tensor is that of the {what}")
    texts.append("Point at an element to see its source, and tap it to go there")
    if not described["all"]:
        texts.append("Some of the regions are not shown")
    return ". ".join(texts) + "."


def as_script(described: object) -> str:
    r"""JSON that may stand in an element of type script.

    >>> print(as_script({"name": "</script>"}))
    {"name":"\u003c/script>"}
    """
    return json.dumps(described, separators=(",", ":")).replace("<", "\\u003c")


def _region(output: int, region: Region, parts: Sequence[Parts], first: int) -> dict[str, Any]:
    described: dict[str, Any] = {
        "output": output,
        "sizes": region.sizes,
        "target": _place(region.target),
        "colour": first,
        "blocks": parts,
    }
    if isinstance(region.source, Read):
        described |= {"input": region.source.input, "source": _place(region.source.view)}
    else:
        described["constant"] = f"0x{region.source.pattern[::-1].hex()}"
    if indices := region.indices:
        described["indices"] = {
            "input": indices.input,
            "rule": indices.rule,
            "place": _place(indices.view),
            "terms": indices.terms,
        }
    return described


def _place(view: View) -> tuple[int, Ints]:
    return view.offset, view.strides


def _tensors(movement: MovementInfo, role: str) -> Iterator[dict[str, Any]]:
    tensors = movement.inputs if role == "input" else movement.outputs
    for number, tensor in enumerate(tensors[:MAX_TENSORS]):
        size = movement.element_size(role, number)
        scale = tensor.itemsize // size
        inner = ((scale,), (1,)) if scale > 1 else ((), ())
        yield {
            "role": role,
            "number": number,
            "name": tensor.name,
            "key": letter(number, len(tensors)) if role == "input" else "",
            "size": size,
            "count": tensor.nbytes // size,
            "memory": memory_shape(tensor, size),
            "sizes": (*tensor.sizes, *inner[0]),
            "strides": (*(stride * scale for stride in tensor.strides), *inner[1]),
        }


def can_be_drawn(movement: MovementInfo) -> bool:
    """Whether a script can count all elements, and there are some."""
    tensors = (*movement.inputs, *movement.outputs)
    return all(0 < tensor.nbytes <= MAX_ADDRESS for tensor in tensors)


def description(tensor: TensorInfo, size: int) -> str:
    """Describe the elements of a tensor that a plan counts in elements of ``size`` bytes."""
    shape = memory_shape(tensor, size)
    text = f"[{number_list(tensor.sizes)}] {tensor.type} · {size_text(tensor.nbytes)}"
    if View(tensor.sizes, tensor.strides).is_contiguous:
        return text
    return f"{text}, in memory [{number_list(shape)}]"


def letter(number: int, of: int) -> str:
    """The letter for an input in the cells of outputs; empty if there is only one input.

    >>> letter(0, 1), letter(2, 3), letter(2, 30)
    ('', 'c', '2:')
    """
    if of == 1:
        return ""
    return chr(ord("a") + number) if of <= 26 else f"{number}:"


def memory_shape(tensor: TensorInfo, size: int) -> Ints:
    """The memory of a tensor as a shape, in elements of ``size`` bytes.

    >>> memory_shape(TensorInfo("x", "INT64", (3, 2), (1, 3), 8, 48), 8)
    (2, 3)
    """
    elements, scale = tensor.nbytes // size, tensor.itemsize // size
    is_packed = View(tensor.sizes, tensor.strides).is_contiguous
    if is_packed and tensor.sizes[1:] == (1,) and tensor.sizes[0] <= MAX_STACKED:
        return tensor.sizes[0], scale
    dims = zip(tensor.sizes, tensor.strides, strict=True)
    steps = {stride * scale for n, stride in dims if n > 1 and stride} | {1}
    chain: list[int] = []
    for step in sorted(steps):
        if not chain or not step % chain[-1]:
            chain.append(step)
    inner = [above // step for step, above in pairwise(chain)]
    return (ceil_div(elements, chain[-1]), *reversed(inner))


# -- blocks and their colours ----------------------------------------------------------------------


def blocks_of(region: Region) -> tuple[Parts, ...]:
    """Divide a region into blocks along the axes that its elements change places on.

    Of a region with indices, they are the axes along which the index changes.

    >>> from vkops.plan import Read
    >>> blocks_of(Region(View.packed((1024, 768)), Read(0, View((1024, 768), (1, 1024)))))
    (Parts(axis=0, length=256, number=4), Parts(axis=1, length=192, number=4))
    """
    moved = region.indices.view if region.indices else region.source_view
    dims = zip(region.sizes, region.target.strides, moved.strides, strict=True)
    strides = {
        axis: (abs(target if target else moved), abs(moved))
        for axis, (n, target, moved) in enumerate(dims)
        if n > 1 and moved
    }
    axes = sorted(strides, key=lambda axis: strides[axis], reverse=True)
    # The outermost axis of both sides, such as a batch, changes no places.
    while len(axes) > 2 and strides[axes[0]][1] == max(strides[axis][1] for axis in axes):
        del axes[0]
    blocks: list[Parts] = []
    for axis in axes[:2]:  # at least 4 blocks
        n = region.sizes[axis]
        length = ceil_div(n, _parts_of(n, best=4 if blocks else MAX_PARTS))
        blocks.append(Parts(axis, length, ceil_div(n, length)))
    return tuple(blocks)


def _parts_of(n: int, best: int) -> int:
    """The number of parts of an axis: equal ones, if possible."""
    if n <= MAX_PARTS:
        return n
    return next((parts for parts in (best, 4, 6, 5, 3) if not n % parts), best)


def _is_mixed(region: Region, of: int) -> bool:
    """Whether a region of several is divided into blocks: its elements change their order."""
    if region.indices:
        return True
    dims = zip(region.sizes, region.target.strides, region.source_view.strides, strict=True)
    pairs = sorted((abs(target), abs(source)) for n, target, source in dims if n > 1 and source)
    return of <= FEW_REGIONS and pairs != sorted(pairs, key=lambda pair: pair[1])


def colours_of(number: int, of: int, parts: Sequence[Parts] = ()) -> list[Colour]:
    """The colours of the blocks of a region.

    Regions, and the parts of the first axis, have different hues; those of the other axes have
    different lightness.

    >>> colours_of(1, 3)
    [Colour(hue=10, lighter=0.0)]
    """
    step = 360 / of if of <= FEW_REGIONS else 137.5  # neighbours differ as much as possible
    hues = parts[0].number if parts else 1
    others = prod(part.number for part in parts[1:])
    return [
        Colour(
            round(250 + (number + i / hues) * step) % 360,
            round(0.16 * (j / (others - 1) - 0.5), 3) if others > 1 else 0.0,
        )
        for i in range(hues)
        for j in range(others)
    ]
