"""What works with neither a Vulkan loader nor Kompute: all that needs no device."""

import pytest
from processes import run_with

MISSING = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name in ("kp", "vkops_native"):
            raise ImportError("libvulkan.so.1: cannot open shared object file")

sys.meta_path.insert(0, Missing())
"""
PROGRAM = """
import numpy as np
import vkops
from vkops import dml

whole = dml.BufferTensorDesc(dml.TensorDataType.FLOAT32, [4, 6])
parts = [dml.BufferTensorDesc(dml.TensorDataType.FLOAT32, [n, 6]) for n in (1, 3)]
desc = dml.SplitOperatorDesc(whole, parts, axis=0)
desc.validate()
print([len(output.regions) for output in desc.lower().outputs], vkops.__version__ != "")
for use in (vkops.devices, vkops.Device, lambda: vkops.split(np.arange(4), 2)):
    try:
        use()
    except vkops.DeviceError as error:
        print(str(error).partition(":")[0])
"""


@pytest.fixture
def python(tmp_path):
    """Run Python without Vulkan and Kompute: its status, output and errors."""
    (tmp_path / "sitecustomize.py").write_text(MISSING)

    return lambda *arguments: run_with(tmp_path, arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["run", "--help"],
        ["rule", "SPLIT-05"],
        ["check", "examples/split.json"],
        ["explain", "examples/split.json"],
        ["check", "examples/channel_shuffle.onnx"],
        ["explain", "examples/channel_shuffle.onnx"],
        ["shader", "list"],
        ["debug", "check", "examples/shader.json"],
        ["debug", "trace", "examples/split.json", "0,0", "--output", "OutputTensors[0]"],
        ["debug", "step", "examples/transpose_wrong.comp", "--push=3,5", "--commands=/dev/null"],
        ["debug", "report"],
        ["completion", "bash"],
    ],
    ids=" ".join,
)
def test_commands_that_need_no_device(python, arguments):
    status, output, errors = python("-m", "vkops", *arguments)
    assert (status, errors) == (0, "")
    assert output


@pytest.mark.parametrize(
    ("arguments", "before"),
    [
        (["run", "examples/split.json"], "Failed to create adapter: "),
        (["run", "examples/channel_shuffle.onnx"], "Failed to create adapter: "),
        (["devices"], ""),
    ],
)
def test_commands_that_need_a_device_say_what_is_missing(python, arguments, before):
    status, _, errors = python("-m", "vkops", *arguments)
    assert status == 1
    assert errors.startswith(f"{before}no Vulkan loader: ")
    assert errors.count("\n") == 1


def test_descriptors_and_plans(python):
    output = "[1, 1] True\n" + "no Vulkan loader\n" * 3
    assert python("-c", PROGRAM) == (0, output, "")
