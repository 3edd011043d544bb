"""Kompute's own tensors, algorithms and operations on a device of vkops."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn
from weakref import ref

import numpy as np

from vkops.errors import DeviceError, show
from vkops.gpu.adapters.kompute import load_kompute
from vkops.gpu.run.buffer import Buffer
from vkops.gpu.run.open_device import OpenDevice

MAX_NBYTES = 1 << 32
"""Kompute counts bytes in 32 bits."""

MULTIPLE = 16
"""Kernels read whole vectors of so many bytes: the last one must not exceed Kompute's buffer."""

DTYPES = ("float32", "float64", "int32", "uint32", "bool")
"""The types of Kompute's tensors."""


@dataclass(slots=True)
class _Made:
    """A tensor of Kompute: its dtype, and a weak reference to the buffer over its memory."""

    dtype: np.dtype[Any]
    buffer: Callable[[], Buffer | None] = lambda: None


class KomputeManager:
    """Makes Kompute's tensors and algorithms, and runs its operations; see ``Device.kompute``.

    It has the methods of ``kp.Manager`` except ``sequence``. All managers of one adapter are
    equal.
    """

    def __init__(self, device: OpenDevice) -> None:
        self._device = device

    def __repr__(self) -> str:
        return f"<vkops.KomputeManager of {self._device.info.label}>"

    def tensor(self, data: Any, tensor_type: Any = None) -> Any:
        """Return a ``kp.Tensor`` of float32 with a copy of an array; see ``tensor_t``."""
        return self.tensor_t(np.asarray(data, np.float32), tensor_type)

    def tensor_t(self, data: Any, tensor_type: Any = None) -> Any:
        """Return a ``kp.Tensor`` with a copy of an array's elements, row by row.

        Args:
            data: an array of one of the types that Kompute has.
            tensor_type: one of ``kp.TensorTypes``; default: ``device``, whose content
                ``kp.OpTensorSyncDevice`` sends.

        Raises:
            DeviceError: the array has another type, no elements, or 4 GiB or more; the device lacks
                memory, or is closed or lost.
        """
        device, array = self._device, np.ascontiguousarray(data)
        device.make_ready()
        if array.dtype not in DTYPES or not 0 < array.nbytes < MAX_NBYTES:
            raise DeviceError(
                f"Kompute's tensors have elements of {', '.join(DTYPES)} and 1 to {MAX_NBYTES - 1} "
                f"bytes, got {array.nbytes} bytes of {array.dtype}"
            )
        # Kompute does not notice if the driver has no memory. It takes the bytes twice: for the
        # tensor, and to stage them.
        if not device.fits(2 * array.nbytes):
            raise DeviceError(f"{2 * array.nbytes} bytes: the device has no memory for them")
        kind = load_kompute().TensorTypes.device if tensor_type is None else tensor_type
        tensor = device.vulkan.native.manager.tensor_t(array, kind)
        device.vulkan.kompute[tensor] = _Made(array.dtype)
        return tensor

    def algorithm(self, tensors: Any, *arguments: Any, **options: Any) -> Any:
        """Return a ``kp.Algorithm`` on tensors of this manager; the rest is as in ``kp.Manager``.

        Raises:
            DeviceError: another manager has made one of the tensors, or the device is closed.
        """
        self._device.make_ready()
        for tensor in tensors:
            self._check(tensor)
        return self._device.vulkan.native.manager.algorithm(tensors, *arguments, **options)

    def sequence(self, *_: Any, **__: Any) -> NoReturn:
        """Raise a DeviceError: the device has one queue, to which ``run`` submits operations."""
        self._device.make_ready()
        raise DeviceError(
            "a kp.Sequence would submit beside the queue of the device: use run(*operations)"
        )

    def run(self, *operations: Any) -> None:
        """Begin to run operations of Kompute in order, after all work that was submitted before.

        They must refer to tensors of this manager alone. Each operation, and all work that is
        submitted later, sees what the operations before it wrote. ``Device.synchronize`` waits for
        them, and so does reading their tensors by ``Device.from_kompute``. Recorded programs can
        contain them.

        Raises:
            DeviceError: the device is closed or lost, or something is no operation of Kompute's.
        """
        kind = load_kompute().OpBase
        for each in operations:
            if not isinstance(each, kind):
                raise DeviceError(f"got {show(each)}, must be an operation of Kompute's")
        # Operations do not say which tensors they use: assume all.
        buffers = [each.buffer() for each in [*self._device.vulkan.kompute.values()]]
        written = [buffer.allocation for buffer in buffers if buffer is not None]
        self._device.submit(operations, (), written, "Kompute's operations")

    def memory(self, tensor: Any) -> tuple[Buffer, np.dtype[Any]]:
        """Return a buffer over a tensor's memory, the same while it is used, and the dtype."""
        device, kp = self._device, load_kompute()
        device.make_ready()
        vulkan, made = device.vulkan, self._check(tensor)
        nbytes = tensor.size() * made.dtype.itemsize
        if nbytes % MULTIPLE or not nbytes or tensor.tensor_type() == kp.TensorTypes.storage:
            raise DeviceError(
                f"got {nbytes} bytes of type {tensor.tensor_type().name}, must be a multiple of "
                f"{MULTIPLE} of type device or host: those of type storage cannot be copied"
            )
        with vulkan.lock:
            buffer = made.buffer()
            if buffer is None:
                native = vulkan.module.KomputeMemory(vulkan.native, tensor)
                memory = vulkan.adopt(native, nbytes)
                memory.is_storage_only = True
                allocation = device.shared_pool.own(memory)
                # Operations of Kompute that were submitted before may use the tensor.
                allocation.used = allocation.written = vulkan.native.submitted
                buffer = Buffer(device, nbytes, allocation=allocation)
                buffer.is_addressed = True
                buffer.layout = "Kompute", nbytes
                made.buffer = ref(buffer)
        return buffer, made.dtype

    def _check(self, tensor: Any) -> _Made:
        made: _Made | None = None
        if isinstance(tensor, load_kompute().Tensor):
            made = self._device.vulkan.kompute.get(tensor)
        if made is None:
            raise DeviceError(
                f"got {show(tensor)}, must be a tensor that vkops.Device.kompute of the same "
                "adapter has made: those of another kp.Manager belong to another device of Vulkan"
            )
        return made
