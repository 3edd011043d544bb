"""Kompute, and vkops' own native module, which ``scripts/kp_wheel.py`` builds into its wheel."""

from __future__ import annotations

from ctypes import CDLL
from functools import lru_cache
from typing import Any, TypeAlias

from vkops.errors import DeviceError, import_late
from vkops.system.vulkan import LOADER, how_to_install

INTERFACE = 22
"""The value of ``vkops_native.interface`` that is needed: that of vkops/native/module.cpp."""


Native: TypeAlias = Any
"""The native module, or an object of it: type checkers do not know its classes."""


@lru_cache(maxsize=1)
def load_native() -> Native:
    """Return the module ``vkops_native``."""
    try:
        vkops_native: Any = import_late("vkops_native")
    except ImportError as error:
        if LOADER in str(error) or ("DLL load failed" in str(error) and not _has_loader()):
            raise DeviceError(
                f"no Vulkan loader: {LOADER} was not found; it is installed with a driver "
                f"({how_to_install('mesa-vulkan-drivers')})"
            ) from error
        raise _wrong_wheel(str(error)) from error
    if vkops_native.interface != INTERFACE:
        raise _wrong_wheel(
            f"vkops_native has interface {vkops_native.interface}, must be {INTERFACE}"
        )
    return vkops_native


def native_error() -> Any:
    """Return the class of what the driver reports to the native module.

    The module has classes below it for the loss of a device and for a lack of memory. All else that
    its functions raise is not about the driver: while they wait, signal handlers of Python run,
    whose errors can be of any class.
    """
    return load_native().Error


def _has_loader() -> bool:
    """Whether the loader can be loaded: Windows' errors do not name the library that is missing."""
    try:
        return bool(CDLL(LOADER))
    except OSError:
        return False


def version_text(value: int) -> str:
    """Return a version of Vulkan's in the form ``"a.b.c"``."""
    return f"{value >> 22 & 0x7F}.{value >> 12 & 0x3FF}.{value & 0xFFF}"


def loader() -> dict[str, Any]:
    """Return the Vulkan version of the loader, and its layers, each with its version."""
    native = load_native()
    layers = [f"{name} {version_text(version)}" for name, version in native.layers()]
    return {"version": version_text(native.version()), "layers": layers}


def load_kompute() -> Any:
    """Return Kompute's own module, which imports NumPy."""
    native = load_native()
    try:
        return native.load_kompute()
    except ImportError as error:
        raise _wrong_wheel(str(error)) from error


def _wrong_wheel(reason: str) -> DeviceError:
    return DeviceError(
        f"devices need the wheel of Kompute (kp) that scripts/wheels builds on Linux ({reason}): "
        "pip install --force-reinstall --find-links DIST kp, where DIST is the folder of the wheel"
    )


def native_state() -> str:
    """Return ``"active"``, or the reason why ``load_native`` fails."""
    try:
        load_native()
    except DeviceError as error:
        return str(error)
    return "active"
