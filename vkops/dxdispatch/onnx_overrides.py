"""Sizes and shapes that take the place of those that an ONNX model leaves free."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from vkops.errors import ModelError

if TYPE_CHECKING:
    from vkops.onnx import Model
    from vkops.onnx.forms import Declared, Form

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Overrides:
    """Sizes of free dimensions, by name and by denotation, and shapes of tensors, by name."""

    names: Mapping[str, int] = field(default_factory=dict)
    denotations: Mapping[str, int] = field(default_factory=dict)
    shapes: Mapping[str, Shape] = field(default_factory=dict)

    def over(self, other: Overrides) -> Overrides:
        """Return both together; where both name the same, these count."""
        return Overrides(
            {**other.names, **self.names},
            {**other.denotations, **self.denotations},
            {**other.shapes, **self.shapes},
        )

    def check(self, model: Model) -> None:
        """Refuse names of dimensions, denotations and tensors that a model does not have.

        Raises:
            ModelError: naming those that it has.
        """
        inputs = model.inputs
        known: dict[str, tuple[Mapping[str, Any], set[Any]]] = {
            "free dimension": (self.names, {s for e in inputs for s in e.shape or ()}),
            "denotation": (self.denotations, {d for e in inputs for d in e.denotations}),
            "tensor": (self.shapes, {e.name for e in (*inputs, *model.outputs)}),
        }
        for kind, (given, names) in known.items():
            for name in (name for name in given if name not in names):
                listed = ", ".join(sorted(repr(n) for n in names if isinstance(n, str) and n))
                raise ModelError(f"no {kind} {name!r} in the ONNX model; it has {listed or 'none'}")

    def shape(self, entry: Declared, bound: Shape | None = None) -> Shape:
        """Return the shape of an input: overridden, bound or declared, with 1 for free sizes."""
        given = self.shapes.get(entry.name, bound)
        if given is not None:
            return given
        denotations = (*entry.denotations, *("",) * len(entry.shape or ()))
        return tuple(
            size
            if isinstance(size, int)
            else self.names.get(size or "", self.denotations.get(denotation, 1))
            for size, denotation in zip(entry.shape or (), denotations, strict=False)
        )


def form_of(entry: Declared, shape: Shape) -> Form:
    """Return the form of an input that a model is specialized to; sequences are empty."""
    from vkops.onnx.forms import SequenceForm, TensorForm

    dtype = entry.dtype or np.dtype(np.float32)
    return TensorForm(dtype, shape) if entry.kind == "tensor" else SequenceForm(dtype, ())
