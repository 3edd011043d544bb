"""Tensors in memory that CUDA also sees: DLPack's CUDA devices, and CUDA's array interface."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import numpy.typing as npt

from vkops.arguments.values import ArgumentName, integer
from vkops.errors import CONVERSION_ERRORS, DeviceError
from vkops.gpu.run.buffer import Buffer, MemoryView
from vkops.gpu.run.cuda_device import LEGACY, CudaDevice
from vkops.gpu.run.shared_memory import is_shared
from vkops.plan.view import View
from vkops.runtime.device import OperatorDevice
from vkops.tensors.device_array import DeviceArray, strided
from vkops.tensors.exchange import CPU, CUDA, capsule_of, imported, label_device, refuse_export
from vkops.tensors.shape_arguments import may_copy

UNORDERED = -1
"""DLPack's value of ``stream`` for consumers that synchronize by themselves."""


def device_of(array: DeviceArray) -> CudaDevice | str:
    """Return the CUDA device that sees the elements, or the reason why there is none."""
    lazy = array._lazy
    buffer = array._buffer if lazy is None else lazy[0]._buffer
    if not is_shared(buffer):
        return (
            "CUDA sees only tensors that were made with shared=True, or on a device that was "
            "opened with it"
        )
    return array.device.vulkan.cuda


def cuda_of(device: OperatorDevice) -> CudaDevice:
    """Return the CUDA device that is the same GPU as a device of vkops.

    Raises:
        DeviceError: there is none, or the device is closed or lost, or a program is recorded.
    """
    device.make_ready()
    device.vulkan.refuse_recording("CUDA cannot be used, because nothing runs yet")
    found = device.vulkan.cuda
    if isinstance(found, str):
        raise DeviceError(found)
    return found


def stream_of(operator: str, stream: Any, refused: int) -> int:
    """Return CUDA's handle of a stream; None means its default stream (ARRAY-11)."""
    argument = ArgumentName(operator, "stream", "ARRAY-11")
    handle = LEGACY if stream is None else integer(stream, argument)
    if handle < UNORDERED or handle == refused:
        first = UNORDERED - refused  # the other one of -1 and 0 is allowed
        raise argument.wrong_kind(stream, f"None, {first}, 1, 2, or a handle of a stream of CUDA")
    return handle


def exported(
    array: DeviceArray, device: tuple[int, int], stream: Any, max_version: Any, copy: Any
) -> Any:
    """Return a DLPack capsule that shows the elements to a CUDA device; see ``__dlpack__``."""
    found = device_of(array)
    if isinstance(found, str):
        refuse_export("dl_device", f"got {device}, which is CUDA's: {found}")
    if found.number != device[1]:
        refuse_export("dl_device", f"got {device}, must be {(CUDA, found.number)} or {CPU}")
    handle, copy = stream_of("__dlpack__", stream, refused=0), may_copy("__dlpack__", copy)
    needs_copy = array.is_read_only or min(array.placed()[1].strides, default=0) < 0
    if copy is False and needs_copy:
        what = "views that are read-only, or in reverse order, cannot be shown"
        refuse_export("copy", f"got False, must be True or None: {what}")
    if copy or needs_copy:
        home: Any = array.device
        own = home.empty(array.shape, array.dtype, shared=True)
        own[...] = array
        array = own
    cuda = cuda_of(array.device)
    capsule = capsule_of(_shown(array, cuda), max_version)
    if handle != UNORDERED:
        cuda.wait_for_vulkan(array.device.vulkan, handle)
    label_device(capsule, (CUDA, cuda.number))
    return capsule


def interface(array: DeviceArray) -> dict[str, Any]:
    """Return the value of ``__cuda_array_interface__``.

    Raises:
        AttributeError: CUDA does not see the elements.
        DeviceError: the device is closed or lost, records a program, or CUDA fails: reading this
            attribute submits work to both.
    """
    found = device_of(array)
    if isinstance(found, str):
        raise AttributeError(f"vkops.Tensor has no attribute '__cuda_array_interface__': {found}")
    cuda = cuda_of(array.device)
    shown = dict(_shown(array, cuda).__array_interface__)
    cuda.wait_for_vulkan(array.device.vulkan, cuda.stream)
    data = shown["data"][0], array.is_read_only
    names = {name: shown[name] for name in ("shape", "typestr", "strides")}
    return {**names, "data": data, "version": 3, "stream": cuda.stream}


def _shown(array: DeviceArray, cuda: CudaDevice) -> npt.NDArray[Any]:
    """Return an array at CUDA's addresses of the elements; the host must not read it."""
    base, view = array.placed()
    buffer = cast(Buffer, base.buffer)
    address = cuda.address(array.device.vulkan, buffer)
    memory = MemoryView(buffer, address, buffer.nbytes, is_read_only=False)
    return strided(np.asarray(memory), array.dtype, view)


def copied(device: Any, exporter: Any) -> Any:
    """Return a shared tensor with a copy, made on the GPU, of the elements of a DLPack exporter.

    Return None if the elements are not memory of CUDA on the same GPU. Return None also while this
    thread records a program: the recording needs the elements as constants.
    """
    try:
        kind, number = exporter.__dlpack_device__()
    except CONVERSION_ERRORS:  # not an exporter: the error is raised when its elements are read
        return None
    vulkan = device.vulkan
    if kind != CUDA or vulkan.recording is not None:
        return None
    device.make_ready()
    cuda = vulkan.cuda
    if isinstance(cuda, str) or cuda.number != number:
        return None
    elements = imported(exporter, stream=cuda.stream)  # at CUDA's addresses
    itemsize = elements.itemsize
    strides = tuple([stride // itemsize for stride in elements.strides])
    first, last = View(elements.shape, strides).bounds if elements.size else (0, -1)
    memory = device.empty(last + 1 - first, elements.dtype, shared=True)
    if not elements.size:
        return memory.reshape(elements.shape)
    start = elements.__array_interface__["data"][0] + first * itemsize
    cuda.copy(vulkan, start, memory.nbytes, memory.buffer, elements)
    view = View(elements.shape, strides, -first)
    if view.is_contiguous:
        return memory.over(device, memory.buffer, elements.shape, elements.dtype)
    return memory._over(memory, view)
