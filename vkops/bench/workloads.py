"""The workloads that are measured, for DirectML, NumPy and other libraries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from operator import add
from typing import Any

import numpy as np

from vkops import dml
from vkops.bench.movements import (
    Array,
    CopyOperation,
    DepthToSpace,
    Gather,
    GatherElements,
    OneHot,
    PadReflect,
    ReverseSequences,
    ScatterRows,
    Shape,
    Tile,
    Upsample,
    operator,
)
from vkops.dml import BufferTensorDesc, OperatorDesc, TensorDataType
from vkops.system.threads import cached_property


@dataclass(frozen=True)
class Split:
    """Split an array along ``axis`` into parts of the given sizes."""

    axis: int
    sizes: Shape


@dataclass(frozen=True)
class EveryNth:
    """Take every n-th element along each axis, for negative strides backwards from the last."""

    strides: Shape


@dataclass(frozen=True)
class Crop:
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


@dataclass(frozen=True)
class Permute:
    """Reorder the axes."""

    order: Shape


@dataclass(frozen=True)
class Join:
    """Join all inputs, which have one shape, along ``axis``."""

    axis: int


Operation = Split | EveryNth | Crop | Permute | Join | CopyOperation


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
        operation = self.operation
        match operation:
            case Split(0, sizes):
                operation = Split(0, tuple(n * scale for n in sizes))
            case Crop(offsets, (first, *others)):
                operation = Crop(offsets, (first * scale, *others))
        fixed = isinstance(operation, OneHot)
        shapes = [(n if fixed and n == 1 else n * scale, *rest) for n, *rest in self.shapes]
        return BenchCase(self.dtype, operation, shapes)

    @property
    def dtypes(self) -> list[np.dtype[Any]]:
        """The data types of the inputs."""
        others = self.operation.dtypes if isinstance(self.operation, CopyOperation) else {}
        return [np.dtype(others.get(number, self.dtype)) for number in range(len(self.shapes))]

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
        operation = self.operation
        if not isinstance(operation, CopyOperation):
            return {}
        return {
            number: operation.indices(random, *self.shapes).astype(dtype)
            for number, dtype in operation.dtypes.items()
        }

    @cached_property
    def desc(self) -> OperatorDesc:
        """The DirectML operator."""
        sources = [
            BufferTensorDesc(TensorDataType[dtype.name.upper()], shape)
            for dtype, shape in zip(self.dtypes, self.shapes, strict=True)
        ]
        source, shape = sources[0], self.shapes[0]
        match self.operation:
            case Split(axis, parts):
                shapes = [(*shape[:axis], n, *shape[axis + 1 :]) for n in parts]
                return operator(dml.SplitOperatorDesc, source, outputs=shapes, axis=axis)
            case Join(axis):
                return operator(dml.JoinOperatorDesc, *sources, axis=axis)
            case EveryNth(strides):
                sizes = tuple(1 + (n - 1) // abs(s) for n, s in zip(shape, strides, strict=True))
                return operator(
                    dml.Slice1OperatorDesc,
                    source,
                    outputs=[sizes],
                    input_window_offsets=(0,) * len(shape),
                    input_window_sizes=shape,
                    input_window_strides=strides,
                )
            case Crop(offsets, sizes):
                window = {"offsets": offsets, "sizes": sizes, "strides": (1,) * len(shape)}
                return operator(dml.SliceOperatorDesc, source, outputs=[sizes], **window)
            case Permute(order):
                sizes, strides = (
                    tuple(of[axis] for axis in order) for of in (shape, source.effective_strides)
                )
                source = BufferTensorDesc(source.data_type, sizes, strides)
                return operator(dml.ElementWiseIdentityOperatorDesc, source)
            case CopyOperation() as movement:
                return movement.desc(*sources)

    def views(self, array: Array) -> list[Array]:
        """Return each output as a view of the input, or for a join, each input of the output."""
        match self.operation:
            case Split(axis, sizes):
                return np.split(array, np.cumsum(sizes[:-1]), axis)
            case Join(axis):
                return np.split(array, len(self.shapes), axis)
            case EveryNth(strides):
                return [array[tuple(slice(None, None, stride) for stride in strides)]]
            case Crop() as window:
                return [array[window.slices]]
            case Permute(order):
                return [array.transpose(order)]
            case CopyOperation():
                raise ValueError(f"{self.operation} makes no views")

    def numpy(self, arrays: Sequence[Array]) -> list[Array]:
        """Return the outputs as new NumPy arrays.

        >>> case("int64", Split(0, (1, 2)), (3,)).numpy([np.array([7, 8, 9])])
        [array([7]), array([8, 9])]
        """
        if isinstance(self.operation, CopyOperation):
            return [self.operation.numpy(*arrays)]
        if isinstance(self.operation, Join):
            return [np.concatenate(arrays, self.operation.axis)]
        return [view.copy() for view in self.views(arrays[0])]

    def numpy_into(self, outputs: Sequence[Array], arrays: Sequence[Array]) -> None:
        """Write the outputs into arrays that exist; not for a ``CopyOperation``.

        >>> output = np.empty((3, 2))
        >>> case("float64", Permute((1, 0)), (2, 3)).numpy_into([output], [np.eye(2, 3)])
        >>> output.tolist()
        [[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]
        """
        if isinstance(self.operation, Join):
            np.concatenate(arrays, self.operation.axis, out=outputs[0])
            return
        for output, view in zip(outputs, self.views(arrays[0]), strict=True):
            np.copyto(output, view)

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
