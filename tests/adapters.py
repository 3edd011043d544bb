"""The adapters under test, as VKOPS_TEST_ADAPTERS names them."""

from __future__ import annotations

import gc
import os

import vkops


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
