"""Dispatches of users' shaders."""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Any, NamedTuple

from vkops.extent import Extent
from vkops.gpu.memory.pools import Allocation
from vkops.gpu.run.open_device import OpenDevice
from vkops.shaders.shader import Shader
from vkops.shaders.slot import Slot

Groups = tuple[int, int, int] | Extent
"""Numbers of workgroups, or the bytes of a buffer that hold three of 32 bits."""


class PreparedCall:
    """A dispatch of a shader without memory and values, which calls with equal slots share.

    Attributes:
        shader: the shader.
        slots: its descriptors.
        copied: the numbers of those that are bound to copies.
    """

    def __init__(
        self, device: OpenDevice, shader: Shader, pipeline: Any, slots: Sequence[Slot]
    ) -> None:
        self.shader: Shader = shader
        self.slots: Sequence[Slot] = slots
        self.copied: list[int] = [number for number, slot in enumerate(slots) if slot.is_copied]
        self._pipeline = pipeline
        self._native: Any = device.vulkan.module.PreparedCall(pipeline, tuple(slots))

    def with_copies(self, device: OpenDevice, copied: Container[int]) -> PreparedCall:
        """Return the call with the descriptors numbered ``copied`` bound to copies instead."""
        slots = [slot.in_copy() if n in copied else slot for n, slot in enumerate(self.slots)]
        return PreparedCall(device, self.shader, self._pipeline, slots)

    def bind(
        self, device: OpenDevice, memory: Sequence[Any], groups: Groups, push_constants: bytes
    ) -> tuple[Any, list[Allocation], list[Allocation]]:
        """Return the dispatch for a buffer or bytes for each descriptor, and the memory it uses.

        The memory that it only reads comes first, then the memory that it writes.
        """
        vulkan = device.vulkan
        values = memory, groups, push_constants, vulkan.validated, self.shader.name
        bound = self._native.bind(vulkan.native, *values)
        bound.call = BoundCall(self, memory, groups, push_constants)
        reads: list[Allocation] = []
        writes: list[Allocation] = []
        for slot, each in zip(self.slots, memory, strict=True):
            if slot.has_memory:
                (writes if slot.is_written or slot.is_copied else reads).append(each.allocation)
        if isinstance(groups, Extent):
            reads.append(groups.resource.allocation)
        if self.shader.uses_addresses:
            writes += vulkan.addressed_memory()
        return bound, reads, writes

    def run(
        self, device: OpenDevice, memory: Sequence[Any], groups: Groups, push_constants: bytes
    ) -> None:
        """Submit the dispatch."""
        device.make_ready()
        vulkan, shader = device.vulkan, self.shader
        if vulkan.recording is None and not shader.uses_addresses and not vulkan.observers:
            values = memory, groups, push_constants, vulkan.validated, shader.name
            vulkan.start(self._native.run, vulkan.native, *values)
            return
        dispatch, reads, writes = self.bind(device, memory, groups, push_constants)
        vulkan.submit([dispatch], reads, writes, shader.name)


class BoundCall(NamedTuple):
    """A call bound to its arguments: a buffer or bytes for each descriptor, groups and values."""

    call: PreparedCall
    memory: Sequence[Any]
    groups: Groups
    push_constants: bytes
