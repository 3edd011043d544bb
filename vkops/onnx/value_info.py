"""The inputs and outputs that a graph declares, and the types and shapes that are given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from onnx import ModelProto, ValueInfoProto

from vkops.errors import ModelError
from vkops.onnx.element_types import dtype_of, type_text
from vkops.plan.view import Ints

Dimension: TypeAlias = "int | str | None"
"""A size, the name of a free size, or None for a free size without a name."""


@dataclass(frozen=True)
class ValueInfo:
    """A graph input or output: its name, type and shape.

    ``kind`` is tensor, sequence, optional or another that vkops does not have; ``shape`` is None
    where the rank is free.
    """

    name: str
    kind: str
    dtype: np.dtype[Any] | None
    shape: tuple[Dimension, ...] | None
    denotations: tuple[str, ...] = ()

    @property
    def type(self) -> str | None:
        """The type as ONNX writes it, such as ``tensor(float)``; None where it is not declared."""
        return None if self.dtype is None else type_text(self.dtype, self.kind)


@dataclass(frozen=True)
class NodeArg:
    """An input or output of a session. Source: onnxruntime.NodeArg.

    ``type`` is as ONNX writes it, such as ``tensor(float)``. ``shape`` is a list: a size, the name
    of a free size, or None for each dimension; it is empty for sequences and where the rank is
    free, too.
    """

    name: str
    type: str
    shape: list[Dimension]

    @classmethod
    def of(cls, entry: ValueInfo) -> NodeArg:
        """The declaration of a graph input or output with ONNX Runtime's attributes."""
        shape = () if entry.kind == "sequence" else entry.shape
        return cls(entry.name, entry.type or "", list(shape or ()))


@dataclass(frozen=True)
class ModelMetadata:
    """The metadata of a model. Source: onnxruntime.ModelMetadata.

    ``version`` is 2⁶³ - 1 where the model does not have one.
    """

    producer_name: str
    graph_name: str
    domain: str
    description: str
    graph_description: str
    version: int
    custom_metadata_map: dict[str, str]

    @classmethod
    def of(cls, proto: ModelProto) -> ModelMetadata:
        """Read the metadata of a model."""
        return cls(
            producer_name=str(proto.producer_name),
            graph_name=str(proto.graph.name),
            domain=str(proto.domain),
            description=str(proto.doc_string),
            graph_description=str(proto.graph.doc_string),
            version=int(proto.model_version) if proto.HasField("model_version") else 2**63 - 1,
            custom_metadata_map={
                str(entry.key): str(entry.value) for entry in proto.metadata_props
            },
        )


@dataclass(frozen=True)
class TensorType:
    """The type and shape of a tensor for an input."""

    dtype: np.dtype[Any]
    shape: Ints


@dataclass(frozen=True)
class SequenceType:
    """The type and shapes of the tensors of a sequence for an input."""

    dtype: np.dtype[Any]
    shapes: tuple[Ints, ...]


InputType: TypeAlias = "TensorType | SequenceType | None"
"""The type and shapes of an input that is given; None: an optional that is absent."""


def type_at(entry: ValueInfo, shape: Ints) -> InputType:
    """Return the type of an input: of a tensor of a shape, or of a sequence without tensors."""
    dtype = entry.dtype or np.dtype(np.float32)
    return TensorType(dtype, shape) if entry.kind == "tensor" else SequenceType(dtype, ())


def value_info(proto: ValueInfoProto) -> ValueInfo:
    """Read the declaration of a graph input or output."""
    inner, kind = proto.type, (proto.type.WhichOneof("value") or "").removesuffix("_type")
    while (field := inner.WhichOneof("value")) in ("sequence_type", "optional_type"):
        inner = getattr(inner, field).elem_type
    tensor = inner.tensor_type  # without any field in maps and the like
    if not tensor.elem_type:
        return ValueInfo(proto.name, kind, None, None)
    try:
        dtype = dtype_of(tensor.elem_type)
    except ModelError as error:
        raise ModelError(f"{proto.name!r}: {error}") from error
    dims = tensor.shape.dim
    shape = tuple(map(_dimension, dims)) if tensor.HasField("shape") else None
    return ValueInfo(proto.name, kind, dtype, shape, tuple(dim.denotation for dim in dims))


def _dimension(dim: Any) -> Dimension:
    if dim.HasField("dim_value") and dim.dim_value >= 0:
        return int(dim.dim_value)
    return str(dim.dim_param) or None


def check_input(entry: ValueInfo, type_: InputType, free: dict[str, int]) -> None:
    """Check the type and shape of a value for an input against the declared ones.

    ``free`` holds the sizes of named dimensions in the inputs before.
    """
    name, kind = entry.name, entry.kind
    if type_ is None:
        if kind != "optional":
            raise ModelError(f"input {name!r}: got None, must be a {kind}")
        return
    got = "tensor" if isinstance(type_, TensorType) else "sequence"
    if kind not in (got, "optional"):
        raise ModelError(f"input {name!r}: got a {got}, must be a {kind}")
    if entry.dtype is not None and type_text(type_.dtype) != type_text(entry.dtype):
        raise ModelError(
            f"input {name!r}: got type {type_text(type_.dtype)}, must be {type_text(entry.dtype)}"
        )
    if isinstance(type_, TensorType):
        _check_shape(name, type_.shape, entry.shape, free)
    else:
        for i, shape in enumerate(type_.shapes):
            _check_shape(f"{name}[{i}]", shape, entry.shape, {})


def _check_shape(
    name: str, shape: Ints, sizes: tuple[Dimension, ...] | None, free: dict[str, int]
) -> None:
    if sizes is None:
        return
    before = dict(free)
    fits = len(shape) == len(sizes) and all(
        size is None or got == (free.setdefault(size, got) if isinstance(size, str) else size)
        for got, size in zip(shape, sizes, strict=True)
    )
    if not fits:
        expected = ", ".join("?" if size is None else str(size) for size in sizes)
        where = "".join(f", {d} being {before[d]}" for d in sizes if d in before)
        raise ModelError(f"input {name!r}: got shape {shape}, must be ({expected}){where}")


def check_output_type(entry: ValueInfo, dtype: np.dtype[Any] | None) -> None:
    """Check that the declared type of an output is the one that its node makes."""
    if entry.dtype is not None and dtype is not None and dtype != entry.dtype:
        raise ModelError(
            f"output {entry.name!r}: is declared {type_text(entry.dtype)}, "
            f"its node makes {type_text(dtype)}"
        )
