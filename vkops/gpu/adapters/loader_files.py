"""The manifests of drivers that the Vulkan loader reads."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from vkops.system import vulkan

_DRIVERS = ("VK_DRIVER_FILES", "VK_ICD_FILENAMES")


def chosen_by() -> str | None:
    """Return the variable that names the drivers instead of their usual places, if one is set."""
    return next(filter(os.environ.get, _DRIVERS), None)


def manifests() -> list[Path]:
    """Return the drivers' manifests that the loader reads, in its order (its documented one)."""
    if variable := chosen_by():
        return _expand(os.environ[variable])
    return _expand(os.environ.get("VK_ADD_DRIVER_FILES", "")) + installed()


def installed() -> list[Path]:
    """Return the drivers' manifests in the places where they are installed."""
    return _listed(vulkan.places())


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
