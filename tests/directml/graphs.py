"""Random graphs of operators, as DirectML and vkops compile them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from random import Random
from typing import Any

import numpy as np
import operator_cases
import operator_table

from directml import comparison, dll
from directml.differences import DIFFERENCES, FAULT
from directml.dll import Case, Edge, Slot
from directml.packing import Raw
from vkops import dml

KINDS = sorted({*operator_cases.DTYPES} - {dml.TensorDataType.FLOAT16})  # that has signalling NaN


def graphs(count: int, seed: int) -> Iterator[comparison.Outcome]:
    """Ask both about graphs of operators that they agree about one by one."""
    made = [random_graph(Random(f"graphs {seed} {k}")) for k in range(count)]
    answers = dll.ask([_case(*each).bytes() for each in made], "graphs")
    for (desc, inputs), answer in zip(made, answers, strict=True):
        yield comparison.executed(desc, inputs, answer)


def random_graph(random: Random) -> tuple[dml.GraphDesc, list[bytes]]:
    """A graph of 2 to 6 operators, and its inputs.

    An operator reads tensors of the size that it needs, if there are some, else new inputs.
    """
    kind = random.choice(KINDS)
    nodes: list[dml.OperatorDesc] = []
    inputs: list[bytes] = []
    read: list[dml.InputGraphEdgeDesc] = []
    between: list[dml.IntermediateGraphEdgeDesc] = []
    there: list[tuple[Any, tuple[int, ...]]] = []  # tensors, and an input or a node and its output
    for number in range(random.randint(2, 6)):
        sizes = random.choice(there)[0].sizes if there else (2, 3, 4)
        desc, data, held = _node(random, kind, sizes)
        for place, (_, tensor) in enumerate(desc.inputs):
            same = [origin for other, origin in there if _elements(other) == _elements(tensor)]
            if same and place not in held and random.random() < 0.9:
                origin = random.choice(same)
            else:
                origin = (len(inputs),)
                inputs.append(data[place])
                if place not in held:
                    there.append((tensor, origin))
            if len(origin) == 1:
                read.append(dml.InputGraphEdgeDesc(*origin, number, place))
            else:
                between.append(dml.IntermediateGraphEdgeDesc(*origin, number, place))
        nodes.append(desc)
        there += [(tensor, (number, k)) for k, (_, tensor) in enumerate(desc.outputs)]
    used = {(edge.from_node_index, edge.from_node_output_index) for edge in between}
    ends = []
    for tensor, origin in there:
        if len(origin) == 2 and origin not in used:
            if nodes[origin[0]].operator == "FILL_VALUE_SEQUENCE":
                # DirectML ends the process, or refuses the graph, if its output is the graph's.
                between.append(dml.IntermediateGraphEdgeDesc(*origin, len(nodes), 0))
                origin = len(nodes), 0
                nodes.append(dml.ElementWiseIdentityOperatorDesc(tensor, tensor))
            ends.append(origin)
    written = [dml.OutputGraphEdgeDesc(*origin, k) for k, origin in enumerate(ends)]
    return dml.GraphDesc(len(inputs), len(ends), nodes, read, written, between), inputs


def _node(random: Random, kind: Any, sizes: Sequence[int]) -> tuple[Any, list[bytes], set[int]]:
    """An operator of packed tensors, its inputs, and the numbers of those that hold indices."""
    names = [name for name in operator_table.OPERATORS if kind in operator_table.kinds(name)]
    while True:
        name = random.choice(names)
        case = operator_table.OPERATORS[name].make(
            random, kind, sizes, random.randrange(len(sizes))
        )
        desc = operator_table.packed(case.desc)
        inputs = comparison.inputs_of(random, case._replace(desc=desc))
        outcome = comparison.Outcome(name, False, "", Raw.of(desc), None, inputs, [(b"", b"")])
        faulty = any(each.kind == FAULT and each.explains(outcome) for each in DIFFERENCES)
        outside = any(np.abs(x.astype(float)).max() >= min(sizes) for x in case.indices.values())
        # In a graph, DirectML reads packed values of ONE_HOT as strided ones: along the last dimension.
        faulty |= name == "ONE_HOT" and desc.values_tensor.sizes[-1] == 1
        if not faulty and not outside:
            return desc, inputs, {*case.indices}


def _elements(tensor: dml.BufferTensorDesc) -> tuple[Any, int]:
    """What tensors that an edge connects have in common; bytes behind the elements have no value."""
    return tensor.data_type, prod(tensor.sizes)


def _case(desc: dml.GraphDesc, inputs: Sequence[bytes]) -> Case:
    kinds = (desc.input_edges, desc.output_edges, desc.intermediate_edges)
    edges = [
        Edge(number, tuple(vars(edge).values()))
        for number, several in enumerate(kinds, 1)
        for edge in several
    ]
    nodes = [Raw.of(node) for node in desc.nodes]
    return Case(nodes, list(map(Slot, inputs)), comparison.poisoned(desc), edges)
