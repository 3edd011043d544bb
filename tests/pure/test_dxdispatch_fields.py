"""Fields that no reader knows, and resources of another type than their tensor: warnings."""

import copy
import json
from pathlib import Path

import pytest
from models import SPLIT
from refusals import fault

from vkops.cli import main
from vkops.dxdispatch import load_model
from vkops.errors import ModelError
from vkops.models import json_reader

EXAMPLES = Path(__file__).parents[2] / "examples"
NAMES_ARE_FREE = (
    "resources", "dispatchables", "bindings", "specializationConstants",
    "freeDimensionNameOverrides", "freeDimensionDenotationOverrides",
    "sessionOptionsConfigEntries",
)  # fmt: skip


EVERYTHING = json.loads((EXAMPLES.parent / "tests" / "every_field.json").read_text())
"""Every field of every object, used or not."""


@pytest.fixture
def everything(load, tmp_path):
    for name in ("scale.comp", "channel_shuffle.onnx"):
        (tmp_path / name).write_bytes((EXAMPLES / name).read_bytes())
    (tmp_path / "x.bin").write_bytes(bytes(4))
    return load


def misspelt(value, path="", free=False):
    """Put a misspelt copy beside each field; yield the warnings that this must give."""
    children = list(value.items() if isinstance(value, dict) else enumerate(value))
    for name, child in children:
        dot = "." if path else ""
        step = f"[{name}]" if isinstance(value, list) else f"{dot}{name}"
        if isinstance(value, dict) and not free and name[0] != "$":
            value[f"{name}x"] = copy.deepcopy(child)
            yield f'm.json: {path}{step}x: unknown field; did you mean "{name}"?'
        if isinstance(child, dict | list):
            yield from misspelt(child, path + step, name in NAMES_ARE_FREE)


def test_misspelt_fields_of_every_object_give_a_warning(everything, monkeypatch):
    assert everything(EVERYTHING).warnings == ()
    monkeypatch.setattr(json_reader, "MAX_WARNINGS", 1000)
    model = copy.deepcopy(EVERYTHING)
    expected = [
        line.replace('"Type"', '"type"') if ".split.Typex" in line else line
        for line in misspelt(model)
    ]
    assert len(expected) > 80
    assert sorted(everything(model).warnings) == sorted(expected)


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("Stride", 'did you mean "Strides"?'),
        ("sizes", 'did you mean "Sizes"?'),
        ("dimensioncounts", 'did you mean "DimensionCount"?'),
        ("Qqq", "the fields here are DataType, Desc, DimensionCount, Flags, "
         "GuaranteedBaseOffsetAlignment, Sizes, Strides, TotalTensorSizeInBytes, Type"),
    ],
)  # fmt: skip
def test_a_warning_names_the_nearest_field_or_all_fields(load, name, more):
    model = copy.deepcopy(SPLIT)
    model["dispatchables"]["split"]["desc"]["InputTensor"][name] = [1]
    path = f"m.json: dispatchables.split.desc.InputTensor.{name}"
    assert load(model).warnings == (f"{path}: unknown field; {more}",)


@pytest.mark.parametrize("name", ["$comment", "_note", "//", "# why"])
def test_names_of_comments_give_no_warning(load, name):
    assert load({**SPLIT, name: "as it is said"}).warnings == ()


def test_the_content_of_an_unknown_field_gives_no_further_warning(load):
    assert len(load({**SPLIT, "Resources": SPLIT["resources"]}).warnings) == 1


def test_the_number_of_warnings_is_limited(load):
    names = [f"{'n' * 70}{i}" for i in range(20_000)]
    warnings = load({**SPLIT, **dict.fromkeys(names, 0)}).warnings
    assert len(warnings) == 101
    assert warnings[-1] == "m.json: more than 100 warnings"


# -- types -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("given", ["FLOAT64", "UINT32", "FLOAT16"])
def test_a_resource_of_another_type_than_its_tensor(load, given):
    model = copy.deepcopy(SPLIT)
    for name in ("In", "B"):
        model["resources"][name].update(initialValuesDataType=given, sizeInBytes=64)
    at = "m.json: commands[0].bindings"
    values = f"has initial values of type {given}"
    second = f'{at}.OutputTensors[1]: "B" {values}, the tensor "OutputTensors" is of FLOAT32'
    assert load(model).warnings == (
        f'{at}.InputTensor: "In" {values}, the tensor "InputTensor" is of FLOAT32',
        second,
    )
    untyped = {"initialValues": [{"type": "UINT8", "value": 1}], "sizeInBytes": 32}
    model["resources"]["In"] = untyped  # fits any tensor
    assert load(model).warnings == (second,)


def test_a_resource_of_another_type_than_an_onnx_tensor(everything):
    model = copy.deepcopy(EVERYTHING)
    model["resources"]["Images"]["initialValuesDataType"] = "INT32"
    assert everything(model).warnings == (
        'm.json: commands[2].bindings.x: "Images" has initial values of type INT32, '
        'the tensor "x" is of FLOAT32',
    )


# -- --strict --------------------------------------------------------------------------------------


def test_strict_makes_the_first_warning_an_error(load, capsys):
    model = {**SPLIT, "command": [], "resource": {}}
    message = 'm.json: command: unknown field; did you mean "commands"?'
    assert len(load(model).warnings) == 2
    assert fault(lambda: load_model("m.json", strict=True), ModelError) == message
    assert main(["check", "m.json"]) == 0
    assert capsys.readouterr().err.startswith(f"Warning: {message}\nWarning: m.json: resource: ")
    assert main(["check", "m.json", "--strict"]) == 1
    assert capsys.readouterr().err == f"Failed to parse the model: {message}\n"
    load(SPLIT)
    assert load_model("m.json", strict=True).warnings == ()
