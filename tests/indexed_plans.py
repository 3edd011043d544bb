"""Random plans with indices, with NumPy's result of each."""

from __future__ import annotations

from math import prod
from typing import NamedTuple

import numpy as np
from byte_arrays import elements
from index_numbers import any_numbers, clamped, distinct_numbers, distinct_tuples, wrapped

from vkops.plan import CopyPlan, Output, Read, View
from vkops.plan.indexing import (
    IndexTensor,
    gather,
    gather_elements,
    gather_nd,
    reverse_sequences,
    scatter_elements,
    scatter_nd,
)
from vkops.plan.movements import copy

DTYPES = ("i4", "i8", "u4", "u8")


class IndexedCase(NamedTuple):
    """A plan, the bytes of its inputs, the view of its output, and what it must hold."""

    plan: CopyPlan
    inputs: list[np.ndarray]
    target: View
    expected: np.ndarray


def indexed_case(random, *, element_size=None, kind=None):
    """Any operator, on strided tensors, with indices that may be anything."""
    element_size = element_size or int(random.choice([1, 2, 4, 8, 16]))
    kind = kind or random.choice(list(_KINDS))
    dtype = str(random.choice(DTYPES))
    return _KINDS[kind](_Maker(random, element_size, dtype))


class _Maker:
    """Inputs as they are added to a plan."""

    def __init__(self, random, element_size, dtype):
        self.random, self.size, self.dtype = random, element_size, dtype
        self.inputs = []

    def sizes(self, ranks=(1, 4)):
        rank = int(self.random.integers(*ranks))
        return tuple(int(n) for n in self.random.choice([1, 2, 3, 4, 5, 8, 16], rank))

    def view(self, sizes, *, target=False):
        """A view in any order of axes, with gaps; a source may repeat elements."""
        order = self.random.permutation(len(sizes))
        if self.random.random() < 0.5:
            order = np.arange(len(sizes))[::-1]  # row-major
        strides, step = [0] * len(sizes), int(self.random.choice([1, 1, 1, 2]))
        for axis in order:
            strides[axis] = step
            step *= sizes[axis]
            step += int(self.random.choice([0, 0, 0, 1, 4]))
        if not target and self.random.random() < 0.2:
            strides[int(self.random.integers(len(sizes)))] = 0
        return View(sizes, tuple(strides), int(self.random.choice([0, 0, 1, 4])))

    def data(self, sizes):
        """A new input of random elements: how it is read, and an array."""
        view = self.view(sizes)
        stored = self.random.integers(0, 256, _bytes(view, self.size), np.uint8)
        self.inputs.append(stored)
        return Read(len(self.inputs) - 1, view), elements(stored, view, self.size)

    def indices(self, numbers, *, repeat=False):
        """A new input that holds these numbers, which the data type may wrap.

        With ``repeat``, they may repeat along an axis, with a stride of 0.
        """
        numbers, sizes = np.asarray(numbers).astype(self.dtype), numbers.shape
        if repeat and self.random.random() < 0.3:
            numbers = numbers.take([0], int(self.random.integers(numbers.ndim)))
        width = int(self.dtype[1])
        view = self.view(numbers.shape, target=True)
        stored = self.random.integers(0, 256, _bytes(view, width), np.uint8)
        elements(stored, view, width)[...] = numbers
        self.inputs.append(stored)
        indices = IndexTensor(len(self.inputs) - 1, self.dtype, view.broadcast(sizes))
        return indices, np.broadcast_to(numbers, sizes)

    def numbers(self, sizes, n):
        return any_numbers(self.random, sizes, n, self.dtype)

    def case(self, regions, target, expected):
        inputs = tuple(stored.size for stored in self.inputs)
        plan = CopyPlan(self.size, inputs, (Output(_bytes(target, self.size), tuple(regions)),))
        return IndexedCase(plan, self.inputs, target, expected)


def _bytes(view, size):
    return -(-view.extent * size // 16) * 16


def _gather(maker):
    source, data = maker.data(maker.sizes())
    axis = int(maker.random.integers(data.ndim))
    given = maker.numbers(maker.sizes((1, 3)), data.shape[axis])
    indices, numbers = maker.indices(given, repeat=True)
    expected = np.take(data, clamped(numbers, data.shape[axis]), axis)
    target = maker.view(expected.shape, target=True)
    return maker.case([gather(source, indices, target, axis)], target, expected)


def _gather_elements(maker):
    source, data = maker.data(maker.sizes())
    axis = int(maker.random.integers(data.ndim))
    sizes = list(data.shape)
    sizes[axis] = int(maker.random.integers(1, 9))
    indices, numbers = maker.indices(maker.numbers(sizes, data.shape[axis]), repeat=True)
    expected = np.take_along_axis(data, clamped(numbers, data.shape[axis]), axis)
    target = maker.view(expected.shape, target=True)
    return maker.case([gather_elements(source, indices, target, axis)], target, expected)


def _gather_nd(maker):
    source, data = maker.data(maker.sizes())
    batch = int(maker.random.integers(data.ndim))
    count = int(maker.random.integers(1, data.ndim - batch + 1))
    sizes = (*data.shape[:batch], *maker.sizes((1, 3)))
    columns = [maker.numbers(sizes, n) for n in data.shape[batch : batch + count]]
    indices, numbers = maker.indices(np.stack(columns, -1))
    grid = np.indices(sizes)[:batch]
    places = [clamped(numbers[..., k], data.shape[batch + k]) for k in range(count)]
    expected = data[(*grid, *places)]
    target = maker.view(expected.shape, target=True)
    return maker.case([gather_nd(source, indices, target, batch)], target, expected)


def _scatter_elements(maker):
    source, data = maker.data(maker.sizes())
    axis = int(maker.random.integers(data.ndim))
    n = data.shape[axis]
    sizes = list(data.shape)
    sizes[axis] = int(maker.random.integers(1, n + 1))
    given = distinct_numbers(maker.random, sizes, axis, n, maker.dtype)
    indices, numbers = maker.indices(given)
    updates, new = maker.data(tuple(sizes))
    expected = data.copy()
    places = wrapped(numbers, n)
    inside = (places >= 0) & (places < n)
    grid = list(np.indices(sizes))
    grid[axis] = places
    expected[tuple(g[inside] for g in grid)] = new[inside]
    target = maker.view(data.shape, target=True)
    before = copy(source.view, target, source.input)
    return maker.case([before, scatter_elements(updates, indices, target, axis)], target, expected)


def _scatter_nd(maker):
    source, data = maker.data(maker.sizes())
    count = int(maker.random.integers(1, data.ndim + 1))
    places = data.shape[:count]
    count = min(int(maker.random.integers(1, 9)), prod(places))
    indices, numbers = maker.indices(distinct_tuples(maker.random, count, places, maker.dtype))
    updates, new = maker.data((count, *data.shape[len(places) :]))
    found = np.stack([wrapped(numbers[:, k], n) for k, n in enumerate(places)], 1)
    inside = ((found >= 0) & (found < places)).all(1)
    expected = data.copy()
    expected[tuple(found[inside].T)] = new[inside]
    target = maker.view(data.shape, target=True)
    before = copy(source.view, target, source.input)
    return maker.case([before, scatter_nd(updates, indices, target)], target, expected)


def _reverse(maker):
    source, data = maker.data(maker.sizes())
    axis = int(maker.random.integers(data.ndim))
    maker.dtype = str(maker.random.choice(["u4", "u8"]))
    sizes = list(data.shape)
    sizes[axis] = 1
    lengths = maker.random.choice([0, 1, 2, 3, 4, 8, 17, 2**32 - 1], sizes)
    indices, numbers = maker.indices(lengths, repeat=True)
    place = np.indices(data.shape)[axis]
    numbers = np.minimum(numbers, data.shape[axis]).astype(np.int64)
    moved = np.where(place < numbers, numbers - 1 - place, place)
    expected = np.take_along_axis(data, moved, axis)
    target = maker.view(data.shape, target=True)
    return maker.case([reverse_sequences(source, indices, target, axis)], target, expected)


_KINDS = {
    "gather": _gather,
    "gather_elements": _gather_elements,
    "gather_nd": _gather_nd,
    "scatter_elements": _scatter_elements,
    "scatter_nd": _scatter_nd,
    "reverse": _reverse,
}
