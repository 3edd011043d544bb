"""Helpers of the functions for arrays: preparing their arguments and running their plans."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy.typing as npt

from vkops.gpu.run.streaming import Progress
from vkops.plan.view import View
from vkops.tensors.array_plan import ArrayPlan, fits
from vkops.tensors.exchange import as_array
from vkops.tensors.tensor import (
    Device,
    DeviceLike,
    Tensor,
    as_device,
    check_device,
    default_device,
)
from vkops.tensors.views import packed

Source: TypeAlias = "Tensor | npt.NDArray[Any]"
"""An argument: a tensor that owns its memory, or an array that has to be sent to the device."""


def run(
    plan: ArrayPlan, device: Device, inputs: Sequence[Source], progress: Progress | None = None
) -> list[Tensor]:
    """Run a plan on arrays and tensors of one dtype, as ``sources`` returns them.

    Data that does not fit on the device is streamed, if all inputs are on the host.
    """
    arrays = [source for source in inputs if not isinstance(source, Tensor)]
    if len(arrays) == len(inputs) and plan.is_concatenation and plan.fits(device.executor, arrays):
        return [Tensor.from_arrays(device, arrays, plan.shapes[0])]  # what is sent is the result
    return Tensor.make(plan, device, inputs, [inputs[0].dtype] * len(plan.shapes), progress)


def sources(
    name: str, values: Sequence[Any], device: DeviceLike | None
) -> tuple[Device, list[Source], tuple[View, ...]]:
    """The device to run on, the memory of each argument, and the view of it that the argument is.

    Memory is an array or a tensor that owns it. Without ``device``, the first tensor's is used.
    """
    home = chosen_device(name, device)
    found: list[Source] = []
    views: list[View] = []
    for i, value in enumerate(values):
        if isinstance(value, Tensor):
            home = home or value.device
            check_device(name, f"tensors[{i}]", value, home)
            base, view = value.placed()
            found.append(base)
            views.append(view)
        else:
            array = as_array(value)
            found.append(array)
            views.append(packed(array.shape))
    return home or default_device(), found, tuple(views)


def native(x: Any) -> Source:
    """An array or tensor in the byte order of the host, as NumPy concatenates it."""
    source = x if isinstance(x, Tensor) else as_array(x)
    return source if source.dtype.isnative else source.astype(source.dtype.newbyteorder("="))


def as_tensor(name: str, x: Any, device: DeviceLike | None) -> Tensor:
    """Return a tensor unchanged; send an array, or keep it on the host if it does not fit."""
    home = chosen_device(name, device)
    if isinstance(x, Tensor):
        check_device(name, "x", x, home or x.device)
        return x
    array = as_array(x)
    home = home or default_device()
    return Tensor.from_array(home, array, on_host=not fits(home.executor, array.nbytes))


def as_tensors(name: str, values: Sequence[Any], device: Any) -> list[Tensor]:
    """Tensors of arrays and tensors; arrays are sent to the device of the first tensor."""
    devices = (value.device for value in values if isinstance(value, Tensor))
    home = chosen_device(name, device) or next(devices, None)
    return [as_tensor(name, value, home) for value in values]


def chosen_device(name: str, device: Any) -> Device | None:
    """The device that a caller names, if any (B-02)."""
    return None if device is None else as_device(name, device)
