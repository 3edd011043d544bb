"""The adapters under test, as VKOPS_TEST_ADAPTERS names them."""

from __future__ import annotations

import os

import vkops


def wanted():
    """The adapters that are named (part of a name each, by commas), or all that are found."""
    names = [n.strip() for n in os.environ.get("VKOPS_TEST_ADAPTERS", "").split(",") if n.strip()]
    if names:
        return [vkops.gpu.adapter.select(name) for name in names]
    return vkops.devices()
