"""From a plan to dispatches: encoded once; each binding only adds addresses."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from vkops.gpu.copies.copy_costs import Chosen
from vkops.gpu.copies.region_copies import Copy, EncodedCopies
from vkops.gpu.kernels.choice import STREAM, STREAMS, VECTOR, Kernel, choose_kernel
from vkops.gpu.kernels.encoding import RegionTable, Tuning, Words, encode
from vkops.gpu.kernels.layout import (
    ALL_WORDS,
    HEADER_WORDS,
    MAX_RECORDS,
    RECORD_WORDS,
    WORKGROUP_SIZE,
    Head,
    Header,
    Segment,
    word,
)
from vkops.gpu.memory.heaps import Allocation, Heap
from vkops.plan.algebra import optimize
from vkops.plan.cut import cut
from vkops.plan.region import CopyPlan, Output, Region
from vkops.plan.rounding import ceil_div

MIN_SPLIT_BYTES = 1 << 20
"""Bytes of outputs from which a plan may be split into plans with kernels of their own."""

MAX_SPLIT_REGIONS = 64
"""Regions of a plan up to which that is considered."""

_Numbers = npt.NDArray[np.intp]


@dataclass(slots=True, eq=False)
class Dispatch:
    """One dispatch, ready to run: a kernel, the heaps it reads and writes, and the region table.

    ``groups`` is the number of workgroups: a power of two, so that few pipelines are needed.
    """

    kernel: Kernel
    sources: tuple[Heap, ...]
    target: Heap
    words: Words
    groups: int


Work = Dispatch | Copy


class PreparedPlan(Protocol):
    """A plan that was encoded for a device; it only lacks the memory."""

    def bind(self, inputs: Sequence[Allocation], outputs: Sequence[Allocation]) -> Sequence[Work]:
        """Return what to run on these allocations, in order; it can be run many times."""


class EncodedPlan:
    """A plan as a region table, to be bound again and again: only addresses are added then."""

    def __init__(self, plan: CopyPlan, tuning: Tuning, word: int = ALL_WORDS) -> None:
        """Encode a plan; ``word`` is the only word of each element that a scatter writes."""
        self._plan = optimize(plan)
        self._tuning = tuning
        self._word = word
        self._table = table = encode(self._plan, tuning, word=word)
        self._unit = table.kernel.unit
        self._in_one_heap: list[_UnboundDispatch] | None = None
        self._cut: tuple[object, EncodedPlan] | None = None

    def bind(self, inputs: Sequence[Allocation], outputs: Sequence[Allocation]) -> list[Dispatch]:
        """Return dispatches on these allocations, which can be run many times."""
        allocations = [*outputs, *inputs[::-1]]
        heap = allocations[0].heap
        if heap is not None and {allocation.heap for allocation in allocations} == {heap}:
            # The usual case: all memory is in one heap.
            if self._in_one_heap is None:
                records = np.arange(len(self._table.records))
                kernel = self._table.kernel
                self._in_one_heap = list(_unbound_dispatches(self._table, kernel, records))
            bases = _bases(allocations, self._unit)
            return [unbound.bind((heap,), heap, bases) for unbound in self._in_one_heap]
        if any(allocation.heap is None for allocation in allocations):
            return self._bind_pieces(inputs, outputs)
        table = self._table
        groups = list(_by_heaps(table, inputs, outputs))
        if table.kernel in STREAMS and any(
            len(group.sources) > self._tuning.sources for group in groups
        ):
            table = encode(self._plan, self._tuning, streams=False)
            groups = list(_by_heaps(table, inputs, outputs))
        bases = _bases(allocations, table.kernel.unit)
        return [
            unbound.bind(group.sources, group.target, bases)
            for group in groups
            for unbound in _unbound_dispatches(table, group.kernel, group.records, group.source)
        ]

    def _bind_pieces(
        self, inputs: Sequence[Allocation], outputs: Sequence[Allocation]
    ) -> list[Dispatch]:
        """Bind allocations of several ranges each, with the plan cut at their bounds."""
        cuts = (
            [_pieces(a, nbytes) for a, nbytes in zip(inputs, self._plan.inputs, strict=True)],
            [_pieces(a, o.nbytes) for a, o in zip(outputs, self._plan.outputs, strict=True)],
        )
        known = self._cut
        if known is None or known[0] != cuts:
            known = self._cut = cuts, EncodedPlan(cut(self._plan, *cuts), self._tuning, self._word)
        flat = ([r for a in allocations for r in a.ranges] for allocations in (inputs, outputs))
        return known[1].bind(*flat)


class CopiedPlan:
    """A plan that Vulkan's copies execute, or shaders where its allocations do not allow that."""

    def __init__(self, plan: CopyPlan, tuning: Tuning, chosen: Chosen) -> None:
        self._plan = plan
        self._tuning = replace(tuning, copies=None)
        self._copies = EncodedCopies(plan, chosen)
        self._by_shader: PreparedPlan | None = None

    @property
    def can_import(self) -> bool:
        """Whether the copies can read imported arrays."""
        return self._copies.can_import

    def can_copy(self, inputs: Sequence[Allocation], outputs: Sequence[Allocation]) -> bool:
        """Whether ``bind`` returns copies, which unlike shaders can read imported arrays."""
        return self._copies.can_bind(inputs, outputs)

    def bind(self, inputs: Sequence[Allocation], outputs: Sequence[Allocation]) -> Sequence[Work]:
        """Return copies between these allocations, or dispatches where regions cannot be copied."""
        copies = self._copies.bind(inputs, outputs)
        if copies is not None:
            return copies
        if self._by_shader is None:
            self._by_shader = _prepare_copies(self._plan, self._tuning)
        return self._by_shader.bind(inputs, outputs)


class PreparedSequence:
    """A plan as several prepared plans, which run one after the other.

    Each of them makes, or changes, the outputs whose numbers stand with it.
    """

    def __init__(self, parts: Sequence[tuple[Sequence[int], PreparedPlan]]) -> None:
        self._parts = parts

    def bind(self, inputs: Sequence[Allocation], outputs: Sequence[Allocation]) -> Sequence[Work]:
        """Return dispatches on these allocations, which can be run many times."""
        return [
            dispatch
            for numbers, part in self._parts
            for dispatch in part.bind(inputs, [outputs[number] for number in numbers])
        ]


def prepare(plan: CopyPlan, tuning: Tuning) -> PreparedPlan:
    """Encode a plan: as one, unless its regions need kernels of their own.

    Regions with indices do. Of elements of several words that are scattered, each word is written
    by dispatches of its own, where the words before it are the element's: otherwise a target that
    is written several times could become a mixture of its values.
    """
    if all(region.kind == "copy" for _, region in plan.regions):
        return _prepare_copies(plan, tuning)
    parts: list[tuple[Sequence[int], PreparedPlan]] = []
    for kind in ("copy", "gather", "scatter"):
        own = _regions(plan, lambda region: region.kind == kind)  # noqa: B023
        numbers, part = list(own), _only(plan, own)
        words = plan.element_size // 4 if kind == "scatter" else 1
        if kind == "copy" and numbers:
            parts.append((numbers, _prepare_copies(part, tuning)))
        elif numbers:
            for word in range(words) if words > 1 else [ALL_WORDS]:
                parts.append((numbers, EncodedPlan(part, tuning, word)))
    return PreparedSequence(parts)


def _prepare_copies(plan: CopyPlan, tuning: Tuning) -> PreparedPlan:
    """Encode a plan without indices: as one, unless parts of much data can be made faster."""
    nbytes = sum(output.nbytes for output in plan.outputs)
    costs = tuning.copies
    can_copy = costs is not None and costs.can_save(nbytes)
    if not can_copy and nbytes < MIN_SPLIT_BYTES:
        return EncodedPlan(plan, tuning)
    plan = optimize(plan)
    count = sum(len(output.regions) for output in plan.outputs)
    if costs is not None and can_copy:
        chosen, saved = costs.choose(plan)
        rest = _regions(plan, lambda region: id(region) not in chosen)
        if chosen and not rest:
            return CopiedPlan(plan, tuning, chosen)
        if saved > costs.command:
            copied = _regions(plan, lambda region: id(region) in chosen)
            by_shader = _prepare_copies(_only(plan, rest), replace(tuning, copies=None))
            return PreparedSequence(
                [
                    (list(copied), CopiedPlan(_only(plan, copied), tuning, chosen)),
                    (list(rest), by_shader),
                ]
            )
    if 1 < count <= MAX_SPLIT_REGIONS and nbytes >= MIN_SPLIT_BYTES:
        whole = choose_kernel(plan, tuning.sources)
        if not _is_fastest(whole):
            groups: dict[Kernel, dict[int, list[Region]]] = {}
            for kernel, number, regions in _parts(plan, tuning):
                groups.setdefault(kernel, {}).setdefault(number, []).extend(regions)
            if len(groups) > 1:
                return PreparedSequence(
                    [(list(own), EncodedPlan(_only(plan, own), tuning)) for own in groups.values()]
                )
    return EncodedPlan(plan, tuning)


def _regions(plan: CopyPlan, wanted: Callable[[Region], bool]) -> dict[int, Sequence[Region]]:
    """Some regions, by the numbers of their outputs."""
    chosen = (
        (number, [*filter(wanted, output.regions)]) for number, output in enumerate(plan.outputs)
    )
    return {number: regions for number, regions in chosen if regions}


def _is_fastest(kernel: Kernel) -> bool:
    """Whether a kernel moves vectors only, without looking at what is at their edges."""
    return kernel in STREAMS or kernel.unit == VECTOR


def _parts(plan: CopyPlan, tuning: Tuning) -> Iterator[tuple[Kernel, int, Sequence[Region]]]:
    """Yield the outputs, or else their regions: the best kernel, the output's number, regions."""
    for number, output in enumerate(plan.outputs):
        own = _own_kernel(plan, number, output.regions, tuning)
        if _is_fastest(own):
            yield own, number, output.regions
            continue
        for region in output.regions:
            yield _own_kernel(plan, number, [region], tuning), number, [region]


def _own_kernel(plan: CopyPlan, number: int, regions: Sequence[Region], tuning: Tuning) -> Kernel:
    return choose_kernel(optimize(_only(plan, {number: regions})), tuning.sources)


def _only(plan: CopyPlan, regions: Mapping[int, Sequence[Region]]) -> CopyPlan:
    """The plan of some regions, by the numbers of their outputs."""
    outputs = [Output(plan.outputs[number].nbytes, tuple(own)) for number, own in regions.items()]
    return replace(plan, outputs=tuple(outputs))


def _pieces(allocation: Allocation, nbytes: int) -> list[int]:
    """The bytes of a tensor in each range of its allocation, which may be longer."""
    *first, _ = (range_.nbytes for range_ in allocation.ranges)
    return [*first, nbytes - sum(first)]


def _bases(allocations: Sequence[Any], unit: int) -> Words:
    return np.array([*[allocation.offset // unit for allocation in allocations], 0], np.uint32)


class _UnboundDispatch:
    """Records of a region table for one dispatch, without the addresses."""

    __slots__ = ("_bases", "_groups", "_kernel", "_places", "_words")

    def __init__(
        self, table: RegionTable, kernel: Kernel, chosen: _Numbers, source: _Numbers | int
    ) -> None:
        """Number the items of all regions, and put the header before the records."""
        records, items = table.records[chosen], table.items[chosen]
        ends = np.cumsum(items)
        total = int(ends[-1])
        records[:, word(Head, "first_item")] = ends - items
        if kernel == STREAM:
            records[:, word(Segment, "source")] = source
        busy = ceil_div(total, WORKGROUP_SIZE)
        groups = 1 << (busy - 1).bit_length()
        spread = (busy << 32) // groups if busy < groups else 0
        header = np.array(Header(len(records), total, spread), np.uint32)
        self._kernel = kernel
        self._groups = groups
        self._words = np.concatenate([header, records.ravel()])
        # The words that are addresses, and which base each counts from: those of all outputs, of
        # all inputs in reverse, and 0 for constants, whose input is -1.
        starts = HEADER_WORDS + RECORD_WORDS * np.arange(len(records))
        self._places = np.concatenate([starts + word(Head, field) for field in ("dst", "src")])
        self._bases = np.concatenate([table.outputs[chosen], -2 - table.inputs[chosen]])

    def bind(self, sources: tuple[Heap, ...], target: Heap, bases: Words) -> Dispatch:
        words = self._words.copy()
        words[self._places] += bases[self._bases]
        return Dispatch(self._kernel, sources, target, words, self._groups)


def _unbound_dispatches(
    table: RegionTable, kernel: Kernel, chosen: _Numbers, source: _Numbers | None = None
) -> Iterator[_UnboundDispatch]:
    """Split records into as many dispatches as they need."""
    start = 0
    while start < len(chosen):
        end = start + MAX_RECORDS
        # A record without items stays with those before it.
        while end < len(chosen) and not table.items[chosen[end]]:
            end -= 1
        yield _UnboundDispatch(
            table, kernel, chosen[start:end], 0 if source is None else source[start:end]
        )
        start = end


class _Group(NamedTuple):
    """Records that one dispatch can have, and which of the source heaps each reads."""

    kernel: Kernel
    sources: tuple[Heap, ...]
    target: Heap
    records: _Numbers
    source: _Numbers


def _by_heaps(
    table: RegionTable, inputs: Sequence[Any], outputs: Sequence[Any]
) -> Iterator[_Group]:
    """Split a table by heaps: one source and one target each, but all sources of a region."""
    heads = np.nonzero(table.items)[0].tolist()
    groups: dict[tuple[tuple[Heap, ...], Heap], list[int]] = {}
    # A constant reads nothing; any heap can be its source.
    heaps = [*(allocation.heap for allocation in inputs), outputs[0].heap]
    for start, end in pairwise([*heads, len(table.items)]):
        sources = tuple(dict.fromkeys(heaps[number] for number in table.inputs[start:end]))
        target = outputs[table.outputs[start]].heap
        groups.setdefault((sources, target), []).extend(range(start, end))
    for (sources, target), numbers in groups.items():
        records = np.array(numbers)
        source = [sources.index(heaps[number]) for number in table.inputs[records]]
        several = len(sources) > 1 and table.kernel in STREAMS
        kernel = STREAM if several else table.kernel
        yield _Group(kernel, sources, target, records, np.array(source))
