"""Tensors: a shape and a NumPy dtype over device memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod
from operator import attrgetter
from threading import RLock
from typing import TYPE_CHECKING, Any, ParamSpec, TypeGuard, Union

import numpy as np
import numpy.typing as npt
from cachetools import LRUCache, cached
from numpy.lib.stride_tricks import as_strided

from vkops.errors import InvalidDescTypeError
from vkops.gpu.buffer import Buffer, HostBuffer
from vkops.gpu.dispatch import Program, Programs
from vkops.gpu.memory import Place
from vkops.gpu.streaming import Progress, stream
from vkops.gpu.table import Tuning
from vkops.plan.algebra import coalesce
from vkops.plan.execute import packed_bytes
from vkops.plan.region import CopyPlan, Ints, Output, Read, Region
from vkops.plan.view import View, copy, packed_strides

if TYPE_CHECKING:
    from vkops.device import Device

P = ParamSpec("P")

MOST_KILOBYTES = 8192
"""What the movements that a cache remembers take, about: 3 kB each, and 1 kB for each region."""

SMALL = 64 << 20
"""Bytes of inputs and outputs up to which nobody asks whether they fit before they are sent."""

ELEMENT_SIZES = (1, 2, 4, 8, 16)
"""Bytes of the elements that can be moved."""


class Tensor:
    """An array in device memory: row-major, immutable by NumPy's side, freed with this object.

    ``buffer`` is its memory, None if it has no elements. Results that do not fit on the device
    stay on the host.

    >>> import numpy as np
    >>> from vkops import Device
    >>> x = Device().tensor(np.arange(6, dtype=np.int16).reshape(2, 3))
    >>> x.shape, x.dtype, x.nbytes
    ((2, 3), dtype('int16'), 12)
    >>> x[::-1, 1:].numpy()
    array([[4, 5],
           [1, 2]], dtype=int16)
    """

    __slots__ = ("__weakref__", "buffer", "device", "dtype", "nbytes", "shape", "size")

    def __init__(
        self, device: Device, shape: Ints, dtype: np.dtype[Any], *, on_host: bool = False
    ) -> None:
        self.device = device
        self.shape = shape
        self.dtype = dtype
        self.size = prod(shape)
        self.nbytes = self.size * dtype.itemsize
        self.buffer: Buffer | HostBuffer | None = None
        size = self.words * 4
        if size:
            self.buffer = HostBuffer(size) if on_host else Buffer(device.executor, size)

    @classmethod
    def from_array(cls, device: Device, array: Any) -> Tensor:
        """Copy an array, or anything that NumPy makes one of, to the device."""
        source = as_array(array)
        tensor = cls(device, source.shape, source.dtype)
        tensor.fill(source)
        return tensor

    @classmethod
    def over(
        cls, device: Device, buffer: Buffer | HostBuffer | None, shape: Ints, dtype: np.dtype[Any]
    ) -> Tensor:
        """A tensor whose elements are in a buffer already."""
        tensor = cls.__new__(cls)
        tensor.device, tensor.buffer = device, buffer
        tensor.shape, tensor.dtype = shape, dtype
        tensor.size = prod(shape)
        tensor.nbytes = tensor.size * dtype.itemsize
        return tensor

    @property
    def words(self) -> int:
        """Words of 32 bits: whole ones, so that a descriptor of the shape can be bound (T-14)."""
        return -(-self.nbytes // 4)

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    def fill(self, array: npt.NDArray[Any]) -> None:
        """Take over the elements of an array of this dtype and shape."""
        if self.buffer is not None:
            self.buffer.fill(array)

    def numpy(self) -> npt.NDArray[Any]:
        """The elements as a read-only array: a view where the host sees device memory."""
        if self.buffer is None:
            return np.empty(self.shape, self.dtype)
        return self.buffer.array(0, self.nbytes).view(self.dtype).reshape(self.shape)

    def __array__(
        self, dtype: npt.DTypeLike | None = None, copy: bool | None = None
    ) -> npt.NDArray[Any]:
        array = self.numpy()
        if dtype is not None and np.dtype(dtype) != self.dtype:
            if copy is False:
                raise ValueError(f"a {self.dtype} tensor as {np.dtype(dtype)} needs a copy")
            return array.astype(dtype)
        return array.copy() if copy else array

    def __dlpack__(self, **options: Any) -> Any:
        # A copy: consumers may write to what they get.
        return self.numpy().copy().__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return np.empty(0).__dlpack_device__()

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a tensor without dimensions")
        return self.shape[0]

    def __repr__(self) -> str:
        return f"<vkops.Tensor {self.shape} {self.dtype} on {self.device.name!r}>"

    def __getitem__(self, index: Any) -> Tensor:
        """Basic indexing: integers, slices, ``...`` and ``None``, as in NumPy.

        Raises:
            IndexError: an index is out of range, or of another kind.
        """
        parts = index if isinstance(index, tuple) else (index,)
        for part in parts:
            if isinstance(part, bool) or not (
                part is None or part is ... or isinstance(part, (slice, int, np.integer))
            ):
                raise IndexError(
                    f"got an index of type {type(part).__name__}, "
                    "must be integers, slices, ... and None"
                )
        # NumPy itself works out the view, on one byte that stands for every element; with an
        # ellipsis the result is always a view, so that no byte is read.
        ellipsis = () if any(part is ... for part in parts) else (...,)
        ghost = as_strided(np.empty(1, np.uint8), self.shape, packed_strides(self.shape))
        chosen = ghost[parts + ellipsis]
        start, first = (a.__array_interface__["data"][0] for a in (ghost, chosen))
        view = View(chosen.shape, chosen.strides, first - start)
        return _window(self.shape, self.dtype.itemsize, view).run(self.device, [self])[0]


def as_array(array: Any) -> npt.NDArray[Any]:
    """Anything that NumPy makes an array of, as one whose elements can be moved (T-02)."""
    try:
        made = np.asarray(array)
    except (TypeError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise InvalidDescTypeError("", "array", f"NumPy says: {reason}", "T-02") from error
    check_dtype(made.dtype)
    return made


def check_dtype(dtype: np.dtype[Any]) -> None:
    """Refuse elements that cannot be moved as bytes (T-02)."""
    if dtype.hasobject or dtype.itemsize not in ELEMENT_SIZES:
        raise InvalidDescTypeError(
            "",
            "dtype",
            f"got {dtype} ({dtype.itemsize} bytes), must be elements of 1, 2, 4, 8 or 16 bytes "
            "that hold no Python objects",
            "T-02",
        )


Source = Union[Tensor, "npt.NDArray[Any]"]
"""What a movement takes: what is on the device, or has to be sent there."""


class Movement:
    """A plan between packed tensors, with what is needed to run it again and again.

    ``shapes`` are those of the results. Tensors without elements take no part: they have no
    regions, and are not among the plan's inputs and outputs.
    """

    def __init__(self, plan: CopyPlan, shapes: Sequence[Ints]) -> None:
        self.plan = plan
        self.shapes = tuple(shapes)
        self._nbytes = sum(plan.inputs) + sum(output.nbytes for output in plan.outputs)
        self._is_whole = len(self.shapes) == len(plan.inputs) == 1 and _is_whole(plan)
        self.kilobytes = 3 + sum(len(output.regions) for output in plan.outputs)
        self._programs: dict[Tuning, Program | Programs] = {}

    def run(
        self, device: Device, inputs: Sequence[Source], progress: Progress | None = None
    ) -> list[Tensor]:
        """Run on arrays and tensors of one dtype and of the shapes that it was made for.

        What does not fit on the device is streamed, if all inputs are on the host.
        """
        first = inputs[0]
        is_same = self._is_whole and not _is_resident(first) and first.shape == self.shapes[0]
        if is_same and self._fits(device, inputs):
            return [Tensor.from_array(device, first)]  # what is sent is the result
        return self.make(device, inputs, [first.dtype] * len(self.shapes), progress)

    def make(
        self,
        device: Device,
        inputs: Sequence[Source],
        dtypes: Sequence[np.dtype[Any]],
        progress: Progress | None = None,
        targets: Sequence[Tensor | None] = (),
    ) -> list[Tensor]:
        """Run, giving each result a dtype of its own, or a tensor to be made in."""
        targets = targets or [None] * len(self.shapes)
        on_host = not self._fits(device, inputs) or any(
            target is not None and isinstance(target.buffer, HostBuffer) for target in targets
        )
        results = [
            Tensor(device, shape, dtype, on_host=on_host) if target is None else target
            for shape, dtype, target in zip(self.shapes, dtypes, targets, strict=True)
        ]
        if not self.plan.outputs:
            return results
        executor = device.executor
        if on_host:
            sources = [packed_bytes(np.asarray(source)) for source in inputs if source.size]
            arrays = [
                result.buffer.bytes[: result.words * 4]
                for result in results
                if isinstance(result.buffer, HostBuffer)
            ]
            stream(executor, self.plan, sources, arrays, progress)
            return results
        tensors = [
            source if _is_resident(source) else Tensor.from_array(device, source)
            for source in inputs
        ]
        program = self._programs.get(executor.tuning)
        if program is None:
            program = self._programs[executor.tuning] = executor.prepare(self.plan)
        executor.run(program.bind(_places(tensors), _places(results)))
        return results

    def _fits(self, device: Device, inputs: Sequence[Source]) -> bool:
        """Whether to work on the device; where an input is there already, nothing else will do."""
        if self._nbytes <= SMALL or any(map(_is_resident, inputs)):
            return True
        return device.executor.fits(self._nbytes)


def movement(
    itemsize: int,
    inputs: Sequence[Ints],
    shapes: Sequence[Ints],
    pieces: Sequence[tuple[Region, ...]],
) -> Movement:
    """The movement that makes tensors of some shapes, each from the regions that belong to it."""
    outputs = (
        Output(prod(shape) * itemsize, regions)
        for shape, regions in zip(shapes, pieces, strict=True)
        if prod(shape)
    )
    sources = (prod(shape) * itemsize for shape in inputs)
    return Movement(CopyPlan(itemsize, tuple(filter(None, sources)), tuple(outputs)), shapes)


def _is_whole(plan: CopyPlan) -> bool:
    """Whether the one output is the one input, as it is."""
    regions = [region for output in coalesce(plan).outputs for region in output.regions]
    whole = Region((1,), 0, (1,), Read(0, 0, (1,)))
    return [replace(region, sizes=(1,)) for region in regions] == [whole]


def _is_resident(source: Source) -> TypeGuard[Tensor]:
    return isinstance(source, Tensor) and not isinstance(source.buffer, HostBuffer)


def _places(tensors: Sequence[Tensor]) -> list[Place]:
    return [
        _place(tensor, tensor.buffer) for tensor in tensors if isinstance(tensor.buffer, Buffer)
    ]


def _place(tensor: Tensor, buffer: Buffer) -> Place:
    """Where the elements are; the buffer of a tensor that was put over one may go on."""
    place: Place = buffer.place
    return place if buffer.nbytes == tensor.words * 4 else place.part(0, tensor.words * 4)


def remembered(build: Callable[P, Movement]) -> Callable[P, Movement]:
    """Keep what is built from the same arguments, as long as it takes little memory in all."""
    kept: LRUCache[Any, Movement] = LRUCache(MOST_KILOBYTES, getsizeof=attrgetter("kilobytes"))
    return cached(kept, lock=RLock())(build)


def window(shape: Ints, itemsize: int, view: View) -> Movement:
    """A strided view of a tensor, made packed."""
    target = View.packed(view.sizes)
    return movement(itemsize, [shape], [view.sizes], [(copy(view, target),)])


_window = remembered(window)
