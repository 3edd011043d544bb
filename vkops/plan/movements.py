"""The meaning of the operators, written once: from views of inputs to regions.

DirectML descriptors, the functions for arrays and ONNX nodes check rules of their own, and then
call these. A source is a ``Read``, a view of a numbered input; a target is a view of an output. A
function whose result is always one region returns that region; the others return several, of which
some may have no elements. Where the sizes of an output need a formula that several callers share,
the function ``..._sizes`` next to it has the formula.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from math import prod
from typing import TypeAlias

from vkops.plan.region import Fill, Read, Region
from vkops.plan.view import Ints, View, packed_strides

Constants: TypeAlias = "tuple[Read | Fill, Read | Fill]"
"""The values before and after a part of an axis: views of one element, or constants."""


def copy(source: View, target: View, input: int = 0) -> Region:
    """Copy a view of an input to a view of an output of the same sizes.

    >>> copy(View.packed((2, 3)).permute((1, 0)), View.packed((3, 2))).source
    Read(input=0, view=View(sizes=(3, 2), strides=(1, 3), offset=0))
    """
    return Region(target, Read(input, source))


def pack(source: View, start: int = 0, input: int = 0) -> Region:
    """Copy a view to consecutive elements of the output, from ``start`` on, in row-major order."""
    return copy(source, View(source.sizes, packed_strides(source.sizes), start), input)


def pack_all(sources: Sequence[View]) -> list[Region]:
    """Pack views of the first input one after the other."""
    starts = accumulate((prod(view.sizes) for view in sources), initial=0)
    return [pack(view, start) for view, start in zip(sources, starts, strict=False)]


# -- parts of an axis ------------------------------------------------------------------------------


def window(source: Read, target: View, starts: Ints, steps: Ints) -> Region:
    """Copy the elements that begin at ``starts`` and are ``steps`` apart; steps may be negative.

    >>> window(Read(0, View.packed((9,))), View.packed((4,)), (8,), (-2,)).source.view
    View(sizes=(4,), strides=(-2,), offset=8)
    """
    return copy(source.view.window(starts, target.sizes, steps), target, source.input)


def elements_in_window(length: int, stride: int) -> int:
    """The number of elements, ``stride`` apart, in a window of ``length`` elements."""
    return 1 + (length - 1) // abs(stride)


def split(source: Read, targets: Iterable[View], axis: int) -> list[Region]:
    """Copy consecutive parts of an axis, one to each target.

    >>> parts = split(Read(0, View.packed((2, 5))), [View.packed((2, 2)), View.packed((2, 3))], 1)
    >>> [part.source.view.offset for part in parts]
    [0, 2]
    """
    regions, start = [], 0
    for target in targets:
        part = source.view.narrow(axis, start, target.sizes[axis])
        regions.append(copy(part, target, source.input))
        start += target.sizes[axis]
    return regions


def concat(sources: Iterable[Read], target: View, axis: int) -> list[Region]:
    """Copy sources to consecutive parts of an axis."""
    regions, start = [], 0
    for source in sources:
        size = source.view.sizes[axis]
        regions.append(Region(target.narrow(axis, start, size), source))
        start += size
    return regions


def concat_sizes(sizes: Sequence[Ints], axis: int) -> Ints:
    """The sizes of a concatenation of tensors of these sizes."""
    first = sizes[0]
    return (*first[:axis], sum(part[axis] for part in sizes), *first[axis + 1 :])


def write_window(
    source: Read, target: View, starts: Ints, steps: Ints, value: Fill
) -> Iterator[Region]:
    """Write a source to the elements that ``window`` reads, and a value to all others.

    >>> source, target = Read(0, View.packed((2,))), View.packed((4,))
    >>> regions = write_window(source, target, (3,), (-2,), Fill(b"0"))
    >>> [(region.target.offset, region.sizes) for region in regions]
    [(3, (2,)), (0, (1,)), (4, (0,)), (2, (1, 1))]
    """
    sizes = source.view.sizes
    yield Region(target.window(starts, sizes, steps), source)
    yield from fill_around(target, starts, sizes, steps, [(value, value)] * len(sizes))


def fill_around(
    target: View, starts: Ints, sizes: Ints, steps: Ints, values: Sequence[Constants]
) -> Iterator[Region]:
    """Write constants everywhere in a target but in a window of it.

    The window has ``sizes`` elements, from ``starts`` on and ``steps`` apart. ``values`` holds the
    constants for each axis; corners have those of the last axis, as in NumPy.
    """
    rest = target
    for axis, (first, last) in reversed(tuple(enumerate(values))):
        start, size, step = starts[axis], sizes[axis], steps[axis]
        if step < 0:
            start, step = start + (size - 1) * step, -step
        end = start + (size - 1) * step + 1
        yield fill(first, rest.narrow(axis, 0, start))
        yield fill(last, rest.narrow(axis, end, target.sizes[axis] - end))
        if step > 1:
            rows = rest.narrow(axis, start, (size - 1) * step).unflatten(axis, (size - 1, step))
            yield fill(first, rows.narrow(axis + 1, 1, step - 1))
        rest = rest.narrow(axis, start, size, step)


# -- repetition ------------------------------------------------------------------------------------


def tile(source: Read, target: View, repeats: Ints) -> Region:
    """Repeat a source as a whole, ``repeats[i]`` times along axis ``i``.

    >>> tile(Read(0, View.packed((2,))), View.packed((6,)), (3,)).source.view
    View(sizes=(3, 2), strides=(0, 1), offset=0)
    """
    view = source.view
    for axis in reversed(range(len(repeats))):
        target = target.unflatten(axis, (repeats[axis], source.view.sizes[axis]))
        view = view.insert(axis, repeats[axis])
    return copy(view, target, source.input)


def tile_sizes(sizes: Ints, repeats: Ints) -> Ints:
    """The sizes of the result of ``tile``."""
    return tuple(size * count for size, count in zip(sizes, repeats, strict=True))


def repeat(source: Read, target: View, axis: int, count: int) -> Region:
    """Repeat each index of an axis ``count`` times."""
    size = source.view.sizes[axis]
    repeated = source.view.insert(axis + 1, count)
    return copy(repeated, target.unflatten(axis, (size, count)), source.input)


# -- blocks of space and depth ---------------------------------------------------------------------

_DEPTH_AXES: Mapping[str, tuple[tuple[str, str, str], Ints]] = {
    "DCR": (("row", "column", "depth"), (0, 3, 4, 1, 5, 2)),
    "CRD": (("depth", "row", "column"), (0, 1, 4, 2, 5, 3)),
}
"""By order: the parts of the depth axis, outermost first, and the permutation of all axes."""


def depth_to_space(source: Read, target: View, block: int, order: str) -> Region:
    """Move depth (channels) into square blocks of height and width, ``block`` elements wide.

    Both tensors have four dimensions: batch, depth, height and width. ``order`` says what the depth
    of the source is made of, outermost first: ``"DCR"`` (row in the block, column in the block,
    depth of the target; DirectML's DEPTH_COLUMN_ROW) or ``"CRD"`` (depth of the target, row,
    column; COLUMN_ROW_DEPTH). The names are ONNX's.

    >>> source, target = Read(0, View.packed((1, 8, 1, 1))), View.packed((1, 2, 2, 2))
    >>> depth_to_space(source, target, 2, "DCR").source.view.sizes
    (1, 2, 1, 2, 1, 2)
    """
    return copy(_depth(source.view, block, order), _space(target, block), source.input)


def space_to_depth(source: Read, target: View, block: int, order: str) -> Region:
    """Move blocks of height and width into depth: the inverse of ``depth_to_space``.

    ``order`` says what the depth of the target is made of.

    >>> source, target = Read(0, View.packed((1, 2, 2, 2))), View.packed((1, 8, 1, 1))
    >>> space_to_depth(source, target, 2, "DCR").target.strides
    (8, 1, 1, 4, 1, 2)
    """
    return copy(_space(source.view, block), _depth(target, block, order), source.input)


def depth_to_space_sizes(sizes: Ints, block: int) -> Ints:
    """The sizes of the result of ``depth_to_space``; the square of ``block`` divides the depth."""
    batch, depth, height, width = sizes
    return batch, depth // block**2, height * block, width * block


def space_to_depth_sizes(sizes: Ints, block: int) -> Ints:
    """The sizes of the result of ``space_to_depth``; ``block`` divides height and width."""
    batch, depth, height, width = sizes
    return batch, depth * block**2, height // block, width // block


def _space(view: View, block: int) -> View:
    """Batch, depth, height, row in the block, width, column in the block."""
    for axis in (3, 2):
        view = view.unflatten(axis, (view.sizes[axis] // block, block))
    return view


def _depth(view: View, block: int, order: str) -> View:
    """The same six axes, of the tensor whose depth holds the blocks."""
    parts, axes = _DEPTH_AXES[order]
    size = {"row": block, "column": block, "depth": view.sizes[1] // block**2}
    return view.unflatten(1, tuple(size[part] for part in parts)).permute(axes)


# -- padding ---------------------------------------------------------------------------------------


def pad(
    source: Read, target: View, starts: Ints, ends: Ints, values: Sequence[Constants]
) -> Iterator[Region]:
    """Put a source into a target with ``starts`` and ``ends`` elements of constants around it.

    Negative numbers cut elements off. ``values`` are those of ``fill_around``.
    """
    sizes = target.sizes
    before = tuple(min(size, max(0, start)) for size, start in zip(sizes, starts, strict=True))
    skipped = tuple(max(0, -start) for start in starts)
    stops = [size - max(0, end) for size, end in zip(sizes, ends, strict=True)]
    kept = tuple(max(0, stop - start) for start, stop in zip(before, stops, strict=True))
    ones = (1,) * len(sizes)
    yield window(source, target.window(before, kept, ones), skipped, ones)
    yield from fill_around(target, before, kept, ones, values)


def fill(value: Read | Fill, target: View) -> Region:
    """Write one element everywhere in a target."""
    if isinstance(value, Fill):
        return Region(target, value)
    everywhere = View(target.sizes, (0,) * len(target.sizes), value.view.offset)
    return copy(everywhere, target, value.input)
