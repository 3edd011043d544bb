"""Dispatches of users' shaders, and copies of bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from vkops.extent import Extent

BoundBytes = Extent | bytes
"""What a binding has: bytes of memory, or bytes that the dispatch only reads."""

Groups = tuple[int, int, int] | Extent
"""Numbers of workgroups, or the memory that holds three of 32 bits."""


class ShaderDispatch:
    """A dispatch of a pipeline; ``bound`` is in the order of its bindings."""

    def __init__(
        self,
        pipeline: Any,
        bound: Sequence[BoundBytes],
        groups: Groups,
        push_constants: bytes = b"",
    ) -> None:
        self._pipeline = pipeline
        self._bound = bound
        self._groups = groups
        self._push_constants = push_constants
        self._operation: Any = None

    def operation(self, device: Any) -> Any:
        """Return the operation of the native module."""
        if self._operation is None:
            native = _exact if device.validated else _native
            groups: Any = self._groups
            if isinstance(groups, Extent):
                groups = _native(groups)[:2]
            make = device.module.OpDispatch
            bound = [*map(native, self._bound)]
            self._operation = make(self._pipeline, bound, groups, self._push_constants)
        return self._operation


@dataclass(slots=True, eq=False)
class ByteCopy:
    """Bytes of the copy's own that are copied to memory."""

    target: Extent
    source: bytes

    def operation(self, device: Any) -> Any:
        """Return the operation of the native module."""
        memory, start, _ = self.target
        return device.module.OpCopyBytes(memory.native, start, self.source)


def _native(bound: BoundBytes) -> Any:
    """The memory of a binding for the native module."""
    if isinstance(bound, bytes):
        return bound
    return bound.resource.native, bound.start, bound.nbytes


def _exact(bound: BoundBytes) -> Any:
    """The memory of a binding as a buffer of its own: the layer looks for accesses beyond it."""
    if isinstance(bound, bytes):
        return bound
    memory, start, nbytes = bound
    buffer = memory.device.exact_memory(memory, start, nbytes)
    return _native(bound) if buffer is None else (buffer, 0, nbytes)
