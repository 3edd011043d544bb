"""Random operators of every kind, type, rank and layout, made from a seed."""

from __future__ import annotations

from itertools import pairwise
from math import prod

import operator_cases
from operator_cases import DTYPES

from vkops import dml

LARGEST = {1: 4000, 2: 90, 3: 20, 4: 9, 5: 6, 6: 4, 7: 3, 8: 3}
"""Elements of a dimension, by rank."""

MOST_SPANNED = 1 << 14
"""Elements from the first to the last of a tensor."""

KINDS = sorted(DTYPES)


def case(random, ranks=range(1, 9)):
    """Any operator, of one of these ranks."""
    rank = random.choice(ranks)
    sizes = tuple(random.randint(1, LARGEST[rank]) for _ in range(rank))
    if random.random() < 0.25:  # what vectors divide has kernels of its own
        sizes = tuple(n if n < 8 else n // 8 * 8 for n in sizes)
    make = random.choice((_split, _join, _slice, _slice1, _identity))
    return make(random, random.choice(KINDS), sizes, random.randrange(rank))


def _split(random, kind, sizes, axis):
    targets = [_output(random, kind, part) for part in _parts(random, sizes, axis)]
    return operator_cases.split(_input(random, kind, sizes), targets, axis)


def _join(random, kind, sizes, axis):
    sources = [_input(random, kind, part) for part in _parts(random, sizes, axis)]
    return operator_cases.join(sources, _output(random, kind, sizes), axis)


def _slice(random, kind, sizes, _):
    offsets = [random.choice((0, random.randrange(n))) for n in sizes]
    strides = [random.choice((1, 1, 2, 3, 5)) for _ in sizes]
    counts = [
        _count(random, 1 + (n - 1 - offset) // stride)
        for n, offset, stride in zip(sizes, offsets, strides, strict=True)
    ]
    source, target = _input(random, kind, sizes), _output(random, kind, counts)
    return operator_cases.slice_(source, target, offsets, strides)


def _slice1(random, kind, sizes, _):
    offsets = [random.choice((0, random.randrange(n))) for n in sizes]
    windows = [_count(random, n - offset) for n, offset in zip(sizes, offsets, strict=True)]
    strides = [random.choice((-1, -1, 1, 1, -3, -2, 2, 5)) for _ in sizes]
    counts = [
        _count(random, 1 + (window - 1) // abs(stride))
        for window, stride in zip(windows, strides, strict=True)
    ]
    source, target = _input(random, kind, sizes), _output(random, kind, counts)
    return operator_cases.slice1(source, target, offsets, windows, strides)


def _identity(random, kind, sizes, _):
    return operator_cases.identity(_input(random, kind, sizes), _output(random, kind, sizes))


def _count(random, most):
    """All there is as often as not."""
    return random.choice((most, random.randint(1, most)))


def _parts(random, sizes, axis):
    """Shapes that put together along the axis are the whole."""
    n = sizes[axis]
    cuts = sorted(random.sample(range(1, n), min(n - 1, random.randint(0, 6))))
    return [(*sizes[:axis], b - a, *sizes[axis + 1 :]) for a, b in pairwise([0, *cuts, n])]


def _output(random, kind, sizes):
    """Packed, or permuted and padded."""
    if random.random() < 0.5:
        return dml.BufferTensorDesc(kind, sizes)
    strides, step = [0] * len(sizes), 1
    for axis in random.sample(range(len(sizes)), len(sizes)):
        strides[axis] = step
        step = step * sizes[axis] + random.choice((0, 0, 0, 1, 4))
    if step > MOST_SPANNED:
        strides = None
    return dml.BufferTensorDesc(kind, sizes, strides)


def _input(random, kind, sizes):
    """As outputs, and broadcast: a stride may be 0."""
    desc = _output(random, kind, sizes)
    if random.random() < 0.8 or prod(sizes) == 1:
        return desc
    strides = [random.choice((stride, stride, 0)) for stride in desc.effective_strides]
    return dml.BufferTensorDesc(kind, sizes, strides)
