"""The text that stands for a tensor: its values as NumPy prints them, and what it is."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from vkops.plan.region import MAX_TERMS
from vkops.tensors.assignment import Assignment

MAX_SHOWN = 10_000
"""Elements that are read for a text that leaves out some of a tensor's."""

_NAME = "vkops.Tensor("


def describe(tensor: Assignment) -> str:
    """The text, with as many elements as NumPy's print options allow; only these are read.

    Where they cannot be read now, as in a signal handler, or NumPy cannot print them, as dates
    without a unit and text that is not initialized, the text has ``...`` instead.
    """
    options = np.get_printoptions()
    is_short = tensor.size <= options["threshold"]
    edge = tensor.size if is_short else options["edgeitems"]
    try:
        values = _values(tensor, edge, 0 if not is_short else tensor.size)
    except Exception:  # a DeviceError, or what NumPy raises of such elements
        values = "..."
    details = [f"dtype={tensor.dtype}", f"device={tensor.device.name!r})"]
    if not (tensor.size and is_short) or values == "...":
        details.insert(0, f"shape={tensor.shape}")
    end = ", ".join(details)
    width = len(_NAME + values) - values.rfind("\n") - 1 + len(end)
    between = " " if width < options["linewidth"] else "\n" + " " * len(_NAME)
    return f"{_NAME}{values},{between}{end}"


def _values(tensor: Assignment, edge: int, threshold: int) -> str:
    """The values, of which ``edge`` at each end of an axis are shown if it has more."""
    maximum = 2 * edge + 1  # NumPy leaves out the one in the middle
    long = [axis for axis, size in enumerate(tensor.shape) if size > maximum]
    if len(long) > MAX_TERMS or (
        long and prod(min(size, maximum) for size in tensor.shape) > MAX_SHOWN
    ):
        return "..."
    array = _ends(tensor, long, edge)
    return np.array2string(
        array, separator=", ", prefix=_NAME, threshold=threshold, edgeitems=edge, suffix=","
    )


def _ends(tensor: Assignment, long: list[int], edge: int) -> npt.NDArray[Any]:
    """The elements at both ends of long axes, and one between them: gathered with one dispatch."""
    if not long:
        return tensor.numpy()
    places = [np.r_[: edge + 1, tensor.shape[axis] - edge : tensor.shape[axis]] for axis in long]
    front = tuple(range(len(long)))
    gathered = tensor.moveaxis(long, front)[np.ix_(*places)]
    return np.moveaxis(gathered.numpy(), front, long)
