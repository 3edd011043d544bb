"""Kompute, and vkops' own native module, which ``scripts/kp_wheel.py`` builds into its wheel."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from vkops.errors import DeviceError, import_late
from vkops.system.vulkan import LOADER, how_to_install

if TYPE_CHECKING:
    import numpy.typing as npt

NEEDS_GIL = (
    "Kompute needs Python's global interpreter lock (GIL), which this process runs without: use a "
    "build of Python that has it"
)
"""Free-threaded builds would switch the lock on when they import Kompute, for the whole process."""

INTERFACE = 4
"""The value of ``vkops_native.interface`` that is needed: that of vkops/native/module.cpp."""


class Commands(Protocol):
    """Operations of Kompute that the device runs, once or many times."""

    def record(self, operations: Sequence[Any], timed: bool = False) -> None:
        """Replace the operations; ``timed`` has the device measure how long they take."""

    def run(self) -> None:
        """Run the operations and wait for them."""

    def start(self) -> None:
        """Begin to run the operations."""

    def wait(self) -> None:
        """Wait for what was started, if anything was."""

    def clear(self) -> None:
        """Drop the operations and what they keep alive; nothing of them is running."""

    @property
    def nanoseconds(self) -> float | None:
        """The time that the device measured in the last run, if it did."""


class ImageLimits(NamedTuple):
    """The bytes that the rows of linear images are multiples of, and the texels along a side."""

    alignment: int
    side: int


class Kompute:
    """A Vulkan device, opened with the optional features and extensions that vkops uses.

    Raises:
        DeviceError: Kompute cannot be loaded, or the driver cannot open the device.
    """

    def __init__(self, adapter: Any) -> None:
        """Open an adapter of the native module."""
        self.native: Any = load_native()
        self.kp: Any = load_kompute()
        try:
            self.device: Any = self.native.Device(adapter)
            images = ImageLimits(self.device.pitch_alignment, self.device.max_image_side)
        except RuntimeError as error:
            raise DeviceError(f"Kompute cannot open {adapter.name!r}: {error}") from error
        self.manager: Any = self.device.manager
        self.has_int64: bool = self.device.shader_int64
        self.images: ImageLimits | None = images if images.alignment else None

    def import_array(self, array: npt.NDArray[Any]) -> Any:
        """Return what copies can read an array's own memory from; None if the driver refuses."""
        if not self.device.import_alignment:
            return None
        try:
            return self.native.ImportedArray(self.device, array)
        except RuntimeError:
            return None

    def buffer(self, tensor: Any) -> Any:
        """Return a buffer for copies, over a tensor's memory; None if the driver refuses."""
        try:
            return self.native.TensorBuffer(self.device, tensor)
        except RuntimeError:
            return None

    def image(self, tensor: Any, offset: int, pitch: int, height: int, unit: int) -> Any:
        """Lay a linear image over a part of a tensor's memory; None if the driver refuses."""
        if self.images is None or pitch > self.images.side * unit:
            return None
        try:
            return self.native.LinearImage(self.device, tensor, offset, pitch, height, unit)
        except RuntimeError:
            return None

    def commands(self) -> Commands:
        """Make commands without operations."""
        commands: Commands = self.native.Commands(self.device)
        return commands

    def run(self, operation: Any) -> None:
        """Run one operation and wait for it."""
        commands = self.commands()
        commands.record([operation])
        commands.run()


@lru_cache(maxsize=1)
def load_native() -> Any:
    """Return the module ``vkops_native``.

    Raises:
        DeviceError: it cannot be imported; the message says what is missing.
    """
    if not _has_gil():
        raise DeviceError(NEEDS_GIL)
    try:
        vkops_native: Any = import_late("vkops_native")
    except ImportError as error:
        if LOADER in str(error):
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


def load_kompute() -> Any:
    """Return Kompute's own module, which imports NumPy.

    Raises:
        DeviceError: it cannot be imported; the message says what is missing.
    """
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


def _has_gil() -> bool:
    """Whether this process runs with Python's global interpreter lock; always, before 3.13."""
    enabled: bool = getattr(sys, "_is_gil_enabled", lambda: True)()
    return enabled
