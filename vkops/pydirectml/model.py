"""PyDirectML's devices, tensor descriptors, graphs and models."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from operator import is_not
from typing import Any, NoReturn, overload

import numpy as np
import numpy.typing as npt

import vkops
from vkops.arguments.values import ArgumentName, array, boolean, instance, integers
from vkops.dml import (
    BufferTensorDesc,
    ElementWiseIdentityOperatorDesc,
    ExecutionFlags,
    Expression,
    Graph,
    TensorDataType,
    TensorFlags,
)
from vkops.dml.addressing import spanned_elements
from vkops.dml.graph_builder import as_expression
from vkops.dml.graph_desc import GraphDesc
from vkops.errors import BindingError, DeviceError, InvalidDescError
from vkops.plan.indexing import OutOfRange
from vkops.tensors.exchange import as_array
from vkops.tensors.tensor import Tensor

_OPERATOR = "GRAPH"
_Policy = Callable[[TensorDataType, tuple[int, ...]], BufferTensorDesc]


class Device(vkops.Device):
    """A Vulkan device. Source: pydirectml.Device.

    Args:
        use_gpu: the best adapter, which is a GPU where there is one; False: one that runs on the
            CPU, such as lavapipe.
        use_debug_layer: whether to load Vulkan's validation layer.
        indices: the rule of indices that are out of range, which PyDirectML has no argument for;
            see ``vkops.Device``.

    Raises:
        DeviceError: there is no such adapter, driver, loader or layer, or an argument of the wrong
            kind.
    """

    def __init__(
        self,
        use_gpu: bool = True,
        use_debug_layer: bool = False,
        *,
        indices: OutOfRange = "vkops",
    ) -> None:
        adapter = None
        if not boolean(use_gpu, ArgumentName("", "use_gpu", "DEV-14")):
            adapter = next((i.index for i in vkops.devices() if i.type == "CPU"), None)
            if adapter is None:
                names = ", ".join(info.name for info in vkops.devices()) or "none"
                raise DeviceError(f"no adapter runs on the CPU; available: {names}")
        super().__init__(adapter, debug=use_debug_layer, indices=indices)

    def compute(
        self, model: Model, inputs: Sequence[Binding], outputs: Sequence[Expression]
    ) -> list[Tensor]:
        """Run a model. Source: pydirectml.Device.compute.

        Args:
            model: what ``GraphBuilder.build`` returned for this device.
            inputs: the data of the inputs, in any order.
            outputs: which of the model's outputs to return.

        Returns:
            A tensor for each output, which ``numpy.array`` copies to the host.

        Raises:
            InvalidDescTypeError: the model is of another device, or an argument is of the wrong
                kind (B-02).
            BindingError: an input is missing (B-01), bound twice, or of another graph (B-02); an
                output is not one that the model was built with (B-02).
            OutOfDeviceMemoryError: the data do not fit in device memory; nothing was run.
        """
        if not isinstance(model, Model) or model.graph.device is not self:
            raise ArgumentName("", "model", "B-02").wrong_kind(model, f"a Model of {self!r}")
        a_binding = partial(instance, Binding, "a Binding")
        bindings = array(inputs, ArgumentName(_OPERATOR, "inputs", "B-02"), a_binding, "bindings")
        asked = array(
            outputs, ArgumentName(_OPERATOR, "outputs", "B-02"), as_expression, "expressions"
        )
        return model._run(bindings, asked)


class TensorDesc(BufferTensorDesc):
    """A tensor in a buffer, with the arguments of PyDirectML. Source: pydirectml.TensorDesc.

    The first argument is ``data_type``; then come ``flags``, which may be left out, and ``sizes``,
    and then a ``tensor_policy``, or ``strides`` in elements, ``total_tensor_size_in_bytes`` and
    ``guaranteed_base_offset_alignment``.

    Raises:
        InvalidDescTypeError: an argument is of the wrong kind (T-02 to T-17).

    >>> from vkops.dml import TensorPolicy
    >>> TensorDesc(TensorDataType.FLOAT32, [1, 3, 4, 4], TensorPolicy.interleaved_channel).strides
    (48, 1, 12, 3)
    >>> TensorDesc(TensorDataType.INT8, TensorFlags.OWNED_BY_DML, [3]).total_tensor_size_in_bytes
    4
    """

    @overload
    def __init__(
        self, data_type: TensorDataType, sizes: Sequence[int], tensor_policy: _Policy = ...
    ) -> None: ...

    @overload
    def __init__(
        self, data_type: TensorDataType, sizes: Sequence[int], strides: Sequence[int] | None
    ) -> None: ...

    @overload
    def __init__(
        self,
        data_type: TensorDataType,
        flags: TensorFlags,
        sizes: Sequence[int],
        tensor_policy: _Policy = ...,
    ) -> None: ...

    @overload
    def __init__(
        self,
        data_type: TensorDataType,
        flags: TensorFlags,
        sizes: Sequence[int],
        strides: Sequence[int] | None,
        total_tensor_size_in_bytes: int,
        guaranteed_base_offset_alignment: int,
    ) -> None: ...

    def __init__(self, data_type: Any, *args: Any, **keywords: Any) -> None:
        names = ["sizes", "tensor_policy"]
        if args and not isinstance(args[0], (Sequence, np.ndarray)):
            names = ["flags", *names]
        if len(args) >= len(names) and not callable(args[len(names) - 1]):
            names[-1] = "strides"
        names += ["total_tensor_size_in_bytes", "guaranteed_base_offset_alignment"]
        if len(args) > len(names) or any(name in keywords for name in names[: len(args)]):
            raise TypeError("TensorDesc(): got too many arguments, or one of them twice")
        fields = {"sizes": None, **dict(zip(names, args, strict=False)), **keywords}
        policy = fields.pop("tensor_policy", None)
        if policy is not None:
            if not callable(policy) or isinstance(policy, type):
                raise ArgumentName("", "tensor_policy", "T-07").wrong_kind(policy, "a function")
            sizes = integers(fields["sizes"], ArgumentName("", "sizes", "T-04"))
            fields["strides"] = policy(data_type, sizes).strides
        super().__init__(data_type, **fields)


class GraphBuilder(Graph):
    """A graph that a device compiles. Source: pydirectml.GraphBuilder.

    Raises:
        InvalidDescTypeError: the device is not one of ``vkops.pydirectml`` (B-02).
    """

    def __init__(self, device: Device) -> None:
        if not isinstance(device, Device):
            raise ArgumentName("", "device", "B-02").wrong_kind(device, "a vkops.pydirectml.Device")
        super().__init__(feature_level=device.feature_level)
        self.device: Device = device

    def build(self, flags: ExecutionFlags, outputs: Sequence[Expression]) -> Model:
        """Compile the expressions that are the outputs of a model.

        Raises:
            InvalidDescError: an output is an input of the graph (G-05), or the graph breaks another
                rule.
            InvalidDescTypeError: unknown flags (DEV-10), or an output that is not an expression of
                this graph (G-03).
        """
        return Model(self, flags, outputs)


class Model:
    """A compiled graph, made by ``GraphBuilder.build``. Source: pydirectml.Model."""

    def __init__(
        self, graph: GraphBuilder, flags: ExecutionFlags, outputs: Sequence[Expression]
    ) -> None:
        argument = ArgumentName(_OPERATOR, "outputs", "G-03")
        self.graph: GraphBuilder = graph
        self.outputs: tuple[Expression, ...] = array(
            outputs, argument, as_expression, "expressions"
        )
        # Results have the order of their dimensions, whatever the layout of the output is.
        copied, outputs = graph._copied(self.outputs)
        self._packed = [x if x.desc.strides is None else _packed(x) for x in outputs]
        self._desc: GraphDesc = copied.desc(self._packed)
        self._flags = flags
        self._compiled = graph.device.compile_graph(self._desc, flags)
        self._owned = [
            i
            for i, (_, tensor) in enumerate(self._desc.inputs)
            if tensor is not None and TensorFlags.OWNED_BY_DML in tensor.flags
        ]
        self._initialized: list[Binding | None] = []

    def _run(self, bindings: Sequence[Binding], outputs: Sequence[Expression]) -> list[Tensor]:
        for i, x in enumerate(outputs):
            if x not in self.outputs:
                _refuse(f"outputs[{i}]", "is not an output that the model was built with", "B-02")
        device = self.graph.device
        bound: list[Binding | None] = [None] * len(self._desc.inputs)
        for i, binding in enumerate(bindings):
            index = binding.expr.index
            if binding.expr.graph is not self.graph or binding.expr.node is not None:
                _refuse(f"inputs[{i}]", "is not bound to an input of the model's graph", "B-02")
            if index >= len(bound):
                message = f"binds input {index}, which was added after the model was built"
                _refuse(f"inputs[{i}]", message, "B-02")
            if bound[index] is not None:
                _refuse(f"inputs[{i}]", f"binds input {index}, which is bound before", "B-02")
            bound[index] = binding
        for i, (path, tensor) in enumerate(self._desc.inputs):
            if tensor is not None and bound[i] is None:
                _refuse(path, "has no binding", "B-01")
        owned = [bound[i] for i in self._owned]
        if owned and (not self._initialized or any(map(is_not, owned, self._initialized))):
            if self._initialized:  # an operator is initialized once
                self._compiled = device.compile_graph(self._desc, self._flags)
            self._compiled.initialize(
                [_bound(device, x) if i in self._owned else None for i, x in enumerate(bound)]
            )
            self._initialized = owned
        results = [
            Tensor(device, x.desc.sizes, np.dtype(x.desc.data_type.numpy_code))
            for x in self._packed
        ]
        sources = [
            None if i in self._owned or tensor is None else _bound(device, bound[i])
            for i, (_, tensor) in enumerate(self._desc.inputs)
        ]
        self._compiled.dispatch(sources, results)
        return [results[self.outputs.index(x)] for x in outputs]


class Binding:
    """The data of an input. Source: pydirectml.Binding.

    Args:
        expr: what ``input_tensor`` returned.
        data: an array, or what NumPy makes one of, with as many elements as the tensor has from
            its first to its last, in the order of its memory; converted to the tensor's data type.

    Raises:
        InvalidDescTypeError: ``expr`` is not an expression (B-02), or the data cannot be
            converted (T-02).
        InvalidDescError: the data have another number of elements (T-12).
    """

    def __init__(self, expr: Expression, data: Any) -> None:
        self.expr: Expression = as_expression(expr, ArgumentName("", "expr", "B-02"))
        desc = self.expr.desc
        dtype = np.dtype(desc.data_type.numpy_code)
        source = as_array(data)
        try:
            self.data: npt.NDArray[Any] = _converted(source, dtype).reshape(-1)
        except (TypeError, ValueError, FloatingPointError) as error:
            kinds = f"numbers that {dtype} can hold"
            raise ArgumentName("", "data", "T-02").wrong_kind(data, kinds) from error
        count = spanned_elements(desc.sizes, desc.effective_strides)
        if self.data.size != count:
            message = f"got {self.data.size} elements, must be {count}, as the tensor has"
            raise InvalidDescError("", "data", message, "T-12")


def _packed(x: Expression) -> Expression:
    packed = BufferTensorDesc(x.desc.data_type, x.desc.sizes)
    return x.graph.operator(ElementWiseIdentityOperatorDesc(x.desc, packed), [x])[0]


def _converted(source: npt.NDArray[Any], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """Convert numbers to a data type; fractions may be rounded, but integers stay the same."""
    integers = source.dtype.kind in "iu" and dtype.kind in "iu"
    with np.errstate(over="raise"):
        converted = source.astype(dtype, "C", "unsafe" if integers else "same_kind")
    if integers and not np.array_equal(converted, source):
        raise ValueError
    return converted


def _bound(device: Device, binding: Binding | None) -> Tensor | None:
    """The data on the device, with zeros after them where the tensor is larger."""
    if binding is None:
        return None
    nbytes = binding.expr.desc.total_tensor_size_in_bytes
    data = np.zeros(nbytes, np.uint8)
    data[: binding.data.nbytes] = binding.data.view(np.uint8)
    return device.tensor(data)


def _refuse(field: str, message: str, rule: str) -> NoReturn:
    raise BindingError(_OPERATOR, field, message, rule)
