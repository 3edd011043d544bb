"""Data races of one execution, by the definitions of Vulkan's memory model.

Relations are square matrices of truth values over the events of an execution. This is the model with
chains of availability and visibility, as the appendix of Vulkan's specification and Khronos's Alloy
model define it, without what only happens outside of shaders. It is written for clearness and is
independent of the debugger's, which looks at one access after the other.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from litmus.executions import Execution
from litmus.program import DEVICE, QUEUE_FAMILY, SUBGROUP, WORKGROUP, Test

Relation = npt.NDArray[np.bool_]


def _join(*relations: Relation) -> Relation:
    result = relations[0]
    for each in relations[1:]:
        result = (result.astype(np.uint8) @ each.astype(np.uint8)) != 0
    return result


def _closed(relation: Relation) -> Relation:
    """The transitive closure."""
    for middle in range(len(relation)):
        relation = relation | np.outer(relation[:, middle], relation[middle])
    return relation


def races(test: Test, execution: Execution) -> set[tuple[int, int]]:
    """Return the pairs of events that race; the first one is that which was executed first."""
    events = execution.events
    count = len(events)
    numbers = np.arange(count)

    def each(of: Any) -> npt.NDArray[Any]:
        return np.array([of(event) for event in events])

    def only(chosen: npt.NDArray[Any]) -> Relation:
        return np.diag(chosen.astype(bool))

    def alike(of: Any) -> Relation:
        values = each(of)
        return values[:, None] == values[None, :]

    def between(first: npt.NDArray[Any], second: npt.NDArray[Any]) -> Relation:
        return np.outer(first, second).astype(bool)

    identity = np.eye(count, dtype=bool)
    before = numbers[:, None] < numbers[None, :]
    code = [event.code for event in events]
    place = [test.invocations[event.who] for event in events]
    reads, writes = each(lambda e: e.code.reads), each(lambda e: e.code.writes)
    accesses, atomic = reads | writes, each(lambda e: e.code.is_atomic)
    acquires, releases = each(lambda e: e.code.acquires), each(lambda e: e.code.releases)
    is_barrier = each(lambda e: e.code.kind == "barrier")
    fence = (is_barrier | each(lambda e: e.code.kind == "fence")) & (acquires | releases)
    scope = each(lambda e: e.code.scope)
    public = accesses & ~each(lambda e: e.code.is_private)
    coherent = each(lambda e: e.code.is_coherent) | (atomic & accesses)
    available, visible = coherent & writes, coherent & reads
    all_available = each(lambda e: e.code.makes_available) & releases
    all_visible = each(lambda e: e.code.makes_visible) & acquires

    same_invocation = alike(lambda e: e.who)
    families = np.array([p.queue_family for p in place])
    workgroups = np.array([(p.queue_family << 8) + p.workgroup for p in place])
    subgroups = (workgroups << 8) + np.array([p.subgroup for p in place])
    near = {
        DEVICE: np.ones((count, count), bool),
        QUEUE_FAMILY: families[:, None] == families,
        WORKGROUP: workgroups[:, None] == workgroups,
        SUBGROUP: subgroups[:, None] == subgroups,
    }
    program_order = same_invocation & before
    same_reference = alike(lambda e: e.code.variable) & between(accesses, accesses)
    same_location = alike(lambda e: test.location(e.code.variable)) & between(accesses, accesses)
    in_scope = np.zeros((count, count), bool)
    for level, together in near.items():
        in_scope |= together & between(scope >= level, scope >= level)
    mutual = same_location & same_reference & between(atomic, atomic) & in_scope & ~identity

    storage = [{c.storage} if c.reads or c.writes else set() for c in code]
    semantics = [set(c.semantics) if c.acquires or c.releases else set() for c in code]
    classes = sorted(set().union(*storage, *semantics))

    def of(sets: list[set[int]], which: int) -> npt.NDArray[Any]:
        return np.array([which in s for s in sets])

    included = same_reference & np.outer(coherent, np.ones(count, bool))
    included |= included.T
    to_fence, from_fence = np.zeros((2, count, count), bool)
    for which in classes:
        stored, meant = of(storage, which), of(semantics, which)
        included |= between(stored, meant & all_available) | between(meant & all_visible, stored)
        to_fence |= program_order & between(stored, meant)
        from_fence |= program_order & between(meant, stored)

    read_from = np.zeros((count, count), bool)
    for number, event in enumerate(events):
        if event.code.reads and event.source >= 0:
            read_from[event.source, number] = True
    order = mutual & before & between(writes, writes)
    following = order & ~_join(order, order)
    chain = _closed(_join(following, only(reads & writes))) | identity
    own = _join(only(releases & atomic), chain)
    behind = _join(only(writes & atomic), chain)
    flag = read_from & mutual
    starts = own | _join(only(releases & fence), from_fence, behind)
    ends = only(acquires & atomic) | _join(only(atomic & reads), to_fence, only(acquires & fence))
    instances = alike(lambda e: e.code.instance) & between(is_barrier, is_barrier) & ~identity
    waits = _join(
        only(releases & fence), program_order | identity, instances & in_scope,
        program_order | identity, only(acquires & fence),
    )  # fmt: skip
    synchronized = in_scope & (_join(starts, flag, ends) | waits)

    happens = program_order.copy()
    for size in range(1, len(classes) + 1):
        for chosen in combinations(classes, size):
            meant = np.all([of(semantics, which) for which in chosen], axis=0)
            stored = np.any([of(storage, which) for which in chosen], axis=0)
            happens |= _closed(
                (synchronized & between(meant, meant))
                | (program_order & between(stored | meant, releases & meant))
                | (program_order & between(acquires & meant, stored | meant))
            )

    # Paths of operations that make a write available to ever wider domains, and of those that make
    # ever narrower ones visible to a read.
    levels = (SUBGROUP, WORKGROUP, QUEUE_FAMILY, DEVICE)
    makes = {n: only((available | all_available) & (scope >= n)) for n in levels}
    sees = {n: only((visible | all_visible) & (scope >= n)) for n in levels}
    to_domain: dict[int, Relation] = {}
    from_domain: dict[int, Relation] = {}
    for level in levels:
        path, back = identity, identity
        for narrower in levels[:level]:
            link = happens & near[narrower] & included
            path = _join(path, identity | _join(to_domain[narrower], link))
            back = _join(identity | _join(link, from_domain[narrower]), back)
        to_domain[level] = _join(path, makes[level])
        from_domain[level] = _join(sees[level], back)

    first = _join(only(writes & public), (program_order | identity) & included)
    second = _join((program_order | identity) & included, only(reads & public))
    ordered = happens & same_invocation & same_reference
    ordered |= happens & between(reads & public, public)
    for level in levels:
        done = _join(first, to_domain[level], happens & near[level])
        ordered |= same_reference & _join(done, only(writes & public))
        ordered |= same_reference & _join(done, from_domain[level], second)
    ordered &= same_location
    conflict = between(writes, accesses) | between(accesses, writes)
    race = same_location & conflict & ~identity & ~mutual & ~ordered & ~ordered.T
    return {(int(a), int(b)) for a, b in np.argwhere(race & before)}
