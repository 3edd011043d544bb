"""Waits of asyncio's tasks: one thread waits for the work of a device, whoever awaits it."""

from __future__ import annotations

from _thread import start_new_thread
from contextlib import suppress
from typing import TYPE_CHECKING

from vkops.errors import VkopsError
from vkops.gpu.adapters.kompute import native_error
from vkops.gpu.run.open_device import OpenDevice
from vkops.gpu.run.vulkan_device import VulkanDevice
from vkops.system.threads import new_lock

if TYPE_CHECKING:
    from asyncio import Future

# By device, the submission that each waiting task waits for, and the task's future. A device is in
# the dictionary as long as a thread serves it.
_waiting: dict[VulkanDevice, list[tuple[int, Future[None]]]] = {}
_lock = new_lock()


async def ended(device: OpenDevice, number: int) -> None:
    """Wait for all streams and a submission, while the event loop goes on."""
    from asyncio import get_running_loop  # slow to import, but the caller with a loop has done so

    vulkan = device.vulkan
    device.check_usable()
    while vulkan.streams or not vulkan.is_done(number):
        future = get_running_loop().create_future()
        with _lock:
            # Start the thread before the task is added: if no thread can start, no task is left
            # without one. The thread looks at the tasks only when this block frees the lock.
            if vulkan not in _waiting:
                start_new_thread(_serve, (vulkan,))
            _waiting.setdefault(vulkan, []).append((number, future))
        await future


def _serve(vulkan: VulkanDevice) -> None:
    """Wait for one submission after the other until no task waits, and wake the tasks."""
    waiting = True
    while waiting:
        with suppress(VkopsError, native_error()):  # each task meets the error when it wakes
            vulkan.finish_streams()
            # Not for the last one: a task wakes as soon as its own submission has ended.
            vulkan.wait(vulkan.native.completed + 1)
        with _lock:
            left = [each for each in _waiting.pop(vulkan, []) if not _is_woken(vulkan, *each)]
            waiting = bool(left)
            if waiting:
                _waiting[vulkan] = left


def _is_woken(vulkan: VulkanDevice, number: int, future: Future[None]) -> bool:
    """Wake a task if its submission has ended or failed, or it was cancelled; return whether."""
    with suppress(VkopsError):
        if not (future.done() or vulkan.is_done(number)):
            return False
    with suppress(RuntimeError):  # the loop of the task is closed: nobody waits
        future.get_loop().call_soon_threadsafe(_end, future)
    return True


def _end(future: Future[None]) -> None:
    if not future.done():  # it may have been cancelled
        future.set_result(None)
