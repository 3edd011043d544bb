"""The allocator, without a device: heaps are stand-ins."""

from __future__ import annotations

import gc
import sys
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vkops.errors import OutOfDeviceMemoryError
from vkops.gpu.memory import heaps as allocator
from vkops.gpu.memory.heaps import ALIGNMENT, FIRST_HEAP, FreeList, Memory, MemoryReport


class Owner:
    pass


def memory(budget=1 << 30, max_buffer=1 << 27):
    released = []
    made = Memory(
        lambda size: SimpleNamespace(ranges=FreeList(size)),
        max_buffer,
        lambda: budget - made.reserved,
        lambda heap: released.append(heap.ranges.size),
    )
    return made, released


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


def test_ranges_are_aligned_and_freed_with_their_owner():
    made, _ = memory()
    owners = [Owner() for _ in range(3)]
    first, second, _third = (made.allocate(n, o) for n, o in zip((1, 257, 5), owners, strict=True))
    assert (first.offset, second.offset) == (0, ALIGNMENT)
    assert second.nbytes == 2 * ALIGNMENT
    assert made.report().used == 4 * ALIGNMENT
    del owners[1]
    gc.collect()
    assert made.report().used == 2 * ALIGNMENT
    assert made.allocate(300, owners[0]).offset == ALIGNMENT


def test_heaps_double_and_are_reused():
    made, _ = memory()
    owners = [Owner() for _ in range(3)]
    for owner in owners:
        made.allocate(FIRST_HEAP, owner)
    assert made.report().heaps == 3
    assert made.report().reserved == 4 * FIRST_HEAP
    for owner in (Owner() for _ in range(100)):
        made.allocate(1 << 20, owner)
    assert made.report().heaps == 3


def test_empty_heaps_make_room():
    made, released = memory(budget=3 * FIRST_HEAP)
    made.allocate(FIRST_HEAP, Owner())
    made.allocate(3 * FIRST_HEAP, Owner())
    assert released == [FIRST_HEAP]
    assert made.report().reserved == 3 * FIRST_HEAP


def test_larger_than_one_buffer_is_spread():
    made, _ = memory(max_buffer=1 << 20)
    owner = Owner()
    place = made.allocate((3 << 20) + 100, owner)
    assert [r.nbytes for r in place.ranges] == [1 << 20, 1 << 20, 1 << 20, 256]
    assert len({id(r.heap) for r in place.ranges}) == 4
    part = place.part((1 << 20) - 16, 48)
    assert [(r.offset, r.nbytes) for r in part.ranges] == [((1 << 20) - 16, 16), (0, 32)]
    assert place.part(5, 100).nbytes == 100
    del owner
    assert made.report().used == 0


def test_budget_that_shrinks_meanwhile():
    """What empty heaps gave back may be somebody else's before it is asked for again."""
    made, _ = memory()
    owner = Owner()
    made.allocate(1 << 20, owner)
    del owner
    made._available = lambda: 10 << 20
    with pytest.raises(OutOfDeviceMemoryError, match="a buffer of 20971520 bytes: the device has"):
        made.allocate(20 << 20, Owner())


def test_spread_is_all_or_nothing():
    made, _ = memory(budget=3 << 20, max_buffer=1 << 20)
    first = Owner()
    made.allocate(1 << 20, first)
    with pytest.raises(OutOfDeviceMemoryError, match="a buffer of 3145728 bytes: the device has"):
        made.allocate(3 << 20, Owner())
    assert made.report().heaps == 1
    made.require(2 << 20)
    with pytest.raises(OutOfDeviceMemoryError, match="a buffer of 3145728 bytes: the device has"):
        made.require(3 << 20)


def test_too_large_for_the_device():
    made, _ = memory(budget=FIRST_HEAP)
    owner = Owner()
    made.allocate(FIRST_HEAP // 2, owner)
    with pytest.raises(
        OutOfDeviceMemoryError,
        match=f"a buffer of {FIRST_HEAP} bytes: the device has 0 bytes available "
        rf"\({FIRST_HEAP} reserved by this device object\)",
    ):
        made.allocate(FIRST_HEAP, owner)
    assert made.report().used == FIRST_HEAP // 2


class InterruptError(BaseException):
    pass


def interrupt_at(count):
    """A trace function that raises an error at an instruction of the allocator, by its number."""
    instructions = iter(range(1, count))

    def trace(frame, event, _argument):
        if frame.f_code.co_filename != allocator.__file__:
            return None
        frame.f_trace_opcodes = True
        if event == "opcode" and next(instructions, None) is None:
            sys.settrace(None)
            raise InterruptError
        return trace

    return trace


def replace_one(made, owners):
    """Free one owner's memory, and allocate some for others, in several heaps and for a moment."""
    del owners[0]
    for size in (5000, 3 * FIRST_HEAP):
        owners.append(Owner())
        made.allocate(size, owners[-1])
    made.allocate(FIRST_HEAP, Owner())


@pytest.mark.parametrize(
    "work",
    [
        replace_one,
        lambda made, owners: (owners.clear(), made.report()),
        lambda made, owners: (owners.pop(), made.release_empty_heaps()),
        lambda made, owners: (owners.pop(1), made.require(100)),
    ],
    ids=["allocate", "report", "release", "require"],
)
def test_an_interrupt_at_any_instruction_loses_no_memory(work):
    """Afterwards the memory of living owners is in use, and all other memory is free."""
    tracer = sys.gettrace()
    gc.collect()
    gc.disable()  # finalizers are not interrupted
    try:
        for count in range(1, 10_000):
            made, _ = memory(budget=8 * FIRST_HEAP, max_buffer=FIRST_HEAP)
            owners = [Owner() for _ in range(3)]
            for number in range(3):
                made.allocate(1000, owners[number])
            sys.settrace(interrupt_at(count))
            try:
                work(made, owners)
                break
            except InterruptError:
                pass
            finally:
                sys.settrace(tracer)
            used = made.report().used
            living = [claim.allocation for claim in made._claims.values()]
            assert used == sum(allocation.nbytes for allocation in living)
            taken = [r[:2] for allocation in living for r in allocation.ranges]
            fresh = Owner()
            assert made.allocate(1024, fresh)[:2] not in taken
            del fresh
            owners.clear()
            made.release_empty_heaps()
            assert made.report() == MemoryReport(0, 0, 0)
    finally:
        gc.enable()
    assert 20 < count < 9_999
