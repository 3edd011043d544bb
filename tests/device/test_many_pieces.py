"""Functions whose copies depend on values or on the number of axes: few regions, whatever these are."""

import numpy as np
import pytest
from arrays import equal, on_device
from hypothesis import given
from hypothesis import strategies as st

import vkops
from vkops.gpu.copies.rule import SHADERS
from vkops.plan import indexing
from vkops.tensors import array_plan
from vkops.tensors.rearrangement import MAX_REPEATED_PIECES

MANY = 10**6
ROW = np.arange(MANY, dtype=np.int32)
BITS = np.arange(1 << 20, dtype=np.uint8).reshape((2,) * 20)
COUNTS = ROW % 3


def assigned(target, source):
    target = target.copy()
    target.T[...] = source
    return target


CALLS = {
    "copy": lambda m, x: x(BITS).T.copy(),
    "copy of a view": lambda m, x: x(BITS)[1, ..., ::-1].T[::-1].copy(),
    "assignment": lambda m, x: assigned(x(0 * BITS), x(BITS)),
    "concatenate": lambda m, x: m.concatenate([x(BITS).T, x(BITS).T[:1]]),
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
    encoded = [each for plan in plans for each in plan.program.encoded(device)]
    records = sum(len(table.encoded.records) for each in encoded for table in each._tables)
    # Of a roll, Vulkan's copies take half of the regions where they are used.
    most = 1056 if device.tuning.copies == SHADERS else 1024
    assert sum(len(plan.plan.regions) for plan in plans) + records <= most


@on_device
@given(data=st.data())
def test_views_of_many_axes(make, data):
    """Each part has eight axes; here more than two parts are gathered."""
    rank = data.draw(st.integers(9, 13))
    sizes = [3] * 3 + [2] * (rank - 3)
    dtype = data.draw(st.sampled_from(["u1", "i2", "f4", "i8", "c16"]))
    axes = data.draw(st.permutations(range(rank)))
    steps = data.draw(st.lists(st.sampled_from([1, -1]), min_size=rank, max_size=rank))
    index = tuple(slice(None, None, step) for step in steps)
    array = np.arange(np.prod(sizes)).astype(dtype).reshape(sizes).transpose(axes)[index]
    tensor = make(np.arange(array.size).astype(dtype).reshape(sizes)).transpose(axes)[index]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(indexing, "MAX_COPIED_PARTS", 2)
        array_plan.gathering.cache_clear()
        equal(tensor.copy(), array)
        equal(vkops.concat([tensor, tensor], axis=1), np.concatenate([array, array], axis=1))
        target = make(np.zeros(array.size, dtype).reshape(sizes)).transpose(axes)[index]
        target[...] = make(np.ascontiguousarray(array))
        equal(target, array)
        target[...] = tensor[(slice(None, None, -1),) * rank]
        equal(target, array[(slice(None, None, -1),) * rank])
    array_plan.gathering.cache_clear()


def test_views_of_many_axes_are_gathered_by_recordings(any_device):
    tensor = any_device.tensor(BITS).T
    with any_device.record() as program:
        result = tensor.copy()
    program.run()
    np.testing.assert_array_equal(result.numpy(), BITS.T)


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


@pytest.mark.parametrize("axis", [None, 0])
def test_nothing_is_repeated_as_often_as_no_counts_say(device, axis):
    result = vkops.repeat(device.tensor(ROW[:0]), [], axis=axis)
    assert (result.shape, result.tolist()) == ((0,), [])
