"""The NumPy executor, which defines what a plan does.

Every other executor is tested against this one, so it shares no code with them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import as_strided

from vkops.errors import show
from vkops.plan.region import CopyPlan, Fill, Indices, Region
from vkops.plan.validation import refuse, validate
from vkops.plan.view import View

Bytes = npt.NDArray[np.uint8]

_LOW_BITS = 2**32 - 1
"""Mask of the bits of numbers and addresses that are used if indices have limits."""


def packed_bytes(array: npt.NDArray[Any]) -> Bytes:
    """Return an array's elements as bytes in row-major order; a view if no copy is needed."""
    return np.ascontiguousarray(_without_fields(array)).reshape(-1).view(np.uint8)


def join_bytes(arrays: Sequence[npt.NDArray[Any]], target: Bytes) -> None:
    """Copy the elements of arrays of one data type, each array in row-major order, to ``target``.

    ``target`` has as many bytes as the arrays together.
    """
    if arrays[0].dtype.names:
        arrays = [*map(_without_fields, arrays)]
    np.concatenate(arrays, axis=None, out=target.view(arrays[0].dtype))


def _without_fields(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """View structured elements as plain bytes: NumPy would not copy the padding of the fields."""
    dtype = array.dtype
    return array.view(np.dtype((np.void, dtype.itemsize))) if dtype.names else array


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
        InvalidDescError: the plan breaks a rule (``vkops.plan.validate``), or an array is missing,
            too short, or not one of bytes (PLAN-06).

    >>> from vkops.plan import CopyPlan, Fill, Output, Region, View
    >>> plan = CopyPlan(1, (), (Output(4, (Region(View((2,), (2,), 1), Fill(b"x")),)),))
    >>> execute(plan, [])[0].tolist()
    [0, 120, 0, 120]
    """
    validate(plan)
    _check_arrays("inputs", inputs, plan.inputs)
    if outputs is not None:
        _check_arrays("outputs", outputs, [output.nbytes for output in plan.outputs], written=True)
    return execute_unchecked(plan, inputs, outputs)


def execute_unchecked(
    plan: CopyPlan, inputs: Sequence[Bytes], outputs: Sequence[Bytes] | None = None
) -> list[Bytes]:
    """Run a plan that vkops made itself: ``execute`` without the checks."""
    size = plan.element_size
    inputs = [*inputs, *(constant.array().view(np.uint8) for constant in plan.constants)]
    if outputs is None:
        outputs = [np.zeros(output.nbytes, np.uint8) for output in plan.outputs]
    for output, array in zip(plan.outputs, outputs, strict=True):
        for region in sorted(output.regions, key=lambda region: region.kind == "scatter"):
            if region.indices is not None:
                _copy_indexed(region, region.indices, inputs, array, size)
                continue
            source = region.source
            target = _elements(array, size, region.target)
            if isinstance(source, Fill):
                target[...] = np.frombuffer(source.pattern, np.uint8)
            else:
                target[...] = _elements(inputs[source.input], size, source.view)
    return list(outputs)


def _copy_indexed(
    region: Region, indices: Indices, inputs: Sequence[Bytes], output: Bytes, size: int
) -> None:
    """Copy the elements of a region one by one, each to or from the address that indices give."""
    targets, sources, inside = addresses(region, indices, inputs[indices.input])
    written = _elements(output, size, View((output.size // size,), (1,)))
    if isinstance(region.source, Fill):
        written[targets[inside]] = np.frombuffer(region.source.pattern, np.uint8)
    else:
        read = inputs[region.source.input]
        elements = _elements(read, size, View((read.size // size,), (1,)))
        written[targets[inside]] = elements[sources[inside]]


def addresses(
    region: Region, indices: Indices, data: Bytes
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Return the target and the source address of each element, and whether it is copied.

    ``data`` is the content of the input that holds the indices.
    """
    targets, sources, first, positions = (
        sum(
            np.arange(n).reshape(-1, *(1 for _ in view.sizes[axis + 1 :])) * stride
            for axis, (n, stride) in enumerate(zip(view.sizes, view.strides, strict=True))
        )
        + np.full(view.sizes, view.offset)
        for view in (region.target, region.source_view, *region.index_views)
    )
    numbers = data[: data.size // int(indices.dtype[1]) * int(indices.dtype[1])].view(indices.dtype)
    moved, inside = np.zeros_like(first), np.full(first.shape, fill_value=True)
    for term in indices.terms:
        index = numbers[first + term.offset]
        if indices.limits is not None:
            number = index.astype(np.int64)
            number = (number & _LOW_BITS) + term.size * (number < 0)
            moved += number * term.stride  # modulo 2**64, and modulo 2**32 below
            continue
        if index.dtype == np.uint64:  # larger than any size, and than int64
            index = np.minimum(index, np.uint64(2**63 - 1))
        number = index.astype(np.int64)
        if indices.rule == "reverse":
            length = np.clip(number, 0, term.size)
            number = np.where(positions < length, length - 1 - positions, positions)
        number = number + term.size * (number < 0)
        inside &= (number >= 0) & (number < term.size)
        moved += np.clip(number, 0, term.size - 1) * term.stride
    moved += targets if indices.rule == "skip" else sources
    if (limits := indices.limits) is not None:
        moved = ((moved - limits.start) & _LOW_BITS) + limits.start
        inside &= moved < limits.stop
        moved = np.minimum(moved, limits.stop - 1)
    if indices.rule == "skip":
        targets = moved
    else:
        sources = moved
        inside[...] = True
    if indices.within is not None:
        inside &= (moved >= indices.within.start) & (moved < indices.within.stop)
    return targets, sources, inside


def _elements(array: Bytes, size: int, view: View) -> Bytes:
    """The elements of a view, each as its bytes."""
    return as_strided(
        array[view.offset * size :],
        shape=(*view.sizes, size),
        strides=(*(stride * size for stride in view.strides), 1),
    )


def _check_arrays(
    name: str, arrays: Sequence[Bytes], sizes: Sequence[int], *, written: bool = False
) -> None:
    """Raise an InvalidDescError (PLAN-06) for arrays that do not fit a plan."""
    if not isinstance(arrays, (list, tuple)) or len(arrays) != len(sizes):
        got = f"{len(arrays)} arrays" if isinstance(arrays, (list, tuple)) else show(arrays)
        refuse(name, f"got {got}, must be a list of {len(sizes)} arrays", "PLAN-06")
    for i, (array, nbytes) in enumerate(zip(arrays, sizes, strict=True)):
        if not isinstance(array, np.ndarray) or array.dtype != np.uint8 or array.ndim != 1:
            refuse(f"{name}[{i}]", f"got {show(array)}, must be a 1-D array of uint8", "PLAN-06")
        if array.size < nbytes or not array.flags.c_contiguous:
            message = f"got {array.size} bytes, must be {nbytes} or more, contiguous"
            refuse(f"{name}[{i}]", message, "PLAN-06")
        if written and not array.flags.writeable:
            refuse(f"{name}[{i}]", "is read-only, must be writeable", "PLAN-06")
