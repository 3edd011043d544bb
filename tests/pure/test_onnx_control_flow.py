"""If and Loop, whose conditions and counts are known before a model runs."""

import numpy as np
import onnx
import pytest
from onnx_models import evaluate, ints, same, types_of, values_of
from refusals import fault

from vkops.errors import ModelError
from vkops.onnx import Model
from vkops.onnx.graph import unsupported_nodes
from vkops.onnx.lowering import NeedsValueError
from vkops.onnx.onnx_session import lowered
from vkops.onnx.operators.control_flow import MAX_ITERATIONS
from vkops.onnx.static_checks import check_statically

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def parsed(declaration, nodes, opset=18, graph=""):
    return onnx.parser.parse_model(
        f'<ir_version: 9, opset_import: ["" : {opset}]> g {declaration} {graph} {{ {nodes} }}'
    )


def evaluate_unchecked(proto, values):
    lowering = Model(proto, check=False).lower(types_of(values), values)
    return [values_of(lowering, output) for output in lowering.outputs]


BRANCHES = (
    "y = If (c) <then_branch = t () => (float[N, M] a) { a = Transpose (x) }, "
    "else_branch = e () => (float[N, M] b) { b = Relu (x) }>"
)


@pytest.mark.parametrize("opset", [13, 18, 25])
def test_only_the_branch_that_is_taken_must_move_data(opset, message):
    proto = parsed("(float[2, 3] x, bool c) => (float[N, M] y)", BRANCHES, opset)
    assert not list(unsupported_nodes(proto.graph, opset))
    assert check_statically(Model(proto)) is None  # it depends on the condition
    same(evaluate(proto, {"x": X, "c": np.array(True)}), [X.T])
    error = fault(lambda: evaluate(proto, {"x": X, "c": np.array(False)}), ModelError)
    message(error, "(If-", "): else_branch: node 0, which makes 'b' (Relu): ")


def test_a_condition_that_is_an_input_is_needed_before_the_model_runs():
    proto = parsed("(float[2, 3] x, bool c) => (float[N, M] y)", BRANCHES)
    values = {"x": X, "c": np.array(True)}
    with pytest.raises(NeedsValueError, match="c"):
        Model(proto).lower(types_of(values), {})
    assert lowered(Model(proto), values).outputs[0].shape == (3, 2)


def test_branches_read_the_graphs_around_them():
    """An initializer that only an inner graph reads, a name that hides another, two levels."""
    nodes = """
        two = Constant <value_int = 2> ()
        big = Greater (n, two)
        y = If (big) <
            then_branch = outer () => (int64[A] o) {
                not_big = Not (big)
                o = If (not_big) <
                    then_branch = t () => (int64[B] p) { p = Identity (k) },
                    else_branch = e () => (int64[B] q) {
                        k = Constant <value_ints = [7, 8]> ()
                        q = Concat <axis = 0> (k, x)
                    }>
            },
            else_branch = f () => (int64[A] r) { r = Concat <axis = 0> (x, k) }>
    """
    initializer = "<int64[1] k = {5}>"
    proto = parsed("(int64[2] x, int64 n) => (int64[A] y)", nodes, graph=initializer)
    for count, expected in ((3, ints(7, 8, 1, 2)), (2, ints(1, 2, 5))):
        values = {"x": ints(1, 2), "n": np.array(count)}
        same(evaluate_unchecked(proto, values), [expected])  # the checker refuses the hidden name


BODY = """
    body = b (int64 i, bool going, float[N, 3] v) => (bool more, float[N, 3] w, float[3] row) {
        row = Gather <axis = 0> (x, i)
        one = Constant <value_ints = [0]> ()
        first = Unsqueeze (row, one)
        w = Concat <axis = 0> (v, first)
        more = Less (i, last)
    }
"""


@pytest.mark.parametrize(
    ("inputs", "count", "more", "last", "iterations"),
    [
        ("n, c, x", 2, True, 9, 2),
        ("n, c, x", 0, True, 9, 0),
        ("n, c, x", 2, False, 9, 0),
        ("n, c, x", 2, True, 0, 1),
        ("n, , x", 2, True, 0, 2),  # without a condition, the body's is ignored
        (", c, x", 0, True, 1, 2),
        (", c, x", 0, False, 1, 0),
    ],
)
def test_loops(inputs, count, more, last, iterations):
    nodes = f"final, rows = Loop ({inputs}) <{BODY}>"
    declaration = (
        "(float[2, 3] x, int64 n, bool c, int64 last) => (float[N, 3] final, float[K, L] rows)"
    )
    proto = parsed(declaration, nodes)
    values = {"x": X, "n": np.array(count), "c": np.array(more), "last": np.array(last)}
    rows = X[:iterations]
    same(evaluate(proto, values), [np.concatenate([X, rows]), rows])


def test_the_state_of_a_loop_may_be_a_sequence():
    nodes = """
        parts = SequenceEmpty ()
        n = Constant <value_int = 3> ()
        final = Loop (n, , parts) <body = b (int64 i, bool c, seq(float) s) => (bool d, seq(float) t) {
            d = Identity (c)
            r = Gather <axis = 1> (x, i)
            t = SequenceInsert (s, r)
        }>
        y = ConcatFromSequence <axis = 0, new_axis = 1> (final)
    """
    proto = parsed("(float[2, 3] x) => (float[N, M] y)", nodes)
    same(evaluate(proto, {"x": X}), [X.T])


def loop(body, inputs="n, c, x", outputs="y"):
    nodes = f"{outputs} = Loop ({inputs}) <body = b {body}>"
    return parsed("(float[2, 3] x, int64 n, bool c) => (float[N, 3] y)", nodes)


@pytest.mark.parametrize(
    ("proto", "expected"),
    [
        (loop("(int64 i, bool g, float[N, 3] v) => (bool g, float[N, 3] v) {}", ", c, x"),
         "(Loop-16): M: there are more than"),
        (loop("(int64 i, bool g) => (bool g, float[N, 3] x) {}"), "body: has 2 inputs, must have 3"),
        (loop("(int64 i, bool g, float[N, 3] v) => (bool g) {}"), "body: got 1 outputs, must be 2"),
        (loop("(int64 i, bool g, float[N, 3] v) => (float[N, 3] v, float[N, 3] v) {}"),
         "body: got 6 elements, must be 1"),
        (loop("(int64 i, bool g, float[N, 3] v) => (bool g, float[N, 3] w) { w = Identity (z) }"),
         "body: node 0, which makes 'w' (Identity-16): inputs[0]: got 'z'"),
        (loop("(int64 i, bool g, float[N, 3] v) => (bool g, float[N, 3] w) { w = Add (v, v) }"),
         "body: node 0, which makes 'w' (Add-14): A: depends on graph input 'x'"),
        (loop("(int64 i, bool g, float[N, 3] v) => (bool g, float[N, 3] w) { w = Relu (v) }"),
         "node 0, which makes 'w' (Relu): vkops does not have this operator"),
    ],
    ids=range(7),
)  # fmt: skip
def test_loops_that_are_refused(proto, expected, message):
    values = {"x": X, "n": np.array(2), "c": np.array(True)}

    known = {"n": np.array(2), "c": np.array(True)}

    def lower():
        Model(proto, check=False).lower(types_of(values), known)

    message(fault(lower, ModelError), expected)


def test_a_loop_has_at_most_so_many_iterations():
    proto = loop("(int64 i, bool g, float[N, 3] v) => (bool g, float[N, 3] v) {}")
    values = {"x": X, "n": np.array(MAX_ITERATIONS), "c": np.array(True)}
    same(evaluate_unchecked(proto, values), [X])
    values["n"] = np.array(MAX_ITERATIONS + 1)
    with pytest.raises(ModelError, match=f"more than {MAX_ITERATIONS} iterations"):
        evaluate_unchecked(proto, values)


def test_an_output_that_no_iteration_made_needs_a_type():
    nodes = f"final, rows = Loop (n, , x) <{BODY}>"
    proto = parsed("(float[2, 3] x, int64 n, int64 last) => (float[N, 3] final)", nodes)
    body = proto.graph.node[0].attribute[0].g
    body.output[2].ClearField("type")
    values = {"x": X, "n": np.array(0), "last": np.array(9)}
    with pytest.raises(ModelError, match="body: the type of output 'row' is not declared"):
        evaluate_unchecked(proto, values)
