"""The allocator, without a device: heaps are stand-ins."""

from __future__ import annotations

from threading import RLock
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vkops.errors import OutOfDeviceMemoryError
from vkops.extent import slice_extents
from vkops.gpu.memory.heaps import ALIGNMENT, FIRST_HEAP, FreeList, Memory, MemoryReport


def memory(budget=1 << 30, max_buffer=1 << 27):
    made = Memory(
        lambda size: SimpleNamespace(ranges=FreeList(size)),
        max_buffer,
        lambda: budget - made.reserved,
        RLock(),
        lambda: None,
    )
    return made


def free(made, extents):
    """What a buffer does when it is freed."""
    made.freed.append(extents)


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 40)), max_size=80))
def test_free_list_never_overlaps_and_joins_again(steps):
    ranges, taken = FreeList(100), []
    for take, size in steps:
        if take:
            offset = ranges.take(size)
            if offset is None:
                continue
            assert 0 <= offset <= 100 - size
            assert all(offset + size <= o or o + s <= offset for o, s in taken)
            taken.append((offset, size))
        elif taken:
            ranges.give(*taken.pop(size % len(taken)))
        assert ranges.free == 100 - sum(s for _, s in taken)
    for one in taken:
        ranges.give(*one)
    assert ranges.take(100) == 0


def test_ranges_are_aligned_and_freed():
    made = memory()
    (first,), (second,), _ = taken = [made.allocate(n) for n in (1, 257, 5)]
    assert (first.start, second.start) == (0, ALIGNMENT)
    assert second.nbytes == 2 * ALIGNMENT
    assert made.report().used == 4 * ALIGNMENT
    free(made, taken[1])
    assert made.report().used == 2 * ALIGNMENT
    assert made.allocate(300)[0].start == ALIGNMENT


def test_heaps_double_and_are_reused():
    made = memory()
    for _ in range(3):
        made.allocate(FIRST_HEAP)
    assert made.report().heaps == 3
    assert made.report().reserved == 4 * FIRST_HEAP
    for _ in range(100):
        free(made, made.allocate(1 << 20))
    assert made.report().heaps == 3


def test_empty_heaps_make_room():
    made = memory(budget=3 * FIRST_HEAP)
    free(made, made.allocate(FIRST_HEAP))
    (extent,) = made.allocate(3 * FIRST_HEAP)
    assert made.heaps == [extent.resource]
    assert made.report().reserved == 3 * FIRST_HEAP


def test_larger_than_one_buffer_is_spread():
    made = memory(max_buffer=1 << 20)
    extents = made.allocate((3 << 20) + 100)
    assert [extent.nbytes for extent in extents] == [1 << 20, 1 << 20, 1 << 20, 256]
    assert len({id(extent.resource) for extent in extents}) == 4
    part = slice_extents(extents, (1 << 20) - 16, 48)
    assert [(extent.start, extent.nbytes) for extent in part] == [((1 << 20) - 16, 16), (0, 32)]
    free(made, extents)
    assert made.report().used == 0


def test_budget_that_shrinks_meanwhile():
    """What empty heaps gave back may be somebody else's before it is asked for again."""
    made = memory()
    free(made, made.allocate(1 << 20))
    made._available = lambda: 10 << 20
    with pytest.raises(OutOfDeviceMemoryError, match="a buffer of 20971520 bytes: the device has"):
        made.allocate(20 << 20)


def test_spread_is_all_or_nothing():
    made = memory(budget=3 << 20, max_buffer=1 << 20)
    made.allocate(1 << 20)
    with pytest.raises(OutOfDeviceMemoryError, match="a buffer of 3145728 bytes: the device has"):
        made.allocate(3 << 20)
    assert made.report().used == made.report().reserved == 1 << 20
    made.require(2 << 20)
    with pytest.raises(OutOfDeviceMemoryError, match="a buffer of 3145728 bytes: the device has"):
        made.require(3 << 20)


def test_too_large_for_the_device():
    made = memory(budget=1 << 20)
    with pytest.raises(OutOfDeviceMemoryError, match="a buffer of 4194304 bytes: the device has"):
        made.allocate(4 << 20)
    assert made.report() == MemoryReport(0, 0, 0)


def test_closed_memory_forgets_its_heaps():
    made = memory()
    kept = made.allocate(100)
    made.close()
    free(made, kept)
    assert (made.heaps, list(made.freed), made.closed) == ([], [], True)
