"""Compiled pipelines on disk (VkPipelineCache): later processes need not compile them again.

Drivers trust what they are given, so it is checked before: it must be what a process of this user
has stored, and its header must be that of the adapter and the driver.
"""

from __future__ import annotations

import struct
from contextlib import suppress

from vkops.gpu.adapters import forks
from vkops.gpu.adapters.kompute import Native
from vkops.system.disk_cache import DiskCache

MAX_BYTES = 64 << 20
"""The largest content that is stored: beyond it, the cache is emptied, and filled anew."""

MAX_FILES = 8
"""The most files: there is one for each adapter and version of its driver."""

_CACHE = DiskCache("pipelines", "pipeline cache", MAX_BYTES, max_entries=MAX_FILES)


class PipelineCache:
    """The stored pipelines of an adapter of the native module.

    Attributes:
        changed: whether pipelines were made since the cache was loaded.
    """

    def __init__(self, adapter: Native) -> None:
        self.changed: bool = False
        ids, uuid = (adapter.vendor_id, adapter.device_id), adapter.pipeline_cache_uuid
        self._name = "-".join(f"{n:08x}" for n in (*ids, adapter.driver_version)) + "-" + uuid.hex()
        # VkPipelineCacheHeaderVersionOne: its size and version come first.
        self._header: bytes = struct.pack("<4I", 32, 1, *ids) + uuid

    def load(self) -> bytes:
        """Return the content for the driver; it is empty if there is none that can be used."""
        with suppress(MemoryError):
            content = _CACHE.load(self._name)
            if content is not None and self._has_pipelines(content):
                return content
        return b""

    def save(self, device: Native) -> None:
        """Store the pipelines of a device of the native module with those that are stored already.

        Nothing is raised: nobody could handle it, where a device is dropped or Python exits.
        """
        with suppress(Exception, KeyboardInterrupt):
            if self.changed and not forks.state.forked:
                before = self.load()
                content = device.pipeline_cache(before)
                if content != before and self._has_pipelines(content):
                    _CACHE.store(self._name, content if len(content) <= MAX_BYTES else b"")

    def _has_pipelines(self, content: bytes) -> bool:
        """Whether content has the header of this driver, and more than that."""
        return content.startswith(self._header) and len(content) > len(self._header)
