"""DirectMLX's functions, which take expressions of a graph and return expressions.

The functions are made of the table in ``function_table``, each at its first use. Their types for
type checkers are in ``expressions.pyi``, which scripts/function_stubs.py writes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from vkops.arguments.values import Place, array
from vkops.dml.function_table import FUNCTIONS
from vkops.dml.functions import GraphFunction
from vkops.dml.graph_builder import Graph, as_expression, as_graph
from vkops.errors import InvalidDescError


def __getattr__(name: str) -> Any:
    if name in FUNCTIONS:
        # The next access finds the function in this module and does not come here.
        function = globals()[name] = _make(name, FUNCTIONS[name])
        return function
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _make(name: str, function: GraphFunction) -> Callable[..., Any]:
    signature = function.signature
    first = next(iter(signature.parameters))

    def call(*args: Any, **keywords: Any) -> Any:
        try:
            bound = signature.bind(*args, **keywords)
        except TypeError as error:
            raise TypeError(f"{name}(): {error}") from None
        bound.apply_defaults()
        graph = _graph(function.operator, first, bound.arguments[first])
        outputs = graph.call(name, bound.arguments)
        return outputs if function.returns_list else outputs[0]

    call.__name__ = call.__qualname__ = name
    call.__doc__ = function.docstring()
    call.__module__ = "vkops.dml"
    call.__signature__ = signature  # type: ignore[attr-defined]
    return call


def _graph(operator: str, name: str, value: Any) -> Graph:
    """The graph of a function's first argument: itself, or that of an expression, or of a list."""
    place = Place(operator, name, "G-03")
    if name == "graph":
        return as_graph(value)
    if name == "inputs":
        expressions = array(value, place, as_expression, "expressions")
        if not expressions:
            raise InvalidDescError(operator, name, "got none, must be at least 1", "JOIN-01")
        value = expressions[0]
    return as_expression(value, place).graph
