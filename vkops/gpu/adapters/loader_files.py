"""The manifests of drivers that the Vulkan loader reads."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from vkops import lavapipe
from vkops.errors import DeviceError
from vkops.system import vulkan
from vkops.system.threads import new_lock

_DRIVERS = ("VK_DRIVER_FILES", "VK_ICD_FILENAMES")
_environment = new_lock()
ADDED = "VK_ADD_DRIVER_FILES"
"""Environment variable of the Vulkan loader, which ignores it if the user has named the drivers."""


def chosen_by() -> str | None:
    """Return the variable that names the drivers instead of their usual places, if one is set."""
    return next(filter(os.environ.get, _DRIVERS), None)


def manifests() -> list[Path]:
    """Return the drivers' manifests that are read: in the loader's order, then the package's."""
    if variable := chosen_by():
        return _expand(os.environ[variable])
    return [*_expand(os.environ.get(ADDED, "")), *installed(), *packaged()]


def installed() -> list[Path]:
    """Return the drivers' manifests in the places where they are installed."""
    return _listed(vulkan.places())


def packaged() -> list[Path]:
    """Return the manifest in the package vkops_lavapipe, if it is installed."""
    return [Path(lavapipe.manifest())] if lavapipe.package() else []


def variables(*names: str) -> tuple[str | None, ...]:
    """Return variables of the environment as they are outside of ``environment``."""
    with _environment:
        return tuple(map(os.environ.get, names))


@contextmanager
def environment(variables: Mapping[str, str], added: Sequence[Path] = ()) -> Iterator[None]:
    """Set variables of the environment, and restore them afterwards; one thread at a time.

    The loader finds the drivers of the manifests that are ``added``, too.
    """
    with _environment:
        if added:
            paths = filter(None, [os.environ.get(ADDED), *map(str, added)])
            variables = {**variables, ADDED: os.pathsep.join(paths)}
        before = {name: os.environ.get(name) for name in variables}
        os.environ.update(variables)
        try:
            yield
        finally:
            for name, value in before.items():
                os.environ.pop(name, None)
                if value is not None:
                    os.environ[name] = value


def _expand(paths: str) -> list[Path]:
    """The files of a search path, and the manifests in its folders."""
    return _listed(map(Path, filter(None, paths.split(os.pathsep))))


def _listed(places: Iterable[Path]) -> list[Path]:
    """The manifests among some files, and those in folders."""
    paths: list[Path] = []
    for place in places:
        if os.path.isdir(place):  # False also for names that are too long
            paths += sorted(place.glob("*.json"))
        elif place.suffix == ".json":
            paths.append(place)
    for path in paths:  # the loader would wait for ever for a named pipe
        if os.path.exists(path) and not os.path.isfile(path):
            raise DeviceError(f"the driver's manifest {str(path)!r} is not a regular file")
    return paths
