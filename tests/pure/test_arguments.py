"""Arguments of the wrong kind: one clear error, before anything is opened or read."""

from __future__ import annotations

import numpy as np
import pytest

import vkops
from vkops import dxdispatch, runner
from vkops.dml import FeatureLevel
from vkops.errors import DeviceError, ModelError

ADAPTER = "must be an index, part of an adapter's name, or None [DEV-14]"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"adapter": np.arange(3)}, f"adapter: got array([0, 1, 2]), {ADAPTER}"),
        ({"adapter": 1.5}, f"adapter: got 1.5, {ADAPTER}"),
        ({"adapter": True}, f"adapter: got True, {ADAPTER}"),
        ({"adapter": b"llvmpipe"}, f"adapter: got b'llvmpipe', {ADAPTER}"),
        ({"expect": 3}, "expect: got 3, must be 'lavapipe', 'gpu', part of an adapter's name, or None [DEV-14]"),
        ({"debug": "x"}, "debug: got 'x', must be True or False [DEV-14]"),
        ({"staged": None}, "staged: got None, must be True or False [DEV-14]"),
    ],
)  # fmt: skip
def test_devices(arguments, message):
    with pytest.raises(DeviceError) as caught:
        vkops.Device(**arguments)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((3,), "path: got 3, must be a path"),
        ((None,), "path: got None, must be a path"),
        (("m.json", 3), "input_path: got 3, must be a path"),
        (("m.json", None, 3), "output_path: got 3, must be a path"),
        (("m.json", None, None, {}), "overrides: got {}, must be Overrides or None"),
    ],
)
def test_models(arguments, message):
    with pytest.raises(ModelError) as caught:
        dxdispatch.load_model(*arguments)
    assert str(caught.value) == message


def test_what_is_no_model():
    with pytest.raises(ModelError) as caught:
        dxdispatch.prepare("m.json", FeatureLevel.LATEST)
    assert str(caught.value) == "model: got 'm.json', must be what load_model returns"
    with pytest.raises(ModelError) as caught:
        runner.run("m.json", None)
    assert str(caught.value) == "prepared: got 'm.json', must be what prepare returns"


@pytest.mark.parametrize("value", ["false", 0, None, np.array([True, False])])
def test_permissions_are_true_or_false(value):
    """``allow_paths="false"`` would otherwise allow all paths."""
    for call in (
        lambda: dxdispatch.load_model("m.json", allow_paths=value),
        lambda: vkops.onnx.Model(b"", allow_paths=value),
    ):
        with pytest.raises(ModelError, match=r"^allow_paths: got .*, must be True or False$"):
            call()
    with pytest.raises(
        vkops.ShaderCompileError, match=r"^allow_paths: got .*, must be True or False$"
    ):
        vkops.shaders.load("void main() {}", allow_paths=value)
