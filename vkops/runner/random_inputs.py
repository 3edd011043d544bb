"""Random values for the inputs of an ONNX model: valid ones, where nodes read them as indices."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from vkops.errors import ModelError
from vkops.onnx.lowering import Lowering, NeedsValueError
from vkops.onnx.onnx_model import Model
from vkops.onnx.onnx_session import type_of

Array = npt.NDArray[Any]

TRIES = 100
"""Draws of the inputs on which shapes depend, such as sizes, axes and repeats."""

_SMALL = (0, 1, 2, 3, 4, -1)


def fill(
    model: Model, inputs: Mapping[str, Any], drawn: Collection[str], generator: np.random.Generator
) -> dict[str, Any]:
    """Return inputs with random elements for those that are ``drawn``.

    Indices are within their axes. Elements on which shapes depend are small numbers for which the
    model can run.

    Raises:
        ModelError: for none of them the model can run.
    """
    filled = {
        name: _any(generator, value) if name in drawn and isinstance(value, np.ndarray) else value
        for name, value in inputs.items()
    }
    lowering = _lowered(model, filled, drawn, generator)
    ranges: dict[str, dict[int, range]] = {}
    for tensor, check in lowering.checks:
        name, item = lowering.inputs[tensor.number]
        if name in drawn and item is None and filled[name].size:
            allowed = ranges.setdefault(name, {})
            for place, other in enumerate(check.ranges.values()):
                known = allowed.get(place, other)
                allowed[place] = range(max(known[0], other[0]), min(known[-1], other[-1]) + 1)
    for name, allowed in ranges.items():
        array = filled[name]
        lowest, last = ([r[end] for r in allowed.values()] for end in (0, -1))
        if array.dtype.kind == "u":
            lowest = [0] * len(lowest)
        indices = generator.integers(lowest, last, array.shape, endpoint=True)
        filled[name] = indices.astype(array.dtype)
    return filled


def _lowered(
    model: Model, filled: dict[str, Any], drawn: Collection[str], generator: np.random.Generator
) -> Lowering:
    """Lower the model, and draw the inputs on which shapes depend until it can be lowered."""
    types = {entry.name: entry for entry in model.inputs}
    input_types = {name: type_of(types[name], value) for name, value in filled.items()}
    needed: dict[str, None] = {}
    tries = 0
    while True:
        try:
            return model.lower(input_types, {name: filled[name] for name in needed})
        except NeedsValueError as error:
            needed[error.name] = None
        except ModelError:
            tries += 1
            if tries == TRIES or not any(name in drawn for name in needed):
                raise
        for name in needed:
            if name in drawn and isinstance(filled[name], np.ndarray):
                filled[name] = _small(generator, filled[name])


def _small(generator: np.random.Generator, like: Array) -> Array:
    """Return small numbers; mostly the same one, which is valid more often."""
    if like.dtype.kind not in "iuf":
        return _any(generator, like)
    numbers: list[float] = [n for n in _SMALL if like.dtype.kind == "i" or n >= 0]
    if like.dtype.kind == "f":
        numbers = [0.5, 1, 1, 2]
    values = np.full(like.shape, generator.choice(numbers), like.dtype)
    changed = generator.random(like.shape) < generator.choice((0, 0.3, 1))
    return np.where(changed, generator.choice(numbers, like.shape), values).astype(like.dtype)


def _any(generator: np.random.Generator, like: Array) -> Array:
    if like.dtype.hasobject:
        words = [bytes(generator.integers(97, 123, 5, np.uint8)).decode() for _ in range(like.size)]
        return np.array(words, object).reshape(like.shape)
    if like.dtype.kind == "b":
        return generator.integers(0, 2, like.shape).astype(bool)
    if like.dtype.kind in "iu":
        info = np.iinfo(like.dtype)
        return generator.integers(info.min, info.max, like.shape, like.dtype, endpoint=True)
    values = generator.standard_normal(like.shape)
    if like.dtype.kind == "c":
        return (values + 1j * generator.standard_normal(like.shape)).astype(like.dtype)
    return values.astype(like.dtype)
