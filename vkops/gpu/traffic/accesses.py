"""The accesses of each kernel to tensors, in the order of its shader.

An access is one that the invocations of a subgroup execute together. Accesses of the region table
are left out: it is small, and most invocations read the same vectors of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from vkops.gpu.kernels import layout
from vkops.gpu.kernels.choice import REVERSE, SHARED_TENSORS, STREAM_SHARED, TILE_SIDE, VECTOR
from vkops.gpu.kernels.encoding import Words
from vkops.gpu.traffic.items import Bools, Items, Numbers, Where

ReadIndex = Callable[[Words, Words], tuple[Words, Words]]
"""Returns the words of indices, the low and the high ones, from the addresses of the low ones in
words and from the bounds of the indices."""


_Indexed = Callable[[Items, ReadIndex], Iterator["Access"]]


class Access(NamedTuple):
    """An access: the address in bytes for each invocation, and those that take part in it."""

    is_store: bool
    address: Numbers
    nbytes: int
    active: Bools


def accesses(items: Items, read_index: ReadIndex) -> Iterator[Access]:
    """Yield all accesses of the kernel of these items."""
    name = items.kernel.name
    if items.kernel.indexed:
        yield from _INDEXED[name.rstrip("_0123456789")](items, read_index)
    elif items.kernel.block:
        yield from _block(items)
    elif items.kernel.unit < 4 and items.kernel.granule == 4:
        yield from _copy_subword(items)
    else:
        yield from _PLAIN.get(name.rstrip("_0123456789"), _copy)(items)


def _load(number: npt.NDArray[Any], nbytes: int, active: Bools) -> Access:
    return Access(False, number.astype(np.int64) * nbytes, nbytes, active)


def _store(number: npt.NDArray[Any], nbytes: int, active: Bools) -> Access:
    return Access(True, number.astype(np.int64) * nbytes, nbytes, active)


def _signed(words: Words) -> Numbers:
    return words.view(np.int32).astype(np.int64)


# -- kernels without indices -----------------------------------------------------------------------


def _copy(items: Items) -> Iterator[Access]:
    """Loads and stores of a unit; copy_reverse has the same."""
    unit, changes = items.kernel.unit, items.vector(layout.Steps).src != 0
    if not items.aligned or items.kernel == REVERSE:
        changes[:] = True
    for row in items.rows():
        for i, step in enumerate(items.steps(row)):
            yield _load(step.src, unit, step.active & (changes | (i == 0)))
            yield _store(step.dst, unit, step.active)


def _block(items: Items) -> Iterator[Access]:
    unit, block = items.kernel.unit, items.vector(layout.Block)
    side = items.kernel.block // unit
    for row in items.rows():
        for step in items.steps(row):
            for k in range(side):
                yield _load(step.src + block.row_src * k, unit, step.active)
            for k in range(side):
                yield _store(step.dst + block.column_dst * k, unit, step.active)


def _tile(items: Items) -> Iterator[Access]:
    across, along, outer = (
        items.vector(layout.Across),
        items.vector(layout.Along),
        items.vector(layout.Outer),
    )
    start, invocation = items.start, items.first
    rows = np.minimum(items.vector(layout.Position).digit_1, across.limit - start.position)
    columns = np.minimum(items.vector(layout.Rows).number, along.limit - items.row)
    unit = int(items.kernel.name.rpartition("_")[2])
    vectors, per_vector = TILE_SIDE // VECTOR, VECTOR // unit
    for k in range(0, int(rows.max()) * vectors, items.kernel.workgroup):
        row, column = (invocation + k) // vectors, (invocation + k) % vectors * per_vector
        groups, inner = np.divmod(row, across.size)
        src = start.src + groups * outer.across_src + inner * across.src
        groups, inner = np.divmod(column, along.size)
        src += groups * outer.along_src + inner // per_vector
        yield _load(src, VECTOR, start.active & (row < rows) & (column < columns))
    for k in range(0, int(columns.max()) * vectors, items.kernel.workgroup):
        column, row = (invocation + k) // vectors, (invocation + k) % vectors * per_vector
        groups, inner = np.divmod(column, along.size)
        dst = start.dst + groups * outer.along_dst + inner * along.dst
        groups, inner = np.divmod(row, across.size)
        dst += groups * outer.across_dst + inner // per_vector
        yield _store(dst, VECTOR, start.active & (row < rows) & (column < columns))


class _Edges:
    """The vectors of runs; edges.glsl stores those at the ends word by word."""

    def __init__(self, items: Items, dst: Words, length: Numbers) -> None:
        self._aligned, self._dst, self._length = items.aligned, dst, length
        self._starts, self._ends = (np.zeros(dst.shape, np.bool_) for _ in range(2))
        self._at_start, self._at_end = (np.zeros(dst.shape, np.uint32) for _ in range(2))

    def vector(self, vector: Words, active: Bools) -> Iterator[Access]:
        """Store a vector, or keep it."""
        base, length = _signed(vector * VECTOR - self._dst), self._length
        whole = active & (base >= 0) & (base + VECTOR <= length)
        yield _store(vector, VECTOR, whole)
        if self._aligned:
            for k in range(4):
                yield from self._word(vector * 4 + k, active & ~whole)
            return
        start, end = active & (base < 0), active & (base >= 0) & (base < length) & ~whole
        self._starts |= start
        self._ends |= end
        self._at_start, self._at_end = (
            np.where(start, vector, self._at_start),
            np.where(end, vector, self._at_end),
        )

    def words(self) -> Iterator[Access]:
        """Store the words of the vectors that were kept."""
        end = np.where(self._ends, 8, np.where(self._starts, 4, 0))
        for n in range(int(end.max())):
            k = np.where(self._starts, n, n + 4).astype(np.uint32)
            word = np.where(k < 4, self._at_start, self._at_end) * 4 + k % 4
            yield from self._word(word, k < end)

    def _word(self, word: Words, active: Bools) -> Iterator[Access]:
        base = _signed(word * 4 - self._dst)
        first, last = np.clip(-base, 0, 4), np.clip(self._length - base, 0, 4)
        whole = active & (first == 0) & (last == 4)
        yield from _store_word(word, whole, active & (first < last) & ~whole)


def _copy_run(items: Items) -> Iterator[Access]:
    run, one_by_one = items.vector(layout.Run), items.vector(layout.Position).step == 1
    repeated, length = (run.constant != 0) | (run.src == 0), run.length.astype(np.int64)
    for row in items.rows():
        src = _signed(row.src)
        first = src >> 4
        last = np.where(repeated, first, (src + length - 1) >> 4)
        at = (_signed(row.src - row.dst % VECTOR) >> 4) + row.position
        yield _load(np.clip(at, first, last), VECTOR, row.active)
        edges = _Edges(items, row.dst, length)
        for i, step in enumerate(items.steps(row)):
            vector = row.dst // VECTOR + step.position
            base = _signed(vector * VECTOR - row.dst)
            reads, at = step.active & ~repeated, (src + base) >> 4
            if i:
                yield _load(np.clip(at, first, last), VECTOR, reads & ~one_by_one)
            yield _load(np.clip(at + 1, first, last), VECTOR, reads)
            yield from edges.vector(vector, step.active)
        yield from edges.words()


def _copy_elements(items: Items) -> Iterator[Access]:
    unit, run, group = items.kernel.unit, items.vector(layout.Run), items.vector(layout.Group)
    count = VECTOR // unit
    size, inner = (np.where(run.constant != 0, n, w) for n, w in ((1, group.size), (0, group.src)))
    length = run.length.astype(np.int64) * unit
    for row in items.rows():
        edges = _Edges(items, row.dst * unit, length)
        for step in items.steps(row):
            vector = row.dst // count + step.position
            base = vector * count - row.dst
            for k in range(count):
                # Elements before the run count as those of groups before it.
                groups, within = np.divmod(base + size * count + k, size)
                at = row.src + (groups - count) * run.src + within * inner
                at = np.where(base + k < run.length, at, row.src)
                yield _load(at, unit, step.active)
            yield from edges.vector(vector, step.active)
        yield from edges.words()


def _copy_subword(items: Items) -> Iterator[Access]:
    per_word = 4 // items.kernel.unit
    run, along = items.vector(layout.Run), items.vector(layout.Position).digit_0 != 0
    for row in items.rows():
        for step in items.steps(row):
            word = step.dst // per_word + np.where(along, step.position, items.first)
            base = word * per_word - step.dst
            inside = (base < run.length) & (run.length - base >= per_word)
            straight = step.active & inside & (run.src == 1)
            element = step.src + base
            yield _load(element // per_word, 4, straight)
            yield _load(element // per_word + 1, 4, straight & (element % per_word != 0))
            some = np.zeros_like(inside)
            for t in range(per_word):
                has = step.active & ~straight & (base + t < run.length)
                yield _load((step.src + (base + t) * run.src) // per_word, 4, has)
                some |= has
            yield from _store_word(word, step.active & inside, some & ~inside)


def _store_word(word: Words, whole: Bools, part: Bools) -> Iterator[Access]:
    yield _store(word, 4, whole)
    yield _store(word, 4, part)  # atomicAnd
    yield _store(word, 4, part)  # atomicOr


def _segment_at(items: Items, column: Words) -> Words:
    """Return the segments that have these bytes of a row."""
    found, beyond = np.zeros_like(column), items.vector(layout.Stream).segments.copy()
    while (searches := beyond - found > 1).any():
        middle = (found + beyond) >> 1
        before = items.vector(layout.Segment, middle).start <= column
        found, beyond = (
            np.where(searches & before, middle, found),
            np.where(searches & ~before, middle, beyond),
        )
    return found


def _copy_stream(items: Items) -> Iterator[Access]:
    stream, row_bytes = items.vector(layout.Stream), items.vector(layout.Row).nbytes
    (item,) = items.rows()
    position = items.first * stream.vectors * VECTOR
    end = np.minimum(position + stream.vectors * VECTOR, stream.nbytes)
    vector = (item.dst + position) // VECTOR
    row, column = np.divmod(position, row_bytes)
    segment = _segment_at(items, column)

    def piece() -> tuple[Words, Words]:
        at = items.vector(layout.Segment, segment)
        return items.vector(layout.Head, segment).src + row * at.row_src, at.nbytes

    def onward(count: Words) -> tuple[Words, Words, Words, Words]:
        nonlocal row, segment
        after_src, after_left = src + count, left - count
        done = after_left == 0
        segment = segment + done
        row, segment = row + (segment == stream.segments), segment % stream.segments
        next_src, next_left = piece()
        return (
            row,
            segment,
            np.where(done, next_src, after_src),
            np.where(done, next_left, after_left),
        )

    src, left = piece()
    skipped = column - items.vector(layout.Segment, segment).start
    src, left, filled = src + skipped, left - skipped, np.zeros_like(row)
    shared = np.zeros_like(item.active)
    if items.kernel == STREAM_SHARED:
        needed = _Needed(items)
        begin = row, segment, src, left
        at = position
        while (active := item.active & (at < end)).any():
            count = np.minimum(end - at, left) * active
            needed.add(items.vector(layout.Segment, segment).source, src, count, active)
            at, row, segment, src, left = at + count, *onward(count)
        yield from needed.loads()
        shared = needed.fits
        row, segment, src, left = begin
    while (active := item.active & (position < end)).any():
        yield _load(src // VECTOR, VECTOR, active & ~shared)
        count = np.minimum(VECTOR - src % VECTOR, left) * active
        filled, position = filled + count, position + count
        full = active & (filled >= VECTOR) & (position < end)
        yield _store(vector, VECTOR, full)
        filled, vector = filled - VECTOR * full, vector + full
        row, segment, src, left = onward(count)
    full = item.active & (filled >= VECTOR)
    yield _store(vector, VECTOR, full)
    filled, vector = filled - VECTOR * full, vector + full
    for k in range(4):
        tail = item.active & (end == stream.nbytes) & (4 * k < filled)
        yield _load(vector * 4 + k, 4, tail)
        yield _store(vector * 4 + k, 4, tail)


class _Needed:
    """The vectors of each tensor that the workgroups of copy_stream_shared load."""

    def __init__(self, items: Items) -> None:
        self._size, self._invocations = items.kernel.workgroup, items.active.size
        shape = (SHARED_TENSORS, items.active.size // self._size)
        self._first, self._last = np.full(shape, layout.ALL_WORDS), np.zeros(shape, np.int64)

    def add(self, tensor: Words, src: Words, count: Words, active: Bools) -> None:
        """Add bytes that invocations need."""
        at = tensor[active], (np.arange(self._invocations) // self._size)[active]
        np.minimum.at(self._first, at, (src // VECTOR)[active])
        np.maximum.at(self._last, at, ((src + count - 1) // VECTOR)[active])

    @property
    def fits(self) -> Bools:
        """Of each invocation, whether its workgroup shares vectors."""
        return np.repeat(self._total()[-1] <= 2 * self._size, self._size)

    def _total(self) -> Numbers:
        """The number of vectors of each tensor and those before it."""
        total: Numbers = np.cumsum(np.maximum(self._last - self._first + 1, 0), axis=0)
        return total

    def loads(self) -> Iterator[Access]:
        """Yield the loads of all vectors, until they are too many."""
        for first, last, total in zip(self._first, self._last, self._total(), strict=True):
            first, last = (np.repeat(n, self._size) for n in (first, last))
            some = np.repeat(total <= 2 * self._size, self._size) & (first <= last)
            at = first // 8 * 8 + np.arange(self._invocations) % self._size
            while (active := some & (at <= last)).any():
                yield _load(at, VECTOR, active & (at >= first))
                at = at + self._size


_PLAIN: Mapping[str, Callable[[Items], Iterator[Access]]] = {
    "copy_tile": _tile,
    "copy_run": _copy_run,
    "copy_elements": _copy_elements,
    "copy_stream": _copy_stream,
    "copy_stream_shared": _copy_stream,
}


# -- kernels with indices --------------------------------------------------------------------------


class _Moves:
    """The distances by which indices move addresses, as in indices.glsl."""

    def __init__(self, items: Items, read_index: ReadIndex) -> None:
        self._read, self.format = read_index, items.vector(layout.Format, 1)
        self.advance, self._within = items.vector(layout.Advance, 1), items.vector(layout.Within, 1)
        terms = int(self.format.terms.max())
        self._terms = [items.vector(layout.Term, 2, number) for number in range(terms)]
        self._address = items.vector(layout.Head, 1).src * items.kernel.unit // 4
        self.word = self._within.word
        self.base = items.vector(layout.Head, 2)

    def find(self, index: Words, place: Words, active: Bools) -> Iterator[Access]:
        """Yield the loads of an index tuple; ``moved`` and ``inside`` are known after them."""
        self.moved, self.inside = np.zeros_like(index), np.ones_like(active)
        for number, term in enumerate(self._terms):
            has = active & (number < self.format.terms)
            at = index + self._address + term.offset
            yield _load(at // 2, 8, has)
            moved, inside = self._number(at, place, term)
            self.moved += np.where(number < self.format.terms, moved, 0)
            self.inside &= inside | (number >= self.format.terms)

    def _number(self, at: Words, place: Words, term: Any) -> tuple[Words, Bools]:
        low, high = self._read(at, term.size)
        signed = self.format.signed != 0
        sign = np.where(signed & (low >= 1 << 31), layout.ALL_WORDS, 0).astype(np.uint32)
        high = np.where(self.format.words == 2, high, sign)
        negative = signed & (high >= 1 << 31)
        number = np.where(negative, low + term.size, low)
        inside = (high == np.where(negative, layout.ALL_WORDS, 0)) & (number < term.size)
        number = np.where(inside, number, np.where(negative, 0, term.size - 1))
        length = np.where(inside, number, np.where(negative, 0, term.size))
        turned = np.where(place < length, length - 1 - place, place)
        number = np.where(self.format.reverse != 0, turned, number).astype(np.uint32)
        return number * term.stride, inside

    def in_run(self, at: Where, number: Words) -> tuple[Words, Words]:
        """Return the index and the position of an element of a run, for ``find``."""
        more = self.advance
        return at.indices + number * more.run_indices, at.place + number * more.run_position

    def is_within(self, address: Words) -> Bools:
        """Whether an element at a moved address, counted from the tensor's own, is written."""
        found: Bools = address - self._within.first < self._within.number
        return found

    @property
    def once(self) -> Bools:
        """Whether the index is that of all steps of a row."""
        found: Bools = (self.advance.indices | self.advance.position) == 0
        return found


def _gather(items: Items, read_index: ReadIndex, *, general: bool = False) -> Iterator[Access]:
    unit, moves = items.kernel.unit, _Moves(items, read_index)
    once = moves.once & (not general)
    for row in items.rows():
        yield from moves.find(row.indices, row.place, row.active & once)
        moved = moves.moved
        for step in items.steps(row):
            on = step.active & once
            yield _load(step.src + moved, unit, on)
            yield _store(step.dst, unit, on)
        for step in items.steps(row):
            on = step.active & ~once
            yield from moves.find(step.indices, step.place, on)
            if general:
                on = on & moves.is_within(step.src + moves.moved - moves.base.src)
            yield _load(step.src + moves.moved, unit, on)
            yield _store(step.dst, unit, on)


def _gather_run(items: Items, read_index: ReadIndex) -> Iterator[Access]:
    unit, run, moves = items.kernel.unit, items.vector(layout.Run), _Moves(items, read_index)
    count, length = VECTOR // unit, run.length.astype(np.int64)
    for row in items.rows():
        edges = _Edges(items, row.dst * unit, length * unit)
        for step in items.steps(row):
            vector = row.dst // count + step.position
            base = _signed(vector * count - row.dst)
            for k in range(count):
                e = np.clip(base + k, 0, length - 1).astype(np.uint32)
                yield from moves.find(*moves.in_run(row, e), step.active)
                at = row.src + e * run.src + moves.moved
                yield _load(at * unit // 4 if unit < 4 else at, max(unit, 4), step.active)
            yield from edges.vector(vector, step.active)
        yield from edges.words()


def _gather_subword(items: Items, read_index: ReadIndex) -> Iterator[Access]:
    per_word, moves = 4 // items.kernel.unit, _Moves(items, read_index)
    run, along, advance = (
        items.vector(layout.Run),
        items.vector(layout.Position).digit_0 != 0,
        moves.advance,
    )
    once = (advance.run_indices | advance.run_position) == 0
    for row in items.rows():
        for step in items.steps(row):
            word = step.dst // per_word + np.where(along, step.position, items.first)
            first = np.maximum(word * per_word, step.dst) - step.dst
            end = np.minimum((word + 1) * per_word - step.dst, run.length)
            moved, written = np.zeros_like(first), np.zeros_like(first)
            for n in range(per_word):
                e = first + n
                on = step.active & (e < end)
                finds = on & (~once | (n == 0))
                yield from moves.find(*moves.in_run(step, e), finds)
                moved = np.where(finds, moves.moved, moved)
                at = step.src + e * run.src + moved
                on = on & moves.is_within(at - moves.base.src)
                yield _load(at // per_word, 4, on)
                written += on
            yield from _store_word(
                word, written == per_word, (written != 0) & (written != per_word)
            )


def _scatter(
    items: Items, read_index: ReadIndex, *, by_word: bool = False, general: bool = False
) -> Iterator[Access]:
    unit, moves = items.kernel.unit, _Moves(items, read_index)
    once = moves.once & (not general)
    words = unit // 4 if by_word or general else 1

    def store(at: Words, active: Bools) -> Iterator[Access]:
        for k in range(words - 1):  # the words before it must be those of the same element
            yield _load(
                at * words + k, 4, active & (moves.word != layout.ALL_WORDS) & (k < moves.word)
            )
        first = np.where(moves.word == layout.ALL_WORDS, 0, moves.word)
        for k in range(words):
            on = active & ((k == 0) | (moves.word == layout.ALL_WORDS))
            yield _store(at * words + (first + k), unit // words, on)

    for row in items.rows():
        yield from moves.find(row.indices, row.place, row.active & once)
        moved, inside = moves.moved, moves.inside
        for step in items.steps(row):
            on = step.active & once & inside
            yield _load(step.src, unit, on)
            yield from store(step.dst + moved, on)
        for step in items.steps(row):
            on = step.active & ~once
            yield from moves.find(step.indices, step.place, on)
            to = step.dst + moves.moved
            yield _load(step.src, unit, on)
            on = on & moves.inside
            if general:
                on = on & moves.is_within(to - moves.base.dst)
            yield from store(to, on)


def _scatter_subword(items: Items, read_index: ReadIndex) -> Iterator[Access]:
    per_word, moves = 4 // items.kernel.unit, _Moves(items, read_index)
    for row in items.rows():
        for step in items.steps(row):
            yield from moves.find(step.indices, step.place, step.active)
            to = step.dst + moves.moved
            anywhere = moves.word == layout.ALL_WORDS
            on = step.active & moves.inside & (anywhere | (to % per_word == moves.word))
            on &= moves.is_within(to - moves.base.dst)
            yield _load(step.src // per_word, 4, on)
            yield _load(to // per_word, 4, on & anywhere)
            yield _store(to // per_word, 4, on & ~anywhere)  # atomicOr
            yield _store(to // per_word, 4, on)  # exchanged once


def _by_size(small: _Indexed, large: _Indexed) -> _Indexed:
    return lambda items, read: (small if items.kernel.unit < 4 else large)(items, read)


_INDEXED: Mapping[str, _Indexed] = {
    "gather": _gather,
    "gather_run": _gather_run,
    "gather_any": _by_size(_gather_subword, partial(_gather, general=True)),
    "scatter": _scatter,
    "scatter_any": _by_size(_scatter_subword, partial(_scatter, general=True)),
    "scatter_words": partial(_scatter, by_word=True),
}
