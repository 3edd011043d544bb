"""The works that are measured: a DirectML operator, and the same movement in neutral terms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from vkops.bench.movement import (
    Array,
    Join,
    Movement,
    Permute,
    Shape,
    Split,
    Step,
    Window,
    with_numpy,
)
from vkops.dml import (
    BufferTensorDesc,
    ElementWiseIdentityOperatorDesc,
    JoinOperatorDesc,
    OperatorDesc,
    Slice1OperatorDesc,
    SliceOperatorDesc,
    SplitOperatorDesc,
    TensorDataType,
)


@dataclass(frozen=True)
class Work:
    """One work. ``build(scale)`` multiplies the first dimension of every input by ``scale``."""

    name: str
    what: str
    contiguous: bool
    """Whether inputs and outputs are runs of at least 16 bytes: memory is then the only limit."""
    build: Callable[[int], Case]


@dataclass(frozen=True)
class Case:
    """A work at one size: the operator, its inputs' shapes and dtype, and what it moves."""

    desc: OperatorDesc
    shapes: Sequence[Shape]
    dtype: np.dtype[Any]
    movement: Movement

    def numpy(self, arrays: Sequence[Array]) -> list[Array]:
        """The result that NumPy makes."""
        return with_numpy(self.movement, arrays)

    @property
    def output_shapes(self) -> list[Shape]:
        """The outputs' sizes."""
        return [tuple(tensor.sizes) for _, tensor in self.desc.outputs]

    @property
    def nbytes(self) -> int:
        """Bytes of all outputs."""
        return sum(tensor.total_tensor_size_in_bytes for _, tensor in self.desc.outputs)


def _tensor(dtype: str, shape: Shape, strides: Shape | None = None) -> BufferTensorDesc:
    return BufferTensorDesc(TensorDataType[dtype.upper()], shape, strides)


def _scaled(shape: Shape, scale: int) -> Shape:
    return (shape[0] * scale, *shape[1:])


def split(dtype: str, shape: Shape, axis: int, sizes: Sequence[int]) -> Callable[[int], Case]:
    """Split into pieces of those sizes."""

    def build(scale: int) -> Case:
        whole = _scaled(shape, scale)
        parts = tuple(n * scale if axis == 0 else n for n in sizes)
        outputs = [_tensor(dtype, (*whole[:axis], n, *whole[axis + 1 :])) for n in parts]
        return Case(
            SplitOperatorDesc(_tensor(dtype, whole), outputs, axis),
            [whole],
            np.dtype(dtype),
            Split(axis, parts),
        )

    return build


def join(dtype: str, shape: Shape, axis: int, count: int) -> Callable[[int], Case]:
    """Join ``count`` arrays of one shape."""

    def build(scale: int) -> Case:
        part = _scaled(shape, scale)
        whole = (*part[:axis], part[axis] * count, *part[axis + 1 :])
        return Case(
            JoinOperatorDesc([_tensor(dtype, part)] * count, _tensor(dtype, whole), axis),
            [part] * count,
            np.dtype(dtype),
            Join(axis),
        )

    return build


def step(dtype: str, shape: Shape, strides: Shape) -> Callable[[int], Case]:
    """Take every n-th element along each axis; negative strides run backwards."""

    def build(scale: int) -> Case:
        whole = _scaled(shape, scale)
        counts = tuple(1 + (n - 1) // abs(s) for n, s in zip(whole, strides, strict=True))
        return Case(
            Slice1OperatorDesc(
                _tensor(dtype, whole), _tensor(dtype, counts), (0,) * len(whole), whole, strides
            ),
            [whole],
            np.dtype(dtype),
            Step(strides),
        )

    return build


def window(dtype: str, shape: Shape, offsets: Shape, sizes: Shape) -> Callable[[int], Case]:
    """Cut out a box."""

    def build(scale: int) -> Case:
        whole, counts = _scaled(shape, scale), _scaled(sizes, scale)
        return Case(
            SliceOperatorDesc(
                _tensor(dtype, whole), _tensor(dtype, counts), offsets, counts, (1,) * len(whole)
            ),
            [whole],
            np.dtype(dtype),
            Window(offsets, counts),
        )

    return build


def permute(dtype: str, shape: Shape, order: Sequence[int]) -> Callable[[int], Case]:
    """Permute the axes."""

    def build(scale: int) -> Case:
        whole = _scaled(shape, scale)
        packed = _tensor(dtype, whole).effective_strides
        sizes = tuple(whole[axis] for axis in order)
        source = _tensor(dtype, sizes, tuple(packed[axis] for axis in order))
        return Case(
            ElementWiseIdentityOperatorDesc(source, _tensor(dtype, sizes)),
            [whole],
            np.dtype(dtype),
            Permute(tuple(order)),
        )

    return build


F32, SQUARE = "float32", (4096, 4096)

WORKS = (
    Work("W1", "split axis 0 of (4096,4096) in 4", True, split(F32, SQUARE, 0, [1024] * 4)),
    Work("W2", "split axis 1 of (4096,4096) in 4", True, split(F32, SQUARE, 1, [1024] * 4)),
    Work("W3", "split (262144,64) into 16 of 4", True, split(F32, (262144, 64), 1, [4] * 16)),
    Work(
        "W4", "uint16: split (65536,255) in 3 of 85", False,
        split("uint16", (65536, 255), 1, [85] * 3),
    ),
    Work("W5", "join axis 1 of 4 x (4096,1024)", True, join(F32, (4096, 1024), 1, 4)),
    Work("W6", "uint8: join 3 x (1048576,21)", False, join("uint8", (1048576, 21), 1, 3)),
    Work(
        "W7", "window [1000:3000,1000:3000]", True,
        window(F32, SQUARE, (1000, 1000), (2000, 2000)),
    ),
    Work("W8", "slice [::2,::3] of (4096,4096)", False, step(F32, SQUARE, (2, 3))),
    Work("W9", "slice [::-1,::-1] of (4096,4096)", False, step(F32, SQUARE, (-1, -1))),
    Work("W10", "transpose (4096,4096)", False, permute(F32, SQUARE, (1, 0))),
    Work("W11", "split (1,1,6,2) into 2,1,3", False, split(F32, (1, 1, 6, 2), 2, [2, 1, 3])),
    Work("W12", "join axis 2 of 2 x (8,16,32,32,32)", True, join(F32, (8, 16, 32, 32, 32), 2, 2)),
    Work(
        "W13", "int64: split (2048,4096) in 4", True, split("int64", (2048, 4096), 1, [1024] * 4)
    ),
    Work(
        "W14", "float64: split (2048,4096) in 4", True,
        split("float64", (2048, 4096), 1, [1024] * 4),
    ),
    Work(
        "W15", "split (1048576,) into 1024", True, split(F32, (1048576,), 0, [1024] * 1024)
    ),
    Work("W16", "join 1024 x (1024,)", True, join(F32, (1024,), 0, 1024)),
    Work(
        "W17", "permute (4,4,4,8,8,8,16,16)", False,
        permute(F32, (4, 4, 4, 8, 8, 8, 16, 16), (7, 3, 5, 1, 6, 2, 4, 0)),
    ),
    Work("W18", "uint8: transpose (8192,8192)", False, permute("uint8", (8192, 8192), (1, 0))),
)  # fmt: skip
"""As named in docs/performance.md."""
