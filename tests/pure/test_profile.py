"""The times of a device on the clock of the host, with devices that count in another way."""

from types import SimpleNamespace

import pytest

from vkops.gpu.run.profile import _rows, _text
from vkops.gpu.run.profile_recorder import (
    ProfiledCall,
    ProfiledOperation,
    ProfileRecorder,
)

BITS = 12
MASK = (1 << BITS) - 1


def fake(calibrated, submissions, period):
    """A device whose timestamps have 12 bits, and start again at 0 after 4,095."""
    native = SimpleNamespace(
        calibrated=calibrated, timestamp_period=period, take_measured=lambda: submissions
    )
    info = SimpleNamespace(limits=SimpleNamespace(timestamp_valid_bits=BITS))
    recorder = ProfileRecorder(
        SimpleNamespace(info=info, native=native, module=SimpleNamespace(now=lambda: 0))
    )
    recorder._offset = 0
    return recorder, native


@pytest.mark.parametrize(
    ("first", "last", "start"),
    [
        ((4000, 10_000), ((4000 + 3000) & MASK, 10_000 + 3000 * 20), 12_000),
        ((4000, 10_000), ((4000 + 3000) & MASK, 10_000 + 3000 * 10), 11_000),  # its clock is slow
        (None, None, 11_500),  # the second submission began at once, the first one later
    ],
)
def test_ticks_that_start_again(first, last, start):
    ticks = [
        [(4000 + n) & MASK for n in range(100, 400, 100)],
        [(4000 + n) & MASK for n in (2000, 2050)],
    ]
    submissions = [
        (11_000, 1, [(1, "a", 8, ticks[0][0], ticks[0][1]), (1, "", 0, ticks[0][1], ticks[0][2])]),
        (49_500, 2, [(2, "b", 0, *ticks[1])]),
    ]
    recorder, native = fake(first, submissions, 20)
    recorder.calls += [ProfiledCall(f"call {n}", None, "", 0, 0, n) for n in (1, 2)]
    native.calibrated = last
    recorder.collect()
    rate = (last[1] - first[1]) / 3000 if first else 20
    one, two = recorder.calls
    found = [(each.name, each.start, each.end) for each in (*one.operations, *two.operations)]
    assert found == [
        ("a", start, start + 100 * rate),
        ("call 1", start + 100 * rate, start + 200 * rate),
        ("b", start + 1900 * rate, start + 1950 * rate),
    ]
    assert [(each.last, each.start) for each in recorder.submissions] == [(1, 11_000), (2, 49_500)]
    assert ("calibrated" in recorder.clocks) == bool(first)


def test_rows_are_ordered_by_their_times():
    """First by that of the device, then by that of the host; one that is not known counts as 0."""
    operation = ProfiledOperation("kernel", 8, 0, 500_000)
    entries = [
        ("none", "", [], 0),
        ("host", "", [], 500_000),
        ("device", "", [operation], 0),
    ]
    assert [row.name for row in _rows(entries)] == ["device", "host", "none"]


def test_numbers_of_a_table_are_on_the_right():
    text = _text("Calls", ["Name", "Line", "Host ms"], [["roll", "a.py:1", "0.1"]])
    assert text.splitlines()[-1].endswith(" " * 6 + "0.1")
