"""Mesa's CPU driver and shader compilers from ``vkops_lavapipe``: no root, no system packages."""

from __future__ import annotations

from functools import lru_cache
from types import ModuleType

from vkops.errors import MissingPackageError, import_late
from vkops.system import vulkan

PACKAGE = "vkops_lavapipe"


def manifest() -> str:
    """Return the path of lavapipe's manifest, for other programs: VK_DRIVER_FILES takes it.

    Raises:
        MissingPackageError: vkops_lavapipe is not installed.

    >>> os.environ["VK_DRIVER_FILES"] = vkops.lavapipe.manifest()  # doctest: +SKIP
    """
    found = package()
    if found is None:
        message = f"{PACKAGE} is not installed: pip install 'vkops[lavapipe]'"
        raise MissingPackageError(message, name=PACKAGE)
    return str(found.manifest())


@lru_cache(maxsize=1)
def package() -> ModuleType | None:
    """Return the package vkops_lavapipe; None if it is not installed."""
    try:
        return import_late(PACKAGE)
    except ModuleNotFoundError:
        return None


def how_to_install(debian: str) -> str:
    """Say how to install a package of Debian, or vkops_lavapipe instead if it has the same."""
    with_pip = "" if debian == "renderdoccmd" else "pip install 'vkops[lavapipe]', or "
    return with_pip + vulkan.how_to_install(debian)


def about() -> ModuleType:
    """Return the versions of the package, which is installed."""
    return import_late(f"{PACKAGE}.__about__")
