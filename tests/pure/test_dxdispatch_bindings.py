"""Bindings in every form, and which of them may share a resource."""

import copy

import pytest
from models import SPLIT, tensor, zeros

from vkops.dml import FeatureLevel
from vkops.dxdispatch import prepare
from vkops.errors import ModelError


def bound(model):
    dispatch = prepare(model, FeatureLevel.LATEST).commands[0]
    return [
        [(s.resource.name, s.offset) if s else None for s in slots]
        for slots in (dispatch.inputs, dispatch.outputs)
    ]


def test_forms_of_bindings(load):
    model = copy.deepcopy(SPLIT)
    bindings = model["commands"][0]["bindings"]
    assert bound(load(model)) == [[("In", 0)], [("A", 0), ("B", 0)]]
    bindings["InputTensor"] = [{"name": "In"}]
    bindings["OutputTensors"] = [
        {"name": "In2", "elementOffset": 8, "elementCount": 1, "format": "R32_FLOAT"},
        {"name": "In2", "elementOffset": 1, "elementSizeInBytes": 16, "counter": "A"},
    ]
    model["resources"]["In2"] = zeros(12)
    assert bound(load(model)) == [[("In", 0)], [("In2", 32), ("In2", 16)]]


def test_one_resource_may_be_read_twice_and_be_larger_than_its_tensor(load):
    model = {
        "resources": {"A": zeros(10), "B": zeros(3), "Out": zeros(10)},
        "dispatchables": {
            "join": {
                "type": "JOIN",
                "InputTensors": [tensor(3), tensor(2), tensor(5)],
                "OutputTensor": tensor(10),
                "Axis": 0,
            }
        },
        "commands": [
            {
                "type": "DISPATCH",
                "dispatchable": "join",
                "threadGroupCount": [1, 2, 3],
                "bindings": {
                    "InputTensors": ["A", "B", {"name": "A", "elementOffset": 4}],
                    "OutputTensor": "Out",
                },
            }
        ],
    }
    assert bound(load(model)) == [[("A", 0), ("B", 0), ("A", 16)], [("Out", 0)]]


def identity_in_place(offset):
    return {
        "resources": {"A": zeros(12)},
        "dispatchables": {
            "copy": {
                "type": "ELEMENT_WISE_IDENTITY",
                "InputTensor": tensor(8),
                "OutputTensor": tensor(8),
            }
        },
        "commands": [
            {
                "type": "dispatch",
                "dispatchable": "copy",
                "bindings": {
                    "InputTensor": "A",
                    "OutputTensor": {"name": "A", "elementOffset": offset},
                },
            }
        ],
    }


def test_identity_works_in_place_but_not_shifted(load):
    assert bound(load(identity_in_place(0))) == [[("A", 0)], [("A", 0)]]
    with pytest.raises(ModelError) as caught:
        prepare(load(identity_in_place(4)), FeatureLevel.LATEST)
    assert str(caught.value) == (
        'ERROR while binding resources: m.json: commands[0].bindings.OutputTensor: "A": shares '
        "bytes 16 to 31 with InputTensor; only an identity with equal strides may, on the same "
        "range [B-09]"
    )


def test_join_of_owned_and_other_inputs(load):
    model = {
        "resources": {"A": zeros(4), "B": zeros(4), "Out": zeros(8)},
        "dispatchables": {
            "join": {
                "type": "JOIN",
                "InputTensors": [tensor(4, Flags="OWNED_BY_DML"), tensor(4)],
                "OutputTensor": tensor(8),
                "Axis": 0,
                "bindings": {"InputTensors": ["A", "B"]},
            }
        },
        "commands": [
            {
                "type": "dispatch",
                "dispatchable": "join",
                "bindings": {"InputTensors": ["A", "B"], "OutputTensor": "Out"},
            }
        ],
    }
    prepared = prepare(load(model), FeatureLevel.LATEST)
    initial = prepared.initial_inputs["join"]
    assert [s and s.resource.name for s in initial] == ["A", None]
    assert [s and s.resource.name for s in prepared.commands[0].inputs] == [None, "B"]
