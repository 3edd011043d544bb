"""Models on a device: specialised for the shapes of their inputs, and run as one plan."""

from __future__ import annotations

import os
from collections.abc import Hashable, Mapping, Sequence
from types import NoneType
from typing import Any, overload

import numpy as np
import numpy.typing as npt
from cachetools import LRUCache
from onnx import ModelProto

from vkops.errors import CONVERSION_ERRORS, ModelError, refuse_reentry, show
from vkops.gpu.run.streaming import Progress
from vkops.onnx.element_types import STRING
from vkops.onnx.lowering import Lowering, NeedsValueError
from vkops.onnx.onnx_model import Model
from vkops.onnx.providers import VULKAN, Provider, Providers, choose
from vkops.onnx.session_options import SessionOptions
from vkops.onnx.specialization import DeviceConstants, InputValue, Specialization
from vkops.onnx.static_checks import check_statically
from vkops.onnx.value_info import (
    InputType,
    ModelMetadata,
    NodeArg,
    SequenceType,
    TensorType,
    ValueInfo,
)
from vkops.system.threads import new_lock
from vkops.tensors.operations import native
from vkops.tensors.tensor import Device, DeviceLike, Tensor, as_device, default_device

Array = npt.NDArray[Any]
MAX_SPECIALIZATIONS = 64
"""The number of specialisations, one for each combination of types and shapes, that are kept."""


class Session:
    """A model on a device.

    The graph becomes one plan for each combination of input shapes, when it is first used; the
    last 64 plans are kept. Where shapes depend on the elements of an input, those count as part of
    its shape. Strings stay on the host: the device moves 64-bit handles that stand for them.
    Several threads may use one session.

    Args:
        model: a ``Model``, or what one is made of: a file's path, its bytes or a ``ModelProto``.
        device: where to run it: a device, the index of an adapter or part of its name; the default
            device, if left out.
        sess_options: ONNX Runtime's options, of which the sizes of free dimensions have an effect.
        providers: instead of a device, names of providers, the first available one of which runs
            the model: ``"VulkanExecutionProvider"`` or ``"CPUExecutionProvider"``. Each may be a
            pair of the name and options: ``{"device_id": 1}`` is the index of an adapter.
        provider_options: the options of each of the providers, if these are only names.

    Raises:
        InvalidDescTypeError: the device is none of these (B-02).
        DeviceError: there is no such adapter, or none of the providers is available; a provider
            that is not available before one that is makes a warning.
        ModelError: the model cannot run with the types and shapes that it declares, or an option is
            wrong. ``run`` raises what depends on free sizes or on elements of inputs.

    >>> import numpy as np, onnx
    >>> from vkops.onnx import Session
    >>> text = '''<ir_version: 9, opset_import: ["" : 18]>
    ... halves (float[N, 4] x) => (float[N, 2] a, float[N, 2] b)
    ... { a, b = Split <axis = 1, num_outputs = 2> (x) }'''
    >>> session = Session(onnx.parser.parse_model(text))
    >>> a, b = session.run({"x": np.arange(8, dtype=np.float32).reshape(2, 4)})
    >>> b.numpy()
    array([[2., 3.],
           [6., 7.]], dtype=float32)
    """

    def __init__(
        self,
        model: Model | ModelProto | bytes | str | os.PathLike[str],
        device: DeviceLike | None = None,
        *,
        sess_options: SessionOptions | None = None,
        providers: Providers | None = None,
        provider_options: Sequence[Mapping[str, Any]] | None = None,
    ) -> None:
        if isinstance(device, SessionOptions):
            raise ModelError("device: got SessionOptions, which must be given as sess_options")
        if not isinstance(sess_options, (SessionOptions, NoneType)):
            got = show(sess_options)
            raise ModelError(f"sess_options: got {got}, must be a vkops.onnx.SessionOptions")
        self._options = SessionOptions() if sess_options is None else sess_options
        self._options.check()
        self._provider = Provider(VULKAN)
        if providers is not None or provider_options is not None:
            if device is not None:
                raise ModelError("providers: cannot be given together with a device")
            self._provider = choose(providers, provider_options)
            device = self._provider.adapter
        home = None if device is None else as_device("", device)
        model = model if isinstance(model, Model) else Model(model)
        self.model: Model = model.with_sizes(self._options.resize)
        self._specializations: LRUCache[Hashable, Specialization] = LRUCache(MAX_SPECIALIZATIONS)
        self._needed: set[str] = set()  # inputs whose elements shapes depend on
        self._lock = new_lock()
        lowering = check_statically(self.model)
        if lowering is not None:
            self._specializations[_key(lowering.input_types, {})] = Specialization(lowering)
        self.device: Device = home or default_device()
        self.constants: DeviceConstants = DeviceConstants(self.device)

    def __repr__(self) -> str:
        return f"<vkops.onnx.Session of {self.model!r} on {self.device.info.label}>"

    def get_inputs(self) -> list[NodeArg]:
        """Return the inputs that must be given, with ``name``, ``shape`` and ``type``."""
        return list(map(NodeArg.of, self.model.required_inputs))

    def get_outputs(self) -> list[NodeArg]:
        """Return the outputs, with ``name``, ``shape`` and ``type``."""
        return list(map(NodeArg.of, self.model.outputs))

    def get_overridable_initializers(self) -> list[NodeArg]:
        """Return the inputs that have a default, with ``name``, ``shape`` and ``type``."""
        required = self.model.required_inputs
        return [NodeArg.of(entry) for entry in self.model.inputs if entry not in required]

    def get_modelmeta(self) -> ModelMetadata:
        """Return what the model says about itself, such as ``custom_metadata_map``."""
        return self.model.metadata

    def get_providers(self) -> list[str]:
        """Return the name of the provider that runs the model, in a list."""
        return [self._provider.name]

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        """Return the options of the provider: the index of the adapter, as text."""
        return {self._provider.name: {"device_id": str(self.device.info.index)}}

    def get_session_options(self) -> SessionOptions:
        """Return the options of the session."""
        return self._options

    @overload
    def run(
        self,
        inputs: Mapping[str, InputValue],
        progress: Progress = None,
        /,
        *,
        targets: Mapping[int, Tensor] | None = None,
    ) -> list[Any]: ...

    @overload
    def run(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, InputValue],
        progress: Progress = None,
        *,
        targets: Mapping[int, Tensor] | None = None,
    ) -> list[Any]: ...

    def run(
        self,
        output_names: Any = None,
        input_feed: Any = None,
        progress: Any = None,
        *,
        targets: Mapping[int, Tensor] | None = None,
    ) -> list[Any]:
        """Run the model; reading its outputs waits for them.

        Call it as ``run(inputs)``, or as ONNX Runtime's ``run(output_names, input_feed)``.

        Args:
            output_names: the outputs to return, in this order; None or left out: all of them.
            input_feed: the inputs by name; those with a default may be left out.
            progress: called with the bytes done and the bytes in all, where data are streamed.
            targets: tensors to write outputs to, by the index of the output in the model.

        Returns:
            For each output a tensor on the device, an array of strings, or a list of either for a
            sequence.

        Raises:
            ModelError: inputs are not as the model declares them, or a node's arguments break a
                rule of its operator. Nothing was run.
            OutOfDeviceMemoryError: not even a part fits in device memory.
        """
        if isinstance(output_names, Mapping):  # run(inputs), perhaps with progress after them
            progress = progress or input_feed
            output_names, input_feed = None, output_names
        if not isinstance(input_feed, Mapping):
            got = show(output_names if input_feed is None else input_feed)
            raise ModelError(f"input_feed: got {got}, must be a dict of arrays by input name")
        if not (progress is None or callable(progress)):
            raise ModelError(f"progress: got {show(progress)}, must be a function or None")
        indices = self._output_indices(output_names)
        inputs = self._given(input_feed)
        specialization = self._specialize(inputs)
        outputs = specialization.run(
            self.constants, inputs, progress, {} if targets is None else targets
        )
        return [outputs[index] for index in indices]

    def specialize(self, inputs: Mapping[str, InputValue]) -> Specialization:
        """Return the model for inputs of these types and shapes."""
        if not isinstance(inputs, Mapping):
            raise ModelError(f"inputs: got {show(inputs)}, must be a dict of arrays by input name")
        return self._specialize(self._given(inputs))

    def _specialize(self, inputs: Mapping[str, InputValue]) -> Specialization:
        declared = {entry.name: entry for entry in self.model.inputs}
        input_types = {name: type_of(declared[name], value) for name, value in inputs.items()}
        refuse_reentry(self._lock, "the model is being prepared")
        with self._lock:
            # Lowering stops at the first input whose elements it needs; then try again with these.
            while True:
                known = {n: _elements(v) for n, v in inputs.items() if n in self._needed}
                key = _key(input_types, known)
                try:
                    if key not in self._specializations:
                        lowering = self.model.lower(input_types, known)
                        self._specializations[key] = Specialization(
                            lowering, reads_elements=bool(known)
                        )
                    return self._specializations[key]
                except NeedsValueError as needed:
                    self._needed.add(needed.name)

    def _output_indices(self, names: Any) -> Sequence[int]:
        """Return the indices of the outputs of these names; of all, if there are no names."""
        indices = {entry.name: index for index, entry in enumerate(self.model.outputs)}
        if names is None or (isinstance(names, (list, tuple)) and not names):
            return range(len(self.model.outputs))  # two can have one name in an unchecked model
        if not isinstance(names, (list, tuple)):
            raise ModelError(f"output_names: got {show(names)}, must be a list of names, or None")
        for i, name in enumerate(names):
            if not isinstance(name, str) or name not in indices:
                listed = ", ".join(map(repr, indices))
                raise ModelError(f"output_names[{i}]: got {show(name)}, the model has {listed}")
        return [indices[name] for name in names]

    def _given(self, inputs: Mapping[str, InputValue]) -> dict[str, InputValue]:
        """Return the inputs in the model's order, as arrays, tensors and lists of them."""
        declared = {entry.name: entry for entry in self.model.inputs}
        for name in inputs:
            if name not in declared:
                listed = ", ".join(map(repr, declared)) or "none"
                raise ModelError(f"input {name!r}: the model has no such input; it has {listed}")
        sources: dict[str, InputValue] = {}
        for name, entry in declared.items():
            if name in inputs:
                value = inputs[name]
                if isinstance(value, (list, tuple)) and entry.kind != "tensor":
                    sources[name] = [self._source(f"{name}[{i}]", v) for i, v in enumerate(value)]
                else:
                    sources[name] = None if value is None else self._source(name, value)
        return sources

    def _source(self, name: str, value: Any) -> Array | Tensor:
        if not isinstance(value, Tensor):
            return as_array(name, value)
        if not value.device.shares_memory_with(self.device):
            raise ModelError(f"input {name!r}: is on {value.device!r}, not {self.device!r}")
        return native(value)


def as_array(name: str, value: Any) -> Array:
    """Return an input in the byte order of this machine; strings as Python objects."""
    try:
        array = np.asarray(value)
    except CONVERSION_ERRORS as error:
        raise ModelError(f"input {name!r}: NumPy says: {error}") from error
    if array.dtype.kind in "US":
        return array.astype(str).astype(STRING)
    if array.dtype != STRING:
        return array.astype(array.dtype.newbyteorder("="), copy=False)
    if not all(isinstance(item, str) for item in array.flat):
        raise ModelError(f"input {name!r}: holds Python objects, must be numbers or strings")
    return array


def lowered(model: Model, inputs: Mapping[str, InputValue]) -> Lowering:
    """Lower a model for arrays, without a device."""
    declared = {entry.name: entry for entry in model.inputs}
    input_types = {name: type_of(declared[name], value) for name, value in inputs.items()}
    known: dict[str, Any] = {}
    while True:
        try:
            return model.lower(input_types, known)
        except NeedsValueError as needed:
            known[needed.name] = _elements(inputs[needed.name])


def _elements(value: InputValue) -> Any:
    return list(map(np.asarray, value)) if isinstance(value, list) else np.asarray(value)


def type_of(entry: ValueInfo, value: InputValue) -> InputType:
    """Return the type and shapes of a value for an input."""
    if value is None:
        return None
    if not isinstance(value, list):
        return TensorType(value.dtype, value.shape)
    dtype = value[0].dtype if value else entry.dtype or np.dtype(np.float32)
    for i, item in enumerate(value):
        if item.dtype != dtype:
            raise ModelError(f"input '{entry.name}[{i}]': got type {item.dtype}, must be {dtype}")
    return SequenceType(dtype, tuple(item.shape for item in value))


def _key(input_types: Mapping[str, InputType], known: Mapping[str, Any]) -> Any:
    """Return the key of a specialisation: types and shapes of inputs, and elements of some."""
    return tuple(input_types.items()), tuple(
        (name, tuple(map(_contents, value if isinstance(value, list) else [value])))
        for name, value in sorted(known.items())
    )


def _contents(array: Array) -> Any:
    return tuple(array.ravel().tolist()) if array.dtype == STRING else array.tobytes()
