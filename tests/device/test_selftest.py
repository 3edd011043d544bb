"""``vkops devices --selftest``: drivers pass, and each thing that is wrong is noticed."""

import json
import os
import re
from threading import Event, Thread, current_thread
from weakref import WeakKeyDictionary

import pytest
from processes import outcome

import vkops
from vkops.cli import main
from vkops.debug import selftest as tests
from vkops.debug import selftest_processes as processes
from vkops.debug.selftest import UNTESTED, Check, check, names
from vkops.gpu.kernels.encoding import GPU
from vkops.shaders import VARIANTS

GPU_KERNELS = "copy_tile|copy_rows|copy_grid|copy_stream_shared"
CPU_KERNELS = "copy_block|copy_elements|copy_stream(_4)?$"
"""Patterns of kernels that only GPUs, or only CPUs, run."""


@pytest.mark.parametrize("tuning", [None, GPU], ids=["own tuning", "tuning of a GPU"])
def test_a_driver_passes_and_all_kernels_ran(adapter, monkeypatch, tuning):
    with vkops.Device(adapter.index) as device:
        queue = device.vulkan
        monkeypatch.setattr(device, "tuning", tuning or device.tuning)
        monkeypatch.setattr(queue, "_pipelines", {})
        monkeypatch.setattr(queue, "prepared", WeakKeyDictionary())
        before = device.tuning
        checks = [check(device, name) for name in names(device)]
        ran, features = {name for name, _ in queue._pipelines}, queue.features
        assert device.tuning is before
    assert [found for found in checks if found.passed is False] == []
    if adapter.type == "CPU" and adapter.max_bindings > 4:
        others = GPU_KERNELS if before.is_cpu else CPU_KERNELS
        assert ran >= {name for name in VARIANTS if not re.match(f"{others}|.*_wide", name)}
    needs = [probe.features for probe in tests._PROBES.values()]
    probed = frozenset().union(*(each for each in needs if features.issuperset(each)))
    unchecked = {found.name for found in checks if found.passed is None}
    assert unchecked == features - probed


@pytest.mark.parametrize("name", tests._PROBES)
def test_each_shader_notices_a_wrong_result(device, name):
    probe = tests._PROBES[name]
    wrong = tests._shader(device, probe._replace(expected=lambda x: probe.expected(x) + 1))
    assert wrong.passed is False
    if name not in ("scalarBlockLayout", "robustBufferAccess2"):  # which no module declares
        has_features = device.vulkan.features.issuperset(probe.features)
        assert has_features != ("[SH-02]" in wrong.reason)
    broken = tests._shader(device, probe._replace(body="x"))
    assert broken.passed is False
    assert broken.reason


@pytest.mark.parametrize("name", tests._MOVEMENTS)
def test_each_movement_notices_wrong_bytes(device, name, monkeypatch):
    move = tests._MOVEMENTS[name]

    def wrong(f, x, y, i):
        result = move(f, x, y, i)
        if f is vkops:
            return result
        changed = result.copy()
        changed.reshape(-1).view("u1")[-1] ^= 1
        return changed

    check = tests._movement(device, name, wrong, tests.SHADERS)
    assert check.passed is False
    assert check.reason.startswith("wrong bytes, for uint8 of shape ")


CRASHES = """
import os
for name in open(0):
    if name == "b\\n":
        os.abort()
    print('["%s", true]' % name.strip(), flush=True)
"""


def test_a_check_that_ends_its_process_fails(device, monkeypatch):
    monkeypatch.setattr(processes, "names", lambda device: ["a", "b", "c"])
    monkeypatch.setattr(processes, "_PROGRAM", CRASHES)
    how = "killed by SIGABRT" if os.name == "posix" else "exit status 3"
    crashed = Check("b", False, f"the process ended: {how}")
    assert list(processes.check_in_processes(device)) == [
        Check("a", True),
        crashed,
        Check("c", True),
    ]


def test_the_command(adapter):
    command = "-m", "vkops", "devices", "--selftest", "--adapter", adapter.name
    status, printed, _ = outcome(*command)
    assert status == 0, printed
    *lines, answer = printed.splitlines()
    assert answer == f"{adapter.name}, {adapter.driver}: yes"
    assert "transposes, by kernels: ok" in lines


def test_the_command_says_what_fails(adapter, monkeypatch, capsys):
    checks = [Check("a", True), Check("b", False, "why"), Check("c", None, "no compiler")]
    checks += [Check(name, None, UNTESTED) for name in "de"]
    monkeypatch.setattr(processes, "check_in_processes", lambda device: iter(checks))
    arguments = ["devices", "--selftest", "--adapter", adapter.name]
    assert main(arguments) == 1
    answer = f"{adapter.name}, {adapter.driver}: no, these fail: b"
    lines = ["a: ok", "b: FAILED: why", "c: not checked: no compiler"]
    lines += ["features without a test, which --json names: 2", answer]
    assert capsys.readouterr().out.splitlines() == lines
    assert main([*arguments, "--json"]) == 1
    printed = json.loads(capsys.readouterr().out)
    assert printed["passed"] is False
    assert printed["checks"] == [one._asdict() for one in checks]


def test_checks_of_two_threads_each_have_their_own_copies(device, monkeypatch):
    """The check that began first ends first; the device is as it was."""
    begun, has_ended, seen, before = [Event(), Event()], Event(), [], device.tuning
    names_ = [f"transposes, by {how}" for how in tests._RULES]
    threads = [Thread(target=check, args=(device, name)) for name in names_]

    def wrong(device, _):
        number = threads.index(current_thread())
        begun[number].set()
        (has_ended if number else begun[1]).wait(60)
        seen.append(device.tuning.copies)
        return ""

    monkeypatch.setattr(tests, "_wrong", wrong)
    threads[0].start()
    assert begun[0].wait(60)
    threads[1].start()
    threads[0].join()
    has_ended.set()
    threads[1].join()
    assert seen == [*tests._RULES.values()]
    assert device.tuning is before
