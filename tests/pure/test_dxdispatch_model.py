"""Models, descriptors and bindings in every form the format has."""

import copy
from pathlib import Path

import pytest
from models import SPLIT, tensor

from vkops.dml import (
    BufferTensorDesc,
    ElementWiseIdentityOperatorDesc,
    ExecutionFlags,
    FeatureLevel,
    JoinOperatorDesc,
    Slice1OperatorDesc,
    SliceOperatorDesc,
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

    def desc(dispatchable):
        model = {"resources": {}, "dispatchables": {"x": dispatchable}, "commands": []}
        return load(model).dispatchables["x"].desc

    return desc


def expect_split(found):
    half = BufferTensorDesc(F32, (4,))
    assert found == SplitOperatorDesc(BufferTensorDesc(F32, (8,)), (half, half), 0)


def test_names_of_operators_and_fields_may_be_long_or_short(desc):
    split = SPLIT["dispatchables"]["split"]
    expect_split(desc(split))
    expect_split(desc({**split, "type": "DML_OPERATOR_SPLIT"}))
    expect_split(desc({"Type": "SPLIT", "Desc": split["desc"]}))
    expect_split(desc({"type": "SPLIT", **split["desc"]}))
    expect_split(desc({"type": "SPLIT", **split["desc"], "OutputCount": 2, "$schema": "x"}))


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


def test_every_operator_is_read_from_its_field_table(desc):
    whole, part = tensor(1, 1, 4, 5), tensor(1, 1, 2, 3)
    w, p = BufferTensorDesc(F32, (1, 1, 4, 5)), BufferTensorDesc(F32, (1, 1, 2, 3))
    tensors = {"InputTensor": whole, "OutputTensor": part}
    assert desc(
        {
            "type": "SLICE",
            "desc": {
                **tensors,
                "DimensionCount": 4,
                "Offsets": [0, 0, 1, 1],
                "Sizes": [1, 1, 2, 3],
                "Strides": [1, 1, 1, 1],
            },
        }
    ) == SliceOperatorDesc(w, p, (0, 0, 1, 1), (1, 1, 2, 3), (1, 1, 1, 1))
    assert desc(
        {
            "type": "SLICE1",
            "desc": {
                **tensors,
                "InputWindowOffsets": [0, 0, 0, 0],
                "InputWindowSizes": [1, 1, 4, 5],
                "InputWindowStrides": [1, 1, 2, -2],
            },
        }
    ) == Slice1OperatorDesc(w, p, (0, 0, 0, 0), (1, 1, 4, 5), (1, 1, 2, -2))
    assert desc(
        {
            "type": "JOIN",
            "desc": {"InputCount": 1, "InputTensors": [whole], "OutputTensor": whole, "Axis": 3},
        }
    ) == JoinOperatorDesc((w,), w, 3)
    for more in ({}, {"ScaleBias": None}):
        found = desc(
            {"type": "ELEMENT_WISE_IDENTITY", "InputTensor": whole, "OutputTensor": whole, **more}
        )
        assert found == ElementWiseIdentityOperatorDesc(w, w)


def test_compile_type_and_execution_flags(load):
    model = copy.deepcopy(SPLIT)
    split = model["dispatchables"]["split"]
    found = load(model).dispatchables["split"]
    assert (found.compile_graph, found.execution_flags) == (False, ExecutionFlags.NONE)
    split["dmlCompileType"] = "DmlCompileGraph"
    split["executionFlags"] = ["DML_EXECUTION_FLAG_DISABLE_META_COMMANDS", "DESCRIPTORS_VOLATILE"]
    found = load(model).dispatchables["split"]
    assert found.compile_graph
    both = ExecutionFlags.DISABLE_META_COMMANDS | ExecutionFlags.DESCRIPTORS_VOLATILE
    assert found.execution_flags == both


def test_size_of_resources(load):
    resources = {
        "Rounded": {"initialValuesDataType": "UINT8", "initialValues": [1, 2, 3, 4, 5]},
        "Given": {"initialValuesDataType": "UINT8", "initialValues": [1, 2], "sizeInBytes": 5},
        "Shifted": {
            "initialValuesDataType": "UINT8",
            "initialValues": [1, 2],
            "initialValuesOffsetInBytes": 6,
            "sizeInBytes": 8,
        },
    }
    found = load({"resources": resources, "dispatchables": {}, "commands": []}).resources
    assert {name: r.size for name, r in found.items()} == {"Rounded": 8, "Given": 5, "Shifted": 8}


def test_unknown_bind_points_give_a_warning(load):
    model = copy.deepcopy(SPLIT)
    model["commands"][0]["bindings"]["Input"] = "In"
    assert load(model).warnings == (
        "m.json: commands[0].bindings.Input: SPLIT has no such bind point "
        "(it has InputTensor, OutputTensors)",
    )


def test_feature_level_is_checked_and_named(load):
    model = load(SPLIT)
    prepare(model, FeatureLevel("3_0"))
    with pytest.raises(ModelError) as caught:
        prepare(model, FeatureLevel("2_0"))
    assert str(caught.value).startswith(
        "ERROR creating dispatchable 'split': m.json: "
        "dispatchables.split.desc.InputTensor.Sizes: SPLIT: "
    )
    assert "2_0" in str(caught.value)


def test_field_paths_in_messages_are_directml_s(load):
    model = copy.deepcopy(SPLIT)
    model["dispatchables"]["split"]["desc"]["OutputTensors"][1]["DataType"] = "INT32"
    with pytest.raises(ModelError, match=r"must equal InputTensor\.DataType = FLOAT32 \[SPLIT-03"):
        prepare(load(model), FeatureLevel.LATEST)


def test_inputs_and_outputs_have_their_own_folders(load, tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "raw.bin").write_bytes(bytes(8))
    model = {
        "resources": {
            "A": {"initialValuesDataType": "INT8", "initialValues": {"sourcePath": "raw.bin"}}
        },
        "dispatchables": {},
        "commands": [{"type": "writefile", "resource": "A", "targetPath": "x/a.bin"}],
    }
    found = load(model, input_path="in", output_path="out")
    assert found.commands[0].target == Path("out/x/a.bin")
    assert load(model, input_path=tmp_path / "in").commands[0].target == tmp_path / "x/a.bin"
    with pytest.raises(ModelError, match=r'no file "raw\.bin" in "\."$'):
        load(model)
