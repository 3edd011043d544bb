"""Resize and Upsample, compared with ONNX's reference evaluator, and their errors."""

import json

import ml_dtypes
import numpy as np
import pytest
from onnx import helper, numpy_helper, shape_inference
from onnx.reference import ReferenceEvaluator
from onnx_graphs import model_with, reference
from onnx_models import NEWEST_ONNX, evaluate, floats, ints, model, node_model, run, same, types_of
from processes import ROOT

from vkops.errors import ModelError
from vkops.onnx import Model
from vkops.onnx.lowering import NeedsValueError
from vkops.onnx.value_info import TensorType

ROW = np.arange(4, dtype=np.float32)
IMAGE = np.arange(6, dtype=np.float32).reshape(1, 1, 2, 3)


@NEWEST_ONNX
@pytest.mark.parametrize("opset", [11, 13, 18, 19])
def test_nearest_is_what_the_reference_evaluator_makes(opset):
    for seed in range(150):
        case = model_with("Resize", opset, first=seed)
        expected = reference.evaluate(case.model, case.inputs)
        for got, wanted in zip(evaluate(case.model, case.inputs), expected, strict=True):
            assert not reference.difference(got, wanted), f"seed {seed}"


@NEWEST_ONNX
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("count", [1, 2, 4])
def test_bounds_have_the_precision_that_the_reference_evaluator_has(dtype, count):
    """Where a coordinate is near to the middle of two elements, each rounding of a sum counts."""
    for size in (2, 4, 5):
        data, scales = np.arange(size, dtype=np.float32), floats(count / size)
        tenths = [(start / 10, end / 10) for start, end in np.ndindex(11, 11)]
        for bounds in [*tenths, (0, 1 - 1e-10), (1e-10, 1)]:
            roi = np.array(bounds, dtype)
            attributes = {"coordinate_transformation_mode": "tf_crop_and_resize"}
            attributes["nearest_mode"] = "floor" if bounds[1] > 0.95 else "round_prefer_floor"
            proto, values = node_model("Resize", data, roi, scales, opset=19, **attributes)
            (expected,) = ReferenceEvaluator(proto).run(None, values)
            same(evaluate(proto, values)[0], expected)


@pytest.mark.parametrize(("operator", "opset"), [("Resize", 10), ("Upsample", 9), ("Upsample", 7)])
@pytest.mark.parametrize(
    ("scale", "chosen"), [(2, [0, 0, 1, 1, 2, 2, 3, 3]), (1.5, [0, 0, 1, 2, 2, 3]), (0.6, [0, 2])]
)
def test_older_versions_round_down_to_enlarge_and_up_to_shrink(operator, opset, scale, chosen):
    if opset == 7:
        result = run(operator, ROW, opset=opset, scales=[float(scale)])
    else:
        result = run(operator, ROW, floats(scale), opset=opset)
    same(result, ROW[chosen])


def test_older_versions_choose_the_elements_that_onnx_runtime_chooses():
    """The sizes, scales and indices, one digit each, of ONNX Runtime 1.32's Resize of opset 10.

    Its Upsample of opset 9 chooses the same, but has no scales below 1.
    """
    for size, scale, chosen in json.loads((ROOT / "tests/onnx_graphs/resized.json").read_text()):
        row = np.arange(size, dtype=np.float32)
        for operator, opset in (("Resize", 10), ("Upsample", 9)):
            result = run(operator, row, floats(scale), opset=opset)
            assert "".join(f"{n:.0f}" for n in result) == chosen, (operator, size, scale)


def test_a_tensor_whose_sizes_stay_is_copied_by_older_versions():
    """Whole, as by ONNX Runtime: a scale counts if another axis is resized."""
    data = np.arange(6, dtype=np.float32).reshape(3, 2)
    for operator, opset in (("Resize", 10), ("Upsample", 9)):
        same(run(operator, data, floats(1.25, 1.4), opset=opset), data)
        resized = run(operator, data, floats(1.25, 2), opset=opset)
        same(resized, data[[0, 0, 1]].repeat(2, 1))


def test_the_first_version_of_upsample():
    result = run("Upsample", IMAGE, opset=6, height_scale=2.0, width_scale=1.5)
    same(result, IMAGE.repeat(2, 2)[..., [0, 0, 1, 2]])


@pytest.mark.parametrize("opset", [11, 13, 18, 19])
def test_half_pixel_for_nearest_neighbours(opset):
    mode = {"coordinate_transformation_mode": "tf_half_pixel_for_nn", "nearest_mode": "floor"}
    result = run("Resize", ROW, floats(), floats(1.5), opset=opset, **mode)
    same(result, ROW[[0, 1, 1, 2, 3, 3]])


# Sizes that ONNX Runtime 1.32 makes; with 64 bits, as in ONNX's shape inference, these are one less.
SIZES = [(0.7, 10, 7), (0.1, 10, 1), (0.3, 20, 6), (0.6, 5, 3), (1.1, 10, 11), (1.7, 10, 17)]


@pytest.mark.parametrize(("scale", "size", "expected"), SIZES)
def test_sizes_have_32_bits(scale, size, expected):
    data = np.arange(size, dtype=np.float32)
    for operator, opset in (("Resize", 10), ("Resize", 11), ("Resize", 19), ("Upsample", 9)):
        inputs = [floats(scale)] if opset < 11 else [floats(), floats(scale)]
        assert run(operator, data, *inputs, opset=opset).shape == (expected,)


def test_coordinates_of_older_versions_have_32_bits():
    """7 / 0.7 is 10 with 32 bits, and above 10 with 64; as ONNX Runtime 1.32."""
    result = run("Resize", np.arange(20, dtype=np.float32), floats(0.7), opset=10)
    same(result, floats(0, 2, 3, 5, 6, 8, 9, 10, 12, 13, 15, 16, 18, 19))


@pytest.mark.parametrize("policy", ["not_larger", "not_smaller"])
def test_sizes_by_a_policy_are_those_that_shape_inference_has(policy):
    for size in range(2, 10):
        for target in np.ndindex(9, 9):
            inputs = [np.zeros((size, 7), np.int8), None, None, ints(*target) + 1]
            proto, values = node_model("Resize", *inputs, keep_aspect_ratio_policy=policy)
            (result,) = evaluate(proto, values)
            del proto.graph.input[1:]
            proto.graph.initializer.append(numpy_helper.from_array(values["i3"], "i3"))
            inferred = shape_inference.infer_shapes(proto, data_prop=True).graph.output[0]
            sizes = [dim.dim_value for dim in inferred.type.tensor_type.shape.dim]
            assert [*result.shape] == sizes, (size, target)


def test_strings_and_empty_tensors():
    text = np.array(["a", "b"], object)
    same(run("Resize", text, None, floats(2)), text.repeat(2))
    same(run("Resize", text, None, floats(0.1)), text[:0])
    same(run("Resize", IMAGE[:0], None, floats(1, 1, 2, 1)), IMAGE[:0].repeat(2, 2))
    same(run("Resize", floats(1).reshape(()), None, floats()), floats(1).reshape(()))


@pytest.mark.parametrize(
    ("dtype", "value", "expected"),
    [
        (np.int8, 1000.0, 127),
        (np.uint8, -3.0, 0),
        (np.int32, 2.5, 2),
        (np.bool_, 1.0, True),
        (np.complex64, 2.5, 2.5),
        (np.float16, 1e9, 65504),
        (ml_dtypes.bfloat16, 3.0, 3),
    ],
)
def test_extrapolation_of_types(dtype, value, expected):
    data = np.ones(2, dtype)
    mode = {"coordinate_transformation_mode": "tf_crop_and_resize", "extrapolation_value": value}
    result = run("Resize", data, floats(0, 3), None, ints(4), **mode)
    same(result, np.array([1, 1, expected, expected], dtype))


def test_scales_may_depend_on_an_input():
    proto, values = node_model("Resize", ROW, None, floats(2))
    with pytest.raises(NeedsValueError):
        Model(proto).lower(types_of(values), {})


def lowered(dtype, shape, *scales):
    """Lower a node for an input of any size."""
    x = helper.make_tensor_value_info("x", helper.np_dtype_to_tensor_dtype(dtype), None)
    node = helper.make_node("Resize", ["x", "", "scales"], ["y"])
    constants = [numpy_helper.from_array(floats(*scales), "scales")]
    proto = model([node], [x], ["y"], initializer=constants)
    return Model(proto).lower({"x": TensorType(dtype, shape)}, {})


@pytest.mark.parametrize(("shape", "scale", "most"), [
    ((1, 3, 512, 512), 1.5, 4), ((1, 3, 512, 512), 2, 1), ((1, 3, 768, 768), 2 / 3, 1),
    ((1, 1, 1000, 1000), 0.777, 200), ((1, 1, 3000, 4000), 0.31831, 2500),
])  # fmt: skip
def test_few_regions(shape, scale, most):
    lowering = lowered(np.dtype(np.float32), shape, 1, 1, scale, scale)
    (step,) = lowering.graph.lower([lowering.outputs[0].number])
    assert len(step.plan.outputs[0].regions) <= most


def test_too_many_pieces():
    """A scale without small fractions near it, along two long axes."""
    with pytest.raises(
        ModelError, match=r"X: would be resized by \d+ pieces, must be 65536 at most"
    ):
        lowered(np.dtype(np.int8), (60000, 60000), 1.618034, 1.618034)
