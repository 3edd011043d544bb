"""Memory of a device that several processes see, and the handles by which they get it."""

from __future__ import annotations

import os
import secrets
from hmac import digest
from typing import Any, NamedTuple, TypeGuard
from weakref import ref

import numpy as np

from vkops.errors import DeviceError
from vkops.gpu.memory.pools import ALIGNMENT
from vkops.gpu.run.buffer import Buffer
from vkops.gpu.run.open_device import OpenDevice
from vkops.plan.view import Ints
from vkops.system import handover

MAX_SECONDS = 7 * 24 * 3600
"""Seconds for which a handle can be offered, at most."""


class _Layout(NamedTuple):
    """All that another process must know to make the same buffer over the same memory.

    ``allocated`` are the bytes of the driver's allocation, ``type`` is that of the memory,
    ``usage`` has Vulkan's flags of the buffer, and ``uuids`` are those of the device and of its
    driver.
    """

    shape: Ints
    dtype: np.dtype[Any]
    nbytes: int
    allocated: int
    type: int
    usage: int
    is_mapped: bool
    uuids: tuple[bytes, bytes]


class SharedHandle:
    """A handle of a tensor's memory, which ``Tensor.share`` returns.

    A process of the same user on the same system can open it: ``vkops.open_shared``. It can be
    pickled once and opened once.
    """

    def __init__(self, layout: _Layout, path: str, token: bytes) -> None:
        self._layout = layout
        self._path = path
        self._token = token
        self._is_pickled = False

    @classmethod
    def of(
        cls, device: OpenDevice, buffer: Buffer, shape: Ints, dtype: np.dtype[Any], seconds: float
    ) -> SharedHandle:
        """Wait for all that writes a buffer, which ``new_buffer`` has made, and offer it."""
        device.vulkan.refuse_recording("memory cannot be shared, because nothing runs yet")
        device.wait(buffer.allocation.written)
        memory, vulkan = buffer.extents[0].resource, device.vulkan
        where = memory.native.allocated, memory.native.type, vulkan.native.usage
        is_mapped = memory.view is not None
        layout = _Layout(shape, dtype, buffer.nbytes, *where, is_mapped, vulkan.uuids)
        token, living = secrets.token_bytes(handover.TOKEN_BYTES), ref(buffer)
        proof = _proof(layout, token)
        descriptor = vulkan.call(memory.native.descriptor, vulkan.native)
        try:
            path = handover.offer(descriptor, token, proof, lambda: living() is not None, seconds)
        except OSError as error:
            os.close(descriptor)
            raise DeviceError(f"the handle cannot be offered: {error}") from error
        return cls(layout, path, token)

    @property
    def shape(self) -> Ints:
        """The sizes of the tensor."""
        return self._layout.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """NumPy's type of its elements."""
        return self._layout.dtype

    def __repr__(self) -> str:
        shape = " x ".join(map(str, self.shape))
        return f"<vkops.SharedHandle of {shape} {self.dtype}>"

    def __reduce__(self) -> tuple[Any, ...]:
        if self._is_pickled:
            raise DeviceError("a handle can be pickled once, as it is opened once: share again")
        self._is_pickled = True
        return type(self), (self._layout, self._path, self._token)

    def opened(self, device: OpenDevice) -> Buffer:
        """Return a buffer over the memory; see ``vkops.open_shared``."""
        device.make_ready()
        check_device(device)
        layout, vulkan = self._layout, device.vulkan
        if layout.uuids != vulkan.uuids:
            raise DeviceError(
                f"the handle is of another device or driver than {device.info.label}: both "
                "processes must use the same"
            )
        if layout.usage != vulkan.native.usage:
            raise DeviceError(
                "the handle is of a device that was opened with other features: both processes "
                "must have the same environment"
            )
        try:
            descriptor = handover.fetch(self._path, self._token, _proof(layout, self._token))
        except OSError as error:
            raise DeviceError(
                f"the handle cannot be opened ({error}): it was opened before, its tensor is gone, "
                "or its time is over"
            ) from error
        size = _rounded(layout.nbytes)
        where = size, layout.allocated, layout.type, layout.is_mapped
        try:
            native = vulkan.call(vulkan.module.SharedMemory, vulkan.native, *where, descriptor)
        finally:
            os.close(descriptor)
        allocation = device.shared_pool.own(vulkan.adopt(native, size))
        buffer = Buffer(device, layout.nbytes, allocation=allocation)
        buffer.is_addressed = True
        return buffer


def new_buffer(device: OpenDevice, nbytes: int) -> Buffer:
    """Return a buffer of zeros with memory of its own, which never moves."""
    device.make_ready()
    check_device(device)
    return Buffer(device, nbytes, device.shared_pool)


def is_shared(buffer: object) -> TypeGuard[Buffer]:
    """Whether other processes can see a buffer that this process has made."""
    return isinstance(buffer, Buffer) and buffer.extents[0].resource.is_shared


def check_device(device: OpenDevice) -> None:
    """Raise a DeviceError if the device cannot share memory."""
    if not device.vulkan.native.shares_memory or not handover.IS_POSSIBLE:
        raise DeviceError(
            f"{device.info.label} cannot share memory with other processes: that needs Linux, and "
            "a driver with VK_KHR_external_memory_fd"
        )


def _rounded(nbytes: int) -> int:
    return -(-nbytes // ALIGNMENT) * ALIGNMENT


def _proof(layout: _Layout, token: bytes) -> bytes:
    """The proof that the other side knows the token, and means the same memory."""
    return digest(token, repr(layout).encode(), "sha256")
