"""Movements: plans between tensors and arrays, and what is needed to run them again and again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from math import prod
from operator import attrgetter
from typing import Any, ParamSpec, Union

import numpy as np
import numpy.typing as npt

from vkops.device import Device
from vkops.dml.values import Place
from vkops.gpu import memory
from vkops.gpu.buffer import Buffer, HostBuffer
from vkops.gpu.dispatch import Program, Programs
from vkops.gpu.streaming import Progress, stream
from vkops.gpu.table import Tuning
from vkops.plan.algebra import coalesce
from vkops.plan.execute import packed_bytes
from vkops.plan.movements import copy, lay
from vkops.plan.region import CopyPlan, Output, Region
from vkops.plan.view import Ints, View
from vkops.tensors.arguments import refuse
from vkops.tensors.exchange import as_array
from vkops.tensors.memo import Memo
from vkops.tensors.tensor import Tensor, default_device
from vkops.tensors.views import packed

P = ParamSpec("P")

MAX_KILOBYTES = 8192
"""About the size of the movements that one function keeps: 3 kB each, and 1 kB for each region."""

SMALL = 64 << 20
"""Bytes of inputs and outputs up to which nobody asks whether they fit before they are sent."""

Source = Union[Tensor, "npt.NDArray[Any]"]
"""What a movement takes: what is on the device, or has to be sent there."""


class Movement:
    """A plan between packed tensors, with what is needed to run it again and again.

    ``shapes`` are those of the results. Tensors without elements take no part: they have no
    regions, and are not among the plan's inputs and outputs.
    """

    def __init__(self, plan: CopyPlan, shapes: Sequence[Ints]) -> None:
        self.plan = plan
        self.shapes: tuple[Ints, ...] = tuple(shapes)
        self._nbytes = sum(plan.inputs) + sum(output.nbytes for output in plan.outputs)
        self._is_whole = len(self.shapes) == len(plan.inputs) == 1 and _is_whole(plan)
        self.kilobytes: int = 3 + sum(len(output.regions) for output in plan.outputs)
        self._programs: dict[Tuning, Program | Programs] = {}

    def run(
        self, device: Device, inputs: Sequence[Source], progress: Progress | None = None
    ) -> list[Tensor]:
        """Run on arrays and tensors of one dtype, as ``sources`` gives them.

        What does not fit on the device is streamed, if all inputs are on the host.
        """
        first = inputs[0]
        is_same = self._is_whole and not _is_resident(first) and first.shape == self.shapes[0]
        if is_same and self._fits(device, inputs):
            return [Tensor.from_array(device, first)]  # what is sent is the result
        return self.make(device, inputs, [first.dtype] * len(self.shapes), progress)

    def make(
        self,
        device: Device,
        inputs: Sequence[Source],
        dtypes: Sequence[np.dtype[Any]],
        progress: Progress | None = None,
        targets: Sequence[Tensor | None] = (),
    ) -> list[Tensor]:
        """Run, giving each result a dtype of its own, or a tensor to be made in.

        Inputs are packed: of a view, a packed copy is read.
        """
        # Held until all is done: somebody may release the tensors meanwhile.
        held = [source.buffer if isinstance(source, Tensor) else source for source in inputs]
        on_host = not self._fits(device, inputs) or any(
            target is not None and isinstance(target.buffer, HostBuffer) for target in targets
        )
        targets = targets or [None] * len(self.shapes)
        results = [
            Tensor(device, shape, dtype, on_host=on_host) if target is None else target
            for shape, dtype, target in zip(self.shapes, dtypes, targets, strict=True)
        ]
        if not self.plan.outputs:
            return results
        executor = device.executor
        if on_host:
            sources = [_bytes(source) for source in held if source is not None]
            arrays = [
                buffer.bytes[: result.words * 4]
                for result in results
                if isinstance(buffer := result.buffer, HostBuffer)
            ]
            stream(executor, self.plan, [s for s in sources if s.size], arrays, progress)
            return results
        buffers = [
            source if isinstance(source, Buffer) else _sent(device, source) for source in held
        ]
        places = [
            _place(buffer, nbytes)
            for buffer, nbytes in zip(filter(None, buffers), self.plan.inputs, strict=True)
        ]
        program = self._programs.get(executor.tuning)
        if program is None:
            program = self._programs[executor.tuning] = executor.prepare(self.plan)
        executor.run(program.bind(places, _places(results)))
        return results

    def _fits(self, device: Device, inputs: Sequence[Source]) -> bool:
        """Whether to work on the device; where an input is there already, nothing else will do."""
        if self._nbytes <= SMALL or any(map(_is_resident, inputs)):
            return True
        return device.executor.fits(self._nbytes)


def sources(
    name: str, values: Sequence[Any], device: Device | None
) -> tuple[Device, list[Source], tuple[View, ...]]:
    """What arguments are made of, and where: tensors that own memory and arrays, and views of them.

    The device is that of the tensors, or the one for the arrays.
    """
    home = _checked(name, device)
    found: list[Source] = []
    views: list[View] = []
    for i, value in enumerate(values):
        if isinstance(value, Tensor):
            home = home or value.device
            check_device(name, f"tensors[{i}]", value, home)
            base, view = value.placed()
            found.append(base)
            views.append(view)
        else:
            array = as_array(value)
            found.append(array)
            views.append(packed(array.shape))
    return home or default_device(), found, tuple(views)


def native(sources: Sequence[Source]) -> list[Source]:
    """Sources in the byte order of the host, which NumPy gives to all that it puts together."""
    return [
        source
        if source.dtype.isnative
        else np.asarray(source).astype(source.dtype.newbyteorder("="))
        for source in sources
    ]


def as_tensor(name: str, x: Any, device: Device | None) -> Tensor:
    """A tensor as it is; an array is sent, or stays on the host if it does not fit."""
    home = _checked(name, device)
    if isinstance(x, Tensor):
        check_device(name, "x", x, home or x.device)
        return x
    array = as_array(x)
    home = home or default_device()
    on_host = array.nbytes > SMALL and not home.executor.fits(array.nbytes)
    return Tensor.from_array(home, array, on_host=on_host)


def _checked(name: str, device: Any) -> Device | None:
    if not (device is None or isinstance(device, Device)):
        raise Place(name, "device", "B-02").wrong_kind(device, "a Device or None")
    return device


def check_device(name: str, field: str, tensor: Tensor, home: Device) -> None:
    """Refuse a tensor whose memory a device cannot use: that of another adapter (B-02)."""
    if tensor.device is not home and not tensor.device.shares_memory_with(home):
        message = f"is on {tensor.device!r}, must be on {home!r}; tensor.to(device) copies it"
        refuse(name, field, message, "B-02")


# -- plans -----------------------------------------------------------------------------------------


def movement(
    itemsize: int,
    inputs: Sequence[View],
    shapes: Sequence[Ints],
    pieces: Sequence[Sequence[Region]],
) -> Movement:
    """The movement that makes tensors of some shapes, each from the regions that belong to it.

    Inputs are views of what holds them; regions number only those that have elements.
    """
    outputs = (
        Output(prod(shape) * itemsize, tuple([r for r in regions if prod(r.sizes)]))
        for shape, regions in zip(shapes, pieces, strict=True)
        if prod(shape)
    )
    nbytes = (view.extent * itemsize for view in inputs)
    return Movement(CopyPlan(itemsize, tuple(filter(None, nbytes)), tuple(outputs)), shapes)


def memoized(build: Callable[P, Movement]) -> Callable[P, Movement]:
    """Keep the movements that were built last, for calls with the same arguments."""
    memo: Memo[Movement] = Memo(MAX_KILOBYTES, attrgetter("kilobytes"))

    @wraps(build)
    def found(*args: P.args, **kwargs: P.kwargs) -> Movement:
        return memo.get(args, lambda: build(*args, **kwargs))

    found.memo = memo  # type: ignore[attr-defined]
    return found


def window(view: View, itemsize: int) -> Movement:
    """A view, made packed."""
    return movement(itemsize, [view], [view.sizes], [(lay(view),)])


packing: Callable[[View, int], Movement] = memoized(window)


@memoized
def assignment(source: View, target: View, nbytes: int, itemsize: int) -> Movement:
    """Copy a view of a tensor to a view, of the same shape, of a tensor of ``nbytes`` bytes."""
    inputs = (source.extent * itemsize,)
    plan = CopyPlan(itemsize, inputs, (Output(nbytes, (copy(source, target),)),))
    return Movement(plan, [(nbytes // itemsize,)])


def _is_whole(plan: CopyPlan) -> bool:
    """Whether the one output is the one input, as it is."""
    regions = [region for output in coalesce(plan).outputs for region in output.regions]
    return len(regions) == 1 and all(
        view == View.packed(view.sizes[:1]) for view in (regions[0].target, regions[0].source_view)
    )


# -- where things are ------------------------------------------------------------------------------


def _is_resident(source: Source) -> bool:
    if not isinstance(source, Tensor):
        return False
    base, _ = source.placed()
    return not isinstance(base.buffer, HostBuffer)


def _sent(device: Device, source: Any) -> Buffer | None:
    """The buffer of what is on the host, once it is on the device; None if it has no elements."""
    if source is None:
        return None
    array = source.array() if isinstance(source, HostBuffer) else source
    if not array.size:
        return None
    sent = Buffer(device.executor, -(-array.nbytes // 4) * 4)
    sent.fill(array)
    return sent


def _bytes(source: Any) -> npt.NDArray[np.uint8]:
    return source.array() if isinstance(source, (Buffer, HostBuffer)) else packed_bytes(source)


def _places(tensors: Sequence[Tensor]) -> list[memory.Place]:
    return [
        _place(buffer, tensor.nbytes)
        for tensor in tensors
        if isinstance(buffer := tensor.buffer, Buffer)
    ]


def _place(buffer: Buffer, nbytes: int) -> memory.Place:
    """Where so many bytes are, in whole words; a buffer may go on behind them."""
    place: memory.Place = buffer.place
    size = -(-nbytes // 4) * 4
    return place if buffer.nbytes == size else place.part(0, size)
