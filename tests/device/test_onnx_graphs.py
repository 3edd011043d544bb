"""Random ONNX graphs, compared with ONNX's own reference evaluator."""

import numpy as np
import onnx.parser
import pytest
from onnx.printer import to_text
from onnx_graphs import model_with, random_model
from onnx_graphs.elements import NEWEST, OLDEST, STRING, dtypes_of, schema_of
from onnx_graphs.reference import difference, evaluate
from onnx_models import NEWEST_ONNX

import vkops
from vkops.onnx import Model, Session
from vkops.onnx.operators import OPERATORS

OPSETS = range(OLDEST, NEWEST + 1)
GRAPHS, MORE_GRAPHS, BATCH = 1500, 20_000, 100


def batches(first, count):
    return pytest.mark.parametrize("first", range(first, first + count, BATCH))


@NEWEST_ONNX
@batches(0, GRAPHS)
def test_a_graph_makes_what_the_reference_evaluator_makes(device, first):
    check_batch(device, first)


@NEWEST_ONNX
@pytest.mark.slow
@batches(GRAPHS, MORE_GRAPHS)
def test_more_graphs_make_what_the_reference_evaluator_makes(device, first):
    check_batch(device, first)


@NEWEST_ONNX
def test_a_graph_in_several_stages_makes_the_same(device, monkeypatch):
    monkeypatch.setattr(vkops.plan.graph, "MAX_REGIONS", 0)
    assert max(check_batch(device, 0)) > 1


@NEWEST_ONNX
def test_the_graphs_have_every_size_and_opset():
    cases = [random_model(seed) for seed in range(0, GRAPHS, 4)]
    assert {len(case.model.graph.node) for case in cases} >= {2, 28}
    assert {case.model.opset_import[0].version for case in cases} == set(OPSETS)


@pytest.mark.parametrize(
    "operator",
    [pytest.param(name, marks=[NEWEST_ONNX] * (name == "Resize")) for name in OPERATORS],
)
def test_every_type_of_an_operator(device, operator):
    newest = max(opset for opset in OPSETS if schema_of(operator, opset))
    listed = {*dtypes_of(operator, newest), *dtypes_of(operator, newest, output=True)}
    if operator == "Cast":
        listed.remove(STRING)  # vkops does not compute with strings
    for number, dtype in enumerate(sorted(listed, key=str)):
        check_case(device, number, model_with(operator, newest, dtype))


@pytest.mark.parametrize("operator", OPERATORS)
def test_every_version_of_an_operator(device, operator):
    schemas = {opset: schema_of(operator, opset) for opset in OPSETS}
    newest = {schema.since_version: opset for opset, schema in schemas.items() if schema}
    for number, opset in enumerate(newest.values()):
        check_case(device, number, model_with(operator, opset))


def check_batch(device, first):
    """Check a batch of models; returns the number of plans of each."""
    return [check(device, seed) for seed in range(first, first + BATCH)]


def check(device, seed):
    return check_case(device, seed, random_model(seed))


def check_case(device, seed, case):
    """Run a model twice in one session; returns the number of its plans."""
    text = f"seed {seed}: {to_text(case.model)}"
    session = None
    for inputs in (case.inputs, case.others):
        expected = evaluate(case.model, inputs)
        try:
            session = session or Session(Model(case.model), device)
            got = session.run({name: given(device, seed, inputs[name]) for name in inputs})
        except Exception as error:
            raise AssertionError(f"{type(error).__name__}: {error}; {text}") from error
        for output, made, wanted in zip(case.model.graph.output, got, expected, strict=True):
            differs = difference(made, wanted)
            assert not differs, f"{output.name}: {differs}; {text}"
    return len(session.specialize(case.inputs).plans)


def given(device, seed, value):
    """Return an input; in every other graph it is a tensor on the device."""
    on_device = seed % 2 and not isinstance(value, list) and value.dtype != STRING
    return vkops.Tensor.from_array(device, value) if on_device else value


CHAIN = """
<ir_version: 10, opset_import: ["" : 17]>
chain (float[N] x, int64[N] i) => (float[N] y) {
  a = GatherElements (x, i)
  b = GatherElements (a, i)
  c = GatherElements (b, i)
  y = GatherElements (c, i)
}
"""


@pytest.mark.parametrize("size", [64, 1 << 18], ids=["small", "large"])
def test_steps_are_run_together(device, size):
    session = Session(onnx.parser.parse_model(CHAIN), device=device)
    x = np.arange(size, dtype=np.float32)
    order = np.random.default_rng(size).permutation(size)
    feed = {"x": device.tensor(x), "i": device.tensor(order)}
    session.run(feed)
    before = device.vulkan.native.submitted
    (result,) = session.run(feed)
    assert device.vulkan.native.submitted == before + 1
    np.testing.assert_array_equal(np.asarray(result), x[order][order][order][order])
