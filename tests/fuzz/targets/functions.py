"""The functions in NumPy's manner with any arguments, against NumPy's."""

from __future__ import annotations

import contextlib
from itertools import accumulate

import numpy as np

import vkops
from fuzz import hostile, target
from fuzz.choices import Choices
from fuzz.device import opened
from fuzz.targets.tensors import array, compared, same, small, some


def _split(x, sizes, axis):
    """NumPy's by indices; sizes add up to the whole."""
    n = x.shape[axis]
    if isinstance(sizes, int):
        if sizes < 1 or n % sizes:
            raise ValueError(sizes)
        return np.split(x, sizes, axis)
    if not sizes or min(sizes) < 0 or sum(sizes) != n:
        raise ValueError(sizes)
    return np.split(x, list(accumulate(sizes))[:-1], axis)


def _slice(x, offsets, sizes, strides):
    """So many elements of each axis, all of which must be there."""
    if not len(offsets) == len(sizes) == len(strides) == x.ndim:
        raise ValueError(offsets)
    for axis, (n, first, count, step) in enumerate(
        zip(x.shape, offsets, sizes, strides, strict=True)
    ):
        last = first + (count - 1) * step
        inside = 0 <= first < n and 0 <= last < n if count else 0 <= first <= n
        if count < 0 or step == 0 or not inside:
            raise ValueError(axis)
        x = np.take(x, [first + i * step for i in range(count)], axis)
    return x


def _unstack(x, axis):
    return list(np.moveaxis(x, axis, 0))


def one_or_some(choices):
    return small(choices) if choices.one_in(2) else some(choices)


def axis_or_none(choices):
    return None if choices.one_in(3) else small(choices)


def _counts(choices):
    return choices.below(5) if choices.one_in(2) else choices.some(4, lambda: choices.below(4))


def _widths(choices):
    count = choices.below(6)
    if choices.one_in(2):
        return count
    return choices.some(4, lambda: (choices.below(6), choices.below(6) - choices.one_in(9)))


def _mode(choices):
    return choices.pick(["constant", "edge", "reflect", "symmetric", "wrap"])


def _take_along_axis(x, indices, axis):
    return np.take_along_axis(x, np.array(indices), axis)


def _indices(choices):
    return choices.some(4, lambda: small(choices))


def _matrix(choices):
    width = 1 + choices.below(3)
    return [[small(choices) for _ in range(width)] for _ in range(1 + choices.below(3))]


ONE = {
    "split": ((_counts, small), vkops.split, _split),
    "array_split": ((one_or_some, small), vkops.array_split, np.array_split),
    "slice": ((some, some, some), vkops.slice, _slice),
    "roll": ((one_or_some, axis_or_none), vkops.roll, np.roll),
    "tile": ((one_or_some,), vkops.tile, np.tile),
    "repeat": ((_counts, axis_or_none), vkops.repeat, np.repeat),
    "pad": ((_widths, _mode), vkops.pad, np.pad),
    "take": ((_indices, axis_or_none), vkops.take, lambda x, i, a: np.take(x, np.int64(i), a)),
    "take_along_axis": ((_matrix, small), vkops.take_along_axis, _take_along_axis),
    "flip": ((axis_or_none,), vkops.flip, np.flip),
    "squeeze": ((axis_or_none,), vkops.squeeze, np.squeeze),
    "expand_dims": ((one_or_some,), vkops.expand_dims, np.expand_dims),
    "permute_dims": ((some,), vkops.permute_dims, np.transpose),
    "broadcast_to": ((some,), vkops.broadcast_to, np.broadcast_to),
    "unstack": ((small,), vkops.unstack, _unstack),
    "tril": ((small,), vkops.tril, np.tril),
    "triu": ((small,), vkops.triu, np.triu),
    "diag": ((small,), vkops.diag, np.diag),
    "diagonal": ((small, small, small), vkops.diagonal, np.diagonal),
}
MANY = {
    "join": ((small,), vkops.join, np.concatenate),
    "concat": ((axis_or_none,), vkops.concat, np.concatenate),
    "stack": ((small,), vkops.stack, np.stack),
}
ODD = [
    vkops.pad, vkops.from_dlpack, vkops.join, vkops.split, vkops.slice, vkops.tile, vkops.repeat, vkops.stack,
    vkops.roll, vkops.concat, vkops.array_split, vkops.broadcast_to, vkops.unstack, vkops.squeeze,
    vkops.tril, vkops.triu, vkops.diag, vkops.diagonal, vkops.eye, vkops.take,
    vkops.take_along_axis, vkops.asarray, vkops.empty, vkops.zeros, vkops.full, vkops.full_like,
    vkops.arange, vkops.linspace, vkops.meshgrid, vkops.broadcast_arrays, vkops.moveaxis,
    vkops.reshape, vkops.rot90, vkops.astype, vkops.block, vkops.hstack, vkops.column_stack,
]  # fmt: skip


def tamed(value):
    """Nothing that would take long: sizes are small, or beyond all memory.

    Sequences are short: NumPy makes arrays of them, element by element.
    """
    if type(value) is int and 1 << 12 < value < 1 << 40:
        return value % 100
    if type(value) in (list, tuple):
        return type(value)(tamed(item) for item in value)
    with contextlib.suppress(Exception):
        if len(value) > 1 << 12:
            return 0
    return value


class Target(target.Target):
    name = "functions"
    share = 24
    # What is no index, or no iterable, is Python's own to refuse.
    refusals = (*target.Target.refusals, TypeError)

    def __init__(self):
        self.device = opened()
        self.staged = opened(staged=True)

    def check(self, data):
        choices = Choices(data)
        device = self.staged if choices.one_in(3) else self.device
        if choices.one_in(5):
            self._odd(choices, device)
            return
        x = array(choices)
        if choices.one_in(3):
            name = choices.pick(list(MANY))
            makers, ours, theirs = MANY[name]
            count = 1 + choices.below(3)
            x = [x if not choices.one_in(6) else array(choices) for _ in range(count)]
            if len({item.dtype for item in x}) > 1:
                x = x[:1]
            given = [self._given(choices, device, item) for item in x]
        else:
            name = choices.pick(list(ONE))
            makers, ours, theirs = ONE[name]
            given = self._given(choices, device, x)
        arguments = [make(choices) for make in makers]
        # Putting arrays together, and triangles, give the host's byte order, as in NumPy.
        dtype = x[0].dtype if isinstance(x, list) else x.dtype
        if isinstance(x, list) or name in ("tril", "triu"):
            dtype = dtype.newbyteorder("=")
        made, wanted = compared(
            lambda: ours(given, *arguments, device=device), lambda: theirs(x, *arguments), True
        )
        text = f"{name} {arguments} of {x!r}: got {made!r}, must be {wanted!r}"
        if isinstance(made, (list, tuple)):
            target.require(len(made) == len(wanted), text)
            for one, other in zip(made, wanted, strict=True):
                target.require(same(one, other, dtype), text)
        else:
            target.require(same(made, wanted, dtype), text)

    def _given(self, choices, device, x):
        """As it is, or on the device."""
        return device.tensor(x) if choices.one_in(2) else x

    def _odd(self, choices, device):
        call = choices.pick(ODD)
        first = array(choices) if choices.one_in(2) else tamed(hostile.value(choices))
        given = [first, *choices.some(3, lambda: tamed(hostile.value(choices)))]
        home = hostile.value(choices) if choices.one_in(20) else device
        call(*given, device=home)
