"""The traffic of a plan, by the kernels that execute it on a GPU."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from vkops.gpu.kernels.encoding import Tuning, Words
from vkops.gpu.run.encoded_plan import EncodedPlan
from vkops.gpu.traffic.count import Traffic, count
from vkops.plan.region import CopyPlan
from vkops.plan.rounding import round_up

ALIGNMENT = 256
"""Tensors begin at multiples of so many bytes."""

CACHE = 1 << 20
"""Bytes that a GPU's cache keeps, by default."""

MAX_BYTES = 1 << 31
"""Bytes of all tensors of a plan whose traffic can be counted."""

Arrays = Mapping[int, npt.NDArray[Any]]


class PartTraffic(NamedTuple):
    """The traffic of the regions that one kernel executes, and the bytes that they must move."""

    kernel: str
    dispatches: int
    must_load: int
    must_store: int
    traffic: Traffic


def plan_traffic(
    plan: CopyPlan, tuning: Tuning, indices: Arrays = MappingProxyType({}), cache: int = CACHE
) -> list[PartTraffic]:
    """Count the traffic of all parts of a plan that shaders execute, with tensors side by side.

    ``indices`` are the values of inputs that hold some, by number; others are taken as random.
    Empty if the tensors have more than MAX_BYTES.
    """
    sizes = [*plan.inputs, *[c.nbytes for c in plan.constants], *[o.nbytes for o in plan.outputs]]
    ends = np.cumsum([0, *[round_up(size, ALIGNMENT) for size in sizes]]).tolist()
    if ends[-1] > MAX_BYTES:
        return []
    first_output = len(sizes) - len(plan.outputs)
    inputs, outputs = ends[:first_output], ends[first_output:-1]
    values = IndexValues({inputs[number]: array for number, array in indices.items()})
    heap: Any = None  # nothing is read or written
    return [
        PartTraffic(
            dispatches[0].table.kernel.name,
            len(dispatches),
            part.bytes_read,
            part.bytes_written,
            count(dispatches, values, cache),
        )
        for part, dispatches in EncodedPlan(plan, tuning).in_one_heap(heap, inputs, outputs)
    ]


class IndexValues:
    """Reads words of arrays, by the addresses of their first bytes; other words are random."""

    def __init__(self, arrays: Arrays) -> None:
        self._arrays = {start // 4: a.reshape(-1).view(np.uint32) for start, a in arrays.items()}

    def __call__(self, at: Words, bound: Words) -> tuple[Words, Words]:
        """Return the words at addresses, and those behind them; random ones are below ``bound``."""
        low = (at * np.uint32(2654435761) >> 8) % np.maximum(bound, 1)
        high = np.zeros_like(at)
        for start, words in self._arrays.items():
            place = at - np.uint32(start)
            inside = place < words.size
            low[inside], high[inside] = words[place[inside]], words[place[inside] | 1]
        return low, high
