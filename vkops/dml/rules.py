"""Rules that several operators have; each is given the ID it has there, and how to refuse."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NoReturn

from vkops.dml.tensor_desc import BufferTensorDesc, dimensions
from vkops.errors import show

# Takes a field path, a message and a rule.
Refuse = Callable[[str, str, str], NoReturn]

# A tensor and the path of the field it stands in: ("output_tensors[1]", desc).
NamedTensor = tuple[str, BufferTensorDesc]


def same_data_type(
    refuse: Refuse, rule: str, reference: NamedTensor, others: Iterable[NamedTensor]
) -> None:
    """Check that others have the data type of the reference."""
    name, (path, tensor) = "data_type", reference
    for other_path, other in others:
        if other.data_type is not tensor.data_type:
            message = (
                f"got {other.data_type.name}, must equal {path}.{name} = {tensor.data_type.name}"
            )
            refuse(f"{other_path}.{name}", message, rule)


def same_dimension_count(
    refuse: Refuse, rule: str, reference: NamedTensor, others: Iterable[NamedTensor]
) -> None:
    """Check that others have the rank of the reference."""
    path, tensor = reference
    rank = tensor.dimension_count
    for other_path, other in others:
        if other.dimension_count != rank:
            message = f"got {dimensions(other.dimension_count)}, must have {rank} like {path}"
            refuse(f"{other_path}.sizes", message, rule)


def same_sizes(
    refuse: Refuse,
    rule: str,
    reference: NamedTensor,
    others: Iterable[NamedTensor],
    except_axis: int | None = None,
) -> None:
    """Check that others have the sizes of the reference, in all dimensions but one if given."""
    path, tensor = reference
    for other_path, other in others:
        if other.sizes == tensor.sizes:
            continue
        for i, (size, expected) in enumerate(zip(other.sizes, tensor.sizes, strict=True)):
            if size != expected and i != except_axis:
                message = f"got {size}, must equal {path}.sizes[{i}] = {expected}"
                refuse(f"{other_path}.sizes[{i}]", message, rule)


def axis_in_range(refuse: Refuse, rule: str, axis: int, reference: NamedTensor) -> None:
    """Check that the axis is a dimension of the reference."""
    path, tensor = reference
    rank = tensor.dimension_count
    if not 0 <= axis < rank:
        message = f"got {show(axis)}, must be 0 to {rank - 1} ({path} has {dimensions(rank)})"
        refuse("axis", message, rule)


def one_entry_per_dimension(
    refuse: Refuse, rule: str, reference: NamedTensor, **arrays: Sequence[int]
) -> None:
    """Check that each array is as long as the reference has dimensions."""
    path, tensor = reference
    rank = tensor.dimension_count
    for name, array in arrays.items():
        if len(array) != rank:
            message = (
                f"got length {len(array)}, must be {rank}, one entry for each dimension of {path}"
            )
            refuse(name, message, rule)
