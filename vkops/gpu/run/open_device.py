"""The devices that are open in this process, and the base of ``vkops.Device``."""

from __future__ import annotations

import atexit
import gc
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from ctypes import py_object, pythonapi
from dataclasses import astuple, replace
from functools import lru_cache
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from vkops.errors import OutOfDeviceMemoryError, is_held, refuse_reentry
from vkops.gpu.adapters import adapter, forks, loader_files
from vkops.gpu.adapters.adapter import DeviceInfo
from vkops.gpu.adapters.adapter_limits import CooperativeMatrix, Limits
from vkops.gpu.adapters.kompute import Native
from vkops.gpu.adapters.layer_messages import SETTINGS
from vkops.gpu.copies.rule import CopyRule, rule_for
from vkops.gpu.kernels import encoding
from vkops.gpu.kernels.choice import STREAM
from vkops.gpu.memory.pools import Allocation, MemoryReport, Pool, SeparatePool, living
from vkops.gpu.run.encoded_plan import EncodedPlan
from vkops.gpu.run.handles import DeviceHandles
from vkops.gpu.run.profile_recorder import record_if_profiled
from vkops.gpu.run.vulkan_device import VulkanDevice
from vkops.plan.movements import copy
from vkops.plan.region import CopyPlan, Output
from vkops.plan.view import View
from vkops.shaders.features import exact_floats
from vkops.system.threads import after_fork, new_lock

T = TypeVar("T")

MAX_UNCHECKED_BYTES = 64 << 20
"""The size in bytes up to which memory is allocated without checking before that it fits."""

EXIT_SECONDS = 10.0
"""The time that the exit of Python waits for work that still runs."""


_opened: WeakValueDictionary[int, VulkanDevice] = WeakValueDictionary()


def open_vulkan_devices() -> list[VulkanDevice]:
    """Return the devices of this process that are open."""
    return living(_opened)


def release_empty_heaps() -> None:
    """Release the driver memory that no device needs at the moment.

    Do nothing if this thread is in the middle of using a device: it would wait for the locks of
    others, and a thread that holds one of these could be waiting for this thread's device.
    """
    devices = open_vulkan_devices()
    if not any(is_held(device.lock) for device in devices):
        for device in devices:
            device.release_empty_heaps()


def _after_fork() -> None:
    forks.state.forked = forks.state.opened
    for device in open_vulkan_devices():
        # Never destroy it: that would wait forever for threads of the driver.
        pythonapi.Py_IncRef(py_object(device.native))
        device.forget_driver()


after_fork(_after_fork)


@atexit.register
def _at_exit() -> None:
    for device in open_vulkan_devices():
        with device.tolerating_loss():
            if not (forks.state.forked or device.finish_within(EXIT_SECONDS)):
                names = ", ".join(device.pending_names) or "work"
                message = f"Python exits while {device.info.label} still runs {names}: "
                logging.getLogger("vkops").warning(message + "not waited for")


_opening = new_lock()


def open_vulkan_device(info: adapter.DeviceInfo, mode: adapter.Mode = "") -> VulkanDevice:
    """Return the device of an adapter; open it unless it is open already.

    A new one is also opened if the open one is lost, or if Vulkan's layers or VKOPS_LIMITS have
    changed since.
    """
    forks.check_not_forked()
    refuse_reentry(_opening, "a device is being opened")
    with _opening:
        key = info, mode, *loader_files.variables(adapter.LAYERS, SETTINGS)
        # No loop: Python 3.13 raises interrupts between iterations outside of ``with``.
        opened = (each for each in open_vulkan_devices() if each.key == key and not each.lost)
        device = next(opened, None) or VulkanDevice(info, key, mode)
        _opened[id(device)] = device
        # After the device can be found: a profile that begins now finds it, earlier ones do here.
        record_if_profiled(device)
        return device


def with_reclaim(allocate: Callable[[], T]) -> T:
    """Allocate; if memory is short, free garbage and empty heaps, and try once more.

    Call it without holding a lock: it runs finalizers, and locks all devices in turn.
    """
    with suppress(OutOfDeviceMemoryError):
        return allocate()
    gc.collect()
    release_empty_heaps()
    return allocate()


class OpenDevice(ABC):
    """An open Device, one of several of an adapter, which share its VulkanDevice.

    Attributes:
        vulkan: the Vulkan device that it runs on.
        mapped: whether the host sees the memory of its tensors.
        pool: the pool of the memory of tensors and buffers.
        image_pool: the pool of the memory of images.
        pinned_pool: the pool of the memory of pinned arrays.
        shared_pool: the pool of memory that other processes can see. On a device that was opened
            with ``shared=True``, it is also ``pool``.
        tuning: the parameters by which plans are encoded for the device.
    """

    def __init__(self, vulkan: VulkanDevice, *, staged: bool, shared: bool = False) -> None:
        self.vulkan: VulkanDevice = vulkan
        self.mapped: bool = vulkan.info.unified_memory and not staged
        self.tuning: encoding.Tuning = _tuning(
            self.info.type == "CPU",
            self.info.max_bindings,
            self.info.limits.max_workgroup,
            rule_for(self.info, validated=vulkan.validated),
        )
        use = "mapped" if self.mapped else "device"
        self.shared_pool: SeparatePool = SeparatePool(vulkan, use, is_shared=True)
        self.pool: Pool = self.shared_pool if shared else vulkan.new_pool(use)
        self.image_pool: Pool = vulkan.new_pool("device", self.info.limits.max_allocation)
        self.pinned_pool: SeparatePool = SeparatePool(vulkan, "readback")

    @property
    def _pools(self) -> set[Pool]:
        return {self.pool, self.image_pool, self.pinned_pool, self.shared_pool}

    @property
    def info(self) -> DeviceInfo:
        """The adapter: its name, type, driver, memory and limits; see ``DeviceInfo``."""
        return self.vulkan.info

    @property
    def handles(self) -> DeviceHandles:
        """Vulkan's handles of the device, for libraries that attach to it, and a lock of its queue.

        What such a library submits must end with a barrier that makes what it writes available, as
        what vkops submits does. vkops does not know what others use: keep tensors until their work
        has ended, and wait for it before you write to them.

        Raises:
            DeviceError: the device is closed or lost.

        >>> import vkops
        >>> handles = vkops.Device().handles
        >>> with handles.locked():
        ...     handles.queue != 0  # here, other libraries may submit to the queue
        True
        """
        self.check_usable()
        return DeviceHandles(self.vulkan)

    @property
    def limits(self) -> Limits:
        """The limits of shaders and calls, and alignments, under Vulkan's names."""
        return self.info.limits

    @property
    def features(self) -> frozenset[str]:
        """The optional features of Vulkan that shaders can use, such as ``"shaderFloat64"``."""
        return self.vulkan.features

    @property
    def same_bits(self) -> bool:
        """Whether kernels of floats have the bits on this device that the documentation says.

        The device must let shaders require that its floats keep denormal numbers, infinities and
        NaN, and that results are rounded to nearest, for all widths that it has.
        """
        optional = [width for width in (16, 64) if f"shaderFloat{width}" in self.features]
        return exact_floats(self.features, [32, *optional])[1]

    @property
    def cooperative_matrices(self) -> tuple[CooperativeMatrix, ...]:
        """The shapes and types of the cooperative matrices that shaders can multiply."""
        return self.info.limits.cooperative_matrices

    @property
    def closed(self) -> bool:
        """Whether nothing can run any more: it was closed, or the device was lost."""
        return self.pool.closed or bool(self.vulkan.lost)

    def check_usable(self) -> None:
        """Check that the device is open, and that this thread is not in the middle of using it."""
        self.pool.check_usable()

    def make_ready(self) -> None:
        """Check that the device is usable, as ``check_usable`` does, and finish its streams."""
        vulkan = self.vulkan
        in_use = vulkan.lock._is_owned()  # type: ignore[attr-defined]
        if in_use or self.pool.closed or vulkan.lost or forks.state.forked:
            self.check_usable()
        if vulkan.streams:
            vulkan.finish_streams()

    def submit(
        self,
        work: Sequence[Native],
        reads: Iterable[Allocation] = (),
        writes: Iterable[Allocation] = (),
        name: str = "",
        *,
        now: bool = False,
    ) -> int:
        """Begin to run work after ``make_ready``; see ``VulkanDevice.submit``."""
        self.make_ready()
        return self.vulkan.submit(work, reads, writes, name, now=now)

    def wait(self, number: int) -> None:
        """Wait for a submission; other threads can use the device meanwhile."""
        self.make_ready()
        self.vulkan.wait(number)

    # -- memory -----------------------------------------------------------------------------------

    @abstractmethod
    def tensor(self, *arguments: Any, **options: Any) -> Any:
        """Copy an array to the device; see ``vkops.Device``."""

    @abstractmethod
    def empty(self, shape: int | Sequence[int], dtype: Any = None) -> Any:
        """Make a tensor whose elements are undefined; see ``vkops.Device``."""

    def fits(self, nbytes: int) -> bool:
        """Whether unused memory has room for ``nbytes``; for small sizes True without a check."""
        if nbytes <= MAX_UNCHECKED_BYTES:
            return True
        try:
            with_reclaim(lambda: self.pool.require(nbytes))
        except OutOfDeviceMemoryError:
            return False
        return True

    def memory_report(self) -> MemoryReport:
        """Bytes reserved from the driver, bytes in use, and number of heaps."""
        self.make_ready()
        with self.vulkan.lock:
            reports = [pool.report() for pool in self._pools]
        return MemoryReport(*map(sum, zip(*map(astuple, reports), strict=True)))

    def close(self) -> None:
        """Close the device; memory that tensors and buffers still refer to stays allocated.

        Running anything on a closed device raises a DeviceError.
        """
        if forks.state.forked or self.pool.closed:
            return
        if not self.vulkan.lost:
            self.make_ready()
            with self.vulkan.tolerating_loss():
                self.vulkan.settle()
        with self.vulkan.lock:
            for pool in self._pools:
                pool.close()
        with self.vulkan.tolerating_loss():
            self.vulkan.release_empty_heaps()


@lru_cache(maxsize=256)
def movement(tuning: encoding.Tuning, itemsize: int, source: View, target: View) -> EncodedPlan:
    """Return the plan that copies a view of one buffer to a view of another, of the same sizes."""
    output = Output(target.extent * itemsize, (copy(source, target),))
    return EncodedPlan(CopyPlan(itemsize, (source.extent * itemsize,), (output,)), tuning)


@lru_cache
def _tuning(is_cpu: bool, max_bindings: int, max_workgroup: int, rule: CopyRule) -> encoding.Tuning:
    """Return one object for all devices of one kind, for which a program is then encoded once."""
    # Besides its sources, a kernel binds the table, and its target twice.
    sources = STREAM.sources if max_bindings >= STREAM.sources + 3 else 1
    return replace(
        encoding.CPU if is_cpu else encoding.GPU,
        sources=sources,
        invocations=max_workgroup,
        copies=rule,
    )
