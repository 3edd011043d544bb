"""Mesa's CPU driver and shader compilers from ``vkops_lavapipe``: no root, no system packages."""

from __future__ import annotations

import sys
from contextlib import suppress
from functools import lru_cache
from types import ModuleType

from vkops.errors import DeviceError, MissingPackageError, import_late
from vkops.system import vulkan

PACKAGE = "vkops_lavapipe"


def manifest() -> str:
    """Return the path of lavapipe's manifest, for other programs: VK_DRIVER_FILES takes it.

    Raises:
        MissingPackageError: vkops_lavapipe is not installed.

    >>> os.environ["VK_DRIVER_FILES"] = vkops.lavapipe.manifest()  # doctest: +SKIP
    """
    module = package()
    if module is None:
        message = f"{PACKAGE} is not installed: pip install 'vkops[lavapipe]'"
        raise MissingPackageError(message, name=PACKAGE)
    return str(module.manifest())


@lru_cache(maxsize=1)
def package() -> ModuleType | None:
    """Return the package vkops_lavapipe; None if it is not installed."""
    try:
        return import_late(PACKAGE)
    except ModuleNotFoundError:
        return None


def programs() -> str:
    """Return the folder of the shader compilers that pip has installed; "" if there is none."""
    with suppress(DeviceError):  # Python exits, and nothing has looked for them before
        if module := package() or _compilers():
            return str(module.programs())
    return ""


@lru_cache(maxsize=1)
def _compilers() -> ModuleType | None:  # Windows' package
    with suppress(ModuleNotFoundError):
        return import_late("vkops_compilers")
    return None


def how_to_install(debian: str, system: str = sys.platform) -> str:
    """Say how to install a package of Debian, or an extra of vkops instead if it has the same."""
    extra = {"linux": "lavapipe", "win32": "windows"}.get(system)
    is_compiler = debian in ("glslang-tools", "spirv-tools")
    has_extra = is_compiler or (system == "linux" and debian != "renderdoccmd")
    with_pip = f"pip install 'vkops[{extra}]', or " if extra and has_extra else ""
    return with_pip + vulkan.how_to_install(debian, system)


def about() -> ModuleType:
    """Return the versions of the package, which is installed."""
    return import_late(f"{PACKAGE}.__about__")
