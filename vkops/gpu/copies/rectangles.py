"""Runs, the bytes of a region that are contiguous in both of its tensors, and rectangles of rows.

Copies between a buffer and an image move rectangles: rows of bytes with a pitch on each side. A
linear image is laid over the memory of one of the two tensors; the other tensor is the buffer. The
image's pitch must be a multiple of the driver's alignment. If the tensor's pitch is not, one row of
the image holds several rows of the tensor.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd, prod
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from vkops.gpu.kernels.choice import VECTOR
from vkops.plan.region import Fill, Region

WORD = 4
"""Bytes of the value that vkCmdFillBuffer repeats."""

Int64Array = npt.NDArray[np.int64]


class Runs(NamedTuple):
    """Runs that are contiguous in both tensors of a region: their bytes, and the other axes."""

    width: int
    axes: tuple[int, ...]


def find_runs(region: Region, size: int) -> Runs | None:
    """Return the contiguous runs that a region copies or fills with a word; None without any."""
    if region.indices is not None:
        return None
    axes = tuple(range(len(region.sizes)))
    target, source = region.target, region.source
    if isinstance(source, Fill):
        *outer, inner = target.strides
        runs = Runs(region.sizes[-1] * size, axes[:-1]) if inner == 1 else None
        whole = size % WORD == 0 or not any(
            number * size % WORD for number in (region.sizes[-1], target.offset, *outer)
        )
        return runs if whole and filled_word(source) is not None else None
    if target.strides[-1] == source.view.strides[-1] == 1:
        return Runs(region.sizes[-1] * size, axes[:-1])
    return Runs(size, axes) if size == VECTOR else None  # the largest elements are runs


def filled_word(fill: Fill) -> int | None:
    """Return the word that a constant repeats; None if it is not one word again and again."""
    pattern = fill.pattern * (WORD // min(WORD, len(fill.pattern)))
    word = pattern[:WORD]
    return int.from_bytes(word, "little") if word * (len(pattern) // WORD) == pattern else None


def run_starts(region: Region, size: int, axes: Sequence[int]) -> Int64Array:
    """Return the byte offsets in source and target of the runs at all indices of some axes."""
    starts = []
    for view in (region.source_view, region.target):
        start = np.array([view.offset])
        for axis in axes:
            start = np.add.outer(start, np.arange(view.sizes[axis]) * view.strides[axis]).ravel()
        starts.append(start)
    return np.stack(starts, 1) * size


def run_rows(region: Region, size: int) -> Int64Array:
    """The runs of a region: byte offsets in the source and the target, and bytes."""
    runs = find_runs(region, size)
    assert runs is not None
    starts = run_starts(region, size, runs.axes)
    return np.column_stack([starts, np.full(len(starts), runs.width)])


MAX_ROWS = 4096
"""Rows of an image."""

CACHED_BYTES = 1 << 20
"""Bytes that one command copies of an image whose rows hold several rows of the tensor."""

HEIGHT_ALIGNMENT = 4
"""llvmpipe pads images to a multiple of 4 rows, and SwiftShader to a multiple of 2."""

MIN_ROWS = 4
"""Rows that a rectangle must have."""

MAX_RECTANGLES = 1 << 16
"""The maximum number of rectangles of a region; a region with more is copied in another way."""


class ImageLimits(NamedTuple):
    """The bytes that the rows of linear images are multiples of, and the texels along a side."""

    alignment: int
    side: int


class LinearImage(NamedTuple):
    """A linear image over a tensor's memory, from byte ``base`` on, in rows of ``pitch`` bytes.

    Each row of the image holds ``rows`` rows of the tensor. A ``chunk`` of image rows is copied by
    one command.
    """

    over_target: bool
    base: int
    pitch: int
    rows: int

    @property
    def chunk(self) -> int:
        """The rows of a chunk: a power of two."""
        if self.rows == 1:
            return MAX_ROWS
        return min(MAX_ROWS, 1 << max(0, (CACHED_BYTES // self.pitch).bit_length() - 1))


@dataclass(frozen=True, slots=True, eq=False)
class Rectangles:
    """A region as rectangles of rows of ``width`` bytes, which an image copies.

    ``copies`` has rows of (x, y, width, height, offset in the buffer, pitch in the buffer). The
    elements beyond the last whole row of the image are copied as ``runs``: rows of (source offset,
    target offset, bytes). All numbers but y and height are in bytes, and multiples of ``unit``.
    """

    image: LinearImage
    width: int
    unit: int
    copies: Int64Array
    runs: Int64Array


def rectangles(
    region: Region, size: int, nbytes: tuple[int, int], limits: ImageLimits
) -> Rectangles | None:
    """Divide a region into rectangles, if an image can be laid over one of its tensors.

    ``nbytes`` holds the sizes of the source and the target. Both can have the image over them: the
    tensor is chosen for which a row of the image holds fewer rows, and the target if they are
    equal.
    """
    runs = find_runs(region, size)
    if runs is None:
        return None
    width, axes = runs
    views = region.source_view, region.target
    possible = [
        axis
        for axis in axes
        if region.sizes[axis] >= MIN_ROWS
        and all(view.strides[axis] * size >= width for view in views)
    ]
    row_axis = max(possible, key=lambda axis: region.sizes[axis], default=None)
    others = [axis for axis in axes if axis != row_axis]
    if row_axis is None or prod([region.sizes[axis] for axis in others]) > MAX_RECTANGLES:
        return None
    pitches = views[0].strides[row_axis] * size, views[1].strides[row_axis] * size
    starts = run_starts(region, size, others)
    unit = gcd(VECTOR, width, *pitches, *set(starts.ravel().tolist()))
    images = [
        _linear_image(side, starts, pitches[side], width, unit, limits) for side in (True, False)
    ]
    image = min(filter(None, images), key=lambda image: image.rows, default=None)
    height = region.sizes[row_axis]
    if image is None or len(starts) * min(image.rows, height) > MAX_RECTANGLES:
        return None
    copies, left = _divide(image, starts, pitches, (width, height), nbytes[image.over_target])
    return Rectangles(image, width, unit, copies, left)


def _linear_image(
    over_target: bool, starts: Int64Array, pitch: int, width: int, unit: int, limits: ImageLimits
) -> LinearImage | None:
    alignment = limits.alignment
    rows = alignment // gcd(pitch, alignment)
    if rows * pitch > limits.side * unit:
        return None
    places = starts[:, int(over_target)]
    # Regions of the same tensor share an image if it begins where the tensor does.
    for base in (0, int(np.min(places)) // alignment * alignment):
        if int(np.max((places - base) % pitch)) + width <= pitch:
            return LinearImage(over_target, base, rows * pitch, rows)
    return None


def _divide(
    image: LinearImage,
    starts: Int64Array,
    pitches: tuple[int, int],
    size: tuple[int, int],
    nbytes: int,
) -> tuple[Int64Array, Int64Array]:
    """Return the copies and runs of rectangles; the tensor under the image has ``nbytes`` bytes."""
    side = int(image.over_target)
    pitch, buffer_pitch = pitches[side], pitches[1 - side]
    width, rows = size
    passes = np.arange(min(image.rows, rows))
    first, x = np.divmod(starts[:, side] - image.base, pitch)
    y, place = np.divmod(first[:, None] + passes, image.rows)
    x = (place * pitch + x[:, None]).ravel()
    buffer = (starts[:, 1 - side, None] + passes * buffer_pitch).ravel()
    height = np.broadcast_to((rows - passes + image.rows - 1) // image.rows, y.shape).ravel()
    y = y.ravel()

    whole = (nbytes - image.base) // image.pitch // HEIGHT_ALIGNMENT * HEIGHT_ALIGNMENT
    inside = np.clip(whole - y, 0, height)
    step = image.rows * buffer_pitch
    left, index = _spread(height - inside)
    at = image.base + (y + inside)[left] * image.pitch + x[left] + index * image.pitch
    other = buffer[left] + (inside[left] + index) * step
    columns = (other, at) if image.over_target else (at, other)
    runs = np.stack([*columns, np.full(at.size, width)], 1)

    chunk = image.chunk
    of, index = _spread(np.where(inside, (y + inside - 1) // chunk - y // chunk + 1, 0))
    top = (y // chunk)[of] + index
    begin = np.maximum(y[of], top * chunk)
    end = np.minimum((y + inside)[of], (top + 1) * chunk)
    start = buffer[of] + (begin - y[of]) * step
    copies = np.broadcast_arrays(x[of], begin, width, end - begin, start, step)
    return np.stack(copies, 1), runs


def in_order(copies: Int64Array, image: LinearImage) -> Int64Array:
    """Return an order of copies in which each chunk of the image stays in the cache."""
    return np.argsort(copies[:, 1] // image.chunk, kind="stable")


def _spread(counts: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Return, for ``counts[kind]`` things of each kind, their kinds and numbers within the kind."""
    kinds = np.repeat(np.arange(counts.size), counts)
    return kinds, np.arange(kinds.size) - np.repeat(np.cumsum(counts) - counts, counts)
