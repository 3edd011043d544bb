"""Graphs of operators: the G-* rules, the builder, and what graphs lower to."""

import re
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from dml_graphs import run, tensor
from instructions import instructions
from refusals import fault

import vkops.dml
import vkops.plan.graph
from vkops import dml
from vkops.dml.operator_bases import UnaryOperatorDesc
from vkops.errors import FeatureLevelError, InvalidDescError, InvalidDescTypeError
from vkops.plan import execute

F32, U8, I64 = dml.TensorDataType.FLOAT32, dml.TensorDataType.UINT8, dml.TensorDataType.INT64


WHOLE, HALF = tensor(4, 3), tensor(2, 3)
SPLIT = dml.SplitOperatorDesc(WHOLE, [HALF, HALF], axis=0)
JOIN = dml.JoinOperatorDesc([HALF, HALF], WHOLE, axis=0)
KEPT = dml.GraphDesc(
    input_count=1,
    output_count=1,
    nodes=[SPLIT, JOIN],
    input_edges=[dml.InputGraphEdgeDesc(0, 0, 0)],
    output_edges=[dml.OutputGraphEdgeDesc(1, 0, 0)],
    intermediate_edges=[
        dml.IntermediateGraphEdgeDesc(0, 0, 1, 1),
        dml.IntermediateGraphEdgeDesc(0, 1, 1, 0),
    ],
)
IDENTITY = dml.ElementWiseIdentityOperatorDesc(HALF, HALF)


def test_a_graph_that_keeps_all_rules():
    KEPT.validate()
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    (y,) = run(KEPT, x)
    np.testing.assert_array_equal(y.view(np.float32).reshape(4, 3), np.roll(x, 2, axis=0))
    assert [path for path, _ in KEPT.inputs] == ["inputs[0]"]
    assert KEPT.outputs == (("outputs[0]", WHOLE),)


OWNED = tensor(2, 3, flags=dml.TensorFlags.OWNED_BY_DML)
TWO_READERS = dml.GraphDesc(
    1,
    2,
    [dml.ElementWiseIdentityOperatorDesc(OWNED, HALF), IDENTITY],
    [dml.InputGraphEdgeDesc(0, 0, 0), dml.InputGraphEdgeDesc(0, 1, 0)],
    [dml.OutputGraphEdgeDesc(0, 0, 0), dml.OutputGraphEdgeDesc(1, 0, 1)],
)


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: replace(KEPT, nodes=[SPLIT, JOIN, IDENTITY, IDENTITY],
                 intermediate_edges=[*KEPT.intermediate_edges, dml.IntermediateGraphEdgeDesc(2, 0, 3, 0),
                                     dml.IntermediateGraphEdgeDesc(3, 0, 2, 0)]), "GRAPH nodes[2] [G-01]"),
        (lambda: replace(KEPT, input_count=-1), "GRAPH input_count [G-02]"),
        (lambda: replace(KEPT, input_count=2**32 - 1), "GRAPH input_count [G-02]"),
        (lambda: replace(KEPT, output_count=0), "GRAPH output_count [G-02]"),
        (lambda: replace(KEPT, input_edges=[dml.InputGraphEdgeDesc(1, 0, 0)]), "GRAPH input_edges[0].graph_input_index [G-03]"),
        (lambda: replace(KEPT, input_edges=[dml.InputGraphEdgeDesc(0, 2, 0)]), "GRAPH input_edges[0].to_node_index [G-03]"),
        (lambda: replace(KEPT, input_edges=[dml.InputGraphEdgeDesc(0, 0, -1)]), "GRAPH input_edges[0].to_node_input_index [G-03]"),
        (lambda: replace(KEPT, output_edges=[dml.OutputGraphEdgeDesc(1, 1, 0)]), "GRAPH output_edges[0].from_node_output_index [G-03]"),
        (lambda: replace(KEPT, output_edges=[dml.OutputGraphEdgeDesc(1, 0, 1)]), "GRAPH output_edges[0].graph_output_index [G-03]"),
        (lambda: replace(KEPT, input_count=0), "GRAPH input_edges[0].graph_input_index [G-03]"),
        (lambda: replace(KEPT, intermediate_edges=KEPT.intermediate_edges[:1]), "GRAPH nodes[0].output_tensors[1] [G-04]"),
        (lambda: replace(KEPT, input_edges=[]), "GRAPH nodes[0].input_tensor [G-04]"),
        (lambda: replace(KEPT, output_count=2), "GRAPH outputs[1] [G-04]"),
        (lambda: replace(KEPT, input_edges=[dml.InputGraphEdgeDesc(0, 0, 0)] * 2), "GRAPH input_edges[1] [G-04]"),
        (lambda: replace(KEPT, output_edges=[dml.OutputGraphEdgeDesc(1, 0, 0), dml.OutputGraphEdgeDesc(0, 0, 0)]), "GRAPH output_edges[1] [G-04]"),
        (lambda: replace(KEPT, nodes=[SPLIT, dml.JoinOperatorDesc([HALF, OWNED], WHOLE, axis=0)]), "GRAPH nodes[1].input_tensors[1] [G-06]"),
        (lambda: TWO_READERS, "GRAPH inputs[0] [G-06]"),
        (lambda: replace(KEPT, nodes=[SPLIT, dml.JoinOperatorDesc([tensor(3, 3)] * 2, tensor(6, 3), axis=0)]), "GRAPH intermediate_edges[0] [G-07]"),
        (lambda: replace(KEPT, nodes=[replace(SPLIT, axis=2), JOIN]), "GRAPH nodes[0].axis SPLIT [SPLIT-02]"),
    ],
)  # fmt: skip
def test_rules_that_are_broken(make, named, message):
    message(fault(make().validate), *named.split())


def test_graphs_come_with_level_2_1(message):
    KEPT.validate("5_0")
    message(fault(lambda: KEPT.validate("2_0"), FeatureLevelError), "GRAPH: ", "[DEV-12]")
    with pytest.raises(FeatureLevelError, match=r"GRAPH nodes\[0\]\.input_tensor\.sizes: SPLIT: "):
        KEPT.validate("2_1")


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"nodes": [1]}, "GRAPH nodes[0] [G-01]"),
        ({"nodes": SPLIT}, "GRAPH nodes [G-01]"),
        ({"input_edges": [dml.OutputGraphEdgeDesc(0, 0, 0)]}, "GRAPH input_edges[0] [G-03]"),
        ({"input_edges": [dml.InputGraphEdgeDesc("a", 0, 0)]}, "GRAPH input_edges[0].graph_input_index [G-03]"),
        ({"input_count": 1.5}, "GRAPH input_count [G-02]"),
    ],
)  # fmt: skip
def test_fields_of_the_wrong_kind(change, named, message):
    message(fault(lambda: replace(KEPT, **change), InvalidDescTypeError), *named.split())


def test_the_caller_s_edges_stay_as_they_are():
    """An edge whose indices are NumPy's can be part of many graphs, in many threads."""
    index = np.int64(0)
    edge = dml.InputGraphEdgeDesc(index, index, index)
    graph = dml.GraphDesc(1, 1, [IDENTITY], [edge], [dml.OutputGraphEdgeDesc(0, 0, 0)])
    assert all(value is index for value in vars(edge).values())
    assert all(type(value) is int for value in vars(graph.input_edges[0]).values())


def test_a_graph_of_too_many_regions_is_refused(monkeypatch, message):
    monkeypatch.setattr(vkops.plan.graph, "MAX_GRAPH_REGIONS", 10)
    graph = dml.Graph()
    x = graph.input(dml.BufferTensorDesc(dml.TensorDataType.INT32, [8]))
    for part in graph.split(x, 0, [1] * 8):
        graph.output(part)
    message(fault(lambda: graph.desc().lower()), "GRAPH nodes: ", "[G-11]")


def test_every_rule_of_graphs_has_a_case():
    source = Path(vkops.dml.__file__).parent
    rules = {
        rule
        for name in ("basic_indexing.py", "expressions.py", "graph_builder.py", "graph_desc.py")
        for rule in re.findall(r'"(G-\d\d)"', (source / name).read_text("utf-8"))
    }
    tests = (Path(__file__), Path(__file__).with_name("test_dml_functions.py"))
    cases = {rule for t in tests for rule in re.findall(r"\[(G-\d\d)\]", t.read_text("utf-8"))}
    assert rules <= cases


# -- the builder -----------------------------------------------------------------------------------


def test_every_function_of_the_builder():
    graph = dml.Graph()
    x = graph.input(tensor(4, 6, kind=I64))
    a, b = graph.split(x, 1, [2, 4])
    window = {"offsets": [1, 0], "sizes": [2, 2], "strides": [2, 3]}
    (c,) = graph.add(vkops.dml.SliceOperatorDesc, [b], output_sizes=[(2, 2)], **window)
    d = graph.slice(b, [0, 0], [4, 4], [-1, 2])
    e = graph.identity(graph.reinterpret(a, sizes=[2, 4], strides=[1, 2]))
    f = graph.identity(graph.join([a, b], 1), output_strides=[1, 4])
    g = graph.identity(graph.reinterpret(c, U8, [2, 16]))
    for y in (c, d, e, f, g, a):
        graph.output(y)
    array = np.arange(24, dtype=np.int64).reshape(4, 6)
    got = run(graph.desc(), array)
    left, right = array[:, :2], array[:, 2:]
    expected = [
        right[1:4:2, 0:4:3],
        right[::-1, ::2],
        np.ascontiguousarray(left).reshape(-1).reshape(4, 2).T,
        array.T,
        right[1:4:2, 0:4:3],
        left,
    ]
    for bytes_, wanted in zip(got, expected, strict=True):
        assert bytes_.tobytes() == np.ascontiguousarray(wanted).tobytes()


def test_one_output_of_a_node_to_many_outputs_and_nodes():
    graph = dml.Graph()
    x = graph.input(tensor(4))
    y = graph.slice1(x, [0], [4], [-1])
    z = graph.slice1(y, [0], [4], [-1])
    for result in (y, y, z):
        graph.output(result)
    array = np.arange(4, dtype=np.float32)
    got = [out.view(np.float32).tolist() for out in run(graph.desc(), array)]
    assert got == [[3, 2, 1, 0], [3, 2, 1, 0], [0, 1, 2, 3]]


def test_gaps_are_left_alone():
    graph = dml.Graph()
    x = graph.input(tensor(3))
    y = graph.identity(x, output_strides=[2])
    graph.output(graph.identity(graph.reinterpret(y, sizes=[5])))
    pipeline = graph.desc().pipeline
    (out,) = execute(
        pipeline.plan, [np.float32([1, 2, 3]).view(np.uint8)], [np.float32([9] * 5).view(np.uint8)]
    )
    assert out.view(np.float32).tolist() == [1, 9, 2, 9, 3]


@pytest.mark.parametrize(
    ("build", "named"),
    [
        (lambda g, x: g.output(x), "GRAPH outputs[0] [G-05]"),
        (lambda g, x: g.join([], 0), "JOIN inputs [JOIN-01]"),
        (lambda g, x: g.slice(x, [0, 0], [9, 1], [1, 1]), "[SLICE1-02]"),
        (lambda g, x: g.operator(IDENTITY, [x]), "ELEMENT_WISE_IDENTITY input_tensor [G-07]"),
        (lambda g, x: g.operator(JOIN, [x]), "JOIN inputs [G-04]"),
        (lambda g, x: g.operator(None, [x]), "GRAPH desc"),
        (lambda g, x: g.add(IDENTITY, [x]), "GRAPH kind [T-18]"),
        (lambda g, x: g.add(dml.BufferTensorDesc, [x]), "GRAPH kind [T-18]"),
        (lambda g, x: g.add(UnaryOperatorDesc, [x]), "GRAPH kind [T-18]"),
        (lambda g, x: dml.Graph(tensor_policy=3), "GRAPH tensor_policy"),
        (lambda g, x: g.identity(1), "GRAPH inputs[0]"),
        (lambda g, x: g.input("x"), "GRAPH inputs[1] [T-01]"),
        (lambda g, x: (g.split(x, 0, [2, 2]), g.desc().validate()), "[G-02]"),
    ],
)  # fmt: skip
def test_the_builder_refuses(build, named, message):
    graph = dml.Graph()
    x = graph.input(WHOLE)
    with pytest.raises(InvalidDescError) as caught:
        build(graph, x)
    message(caught.value, *named.split())


def test_a_node_of_many_tensors_takes_work_in_proportion():
    """Each edge looks at one tensor of a node, not at all of them."""

    def work(count):
        graph = dml.Graph()
        x = graph.input(tensor(count, 3))
        graph.output(graph.join(graph.split(x, 0, [1] * count)[::-1], 0))
        return instructions(lambda: graph.desc().lower())

    assert work(200) < 8 * work(50)


def test_operators_without_inputs():
    graph = dml.Graph()
    (eye,) = graph.add(
        vkops.dml.DiagonalMatrixOperatorDesc, [], output_sizes=[(3, 3)], output_data_type=F32,
        offset=1, value=2,
    )  # fmt: skip
    (filled,) = graph.add(
        vkops.dml.DiagonalMatrix1OperatorDesc, [eye], value_data_type=F32, value=7,
        diagonal_fill_begin=0, diagonal_fill_end=1,
    )  # fmt: skip
    graph.output(filled)
    (y,) = run(graph.desc())
    assert y.view(np.float32).tolist() == [7, 2, 0, 0, 7, 2, 0, 0, 7]


def test_the_data_type_of_operators_without_inputs_must_be_given(message):
    attributes = {"output_sizes": [(3, 3)], "offset": 0, "value": 1}
    add = partial(dml.Graph().add, vkops.dml.DiagonalMatrixOperatorDesc, [], **attributes)
    text = fault(add, InvalidDescTypeError)
    message(text, "DIAGONAL_MATRIX output_data_type: ", "[T-02]")
