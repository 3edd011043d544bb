"""Transfers between the host and memory of the device, through memory that both see."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any

import numpy as np

from vkops.extent import Extent, slice_extents
from vkops.gpu.copies import RegionCopy
from vkops.gpu.memory import host_memory
from vkops.gpu.memory.pools import Allocation, Extents, Pool, flush, invalidate, visible
from vkops.gpu.run.open_device import OpenDevice
from vkops.gpu.run.open_devices import with_reclaim
from vkops.plan.execute import Bytes

PIECE = 4 << 20
"""Bytes that are transferred at a time."""

PIECES = 4
"""Pieces that are on their way at a time: the host copies one while the device copies others."""

MAX_RECORDED = 64 << 10
"""Bytes that are written as a part of the commands, without staging memory."""


def write(device: OpenDevice, target: Extents, source: Bytes, written: Allocation) -> None:
    """Copy bytes to memory that the host does not see, that of the allocation ``written``.

    It is done after all that was submitted before, also while this thread records a program.
    """
    name = "a transfer"
    if source.size <= MAX_RECORDED:
        work: list[Any] = []
        start, copy_bytes = 0, device.vulkan.module.OpCopyBytes
        for memory, first, nbytes in target:
            work.append(copy_bytes(memory.native, first, source[start : start + nbytes].tobytes()))
            start += nbytes
        device.submit(work, (), [written], name, now=True)
        return
    for start, stage in _staged(device.vulkan.upload, source.size):
        device.wait(stage.allocation.used)
        part = stage.part
        visible(part)[...] = source[start : start + part.nbytes]
        flush(part)
        copies = regions(device, (part,), slice_extents(target, start, part.nbytes))
        device.submit(copies, [stage.allocation], [written], name, now=True)


def read(device: OpenDevice, source: Extents, used: Allocation) -> Bytes:
    """Return bytes of memory that the host does not see, that of the allocation ``used``."""
    nbytes = sum(extent.nbytes for extent in source)
    found: Bytes = with_reclaim(lambda: host_memory.take(nbytes))
    under_way: deque[tuple[int, int, Extent]] = deque()

    def finish() -> None:
        number, start, part = under_way.popleft()
        device.wait(number)
        invalidate(part)
        found[start : start + part.nbytes] = visible(part)

    for start, stage in _staged(device.vulkan.readback, nbytes):
        if len(under_way) == PIECES:
            finish()
        copies = regions(device, slice_extents(source, start, stage.part.nbytes), (stage.part,))
        number = device.submit(copies, [used], [stage.allocation], "a transfer")
        under_way.append((number, start, stage.part))
    while under_way:
        finish()
    return found


def copy(
    device: OpenDevice,
    source: Extents,
    target: Extents,
    used: Allocation,
    written: Allocation,
    *,
    now: bool = False,
) -> None:
    """Copy bytes from memory to memory.

    While this thread records a program, the copy becomes a part of it, unless it is ``now``.
    """
    device.submit(regions(device, source, target), [used], [written], "a transfer", now=now)


def regions(device: OpenDevice, source: Extents, target: Extents) -> list[Any]:
    """Return the operations that copy bytes to as many others, one after the other."""
    work: list[Any] = []
    done = 0
    for extent in target:
        start = extent.start
        for part in slice_extents(source, done, extent.nbytes):
            rows = np.array([[part.start, start, part.nbytes]], np.uint64)
            copied = RegionCopy(part.resource, extent.resource, rows, ordered=not work)
            work.append(copied.operation(device.vulkan))
            start += part.nbytes
        done += extent.nbytes
    return work


class _Stage:
    """Memory that host and device see; ``part`` is what a piece takes of it."""

    def __init__(self, pool: Pool, nbytes: int) -> None:
        self.allocation: Allocation = with_reclaim(lambda: pool.allocate(nbytes))
        self.part: Extent = self.allocation.extents[0].part(0, nbytes)


def _staged(pool: Pool, nbytes: int) -> Iterator[tuple[int, _Stage]]:
    """The first byte of each piece, and its memory, which is that of the fourth piece before it."""
    size = min(PIECE, pool.max_range)
    count = min(PIECES, -(-nbytes // size))
    stages = [_Stage(pool, min(size, nbytes)) for _ in range(count)]
    for number, start in enumerate(range(0, nbytes, size)):
        stage = stages[number % count]
        stage.part = stage.part.part(0, min(size, nbytes - start))
        yield start, stage
