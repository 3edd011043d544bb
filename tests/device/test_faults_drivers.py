"""Drivers that are missing, broken, or two: said in one line, and those that work go on."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

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


def manifest(folder, name, library):
    text = {"file_format_version": "1.0.0", "ICD": {"library_path": str(library)}}
    text["ICD"]["api_version"] = "1.3.0"
    path = folder / f"{name}.json"
    path.write_text(json.dumps(text))
    return path


def only(*paths):
    joined = os.pathsep.join(map(str, paths))
    return {**os.environ, "VK_DRIVER_FILES": joined, "VK_ICD_FILENAMES": joined}


def run(*command, env):
    return subprocess.run(
        [sys.executable, *command], env=env, capture_output=True, text=True, check=False, timeout=90
    )


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
    done = run("-c", OPEN, env=only(broken / f"{name}.json"))
    said, after = done.stdout.splitlines()
    assert (done.returncode, after) == (0, "8")
    assert re.fullmatch(  # which result it is depends on the loader's version
        r"no Vulkan driver that works was found: VkError[A-Z]\w+; `vkops devices` lists the drivers|"
        r"no Vulkan adapter: the drivers found no hardware to drive \(VkError[A-Z]\w+\); one that "
        r"needs none: pip install 'vkops\[lavapipe\]', or Debian and Ubuntu: apt install mesa-vulkan-drivers",
        said,
    )


def test_broken_ones_do_not_hide_those_that_work(broken, adapter):
    code = f"import vkops; print({adapter.name!r} in [device.name for device in vkops.devices()])"
    names = ("text", "absent", "other")
    done = run("-c", code, env=only(*(broken / f"{n}.json" for n in names), *manifests()))
    assert (done.returncode, done.stdout) == (0, "True\n")


def test_garbage_beside_a_driver_that_works(broken, adapter):
    """Loaders up to 1.3.239 give up on all; newer ones go on with the others."""
    done = run("-c", OPEN, env={**only(broken / "garbage.json", *manifests()), "VKOPS_EXPECT": ""})
    *said, after = done.stdout.splitlines()
    assert (done.returncode, after) == (0, "8")
    assert all(line.endswith("`vkops devices` lists the drivers") for line in said)


def test_a_driver_that_crashes_while_it_is_probed(broken, monkeypatch, adapter):
    works = next(driver for driver in drivers() if adapter.name in driver.adapters)
    monkeypatch.setenv("VK_DRIVER_FILES", f"{broken / 'crash.json'}:{works.path}")
    crash, good = drivers()
    assert crash.reason == "it ended its process (status -6)"
    assert good.adapters == works.adapters
    done = run("-m", "vkops", "devices", env=only(broken / "crash.json", works.path))
    assert done.returncode == 134
    assert "it ended its process" in " ".join(done.stdout.replace("│", " ").split())
    assert done.stderr.splitlines()[-1].startswith("The driver ended the process (SIGABRT): ")


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
    done = run("-c", code, env=only(*dict.fromkeys(installed)))
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) >= len({adapter.name, *(d.name for d in vkops.devices())})
