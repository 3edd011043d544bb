"""Arrays of the host that Vulkan's copies read where they are, without an upload."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from vkops.extent import Extent

MIN_IMPORTED_BYTES = 32 << 10
"""Bytes of the smallest arrays that are imported: smaller ones are uploaded faster."""


@dataclass(frozen=True, slots=True, eq=False)
class ImportedMemory:
    """The memory of an array, which copies read; ``native`` is that of the native module."""

    native: Any


def import_array(device: Any, array: npt.NDArray[Any]) -> Extent | None:
    """Return an array's memory for ``EncodedCopies.bind``; None if it must be uploaded.

    The array must not change until the copies have ended.
    """
    if array.nbytes < MIN_IMPORTED_BYTES or not array.flags.c_contiguous:
        return None
    native: Any = device.import_array(array)
    return None if native is None else Extent(ImportedMemory(native), 0, array.nbytes)
