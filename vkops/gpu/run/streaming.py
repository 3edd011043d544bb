"""Streaming of plans on host memory that the device cannot hold, two chunks at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from vkops.extent import Extent
from vkops.gpu.memory.pools import flush, invalidate, visible
from vkops.gpu.run.encoded_plan import EncodedPlan
from vkops.gpu.run.open_device import OpenDevice
from vkops.gpu.run.open_devices import with_reclaim
from vkops.plan.algebra import optimize
from vkops.plan.chunks import Chunk, chunks, staged_bytes
from vkops.plan.execute import Bytes
from vkops.plan.region import CopyPlan

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
    *,
    chunk_bytes: int = CHUNK,
) -> None:
    """Run a plan on arrays of bytes in host memory; bytes that it does not write stay as they are.

    If ``progress`` raises, or after an interrupt, the content of the outputs is undefined.

    Raises:
        OutOfDeviceMemoryError: not even a chunk fits.
    """
    todo = chunks(optimize(plan), chunk_bytes)
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
        """Take memory of ``size`` bytes twice; with ``keep``, targets have bytes to be kept."""
        self._device = device
        self._keep = keep
        device.check()
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
        """Wait for the chunk, if there is one, and fetch its targets; return their bytes."""
        self._device.wait(self._submission)
        chunk, self._chunk = self._chunk, None
        if chunk is None:
            return 0
        invalidate(self._target)
        target = visible(self._target)
        for piece in chunk.targets:
            piece.of(outputs)[...] = piece.packed(target)
        return sum(piece.nbytes for piece in chunk.targets)
