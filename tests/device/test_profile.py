"""Profiles: what they count, their timeline, threads, and devices with few abilities."""

from __future__ import annotations

import json
import threading
from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from processes import call

import vkops
from vkops.cli import main
from vkops.errors import DeviceError
from vkops.gpu.run.profile_recorder import ProfileRecorder, recorders
from vkops.gpu.run.vulkan_device import VulkanDevice

SCALE = """#version 450
layout(local_size_x = 64) in;
layout(std430, binding = 0) readonly buffer X { float x[]; };
layout(std430, binding = 1) buffer Y { float y[]; };
void main() { uint i = gl_GlobalInvocationID.x; if (i < y.length()) y[i] += 2 * x[i]; }"""
N = 640
EXAMPLE = Path(__file__).parents[2] / "examples" / "split.json"


@pytest.fixture
def scale(device):
    return device.compile_shader(SCALE, name="scale")


def names(rows, is_mapped):
    """Those of all rows but waits and, where the host does not see the memory, transfers."""
    left_out = ["wait"] if is_mapped else ["wait", "a transfer"]
    return {(row.name, row.count) for row in rows if row.name not in left_out}


def test_calls_and_kernels(device, scale, is_time):
    with vkops.profile():
        pass  # a measurement that nobody ended may have been freed since
    measures = device.vulkan.native.measures
    x, y = (device.tensor(np.arange(N, dtype=np.float32)) for _ in range(2))
    with vkops.profile() as profile:
        for _ in range(100):  # several are in one submission, and have several pools of timestamps
            scale(x, y, threads=N)
        with vkops.profile() as inner:
            z = vkops.flip(y).copy()
        with device.record() as program:
            scale(x, z, threads=N)
            vkops.flip(z).copy()
        program.run(2)
        y.numpy()
    scale(x, y, threads=N)
    measured = device.info.limits.timestamp_valid_bits > 0
    assert device.vulkan.native.measures == measures
    assert names(profile.by_call(), device.mapped) == {
        ("scale", 100),
        ("copy_view", 1),
        ("a recording", 2),
    }
    assert names(inner.by_call(), device.mapped) == {("copy_view", 1)}
    kernels = {row.name: row for row in profile.by_kernel()}
    if measured:
        assert kernels["scale"].count == 102
        assert kernels["scale"].nbytes == 102 * 8 * N
        left_out = ["scale"] if device.mapped else ["scale", "copy"]  # the latter are transfers
        others = [row for name, row in kernels.items() if name not in left_out]
        assert sum(row.nbytes for row in others) == 3 * 8 * N
        assert all(row.gigabytes_per_second > 0 for row in kernels.values())
    (row,) = (row for row in profile.by_call() if row.name == "scale")
    assert row.place.startswith(f"{__file__}:")
    assert is_time(row.device_ms)
    assert 0 < row.host_ms < profile.seconds * 1e3
    assert any(call.name == "wait" for call in profile.calls)
    text, page = str(profile), profile._repr_html_()
    for word in (
        "scale",
        "copy_view",
        "a recording",
        "Host ms",
        f"test_profile.py:{row.place.split(':')[-1]}",
    ):
        assert word in text
        assert word in page
    summary, *tables = text.split("\n\n")
    assert f"the host waited {waited(profile):.3f} ms" in summary
    titles = ["Kernels and copies", "Calls"] if measured else ["Calls"]
    assert [table.splitlines()[0] for table in tables] == titles
    assert "Device ms" in tables[-1] or not measured
    assert all(line == line.rstrip() for line in text.splitlines())


def waited(profile):
    """The milliseconds of all rows of waits."""
    return sum(row.host_ms for row in profile.by_call() if row.name == "wait")


def test_names_of_functions(device):
    x = device.tensor(np.arange(12.0).reshape(3, 4))
    calls = {
        "copy_view": lambda: x.T.copy(),
        "take_indices": lambda: x[[1, 2]],
        "put_indices": lambda: x.__setitem__([1, 2], x[:2]),
        "take_along": lambda: vkops.take_along_axis(x, np.zeros((3, 1), int), axis=1),
        "assignment": lambda: x.__setitem__(0, x[1]),
        "join_arrays": lambda: vkops.concat([x, x]),
        "fill": lambda: vkops.full((4, 4), 3, device=device),
        "tile": lambda: vkops.tile(x, 2),
    }
    for name, run in calls.items():
        with vkops.profile() as profile:
            run()
        assert name in [row.name for row in profile.by_call()]


def test_shaders_of_one_text_keep_their_names(device):
    """However they are called, although they share a pipeline."""
    one, two = (device.compile_shader(SCALE, name=name) for name in ("one", "two"))
    x, y = (device.tensor(np.arange(N, dtype=np.float32)) for _ in range(2))
    bound = one.bound({"X": x, "Y": y}, threads=N)
    with device.record() as program:
        two(x, y, threads=N)
    with vkops.profile() as profile:
        one(x, y, threads=N)
        two(x, y, threads=N)
        one.dispatch({"X": x, "Y": y}, threads=N)
        bound.dispatch()
        program.run()
        one(x[::-1], y, threads=N)  # of a copy
    calls = Counter(call.name for call in profile.calls)
    assert (calls["one"], calls["two"], calls["a recording"]) == (4, 1, 1)
    kernels = {row.name: row.count for row in profile.by_kernel()}
    if device.info.limits.timestamp_valid_bits:
        assert (kernels["one"], kernels["two"]) == (4, 2)


def test_lines_of_calls_in_a_capture(device, scale, tmp_path):
    x, y = (device.tensor(np.arange(N, dtype=np.float32)) for _ in range(2))
    with vkops.profile() as profile, vkops.capture_call(tmp_path / "case.zip"):
        vkops.flip(x).copy()
        scale(x, y, threads=N)
    places = {row.place.rpartition(":")[0] for row in profile.by_call()}
    assert places == {__file__}


def timeline(profile, path):
    """Save and check a timeline; return the events with their rows by name."""
    profile.save(path)
    events = json.loads(path.read_text())["traceEvents"]
    rows = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
    others = [event for event in events if event["ph"] != "M"]
    assert all((event["pid"], event["tid"]) in rows for event in others)
    for first, last in ("be", "sf"):
        begun, ended = ([e for e in others if e["ph"] == phase] for phase in (first, last))
        ends = [Counter(map(identity, each)) for each in (begun, ended)]
        assert ends[0] == ends[1]
        assert set(ends[0].values()) <= {1}
    check_nesting([event for event in others if event["ph"] == "X"])
    return [(rows[event["pid"], event["tid"]], event) for event in others]


def identity(event):
    """Return what only the two events of a pair have in common."""
    local = event.get("id2", {}).get("local")
    return event["name"], event.get("id") or (event["pid"], event["cat"], local)


def check_nesting(events):
    """Check that events of a row follow one another or are in one another: Perfetto drops others."""
    rows = {}
    for event in events:
        start, duration = (round(event[key] * 1e3) for key in ("ts", "dur"))
        assert start >= 0
        assert duration >= 0
        rows.setdefault((event["pid"], event["tid"]), []).append((start, -duration))
    for row in rows.values():
        ends = []
        for start, duration in sorted(row):
            while ends and ends[-1] <= start:
                ends.pop()
            assert not ends or start - duration <= ends[-1]
            ends.append(start - duration)


def check_order(events, device):
    """Check that operations come after their calls, one after the other, in their submission."""
    on_device = [event for row, event in events if row == "operations" and event["ph"] == "X"]
    assert bool(on_device) == (device.info.limits.timestamp_valid_bits > 0)
    for before, after in pairwise(on_device):
        assert round(1e3 * (before["ts"] + before["dur"])) <= round(1e3 * after["ts"])
    arrows = {e["id"]: e["ts"] for _, e in events if e["ph"] == "f"}
    # A clock that is calibrated may be some microseconds wrong.
    assert all(arrows[e["id"]] >= e["ts"] - 100 for _, e in events if e["ph"] == "s")


@pytest.mark.parametrize("calibrated", [True, False])
def test_timelines(device, scale, tmp_path, calibrated):
    x, y = (device.tensor(np.arange(N, dtype=np.float32)) for _ in range(2))
    with vkops.profile() as profile:
        if not calibrated:
            for recorder in recorders:
                recorder._first = None
        scale(x, y, threads=N)
        y.numpy()
        thread = threading.Thread(target=lambda: vkops.flip(x).copy().numpy(), name="second")
        thread.start()
        thread.join()
    events = timeline(profile, tmp_path / "folder" / "trace.json")
    assert {row for row, _ in events} >= {"MainThread", "second", "submissions"}
    check_order(events, device)
    (call,) = (event for row, event in events if row == "MainThread" and event["name"] == "scale")
    assert call["args"]["text"] == "scale(x, y, threads=N)"
    assert call["args"]["tensors"] == ["x: float32 (640,)", "y: float32 (640,)"]
    if not calibrated and device.info.limits.timestamp_valid_bits:
        clocks = clocks_in(tmp_path / "folder" / "trace.json")
        assert any(each.startswith("shifted so that") for each in clocks.values())


def clocks_in(path):
    """Return how the clocks of each device in a timeline were brought together."""
    return json.loads(path.read_text())["otherData"]["clocks"]


def test_a_timeline_has_a_name_for_each_device_of_an_adapter(adapter, tmp_path, monkeypatch):
    devices = [vkops.Device(adapter.index)]
    monkeypatch.setenv("VKOPS_LIMITS", "minimum")  # other limits are another device
    devices += [vkops.Device(adapter.index)]
    with vkops.profile() as profile:
        vkops.roll(devices[0].tensor(np.arange(6)), 1).numpy()
    timeline(profile, tmp_path / "trace.json")
    own = {n: c for n, c in clocks_in(tmp_path / "trace.json").items() if devices[0].name in n}
    assert len(own) >= len(devices)
    if devices[0].info.limits.timestamp_valid_bits:
        assert "the device has no timestamps" in own.values()  # which is what the minimum says
        assert any("so that" in each or "calibrated" in each for each in own.values())


def test_devices_that_open_and_close_in_the_block(adapter):
    with vkops.profile() as profile:
        with vkops.Device(adapter.index) as own:
            is_mapped = own.mapped
            vkops.roll(own.tensor(np.arange(6)), 1).numpy()
        del own
    assert names(profile.by_call(), is_mapped) == {("roll", 1)}


def test_profiles_that_are_used_wrongly(device):
    profile = vkops.profile()
    for access in (lambda: profile.calls, profile.by_call, lambda: profile.save("unused")):
        with pytest.raises(DeviceError, match="profile: its block has not ended yet"):
            access()
    assert "has not ended" in str(profile)
    assert "has not ended" in profile._repr_html_()
    with pytest.raises(ZeroDivisionError), profile:
        vkops.flip(device.tensor(np.arange(4))).copy().item(0) / 0
    assert len(profile.by_call()) >= 1
    assert device.vulkan.submission_observers == []
    with (
        pytest.raises(DeviceError, match="a profile measures one block, make another one"),
        profile,
    ):
        pass


def test_the_command_line(adapter, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("VKOPS_ADAPTER", str(adapter.index))
    path = tmp_path / "trace.json"
    assert main(["run", str(EXAMPLE), "--profile", "--timeline", str(path)]) == 0
    shown = capsys.readouterr().out
    assert "SPLIT" in shown
    assert "dispatch 'split'" in shown
    (event, *_) = (e for e in json.loads(path.read_text())["traceEvents"] if e["name"] == "SPLIT")
    assert event["args"]["tensors"][0] == "input_tensor: Table"


LOST = """
with vkops.profile() as profile:
    y = vkops.roll(device.tensor([1, 2, 3]), 1)
    y.numpy()
    faulty.lose(b"vkQueueSubmit")
    print(call(lambda: vkops.roll(y, 1).numpy()))
print([row.name for row in profile.by_call()])
"""


@pytest.mark.system("cc")
def test_a_device_that_is_lost_in_the_block(adapter, faulty):
    first, names = faulty(LOST, adapter.index, "direct").splitlines()
    assert "DeviceError" in first
    assert "roll" in names


def test_a_profile_may_end_in_another_thread_while_a_call_is_submitted(device):
    def submit(_):
        recorder.stop()
        return 1

    with vkops.profile() as profile:
        (recorder,) = (each for each in recorders if each.vulkan is device.vulkan)
        assert device.vulkan.start(submit, "a call") == 1
        recorder.start()
    assert [call.name for call in profile.calls] == ["a call"]


def ends_while_a_device_is_opened(index):
    profile, make = vkops.profile(), ProfileRecorder.__init__
    ending = threading.Thread(target=profile.__exit__)

    def make_later(*arguments):
        ending.start()
        ending.join(1)
        make(*arguments)

    ProfileRecorder.__init__ = make_later
    profile.__enter__()
    device = vkops.Device(index)
    ending.join()
    assert device.vulkan.submission_observers == []
    assert recorders == []


def begins_while_a_device_is_opened(index):
    profile, make = vkops.profile(), VulkanDevice.__init__

    def make_earlier(*arguments):
        make(*arguments)
        profile.__enter__()

    VulkanDevice.__init__ = make_earlier
    device = vkops.Device(index)
    vkops.flip(device.tensor(np.arange(8))).copy()
    profile.__exit__()
    assert "copy_view" in [row.name for row in profile.by_call()]
    assert device.vulkan.submission_observers == []


@pytest.mark.parametrize("case", [begins_while_a_device_is_opened, ends_while_a_device_is_opened])
def test_a_profile_and_a_device_of_another_thread(adapter, case):
    call(case, adapter.index)


def test_profiles_that_end_at_once(device, monkeypatch, scale):
    if not device.info.limits.timestamp_valid_bits:
        pytest.skip("the device has no timestamps")
    is_paused, is_over, times = threading.Event(), threading.Event(), ProfileRecorder._times

    def paused_times(recorder):
        if not is_paused.is_set():
            is_paused.set()
            is_over.wait(1)
        yield from times(recorder)

    monkeypatch.setattr(ProfileRecorder, "_times", paused_times)
    x, y = (device.tensor(np.arange(N, dtype=np.float32)) for _ in range(2))
    profiles = [vkops.profile().__enter__() for _ in range(2)]
    scale(x, y, threads=N)
    ending = threading.Thread(target=profiles[0].__exit__)
    ending.start()
    assert is_paused.wait(60)
    profiles[1].__exit__()
    is_over.set()
    ending.join()
    for profile in profiles:
        assert [row.count for row in profile.by_kernel() if row.name == "scale"] == [1]
    assert device.vulkan.submission_observers == []
