"""Values that nobody should pass, made of choices."""

from __future__ import annotations

import decimal
import fractions
import itertools
from os import PathLike

import numpy as np

from vkops import dml
from vkops.dml import BufferTensorDesc, ExecutionFlags, FeatureLevel, TensorDataType, TensorFlags

EDGES = [
    0, 1, -1, 2, 3, 4, 15, 16, 255, 256, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**33, 2**63 - 1, 2**63,
    2**64 - 1, 2**64, -(2**31), -(2**31) - 1, -(2**63), -(2**63) - 1, 10**30, 10**5000, -(10**5000),
]  # fmt: skip


class Failing:
    """Fails at everything a value may be asked for."""

    def fail(self, *args, **named):
        raise ZeroDivisionError

    __index__ = __int__ = __float__ = __complex__ = __len__ = __iter__ = __getitem__ = fail
    __repr__ = __str__ = __bool__ = __hash__ = __eq__ = __lt__ = __contains__ = fail
    __array__ = __buffer__ = __fspath__ = __format__ = __bytes__ = keys = items = fail


class NoAttributes:
    """Fails at each attribute that it is asked for."""

    def __getattr__(self, name):
        raise ZeroDivisionError(name)


class Path(PathLike):
    """A path that has no name."""

    def __fspath__(self):
        raise ZeroDivisionError


class Lying:
    """Says that it has another number of entries than it gives, and another integer each time."""

    def __init__(self, length, entries):
        self.length, self.entries = length, entries

    def __len__(self):
        return self.length

    def __iter__(self):
        return iter(self.entries)

    def __getitem__(self, place):
        return self.entries[0]

    def __index__(self):
        self.length += 1
        return self.length % 3


class NoInteger:
    """Its ``__index__`` gives what is none."""

    def __index__(self):
        return "1"

    def __repr__(self):
        return 1


class Int(int):
    """An integer, with words of its own."""

    def __repr__(self):
        raise ZeroDivisionError

    __str__ = __repr__


class List(list):
    """A list that changes while it is read."""

    def __iter__(self):
        self.append(1)
        return super().__iter__()


class Loop(list):
    """A list that holds itself."""

    def __init__(self):
        super().__init__([self])


SINGLE = [
    lambda: None, lambda: True, lambda: False, lambda: 0.0, lambda: 1.0, lambda: float("nan"),
    lambda: float("inf"), lambda: 1e300, lambda: 1j, lambda: "", lambda: "1", lambda: "5_0",
    lambda: "\ud800\n\0", lambda: "x" * 1000, lambda: b"", lambda: b"12", lambda: bytearray(3),
    lambda: int, lambda: object(), lambda: Ellipsis, lambda: NotImplemented, lambda: slice(1),
    lambda: range(3), lambda: range(10**12), lambda: itertools.count(), lambda: iter([1, 2]),
    lambda: {1, 2}, lambda: {0: 1}, lambda: {"a": 1}, lambda: frozenset([1]), lambda: memoryview(b"1"),
    lambda: decimal.Decimal(1), lambda: fractions.Fraction(3, 1), lambda: lambda: 1,
    lambda: np.array(3), lambda: np.array([1, 2]), lambda: np.ones((2, 2), int), lambda: np.array([]),
    lambda: np.array([1.5]), lambda: np.array(["a"]), lambda: np.array([None]), lambda: np.float32(2),
    lambda: np.zeros((1,) * 40, int),
    lambda: np.bool_(True), lambda: np.datetime64("2001"), lambda: np.str_("1"), lambda: np.void(b"1"),
    lambda: np.ma.masked, lambda: np.array([2**63], np.uint64), lambda: np.zeros(3, "i4,f4"),
    Failing, NoInteger, NoAttributes, Path, Loop, lambda: Int(3), lambda: List([1]), lambda: Lying(3, [1]),
    lambda: Lying(0, [1, 2]), lambda: Lying(10**18, itertools.count()), lambda: Lying(-1, []),
    lambda: Lying(2, itertools.repeat(2)), lambda: Failing, lambda: ValueError("x"),
    lambda: TensorDataType.INT8, lambda: TensorFlags.OWNED_BY_DML, lambda: FeatureLevel.LATEST,
    lambda: ExecutionFlags.NONE, lambda: TensorDataType, lambda: dml.PaddingMode.EDGE,
    lambda: dml.ScaleBias(1.0, 0.0), lambda: BufferTensorDesc(TensorDataType.INT8, [2]),
    lambda: dml.Graph(), lambda: dml.InputGraphEdgeDesc(0, 0, 0),
]  # fmt: skip

NUMPY_INTEGERS = [np.int8, np.uint8, np.int16, np.uint32, np.int64, np.uint64]


def integer(choices):
    """An integer of any size and kind."""
    kind = choices.below(8)
    if kind < 4:
        return choices.below(10)
    if kind == 4:
        return -choices.below(10)
    if kind == 5:
        return choices.pick(EDGES)
    if kind == 6:
        return choices.below(1 << 64)
    return choices.pick(NUMPY_INTEGERS)(choices.below(100))


def integers(choices, most=9):
    """A sequence of integers, mostly a list."""
    made = choices.some(most, lambda: integer(choices))
    return choices.pick([list, list, list, tuple, tuple, _array, _array, List, iter])(made)


def _array(values):
    return np.array([int(value) & 0xFFFF for value in values], np.int64)


def value(choices, depth=0):
    """Anything."""
    kind = choices.below(10)
    if kind < 3:
        return integer(choices)
    if kind < 5:
        return integers(choices)
    if kind < 8 or depth == 3:
        return choices.pick(SINGLE)()
    entries = choices.some(4, lambda: value(choices, depth + 1))
    if kind == 8:
        return choices.pick([list, tuple, List])(entries)
    return {str(i): entry for i, entry in enumerate(entries)}
