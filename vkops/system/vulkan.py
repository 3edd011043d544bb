"""Vulkan's loader, drivers and tools: their names, and where each operating system has them."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

LOADERS = {"win32": "vulkan-1.dll", "darwin": "libvulkan.dylib"}
LOADER = LOADERS.get(sys.platform, "libvulkan.so.1")
"""The library of the Vulkan loader."""

RENDERDOC = "renderdoc.dll" if sys.platform == "win32" else "librenderdoc.so"

_SDK = "the Vulkan SDK of vulkan.lunarg.com"
_PACKAGES = {
    # By Debian's name of a package; elsewhere, a package that is not here is in the Vulkan SDK.
    "linux": {
        "renderdoccmd": "Debian 12 and Ubuntu: apt install renderdoccmd; Debian 13 has none",
        "librenderdoc": (
            "Debian 12 and Ubuntu: apt install librenderdoc renderdoccmd; Debian 13 has none"
        ),
    },
    "win32": {
        "libvulkan1": "the driver of a GPU brings it",
        "mesa-vulkan-drivers": "install the driver of the GPU's manufacturer",
        "renderdoccmd": "RenderDoc of renderdoc.org, with its folder on PATH",
        "librenderdoc": "RenderDoc of renderdoc.org, with its folder on PATH",
    },
    "darwin": {
        "libvulkan1": "Homebrew: vulkan-loader; DYLD_FALLBACK_LIBRARY_PATH=$(brew --prefix)/lib",
        "mesa-vulkan-drivers": "Homebrew: molten-vk",
        "vulkan-validationlayers": "Homebrew: vulkan-validationlayers",
        "glslang-tools": "Homebrew: glslang",
        "spirv-tools": "Homebrew: spirv-tools",
        "renderdoccmd": "RenderDoc does not run on macOS",
        "librenderdoc": "RenderDoc does not run on macOS",
    },
}

_CONFIG_FOLDERS = {"darwin": ("/usr/local/etc", "/opt/homebrew/etc", "/etc")}
_DATA_FOLDERS = {"darwin": ("/opt/homebrew/share", "/usr/local/share", "/usr/share")}

# Keys of Windows' registry: one lists manifests, and those of adapters name the adapter's own.
_DRIVERS = r"SOFTWARE\Khronos\Vulkan\Drivers"
_CLASSES = r"SYSTEM\CurrentControlSet\Control\Class"
_ADAPTER_CLASSES = (
    "{4d36e968-e325-11ce-bfc1-08002be10318}",  # display adapters
    "{5c4c3332-344d-483c-8739-259e934c9cc8}",  # software components
)


def how_to_install(package: str, system: str = sys.platform) -> str:
    """Return a text about how to install the content of a Debian package.

    >>> how_to_install("libvulkan1", "linux"), how_to_install("glslang-tools", "win32")
    ('Debian and Ubuntu: apt install libvulkan1', 'the Vulkan SDK of vulkan.lunarg.com')
    """
    others = _SDK if system in ("win32", "darwin") else f"Debian and Ubuntu: apt install {package}"
    return _PACKAGES.get(system, {}).get(package, others)


def places(system: str = sys.platform) -> list[Path]:
    """Return the places in which the loader looks for manifests of drivers, in documented order.

    The places are folders; on Windows they are the manifests that the registry lists.
    """
    if system == "win32":
        return [Path(path) for path in dict.fromkeys(_registered())]
    return [Path(folder, "vulkan", "icd.d") for folder in dict.fromkeys(_folders(system))]


def _folders(system: str) -> Iterator[str]:
    home = Path("~").expanduser()  # still "~" if there is no home
    environment = os.environ
    yield environment.get("XDG_CONFIG_HOME") or str(home / ".config")
    yield from (environment.get("XDG_CONFIG_DIRS") or "/etc/xdg").split(os.pathsep)
    yield from _CONFIG_FOLDERS.get(system, ("/etc",))
    yield environment.get("XDG_DATA_HOME") or str(home / ".local/share")
    if named := environment.get("XDG_DATA_DIRS"):
        yield from named.split(os.pathsep)
    else:
        yield from _DATA_FOLDERS.get(system, ("/usr/local/share", "/usr/share"))


def _registered() -> Iterator[str]:
    registry: Any = importlib.import_module("winreg")
    for group in _ADAPTER_CLASSES:
        for adapter in _keys(registry, f"{_CLASSES}\\{group}"):
            with suppress(OSError), registry.OpenKey(registry.HKEY_LOCAL_MACHINE, adapter) as key:
                value, _ = registry.QueryValueEx(key, "VulkanDriverName")
                yield from [value] if isinstance(value, str) else value
    for root in (registry.HKEY_LOCAL_MACHINE, registry.HKEY_CURRENT_USER):
        with suppress(OSError), registry.OpenKey(root, _DRIVERS) as key:
            for number in range(registry.QueryInfoKey(key)[1]):
                path, is_disabled, _ = registry.EnumValue(key, number)
                if is_disabled == 0:
                    yield path


def _keys(registry: Any, path: str) -> Iterator[str]:
    with suppress(OSError), registry.OpenKey(registry.HKEY_LOCAL_MACHINE, path) as key:
        for number in range(registry.QueryInfoKey(key)[0]):
            yield f"{path}\\{registry.EnumKey(key, number)}"
