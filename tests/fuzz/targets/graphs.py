"""GraphDesc with any edges, and Graph's methods with any arguments, against the nodes one by one."""

from fuzz import hostile, target
from fuzz.choices import Choices
from fuzz.targets.descriptors import TYPES, operator
from vkops.dml import (
    BufferTensorDesc,
    ElementWiseIdentityOperatorDesc,
    Graph,
    GraphDesc,
    InputGraphEdgeDesc,
    IntermediateGraphEdgeDesc,
    JoinOperatorDesc,
    OutputGraphEdgeDesc,
    SplitOperatorDesc,
)

HALF, WHOLE = (BufferTensorDesc(TYPES[1], [n, 3]) for n in (2, 4))
NODES = [
    SplitOperatorDesc(WHOLE, [HALF, HALF], 0),
    JoinOperatorDesc([HALF, HALF], WHOLE, 0),
    ElementWiseIdentityOperatorDesc(WHOLE, WHOLE),
    ElementWiseIdentityOperatorDesc(HALF, HALF),
]


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
    edges = [
        choices.some(4, lambda cls=cls, count=count: _edge(choices, cls, count))
        for cls, count in (
            (InputGraphEdgeDesc, 3),
            (OutputGraphEdgeDesc, 3),
            (IntermediateGraphEdgeDesc, 4),
        )
    ]
    fields = [choices.below(3), 1 + choices.below(2), nodes, *edges]
    if choices.one_in(6):
        fields[choices.below(len(fields))] = hostile.value(choices)
    graph = GraphDesc(*fields)
    graph.validate(*([hostile.value(choices)] if choices.one_in(10) else []))
    graph.lower()
    repr(graph)


def _expressions(choices):
    policy = hostile.value(choices) if choices.one_in(20) else BufferTensorDesc
    graph = Graph(BufferTensorDesc if callable(policy) else policy)  # its errors are its owner's
    known = []

    def tensor():
        if known and not choices.one_in(20):
            return choices.pick(known)
        return hostile.value(choices)

    def ints():
        return (
            hostile.integers(choices)
            if choices.one_in(6)
            else choices.some(3, lambda: choices.below(4))
        )

    def uint():
        return hostile.value(choices) if choices.one_in(10) else choices.below(3)

    def entered():
        desc = choices.pick([WHOLE, HALF])
        return graph.input(hostile.value(choices) if choices.one_in(20) else desc)

    makers = [
        entered,
        lambda: graph.split(tensor(), uint(), ints()),
        lambda: graph.join(choices.some(3, tensor), uint()),
        lambda: graph.slice(tensor(), ints(), ints(), ints()),
        lambda: graph.identity(tensor()),
        lambda: graph.output(tensor()),
    ]
    known.append(entered())
    for _ in range(choices.below(8)):
        made = choices.pick(makers)()
        known.extend(made if isinstance(made, (list, tuple)) else [made])
    graph.output(graph.identity(known[-1]))
    desc = graph.desc()
    desc.validate()
    desc.lower()


class Target(target.Target):
    name = "graphs"
    share = 12

    def check(self, data):
        choices = Choices(data)
        choices.pick([_desc, _expressions])(choices)
