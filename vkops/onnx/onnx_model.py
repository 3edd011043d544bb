"""Models: read, checked, and lowered for the shapes of their inputs."""

from __future__ import annotations

import os
from collections import ChainMap
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import ModelProto

from vkops.arguments.values import model_option
from vkops.errors import ModelError, show
from vkops.onnx.graph import OnnxGraph
from vkops.onnx.lowering import LoweredSequence, LoweredValue, Lowering
from vkops.onnx.model_file import Content, opset_of, read
from vkops.onnx.onnx_node import OnnxNode
from vkops.onnx.tensor_data import TensorReader
from vkops.onnx.value_info import (
    InputType,
    ModelMetadata,
    TensorType,
    ValueInfo,
    check_input,
    check_output_type,
)
from vkops.plan.size_limits import LimitError

Array = npt.NDArray[Any]


class Model:
    """An ONNX model of operators that only move data.

    Args:
        source: a ``ModelProto``, its bytes, or the path of a file.
        check: whether to check it by ONNX's rules; its nodes are checked in any case.
        allow_paths: whether external data may lie outside of the folder of the model's file.

    Raises:
        ModelError: the file is not a model, the model breaks ONNX's rules, or a node is of an
            operator that vkops does not have.

    Attributes:
        inputs: the inputs that the graph declares, in order.
        outputs: the outputs that it declares.
        opset: the version of ONNX's operators that the model asks for.
        metadata: what the model says about itself.

    >>> import onnx
    >>> from vkops.onnx import Model
    >>> text = '''<ir_version: 9, opset_import: ["" : 18]>
    ... flat (float[N, 4] x) => (float[M] y) { y = Flatten <axis = 0> (x) }'''
    >>> model = Model(onnx.parser.parse_model(text))
    >>> model.inputs[0].name, model.inputs[0].shape, model.opset
    ('x', ('N', 4), 18)
    """

    def __init__(
        self,
        source: ModelProto | bytes | str | os.PathLike[str],
        *,
        check: bool = True,
        allow_paths: bool = False,
    ) -> None:
        path_or_model = Path(source) if isinstance(source, os.PathLike) else source
        if not isinstance(path_or_model, (ModelProto, bytes, str, Path)):
            message = "must be a ModelProto, its bytes, or the path of a file"
            raise ModelError(f"model: got {show(source)}, {message}")
        model_option("check", check)
        model_option("allow_paths", allow_paths)
        try:
            self._take(read(path_or_model, check=check, allow_paths=allow_paths))
        except ModelError as error:
            if not isinstance(path_or_model, (str, Path)):
                raise
            raise ModelError(f"{path_or_model}: {error}") from error

    def _take(self, content: Content) -> None:
        self.opset: int = opset_of(content.proto)
        self.metadata: ModelMetadata = ModelMetadata.of(content.proto)
        self.graph: OnnxGraph = OnnxGraph(
            content.proto.graph, self.opset, TensorReader(content.detached)
        )
        self.graph.check_names({})
        self.inputs: tuple[ValueInfo, ...] = self.graph.inputs
        self.outputs: tuple[ValueInfo, ...] = self.graph.outputs
        self.constants: dict[str, Array] = self.graph.constants
        self.nodes: tuple[OnnxNode, ...] = self.graph.nodes

    def __repr__(self) -> str:
        counts = (
            f"inputs: {len(self.inputs)}, nodes: {len(self.nodes)}, outputs: {len(self.outputs)}"
        )
        return f"<vkops.onnx.Model of opset {self.opset} ({counts})>"

    @property
    def required_inputs(self) -> tuple[ValueInfo, ...]:
        """Inputs without a default."""
        return tuple(entry for entry in self.inputs if entry.name not in self.constants)

    def with_sizes(self, resize: Callable[[Sequence[ValueInfo]], tuple[ValueInfo, ...]]) -> Model:
        """Return the model with other declared shapes; the model itself if none changes."""
        inputs, outputs = resize(self.inputs), resize(self.outputs)
        if (inputs, outputs) == (self.inputs, self.outputs):
            return self
        model = copy(self)
        model.inputs, model.outputs = inputs, outputs
        return model

    def lower(self, input_types: Mapping[str, InputType], known: Mapping[str, Any]) -> Lowering:
        """Lower the graph: write each output as regions that read inputs and constants.

        Args:
            input_types: the type and shape of each input; those with a default may be left out.
            known: the inputs whose elements may be used.

        Raises:
            ModelError: a node's arguments break a rule of its operator.
            NeedsValueError: shapes depend on the elements of an input that is not known.
        """
        free: dict[str, int] = {}
        for entry in self.inputs:
            if entry.name in input_types:
                check_input(entry, input_types[entry.name], free)
            elif entry.name not in self.constants:
                raise ModelError(f"input {entry.name!r}: is missing")
        lowering = Lowering(input_types)
        values: ChainMap[str, LoweredValue] = ChainMap({"": None})
        for name, array in self.constants.items():
            if name not in input_types:
                values[name] = lowering.constant(array)
        for name, type_ in input_types.items():
            try:
                values[name] = _input(lowering, name, type_, known.get(name))
            except LimitError as error:
                raise ModelError(f"input {name!r}: {error}") from error
        self.graph.lower_nodes(lowering, values)
        lowering.outputs = [values[output.name] for output in self.outputs]
        for entry, value in zip(self.outputs, lowering.outputs, strict=True):
            check_output_type(entry, None if value is None else value.dtype)
        return lowering


def _input(lowering: Lowering, name: str, type_: InputType, elements: Any) -> LoweredValue:
    """Add a graph input to a lowering, as a constant if its elements are known."""
    if type_ is None:
        return None
    if isinstance(type_, TensorType):
        if elements is not None:
            return lowering.constant(np.array(elements))  # a copy: the caller may change the array
        return lowering.input(name, type_.dtype, type_.shape)
    if elements is not None:
        copies = map(lowering.constant, map(np.array, elements))
        return LoweredSequence(type_.dtype, tuple(copies))
    items = (lowering.input(name, type_.dtype, shape, i) for i, shape in enumerate(type_.shapes))
    return LoweredSequence(type_.dtype, tuple(items))
