"""The adapters under test, as VKOPS_TEST_ADAPTERS names them."""

import gc
import json
import os
import sys
from functools import lru_cache
from glob import glob
from pathlib import Path

import pytest

import vkops
from vkops.debug import layer
from vkops.gpu.adapters.adapter import LAYERS, VALIDATION_LAYER, under_validation
from vkops.system import processes

UNDER_LAYER = under_validation()
"""Whether the tests run under the validation layer (scripts/test --validate)."""
own_loader = pytest.mark.wine("variables of the Vulkan loader, which is not Wine's")


def without_validation():
    """The Vulkan layers of this process but for the validation layer, as the loader's variable."""
    names = os.environ.get(LAYERS, "").split(":")
    return ":".join(name for name in names if name != VALIDATION_LAYER)


MANIFESTS = {
    "SwiftShader": "/usr/lib/chromium/vk_swiftshader_icd.json",  # Debian's chromium-common
    "llvmpipe": "/usr/share/vulkan/icd.d/lvp_icd*.json",
}
FOUND_BY_LOADERS = ("/usr/share/vulkan/icd.d/*.json", "/etc/vulkan/icd.d/*.json")


def manifest(folder, name, library):
    """Write the manifest of a driver in a library, and return its path."""
    icd = {"library_path": str(library), "api_version": "1.3.0"}
    path = folder / f"{name}.json"
    path.write_text(json.dumps({"file_format_version": "1.0.0", "ICD": icd}))
    return path


def offer_also(name, monkeypatch):
    """Offer one more driver to child processes, or skip the test where it is not installed."""
    manifests = glob(MANIFESTS[name])
    if not manifests:
        pytest.skip(f"{name} is not installed: there is no {MANIFESTS[name]}")
    files = os.environ.get("VK_DRIVER_FILES")
    offered = files.split(":") if files else [file for p in FOUND_BY_LOADERS for file in glob(p)]
    for variable in ("VK_DRIVER_FILES", "VK_ICD_FILENAMES"):  # the latter before loader 1.3.207
        monkeypatch.setenv(variable, ":".join(dict.fromkeys([*offered, *manifests])))
    monkeypatch.delenv("VKOPS_EXPECT", raising=False)


def wanted():
    """The adapters that are named (part of a name each, by commas), or all that are found."""
    names = [n.strip() for n in os.environ.get("VKOPS_TEST_ADAPTERS", "").split(",") if n.strip()]
    if names:
        return [vkops.gpu.adapters.adapter.select(name) for name in names]
    return vkops.devices()


def require_sharing(device):
    """Skip a test where other processes cannot have memory of the device."""
    if not device.vulkan.native.shares_memory:
        pytest.skip("the driver cannot share memory")


def memory_used(device):
    """Bytes of the device that are in use, without what waits for Python to collect it."""
    gc.collect()
    return device.memory_report().used


@lru_cache
def refused_by_layer(adapter):
    """Why the validation layer that is installed cannot look into an adapter's shaders, if so."""
    if not hasattr(processes.os, "mkfifo"):
        return "needs POSIX: named pipes"
    example = Path(__file__).parents[1] / "examples/split.json"
    command = [sys.executable, "-m", "vkops", "run", str(example), "-a", adapter]
    return layer.run(command, "validate").refusal
