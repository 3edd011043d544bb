"""GraphDesc with any edges, and functions and indices of expressions with any arguments."""

from functools import partial
from inspect import Parameter, signature

from dml_functions import FUNCTIONS

from fuzz import hostile, target
from fuzz.choices import Choices
from fuzz.targets.descriptors import TYPES, operator
from vkops import dml

HALF, WHOLE = (dml.BufferTensorDesc(TYPES[1], [n, 3]) for n in (2, 4))
PLACES = dml.BufferTensorDesc(dml.TensorDataType.UINT32, [2, 3])
NODES = [
    dml.SplitOperatorDesc(WHOLE, [HALF, HALF], 0),
    dml.JoinOperatorDesc([HALF, HALF], WHOLE, 0),
    dml.ElementWiseIdentityOperatorDesc(WHOLE, WHOLE),
    dml.ElementWiseIdentityOperatorDesc(HALF, HALF),
]

EDGES = {
    dml.InputGraphEdgeDesc: 3,
    dml.OutputGraphEdgeDesc: 3,
    dml.IntermediateGraphEdgeDesc: 4,
}


def _edge(choices, cls, count):
    numbers = [
        hostile.value(choices) if choices.one_in(30) else choices.below(3) for _ in range(count)
    ]
    return hostile.value(choices) if choices.one_in(60) else cls(*numbers)


def _desc(choices):
    nodes = [
        operator(choices) if choices.one_in(10) else choices.pick(NODES)
        for _ in range(1 + choices.below(3))
    ]
    edges = [choices.some(4, partial(_edge, choices, *kind)) for kind in EDGES.items()]
    fields = [choices.below(3), 1 + choices.below(2), nodes, *edges]
    if choices.one_in(6):
        fields[choices.below(len(fields))] = hostile.value(choices)
    graph = dml.GraphDesc(*fields)
    graph.validate(*([hostile.value(choices)] if choices.one_in(10) else []))
    graph.lower()
    repr(graph)


def _expressions(choices):
    policy = hostile.value(choices) if choices.one_in(20) else dml.BufferTensorDesc
    # The errors of a policy are its owner's.
    graph = dml.Graph(dml.BufferTensorDesc if callable(policy) else policy)
    known = [graph.input(desc) for desc in (WHOLE, HALF, PLACES)]

    def tensor():
        return hostile.value(choices) if choices.one_in(20) else choices.pick(known)

    def index():
        kind = choices.below(4)
        if kind == 0:
            return slice(*(hostile.integer(choices) for _ in range(3)))
        return hostile.value(choices) if kind == 1 else choices.below(5) - 2

    def argument(declared):
        kind = declared.annotation
        if choices.one_in(10):
            return hostile.value(choices)
        if kind == "Graph":
            return graph
        if "Expression" in kind:
            return choices.some(3, tensor) if kind.startswith("Sequence") else tensor()
        if kind.startswith("Sequence"):
            small = choices.some(3, lambda: choices.below(4))
            return hostile.integers(choices) if choices.one_in(6) else small
        return choices.below(3) if declared.default is Parameter.empty else declared.default

    def call():
        name = choices.pick(list(FUNCTIONS))
        declared = signature(getattr(dml, name)).parameters
        return getattr(dml, name)(**{key: argument(value) for key, value in declared.items()})

    def indexed():
        x = choices.pick(known)
        return x[tuple(choices.some(4, index)) if choices.one_in(2) else index()]

    def given():
        return graph.input(hostile.value(choices) if choices.one_in(20) else WHOLE)

    for _ in range(choices.below(8)):
        new = choices.pick([call, call, call, indexed, given])()
        known.extend(new if isinstance(new, list) else [new])
    graph.output(tensor() if choices.one_in(20) else graph.identity(known[-1]))
    desc = graph.desc([graph.identity(known[-1])] if choices.one_in(4) else None)
    desc.validate()
    desc.lower()


class Target(target.Target):
    def check(self, data):
        choices = Choices(data)
        choices.pick([_desc, _expressions])(choices)
