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
"""The versions of the array API of which the functions that move elements exist here."""

UNCHANGED = {
    *("copyto", "save", "savetxt", "savez", "savez_compressed"),
    *("iscomplexobj", "isrealobj", "may_share_memory", "ndim", "shape", "shares_memory", "size"),
}
"""NumPy's functions that describe, save or read an array: NumPy's own code runs for them."""

COMPARISONS = {"allclose", "array_equal", "array_equiv"}
"""NumPy's functions that compare whole arrays: they read the elements of tensors."""

COUNTERPARTS = {
    "array": "vkops.tensors.creation:array",
    "asanyarray": "vkops:asarray",
    "split": "vkops.tensors.manipulation:split_at",  # vkops.split takes sizes, as DirectML does
}
"""NumPy's functions whose counterparts in vkops or vkops.kernels have other names."""

RENAMED = {"ddof": "correction"}
"""NumPy's arguments that have another name in vkops."""


def refuse_to_compute(operator: str) -> NoReturn:
    """Raise an error: vkops does not have this operator or function for tensors (ARRAY-08)."""
    instead = computing_function(operator.rpartition(".")[2]) or ".numpy() to compute"
    message = f"{operator} is not available for tensors; use {instead}"
    raise InvalidDescTypeError("", "tensor", message, "ARRAY-08")


def call_counterpart(
    func: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    device: OperatorDevice,
) -> Any:
    """Call the function of vkops that corresponds to a function of NumPy (ARRAY-08)."""
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
    """Return the function of vkops for a function of NumPy, and the signatures of both."""
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
    """Bind the arguments of a call of a NumPy function to its counterpart.

    Arguments with NumPy's default value are left out, so that the counterpart need not have them.
    The memory order of the result is left out, too, unless it is column by column: tensors have one
    order only.
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
