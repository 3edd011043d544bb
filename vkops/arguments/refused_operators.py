"""Operators and functions that compute, for classes that refuse them."""

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


def has_kernel(name: str) -> bool:
    """Whether ``vkops.kernels`` has a function that computes what is refused."""
    # NumPy looks for many attributes with underscores, for which nothing needs to be imported.
    return name[:1] != "_" and callable(getattr(import_late("vkops.kernels"), name, None))


def refuse_operators(kind: type, refuse: Callable[[str], NoReturn]) -> None:
    """Have a class call a function for these operators, with the operator as text."""
    for name, operator in REFUSED.items():
        setattr(kind, name, lambda *_, operator=operator: refuse(operator))
