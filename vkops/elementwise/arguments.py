"""Checks of the arguments of a call, and the choice of its data types and its shape."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from vkops.arguments.values import ArgumentName, refuse
from vkops.elementwise.formats import FORMATS, GLSL_TYPES, dtype_of, is_known, kind_of, limits_of
from vkops.elementwise.parameters import Operand, Parameter, Symbol
from vkops.errors import InvalidDescOverflowError, InvalidDescTypeError, show
from vkops.plan.view import Ints
from vkops.tensors.exchange import as_array, numpy_refusals
from vkops.tensors.shape_arguments import broadcast_shapes, one_or_more
from vkops.tensors.tensor import Tensor

MAX_ELEMENTS = (1 << 31) - 1

_KNOWN = (Tensor, np.ndarray, np.generic, bool, int, float, Symbol, type(None))
_DEFAULTS = ((float, np.float64), (int, np.int64), (bool, np.bool_))
_KINDS = {
    "b": (0, "a Boolean"), "u": (1, "an integer"), "i": (1, "an integer"), "f": (2, "a number"),
}  # fmt: skip


def operands_of(
    name: str, parameters: Sequence[Parameter], values: Sequence[Any], positional: int
) -> list[Operand]:
    """Return an operand for each parameter (EW-02 to EW-04)."""
    outputs = sum([parameter.is_output for parameter in parameters])
    inputs = len(parameters) - outputs
    if positional < inputs or len(values) not in (inputs, inputs + outputs):
        message = f"got {len(values)}, must be {inputs} inputs, and {outputs} outputs or none"
        raise InvalidDescTypeError(name, "arguments", message, "EW-02")
    values = [*values, *[None] * (len(parameters) - len(values))]
    return [*map(_operand, [name] * len(values), parameters, values)]


def _operand(name: str, parameter: Parameter, value: Any) -> Operand:
    """Return an operand with a value of the right kind; NumPy arrays get the host's byte order."""
    argument = ArgumentName(name, parameter.name, "EW-03")
    is_weak = False
    if not parameter.is_output:
        value, is_weak = array_of(name, parameter.name, value)
    dtype: Any = None if is_weak else getattr(value, "dtype", None)
    if parameter.is_output:
        if not isinstance(value, (Tensor, type(None))):
            raise argument.wrong_kind(value, "a tensor to write to")
        if value is not None and value.is_read_only:
            refuse(*argument[:2], "is read-only, must be writable", "EW-03")
        if value is None and parameter.raw:
            refuse(*argument[:2], "is raw: its tensor must be given", "EW-06")
    elif not isinstance(value, (Tensor, np.ndarray)) and (
        parameter.raw or not isinstance(value, (bool, int, float, np.generic))
    ):
        allowed = "an array or a tensor" if parameter.raw else "an array, a tensor or a number"
        raise argument.wrong_kind(value, allowed)
    if dtype is not None and not is_known(dtype):
        dtype = dtype.newbyteorder("=")
        if not isinstance(value, np.ndarray) or not is_known(dtype):
            message = f"has data type {value.dtype}, must be of the host's byte order and one of "
            refuse(*argument[:2], message + ", ".join(GLSL_TYPES), "EW-04")
        value = value.astype(dtype)
    return Operand(parameter, dtype, value=value)


def array_of(name: str, field: str, value: Any) -> tuple[Any, bool]:
    """Return an array for a list or for another library's array (EW-03); else the value itself.

    The second result says whether the data type is still to be chosen, as for a list.
    """
    if isinstance(value, (list, tuple)):
        with numpy_refusals(name, field, "EW-03"):
            array = np.asarray(value)
        if array.dtype.kind not in "biuf":
            raise ArgumentName(name, field, "EW-03").wrong_kind(value, "a list of numbers")
        return array, True
    if not isinstance(value, _KNOWN) and hasattr(value, "__dlpack__"):
        return as_array(value), False
    return value, False


def choose_dtypes(name: str, operands: Sequence[Operand]) -> None:
    """Set the data types of all operands to those of their parameters (EW-04)."""
    known: dict[str, tuple[np.dtype[Any], str]] = {
        each.parameter.type: (dtype_of(each.parameter.type), "")
        for each in operands
        if not each.parameter.is_variable
    }
    for each in operands:
        parameter = each.parameter
        if each.dtype is None or not (parameter.is_variable or each.is_array):
            continue  # a number, which is converted later
        default = each.dtype, f", the type {parameter.type} of {parameter.name}"
        expected, reason = known.setdefault(parameter.type, default)
        if each.dtype != expected:
            message = f"has data type {each.dtype}, must be {expected}{reason}; astype converts it"
            refuse(name, parameter.name, message, "EW-04")
    for kind, numpy_type in _DEFAULTS:
        for each in operands:
            if each.dtype is None and _is_of(kind, each.value):
                known.setdefault(each.parameter.type, (np.dtype(numpy_type), ""))
    for each in operands:
        if each.parameter.type not in known:
            field, wanted_type = each.parameter.name, each.parameter.type
            message = f"has type {wanted_type}, which no input has: its tensor must be given"
            refuse(name, field, message, "EW-04")
        is_weak, each.dtype = each.dtype is None, known[each.parameter.type][0]
        if is_weak and each.is_array:
            each.value = _cast(name, each)


def _is_of(kind: type, value: Any) -> bool:
    """Whether a Python number, or all numbers of a list, belong to a kind."""
    if isinstance(value, np.ndarray):
        return value.dtype.kind in {float: "f", int: "iu", bool: "b"}[kind]
    return isinstance(value, kind) and (kind is bool) == isinstance(value, bool)


def _cast(name: str, operand: Operand) -> Any:
    """Return the numbers of a list in the data type of an operand, if it can hold them (EW-05)."""
    field, array, dtype = operand.parameter.name, operand.value, operand.dtype
    rank, kind = _KINDS[kind_of(dtype)]
    if array.size and _KINDS[array.dtype.kind][0] > rank:
        message = f"got {show(array.tolist())}, each must be {kind}, as its type is {dtype}"
        raise InvalidDescTypeError(name, field, message, "EW-05")
    with np.errstate(over="ignore"), numpy_refusals(name, field, "EW-05"):
        cast = array.astype(dtype)
    if array.dtype.kind in "iu" and rank == 1 and (cast != array).any():
        limits = limits_of(dtype)
        message = f"got {show(array.tolist())}, must be from {limits.min} to {limits.max}"
        raise InvalidDescOverflowError(name, field, message, "EW-05")
    return cast


def number_of(name: str, operand: Operand) -> Any:
    """Return the value of an operand as a Python number that its data type can hold (EW-05)."""
    field, value, dtype = operand.parameter.name, operand.value, operand.dtype
    number = value.item() if isinstance(value, np.generic) else value
    rank, kind = _KINDS[kind_of(dtype)]
    if (0 if isinstance(number, bool) else 1 if isinstance(number, int) else 2) > rank:
        message = f"got {show(value)}, must be {kind}, as its type is {dtype}"
        raise InvalidDescTypeError(name, field, message, "EW-05")
    try:
        struct.pack(f"<{FORMATS[dtype.name]}", number)
    except (struct.error, OverflowError):
        limits = limits_of(dtype)
        message = f"got {show(value)}, must be {dtype}, from {limits.min} to {limits.max}"
        raise InvalidDescOverflowError(name, field, message, "EW-05") from None
    return number


def shape_of(name: str, operands: Sequence[Operand], size: Any) -> Ints:
    """Return the shape of the outputs (EW-06), which have 2**31 - 1 elements at most (EW-07)."""
    shaped = [(each.parameter, each.value.shape) for each in operands if each.is_array]
    inputs = {p.name: shape for p, shape in shaped if not p.raw and not p.is_output}
    targets = [(p.name, shape) for p, shape in shaped if p.is_output and not p.raw]
    if (size is None) == (not targets and not inputs and any(e.parameter.raw for e in operands)):
        message = f"got {show(size)}, must be given if and only if no other argument has a shape"
        refuse(name, "size", message, "EW-06")
    if size is not None:
        shape = one_or_more(size, ArgumentName(name, "size", "EW-06"))
        if any(n < 0 for n in shape):
            refuse(name, "size", f"got {show(size)}, must be at least 0", "EW-06")
    else:
        common = broadcast_shapes([*(inputs or dict(targets[:1])).values()])
        if common is None:
            listed = ", ".join(f"{field} {shape}" for field, shape in inputs.items())
            refuse(name, "arguments", f"cannot be broadcast together: {listed}", "EW-06")
        shape = common
    for field, actual in targets:
        if actual != shape:
            refuse(name, field, f"has shape {actual}, must be {shape}", "EW-06")
    if prod(shape) > MAX_ELEMENTS:
        message = f"got {prod(shape)} elements, must be {MAX_ELEMENTS} at most"
        refuse(name, "arguments", message, "EW-07")
    return shape
