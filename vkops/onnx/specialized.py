"""A model for inputs of certain shapes: the plans that it is, and the constants on a device."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any, TypeAlias
from weakref import finalize

import numpy as np
import numpy.typing as npt

from vkops.device import Device
from vkops.errors import ModelError, OutOfDeviceMemoryError
from vkops.gpu.streaming import Progress
from vkops.onnx.model import Lowering
from vkops.onnx.trace import Sequence, Trace, Value, handles, tensors_of
from vkops.onnx.types import STRING, moved_dtype
from vkops.plan.graph import Step
from vkops.plan.region import CopyPlan
from vkops.plan.view import Ints
from vkops.tensors.movement import Movement, Source
from vkops.tensors.tensor import Tensor

Array = npt.NDArray[Any]
Given: TypeAlias = "Array | Tensor | list[Any] | None"
"""An input: an array, a tensor of the device, a list of them for a sequence, or None."""


@dataclass(frozen=True, slots=True)
class Result:
    """What an output is: a tensor by its number, its type and its shape."""

    number: int
    dtype: np.dtype[Any]
    shape: Ints

    @property
    def size(self) -> int:
        """Number of elements."""
        return prod(self.shape)


Results: TypeAlias = "Result | list[Result] | None"
"""The same of a sequence, or of an absent optional."""


class _Stage:
    """A plan, and the tensors that it reads and makes, by number.

    ``drops`` are those that nothing needs after it.
    """

    def __init__(self, step: Step, trace: Trace, drops: Collection[int]) -> None:
        self.reads, self.makes, self.drops = step.reads, step.makes, drops
        self.movement = Movement(step.plan, [trace[number].shape for number in step.makes])
        self.dtypes = [moved_dtype(trace[number].dtype) for number in step.makes]


class Specialized:
    """A model for inputs of certain shapes."""

    def __init__(self, lowering: Lowering) -> None:
        trace = lowering.trace
        self.results: list[Results] = [_result(value) for value in lowering.outputs]
        """What the outputs are."""
        self._inputs = trace.inputs
        self._strings = trace.strings
        wanted = [t.number for value in lowering.outputs for t in tensors_of(value)]
        steps = trace.graph.lower(wanted)
        last = {number: place for place, step in enumerate(steps) for number in step.reads}
        drops: list[list[int]] = [[] for _ in steps]
        for number in last.keys() - set(wanted):
            drops[last[number]].append(number)
        self._stages = [_Stage(step, trace, d) for step, d in zip(steps, drops, strict=True)]
        read = {*wanted, *(number for stage in self._stages for number in stage.reads)}
        self._constants = {
            number: array for number, array in trace.constants.items() if number in read
        }

    @property
    def plans(self) -> list[CopyPlan]:
        """What runs, one submission each: one plan, but where it would have too many regions."""
        return [stage.movement.plan for stage in self._stages]

    def run(
        self,
        residents: Residents,
        inputs: Mapping[str, Given],
        progress: Progress | None,
        targets: Mapping[int, Tensor],
    ) -> list[Any]:
        """Run on a device with inputs of those shapes; see ``Session.run``."""
        device = residents.device
        strings = list(self._strings)
        held = self._held(residents, inputs, strings)
        there = set(held)
        self._check(device, targets)
        # What is read, or is somebody else's target, is written when all else is done.
        taken = {id(s.placed()[0].buffer) for s in held.values() if isinstance(s, Tensor)}
        wanted: dict[int, Tensor] = {}
        for place, target in targets.items():
            if not target.owns_buffer:  # a view is written to by assignment
                continue
            if id(target.buffer) not in taken and self._number(place) not in wanted:
                taken.add(id(target.buffer))
                wanted[self._number(place)] = target
        there.update(wanted)
        for stage in self._stages:
            sources = [held[number] for number in stage.reads]
            into = [wanted.get(number) for number in stage.makes]
            made = stage.movement.make(device, sources, stage.dtypes, progress, into)
            held.update(zip(stage.makes, made, strict=True))
            del sources
            for number in stage.drops:
                del held[number]
        for place, target in targets.items():
            source = held[self._number(place)]
            if source is not target:  # it is an input, or was made for another output
                array = np.ascontiguousarray(source).view(target.dtype)
                target[...] = array.reshape(target.shape)
        outputs = []
        for place, result in enumerate(self.results):
            if place in targets:
                outputs.append(targets[place])
            else:
                outputs.append(_output(device, result, held, strings, there))
            # An output is nobody else's memory: not an input's, a constant's or another output's.
            there.update(tensor.number for tensor in _each(result))
        return outputs

    def _check(self, device: Device, targets: Mapping[int, Tensor]) -> None:
        """Refuse targets that are not what the outputs are."""
        last = len(self.results) - 1
        for place, target in targets.items():
            if not 0 <= place <= last:
                raise ModelError(f"targets: got output {place}, must be 0 to {last}")
            result = self.results[place]
            if not isinstance(result, Result) or result.dtype == STRING:
                raise ModelError(f"targets[{place}]: the output is no tensor of numbers")
            got, wanted = (f"{t.dtype} {t.shape}" for t in (target, result))
            if got != wanted:
                raise ModelError(f"targets[{place}]: is {got}, must be {wanted}")
            if not target.device.shares_memory_with(device):
                raise ModelError(f"targets[{place}]: is on {target.device!r}, not {device!r}")

    def _number(self, place: int) -> int:
        result = self.results[place]
        assert isinstance(result, Result)
        return result.number

    def _held(
        self, residents: Residents, inputs: Mapping[str, Given], strings: list[str]
    ) -> dict[int, Source]:
        """What there is from the start: inputs, and the constants, which stay on the device."""
        held = {number: residents.source(array) for number, array in self._constants.items()}
        for number, (name, item) in self._inputs.items():
            given: Any = inputs[name]
            source = given if item is None else given[item]
            held[number] = handles(source, strings) if source.dtype == STRING else source
        return held


class Residents:
    """Constants on the device: one of each, for all specialisations, as long as one has it."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self._tensors: dict[int, Tensor] = {}

    def source(self, array: Array) -> Source:
        """The array on the device; the array itself where it does not fit and is streamed."""
        found = self._tensors.get(id(array))
        if found is not None:
            return found
        try:
            made = Tensor.from_array(self.device, array)
        except OutOfDeviceMemoryError:
            return array
        finalize(array, self._tensors.pop, id(array), None)
        return self._tensors.setdefault(id(array), made)


def _result(value: Value) -> Results:
    if value is None:
        return None
    if isinstance(value, Sequence):
        return [Result(item.number, item.dtype, item.shape) for item in value.items]
    return Result(value.number, value.dtype, value.shape)


def _each(result: Results) -> list[Result]:
    if result is None:
        return []
    return result if isinstance(result, list) else [result]


def _output(
    device: Device,
    result: Results,
    held: Mapping[int, Source],
    strings: list[str],
    there: Collection[int],
) -> Any:
    """An output from what there is when all stages have run; a copy of what was there before."""
    if result is None:
        return None
    if isinstance(result, list):
        return [_output(device, item, held, strings, there) for item in result]
    shape, dtype = result.shape, result.dtype
    if not result.size:
        return np.empty(shape, STRING) if dtype == STRING else Tensor(device, shape, dtype)
    source = held[result.number]
    if dtype == STRING:
        handles = np.asarray(source).ravel().tolist()
        return np.array([strings[handle] for handle in handles], STRING).reshape(shape)
    if not isinstance(source, Tensor):
        source = Tensor.from_array(device, source)
    elif result.number in there:
        source = source.copy()
    return Tensor.over(device, source.buffer, shape, dtype)
