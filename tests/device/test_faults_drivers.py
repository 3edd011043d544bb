"""Drivers that are missing, broken, or two: said in one line, and those that work go on."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from adapters import manifest, own_loader
from processes import outcome

import vkops
from vkops.gpu.adapters.diagnosis import drivers
from vkops.gpu.adapters.loader_files import manifests

pytestmark = pytest.mark.system("cc")

SWIFTSHADER = [Path("/usr/lib/chromium/vk_swiftshader_icd.json")]
OPEN = (
    "import vkops\ntry:\n    vkops.Device()\nexcept vkops.DeviceError as error:\n    print(error)\n"
    "from vkops import dml\n"
    "desc = dml.BufferTensorDesc(dml.TensorDataType.FLOAT32, (2,))\n"
    "print(desc.total_tensor_size_in_bytes)\n"
)


def run(*command, drivers, **variables):
    """The outcome of a Python process in which the loader reads only these manifests."""
    joined = os.pathsep.join(map(str, drivers))
    return outcome(*command, VK_DRIVER_FILES=joined, VK_ICD_FILENAMES=joined, **variables)


@pytest.fixture
def broken(tmp_path):
    """Manifests that are of no use, and one whose driver ends the process."""
    (tmp_path / "garbage.json").write_bytes(b"\xff{{{garbage")
    (tmp_path / "text.so").write_text("no library")
    manifest(tmp_path, "text", tmp_path / "text.so")
    manifest(tmp_path, "absent", tmp_path / "absent.so")
    manifest(tmp_path, "other", "libc.so.6")
    source = tmp_path / "crash.c"
    source.write_text("#include <stdlib.h>\n__attribute__((constructor)) void f() { abort(); }\n")
    compiler = shutil.which("cc") or shutil.which("gcc")
    library = tmp_path / "crash.so"
    subprocess.run([compiler, "-shared", "-fPIC", source, "-o", library], check=True)
    manifest(tmp_path, "crash", library)
    return tmp_path


@pytest.mark.parametrize("name", ["garbage", "text", "absent", "other", "nothing"])
def test_a_driver_of_no_use(broken, name):
    status, printed, _ = run("-c", OPEN, drivers=[broken / f"{name}.json"])
    said, after = printed.splitlines()
    assert (status, after) == (0, "8")
    cure = "; VK_DRIVER_FILES names the drivers: without it, those that are installed are used"
    assert re.fullmatch(  # which result it is depends on the loader's version
        rf"no Vulkan driver that works was found: VkError[A-Z]\w+{cure}; `vkops devices` lists the drivers|"
        rf"no Vulkan adapter: the drivers found no hardware to drive \(VkError[A-Z]\w+\){cure}",
        said,
    )


@own_loader
def test_installed_drivers_of_no_use_have_a_cure(broken):
    """The user has not named these; also ``vkops devices`` says it."""
    (broken / "vulkan").mkdir()
    (broken / "icd.d").mkdir()
    shutil.copy(broken / "absent.json", broken / "icd.d")
    (broken / "icd.d").rename(broken / "vulkan/icd.d")
    empty = broken / "empty"
    places = ("XDG_CONFIG_HOME", "XDG_CONFIG_DIRS", "XDG_DATA_HOME", "HOME", "VK_ADD_DRIVER_FILES")
    variables = {**dict.fromkeys(places, str(empty)), "XDG_DATA_DIRS": str(broken)}
    hidden = "import sys; sys.modules['vkops_lavapipe'] = None\n"
    _, printed, _ = run("-c", hidden + OPEN, drivers=[], **variables)
    cure = "a driver that needs no GPU: pip install 'vkops[lavapipe]', or Debian and Ubuntu: apt install"
    assert cure in printed.splitlines()[0]
    _, _, errors = run(
        "-c",
        f"{hidden}from vkops.cli import main; sys.exit(main(['devices']))",
        drivers=[],
        **variables,
    )
    assert cure in errors


def test_broken_ones_do_not_hide_those_that_work(broken, adapter):
    code = f"import vkops; print({adapter.name!r} in [device.name for device in vkops.devices()])"
    bad = [broken / f"{name}.json" for name in ("text", "absent", "other")]
    assert run("-c", code, drivers=[*bad, *manifests()])[:2] == (0, "True\n")


def test_garbage_beside_a_driver_that_works(broken, adapter):
    """Loaders up to 1.3.239 give up on all; newer ones go on with the others."""
    drivers = [broken / "garbage.json", *manifests()]
    status, printed, _ = run("-c", OPEN, drivers=drivers, VKOPS_EXPECT="")
    *said, after = printed.splitlines()
    assert (status, after) == (0, "8")
    assert all(line.endswith("`vkops devices` lists the drivers") for line in said)


def test_a_driver_that_crashes_while_it_is_probed(broken, monkeypatch, adapter):
    works = next(driver for driver in drivers() if adapter.name in driver.adapters)
    monkeypatch.setenv("VK_DRIVER_FILES", f"{broken / 'crash.json'}:{works.path}")
    crash, good = drivers()
    assert crash.reason == "it ended its process (status -6)"
    assert good.adapters == works.adapters
    paths = [broken / "crash.json", works.path]
    status, printed, errors = run("-m", "vkops", "devices", drivers=paths)
    assert status == 134
    assert "it ended its process" in " ".join(printed.replace("│", " ").split())
    assert errors.splitlines()[-1].startswith("The driver ended the process (SIGABRT): ")


def test_all_drivers_by_turns_in_one_process(adapter):
    """All that are installed: with lavapipe and SwiftShader, two."""
    installed = [*manifests(), *filter(Path.exists, SWIFTSHADER)]
    code = (
        "import numpy as np, vkops\n"
        "opened = [vkops.Device(info.index, expect='') for info in vkops.devices()]\n"
        "assert len({device.name for device in opened}) == len(opened)\n"
        "for k in range(1, 20):\n"
        "    for device in opened:\n"
        "        parts = vkops.split(device.tensor(np.arange(50)), [k, 50 - k])\n"
        "        assert vkops.join(parts).numpy().tolist() == list(range(50))\n"
        "print(len(opened))\n"
    )
    status, printed, errors = run("-c", code, drivers=dict.fromkeys(installed))
    assert status == 0, errors
    assert int(printed) >= len({adapter.name, *(d.name for d in vkops.devices())})
