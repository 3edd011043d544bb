"""The memory traffic of dispatches, counted from region tables: no device is needed.

A GPU executes an access for all invocations of a subgroup at once, and its memory moves whole
segments. So an access moves each segment once that any of its invocations touches.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from vkops.gpu.kernels.layout import HEADER_WORDS, LINE, WORKGROUP_SIZE
from vkops.gpu.run.encoded_plan import Dispatch
from vkops.gpu.traffic.accesses import Access, ReadIndex, accesses
from vkops.gpu.traffic.items import Items, Numbers
from vkops.plan.rounding import ceil_div

SUBGROUPS = (32, 64)
"""The numbers of invocations of a subgroup: 32 on NVIDIA's GPUs and AMD's since RDNA, else 64."""

SEGMENTS = (32, 64, LINE)
"""Bytes that a GPU's memory or one of its caches moves at a time; a cache keeps LINE."""

MAX_DISTANCES = 1024
"""Distances between neighbouring invocations that are distinguished."""

GROUPS_AT_ONCE = 512
"""Workgroups of 64 invocations whose accesses are in memory at once."""

MAX_GROUPS_COUNTED = 1 << 17
"""Workgroups of 64 invocations up to which all are counted; else, parts that are evenly apart."""


@dataclass
class Totals:
    """The totals of the loads of some dispatches, or of their stores.

    Attributes:
        segments: bytes of touched segments, by the size of subgroups and the bytes of a segment.
        memory: bytes of segments that are not in the cache, for the last of these sizes.
        count: the number of accesses by subgroups of 64.
        active: the invocations that take part in these.
        requested: the bytes that these invocations access.
        distances: bytes between the addresses of neighbouring invocations, and how often they
            occur in the first workgroups.
    """

    segments: defaultdict[tuple[int, int], float] = field(
        default_factory=lambda: defaultdict(float)
    )
    memory: float = 0
    count: float = 0
    active: float = 0
    requested: float = 0
    distances: Counter[int] = field(default_factory=Counter)


@dataclass
class Traffic:
    """The traffic of some dispatches."""

    loads: Totals = field(default_factory=Totals)
    stores: Totals = field(default_factory=Totals)
    is_estimate: bool = False


def count(dispatches: Iterable[Dispatch], read_index: ReadIndex, cache: int) -> Traffic:
    """Count the traffic of dispatches.

    Consecutive workgroups whose accesses touch ``cache`` bytes in all move each segment once.
    """
    traffic = Traffic()
    for dispatch in dispatches:
        table = dispatch.table
        vectors = table.words(dispatch.starts).reshape(-1, HEADER_WORDS)
        groups = ceil_div(int(vectors[0, 1]), table.kernel.workgroup)
        at_once = GROUPS_AT_ONCE * WORKGROUP_SIZE // table.kernel.workgroup
        chunks = ceil_div(groups, at_once)
        counted = min(chunks, MAX_GROUPS_COUNTED // GROUPS_AT_ONCE)
        counter = _Counter(traffic, cache, chunks / counted)
        for chunk in (np.arange(counted) * chunks // counted).tolist():
            end = min((chunk + 1) * at_once, groups)
            groups_now = np.arange(chunk * at_once, end)
            items = Items(table.kernel, vectors, groups_now, aligned=table.aligned)
            counter.add(accesses(items, read_index))
    return traffic


class _Counter:
    """Adds the accesses of workgroups to ``traffic``, each ``factor`` times."""

    def __init__(self, traffic: Traffic, cache: int, factor: float) -> None:
        self._traffic, self._cache, self._factor = traffic, cache, factor
        traffic.is_estimate |= factor > 1
        self._touched = 0
        self._kept = np.empty(0, np.int64)

    def add(self, made: Iterable[Access]) -> None:
        """Count the accesses of workgroups that come after all others."""
        lines = []
        for access in made:
            if not access.active.any():
                continue
            totals = self._traffic.stores if access.is_store else self._traffic.loads
            for size in SUBGROUPS:
                address = np.where(access.active, access.address, -1).reshape(-1, size)
                if size == WORKGROUP_SIZE:
                    self._describe(totals, access, address)
                address.sort(axis=1)
                for segment in SEGMENTS:
                    number = address // segment
                    is_new = number >= 0
                    is_new[:, 1:] &= number[:, 1:] != number[:, :-1]
                    found = int(np.count_nonzero(is_new))
                    totals.segments[size, segment] += self._factor * segment * found
            # The last ones: lines of workgroups.
            lines.append((np.nonzero(is_new)[0], number[is_new] * 2 + access.is_store))
        self._move(*map(np.concatenate, zip(*lines, strict=True)))

    def _move(self, groups: Numbers, lines: Numbers) -> None:
        """Count the lines that differ, in each window of workgroups."""
        touched = np.bincount(groups) * LINE
        windows = (self._touched + np.cumsum(touched) - touched) // self._cache
        self._touched += int(touched.sum())
        keys = np.unique(np.concatenate([self._kept, windows[groups] << 40 | lines]))
        stores = np.count_nonzero(keys & 1) - np.count_nonzero(self._kept & 1)
        loads = keys.size - self._kept.size - stores
        self._traffic.loads.memory += self._factor * LINE * loads
        self._traffic.stores.memory += self._factor * LINE * stores
        self._kept = keys[keys >> 40 == windows[-1]]

    def _describe(self, totals: Totals, access: Access, address: Numbers) -> None:
        """Add how many invocations take part, and how far apart their addresses are."""
        active = access.active.reshape(address.shape)
        totals.count += self._factor * np.count_nonzero(active.any(axis=1))
        totals.active += self._factor * np.count_nonzero(active)
        totals.requested += self._factor * access.nbytes * np.count_nonzero(active)
        if len(totals.distances) < MAX_DISTANCES:
            both = active[:, 1:] & active[:, :-1]
            distances = (address[:, 1:] - address[:, :-1])[both]
            values, numbers = np.unique(distances, return_counts=True)
            totals.distances.update(dict(zip(values.tolist(), numbers.tolist(), strict=True)))
