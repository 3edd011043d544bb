"""The operators of tensors, which call the functions of ``vkops.kernels`` that compute."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from vkops.errors import import_late

if TYPE_CHECKING:
    from vkops.tensors.tensor import Tensor

Unary = Callable[[Any], "Tensor"]
Binary = Callable[[Any, Any], "Tensor"]

_found: dict[str, Callable[..., Any]] = {}
_KNOWN = (int, float, complex, np.ndarray, np.generic, list, tuple)


def _load(name: str) -> Callable[..., Any]:
    """The function of a name, from the layer above this one."""
    function: Callable[..., Any] = getattr(import_late("vkops.kernels.ufuncs"), name)
    _found[name] = function
    return function


def _takes(other: Any) -> bool:
    """Whether an operator computes with a value, and does not leave the operation to it."""
    if isinstance(other, (Operators, *_KNOWN)):
        return True
    # As NumPy's arrays do, it is left to objects with rules of their own, such as Dask's arrays.
    return hasattr(other, "__array__") and not hasattr(other, "__array_ufunc__")


def unary(name: str) -> Unary:
    """The operator for a function of one operand."""

    def operator(self: Any) -> Any:
        return (_found.get(name) or _load(name))(self)

    return operator


def binary(name: str) -> Binary:
    """The operator for a function of two operands."""

    def operator(self: Any, other: Any) -> Any:
        if _takes(other):
            return (_found.get(name) or _load(name))(self, other)
        return NotImplemented

    return operator


def reflected(name: str) -> Binary:
    """The operator for a function whose second operand is the object."""

    def operator(self: Any, other: Any) -> Any:
        if _takes(other):
            return (_found.get(name) or _load(name))(other, self)
        return NotImplemented

    return operator


def in_place(name: str) -> Binary:
    """The operator that writes the result of a function to its first operand."""

    def operator(self: Any, other: Any) -> Any:
        if _takes(other):
            return (_found.get(name) or _load(name))(self, other, out=self)
        return NotImplemented

    return operator


class Operators:
    """The operators that compute, other than those in place."""

    __slots__ = ()

    __add__, __radd__ = binary("add"), reflected("add")
    __sub__, __rsub__ = binary("subtract"), reflected("subtract")
    __mul__, __rmul__ = binary("multiply"), reflected("multiply")
    __truediv__, __rtruediv__ = binary("divide"), reflected("divide")
    __floordiv__, __rfloordiv__ = binary("floor_divide"), reflected("floor_divide")
    __mod__, __rmod__ = binary("remainder"), reflected("remainder")
    __and__, __rand__ = binary("bitwise_and"), reflected("bitwise_and")
    __or__, __ror__ = binary("bitwise_or"), reflected("bitwise_or")
    __xor__, __rxor__ = binary("bitwise_xor"), reflected("bitwise_xor")
    __lshift__, __rlshift__ = binary("bitwise_left_shift"), reflected("bitwise_left_shift")
    __rshift__, __rrshift__ = binary("bitwise_right_shift"), reflected("bitwise_right_shift")
    __lt__, __le__ = binary("less"), binary("less_equal")
    __gt__, __ge__ = binary("greater"), binary("greater_equal")
    __neg__, __pos__ = unary("negative"), unary("positive")
    __abs__, __invert__ = unary("abs"), unary("bitwise_invert")

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        """Run a universal function of NumPy as the function of vkops that has its name (NEP 13).

        Raises:
            InvalidDescTypeError: vkops has no such function, method or argument (ARRAY-08).
        """
        return import_late("vkops.kernels.universal").call_ufunc(ufunc, method, inputs, options)

    _equal, _not_equal = binary("equal"), binary("not_equal")
    _pow, _rpow = binary("pow"), reflected("pow")
    _divmod, _rdivmod = binary("divmod"), reflected("divmod")

    __hash__ = None  # type: ignore[assignment]  # as NumPy's arrays, since == compares elements

    def __eq__(self, other: object) -> Tensor:  # type: ignore[override]
        return self._equal(other)

    def __ne__(self, other: object) -> Tensor:  # type: ignore[override]
        return self._not_equal(other)

    def __divmod__(self, other: Any) -> tuple[Tensor, Tensor]:
        return self._divmod(other)  # type: ignore[return-value]

    def __rdivmod__(self, other: Any) -> tuple[Tensor, Tensor]:
        return self._rdivmod(other)  # type: ignore[return-value]

    def __pow__(self, other: Any, modulo: None = None) -> Tensor:
        return NotImplemented if modulo is not None else self._pow(other)

    def __rpow__(self, other: Any, modulo: None = None) -> Tensor:
        return NotImplemented if modulo is not None else self._rpow(other)


class InPlaceOperators(Operators):
    """All operators that compute, for a ``Tensor``."""

    __slots__ = ()

    __iadd__, __isub__, __imul__ = in_place("add"), in_place("subtract"), in_place("multiply")
    __itruediv__, __ifloordiv__ = in_place("divide"), in_place("floor_divide")
    __imod__, __ipow__ = in_place("remainder"), in_place("pow")
    __iand__, __ior__, __ixor__ = (
        in_place("bitwise_and"),
        in_place("bitwise_or"),
        in_place("bitwise_xor"),
    )
    __ilshift__, __irshift__ = in_place("bitwise_left_shift"), in_place("bitwise_right_shift")
