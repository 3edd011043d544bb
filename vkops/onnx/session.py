"""Models on a device: specialised to what they are given, and run as one plan."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from threading import RLock
from typing import Any, TypeAlias
from weakref import finalize

import numpy as np
import numpy.typing as npt
from cachetools import LRUCache

from vkops.device import Device
from vkops.errors import ModelError, OutOfDeviceMemoryError
from vkops.gpu.streaming import Progress
from vkops.onnx.forms import Declared, Form, SequenceForm, TensorForm
from vkops.onnx.model import Lowering, Model
from vkops.onnx.trace import NeedsValueError, Sequence, Value
from vkops.onnx.trace import Tensor as Traced
from vkops.onnx.types import STRING, moved_dtype
from vkops.plan.region import CopyPlan
from vkops.tensors.movement import Movement, Source
from vkops.tensors.tensor import Tensor

Array = npt.NDArray[Any]
Given: TypeAlias = "Array | Tensor | list[Any] | None"
"""An input: an array, a tensor of the device, a list of them for a sequence, or None."""

MOST_SPECIALIZED = 64
"""Specialisations that a session keeps: one for each combination of input shapes."""


class Session:
    """A model on a device.

    The graph becomes one plan for each combination of input shapes, made when it first comes up;
    the last 64 are kept. Where shapes depend on the elements of an input, those count as its
    shape. Strings stay on the host: the device moves their 64-bit handles. May be used from many
    threads.

    Args:
        model: what to run.
        device: where.

    >>> import numpy as np, onnx
    >>> from vkops import Device
    >>> from vkops.onnx import Model, Session
    >>> text = '''<ir_version: 9, opset_import: ["" : 18]>
    ... halves (float[N, 4] x) => (float[N, 2] a, float[N, 2] b)
    ... { a, b = Split <axis = 1, num_outputs = 2> (x) }'''
    >>> session = Session(Model(onnx.parser.parse_model(text)), Device())
    >>> a, b = session.run({"x": np.arange(8, dtype=np.float32).reshape(2, 4)})
    >>> b.numpy()
    array([[2., 3.],
           [6., 7.]], dtype=float32)
    """

    def __init__(self, model: Model, device: Device) -> None:
        self.model = model
        self.device = device
        self._kept: LRUCache[Any, Specialized] = LRUCache(MOST_SPECIALIZED)
        self._needed: set[str] = set()  # inputs whose elements shapes depend on
        self._lock = RLock()
        self._residents = _Residents(device)

    def run(
        self,
        inputs: Mapping[str, Given],
        progress: Progress | None = None,
        *,
        targets: Mapping[int, Tensor] | None = None,
    ) -> list[Any]:
        """Run the model and wait for its outputs.

        Args:
            inputs: by name; those with a default may be left out.
            progress: told of the bytes done and to do in all where data is streamed.
            targets: tensors to make outputs in, by the place of the output.

        Returns:
            For each output a tensor on the device, an array of strings, or a list of either for a
            sequence.

        Raises:
            ModelError: inputs that do not fit what the model declares, or a node's arguments that
                break a rule of its operator; nothing was run.
            OutOfDeviceMemoryError: not even a part fits in device memory.
        """
        given = dict(self._entered(inputs))
        return self._specialized(given).run(self._residents, given, progress, targets or {})

    def specialize(self, inputs: Mapping[str, Given]) -> Specialized:
        """The model for inputs of these shapes."""
        return self._specialized(dict(self._entered(inputs)))

    def _specialized(self, given: Mapping[str, Given]) -> Specialized:
        forms = {name: _form(self._declared(name), value) for name, value in given.items()}
        with self._lock:
            return self._found(given, forms)

    def _found(self, given: Mapping[str, Given], forms: Mapping[str, Form]) -> Specialized:
        """What was made for such inputs before, or is made now."""
        while True:
            known = {name: _elements(given[name]) for name in self._needed if name in given}
            key = (tuple(forms.items()), tuple(map(_key, sorted(known.items()))))
            found = self._kept.get(key)
            if found is not None:
                return found
            try:
                made = Specialized(self.model.lower(forms, known))
            except NeedsValueError as needed:
                self._needed.add(needed.name)
            else:
                self._kept[key] = made
                return made

    # -- inputs -----------------------------------------------------------------------------------

    def _declared(self, name: str) -> Declared:
        return next(entry for entry in self.model.inputs if entry.name == name)

    def _entered(self, inputs: Mapping[str, Given]) -> Iterator[tuple[str, Given]]:
        """The inputs in the model's order, as arrays, tensors and lists of them."""
        names = [entry.name for entry in self.model.inputs]
        for name in inputs:
            if name not in names:
                listed = ", ".join(map(repr, names)) or "none"
                raise ModelError(f"input {name!r}: the model has no such input; it has {listed}")
        for name in names:
            if name in inputs:
                value = inputs[name]
                if isinstance(value, (list, tuple)) and self._declared(name).kind != "tensor":
                    yield name, [self._source(f"{name}[{i}]", v) for i, v in enumerate(value)]
                else:
                    yield name, None if value is None else self._source(name, value)
            elif name not in self.model.constants:
                raise ModelError(f"input {name!r}: is missing")

    def _source(self, name: str, value: Any) -> Array | Tensor:
        if not isinstance(value, Tensor):
            return _array(name, value)
        if value.device is not self.device:
            raise ModelError(f"input {name!r}: is on {value.device!r}, not {self.device!r}")
        return value


def _array(name: str, value: Any) -> Array:
    try:
        array = np.asarray(value)
    except (TypeError, ValueError) as error:
        raise ModelError(f"input {name!r}: NumPy says: {error}") from error
    if array.dtype.kind in "US":
        return array.astype(str).astype(STRING)
    if array.dtype != STRING:
        return array.astype(array.dtype.newbyteorder("="), copy=False)
    if not all(isinstance(item, str) for item in array.flat):
        raise ModelError(f"input {name!r}: holds Python objects, must be numbers or strings")
    return array


def _form(entry: Declared, value: Given) -> Form:
    if value is None:
        return None
    if not isinstance(value, list):
        return TensorForm(value.dtype, value.shape)
    dtype = value[0].dtype if value else entry.dtype or np.dtype(np.float32)
    for i, item in enumerate(value):
        if item.dtype != dtype:
            raise ModelError(f"input '{entry.name}[{i}]': has type {item.dtype}, must be {dtype}")
    return SequenceForm(dtype, tuple(item.shape for item in value))


def _elements(value: Given) -> Any:
    return list(map(np.asarray, value)) if isinstance(value, list) else np.asarray(value)


def _key(named: tuple[str, Any]) -> Any:
    """What tells the elements of an input from others."""
    name, value = named
    arrays = value if isinstance(value, list) else [value]
    return name, tuple(
        tuple(a.ravel().tolist()) if a.dtype == STRING else a.tobytes() for a in arrays
    )


class Specialized:
    """A model for inputs of certain shapes."""

    def __init__(self, lowering: Lowering) -> None:
        self._trace = trace = lowering.trace
        self._outputs = lowering.outputs
        wanted = [tensor.number for tensor in _tensors(lowering.outputs)]
        self._stages = []
        for step in trace.graph.lower(wanted):
            shapes = [trace[number].shape for number in step.makes]
            self._stages.append((Movement(step.plan, shapes), step.reads, step.makes))
        read = {*wanted, *(number for _, reads, _ in self._stages for number in reads)}
        self._constants = {
            number: array for number, array in trace.constants.items() if number in read
        }

    @property
    def results(self) -> list[Value]:
        """What the outputs are: their types and shapes."""
        return self._outputs

    @property
    def plans(self) -> list[CopyPlan]:
        """What runs, one submission each: one plan, but where it would have too many regions."""
        return [movement.plan for movement, _, _ in self._stages]

    def run(
        self,
        residents: _Residents,
        inputs: Mapping[str, Given],
        progress: Progress | None,
        targets: Mapping[int, Tensor],
    ) -> list[Any]:
        """Run on a device with inputs of those shapes; see ``Session.run``."""
        device = residents.device
        strings = list(self._trace.strings)
        held = self._held(residents, inputs, strings)
        wanted = {self._number(place): target for place, target in targets.items()}
        for movement, reads, makes in self._stages:
            dtypes = [moved_dtype(self._trace[number].dtype) for number in makes]
            sources = [held[number] for number in reads]
            into = [wanted.get(number) for number in makes]
            made = movement.make(device, sources, dtypes, progress, into)
            held.update(zip(makes, made, strict=True))
        for place, target in targets.items():
            source = held[self._number(place)]
            if source is not target:  # it is an input, or was made for another output
                target.fill(np.asarray(source).reshape(target.shape))
        return [_result(device, value, held, strings) for value in self._outputs]

    def _number(self, place: int) -> int:
        value = self._outputs[place]
        assert isinstance(value, Traced)
        return value.number

    def _held(
        self, residents: _Residents, inputs: Mapping[str, Given], strings: list[str]
    ) -> dict[int, Source]:
        """What there is from the start: inputs, and the constants, which stay on the device."""
        held = {number: residents.source(array) for number, array in self._constants.items()}
        for number, (name, item) in self._trace.inputs.items():
            given: Any = inputs[name]
            source = given if item is None else given[item]
            held[number] = _handles(source, strings) if source.dtype == STRING else source
        return held


class _Residents:
    """Constants on the device: one of each, for all specialisations, as long as one has it."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self._tensors: dict[int, Tensor] = {}
        self._lock = RLock()

    def source(self, array: Array) -> Source:
        """The array on the device; the array itself where it does not fit and is streamed."""
        with self._lock:
            found = self._tensors.get(id(array))
            if found is not None:
                return found
            try:
                made = Tensor.from_array(self.device, array)
            except OutOfDeviceMemoryError:
                return array
            self._tensors[id(array)] = made
            finalize(array, self._tensors.pop, id(array))
            return made


def _tensors(values: Iterable[Value]) -> Iterator[Traced]:
    for value in values:
        if isinstance(value, Sequence):
            yield from value.items
        elif value is not None:
            yield value


def _handles(array: Array, strings: list[str]) -> Array:
    """Numbers that stand for strings, which are put where the numbers say."""
    first = len(strings)
    strings += array.ravel().tolist()
    return np.arange(first, len(strings), dtype=np.uint64).reshape(array.shape)


def _result(device: Device, value: Value, held: Mapping[int, Source], strings: list[str]) -> Any:
    if value is None:
        return None
    if isinstance(value, Sequence):
        return [_result(device, item, held, strings) for item in value.items]
    if not value.size:
        empty = value.dtype == STRING
        return np.empty(value.shape, STRING) if empty else Tensor(device, value.shape, value.dtype)
    source = held[value.number]
    if value.dtype == STRING:
        handles = np.asarray(source).ravel().tolist()
        return np.array([strings[handle] for handle in handles], STRING).reshape(value.shape)
    if not isinstance(source, Tensor):
        source = Tensor.from_array(device, source)
    return Tensor.over(device, source.buffer, value.shape, value.dtype)
