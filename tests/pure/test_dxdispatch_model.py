"""Models, descriptors and bindings in every form the format has."""

import copy
import math
from pathlib import Path

import pytest
from models import SPLIT, dispatch, model, resource, tensor, zeros
from refusals import fault

from vkops.dml import (
    BufferTensorDesc,
    ExecutionFlags,
    FeatureLevel,
    SplitOperatorDesc,
    TensorDataType,
    TensorFlags,
)
from vkops.dxdispatch import prepare
from vkops.errors import ModelError

F32 = TensorDataType.FLOAT32


@pytest.fixture
def desc(load):
    """The descriptor that a dispatchable stands for."""
    return lambda dispatchable: load(model({}, {"x": dispatchable})).dispatchables["x"].desc


def prepared(made):
    return prepare(made, FeatureLevel.LATEST)


def bound(made):
    """The resources and offsets of the inputs and outputs of the first dispatch."""
    command = prepared(made).commands[0]
    return [
        [s and (s.resource.name, s.offset) for s in (tensor.source for tensor in slots)]
        for slots in (command.inputs, command.outputs)
    ]


# -- descriptors -----------------------------------------------------------------------------------


def test_names_of_operators_and_fields_may_be_long_or_short(desc):
    split = SPLIT["dispatchables"]["split"]
    half = BufferTensorDesc(F32, (4,))
    for form in (
        split,
        {**split, "type": "DML_OPERATOR_SPLIT"},
        {"Type": "SPLIT", "Desc": split["desc"]},
        {"type": "SPLIT", **split["desc"]},
        {"type": "SPLIT", **split["desc"], "OutputCount": 2, "$schema": "x"},
    ):
        assert desc(form) == SplitOperatorDesc(BufferTensorDesc(F32, (8,)), (half, half), 0)


def test_forms_of_tensor_descs(desc):
    def identity(member):
        return desc(
            {"type": "ELEMENT_WISE_IDENTITY", "InputTensor": member, "OutputTensor": tensor(2, 3)}
        ).input_tensor

    body = {
        "DataType": "DML_TENSOR_DATA_TYPE_FLOAT32",
        "DimensionCount": 2,
        "Sizes": [2, 3],
        "Strides": [1, 2],
        "Flags": ["DML_TENSOR_FLAG_OWNED_BY_DML", "NONE"],
        "TotalTensorSizeInBytes": 64,
        "GuaranteedBaseOffsetAlignment": 32,
    }
    full = BufferTensorDesc(F32, (2, 3), (1, 2), TensorFlags.OWNED_BY_DML, 64, 32)
    assert identity(body) == full
    assert identity({**body, "Flags": "OWNED_BY_DML"}) == full
    assert identity({"Type": "BUFFER", **body}) == full
    assert identity({"Type": "DML_TENSOR_TYPE_BUFFER", "Desc": body}) == full
    plain = BufferTensorDesc(F32, (2, 3))
    assert identity(tensor(2, 3)) == plain
    assert identity(tensor(2, 3, TotalTensorSizeInBytes=0)) == plain


@pytest.mark.parametrize(("data_type", "given", "value"), [
    ("FLOAT32", 2, 2),
    ("FLOAT64", 1e300, 1e300),
    ("FLOAT16", "-INF", -math.inf),
    ("UINT64", 2**64 - 1, 2**64 - 1),
    ("FLOAT32", {"Float32": 0.5}, 0.5),
    ("INT8", {"Int8": -128}, -128),
    ("UINT8", {"UInt8": 255}, 255),
    ("FLOAT16", {"UInt16": 0x3800}, 0.5),
])  # fmt: skip
def test_forms_of_scalar_unions(desc, data_type, given, value):
    fields = {"OutputTensor": tensor(4), "ValueDataType": f"DML_TENSOR_DATA_TYPE_{data_type}"}
    loaded = desc({"type": "FILL_VALUE_CONSTANT", "desc": {**fields, "Value": given}})
    assert (loaded.value_data_type.name, loaded.value) == (data_type, value)


@pytest.mark.parametrize(("data_type", "given", "text"), [
    ("FLOAT32", "1", 'desc.Value: got "1", must be a number, "nan", "inf" or "-inf"'),
    ("FLOAT32", {"Float64": 1}, "desc.Value: 'Float32' is missing"),
    ("FLOAT16", {"UInt16": 65536}, "desc.Value.UInt16: got 65536, must be 0 to 65535"),
    ("FLOAT", 1, 'desc.ValueDataType: got "FLOAT", must be UNKNOWN, FLOAT32, .*'),
    ("UINT8", {"UInt8": 256},
     r"desc.Value: FILL_VALUE_CONSTANT: got 256, must be an integer from -128 to 255, .* \[FILL-02\]"),
    ("UNKNOWN", {"Unknown": 1},
     "desc.ValueDataType: .* must equal OutputTensor.DataType = UINT8 .*"),
])  # fmt: skip
def test_scalar_unions_that_are_refused(load, data_type, given, text):
    fields = {"OutputTensor": tensor(1, 1, 1, 4), "ValueDataType": data_type, "Value": given}
    fields["OutputTensor"]["DataType"] = "UINT8"
    document = model({}, {"fill": {"type": "FILL_VALUE_CONSTANT", "desc": fields}})
    with pytest.raises(ModelError, match=rf"m.json: dispatchables\.fill\.{text}$"):
        prepare(load(document), FeatureLevel.LATEST)


@pytest.mark.parametrize(("operator", "reason"), [
    ("CAST", "it converts values, and vkops moves data"),
    ("NONZERO_COORDINATES", "how much it writes depends on the data"),
    ("FOLD", "it adds elements, and vkops moves data"),
])  # fmt: skip
def test_operators_that_compute_are_refused_with_the_reason(load, operator, reason):
    document = model({}, {"it": {"type": f"DML_OPERATOR_{operator}", "desc": {}}})
    text = f"m.json: dispatchables.it.type: operator {operator} is not available: {reason}"
    assert fault(lambda: load(document), ModelError) == text


@pytest.mark.parametrize(("given", "bindings", "text"), [
    ({}, {}, None),
    ({"InputTensor": None}, {"InputTensor": []}, None),
    ({"InputTensor": tensor(2, 2)}, {"InputTensor": "In"}, None),
    ({}, {"InputTensor": "In"}, "requires 0 resources, but 1 were bound"),
    ({"InputTensor": tensor(2, 2)}, {}, "Nothing bound for required tensor 'InputTensor'"),
])  # fmt: skip
def test_an_optional_tensor_is_bound_if_the_descriptor_has_it(load, given, bindings, text):
    fields = {
        **given, "OutputTensor": tensor(2, 2), "ValueDataType": "FLOAT32", "Value": 0,
        "DiagonalFillBegin": 0, "DiagonalFillEnd": 1,
    }  # fmt: skip
    document = model(
        {"In": zeros(4), "Out": zeros(4)},
        {"band": {"type": "DIAGONAL_MATRIX1", "desc": fields}},
        dispatch("band", **bindings, OutputTensor="Out"),
    )
    if text is None:
        inputs = [("In", 0)] if bindings.get("InputTensor") else []
        assert bound(load(document)) == [inputs, [("Out", 0)]]
        return
    assert text in fault(lambda: prepared(load(document)), ModelError)


def test_compile_type_and_execution_flags(load):
    document = copy.deepcopy(SPLIT)
    flags = ["DML_EXECUTION_FLAG_DISABLE_META_COMMANDS", "DESCRIPTORS_VOLATILE"]
    both = ExecutionFlags.DISABLE_META_COMMANDS | ExecutionFlags.DESCRIPTORS_VOLATILE
    graph = {"dmlCompileType": "DmlCompileGraph", "executionFlags": flags}
    for fields, expected in (({}, (False, ExecutionFlags.NONE)), (graph, (True, both))):
        document["dispatchables"]["split"].update(fields)
        loaded = load(document).dispatchables["split"]
        assert (loaded.compile_graph, loaded.execution_flags) == expected


def test_feature_level_is_checked_and_named(load):
    loaded = load(SPLIT)
    prepare(loaded, FeatureLevel("3_0"))
    said = fault(lambda: prepare(loaded, FeatureLevel("2_0")), ModelError)
    place = "m.json: dispatchables.split.desc.InputTensor.Sizes: SPLIT: "
    assert said.startswith(f"ERROR creating dispatchable 'split': {place}")
    assert "2_0" in said


# -- resources and files ---------------------------------------------------------------------------


def test_size_of_resources(load):
    resources = {
        "Rounded": resource("UINT8", [1, 2, 3, 4, 5]),
        "Given": resource("UINT8", [1, 2], sizeInBytes=5),
        "Shifted": resource("UINT8", [1, 2], initialValuesOffsetInBytes=6, sizeInBytes=8),
    }
    loaded = load(model(resources)).resources
    assert {name: r.size for name, r in loaded.items()} == {"Rounded": 8, "Given": 5, "Shifted": 8}


def test_inputs_and_outputs_have_their_own_folders(load, tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "raw.bin").write_bytes(bytes(8))
    write = {"type": "writefile", "resource": "A", "targetPath": "x/a.bin"}
    document = model({"A": resource("INT8", {"sourcePath": "raw.bin"})}, {}, write)
    loaded = load(document, input_path="in", output_path="out")
    assert loaded.commands[0].target == Path("out/x/a.bin")
    assert load(document, input_path=tmp_path / "in").commands[0].target == tmp_path / "x/a.bin"
    with pytest.raises(ModelError, match=r'no file "raw\.bin" in "\."$'):
        load(document)


# -- bindings --------------------------------------------------------------------------------------


def test_unknown_bind_points_give_a_warning(load):
    document = copy.deepcopy(SPLIT)
    document["commands"][0]["bindings"]["Input"] = "In"
    assert load(document).warnings == (
        "m.json: commands[0].bindings.Input: SPLIT has no such bind point "
        "(it has InputTensor, OutputTensors)",
    )


def test_forms_of_bindings(load):
    document = copy.deepcopy(SPLIT)
    assert bound(load(document)) == [[("In", 0)], [("A", 0), ("B", 0)]]
    document["commands"][0]["bindings"] = {
        "InputTensor": [{"name": "In"}],
        "OutputTensors": [
            {"name": "In2", "elementOffset": 8, "elementCount": 1, "format": "R32_FLOAT"},
            {"name": "In2", "elementOffset": 1, "elementSizeInBytes": 16, "counter": "A"},
        ],
    }
    document["resources"]["In2"] = zeros(12)
    assert bound(load(document)) == [[("In", 0)], [("In2", 32), ("In2", 16)]]


def test_identity_works_in_place(load):
    fields = {"InputTensor": tensor(8), "OutputTensor": tensor(8)}
    document = model(
        {"A": zeros(12)},
        {"copy": {"type": "ELEMENT_WISE_IDENTITY", **fields}},
        dispatch("copy", InputTensor="A", OutputTensor="A"),
    )
    assert bound(load(document)) == [[("A", 0)], [("A", 0)]]


def test_join_of_owned_and_other_inputs(load):
    tensors = [tensor(4, Flags="OWNED_BY_DML"), tensor(4)]
    fields = {"InputTensors": tensors, "OutputTensor": tensor(8), "Axis": 0}
    document = model(
        {"A": zeros(4), "B": zeros(4), "Out": zeros(8)},
        {"join": {"type": "JOIN", **fields, "bindings": {"InputTensors": ["A", "B"]}}},
        dispatch("join", InputTensors=["A", "B"], OutputTensor="Out"),
    )
    (bound,) = prepared(load(document)).dispatches
    sources = [[t.source for t in tensors] for tensors in (bound.dispatchable.owned, bound.inputs)]
    assert [[s and s.resource.name for s in each] for each in sources] == [["A", None], [None, "B"]]
