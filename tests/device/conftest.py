"""The drivers under test.

VKOPS_TEST_ADAPTERS names them (substrings, separated by commas); one that is missing fails the run.
Without it, every adapter found is tested.
"""

from __future__ import annotations

import os

import pytest
from adapters import refused_by_layer, wanted

import vkops

if len(vkops.devices()) == 1:  # it is meant, and not a word of it is due on standard error
    os.environ.setdefault("VKOPS_EXPECT", vkops.devices()[0].name)


def pytest_generate_tests(metafunc):
    if "adapter" in metafunc.fixturenames:
        found = wanted()
        metafunc.parametrize(
            "adapter", found, ids=[f.name.split()[0] for f in found], scope="session"
        )


@pytest.fixture(scope="session")
def device(adapter):
    """The device under test."""
    with vkops.Device(adapter.index) as opened:
        yield opened


@pytest.fixture(scope="session")
def staged_device(adapter):
    """The same, moving data through staging memory as discrete GPUs must."""
    with vkops.Device(adapter.index, staged=True) as opened:
        yield opened


@pytest.fixture(scope="session")
def instrumented(adapter):
    """Skips what needs the validation layer to look into the driver's shaders, where it cannot."""
    if reason := refused_by_layer(adapter.name):
        pytest.skip(reason)
