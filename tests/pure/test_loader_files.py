"""Files that the environment names and that are pipes or devices: refused, not waited for."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

import pytest

from vkops.errors import DeviceError
from vkops.gpu.adapters import loader_files
from vkops.gpu.adapters.diagnosis import drivers
from vkops.shaders import cache

LISTS = [
    "VK_DRIVER_FILES", "VK_ICD_FILENAMES", "VK_ADD_DRIVER_FILES", "VK_LAYER_PATH",
    "VK_ADD_LAYER_PATH", "VK_IMPLICIT_LAYER_PATH", "VK_ADD_IMPLICIT_LAYER_PATH",
]  # fmt: skip
SAID = "is a pipe or a device, must be a regular file: the Vulkan loader would wait for it"


@pytest.fixture(autouse=True)
def nothing_named(tmp_path, monkeypatch):
    for variable in (*LISTS, "VK_LAYER_SETTINGS_PATH"):
        monkeypatch.delenv(variable, raising=False)
    for variable in ("XDG_CONFIG_HOME", "XDG_CONFIG_DIRS", "XDG_DATA_HOME", "XDG_DATA_DIRS"):
        monkeypatch.setenv(variable, str(tmp_path / "none"))
    monkeypatch.chdir(tmp_path)


def refused(origin, path):
    with pytest.raises(DeviceError) as caught:
        loader_files.check()
    assert str(caught.value) == f"{origin}: {path} {SAID}"


def manifest(path, library, of="ICD"):
    path.write_text(json.dumps({of: {"library_path": str(library)}}))
    return path


@pytest.mark.posix("named pipes", tests_only=True)
@pytest.mark.parametrize("variable", LISTS)
def test_pipes_and_devices_that_a_variable_names(tmp_path, monkeypatch, variable):
    good = manifest(tmp_path / "good.json", "libvulkan_good.so")
    monkeypatch.setenv(variable, f"{good}:{tmp_path}/absent.json")
    loader_files.check()
    folder = tmp_path / "folder"
    folder.mkdir()
    os.mkfifo(folder / "pipe.json")
    (tmp_path / "device.json").symlink_to("/dev/zero")
    for named, path in (
        (folder / "pipe.json", folder / "pipe.json"),
        (folder, folder / "pipe.json"),
        (tmp_path / "device.json", tmp_path / "device.json"),
    ):
        monkeypatch.setenv(variable, f"{good}:{named}")
        refused(variable, path)


@pytest.mark.posix("named pipes", tests_only=True)
@pytest.mark.parametrize("of", ["ICD", "layer"])
def test_a_library_that_is_a_pipe(tmp_path, monkeypatch, of):
    os.mkfifo(tmp_path / "pipe.so")
    for library in ("./pipe.so", tmp_path / "pipe.so"):
        path = manifest(tmp_path / "m.json", library, of)
        monkeypatch.setenv("VK_DRIVER_FILES", str(path))
        refused(path, tmp_path / "pipe.so")


@pytest.mark.posix("named pipes", tests_only=True)
@pytest.mark.parametrize(
    "folder", ["icd.d", "explicit_layer.d", "implicit_layer.d", "loader_settings.d"]
)
def test_folders_of_the_search_path(tmp_path, monkeypatch, folder):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    (tmp_path / "vulkan" / folder).mkdir(parents=True)
    pipe = tmp_path / "vulkan" / folder / "x.json"
    os.mkfifo(pipe)
    refused(pipe.parent, pipe)


@pytest.mark.posix("named pipes", tests_only=True)
def test_settings_of_layers(tmp_path, monkeypatch):
    os.mkfifo(tmp_path / "vk_layer_settings.txt")
    refused("layer settings", "vk_layer_settings.txt")
    monkeypatch.setenv("VK_LAYER_SETTINGS_PATH", str(tmp_path / "vk_layer_settings.txt"))
    refused("VK_LAYER_SETTINGS_PATH", tmp_path / "vk_layer_settings.txt")


@pytest.mark.parametrize("text", [b"", b"{", b'{"ICD": 1}', b'{"ICD": []}', b"\xff", b"{}"])
def test_manifests_that_are_none_are_left_to_the_loader(tmp_path, monkeypatch, text):
    (tmp_path / "m.json").write_bytes(text)
    monkeypatch.setenv("VK_DRIVER_FILES", str(tmp_path / "m.json"))
    loader_files.check()


@pytest.mark.posix("named pipes", tests_only=True)
def test_the_command_line_says_so_at_once(tmp_path):
    os.mkfifo(tmp_path / "pipe.json")
    (tmp_path / "m.json").write_text('{"resources": {}, "dispatchables": {}, "commands": []}')
    environment = {**os.environ, "VK_DRIVER_FILES": str(tmp_path / "pipe.json")}
    done = subprocess.run(
        [sys.executable, "-m", "vkops", "run", "m.json"],
        env=environment, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    if "no Vulkan loader" in done.stderr:
        pytest.skip("no Vulkan loader")
    assert (done.returncode, done.stdout, done.stderr) == (
        1,
        "",
        f"Failed to create adapter: VK_DRIVER_FILES: {tmp_path}/pipe.json {SAID}\n",
    )


@pytest.mark.posix("named pipes", tests_only=True)
def test_a_driver_whose_manifest_is_a_pipe_is_diagnosed(tmp_path, monkeypatch):
    os.mkfifo(tmp_path / "pipe.json")
    monkeypatch.setenv("VK_DRIVER_FILES", str(tmp_path / "pipe.json"))
    (driver,) = drivers()
    assert driver.reason == "its manifest cannot be read: OSError(22, 'not a regular file')"


@pytest.mark.posix("named pipes", tests_only=True)
def test_other_files_that_are_pipes(tmp_path, monkeypatch):
    started = time.monotonic()
    monkeypatch.setenv("VKOPS_CACHE_DIR", str(tmp_path))
    (tmp_path / "spirv").mkdir()
    os.mkfifo(tmp_path / "spirv" / "key")
    assert cache.load("key") is None
    assert time.monotonic() - started < 5


@pytest.mark.parametrize("variable", LISTS)
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[1, 2]", "is not a JSON object"),
        ("3", "is not a JSON object"),
        ("[" * 100_000, "has too many lists in lists"),
        (" " * (1 << 20) + "{}", "is longer than 1048576 bytes"),
    ],
    ids=["list", "number", "nested", "long"],
)
def test_manifests_that_loaders_crash_on_or_read_without_end(
    tmp_path, monkeypatch, variable, text, said
):
    path = tmp_path / "m.json"
    path.write_text(text)
    monkeypatch.setenv(variable, str(path))
    with pytest.raises(DeviceError) as caught:
        loader_files.check()
    assert str(caught.value) == (
        f"{variable}: {path} {said}: the Vulkan loader could crash or wait"
    )


@pytest.mark.posix("named pipes", tests_only=True)
def test_a_driver_whose_library_is_a_pipe_is_not_tried(tmp_path, monkeypatch):
    os.mkfifo(tmp_path / "pipe.so")
    path = manifest(tmp_path / "m.json", "./pipe.so")
    monkeypatch.setenv("VK_DRIVER_FILES", str(path))
    before = time.monotonic()
    (driver,) = drivers()
    assert time.monotonic() - before < 5
    assert driver.reason == f"{path}: {tmp_path / 'pipe.so'} {SAID}"
