"""Pieces of DxDispatch models, shared by their tests."""


def tensor(*sizes, **more):
    return {"DataType": "FLOAT32", "Sizes": list(sizes), **more}


def resource(data_type, initial, **more):
    return {"initialValuesDataType": data_type, "initialValues": initial, **more}


def zeros(count, data_type="FLOAT32"):
    return resource(data_type, {"value": 0, "valueCount": count})


def dispatch(name, **bindings):
    return {"type": "dispatch", "dispatchable": name, "bindings": bindings}


def model(resources=None, dispatchables=None, *commands):
    return {
        "resources": resources or {},
        "dispatchables": dispatchables or {},
        "commands": list(commands),
    }


_DESC = {"InputTensor": tensor(8), "OutputTensors": [tensor(4), tensor(4)], "Axis": 0}
SPLIT = model(
    {"In": zeros(8), "A": zeros(4), "B": zeros(4)},
    {"split": {"type": "SPLIT", "desc": _DESC}},
    dispatch("split", InputTensor="In", OutputTensors=["A", "B"]),
)
