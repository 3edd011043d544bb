"""CUDA on the GPU of a Vulkan device: memory that both see, and the order of their work.

CUDA's driver is called by ``cuda.bindings``, a package of cuda-python, which is imported when it is
first needed.
"""

from __future__ import annotations

import os
from _thread import start_new_thread
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from threading import RLock
from typing import Any
from weakref import WeakKeyDictionary, finalize

from vkops.errors import DeviceError
from vkops.system.threads import new_lock

LEGACY = 1
"""CUDA's handle of the default stream, which DLPack uses, too; that of a thread's own one is 2."""

_NAME = "CUDA"
"""The name, in messages and profiles, of the points at which work of Vulkan and of CUDA meet."""


def find(vulkan: Any) -> CudaDevice | str:
    """Return CUDA's device that is the GPU of a ``VulkanDevice``, or say why there is none."""
    try:
        driver: Any = import_module("cuda.bindings.driver")
    except ImportError as error:
        return f"it needs the package cuda-bindings ({error}): pip install 'vkops[cuda]'"
    if not vulkan.native.shares_memory:
        return f"{vulkan.info.label} has no VK_KHR_external_memory_fd"
    try:
        _call(driver, "cuInit", 0)
        for number in range(_call(driver, "cuDeviceGetCount")):
            device = _call(driver, "cuDeviceGet", number)
            if _call(driver, "cuDeviceGetUuid", device).bytes == vulkan.uuids[0]:
                return CudaDevice(driver, number, device, vulkan)
    except (RuntimeError, DeviceError) as error:  # there is no driver, or it fails
        return f"CUDA cannot be used: {error}"
    return f"no device of CUDA has the UUID of {vulkan.info.label}, {vulkan.uuids[0].hex()}"


def _call(driver: Any, name: str, *arguments: Any) -> Any:
    """Call a function of CUDA; return its result."""
    error, *results = getattr(driver, name)(*arguments)
    if error != driver.CUresult.CUDA_SUCCESS:
        raise DeviceError(f"{name} of CUDA failed: {error.name}")
    return results[0] if results else None


class CudaDevice:
    """CUDA's device that is the GPU of a ``VulkanDevice``.

    What CUDA has for it, a context, a stream and semaphores, stays until the process ends: nothing
    tells when streams of others, which may wait for the semaphores, have ended.

    Attributes:
        number: CUDA's number of the device in this process.
        stream: the handle of a stream, in which vkops copies.
        is_ordered: whether CUDA and Vulkan wait for each other on the device; if not, the host
            waits for one before it gives work to the other.
    """

    def __init__(self, driver: Any, number: int, device: Any, vulkan: Any) -> None:
        self.number: int = number
        self.is_ordered: bool = vulkan.native.shares_semaphores
        self._driver = driver
        self._lock: RLock = new_lock()
        self._addresses: WeakKeyDictionary[Any, int] = WeakKeyDictionary()
        self._context = _call(driver, "cuDevicePrimaryCtxRetain", device)
        with _current(driver, self._context):
            flags = driver.CUstream_flags.CU_STREAM_NON_BLOCKING
            self._own = _call(driver, "cuStreamCreate", flags)
            self.stream: int = int(self._own)
            if self.is_ordered:
                # Each is signalled by one side alone, and there in one order.
                self._ended, self._ended_imported = self._semaphore(vulkan)  # work of Vulkan
                self._cuda_ended, self._cuda_ended_imported = self._semaphore(vulkan)
                self._cuda_value = 0

    def _semaphore(self, vulkan: Any) -> tuple[Any, Any]:
        """Make a semaphore of Vulkan; return it and CUDA's."""
        native = vulkan.call(vulkan.module.SharedSemaphore, vulkan.native)
        described = self._driver.CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC()
        kinds = self._driver.CUexternalSemaphoreHandleType
        described.type = kinds.CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD
        return native, self._imported(vulkan, native, "cuImportExternalSemaphore", described)

    def _imported(self, vulkan: Any, native: Any, function: str, described: Any) -> Any:
        """Import what Vulkan exports as a file descriptor, which is CUDA's unless that fails."""
        descriptor = vulkan.call(native.descriptor, vulkan.native)
        described.handle.fd = descriptor
        try:
            return _call(self._driver, function, described)
        except DeviceError:
            os.close(descriptor)
            raise

    def address(self, vulkan: Any, buffer: Any) -> int:
        """Return CUDA's address of a shared buffer, which CUDA sees as long as the buffer lives."""
        driver = self._driver
        with self._lock, _current(driver, self._context):
            found = self._addresses.get(buffer)
            if found is not None:
                return found
            ((memory, _, nbytes),) = buffer.extents
            described = driver.CUDA_EXTERNAL_MEMORY_HANDLE_DESC()
            kinds = driver.CUexternalMemoryHandleType
            described.type = kinds.CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD
            described.size = memory.native.allocated
            described.flags = driver.CUDA_EXTERNAL_MEMORY_DEDICATED
            external = self._imported(vulkan, memory.native, "cuImportExternalMemory", described)
            whole = driver.CUDA_EXTERNAL_MEMORY_BUFFER_DESC()
            whole.size = nbytes
            try:
                pointer = _call(driver, "cuExternalMemoryGetMappedBuffer", external, whole)
            except DeviceError:
                _call(driver, "cuDestroyExternalMemory", external)
                raise
            finalize(
                buffer, _free, driver, self._context, external, pointer, os.getpid()
            ).atexit = False
            self._addresses[buffer] = int(pointer)
            return int(pointer)

    def wait_for_vulkan(self, vulkan: Any, stream: int) -> None:
        """Let what a stream gets from now on wait for all that Vulkan was given until now."""
        if not self.is_ordered:
            vulkan.settle()
            return
        meeting = vulkan.module.Meeting(self._ended, 0)
        vulkan.start(vulkan.native.submit, meeting, (), (), _NAME)
        parameters = self._driver.CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS()
        # Another thread may have submitted a later one meanwhile, which comes after this.
        parameters.params.fence.value = self._ended.value
        with _current(self._driver, self._context):
            arrays = [self._ended_imported], [parameters]
            self._ordered("cuWaitExternalSemaphoresAsync", arrays, stream)

    def let_vulkan_wait(self, vulkan: Any, stream: int) -> None:
        """Let what Vulkan gets from now on wait for all that a stream was given until now.

        That may have written all memory whose address CUDA has.
        """
        driver = self._driver
        with _current(driver, self._context):
            if not self.is_ordered:
                _call(driver, "cuStreamSynchronize", driver.CUstream(stream))
                return
            with self._lock:
                if stream != self.stream:
                    event = self._event(stream)
                    try:
                        _call(driver, "cuStreamWaitEvent", self._own, event, 0)
                    finally:
                        _call(driver, "cuEventDestroy", event)
                self._cuda_value += 1
                value = self._cuda_value
                parameters = driver.CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS()
                parameters.params.fence.value = value
                arrays = [self._cuda_ended_imported], [parameters]
                self._ordered("cuSignalExternalSemaphoresAsync", arrays, self.stream)
                seen = [buffer.allocation for buffer in self._addresses]
        meeting = vulkan.module.Meeting(self._cuda_ended, value)
        vulkan.start(vulkan.native.submit, meeting, (), seen, _NAME)

    def _ordered(self, function: str, arrays: tuple[list[Any], list[Any]], stream: int) -> None:
        _call(self._driver, function, *arrays, 1, self._driver.CUstream(stream))

    def _event(self, stream: int) -> Any:
        """An event after all that a stream was given until now, for the caller to destroy."""
        driver = self._driver
        event = _call(driver, "cuEventCreate", driver.CUevent_flags.CU_EVENT_DISABLE_TIMING)
        try:
            _call(driver, "cuEventRecord", event, driver.CUstream(stream))
        except DeviceError:
            _call(driver, "cuEventDestroy", event)
            raise
        return event

    def copy(self, vulkan: Any, source: int, nbytes: int, buffer: Any, owner: object) -> None:
        """Copy memory of CUDA, which is ready in ``stream``, to a shared buffer.

        The owner of that memory is kept until it was read.
        """
        driver = self._driver
        target = self.address(vulkan, buffer)
        self.wait_for_vulkan(vulkan, self.stream)
        with _current(driver, self._context):
            pointers = driver.CUdeviceptr(target), driver.CUdeviceptr(source)
            _call(driver, "cuMemcpyDtoDAsync", *pointers, nbytes, self._own)
        is_read = False
        try:
            self.let_vulkan_wait(vulkan, self.stream)
            is_read = not self.is_ordered
        finally:
            if not is_read:
                self._keep((owner, buffer))

    def _keep(self, owners: object) -> None:
        """Keep objects until the stream has used them, for which a thread waits."""
        with _current(self._driver, self._context):
            event = self._event(self.stream)
        try:
            start_new_thread(self._wait, (owners, event))
        except RuntimeError:  # the system has no more threads
            self._wait(owners, event)

    def _wait(self, owners: object, event: Any) -> None:
        with suppress(DeviceError), _current(self._driver, self._context):
            try:
                _call(self._driver, "cuEventSynchronize", event)
            finally:
                _call(self._driver, "cuEventDestroy", event)


@contextmanager
def _current(driver: Any, context: Any) -> Iterator[None]:
    """Make a context that of this thread, which has the one of others again afterwards."""
    _call(driver, "cuCtxPushCurrent", context)
    try:
        yield
    finally:
        _call(driver, "cuCtxPopCurrent")


def _free(driver: Any, context: Any, external: Any, pointer: Any, process: int) -> None:
    """Give up memory of a buffer, which is gone; not in a process that was forked off."""
    if os.getpid() == process:
        with suppress(DeviceError), _current(driver, context):
            _call(driver, "cuMemFree", pointer)
            _call(driver, "cuDestroyExternalMemory", external)
