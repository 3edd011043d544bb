"""Pinned arrays: NumPy arrays in memory of the host that a device reads and writes directly."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

import numpy as np
import numpy.typing as npt

from vkops.extent import Extent
from vkops.gpu.memory.pools import Allocation, SeparatePool, living

observers: list[Callable[[str], None]] = []
"""Functions that are called for an access to an array while a transfer may still use it."""


class PinnedMemory:
    """Pinned bytes for NumPy's array interface: their arrays, and views of these, keep them."""

    __slots__ = ("__array_interface__", "__weakref__", "allocation", "extent")

    def __init__(self, allocation: Allocation, nbytes: int) -> None:
        self.allocation: Allocation = allocation
        self.extent: Extent = allocation.extents[0].part(0, nbytes)
        self.__array_interface__: dict[str, Any] = {
            "data": (self.extent.resource.address, False),
            "shape": (nbytes,),
            "typestr": "|u1",
            "version": 3,
        }


class PinnedPart(NamedTuple):
    """The bytes of an array in pinned memory."""

    memory: PinnedMemory
    extent: Extent

    @property
    def allocation(self) -> Allocation:
        """The memory, for submissions that use it."""
        return self.memory.allocation

    @property
    def can_be_written(self) -> bool:
        """Whether a device can write it without overwriting bytes beside it that the host wrote.

        Memory that is not coherent is invalidated in whole atoms (nonCoherentAtomSize): this would
        discard bytes that the host wrote to the rest of an atom.
        """
        memory, start, nbytes = self.extent
        atom = memory.device.info.limits.non_coherent_atom_size
        is_end = start + nbytes == self.memory.extent.nbytes
        return memory.is_coherent or (start % atom == 0 and (is_end or nbytes % atom == 0))


_living: WeakValueDictionary[int, PinnedMemory] = WeakValueDictionary()


def allocate(pool: SeparatePool, nbytes: int) -> npt.NDArray[np.uint8]:
    """Return an array of bytes in pinned memory of its own; the content is undefined."""
    memory = PinnedMemory(pool.allocate(nbytes), nbytes)
    _living[id(memory)] = memory
    return np.asarray(memory)


def find(array: npt.NDArray[Any]) -> PinnedPart | None:
    """Return the pinned memory that an array begins in; the array may be any view of it."""
    if not _living or not array.size:
        return None
    address: int = array.__array_interface__["data"][0]
    for memory in living(_living):
        extent = memory.extent
        start = address - extent.resource.address
        if 0 <= start < extent.nbytes:
            return PinnedPart(memory, extent.part(start, array.nbytes))
    return None


def find_on(vulkan: Any, array: npt.NDArray[np.uint8]) -> PinnedPart | None:
    """Return the pinned memory of contiguous bytes, if the VulkanDevice can use it."""
    part = find(array)
    return part if part and part.extent.resource.device is vulkan else None


def access(array: npt.NDArray[Any], *, written: bool = False) -> None:
    """Report a call that uses an array while a transfer may still use it, to observers.

    Without observers, wait for the transfer.
    """
    part = find(array)
    if part is None:
        return
    vulkan = part.extent.resource.device
    number = part.allocation.used if written else part.allocation.written
    if vulkan.has_waited(number):
        return
    does, doing = ("written", "uses") if written else ("read", "writes")
    for observer in [*observers]:
        observer(
            f"a pinned array of {array.shape} {array.dtype} is {does} while a transfer of "
            f"{vulkan.info.label} {doing} it: call event.wait(), event.done or await the event "
            "that the call with wait=False has returned before"
        )
    vulkan.wait(number)
