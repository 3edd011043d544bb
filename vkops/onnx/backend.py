"""ONNX's backend interface, ``onnx.backend.base.Backend``, on any Vulkan device."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import onnx
from onnx import ModelProto, NodeProto, helper
from onnx.backend.base import Backend, BackendRep, namedtupledict

import vkops
from vkops.errors import DeviceError, ModelError, VkopsError, show
from vkops.onnx.element_types import elem_type_of
from vkops.onnx.onnx_model import Model
from vkops.onnx.onnx_session import Session
from vkops.onnx.static_checks import check_statically
from vkops.tensors.tensor import Tensor


class VkopsRep(BackendRep):  # type: ignore[misc]  # onnx has no types for it
    """A model that is ready to run. Source: onnx.backend.base.BackendRep."""

    def __init__(self, session: Session) -> None:
        self.session = session

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Run the model.

        Args:
            inputs: arrays in the order of the model's inputs, or by name; one array alone where
                the model has one input. A list stands for a sequence.
            kwargs: ignored.

        Returns:
            The outputs as NumPy arrays, by index and by name.

        Raises:
            ModelError: the inputs do not fit the model.
        """
        model = self.session.model
        if not isinstance(inputs, Mapping):
            values, entries = _listed(inputs), model.required_inputs
            if len(values) > len(entries):  # values for inputs with a default are given, too
                entries = model.inputs
            if len(values) != len(entries):
                raise ModelError(f"got {len(values)} inputs, must be {len(entries)}")
            inputs = {entry.name: value for entry, value in zip(entries, values, strict=True)}
        results = self.session.run(inputs)
        named = namedtupledict("Outputs", [output.name for output in model.outputs])
        outputs: tuple[Any, ...] = named(*map(_array, results))
        return outputs


class VkopsBackend(Backend):  # type: ignore[misc]
    """Run ONNX models with vkops. Source: onnx.backend.base.Backend.

    Devices are ``VULKAN`` (the best adapter), ``VULKAN:1`` (by its index) and ``CPU`` (lavapipe, or
    another driver that runs on the processor).
    """

    @classmethod
    def is_compatible(cls, model: ModelProto, device: str = "VULKAN", **kwargs: Any) -> bool:
        """Whether ``prepare`` would succeed.

        False means that the model cannot run. Faults that depend on free sizes, or on the elements
        of inputs, are found when the model runs.
        """
        try:
            check_statically(Model(model))
        except VkopsError:
            return False
        return cls.supports_device(device)

    @classmethod
    def prepare(cls, model: Any, device: str = "VULKAN", **kwargs: Any) -> VkopsRep:
        """Make a model ready to run.

        Args:
            model: a ``ModelProto``, its bytes, or the path of a file.
            device: ``VULKAN``, ``VULKAN:n`` or ``CPU``.
            kwargs: ``allow_paths``, false if left out: whether external data may lie outside of
                the folder of the model's file.

        Raises:
            ModelError: the model breaks ONNX's rules, or cannot run with the types and sizes that
                it declares. ``run`` raises what depends on free sizes or on elements of inputs.
            DeviceError: there is no such device.

        >>> import numpy as np, onnx
        >>> from vkops.onnx import backend
        >>> text = '''<ir_version: 8, opset_import: ["" : 17]>
        ... both (float[2] x, float[N] y) => (float[M] z) { z = Concat <axis = 0> (x, y) }'''
        >>> rep = backend.prepare(onnx.parser.parse_model(text))
        >>> rep.run([np.float32([1, 2]), np.float32([3])]).z
        array([1., 2., 3.], dtype=float32)
        """
        adapter = _adapter(device)
        allow_paths = kwargs.get("allow_paths", False)
        return VkopsRep(Session(Model(model, allow_paths=allow_paths), adapter))

    @classmethod
    def run_model(cls, model: Any, inputs: Any, device: str = "VULKAN", **kwargs: Any) -> Any:
        """Prepare a model and run it once. Arguments, results and errors are those of both."""
        return cls.prepare(model, device, **kwargs).run(inputs)

    @classmethod
    def run_node(
        cls,
        node: NodeProto,
        inputs: Any,
        device: str = "VULKAN",
        outputs_info: Any = None,
        **kwargs: Any,
    ) -> tuple[Any, ...]:
        """Run a single node.

        Args:
            node: the node.
            inputs: an array for each of its inputs that is not left out.
            device: ``VULKAN``, ``VULKAN:n`` or ``CPU``.
            outputs_info: ignored.
            kwargs: ``opset_version``, the newest if left out.

        Raises:
            ModelError: vkops does not have the operator, or an argument breaks a rule.
        """
        if not isinstance(node, NodeProto):
            raise ModelError(f"node: got {show(node)}, must be a NodeProto")
        newest = onnx.defs.onnx_opset_version()
        opset = kwargs.get("opset_version", newest)
        if type(opset) is not int or not 1 <= opset <= newest:
            raise ModelError(f"opset_version: got {show(opset)}, must be 1 to {newest}")
        names = list(dict.fromkeys(filter(None, node.input)))
        listed = inputs if isinstance(inputs, Mapping) else _listed(inputs)
        named = inputs if listed is inputs else dict(zip(names, listed, strict=False))
        if len(listed) != len(names) or set(named) != set(names):
            got = show(sorted(map(str, named))) if named is inputs else f"{len(listed)} inputs"
            raise ModelError(f"inputs: got {got}, must be {len(names)}: {show(names)}")
        values = {name: named[name] for name in names}
        model = helper.make_model(
            helper.make_graph(
                [node],
                node.op_type,
                [_info(name, value) for name, value in values.items()],
                [onnx.ValueInfoProto(name=name) for name in node.output if name],
            ),
            opset_imports=[helper.make_opsetid("", opset)],
        )
        # Do not check the model: its outputs have no types, which ONNX's checker does not accept.
        return VkopsRep(Session(Model(model, check=False), _adapter(device))).run(values)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Whether there is such a device: ``VULKAN``, ``VULKAN:n`` or ``CPU``."""
        try:
            _adapter(device)
        except DeviceError:
            return False
        return True


def _info(name: str, value: Any) -> onnx.ValueInfoProto:
    """Declare an input with the type of a value, and with any shape."""
    make, first = helper.make_tensor_value_info, value
    if isinstance(value, (list, tuple)):
        # An empty sequence is one of floats, as it is for a session.
        make, first = helper.make_tensor_sequence_value_info, next(iter(value), np.float32())
    if not hasattr(first, "dtype"):
        raise ModelError(f"input {name!r}: got {type(value).__name__}, must be an array")
    info: onnx.ValueInfoProto = make(name, elem_type_of(first.dtype), None)
    return info


def _listed(inputs: Any) -> list[Any]:
    """Return inputs as a list; a value that is neither a list nor a tuple is the only input."""
    return list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]


def _array(result: Any) -> Any:
    if isinstance(result, list):
        return list(map(_array, result))
    return result.numpy().copy() if isinstance(result, Tensor) else result


def _adapter(device: object) -> int | None:
    """Return the index of the adapter that a device name stands for; None: the best adapter."""
    infos = vkops.devices()
    if isinstance(device, str):  # an array would compare its elements
        if device == "VULKAN":
            return None
        for info in infos:
            if device == f"VULKAN:{info.index}" or (device == "CPU" and info.type == "CPU"):
                return info.index
    names = ", ".join(f"VULKAN:{info.index} ({info.name})" for info in infos)
    raise DeviceError(f"no device {show(device)}; available: VULKAN, {names}, and CPU (lavapipe)")


prepare: Final = VkopsBackend.prepare
run_model: Final = VkopsBackend.run_model
run_node: Final = VkopsBackend.run_node
supports_device: Final = VkopsBackend.supports_device
is_compatible: Final = VkopsBackend.is_compatible
