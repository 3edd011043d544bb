"""The check for data races."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from vkops.interpreter.images import ImageVariable
from vkops.interpreter.memory import Active, MemoryVariable
from vkops.interpreter.observer import Observer
from vkops.interpreter.operations import Array
from vkops.interpreter.order import (
    AVAILABILITY,
    BUFFERS,
    IMAGES,
    INCOHERENT,
    LEVELS,
    PRIVATE,
    SHARED,
    Order,
)
from vkops.interpreter.program import SUBGROUP_SCOPE
from vkops.interpreter.shadow import Conflict, Shadow
from vkops.interpreter.values import Pointer
from vkops.interpreter.visibility import ACQUIRES, RELEASES
from vkops.shaders.binary import Op

VERBS = {
    "read": "reads it", "write": "writes it", "atomic": "changes it atomically",
    "load": "reads it atomically",
}  # fmt: skip
PAST = {
    "read": "read it", "written": "wrote it", "changed": "changed it atomically",
    "loaded": "read it atomically",
}  # fmt: skip
_ATOMIC = {"atomic", "load", "changed", "loaded"}

_OPERANDS = {
    Op.Load: 1, Op.Store: 2, Op.CopyMemory: 2, Op.ImageRead: 2, Op.ImageWrite: 3,
    Op.CooperativeMatrixLoadKHR: 3, Op.CooperativeMatrixStoreKHR: 4,
}  # fmt: skip
"""The position of the memory operands, by opcode."""
_ALIGNED, _MAKE_AVAILABLE, _MAKE_VISIBLE, _NON_PRIVATE = 0x2, 0x8, 0x10, 0x20


class Races(Observer):
    """Finds data races in shared memory and in buffers, by Vulkan's memory model.

    Accesses to a buffer that only a plain ``barrier()`` separates are a finding of another kind,
    unless ``plain_barriers`` is false.
    """

    def __init__(self, *, plain_barriers: bool = True) -> None:
        self._plain_barriers = plain_barriers

    def begin(self) -> None:
        run = self.machine
        groups = int(np.prod(run.groups))
        is_declared = "VulkanMemoryModel" in run.program.module.capabilities
        size = run.settings.subgroup_size
        self._order = Order(groups, run.group_size, size, is_declared=is_declared)
        self._is_declared, self._implied = is_declared, 0 if is_declared else AVAILABILITY
        self._is_mixed = is_declared and self._mixes()
        self._deferred: list[tuple[Shadow, Array, Array, Callable[[int], None]]] = []
        self._exchanged: dict[Shadow, list[Array]] = {}

    def workgroups(self, active: Active) -> None:
        self._order.begin(active.who)

    def barrier(self, scope: int, memory_scope: int, semantics: int, active: Active) -> None:
        who, time, level = active.who, self.machine.time, LEVELS.get(memory_scope, 0)
        if self._order.chains is not None:
            instances = self.machine.subgroup(who) if scope == SUBGROUP_SCOPE else active.groups
            self._order.chains.barrier(who, instances, level, semantics, time)
        if self._is_declared or not level or not semantics & ACQUIRES & RELEASES:
            self._fence(who, memory_scope, semantics)
        semantics |= self._implied
        if level > LEVELS.get(scope, 0):  # its memory scope is the smaller one
            if memory_scope == SUBGROUP_SCOPE:
                self._order.barrier(who, memory_scope, semantics, time)
            semantics = 0
        self._order.barrier(who, scope, semantics, time)

    def fence(self, scope: int, semantics: int, active: Active) -> None:
        """Release and acquire at a memory barrier; atomic operations do this for themselves."""
        if self.machine.step.op in Op.ATOMICS:
            self._atomic = scope, semantics | self._implied
            return
        if self._order.chains is not None:
            level = LEVELS.get(scope, 0)
            self._order.chains.fence(active.who, level, semantics, self.machine.time)
        self._fence(active.who, scope, semantics)

    def _fence(self, who: Array, scope: int, semantics: int) -> None:
        semantics |= self._implied
        self._order.release(who, scope, semantics, self.machine.time)
        self._order.acquire(who, scope, semantics, self.machine.time)

    def access(self, kind: str, pointer: Pointer, active: Active) -> None:
        memory = pointer.variable
        if memory.shadow is None:
            return
        is_image, time = isinstance(memory, ImageVariable), self.machine.time
        c = SHARED if memory.kind else IMAGES if is_image else BUFFERS
        op, scope, need = self.machine.step.op, 0, self._need(kind)
        if op in Op.ATOMICS:  # reads after a change of an atomic variable need no more
            kind, scope = "load" if op == Op.AtomicLoad else kind, need
            need = need if op == Op.AtomicStore else 0
        is_write = kind in ("write", "atomic")
        is_store = self._is_declared and op == Op.AtomicStore
        if need or scope or is_store:
            self._order.note(kind, time, need, scope, c, is_store=is_store)
        is_noted = self._is_mixed and kind in ("read", "write") and need < INCOHERENT
        level = need
        need = scope if kind == "load" else 0 if is_write and need < PRIVATE else need
        for units in memory.touched(pointer.type, pointer.offset, active):
            who = active.who
            if is_noted and self._order.chains is not None:
                every = np.broadcast_to(units, (len(who), units.shape[1])).reshape(-1)
                repeated = np.repeat(who, units.shape[1])
                self._order.chains.coherent(
                    memory.shadow, every, repeated, level, time, is_write=is_write
                )
            if len(units) == 1 and len(who) > 1:
                if kind == "read":
                    who = who[[0, -1]]
                units = np.broadcast_to(units, (len(who), units.shape[1]))
            who = np.repeat(who, units.shape[1]) if units.shape[1] > 1 else who
            units = units.reshape(-1)
            if kind in ("atomic", "load"):  # acquires before, and releases after, its own access
                self._change(memory, units, who, c)
            for conflict in memory.shadow.access(
                kind, self._order, units, who, time, c, need, scope
            ):
                self._race(kind, memory, conflict, units, who)

    def _change(self, memory: MemoryVariable, units: Array, who: Array, c: int) -> None:
        op, shadow = self.machine.step.op, memory.shadow
        assert shadow is not None
        kind = {Op.AtomicLoad: "load", Op.AtomicStore: "store"}.get(op, "change")
        self._order.atomic(shadow, units, who, *self._atomic, self.machine.time, kind, c)
        if op == Op.AtomicCompareExchange:
            self._exchanged.setdefault(shadow, []).append(units << 32 | who)

    def _mixes(self) -> bool:
        """Whether some accesses are not coherent, or have smaller scopes than others.

        Only then can coherent accesses affect others of the same element.
        """
        found = set()
        for function in self.machine.program.functions.values():
            for step in (step for block in function.blocks for step in block.steps):
                if step.op in _OPERANDS:
                    found.add(step.operands[_OPERANDS[step.op] :])
        return len({operands for operands in found if any(operands)}) > 2  # of reads and writes

    def _need(self, kind: str) -> int:
        """Return what an access needs, by its scope or its memory operands."""
        step = self.machine.step
        if kind == "atomic":
            return LEVELS.get(self._atomic[0], 0)
        if not self._is_declared or step.op not in _OPERANDS:
            return 0
        mask, *rest = step.operands[_OPERANDS[step.op] :] or (0,)
        flag = _MAKE_VISIBLE if kind == "read" else _MAKE_AVAILABLE
        if step.op in (Op.ImageRead, Op.ImageWrite):  # these operands follow image operands
            mask, scope = mask >> 5, rest[-1:]
        else:
            count = sum(mask & each != 0 for each in (_ALIGNED, _MAKE_AVAILABLE, _MAKE_VISIBLE))
            if step.op == Op.CopyMemory and kind == "read" and rest[count:]:  # it has its own
                mask, *rest = rest[count:]
            before = (_ALIGNED, _MAKE_AVAILABLE)[: 1 + (kind == "read")]
            scope = rest[sum(mask & each != 0 for each in before) :]
        if not mask & _NON_PRIVATE:
            return PRIVATE
        return LEVELS.get(int(self.machine.value(scope[0])[0]), 0) if mask & flag else INCOHERENT

    def end(self) -> None:
        """Report reads of values that atomic operations change.

        The first read of a loop with atomicCompSwap is no fault, so reads of invocations that have
        exchanged the value are left out.
        """
        for shadow, addresses, who, report in () if self.machine.stopped else self._deferred:
            known = self._exchanged.get(shadow)
            pairs = addresses << 32 | who
            kept = pairs if known is None else pairs[~np.isin(pairs, np.concatenate(known))]
            if len(kept):
                report(int(np.flatnonzero(pairs == kept[0])[0]))

    def _race(
        self, kind: str, memory: MemoryVariable, conflict: Conflict, units: Array, who: Array
    ) -> None:
        run, place = self.machine, self.machine.step.place
        fault = "plain barrier" if conflict.has_barrier else "data race"
        if conflict.has_barrier and not self._plain_barriers:
            return

        def report(number: int) -> None:
            at, other = int(conflict.at[number]), int(conflict.others[number])
            where = run.access_places[int(conflict.when[number])]
            name = memory.element(memory.place_of(int(units[at])))
            room = "shared memory" if memory.kind else "a storage buffer"
            room = "an image" if isinstance(memory, ImageVariable) else room
            end = "there is no barrier between them" if memory.kind else "nothing orders them"
            if self._is_declared:
                end = "nothing orders them and makes the second available and visible to the first"
            if {kind, conflict.did} <= _ATOMIC:
                end = "the scope of one does not contain the other invocation"
            if conflict.has_barrier:
                what = "Image" if isinstance(memory, ImageVariable) else "Buffer"
                end = f"the barrier between them does not order {what.lower()}s"
                end += f" (memoryBarrier{what} does)"
            message = (
                f"'{name}' in {room}: the first invocation {VERBS[kind]}, the second "
                f"{PAST[conflict.did]}{where.seen_from(place)}, and {end}"
            )
            key = f"{name.partition('[')[0]} {where}"
            pair, count = np.array([who[at], other]), len(conflict.at)
            run.report(fault, message, pair, key, place, where, count)

        if "read" in (kind, conflict.did) and {kind, conflict.did} & {"atomic", "changed"}:
            readers = who[conflict.at] if kind == "read" else conflict.others
            assert memory.shadow is not None
            self._deferred.append((memory.shadow, units[conflict.at], readers, report))
        else:
            report(run.example(np.ones(len(conflict.at), bool), who[conflict.at]))
