"""The arguments of shaders, and copies of those that cannot be bound in place."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, Protocol

from vkops.errors import BindingError
from vkops.gpu.run.buffer import HostBuffer
from vkops.gpu.run.open_device import OpenDevice
from vkops.gpu.run.shader_dispatch import PreparedCall
from vkops.shaders.shader import Shader
from vkops.shaders.slot import Slot


class ShaderArgument(Protocol):
    """An argument of a call; each kind of argument is a module of ``shader_arguments``."""

    def fill_slot(self, device: OpenDevice, shader: Shader, slot: Slot) -> Slot:
        """Check the argument; return the slot with the values that describe its binding.

        The slot says if the dispatch cannot be bound to the argument's memory, and needs a copy.
        The method ``copy`` makes it, and ``overlaps`` tells whether two arguments share bytes, so
        that their copies would conflict.
        """


Kinds = Mapping[str, Sequence[str]]
"""Kinds of blocks, each with the names of the limits in ``shader_checks.py`` for its number."""

Resolved = tuple[ShaderArgument, Any, Hashable]
"""An argument, its memory, and everything but the address that a prepared call depends on."""


@dataclass(eq=False)
class ShaderCopy:
    """A copy of elements or of an image, to which a shader is bound instead.

    Elements in host memory, which are contiguous, are copied by ``send`` and ``fetch``; others are
    copied on the device by ``before`` and ``after``. Copies that the shader writes are copied back.

    Attributes:
        source: the memory that is copied.
        resource: the memory of the copy.
        is_written: whether the shader writes it.
        start: the first byte of elements of the host.
        before: the operations that make the copy.
        after: the operations that copy it back.
        used: intermediate memory that the operations use.
    """

    source: Any
    resource: Any
    is_written: bool
    start: int = 0
    before: Sequence[Any] = ()
    after: Sequence[Any] = ()
    used: list[Any] = field(default_factory=list)

    def send(self) -> None:
        """Copy elements of the host to the device."""
        if isinstance(self.source, HostBuffer):
            self.resource.write(self.source.peek(self.start, self.resource.nbytes))

    def fetch(self) -> None:
        """Copy elements of the host back, if the shader writes them, when they are complete."""
        if self.is_written and isinstance(self.source, HostBuffer):
            self.source.write(self.resource.peek(), self.start)


def make_copies(device: OpenDevice, call: PreparedCall, arguments: Sequence[Any]) -> dict[int, Any]:
    """Make the copies of a call, by the numbers of the bindings that use them (SH-06).

    Bindings of the same elements share a copy.
    """
    slots = call.slots
    used = [(n, argument) for n, argument in enumerate(arguments) if slots[n].has_memory]
    for (one, first), (other, second) in combinations(used, 2):
        copied = one in call.copied or other in call.copied
        written = slots[one].is_written or slots[other].is_written
        if copied and written and first != second and first.overlaps(second):
            what = "host memory" if isinstance(first.buffer, HostBuffer) else "a view"
            message = (
                f"shares bytes with {slots[one].point}, must not: one of them is {what} that is "
                "copied while the shader runs, and one is written"
            )
            raise BindingError(call.shader.name, slots[other].point, message, "SH-06")
    changed = {argument for n, argument in used if slots[n].is_written}
    copies = {
        argument: argument.copy(device, is_written=argument in changed)
        for argument in dict.fromkeys([argument for n, argument in used if n in call.copied])
    }
    return {n: copies[argument] for n, argument in used if argument in copies}
