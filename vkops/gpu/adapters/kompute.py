"""Kompute: its own Python module, and vkops' native operations where they are installed.

The wheel that ``scripts/kp_wheel.py`` builds has both. Anyone else's Kompute lacks the second
module, ``vkops_native``; then all data is moved by shaders, and each dispatch is waited for.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from vkops.errors import DeviceError, import_late
from vkops.system.vulkan import LOADER, how_to_install

if TYPE_CHECKING:
    import numpy.typing as npt

NATIVE = "VKOPS_NATIVE"
"""Environment variable: 0 runs without the native operations."""

NEEDS_GIL = (
    "Kompute needs Python's global interpreter lock (GIL), which this process runs without: use a "
    "build of Python that has it"
)
"""Free-threaded builds would switch the lock on when they import Kompute, for the whole process."""

INTERFACE = 3
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
    """A Vulkan device as Kompute opens it, without optional features.

    Raises:
        RuntimeError: Kompute cannot open it.
    """

    native: Any = None
    """The module ``vkops_native``, if the device was opened by it."""

    images: ImageLimits | None = None
    """The limits of linear images over tensors, if the device has such images."""

    has_timestamps: bool = False
    """Whether commands can measure how long they take."""

    has_int64: bool = False
    """Whether shaders can use integers of 64 bits (shaderInt64)."""

    def __init__(self, index: int, extensions: list[str]) -> None:
        self.kp: Any = load_kompute()
        self.manager: Any = self.kp.Manager(index, [], extensions)

    def import_array(self, array: npt.NDArray[Any]) -> Any:
        """Return what copies can read an array's own memory from; None if the driver refuses."""
        return None

    def buffer(self, tensor: Any) -> Any:
        """Return a buffer for copies, over a tensor's memory; None if the driver refuses."""
        return None

    def image(self, tensor: Any, offset: int, pitch: int, height: int, unit: int) -> Any:
        """Lay a linear image over a part of a tensor's memory; None if the driver refuses."""
        return None

    def commands(self) -> Commands:
        """Make commands without operations; Kompute's own take exactly one."""
        return _Sequence(self.manager.sequence)

    def run(self, operation: Any) -> None:
        """Run one operation and wait for it."""
        commands = self.commands()
        commands.record([operation])
        commands.run()


class NativeKompute(Kompute):
    """A Vulkan device that the native operations open, with the features that they use."""

    def __init__(self, native: Any, index: int, extensions: list[str]) -> None:
        self.kp: Any = load_kompute()
        self.native: Any = native
        self.device: Any = native.Device(index, extensions)
        self.manager: Any = self.device.manager
        self.has_timestamps: bool = self.device.timestamp_period > 0
        self.has_int64: bool = self.device.shader_int64
        if self.device.pitch_alignment:
            self.images: ImageLimits | None = ImageLimits(
                self.device.pitch_alignment, self.device.max_image_side
            )

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
        """Make commands without operations; they take any number."""
        commands: Commands = self.native.Commands(self.device)
        return commands


class _Sequence:
    """Commands of one operation by Kompute's sequences, which can be recorded only once."""

    nanoseconds = None

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self._operation: Any = None
        self._recorded: Any = None
        self._started: Any = None

    def record(self, operations: Sequence[Any], timed: bool = False) -> None:
        (self._operation,) = operations
        self._recorded = None

    def run(self) -> None:
        if self._recorded is None:
            self._recorded = self._make()
            self._recorded.record(self._operation)
        self._recorded.eval()

    def start(self) -> None:
        # A recorded sequence cannot be started without waiting: Kompute does both.
        self._started = self._make()
        self._started.eval_async(self._operation)

    def wait(self) -> None:
        if self._started is not None and self._started.is_running():
            self._started.eval_await()
        self._started = None

    def clear(self) -> None:
        self._recorded = self._operation = None


def open_kompute(index: int, extensions: list[str]) -> Kompute:
    """Open an adapter, by the native operations if they are installed.

    Raises:
        RuntimeError: Kompute cannot open it.
    """
    native = load_native()
    return NativeKompute(native, index, extensions) if native else Kompute(index, extensions)


@lru_cache(maxsize=1)
def load_kompute() -> Any:
    """Return Kompute's Python package.

    Raises:
        DeviceError: it cannot be imported; the message says what it needs.
    """
    if not _has_gil():
        raise DeviceError(NEEDS_GIL)
    try:
        return import_late("kp")
    except ImportError as error:
        raise DeviceError(
            f"Kompute (the kp package) cannot be loaded: {error}. scripts/wheels builds its wheel "
            f"on Linux; at run time it needs {LOADER} ({how_to_install('libvulkan1')})"
        ) from error


def load_native() -> Any:
    """Return the module of native operations, or None if ``native_state`` says why not."""
    return None if native_state() != "active" else importlib.import_module("vkops_native")


def native_state() -> str:
    """Say whether the native operations are used: ``"active"``, or the reason why not."""
    if os.environ.get(NATIVE) == "0":
        return f"switched off by {NATIVE}=0"
    if not _has_gil():
        return NEEDS_GIL
    try:
        import vkops_native
    except ModuleNotFoundError as error:
        return f"not installed ({error})"
    except ImportError as error:
        return f"cannot be loaded ({error})"
    if vkops_native.interface != INTERFACE:
        return "built for another version of vkops; scripts/wheels builds them again"
    return "active"


def _has_gil() -> bool:
    """Whether this process runs with Python's global interpreter lock; always, before 3.13."""
    enabled: bool = getattr(sys, "_is_gil_enabled", lambda: True)()
    return enabled
