"""The NumPy executor: what a plan means, stated as plainly as possible.

Every other executor is tested against this one, so it shares no code with them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import as_strided

from vkops.plan.region import CopyPlan, Fill, Ints

Bytes = npt.NDArray[np.uint8]


def packed_bytes(array: npt.NDArray[Any]) -> Bytes:
    """An array's elements as bytes, row by row: a view where they lie so."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def execute(
    plan: CopyPlan, inputs: Sequence[Bytes], outputs: Sequence[Bytes] | None = None
) -> list[Bytes]:
    """Run a plan with NumPy.

    Args:
        plan: what to move.
        inputs: one array of bytes per plan input, at least as long as the plan says.
        outputs: arrays of bytes to write into; new zeroed ones if left out.

    Returns:
        The outputs, one array of bytes each.

    Raises:
        IndexError: a region leaves an array.

    >>> from vkops.plan import CopyPlan, Fill, Output, Region
    >>> plan = CopyPlan(1, (), (Output(4, (Region((2,), 1, (2,), Fill(b"x")),)),))
    >>> execute(plan, [])[0].tolist()
    [0, 120, 0, 120]
    """
    size = plan.element_size
    if outputs is None:
        outputs = [np.zeros(output.nbytes, np.uint8) for output in plan.outputs]
    for output, array in zip(plan.outputs, outputs, strict=True):
        for region in output.regions:
            target = _box(array, size, region.dst_offset, region.sizes, region.dst_strides)
            if isinstance(region.source, Fill):
                target[...] = np.frombuffer(region.source.pattern, np.uint8)
            else:
                read = region.source
                target[...] = _box(
                    inputs[read.input], size, read.offset, region.sizes, read.strides
                )
    return list(outputs)


def _box(array: Bytes, size: int, offset: int, sizes: Ints, strides: Ints) -> Bytes:
    """View a box of elements as bytes, refusing a box that leaves the array."""
    reach = [(n - 1) * stride for n, stride in zip(sizes, strides, strict=True)]
    first = offset + sum(r for r in reach if r < 0)
    last = offset + sum(r for r in reach if r > 0)
    if first < 0 or (last + 1) * size > array.size:
        raise IndexError(
            f"region reaches elements {first} to {last}, the array has {array.size // size}"
        )
    return as_strided(
        array[offset * size :],
        shape=(*sizes, size),
        strides=(*(stride * size for stride in strides), 1),
    )
