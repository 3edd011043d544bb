"""Composition: two copies in a row, through an intermediate tensor, become one copy."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import accumulate, chain
from math import gcd, inf
from typing import NamedTuple

from vkops.plan.region import Region
from vkops.plan.size_limits import Budget
from vkops.plan.view import View

_CANDIDATES_PER_STEP = 16
"""The number of candidate writers that cost one step of a budget."""


class _WriterDim(NamedTuple):
    """A dimension of a writer: stride in the intermediate, size, and stride in the source."""

    stride: int
    size: int
    source_stride: int


class _Writer(NamedTuple):
    """A region that writes elements ``low`` to ``high`` of the intermediate.

    Its dimensions nest, the outermost first: a step along one is longer than all those inside it.
    """

    low: int
    high: int
    dims: tuple[_WriterDim, ...]
    region: Region


class Writers:
    """The coalesced regions that write a tensor, indexed to be composed with those that read it.

    The writers copy or gather. A region that is composed with them copies; it may also scatter if
    all writers copy. With ``gaps``, it may read elements that nothing writes: the result has no
    copies of these.
    ``budget`` limits the number of writers.
    """

    def __init__(
        self, regions: Iterable[Region], *, gaps: bool = False, budget: Budget | None = None
    ) -> None:
        self._gaps = gaps
        writers = []
        for writer in (writer for region in regions for writer in _writers(region)):
            if budget is not None:
                budget.spend()
            writers.append(writer)
        writers.sort(key=lambda writer: writer.low)
        self._writers = writers
        self._lows = [writer.low for writer in writers]
        # The highest address that any writer so far writes: sorted, so that bisect can search it.
        self._highs = list(accumulate((writer.high for writer in writers), max))
        self._columns = _Columns.of(writers)

    def compose(self, region: Region, budget: Budget | None = None) -> Iterator[Region]:
        """Replace a region that reads this tensor by regions that read the writers' sources.

        Raises:
            ValueError: the region reads elements that nothing writes.
            BudgetError: composing takes more steps than ``budget`` has.
        """
        budget = budget or Budget(inf)
        box = _box(region)
        missing = box.elements
        candidates = self._candidates(box)
        budget.spend(1 + len(candidates) // _CANDIDATES_PER_STEP)
        for writer in candidates:
            if writer.high < box.at:
                continue
            moved = _Box(box.dims, box.dst, box.at - writer.low, box.src)
            for part in _compose(moved, writer.dims, budget):
                missing -= part.elements
                yield _region(part, region, writer.region)
            if not missing:
                return
        if missing and not self._gaps:
            raise ValueError(f"{region} reads {missing} elements that nothing writes")

    def _candidates(self, box: _Box) -> Sequence[_Writer]:
        if self._columns is not None:
            writers = self._columns.overlapping(box)
            if writers is not None:
                return writers
        first = bisect_left(self._highs, box.at)
        last = bisect_right(self._lows, box.at + box.reach)
        return self._writers[first:last]


class _Columns:
    """Writers side by side in equal rows: the result of a concatenation along an inner axis."""

    def __init__(self, row: int, writers: list[_Writer]) -> None:
        self._row = row
        self._writers = sorted(writers, key=lambda writer: writer.low % row)
        self._lows = [writer.low % row for writer in self._writers]
        self._highs = list(
            accumulate((w.low % row + _reach(w.dims[1:]) for w in self._writers), max)
        )

    @classmethod
    def of(cls, writers: list[_Writer]) -> _Columns | None:
        """The columns of writers; None if they are not side by side."""
        rows = {writer.dims[0].stride for writer in writers}
        if len(writers) < 3 or len(rows) != 1 or 1 in rows:  # 1: contiguous, without rows
            return None
        columns = cls(rows.pop(), writers)
        return columns if columns._highs[-1] < columns._row else None

    def overlapping(self, box: _Box) -> list[_Writer] | None:
        """The writers in the columns that a box reads; None if it crosses rows."""
        low = box.at % self._row
        high = low + sum((d.size - 1) * d.at for d in box.dims if d.at % self._row)
        if high >= self._row:
            return None
        return self._writers[bisect_left(self._highs, low) : bisect_right(self._lows, high)]


def _reach(dims: Iterable[_WriterDim]) -> int:
    return sum((dim.size - 1) * dim.stride for dim in dims)


def _writers(region: Region) -> Iterator[_Writer]:
    """Split a region into writers whose dimensions nest: each address has one index at most."""
    target, source = region.target, _packed((*region.index_views, region.source_view))
    strides = zip(target.strides, target.sizes, source.strides, strict=True)
    dims = [_WriterDim(*dim) for dim in strides]
    for axis, dim in enumerate(dims[:-1]):
        if dim.stride <= _reach(dims[axis + 1 :]):
            for index in range(dim.size):
                yield from _writers(region.take(axis, index))
            return
    if dims[-1].stride != 1:
        dims.append(_WriterDim(1, 1, 0))  # the gaps between elements are not written
    yield _Writer(target.offset, target.offset + _reach(dims), tuple(dims), region)


# -- boxes -----------------------------------------------------------------------------------------


class _Dim(NamedTuple):
    """A dimension of a box: its size, and its stride in each of the three tensors."""

    size: int
    dst: int
    at: int
    src: int


class _Box(NamedTuple):
    """Elements being composed: their addresses in the output, the intermediate and the source.

    ``_compose`` handles one dimension of the writer after the other. ``at`` is the address in the
    intermediate relative to the writer's first element, excluding the dimensions already handled;
    its strides are not negative. ``src`` is the address in the source so far: the sum over the
    dimensions already handled.
    """

    dims: tuple[_Dim, ...]
    dst: int
    at: int
    src: int

    @property
    def elements(self) -> int:
        count = 1
        for dim in self.dims:
            count *= dim.size
        return count

    @property
    def reach(self) -> int:
        return sum([(size - 1) * at for size, _, at, _ in self.dims])

    def part(self, axis: int, start: int, size: int) -> _Box:
        """Some indices of a dimension, which is dropped if there is only one."""
        dim = self.dims[axis]
        kept = (dim._replace(size=size),) if size > 1 else ()
        return _Box(
            (*self.dims[:axis], *kept, *self.dims[axis + 1 :]),
            self.dst + start * dim.dst,
            self.at + start * dim.at,
            self.src + start * dim.src,
        )

    def factored(self, axis: int, inner: int) -> _Box:
        """The box with a dimension split in two, the inner one of size ``inner``."""
        size, dst, at, src = self.dims[axis]
        pair = (
            _Dim(size // inner, dst * inner, at * inner, src * inner),
            _Dim(inner, dst, at, src),
        )
        dims = (*self.dims[:axis], *(d for d in pair if d.size > 1), *self.dims[axis + 1 :])
        return _Box(dims, self.dst, self.at, self.src)


_DIGIT = 96
"""Bits of each address in a packed address, which holds several."""


def _packed(views: Sequence[View]) -> View:
    """Pack several views into one: each address holds one address per view, in ``_DIGIT`` bits.

    The last view is in the highest bits and so decides the sign. Composition only adds addresses
    and multiplies them by numbers, so composing the packed view composes all views at once.
    """
    *others, view = views
    if others:
        lower = _packed(others)
        strides = zip(view.strides, lower.strides, strict=True)
        packed = tuple((high << _DIGIT * len(others)) + low for high, low in strides)
        return View(view.sizes, packed, (view.offset << _DIGIT * len(others)) + lower.offset)
    return view


def _unpacked(view: View, count: int) -> Iterator[View]:
    """Yield the ``count`` views that ``_packed`` has packed into one."""
    half, digit = 1 << (_DIGIT - 1), 1 << _DIGIT
    sizes, strides, offset = view
    for _ in range(count - 1):
        low = [(stride + half) % digit - half for stride in strides]
        low_offset = (offset + half) % digit - half
        yield View(sizes, tuple(low), low_offset)
        strides = tuple((s - part) >> _DIGIT for s, part in zip(strides, low, strict=True))
        offset = (offset - low_offset) >> _DIGIT
    yield View(sizes, strides, offset)


def _box(region: Region) -> _Box:
    target, read = _packed((*region.index_views, region.target)), region.source_view
    dims, dst, at = [], target.offset, read.offset
    for size, to, stride in zip(target.sizes, target.strides, read.strides, strict=True):
        if size == 1:
            continue
        if stride < 0:  # backwards, from the other end
            dst += (size - 1) * to
            at += (size - 1) * stride
            to, stride = -to, -stride
        dims.append(_Dim(size, to, stride, 0))
    return _Box(tuple(dims), dst, at, 0)


def _region(box: _Box, reader: Region, writer: Region) -> Region:
    sizes, dst_strides, _, strides = zip(*(box.dims or (_Dim(1, 1, 0, 1),)), strict=True)
    written, read = View(sizes, dst_strides, box.dst), View(sizes, strides, box.src)
    if reader.indices is None and writer.indices is None:
        return writer.with_views(written, read.shift(writer.source_view.offset))
    *scattered, target = _unpacked(written, 1 + len(reader.index_views))
    *gathered, source = _unpacked(read, 1 + len(writer.index_views))
    moved = [view.shift(by.offset) for view, by in zip(gathered, writer.index_views, strict=True)]
    both = replace(writer, indices=writer.indices or reader.indices)
    return both.with_views(target, source.shift(writer.source_view.offset), *scattered, *moved)


def _compose(box: _Box, writer_dims: Sequence[_WriterDim], budget: Budget) -> Iterator[_Box]:
    """The parts of a box that a writer wrote, with their addresses in the writer's source."""
    budget.spend()
    if not writer_dims:
        yield box
        return
    (row, size, step), *inner = writer_dims
    if box.at >= row * size or box.at + box.reach < 0:
        return
    for part in _rows(box, row):
        for inside in _clip(part, row * size, budget):
            index, at = divmod(inside.at, row)
            dims = tuple(
                [
                    dim
                    if dim.at % row
                    else _Dim(dim.size, dim.dst, 0, dim.src + dim.at // row * step)
                    for dim in inside.dims
                ]
            )
            moved = _Box(dims, inside.dst, at, inside.src + index * step)
            yield from _compose(moved, inner, budget)


def _clip(box: _Box, end: int, budget: Budget) -> Iterator[_Box]:
    """The parts of a box at addresses from 0 to before ``end``."""
    budget.spend()
    low, reach = box.at, box.reach
    if low + reach < 0 or low >= end:
        return
    if low >= 0 and low + reach < end:
        yield box
        return
    # Split the dimension with the largest stride: few of its indices are only partly inside.
    axis = max(range(len(box.dims)), key=lambda d: box.dims[d].at)
    size, _, stride, _ = box.dims[axis]
    rest = reach - (size - 1) * stride
    first, last = max(0, -((low + rest) // stride)), min(size - 1, (end - 1 - low) // stride)
    whole_first, whole_end = (
        max(0, -(low // stride)),
        min(size, (end - 1 - low - rest) // stride + 1),
    )
    if whole_first < whole_end:
        yield box.part(axis, whole_first, whole_end - whole_first)
    else:
        whole_end = whole_first = first
    for index in chain(range(first, whole_first), range(whole_end, last + 1)):
        yield from _clip(box.part(axis, index, 1), end, budget)


def _rows(box: _Box, row: int) -> Iterator[_Box]:
    """Split a box into parts whose inner dimensions do not cross rows."""
    inner = [(dim.at, axis) for axis, dim in enumerate(box.dims) if dim.at % row]
    start = box.at % row
    reach = sum([(box.dims[axis].size - 1) * at for at, axis in inner])
    if start + reach < row:
        yield box
        return
    stride, axis = max(inner)
    size = box.dims[axis].size
    rest = reach - (size - 1) * stride
    period = row // gcd(row, stride)  # indices after which the position in a row is the same
    head = 0 if row % stride or start < stride else -((start - row) // stride)
    body = max(0, size - head) // period * period
    if body and (head or body < size or size > period):
        if head:
            yield from _rows(box.part(axis, 0, head), row)
        # ``part`` drops the dimension if the body is a single index: then nothing can be factored.
        inside = box.part(axis, head, body)
        yield from _rows(inside.factored(axis, period) if body > period else inside, row)
        if head + body < size:
            yield from _rows(box.part(axis, head + body, size - head - body), row)
        return
    index = 0
    while index < size:
        room = row - 1 - (start + index * stride) % row - rest
        if room >= 0:
            count = min(size - index, room // stride + 1)
            yield box.part(axis, index, count)
        else:
            count = 1
            yield from _rows(box.part(axis, index, 1), row)
        index += count
