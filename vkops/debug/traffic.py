"""The memory traffic of plans and calls on a GPU: the interpreter runs the kernels.

A GPU executes an access for all invocations of a subgroup at once, and its memory moves whole
segments. So an access moves each segment that is touched by at least one of its invocations, once.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache as cached
from functools import lru_cache
from math import gcd, prod
from threading import get_ident
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from vkops import shaders
from vkops.extent import Extent
from vkops.gpu.kernels.encoding import Tuning
from vkops.gpu.kernels.layout import LINE, WORKGROUP_SIZE
from vkops.gpu.run.encoded_plan import Dispatch, EncodedPlan
from vkops.gpu.run.shader_dispatch import BoundCall
from vkops.gpu.run.vulkan_device import VulkanDevice
from vkops.interpreter.memory import Active, MemoryVariable
from vkops.interpreter.observer import Observer
from vkops.interpreter.operations import Array, dtype_of
from vkops.interpreter.program import BasicBlock, Decoded, zeros
from vkops.interpreter.scheduler import Run
from vkops.interpreter.schedules import Batch
from vkops.interpreter.state import Settings
from vkops.interpreter.values import Numbers, Pointer, SourceLine, Value
from vkops.plan.region import CopyPlan, Indices
from vkops.plan.rounding import ceil_div, round_up
from vkops.shaders.binary import Op
from vkops.shaders.features import without_modes
from vkops.shaders.layout import ScalarType, Type
from vkops.shaders.shader import Shader
from vkops.shaders.tools import optimized

_T = TypeVar("_T")

SUBGROUPS = (32, 64)
"""The sizes of subgroups: 32 on NVIDIA's GPUs and on AMD's since RDNA, otherwise 64."""

SEGMENTS = (32, 64, LINE)
"""The bytes that a GPU's memory or cache moves at a time; a cache stores lines of LINE."""

MAX_DISTANCES = 1024
"""The number of distances between neighbouring invocations that are counted separately."""

GROUPS_AT_ONCE = 256
"""The number of workgroups, of 64 invocations each, that run together."""

MAX_GROUPS_COUNTED = 1 << 12
"""The most workgroups of 64 invocations that are all counted; of more, evenly spaced parts are."""

ALIGNMENT = 256
"""Tensors begin at multiples of this number of bytes."""

CACHE = 1 << 20
"""The default size of the GPU's cache in bytes."""

MAX_BYTES = 1 << 31
"""The maximum size in bytes of all tensors of a plan whose traffic is counted."""

Arrays = Mapping[int, npt.NDArray[Any]]


@dataclass
class Totals:
    """The totals of the loads, or of the stores, of some dispatches.

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
    """The traffic of some dispatches.

    Attributes:
        loads: those from tensors.
        stores: those to tensors, atomic operations too.
        is_estimate: whether only a part of the workgroups was counted.
        instructions: scalar operations that subgroups issue, for each of their invocations, by the
            size of subgroups; invocations that take no part count too.
        operations: scalar operations in the text of each shader, by shader.
    """

    loads: Totals = field(default_factory=Totals)
    stores: Totals = field(default_factory=Totals)
    is_estimate: bool = False
    instructions: defaultdict[int, float] = field(default_factory=lambda: defaultdict(float))
    operations: dict[Shader, int] = field(default_factory=dict)


class PartTraffic(NamedTuple):
    """The traffic of the regions that one kernel executes, and the bytes that they must move."""

    kernel: str
    dispatches: int
    must_load: int
    must_store: int
    traffic: Traffic


def plan_traffic(
    plan: CopyPlan, tuning: Tuning, indices: Arrays = MappingProxyType({}), cache: int = CACHE
) -> list[PartTraffic]:
    """Count the traffic of all parts of a plan that shaders execute; its tensors are side by side.

    ``indices`` are the values of inputs that hold indices, by number; other indices are random. The
    result is empty if the tensors have more than MAX_BYTES.
    """
    sizes = [*plan.inputs, *[c.nbytes for c in plan.constants], *[o.nbytes for o in plan.outputs]]
    ends = np.cumsum([0, *[round_up(size, ALIGNMENT) for size in sizes]]).tolist()
    if ends[-1] > MAX_BYTES:
        return []
    first_output = len(sizes) - len(plan.outputs)
    values = IndexValues(plan, ends, indices)
    heap: Any = None  # never accessed
    parts = EncodedPlan(plan, tuning).in_one_heap(heap, ends[:first_output], ends[first_output:-1])
    return [
        PartTraffic(
            dispatches[0].table.kernel.name,
            len(dispatches),
            part.bytes_read,
            part.bytes_written,
            count(dispatches, values, ends[-1], cache),
        )
        for part, dispatches in parts
    ]


class IndexValues:
    """The words of index tensors by their addresses, given or random; all other words are 0.

    ``starts`` are the offsets of the first bytes of the inputs of a plan.
    """

    def __init__(self, plan: CopyPlan, starts: Sequence[int], index_arrays: Arrays) -> None:
        self._known: list[tuple[int, int, Any]] = []  # with words, or terms of random ones
        for number, array in index_arrays.items():
            words = np.ascontiguousarray(array).reshape(-1).view(np.uint32)
            self._known.append((starts[number] // 4, words.size, words))
        for _, region in plan.regions:
            if region.indices is not None and (number := region.indices.input) not in index_arrays:
                known = starts[number] // 4, plan.inputs[number] // 4, region.indices
                self._known.append(known)

    def at(self, words: Array) -> Array | None:
        """Return the words at addresses, or None if all of them are 0."""
        result = None
        low, high = words.min(), words.max()
        for start, size, known in self._known:
            if low < start + size and high >= start:
                result = np.zeros(words.shape, np.uint32) if result is None else result
                inside = (words >= start) & (words < start + size)
                place = words[inside] - start
                result[inside] = (
                    _random(place, start, known) if isinstance(known, Indices) else known[place]
                )
        return result


def _random(place: Array, start: int, indices: Indices) -> Array:
    """Return pseudorandom indices for words of an index tensor, each below the size of its term."""
    number, word = np.divmod(place, indices.words)
    view, bound = indices.view, np.ones_like(number)
    steps = [step for step, size in zip(view.strides, view.sizes, strict=True) if size > 1]
    between = gcd(*steps) or MAX_BYTES  # the distance between tuples
    for term in indices.terms:
        bound[(number - view.offset - term.offset) % between == 0] = term.size
    mixed = (place + start).astype(np.uint32) * np.uint32(2654435761) >> 8
    return np.where(word == 0, mixed % bound, 0)


# -- runs of kernels -------------------------------------------------------------------------------


def count(dispatches: Iterable[Dispatch], values: IndexValues, nbytes: int, cache: int) -> Traffic:
    """Count the traffic of dispatches on tensors of ``nbytes`` altogether.

    The cache is modelled by windows of consecutive workgroups whose accesses touch ``cache`` bytes
    in all: each segment is moved once in each window.
    """
    traffic = Traffic()
    for dispatch in dispatches:
        _add_run(traffic, cache, *_case(dispatch, values, nbytes))
    return traffic


def call_traffic(call: Callable[[], _T], cache: int = CACHE) -> tuple[_T, Traffic, int]:
    """Return the result of a call, the traffic of the dispatches that it submits, and their number.

    The traffic of each dispatch of a shader is counted before it runs on the device. Dispatches of
    other threads are not counted.
    """
    traffic, dispatches, thread = Traffic(), 0, get_ident()

    @contextmanager
    def around(_: VulkanDevice, bound: BoundCall) -> Iterator[None]:
        nonlocal dispatches
        if get_ident() == thread:
            dispatches += 1
            _add_run(traffic, cache, *_case_of_call(bound))
        yield

    VulkanDevice.observers.append(around)
    try:
        result = call()
    finally:
        VulkanDevice.observers.remove(around)
    return result, traffic, dispatches


def _add_run(traffic: Traffic, cache: int, groups: int, *case: Any) -> None:
    """Add the traffic of a run's workgroups; that of many is estimated from parts of them."""
    counter = _Counter(traffic, cache)
    run = Run(*case, Settings(), observers=[counter])
    steps = [step for each in run.program.functions.values() for step in each.steps]
    traffic.operations[case[0]] = sum([counter.operations(step) for step in steps])
    at_once = GROUPS_AT_ONCE * WORKGROUP_SIZE // run.group_size
    chunks = min(ceil_div(groups, at_once), MAX_GROUPS_COUNTED // GROUPS_AT_ONCE)
    counted = min(groups, chunks * at_once)
    counter.factor = groups / counted
    traffic.is_estimate |= counted < groups
    step = groups // chunks if counted < groups else at_once
    for first in range(0, chunks * step, step):
        with np.errstate(all="ignore"):
            run.run_groups(Batch(np.arange(first, min(first + at_once, groups))))
        counter.move()


_WORD = ScalarType("uint", 4)


class _Counted(MemoryVariable):
    """Memory with an address, whose accesses are counted."""

    start = 0


class _Tensors(_Counted):
    """All tensors side by side: loads return indices or zeros, and stores do nothing."""

    def __init__(self, nbytes: int, values: IndexValues) -> None:
        super().__init__("", _WORD, "", 1, 0, is_written=True)
        self.nbytes, self._values = nbytes, values

    def load(self, type_: Type, offset: int | Array, active: Active, place: SourceLine) -> Value:
        """Return indices or zeros."""
        words = self._values.at(self.addresses(type_, offset, active) // 4)
        return zeros(type_) if words is None else Numbers(words)

    def store(self, type_: Type, offset: int | Array, value: Value, active: Active) -> None:
        """Store nothing."""

    def change(self, number: ScalarType, *args: Any, **options: Any) -> Array:
        """Return zeros, as a load does: so an exchange for another value succeeds at once."""
        return np.zeros(1, dtype_of(number))


def _case(dispatch: Dispatch, values: IndexValues, nbytes: int) -> tuple[Any, ...]:
    """Return the number of workgroups of a kernel with items, and the arguments of its run.

    The run itself may have a few more workgroups.
    """
    table = dispatch.table
    shader = _kernel(table.kernel.name, table.aligned)
    words = table.words(dispatch.starts)
    memory: dict[tuple[int, int], MemoryVariable] = {
        block.place: _Tensors(nbytes, values) for block in shader.blocks
    }
    memory[0, 0] = MemoryVariable("", _WORD, "", 1, words.nbytes, is_written=True)
    memory[0, 0].fill(words.tobytes())
    groups = ceil_div(int(words[1]), prod(shader.local_size))
    return groups, shader, memory, table.groups, b""


def _case_of_call(bound: BoundCall) -> tuple[Any, ...]:
    """Return the number of workgroups of a call, and the arguments of a run of it on copies."""
    call, memory, groups, push = bound
    copies: dict[Any, _Counted] = {}  # one for each range of bytes
    by_place: dict[tuple[int, int], MemoryVariable] = {}
    start = 0
    for slot, content in zip(call.slots, memory, strict=True):
        block, part = slot.block, (slot.start, slot.nbytes)
        assert block.type is not None
        if not slot.has_memory:  # numbers, which are left out as the region table is
            by_place[block.place] = MemoryVariable(
                "", block.type, "", 1, len(content), is_written=True
            )
            by_place[block.place].fill(content)
            continue
        key = id(content), *part
        if key not in copies:
            copies[key] = counted = _Counted("", block.type, "", 1, slot.nbytes, is_written=True)
            counted.fill(content.peek(*part))
            counted.start, start = start, round_up(start + slot.nbytes, ALIGNMENT)
        by_place[block.place] = copies[key]
    assert not isinstance(groups, Extent)
    return prod(groups), _optimized(call.shader), by_place, groups, push


@lru_cache(64)
def _optimized(shader: Shader) -> Shader:
    return shaders.load(optimized(without_modes(shader.spirv)), name=shader.name)


@cached
def _kernel(name: str, aligned: bool) -> Shader:
    spirv = shaders.for_records(shaders.spirv(name), aligned=aligned)
    return shaders.load(optimized(spirv), name=name)


_FREE = {
    *(Op.Load, Op.Store, Op.Variable, Op.Phi, Op.Label, Op.SelectionMerge, Op.LoopMerge),
    *(Op.CompositeConstruct, Op.CompositeExtract, Op.CompositeInsert, Op.VectorShuffle),
    *(Op.Bitcast, Op.CopyObject, Op.Undef),
}
"""Instructions that cost nothing if values are in registers; accesses are counted by pointer."""

_ONE = (Op.AccessChain, Op.InBoundsAccessChain, Op.FunctionCall)
"""Instructions that count as one operation, whose result is not a number."""


class _Counter(Observer):
    """Adds the accesses of workgroups to ``traffic``; each one counts ``factor`` times."""

    factor = 1.0

    def __init__(self, traffic: Traffic, cache: int) -> None:
        self._traffic, self._cache = traffic, cache
        self._touched = 0
        self._kept = np.empty(0, np.int64)
        self._lines: list[tuple[Array, Array]] = []
        self._operations: dict[int, int] = {}  # by the identity of a block

    def operations(self, step: Decoded) -> int:
        """Return the number of scalar operations of an instruction."""
        if step.op in _FREE:
            return 0
        if not step.type or step.op in _ONE:
            return 1
        return self.machine.program.type(step.type).numbers

    def block(self, block: BasicBlock) -> None:
        """Count the operations of a block."""
        key = id(block)
        if key not in self._operations:
            self._operations[key] = sum([self.operations(step) for step in block.steps])
        self._issue(self._operations[key], self.machine.active)

    def _issue(self, operations: int, active: Active) -> None:
        """Count operations for the subgroups that have active invocations."""
        for size in SUBGROUPS:
            subgroups = np.count_nonzero(np.bincount(active.slots // size))
            self._traffic.instructions[size] += self.factor * operations * size * subgroups

    def access(self, kind: str, pointer: Pointer, active: Active) -> None:
        memory = pointer.variable
        self._issue(1, active)
        if isinstance(memory, _Counted):
            first = memory.start + memory.addresses(pointer.type, pointer.offset, active)
            address = np.full(active.together, -1)
            address[active.slots] = first.reshape(len(first), -1)[:, 0]
            is_store = kind != "read" and self.machine.step.op != Op.AtomicLoad
            self._add(is_store, address, pointer.type.nbytes)

    def _add(self, is_store: bool, addresses: Array, nbytes: int) -> None:
        """Count an access of all invocations that run together; an address of -1 is inactive."""
        totals = self._traffic.stores if is_store else self._traffic.loads
        for size in SUBGROUPS:
            address = addresses.reshape(-1, size)
            if size == WORKGROUP_SIZE:
                self._describe(totals, address, nbytes)
            address = np.sort(address, axis=1)
            for segment in SEGMENTS:
                number = address // segment
                is_new = number >= 0
                is_new[:, 1:] &= number[:, 1:] != number[:, :-1]
                new_segments = int(np.count_nonzero(is_new))
                totals.segments[size, segment] += self.factor * segment * new_segments
        # Of the last iteration: the lines that each workgroup touches.
        self._lines.append((np.nonzero(is_new)[0], number[is_new] * 2 + is_store))

    def move(self) -> None:
        """Count the different lines in each window of workgroups, and continue with later ones."""
        if not self._lines:
            return
        groups, lines = map(np.concatenate, zip(*self._lines, strict=True))
        self._lines = []
        touched = np.bincount(groups) * LINE
        windows = (self._touched + np.cumsum(touched) - touched) // self._cache
        self._touched += int(touched.sum())
        keys = np.sort(np.concatenate([self._kept, windows[groups] << 40 | lines]))
        keys = keys[np.diff(keys, prepend=-1) != 0]
        stores = np.count_nonzero(keys & 1) - np.count_nonzero(self._kept & 1)
        loads = keys.size - self._kept.size - stores
        self._traffic.loads.memory += self.factor * LINE * loads
        self._traffic.stores.memory += self.factor * LINE * stores
        self._kept = keys[keys >> 40 == windows[-1]]

    def _describe(self, totals: Totals, address: Array, nbytes: int) -> None:
        """Add the number of active invocations, and the distances between their addresses."""
        active = address >= 0
        taking_part = self.factor * np.count_nonzero(active)
        totals.count += self.factor * np.count_nonzero(active.any(axis=1))
        totals.active += taking_part
        totals.requested += nbytes * taking_part
        if len(totals.distances) < MAX_DISTANCES:
            both = active[:, 1:] & active[:, :-1]
            distances = (address[:, 1:] - address[:, :-1])[both]
            values, numbers = np.unique(distances, return_counts=True)
            totals.distances.update(dict(zip(values.tolist(), numbers.tolist(), strict=True)))
