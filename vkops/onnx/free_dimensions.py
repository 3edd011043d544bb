"""Sizes that are given for the free dimensions of a model, and shapes for its inputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from vkops.errors import ModelError
from vkops.onnx.value_info import Dimension, InputType, ValueInfo, type_at
from vkops.plan.view import Ints

if TYPE_CHECKING:
    from vkops.onnx.onnx_model import Model


@dataclass(frozen=True)
class Overrides:
    """Sizes of free dimensions, by name and by denotation, and shapes of tensors, by name."""

    names: dict[str, int] = field(default_factory=dict)
    denotations: dict[str, int] = field(default_factory=dict)
    shapes: Mapping[str, Ints] = field(default_factory=dict)

    def over(self, other: Overrides) -> Overrides:
        """Return both together; where both have a size or shape, that of these counts."""
        return Overrides(
            {**other.names, **self.names},
            {**other.denotations, **self.denotations},
            {**other.shapes, **self.shapes},
        )

    def check(self, model: Model) -> None:
        """Check that a model has all dimensions, denotations and tensors that are named."""
        inputs = model.inputs
        known: dict[str, tuple[Mapping[str, Any], set[Any]]] = {
            "free dimension": (self.names, {s for e in inputs for s in e.shape or ()}),
            "denotation": (self.denotations, {d for e in inputs for d in e.denotations}),
            "tensor": (self.shapes, {e.name for e in (*inputs, *model.outputs)}),
        }
        for kind, (overridden, names) in known.items():
            for name in (name for name in overridden if name not in names):
                listed = ", ".join(sorted(repr(n) for n in names if isinstance(n, str) and n))
                raise ModelError(f"no {kind} {name!r} in the ONNX model; it has {listed or 'none'}")

    def sizes(self, entry: ValueInfo) -> tuple[Dimension, ...] | None:
        """Return the declared sizes of an input or output, with those that are given."""
        if entry.shape is None:
            return None
        return tuple(map(self._size, entry.shape, (*entry.denotations, *("",) * len(entry.shape))))

    def _size(self, declared: Dimension, denotation: str) -> Dimension:
        if isinstance(declared, int):
            return declared
        by_denotation = self.denotations.get(denotation, declared)
        return by_denotation if declared is None else self.names.get(declared, by_denotation)

    def shape(self, entry: ValueInfo, bound: Ints | None = None) -> Ints:
        """Return the shape of an input: overridden, bound or declared, with 1 for free sizes."""
        shape = self.shapes.get(entry.name, bound)
        if shape is not None:
            return shape
        return tuple(n if isinstance(n, int) else 1 for n in self.sizes(entry) or ())

    def types(self, model: Model) -> dict[str, InputType]:
        """Return the types of the inputs without a default, with these shapes."""
        return {entry.name: type_at(entry, self.shape(entry)) for entry in model.required_inputs}
