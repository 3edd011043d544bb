"""Python's arithmetic and comparison operators, which tensors refuse: vkops moves data only."""

from __future__ import annotations

from typing import Any, ClassVar, NoReturn

from vkops.arguments.refused_operators import refuse_operators
from vkops.errors import InvalidDescTypeError


def refuse_to_compute(operator: str) -> NoReturn:
    """Refuse an operator or function that computes (ARRAY-08)."""
    message = f"{operator} is not available: tensors only move data; use .numpy() to compute"
    raise InvalidDescTypeError("", "tensor", message, "ARRAY-08")


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


refuse_operators(NoOperators, refuse_to_compute)
