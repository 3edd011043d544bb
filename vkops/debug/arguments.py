"""Arrays that stand for the buffers and images that blocks of shaders are bound to."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from vkops.debug.results import numbers_in, places_of
from vkops.debug.shared_arrays import Layout
from vkops.errors import BindingError, show
from vkops.interpreter.addresses import TensorMemory, with_addresses
from vkops.interpreter.images import ImageVariable, SamplerVariable, Sampling
from vkops.interpreter.memory import MemoryVariable
from vkops.interpreter.operations import stored_dtype
from vkops.plan.rounding import round_up
from vkops.shaders.image_formats import FORMATS, Format, refusal, view_format
from vkops.shaders.module import Block
from vkops.shaders.shader import Shader

Buffer = Any
"""An array, a number of bytes, or values of a uniform block; see ``check``."""

_RGB = 3


class Argument(ABC):
    """The value of a block, of an element of an array of blocks, or of a tensor with an address.

    Arguments with the same ``key`` share memory. So do arguments whose ``layout`` has bytes in
    common.
    """

    layout: Layout = Layout()

    @property
    def key(self) -> object:
        """A key; by default, the argument shares memory only with itself."""
        return self

    @abstractmethod
    def memory(self, blocks: Sequence[Block], invocations: int) -> MemoryVariable:
        """Return the memory that these blocks share, as it is before a run."""

    def result(self, block: Block | None, memory: MemoryVariable) -> npt.NDArray[Any]:
        """Return the content of the memory after a run."""
        return numbers_in(block, memory)

    def offset(self, at: int) -> int:
        """Return the byte of the memory for a byte of the result."""
        return at


class BufferArgument(Argument):
    """The bytes of an array, or a number of bytes that are not written.

    None stands for distinct values, with one element for each invocation.
    """

    def __init__(self, data: npt.NDArray[Any] | int | None) -> None:
        if isinstance(data, np.ndarray):
            self.layout: Layout = Layout((data,))
            data = np.frombuffer(data.tobytes(), np.uint8)
        self._data: npt.NDArray[np.uint8] | int | None = data

    @property
    def key(self) -> object:
        """The key; arguments of one array share memory."""
        return self.layout.key if self.layout.arrays else self

    def memory(self, blocks: Sequence[Block], invocations: int) -> MemoryVariable:
        block = min(blocks, key=lambda each: each.scalar_nbytes)
        assert block.type is not None
        largest = max(blocks, key=lambda each: each.nbytes + each.stride * invocations)
        data = _distinct(largest, invocations) if self._data is None else self._data
        is_written = isinstance(data, np.ndarray)
        size = data.size if isinstance(data, np.ndarray) else data
        memory = MemoryVariable(block.instance, block.type, "", 1, size, is_written=is_written)
        if isinstance(data, np.ndarray):
            memory.fill(data.tobytes())
        else:
            memory.block = blocks[0].point
        return memory


class TensorArgument(Argument):
    """A tensor that shaders access by its address."""

    def __init__(self, name: str, memory: TensorMemory) -> None:
        self._name, self._memory = name, memory

    def memory(self, blocks: Sequence[Block], invocations: int) -> MemoryVariable:
        return self._memory

    def result(self, block: Block | None, memory: MemoryVariable) -> npt.NDArray[Any]:
        data: npt.NDArray[Any] = self._memory.results()[self._name]
        return data

    def offset(self, at: int) -> int:
        """Return the byte of the memory of all tensors for a byte of this one."""
        return self._memory.start(self._name) + at


class OpaqueArgument(Argument):
    """An image, a texture, a sampler or a texel buffer, which has been checked.

    ``known`` has the levels of a device's images that were read already.
    """

    def __init__(
        self, shader: Shader, point: str, block: Block, value: Any, known: dict[int, Any]
    ) -> None:
        self._block = block
        sampler, pair = None, type(value) is tuple and len(value) == 2
        if block.kind == "sampler":
            sampler = value
        elif pair and block.kind == "combined image sampler":
            value, sampler = value
        kinds = {each.image.kind for each in shader.blocks if each.image}
        kinds = {block.image.kind} if block.image else kinds
        self.sampler: Sampling = Sampling("linear" if kinds <= {"float"} else "nearest")
        if isinstance(sampler, Mapping) and sampler.keys() <= {*Sampling._fields}:
            self.sampler = Sampling(**sampler)
        elif sampler is not None:
            named: Any = (getattr(sampler, name, None) for name in Sampling._fields)
            self.sampler = Sampling(*named)
        if None in self.sampler:
            message = f"got {show(sampler)}, must be a sampler, or a dictionary of its attributes"
            raise BindingError(shader.name, point, message, "SH-13")
        self.arrays: list[npt.NDArray[Any]] = []
        if block.image is not None:
            fixed: Format | None = None
            if hasattr(value, "mips"):  # an image of a device
                fixed = FORMATS.get(value.format)
                if id(value) not in known:
                    known[id(value)] = [value.mip(level).numpy() for level in range(value.mips)]
                value = known[id(value)]
            self.arrays = [*map(np.asarray, value if isinstance(value, list) else [value])]
            self._set_levels(shader, point, fixed, value)

    def _set_levels(self, shader: Shader, point: str, fixed: Format | None, value: Any) -> None:
        declared, first = self._block.image, self.arrays[0]
        assert declared is not None
        channels, is_buffer = declared.channels(first.shape), declared.dimension == "Buffer"
        if channels is None or not first.size or first.size % (channels if is_buffer else 1):
            message = f"got {show(value)}, must be an array of texels for {declared}"
            message += "" if is_buffer else f", with {declared.shapes}"
            raise BindingError(shader.name, point, message, "SH-13")
        format_ = view_format(first.dtype, channels, fixed, declared)
        if format_ is None:
            message = refusal(first.dtype, channels, fixed, declared)
            raise BindingError(shader.name, point, message, "SH-14")
        rank, layers = 0 if is_buffer else declared.rank, declared.has_layers
        space = range(layers, rank - declared.is_multisampled)  # the axes of sizes only
        has_levels = not is_buffer and not declared.is_multisampled
        most = max(first.shape[axis] for axis in space).bit_length() if has_levels else 1
        for number, each in enumerate(self.arrays):
            sizes = tuple(
                max(1, size >> number) if axis in space else size
                for axis, size in enumerate(first.shape)
            )
            if number >= most or (each.shape, each.dtype) != (sizes, first.dtype):
                message = f"level {number} is {each.shape} {each.dtype}, must be {sizes} "
                message += f"{first.dtype}, of 1 to {most} levels"
                raise BindingError(shader.name, point, message, "SH-13")
        levels = [each.reshape(*each.shape[:rank], -1) for each in self.arrays]
        if is_buffer:
            levels = [each.reshape(-1, channels) for each in levels]
        elif first.shape[rank:] == (_RGB,):
            opaque = 1 if first.dtype.kind == "f" else np.iinfo(first.dtype).max
            levels = [
                np.pad(each, [(0, 0)] * rank + [(0, 1)], constant_values=opaque) for each in levels
            ]
        self._format, dtype = format_, np.dtype(format_.dtype)
        self._levels = [np.ascontiguousarray(each).view(dtype) for each in levels]
        self.layout: Layout = Layout(self.arrays, self._levels[0].nbytes != first.nbytes)

    @property
    def has_sampler(self) -> bool:
        """Whether it is a sampler, or has one."""
        return self._block.kind in ("sampler", "combined image sampler")

    def memory(self, blocks: Sequence[Block], invocations: int) -> MemoryVariable:
        declared = self._block.image
        if declared is None:
            return SamplerVariable(self.sampler)
        return ImageVariable(declared, self._format, self._levels, self.sampler)

    def result(self, block: Block | None, memory: Any) -> npt.NDArray[Any]:
        """Return the array; of an image that is stored to, with the stored texels."""
        first, array = self.arrays[0], memory.results()[0]
        channels = first.size * array.shape[-1] // array.size
        result: npt.NDArray[Any] = array[..., :channels].view(first.dtype).reshape(first.shape)
        return result

    def offset(self, at: int) -> int:
        """Return the byte of a texel, which may have one more channel in the memory."""
        first, texel = self.arrays[0], self._format.nbytes
        nbytes = first.nbytes * texel // self._levels[0].nbytes
        return at // nbytes * texel + at % nbytes


def arguments(
    shader: Shader,
    buffers: Mapping[str, Buffer] | Sequence[Buffer],
    tensors: dict[str, npt.NDArray[Any]],
) -> dict[tuple[int, int], list[Argument]]:
    """Return the argument of each binding, by set and number; several for an array of blocks.

    Arrays in uniform blocks that stand for their addresses are added to ``tensors``.
    """
    if not isinstance(buffers, (Mapping, Sequence)) or isinstance(buffers, str):
        message = f"got {show(buffers)}, must be a dictionary or a list of buffers"
        raise BindingError(shader.name, "buffers", message, "SH-04")
    if not isinstance(buffers, Mapping):
        buffers = shader.by_position(buffers)
    by_place: dict[tuple[int, int], list[Argument]] = {}
    stored: dict[int, npt.NDArray[Any]] = {}
    images: dict[int, Any] = {}
    for slot, given in shader.elements(buffers):
        point, block = slot.point, slot.block
        elements, value = by_place.setdefault(block.place, []), given
        if block.type is None:
            elements.append(OpaqueArgument(shader, point, block, value, images))
            continue
        if block.kind == "uniform" and not isinstance(value, np.ndarray):
            value = with_addresses(block.type, point, value, tensors)
            value = np.frombuffer(shader.pack_uniform(block, value), np.uint8)
        elif not isinstance(value, int) or isinstance(value, bool):
            array = _array(shader, point, given)
            shader.check_elements(point, block, array.dtype, array.shape, bits=True)
            stored[id(given)] = value = stored.get(id(given), array)
        nbytes = value if isinstance(value, int) else value.nbytes
        shader.check_bytes(point, block, 0, nbytes, nbytes)
        elements.append(BufferArgument(value))
    for place, blocks in shader.places.items():
        length = blocks[0].length
        if place not in by_place and blocks[0].kind == "sampler":
            resource = OpaqueArgument(shader, blocks[0].point, blocks[0], None, images)
            by_place[place] = [resource] * (length or 1)
        elif place not in by_place and blocks[0].type and length is not None:
            largest = max(block.nbytes + block.stride for block in blocks)
            nbytes = round_up(largest, max(block.scalar_nbytes for block in blocks))
            by_place[place] = [BufferArgument(nbytes) for _ in range(length or 1)]
    shader.check_complete(b for b in shader.blocks if b.place in by_place or b.type is not None)
    return by_place


def _array(shader: Shader, point: str, value: Any) -> npt.NDArray[Any]:
    array = np.asarray(value)
    if array.dtype.kind not in "iufbV":
        message = f"got {show(value)}, must be an array of numbers or a number of bytes"
        raise BindingError(shader.name, point, message, "SH-04")
    return array


def _distinct(block: Block, count: int) -> npt.NDArray[np.uint8]:
    """Return the bytes of a block whose array has ``count`` elements, all with distinct values.

    Integers begin at 0, because they may be indices; floats begin at 1.
    """
    nbytes = block.nbytes + block.stride * count if block.stride else round_up(block.nbytes, 8)
    data = np.zeros(round_up(nbytes, 8), np.uint8)
    for number, starts, first in places_of(block, nbytes):
        dtype = stored_dtype(number)
        values = np.arange(first, first + len(starts)) + (number.kind == "float")
        data.view(dtype)[starts // dtype.itemsize] = values.astype(dtype)
    return data[:nbytes]
