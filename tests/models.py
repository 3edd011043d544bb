"""Pieces of DxDispatch models, shared by their tests."""

from __future__ import annotations


def tensor(*sizes, **more):
    return {"DataType": "FLOAT32", "Sizes": list(sizes), **more}


def zeros(count):
    return {"initialValuesDataType": "FLOAT32", "initialValues": {"value": 0, "valueCount": count}}


SPLIT = {
    "resources": {"In": zeros(8), "A": zeros(4), "B": zeros(4)},
    "dispatchables": {
        "split": {
            "type": "SPLIT",
            "desc": {
                "InputTensor": tensor(8),
                "OutputTensors": [tensor(4), tensor(4)],
                "Axis": 0,
            },
        }
    },
    "commands": [
        {
            "type": "dispatch",
            "dispatchable": "split",
            "bindings": {"InputTensor": "In", "OutputTensors": ["A", "B"]},
        }
    ],
}
