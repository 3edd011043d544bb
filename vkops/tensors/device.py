"""Devices: those of operators, which also make tensors, and the default device."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

from vkops.arguments.values import Place
from vkops.gpu.adapters import adapter
from vkops.runtime.device import OperatorDevice
from vkops.tensors.shape_arguments import refuse

if TYPE_CHECKING:
    from vkops.tensors.tensor import Tensor


class Device(OperatorDevice):
    """A Vulkan device that creates, compiles and runs DirectML operators.

    Devices of one adapter share Vulkan's device and queue, so each can use the tensors and buffers
    of the others, in one operator too. A device
    cannot be used in the middle of an operation, as a signal handler or a finalizer on the same
    thread would: that raises a DeviceError.

    Source: IDMLDevice. Validation is capped at ``feature_level`` (DEV-03; default: the newest),
    where DirectML treats the level as a minimum.

    Args:
        adapter: index, or part of an adapter's name; default: the one that the environment's
            VKOPS_ADAPTER names, or a GPU before a CPU driver.
        feature_level: ``FeatureLevel`` or its name, such as ``"5_0"``.
        debug: load the Khronos validation layer (DML_CREATE_DEVICE_FLAG_DEBUG).
        alternative_levels: operators, such as ``"JOIN"``, for which the rows that other sources
            give apply (JOIN-09).
        staged: move data through staging buffers even where the host sees device memory, as
            discrete GPUs must.
        expect: what the adapter has to be: ``"lavapipe"``, ``"gpu"`` or part of a name (default:
            what the environment's VKOPS_EXPECT says, if it is set).

    Raises:
        DeviceError: no such adapter, driver, loader or layer, another adapter than expected, or an
            argument of the wrong kind (DEV-14).
        InvalidDescError: unknown feature level (DEV-04).

    >>> import numpy as np
    >>> from vkops import dml
    >>> device = Device()
    >>> whole = dml.BufferTensorDesc(dml.TensorDataType.FLOAT32, (6, 2))
    >>> half = dml.BufferTensorDesc(dml.TensorDataType.FLOAT32, (3, 2))
    >>> desc = dml.SplitOperatorDesc(whole, (half, half), axis=0)
    >>> split = device.compile_operator(device.create_operator(desc))
    >>> x = device.tensor(np.arange(12, dtype=np.float32))
    >>> parts = [device.buffer(24), device.buffer(24)]
    >>> split.dispatch([x], parts)
    >>> np.frombuffer(parts[1].read(), np.float32)
    array([ 6.,  7.,  8.,  9., 10., 11.], dtype=float32)
    """

    def tensor(self, array: Any) -> Tensor:
        """Copy an array to the device.

        Raises:
            InvalidDescTypeError: its elements are not of 1, 2, 4, 8 or 16 bytes (T-02).
            OutOfDeviceMemoryError: it does not fit.
        """
        from vkops.tensors.tensor import Tensor  # that module imports this one

        return Tensor.from_array(self, array)


DeviceLike: TypeAlias = Device | str | int
"""A device, or the adapter of one: an index, or part of its name."""


@lru_cache(maxsize=1)
def default_device() -> Device:
    """The device used for NumPy arrays when none is given: opened once, of the best adapter."""
    return _device_of(adapter.choose(None).index)


def as_device(name: str, device: Any) -> Device:
    """A device, or the one of an adapter that is named; it is opened once (B-02).

    Raises:
        InvalidDescTypeError: it is of another kind.
        DeviceError: there is no such adapter.
    """
    if isinstance(device, Device):
        return device
    if isinstance(device, bool) or not isinstance(device, (str, int)):
        kinds = "a Device, the index of an adapter, or part of its name"
        raise Place(name, "device", "B-02").wrong_kind(device, kinds)
    return _device_of(adapter.choose(device).index)


@lru_cache(maxsize=64)
def _device_of(index: int) -> Device:
    return Device(index)


def check_device(name: str, field: str, tensor: Any, home: Device) -> None:
    """Refuse a tensor whose memory a device cannot use: that of another adapter (B-02)."""
    if tensor.device is not home and not tensor.device.shares_memory_with(home):
        message = f"is on {tensor.device!r}, must be on {home!r}; tensor.to(device) copies it"
        refuse(name, field, message, "B-02")
