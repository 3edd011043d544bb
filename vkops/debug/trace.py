"""``vkops debug trace``: an element of an output, as the plan has it and as the device made it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from vkops.compiled_operator import BoundOperator, CompiledOperator
from vkops.dml.binding import BoundTensor
from vkops.errors import BindingError
from vkops.gpu.dispatch import Dispatch
from vkops.gpu.memory import Place, Range
from vkops.gpu.trace import MOST, Owner, Store, owner, stores
from vkops.plan.algebra import coalesce_region
from vkops.plan.compose import Written
from vkops.plan.region import Fill, Read, Region
from vkops.plan.view import View


class Stage(NamedTuple):
    """A step on the way of an element: as the plan says, and as the device did it."""

    name: str
    plan: str
    device: str

    @property
    def differs(self) -> bool:
        """Whether the device did something else."""
        return self.plan != self.device


class Element(NamedTuple):
    """An element of an output: ``nbytes`` bytes from byte ``offset`` of the output's tensor."""

    output: int
    offset: int
    nbytes: int


def trace(operator: CompiledOperator, bound: BoundOperator, element: Element) -> Iterator[Stage]:
    """Run an operator that has one step, and follow an element of an output on its way.

    Its kernels run in builds that tell who stores the element. The first stage that differs is the
    last one.

    Raises:
        BindingError: the operator writes no such element.
    """
    for stage in _stages(operator, bound, element):
        yield stage
        if stage.differs:
            return


def _stages(operator: CompiledOperator, bound: BoundOperator, element: Element) -> Iterator[Stage]:
    step = operator.pipeline.steps[-1]
    output, offset, nbytes = element
    size = step.plan.element_size
    target = bound.bound[step.makes[output]]
    inputs = [bound.bound[number] for number in step.reads]
    regions = step.plan.outputs[output].regions
    found = _source(regions, offset // size)
    if found is None:
        message = f"byte {offset} is none of an element: the operator writes nothing there"
        raise BindingError(operator.name, target.path, message, "T-14")
    number, source = found
    if isinstance(source, Read):
        origin = inputs[source.input]
        at = source.view.offset * size + offset % size
        wanted = origin.resource.read(origin.begin + at, nbytes)
        plan_source = _place_text(origin, at)
    else:
        wanted, plan_source = source.pattern, "a constant"

    place = _range(target, offset, nbytes)
    expected: list[tuple[Dispatch, Owner]] = []
    told: list[tuple[Dispatch, Store]] = []
    for dispatch in bound.dispatches:
        if dispatch.target is not place.heap:
            bound.executor.run([dispatch])
            continue
        mine = owner(dispatch, place.offset)
        expected += [(dispatch, mine)] if mine is not None else []
        told += [(dispatch, store) for store in stores(bound.executor, dispatch, place.offset)]

    region = f"{number + 1} of {len(regions)}: {_region_text(regions[number])}"
    yield Stage("Region", region, region)
    most = f"{MOST} or more" if len(told) == MOST else str(len(told))
    yield Stage("Stores of it", str(len(expected)), most)
    (by_plan, mine), (by_device, store) = expected[0], told[0]
    yield Stage("Kernel", by_plan.kernel.name, by_device.kernel.name)
    yield Stage("Record", str(mine.record), str(store.record))
    yield Stage("Workgroup", str(mine.workgroup), str(store.workgroup))
    yield Stage("Invocation in it", str(mine.lane), str(store.lane))
    # Inputs can share memory; then it is the plan's.
    first = [inputs[source.input]] if isinstance(source, Read) else []
    yield Stage("Source", plan_source, _read_from(by_device, store, [*first, *inputs]))
    yield Stage("Bytes stored", wanted.hex(" "), store.value[:nbytes].hex(" "))
    after = target.resource.read(target.begin + offset, nbytes)
    yield Stage("Bytes in the output", wanted.hex(" "), after.hex(" "))


def _source(regions: Sequence[Region], at: int) -> tuple[int, Read | Fill] | None:
    """The region that writes an element of an output, and where it takes it from."""
    element = View((), (), at)
    one = Region(element._replace(offset=0), Read(0, element))
    for number, region in enumerate(regions):
        for through in Written([coalesce_region(region)], gaps=True).read_by(one):
            return number, through.source
    return None


def _region_text(region: Region) -> str:
    """What a region writes and reads, in elements of the plan."""
    source = region.source
    read = (
        f"input {source.input} at {source.view.offset}, strides {source.view.strides}"
        if isinstance(source, Read)
        else f"constant {source.pattern.hex(' ')}"
    )
    target = region.target
    return f"sizes {target.sizes}, to {target.offset}, strides {target.strides}, from {read}"


def _read_from(dispatch: Dispatch, store: Store, inputs: Sequence[BoundTensor]) -> str:
    """What a store read, as a byte of an input; or where that lies, if it is none's."""
    if store.source is None:
        return "a constant"
    heap = dispatch.sources[store.heap]
    for tensor in inputs:
        start = 0
        for piece in _place(tensor).ranges:
            if piece.heap is heap and 0 <= store.source - piece.offset < piece.nbytes:
                return _place_text(tensor, start + store.source - piece.offset)
            start += piece.nbytes
    return f"byte {store.source} of the heap, outside the inputs"


def _place_text(tensor: BoundTensor, byte: int) -> str:
    return f"{tensor.path}, byte {byte}"


def _place(tensor: BoundTensor) -> Place:
    place: Place = tensor.resource.place
    return place.part(tensor.begin, tensor.end - tensor.begin)


def _range(tensor: BoundTensor, offset: int, nbytes: int) -> Range:
    """Where an element lies: ranges begin at multiples of any element's size."""
    (range_,) = _place(tensor).part(offset, nbytes).ranges
    return range_
