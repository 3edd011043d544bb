"""RenderDoc captures of the commands of a device, without a display.

RenderDoc is a Vulkan layer. It sees only devices that are opened after it was loaded, and it does
not know which of several devices to capture. So a capture needs a process that has not opened a
device, and opens exactly one.

The native module labels commands with the names of their kernels (VK_EXT_debug_utils). The comments
of a capture list the operators, with the submissions of each.
"""

from __future__ import annotations

import errno
import os
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from ctypes import CDLL, CFUNCTYPE, POINTER, Structure, byref, c_char_p, c_int, c_uint32, c_void_p
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from xml.etree import ElementTree

from vkops.errors import DeviceError
from vkops.gpu.adapters import adapter
from vkops.gpu.adapters.forks import state
from vkops.gpu.run.open_device import open_vulkan_devices
from vkops.gpu.run.vulkan_device import VulkanDevice
from vkops.system.vulkan import RENDERDOC, how_to_install

DispatchHook = Callable[[str], AbstractContextManager[None]]
"""A function of an operator's name that returns the context in which its dispatch runs."""

_LAYER = adapter.RENDERDOC_LAYER
_TIMEOUT_S = 300.0
_API_VERSION = 10200  # the first with comments

# The functions of the API in order (renderdoc_app.h), and the types of those that are called.
_FUNCTIONS = """
    GetAPIVersion SetCaptureOptionU32 SetCaptureOptionF32 GetCaptureOptionU32 GetCaptureOptionF32
    SetFocusToggleKeys SetCaptureKeys GetOverlayBits MaskOverlayBits RemoveHooks UnloadCrashHandler
    SetCaptureFilePathTemplate GetCaptureFilePathTemplate GetNumCaptures GetCapture TriggerCapture
    IsTargetControlConnected LaunchReplayUI SetActiveWindow StartFrameCapture IsFrameCapturing
    EndFrameCapture TriggerMultiFrameCapture SetCaptureFileComments
"""
_ANY = (c_void_p, c_void_p)  # device and window: null means any
_TYPES = {
    "SetCaptureFilePathTemplate": CFUNCTYPE(None, c_char_p),
    "SetCaptureFileComments": CFUNCTYPE(None, c_char_p, c_char_p),
    "StartFrameCapture": CFUNCTYPE(None, *_ANY),
    "IsFrameCapturing": CFUNCTYPE(c_uint32),
    "EndFrameCapture": CFUNCTYPE(c_uint32, *_ANY),
}


class _Api(Structure):
    _fields_ = [(name, _TYPES.get(name, c_void_p)) for name in _FUNCTIONS.split()]


@contextmanager
def capturing(output: Path) -> Iterator[DispatchHook]:
    """Capture the dispatches of the one device that is opened in this block.

    The capture begins with the first dispatch in the context that the hook returns, and ends with
    the block. ``output``, a RenderDoc file, is written whole or not at all.
    """
    if output.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(output))
    seen = os.environ.get(_LAYER) == "1" and adapter.instances.cache_info().currsize
    if state.opened or seen:
        raise DeviceError(
            "capture: RenderDoc sees only devices opened after it was loaded, and Vulkan is in use "
            "already; capture once in a process, before it opens a device"
        )
    output.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=".vkops-capture-", dir=output.parent) as folder:
        os.environ.update({_LAYER: "1", "RENDERDOC_TEMP": folder})  # there is one capture
        api = _load()
        api.SetCaptureFilePathTemplate(os.fsencode(Path(folder, "vkops")))
        capture = _Capture(api)
        try:
            yield capture.hook
        except DeviceError as error:
            if "ErrorInitializationFailed" not in str(error):
                raise
            reason = "RenderDoc captures only devices with a queue for graphics"
            raise DeviceError(f"capture: {error}: {reason}") from error
        finally:
            capture.end()
        if not capture.operators:
            raise DeviceError("capture: nothing was dispatched")
        done = next(Path(folder).glob("*.rdc"), None)
        if done is None or not capture.comment(done):
            raise DeviceError(
                f"capture: RenderDoc could not write the file: is there room in {output.parent}?"
            )
        done.replace(output)


def _load() -> Any:
    try:
        library = CDLL(RENDERDOC)
    except OSError as error:
        raise DeviceError(
            f"capture: RenderDoc is not installed: {RENDERDOC} was not found "
            f"({how_to_install('librenderdoc')})"
        ) from error
    pointer = POINTER(_Api)()
    if not library.RENDERDOC_GetAPI(c_int(_API_VERSION), byref(pointer)):
        raise DeviceError("capture: this RenderDoc is too old: it has no API of version 1.2")
    return pointer.contents


class _Capture:
    """A capture; the first operator starts it."""

    def __init__(self, api: Any) -> None:
        self._api = api
        # Keeps the device alive until the capture ends.
        self._queue: VulkanDevice | None = None
        self.operators: list[tuple[str, int, int]] = []

    @contextmanager
    def hook(self, operator: str) -> Iterator[None]:
        queue = self._queue = self._queue or self._begin()
        queue.finish()
        start = time.monotonic_ns()
        yield
        queue.finish()
        self.operators.append((operator, start, time.monotonic_ns()))

    def _begin(self) -> VulkanDevice:
        queues = open_vulkan_devices()
        if len(queues) != 1:
            raise DeviceError(
                f"capture: exactly one device must be opened in the block, got {len(queues)}"
            )
        self._api.StartFrameCapture(None, None)
        if not self._api.IsFrameCapturing():
            raise DeviceError(
                "capture: RenderDoc does not see the device: is its Vulkan layer installed "
                f"(renderdoc_capture.json), and of the same version as {RENDERDOC}?"
            )
        return queues[0]

    def end(self) -> None:
        # DiscardFrameCapture of RenderDoc 1.24 crashes without a window.
        if self._api.IsFrameCapturing():
            self._api.EndFrameCapture(None, None)

    def comment(self, path: Path) -> bool:
        """List the operators in the comments, in order and with their submissions.

        Return whether the comments were written, which fails only if the file is incomplete.
        """
        before = path.stat().st_size
        submitted = []
        with suppress(DeviceError):  # renderdoccmd, which reads them, is missing
            submitted = list(enumerate(submissions(path), 1))
        lines = [f"vkops on {self._queue.info.name}"] if self._queue is not None else []
        for number, (operator, start, end) in enumerate(self.operators, 1):
            of_operator = [
                f"vkQueueSubmit {n}: {s}" for n, s in submitted if start <= s.time <= end
            ]
            lines.append(f"{number}. {operator}" + "".join(f"\n   {line}" for line in of_operator))
        self._api.SetCaptureFileComments(os.fsencode(path), "\n".join(lines).encode())
        return path.stat().st_size > before


# -- submissions, read with RenderDoc's own program ------------------------------------------------


@dataclass(frozen=True, slots=True)
class Submission:
    """A vkQueueSubmit: its time by the monotonic clock in ns, and its dispatches and copies."""

    time: int
    commands: tuple[str, ...]

    def __str__(self) -> str:
        return ", ".join(self.commands) or "no dispatch"


def submissions(path: Path) -> list[Submission]:
    """Read the submissions of a capture in order."""
    with TemporaryDirectory() as folder:
        xml = Path(folder, "capture.xml")
        command = ["renderdoccmd", "convert", "-f", str(path), "-c", "xml", "-o", str(xml)]
        try:
            subprocess.run(
                command,
                check=True,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=_TIMEOUT_S,
                env={**os.environ, "RENDERDOC_TEMP": folder},
            )
            chunks = ElementTree.parse(xml).iterfind("chunks/chunk")
        except FileNotFoundError as error:
            raise DeviceError(
                "renderdoccmd, which reads captures, is not on PATH "
                f"({how_to_install('renderdoccmd')})"
            ) from error
        except subprocess.CalledProcessError as error:
            reason = " ".join(error.stderr.split())
            raise DeviceError(f"{path}: renderdoccmd cannot read it: {reason}") from error
        except (OSError, subprocess.TimeoutExpired, ElementTree.ParseError) as error:
            raise DeviceError(f"{path}: renderdoccmd cannot read it: {error}") from error
    return list(_submissions(chunks))


def _submissions(chunks: Iterable[ElementTree.Element]) -> Iterator[Submission]:
    recorded: dict[str, list[str]] = {}
    for chunk in chunks:
        name = chunk.get("name")
        commands = recorded.get(_text(chunk, "ResourceId[@name='commandBuffer']"), [])
        if name == "vkBeginCommandBuffer":
            recorded[_text(chunk, "ResourceId[@name='CommandBuffer']")] = []
        elif name == "vkCmdDispatch":
            groups = tuple(int(_text(chunk, f"uint[@name='{axis}']")) for axis in "xyz")
            commands.append(f"vkCmdDispatch{groups}")
        elif name == "vkCmdCopyBuffer":
            regions = _text(chunk, "uint[@name='regionCount']")
            commands.append(f"vkCmdCopyBuffer ({regions} regions)")
        elif name == "vkQueueSubmit":
            buffers = chunk.iterfind(".//array[@name='pCommandBuffers']/ResourceId")
            submitted = [command for b in buffers for command in recorded.get(b.text or "", [])]
            yield Submission(int(chunk.get("timestamp", 0)), tuple(submitted))


def _text(chunk: ElementTree.Element, path: str) -> str:
    return chunk.findtext(path) or ""
