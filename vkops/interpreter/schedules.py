"""The orders in which workgroups and subgroups are started.

A schedule is named by a text such as "descending" or "shuffled:3", in which numbers follow colons.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from vkops.interpreter.operations import Array

ASCENDING, DESCENDING = "ascending", "descending"

MAX_TEAMS = 4
"""The number of teams that take turns; more make a run slower."""


@dataclass(frozen=True)
class Sizes:
    """The number of workgroups, of subgroups in each, and of workgroups that run at once at most.

    ``has_atomics`` says whether invocations can wait for others.
    """

    groups: int
    subgroups: int
    together: int
    has_atomics: bool


@dataclass(frozen=True)
class Rounds:
    """Teams of subgroups that take turns: those of ``first``, then those of ``round`` for ever.

    ``teams`` has the team of each subgroup of each workgroup. A turn ends at the next read of
    memory that invocations share; or, with ``by_iteration``, at the end of an iteration of a loop.
    """

    teams: Array
    first: Sequence[int]
    round: Sequence[int]
    by_iteration: bool


@dataclass(frozen=True)
class Batch:
    """Workgroups that begin together; the next batch begins when these have ended.

    ``turns`` are the ranks of the subgroups of a workgroup: a subgroup continues only while those
    with lower ranks wait at a barrier or have ended. Without turns, all continue together. In
    ``rounds``, teams of the subgroups that may continue take turns.
    """

    groups: Array
    turns: Array | None = None
    rounds: Rounds | None = None


def _batches(order: Array, size: int, turns: Array | None = None) -> Iterator[Batch]:
    for first in range(0, len(order), size):
        yield Batch(order[first : first + size], turns)


def _ascending(sizes: Sizes) -> Iterator[Batch]:
    """Start half of the workgroups first, if invocations can wait for those that begin later."""
    half = -(-sizes.groups // 2) if sizes.has_atomics else sizes.groups
    return _batches(np.arange(sizes.groups), min(sizes.together, half))


def _descending(sizes: Sizes) -> Iterator[Batch]:
    """Start all workgroups at once, in descending order."""
    return _batches(np.arange(sizes.groups)[::-1], sizes.together)


def _shuffled(sizes: Sizes, seed: int) -> Iterator[Batch]:
    """Start some workgroups at once; their subgroups run one after the other."""
    random = np.random.default_rng(seed)
    order, size = _some(sizes, random)
    return _batches(order, size, random.permutation(sizes.subgroups))


def _some(sizes: Sizes, random: np.random.Generator, least: int = 1) -> tuple[Array, int]:
    """Return an order of workgroups, and the number that begin at once."""
    most = min(sizes.groups, sizes.together)
    size = int(random.integers(min(least, most), most + 1))
    size = max(size, -(-sizes.groups // 8))  # limits the number of batches, because each takes time
    return random.permutation(sizes.groups), min(size, sizes.together)


def _rounds(sizes: Sizes, seed: int) -> Iterator[Batch]:
    """Start some workgroups at once; some of the subgroups of each take turns."""
    random = np.random.default_rng(seed)
    order, size = _some(sizes, random, 2)
    early = random.integers(min(2, sizes.subgroups), sizes.subgroups + 1)
    turns = np.maximum(random.permutation(sizes.subgroups) - early + 1, 0)
    by_iteration = bool(random.integers(2))
    for batch in _batches(order, size, turns):
        shape = len(batch.groups), sizes.subgroups
        teams = random.permutation(shape[0] * shape[1]) % MAX_TEAMS
        count = int(np.amax(teams)) + 1
        first, more = (random.integers(count, size=random.integers(n)) for n in (2, 3))
        round_ = random.permutation([*range(count), *more])
        rounds = Rounds(teams.reshape(shape), first.tolist(), round_.tolist(), by_iteration)
        yield Batch(batch.groups, turns, rounds)


def _first(sizes: Sizes, group: int, subgroup: int = 0) -> Iterator[Batch]:
    """Run one workgroup before the others, and in it one subgroup before the others."""
    group, subgroup = group % sizes.groups, subgroup % sizes.subgroups
    turns = np.arange(1, sizes.subgroups + 1)
    turns[subgroup] = 0
    yield Batch(np.array([group]), turns)
    yield from _batches(np.delete(np.arange(sizes.groups), group), sizes.together)


SCHEDULES: dict[str, tuple[Callable[..., Iterator[Batch]], range]] = {
    ASCENDING: (_ascending, range(1)),
    DESCENDING: (_descending, range(1)),
    "shuffled": (_shuffled, range(1, 2)),
    "rounds": (_rounds, range(1, 2)),
    "first": (_first, range(1, 3)),
}
"""By name: a function that yields batches, and the possible counts of numbers in the name."""


FORMS = "ascending, descending, shuffled:SEED, rounds:SEED or first:WORKGROUP[:SUBGROUP]"


def batches(schedule: str, sizes: Sizes) -> Iterator[Batch]:
    """Yield the workgroups that begin at once, as a schedule says.

    Raises ValueError if there is no such schedule.

    >>> sizes = Sizes(groups=3, subgroups=1, together=2, has_atomics=False)
    >>> [batch.groups.tolist() for batch in batches("descending", sizes)]
    [[2, 1], [0]]
    """
    name, *numbers = schedule.split(":")
    function, counts = SCHEDULES.get(name, (_ascending, range(0)))
    is_known = len(numbers) in counts and all(n.isascii() and n.isdecimal() for n in numbers)
    if not is_known or any(len(n) > 9 for n in numbers):
        raise ValueError(schedule)
    return function(sizes, *map(int, numbers))


def explored(count: int, seed: int) -> list[str]:
    """Return the names of some schedules, those with a seed behind those without numbers.

    >>> explored(5, seed=7)
    ['ascending', 'descending', 'shuffled:7', 'rounds:7', 'shuffled:8']
    """
    fixed = [name for name, (_, counts) in SCHEDULES.items() if 0 in counts]
    seeded = [name for name, (_, counts) in SCHEDULES.items() if counts == range(1, 2)]
    return [*fixed, *(f"{name}:{seed + n}" for n in range(count) for name in seeded)][:count]


def is_schedule(schedule: str) -> bool:
    """Whether there is a schedule with this name."""
    try:
        next(batches(schedule, Sizes(1, 1, 1, has_atomics=False)))
    except (ValueError, AttributeError):
        return False
    return True


def described(schedule: str) -> str:
    """Return a schedule in a sentence, such as "descending order"."""
    return f"the order {schedule}" if ":" in schedule else f"{schedule} order"
