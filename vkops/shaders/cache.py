"""A cache of SPIR-V on disk.

The driver runs its entries, and a damaged module can crash it: all of an entry is checked.
"""

from __future__ import annotations

import struct

from vkops.shaders.sources import MAX_SPIRV_BYTES
from vkops.system.disk_cache import DiskCache

_MAGIC = struct.pack("=I", 0x07230203)
_HEADER_BYTES = 20
_CACHE = DiskCache("spirv", "shader cache", MAX_SPIRV_BYTES)


def is_spirv(data: bytes) -> bool:
    """Whether ``data`` starts as a SPIR-V module and consists of whole words."""
    return len(data) >= _HEADER_BYTES and len(data) % 4 == 0 and data.startswith(_MAGIC)


def load(key: str) -> bytes | None:
    """Return the SPIR-V stored under ``key``, or ``None`` if it is missing or damaged."""
    spirv = _CACHE.load(key)
    return spirv if spirv is not None and is_spirv(spirv) else None


def store(key: str, spirv: bytes) -> None:
    """Store ``spirv`` under ``key`` if possible; several processes may do so at once."""
    _CACHE.store(key, spirv)
