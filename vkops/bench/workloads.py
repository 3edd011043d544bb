"""The workloads that are measured, for DirectML, NumPy and other libraries."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from operator import add
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from vkops import dml
from vkops.dml import BufferTensorDesc, OperatorDesc, TensorDataType
from vkops.system.threads import cached_property
from vkops.tensors import eager
from vkops.tensors.rearrangement import pad, tile
from vkops.tensors.selection import take, take_along_axis
from vkops.tensors.tensor import Device, Tensor

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


class Operation:
    """The work of a workload, for DirectML, NumPy and vkops' functions."""

    dtypes: Mapping[int, str] = {}
    """The data type of the input that holds indices, by its number."""
    desc: Callable[..., OperatorDesc]
    """The DirectML operator, from the tensors of its inputs."""
    numpy: Callable[..., Sequence[Array]]
    """The results for some inputs, made in the fastest way that NumPy has."""
    indices: Callable[..., Array]
    """Random indices, or lengths, from a generator and the shapes of the inputs."""
    call: Callable[..., Sequence[Tensor]] | None = None
    """The function of vkops for the inputs on a device, if there is one."""
    numpy_into: Callable[..., None] | None = None
    """Writes the outputs into arrays that exist; None if NumPy has no such function."""

    def scaled(self, scale: int) -> Operation:
        """Return the operation for inputs of which the first dimension is so many times as long."""
        return self


class ViewOperation(Operation):
    """An operation whose outputs are views of its input."""

    views: Callable[[Array], list[Array]]
    """The outputs as views."""

    def numpy(self, source: Array) -> list[Array]:
        return [view.copy() for view in self.views(source)]

    def numpy_into(self, outputs: Sequence[Array], source: Array) -> None:
        for output, view in zip(outputs, self.views(source), strict=True):
            np.copyto(output, view)


@dataclass(frozen=True)
class Split(ViewOperation):
    """Split an array along ``axis`` into parts of the given sizes."""

    axis: int
    sizes: Shape

    def scaled(self, scale: int) -> Split:
        return self if self.axis else Split(0, tuple(n * scale for n in self.sizes))

    def desc(self, source: BufferTensorDesc) -> OperatorDesc:
        before, after = source.sizes[: self.axis], source.sizes[self.axis + 1 :]
        shapes = [(*before, n, *after) for n in self.sizes]
        return operator(dml.SplitOperatorDesc, source, outputs=shapes, axis=self.axis)

    def views(self, array: Array) -> list[Array]:
        return np.split(array, np.cumsum(self.sizes[:-1]), self.axis)

    def call(self, source: Array, device: Device) -> Sequence[Tensor]:
        return eager.split(source, self.sizes, self.axis, device=device)


@dataclass(frozen=True)
class EveryNth(ViewOperation):
    """Take every n-th element along each axis, for negative strides backwards from the last."""

    strides: Shape

    def _sizes(self, shape: Sequence[int]) -> Shape:
        return tuple(1 + (n - 1) // abs(s) for n, s in zip(shape, self.strides, strict=True))

    def desc(self, source: BufferTensorDesc) -> OperatorDesc:
        return operator(
            dml.Slice1OperatorDesc,
            source,
            outputs=[self._sizes(source.sizes)],
            input_window_offsets=(0,) * len(source.sizes),
            input_window_sizes=source.sizes,
            input_window_strides=self.strides,
        )

    def views(self, array: Array) -> list[Array]:
        return [array[tuple(slice(None, None, stride) for stride in self.strides)]]

    def call(self, source: Array, device: Device) -> Sequence[Tensor]:
        ends = zip(source.shape, self.strides, strict=True)
        starts = [0 if stride > 0 else n - 1 for n, stride in ends]
        sizes = self._sizes(source.shape)
        return [eager.slice(source, starts, sizes, self.strides, device=device)]


@dataclass(frozen=True)
class Crop(ViewOperation):
    """Take ``sizes`` elements from ``offsets`` on."""

    offsets: Shape
    sizes: Shape

    @property
    def ends(self) -> Shape:
        """The offsets behind the last elements."""
        return tuple(map(add, self.offsets, self.sizes))

    @property
    def slices(self) -> tuple[slice, ...]:
        """The index of the window."""
        return tuple(map(slice, self.offsets, self.ends))

    def scaled(self, scale: int) -> Crop:
        return Crop(self.offsets, (self.sizes[0] * scale, *self.sizes[1:]))

    def desc(self, source: BufferTensorDesc) -> OperatorDesc:
        ones, sizes = (1,) * len(self.sizes), self.sizes
        window = {"offsets": self.offsets, "sizes": sizes, "strides": ones}
        return operator(dml.SliceOperatorDesc, source, outputs=[sizes], **window)

    def views(self, array: Array) -> list[Array]:
        return [array[self.slices]]

    def call(self, source: Array, device: Device) -> Sequence[Tensor]:
        return [eager.slice(source, self.offsets, self.sizes, device=device)]


@dataclass(frozen=True)
class Permute(ViewOperation):
    """Reorder the axes."""

    order: Shape

    def desc(self, source: BufferTensorDesc) -> OperatorDesc:
        sizes, strides = (
            tuple(of[axis] for axis in self.order)
            for of in (source.sizes, source.effective_strides)
        )
        source = BufferTensorDesc(source.data_type, sizes, strides)
        return operator(dml.ElementWiseIdentityOperatorDesc, source)

    def views(self, array: Array) -> list[Array]:
        return [array.transpose(self.order)]


@dataclass(frozen=True)
class Join(Operation):
    """Join all inputs, which have one shape, along ``axis``."""

    axis: int

    def desc(self, *sources: BufferTensorDesc) -> OperatorDesc:
        return operator(dml.JoinOperatorDesc, *sources, axis=self.axis)

    def numpy(self, *arrays: Array) -> Sequence[Array]:
        return [np.concatenate(arrays, self.axis)]

    def numpy_into(self, outputs: Sequence[Array], *arrays: Array) -> None:
        np.concatenate(arrays, self.axis, out=outputs[0])

    def call(self, *arrays: Array, device: Device) -> Sequence[Tensor]:
        return [eager.join(arrays, self.axis, device=device)]


@dataclass(frozen=True)
class Gather(Operation):
    """Take the rows of a matrix that indices name."""

    dtypes = {1: "int64"}  # noqa: RUF012
    axis: ClassVar[int] = 0
    """The axis of the data along which indices count."""

    def desc(self, data: BufferTensorDesc, indices: BufferTensorDesc) -> OperatorDesc:
        row = BufferTensorDesc(indices.data_type, (1, *indices.sizes))
        return operator(dml.GatherOperatorDesc, data, row, axis=0, index_dimensions=1)

    def numpy(self, data: Array, indices: Array) -> Sequence[Array]:
        return [np.take(data, indices, axis=0)]

    def indices(self, random: np.random.Generator, data: Shape, indices: Shape) -> Array:
        return random.integers(0, data[self.axis], indices)

    def call(self, data: Array, indices: Array, device: Device) -> Sequence[Tensor]:
        return [take(data, indices, 0, device=device)]


@dataclass(frozen=True)
class GatherElements(Gather):
    """Take the element of its row that each index names."""

    axis = 1

    def desc(self, data: BufferTensorDesc, indices: BufferTensorDesc) -> OperatorDesc:
        return operator(dml.GatherElementsOperatorDesc, data, indices, axis=1)

    def numpy(self, data: Array, indices: Array) -> Sequence[Array]:
        return [np.take_along_axis(data, indices, axis=1)]

    def call(self, data: Array, indices: Array, device: Device) -> Sequence[Tensor]:
        return [take_along_axis(data, indices, 1, device=device)]


@dataclass(frozen=True)
class ScatterRows(Operation):
    """Copy a matrix, and write rows to places that indices name; each is another one."""

    dtypes = {1: "int64"}  # noqa: RUF012

    def desc(self, *tensors: BufferTensorDesc) -> OperatorDesc:
        kind = dml.ScatterNdOperatorDesc
        return operator(kind, *tensors, input_dimension_count=2, indices_dimension_count=2)

    def numpy(self, data: Array, indices: Array, updates: Array) -> Sequence[Array]:
        result: Array = data.copy()
        result[indices[:, 0]] = updates
        return [result]

    def indices(
        self, random: np.random.Generator, data: Shape, indices: Shape, updates: Shape
    ) -> Array:
        return random.permutation(data[0])[: indices[0], None]


@dataclass(frozen=True)
class PadReflect(Operation):
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

    def numpy(self, source: Array) -> Sequence[Array]:
        return [np.pad(source, [(width, width) for width in self.widths], "reflect")]

    def call(self, source: Array, device: Device) -> Sequence[Tensor]:
        widths = [(width, width) for width in self.widths]
        return [pad(source, widths, "reflect", device=device)]


@dataclass(frozen=True)
class DepthToSpace(Operation):
    """Move channels into blocks of height and width."""

    block: int

    def desc(self, source: BufferTensorDesc) -> OperatorDesc:
        order = dml.DepthSpaceOrder.DEPTH_COLUMN_ROW
        return operator(dml.DepthToSpace1OperatorDesc, source, block_size=self.block, order=order)

    def numpy(self, source: Array) -> Sequence[Array]:
        (n, c, h, w), b = source.shape, self.block
        blocks = source.reshape(n, b, b, c // b**2, h, w).transpose(0, 3, 4, 1, 5, 2)
        result: Array = blocks.reshape(n, c // b**2, h * b, w * b)
        return [result]


@dataclass(frozen=True)
class Tile(Operation):
    """Repeat a matrix along both axes."""

    repeats: Shape

    def desc(self, source: BufferTensorDesc) -> OperatorDesc:
        return operator(dml.TileOperatorDesc, source, repeats=self.repeats)

    def numpy(self, source: Array) -> Sequence[Array]:
        return [np.tile(source, self.repeats)]

    def call(self, source: Array, device: Device) -> Sequence[Tensor]:
        return [tile(source, self.repeats, device=device)]


@dataclass(frozen=True)
class Upsample(Operation):
    """Repeat each element of images along the last two axes."""

    factor: int

    def desc(self, source: BufferTensorDesc) -> OperatorDesc:
        mode = dml.InterpolationMode.NEAREST_NEIGHBOR
        scale = dml.Size2D(self.factor, self.factor)
        kind = dml.Upsample2dOperatorDesc
        return operator(kind, source, scale_size=scale, interpolation_mode=mode)

    def numpy(self, source: Array) -> Sequence[Array]:
        return [source.repeat(self.factor, axis=3).repeat(self.factor, axis=2)]


@dataclass(frozen=True)
class OneHot(Operation):
    """Make rows of zeros, with a one where an index says; the second input has both values."""

    depth: int
    dtypes = {0: "int64"}  # noqa: RUF012

    def desc(self, indices: BufferTensorDesc, values: BufferTensorDesc) -> OperatorDesc:
        shapes = [(indices.sizes[0], self.depth)]
        return operator(dml.OneHotOperatorDesc, indices, values, outputs=shapes, axis=1)

    def numpy(self, indices: Array, values: Array) -> Sequence[Array]:
        zero, one = values[0]
        result = np.full((len(indices), self.depth), zero)
        result[np.arange(len(indices)), indices[:, 0]] = one
        return [result]

    def indices(self, random: np.random.Generator, indices: Shape, values: Shape) -> Array:
        return random.integers(0, self.depth, indices)


@dataclass(frozen=True)
class ReverseSequences(Operation):
    """Reverse the first elements along axis 1 of each batch, as many as its length says."""

    dtypes = {1: "uint32"}  # noqa: RUF012

    def desc(self, data: BufferTensorDesc, lengths: BufferTensorDesc) -> OperatorDesc:
        batches, _, *others = data.sizes
        sizes, strides = (batches, 1, *others), (1, *[0] * (len(others) + 1))
        each = BufferTensorDesc(lengths.data_type, sizes, strides)
        return operator(dml.ReverseSubsequencesOperatorDesc, data, each, axis=1)

    def numpy(self, data: Array, lengths: Array) -> Sequence[Array]:
        result: Array = data.copy()
        for target, source, length in zip(result, data, lengths, strict=True):
            target[:length] = source[:length][::-1]
        return [result]

    def indices(self, random: np.random.Generator, data: Shape, lengths: Shape) -> Array:
        return random.integers(0, data[1] + 1, lengths)


@dataclass(frozen=True)
class BenchCase:
    """An operation on inputs of given shapes; all data have one data type."""

    dtype: np.dtype[Any]
    operation: Operation
    shapes: Sequence[Shape]

    def scaled(self, scale: int) -> BenchCase:
        """Return this case with the first dimension of each input multiplied by ``scale``.

        The values of ONE_HOT, which have the first size 1, stay as they are.
        """
        fixed = isinstance(self.operation, OneHot)
        shapes = [(n if fixed and n == 1 else n * scale, *rest) for n, *rest in self.shapes]
        return BenchCase(self.dtype, self.operation.scaled(scale), shapes)

    @property
    def dtypes(self) -> list[np.dtype[Any]]:
        """The data types of the inputs."""
        others, count = self.operation.dtypes, len(self.shapes)
        return [np.dtype(others.get(number, self.dtype)) for number in range(count)]

    def inputs(self, random: np.random.Generator) -> list[Array]:
        """Return inputs of random bytes, and of random indices where the operation has indices."""
        indices, arrays = self.indices(random), []
        for number, (shape, dtype) in enumerate(zip(self.shapes, self.dtypes, strict=True)):
            if number in indices:
                arrays.append(indices[number])
            else:
                stored = random.integers(0, 256, prod(shape) * dtype.itemsize, np.uint8)
                arrays.append(stored.view(dtype).reshape(shape))
        return arrays

    def indices(self, random: np.random.Generator) -> dict[int, Array]:
        """Return the inputs that hold indices, with random ones, by their numbers."""
        return {
            number: self.operation.indices(random, *self.shapes).astype(dtype)
            for number, dtype in self.operation.dtypes.items()
        }

    @cached_property
    def desc(self) -> OperatorDesc:
        """The DirectML operator."""
        sources = [
            BufferTensorDesc(TensorDataType[dtype.name.upper()], shape)
            for dtype, shape in zip(self.dtypes, self.shapes, strict=True)
        ]
        return self.operation.desc(*sources)

    @property
    def output_shapes(self) -> list[Shape]:
        """The shapes of the outputs."""
        return [tuple(tensor.sizes) for _, tensor in self.desc.outputs]

    @property
    def nbytes(self) -> int:
        """Number of bytes of all outputs."""
        return sum(tensor.total_tensor_size_in_bytes for _, tensor in self.desc.outputs)


def case(dtype: str, operation: Operation, *shapes: Shape) -> BenchCase:
    """Make a case with inputs of some shapes."""
    return BenchCase(np.dtype(dtype), operation, shapes)


@dataclass(frozen=True)
class Workload:
    """A case with its name and description."""

    name: str
    description: str
    contiguous: bool
    """Whether inputs and outputs are runs of at least 16 bytes: memory is then the only limit."""
    case: BenchCase


F32, SQUARE, TABLE = "float32", (4096, 4096), (100_000, 256)
QUARTERS = (1024,) * 4

_WORKLOADS = {  # a description, whether it is contiguous, and the case
    "W1": ("split axis 0 of (4096,4096) in 4", True, case(F32, Split(0, QUARTERS), SQUARE)),
    "W2": ("split axis 1 of (4096,4096) in 4", True, case(F32, Split(1, QUARTERS), SQUARE)),
    "W3": ("split (262144,64) into 16 of 4", True, case(F32, Split(1, (4,) * 16), (262144, 64))),
    "W4": (
        "uint16: split (65536,255) in 3 of 85", False,
        case("uint16", Split(1, (85,) * 3), (65536, 255)),
    ),
    "W5": ("join axis 1 of 4 x (4096,1024)", True, case(F32, Join(1), *[(4096, 1024)] * 4)),
    "W6": ("uint8: join 3 x (1048576,21)", False, case("uint8", Join(1), *[(1048576, 21)] * 3)),
    "W7": (
        "window [1000:3000,1000:3000]", True, case(F32, Crop((1000, 1000), (2000, 2000)), SQUARE),
    ),
    "W8": ("slice [::2,::3] of (4096,4096)", False, case(F32, EveryNth((2, 3)), SQUARE)),
    "W9": ("slice [::-1,::-1] of (4096,4096)", False, case(F32, EveryNth((-1, -1)), SQUARE)),
    "W10": ("transpose (4096,4096)", False, case(F32, Permute((1, 0)), SQUARE)),
    "W11": ("split (1,1,6,2) into 2,1,3", False, case(F32, Split(2, (2, 1, 3)), (1, 1, 6, 2))),
    "W12": (
        "join axis 2 of 2 x (8,16,32,32,32)", True,
        case(F32, Join(2), (8, 16, 32, 32, 32), (8, 16, 32, 32, 32)),
    ),
    "W13": ("int64: split (2048,4096) in 4", True, case("int64", Split(1, QUARTERS), (2048, 4096))),
    "W14": (
        "float64: split (2048,4096) in 4", True, case("float64", Split(1, QUARTERS), (2048, 4096)),
    ),
    "W15": ("split (1048576,) into 1024", True, case(F32, Split(0, (1024,) * 1024), (1048576,))),
    "W16": ("join 1024 x (1024,)", True, case(F32, Join(0), *[(1024,)] * 1024)),
    "W17": (
        "permute (4,4,4,8,8,8,16,16)", False,
        case(F32, Permute((7, 3, 5, 1, 6, 2, 4, 0)), (4, 4, 4, 8, 8, 8, 16, 16)),
    ),
    "W18": ("uint8: transpose (8192,8192)", False, case("uint8", Permute((1, 0)), (8192, 8192))),
    "W19": ("gather 65536 rows of (100000,256)", True, case(F32, Gather(), TABLE, (65536,))),
    "W20": (
        "gather elements of (4096,4096)", False, case(F32, GatherElements(), SQUARE, SQUARE),
    ),
    "W21": (
        "scatter 65536 rows to (100000,256)", True,
        case(F32, ScatterRows(), TABLE, (65536, 1), (65536, 256)),
    ),
    "W22": (
        "pad (16,64,112,112) by 1: reflect", False, case(F32, PadReflect(1), (16, 64, 112, 112)),
    ),
    "W23": (
        "depth to space (8,256,64,64), 2x2", False, case(F32, DepthToSpace(2), (8, 256, 64, 64)),
    ),
    "W24": ("tile (1024,1024) by (4,4)", True, case(F32, Tile((4, 4)), (1024, 1024))),
    "W25": ("upsample (8,64,128,128) by 2", False, case(F32, Upsample(2), (8, 64, 128, 128))),
    "W26": (
        "uint8: one-hot 65536 x 1024", False, case("uint8", OneHot(1024), (65536, 1), (1, 2)),
    ),
    "W27": (
        "reverse sequences (256,1024,64)", True,
        case(F32, ReverseSequences(), (256, 1024, 64), (256,)),
    ),
}  # fmt: skip

WORKLOADS = tuple(Workload(name, *rest) for name, rest in _WORKLOADS.items())
"""As named in docs/performance.md."""
