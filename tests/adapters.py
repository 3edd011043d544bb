"""The adapters under test, as VKOPS_TEST_ADAPTERS names them."""

from __future__ import annotations

import gc
import os
import sys
from functools import lru_cache
from pathlib import Path

import vkops
from vkops.debug import layer

LAYERS = "VK_INSTANCE_LAYERS"
UNDER_LAYER = LAYERS in os.environ
"""Whether the tests run under the validation layer (scripts/test --validate)."""


def wanted():
    """The adapters that are named (part of a name each, by commas), or all that are found."""
    names = [n.strip() for n in os.environ.get("VKOPS_TEST_ADAPTERS", "").split(",") if n.strip()]
    if names:
        return [vkops.gpu.adapter.select(name) for name in names]
    return vkops.devices()


def memory_used(device):
    """Bytes of the device that are in use, without what waits for Python to collect it."""
    gc.collect()
    return device.memory_report().used


@lru_cache
def refused_by_layer(adapter):
    """Why the validation layer that is installed cannot look into an adapter's shaders, if so."""
    example = Path(__file__).parents[1] / "examples/split.json"
    command = [sys.executable, "-m", "vkops", "run", str(example), "-a", adapter]
    return layer.run(command, "validate").refusal
