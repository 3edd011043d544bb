"""Random inputs of ONNX models: indices, sizes, axes and repeats get valid values."""

import numpy as np
import onnx
import pytest
from onnx_graphs import random_model
from onnx_models import NEWEST_ONNX, evaluate, types_of

from vkops.errors import ModelError
from vkops.onnx import Model
from vkops.runner.random_inputs import fill

CASES = [
    ("float[5, 3] x, int64[40] i", "y = Gather (x, i)"),
    ("float[5, 3] x, int32[40, 3] i", "y = GatherElements <axis = 0> (x, i)"),
    ("float[5, 3] x, int64[40, 2] i", "y = GatherND (x, i)"),
    ("float[5, 3] x, int64[4] i", "z = Gather (x, i)  t = Transpose (x)  y = Gather (t, i)"),
    ("float[5, 3] x, int64[9, 2] i, float[9] u", "y = ScatterND (x, i, u)"),
    ("float[2, 3] x, int64[2] n", "y = Tile (x, n)"),
    ("float[2, 3] x, int64[2] n", "y = Expand (x, n)"),
    ("float[2, 3] x, int64[2] n", "y = Reshape (x, n)"),
    ("float[2, 3] x, int64[1] n", "y = Unsqueeze (x, n)"),
    ("float[2, 3] x, int64[4] n", "y = Pad (x, n)"),
    ("float[6, 3] x, int64[1] a, int64[1] b, int64[1] c", "y = Slice (x, a, b, c)"),
    ("int64[3] x, int64 n, float[2] v", "y = OneHot (x, n, v)"),
    ("float[2, 3] x, bool c", "y = If (c) <then_branch = t () => (float[A, B] a) { a = Identity (x) },"
     " else_branch = e () => (float[A, B] b) { b = Transpose (x) }>"),
]  # fmt: skip


@pytest.mark.parametrize(("inputs", "nodes"), CASES)
def test_the_model_runs_with_the_values_that_are_drawn(inputs, nodes):
    text = f'<ir_version: 9, opset_import: ["" : 18]> g ({inputs}) => (float[N] y) {{ {nodes} }}'
    proto = onnx.parser.parse_model(text)
    for output in proto.graph.output:
        output.ClearField("type")
    model = Model(proto, check=False)
    zeros = {entry.name: np.zeros(entry.shape, entry.dtype) for entry in model.inputs}
    for seed in range(20):
        filled = fill(model, zeros, set(zeros), np.random.default_rng(seed))
        again = fill(model, zeros, set(zeros), np.random.default_rng(seed))
        for name, array in filled.items():
            assert np.array_equal(array, again[name])
            assert (array.dtype, array.shape) == (zeros[name].dtype, zeros[name].shape)
        model.lower(types_of(filled), filled)  # which checks all that is known


def test_values_that_are_given_stay():
    proto = onnx.parser.parse_model(
        '<ir_version: 9, opset_import: ["" : 18]>'
        "g (float[2, 3] x, int64[2] n) => (float[A, B] y) { y = Tile (x, n) }"
    )
    given = {"x": np.zeros((2, 3), np.float32), "n": np.int64([7, 5])}
    filled = fill(Model(proto), given, {"x"}, np.random.default_rng(0))
    assert filled["n"] is given["n"]
    assert filled["x"].any()
    given["n"] = np.int64([-7, 5])
    with pytest.raises(ModelError, match=r"\(Tile-13\): repeats\[0\]: got -7"):
        fill(Model(proto), given, {"x"}, np.random.default_rng(0))


@NEWEST_ONNX
def test_nearly_all_random_models_run_with_random_inputs():
    """384 of the first 400; sizes that must fit several others are seldom found."""
    ran = 0
    for seed in range(60):
        case = random_model(seed)
        arrays = {k: v for k, v in case.inputs.items() if isinstance(v, np.ndarray)}
        zeros = {**case.inputs, **{k: np.zeros_like(v) for k, v in arrays.items()}}
        try:
            filled = fill(Model(case.model), zeros, set(zeros), np.random.default_rng(seed))
        except ModelError:
            continue
        evaluate(case.model, filled)
        ran += 1
    assert ran >= 55
