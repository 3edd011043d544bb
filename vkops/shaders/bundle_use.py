"""The bundles from which this process takes compiled shaders."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import TypeVar

from vkops.errors import InvalidDescTypeError, ShaderCompileError, show
from vkops.shaders import bundle_file
from vkops.shaders.bundle_file import Entry

T = TypeVar("T")

VARIABLE = "VKOPS_BUNDLE"
"""Environment variable: the paths of bundles, separated as those of PATH."""

_modules: dict[str, bytes] = {}
"""The modules of the bundles that are used, by the keys of their sources."""

_entries: dict[str, Entry] = {}
"""The entries of these bundles, by the hashes of their modules."""

_paths: list[str] = []


def use_bundle(path: str | os.PathLike[str]) -> None:
    """Take compiled shaders from a bundle, for which no compiler is needed.

    ``vkops shader bundle PROGRAM -o shaders.zip`` writes a bundle. Several can be used; of a shader
    that is in more than one, the last one used counts. VKOPS_BUNDLE names bundles without a call.
    Code from a bundle runs on the device: use those of people whose shaders you would run.

    >>> vkops.use_bundle("shaders.zip")  # doctest: +SKIP

    Raises:
        InvalidDescError: the file cannot be read, is no bundle or damaged (BUN-01), is too large
            (BUN-02), or has another format (BUN-03). Nothing of it is used.
    """
    if not isinstance(path, (str, os.PathLike)):
        message = f"got {show(path)}, must be the path of a file"
        raise InvalidDescTypeError("use_bundle", "path", message, "BUN-01")
    _use(os.fsdecode(path), "use_bundle", "path")


def _use(path: str, *argument: str) -> None:
    shaders = bundle_file.read(path, *argument)
    _modules.update({entry.key: spirv for entry, spirv in shaders.items()})
    _entries.update({entry.spirv: entry for entry in shaders})
    _paths.append(path)


@functools.cache
def _use_from_environment() -> None:
    for path in filter(None, os.environ.get(VARIABLE, "").split(os.pathsep)):
        _use(path, VARIABLE, "")


def find(key: str) -> bytes | None:
    """Return the module of a source, by its key."""
    _use_from_environment()
    return _modules.get(key)


def entry_of(spirv: str) -> Entry | None:
    """Return the entry of a module, by its hash."""
    _use_from_environment()
    return _entries.get(spirv)


def needed(find_program: Callable[[], T], name: str) -> T:
    """Return the program that compiles a shader which no bundle contains.

    Raises:
        ShaderCompileError: it is missing; if bundles are used, the message names the shader, and
            the command that writes a bundle.
    """
    try:
        return find_program()
    except ShaderCompileError as error:
        if not _paths:
            raise
        from vkops import __version__

        versions = sorted({entry.vkops for entry in _entries.values()} - {__version__})
        of_others = f" of vkops {', '.join(versions)} (this is {__version__})" if versions else ""
        message = (
            f"{name}: is not in the bundle {' or '.join(map(repr, _paths))}{of_others}, and "
            f"{error.message}; with a compiler, `vkops shader bundle PROGRAM -o shaders.zip` "
            "writes those that a run uses on its device"
        )
        raise ShaderCompileError(message, file=name) from error
