"""Streaming of plans on host memory that the device cannot hold, two chunks at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from vkops.gpu.adapters.kompute import Commands
from vkops.gpu.memory.heaps import Heap, Range
from vkops.gpu.run.executor import MAX_STARTED_PIPELINES, Executor, with_reclaim
from vkops.gpu.run.queue import process
from vkops.plan.algebra import optimize
from vkops.plan.chunks import ALIGNMENT, Chunk, Piece, chunks, staged_bytes
from vkops.plan.execute import Bytes
from vkops.plan.region import CopyPlan

Progress = Callable[[int, int], None]
"""Called with the bytes done so far and the bytes in all."""

CHUNK = 16 << 20
"""Bytes of a chunk's outputs: copying them takes long compared with a dispatch, and they are few
compared with all memory."""


def stream(
    executor: Executor,
    plan: CopyPlan,
    inputs: Sequence[Bytes],
    outputs: Sequence[Bytes],
    progress: Progress | None = None,
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
    moved = sum(prod(r.sizes) for output in plan.outputs for r in output.regions)
    has_gaps = moved * plan.element_size < total
    sizes = [
        max(ALIGNMENT, *map(staged_bytes, pieces))
        for pieces in ([chunk.sources for chunk in todo], [chunk.targets for chunk in todo])
    ]
    slots = with_reclaim(lambda: _slots(executor, sizes))

    def run() -> None:
        done = 0
        try:
            for number, chunk in enumerate([*todo, *(None for _ in slots)]):
                slot = slots[number % 2]
                done += slot.finish(outputs)
                if progress is not None:
                    progress(done, total)
                if chunk is not None:
                    if has_gaps:
                        slot.preload(chunk, outputs)
                    slot.start(chunk, inputs)
        finally:
            for slot in slots:
                slot.wait()

    executor.exclusive(run)
    executor.keep_time(None)


def _slots(executor: Executor, sizes: Sequence[int]) -> list[_Slot]:
    return executor.locked(lambda: [_Slot(executor, sizes) for _ in range(2)])


class _Slot:
    """Memory for one chunk, and the chunk that is in it."""

    _running: Commands | None = None

    def __init__(self, executor: Executor, sizes: Sequence[int]) -> None:
        self._executor = executor
        self._pipelines = executor.new_pipelines(MAX_STARTED_PIPELINES)
        self._source, self._target = map(executor.host_heap, sizes)
        self._targets: Sequence[Piece] = ()

    def preload(self, chunk: Chunk, outputs: Sequence[Bytes]) -> None:
        """Send the present content of a chunk's targets, all of which will be fetched."""
        for piece in chunk.targets:
            piece.packed(_bytes(self._target))[...] = piece.of(outputs)

    def start(self, chunk: Chunk, inputs: Sequence[Bytes]) -> None:
        """Send a chunk's sources and start its dispatch."""
        for piece in chunk.sources:
            piece.packed(_bytes(self._source))[...] = piece.of(inputs)
        source = Range(self._source, 0, self._source.ranges.size)
        targets = [Range(self._target, piece.staged, piece.nbytes) for piece in chunk.targets]
        self._targets = chunk.targets
        dispatches = self._executor.prepare(chunk.plan).bind([source], targets)
        if not dispatches:
            return
        *first, last = dispatches
        self._executor.evaluate(first)  # rare: more regions than a table holds
        self._running = self._pipelines.commands(last)
        self._running.start()

    def wait(self) -> None:
        """Wait for the chunk, if there is one: its memory must not be freed before."""
        if self._running is not None:
            self._running.wait()
            self._running = None

    def __del__(self) -> None:
        if not process.forked:
            self.wait()

    def finish(self, outputs: Sequence[Bytes]) -> int:
        """Wait for the chunk, if there is one, and fetch its targets; return their bytes."""
        self.wait()
        for piece in self._targets:
            piece.of(outputs)[...] = piece.packed(_bytes(self._target))
        done = sum(piece.nbytes for piece in self._targets)
        self._targets = ()
        return done


def _bytes(heap: Heap) -> Bytes:
    """The bytes of a heap that the host sees."""
    assert heap.view is not None
    return heap.view
