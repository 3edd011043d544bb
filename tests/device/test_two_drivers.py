"""Twenty thousand random operators on two drivers at once, byte by byte.

Each adapter is compared with SwiftShader, and SwiftShader, by other operators, with lavapipe.
"""

from __future__ import annotations

import json
import os
from glob import glob

import pytest
import two_drivers
from processes import python

OPERATORS = 20_000
MANIFESTS = {
    "SwiftShader": "/usr/lib/chromium/vk_swiftshader_icd.json",  # Debian's chromium-common
    "llvmpipe": "/usr/share/vulkan/icd.d/lvp_icd*.json",
}
FOUND_BY_LOADERS = ("/usr/share/vulkan/icd.d/*.json", "/etc/vulkan/icd.d/*.json")


@pytest.mark.slow
def test_two_drivers_agree(adapter, monkeypatch):
    against, first = "SwiftShader", 0
    if against in adapter.name:
        against, first = "llvmpipe", OPERATORS
    manifests = glob(MANIFESTS[against])
    if not manifests:
        pytest.skip(f"{against} is not installed: there is no {MANIFESTS[against]}")
    given = os.environ.get("VK_DRIVER_FILES")
    offered = given.split(":") if given else [file for p in FOUND_BY_LOADERS for file in glob(p)]
    for variable in ("VK_DRIVER_FILES", "VK_ICD_FILENAMES"):  # the latter before loader 1.3.207
        monkeypatch.setenv(variable, ":".join(dict.fromkeys([*offered, *manifests])))
    monkeypatch.delenv("VKOPS_EXPECT", raising=False)
    said = json.loads(python(two_drivers.__file__, adapter.name, against, first, OPERATORS))
    assert said["operators"] == OPERATORS
    assert said["adapters"][0] == adapter.name
    assert against in said["adapters"][1]
