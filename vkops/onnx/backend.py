"""vkops as an ONNX backend: ``onnx.backend.base.Backend`` on any Vulkan device."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

import onnx
from onnx import ModelProto, NodeProto, helper
from onnx.backend.base import Backend, BackendRep, namedtupledict

import vkops
from vkops.device import Device
from vkops.errors import DeviceError, ModelError, VkopsError
from vkops.onnx.model import Model, unsupported_nodes
from vkops.onnx.reading import read
from vkops.onnx.session import Session
from vkops.onnx.types import elem_type_of
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
            kwargs: none is known.

        Returns:
            The outputs, NumPy arrays, by place and by name.

        Raises:
            ModelError: the inputs do not fit the model.
        """
        names = [output.name for output in self.session.model.outputs]
        results = self.session.run(self._by_name(inputs))
        made: tuple[Any, ...] = namedtupledict("Outputs", names)(*map(_array, results))
        return made

    def _by_name(self, inputs: Any) -> Mapping[str, Any]:
        if isinstance(inputs, Mapping):
            return inputs
        model = self.session.model
        values = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
        # Inputs with a default come last, or are not given at all.
        entries = model.inputs if len(values) > len(model.required_inputs) else None
        entries = entries or model.required_inputs
        if len(values) != len(entries):
            raise ModelError(f"got {len(values)} inputs, must be {len(entries)}")
        return {entry.name: value for entry, value in zip(entries, values, strict=True)}


class VkopsBackend(Backend):  # type: ignore[misc]
    """vkops as a backend. Source: onnx.backend.base.Backend.

    Devices are ``VULKAN`` (the best adapter), ``VULKAN:1`` (by its index) and ``CPU`` (lavapipe, or
    another driver that runs on the processor).
    """

    @classmethod
    def is_compatible(cls, model: ModelProto, device: str = "VULKAN", **kwargs: Any) -> bool:
        """Whether vkops has every operator of a model, in the version that the model asks for."""
        try:
            return cls.supports_device(device) and not unsupported_nodes(read(model))
        except VkopsError:
            return False

    @classmethod
    def prepare(cls, model: Any, device: str = "VULKAN", **kwargs: Any) -> VkopsRep:
        """Make a model ready to run.

        Args:
            model: a ``ModelProto``, its bytes, or the path of a file.
            device: ``VULKAN``, ``VULKAN:n`` or ``CPU``.
            kwargs: ``allow_paths``, false if left out: whether external data may lie outside of
                the folder of the model's file.

        Raises:
            ModelError: the model breaks ONNX's rules, or has a node that vkops cannot run.
            DeviceError: there is no such device.

        >>> import numpy as np, onnx
        >>> from vkops.onnx import backend
        >>> text = '''<ir_version: 8, opset_import: ["" : 17]>
        ... both (float[2] x, float[N] y) => (float[M] z) { z = Concat <axis = 0> (x, y) }'''
        >>> rep = backend.prepare(onnx.parser.parse_model(text))
        >>> rep.run([np.float32([1, 2]), np.float32([3])]).z
        array([1., 2., 3.], dtype=float32)
        """
        allow_paths = bool(kwargs.get("allow_paths", False))
        return VkopsRep(Session(Model(model, allow_paths=allow_paths), _device(device)))

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
            outputs_info: not needed.
            kwargs: ``opset_version``, the newest if left out.

        Raises:
            ModelError: vkops does not have the operator, or an argument breaks a rule.
        """
        opset = kwargs.get("opset_version", onnx.defs.onnx_opset_version())
        names = list(dict.fromkeys(filter(None, node.input)))
        values = dict(inputs) if isinstance(inputs, Mapping) else dict(zip(names, inputs))  # noqa: B905
        if sorted(values) != sorted(names):
            raise ModelError(f"got {len(values)} inputs, must be {len(names)}: {', '.join(names)}")
        model = helper.make_model(
            helper.make_graph(
                [node],
                node.op_type,
                [_info(name, value) for name, value in values.items()],
                [onnx.ValueInfoProto(name=name) for name in node.output if name],
            ),
            opset_imports=[helper.make_opsetid("", opset)],
        )
        # Its outputs have no types, for which ONNX's own checker would refuse it.
        return VkopsRep(Session(Model(model, check=False), _device(device))).run(values)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Whether there is such a device: ``VULKAN``, ``VULKAN:n`` or ``CPU``."""
        try:
            _adapter(device)
        except DeviceError:
            return False
        return True


def _info(name: str, value: Any) -> onnx.ValueInfoProto:
    """An input as a model declares it, of any shape."""
    first = value[0] if isinstance(value, (list, tuple)) else value
    if not hasattr(first, "dtype"):
        raise ModelError(f"input {name!r}: got {type(value).__name__}, must be an array")
    make = helper.make_tensor_value_info
    if first is not value:
        make = helper.make_tensor_sequence_value_info
    info: onnx.ValueInfoProto = make(name, elem_type_of(first.dtype), None)
    return info


def _array(result: Any) -> Any:
    if isinstance(result, list):
        return list(map(_array, result))
    return result.numpy().copy() if isinstance(result, Tensor) else result


def _adapter(device: str) -> int | None:
    """The index of the adapter that a device name stands for; None: whichever is best."""
    infos = vkops.devices()
    kind, _, number = device.partition(":")
    if kind == "CPU" and not number:
        for info in infos:
            if info.type == "CPU":
                return info.index
    elif kind == "VULKAN" and not number:
        return None
    elif kind == "VULKAN" and number.isdecimal():
        for info in infos:
            if info.index == int(number):
                return info.index
    raise DeviceError(f"no device {device!r}; there are VULKAN, VULKAN:n and CPU (lavapipe)")


@lru_cache(maxsize=8)
def _opened(index: int | None) -> Device:
    return Device(index)


def _device(name: str) -> Device:
    return _opened(_adapter(name))


prepare: Final = VkopsBackend.prepare
run_model: Final = VkopsBackend.run_model
run_node: Final = VkopsBackend.run_node
supports_device: Final = VkopsBackend.supports_device
is_compatible: Final = VkopsBackend.is_compatible
