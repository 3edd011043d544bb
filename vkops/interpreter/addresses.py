"""Memory that shaders access by its address: physical storage buffers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from vkops.interpreter.memory import MemoryVariable
from vkops.interpreter.operations import Array, dtype_of
from vkops.interpreter.program import is_pointer, scalar_of
from vkops.interpreter.values import Numbers, Outside, Pointer, Value
from vkops.shaders.layout import ArrayType, ScalarType, StructType, Type

BASE = 1 << 36
"""The address of the first byte."""

_GAP = 1 << 12
"""The number of bytes between tensors, and the alignment of their first bytes."""

_FAR = 1 << 60
"""The number that is added to an address if no tensor is near it."""

_SMALLEST = {"StorageBuffer8BitAccess": 1, "StorageBuffer16BitAccess": 2}

NO_TENSOR = "no tensor at this address"

PLACE = (-1, -1)
"""The key of this memory in a dictionary of blocks' memory by set and binding."""


class TensorMemory(MemoryVariable):
    """Tensors by name, with a gap between them; accesses outside of a tensor are out of bounds.

    If a device's addresses are given, in ascending order, the tensors have these. The elements then
    have the type of the last access.
    """

    def __init__(
        self,
        tensors: Mapping[str, Array],
        capabilities: tuple[str, ...] = (),
        known: Sequence[int] = (),
    ) -> None:
        self.tensors = dict(tensors)
        self._has_types = not known
        self._sizes: Array = np.array([each.nbytes for each in tensors.values()] or [0], np.int64)
        starts = _starts(tensors)
        self._starts: Array = starts[: max(len(tensors), 1)]
        self._known: Array = np.array(known or BASE + self._starts, np.int64)
        super().__init__("", ScalarType("uint", 4), "", 1, int(starts[-1]), is_written=True)
        self.unit = min([_SMALLEST[c] for c in capabilities if c in _SMALLEST], default=4)
        for start, data in zip(self._starts.tolist(), tensors.values(), strict=False):
            self._data[start : start + data.nbytes] = np.frombuffer(data.tobytes(), np.uint8)

    def start(self, name: str) -> int:
        """Return the offset at which a tensor begins."""
        return int(self._starts[[*self.tensors].index(name)])

    def results(self) -> dict[str, Array]:
        """Return the tensors with their stored content."""
        spans = zip(self._starts.tolist(), self.tensors.items(), strict=False)
        return {
            name: self._data[start : start + data.nbytes].view(data.dtype).reshape(data.shape)
            for start, (name, data) in spans
        }

    def offsets(self, addresses: Array) -> Array:
        """Return the offsets for addresses; far from all tensors, an offset is beyond them."""
        at = addresses.view(np.int64)
        number = np.clip(self._known.searchsorted(at, "right") - 1, 0, None)
        distance = at - self._known[number]
        is_near = (distance >= -_GAP // 2) & (distance < self._sizes[number] + _GAP // 2)
        return np.where(is_near, distance + self._starts[number], at + _FAR)

    def addresses_of(self, offsets: Array) -> Array:
        """Return the addresses for offsets."""
        number = np.clip((self._starts - _GAP // 2).searchsorted(offsets, "right") - 1, 0, None)
        near = offsets - self._starts[number] + self._known[number]
        return np.where(_is_far(offsets), offsets - _FAR, near)

    def room(self, offset: int) -> int:
        """The size is unlimited, because ``outside`` checks each access."""
        return BASE

    def element(self, offset: int, whole: Type | None = None) -> str:
        """Return the name of the element of a tensor at an offset."""
        number = int(self._starts.searchsorted(offset, "right")) - 1
        name, data = [*self.tensors.items()][number]
        return f"{name}[{(offset - int(self._starts[number])) // data.itemsize}]"

    def outside(self, pointer: Pointer) -> Outside | None:
        """Return which invocations access misaligned bytes, or bytes that are not in one tensor."""
        at: Array = np.atleast_1d(pointer.offset)
        number = np.clip(self._starts.searchsorted(at, "right") - 1, 0, None)
        start, end = self._starts[number], self._starts[number] + self._sizes[number]
        scalar = scalar_of(pointer.type)
        crooked = at % (scalar.nbytes if scalar else 1) != 0
        wrong = (at < start) | (at + pointer.type.nbytes > end) | crooked
        if not self._has_types and (scalars := sorted(pointer.type.scalars)):
            names, dtype = [*self.tensors], dtype_of(scalars[0])
            for name in {names[each] for each in number[~wrong].tolist()}:
                whole = self.tensors[name].view(np.uint8)
                self.tensors[name] = whole[: whole.size // dtype.itemsize * dtype.itemsize].view(
                    dtype
                )
        if not wrong.any():
            return pointer.outside
        first = int(wrong.argmax())
        if not self.tensors or _is_far(at)[first]:
            name, index, text = "memory", self.addresses_of(at).view(np.uint64), NO_TENSOR
        else:
            name, index = [*self.tensors][int(number[first])], at - start
            text = f"{self._sizes[number[first]]} bytes, and must be accessed at multiples of "
            text += str(scalar.nbytes if scalar else 1)
        mask = wrong if pointer.outside is None else wrong | pointer.outside.mask
        return Outside(name, mask, index, text)


def _is_far(offsets: Array) -> Array:
    """Whether no tensor is near; with a large address, the sum with ``_FAR`` is negative."""
    return np.asarray(np.abs(offsets) >= _FAR // 2)


def _starts(tensors: Mapping[str, Array]) -> Array:
    """Return the offsets at which tensors begin, and the end."""
    sizes = (each.nbytes for each in tensors.values())
    return np.cumsum([0, *(-(-size // _GAP) * _GAP + _GAP for size in sizes)])


def pointer(memory: TensorMemory | None, type_: Type, addresses: Array) -> Pointer:
    """Return a pointer into the memory at addresses."""
    memory = memory or TensorMemory({})
    at = memory.offsets(addresses)
    return Pointer(memory, type_, int(at[0]) if len(at) == 1 else at)


def numbers(value: Value) -> Value:
    """Return addresses for a pointer into memory that has some, and other values unchanged."""
    if isinstance(value, Pointer) and isinstance(value.variable, TensorMemory):
        return Numbers(value.variable.addresses_of(np.atleast_1d(value.offset)).astype(np.uint64))
    return value


def with_addresses(type_: Type | None, path: str, value: Any, tensors: dict[str, Array]) -> Any:
    """Return values in which an array that stands for its address is replaced by the address.

    The arrays are added to ``tensors`` by their paths.
    """
    if type_ == ScalarType("uint", 8) and isinstance(value, np.ndarray) and value.ndim:
        same = (name for name, known in tensors.items() if known is value)
        name = next(same, path)
        tensors[name] = value
        return BASE + int(_starts(tensors)[[*tensors].index(name)])
    if isinstance(type_, StructType) and isinstance(value, Mapping):
        types = {member.name: member.type for member in type_.members}
        return {
            name: with_addresses(types.get(name), f"{path}.{name}", each, tensors)
            for name, each in value.items()
        }
    if isinstance(value, (list, tuple)) and type_ is not None and not is_pointer(type_):
        members = [type_.element] * len(value) if isinstance(type_, ArrayType) else ()
        members = [m.type for m in type_.members] if isinstance(type_, StructType) else members
        padded = [*members, *[None] * len(value)]
        return [
            with_addresses(padded[number], f"{path}[{number}]", each, tensors)
            for number, each in enumerate(value)
        ]
    return value
