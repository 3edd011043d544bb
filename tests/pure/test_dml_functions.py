"""DirectMLX's functions on expressions, and the indices and layouts of expressions."""

import doctest
import operator
import re
from inspect import signature

import numpy as np
import pytest
from dml_functions import FUNCTIONS
from dml_graphs import run, tensor
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from refusals import fault

from vkops import dml
from vkops.errors import FeatureLevelError, InvalidDescError, InvalidDescTypeError

F32 = dml.TensorDataType.FLOAT32


def fields(kind):
    return {field.name for field in kind.FIELDS}


def test_every_operator_has_a_function_of_its_own_or_of_a_newer_version():
    operators = set(FUNCTIONS.values())
    assert operators <= set(dml.OPERATORS)
    for name in set(dml.OPERATORS) - operators:
        newer = [other for other in operators if other.rstrip("123") == name.rstrip("123")]
        assert newer, f"{name} has no function: add one to vkops/dml/expressions.py"
        if name not in {"SLICE", "DIAGONAL_MATRIX"}:  # whose newer versions rename their fields
            assert fields(dml.OPERATORS[name]) <= fields(dml.OPERATORS[max(newer)])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_have_examples_and_explain_their_parameters(name):
    function = getattr(dml, name)
    test = doctest.DocTestParser().get_doctest(function.__doc__, {}, name, None, 0)
    assert len(test.examples) >= 3
    assert doctest.DocTestRunner(verbose=False).run(test).failed == 0
    assert (function.__module__, function.__name__) == ("vkops.dml", name)
    for parameter in signature(function).parameters:
        lacking = f"{parameter} has no line below Attributes: in the descriptor's docstring"
        assert re.search(rf"^ +{parameter}: \S", function.__doc__, re.M), lacking


def graph_and_input(*sizes):
    graph = dml.Graph()
    return graph, dml.input_tensor(graph, 0, tensor(*sizes))


@pytest.mark.parametrize(
    ("call", "error", "named"),
    [
        (lambda g, x: dml.split(x, 1, [2, 3]), InvalidDescError, "SPLIT output_tensors [SPLIT-06]"),
        (lambda g, x: dml.split(x, axis=1), TypeError, "split()"),
        (lambda g, x: dml.tile(x, [1, 1], 3), TypeError, "tile()"),
        (lambda g, x: dml.tile(1, [1, 1]), InvalidDescTypeError, "TILE input [G-03]"),
        (lambda g, x: dml.join(x, 0), InvalidDescTypeError, "JOIN inputs"),
        (lambda g, x: dml.join([x, None], 0), InvalidDescTypeError, "JOIN inputs[1] [G-03]"),
        (lambda g, x: dml.join([x, dml.Graph().input(tensor(4, 6))], 0), InvalidDescTypeError, "GRAPH inputs[1] [G-03]"),
        (lambda g, x: dml.fill_value_constant(x, [1], F32, 0), InvalidDescTypeError, "GRAPH graph [G-03]"),
        (lambda g, x: dml.fill_value_constant(g, 5, F32, 0), InvalidDescTypeError, "FILL_VALUE_CONSTANT output_sizes [FILL-01]"),
        (lambda g, x: dml.one_hot(x, x, [5], 0), InvalidDescTypeError, "ONE_HOT output_length [HOT-03]"),
        (lambda g, x: dml.resample(x, [4], dml.InterpolationMode.NEAREST_NEIGHBOR),
         InvalidDescError, "[RES-01]"),
        (lambda g, x: dml.reinterpret(x, new_sizes=[5]), InvalidDescError, "REINTERPRET sizes [G-07]"),
        (lambda g, x: dml.reinterpret("x"), InvalidDescTypeError, "REINTERPRET input [G-03]"),
        (lambda g, x: dml.input_tensor("x", 0, x.desc), InvalidDescTypeError, "GRAPH graph [G-03]"),
        (lambda g, x: dml.input_tensor(g, -1, x.desc), InvalidDescError, "GRAPH input_index [G-03]"),
        (lambda g, x: dml.input_tensor(g, 65536, x.desc), InvalidDescError, "GRAPH input_index [G-03]"),
        (lambda g, x: dml.input_tensor(g, "0", x.desc), InvalidDescTypeError, "GRAPH input_index [G-03]"),
        (lambda g, x: g.desc([dml.Graph().input(tensor(2))]), InvalidDescTypeError, "GRAPH outputs[0] [G-03]"),
    ],
)  # fmt: skip
def test_functions_refuse(call, error, named, message):
    message(fault(lambda: call(*graph_and_input(4, 6)), error), *named.split())


def test_operators_are_checked_at_the_level_of_the_graph():
    graph = dml.Graph(feature_level="6_3")
    x = graph.input(tensor(1, 1, 2, 2))
    with pytest.raises(FeatureLevelError):
        dml.resample(x, [1, 1, 4, 4], dml.InterpolationMode.NEAREST_NEIGHBOR)


def test_resample_has_the_defaults_of_directmlx():
    """INCREASING with the offsets 0.5 and -0.5 copies the next index (RES-08)."""
    graph, x = graph_and_input(1, 4)
    y = dml.resample(x, [1, 8], dml.InterpolationMode.NEAREST_NEIGHBOR)
    (node,) = graph.desc([y]).nodes
    assert node.scales == (1, 2)
    assert (node.input_pixel_offsets, node.output_pixel_offsets) == ((0.5, 0.5), (-0.5, -0.5))
    (made,) = run(graph.desc([y]), np.arange(4, dtype=np.float32))
    assert made.view(np.float32).tolist() == [0, 1, 1, 2, 2, 3, 3, 3]


def test_an_optional_tensor_may_be_given_or_left_out():
    kind, x = dml.OPERATORS["DIAGONAL_MATRIX1"], tensor(4, 4)
    others = {"value_data_type": F32, "value": 1, "diagonal_fill_begin": 0, "diagonal_fill_end": 1}
    for inputs, found in (([x], x), ([], None)):
        assert kind.of_tensors(inputs, [x], others).input_tensor == found


# -- graphs ----------------------------------------------------------------------------------------


def test_nodes_that_no_output_needs_are_left_out():
    graph, x = graph_and_input(4, 6)
    dml.tile(x, [2, 2])
    y = dml.identity(dml.slice(x, [0, 0], [4, 6], [1, -1]))
    desc = graph.desc([y])
    assert [node.operator for node in desc.nodes] == ["SLICE1", "ELEMENT_WISE_IDENTITY"]
    desc.validate()
    array = np.arange(24, dtype=np.float32).reshape(4, 6)
    (made,) = run(desc, array)
    assert made.tobytes() == array[:, ::-1].tobytes()
    with pytest.raises(InvalidDescError, match="TILE: is not connected"):
        graph.output(y), graph.desc().validate()


def test_inputs_may_be_declared_in_any_order():
    graph = dml.Graph()
    second = dml.input_tensor(graph, 1, tensor(1, 3))
    first = dml.input_tensor(graph, 0, tensor(1, 3))
    again = dml.input_tensor(graph, 0, tensor(3, 1))
    assert graph.input(tensor(2)).index == 2
    joined = dml.join([second, first, dml.reinterpret(again, new_sizes=[1, 3])], 0)
    a, b, c = (np.full(3, i, np.float32) for i in range(3))
    (made,) = run(graph.desc([joined]), a, b, c)
    assert made.view(np.float32).tolist() == [1, 1, 1, 0, 0, 0, 0, 0, 0]


def test_tensor_policies():
    for sizes in [(2,), (2, 3), (2, 3, 4), (2, 3, 4, 5), (2, 3, 4, 5, 6)]:
        order = [0, *range(2, len(sizes)), 1][: len(sizes)]
        nhwc = np.zeros([sizes[i] for i in order], np.int8)
        strides = nhwc.transpose(np.argsort(order)).strides
        assert dml.TensorPolicy.interleaved_channel(F32, sizes).strides == strides
        assert dml.TensorPolicy.default(F32, sizes) == tensor(*sizes)


# -- indices and operators of expressions ----------------------------------------------------------


@given(data=st.data())
@settings(max_examples=200)
def test_indices_have_numpy_s_meaning(data):
    shape = data.draw(arrays.array_shapes(max_dims=5, max_side=5))
    index = data.draw(
        arrays.basic_indices(shape, allow_newaxis=True, allow_ellipsis=True, max_dims=8)
    )
    policy = data.draw(
        st.sampled_from([dml.TensorPolicy.default, dml.TensorPolicy.interleaved_channel])
    )
    array = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    expected = array[index]
    graph = dml.Graph(policy)
    x = graph.input(tensor(*shape))
    if not expected.size or not expected.ndim:
        with pytest.raises(InvalidDescError, match=r"\[G-13\]"):
            x[index]
        return
    y = x[index]
    assert y.desc.sizes == expected.shape
    packed = dml.ElementWiseIdentityOperatorDesc(y.desc, tensor(*expected.shape))
    (made,) = run(graph.desc(graph.operator(packed, [y])), array)
    assert made.tobytes() == np.ascontiguousarray(expected).tobytes()


@pytest.mark.parametrize("step", [2**31, 2**40, -(2**40)])
def test_a_slice_of_one_element_may_have_any_step(step):
    graph = dml.Graph()
    y = graph.input(tensor(4, 2))[2::step]
    (made,) = run(graph.desc([graph.identity(y)]), np.arange(8, dtype=np.float32).reshape(4, 2))
    assert made.view(np.float32).tolist() == [4, 5]


@pytest.mark.parametrize(
    ("index", "named"),
    [
        (4, "GRAPH index [G-13]"),
        ((0, -7), "GRAPH index [G-13]"),
        ((0, 0), "GRAPH index [G-13]"),
        ((0, 0, 0), "GRAPH index [G-13]"),
        ((..., ...), "GRAPH index [G-13]"),
        (slice(2, 2), "GRAPH index [G-13]"),
        (slice(None, None, 0), "GRAPH index [G-13]"),
        (slice(0.5), "GRAPH index [G-13]"),
        (True, "GRAPH index [G-13]"),
        ([0, 1], "GRAPH index"),
        ("x", "GRAPH index"),
        (10**30, "GRAPH index"),
    ],
)  # fmt: skip
def test_indices_that_are_refused(index, named, message):
    with pytest.raises(InvalidDescError) as caught:
        graph_and_input(4, 6)[1][index]
    message(caught.value, *named.split())


def test_expressions_are_not_iterable():
    with pytest.raises(TypeError):
        iter(graph_and_input(4, 6)[1])


@pytest.mark.parametrize("compute", [
    lambda x: x + x, lambda x: x * 2.0, lambda x: 1 / x, lambda x: -x, lambda x: x % 2,
    lambda x: np.float32(2) * x, lambda x: np.arange(3) - x, lambda x: x < 1, lambda x: 1 in x,
    lambda x: operator.iadd(x, 1),
])  # fmt: skip
def test_operators_that_compute_are_refused(compute):
    text = fault(lambda: compute(graph_and_input(4, 6)[1]), InvalidDescTypeError)
    assert "is not available: vkops only moves data [G-12]" in text


def test_expressions_are_compared_by_identity():
    _, x = graph_and_input(4, 6)
    _, y = graph_and_input(4, 6)
    assert x == x
    assert x != y
    assert len({x, y, x}) == 2
