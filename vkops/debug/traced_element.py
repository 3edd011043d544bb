"""``vkops debug trace``: an element of an output, as the plan defines it and as the device made it.

Kernels run in builds that report who stores the element, from where, and which bytes. Of Vulkan's
own copies, the region that writes it is named.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import NamedTuple

import numpy as np

from vkops.dml.binding_rules import Placed
from vkops.dml.tensor_desc import BufferTensorDesc
from vkops.dxdispatch.descriptors import with_dml_names
from vkops.dxdispatch.json_model import DmlDispatchable
from vkops.dxdispatch.model_checks import BoundDispatch, Prepared
from vkops.errors import BindingError, ModelError
from vkops.extent import slice_extents
from vkops.gpu.kernels.layout import MAX_TRACED_STORES
from vkops.gpu.run.stores import Store, stores
from vkops.plan.algebra import coalesce_region
from vkops.plan.compose import Writers
from vkops.plan.execute import addresses
from vkops.plan.region import Read, Region
from vkops.plan.view import Ints, View
from vkops.runner.dispatch_timing import RunOptions
from vkops.runner.model_execution import Execution
from vkops.runtime.compiled_operator import BoundOperator, CompiledOperator
from vkops.tensors.tensor import Device


class Stage(NamedTuple):
    """A fact about an element: as the plan has it ("" if it has none), and as the device reports.

    ``device`` is "" for what only the plan has.
    """

    name: str
    plan: str
    device: str

    @property
    def differs(self) -> bool:
        """Whether the device did something else."""
        return bool(self.plan and self.device) and self.plan != self.device


class Element(NamedTuple):
    """An element of an output: ``nbytes`` bytes from byte ``offset`` of the output's tensor."""

    output: int
    offset: int
    nbytes: int


def trace(operator: CompiledOperator, bound: BoundOperator, element: Element) -> Iterator[Stage]:
    """Run an operator that has one step, and compare an element of an output with the plan.

    The first stage that differs is the last one.

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
    paths, tensors = operator.paths, bound.tensors
    path, target = paths[step.makes[output]], tensors[step.makes[output]]
    inputs = [(paths.get(number, ""), tensors[number]) for number in step.reads]
    regions = step.plan.outputs[output].regions
    writers = [
        (region, source)
        for region in regions
        for source in _sources(region, offset // size, inputs)
    ]
    # What scatters is done after the others; of several such writers, any may be the last.
    last = [(region, at) for region, at in writers if region.kind == "scatter"] or writers
    if not last:
        message = f"byte {offset} belongs to no element: the operator does not write it"
        raise BindingError(operator.name, path, message, "T-14")
    values = [
        _value(writer, inputs, at * size + offset % size, nbytes)
        for writer, at in last[:MAX_TRACED_STORES]
    ]
    region = last[0][0]
    if region.input is not None:
        # Inputs can share memory; then the one that the plan reads is named.
        inputs.insert(0, inputs[region.input])
    yield Stage("Region", f"{regions.index(region) + 1} of {len(regions)}: {_text(region)}", "")

    # Ranges begin at multiples of any element's size: an element is never in two.
    ((heap, address, _),) = slice_extents(target.resource.extents, target.start + offset, nbytes)
    reported: list[Store] = []
    for work in bound.work or ():
        if work.target is heap:
            reported += stores(bound.executor, work, address)
        else:
            bound.executor.run([work])
    # Each word of a scattered element of several words is written by a dispatch of its own.
    passes = [max(1, size // 4) if writer.kind == "scatter" else 1 for writer, _ in writers]
    yield Stage("Stores of it", _count(sum(passes)), _count(len(reported)))
    if len(last) >= MAX_TRACED_STORES:
        return  # the store that remained may be one that is not reported
    after = target.resource.read(target.start + offset, nbytes)
    # Of several stores, the one that remained.
    matching = (store for store in reversed(reported) if store.value[:nbytes] == after)
    store = next(matching, reported[-1])
    found = _source(store, inputs)
    wanted, source = next((value for value in values if value[1] == found), values[0])
    for name, part in store.writer.items():
        yield Stage(name, "", part)
    yield Stage("Source", source, found)
    if store.value:
        yield Stage("Bytes stored", wanted.hex(" "), store.value[:nbytes].hex(" "))
    yield Stage("Bytes in the output", wanted.hex(" "), after.hex(" "))


def _sources(region: Region, at: int, inputs: Sequence[Placed]) -> Iterator[int]:
    """Yield the element of its input that a region copies to element ``at`` of an output.

    There is one at most, unless the region scatters.
    """
    indices = region.indices
    if indices is not None:
        _, (resource, start, nbytes) = inputs[indices.input]
        numbers = resource.array(start, nbytes)
    if indices is not None and region.kind == "scatter":
        targets, sources, inside = addresses(region, indices, numbers)
        yield from sources[inside & (targets == at)].tolist()
        return
    index = _index(region.target, at)
    if index is None:
        return
    one = region.map(lambda view: view.window(index, (1,) * len(index), (1,) * len(index)))
    if one.indices is None:
        yield one.source_view.offset
    else:
        _, sources, _ = addresses(one, one.indices, numbers)
        yield sources.item()


def _index(view: View, at: int) -> Ints | None:
    """The index of element ``at`` of an array in a view of it; None where it is not in it."""
    element = View((), (), at)
    one = Region(element._replace(offset=0), Read(0, element))
    numbered = Region(view, Read(0, View.packed(view.sizes)))
    for part in Writers([coalesce_region(numbered)], gaps=True).compose(one):
        place = np.unravel_index(part.source_view.offset, view.sizes)
        return tuple(int(number) for number in place)
    return None


def _value(region: Region, inputs: Sequence[Placed], at: int, nbytes: int) -> tuple[bytes, str]:
    """The bytes that a region copies from a byte of its input on, and where they are from."""
    source = region.source
    if not isinstance(source, Read):
        return source.pattern, "a constant"
    origin = inputs[source.input]
    resource, start, _ = origin[1]
    return resource.read(start + at, nbytes), _byte(origin, at)


def _count(stores: int) -> str:
    """A number of stores, of which the device reports so many at most."""
    return str(stores) if stores < MAX_TRACED_STORES else f"{MAX_TRACED_STORES} or more"


def _text(region: Region) -> str:
    target, source = region.target, region.source
    read = (
        f"input {source.input} at {source.view.offset}, strides {source.view.strides}"
        if isinstance(source, Read)
        else f"constant {source.pattern.hex(' ')}"
    )
    moved = (
        "" if region.indices is None else f", moved by the indices in input {region.indices.input}"
    )
    return f"sizes {target.sizes}, to {target.offset}, strides {target.strides}, from {read}{moved}"


def _source(store: Store, inputs: Sequence[Placed]) -> str:
    """Name the byte that a store reports as its source."""
    if store.source is None:
        return "a constant"
    heap, address = store.source
    for tensor in inputs:
        resource, begin, nbytes = tensor[1]
        start = 0
        for extent in slice_extents(resource.extents, begin, nbytes):
            if extent.resource is heap and 0 <= address - extent.start < extent.nbytes:
                return _byte(tensor, start + address - extent.start)
            start += extent.nbytes
    return f"byte {address} of the heap, outside the inputs"


def _byte(tensor: Placed, byte: int) -> str:
    return f"{tensor[0]}, byte {byte}"


# -- DxDispatch models -----------------------------------------------------------------------------


def trace_model(
    prepared: Prepared, device: Device, dispatch: int, output: str, index: tuple[int, ...]
) -> Iterator[Stage]:
    """Run a model up to a dispatch, and trace an element of one of its outputs.

    Args:
        prepared: the model.
        device: where to run it.
        dispatch: the number of the dispatch, counted from 1 among those of operators.
        output: the tensor's name, such as ``OutputTensors[1]``; ``""`` is the only one.
        index: of the element, one number for each dimension.

    Raises:
        VkopsError: there is no such dispatch, tensor or element, or what running it raises.
    """
    found = [command for command in prepared.commands if isinstance(command, BoundDispatch)]
    if not 1 <= dispatch <= len(found):
        raise ModelError(
            f"--dispatch: got {dispatch}, the model has {len(found)} dispatches of operators"
        )
    bound = found[dispatch - 1]
    element = _element(bound, output, index)
    execution = Execution(prepared, device, RunOptions())
    for command in takewhile(lambda command: command is not bound, prepared.commands):
        execution.run_command(command)
    operator = execution.bind(bound)
    if operator.work is None:
        raise ModelError(
            "the model does not fit on the device: operators that are streamed cannot be traced"
        )
    compiled = execution.operators[bound.command.dispatchable.name]
    for stage in trace(compiled, operator, element):
        in_source = stage.name == "Source"  # no other has names of tensors
        yield Stage(stage.name, *map(with_dml_names, stage[1:])) if in_source else stage


def _element(bound: BoundDispatch, output: str, index: tuple[int, ...]) -> Element:
    dispatchable = bound.command.dispatchable
    assert isinstance(dispatchable, DmlDispatchable)
    tensors: dict[str, tuple[int, BufferTensorDesc]] = {
        with_dml_names(path): (number, tensor)
        for number, (path, tensor) in enumerate(dispatchable.desc.outputs)
        if tensor is not None
    }
    name = output or next(iter(tensors))
    if name not in tensors or (not output and len(tensors) > 1):
        raise ModelError(f"--output: got {output or 'nothing'}, must be {' or '.join(tensors)}")
    number, tensor = tensors[name]
    inside = len(index) == len(tensor.sizes) and all(
        0 <= i < size for i, size in zip(index, tensor.sizes, strict=True)
    )
    if not inside:
        raise ModelError(f"element {index} is not in {name}, whose sizes are {tensor.sizes}")
    elements = sum(i * stride for i, stride in zip(index, tensor.effective_strides, strict=True))
    size = tensor.data_type.element_size
    return Element(number, elements * size, size)
