"""The layout of the region table, which the host writes and the shaders read, declared only here.

A table is an array of vectors of four words: a ``Header``, then one record for each region. The
fields below are the words of the vectors; words without a field are not used. After a change,
``python -m vkops.gpu.kernels.layout`` writes the same declaration for the shaders:
shaders/layout.glsl.
"""

from __future__ import annotations

import re
from collections import namedtuple
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from vkops.plan.rounding import ceil_div

TABLE_BYTES = 1 << 20

WORKGROUP_SIZE = 64
"""Invocations of a workgroup; kernels with shared memory may have more."""

MAX_GROUPS = 65535
"""Workgroups in each dimension that every Vulkan device can dispatch."""


def group_counts(count: int) -> tuple[int, int, int]:
    """Return the workgroups in each dimension: ``count`` in all, or a few more.

    >>> group_counts(65536)
    (32768, 2, 1)
    """
    rows = ceil_div(count, MAX_GROUPS)
    return ceil_div(count, rows), rows, 1


LINE = 128
"""Bytes of the largest segments that a GPU's memory or one of its caches moves at a time."""

TURN = 8
"""Items of a record before those of the next one, where records take turns: vectors of a line."""

MAX_DIGITS = 10

ALL_WORDS = 0xFFFFFFFF
"""Stands for the number of a word where whole elements are written."""

MAX_EXCHANGES = 32768
"""Elements smaller than a word that one dispatch scatters to any places: each of them may have to
try again after each store of another one, and drivers end loops after 65,535 rounds."""

Header = namedtuple("Header", "records items turns unused_w", defaults=(0, 0))
"""The first vector of a table: the numbers of records and of items.

If ``turns`` is not 0, records have equally many items, and take turns: each has TURN of them,
then the next. It is the factor to divide by the number of records."""

Head = namedtuple("Head", "first_item dst src digits")
"""The number of a record's first item, the first addresses, and the number of digits."""

Steps = namedtuple("Steps", "number dst src limit")
"""The number of an item's steps, what each adds to the addresses, the limit of positions."""

Stream = namedtuple("Stream", "vectors nbytes segments")
"""Of copy_stream and copy_rows: vectors of an item, bytes of the stream, segments of a row.

Of copy_grid, the last is the number of dimensions."""

Position = namedtuple("Position", "step digit_0 digit_1 digit_3")
"""The amounts that a step and the digits 0, 1 and 3 add to the position along the steps."""

Segment = namedtuple("Segment", "start nbytes row_src source")
"""A part of a stream's rows: first byte, bytes, stride of a row in the source.

``source`` is the number of the source's heap; of copy_stream_shared, that of its tensor."""

Run = namedtuple("Run", "length src constant element")
"""Contiguous elements (or bytes) of the destination: their number and their source's stride.

``constant`` is 1 if they come from ``Pattern``. ``element`` is the size in bytes of the
elements that copy_run repeats, or whose order copy_reverse reverses in each vector."""

Reach = namedtuple("Reach", "first last")
"""Of copy_rows: the first and the last byte that a segment reads, counted from its address."""

Block = namedtuple("Block", "row_src column_dst")
"""Of copy_block: the strides of a row in the source and of a column in the destination."""

Across = namedtuple("Across", "size factor src limit")
"""Of copy_tile, a dimension of columns: size, factor to divide by it, stride in the source.

``limit`` is the number of elements of a column in all tiles."""

Along = namedtuple("Along", "size factor dst limit")
"""Of copy_tile, a dimension of rows: size, factor to divide by it, stride in the destination.

``limit`` is the number of elements of a row in all tiles."""

Outer = namedtuple("Outer", "across_dst across_src along_dst along_src")
"""Of copy_tile: the strides of the second dimensions of columns and of rows."""

Row = namedtuple("Row", "nbytes factor")
"""A row of a stream: its bytes, and the factor to divide by them."""

Level = namedtuple("Level", "size factor")
"""A dimension of a grid: its size, and the factor to divide by it."""

Starts = namedtuple("Starts", "x y z w", defaults=(ALL_WORDS, ALL_WORDS, ALL_WORDS, ALL_WORDS))
"""Of a dimension of a grid: the first coordinates of its parts, up to four."""

Origins = namedtuple("Origins", "x y z w", defaults=(0, 0, 0, 0))
"""Of each part: the number that coordinate 0 would add to the source's address if it were in it."""

Strides = namedtuple("Strides", "x y z w", defaults=(0, 0, 0, 0))
"""Of each part: the number that a step adds to the source's address."""

Rows = namedtuple("Rows", "number dst src limit")
"""An item's rows of steps: their number, what each adds to the addresses, the limit of rows.

Digit 2 counts the items along the rows."""

Pattern = namedtuple("Pattern", "x y z w", defaults=(0, 0, 0, 0))
"""The bytes of a constant, repeated to fill the vector."""

Group = namedtuple("Group", "size factor src")
"""Of copy_elements: the elements of a group, the factor to divide by them, their stride.

``Run.src`` is the stride of groups."""

Format = namedtuple("Format", "terms words signed reverse")
"""Of indices: the numbers of a tuple, the words of a number, whether it is signed.

``reverse`` is 1 if they are lengths of sequences."""

Advance = namedtuple("Advance", "indices position run_indices run_position")
"""Added by a step, and by an element of a run: to the index's address and to the position."""

RowAdvance = namedtuple("RowAdvance", "indices position")
"""Added by a row: to the index's address and to the position."""

Within = namedtuple("Within", "first number word")
"""The moved addresses whose elements are written: the first, and how many.

``word`` is the word of each element that a scatter writes, or the place in their words of the
elements that it writes, if these are smaller; ALL_WORDS if it writes all."""

Start = namedtuple("Start", "indices position")
"""The first index's address in the index tensor, in words, and the first position."""

Digit = namedtuple("Digit", "size factor dst src")
"""A digit of item numbers: its base, the factor to divide by it, strides."""

DigitAdvance = namedtuple("DigitAdvance", "indices position")
"""Added by a digit: to the index's address and to the position."""

Limits = namedtuple("Limits", "first last")
"""Of indices that address memory: its first address, and how far after it the last one is."""

Term = namedtuple("Term", "offset size stride")
"""A number of an index tuple: its address there in words, its bound, its stride."""


RECORD: tuple[tuple[type[NamedTuple], ...], ...] = (
    (Head,),
    (Steps, Stream, Format, Across, Limits),
    (Position, Segment, Advance, Level),
    (Run, Block, Row, Within, Along, Starts),
    (Rows, RowAdvance, Reach, Origins),
    (Pattern, Group, Start, Outer, Strides),
    (Digit, DigitAdvance, Term),
)
"""The vectors of a record in their order; kernels differ in some. The last one is repeated.

A region with indices has two records more. ``src`` in the head of the first is the address of the
index tensor; it has ``Format``, ``Advance``, ``Within``, ``RowAdvance``, ``Start`` and
``DigitAdvance``. The other has ``Limits`` and ``Term``."""


HEADER_WORDS = 4
RECORD_VECTORS = len(RECORD) - 1 + MAX_DIGITS
RECORD_WORDS = 4 * RECORD_VECTORS

MAX_RECORDS = (TABLE_BYTES // 4 - HEADER_WORDS) // RECORD_WORDS
"""Records that fit in a table."""

MAX_ITEMS = 1 << 30
"""Items of a table: their numbers have 31 bits, those of workgroups that are not full included."""


def word(vector: type[NamedTuple], field: str) -> int:
    """Return the number of a field's word in a record."""
    (index,) = (index for index, vectors in enumerate(RECORD) if vector in vectors)
    return 4 * index + vector._fields.index(field)


def glsl() -> str:
    """Return the declaration that the shaders include."""
    return "\n".join(_declaration()) + "\n"


def _declaration() -> Iterator[str]:
    yield "// Written by `python -m vkops.gpu.kernels.layout`, whose source explains each name."
    yield "#ifndef WORKGROUP_SIZE"
    yield f"#define WORKGROUP_SIZE {WORKGROUP_SIZE}"
    yield "#endif"
    yield f"const uint TURN = {TURN}u;"
    yield "const uint ALL_WORDS = ~0u;"
    yield f"const uint MAX_EXCHANGES = {MAX_EXCHANGES}u;"
    yield f"const uint RECORDS = {HEADER_WORDS // 4}u;"
    yield f"const uint RECORD_VECTORS = {RECORD_VECTORS}u;"
    for index, vectors in enumerate(RECORD):
        for vector in vectors:
            yield f"\nconst uint {_name(vector)} = {index}u;"
            yield from _components(vector)
    yield ""
    yield from _components(Header)


def _components(vector: type[NamedTuple]) -> Iterator[str]:
    for field, component in zip(vector._fields, "xyzw", strict=False):
        if not field.startswith("unused"):
            yield f"#define {_name(vector)}_{field.upper()} {component}"


def _name(vector: type[NamedTuple]) -> str:
    return re.sub("(?<=[a-z])(?=[A-Z])", "_", vector.__name__).upper()


if __name__ == "__main__":
    Path("shaders", "layout.glsl").write_text(glsl(), encoding="utf-8")
