"""Python's arithmetic and comparison operators, which tensors refuse: vkops moves data only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, NoReturn

from vkops.errors import InvalidDescTypeError

_COMPARISONS = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "contains": "in"}
_UNARY = {"neg": "-", "pos": "+", "invert": "~", "abs": "abs", "round": "round"}
_BINARY = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "matmul": "@",
    "truediv": "/",
    "floordiv": "//",
    "mod": "%",
    "divmod": "divmod",
    "pow": "**",
    "lshift": "<<",
    "rshift": ">>",
    "and": "&",
    "or": "|",
    "xor": "^",
}

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
"""The special methods that raise a TypeError, with the operator that calls each."""


def refuse_to_compute(operator: str) -> NoReturn:
    """Refuse an operator or function that computes (ARRAY-08)."""
    message = f"{operator} is not available: tensors only move data; use .numpy() to compute"
    raise InvalidDescTypeError("", "tensor", message, "ARRAY-08")


def _refusing(operator: str) -> Callable[..., NoReturn]:
    def method(self: object, *_: object) -> NoReturn:
        refuse_to_compute(operator)

    return method


class NoOperators:
    """Every operator that computes raises a TypeError that names ``.numpy()`` (ARRAY-08).

    ``==`` and ``!=`` of a tensor and itself are True and False, since weak references to it
    compare it so; tensors are hashed by identity.
    """

    __slots__ = ()

    __hash__: ClassVar[Any] = object.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other or refuse_to_compute("==")

    def __ne__(self, other: object) -> bool:
        return self is not other and refuse_to_compute("!=")

    def __array_ufunc__(self, ufunc: Any, *_: Any, **__: Any) -> NoReturn:
        refuse_to_compute(f"numpy.{ufunc.__name__}")


for _name, _operator in REFUSED.items():
    setattr(NoOperators, _name, _refusing(_operator))
