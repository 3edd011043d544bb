"""Elements of buffers, which shaders are bound to."""

from __future__ import annotations

from math import prod
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from vkops.gpu.run.buffer import Buffer, HostBuffer
from vkops.plan.view import View

_SOME_ADDRESS = 1 << 40
_MAX_WORK = 1 << 20


class Elements(NamedTuple):
    """Elements of a buffer, as a view; ``dtype`` is None if they are bytes."""

    buffer: Buffer | HostBuffer
    view: View
    itemsize: int
    dtype: np.dtype[Any] | None

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return prod(self.view.sizes) * self.itemsize

    def overlaps(self, other: Elements) -> bool:
        """Whether both share bytes, or it would take too long to know."""
        if self.buffer is not other.buffer:
            return False
        shares_memory: Any = np.shares_memory  # NumPy's types of it differ between versions
        try:
            return bool(shares_memory(self._addresses(), other._addresses(), max_work=_MAX_WORK))
        except np.exceptions.TooHardError:
            return True

    def _addresses(self) -> Any:
        """An array at addresses as far from one another, which are not read."""
        (sizes, strides, offset), size = self.view, self.itemsize
        interface = {
            "data": (_SOME_ADDRESS + offset * size, True), "shape": sizes, "typestr": f"|V{size}",
            "strides": tuple([stride * size for stride in strides]), "version": 3,
        }  # fmt: skip
        return SimpleNamespace(__array_interface__=interface)
