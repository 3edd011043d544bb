"""The files that the Vulkan loader reads: where they are, and whether it would wait for one."""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from vkops.errors import DeviceError
from vkops.system import vulkan
from vkops.system.files import read_regular

_DRIVERS = ("VK_DRIVER_FILES", "VK_ICD_FILENAMES")
_LISTS = (
    *_DRIVERS,
    "VK_ADD_DRIVER_FILES",
    "VK_LAYER_PATH",
    "VK_ADD_LAYER_PATH",
    "VK_IMPLICIT_LAYER_PATH",
    "VK_ADD_IMPLICIT_LAYER_PATH",
)
_KINDS = ("icd.d", "explicit_layer.d", "implicit_layer.d", "loader_settings.d")
_MAX_MANIFEST_BYTES = 1 << 20


def chosen_by() -> str | None:
    """Return the variable that names the drivers instead of their usual places, if one is set."""
    return next(filter(os.environ.get, _DRIVERS), None)


def manifests() -> list[Path]:
    """Return the drivers' manifests that the loader reads, in its order (its documented one)."""
    if variable := chosen_by():
        return _expand(os.environ[variable])
    found = _expand(os.environ.get("VK_ADD_DRIVER_FILES", ""))
    return found + _listed(vulkan.places("icd.d"))


def read_manifest(path: Path) -> bytes:
    """Read a manifest.

    Raises:
        OSError: it cannot be read, or is no regular file of a reasonable size.
    """
    return read_regular(path, _MAX_MANIFEST_BYTES)


def library_of(manifest: Path, library: str) -> str:
    """Return the library that a manifest names; paths are relative to the manifest."""
    return str((manifest.parent / library).resolve()) if os.path.dirname(library) else library


def check() -> None:
    """Check that no file that the loader will open makes it wait, or crash.

    Raises:
        DeviceError: one does.
    """
    for origin, path in _opened():
        check_waits(origin, path)
        if path.suffix == ".json":
            _check_manifest(origin, path)


def check_waits(origin: str, path: Path) -> None:
    """Check that a file is not a pipe or a device: the loader would wait for what a pipe gets.

    Raises:
        DeviceError: it is; ``origin`` is where it is named.
    """
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):  # the loader skips it
        return
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        raise DeviceError(
            f"{origin}: {path} is a pipe or a device, must be a regular file: "
            "the Vulkan loader would wait for it"
        )


def _check_manifest(origin: str, path: Path) -> None:
    """Check that a manifest is short, and a JSON object unless it is no JSON at all.

    The loader reads manifests of any size, and parses lists in lists without a limit. That of
    Debian 12 crashes if the whole is a list.
    """
    try:
        parsed = json.loads(read_manifest(path))
        wrong = "" if isinstance(parsed, dict) else "is not a JSON object"
    except RecursionError:
        wrong = "has too many lists in lists"
    except OSError as error:
        wrong = f"is {error.strerror}" if error.errno == errno.EFBIG else ""
    except ValueError:  # the loader says so, and goes on
        wrong = ""
    if wrong:
        raise DeviceError(f"{origin}: {path} {wrong}: the Vulkan loader could crash or wait")


def _opened() -> Iterator[tuple[str, Path]]:
    """Each file that is opened while an instance is made, and where it is named."""
    lists = [(variable, _expand(os.environ.get(variable, ""))) for variable in _LISTS]
    lists += [(str(place), _listed([place])) for kind in _KINDS for place in vulkan.places(kind)]
    for origin, paths in lists:
        for path in paths:
            yield origin, path
            if library := _library(path):
                yield str(path), Path(library)
    settings = Path(os.environ.get("VK_LAYER_SETTINGS_PATH") or ".")
    yield "VK_LAYER_SETTINGS_PATH", settings
    yield "layer settings", settings / "vk_layer_settings.txt"


def _library(manifest: Path) -> str:
    """The path of the library that a manifest names, or nothing if it has none."""
    try:
        parsed = json.loads(read_manifest(manifest))
        library = library_of(manifest, (parsed.get("ICD") or parsed["layer"])["library_path"])
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return ""
    return library if os.path.dirname(library) else ""


def _expand(paths: str) -> list[Path]:
    """The files of a search path, and the manifests in its folders."""
    return _listed(map(Path, filter(None, paths.split(os.pathsep))))


def _listed(places: Iterable[Path]) -> list[Path]:
    """The manifests among some files, and those in folders."""
    found: list[Path] = []
    for place in places:
        if place.is_dir():
            found += sorted(place.glob("*.json"))
        elif place.suffix == ".json":
            found.append(place)
    return found
