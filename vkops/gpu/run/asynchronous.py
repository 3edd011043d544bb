"""Waits of asyncio's tasks: one thread waits for the work of a device, whoever awaits it."""

from __future__ import annotations

from _thread import start_new_thread
from contextlib import suppress
from typing import TYPE_CHECKING

from vkops.errors import VkopsError
from vkops.gpu.adapters.kompute import NATIVE_ERRORS
from vkops.gpu.run.open_device import OpenDevice
from vkops.gpu.run.vulkan_device import VulkanDevice
from vkops.system.locks import Lock

if TYPE_CHECKING:
    from asyncio import Future

# The futures of tasks, each with the submission that it waits for; a device with a thread has some.
_waiting: dict[VulkanDevice, list[tuple[int, Future[None]]]] = {}
_lock = Lock()


async def ended(device: OpenDevice, number: int) -> None:
    """Wait for all streams and a submission, while the event loop goes on."""
    from asyncio import get_running_loop  # whoever has a loop has imported it

    vulkan = device.vulkan
    device.check()
    while vulkan.streams or not vulkan.is_done(number):
        future = get_running_loop().create_future()
        with _lock:
            if vulkan not in _waiting:  # before it is in: a thread that finds nothing to do ends
                start_new_thread(_serve, (vulkan,))
            _waiting.setdefault(vulkan, []).append((number, future))
        await future


def _serve(vulkan: VulkanDevice) -> None:
    """Wait for one submission after the other until no task waits, and wake the tasks."""
    waiting = True
    while waiting:
        with suppress(VkopsError, *NATIVE_ERRORS):  # which each task finds for itself
            vulkan.finish_streams()
            vulkan.wait(vulkan.native.completed + 1)
        with _lock:
            left = [each for each in _waiting.pop(vulkan, []) if not _is_woken(vulkan, *each)]
            waiting = bool(left)
            if waiting:
                _waiting[vulkan] = left


def _is_woken(vulkan: VulkanDevice, number: int, future: Future[None]) -> bool:
    """Whether the submission has ended, the device is lost or the task cancelled; wake the task."""
    with suppress(VkopsError):
        if not (future.done() or vulkan.is_done(number)):
            return False
    with suppress(RuntimeError):  # its loop is closed
        future.get_loop().call_soon_threadsafe(_end, future)
    return True


def _end(future: Future[None]) -> None:
    if not future.done():  # it may have been cancelled
        future.set_result(None)
