"""How Kompute and the native module are loaded; they are replaced here by what a test needs."""

import pytest
from processes import python

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
REFUSING = """
import sys
class Refusing:
    def find_spec(self, name, *_):
        if name in ("kp", "vkops_native"):
            raise {}
sys.meta_path.insert(0, Refusing())
"""
WRONG_WHEEL = (
    "devices need the wheel of Kompute (kp) that scripts/wheels builds on Linux ({}): pip install "
    "--force-reinstall --find-links DIST kp, where DIST is the folder of the wheel"
)
NO_LOADER = (
    "no Vulkan loader: libvulkan.so.1 was not found; it is installed with a driver "
    "(Debian and Ubuntu: apt install mesa-vulkan-drivers)"
)
NEEDS_GIL = (
    "Kompute needs Python's global interpreter lock (GIL), which this process runs without: "
    "use a build of Python that has it"
)


def said(before: str) -> list[str]:
    """Return what listing adapters, opening a device and the state of the native module say."""
    return python("-c", before + REPORT).splitlines()


def test_without_the_global_interpreter_lock_it_is_not_imported():
    """An import would switch the lock on, so neither module may be touched."""
    before = "import sys\nsys._is_gil_enabled = lambda: False\n" + REFUSING.format("AssertionError")
    assert said(before) == [NEEDS_GIL] * 3


@pytest.mark.parametrize(
    ("error", "message"),
    [
        ("ModuleNotFoundError('No module named x')", WRONG_WHEEL.format("No module named x")),
        ('ImportError("undefined symbol: x")', WRONG_WHEEL.format("undefined symbol: x")),
        ('ImportError("libvulkan.so.1: cannot open shared object file")', NO_LOADER),
    ],
    ids=["other-kompute", "broken", "no-loader"],
)
def test_the_reason_why_it_cannot_be_imported(error, message):
    assert said(REFUSING.format(error)) == [message] * 3


def test_the_wheel_of_another_version():
    before = "import sys, types\nsys.modules['vkops_native'] = types.SimpleNamespace(interface=0)\n"
    assert said(before) == [WRONG_WHEEL.format("vkops_native has interface 0, must be 15")] * 3
