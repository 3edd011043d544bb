"""NumPy's universal functions of tensors (NEP 13)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from vkops import kernels
from vkops.errors import InvalidDescTypeError
from vkops.kernels.ufuncs import FUNCTIONS
from vkops.tensors.array_protocols import refuse_to_compute
from vkops.tensors.operators import Operators
from vkops.tensors.tensor import Tensor

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
