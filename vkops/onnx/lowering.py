"""The state of lowering a model's graph: tensors, each as regions that read other tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any, NoReturn, TypeAlias

import numpy as np
import numpy.typing as npt

from vkops.gpu.kernels.choice import MAX_DIMS
from vkops.onnx.element_types import HANDLE, STRING, moved_dtype, type_text
from vkops.onnx.value_info import InputType
from vkops.plan import indexing
from vkops.plan.execute import execute_unchecked, packed_bytes
from vkops.plan.graph import RegionGraph
from vkops.plan.indexing import IndexTensor
from vkops.plan.movements import pack
from vkops.plan.region import Fill, Read, Region
from vkops.plan.size_limits import LimitError, check_shape
from vkops.plan.view import Ints, View

MAX_KNOWN_BYTES = 1 << 28
"""Size of all tensors whose elements are computed, or read as shapes, before a model runs."""


class NeedsValueError(Exception):
    """A shape, an axis or the like depends on the elements of a graph input."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(name)


@dataclass(frozen=True, eq=False, slots=True)
class LoweredTensor:
    """A tensor of a lowering, without data: tensor ``number`` of its graph, in some shape."""

    number: int
    dtype: np.dtype[Any]
    shape: Ints

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return prod(self.shape)

    @property
    def type(self) -> str:
        """The type as ONNX's schemas write it."""
        return type_text(self.dtype)

    @property
    def packed(self) -> View:
        """The view of all elements, row by row."""
        return View.packed(self.shape)

    @property
    def read(self) -> Read:
        """All elements, as regions of the graph read them."""
        return Read(self.number, self.packed)

    def reshape(self, shape: Ints) -> LoweredTensor:
        """Return the same elements in another shape."""
        _check_shape(self.dtype, shape)
        return LoweredTensor(self.number, self.dtype, shape)


@dataclass(frozen=True, eq=False, slots=True)
class LoweredSequence:
    """A sequence: tensors of one type."""

    dtype: np.dtype[Any]
    items: tuple[LoweredTensor, ...]

    @property
    def type(self) -> str:
        """The type as ONNX's schemas write it."""
        return type_text(self.dtype, "sequence")


@dataclass(frozen=True)
class IndexCheck:
    """The indices that a node takes: single ones, or tuples of them along the last axis.

    Attributes:
        refuse: raises the ModelError of the node for an argument.
        name: the argument.
        ranges: the indices that are allowed for each axis that they are for.
    """

    refuse: Callable[[str, str], NoReturn]
    name: str
    ranges: Mapping[int, range]

    def __call__(self, indices: npt.NDArray[Any]) -> None:
        """Raise a ModelError for indices out of range."""
        ranges = list(self.ranges.items())
        lowest, ends = ([getattr(r, end) for _, r in ranges] for end in ("start", "stop"))
        wrong = (indices < lowest) | (indices >= ends)
        if wrong.any():
            place = np.unravel_index(np.argmax(wrong), indices.shape)
            axis, r = ranges[place[-1] if len(ranges) > 1 else 0]
            path = f"{self.name}[{', '.join(map(str, place))}]" if place else self.name
            got, allowed = indices[place], f"{r[0]} to {r[-1]} for axis {axis}"
            self.refuse(path, f"got {got}, must be {allowed}")


LoweredValue: TypeAlias = "LoweredTensor | LoweredSequence | None"
"""An input or output of a node; None: it is left out, or an optional that is absent."""


class Lowering:
    """The tensors of a model that is lowered for certain inputs, and how each is made.

    Its methods, and those of its tensors, raise LimitError where a tensor or the graph is too
    large.

    Attributes:
        input_types: the types and shapes of the inputs.
        outputs: the outputs of the model, once all its nodes are lowered.
        graph: how tensors are made from each other.
        inputs: for each leaf of the graph that is an input, the input's name, and for an item of a
            sequence its index.
        constants: the elements of the other leaves.
        strings: the strings for which the handles in constants stand.
        checks: inputs of the model that are indices, each with the allowed ranges.
    """

    def __init__(self, input_types: Mapping[str, InputType] | None = None) -> None:
        self.input_types: Mapping[str, InputType] = input_types or {}
        self.outputs: list[LoweredValue] = []
        self.graph: RegionGraph = RegionGraph()
        self.inputs: dict[int, tuple[str, int | None]] = {}
        self.constants: dict[int, npt.NDArray[Any]] = {}
        self.strings: list[str] = []
        self.checks: list[tuple[LoweredTensor, IndexCheck]] = []
        self._tensors: list[LoweredTensor] = []
        self._origins: dict[int, int] = {}  # the first input that a tensor depends on
        self._known: dict[int, npt.NDArray[np.uint8]] = {}  # bytes of tensors read on the host
        self._known_bytes = 0

    def __getitem__(self, number: int) -> LoweredTensor:
        return self._tensors[number]

    def input(
        self, name: str, dtype: np.dtype[Any], shape: Ints, item: int | None = None
    ) -> LoweredTensor:
        """Add a graph input, or an item of one; its elements are known when the graph runs."""
        tensor = self._new(dtype, shape)
        self.inputs[tensor.number] = name, item
        if tensor.size:
            self._origins[tensor.number] = tensor.number
        return tensor

    def constant(self, array: npt.NDArray[Any]) -> LoweredTensor:
        """Add a tensor of known elements."""
        moved = string_handles(array, self.strings) if array.dtype == STRING else array
        if array.size == 1:
            fill = Fill(moved.tobytes())
            return self._new(array.dtype, array.shape, [Region(View((1,), (1,)), fill)])
        tensor = self._new(array.dtype, array.shape)
        self.constants[tensor.number] = moved
        return tensor

    def computed(self, array: npt.NDArray[Any]) -> LoweredTensor:
        """Add a tensor whose elements were computed from known ones."""
        self._count_known(array.nbytes, array.shape)
        return self.constant(array)

    def full(self, value: npt.NDArray[Any], shape: Ints) -> LoweredTensor:
        """Add a tensor that repeats one element."""
        return self.view(self.constant(value.reshape(1)), View(shape, (0,) * len(shape)))

    def view(self, tensor: LoweredTensor, view: View) -> LoweredTensor:
        """Add a packed copy of a strided view of a tensor."""
        if view == tensor.packed:
            return tensor
        if len(view.sizes) > MAX_DIMS and (blocks := indexing.blocks_of(view, MAX_DIMS)):
            source, places = blocks
            numbers = View.packed((len(places), 1))
            indices = IndexTensor(self.constant(places).number, "i8", numbers)
            target = View.packed((len(places), *source.sizes[1:]))
            region = indexing.gather_nd(Read(tensor.number, source), indices, target, 0)
            return self.make(tensor.dtype, view.sizes, [region])
        return self.make(tensor.dtype, view.sizes, [pack(view, 0, tensor.number)])

    def make(self, dtype: np.dtype[Any], shape: Ints, regions: Iterable[Region]) -> LoweredTensor:
        """Add a tensor that regions write; they read tensors of the same type by their numbers."""
        return self._new(dtype, shape, (region for region in regions if prod(region.sizes)))

    def is_known(self, tensor: LoweredTensor) -> bool:
        """Whether the elements of a tensor do not depend on a graph input."""
        return tensor.number not in self._origins

    def values(self, tensor: LoweredTensor) -> npt.NDArray[Any]:
        """Return the elements of a tensor, which must be known before the graph runs.

        The elements of all tensors on which it depends are kept, so that each is computed once.

        Raises:
            LimitError: there are too many elements.
            NeedsValueError: the elements depend on a graph input.
        """
        if not self.is_known(tensor):
            name, _ = self.inputs[self._origins[tensor.number]]
            raise NeedsValueError(name)
        graph, known = self.graph, self._known
        missing = graph.reachable([tensor.number], known)
        counted = [n for n in missing if n == tensor.number or not graph.is_leaf(n)]
        self._count_known(sum(map(graph.nbytes, counted)), tensor.shape)
        for number in missing:
            if graph.is_leaf(number):
                known[number] = packed_bytes(self.constants.get(number, np.empty(0)))
                continue
            step = graph.step(number)
            outputs = execute_unchecked(step.plan, [known[read] for read in step.reads])
            known[number] = outputs[0] if outputs else np.empty(0, np.uint8)
        elements = known[tensor.number].view(moved_dtype(tensor.dtype))
        if tensor.dtype == STRING:
            elements = np.array([self.strings[handle] for handle in elements], STRING)
        return elements.reshape(tensor.shape)

    def check(self, tensor: LoweredTensor, check: IndexCheck) -> npt.NDArray[Any] | None:
        """Check indices, and return them if they are known.

        An input is checked when the model runs, if it is given as an array. Elements that are only
        on the device are not checked.
        """
        if self.is_known(tensor):
            elements = self.values(tensor)
            check(elements)
            return elements
        if tensor.number in self.inputs:
            self.checks.append((tensor, check))
        return None

    def _count_known(self, nbytes: int, shape: Ints) -> None:
        """Count bytes that are computed or read before the model runs."""
        self._known_bytes += nbytes
        if self._known_bytes > MAX_KNOWN_BYTES:
            raise LimitError(
                f"the elements of a tensor of shape {shape} are needed before the model runs: "
                f"{self._known_bytes} bytes with those needed before, must be {MAX_KNOWN_BYTES} at "
                "most"
            )

    def _new(
        self, dtype: np.dtype[Any], shape: Ints, regions: Iterable[Region] | None = None
    ) -> LoweredTensor:
        """Add a tensor that regions write; without regions, it is a leaf of the graph."""
        size = moved_dtype(dtype).itemsize
        _check_shape(dtype, shape)
        nbytes = prod(shape) * size
        graph = self.graph
        number = graph.leaf(nbytes, size) if regions is None else graph.make(regions, nbytes, size)
        tensor = LoweredTensor(number, dtype, tuple(shape))
        self._tensors.append(tensor)
        origins = [self._origins[n] for n in graph.reads(number) if n in self._origins]
        if origins:
            self._origins[number] = min(origins)
        return tensor


def _check_shape(dtype: np.dtype[Any], shape: Ints) -> None:
    """Check that a tensor is not too large for every device."""
    try:
        check_shape(shape, moved_dtype(dtype).itemsize)
    except LimitError as error:
        raise LimitError(f"shape: {error}") from error


def string_handles(array: npt.NDArray[Any], strings: list[str]) -> npt.NDArray[np.uint64]:
    """Append strings to a list; return their indices, which stand for them on the device."""
    first = len(strings)
    strings += map(str, array.ravel().tolist())
    return np.arange(first, len(strings), dtype=HANDLE).reshape(array.shape)


def tensors_of(value: LoweredValue) -> tuple[LoweredTensor, ...]:
    """Return the tensors of a value: itself, the items of a sequence, or none if left out."""
    if value is None:
        return ()
    return tuple(value.items) if isinstance(value, LoweredSequence) else (value,)
