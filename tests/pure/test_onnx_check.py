"""``vkops check`` on ONNX models, and ``onnx`` dispatchables that are refused before anything runs."""

import json

import models
import numpy as np
import onnx
import pytest
from models import zeros
from onnx_models import CONCAT
from refusals import fault

import vkops
from vkops.errors import ModelError

BAD = """<ir_version: 8, opset_import: ["" : 18, "mine" : 1]>
bad (float[N, 4] x) => (float[N, 4] y) {
  a = Relu (x)
  b = Identity (a)
  y = mine.Turn (b)
}"""


TOO_LONG = "1" * 20
"""Digits of a size that no tensor can have. Python does not convert a text of 4,301 digits."""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder, with the models in it."""
    monkeypatch.chdir(tmp_path)
    onnx.save(onnx.parser.parse_model(CONCAT), tmp_path / "concat.onnx")
    onnx.save(onnx.parser.parse_model(BAD), tmp_path / "bad.onnx")
    return tmp_path


def test_check_shows_operators_and_the_plan(folder, command):
    status, out, err = command("check", "concat.onnx", "-f", "N:3")
    assert (status, err) == (0, "")
    assert "Opset 13" in out
    assert "│ Concat   │ 13      │ 1     │" in out
    plan = "1 submission, 2 regions, 48 bytes written"
    assert out.endswith(f"With x0 [3, 2], x1 [3, 2]: {plan}\n")


def test_check_lists_every_node_that_cannot_run(folder, command):
    status, out, err = command("check", "bad.onnx")
    assert status == 1
    assert "node 0, which makes 'a' (Relu)" in out
    assert "node 2, which makes 'y'" in out
    assert "Identity" not in out
    assert err.startswith(
        "bad.onnx: node 0, which makes 'a' (Relu): vkops does not have this operator, "
        "nor 1 more nodes"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-f", "N"], "got 'N', must be NAME:SIZE, such as N:5"),
        (["-f", f"N:{TOO_LONG}"], f"got 'N:{TOO_LONG}', must be NAME:SIZE, such as N:5"),
        (["-F", f"N:{TOO_LONG}"], f"got 'N:{TOO_LONG}', must be DENOTATION:SIZE, such as N:5"),
        (["-b", f"x0:{TOO_LONG}"], f"got 'x0:{TOO_LONG}', must be TENSOR:SHAPE, such as x:5,2"),
        (["-F", "N:-1"], "got 'N:-1', must be DENOTATION:SIZE, such as N:5"),
        (["-b", "x0:3;2"], "got 'x0:3;2', must be TENSOR:SHAPE, such as x:5,2"),
    ],
)
def test_malformed_options_are_refused(folder, arguments, message, command):
    place = f"Failed to parse command-line arguments: Invalid value for '{arguments[0]}': "
    assert command("check", "concat.onnx", *arguments) == (2, "", f"{place}{message}\n")


def dispatch(bindings, **more):
    resources = {"a": zeros(4), "b": zeros(2), "later": {"initialValues": "deferred"}}
    concat = {"type": "ONNX", "sourcePath": "concat.onnx", **more}
    return models.model(resources, {"concat": concat}, models.dispatch("concat", **bindings))


@pytest.mark.parametrize(
    ("model", "named"),
    [
        (dispatch({"x0": {"name": "b", "shape": [2, 2]}}), "commands[0].bindings.x0"),
        (dispatch({"y": {"name": "a", "shape": [3, 2]}}), "commands[0].bindings.y"),
        (dispatch({"y": "b"}), "commands[0].bindings.y"),
        (dispatch({"x0": ["a", "b"]}), "commands[0].bindings.x0[1] [B-01]"),
        (dispatch({"x0": {"name": "a", "elementOffset": 1}}), "commands[0].bindings.x0.elementOffset"),
        (dispatch({"x0": {"name": "a", "format": "R32_UINT"}}), "commands[0].bindings.x0.format"),
        (dispatch({"x0": {"name": "a", "shape": [1, 3]}}), "input 'x0'"),
        (dispatch({}, freeDimensionNameOverrides={"Q": 2}), "dispatchables.concat.sourcePath"),
        (dispatch({}, sourcePath="bad.onnx"), "nor 1 more nodes"),
        (dispatch({}, sourcePath="none.onnx"), "dispatchables.concat.sourcePath"),
    ],
)  # fmt: skip
def test_dispatchables_are_checked_before_anything_runs(folder, model, named, command, message):
    (folder / "m.json").write_text(json.dumps(model))
    status, _, err = command("check", "m.json")
    assert status == 1
    message(err.removesuffix("\n"), *named.split())


def test_unknown_bind_points_are_warned_of(folder, command):
    (folder / "m.json").write_text(json.dumps(dispatch({"z": "a"})))
    status, _, err = command("check", "m.json")
    assert (status, "concat has no such bind point (it has x0, x1, y)" in err) == (0, True)


# -- what Session checks before it runs ------------------------------------------------------------


class NoDevice(vkops.Device):
    """A device that must not be used, since inputs are checked first."""

    def __init__(self):
        pass


@pytest.mark.parametrize(
    ("inputs", "named"),
    [
        ({}, "input 'x0'"),
        ({"x0": np.ones((1, 2), np.float32), "q": 1}, "input 'q'"),
        ({"x0": np.ones(2), "x1": 1}, "input 'x0'"),
        ({"x0": np.ones(2, np.float32), "x1": 1}, "input 'x0'"),
        ({"x0": np.ones((1, 2), np.float32), "x1": np.ones((2, 2), np.float32)}, "input 'x1'"),
        ({"x0": object(), "x1": 1}, "input 'x0'"),
    ],
)  # fmt: skip
def test_sessions_check_their_inputs(inputs, named, message):
    from vkops.onnx import Model, Session

    session = Session(Model(onnx.parser.parse_model(CONCAT)), NoDevice())
    message(fault(lambda: session.run(inputs), ModelError), named)


@pytest.mark.parametrize("operator", ["Identity", "mine.Turn"])  # one that vkops has, and another
@pytest.mark.parametrize("subcommand", ["check", "explain"])
def test_names_of_any_length_are_printed_in_bounded_space(folder, subcommand, operator, command):
    domain, _, kind = operator.rpartition(".")
    proto = onnx.parser.parse_model(BAD)
    name = "n" * 100_000
    del proto.graph.node[:]
    proto.graph.node.add(op_type=kind, domain=domain, name=name, input=[name], output=["y"])
    proto.graph.input[0].name = name
    onnx.save(proto, "long.onnx")
    status, out, err = command(subcommand, "long.onnx")
    assert status == (operator == "mine.Turn")
    assert len(out + err) < 30_000
