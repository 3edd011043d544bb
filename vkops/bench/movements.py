"""Operations of workloads that make no views: with indices, paddings or repetitions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from vkops import dml
from vkops.dml import BufferTensorDesc, OperatorDesc

Array = npt.NDArray[Any]
Shape = tuple[int, ...]


def operator(
    kind: type[OperatorDesc],
    *inputs: BufferTensorDesc,
    outputs: Sequence[Shape] | None = None,
    **attributes: Any,
) -> OperatorDesc:
    """Return the descriptor of an operator; the sizes of its outputs are inferred or given."""
    draft = kind.of_tensors(inputs, inputs[:1], attributes)
    forms = draft.infer() if outputs is None else [(draft.data_type, n) for n in outputs]
    return kind.of_tensors(inputs, [BufferTensorDesc(*each) for each in forms], attributes)


class CopyOperation:
    """An operation with one output, which is no view of an input."""

    dtypes: Mapping[int, str] = {}
    """The data type of the input that holds indices, by its number."""
    desc: Callable[..., OperatorDesc]
    """The DirectML operator, from the tensors of its inputs."""
    numpy: Callable[..., Array]
    """The result for some inputs, made in the fastest way that NumPy has."""
    indices: Callable[..., Array]
    """Random indices, or lengths, from a generator and the shapes of the inputs."""


@dataclass(frozen=True)
class Gather(CopyOperation):
    """Take the rows of a matrix that indices name."""

    dtypes = {1: "int64"}  # noqa: RUF012

    def desc(self, data: BufferTensorDesc, indices: BufferTensorDesc) -> OperatorDesc:
        row = BufferTensorDesc(indices.data_type, (1, *indices.sizes))
        return operator(dml.GatherOperatorDesc, data, row, axis=0, index_dimensions=1)

    def numpy(self, data: Array, indices: Array) -> Array:
        return np.take(data, indices, axis=0)

    def indices(self, random: np.random.Generator, data: Shape, indices: Shape) -> Array:
        return random.integers(0, data[0], indices)


@dataclass(frozen=True)
class GatherElements(CopyOperation):
    """Take the element of its row that each index names."""

    dtypes = {1: "int64"}  # noqa: RUF012

    def desc(self, data: BufferTensorDesc, indices: BufferTensorDesc) -> OperatorDesc:
        return operator(dml.GatherElementsOperatorDesc, data, indices, axis=1)

    def numpy(self, data: Array, indices: Array) -> Array:
        return np.take_along_axis(data, indices, axis=1)

    def indices(self, random: np.random.Generator, data: Shape, indices: Shape) -> Array:
        return random.integers(0, data[1], indices)


@dataclass(frozen=True)
class ScatterRows(CopyOperation):
    """Copy a matrix, and write rows to places that indices name; each is another one."""

    dtypes = {1: "int64"}  # noqa: RUF012

    def desc(self, *tensors: BufferTensorDesc) -> OperatorDesc:
        kind = dml.ScatterNdOperatorDesc
        return operator(kind, *tensors, input_dimension_count=2, indices_dimension_count=2)

    def numpy(self, data: Array, indices: Array, updates: Array) -> Array:
        result: Array = data.copy()
        result[indices[:, 0]] = updates
        return result

    def indices(
        self, random: np.random.Generator, data: Shape, indices: Shape, updates: Shape
    ) -> Array:
        return random.permutation(data[0])[: indices[0], None]


@dataclass(frozen=True)
class PadReflect(CopyOperation):
    """Pad the last two axes of images on all sides by their reflection."""

    width: int

    @property
    def widths(self) -> Shape:
        """The widths of all axes, on either side."""
        return (0, 0, self.width, self.width)

    def desc(self, source: BufferTensorDesc) -> OperatorDesc:
        return operator(
            dml.Padding1OperatorDesc,
            source,
            padding_mode=dml.PaddingMode.REFLECTION,
            padding_value_data_type=source.data_type,
            padding_value=0,
            start_padding=self.widths,
            end_padding=self.widths,
        )

    def numpy(self, source: Array) -> Array:
        return np.pad(source, [(width, width) for width in self.widths], "reflect")


@dataclass(frozen=True)
class DepthToSpace(CopyOperation):
    """Move channels into blocks of height and width."""

    block: int

    def desc(self, source: BufferTensorDesc) -> OperatorDesc:
        order = dml.DepthSpaceOrder.DEPTH_COLUMN_ROW
        return operator(dml.DepthToSpace1OperatorDesc, source, block_size=self.block, order=order)

    def numpy(self, source: Array) -> Array:
        (n, c, h, w), b = source.shape, self.block
        blocks = source.reshape(n, b, b, c // b**2, h, w).transpose(0, 3, 4, 1, 5, 2)
        result: Array = blocks.reshape(n, c // b**2, h * b, w * b)
        return result


@dataclass(frozen=True)
class Tile(CopyOperation):
    """Repeat a matrix along both axes."""

    repeats: Shape

    def desc(self, source: BufferTensorDesc) -> OperatorDesc:
        return operator(dml.TileOperatorDesc, source, repeats=self.repeats)

    def numpy(self, source: Array) -> Array:
        return np.tile(source, self.repeats)


@dataclass(frozen=True)
class Upsample(CopyOperation):
    """Repeat each element of images along the last two axes."""

    factor: int

    def desc(self, source: BufferTensorDesc) -> OperatorDesc:
        mode = dml.InterpolationMode.NEAREST_NEIGHBOR
        scale = dml.Size2D(self.factor, self.factor)
        kind = dml.Upsample2dOperatorDesc
        return operator(kind, source, scale_size=scale, interpolation_mode=mode)

    def numpy(self, source: Array) -> Array:
        return source.repeat(self.factor, axis=3).repeat(self.factor, axis=2)


@dataclass(frozen=True)
class OneHot(CopyOperation):
    """Make rows of zeros, with a one where an index says; the second input has both values."""

    depth: int
    dtypes = {0: "int64"}  # noqa: RUF012

    def desc(self, indices: BufferTensorDesc, values: BufferTensorDesc) -> OperatorDesc:
        shapes = [(indices.sizes[0], self.depth)]
        return operator(dml.OneHotOperatorDesc, indices, values, outputs=shapes, axis=1)

    def numpy(self, indices: Array, values: Array) -> Array:
        zero, one = values[0]
        result = np.full((len(indices), self.depth), zero)
        result[np.arange(len(indices)), indices[:, 0]] = one
        return result

    def indices(self, random: np.random.Generator, indices: Shape, values: Shape) -> Array:
        return random.integers(0, self.depth, indices)


@dataclass(frozen=True)
class ReverseSequences(CopyOperation):
    """Reverse the first elements along axis 1 of each batch, as many as its length says."""

    dtypes = {1: "uint32"}  # noqa: RUF012

    def desc(self, data: BufferTensorDesc, lengths: BufferTensorDesc) -> OperatorDesc:
        batches, _, *others = data.sizes
        sizes, strides = (batches, 1, *others), (1, *[0] * (len(others) + 1))
        each = BufferTensorDesc(lengths.data_type, sizes, strides)
        return operator(dml.ReverseSubsequencesOperatorDesc, data, each, axis=1)

    def numpy(self, data: Array, lengths: Array) -> Array:
        result: Array = data.copy()
        for target, source, length in zip(result, data, lengths, strict=True):
            target[:length] = source[:length][::-1]
        return result

    def indices(self, random: np.random.Generator, data: Shape, lengths: Shape) -> Array:
        return random.integers(0, data[1] + 1, lengths)
