"""Errors are one line of bounded length, whatever names they quote."""

import dataclasses
import json
import pickle
from pathlib import Path

import onnx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import vkops
from vkops import dxdispatch, shaders
from vkops.cli import main
from vkops.errors import MAX_MESSAGE_CHARACTERS, VkopsError, one_line
from vkops.gpu import DeviceInfo
from vkops.gpu.adapters import adapter
from vkops.onnx import Session

ERRORS = [
    vkops.VkopsError,
    vkops.DeviceError,
    vkops.ModelError,
    vkops.OutOfDeviceMemoryError,
    vkops.ShaderCompileError,
    vkops.MissingPackageError,
    lambda text: vkops.InvalidDescError("SPLIT", text, text, "SPLIT-01"),
    lambda text: vkops.BindingError(text, "field", "message", "B-01"),
]
BREAKS = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029\t\x00\x1b"
texts = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1),
    st.text(st.sampled_from("a'[" + BREAKS), min_size=1),
    st.builds(
        lambda text, count: text * count,
        st.sampled_from(["x", "\n", "a\x1b "]),
        st.integers(1000, 10**5),
    ),
)
quick = settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])


def check(text):
    assert text.isprintable()
    assert len(text) <= MAX_MESSAGE_CHARACTERS


def fault(function, *arguments):
    """The error that a function raises, checked."""
    with pytest.raises(VkopsError) as caught:
        function(*arguments)
    check(str(caught.value))


@given(texts)
def test_every_kind_of_error(text):
    for make in ERRORS:
        error = make(text)
        check(str(error))
        assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_what_is_kept_of_a_text():
    assert one_line("Ünïcode ‘quotes’ … × − stay") == "Ünïcode ‘quotes’ … × − stay"
    assert one_line("a\n  b\x1b[31m\u202ec\ud800") == "a b\\x1b[31m\\u202ec\\ud800"
    error = vkops.InvalidDescError("SPLIT", "x" * 10**6, "got 4, must be 6", "SPLIT-05")
    assert str(error).startswith("SPLIT xxx")
    assert str(error).endswith("xxx: got 4, must be 6 [SPLIT-05]")


@quick
@given(texts)
def test_names_in_onnx_models(text):
    value = onnx.helper.make_tensor_value_info
    for operator, name, source, output in (
        ("Relu", text, "x", "y"),
        (text, "", "x", "y"),
        ("Split", "", "x", text),
        ("Identity", text, text, "y"),
    ):
        node = onnx.helper.make_node(operator, [source], [output], name=name)
        ends = [value("x", 1, ["N"])], [value(output, 7, None)]
        fault(Session, onnx.helper.make_model(onnx.helper.make_graph([node], "g", *ends)))


@quick
@given(texts)
def test_names_in_json_models(tmp_path, text):
    path = tmp_path / "m.json"
    empty = {"resources": {}, "dispatchables": {}, "commands": []}
    for wrong in (
        {"resources": {text: {"initialValuesDataType": text}}},
        {"dispatchables": {text: {"type": text}}},
        {"commands": [{"type": "print", "resource": text}]},
        {"commands": [{"type": "dispatch", "dispatchable": text, "bindings": {text: text}}]},
    ):
        path.write_text(json.dumps({**empty, **wrong}))
        fault(dxdispatch.load_model, path)


@quick
@given(texts)
def test_names_of_files(text):
    missing = f"/no/such/folder/{text}"
    fault(dxdispatch.load_model, missing)
    fault(Session, missing)
    fault(shaders.load, Path(missing))


@quick
@given(texts)
def test_names_of_adapters(monkeypatch, text):
    fields = {field.name: 0 for field in dataclasses.fields(DeviceInfo)}
    monkeypatch.setattr(adapter, "_infos", lambda _: [DeviceInfo(**{**fields, "name": text})])
    fault(adapter.select, 5)
    fault(adapter.select, f"!{text}")


@quick
@given(texts)
def test_arguments_of_commands(capsys, text):
    for arguments in (
        ["check", text],
        ["check", f"x{text}.onnx"],
        ["run", "m.json", "-i", text],
        [f"x{text}"],
        ["debug", "printf", text],
    ):
        assert main(["--", *arguments] if text.startswith("-") else arguments) in (0, 1, 2)
        shown = capsys.readouterr().err.removesuffix("\n")
        check(shown)
