"""Transfers between the host and memory of the device, and streaming of plans on host memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from math import prod

import numpy as np

from vkops.extent import Extent, slice_extents
from vkops.gpu.adapters.kompute import Native
from vkops.gpu.copies.encoded import copy_regions
from vkops.gpu.memory import host_memory
from vkops.gpu.memory.pinned import find_on
from vkops.gpu.memory.pools import Allocation, Extents, Pool, flush, invalidate, visible
from vkops.gpu.run.encoded_plan import EncodedPlan
from vkops.gpu.run.open_device import OpenDevice, with_reclaim
from vkops.plan.algebra import optimize
from vkops.plan.chunks import Chunk, chunks, staged_bytes
from vkops.plan.execute import Bytes
from vkops.plan.region import CopyPlan
from vkops.system.processes import cores

# -- transfers, through memory that both see ------------------------------------------------------

PIECE = 2 << 20
"""Bytes that are transferred at a time, for each thread that copies them on the host: the caches of
most processors hold the pieces that are on their way."""

MAX_THREADS = 4
"""Threads that copy on the host: one moves 5 to 10 GB/s, and a fast link more than 25."""

PIECES = 4
"""Pieces that are on their way at a time: the host copies one while the device copies others."""

MAX_RECORDED = 64 << 10
"""Bytes that are written as a part of the commands, without staging memory."""


def write(device: OpenDevice, target: Extents, source: Bytes, written: Allocation) -> None:
    """Copy bytes to memory of the allocation ``written``, which the host does not see.

    The device copies them after all work that was submitted before, even while this thread records
    a program. When this returns, the source can be changed.
    """
    name = "a transfer"
    if source.size <= MAX_RECORDED:
        work: list[Native] = []
        start, copy_bytes = 0, device.vulkan.module.OpCopyBytes
        for memory, first, nbytes in target:
            work.append(copy_bytes(memory.native, first, source[start : start + nbytes].tobytes()))
            start += nbytes
        device.submit(work, (), [written], name, now=True)
        return
    number = send(device, target, source, written)
    if number is not None:
        device.vulkan.wait_for(number)
        return
    copier, reused, queued = _Copier(device, source.size), written.used, has_queue(device, target)
    for start, stage, part in copier.staged(device.vulkan.upload[queued]):
        device.vulkan.wait_for(stage.used)
        copier.copy(visible(part), source[start : start + part.nbytes])
        flush(part)
        copies = regions(device, (part,), slice_extents(target, start, part.nbytes))
        if queued:
            _transfer(device, copies, (), reused, [stage], [written])
        else:
            device.submit(copies, [stage], [written], name, now=True)


def send(device: OpenDevice, target: Extents, source: Bytes, written: Allocation) -> int | None:
    """Begin to copy bytes of a pinned array; return the submission, or None if it is not pinned."""
    pinned = find_on(device.vulkan, source)
    if pinned is None:
        return None
    flush(pinned.extent)
    copies = regions(device, (pinned.extent,), target)
    if has_queue(device, target):
        after = [pinned.allocation.used]
        return _transfer(device, copies, after, written.used, [pinned.allocation], [written])
    return device.submit(copies, [pinned.allocation], [written], "a transfer", now=True)


def fetch(device: OpenDevice, source: Extents, target: Bytes, used: Allocation) -> int | None:
    """Begin to copy bytes to a pinned array; return the submission, or None if it cannot."""
    pinned = find_on(device.vulkan, target)
    if pinned is None or not pinned.can_be_written:
        return None
    # What the host wrote to the array before must not arrive after the device's bytes.
    flush(pinned.extent)
    copies = regions(device, source, (pinned.extent,))
    if has_queue(device, source):
        after = [used.written, pinned.allocation.used]
        number = _transfer(device, copies, after, 0, (), [pinned.allocation])
    else:
        number = device.submit(copies, [used], [pinned.allocation], "a transfer", now=True)
    # The host sees the bytes only after it has invalidated its memory, and it can do that only when
    # the device has written them: in such memory, the transfer cannot run in the background.
    if not pinned.extent.resource.is_coherent:
        device.wait(number)
        invalidate(pinned.extent)
    return number


def read(device: OpenDevice, source: Extents, used: Allocation) -> Bytes:
    """Return bytes of the allocation ``used``, whose memory the host does not see."""
    nbytes = sum(extent.nbytes for extent in source)
    content: Bytes = with_reclaim(lambda: host_memory.promised(nbytes))
    read_into(device, source, content, used)
    return content


def read_into(device: OpenDevice, source: Extents, target: Bytes, used: Allocation) -> None:
    """Copy bytes of the allocation ``used``, whose memory the host does not see, to an array."""
    number = fetch(device, source, target, used)
    if number is not None:
        device.vulkan.wait_for(number)
        return
    copier = _Copier(device, target.size)
    under_way: deque[tuple[int, int, Extent]] = deque()

    after, queued = [used.written], has_queue(device, source)

    def finish() -> None:
        number, start, part = under_way.popleft()
        device.vulkan.wait_for(number)
        invalidate(part)
        copier.copy(target[start : start + part.nbytes], visible(part))

    # While the host copies one piece, the device copies the next ones.
    for start, stage, part in copier.staged(device.vulkan.readback[queued]):
        if len(under_way) == PIECES:
            finish()
        copies = regions(device, slice_extents(source, start, part.nbytes), (part,))
        if queued:
            device.vulkan.wait_for(stage.used)  # an earlier owner's copy may still use the memory
            number = _transfer(device, copies, after, 0, (), [stage])
        else:
            number = device.submit(copies, [used], [stage], "a transfer")
        under_way.append((number, start, part))
    while under_way:
        finish()


def has_queue(device: OpenDevice, memory: Extents) -> bool:
    """Whether the queue for transfers can use memory of the device.

    Reads by that queue are not noted in the allocation. They need not be: work that is submitted to
    the other queue later waits for all transfers.
    """
    is_transferred = all(extent.resource.native.is_transferred for extent in memory)
    return is_transferred and device.vulkan.native.transfers


def _transfer(
    device: OpenDevice,
    copies: list[Native],
    after: Sequence[int],
    reused: int,
    uses: Sequence[Allocation],
    writes: Sequence[Allocation],
) -> int:
    """Submit copies to the queue for transfers, after other submissions; return the number.

    ``reused`` is the last submission that used the memory to which the copies write.
    """
    device.make_ready()
    vulkan = device.vulkan
    return vulkan.start(vulkan.native.transfer, copies, after, reused, uses, writes, "a transfer")


def regions(device: OpenDevice, source: Extents, target: Extents) -> list[Native]:
    """Return the operations that copy the bytes of ``source`` to those of ``target``, in order."""
    work: list[Native] = []
    done = 0
    for extent in target:
        start = extent.start
        for part in slice_extents(source, done, extent.nbytes):
            rows = np.array([[part.start, start, part.nbytes]], np.uint64)
            copied = copy_regions(part.resource, extent.resource, rows, ordered=not work)
            work.append(copied.operation(device.vulkan))
            start += part.nbytes
        done += extent.nbytes
    return work


class _Copier:
    """Copies bytes to or from staging memory, in pieces and without holding Python's lock."""

    def __init__(self, device: OpenDevice, nbytes: int) -> None:
        self._nbytes = nbytes
        # CPU drivers copy on the cores of the host, and other work needs some as well.
        count = 1 if device.info.type == "CPU" else min(MAX_THREADS, cores() // 2)
        threads = max(1, min(count, nbytes // PIECE))
        self._size = PIECE * threads
        self.copy: Callable[[Bytes, Bytes], None] = device.vulkan.module.Copier(threads).copy

    def staged(self, pool: Pool) -> Iterator[tuple[int, Allocation, Extent]]:
        """Yield the first byte of each piece, staging memory, and the part of it for the piece.

        Pieces take turns with the memory: each gets that of the piece ``PIECES`` before it.
        """
        nbytes, size = self._nbytes, min(self._size, pool.max_range)
        count = min(PIECES, -(-nbytes // size))
        stages = [with_reclaim(lambda: pool.allocate(min(size, nbytes))) for _ in range(count)]
        for number, start in enumerate(range(0, nbytes, size)):
            stage = stages[number % count]
            yield start, stage, stage.extents[0].part(0, min(size, nbytes - start))


# -- streaming of plans on memory that the device cannot hold, two chunks at a time ---------------

Progress = Callable[[int, int], None] | None
"""A function that is called with the bytes done so far and the bytes in all, or None."""

CHUNK = 16 << 20
"""Bytes of a chunk's outputs: copying them takes long compared with a dispatch, and they are few
compared with all memory."""


def stream(
    device: OpenDevice,
    plan: CopyPlan,
    inputs: Sequence[Bytes],
    outputs: Sequence[Bytes],
    progress: Progress = None,
) -> None:
    """Run a plan on arrays of bytes in host memory; bytes that it does not write stay as they are.

    If ``progress`` raises, or after an interrupt, the content of the outputs is undefined.
    """
    todo = chunks(optimize(plan), CHUNK)
    total = sum(output.nbytes for output in plan.outputs)
    moved = sum(prod(region.sizes) for _, region in plan.regions) * plan.element_size
    room = max(staged_bytes(pieces) for chunk in todo for pieces in (chunk.sources, chunk.targets))
    stages = with_reclaim(lambda: [_Stage(device, room, keep=moved < total) for _ in range(2)])
    done = 0
    for number, chunk in enumerate([*todo, *(None for _ in stages)]):
        stage = stages[number % 2]
        done += stage.finish(outputs)
        if progress is not None:
            progress(done, total)
        if chunk is not None:
            stage.start(chunk, inputs, outputs)


class _Stage:
    """Staging memory for one chunk, and the chunk that is in it."""

    def __init__(self, device: OpenDevice, size: int, *, keep: bool) -> None:
        """Take ``size`` bytes for sources and for targets.

        With ``keep``, chunks do not write all bytes of their targets: these are sent first.
        """
        self._device = device
        self._keep = keep
        device.check_usable()
        with device.vulkan.lock:
            self._source: Extent = device.vulkan.new_memory(size, "upload").whole
            self._target: Extent = device.vulkan.new_memory(size, "readback").whole
        self._chunk: Chunk | None = None
        self._submission = 0

    def start(self, chunk: Chunk, inputs: Sequence[Bytes], outputs: Sequence[Bytes]) -> None:
        """Send what a chunk reads, and begin to run it."""
        source, target = visible(self._source), visible(self._target)
        for piece in chunk.sources:
            piece.packed(source)[...] = piece.of(inputs)
        for piece in chunk.targets if self._keep else ():
            piece.packed(target)[...] = piece.of(outputs)
        flush(self._source, self._target)
        written = [(self._target.part(p.staged, p.nbytes),) for p in chunk.targets]
        device = self._device
        plan = EncodedPlan(chunk.plan, device.tuning)
        work = plan.operations(device.vulkan, [(self._source,)], written)
        self._chunk = chunk
        self._submission = device.submit(work, (), (), "a stream")

    def finish(self, outputs: Sequence[Bytes]) -> int:
        """Wait for the chunk, if there is one, fetch its targets, and return their bytes."""
        self._device.wait(self._submission)
        chunk, self._chunk = self._chunk, None
        if chunk is None:
            return 0
        invalidate(self._target)
        target = visible(self._target)
        for piece in chunk.targets:
            piece.of(outputs)[...] = piece.packed(target)
        return sum(piece.nbytes for piece in chunk.targets)
