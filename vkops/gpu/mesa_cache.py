"""Mesa's cache of compiled shaders, which ends the process where its disk is full."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import platformdirs
import psutil

ROOM = 16 << 20
"""Bytes that are enough for its index (1.3 MB) and what others write meanwhile."""


def spare() -> None:
    """Have Mesa do without its cache, in this process, where the disk has no room for it.

    Mesa 22.3 maps the index into memory, a file with holes: the first page that finds no room ends
    the process (SIGBUS).
    """
    chosen = os.environ.get("MESA_SHADER_CACHE_DIR") or os.environ.get("MESA_GLSL_CACHE_DIR")
    folder = Path(chosen or platformdirs.user_cache_path()).absolute()
    with suppress(OSError):
        existing = next(path for path in (folder, *folder.parents) if path.exists())
        if psutil.disk_usage(str(existing)).free < ROOM:
            os.environ.setdefault("MESA_SHADER_CACHE_DISABLE", "true")
