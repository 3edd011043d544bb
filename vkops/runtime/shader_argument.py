"""The interface of the arguments that blocks of a shader are bound to."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Protocol

from vkops.gpu.run.open_device import OpenDevice
from vkops.gpu.run.shader_dispatch import Place
from vkops.shaders.shader import Shader, Slot


class Argument(Protocol):
    """An argument of a call; each kind of argument is a module with a class and ``resolved``."""

    def place(self, device: OpenDevice, shader: Shader, slot: Slot) -> tuple[Place, bool]:
        """Check it; return its place in its memory, and whether a dispatch can be bound to it.

        If not, the dispatch is bound to a copy that its method ``copy`` makes; ``overlaps`` says
        whether it shares bytes with another one then.
        """


Resolved = tuple[Argument, Any, Hashable]
"""An argument, its memory, and all that a prepared call depends on but for the address."""
