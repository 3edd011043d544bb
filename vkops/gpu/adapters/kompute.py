"""Kompute, and vkops' own native module, which ``scripts/kp_wheel.py`` builds into its wheel."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from vkops.errors import DeviceError, import_late
from vkops.system.vulkan import LOADER, how_to_install

if TYPE_CHECKING:
    import numpy.typing as npt

NEEDS_GIL = (
    "Kompute needs Python's global interpreter lock (GIL), which this process runs without: use a "
    "build of Python that has it"
)
"""Free-threaded builds would switch the lock on when they import Kompute, for the whole process."""

NATIVE_ERRORS = (RuntimeError, MemoryError)
"""The errors of the native module: MemoryError where Vulkan has no memory."""

INTERFACE = 7
"""The value of ``vkops_native.interface`` that is needed: that of vkops/native/module.cpp."""


Bindings = Sequence[tuple[int, bool]]
"""Of a descriptor set: the number of each binding, and whether it is that of a uniform block."""


class ImageLimits(NamedTuple):
    """The bytes that the rows of linear images are multiples of, and the texels along a side."""

    alignment: int
    side: int


class Kompute:
    """A Vulkan device, opened with the optional features and extensions that vkops uses.

    Raises:
        DeviceError: Kompute cannot be loaded, or the driver cannot open the device.
    """

    def __init__(self, adapter: Any, *, robust: bool) -> None:
        """Open an adapter of the native module.

        ``robust`` has the device discard accesses to buffers out of bounds, if it can.
        """
        self.native: Any = load_native()
        self.kp: Any = load_kompute()
        try:
            self.device: Any = self.native.Device(adapter, robust)
            images = ImageLimits(self.device.pitch_alignment, self.device.max_image_side)
        except NATIVE_ERRORS as error:
            raise DeviceError(f"Kompute cannot open {adapter.name!r}: {error}") from error
        self.manager: Any = self.device.manager
        self.features: frozenset[str] = frozenset(self.device.features)
        self.images: ImageLimits | None = images if images.alignment else None

    def import_array(self, array: npt.NDArray[Any]) -> Any:
        """Return what copies can read an array's own memory from; None if the driver refuses."""
        if not self.device.import_alignment:
            return None
        try:
            return self.native.ImportedArray(self.device, array)
        except NATIVE_ERRORS:
            return None

    def buffer(self, tensor: Any, start: int = 0, nbytes: int = 0) -> Any:
        """Return a buffer over a tensor's memory, or a part of it; None if the driver refuses."""
        try:
            return self.native.TensorBuffer(self.device, tensor, start, nbytes)
        except NATIVE_ERRORS:
            return None

    def image(self, tensor: Any, offset: int, pitch: int, height: int, unit: int) -> Any:
        """Lay a linear image over a part of a tensor's memory; None if the driver refuses."""
        if self.images is None or pitch > self.images.side * unit:
            return None
        try:
            return self.native.LinearImage(self.device, tensor, offset, pitch, height, unit)
        except NATIVE_ERRORS:
            return None

    def pipeline(
        self, spirv: bytes, bindings: Sequence[Bindings], entry: str = "main", push_nbytes: int = 0
    ) -> Any:
        """Make a pipeline of a shader; ``bindings`` are those of each descriptor set.

        Raises:
            DeviceError: the driver cannot compile the shader.
        """
        try:
            return self.native.Pipeline(self.device, spirv, entry, bindings, push_nbytes)
        except NATIVE_ERRORS as error:
            raise DeviceError(f"the driver does not compile the shader: {error}") from error

    def queue(self, limit: int) -> Any:
        """Return the device's queue, to which ``limit`` submissions can be pending at a time."""
        return self.native.Queue(self.device, limit)


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
