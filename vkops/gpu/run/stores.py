"""The stores of one byte by kernels, which report them, and copies: for ``vkops debug trace``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from vkops.gpu.copies import Copy, ImageCopy
from vkops.gpu.kernels.encoding import Words
from vkops.gpu.kernels.layout import (
    CONSTANT,
    MAX_TRACED_STORES,
    RECORD_VECTORS,
    TABLE_BYTES,
    TRACED_STORE,
    Stored,
    Traced,
    Writer,
)
from vkops.gpu.memory.heaps import Heap
from vkops.gpu.run.encoded_plan import Dispatch, Work
from vkops.gpu.run.executor import Executor
from vkops.gpu.run.open_queues import with_reclaim
from vkops.shaders import VARIANTS


class Store(NamedTuple):
    """A store of a byte: what made it, where its value is from, and the bytes from that one on.

    ``writer`` has the parts of the device's work by name. ``source`` is a heap and a byte address
    in it; None for a constant. ``value`` is empty if the device does not report it.
    """

    writer: Mapping[str, str]
    source: tuple[Heap, int] | None
    value: bytes = b""


def stores(executor: Executor, work: Work, address: int) -> list[Store]:
    """Run a dispatch or a copy, and return its stores to a byte address of its target.

    Of more than MAX_TRACED_STORES, the first are returned.
    """
    if not isinstance(work, Dispatch):
        executor.run([work])
        return list(_copied(work, address))
    dispatch = work
    spirv = VARIANTS[dispatch.kernel.name].compile(defines={"TRACE": 1})
    vectors = with_reclaim(lambda: _run(executor, dispatch, spirv, address))
    count = min(int(vectors[0, 0]), MAX_TRACED_STORES)
    return [
        _store(dispatch, address, *found)
        for found in vectors[1:].reshape(-1, len(TRACED_STORE), 4)[:count]
    ]


def _run(executor: Executor, dispatch: Dispatch, spirv: bytes, address: int) -> Words:
    """Run a dispatch; return the vectors behind its region table."""
    size = TABLE_BYTES + 16 * (1 + len(TRACED_STORE) * MAX_TRACED_STORES)
    heap = executor.host_heap(size)
    assert heap.view is not None
    words = heap.view.view(np.uint32)
    words[: dispatch.words.size] = dispatch.words
    traced: Words = words[TABLE_BYTES // 4 :].reshape(-1, 4)
    traced[0] = Traced(stores=0, address=address)
    bindings = [(number, False) for number in range(dispatch.kernel.bindings)]
    pipeline = executor.queue.kompute.pipeline(spirv, [bindings])
    run_with_table(executor, dispatch, heap, pipeline)
    return np.array(traced)


def run_with_table(executor: Executor, dispatch: Dispatch, table: Heap, pipeline: Any) -> None:
    """Run a dispatch with a build of its kernel that writes to the region table, too."""
    executor.run([_Traced(dispatch, table, pipeline)])


class _Traced(NamedTuple):
    """A dispatch that reads its table from a heap, and reports its stores behind it."""

    dispatch: Dispatch
    table: Heap
    pipeline: Any

    def operation(self, queue: Any) -> Any:
        """Return the operation of the native module."""
        parts = [heap.part for heap in (self.table, *self.dispatch.heaps)]
        return queue.native.OpDispatch(self.pipeline, parts, self.dispatch.groups)


def _store(dispatch: Dispatch, address: int, writer: Words, stored: Words, value: Words) -> Store:
    by, what = Writer(*writer.tolist()), Stored(*stored.tolist())
    constant = what.source == CONSTANT
    numbers = {
        "Record": by.record // RECORD_VECTORS,
        "Workgroup": by.group_y * dispatch.groups[0] + by.group_x,
        "Invocation in it": by.invocation,
    }
    return Store(
        {"Kernel": dispatch.kernel.name, **{name: str(n) for name, n in numbers.items()}},
        None if constant else (dispatch.sources[what.source], what.address),
        value.tobytes()[address - what.first : what.nbytes],
    )


def _copied(work: Copy, address: int) -> Iterator[Store]:
    """Yield the stores of a copy to a byte address of its target, from its list of regions."""
    rows = work.regions.astype(np.int64)
    if isinstance(work, ImageCopy):
        x, y, width, height, start, pitch = rows.T
        image, buffer = (work.offset + y * work.pitch + x, work.pitch), (start, pitch)
        target, source = (image, buffer) if work.over_target else (buffer, image)
    else:
        start, begin, width = rows.T
        height, target, source = np.array(1), (begin, width), (start, width)
    row, column = np.divmod(address - target[0], target[1])
    places = source[0] + row * source[1] + column
    for number in np.flatnonzero((row >= 0) & (row < height) & (column < width)).tolist():
        writer = {"Copy": work.command, "Region of the copy": f"{number + 1} of {len(rows)}"}
        yield Store(writer, None if work.source is None else (work.source, int(places[number])))
