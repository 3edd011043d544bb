"""Mesa's cache of compiled shaders: machine code in a folder that Mesa does not check."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import psutil

from vkops.system.files import account_home, private_folder

_VARIABLES = ("MESA_SHADER_CACHE_DIR", "MESA_GLSL_CACHE_DIR", "XDG_CACHE_HOME")

WIDTH = "LP_NATIVE_VECTOR_WIDTH"
"""The variable that sets the bits of lavapipe's vectors, and with them the size of subgroups."""

_NAMES = ("mesa_shader_cache", "mesa_shader_cache_db", "mesa_shader_cache_sf")
"""Its folders; which one depends on Mesa's settings."""

MIN_FREE_BYTES = 16 << 20
"""Free bytes of the disk, enough for its index (1.3 MB) and for concurrent writes."""


def disable_if_unsafe() -> None:
    """Turn Mesa's cache off in this process if it could do harm.

    Mesa 22.3 maps the index into memory, a file with holes: if the disk has no room for a page, the
    process ends (SIGBUS). Lavapipe runs the code that it finds in the cache: a folder that belongs
    to another user, or that others may write to, is not used. Mesa would wait for ever for a named
    pipe in the place of an entry. Mesa 22.3 and 25.0 would run code for vectors of another width,
    with subgroups of another size.
    """
    folder = _folder()
    with suppress(OSError):
        existing = next(path for path in (folder, *folder.parents) if path.exists())
        full = psutil.disk_usage(str(existing)).free < MIN_FREE_BYTES
        if (
            full
            or WIDTH in os.environ
            or not all(_is_safe_or_absent(folder / name) for name in _NAMES)
        ):
            os.environ.setdefault("MESA_SHADER_CACHE_DISABLE", "true")


def _folder() -> Path:
    """The folder that contains Mesa's caches.

    Unlike most programs, Mesa reads the home directory from the list of users, whatever ``HOME``
    says, and takes a relative XDG_CACHE_HOME as it is.
    """
    chosen = next(filter(None, map(os.environ.get, _VARIABLES)), None)
    return Path(chosen or account_home() / ".cache").absolute()


def _is_safe_or_absent(folder: Path) -> bool:
    path = os.path.realpath(folder)
    try:
        with private_folder(path):
            names = (os.path.join(at, name) for at, _, files in os.walk(path) for name in files)
            return all(map(os.path.isfile, names))
    except FileNotFoundError:
        return True
    except OSError:
        return False
