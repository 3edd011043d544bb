"""Dispatches of users' shaders."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from vkops.extent import Extent
from vkops.gpu.memory.pools import Allocation
from vkops.gpu.run.open_device import OpenDevice
from vkops.shaders.shader import Shader, Slot

Groups = tuple[int, int, int] | Extent
"""Numbers of workgroups, or the bytes of a buffer that hold three of 32 bits."""

Place = tuple[int, int, bool, int] | tuple[tuple[Any, ...], Any, bool] | None
"""The first byte of a binding in its buffer, the number of bytes, whether it is written, and the
VkFormat of texels, else 0; or the view of an image, a sampler or None, and whether it is written.

None stands for bytes of the dispatch's own, and for a sampler."""


def place_in_copy(place: Place) -> Place:
    """Return the place in a packed copy of a binding, which is written before the dispatch."""
    if place is None or isinstance(place[0], int):
        return place and (0, place[1], True, place[3])
    format_, type_, _, _, _, layers, is_stored = place[0]
    return (format_, type_, 0, 1, 0, layers, is_stored), place[1], True


class PreparedCall:
    """A dispatch of a shader without its addresses and values: all calls of a kind share it.

    Attributes:
        shader: the shader.
        slots: the bindings.
        places: the place of each binding.
        copied: the numbers of those that have to be bound as copies.
        uses_addresses: whether the shader can access all memory whose address is known.
    """

    def __init__(
        self,
        device: OpenDevice,
        shader: Shader,
        slots: Sequence[Slot],
        pipeline: Any,
        places: Sequence[Place],
        copied: Sequence[int] = (),
    ) -> None:
        self.uses_addresses: bool = shader.uses_addresses
        self.shader: Shader = shader
        self.slots: Sequence[Slot] = slots
        self.places: Sequence[Place] = places
        self.copied: Sequence[int] = copied
        # With copies, another one is bound, to these.
        self._native: Any = None if copied else device.vulkan.module.Launch(pipeline, places)

    def bind(
        self, device: OpenDevice, memory: Sequence[Any], groups: Groups, push_constants: bytes
    ) -> tuple[Any, list[Allocation], list[Allocation]]:
        """Return the dispatch for the buffer or the bytes of each binding, and what it uses.

        That is the memory that it only reads, and the memory that it writes.
        """
        vulkan = device.vulkan
        values = memory, groups, push_constants, vulkan.validated, self.shader.name
        bound = self._native.bind(vulkan.native, *values)
        bound.call = BoundCall(self, memory, groups, push_constants)
        used = [(each[2], part) for part, each in zip(memory, self.places, strict=True) if each]
        reads, writes = (
            [part.allocation for is_written, part in used if is_written == chosen]
            for chosen in (False, True)
        )
        if isinstance(groups, Extent):
            reads.append(groups.resource.allocation)
        if self.uses_addresses:
            writes += vulkan.addressed_memory()
        return bound, reads, writes

    def run(
        self, device: OpenDevice, memory: Sequence[Any], groups: Groups, push_constants: bytes
    ) -> None:
        """Submit the dispatch, if nothing is bound as a copy."""
        device.prepare()
        vulkan = device.vulkan
        if vulkan.recording is None and not self.uses_addresses and not vulkan.observers:
            values = memory, groups, push_constants, vulkan.validated, self.shader.name
            vulkan.start(self._native.run, vulkan.native, *values)
            return
        dispatch, reads, writes = self.bind(device, memory, groups, push_constants)
        vulkan.submit([dispatch], reads, writes, self.shader.name)


class BoundCall(NamedTuple):
    """A call with all that a dispatch of it uses: a buffer or bytes for each binding."""

    call: PreparedCall
    memory: Sequence[Any]
    groups: Groups
    push_constants: bytes
