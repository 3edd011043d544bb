"""SPIR-V on disk, by content. A cache that cannot be used is as good as an empty one."""

from __future__ import annotations

import contextlib
import hashlib
import os
import struct
import tempfile
from pathlib import Path

_MAGIC = struct.pack("=I", 0x07230203)
_HEADER_BYTES = 20
_CHECKSUM_BYTES = hashlib.sha256().digest_size


def is_spirv(data: bytes) -> bool:
    """Whether ``data`` starts like a SPIR-V module and is made of whole words."""
    return len(data) >= _HEADER_BYTES and len(data) % 4 == 0 and data.startswith(_MAGIC)


def load(key: str) -> bytes | None:
    """Return the SPIR-V stored under ``key``, or ``None`` if there is none or it is damaged."""
    folder = _folder()
    if folder is None:
        return None
    try:
        entry = (folder / key).read_bytes()
    except OSError:
        return None
    # A damaged module can take the driver, and so the process, down: check all of it.
    checksum, spirv = entry[:_CHECKSUM_BYTES], entry[_CHECKSUM_BYTES:]
    return spirv if is_spirv(spirv) and hashlib.sha256(spirv).digest() == checksum else None


def store(key: str, spirv: bytes) -> None:
    """Keep ``spirv`` under ``key`` if the cache folder allows it; several processes may."""
    folder = _folder()
    if folder is None:
        return
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(prefix=f"{key}.", dir=folder)
        try:
            with open(handle, "wb") as file:
                file.write(hashlib.sha256(spirv).digest() + spirv)
            os.replace(temporary, folder / key)
        except BaseException:
            os.unlink(temporary)
            raise


def _folder() -> Path | None:
    if chosen := os.environ.get("VKOPS_CACHE_DIR"):
        return Path(chosen, "spirv")
    # Not at the top: building the wheel compiles with nothing but the standard library.
    import platformdirs

    folder = platformdirs.user_cache_path("vkops") / "spirv"
    return folder if folder.is_absolute() else None  # "~" stays as it is for users without a home
