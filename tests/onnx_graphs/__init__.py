"""Random ONNX models of the operators that vkops has, each reproduced by its seed.

A graph is built node by node. ONNX's reference evaluator runs each node when it is added, so that
the next one can be made to fit; ``reference`` corrects the evaluator where it is wrong. The graphs
do not have cases whose result the specification leaves open: empty ``axes`` (Squeeze removes no axis,
or all), Cast of numbers that the new type cannot represent (except integers, and casts to floats),
and padding with 0 in float8e8m0, which has no 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from random import Random
from typing import Any

import numpy as np
from onnx import IR_VERSION, ModelProto, checker, helper

from onnx_graphs.arguments import GraphBuilder, has_axes
from onnx_graphs.elements import TYPES, schema_of
from onnx_graphs.nodes import ADD_NODE


@dataclass
class Case:
    """A model, its inputs, and other inputs of the same shapes, without those that have a default."""

    model: ModelProto
    inputs: dict[str, Any]
    others: dict[str, Any]


@lru_cache(maxsize=2048)  # several tests run the same models
def random_model(seed: int) -> Case:
    """A model of 2 to 30 nodes."""
    graph = GraphBuilder(Random(seed))
    operators = [name for name in ADD_NODE if schema_of(name, graph.opset)]
    node_count = graph.rng.choice((2, 3, 5, 8, 12, 20, 28))
    while len(graph.nodes) < node_count:
        operator = graph.rng.choice(operators)
        ADD_NODE[operator](graph, operator)
        if len(graph.nodes) > 28:  # the last one's arguments took too many
            return random_model(seed + (1 << 32))
    return _case(graph)


def model_with(operator: str, opset: int, dtype: np.dtype | None = None, first: int = 0) -> Case:
    """A small model with an operator; the type of its first input or output may be given.

    It is that of the first seed, from ``first`` on, that makes one.
    """
    for seed in range(first, first + 1000):
        graph = GraphBuilder(Random(seed))
        graph.opset, graph.wanted = opset, dtype
        ADD_NODE[operator](graph, operator)
        if (operator, None if dtype is None else TYPES[dtype]) in graph.used:
            return _case(graph)
    raise LookupError(f"no node of {operator} in opset {opset} has the type {dtype}")


def _case(graph):
    outputs = [graph.info(name, is_free=graph.chance(0.5)) for name in _outputs(graph)]
    opsets = [helper.make_opsetid("", graph.opset)]
    least = max(3, helper.find_min_ir_version_for(opsets))
    ir_version = graph.rng.randint(least, IR_VERSION)
    if ir_version < 4:  # where initializers are inputs, too
        for tensor in graph.initializers:
            graph.infos.setdefault(tensor.name, graph.info(tensor.name))
    inputs, initializers = list(graph.infos.values()), graph.initializers
    proto = helper.make_graph(graph.nodes, "random", inputs, outputs, initializers)
    model = helper.make_model(proto, opset_imports=opsets, ir_version=ir_version)
    checker.check_model(model)
    overrides = {name: graph.values[name] for name in graph.defaults if graph.chance(0.3)}
    return Case(model, {**graph.inputs, **overrides}, graph.others)


def _outputs(graph):
    """Return names of outputs: mostly tensors that no node reads, and some inputs and constants."""
    read = {name for node in graph.nodes for name in node.input}
    names = [name for node in graph.nodes for name in node.output]
    ends = [name for name in names if name not in read]
    names_of_outputs = graph.rng.sample(names, graph.rng.randint(1, min(4, len(names))))
    if graph.chance(0.8):
        names_of_outputs = list(dict.fromkeys([*ends[-12:], *names_of_outputs]))
    if graph.chance(0.2):
        names_of_outputs.append(graph.rng.choice([name for name in graph.values if name]))
    if graph.inputs and graph.chance(0.1):
        passed = graph.rng.choice(list(graph.inputs))
        if passed not in graph.sequences and graph.dtype(passed) in graph.dtypes("Identity"):
            names_of_outputs += [graph.node("Identity", [passed]), graph.node("Identity", [passed])]
    elif graph.chance(0.5):
        names_of_outputs[0] = _slice_of_joined(graph, names_of_outputs[0])
    return names_of_outputs


def _slice_of_joined(graph, name):
    """Return a slice of a tensor behind a constant, which needs a part of the tensor or nothing."""
    array = graph.values[name]
    kinds = {*graph.dtypes("Concat")} & {*graph.dtypes("Slice")}
    if not isinstance(array, np.ndarray) or not has_axes(array) or array.dtype not in kinds:
        return name
    constant = graph.initializer(graph.elements(array.dtype, array.shape))
    joined = graph.node("Concat", [constant, name], axis=0)
    bounds = sorted(graph.rng.randint(0, 2 * len(array)) for _ in range(2))
    if graph.opset < 10:
        return graph.node("Slice", [joined], starts=bounds[:1], ends=bounds[1:])
    return graph.node("Slice", [joined, *(graph.initializer(np.array([n])) for n in bounds)])
