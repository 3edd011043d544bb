"""Dispatches of users' shaders, and copies of bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from vkops.extent import Extent, slice_extents
from vkops.gpu.memory.pools import Allocation

BoundBytes = tuple[Any, int, int] | bytes
"""What a binding has: an extent of memory, or bytes that the dispatch only reads."""

Groups = tuple[int, int, int] | Extent
"""Numbers of workgroups, or the bytes of a buffer that hold three of 32 bits."""


@dataclass(slots=True, eq=False)
class ShaderDispatch:
    """A dispatch of a pipeline; ``bound`` is in the order of its bindings."""

    pipeline: Any
    bound: Sequence[BoundBytes]
    groups: Any
    push_constants: bytes
    made: Any = None

    def operation(self, device: Any) -> Any:
        """Return the operation of the native module."""
        if self.made is None:
            bound: list[Any] = [*self.bound]
            for number, each in enumerate(self.bound):
                if not isinstance(each, bytes):
                    memory, start, nbytes = each
                    exact = memory.device.exact_memory(*each) if device.validated else None
                    # A buffer of its own: the layer looks for accesses beyond it.
                    bound[number] = (exact, 0, nbytes) if exact else (memory.native, start, nbytes)
            make = device.module.OpDispatch
            self.made = make(self.pipeline, bound, self.groups, self.push_constants)
        return self.made


class PreparedCall(NamedTuple):
    """A dispatch of a shader without its addresses and values: all calls of a kind share it.

    Attributes:
        name: the name of the shader in errors.
        pipeline: that of the native module.
        places: of each binding, the first byte in its buffer, the number of bytes, and whether the
            shader writes them; None for bytes of the dispatch's own.
        copied: the numbers of those that have to be bound as copies.
    """

    name: str
    pipeline: Any
    places: Sequence[tuple[int, int, bool] | None]
    copied: Sequence[int] = ()

    def bind(
        self, memory: Sequence[Any], groups: Groups, push_constants: bytes
    ) -> tuple[ShaderDispatch, list[Allocation], list[Allocation]]:
        """Return the dispatch for the buffer or the bytes of each binding, and what it uses.

        That is the memory that it only reads, and the memory that it writes.
        """
        bound: list[BoundBytes] = []
        reads: list[Allocation] = []
        writes: list[Allocation] = []
        counts: Any = groups
        if type(groups) is Extent:
            buffer, start, _ = counts
            reads.append(buffer.allocation)
            heap, first, _ = buffer.extents[0]
            counts = heap.native, first + start
        for buffer, place in zip(memory, self.places, strict=True):
            if place is None:
                bound.append(buffer)
                continue
            start, nbytes, is_written = place
            extents = buffer.extents
            if len(extents) > 1:
                extents, start = slice_extents(extents, start, nbytes), 0
            heap, first, _ = extents[0]
            bound.append((heap, first + start, nbytes))
            (writes if is_written else reads).append(buffer.allocation)
        return ShaderDispatch(self.pipeline, bound, counts, push_constants), reads, writes

    def run(
        self, device: Any, memory: Sequence[Any], groups: Groups, push_constants: bytes
    ) -> None:
        """Submit the dispatch to an ``OpenDevice``, if nothing is bound as a copy."""
        dispatch, reads, writes = self.bind(memory, groups, push_constants)
        device.submit([dispatch], reads, writes, self.name)


@dataclass(slots=True, eq=False)
class ByteCopy:
    """Bytes of the copy's own that are copied to memory."""

    target: Extent
    source: bytes

    def operation(self, device: Any) -> Any:
        """Return the operation of the native module."""
        memory, start, _ = self.target
        return device.module.OpCopyBytes(memory.native, start, self.source)
