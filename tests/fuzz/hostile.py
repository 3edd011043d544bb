"""Values that nobody should pass, made of choices."""

import decimal
import fractions
import itertools
import pathlib
import sys
import sysconfig

import numpy as np

from vkops import dml
from vkops.dml import BufferTensorDesc, ExecutionFlags, FeatureLevel, TensorDataType, TensorFlags

EDGES = [
    0, 1, -1, 2, 3, 4, 15, 16, 255, 256, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**33, 2**63 - 1, 2**63,
    2**64 - 1, 2**64, -(2**31), -(2**31) - 1, -(2**63), -(2**63) - 1, 10**30, 10**5000, -(10**5000),
]  # fmt: skip


ALWAYS_OVERCOMMITS = pathlib.Path("/proc/sys/vm/overcommit_memory")
"""Linux' file of 1 where any memory is promised: NumPy then ends the process for range(10**12).

Wine promises any memory, too.
"""

PROMISED = (
    sys.platform == "win32"
    or (ALWAYS_OVERCOMMITS.exists() and ALWAYS_OVERCOMMITS.read_text() == "1\n")
    or bool(sysconfig.get_config_var("Py_GIL_DISABLED"))  # whose lists reserve any size
)
LONG = 3 if PROMISED else 10**12

SINGLE = [
    lambda: None, lambda: True, lambda: False, lambda: 0.0, lambda: 1.0, lambda: float("nan"),
    lambda: float("inf"), lambda: 1e300, lambda: 1j, lambda: "", lambda: "1", lambda: "5_0",
    lambda: "\ud800\n\0", lambda: "x" * 1000, lambda: b"", lambda: b"12", lambda: bytearray(3),
    lambda: int, lambda: object(), lambda: Ellipsis, lambda: NotImplemented, lambda: slice(1),
    lambda: range(3), lambda: range(LONG), lambda: itertools.count(), lambda: iter([1, 2]),
    lambda: {1, 2}, lambda: {0: 1}, lambda: {"a": 1}, lambda: frozenset([1]), lambda: memoryview(b"1"),
    lambda: decimal.Decimal(1), lambda: fractions.Fraction(3, 1), lambda: lambda: 1,
    lambda: np.array(3), lambda: np.array([1, 2]), lambda: np.ones((2, 2), int), lambda: np.array([]),
    lambda: np.array([1.5]), lambda: np.array(["a"]), lambda: np.array([None]), lambda: np.float32(2),
    lambda: np.zeros((1,) * 40, int),
    lambda: np.bool_(True), lambda: np.datetime64("2001"), lambda: np.str_("1"), lambda: np.void(b"1"),
    lambda: np.ma.masked, lambda: np.array([2**63], np.uint64), lambda: np.zeros(3, "i4,f4"),
    lambda: pathlib.Path, lambda: ValueError("x"),
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
    numbers = choices.some(most, lambda: integer(choices))
    return choices.pick([list, list, list, tuple, tuple, _array, _array, iter])(numbers)


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
        return choices.pick([list, tuple])(entries)
    return {str(i): entry for i, entry in enumerate(entries)}
