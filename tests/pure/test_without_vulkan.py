"""What works with neither a Vulkan loader nor Kompute, and the reasons why Kompute is not loaded."""

import sys

import pytest
from processes import OWN_SITE, python, run_with

from vkops.gpu.adapters.kompute import INTERFACE
from vkops.system.vulkan import LOADER, how_to_install

REFUSING = """
import sys
class Refusing:
    def find_spec(self, name, *_):
        if name in ("kp", "vkops_native"):
            raise {}
sys.meta_path.insert(0, Refusing())
"""
MISSING = f'ImportError("{LOADER}: cannot open shared object file")'
PROGRAM = """
import numpy as np
import vkops
from vkops import dml

whole = dml.BufferTensorDesc(dml.TensorDataType.FLOAT32, [4, 6])
parts = [dml.BufferTensorDesc(dml.TensorDataType.FLOAT32, [n, 6]) for n in (1, 3)]
desc = dml.SplitOperatorDesc(whole, parts, axis=0)
desc.validate()
print([len(output.regions) for output in desc.lower().outputs], vkops.__version__ != "")
try:
    vkops.split(np.arange(4), 2)
except vkops.DeviceError as error:
    print(str(error).partition(":")[0])
"""


@pytest.fixture
def without(tmp_path):
    """Run Python without Vulkan and Kompute: its status, output and errors."""
    (tmp_path / "sitecustomize.py").write_text(REFUSING.format(MISSING))

    return lambda *arguments: run_with(tmp_path, arguments)


@OWN_SITE
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
def test_commands_that_need_no_device(without, arguments):
    status, output, errors = without("-m", "vkops", *arguments)
    assert (status, errors) == (0, "")
    assert output


@OWN_SITE
@pytest.mark.parametrize(
    ("arguments", "before"),
    [
        (["run", "examples/split.json"], "Failed to create adapter: "),
        (["run", "examples/channel_shuffle.onnx"], "Failed to create adapter: "),
        (["devices"], ""),
    ],
)
def test_commands_that_need_a_device_say_what_is_missing(without, arguments, before):
    status, _, errors = without("-m", "vkops", *arguments)
    assert status == 1
    assert errors.startswith(f"{before}no Vulkan loader: ")
    assert errors.count("\n") == 1


@OWN_SITE
def test_descriptors_and_plans(without):
    assert without("-c", PROGRAM) == (0, "[1, 1] True\nno Vulkan loader\n", "")


# -- how Kompute and the native module are loaded --------------------------------------------------

# A process that has no Kompute but what is put into sys.modules or sys.meta_path before this.
REPORT = """
import vkops
from vkops.gpu.adapters.kompute import native_state
for use in (vkops.devices, vkops.Device):
    try:
        use()
        print("works")
    except vkops.DeviceError as error:
        print(error)
print(native_state())
"""
WRONG_WHEEL = (
    "devices need the wheel of Kompute (kp) that scripts/wheels builds on Linux ({}): pip install "
    "--force-reinstall --find-links DIST kp, where DIST is the folder of the wheel"
)
NO_LOADER = (
    f"no Vulkan loader: {LOADER} was not found; it is installed with a driver "
    f"({how_to_install('mesa-vulkan-drivers')})"
)


def said(before: str) -> list[str]:
    """Return what listing adapters, opening a device and the state of the native module say."""
    return python("-c", before + REPORT).splitlines()


@pytest.mark.parametrize(
    ("error", "message"),
    [
        ("ModuleNotFoundError('No module named x')", WRONG_WHEEL.format("No module named x")),
        ('ImportError("undefined symbol: x")', WRONG_WHEEL.format("undefined symbol: x")),
        (MISSING, NO_LOADER),
    ],
    ids=["other-kompute", "broken", "no-loader"],
)
def test_the_reason_why_it_cannot_be_imported(error, message):
    assert said(REFUSING.format(error)) == [message] * 3


def test_an_error_of_windows_that_does_not_name_the_loader():
    """It says that a library is missing, not which one."""
    error = "DLL load failed while importing vkops_native: Module not found."
    before = REFUSING.format(f"ImportError({error!r})") + (
        "from vkops.system import vulkan\nvulkan.LOADER = {!r}\n"
    )
    missing = NO_LOADER.replace(LOADER, "no-loader.dll")
    assert said(before.format("no-loader.dll")) == [missing] * 3
    present = {"win32": "kernel32.dll", "darwin": "libSystem.dylib"}.get(sys.platform, "libc.so.6")
    assert said(before.format(present)) == [WRONG_WHEEL.format(error)] * 3


def test_the_wheel_of_another_version():
    before = "import sys, types\nsys.modules['vkops_native'] = types.SimpleNamespace(interface=0)\n"
    assert (
        said(before)
        == [WRONG_WHEEL.format(f"vkops_native has interface 0, must be {INTERFACE}")] * 3
    )
