"""Settings of all tests."""

import ctypes
import gc
import os
import shutil
import signal
import sys
from collections import Counter
from pathlib import Path
from unittest import SkipTest

import pytest
from case_names import pytest_make_parametrize_id  # noqa: F401
from hypothesis import given, settings
from hypothesis import strategies as st
from messages import (  # noqa: F401
    message,
    pytest_addoption,
    pytest_configure,
    pytest_runtest_makereport,
    pytest_sessionfinish,
)

from vkops import lavapipe
from vkops.errors import one_line
from vkops.system import processes

# Tests find the driver and the programs of vkops_lavapipe as if they were those of the system, and
# the package itself only where a test makes one.
HIDDEN = Path(__file__).with_name("hidden")
WINDOWS = sys.platform == "win32"
WINE = WINDOWS and hasattr(ctypes.WinDLL("ntdll"), "wine_get_version")
if WINDOWS:
    os.environ.setdefault("COLUMNS", "81")  # rich leaves the last one of an old console free
if package := lavapipe.package():
    for variable, value in (
        ("PATH", package.programs()),
        ("VK_ADD_DRIVER_FILES", package.manifest()),
        ("PYTHONPATH", str(HIDDEN)),
    ):
        values = filter(None, [os.environ.get(variable), value])
        os.environ[variable] = os.pathsep.join(values)
    sys.modules["vkops_lavapipe"] = None
    lavapipe.package.cache_clear()


def no_symbolic_links(*_):
    """Skip a test in place of ``os.symlink`` of Wine, which makes none and says that it did.

    pytest itself, which also makes some, ignores exceptions, but not those of ``pytest.skip``.
    """
    raise SkipTest("not under Wine: symbolic links")


if WINE:
    os.symlink = no_symbolic_links

# How long an example takes depends on what else the machine does. The examples are the same in every
# run, except with ``--hypothesis-profile fresh``, as ``scripts/test --slow`` runs the tests. ``scripts/test
# --quick`` takes the profile "quick": an eighth of the examples, and of the cases of each test.
settings.register_profile("repeatable", deadline=None, derandomize=True)
settings.register_profile("fresh", deadline=None, derandomize=False)
settings.register_profile("quick", settings.get_profile("repeatable"), max_examples=12)
settings.load_profile("repeatable")

# Shells start background jobs with SIGINT ignored, and their children inherit that. Programs that tests
# interrupt would not notice.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Skip the tests of what the system does not have.

    That is what only POSIX has, on Windows and with ``tests/portable``; tests that use it only
    themselves run with the latter. With vkops_lavapipe and on Windows, it is also what that package
    does not contain. docs/systems.md lists what Wine lacks.
    """
    if config.getoption("--hypothesis-profile", None) == "quick":
        seen = Counter()
        for item in items:
            item.number = seen[item.nodeid.partition("[")[0]]
            seen[item.nodeid.partition("[")[0]] += 1
        config.hook.pytest_deselected(items=[item for item in items if item.number % 8])
        items[:] = [item for item in items if item.number % 8 == 0]
    rootless = str(HIDDEN) in os.environ.get("PYTHONPATH", "").split(os.pathsep)
    for item in items:
        for marker in item.iter_markers("system") if rootless or WINDOWS else ():
            (name,) = marker.args
            manifests = Path("/usr/share/vulkan").glob(f"*.d/{name}*.json")
            if WINDOWS or not (shutil.which(name) or any(manifests)):
                item.add_marker(pytest.mark.skip(reason=f"the system has no {name}"))
        if WINE and (marker := item.get_closest_marker("wine")):
            item.add_marker(pytest.mark.skip(reason=f"not under Wine: {marker.args[0]}"))
        if marker := item.get_closest_marker("posix"):
            module = os if marker.kwargs.get("tests_only") else processes.os
            if not hasattr(module, "fork"):
                item.add_marker(pytest.mark.skip(reason=f"needs POSIX: {marker.args[0]}"))


def pytest_terminal_summary(terminalreporter):
    """Add what was skipped, and why, to the file that ``scripts/test`` prints at its end."""
    skipped = terminalreporter.stats.get("skipped", [])
    reasons = Counter(report.longrepr[2].removeprefix("Skipped: ") for report in skipped)
    file = os.environ.get("VKOPS_TEST_SKIPPED")
    # pytest-xdist counts what its workers skipped in their parent, too.
    if file and not hasattr(terminalreporter.config, "workerinput"):
        with Path(file).open("a") as lines:
            lines.writelines(f"  {n} skipped: {one_line(why)}\n" for why, n in reasons.items())


@given(st.none())
def first_example(_):
    """What Hypothesis runs, which makes its own generator of random numbers before."""


def pytest_collection_finish():
    """Keep what is there now out of collections of garbage, which many tests ask for."""
    first_example()  # Hypothesis would not find what refers to the generator, in Python 3.14
    gc.collect()
    gc.freeze()
