"""Parts of matrices between diagonals, as few regions.

The matrices are the last two dimensions of a region; dimensions before them are kept. Diagonal
``k`` has the elements whose column is their row plus ``k``.
"""

from __future__ import annotations

from collections.abc import Iterator

from vkops.plan.movements import fill
from vkops.plan.region import Fill, Read, Region
from vkops.plan.view import View


def fill_diagonals(
    source: Read | Fill, target: View, begin: int, end: int, value: Read | Fill
) -> Iterator[Region]:
    """Write a value to the diagonals from ``begin`` to before ``end``, and a source elsewhere.

    If ``begin`` is greater, the value is written to the diagonals before ``end`` and from ``begin``
    on, and the source between them. The source is a view of the sizes of the target, the value a
    view of one element; each may be a constant.

    >>> regions = fill_diagonals(Fill(b"0"), View.packed((2, 2)), 0, 1, Fill(b"1"))
    >>> [(part.source.pattern, part.target) for part in regions if 0 not in part.sizes]
    ... # doctest: +NORMALIZE_WHITESPACE
    [(b'1', View(sizes=(2, 1), strides=(3, 1), offset=0)),
     (b'0', View(sizes=(1, 1, 1), strides=(6, 2, 1), offset=2)),
     (b'0', View(sizes=(1, 1, 1), strides=(6, 1, 2), offset=1))]
    """
    outside, inside = Region(target, source), fill(value, target)
    if begin > end:
        begin, end, outside, inside = end, begin, inside, outside
    if begin == end:
        yield outside
        return
    yield from band(inside, begin, end)
    yield from below(outside, begin)
    yield from above(outside, end)


def on_diagonal(source: Read, target: View, k: int, value: Fill) -> Iterator[Region]:
    """Write a source to diagonal ``k``, and a value elsewhere.

    The source has one dimension less than the target; its last is as long as the diagonal.

    >>> column = Read(0, View.packed((2,)))
    >>> [part.target for part in on_diagonal(column, View.packed((2, 2)), 0, Fill(b"0"))][0]
    View(sizes=(2,), strides=(3,), offset=0)
    """
    axes = len(target.sizes)
    yield Region(target.diagonal(k, axes - 2, axes - 1), source)
    others = Region(target, value)
    yield from below(others, k)
    yield from above(others, k + 1)


def band(region: Region, begin: int, end: int) -> Iterator[Region]:
    """The diagonals from ``begin`` to before ``end``; ``begin`` is smaller."""
    *_, rows, columns = region.sizes
    left = min(max(0, -begin), rows)  # the rows above begin in the first column
    right = min(max(0, columns - end + 1), rows)  # those from here on end in the last
    yield from below(_block(region, 0, 0, min(left, right), columns), end)
    if left <= right:
        # Each row is one column further right than the row above it.
        yield region.map(lambda view: _sheared(view, left, begin, right - left, end - begin))
    else:
        yield _block(region, right, 0, left - right, columns)
    start = max(left, right)
    yield from above(_block(region, start, 0, rows - start, columns), begin + start)


def below(region: Region, end: int) -> Iterator[Region]:
    """The diagonals before ``end``.

    >>> from vkops.plan.movements import copy
    >>> matrix = View.packed((4, 4))
    >>> [part.target for part in below(copy(matrix, matrix), 0) if 0 not in part.sizes]
    ... # doctest: +NORMALIZE_WHITESPACE
    [View(sizes=(2, 1, 1), strides=(10, 4, 1), offset=4),
     View(sizes=(1, 2, 2), strides=(20, 4, 1), offset=8)]
    """
    *_, rows, columns = region.sizes
    first = min(max(0, -end), rows)  # the first row with an element
    last = min(max(0, columns - end), rows)  # the first row with all elements
    width = min(max(0, end), columns)  # the columns that all rows have
    yield _block(region, last, 0, rows - last, columns)
    yield _block(region, first, 0, last - first, width)
    # What is left is a triangle, in which row i has i elements. It consists of squares of 1, 2, 4
    # and so on elements, those of one size evenly spaced along its diagonal; the last is cut off.
    size, side = last - first, 1
    while side < size:
        count, rest = divmod(size, 2 * side)
        yield region.map(lambda view: _squares(view, first, width, side, count))  # noqa: B023
        at = size - rest
        yield _block(region, first + at + side, width + at, max(0, rest - side), side)
        side *= 2


def above(region: Region, begin: int) -> Iterator[Region]:
    """The diagonals from ``begin`` on."""
    axes = len(region.sizes)
    swap = (*range(axes - 2), axes - 1, axes - 2)
    return below(region.map(lambda view: view.permute(swap)), 1 - begin)


def _block(region: Region, row: int, column: int, rows: int, columns: int) -> Region:
    axis = len(region.sizes) - 2
    return region.map(lambda view: view.narrow(axis, row, rows).narrow(axis + 1, column, columns))


def _sheared(view: View, row: int, begin: int, rows: int, columns: int) -> View:
    """So many columns from diagonal ``begin`` on, in each of some rows."""
    *outer, down, right = view.strides
    return View(
        (*view.sizes[:-2], rows, columns),
        (*outer, down + right, right),
        view.offset + row * down + (row + begin) * right,
    )


def _squares(view: View, row: int, column: int, side: int, count: int) -> View:
    """Return a view of squares, each ``2 * side`` rows and columns after the one before."""
    *outer, down, right = view.strides
    return View(
        (*view.sizes[:-2], count, side, side),
        (*outer, 2 * side * (down + right), down, right),
        view.offset + (row + side) * down + column * right,
    )
