"""Operators whose results are known before the model runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from vkops.onnx.element_types import STRING
from vkops.onnx.lowering import LoweredTensor
from vkops.onnx.onnx_node import Call


def constant(call: Call) -> list[LoweredTensor]:
    """Constant 1 to 25."""
    given = {name: value for name, value in call.node.attributes.items() if name in _VALUES}
    allowed = f"one of {', '.join(_VALUES)}"
    call.require(len(given) == 1, "attributes", ", ".join(given) or "none", allowed)
    ((name, value),) = given.items()
    try:
        return [call.lowering.constant(_VALUES[name](value))]
    except UnicodeDecodeError as error:
        call.refuse(name, f"is not UTF-8: {error.reason}")


def constant_of_shape(call: Call) -> list[LoweredTensor]:
    """ConstantOfShape 9 to 25."""
    shape = call.ints("input") or ()
    call.require_at_least(0, "input", shape)
    given = call.attribute("value")
    value = np.zeros(1, np.float32) if given is None else given
    call.require_single("value", value)
    return [call.lowering.full(value, shape)]


def shape(call: Call) -> list[LoweredTensor]:
    """Shape 1 to 25."""
    data = call.tensor("data")
    sizes = data.shape[slice(call.attribute("start"), call.attribute("end"))]
    return [call.lowering.constant(np.array(sizes, np.int64))]


def size(call: Call) -> list[LoweredTensor]:
    """Size 1 to 25."""
    return [call.lowering.constant(np.array(call.tensor("data").size, np.int64))]


_VALUES: dict[str, Callable[[Any], np.ndarray[Any, Any]]] = {
    "value": np.asarray,
    "sparse_value": np.asarray,
    "value_float": np.float32,
    "value_floats": lambda value: np.array(value, np.float32),
    "value_int": np.int64,
    "value_ints": lambda value: np.array(value, np.int64),
    "value_string": lambda value: np.array(value.decode(), STRING),
    "value_strings": lambda value: np.array([text.decode() for text in value], STRING),
}
