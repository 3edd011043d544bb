"""Operators and methods of tensors, which call the functions of ``vkops.kernels`` that compute."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from vkops.errors import import_late
from vkops.tensors import array_protocols

if TYPE_CHECKING:
    from vkops.tensors.tensor import Tensor

Unary = Callable[[Any], "Tensor"]
Binary = Callable[[Any, Any], "Tensor"]
Method = Callable[..., "Tensor"]

_found: dict[str, Callable[..., Any]] = {}
_KNOWN = (int, float, complex, np.ndarray, np.generic, list, tuple)


def _load(name: str) -> Callable[..., Any]:
    """Return the function with this name; it is imported late from an outer package."""
    function: Callable[..., Any] = getattr(import_late("vkops.kernels.ufuncs"), name)
    _found[name] = function
    return function


def _takes(other: Any) -> bool:
    """Whether an operator computes with a value itself; otherwise Python asks the other operand."""
    if isinstance(other, (Operators, *_KNOWN)):
        return True
    # As NumPy does, leave it to objects with their own __array_ufunc__, such as Dask's arrays.
    return hasattr(other, "__array__") and not hasattr(other, "__array_ufunc__")


def unary(name: str) -> Unary:
    """Return the operator for a function of one operand."""

    def operator(self: Any) -> Any:
        return (_found.get(name) or _load(name))(self)

    return operator


def binary(name: str) -> Binary:
    """Return the operator for a function of two operands."""

    def operator(self: Any, other: Any) -> Any:
        if _takes(other):
            return (_found.get(name) or _load(name))(self, other)
        return NotImplemented

    return operator


def reflected(name: str) -> Binary:
    """Return the operator for a function whose second operand is the object."""

    def operator(self: Any, other: Any) -> Any:
        if _takes(other):
            return (_found.get(name) or _load(name))(other, self)
        return NotImplemented

    return operator


def in_place(name: str) -> Binary:
    """Return the operator that writes the result of a function to its first operand."""

    def operator(self: Any, other: Any) -> Any:
        if _takes(other):
            return (_found.get(name) or _load(name))(self, other, out=self)
        return NotImplemented

    return operator


class Operators:
    """The operators that compute, except for those in place."""

    __slots__ = ()

    __add__: ClassVar[Binary] = binary("add")
    __radd__: ClassVar[Binary] = reflected("add")
    __sub__: ClassVar[Binary] = binary("subtract")
    __rsub__: ClassVar[Binary] = reflected("subtract")
    __mul__: ClassVar[Binary] = binary("multiply")
    __rmul__: ClassVar[Binary] = reflected("multiply")
    __truediv__: ClassVar[Binary] = binary("divide")
    __rtruediv__: ClassVar[Binary] = reflected("divide")
    __floordiv__: ClassVar[Binary] = binary("floor_divide")
    __rfloordiv__: ClassVar[Binary] = reflected("floor_divide")
    __mod__: ClassVar[Binary] = binary("remainder")
    __rmod__: ClassVar[Binary] = reflected("remainder")
    __matmul__: ClassVar[Binary] = binary("matmul")
    __rmatmul__: ClassVar[Binary] = reflected("matmul")
    __and__: ClassVar[Binary] = binary("bitwise_and")
    __rand__: ClassVar[Binary] = reflected("bitwise_and")
    __or__: ClassVar[Binary] = binary("bitwise_or")
    __ror__: ClassVar[Binary] = reflected("bitwise_or")
    __xor__: ClassVar[Binary] = binary("bitwise_xor")
    __rxor__: ClassVar[Binary] = reflected("bitwise_xor")
    __lshift__: ClassVar[Binary] = binary("bitwise_left_shift")
    __rlshift__: ClassVar[Binary] = reflected("bitwise_left_shift")
    __rshift__: ClassVar[Binary] = binary("bitwise_right_shift")
    __rrshift__: ClassVar[Binary] = reflected("bitwise_right_shift")
    __lt__: ClassVar[Binary] = binary("less")
    __le__: ClassVar[Binary] = binary("less_equal")
    __gt__: ClassVar[Binary] = binary("greater")
    __ge__: ClassVar[Binary] = binary("greater_equal")
    __neg__: ClassVar[Unary] = unary("negative")
    __pos__: ClassVar[Unary] = unary("positive")
    __invert__: ClassVar[Unary] = unary("bitwise_invert")

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        """Run a universal function of NumPy as the function of vkops that has its name (NEP 13).

        Raises:
            InvalidDescTypeError: vkops has no such function, method or argument (ARRAY-08).
        """
        return import_late("vkops.kernels.ufuncs").call_ufunc(ufunc, method, inputs, options)

    _abs: ClassVar[Unary] = unary("abs")
    _equal: ClassVar[Binary] = binary("equal")
    _not_equal: ClassVar[Binary] = binary("not_equal")
    _pow: ClassVar[Binary] = binary("pow")
    _rpow: ClassVar[Binary] = reflected("pow")
    _divmod: ClassVar[Binary] = binary("divmod")
    _rdivmod: ClassVar[Binary] = reflected("divmod")

    # As NumPy's arrays, since == compares elements.
    __hash__: ClassVar[None] = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> Tensor:  # type: ignore[override]
        return self._equal(other)

    def __ne__(self, other: object) -> Tensor:  # type: ignore[override]
        return self._not_equal(other)

    def __abs__(self) -> Tensor:
        return self._abs()

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

    __iadd__: ClassVar[Binary] = in_place("add")
    __isub__: ClassVar[Binary] = in_place("subtract")
    __imul__: ClassVar[Binary] = in_place("multiply")
    __itruediv__: ClassVar[Binary] = in_place("divide")
    __ifloordiv__: ClassVar[Binary] = in_place("floor_divide")
    __imod__: ClassVar[Binary] = in_place("remainder")
    __ipow__: ClassVar[Binary] = in_place("pow")
    __imatmul__: ClassVar[Binary] = in_place("matmul")
    __iand__: ClassVar[Binary] = in_place("bitwise_and")
    __ior__: ClassVar[Binary] = in_place("bitwise_or")
    __ixor__: ClassVar[Binary] = in_place("bitwise_xor")
    __ilshift__: ClassVar[Binary] = in_place("bitwise_left_shift")
    __irshift__: ClassVar[Binary] = in_place("bitwise_right_shift")


def _method(name: str) -> Any:
    """Return the method that calls a function in the way NumPy's function of this name does."""
    numpys = getattr(np, name)

    def method(self: Any, *arguments: Any, **options: Any) -> Any:
        return array_protocols.call_counterpart(numpys, (self, *arguments), options, self.device)

    method.__name__ = name
    method.__doc__ = f"Return ``numpy.{name}`` of the tensor, by ``vkops.{name}``."
    return method


class NumpyMethods:
    """The methods of a ``Tensor`` that compute, with the arguments of NumPy's methods."""

    __slots__ = ()

    all: ClassVar[Method] = _method("all")
    any: ClassVar[Method] = _method("any")
    argmax: ClassVar[Method] = _method("argmax")
    argmin: ClassVar[Method] = _method("argmin")
    argsort: ClassVar[Method] = _method("argsort")
    clip: ClassVar[Method] = _method("clip")
    cumprod: ClassVar[Method] = _method("cumprod")
    cumsum: ClassVar[Method] = _method("cumsum")
    max: ClassVar[Method] = _method("max")
    mean: ClassVar[Method] = _method("mean")
    min: ClassVar[Method] = _method("min")
    nonzero: ClassVar[Callable[..., tuple[Tensor, ...]]] = _method("nonzero")
    prod: ClassVar[Method] = _method("prod")
    round: ClassVar[Method] = _method("round")
    std: ClassVar[Method] = _method("std")
    sum: ClassVar[Method] = _method("sum")
    var: ClassVar[Method] = _method("var")
