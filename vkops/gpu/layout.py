"""The region table: the layout of what the host writes and the shaders read, declared once.

A table is an array of vectors of four words: a ``Header``, then the records, one for each region.
Each class below is one vector, its fields the words of it. ``glsl`` writes the same declaration
for the shaders. After a change here, ``python -m vkops.gpu.layout`` writes shaders/layout.glsl.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

TABLE_BYTES = 1 << 20

WORKGROUP_SIZE = 64
"""Invocations of a workgroup."""

MAX_DIGITS = 10

MAX_TRACED_STORES = 16
"""Stores of a byte for which there is room behind a table; of more, the first are kept."""

CONSTANT = 0xFFFFFFFF
"""Stands for the number of a source where the bytes stored are those of a constant."""


class Header(NamedTuple):
    """The first vector of a table."""

    records: int
    items: int
    """Of all records."""
    spread: int
    """2^32 times the share of the workgroups that have items; 0 if all have."""


class Head(NamedTuple):
    """Where a record begins."""

    first_item: int
    dst: int
    src: int
    digits: int
    """How many there are."""


class Steps(NamedTuple):
    """The steps of an item: how many, what each adds to the addresses, the limit of positions."""

    number: int
    dst: int
    src: int
    limit: int


class Position(NamedTuple):
    """What a step, and the digits 0, 1 and 3, add to the position along the steps."""

    step: int
    digit_0: int
    digit_1: int
    digit_3: int


class Run(NamedTuple):
    """Contiguous elements of the destination, or bytes, and where their values come from."""

    length: int
    src: int
    """What the next element adds to the source's address."""
    constant: int
    """1 if ``Pattern`` is what is stored."""
    reversed: int
    """Bytes of the elements whose order copy_reverse reverses in each vector."""


class Block(NamedTuple):
    """What the rows and columns of copy_block's blocks add to the addresses."""

    row_src: int
    column_dst: int


class Stream(NamedTuple):
    """A stream of copy_stream: vectors of an item, bytes and segments of a row."""

    vectors: int
    nbytes: int
    segments: int


class Segment(NamedTuple):
    """A segment of each row of a stream: its first byte there, its bytes, where they are from."""

    start: int
    nbytes: int
    row_src: int
    """What a row adds to the source's address."""
    source: int
    """The number of the source buffer."""


class Row(NamedTuple):
    """The rows of a stream: bytes of each, and the factor to divide by them."""

    nbytes: int
    factor: int


class Pattern(NamedTuple):
    """The bytes of a constant, repeated to fill a word at least."""

    x: int = 0
    y: int = 0
    z: int = 0
    w: int = 0


class Digit(NamedTuple):
    """A digit of item numbers: its base, the factor to divide by it, strides."""

    size: int
    factor: int
    dst: int
    src: int


class Traced(NamedTuple):
    """The vector behind a table in TRACE builds: stores so far, and the byte they are of."""

    stores: int
    address: int


class Writer(NamedTuple):
    """Who made a traced store."""

    group_x: int
    group_y: int
    invocation: int
    record: int
    """The number of its first vector."""


class Stored(NamedTuple):
    """What a traced store wrote: the first byte's address, the traced one's source, the bytes."""

    first: int
    address: int
    source: int
    nbytes: int


Vector = (
    Head | Steps | Position | Run | Block | Stream | Segment | Row | Pattern | Digit
    | Header | Traced | Writer | Stored
)  # fmt: skip

RECORD: tuple[tuple[type[Vector], ...], ...] = (
    (Head,),
    (Steps, Stream),
    (Position, Segment),
    (Run, Block, Row),
    (Pattern,),
    (Digit,),
)
"""The vectors of a record in their order; kernels differ in some. The last one is repeated."""

TRACED_STORE: tuple[type[Vector], ...] = (Writer, Stored, Pattern)

RECORD_VECTORS = len(RECORD) - 1 + MAX_DIGITS
RECORD_WORDS = 4 * RECORD_VECTORS
HEADER_WORDS = 4

MAX_RECORDS = (TABLE_BYTES // 4 - HEADER_WORDS) // RECORD_WORDS
"""Records that fit in a table."""

_INDEX = {vector: index for index, vectors in enumerate(RECORD) for vector in vectors}


def word(vector: type[Vector], field: str = "") -> int:
    """Return the number of a field's word in a record, or of the vector's first word."""
    return 4 * _INDEX[vector] + (vector._fields.index(field) if field else 0)


def glsl() -> str:
    """Return the declarations that the shaders include."""
    return "\n".join(_declarations()) + "\n"


def _declarations() -> Iterator[str]:
    yield "// Written by `python -m vkops.gpu.layout`: what each name means is said there."
    yield ""
    constants = {
        "RECORDS": HEADER_WORDS // 4,
        "RECORD_VECTORS": RECORD_VECTORS,
        **{vector.__name__.upper(): index for vector, index in _INDEX.items()},
        "CONSTANT": "~0",
    }
    traced = {
        "TRACED": TABLE_BYTES // 16,
        "TRACED_STORE_VECTORS": len(TRACED_STORE),
        "MAX_TRACED_STORES": MAX_TRACED_STORES,
    }
    yield from (f"const uint {name} = {value}u;" for name, value in constants.items())
    yield "#ifdef TRACE"
    yield from (f"const uint {name} = {value}u;" for name, value in traced.items())
    yield "#endif"
    yield f"#define WORKGROUP_SIZE {WORKGROUP_SIZE}"
    vectors: tuple[type[Vector], ...] = (Header, *_INDEX, Traced)
    for vector in vectors:
        yield ""
        for field, component in zip(vector._fields, "xyzw", strict=False):
            yield f"#define {vector.__name__.upper()}_{field.upper()} {component}"


if __name__ == "__main__":
    Path("shaders", "layout.glsl").write_text(glsl())
