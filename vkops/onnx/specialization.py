"""A model for inputs of certain types and shapes: its plans, and its constants on a device."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, TypeAlias
from weakref import finalize

import numpy as np
import numpy.typing as npt

from vkops.errors import ModelError, OutOfDeviceMemoryError, show
from vkops.gpu.run.program import Program
from vkops.gpu.run.streaming import Progress
from vkops.onnx.element_types import STRING, moved_dtype
from vkops.onnx.lowering import (
    LoweredSequence,
    LoweredTensor,
    LoweredValue,
    Lowering,
    string_handles,
    tensors_of,
)
from vkops.plan.graph import Pipeline
from vkops.plan.region import CopyPlan
from vkops.tensors.device_array import run_program
from vkops.tensors.operations import TensorOrArray
from vkops.tensors.tensor import Device, Tensor

Array = npt.NDArray[Any]
InputValue: TypeAlias = "Array | Tensor | list[Any] | None"
"""An input: an array, a tensor of the device, a list of them for a sequence, or None."""


class Specialization:
    """A model for inputs of certain types and shapes, which runs as one or more plans.

    ``reads_elements`` says whether it is valid only for certain elements of some inputs.
    """

    def __init__(self, lowering: Lowering, *, reads_elements: bool = False) -> None:
        self.reads_elements: bool = reads_elements
        self.results: list[LoweredValue] = lowering.outputs
        self._inputs = lowering.inputs
        self._strings = lowering.strings
        self._checks = lowering.checks
        outputs = {t.number: None for value in self.results for t in tensors_of(value)}
        steps = tuple(lowering.graph.lower(list(outputs)))
        computed = {number: None for step in steps for number in step.makes}
        read = {number: None for step in steps for number in step.reads}
        inputs = tuple([number for number in read if number not in computed])
        results = tuple([number for number in computed if number in outputs])
        self._program = Program(Pipeline(steps, inputs, results), "an ONNX model")
        self._made = [(n, lowering[n].shape, moved_dtype(lowering[n].dtype)) for n in results]
        self._nbytes = sum(
            [lowering.graph.nbytes(n) for n in (*inputs, *results)], sum(self._program.scratch[1])
        )
        used = {*outputs, *read}
        self._constants = {n: array for n, array in lowering.constants.items() if n in used}

    @property
    def plans(self) -> list[CopyPlan]:
        """The plans, one after the other: one plan, unless it would have too many regions."""
        return [step.plan for step in self._program.steps]

    def run(
        self,
        constants: DeviceConstants,
        inputs: Mapping[str, InputValue],
        progress: Progress,
        targets: Mapping[int, Tensor],
    ) -> list[Any]:
        """Run on a device with inputs of those types and shapes; see ``Session.run``."""
        device = constants.device
        self._check_targets(targets, device)
        by_number: dict[int, Any] = {
            number: inputs[name] if item is None else inputs[name][item]  # type: ignore[index]
            for number, (name, item) in self._inputs.items()
        }
        for tensor, check in self._checks:
            source = by_number[tensor.number]
            if isinstance(source, np.ndarray):
                check(source.reshape(tensor.shape))
        strings = list(self._strings)
        tensors: dict[int, TensorOrArray] = {
            n: constants.get(a) for n, a in self._constants.items()
        }
        for number, source in by_number.items():
            tensors[number] = string_handles(source, strings) if source.dtype == STRING else source
        direct = self._direct_targets(targets, tensors)
        # Tensors that the caller or this model keeps: an output must be a copy of them.
        owned = {*tensors, *direct}
        specs = [(shape, dtype, direct.get(number)) for number, shape, dtype in self._made]
        sources = [tensors[number] for number in self._program.reads]
        results = run_program(Tensor, self._program, self._nbytes, device, sources, specs, progress)
        tensors.update(zip(self._program.writes, results, strict=True))
        others = [
            (target, tensors[self._number(n)]) for n, target in targets.items() if target.size
        ]
        # Sources are inputs or other outputs, which targets may overlap: read all before writing.
        copies = [(target, np.array(x, order="C")) for target, x in others if x is not target]
        outputs: list[Any] = []
        for index, result in enumerate(self.results):
            if index in targets:
                outputs.append(targets[index])
            else:
                items = [_output(device, t, tensors, strings, owned) for t in tensors_of(result)]
                outputs.append(
                    items if isinstance(result, LoweredSequence) else next(iter(items), None)
                )
            owned.update(tensor.number for tensor in tensors_of(result))
        for target, array in copies:
            target[...] = array.view(target.dtype).reshape(target.shape)
        return outputs

    def _check_targets(self, targets: Mapping[int, Tensor], device: Device) -> None:
        """Check that targets are tensors with the type, shape and device of the outputs."""
        if not isinstance(targets, Mapping):
            raise ModelError(f"targets: got {show(targets)}, must be a dict of tensors by index")
        last = len(self.results) - 1
        for index, target in targets.items():
            if not isinstance(index, int) or not isinstance(target, Tensor):
                message = f"got {show(target)}, must be a vkops.Tensor by the index of an output"
                raise ModelError(f"targets[{show(index)}]: {message}")
            if not 0 <= index <= last:
                raise ModelError(f"targets: got output {index}, must be 0 to {last}")
            result = self.results[index]
            if not isinstance(result, LoweredTensor) or result.dtype == STRING:
                raise ModelError(f"targets[{index}]: the output is not a tensor of numbers")
            got, expected = (f"{t.dtype} {t.shape}" for t in (target, result))
            if got != expected:
                raise ModelError(f"targets[{index}]: is {got}, must be {expected}")
            if not target.device.shares_memory_with(device):
                raise ModelError(f"targets[{index}]: is on {target.device!r}, not {device!r}")

    def _direct_targets(
        self, targets: Mapping[int, Tensor], tensors: Mapping[int, TensorOrArray]
    ) -> dict[int, Tensor]:
        """Return the targets that stages can write directly, by number of the tensor.

        The others are written at the end: views, inputs, and second targets of one tensor.
        """
        used = {id(t.placed()[0].buffer) for t in tensors.values() if isinstance(t, Tensor)}
        direct: dict[int, Tensor] = {}
        for index, target in targets.items():
            if target.owns_buffer and id(target.buffer) not in used:
                number = self._number(index)
                if number not in direct:
                    used.add(id(target.buffer))
                    direct[number] = target
        return direct

    def _number(self, index: int) -> int:
        result = self.results[index]
        assert isinstance(result, LoweredTensor)
        return result.number


class DeviceConstants:
    """Constants on a device: one copy for all specialisations, kept as long as one needs it."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self._tensors: dict[int, Tensor] = {}

    def get(self, array: Array) -> TensorOrArray:
        """Return the array on the device; the array itself if it must be streamed."""
        cached = self._tensors.get(id(array))
        if cached is not None:
            return cached
        try:
            tensor = Tensor.from_array(self.device, array)
        except OutOfDeviceMemoryError:
            return array
        finalize(array, self._tensors.pop, id(array), None)
        return self._tensors.setdefault(id(array), tensor)


def _output(
    device: Device,
    result: LoweredTensor,
    tensors: Mapping[int, TensorOrArray],
    strings: list[str],
    owned: Collection[int],
) -> Any:
    """Return an output as a tensor, or as an array of strings."""
    shape, dtype = result.shape, result.dtype
    if not result.size:
        return np.empty(shape, STRING) if dtype == STRING else Tensor(device, shape, dtype)
    source = tensors[result.number]
    if dtype == STRING:
        handles = np.asarray(source).ravel().tolist()
        return np.array([strings[handle] for handle in handles], STRING).reshape(shape)
    if not isinstance(source, Tensor):
        source = Tensor.from_array(device, source)
    elif result.number in owned:
        source = source.copy()
    return Tensor.over(device, source.buffer, shape, dtype)
