"""The descriptors of a call: which block each belongs to, and what a dispatch binds to it."""

from __future__ import annotations

from typing import Any, NamedTuple

from vkops.shaders.module import Block


class ImageView(NamedTuple):
    """The part of an image that a shader sees: levels, layers, a format and a type of Vulkan."""

    format: int
    type: int
    level: int
    levels: int
    layer: int
    layers: int
    is_stored: bool


class Slot(NamedTuple):
    """A descriptor of a call, without the memory, so that calls of the same kind share slots.

    The native module has a twin of this class without the names. A slot with ``nbytes`` or a
    ``view`` refers to memory. Other slots have bytes that the dispatch itself holds, or a sampler.

    Attributes:
        point: the name of the binding in the call; of an array of blocks, with the number.
        block: one of the blocks of the binding.
        is_written: whether the shader writes it.
        source: the number of its argument in the call, or -1: a sampler that is not given.
        start: the first byte in the buffer.
        nbytes: the number of bytes.
        format: the VkFormat of the texels in a texel buffer, or 0.
        view: the part of an image that the shader sees, or None.
        sampler: the native sampler that is bound with the image, or None.
        is_copied: whether a packed copy is bound, which is written before the dispatch.
    """

    point: str
    block: Block
    is_written: bool
    source: int = -1
    start: int = 0
    nbytes: int = 0
    format: int = 0
    view: ImageView | None = None
    sampler: Any = None
    is_copied: bool = False

    @property
    def name(self) -> str:
        """The block's own name; for an element of an array, with its number."""
        return self.block.point + "".join(self.point.partition("[")[1:])

    @property
    def has_memory(self) -> bool:
        """Whether it refers to memory."""
        return self.nbytes > 0 or self.view is not None

    def in_copy(self) -> Slot:
        """Return the slot for a packed copy of the argument."""
        view = self.view and self.view._replace(level=0, levels=1, layer=0)
        return self._replace(start=0, view=view, is_copied=self.has_memory)
