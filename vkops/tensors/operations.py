"""Helpers of the functions for arrays: they prepare arguments and run plans."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy.typing as npt

from vkops.gpu.kernels.choice import MAX_DIMS
from vkops.gpu.run.streaming import Progress
from vkops.plan.view import View
from vkops.tensors.array_plan import memoized
from vkops.tensors.device_array import check_device
from vkops.tensors.exchange import as_array
from vkops.tensors.shape_arguments import packed
from vkops.tensors.tensor import Device, DeviceLike, Tensor, as_device, default_device

TensorOrArray: TypeAlias = "Tensor | npt.NDArray[Any]"
"""An argument: a tensor, or an array that must be sent to the device."""


class planned(memoized):  # noqa: N801  # a decorator
    """A decorator: the plans of a function, memoized as in ``memoized``, can be run on arrays.

    The function takes the size of an element in bytes, further arguments, and a view for each array
    of a call. The view describes the array's elements in the array's memory.
    """

    def __call__(
        self,
        name: str,
        arrays: Sequence[TensorOrArray],
        device: DeviceLike,
        progress: Progress,
        *arguments: Any,
    ) -> list[Tensor]:
        """Run the plan for arrays and tensors of one dtype, on a device or the first tensor's.

        Data that does not fit on the device is streamed, if all of it is on the host.
        """
        home = None if device is None else as_device(name, device)
        memory: list[Any] = []
        views: list[View] = []
        are_sent = True
        for i, source in enumerate(arrays):
            base: Any
            if isinstance(source, Tensor):
                if home is None:
                    home = source.device
                elif source.device is not home:
                    check_device(name, f"tensors[{i}]", source, home)
                base, view = source.placed()
                if len(view.sizes) > MAX_DIMS:
                    base, view = source._with_few_parts().placed()
                are_sent = False
            else:
                base, view = source, packed(source.shape)
            memory.append(base)
            views.append(view)
        home = home or default_device()
        dtype = memory[0].dtype
        key = (dtype.itemsize, *arguments, *views)
        plan = self[key]
        if are_sent and plan.is_concatenation and home.fits(plan.nbytes):
            result = Tensor(home, plan.shapes[0], dtype)  # the arrays are sent into it
            if result.buffer is not None:
                result.buffer.fill_with(memory)
            return [result]
        return Tensor.make(plan, home, memory, [dtype] * len(plan.shapes), progress)


def source_of(x: Any) -> TensorOrArray:
    """Return a tensor unchanged; convert anything else to an array."""
    return x if isinstance(x, Tensor) else as_array(x)


def native(x: Any) -> TensorOrArray:
    """Return an array or tensor in the byte order of the host, as NumPy concatenates it."""
    source = source_of(x)
    return source if source.dtype.isnative else source.astype(source.dtype.newbyteorder("="))


def as_tensor(name: str, x: Any, device: DeviceLike) -> Tensor:
    """Return a tensor unchanged; send an array, or keep it on the host if it does not fit."""
    home = chosen_device(name, device)
    if isinstance(x, Tensor):
        check_device(name, "x", x, home or x.device)
        return x
    return Tensor.from_array(home or default_device(), as_array(x), on_host=None)


def as_tensors(name: str, values: Sequence[Any], device: DeviceLike) -> list[Tensor]:
    """Return tensors; arrays are sent to ``device``, or to the device of the first tensor."""
    devices = (value.device for value in values if isinstance(value, Tensor))
    home = chosen_device(name, device) or next(devices, None)
    return [as_tensor(name, value, home) for value in values]


def chosen_device(name: str, device: DeviceLike) -> Device | None:
    """Return the device that a caller names, or None (B-02)."""
    return None if device is None else as_device(name, device)
