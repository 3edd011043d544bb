"""A cache of SPIR-V on disk; one that cannot be used is treated as empty.

The driver runs its entries: the folder must be one that only this user can change.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import logging
import os
import struct
from pathlib import Path

from vkops.shaders.sources import MAX_SPIRV_BYTES
from vkops.system.files import private_folder

_MAGIC = struct.pack("=I", 0x07230203)
_HEADER_BYTES = 20
_CHECKSUM_BYTES = hashlib.sha256().digest_size


def is_spirv(data: bytes) -> bool:
    """Whether ``data`` starts as a SPIR-V module and consists of whole words."""
    return len(data) >= _HEADER_BYTES and len(data) % 4 == 0 and data.startswith(_MAGIC)


def load(key: str) -> bytes | None:
    """Return the SPIR-V stored under ``key``, or ``None`` if it is missing or damaged.

    A folder that exists and cannot be trusted is reported once, by the logger ``vkops``.
    """
    path = _folder()
    if path is None:
        return None
    try:
        with private_folder(path) as folder:
            try:
                entry = folder.read(key, _CHECKSUM_BYTES + MAX_SPIRV_BYTES)
            except OSError:  # missing, or of another owner: ``store`` will replace it
                return None
    except FileNotFoundError:
        return None
    except OSError as error:
        _warn_once(f"the shader cache {str(path)!r} is not used: {error.strerror}")
        return None
    # A damaged module can crash the driver, and so the process: check all of it.
    checksum, spirv = entry[:_CHECKSUM_BYTES], entry[_CHECKSUM_BYTES:]
    return spirv if is_spirv(spirv) and _checksum(key, spirv) == checksum else None


def store(key: str, spirv: bytes) -> None:
    """Store ``spirv`` under ``key`` if possible; several processes may do so at once."""
    path = _folder()
    if path is None:
        return
    with contextlib.suppress(OSError), private_folder(path, create=True) as folder:
        folder.write(key, _checksum(key, spirv) + spirv)


def _checksum(key: str, spirv: bytes) -> bytes:
    """Hash an entry with its key, so that an entry with another name is not accepted."""
    return hashlib.sha256(key.encode() + b"\n" + spirv).digest()


@functools.lru_cache(maxsize=1)
def _warn_once(message: str) -> None:
    logging.getLogger("vkops").warning(message)


def _folder() -> Path | None:
    if chosen := os.environ.get("VKOPS_CACHE_DIR"):
        return Path(chosen, "spirv")
    # Not at the top: building the wheel compiles with nothing but the standard library.
    import platformdirs

    folder = platformdirs.user_cache_path("vkops") / "spirv"
    return folder if folder.is_absolute() else None  # "~" stays as it is for users without a home
