"""Sizes of free dimensions and shapes of the tensors of ONNX models."""

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


def form_of(entry: Declared, shape: Shape) -> Form:
    """What a model is specialised to for an input of a shape; sequences are empty."""
    from vkops.onnx.forms import SequenceForm, TensorForm

    dtype = entry.dtype or np.dtype(np.float32)
    return TensorForm(dtype, shape) if entry.kind == "tensor" else SequenceForm(dtype, ())
