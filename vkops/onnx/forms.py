"""What models declare of their inputs and outputs, and what is known of them when a model runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from onnx import TypeProto, ValueInfoProto

from vkops.errors import ModelError
from vkops.onnx.types import dtype_of, type_text
from vkops.plan.view import Ints

Dimension: TypeAlias = "int | str | None"
"""A size, the name of one that is free, or None for one that has no name."""


_SHORT = {"sequence": "seq", "optional": "optional"}


@dataclass(frozen=True)
class Declared:
    """A graph input or output: its name and what its type says.

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
        """The type as ONNX spells it, such as ``tensor(float)``; None where it is not declared."""
        if self.dtype is None:
            return None
        text = type_text(self.dtype)
        return text if self.kind == "tensor" else f"{_SHORT[self.kind]}({text})"


@dataclass(frozen=True)
class TensorForm:
    """What specialisation depends on in an input: its type and its shape."""

    dtype: np.dtype[Any]
    shape: Ints


@dataclass(frozen=True)
class SequenceForm:
    """The same of a sequence: the type of its tensors, and the shape of each."""

    dtype: np.dtype[Any]
    shapes: tuple[Ints, ...]


Form: TypeAlias = "TensorForm | SequenceForm | None"
"""The form of an input; None: an optional that is absent."""


def declared(info: ValueInfoProto) -> Declared:
    """What a model says of an input or output.

    Raises:
        ModelError: ONNX does not have its type.
    """
    proto = info.type
    kind = proto.WhichOneof("value") or ""
    inner = _innermost(proto)
    if inner is None or not inner.elem_type:
        return Declared(info.name, kind.removesuffix("_type"), None, None)
    dims = inner.shape.dim if inner.HasField("shape") else None
    shape = None if dims is None else tuple(map(_dimension, dims))
    denotations = tuple(dim.denotation for dim in dims or ())
    try:
        dtype = dtype_of(inner.elem_type)
    except ModelError as error:
        raise ModelError(f"{info.name!r}: {error}") from error
    return Declared(info.name, kind.removesuffix("_type"), dtype, shape, denotations)


def _innermost(proto: TypeProto) -> Any:
    """The tensor type that a type is made of; None for maps and the like."""
    match proto.WhichOneof("value"):
        case "tensor_type":
            return proto.tensor_type
        case "sequence_type":
            return _innermost(proto.sequence_type.elem_type)
        case "optional_type":
            return _innermost(proto.optional_type.elem_type)
    return None


def _dimension(dim: Any) -> Dimension:
    match dim.WhichOneof("value"):
        case "dim_value":
            return int(dim.dim_value) if dim.dim_value >= 0 else None
        case "dim_param":
            return str(dim.dim_param) or None
    return None


def check_form(entry: Declared, form: Form, free: dict[str, int]) -> None:
    """Refuse what is not as declared; ``free`` has the sizes of the names that came up before."""
    name, wanted = entry.name, entry.kind
    if form is None:
        if wanted != "optional":
            raise ModelError(f"input {name!r}: got None, must be a {wanted}")
        return
    got = "tensor" if isinstance(form, TensorForm) else "sequence"
    if got != wanted and wanted != "optional":
        raise ModelError(f"input {name!r}: is a {got}, must be a {wanted}")
    if entry.dtype is not None and type_text(form.dtype) != type_text(entry.dtype):
        raise ModelError(
            f"input {name!r}: has type {type_text(form.dtype)}, must be {type_text(entry.dtype)}"
        )
    if isinstance(form, TensorForm):
        _check_shape(name, form.shape, entry.shape, free)
    else:
        for i, shape in enumerate(form.shapes):
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
        wanted = ", ".join("?" if size is None else str(size) for size in sizes)
        where = "".join(f", {d} being {before[d]}" for d in sizes if d in before)
        raise ModelError(f"input {name!r}: has shape {shape}, must be ({wanted}){where}")


def refuse_output(entry: Declared, made: np.dtype[Any]) -> None:
    """Refuse an output whose declared type is not the one that its node makes."""
    raise ModelError(
        f"output {entry.name!r}: is declared {entry.dtype and type_text(entry.dtype)}, "
        f"its node makes {type_text(made)}"
    )
