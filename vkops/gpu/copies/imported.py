"""Arrays of the host that Vulkan's copies read where they are, without an upload."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from vkops.extent import Extent
from vkops.gpu.adapters.kompute import Kompute

MIN_IMPORTED_BYTES = 32 << 10
"""Bytes of the smallest arrays that are imported: smaller ones are uploaded faster."""


@dataclass(frozen=True, slots=True, eq=False)
class ImportedHeap:
    """The memory of an array, which copies read through ``buffer``; shaders cannot read it."""

    buffer: Any


def import_array(kompute: Kompute, array: npt.NDArray[Any]) -> Extent | None:
    """Return the memory of an array for ``EncodedCopies.bind``; None if it must be uploaded.

    The array must not change until the copies have ended.
    """
    if array.nbytes < MIN_IMPORTED_BYTES or not array.flags.c_contiguous:
        return None
    buffer: Any = kompute.import_array(array)
    return None if buffer is None else Extent(ImportedHeap(buffer), 0, array.nbytes)
