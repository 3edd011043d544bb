"""Settings of all tests."""

from __future__ import annotations

import os
import signal

import pytest
from hypothesis import settings
from messages import (  # noqa: F401
    find_unused,
    message,
    pytest_addoption,
    pytest_configure,
    pytest_sessionfinish,
)

from vkops.system import processes

# How long an example takes depends on what else the machine does. The examples are the same in every
# run, except with ``--hypothesis-profile fresh``, as ``scripts/test --slow`` runs the tests.
settings.register_profile("repeatable", deadline=None, derandomize=True)
settings.register_profile("fresh", deadline=None, derandomize=False)
settings.load_profile("repeatable")

# Shells start background jobs with SIGINT ignored, and their children inherit that. Programs that tests
# interrupt would not notice.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Skip the tests of what only POSIX has, on Windows and with ``tests/portable``.

    Those that use it only themselves run with the latter.
    """
    find_unused(config, items)
    for item in items:
        if marker := item.get_closest_marker("posix"):
            module = os if marker.kwargs.get("tests_only") else processes.os
            if not hasattr(module, "fork"):
                item.add_marker(pytest.mark.skip(reason=f"needs POSIX: {marker.args[0]}"))
