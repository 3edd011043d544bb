"""Functions whose copies depend on values or on the number of axes: few regions, whatever these are."""

import numpy as np
import pytest

import vkops
from vkops.tensors import array_plan
from vkops.tensors.rearrangement import MAX_REPEATED_PIECES

MANY = 10**6
ROW = np.arange(MANY, dtype=np.int32)
BITS = np.arange(1 << 20, dtype=np.uint8).reshape((2,) * 20)
COUNTS = ROW % 3

CALLS = {
    "delete": lambda m, x: m.delete(x(ROW), ROW[::2]),
    "insert": lambda m, x: m.insert(x(ROW), ROW[::2], 7),
    "repeat": lambda m, x: m.repeat(x(ROW), COUNTS),
    "repeat rows": lambda m, x: m.repeat(x(ROW.reshape(MANY // 2, 2)), COUNTS[::2], axis=0),
    "repeat columns": lambda m, x: m.repeat(x(ROW.reshape(2, MANY // 2))[:, ::-1], COUNTS[::2], 1),
    "repeat with few counts": lambda m, x: m.repeat(x(ROW), np.sort(COUNTS)),
    "roll": lambda m, x: m.roll(x(BITS), 1, tuple(range(20))),
    "roll some axes": lambda m, x: m.roll(x(BITS), (1, 3), (2, -1)),
    "take": lambda m, x: m.take(x(ROW), ROW[::-3]),
    "tile": lambda m, x: m.tile(x(BITS), (1, 2) + (1,) * 19),
}


@pytest.mark.parametrize("name", CALLS)
def test_few_regions(device, name, monkeypatch):
    plans = []
    init = array_plan.ArrayPlan.__init__
    monkeypatch.setattr(
        array_plan.ArrayPlan,
        "__init__",
        lambda plan, *arguments: (init(plan, *arguments), plans.append(plan))[0],
    )
    result = CALLS[name](vkops, device.tensor)
    expected = CALLS[name](np, lambda array: array)
    np.testing.assert_array_equal(result.numpy(), expected)
    assert sum(len(plan.plan.regions) for plan in plans) <= 1024


@pytest.mark.parametrize("change", [-1, 0, 1])
def test_repeats_are_the_same_on_both_sides_of_the_bound(device, change):
    size = MAX_REPEATED_PIECES + change
    array = np.arange(3 * size, dtype=np.int16).reshape(3, size)
    counts = np.arange(size) % 2 * 3
    for axis, times in ((1, counts), (None, np.tile(counts, 3))):
        result = vkops.repeat(device.tensor(array), times, axis)
        np.testing.assert_array_equal(result.numpy(), np.repeat(array, times, axis))


def test_plans_do_not_keep_the_counts(device):
    """They are kept by what they copy, and many counts can be two pieces."""
    from vkops.tensors.rearrangement import _repeat

    before = set(_repeat)
    counts = np.repeat([2, 3], MANY // 2)
    vkops.repeat(device.tensor(ROW), counts)
    (added,) = set(_repeat) - before
    assert ((2, MANY // 2), (3, MANY // 2)) in added
