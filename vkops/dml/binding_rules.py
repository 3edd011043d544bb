"""Binding rules that need no device: placement of tensors in resources, and shared bytes."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from vkops.dml.tensor_desc import BufferTensorDesc
from vkops.errors import BindingError
from vkops.extent import Extent

Placed = tuple[str, Extent]
"""The path of a tensor's field, and the bytes that the tensor is bound to."""

MINIMUM_ALIGNMENT = 16
"""Bytes; DML_MINIMUM_BUFFER_TENSOR_ALIGNMENT."""


def bind_tensor(
    operator: str,
    path: str,
    tensor: BufferTensorDesc,
    resource: Any,
    capacity: int,
    offset: int,
    size: int,
) -> Extent:
    """Bind a tensor to ``size`` bytes from ``offset`` of a resource of ``capacity`` bytes.

    Raises:
        BindingError: outside the resource (B-04), misaligned (B-05) or too short (B-06).
    """
    if offset + size > capacity:
        message = f"got offset {offset} and {size} bytes, must end at {capacity} or before"
        raise BindingError(operator, path, message, "B-04")
    alignment = max(MINIMUM_ALIGNMENT, tensor.guaranteed_base_offset_alignment)
    if offset % alignment:
        message = f"got offset {offset}, must be a multiple of {alignment}"
        raise BindingError(operator, path, message, "B-05")
    needed = tensor.total_tensor_size_in_bytes
    if size < needed:
        raise BindingError(operator, path, f"got {size} bytes, must be at least {needed}", "B-06")
    return Extent(resource, offset, needed)


def check_elements(operator: str, path: str, tensor: BufferTensorDesc, dtype: Any) -> None:
    """Check that a tensor's elements can be those of the descriptor.

    Raises:
        BindingError: the elements have another size, and are not uint8, which stands for raw bytes
            (B-24).
    """
    kind = tensor.data_type
    if 8 * dtype.itemsize != max(kind.size_bits, 8) and dtype != "u1":
        message = (
            f"got {dtype}, must be {kind.name}, another type of {kind.size_bits} bits, or uint8 "
            "for raw bytes; tensor.astype() converts it"
        )
        raise BindingError(operator, path, message, "B-24")


def check_hazards(
    operator: str, inputs: Sequence[Placed], outputs: Sequence[Placed], *, in_place: bool
) -> None:
    """Check that no bytes are written by two outputs, or read and written at the same time.

    Raises:
        BindingError: outputs share bytes (B-07); an input and an output do (B-09), unless
            ``in_place`` and they are the same range.
    """
    if len({extent.resource for _, extent in (*inputs, *outputs)}) == len(inputs) + len(outputs):
        return  # no resource is shared
    numbers = {extent.resource: number for number, (_, extent) in enumerate(outputs)}
    written = sorted((numbers[e.resource], e.start, e.end, path) for path, e in outputs)
    for before, after in pairwise(written):
        if before[0] == after[0] and before[2] > after[1]:
            message = f"shares bytes {after[1]} to {min(before[2], after[2]) - 1} with {before[3]}"
            raise BindingError(operator, after[3], message, "B-07")
    for name, source in inputs:
        number = numbers.get(source.resource)
        if number is None:
            continue
        # Outputs are disjoint and sorted: if any of them overlaps the input, then the last one that
        # begins before the input's end does.
        at = bisect_left(written, (number, source.end)) - 1
        if at < 0 or written[at][0] != number or written[at][2] <= source.start:
            continue
        _, begin, end, path = written[at]
        if not (in_place and (begin, end) == (source.start, source.end)):
            message = (
                f"shares bytes {max(begin, source.start)} to {min(end, source.end) - 1} with "
                f"{name}; only an identity with equal strides may, on the same range"
            )
            raise BindingError(operator, path, message, "B-09")
