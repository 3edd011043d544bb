"""Rectangles: what copies between a buffer and an image move is what the region copies."""

import math

import numpy as np
import pytest

from vkops.gpu.copies.rectangles import MAX_ROWS, MIN_ROWS, ImageLimits, in_order, rectangles
from vkops.plan import CopyPlan, Output, View
from vkops.plan.execute import execute
from vkops.plan.movements import copy

LIMITS = ImageLimits(alignment=64, side=16384)


def execute_copies(region, size, source, target):
    """What the copies of a region make of a target, or None if an image is not possible."""
    copied = rectangles(region, size, (source.size, target.size), LIMITS)
    if copied is None:
        return None
    result, image = target.copy(), copied.image
    under, buffer = (result, source) if image.over_target else (source, result)
    copies, runs = copied.copies, copied.runs
    assert image.pitch % LIMITS.alignment == 0
    assert image.pitch // copied.unit <= LIMITS.side
    assert not (copies[:, [0, 2, 4, 5]] % copied.unit).any()
    for x, y, width, height, offset, pitch in copies[in_order(copies, image)].tolist():
        assert x + width <= image.pitch
        assert width <= pitch
        assert y // MAX_ROWS == (y + height - 1) // MAX_ROWS
        assert image.base + (y + height) * image.pitch <= under.size
        for row in range(height):
            start = image.base + (y + row) * image.pitch + x
            at = offset + row * pitch
            if image.over_target:
                under[start : start + width] = buffer[at : at + width]
            else:
                buffer[at : at + width] = under[start : start + width]
    for start, at, nbytes in runs.tolist():
        result[at : at + nbytes] = source[start : start + nbytes]
    return result


def splits(shape, axis, parts):
    """The regions of a split, each with the bytes of its output in elements."""
    start = 0
    for part in parts:
        sizes = (*shape[:axis], part, *shape[axis + 1 :])
        yield copy(View.packed(shape).narrow(axis, start, part), View.packed(sizes)), sizes
        start += part


CASES = {
    "aligned rows": ((64, 256), 1, [64, 128, 64], 4),
    "odd rows": ((1000, 255), 1, [85, 85, 85], 2),
    "bytes": ((5000, 63), 1, [21, 1, 41], 1),
    "three dimensions": ((3, 40, 7, 10), 2, [2, 5], 4),
    "rows that do not fill the last row of the image": ((33, 17), 1, [16, 1], 8),
    "more rows than an image has": ((3 * MAX_ROWS, 16), 1, [8, 8], 4),
    "few rows": ((MIN_ROWS, 100), 1, [50, 50], 1),
}


@pytest.mark.parametrize("join", [False, True], ids=["split", "join"])
@pytest.mark.parametrize("name", CASES)
def test_the_copies_of_a_region_are_what_it_copies(name, join):
    shape, axis, parts, size = CASES[name]
    rng = np.random.default_rng(1)
    done = 0
    for region, sizes in splits(shape, axis, parts):
        nbytes = [int(np.prod(shape)) * size, int(np.prod(sizes)) * size]
        if join:
            region, nbytes = copy(region.target, region.source_view), nbytes[::-1]
        source, target = (rng.integers(0, 256, n, np.uint8) for n in nbytes)
        result = execute_copies(region, size, source, target)
        if result is None:
            continue
        plan = CopyPlan(size, (source.size,), (Output(target.size, (region,)),))
        execute(plan, [source], [target])
        np.testing.assert_array_equal(result, target)
        done += 1
    assert done


def test_random_regions():
    rng = np.random.default_rng(2)
    done = 0
    for _ in range(300):
        rank = rng.integers(2, 5)
        sizes = tuple(rng.integers(1, 14, rank).tolist())
        views = []
        for _ in range(2):
            gaps = rng.integers(0, 3, rank)
            padded = np.add(sizes, gaps)
            starts = rng.integers(0, gaps + 1)
            view = View.packed(tuple(padded.tolist()))
            axes = tuple(np.flatnonzero(rng.integers(0, 4, rank - 1) == 0).tolist())
            view = view.window(tuple(starts.tolist()), sizes, (1,) * rank).flip(axes)
            views.append((view, int(padded.prod())))
        size = int(rng.choice([1, 2, 4, 8, 16]))
        (read, source_size), (written, target_size) = views
        source, target = (
            rng.integers(0, 256, n * size, np.uint8) for n in (source_size, target_size)
        )
        region = copy(read, written)
        expected = target.copy()
        plan = CopyPlan(size, (source.size,), (Output(target.size, (region,)),))
        execute(plan, [source], [expected])
        result = execute_copies(region, size, source, target)
        if result is not None:
            np.testing.assert_array_equal(result, expected)
            done += 1
    assert done > 100


@pytest.mark.parametrize(("sizes", "expected"), [((120, 120, 300, 16), True), ((300,) * 4, False)])
def test_a_region_of_very_many_rectangles_is_none(sizes, expected):
    """Looking at each of them would take longer than the copy."""
    view = View.packed((*sizes[:-1], 2 * sizes[-1])).narrow(len(sizes) - 1, 0, sizes[-1])
    region = copy(view.permute((0, 2, 1, 3)), View.packed((sizes[0], sizes[2], sizes[1], sizes[3])))
    copied = rectangles(region, 1, (2 * math.prod(sizes), math.prod(sizes)), LIMITS)
    assert (copied is not None) == expected
