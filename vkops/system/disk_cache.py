"""Caches on disk, in folders that only this user can change; unusable entries count as missing.

Building the wheel uses this module, with nothing but the standard library.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import logging
import os
from pathlib import Path

from vkops.system.files import private_folder

FOLDER = "VKOPS_CACHE_DIR"
"""Environment variable: the folder of the caches, instead of the user's own one."""

_CHECKSUM_BYTES = hashlib.sha256().digest_size


class DiskCache:
    """A cache of entries of at most ``max_bytes`` bytes each, in the folder ``name`` of the caches.

    Warnings call it ``title``. Storing an entry removes the oldest ones beyond ``max_entries``.
    """

    def __init__(
        self, name: str, title: str, max_bytes: int, *, max_entries: int | None = None
    ) -> None:
        self._name = name
        self._title = title
        self._max_bytes = max_bytes
        self._max_entries = max_entries

    def load(self, key: str) -> bytes | None:
        """Return the bytes stored under ``key``, or None if they are missing or damaged.

        A folder that exists and cannot be trusted is logged once, by the logger ``vkops``.
        """
        path = self._folder()
        if path is None:
            return None
        try:
            with private_folder(path) as folder:
                try:
                    entry = folder.read(key, _CHECKSUM_BYTES + self._max_bytes)
                except OSError:  # missing, or of another owner: ``store`` will replace it
                    return None
        except FileNotFoundError:
            return None
        except OSError as error:
            _warn_once(f"the {self._title} {str(path)!r} is not used: {error.strerror}")
            return None
        checksum, data = entry[:_CHECKSUM_BYTES], entry[_CHECKSUM_BYTES:]
        return data if _checksum(key, data) == checksum else None

    def store(self, key: str, data: bytes) -> None:
        """Store ``data`` under ``key`` if possible; several processes may do so at once."""
        path = self._folder()
        if path is None:
            return
        with contextlib.suppress(OSError), private_folder(path, create=True) as folder:
            folder.write(key, _checksum(key, data) + data)
            if self._max_entries is not None:
                folder.remove_oldest(self._max_entries)

    def _folder(self) -> Path | None:
        if chosen := os.environ.get(FOLDER):
            return Path(chosen, self._name)
        try:
            import platformdirs  # not at the top: the build of the wheel does not have it
        except ImportError:  # Python is exiting
            return None

        folder = platformdirs.user_cache_path("vkops") / self._name
        # "~" stays as it is for users without a home.
        return folder if folder.is_absolute() else None


def _checksum(key: str, data: bytes) -> bytes:
    """Hash an entry with its key, so that an entry with another name is not accepted."""
    return hashlib.sha256(key.encode() + b"\n" + data).digest()


@functools.lru_cache(maxsize=8)
def _warn_once(message: str) -> None:
    logging.getLogger("vkops").warning(message)
