"""The allocator, without a device: the driver's allocations are stand-ins."""

from __future__ import annotations

import gc
import sys
import weakref
from threading import RLock
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from interrupts import interrupted_at

from vkops.errors import OutOfDeviceMemoryError
from vkops.extent import slice_extents
from vkops.gpu.memory.pools import (
    ALIGNMENT,
    FIRST_NBYTES,
    FreeList,
    MemoryReport,
    Pool,
    assign,
)


def memory(budget=1 << 30, max_buffer=1 << 27):
    device = SimpleNamespace(
        lock=RLock(),
        info=SimpleNamespace(max_buffer=max_buffer),
        check=lambda: None,
        new_memory=lambda nbytes, _: StandIn(nbytes),
        available=lambda _: budget - made.reserved,
    )
    made = Pool(device, "mapped")
    made.owners = []
    return made


class StandIn:
    """An allocation without memory."""

    def __init__(self, size):
        self.ranges = FreeList(size)


class Owner:
    """What a buffer is to the allocator."""


def allocate(made, nbytes):
    """Return the extents of a new owner, which exists until ``free``."""
    owner = Owner()
    extents, _ = made.allocate(owner, nbytes)
    made.owners.append((extents, owner))
    return extents


def take(ranges, size):
    """Take a range; return its offset and number."""
    found = ranges.take(size)
    if found is None:
        return None
    *place, change = found
    assign(change)
    return tuple(place)


def give(ranges, offset, size, used=0):
    """Give a range back."""
    assign(ranges.give(offset, size, used))


def free(made, extents):
    """Free the owner of extents."""
    made.owners[:] = [pair for pair in made.owners if pair[0] is not extents]


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 40)), max_size=80))
def test_free_list_never_overlaps_and_joins_again(steps):
    ranges, taken = FreeList(100), []
    for taking, size in steps:
        if taking:
            found = take(ranges, size)
            if found is None:
                continue
            offset, _ = found
            assert 0 <= offset <= 100 - size
            assert all(offset + size <= o or o + s <= offset for o, s in taken)
            taken.append((offset, size))
        elif taken:
            give(ranges, *taken.pop(size % len(taken)))
        assert ranges.free == 100 - sum(s for _, s in taken)
    for one in taken:
        give(ranges, *one)
    assert take(ranges, 100) == (0, 0)


def test_ranges_are_aligned_and_freed():
    made = memory()
    (first,), (second,), _ = taken = [allocate(made, n) for n in (1, 257, 5)]
    assert (first.start, second.start) == (0, ALIGNMENT)
    assert second.nbytes == 2 * ALIGNMENT
    assert made.report().used == 4 * ALIGNMENT
    free(made, taken[1])
    assert made.report().used == 2 * ALIGNMENT
    assert allocate(made, 300)[0].start == ALIGNMENT


def test_heaps_double_and_are_reused():
    made = memory()
    for _ in range(3):
        allocate(made, FIRST_NBYTES)
    assert made.report().heaps == 3
    assert made.report().reserved == 4 * FIRST_NBYTES
    for _ in range(100):
        free(made, allocate(made, 1 << 20))
    assert made.report().heaps == 3


def test_empty_heaps_make_room():
    made = memory(budget=3 * FIRST_NBYTES)
    free(made, allocate(made, FIRST_NBYTES))
    (extent,) = allocate(made, 3 * FIRST_NBYTES)
    assert made.heaps == [extent.resource]
    assert made.report().reserved == 3 * FIRST_NBYTES


def test_larger_than_one_buffer_is_spread():
    made = memory(max_buffer=1 << 20)
    extents = allocate(made, (3 << 20) + 100)
    assert [extent.nbytes for extent in extents] == [1 << 20, 1 << 20, 1 << 20, 256]
    assert len({id(extent.resource) for extent in extents}) == 4
    part = slice_extents(extents, (1 << 20) - 16, 48)
    assert [(extent.start, extent.nbytes) for extent in part] == [((1 << 20) - 16, 16), (0, 32)]
    free(made, extents)
    assert made.report().used == 0


def test_budget_that_shrinks_meanwhile():
    """What empty heaps gave back may be somebody else's before it is asked for again."""
    made = memory()
    free(made, allocate(made, 1 << 20))
    made.available = lambda: 10 << 20
    with pytest.raises(OutOfDeviceMemoryError, match="a buffer of 20971520 bytes: the device has"):
        allocate(made, 20 << 20)


def test_spread_is_all_or_nothing():
    made = memory(budget=3 << 20, max_buffer=1 << 20)
    allocate(made, 1 << 20)
    with pytest.raises(OutOfDeviceMemoryError, match="a buffer of 3145728 bytes: the device has"):
        allocate(made, 3 << 20)
    assert made.report().used == made.report().reserved == 1 << 20
    made.require(2 << 20)
    with pytest.raises(OutOfDeviceMemoryError, match="a buffer of 3145728 bytes: the device has"):
        made.require(3 << 20)


@pytest.mark.parametrize("nbytes", [100, (3 << 20) + 100])
def test_an_interrupt_at_each_point_loses_nothing(nbytes):
    made = memory(max_buffer=1 << 20)
    kept = allocate(made, 1000)

    def work():
        free(made, allocate(made, nbytes))
        free(made, allocate(made, 2 * nbytes))
        made.collect()

    number = 1
    while interrupted_at(number, work):
        made.owners[1:] = []
        assert made.report().used == 4 * ALIGNMENT, number
        number += 1
    assert number > 20
    free(made, kept)
    assert made.report().used == 0
    assert all(take(heap.ranges, heap.ranges.size) == (0, 0) for heap in made.heaps)


def test_too_large_for_the_device():
    made = memory(budget=1 << 20)
    with pytest.raises(OutOfDeviceMemoryError, match="a buffer of 4194304 bytes: the device has"):
        allocate(made, 4 << 20)
    assert made.report() == MemoryReport(0, 0, 0)


def test_closed_memory_forgets_its_heaps():
    made = memory()
    kept = allocate(made, 100)
    made.close()
    heap = weakref.ref(kept[0].resource)
    assert (made.heaps, made.closed, heap() is None) == ([], True, False)
    free(made, kept)
    del kept
    assert heap() is None  # although the memory object exists
    made.release_empty_heaps()
    assert made.reserved == 0


def test_an_owner_in_a_cycle_is_freed_too():
    made = memory()
    owner = Owner()
    owner.itself = owner
    owner.memory = made.allocate(owner, 100)
    del owner
    gc.collect()
    assert made.report().used == 0


def test_no_python_code_runs_when_an_owner_is_freed():
    """An interrupt that came in it would be lost."""
    made = memory()
    allocate(made, 100)
    calls = []
    sys.setprofile(lambda frame, event, _: calls.append((frame.f_code.co_name, event)))
    made.owners.clear()
    sys.setprofile(None)
    assert {name for name, event in calls if event == "call"} == set()
    assert len(made.freed) == 1
    assert made.report().used == 0


def test_memory_that_was_freed_has_the_last_submission_that_uses_it():
    ranges = FreeList(100)
    first, second, _third = (take(ranges, 10) for _ in range(3))
    give(ranges, second[0], 10, 7)
    give(ranges, first[0], 10, 3)  # joined: both have the later one
    assert take(ranges, 15) == (0, 7)
    assert take(ranges, 70) == (30, 0)
    assert take(ranges, 5) == (15, 7)
