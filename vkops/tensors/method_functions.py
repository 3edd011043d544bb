"""Functions that call a method of ``Tensor``, named as in NumPy and the array API.

Their names and signatures are in ``method_functions.pyi``. This module gives each of them a body,
and a docstring that is made of the method's.
"""

from __future__ import annotations

import ast
from inspect import Parameter, cleandoc, signature
from pathlib import Path

from vkops.tensors.operations import as_tensor  # noqa: F401  # the functions call it
from vkops.tensors.tensor import Tensor

_METHODS = {"permute_dims": "transpose"}
"""Methods that have another name than the function."""


def _complete(function: ast.FunctionDef) -> None:
    """Give a function of the stub a docstring, and a body that calls the method."""
    name = _METHODS.get(function.name, function.name)
    method = getattr(Tensor, name)
    taken = signature(method).parameters
    given = function.args
    names = [given.arg for given in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    passed = [
        f"{given}={given}"
        if given in taken and taken[given].kind is Parameter.KEYWORD_ONLY
        else given
        for given in names[1:-1]  # without x and device
    ]
    summary, _, details = cleandoc(method.__doc__).partition("\n\n")
    about = (
        f"``Tensor.{name}`` of ``x``, a tensor or an array, which is sent to ``device``, or to the "
        "default device."
    )
    docstring = ast.Constant(f"{summary}\n\n{about}\n\n{details}".rstrip())
    call = ast.parse(f"return as_tensor({name.upper()!r}, x, device).{name}({', '.join(passed)})")
    # Tracebacks show the first line of the function in the stub.
    ast.increment_lineno(call, function.lineno - 1)
    function.body = [ast.Expr(docstring), *call.body]


_STUB = Path(__file__).with_suffix(".pyi")
_tree = ast.parse(_STUB.read_text(encoding="utf-8"))
for _statement in _tree.body:
    if isinstance(_statement, ast.FunctionDef):
        _complete(_statement)
exec(compile(ast.fix_missing_locations(_tree), str(_STUB), "exec"))
