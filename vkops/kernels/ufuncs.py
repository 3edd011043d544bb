"""The functions of the table of arithmetic, by the names of the array API and of NumPy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from vkops.arguments.values import ArgumentName, integer
from vkops.elementwise.formats import kind_of
from vkops.errors import InvalidDescOverflowError, InvalidDescTypeError
from vkops.kernels.products import matmul, vecdot
from vkops.kernels.table import TABLE, Entry
from vkops.kernels.table_kernels import TableCalls, kind_of_operand, operand_of
from vkops.tensors.array_protocols import refuse_to_compute
from vkops.tensors.operators import Operators
from vkops.tensors.tensor import DeviceLike, Tensor


def _function(entry: Entry) -> Callable[..., Any]:
    """The function of an entry, of one operand or of two."""
    calls = TableCalls(entry)
    plain = calls.plain

    def unary(
        x: Any,
        /,
        *,
        out: Any = None,
        where: Any = True,
        dtype: Any = None,
        device: DeviceLike = None,
    ) -> Any:
        if out is None and where is True and dtype is None:
            kernel = plain.get(x._dtype if type(x) is Tensor else type(x))
            if kernel is not None:
                return kernel(x, device=device)
        return calls((x,), out, where, dtype, device)

    def binary(
        x1: Any,
        x2: Any,
        /,
        *,
        out: Any = None,
        where: Any = True,
        dtype: Any = None,
        device: DeviceLike = None,
    ) -> Any:
        if out is None and where is True and dtype is None:
            first = x1._dtype if type(x1) is Tensor else type(x1)
            kernel = plain.get((first, x2._dtype if type(x2) is Tensor else type(x2)))
            if kernel is not None:
                try:
                    return kernel(x1, x2, device=device)
                except InvalidDescOverflowError:  # a number beyond the data type
                    pass
        return calls((x1, x2), out, where, dtype, device)

    function: Callable[..., Any] = unary if entry.operands == 1 else binary
    function.__name__ = function.__qualname__ = entry.name
    function.__doc__ = _documentation(entry)
    return function


def _documentation(entry: Entry) -> str:
    numpys = entry.ufunc or (entry.aliases or (entry.name,))[0]
    return f"""{entry.summary}

    It has the arguments and the rule of data types of ``numpy.{numpys}``: ``out`` is a tensor that
    gets the results, which are computed only where ``where`` is true, and ``dtype`` chooses their
    data type. See [the page about arithmetic](../arithmetic.md).

    Raises:
        InvalidDescError: operands that have no data type in common (ARITH-01), an ``out`` that
            cannot hold the results (ARITH-02), a device without a data type (SH-02), or as for
            ``ElementwiseKernel``.
    """


_clipped = TableCalls(TABLE["clip"])
_rounded = _function(TABLE["round"])


def clip(
    x: Any,
    /,
    min: Any = None,
    max: Any = None,
    *,
    out: Any = None,
    where: Any = True,
    dtype: Any = None,
    device: DeviceLike = None,
) -> Any:
    """Limit elements to a range, as ``numpy.clip``; a limit that is None does not limit.

    Arguments and errors are those of ``maximum``.

    >>> import vkops
    >>> vkops.clip(vkops.arange(5), 1, 3).tolist()
    [1, 1, 2, 3, 3]
    """
    options = {"out": out, "where": where, "dtype": dtype, "device": device}
    if min is None or max is None:
        if min is None and max is None:
            return FUNCTIONS["conj"](x, **options)  # a copy
        is_least = max is None
        return FUNCTIONS["maximum" if is_least else "minimum"](
            x, min if is_least else max, **options
        )
    return _clipped((x, min, max), out, where, dtype, device)


def round(
    x: Any,
    /,
    decimals: int = 0,
    *,
    out: Any = None,
    where: Any = True,
    dtype: Any = None,
    device: DeviceLike = None,
) -> Any:
    """Round to a number of decimals, ties to even, as ``numpy.round``.

    Arguments and errors are those of ``add``; ``decimals`` is an integer (EW-05).

    >>> import vkops
    >>> vkops.round(vkops.asarray([0.5, 1.5, -2.25])).tolist()
    [0.0, 2.0, -2.0]
    """
    places = integer(decimals, ArgumentName("round", "decimals", "EW-05"))
    options = {"out": out, "where": where, "dtype": dtype, "device": device}
    x = operand_of("round", "x", x)
    if kind_of_operand(x) in (bool, np.bool_):  # NumPy has no other rule for these
        return FUNCTIONS["rint"](x, **options)
    if not places or (places > 0 and kind_of(np.dtype(kind_of_operand(x))) != "f"):
        return _rounded(x, **options)
    factor = 10.0 ** abs(places)
    up, down = ("multiply", "divide") if places > 0 else ("divide", "multiply")
    scaled = _rounded(FUNCTIONS[up](x, factor, device=device))
    return FUNCTIONS[down](scaled, factor, **options)


def divmod(
    x1: Any, x2: Any, /, *, out: Any = (None, None), where: Any = True, device: DeviceLike = None
) -> tuple[Any, Any]:
    """Return the quotients of ``floor_divide`` and the remainders, as ``numpy.divmod``.

    Arguments and errors are those of ``floor_divide``.

    >>> import vkops
    >>> [part.tolist() for part in vkops.divmod(vkops.asarray([7, -7]), 2)]
    [[3, -4], [1, 1]]
    """
    first, second = out
    options = {"where": where, "device": device}
    quotient = FUNCTIONS["floor_divide"](x1, x2, **options)
    rest = FUNCTIONS["remainder"](x1, x2, out=second, **options)
    if first is not None:  # an operand may be written to only now
        first[...] = quotient
        quotient = first
    return quotient, rest


FUNCTIONS: dict[str, Callable[..., Any]] = {
    name: function
    for entry in TABLE.values()
    if entry.operands < 3
    for function in [_function(entry)]
    for name in (entry.name, *entry.aliases)
}
FUNCTIONS |= {"clip": clip, "round": round, "around": round, "divmod": divmod}
FUNCTIONS |= {"matmul": matmul, "vecdot": vecdot}
"""The functions by all of their names."""


def __getattr__(name: str) -> Any:
    # Not as variables of this module, where "abs" and others have Python's meaning.
    if name in FUNCTIONS:
        return FUNCTIONS[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


# -- NumPy's universal functions (NEP 13) ----------------------------------------------------------

_REDUCTIONS = {
    "add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min", "logical_and": "all",
    "logical_or": "any",
}  # fmt: skip
_ACCUMULATIONS = {"add": "cumsum", "multiply": "cumprod"}
_DEFAULTS = {"casting": "same_kind", "order": "K", "subok": True}
_TAKEN = (Operators, np.ndarray, np.generic, bool, int, float, complex, list, tuple, str, bytes)


def call_ufunc(ufunc: Any, method: str, inputs: Sequence[Any], options: dict[str, Any]) -> Any:
    """Run a universal function of NumPy as the function of vkops that has its name (NEP 13).

    Raises:
        InvalidDescTypeError: vkops has no such function, method or argument (ARRAY-08).
    """
    from vkops import kernels

    outputs = options.pop("out", (None,))
    if not all(isinstance(each, (*_TAKEN, type(None))) for each in (*inputs, *outputs)):
        return NotImplemented
    name = ufunc.__name__
    is_own = getattr(np, name, None) is ufunc
    if method == "__call__" and is_own and name in FUNCTIONS:
        function, taken = FUNCTIONS[name], {"where", "dtype"}
        options = {k: v for k, v in options.items() if k not in _DEFAULTS or v != _DEFAULTS[k]}
    elif method == "outer" and is_own and name in FUNCTIONS and len(inputs) == 2:
        a, b = inputs
        a = np.asarray(a) if not isinstance(a, Tensor) else a
        inputs, function = (a.reshape(a.shape + (1,) * np.ndim(b)), b), FUNCTIONS[name]
        taken = {"where", "dtype"}
    elif method == "reduce" and is_own and name in _REDUCTIONS:
        function, taken = getattr(kernels, _REDUCTIONS[name]), {"axis", "dtype", "keepdims"}
        options.setdefault("axis", 0)
    elif method == "accumulate" and is_own and name in _ACCUMULATIONS:
        function, taken = getattr(kernels, _ACCUMULATIONS[name]), {"axis", "dtype"}
        options.setdefault("axis", 0)
    elif method == "at" and is_own and name == "add":
        function, taken = kernels.scatter_add, set()
    else:
        refuse_to_compute(f"numpy.{name}{'' if method == '__call__' else f'.{method}'}")
    if unknown := sorted(options.keys() - taken):
        message = f"got {', '.join(unknown)}, which vkops does not take"
        raise InvalidDescTypeError("", f"numpy.{name}", message, "ARRAY-08")
    if any(each is not None for each in outputs):
        options["out"] = outputs[0] if len(outputs) == 1 else outputs
    return function(*inputs, **options)
