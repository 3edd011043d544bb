"""From a plan to dispatches and copies: encoded once; each binding only adds addresses."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from math import prod
from operator import itemgetter
from typing import Any

import numpy as np
import numpy.typing as npt

from vkops.extent import Extent, slice_extents
from vkops.gpu.adapters.kompute import Native
from vkops.gpu.copies.encoded import Copy, choose
from vkops.gpu.copies.rule import SHADERS
from vkops.gpu.kernels import layout
from vkops.gpu.kernels.choice import GRIDS, STREAM, STREAMS, VECTOR, Kernel
from vkops.gpu.kernels.encoding import RegionTable, Tuning, Words, encode
from vkops.gpu.memory.pools import DeviceMemory, Extents
from vkops.gpu.run.vulkan_device import VulkanDevice
from vkops.plan.algebra import optimize
from vkops.plan.cut import cut
from vkops.plan.region import CopyPlan, Output, Region
from vkops.plan.rounding import ceil_div, factor
from vkops.system.threads import cached_property

MIN_SPLIT_BYTES = 1 << 20
"""Bytes of outputs from which a plan may be split into plans with kernels of their own."""

MAX_SPLIT_REGIONS = 64
"""The number of regions above which splitting a plan is not considered."""

MAX_EMPTY = 2
"""The factor by which a table's items may grow so that each workgroup belongs to one record."""

_FIRST_ITEM, _DST, _SRC = (
    layout.word(layout.Head, field) for field in ("first_item", "dst", "src")
)
_SEGMENT_SOURCE = layout.word(layout.Segment, "source")

_Records = npt.NDArray[np.intp]
"""The numbers of records in a table, or a number for each of them."""

_heap, _start = itemgetter(0), itemgetter(1)


@dataclass(slots=True, eq=False)
class Dispatch:
    """A dispatch of a kernel: its table, and the memory that it reads and writes.

    ``starts`` holds the bytes at which the outputs and the inputs begin. ``ordered`` says that the
    dispatch must see what earlier operations wrote.
    """

    table: DispatchTable
    sources: tuple[DeviceMemory, ...]
    target: DeviceMemory
    starts: Words
    ordered: bool = True

    command = "vkCmdDispatch"

    @property
    def heaps(self) -> list[DeviceMemory]:
        """The memory of each binding after the table, in order."""
        first, *others = self.sources
        kernel = self.table.kernel
        others += [first] * (kernel.sources - len(self.sources))
        # Some kernels declare the target twice, as vectors and as words; others ignore the latter.
        return [first, *[self.target] * (1 if kernel.indexed else 2), *others]

    def operation(self, device: VulkanDevice) -> Native:
        """Return the operation of the native module."""
        heaps = [memory.native for memory in self.heaps]
        return self.table.step(device, ordered=self.ordered).bind(heaps, self.starts)


PlanWork = Dispatch | Copy
"""The operations that a plan becomes."""


class EncodedPlan:
    """A plan as copies and region tables, which can be bound many times: only addresses differ.

    Copies and tables run in order: regions that scatter run after those that do not.
    """

    def __init__(self, plan: CopyPlan, tuning: Tuning, element_size: int | None = None) -> None:
        """Encode a plan; if it is already optimized, ``element_size`` is the size before that."""
        self._element_size = size = element_size or plan.element_size
        self._plan = plan = optimize(plan)
        self._tuning = tuning
        self._copies, rest = choose(plan, tuning.copies)
        self._tables: list[_Table] = []
        if rest is not None:
            self._tables = [_Table(rest, *part, tuning) for part in _parts(rest, tuning, size)]
        self._cut: tuple[object, EncodedPlan] | None = None

    @cached_property
    def _by_shaders(self) -> EncodedPlan:
        """The same plan without copies."""
        return EncodedPlan(self._plan, replace(self._tuning, copies=SHADERS), self._element_size)

    def bind(self, inputs: Sequence[Extents], outputs: Sequence[Extents]) -> list[PlanWork]:
        """Return what to run on this memory, in order; it can be run many times."""
        read, written = [*chain.from_iterable(inputs)], [*chain.from_iterable(outputs)]
        if len(read) > len(inputs) or len(written) > len(outputs):
            return self._bind_pieces(inputs, outputs)
        work: list[PlanWork] = []
        if self._copies is not None:
            copied = self._copies.bind(read, written)
            if copied is None:
                return self._by_shaders.bind(inputs, outputs)
            work += copied
        for table in self._tables:
            extents = [*written, *read[::-1]]
            starts = np.array([*map(_start, extents), 0], np.uint32)
            heap = extents[0].resource
            if len({*map(_heap, extents)}) == 1:  # the usual case
                work += [Dispatch(part, (heap,), heap, starts) for part in table.in_one_heap]
            else:
                work += self._bind_heaps(table, read, written, starts)
        # All but scatters write different bytes, so most need no barrier. But a shader writes
        # whole words, which can share bytes with a copy; and scatters overwrite earlier results.
        for before, each in pairwise(work):
            if type(each) is Dispatch:
                each.ordered = type(before) is not Dispatch or each.table.kernel.scatters
            else:
                each.ordered = False
        return work

    def operations(
        self, device: VulkanDevice, inputs: Sequence[Extents], outputs: Sequence[Extents]
    ) -> list[Native]:
        """Return what to run on this memory as operations of the native module."""
        return [each.operation(device) for each in self.bind(inputs, outputs)]

    def steps(self, device: VulkanDevice) -> list[Native]:
        """Return the steps of the native module for tensors that are all in one heap.

        The list is empty if the plan needs more than copies of runs and dispatches.
        """
        steps, copied = [], self._copies
        if copied is not None:
            runs = copied.runs(device.module)
            if runs is None:
                return []
            steps.append(device.module.Step(runs))
        for part in chain.from_iterable(table.in_one_heap for table in self._tables):
            # The first dispatch must see what earlier work and the copies wrote. The others write
            # different bytes than it does and need no barrier, except scatters.
            ordered = len(steps) == (copied is not None) or part.kernel.scatters
            steps.append(part.step(device, ordered=ordered))
        return steps

    def in_one_heap(
        self, heap: DeviceMemory, inputs: Sequence[int], outputs: Sequence[int]
    ) -> Iterator[tuple[CopyPlan, list[Dispatch]]]:
        """Yield the plan of each part that shaders execute, with its dispatches.

        ``inputs`` and ``outputs`` hold the offset of each tensor in the heap.
        """
        starts = np.array([*outputs, *inputs[::-1], 0], np.uint32)
        for table in self._tables:
            yield table.plan, [Dispatch(part, (heap,), heap, starts) for part in table.in_one_heap]

    def _bind_heaps(
        self, table: _Table, read: Sequence[Extent], written: Sequence[Extent], starts: Words
    ) -> Iterator[Dispatch]:
        """Bind a table to extents of several heaps."""
        # A region of a constant reads nothing, so any heap can be bound as its source.
        heaps = [*map(_heap, read), written[0].resource]
        encoded = table.encoded
        groups = _by_heaps(encoded, heaps, written)
        streams = encoded.kernel in STREAMS
        if streams and any(len(sources) > self._tuning.sources for sources, _ in groups):
            streams, encoded = False, table.without_streams
            groups = _by_heaps(encoded, heaps, written)
        for (sources, target), numbers in groups.items():
            records = np.array(numbers)
            source = [sources.index(heaps[number]) for number in encoded.inputs[records]]
            kernel = STREAM if streams and len(sources) > 1 else encoded.kernel
            for part in _tables(encoded, kernel, records, np.array(source)):
                yield Dispatch(part, sources, target, starts)

    def _bind_pieces(self, inputs: Sequence[Extents], outputs: Sequence[Extents]) -> list[PlanWork]:
        """Bind buffers of several extents each, with the plan cut at their bounds."""
        sizes = [output.nbytes for output in self._plan.outputs]
        # Buffers may be larger than the plan's tensors.
        inputs = [slice_extents(e, 0, n) for e, n in zip(inputs, self._plan.inputs, strict=True)]
        outputs = [slice_extents(e, 0, n) for e, n in zip(outputs, sizes, strict=True)]
        cuts = [[[e.nbytes for e in extents] for extents in each] for each in (inputs, outputs)]
        # Read once: another thread may replace it by the plan that is cut for its own buffers.
        last = self._cut
        if last is None or last[0] != cuts:
            last = cuts, EncodedPlan(cut(self._plan, *cuts), self._tuning, self._element_size)
            self._cut = last
        read, written = (
            [(extent,) for extents in tensors for extent in extents]
            for tensors in (inputs, outputs)
        )
        return last[1].bind(read, written)


# -- the parts of a plan, each with a kernel of its own --------------------------------------------


_Regions = Mapping[int, Sequence[Region]]
"""Regions of a plan that get a table of their own, by the numbers of their outputs."""


def _plan_of(regions: _Regions, whole: CopyPlan) -> CopyPlan:
    """Return an optimized plan of some regions only, without the outputs that have none."""
    if [*map(len, regions.values())] == [len(output.regions) for output in whole.outputs]:
        return whole
    outputs = (Output(whole.outputs[n].nbytes, tuple(pieces)) for n, pieces in regions.items())
    return optimize(replace(whole, outputs=tuple(outputs)))


def _parts(plan: CopyPlan, tuning: Tuning, size: int) -> Iterator[tuple[_Regions, int]]:
    """Divide an optimized plan into parts that are executed by one kernel each.

    Regions without indices are one part, or several if that is faster; gathers and scatters are
    parts of their own, which run after the others. Scatters take special care if two of them could
    write to the same place. ``size`` is the size of elements before the plan was optimized:

    - Elements of several words: one dispatch for each word. A dispatch writes its word only if the
      words before it are those of the same element. Otherwise the result could be a mixture of
      the elements that are written to one place.
    - Elements smaller than a word, if there are many: one dispatch for each place in a word, so
      that invocations do not compete for words.

    Each part is yielded with the number of the word or the place that it writes; see
    ``layout.Within``.
    """
    kinds: dict[tuple[str, bool], dict[int, list[Region]]] = {}
    for number, region in plan.regions:
        kind = kinds.setdefault((region.kind, region.has_limits), {})
        kind.setdefault(number, []).append(region)
    if copied := kinds.pop(("copy", False), None):
        for regions in _copied_parts(copied, plan, tuning):
            yield regions, layout.ALL_WORDS
    for (kind_name, _), moved in sorted(kinds.items()):  # "gather" before "scatter"
        if kind_name == "gather":
            yield moved, layout.ALL_WORDS
            continue
        words = size // 4
        if plan.element_size < 4:
            scattered = chain.from_iterable(moved.values())
            words = 4 // plan.element_size
            # The maximum number of stores that can compete for one word.
            stores = [words if _writes_once(region) else prod(region.sizes) for region in scattered]
            words = words if sum(stores) > layout.MAX_EXCHANGES else 1
        for word in range(words) if words > 1 else [layout.ALL_WORDS]:
            yield moved, word


def _writes_once(region: Region) -> bool:
    """Whether a scatter writes each place once at most, whatever the indices are.

    It does if each stride is longer than the distance that all shorter ones reach together, and
    indices do not address memory.
    """
    indices = region.indices
    assert indices is not None
    if indices.limits is not None:
        return False
    strides = (*region.target.strides, *[term.stride for term in indices.terms])
    sizes = (*region.target.sizes, *[term.size for term in indices.terms])
    reach = 0
    for stride, size in sorted(zip(map(abs, strides), sizes, strict=True)):
        if size > 1 and stride <= reach:
            return False
        reach += stride * (size - 1)
    return True


def _copied_parts(copied: _Regions, plan: CopyPlan, tuning: Tuning) -> Iterator[_Regions]:
    """Divide regions without indices into parts, if that is faster and they move much data.

    One kernel for all regions may be slow for some of them. A part has the regions whose best
    kernel is the same: the kernel for their whole output if that is among the fastest, else the
    kernel for the region alone.
    """
    nbytes = sum([output.nbytes for output in plan.outputs])
    count = sum(map(len, copied.values()))
    may_split = nbytes >= MIN_SPLIT_BYTES and 1 < count <= MAX_SPLIT_REGIONS
    groups: dict[Kernel, dict[int, list[Region]]] = {}
    if may_split and not _is_fastest(_kernel(copied, plan, tuning)):
        for number, regions in copied.items():
            best = _kernel({number: regions}, plan, tuning)
            for some in [regions] if _is_fastest(best) else [[region] for region in regions]:
                if len(some) < len(regions):
                    best = _kernel({number: some}, plan, tuning)
                groups.setdefault(best, {}).setdefault(number, []).extend(some)
    yield from groups.values() if len(groups) > 1 else [copied]


def _kernel(regions: _Regions, plan: CopyPlan, tuning: Tuning) -> Kernel:
    """The kernel of a part of a plan."""
    return tuning.choose_kernel(_plan_of(regions, plan), tuning.sources).kernel


def _is_fastest(kernel: Kernel) -> bool:
    """Whether a kernel moves whole vectors, and needs no tests at the edges of runs."""
    return kernel in (*STREAMS, *GRIDS.values()) or kernel.unit == VECTOR


# -- region tables ---------------------------------------------------------------------------------


class _Table:
    """The region table of a part of a plan."""

    def __init__(self, whole: CopyPlan, regions: _Regions, word: int, tuning: Tuning) -> None:
        self.plan, self._tuning, self._word = _plan_of(regions, whole), tuning, word
        self._numbers = np.array([*regions], np.int64)
        self.encoded: RegionTable = self._encode(streams=True)

    def _encode(self, *, streams: bool) -> RegionTable:
        """Encode the part, with outputs numbered as in the whole plan."""
        table = encode(self.plan, self._tuning, streams=streams, word=self._word)
        table.outputs[:] = self._numbers[table.outputs]
        return table

    @cached_property
    def without_streams(self) -> RegionTable:
        """The table for a kernel without streams, whose sources may be in any number of heaps."""
        return self._encode(streams=False)

    @cached_property
    def in_one_heap(self) -> list[DispatchTable]:
        """The dispatches for memory that is all in one heap."""
        records = np.arange(len(self.encoded.records))
        kernel, source = self.encoded.kernel, np.zeros_like(records)
        return list(_tables(self.encoded, kernel, records, source))


class DispatchTable:
    """Records of a region table for one dispatch, without the addresses.

    ``groups`` is the number of workgroups in each dimension: as many as needed, or a few more.
    ``aligned`` says that each workgroup belongs to one record. ``nbytes`` is the number of bytes
    that the dispatch reads and writes.
    """

    __slots__ = ("_bases", "_native", "_places", "_words", "aligned", "groups", "kernel", "nbytes")

    def __init__(
        self, table: RegionTable, kernel: Kernel, chosen: _Records, source: _Records
    ) -> None:
        """Number the items of all regions, and put the header before the records."""
        records, items = table.records[chosen], table.items[chosen]
        # Not the method ``sum``: it imports a module at its first call.
        add: Any = np.add.reduce  # whose types differ between versions of NumPy
        self.nbytes: int = table.nbytes * int(add(items)) // int(add(table.items))
        full = -(-items // kernel.workgroup) * kernel.workgroup
        self.aligned: bool = (
            table.may_align
            and not table.turns
            and (len(records) == 1 or int(full.sum()) <= MAX_EMPTY * int(items.sum()))
        )
        if self.aligned and len(records) > 1:
            items = full
        ends = np.cumsum(items)
        total = int(ends[-1])
        records[:, _FIRST_ITEM] = ends - items
        if kernel == STREAM:
            records[:, _SEGMENT_SOURCE] = source
        turns = factor(len(records)) if table.turns else 0
        header = np.array(layout.Header(len(records), total, turns), np.uint32)
        self.kernel: Kernel = kernel
        self.groups: tuple[int, int, int] = layout.group_counts(ceil_div(total, kernel.workgroup))
        self._words = np.concatenate([header, records.ravel()])
        # The positions of the words that are addresses, and for each the index of its base in
        # ``starts``: first the outputs, at the end the inputs in reverse order, and last a 0 for
        # constants. Input n is at index -2 - n, so that a constant, input -1, is at index -1.
        starts = layout.HEADER_WORDS + layout.RECORD_WORDS * np.arange(len(records))
        self._places = np.concatenate([starts + _DST, starts + _SRC])
        self._bases = np.concatenate([table.outputs[chosen], -2 - table.inputs[chosen]])
        self._native: Native = None

    def step(self, device: VulkanDevice, *, ordered: bool) -> Native:
        """Return a step of the native module."""
        module, kernel = device.module, self.kernel
        if self._native is None:
            self._native = module.Table(self._words, self._places, self._bases, kernel.unit)
        pipeline = device.pipeline(kernel, aligned=self.aligned)
        # The validation layer assumes that a dispatch accesses all of the memory that it is bound
        # to: without barriers, it would report hazards between dispatches on one heap.
        ordered = ordered or device.validated
        bindings = kernel.bindings - 1
        return module.Step(pipeline, self._native, bindings, self.groups, ordered, self.nbytes)

    def words(self, starts: Words) -> Words:
        """Return the words with the addresses, as ``Table::write`` of the native module does."""
        words: Words = self._words.copy()
        words[self._places] += (starts // self.kernel.unit)[self._bases]
        return words


def _tables(
    table: RegionTable, kernel: Kernel, chosen: _Records, source: _Records
) -> Iterator[DispatchTable]:
    """Split records into as many dispatches as they need."""
    items = table.items[chosen]
    start, ends = 0, np.cumsum(items)
    cuts = _cuts(items)
    while start < len(chosen):
        most = layout.MAX_ITEMS + (int(ends[start - 1]) if start else 0)
        end = min(start + layout.MAX_RECORDS, int(np.searchsorted(ends, most, "right")))
        # A record can have more items than that, some of which copy nothing.
        end = cuts[max(bisect_right(cuts, start), bisect_right(cuts, end) - 1)]
        yield DispatchTable(table, kernel, chosen[start:end], source[start:end])
        start = end


def _cuts(items: _Records) -> list[int]:
    """Return where records may be cut: those without items continue the one before them."""
    return [*np.nonzero(items)[0].tolist(), len(items)]


def _by_heaps(
    table: RegionTable, heaps: Sequence[DeviceMemory], written: Sequence[Extent]
) -> dict[tuple[tuple[DeviceMemory, ...], DeviceMemory], list[int]]:
    """Group records by their heaps: the target's, and those of all sources of a region."""
    groups: dict[tuple[tuple[DeviceMemory, ...], DeviceMemory], list[int]] = {}
    for start, end in pairwise(_cuts(table.items)):
        sources = tuple(dict.fromkeys(heaps[number] for number in table.inputs[start:end]))
        target = written[table.outputs[start]].resource
        groups.setdefault((sources, target), []).extend(range(start, end))
    return groups
