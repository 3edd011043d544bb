"""The protocols by which NumPy and other libraries find the functions of vkops for tensors."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from inspect import BoundArguments, Parameter, Signature
from operator import attrgetter
from typing import Any, NoReturn

from vkops.arguments.refused_operators import computing_function
from vkops.errors import InvalidDescTypeError, import_late
from vkops.runtime.device import OperatorDevice

API_VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12")
"""Versions of the array API whose functions for creating, moving and indexing elements are here."""

UNCHANGED = {
    *("copyto", "save", "savetxt", "savez", "savez_compressed"),
    *("iscomplexobj", "isrealobj", "may_share_memory", "ndim", "shape", "shares_memory", "size"),
}
"""NumPy's functions that describe, save or read an array: they run as they are."""

COMPARISONS = {"allclose", "array_equal", "array_equiv"}
"""NumPy's functions that say whether arrays are the same: they read the elements of tensors."""

COUNTERPARTS = {
    "array": "vkops.tensors.creation:array",
    "asanyarray": "vkops:asarray",
    "split": "vkops.tensors.manipulation:split_at",  # vkops.split takes sizes, as DirectML does
}
"""NumPy's functions whose counterparts have other names than theirs in vkops or vkops.kernels."""

RENAMED = {"ddof": "correction"}
"""NumPy's arguments that have another name in vkops."""


def refuse_to_compute(operator: str) -> NoReturn:
    """Refuse an operator or function that vkops does not have for tensors (ARRAY-08)."""
    instead = computing_function(operator.rpartition(".")[2]) or ".numpy() to compute"
    message = f"{operator} is not available for tensors; use {instead}"
    raise InvalidDescTypeError("", "tensor", message, "ARRAY-08")


def call_counterpart(
    func: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    device: OperatorDevice,
) -> Any:
    """Call the function of vkops that stands for one of NumPy, if there is one (ARRAY-08)."""
    if func.__module__ == "numpy" and func.__name__ in UNCHANGED:
        return func._implementation(*args, **kwargs)  # type: ignore[attr-defined]
    counterpart = _counterpart(func)
    if counterpart is None:
        refuse_to_compute(f"{func.__module__}.{func.__name__}")
    function, signature, numpys = counterpart
    try:
        call = _rebound(numpys.bind(*args, **kwargs), signature)
    except TypeError as error:
        message = f"{error}; use .numpy() for what vkops.{func.__name__} does not take"
        raise InvalidDescTypeError("", f"numpy.{func.__name__}", message, "ARRAY-08") from error
    if "device" in signature.parameters:
        call.arguments.setdefault("device", device)
    return function(*call.args, **call.kwargs)


@lru_cache(maxsize=256)
def _counterpart(
    func: Callable[..., Any],
) -> tuple[Callable[..., Any], Signature, Signature] | None:
    """The function of vkops that stands for one of NumPy, its signature and NumPy's."""
    if func.__module__ != "numpy":  # such as numpy.linalg.diagonal, which takes other axes
        return None
    name = func.__name__
    for counterpart in (COUNTERPARTS.get(name), f"vkops:{name}", f"vkops.kernels:{name}"):
        module, _, attribute = (counterpart or ":").partition(":")
        function = getattr(import_late(module), attribute, None) if module else None
        if inspect.isfunction(function):
            break
    else:
        return None
    signature = inspect.signature(function)
    try:
        return function, signature, inspect.signature(func)
    except ValueError:  # NumPy 1 knows no signatures of functions in C
        order = Parameter("order", Parameter.KEYWORD_ONLY, default=None)
        parameters = {"order": order, **signature.parameters}.values()
        return function, signature, signature.replace(parameters=sorted(parameters, key=_kind))


_kind = attrgetter("kind")


def _rebound(bound: BoundArguments, signature: Signature) -> BoundArguments:
    """Bind arguments of a function of NumPy to its counterpart.

    Arguments that have NumPy's default are left out, so that the counterpart need not have them. So
    is the order of a result in memory, unless it is column by column: tensors have only one.
    """
    taken = signature.parameters
    positional: list[Any] = []
    keywords: dict[str, Any] = {}
    for place, (name, parameter) in enumerate(bound.signature.parameters.items()):
        default = parameter.default
        value = bound.arguments.get(name, default)
        is_plain = isinstance(default, (str, int)) and type(value) is type(default)
        if value is default or (is_plain and value == default):
            continue
        name = RENAMED.get(name, name)
        if parameter.kind is Parameter.VAR_POSITIONAL:
            positional += value
        elif parameter.kind is Parameter.VAR_KEYWORD:
            keywords |= value
        elif name in taken and taken[name].kind is not Parameter.POSITIONAL_ONLY:
            keywords[name] = value
        elif name == "order" and isinstance(value, str) and value in ("C", "K", "A"):
            continue
        elif place == len(positional):  # of another name there
            positional.append(value)
        else:
            keywords[name] = value
    return signature.bind(*positional, **keywords)
