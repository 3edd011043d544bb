"""Streaming of plans on host memory that the device cannot hold, two chunks at a time."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod

from vkops.errors import OutOfDeviceMemoryError
from vkops.gpu.adapters.kompute import Commands
from vkops.gpu.kernels.choice import VECTOR
from vkops.gpu.memory.heaps import ALIGNMENT, Heap, Range
from vkops.gpu.run.executor import MAX_STARTED_PIPELINES, Executor, with_reclaim
from vkops.gpu.run.queue import process
from vkops.plan.algebra import optimize
from vkops.plan.cut import cut
from vkops.plan.execute import Bytes
from vkops.plan.region import CopyPlan, Output, Region
from vkops.plan.rounding import ceil_div, round_up

Progress = Callable[[int, int], None]
"""Called with the bytes done so far and the bytes in all."""

CHUNK = 16 << 20
"""Bytes of a chunk's inputs, and of its outputs: copying them takes long compared with a
dispatch, and they are few compared with all memory."""

MAX_CHUNKS = 1 << 16
GAP = 4096
"""Bytes between two pieces of an input from which they are sent separately."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Bytes of an input or an output, and their offset in staging memory."""

    array: int
    start: int
    nbytes: int
    staged: int

    def of(self, arrays: Sequence[Bytes]) -> Bytes:
        """Return its bytes of the arrays."""
        return arrays[self.array][self.start : self.start + self.nbytes]

    def on(self, heap: Heap) -> Range:
        """Return its range of staging memory."""
        return Range(heap, self.staged, self.nbytes)


@dataclass(frozen=True, slots=True)
class Chunk:
    """A part of a plan: the bytes to send, the plan to run on them, and the bytes to fetch."""

    plan: CopyPlan
    sources: Sequence[Piece]
    targets: Sequence[Piece]


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
    room = max(_staged(pieces) for chunk in todo for pieces in (chunk.sources, chunk.targets))
    slots = with_reclaim(lambda: _slots(executor, room))

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


def _slots(executor: Executor, room: int) -> list[_Slot]:
    return executor.locked(lambda: [_Slot(executor, room) for _ in range(2)])


# -- chunks ----------------------------------------------------------------------------------------


def chunks(plan: CopyPlan, limit: int) -> list[Chunk]:
    """Cut a plan into chunks that read and write at most ``limit`` bytes each.

    All outputs are cut into the same number of parts, so that outputs that share an input's rows
    share them in each chunk, too.

    Raises:
        OutOfDeviceMemoryError: the bytes that a chunk needs are too far apart.
    """
    nbytes = max([sum(output.nbytes for output in plan.outputs), *plan.inputs])
    count = ceil_div(nbytes, limit)
    while count <= MAX_CHUNKS:
        parts = [_parts(output.nbytes, count) for output in plan.outputs]
        whole = cut(plan, [[n] for n in plan.inputs], parts)
        made = [_chunk(whole, parts, number) for number in range(count)]
        if all(_staged(pieces) <= limit for c in made for pieces in (c.sources, c.targets)):
            return made
        count *= 2
    raise OutOfDeviceMemoryError(
        f"{nbytes} bytes do not fit on the device, and cannot be streamed: the elements of each "
        f"{limit} bytes of the outputs are too far apart in the inputs"
    )


def _parts(nbytes: int, count: int) -> list[int]:
    """The bytes of equal parts that begin at whole vectors; the last are shorter, or empty."""
    size = round_up(ceil_div(nbytes, count), VECTOR)
    edges = [min(nbytes, size * k) for k in range(count + 1)]
    return [end - start for start, end in pairwise(edges)]


def _chunk(whole: CopyPlan, parts: Sequence[Sequence[int]], number: int) -> Chunk:
    """The chunk that makes one part of each output."""
    size = whole.element_size
    outputs = [whole.outputs[index * len(sizes) + number] for index, sizes in enumerate(parts)]
    spans = [
        (index, parts[index][0] * number, output.nbytes) for index, output in enumerate(outputs)
    ]
    targets = _stage(span for span in spans if span[2])
    sources = _sources([region for output in outputs for region in output.regions], size)
    plan = CopyPlan(
        size,
        (_staged(sources),),
        tuple(
            Output(output.nbytes, tuple(_moved(r, sources, size) for r in output.regions))
            for output in outputs
            if output.nbytes
        ),
    )
    return Chunk(plan, sources, targets)


def _sources(regions: Iterable[Region], size: int) -> list[Piece]:
    """The bytes of all inputs that regions read, without the long gaps between them."""
    spans: list[tuple[int, int, int]] = []
    for array, start, end in sorted(_span(r, size) for r in regions if r.input is not None):
        if spans and spans[-1][0] == array and start <= spans[-1][2] + GAP:
            spans[-1] = (array, spans[-1][1], max(end, spans[-1][2]))
        else:
            spans.append((array, start, end))
    return _stage((array, start, end - start) for array, start, end in spans)


def _span(region: Region, size: int) -> tuple[int, int, int]:
    """Input, and the bytes of it from the first to the last that a region reads."""
    assert region.input is not None
    low, high = region.source_view.bounds
    # Vectors stay aligned.
    return region.input, low * size // VECTOR * VECTOR, (high + 1) * size


def _stage(spans: Iterable[tuple[int, int, int]]) -> list[Piece]:
    """Assign offsets in staging memory, one after the other, to (array, start, bytes)."""
    pieces: list[Piece] = []
    for array, start, nbytes in spans:
        pieces.append(Piece(array, start, nbytes, _staged(pieces)))
    return pieces


def _staged(pieces: Sequence[Piece]) -> int:
    """The bytes of staging memory that pieces need."""
    return round_up(pieces[-1].staged + pieces[-1].nbytes, ALIGNMENT) if pieces else 0


def _moved(region: Region, sources: Sequence[Piece], size: int) -> Region:
    """The region that reads from staging memory."""
    if region.input is None:
        return region
    array, start, _ = _span(region, size)
    piece = sources[bisect_right(sources, (array, start), key=lambda p: (p.array, p.start)) - 1]
    moved = (piece.staged - piece.start) // size
    return region.shift(0, moved).renumber({region.input: 0})


# -- slots -----------------------------------------------------------------------------------------


class _Slot:
    """Memory for one chunk, and the chunk that is in it."""

    _running: Commands | None = None

    def __init__(self, executor: Executor, size: int) -> None:
        self._executor = executor
        self._pipelines = executor.new_pipelines(MAX_STARTED_PIPELINES)
        self._source, self._target = executor.host_heap(size), executor.host_heap(size)
        self._targets: Sequence[Piece] = ()

    def preload(self, chunk: Chunk, outputs: Sequence[Bytes]) -> None:
        """Send the present content of a chunk's targets, all of which will be fetched."""
        for piece in chunk.targets:
            piece.on(self._target).bytes[...] = piece.of(outputs)

    def start(self, chunk: Chunk, inputs: Sequence[Bytes]) -> None:
        """Send a chunk's sources and start its dispatch."""
        for piece in chunk.sources:
            piece.on(self._source).bytes[...] = piece.of(inputs)
        source = Range(self._source, 0, self._source.ranges.size)
        targets = [piece.on(self._target) for piece in chunk.targets]
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
            piece.of(outputs)[...] = piece.on(self._target).bytes
        done = sum(piece.nbytes for piece in self._targets)
        self._targets = ()
        return done
