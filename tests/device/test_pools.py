"""The allocator, without a device: the driver's allocations are stand-ins."""

import gc
import sys
import weakref
from itertools import pairwise
from threading import RLock
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from interrupts import interrupted_at

from vkops.errors import DeviceError, OutOfDeviceMemoryError
from vkops.extent import Extent, slice_extents
from vkops.gpu.adapters.kompute import load_native
from vkops.gpu.memory.pools import ALIGNMENT, FIRST_NBYTES, MemoryReport, Pool


def memory(budget=1 << 30, max_buffer=1 << 27):
    """A pool of a device that has so many bytes."""
    device = SimpleNamespace(
        lock=RLock(),
        info=SimpleNamespace(max_buffer=max_buffer, label="stand-in"),
        module=load_native(),
        check_usable=lambda: None,
        new_memory=lambda nbytes, _: StandIn(nbytes),
        available=lambda _: budget - pool.reserved,
    )
    pool = Pool(device, "mapped")
    return pool


class StandIn:
    """An allocation without memory."""

    def __init__(self, size):
        self.ranges = load_native().FreeList(size)


def take(heap, size):
    """Allocate a range of one heap; None if it has no room."""
    allocation = load_native().allocate(Extent._make, [heap], size, size)
    return None if isinstance(allocation, int) else allocation


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 40)), max_size=80))
def test_free_list_never_overlaps_and_joins_again(steps):
    heap, taken = StandIn(100), []
    for taking, size in steps:
        if taking:
            allocation = take(heap, size)
            places = [each.extents[0] for each in taken]
            if allocation is None:
                bounds = sorted([(0, 0), *((each.start, each.end) for each in places), (100, 100)])
                assert all(b[0] - a[1] < size for a, b in pairwise(bounds))
                continue
            (extent,) = allocation.extents
            assert 0 <= extent.start <= 100 - size
            assert not any(map(extent.overlaps, places))
            taken.append(allocation)
        elif taken:
            del taken[size % len(taken)]
        assert heap.ranges.free == 100 - sum(each.extents[0].nbytes for each in taken)
        allocation = None
    taken.clear()
    assert take(heap, 100).extents == (Extent(heap, 0, 100),)


def test_ranges_are_aligned_and_freed():
    pool = memory()
    taken = [pool.allocate(n) for n in (1, 257, 5)]
    places = [each.extents[0][1:] for each in taken]
    assert places == [(0, ALIGNMENT), (ALIGNMENT, 2 * ALIGNMENT), (3 * ALIGNMENT, ALIGNMENT)]
    assert pool.report().used == 4 * ALIGNMENT
    del taken[1]
    assert pool.report().used == 2 * ALIGNMENT
    assert pool.allocate(300).extents[0].start == ALIGNMENT


def test_heaps_double_and_are_reused():
    pool = memory()
    kept = [pool.allocate(FIRST_NBYTES) for _ in range(3)]
    assert pool.report().heaps == 3
    assert pool.report().reserved == 4 * FIRST_NBYTES
    for _ in range(100):
        pool.allocate(1 << 20)
    assert pool.report().heaps == len(kept)


def test_empty_heaps_make_room():
    pool = memory(budget=3 * FIRST_NBYTES)
    pool.allocate(FIRST_NBYTES)
    (extent,) = pool.allocate(3 * FIRST_NBYTES).extents
    assert pool.heaps == [extent.resource]
    assert pool.report().reserved == 3 * FIRST_NBYTES


def test_larger_than_one_buffer_is_spread():
    pool = memory(max_buffer=1 << 20)
    kept = pool.allocate((3 << 20) + 100)
    extents = kept.extents
    assert [extent.nbytes for extent in extents] == [1 << 20, 1 << 20, 1 << 20, 256]
    assert len({id(extent.resource) for extent in extents}) == 4
    part = slice_extents(extents, (1 << 20) - 16, 48)
    assert [(extent.start, extent.nbytes) for extent in part] == [((1 << 20) - 16, 16), (0, 32)]
    kept.used = 7
    del kept
    assert pool.report().used == 0
    again = pool.allocate((2 << 20) + 100)
    assert (again.used, again.written) == (7, 7)


def test_budget_that_shrinks_meanwhile():
    """What empty heaps gave back may be somebody else's before it is asked for again."""
    pool = memory()
    pool.allocate(1 << 20)
    pool.available = lambda: 10 << 20
    with pytest.raises(OutOfDeviceMemoryError, match="a buffer of 20971520 bytes: the device has"):
        pool.allocate(20 << 20)


def test_spread_is_all_or_nothing():
    pool = memory(budget=3 << 20, max_buffer=1 << 20)
    kept = pool.allocate(1 << 20)
    with pytest.raises(OutOfDeviceMemoryError, match="a buffer of 3145728 bytes: the device has"):
        pool.allocate(3 << 20)
    assert pool.report().used == pool.report().reserved == kept.extents[0].nbytes
    pool.require(2 << 20)
    with pytest.raises(OutOfDeviceMemoryError, match="a buffer of 3145728 bytes: the device has"):
        pool.require(3 << 20)


@pytest.mark.parametrize("nbytes", [100, 1 << 20, (3 << 20) + 100])
def test_an_interrupt_at_each_point_loses_nothing(nbytes):
    pool = memory(max_buffer=1 << 20)
    kept = pool.allocate(1000)

    def work():
        pool.release_empty_heaps()
        owner = pool.allocate(nbytes)
        del owner
        pool.allocate(2 * nbytes)

    number = 1
    while interrupted_at(number, work):
        assert pool.report().used == 4 * ALIGNMENT, number
        number += 1
    assert number > 8
    del kept
    assert pool.report().used == 0
    assert all(take(heap, heap.ranges.size) for heap in pool.heaps)


@pytest.mark.parametrize("nbytes", [4 << 20, 1 << 60, 1 << 80])
def test_too_large_for_the_device(nbytes):
    pool = memory(budget=1 << 20)
    with pytest.raises(OutOfDeviceMemoryError, match=f"a buffer of {nbytes} bytes: the device has"):
        pool.allocate(nbytes)
    assert pool.report() == MemoryReport(0, 0, 0)


def test_closed_memory_forgets_its_heaps():
    pool = memory()
    kept = pool.allocate(100)
    pool.close()
    heap = weakref.ref(kept.extents[0].resource)
    assert (pool.heaps, pool.closed, heap() is None) == ([], True, False)
    with pytest.raises(DeviceError, match="the device stand-in is closed"):
        pool.allocate(100)
    del kept
    assert heap() is None  # although the memory object exists
    pool.release_empty_heaps()
    assert pool.reserved == 0


def test_memory_that_is_closed_while_it_grows():
    pool = memory()
    allocate = pool._allocate
    pool._allocate = lambda *values: pool.close() or allocate(*values)
    with pytest.raises(DeviceError, match="the device stand-in is closed"):
        pool.allocate(100)
    assert pool.heaps == []


def test_a_heap_in_a_cycle_is_freed_too():
    pool = memory()
    kept = pool.allocate(100)
    kept.extents[0].resource.owner = kept
    heap = weakref.ref(kept.extents[0].resource)
    pool.close()
    del kept
    gc.collect()
    assert heap() is None


def test_no_python_code_runs_when_memory_is_allocated_again():
    """An interrupt that came in a finalizer would be lost."""
    pool = memory()
    kept = [pool.allocate(100)]
    calls = []
    sys.setprofile(lambda frame, event, _: calls.append((frame.f_code.co_name, event)))
    kept.clear()
    kept.append(pool.allocate(100))
    sys.setprofile(None)
    assert [name for name, event in calls if event == "call"] == ["allocate"]
    assert pool.report().used == ALIGNMENT


def test_memory_that_was_freed_has_the_last_submission_that_uses_it():
    heap = StandIn(100)
    first, second, third = (take(heap, 10) for _ in range(3))
    first.used, second.used, third.written = 3, 7, 9
    del second
    del first  # joined: both have the later one
    allocations = [take(heap, n) for n in (15, 70, 5)]
    assert [(each.extents[0].start, each.used, each.written) for each in allocations] == [
        (0, 7, 7),
        (30, 0, 0),
        (15, 7, 7),
    ]


def test_a_heap_that_is_given_back_takes_no_allocation():
    """Another thread may have read the list of heaps before: it allocates without a lock."""
    native = load_native()
    heap = SimpleNamespace(ranges=native.FreeList(4096))
    held = native.allocate(tuple, [heap], 1024, 4096)
    assert not heap.ranges.close_if_empty()
    assert native.allocate(tuple, [heap], 1024, 4096) != 1024
    del held
    assert heap.ranges.close_if_empty()
    assert native.allocate(tuple, [heap], 1024, 4096) == 1024  # the size that has no room
