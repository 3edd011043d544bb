"""NVIDIA's driver in a container: what it lacks for Vulkan is named with its package."""

import logging
from types import SimpleNamespace

import pytest

from vkops.gpu.adapters import adapter, nvidia

CONTAINER = "in a container, NVIDIA_DRIVER_CAPABILITIES=all"
OF_DRIVER = f"libGLX_nvidia.so.0 (package libnvidia-gl of the driver's version; {CONTAINER})"
ICD = "usr/share/vulkan/icd.d/nvidia_icd.json"


def without(*libraries, by=None):
    """A loader of libraries, which lacks some; one that is there may be linked with one of them."""

    def load(library):
        lacking = library if library in libraries else (by or {}).get(library)
        if lacking:
            raise OSError(f"{lacking}: cannot open shared object file: No such file or directory")

    return load


@pytest.fixture
def root(tmp_path, monkeypatch):
    """A system with a GPU and all of the driver."""
    monkeypatch.delenv("NVIDIA_VISIBLE_DEVICES", raising=False)
    for name in ("dev/nvidiactl", ICD):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).touch()
    return tmp_path


def test_a_system_without_a_gpu_of_nvidia_lacks_nothing(tmp_path):
    def load(library):
        raise AssertionError

    assert nvidia.missing(tmp_path, load) == ""


@pytest.mark.parametrize(
    ("load", "said"),
    [
        (without(), ""),
        (without("libXext.so.6"), "libXext.so.6 (package libxext6)"),
        (
            without("libEGL.so.1", "libGLX_nvidia.so.0"),
            f"libEGL.so.1 (package libegl1), {OF_DRIVER}",
        ),
        (
            without("libXext.so.6", by={"libGLX_nvidia.so.0": "libXext.so.6"}),
            "libXext.so.6 (package libxext6)",
        ),
        (without(by={"libGLX_nvidia.so.0": "libnvidia-tls.so.580"}), "libnvidia-tls.so.580"),
    ],
)
def test_missing_libraries_have_their_packages(root, load, said):
    prefix = "NVIDIA's driver lacks libraries for Vulkan: " if said else ""
    assert nvidia.missing(root, load) == prefix + said


def test_a_missing_manifest_and_a_part_of_a_gpu(root, monkeypatch):
    (root / ICD).rename(root / "usr/share/vulkan/icd.d/lvp_icd.json")
    said = f"NVIDIA's driver has no manifest for Vulkan, nvidia_icd.json ({CONTAINER})"
    assert nvidia.missing(root, without()) == said
    of_mig = "NVIDIA's driver has no Vulkan for a part of a GPU (MIG)"
    monkeypatch.setenv("NVIDIA_VISIBLE_DEVICES", "MIG-1")
    assert nvidia.missing(root, without()) == of_mig
    monkeypatch.setenv("NVIDIA_VISIBLE_DEVICES", "all")
    assert nvidia.missing(root, without()) == said
    (root / "proc/driver/nvidia/capabilities/gpu0/mig/gi1").mkdir(parents=True)
    assert nvidia.missing(root, without()) == of_mig


def test_it_is_said_where_a_cpu_driver_is_used_instead(monkeypatch, caplog):
    monkeypatch.setattr(nvidia, "missing", lambda: "the reason")
    info = SimpleNamespace(type="CPU", label="'llvmpipe'", name="llvmpipe", vendor_id=0x10005)
    monkeypatch.setattr(adapter, "_infos", lambda mode: [info])
    for variable in ("VKOPS_EXPECT", "VKOPS_ADAPTER"):
        monkeypatch.delenv(variable, raising=False)
    adapter._warn_once.cache_clear()
    with caplog.at_level(logging.WARNING, "vkops"):
        adapter.choose(None)
    adapter._warn_once.cache_clear()
    assert caplog.messages[0].startswith(
        "no GPU was found: 'llvmpipe' is a CPU driver; the reason; to silence this message, pass"
    )
    monkeypatch.setattr(adapter.loader_files, "chosen_by", lambda: None)
    assert adapter._cure().startswith("the reason; a driver that needs no GPU: ")
