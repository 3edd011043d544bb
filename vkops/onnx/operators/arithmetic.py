"""Operators whose results are known before the model runs, some of them computed on the host."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import TensorProto, numpy_helper

from vkops.errors import ModelError
from vkops.onnx.element_types import STRING, dtype_of, type_text
from vkops.onnx.lowering import MAX_KNOWN_BYTES, LoweredTensor, NeedsValueError
from vkops.onnx.onnx_node import Call
from vkops.plan.view import Ints

Array = npt.NDArray[Any]

_SMALL_FLOATS = ("tensor(float8", "tensor(float6", "tensor(float4")

_SATURATING = (
    TensorProto.FLOAT8E4M3FN,
    TensorProto.FLOAT8E4M3FNUZ,
    TensorProto.FLOAT8E5M2,
    TensorProto.FLOAT8E5M2FNUZ,
)
"""Types for which casts turn numbers out of range into the largest value."""

MAX_ELEMENTS = 1024
"""Elements of the largest graph input that shapes may be computed from."""


_VALUES: dict[str, Callable[[Any], Array]] = {
    "value": np.asarray,
    "sparse_value": np.asarray,
    "value_float": np.float32,
    "value_floats": lambda value: np.array(value, np.float32),
    "value_int": np.int64,
    "value_ints": lambda value: np.array(value, np.int64),
    "value_string": lambda value: np.array(value.decode(), STRING),
    "value_strings": lambda value: np.array([text.decode() for text in value], STRING),
}
"""The attributes of Constant, and how their values become arrays."""


def constant(call: Call) -> list[LoweredTensor]:
    """Lower Constant."""
    values = {name: value for name, value in call.node.attributes.items() if name in _VALUES}
    allowed = f"one of {', '.join(_VALUES)}"
    call.require(len(values) == 1, "attributes", ", ".join(values) or "none", allowed)
    ((name, value),) = values.items()
    try:
        return [call.lowering.constant(_VALUES[name](value))]
    except UnicodeDecodeError as error:
        call.refuse(name, f"is not UTF-8: {error.reason}")


def constant_of_shape(call: Call) -> list[LoweredTensor]:
    """Lower ConstantOfShape."""
    shape = call.ints("input") or ()
    call.require_at_least(0, "input", shape)
    attribute = call.attribute("value")
    value = np.zeros(1, np.float32) if attribute is None else attribute
    call.require_single("value", value)
    return [call.lowering.full(value, shape)]


def shape(call: Call) -> list[LoweredTensor]:
    """Lower Shape."""
    sizes = call.tensor("data").shape[slice(call.attribute("start"), call.attribute("end"))]
    return [call.lowering.constant(np.array(sizes, np.int64))]


def size(call: Call) -> list[LoweredTensor]:
    """Lower Size."""
    return [call.lowering.constant(np.array(call.tensor("data").size, np.int64))]


def elementwise(
    compute: Callable[[Array, Array], Array], *, divides: bool = False, dtype: type | None = None
) -> Callable[[Call], list[LoweredTensor]]:
    """Return the function that lowers an operator of two arrays, in all its versions.

    Args:
        compute: the NumPy function.
        divides: whether integers are divided by the second array, which must not hold 0 then.
        dtype: the type of the result, if it is not that of the operands.
    """

    def lowered(call: Call) -> list[LoweredTensor]:
        a, b = operand(call, "A"), operand(call, "B")
        if call.version < 7:
            b = _aligned(call, a, b)
        if broadcast_shape(call, max(a.itemsize, b.itemsize), a.shape, b.shape) is None:
            call.refuse("B", f"got shape {b.shape}, which does not broadcast with {a.shape}")
        if divides and b.dtype.kind in "iu" and not b.all():
            call.refuse("B", "an integer is divided by 0")
        with np.errstate(all="ignore"):
            result = compute(a, b)
        return [call.lowering.computed(np.asarray(result, dtype or a.dtype))]

    return lowered


def logical_not(call: Call) -> list[LoweredTensor]:
    """Lower Not."""
    return [call.lowering.computed(np.logical_not(operand(call, "X")))]


def broadcast_shape(call: Call, itemsize: int, *shapes: Ints) -> Ints | None:
    """Return the shape of elements that are computed; None if the shapes do not broadcast."""
    try:
        shape = np.broadcast_shapes(*shapes)
    except ValueError:
        return None
    if prod(shape) * itemsize > MAX_KNOWN_BYTES:
        call.refuse("result", f"got shape {shape}, must have {MAX_KNOWN_BYTES} bytes at most")
    return shape


def range(call: Call) -> list[LoweredTensor]:
    """Lower Range: numbers from ``start`` to before ``limit``, ``delta`` apart."""
    arrays = [operand(call, name) for name in ("start", "limit", "delta")]
    for name, array in zip(("start", "limit", "delta"), arrays, strict=True):
        call.require_single(name, array)
    dtype = arrays[0].dtype
    wide = dtype
    if dtype.kind == "i":
        wide = np.dtype(np.int64)
    elif dtype.itemsize == 2:
        wide = np.dtype(np.float32)
        stash = call.attribute("stash_type")
        call.require(stash == TensorProto.FLOAT, "stash_type", stash, "1 (float)")
    start, limit, delta = (array.astype(wide).reshape(-1)[0] for array in arrays)
    with np.errstate(all="ignore"):
        if wide.kind == "i":
            count = -((int(start) - int(limit)) // int(delta)) if delta else np.nan
        else:  # in 64 bits, as in ONNX Runtime and in ONNX's reference evaluator
            count = np.ceil((np.float64(limit) - np.float64(start)) / np.float64(delta))
        if not np.isfinite(count):
            message = f"got {delta}, which gives no number of elements from {start} to {limit}"
            call.refuse("delta", message)
        count = max(0, int(count))
        if count * wide.itemsize > MAX_KNOWN_BYTES:
            call.refuse(
                "limit",
                f"gives {count} elements of {wide.itemsize} bytes, must have "
                f"{MAX_KNOWN_BYTES} bytes at most",
            )
        numbers = start + np.arange(count).astype(wide) * delta
    return [call.lowering.computed(numbers.astype(dtype))]


def modulo(call: Call) -> list[LoweredTensor]:
    """Lower Mod: the sign is that of the divisor, with ``fmod`` that of the dividend."""
    return elementwise(np.fmod if call.attribute("fmod") else np.mod, divides=True)(call)


def quotient(a: Array, b: Array) -> Array:
    """Return ``a / b``; of integers, rounded towards zero."""
    if a.dtype.kind not in "iu":
        return np.asarray(a / b)
    floor = a // b
    return np.asarray(floor + ((a % b != 0) & ((a < 0) != (b < 0))).astype(a.dtype))


def cast(call: Call) -> list[LoweredTensor]:
    """Lower Cast, between numbers."""
    to = call.attribute("to")
    try:
        if isinstance(to, bytes):  # the name of a type
            to = to.decode("utf-8", "replace")
            elem_type = TensorProto.DataType.Value(to.upper())
        else:
            elem_type = to
        dtype = dtype_of(elem_type)
    except (ModelError, ValueError):
        call.refuse("to", f"got {to!r}, which is not a data type")
    tensor = call.tensor("input")
    if tensor.dtype == dtype:
        return [tensor]
    array = operand(call, "input")
    if STRING in (array.dtype, dtype):
        call.refuse("to", "vkops does not compute with strings")
    with np.errstate(all="ignore"):
        return [call.lowering.computed(_converted(call, array, dtype, elem_type))]


def _converted(call: Call, array: Array, dtype: np.dtype[Any], to: int) -> Array:
    """Return numbers in another type, as ONNX rounds and saturates them."""
    flat = array.reshape(-1)
    if type_text(array.dtype).startswith(_SMALL_FLOATS):
        # Not every pair of types converts directly, and float32 holds all values of these types.
        flat = flat.astype(np.float32)
    elif flat.dtype.itemsize == 1 and flat.dtype.kind not in "biu":
        flat = flat.astype(np.int8 if type_text(array.dtype).startswith("tensor(i") else np.uint8)
    saturates = call.attribute("saturate")
    if to in _SATURATING and (saturates is None or saturates):
        flat = numpy_helper.saturate_cast(flat, dtype)
    elif to == TensorProto.FLOAT8E8M0:
        mode = call.node.choice("round_mode", "up", "down", "nearest")
        flat = numpy_helper.to_float8e8m0(flat, bool(saturates), mode)
    return np.asarray(flat.astype(dtype)).reshape(array.shape)


def operand(call: Call, name: str) -> Array:
    """Return the elements of an operand: constants, shapes, or integers of a graph input."""
    tensor = call.tensor(name)
    try:
        return call.lowering.values(tensor)
    except NeedsValueError as error:
        if tensor.dtype.kind in "iu" and tensor.rank <= 1 and tensor.size <= MAX_ELEMENTS:
            raise  # they may be a shape: ``run`` then lowers the model again with these elements
        call.refuse(name, depends_on(error.name))


def depends_on(graph_input: str) -> str:
    """Return the message about an operand that is not known before the model runs."""
    return (
        f"depends on graph input {graph_input!r}; vkops moves data, and computes only with "
        "constants, shapes, and short lists of integers"
    )


def _aligned(call: Call, a: Array, b: Array) -> Array:
    """Return the second operand in the shape that versions with ``axis`` broadcast."""
    if not call.attribute("broadcast"):
        if a.shape != b.shape:
            call.refuse("B", f"got shape {b.shape}, must be {a.shape} without 'broadcast'")
        return b
    axis = call.attribute("axis")
    if axis is None:
        return b
    after = a.ndim - call.in_rank("axis", axis, a.ndim) - b.ndim
    if after < 0:
        call.refuse("axis", f"got {axis}, which leaves no room for {b.ndim} dimensions")
    return b.reshape(b.shape + (1,) * after)
