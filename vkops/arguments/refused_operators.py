"""Operators and functions that compute, for classes whose objects only move data."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

from vkops.errors import import_late

_COMPARISONS = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "contains": "in"}
_UNARY = {"neg": "-", "pos": "+", "invert": "~", "abs": "abs", "round": "round"}
_BINARY = {
    "add": "+", "sub": "-", "mul": "*", "matmul": "@", "truediv": "/", "floordiv": "//", "mod": "%",
    "divmod": "divmod", "pow": "**", "lshift": "<<", "rshift": ">>", "and": "&", "or": "|",
    "xor": "^",
}  # fmt: skip

REFUSED: dict[str, str] = {
    f"__{name}__": operator
    for names in (
        _COMPARISONS,
        _UNARY,
        _BINARY,
        {f"r{name}": operator for name, operator in _BINARY.items()},
        {f"i{name}": f"{operator}=" for name, operator in _BINARY.items() if name != "divmod"},
    )
    for name, operator in names.items()
}
"""The special methods of operators that compute, with the operator that calls each."""


def computing_function(name: str) -> str:
    """Return the function of vkops to use for a function that computes; "" if there is none."""
    # NumPy often looks for attributes with underscores: answer without importing anything.
    if name[:1] == "_":
        return ""
    if name in import_late("vkops.kernels.ufuncs").FUNCTIONS:
        return f"vkops.{name}"
    has_kernel = callable(getattr(import_late("vkops.kernels"), name, None))
    return f"vkops.kernels.{name}" if has_kernel else ""


def refuse_operators(kind: type, refuse: Callable[[str], NoReturn]) -> None:
    """Let operators that compute call ``refuse`` for objects of a class, with the operator as text.

    Operators that the class or a base class defines are left as they are.
    """
    for name, operator in REFUSED.items():
        if not any(name in vars(base) for base in kind.__mro__[:-1]):
            setattr(kind, name, lambda *_, operator=operator: refuse(operator))
