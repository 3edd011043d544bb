"""Operations of workloads that make no views: with indices, paddings or repetitions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from vkops.dml import (
    BufferTensorDesc,
    DepthSpaceOrder,
    DepthToSpace1OperatorDesc,
    GatherElementsOperatorDesc,
    GatherOperatorDesc,
    InterpolationMode,
    OneHotOperatorDesc,
    OperatorDesc,
    Padding1OperatorDesc,
    PaddingMode,
    ReverseSubsequencesOperatorDesc,
    ScatterNdOperatorDesc,
    Size2D,
    TensorDataType,
    TileOperatorDesc,
    Upsample2dOperatorDesc,
)

Array = npt.NDArray[Any]
Shape = tuple[int, ...]
Describe = Callable[..., BufferTensorDesc]
"""Describes a tensor of some sizes: of the data, or of a data type, with strides."""


class Movement(ABC):
    """An operation with one output, which is no view of an input."""

    @abstractmethod
    def desc(self, tensor: Describe, shapes: Sequence[Shape]) -> OperatorDesc:
        """The DirectML operator."""

    @abstractmethod
    def numpy(self, arrays: Sequence[Array]) -> Array:
        """The result, made in the fastest way that NumPy has."""


class IndexedMovement(Movement):
    """A movement that reads indices."""

    dtypes: ClassVar[dict[int, str]]
    """The data type of the input that holds the indices, by its number."""

    @abstractmethod
    def indices(self, random: np.random.Generator, shapes: Sequence[Shape]) -> Array:
        """Random indices, or lengths."""


def _tensor_of(tensor: Describe, dtype: str, shape: Shape, strides: Shape | None = None) -> Any:
    return tensor(shape, strides, TensorDataType[dtype.upper()])


@dataclass(frozen=True)
class Gather(IndexedMovement):
    """Take the rows of a matrix that indices name."""

    dtypes = {1: "int64"}  # noqa: RUF012

    def desc(self, tensor: Describe, shapes: Sequence[Shape]) -> OperatorDesc:
        data, (count,) = shapes
        indices = _tensor_of(tensor, "int64", (1, count))
        return GatherOperatorDesc(tensor(data), indices, tensor((count, data[1])), 0, 1)

    def numpy(self, arrays: Sequence[Array]) -> Array:
        return np.take(arrays[0], arrays[1], axis=0)

    def indices(self, random: np.random.Generator, shapes: Sequence[Shape]) -> Array:
        return random.integers(0, shapes[0][0], shapes[1])


@dataclass(frozen=True)
class GatherElements(IndexedMovement):
    """Take the element of its row that each index names."""

    dtypes = {1: "int64"}  # noqa: RUF012

    def desc(self, tensor: Describe, shapes: Sequence[Shape]) -> OperatorDesc:
        data, indices = shapes
        named = _tensor_of(tensor, "int64", indices)
        return GatherElementsOperatorDesc(tensor(data), named, tensor(indices), 1)

    def numpy(self, arrays: Sequence[Array]) -> Array:
        return np.take_along_axis(arrays[0], arrays[1], axis=1)

    def indices(self, random: np.random.Generator, shapes: Sequence[Shape]) -> Array:
        return random.integers(0, shapes[0][1], shapes[1])


@dataclass(frozen=True)
class ScatterRows(IndexedMovement):
    """Copy a matrix, and write rows to places that indices name; each is another one."""

    dtypes = {1: "int64"}  # noqa: RUF012

    def desc(self, tensor: Describe, shapes: Sequence[Shape]) -> OperatorDesc:
        data, indices, updates = shapes
        named = _tensor_of(tensor, "int64", indices)
        return ScatterNdOperatorDesc(tensor(data), named, tensor(updates), tensor(data), 2, 2)

    def numpy(self, arrays: Sequence[Array]) -> Array:
        data, indices, updates = arrays
        result: Array = data.copy()
        result[indices[:, 0]] = updates
        return result

    def indices(self, random: np.random.Generator, shapes: Sequence[Shape]) -> Array:
        return random.permutation(shapes[0][0])[: shapes[1][0], None]


@dataclass(frozen=True)
class PadReflect(Movement):
    """Pad the last two axes of images on all sides by their reflection."""

    width: int

    @property
    def widths(self) -> Shape:
        """The widths of all axes, on either side."""
        return (0, 0, self.width, self.width)

    def desc(self, tensor: Describe, shapes: Sequence[Shape]) -> OperatorDesc:
        ((n, c, h, w),) = shapes
        grown = tensor((n, c, h + 2 * self.width, w + 2 * self.width))
        source = tensor(shapes[0])
        mode, kind, widths = PaddingMode.REFLECTION, source.data_type, self.widths
        return Padding1OperatorDesc(source, grown, mode, kind, 0, widths, widths)

    def numpy(self, arrays: Sequence[Array]) -> Array:
        return np.pad(arrays[0], [(width, width) for width in self.widths], "reflect")


@dataclass(frozen=True)
class DepthToSpace(Movement):
    """Move channels into blocks of height and width."""

    block: int

    def desc(self, tensor: Describe, shapes: Sequence[Shape]) -> OperatorDesc:
        ((n, c, h, w),), b = shapes, self.block
        made = tensor((n, c // b**2, h * b, w * b))
        order = DepthSpaceOrder.DEPTH_COLUMN_ROW
        return DepthToSpace1OperatorDesc(tensor(shapes[0]), made, b, order)

    def numpy(self, arrays: Sequence[Array]) -> Array:
        (n, c, h, w), b = arrays[0].shape, self.block
        blocks = arrays[0].reshape(n, b, b, c // b**2, h, w).transpose(0, 3, 4, 1, 5, 2)
        made: Array = blocks.reshape(n, c // b**2, h * b, w * b)
        return made


@dataclass(frozen=True)
class Tile(Movement):
    """Repeat a matrix along both axes."""

    repeats: Shape

    def desc(self, tensor: Describe, shapes: Sequence[Shape]) -> OperatorDesc:
        sizes = tuple(n * count for n, count in zip(shapes[0], self.repeats, strict=True))
        return TileOperatorDesc(tensor(shapes[0]), tensor(sizes), self.repeats)

    def numpy(self, arrays: Sequence[Array]) -> Array:
        return np.tile(arrays[0], self.repeats)


@dataclass(frozen=True)
class Upsample(Movement):
    """Repeat each element of images along the last two axes."""

    factor: int

    def desc(self, tensor: Describe, shapes: Sequence[Shape]) -> OperatorDesc:
        ((n, c, h, w),), factor = shapes, self.factor
        made, scale = tensor((n, c, h * factor, w * factor)), Size2D(factor, factor)
        mode = InterpolationMode.NEAREST_NEIGHBOR
        return Upsample2dOperatorDesc(tensor(shapes[0]), made, scale, mode)

    def numpy(self, arrays: Sequence[Array]) -> Array:
        return arrays[0].repeat(self.factor, axis=3).repeat(self.factor, axis=2)


@dataclass(frozen=True)
class OneHot(IndexedMovement):
    """Make rows of zeros, with a one where an index says; the second input has both values."""

    depth: int
    dtypes = {0: "int64"}  # noqa: RUF012

    def desc(self, tensor: Describe, shapes: Sequence[Shape]) -> OperatorDesc:
        (count, _), values = shapes
        indices = _tensor_of(tensor, "int64", (count, 1))
        return OneHotOperatorDesc(indices, tensor(values), tensor((count, self.depth)), 1)

    def numpy(self, arrays: Sequence[Array]) -> Array:
        indices, values = arrays
        zero, one = values[0]
        result = np.full((len(indices), self.depth), zero)
        result[np.arange(len(indices)), indices[:, 0]] = one
        return result

    def indices(self, random: np.random.Generator, shapes: Sequence[Shape]) -> Array:
        return random.integers(0, self.depth, shapes[0])


@dataclass(frozen=True)
class ReverseSequences(IndexedMovement):
    """Reverse the first elements along axis 1 of each batch, as many as its length says."""

    dtypes = {1: "uint32"}  # noqa: RUF012

    def desc(self, tensor: Describe, shapes: Sequence[Shape]) -> OperatorDesc:
        (data, (batches,)) = shapes
        rest = data[2:]
        sizes, strides = (batches, 1, *rest), (1, 0, *(0 for _ in rest))
        lengths = _tensor_of(tensor, "uint32", sizes, strides)
        return ReverseSubsequencesOperatorDesc(tensor(data), lengths, tensor(data), 1)

    def numpy(self, arrays: Sequence[Array]) -> Array:
        data, lengths = arrays
        result: Array = data.copy()
        for target, source, length in zip(result, data, lengths, strict=True):
            target[:length] = source[:length][::-1]
        return result

    def indices(self, random: np.random.Generator, shapes: Sequence[Shape]) -> Array:
        return random.integers(0, shapes[0][1] + 1, shapes[1])
