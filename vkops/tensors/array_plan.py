"""Plans that read and write arrays, prepared once to be run many times."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, wraps
from itertools import repeat
from math import prod
from operator import attrgetter
from typing import Any, ParamSpec, TypeAlias

import numpy as np
import numpy.typing as npt

from vkops.dml.binding_rules import BoundTensor
from vkops.errors import OutOfDeviceMemoryError
from vkops.gpu.kernels.encoding import Tuning
from vkops.gpu.memory.heaps import Allocation
from vkops.gpu.run.buffer import Buffer, HostBuffer, upload
from vkops.gpu.run.dispatch import CopiedPlan, PreparedPlan, Work
from vkops.gpu.run.executor import Executor
from vkops.gpu.run.streaming import Progress
from vkops.plan.algebra import coalesce
from vkops.plan.execute import execute_unchecked, packed_bytes
from vkops.plan.graph import Pipeline
from vkops.plan.movements import copy, pack
from vkops.plan.region import CopyPlan, Output, Read, Region
from vkops.plan.rounding import round_up
from vkops.plan.view import Ints, View
from vkops.runtime.bound_operator import StreamedOperator
from vkops.tensors.memo import Memo

P = ParamSpec("P")

MAX_KILOBYTES = 8192
"""Approximate size of the plans that one function keeps: 3 kB each, and 1 kB per region."""

MAX_UNCHECKED_BYTES = 64 << 20
"""Bytes of inputs and outputs up to which they are sent without a check that they fit."""

MAX_HOST_ELEMENTS = 1 << 18
"""Elements that the host copies by indices at once."""

MAX_BATCH_BYTES = 1 << 20
"""Bytes that plans which are run together may keep in use."""

MAX_BATCH_PLANS = 64
"""Plans that are run together."""

Memory: TypeAlias = "Buffer | HostBuffer | npt.NDArray[Any] | None"
"""The memory that holds the elements of an array; None if it has no elements."""


class Batch:
    """Plans of one device that are run together, each after those before it.

    What they read and write is kept until then, so it should be little.
    """

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self._work: list[Work] = []
        self._kept: list[object] = []
        self._nbytes = 0

    def add(self, work: Sequence[Work], kept: object, nbytes: int) -> None:
        """Add the work of a plan, which keeps ``nbytes`` bytes in use until it is run."""
        self._work += work
        self._kept.append(kept)
        self._nbytes += nbytes
        if self._nbytes > MAX_BATCH_BYTES or len(self._kept) >= MAX_BATCH_PLANS:
            self.run()

    def run(self) -> None:
        """Run the plans that were added, and wait for them."""
        work, self._work = self._work, []
        if work:
            self._executor.run(work)
        self._kept.clear()
        self._nbytes = 0


class ArrayPlan:
    """A plan between packed arrays, and its encodings for the devices that have run it.

    ``shapes`` are those of the results. Arrays without elements take no part: they have no regions,
    and are not among the plan's inputs and outputs.
    """

    def __init__(self, plan: CopyPlan, shapes: Sequence[Ints]) -> None:
        self.plan = plan
        self.shapes: tuple[Ints, ...] = tuple(shapes)
        self.kilobytes: int = 3 + sum(len(output.regions) for output in plan.outputs)
        self._pipeline = Pipeline.of(plan)
        self._index_inputs = plan.index_inputs
        outputs = [output.nbytes for output in plan.outputs]
        self._nbytes = sum(plan.inputs) + sum(outputs)
        # Whole words; a buffer may go on behind them.
        self._input_bytes, self._output_bytes = (
            [round_up(nbytes, 4) for nbytes in sizes] for sizes in (plan.inputs, outputs)
        )
        self._prepared: dict[Tuning, PreparedPlan] = {}

    @cached_property
    def is_concatenation(self) -> bool:
        """Whether the only result has the elements of all inputs, one input after the other."""
        plan = self.plan
        if len(self.shapes) != 1:
            return False
        regions = [region for _, region in coalesce(plan).regions]
        if len(regions) != len(plan.inputs):
            return False
        start = 0
        for number, (region, nbytes) in enumerate(zip(regions, plan.inputs, strict=True)):
            elements = View.packed((nbytes // plan.element_size,))
            if region != Region(elements.shift(start), Read(number, elements)):
                return False
            start += elements.extent
        return True

    def fits(self, executor: Executor, inputs: Sequence[Memory]) -> bool:
        """Whether to run on the device; always if an input is there already."""
        return Buffer in map(type, inputs) or fits(executor, self._nbytes)

    def run(
        self,
        executor: Executor,
        inputs: Sequence[Memory],
        outputs: Sequence[Buffer | HostBuffer | None],
        progress: Progress | None = None,
        batch: Batch | None = None,
    ) -> None:
        """Run between memory; where outputs are on the host, chunk by chunk.

        With ``batch``, a plan on the device is only added to it.

        Where indices select elements of data on the host, the host copies them: all the data would
        have to be sent for them.
        """
        if not self.plan.outputs:
            return
        on_host = HostBuffer in map(type, outputs)
        if on_host and batch is not None:
            batch.run()
        if on_host and self._index_inputs:
            _run_on_host(self.plan, inputs, [o for o in outputs if isinstance(o, HostBuffer)])
            return
        targets: list[Any] = list(filter(None, outputs))
        if on_host:
            sources = [_on_host(memory) for memory in inputs]
            sizes = (*self.plan.inputs, *(output.nbytes for output in self.plan.outputs))
            resources = [*filter(None, sources), *targets]
            bound = {
                number: BoundTensor(resource, 0, nbytes, "")
                for number, (resource, nbytes) in enumerate(zip(resources, sizes, strict=True))
            }
            StreamedOperator(executor, self._pipeline.steps, bound).dispatch(progress)
            return
        prepared = self._prepared.get(executor.tuning)
        if prepared is None:
            prepared = self._prepared[executor.tuning] = executor.prepare(self.plan)
        # As a BoundOperator does it; to make one would cost a tenth of a small operation.
        written = [*map(Buffer.part, targets, repeat(0), self._output_bytes)]
        kept: object = None
        if {*map(type, inputs)} == {Buffer}:
            read = [*map(Buffer.part, inputs, repeat(0), self._input_bytes)]  # type: ignore[arg-type]
        else:
            read, kept = self._sent(executor, inputs, prepared, written)
        for number in self._index_inputs:
            _check_indices(read[number], self.plan.inputs[number])
        work = prepared.bind(read, written)
        if batch is None:
            executor.run(work)
        else:
            batch.add(work, (inputs, targets, kept), self._nbytes)

    def _sent(
        self,
        executor: Executor,
        inputs: Sequence[Memory],
        prepared: PreparedPlan,
        written: Sequence[Allocation],
    ) -> tuple[list[Allocation], object]:
        """Return the device's memory of each input, and what keeps it until the plan has run.

        Arrays on the host are copied there, or imported if copies with regions read them.
        """
        found: list[Any] = [
            memory.array() if isinstance(memory, HostBuffer) else memory
            for memory in inputs
            if memory is not None
        ]
        found = [memory for memory in found if type(memory) is Buffer or memory.size]
        if isinstance(prepared, CopiedPlan) and prepared.can_import:
            arrays = [(n, memory) for n, memory in enumerate(found) if type(memory) is not Buffer]
            tried = [(n, executor.import_array(array)) for n, array in arrays]
            imported = {n: range_ for n, range_ in tried if range_ is not None}
            read, kept = self._upload(executor, found, imported)
            if not imported or prepared.can_copy(read, written):
                return read, kept
        return self._upload(executor, found, {})

    def _upload(
        self, executor: Executor, found: Sequence[Any], imported: Mapping[int, Allocation]
    ) -> tuple[list[Allocation], object]:
        """Return the memory of arrays, which are copied unless imported, and of buffers."""
        numbers = range(len(found))
        left = [n for n in numbers if n not in imported and type(found[n]) is not Buffer]
        sent, kept = upload(executor, [found[n] for n in left])
        known = {**imported, **dict(zip(left, sent, strict=True))}
        read = [
            known[n] if n in known else memory.part(0, nbytes)
            for n, (memory, nbytes) in enumerate(zip(found, self._input_bytes, strict=True))
        ]
        return read, (found, kept)


def fits(executor: Executor, nbytes: int) -> bool:
    """Whether the device has room; small sizes are not checked: they count as fitting."""
    return nbytes <= MAX_UNCHECKED_BYTES or executor.fits(nbytes)


def _on_host(memory: Memory) -> Buffer | HostBuffer | None:
    """The resource of an input whose plan is streamed; an array's elements in row-major order."""
    if memory is None or isinstance(memory, (Buffer, HostBuffer)):
        return memory
    return HostBuffer.over(packed_bytes(memory)) if memory.size else None


def _check_indices(allocation: Allocation, nbytes: int) -> None:
    """Refuse indices in several ranges of memory: which holds the next one depends on the plan."""
    if allocation.heap is None:
        raise OutOfDeviceMemoryError(
            f"indices of {nbytes} bytes: a buffer of the device holds "
            f"{allocation.ranges[0].nbytes}; use fewer at a time"
        )


def _run_on_host(plan: CopyPlan, inputs: Sequence[Memory], targets: Sequence[HostBuffer]) -> None:
    """Run a plan with indices by NumPy, some elements at a time."""
    for target in targets:
        target.settle()
    written = [target.bytes for target in targets]
    sources = [
        packed_bytes(memory) if isinstance(memory, np.ndarray) else memory.array()
        for memory in inputs
        if memory is not None
    ]
    # Assigned values may be a view of the tensor that is written.
    sources = [
        source.copy() if any(np.may_share_memory(source, array) for array in written) else source
        for source in sources
    ]
    for output, array in zip(plan.outputs, written, strict=True):
        for region in sorted(output.regions, key=lambda region: region.kind == "scatter"):
            for part in _parts(region):
                part_plan = replace(plan, outputs=(Output(output.nbytes, (part,)),))
                execute_unchecked(part_plan, sources, [array])


def _parts(region: Region) -> Iterator[Region]:
    """Parts of a region of few elements: the host needs some 64 bytes for each."""
    size = max(region.sizes, default=1)
    if prod(region.sizes) <= MAX_HOST_ELEMENTS:
        yield region
        return
    axis = region.sizes.index(size)
    for start, count in ((0, size // 2), (size // 2, size - size // 2)):
        yield from _parts(region.map(lambda view: view.narrow(axis, start, count)))  # noqa: B023


# -- plans of views --------------------------------------------------------------------------------


def array_plan(
    itemsize: int,
    inputs: Sequence[View],
    shapes: Sequence[Ints],
    pieces: Sequence[Sequence[Region]],
) -> ArrayPlan:
    """The plan that makes packed arrays of some shapes, each from its own regions.

    Inputs are views of the memory that is read; regions number only the inputs with elements.
    """
    outputs = (
        Output(prod(shape) * itemsize, tuple([r for r in regions if prod(r.sizes)]))
        for shape, regions in zip(shapes, pieces, strict=True)
        if prod(shape)
    )
    nbytes = (view.extent * itemsize for view in inputs)
    return ArrayPlan(CopyPlan(itemsize, tuple(filter(None, nbytes)), tuple(outputs)), shapes)


def memoized(build: Callable[P, ArrayPlan]) -> Callable[P, ArrayPlan]:
    """Memoize a function that builds plans."""
    memo: Memo[ArrayPlan] = Memo(MAX_KILOBYTES, attrgetter("kilobytes"))

    @wraps(build)
    def found(*args: P.args, **kwargs: P.kwargs) -> ArrayPlan:
        return memo.get(args, lambda: build(*args, **kwargs))

    found.memo = memo  # type: ignore[attr-defined]
    return found


def window(view: View, itemsize: int) -> ArrayPlan:
    """The plan of a packed copy of a view."""
    return array_plan(itemsize, [view], [view.sizes], [(pack(view),)])


packing: Callable[[View, int], ArrayPlan] = memoized(window)


@memoized
def assignment(source: View, target: View, nbytes: int, itemsize: int) -> ArrayPlan:
    """Copy a view of a tensor to a view, of the same shape, of a tensor of ``nbytes`` bytes."""
    inputs = (source.extent * itemsize,)
    plan = CopyPlan(itemsize, inputs, (Output(nbytes, (copy(source, target),)),))
    return ArrayPlan(plan, [(nbytes // itemsize,)])
