"""Inputs and outputs of ONNX models as DxDispatch has them: free sizes, and what is bound."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from vkops.errors import ModelError

if TYPE_CHECKING:
    from vkops.onnx import Model
    from vkops.onnx.forms import Declared, Form

Shape = tuple[int, ...]

_MAX_DIGITS = 19  # of sizes; Python refuses to convert integers of more than 4,300 digits


@dataclass(frozen=True)
class Overrides:
    """Sizes of free dimensions, by name and by denotation, and shapes of tensors, by name."""

    names: Mapping[str, int] = field(default_factory=dict)
    denotations: Mapping[str, int] = field(default_factory=dict)
    shapes: Mapping[str, Shape] = field(default_factory=dict)

    def over(self, other: Overrides) -> Overrides:
        """These, and what another has beside them."""
        return Overrides(
            {**other.names, **self.names},
            {**other.denotations, **self.denotations},
            {**other.shapes, **self.shapes},
        )

    def check(self, model: Model) -> None:
        """Refuse names that a model does not have, which are slips.

        Raises:
            ModelError: there is no such dimension, denotation or tensor.
        """
        inputs = model.inputs
        known: dict[str, tuple[Mapping[str, Any], set[Any]]] = {
            "free dimension": (self.names, {s for e in inputs for s in e.shape or ()}),
            "denotation": (self.denotations, {d for e in inputs for d in e.denotations}),
            "tensor": (self.shapes, {e.name for e in (*inputs, *model.outputs)}),
        }
        for kind, (given, names) in known.items():
            for name in given:
                if name not in names:
                    listed = ", ".join(sorted(repr(n) for n in names if isinstance(n, str) and n))
                    raise ModelError(
                        f"no {kind} {name!r} in the ONNX model; it has {listed or 'none'}"
                    )

    def shape(self, entry: Declared, bound: Shape | None = None) -> Shape:
        """The shape of an input: what is overridden, bound or declared; what is free then is 1."""
        given = self.shapes.get(entry.name, bound)
        if given is not None:
            return given
        denotations = (*entry.denotations, *("",) * len(entry.shape or ()))
        return tuple(
            size if isinstance(size, int) else self._free(size, denotation)
            for size, denotation in zip(entry.shape or (), denotations, strict=False)
        )

    def _free(self, name: str | None, denotation: str) -> int:
        return self.names.get(name or "", self.denotations.get(denotation, 1))


def parse_overrides(
    names: Sequence[str], denotations: Sequence[str], shapes: Sequence[str]
) -> Overrides:
    """Overrides from the command line: ``N:5`` twice, and ``x:5,2``.

    Raises:
        ModelError: a text of another form.
    """
    return Overrides(
        dict(_pair(text, "NAME:SIZE") for text in names),
        dict(_pair(text, "DENOTATION:SIZE") for text in denotations),
        dict(_named_shape(text) for text in shapes),
    )


def _pair(text: str, form: str) -> tuple[str, int]:
    name, _, size = text.rpartition(":")
    if not name or not _is_size(size):
        raise ModelError(f"got {text!r}, must be {form}, such as N:5")
    return name, int(size)


def _named_shape(text: str) -> tuple[str, Shape]:
    name, _, sizes = text.rpartition(":")
    numbers = sizes.split(",") if sizes else []
    if not name or not all(map(_is_size, numbers)):
        raise ModelError(f"got {text!r}, must be TENSOR:SHAPE, such as x:5,2")
    return name, tuple(map(int, numbers))


def _is_size(text: str) -> bool:
    """Whether a text is a size of as many digits as any tensor can have."""
    return text.isdecimal() and len(text) <= _MAX_DIGITS


def form_of(entry: Declared, shape: Shape) -> Form:
    """What a model is specialised to for an input of a shape; sequences are empty."""
    from vkops.onnx.forms import SequenceForm, TensorForm

    dtype = entry.dtype or np.dtype(np.float32)
    return TensorForm(dtype, shape) if entry.kind == "tensor" else SequenceForm(dtype, ())


def nothing(entry: Declared, shape: Shape) -> Any:
    """What an input that nobody gives holds: zeros, empty strings, or no tensors at all."""
    from vkops.onnx.types import STRING

    if entry.kind != "tensor":
        return []
    if entry.dtype is None:
        raise ModelError(f"input {entry.name!r}: its type is not known")
    return np.full(shape, "", STRING) if entry.dtype == STRING else np.zeros(shape, entry.dtype)


def binding_lines(role: str, name: str, resource: str, dtype: Any, shape: Any) -> Iterator[str]:
    """Yield the lines of ``--print_onnx_bindings`` about a tensor, and an empty one."""
    from onnx import TensorProto

    from vkops.onnx.types import elem_type_of

    sizes = ",".join(map(str, shape))
    yield f"{role} Tensor '{name}':"
    yield f"  Resource  = {resource}"
    yield f"  Data Type = {TensorProto.DataType.Name(elem_type_of(dtype))}"
    yield f"  Shape     = [{sizes}]"
    yield ""
