"""The check of accesses that nothing orders."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from vkops.interpreter.images import Image
from vkops.interpreter.memory import Active, Memory
from vkops.interpreter.observer import Observer
from vkops.interpreter.operations import Array
from vkops.interpreter.order import BUFFERS, IMAGES, LEVELS, SHARED, Order
from vkops.interpreter.program import parts_of, scalar_of
from vkops.interpreter.shadow import Conflict, Shadow
from vkops.interpreter.values import Pointer
from vkops.shaders.binary import Op
from vkops.shaders.layout import Number, Type

_VERBS = {"read": "reads it", "write": "writes it", "atomic": "changes it atomically"}
_PAST = {"read": "read it", "written": "wrote it", "changed": "changed it atomically"}


class Races(Observer):
    """Finds data races in shared memory and in buffers, by Vulkan's memory model.

    Accesses of a buffer that only a plain ``barrier()`` separates are a finding of another kind,
    unless ``plain_barriers`` is false.
    """

    def __init__(self, *, plain_barriers: bool = True) -> None:
        self._plain_barriers = plain_barriers

    def begin(self) -> None:
        run = self.machine
        groups = int(np.prod(run.groups))
        self._order = Order(groups, run.group_size, run.settings.subgroup_size)
        self._deferred: list[tuple[Shadow, Array, Array, Callable[[int], None]]] = []
        self._exchanged: dict[Shadow, list[Array]] = {}

    def workgroups(self, active: Active) -> None:
        self._order.begin(active.who)

    def barrier(self, scope: int, memory_scope: int, semantics: int, active: Active) -> None:
        if memory_scope not in LEVELS:  # else it releases and acquires only for those it orders
            self.fence(memory_scope, semantics, active)
        self._order.barrier(active.who, scope, semantics, self.machine.time)

    def fence(self, scope: int, semantics: int, active: Active) -> None:
        """Release what was written before, and acquire; an atomic operation acquires after it."""
        self._order.release(active.who, scope, semantics, self.machine.time)
        if self.machine.step.op in Op.ATOMICS:
            self._acquire = scope, semantics
        else:
            self._order.acquire(active.who, scope, semantics, self.machine.time)

    def access(self, kind: str, pointer: Pointer, active: Active) -> None:
        memory = pointer.variable
        if memory.shadow is None:
            return
        is_image, time = isinstance(memory, Image), self.machine.time
        c = SHARED if memory.kind else IMAGES if is_image else BUFFERS
        for number, type_, offset in _scalars(pointer.type, pointer.offset):
            addresses = memory.addresses(type_, offset, active)
            units = memory.units_of(number, addresses)
            units = units.reshape(len(units), -1)
            who = active.who
            if len(units) == 1 and len(who) > 1:
                if kind == "read":
                    who = who[[0, -1]]
                units = np.broadcast_to(units, (len(who), units.shape[1]))
            who = np.repeat(who, units.shape[1])
            units = units.reshape(-1)
            for conflict in memory.shadow.access(kind, self._order, units, who, time, c):
                self._race(kind, memory, conflict, units, who)
        if kind == "atomic":
            op = self.machine.step.op
            done = {Op.AtomicLoad: "load", Op.AtomicStore: "store"}.get(op, "change")
            self._order.atomic(memory.shadow, units, who, time, done)
            self._order.acquire(active.who, *self._acquire, time)
            if op == Op.AtomicCompareExchange:
                pairs = units << 32 | who
                self._exchanged.setdefault(memory.shadow, []).append(pairs)

    def end(self) -> None:
        """Report reads of what atomic operations change, by those that have never exchanged it.

        A read may be the first of a loop with atomicCompSwap, which is no fault.
        """
        for shadow, addresses, who, report in () if self.machine.stopped else self._deferred:
            known = self._exchanged.get(shadow)
            pairs = addresses << 32 | who
            kept = pairs if known is None else pairs[~np.isin(pairs, np.concatenate(known))]
            if len(kept):
                report(int(np.flatnonzero(pairs == kept[0])[0]))

    def _race(
        self, kind: str, memory: Memory, conflict: Conflict, units: Array, who: Array
    ) -> None:
        run, place = self.machine, self.machine.step.place
        fault = "plain barrier" if conflict.has_barrier else "data race"
        if conflict.has_barrier and not self._plain_barriers:
            return

        def report(number: int) -> None:
            at, other = int(conflict.at[number]), int(conflict.others[number])
            where = run.access_places[int(conflict.when[number])]
            name = memory.element(memory.offset(int(units[at]) * memory.unit))
            room = "shared memory" if memory.kind else "a storage buffer"
            room = "an image" if isinstance(memory, Image) else room
            end = "there is no barrier between them" if memory.kind else "nothing orders them"
            if conflict.has_barrier:
                what = "Image" if isinstance(memory, Image) else "Buffer"
                end = f"the barrier between them does not order {what.lower()}s"
                end += f" (memoryBarrier{what} does)"
            message = (
                f"'{name}' in {room}: the first invocation {_VERBS[kind]}, the second "
                f"{_PAST[conflict.did]}{where.seen_from(place)}, and {end}"
            )
            key = f"{name.partition('[')[0]} {where}"
            pair, count = np.array([who[at], other]), len(conflict.at)
            run.report(fault, message, pair, key, place, where, count)

        if {kind, conflict.did} <= {"read", "atomic", "changed"}:
            readers = who[conflict.at] if kind == "read" else conflict.others
            assert memory.shadow is not None
            self._deferred.append((memory.shadow, units[conflict.at], readers, report))
        else:
            report(run.example(np.ones(len(conflict.at), bool), who[conflict.at]))


def _scalars(type_: Type, offset: int | Array) -> list[tuple[Number, Type, int | Array]]:
    """Return the parts of a type that are scalars, vectors or matrices, with their offsets."""
    number = scalar_of(type_)
    if number is not None:
        return [(number, type_, offset)]
    return [each for part, at in parts_of(type_) for each in _scalars(part, offset + at)]
