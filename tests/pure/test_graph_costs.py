"""What a graph may cost: regions and steps in proportion to the graph, and bounds on both."""

import sys
from itertools import pairwise
from math import prod
from pathlib import Path

import model_costs
import numpy as np
import onnx
import pytest
from instructions import calls
from processes import outcome
from refusals import fault

import vkops.onnx.lowering
import vkops.plan.graph
from vkops.errors import ModelError
from vkops.gpu.kernels.encoding import CPU, GPU, encode
from vkops.onnx import Model
from vkops.onnx.element_types import dtype_of
from vkops.onnx.value_info import TensorType
from vkops.plan import CopyPlan, Output, View
from vkops.plan.algebra import optimize
from vkops.plan.graph import MAX_STEPS, STEPS_PER_REGION
from vkops.plan.movements import copy
from vkops.plan.size_limits import Budget


def lowering(proto):
    forms = {}
    for entry in proto.graph.input:
        tensor_type = entry.type.tensor_type
        shape = tuple(dim.dim_value for dim in tensor_type.shape.dim)
        forms[entry.name] = TensorType(dtype_of(tensor_type.elem_type), shape)
    return Model(proto, check=False).lower(forms, {})


@pytest.fixture
def steps(monkeypatch):
    """The steps of looking through tensors that have been taken."""
    taken = []

    class Counted(Budget):
        def spend(self, steps=1):
            taken.append(steps)
            super().spend(steps)

    monkeypatch.setattr(vkops.plan.graph, "Budget", Counted)
    return lambda: sum(taken)


@pytest.mark.parametrize(
    ("family", "small"),
    [
        (model_costs.doubled_and_cut, 15),
        (model_costs.interleaved, 8),
        (model_costs.shuffled, 2),
        (model_costs.read_across, 1 << 10),
        (model_costs.indexed, 50),
        (model_costs.scattered, 50),
    ],
)
def test_steps_and_regions_grow_in_proportion(family, small, steps, monkeypatch):
    """With no steps for free, those that a graph takes are as many as its regions allow."""
    monkeypatch.setattr(vkops.plan.graph, "MAX_STEPS", 0)
    before = 0
    for size in (small, 4 * small):
        lowered = lowering(family(size))
        graph = lowered.graph
        stages = graph.fuse([value.number for value in lowered.outputs])
        regions = sum(len(r) for stage in stages for r in stage.values())
        allowed = STEPS_PER_REGION * len(graph)
        assert steps() - before <= allowed + len(stages)  # the step that exceeds a budget counts
        assert regions <= allowed
        before = steps()


@pytest.mark.parametrize("make", [model_costs.sequence, model_costs.indexed, model_costs.scattered])
def test_work_that_is_no_step_grows_in_proportion(make):
    """Such as a check of each tensor that a node reads, which must not look at the whole node."""
    small, large = (
        calls(lambda: made.graph.fuse([value.number for value in made.outputs]))  # noqa: B023
        for made in map(lowering, (make(200), make(1600)))
    )
    assert large < 12 * small


def test_a_graph_takes_no_more_steps_than_any_graph_may(steps):
    lowered = lowering(model_costs.shuffled(2))
    lowered.graph.fuse([value.number for value in lowered.outputs])
    assert 0 < steps() <= MAX_STEPS


def test_a_region_that_is_crossed_again_and_again_is_not_composed(steps):
    """2^28 rows, each crossed at another place, are not gone through one by one."""
    lowered = lowering(model_costs.read_across(1 << 28))
    stages = lowered.graph.fuse([value.number for value in lowered.outputs])
    assert len(stages) == 2
    assert steps() < MAX_STEPS


def test_a_graph_of_too_many_regions_is_refused(monkeypatch, message):
    monkeypatch.setattr(vkops.plan.graph, "MAX_GRAPH_REGIONS", 1000)
    text = fault(lambda: lowering(model_costs.sequence(1000)), ModelError)
    message(text, "node 0, which makes 's' (SplitToSequence-11): ")


@pytest.mark.parametrize("family", [model_costs.indexed, model_costs.scattered])
def test_each_index_that_only_the_device_reads_takes_a_submission(family):
    lowered = lowering(family(100))
    stages = lowered.graph.fuse([value.number for value in lowered.outputs])
    assert len(stages) == 100 + (family is model_costs.scattered)


def test_constants_that_shapes_are_made_of_are_worked_out_once(monkeypatch):
    """Each step of a chain needs the elements of its last tensor, which only adds two tensors."""
    calls = []
    execute = vkops.onnx.lowering.execute_unchecked
    monkeypatch.setattr(
        vkops.onnx.lowering,
        "execute_unchecked",
        lambda *given: calls.append(given) or execute(*given),
    )
    for size in (20, 80):
        calls.clear()
        lowering(model_costs.looked_up(size))
        assert len(calls) <= 2 * size + 5


def test_host_results_are_bounded_all_together(message):
    text = fault(lambda: lowering(model_costs.computed(8)), ModelError)
    message(text, "node 4, which makes 'c4' (Add-14): ")


def test_known_tensors_are_counted_once_however_often_they_are_read(monkeypatch):
    reads = [f"y{n} = Gather (x, j)" for n in range(50)]
    constant = model_costs.model([*reads, "y = Identity (x)"], j=np.zeros(8, np.int64))
    computed = model_costs.model(
        ["j = Expand (zero, n)", *reads, "y = Identity (x)"], zero=np.int64([0]), n=[8]
    )
    for proto in (constant, computed):  # j has 64 bytes, n has 8
        monkeypatch.setattr(vkops.onnx.lowering, "MAX_KNOWN_BYTES", 80)
        lowering(proto)
        monkeypatch.setattr(vkops.onnx.lowering, "MAX_KNOWN_BYTES", 60)
        assert "are needed before the model runs" in fault(lambda p=proto: lowering(p), ModelError)


@pytest.mark.skipif(sys.platform != "linux", reason="limits the memory of a process as Linux does")
def test_checking_costly_models_takes_little_memory(tmp_path: Path):
    """All in one process whose address space is bounded, which its peak memory cannot exceed."""
    for family, size in (
        (model_costs.doubled, 1000),
        (model_costs.doubled_and_cut, 20),
        (model_costs.sequence, 1 << 18),
        (model_costs.read_across, 1 << 28),
        (model_costs.nothing, 250),
    ):
        onnx.save(family(size), tmp_path / f"{family.__name__}.onnx")
    code = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30));"
        "from vkops.cli import main; print([main(['check', path]) for path in sys.argv[1:]])"
    )
    _, printed, errors = outcome("-c", code, *sorted(tmp_path.glob("*.onnx")))
    assert printed.splitlines()[-1] == "[1, 0, 0, 0, 1]", errors
    assert "Traceback" not in errors


@pytest.mark.parametrize("tuning", [CPU, GPU], ids=["cpu", "gpu"])
@pytest.mark.parametrize("sizes", [(6, 4), (3000,), (7, 3, 8)])
def test_a_new_shape_is_encoded_in_few_calls(tuning, sizes):
    """Without calls for what an optimized region already is, or for what the choice knows."""
    whole = View.packed(sizes)
    starts = [part * sizes[0] // 3 for part in range(4)]
    parts = [whole.narrow(0, start, end - start) for start, end in pairwise(starts)]
    outputs = [
        Output(4 * prod(part.sizes), (copy(part, View.packed(part.sizes)),)) for part in parts
    ]
    plan = CopyPlan(4, (4 * prod(sizes),), tuple(outputs))
    limit = 260 if tuning.is_cpu else 270  # GPUs have more kernels to choose from
    assert calls(lambda: encode(optimize(plan), tuning)) <= limit
