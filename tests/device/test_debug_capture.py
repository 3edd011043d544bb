"""RenderDoc captures: their content, and the errors when there can be none.

Each has a process of its own, as RenderDoc must be loaded before Vulkan.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import shutil
import subprocess
from ctypes.util import find_library
from pathlib import Path
from zipfile import ZipFile

import numpy as np
import pytest
from processes import outcome

from vkops.cli import main
from vkops.debug.capture import submissions
from vkops.errors import DeviceError
from vkops.gpu.copies.rule import COPY
from vkops.system import vulkan

needs_renderdoc = pytest.mark.skipif(
    not (find_library("renderdoc") and shutil.which("renderdoccmd")),
    reason="RenderDoc is not installed (Debian 13 has no package of it)",
)

PRELUDE = """
import json, os, sys
from pathlib import Path
import numpy as np
import vkops
from vkops.debug import capture
index, output, data = int(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]

def groups(device):
    plans = {program.name: program.encoded(device) for program in device.vulkan.prepared}
    tables = [table for name in ("split", "join_arrays") for plan in plans[name] for table in plan._tables]
    return [own.groups for table in tables for own in table.in_one_heap]
"""

SPLIT_AND_JOIN = """
with capture.capturing(output) as around, vkops.Device(index, staged=STAGED) as device:
    x = device.tensor(np.load(data))
    vkops.split(x, 2, axis=1)  # is in no capture, though what it recorded is used again
    with around("SPLIT"):
        parts = vkops.split(x, 2, axis=1)
    with around('JOIN "both"'):
        y = vkops.join(parts[::-1], 0)
print(json.dumps(groups(device)))
assert np.array_equal(y.numpy(), np.concatenate(np.split(np.load(data), 2, 1)[::-1]))
assert not {"RENDERDOC_TEMP", "ENABLE_VULKAN_RENDERDOC_CAPTURE"} & set(os.environ)
"""


@pytest.fixture
def python(adapter, tmp_path):
    """Run code after PRELUDE; (standard output, the last line of standard error)."""
    data = tmp_path / "data.npy"
    np.save(data, np.random.default_rng(3).integers(0, 256, (3000, 14), np.uint8))
    temporary = tmp_path / "temporary"
    temporary.mkdir()

    def run(code, output):
        program = "-c", PRELUDE + code, adapter.index, output, data
        status, said, errors = outcome(*program, TMPDIR=str(temporary))
        assert status in (0, 1), errors
        assert list(temporary.iterdir()) == []
        return said.strip(), errors.strip().split("\n")[-1]

    return run


NO_GRAPHICS = "ErrorInitializationFailed: RenderDoc captures only devices with a queue for graphics"


@pytest.fixture
def graphics(adapter):
    """Whether the device has a queue for graphics."""
    loader = ctypes.CDLL(vulkan.LOADER)
    instance, count = ctypes.c_void_p(), ctypes.c_uint32(adapter.index + 1)
    create_info = (ctypes.c_uint64 * 8)(1)  # VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO, then zeros
    assert loader.vkCreateInstance(create_info, None, ctypes.byref(instance)) == 0
    devices = (ctypes.c_void_p * count.value)()
    status = loader.vkEnumeratePhysicalDevices(instance, ctypes.byref(count), devices)
    assert status in (0, 5)  # VK_SUCCESS, or VK_INCOMPLETE where there are more devices
    families = (ctypes.c_uint32 * 6 * 16)()  # their first word is queueFlags
    physical, count = ctypes.c_void_p(devices[adapter.index]), ctypes.c_uint32(len(families))
    loader.vkGetPhysicalDeviceQueueFamilyProperties(physical, ctypes.byref(count), families)
    loader.vkDestroyInstance(instance, None)
    return any(family[0] & 1 for family in families)  # VK_QUEUE_GRAPHICS_BIT


def renderdoccmd(*arguments):
    """Run it in the current folder, and leave nothing elsewhere."""
    environment = {**os.environ, "RENDERDOC_TEMP": os.getcwd()}
    command = ["renderdoccmd", *map(str, arguments)]
    subprocess.run(command, check=True, capture_output=True, env=environment)


def test_a_python_program_is_refused(capsys, tmp_path):
    assert main(["debug", "capture", "x.py", "-o", str(tmp_path / "x.rdc")]) == 1
    assert capsys.readouterr().err.startswith("x.py: must be a model or a shader")


@needs_renderdoc
@pytest.mark.parametrize("staged", [False, True])
def test_a_split_and_a_join(python, tmp_path, monkeypatch, adapter, graphics, staged):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(COPY, "shader")
    output = tmp_path / "made" / "here" / "two.rdc"
    said, error = python(SPLIT_AND_JOIN.replace("STAGED", str(staged)), output)
    if not graphics:
        assert NO_GRAPHICS in error
        assert list(output.parent.iterdir()) == []
        return
    assert said, error
    ran = [tuple(counts) for counts in json.loads(said)]
    assert list(output.parent.iterdir()) == [output]

    # The dispatches in the capture.
    first, second, *others = submissions(output)
    commands = [f"vkCmdDispatch{groups}" for groups in ran]
    assert [first.commands, second.commands] == [(commands[0],), (commands[1],)]
    assert first.time < second.time
    assert not others
    renderdoccmd("convert", "-f", output, "-c", "zip.xml", "-o", "two.zip.xml")
    xml = Path("two.zip.xml").read_text()
    assert xml.count('name="vkCmdDispatch"') == len(ran)

    # The names of commands and objects.
    kernels = re.findall(r'name="pLabelName"[^>]*>(copy_\w+)<', xml)
    assert len(kernels) == len(ran)
    names = set(re.findall(r'name="ObjectName"[^>]*>([^<]+)<', xml))
    assert names >= {"vkops", *kernels, "device memory" if staged else "mapped memory"}

    # The content of memory: the input is in the memory that was captured.
    data = np.load(tmp_path / "data.npy").tobytes()
    with ZipFile("two.zip") as blobs:
        assert any(data in blobs.read(name) for name in blobs.namelist())

    # The comments that RenderDoc shows.
    renderdoccmd("extract", "--section", "renderdoc/ui/notes", "--file", "notes.json", output)
    assert json.loads(Path("notes.json").read_text())["comments"].split("\n") == [
        f"vkops on {adapter.name}",
        "1. SPLIT",
        f"   vkQueueSubmit 1: {commands[0]}",
        '2. JOIN "both"',
        f"   vkQueueSubmit 2: {commands[1]}",
    ]


@pytest.mark.usefixtures("shared_memory")
@needs_renderdoc
def test_copies_with_regions_are_named(python, tmp_path, monkeypatch):
    monkeypatch.setenv(COPY, "regions")
    output = tmp_path / "copies.rdc"
    python(
        ON_A_DEVICE
        + """x = device.tensor(np.load(data))
    with around("SPLIT"):
        vkops.split(x, 3, axis=0)
print("done")""",
        output,
    )
    assert [str(submission) for submission in submissions(output)] == [
        "vkCmdCopyBuffer (3 regions)"
    ]


ON_A_DEVICE = "with capture.capturing(output) as around, vkops.Device(index) as device:\n    "
NO_DEVICE = """
with capture.capturing(output) as around, around("SPLIT"):
    pass
"""
BROKEN = """
with capture.capturing(output) as around, vkops.Device(index) as device:
    with around("SPLIT"):
        vkops.split(device.tensor(np.load(data)), 2)
    raise KeyError("mine")
"""
NO_ROOM = """
import resource
with capture.capturing(output) as around, vkops.Device(index) as device:
    with around("SPLIT"):
        vkops.split(device.tensor(np.load(data)), 2)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))
"""


@needs_renderdoc
@pytest.mark.parametrize(
    ("code", "message"),
    [
        (ON_A_DEVICE + "pass", "capture: nothing was dispatched"),
        (NO_DEVICE, "capture: exactly one device must be opened in the block, got 0"),
        (BROKEN, "KeyError: 'mine'"),
        (NO_ROOM, "capture: RenderDoc could not write the file: is there room in "),
    ],
    ids=["nothing", "no device", "broken", "no room"],
)
def test_a_failed_capture_keeps_the_previous_file(python, tmp_path, graphics, code, message):
    output = tmp_path / "folder" / "kept.rdc"
    output.parent.mkdir()
    output.write_text("before")
    said, error = python(code, output)
    assert (message if graphics or code == NO_DEVICE else NO_GRAPHICS) in error
    assert said == ""
    assert list(output.parent.iterdir()) == [output]
    assert output.read_text() == "before"


MISSING = "from ctypes import CDLL; capture.CDLL = lambda _: CDLL('libabsent.so')\n"
TOO_OLD = """
class Old:
    def RENDERDOC_GetAPI(self, *_):
        return 0
capture.CDLL = lambda _: Old()
"""
SEEN = """
os.environ.update(ENABLE_VULKAN_RENDERDOC_CAPTURE="1", RENDERDOC_TEMP=str(output.parent))
vkops.devices()
"""
IN_USE = "capture: RenderDoc sees only devices opened after it was loaded, and Vulkan is in use"


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (MISSING, "capture: RenderDoc is not installed: librenderdoc.so was not found (Debian 12"),
        (TOO_OLD, "capture: this RenderDoc is too old: it has no API of version 1.2"),
        ("opened = vkops.Device(index)\n", IN_USE),
        (SEEN, IN_USE),
        ("output.mkdir()\n", "IsADirectoryError: [Errno 21] Is a directory: "),
    ],
    ids=["missing", "too old", "opened before", "layer before", "folder"],
)
def test_a_capture_that_cannot_begin(python, tmp_path, code, message):
    said, error = python(code + ON_A_DEVICE + "print('began')", tmp_path / "none.rdc")
    assert message in error
    assert said == ""
    assert not (tmp_path / "none.rdc").is_file()


@needs_renderdoc
def test_reading_another_file(tmp_path):
    (tmp_path / "no.rdc").write_text("no")
    with pytest.raises(DeviceError, match=r"no\.rdc: renderdoccmd cannot read it: Couldn't load"):
        submissions(tmp_path / "no.rdc")


def test_reading_without_renderdoccmd(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(DeviceError, match="renderdoccmd, which reads captures, is not on PATH"):
        submissions(tmp_path / "no.rdc")
