"""The stores of one byte, as the kernels report them: for ``vkops debug trace``."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

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
from vkops.gpu.run.dispatch import Dispatch
from vkops.gpu.run.executor import Executor, with_reclaim
from vkops.gpu.run.pipelines import group_count, make_algorithm
from vkops.shaders import VARIANTS


class Store(NamedTuple):
    """A store of a byte: who made it, where its value is from, and the bytes from that one on.

    ``source`` is a heap and a byte address in it; None for a constant.
    """

    workgroup: int
    invocation: int
    record: int
    source: tuple[Heap, int] | None
    value: bytes


def stores(executor: Executor, dispatch: Dispatch, address: int) -> list[Store]:
    """Run a dispatch, and return its stores to a byte address of its target.

    Of more than MAX_TRACED_STORES, the first are returned.
    """
    spirv = VARIANTS[dispatch.kernel.name].compile(defines={"TRACE": 1})
    vectors = with_reclaim(
        lambda: executor.exclusive(lambda: _run(executor, dispatch, spirv, address))
    )
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
    kompute = executor.queue.kompute
    algorithm = make_algorithm(kompute.manager, dispatch, heap, spirv)
    kompute.run(kompute.kp.OpAlgoDispatch(algorithm))
    algorithm.destroy()
    return np.array(traced)


def _store(dispatch: Dispatch, address: int, writer: Words, stored: Words, value: Words) -> Store:
    by, what = Writer(*writer.tolist()), Stored(*stored.tolist())
    constant = what.source == CONSTANT
    return Store(
        by.group_y * group_count(dispatch)[0] + by.group_x,
        by.invocation,
        by.record // RECORD_VECTORS,
        None if constant else (dispatch.sources[what.source], what.address),
        value.tobytes()[address - what.first : what.nbytes],
    )
