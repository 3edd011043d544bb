"""Graphs of nodes: the main graph of a model, and graphs in attributes of If and Loop."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy.typing as npt
from onnx import GraphProto

from vkops.errors import ModelError
from vkops.onnx.lowering import LoweredValue, Lowering
from vkops.onnx.model_file import DOMAINS, all_nodes
from vkops.onnx.onnx_node import Call, OnnxNode, label, schema_of
from vkops.onnx.operators import OPERATORS, REFUSED
from vkops.onnx.tensor_data import TensorReader
from vkops.onnx.value_info import ValueInfo, value_info
from vkops.plan.size_limits import LimitError


class OnnxGraph:
    """A graph whose nodes are all of operators that vkops has.

    Args:
        proto: the graph.
        opset: the version of ONNX's operators that its model asks for.
        reader: reads the elements of constants.

    Raises:
        ModelError: a node or constant is wrong, or vkops does not have an operator.

    Attributes:
        inputs: the inputs that it declares, in order.
        outputs: the outputs that it declares.
        constants: the elements of its initializers, by name.
        nodes: its nodes, in order.
    """

    def __init__(self, proto: GraphProto, opset: int, reader: TensorReader) -> None:
        unsupported = list(unsupported_nodes(proto, opset))
        if unsupported:
            more = f", nor {len(unsupported) - 1} more nodes" if len(unsupported) > 1 else ""
            raise ModelError(f"{': '.join(unsupported[0])}{more}")
        used = {name for node in all_nodes(proto.node) for name in node.input}
        used.update(entry.name for entry in (*proto.input, *proto.output))
        stored: list[tuple[str, Any]] = [(tensor.name, tensor) for tensor in proto.initializer]
        stored += [(sparse.values.name, sparse) for sparse in proto.sparse_initializer]
        self.constants: dict[str, npt.NDArray[Any]] = {}
        for name, tensor in stored:
            if name in used:
                try:
                    self.constants[name] = reader.read(tensor)
                except ModelError as error:
                    raise ModelError(f"initializer {name!r}: {error}") from error
        self.inputs: tuple[ValueInfo, ...] = tuple(map(value_info, proto.input))
        self.outputs: tuple[ValueInfo, ...] = tuple(map(value_info, proto.output))
        self.nodes: tuple[OnnxNode, ...] = tuple(
            OnnxNode(
                node,
                index,
                schema_of(node.op_type, opset),
                reader,
                lambda inner: OnnxGraph(inner, opset, reader),
            )
            for index, node in enumerate(proto.node)
        )

    def check_names(self, outer: Mapping[str, object]) -> None:
        """Check that each node and output reads only tensors that earlier nodes make.

        ``outer`` has the names of the graphs around this one.
        """
        known = {"", *self.constants, *(entry.name for entry in self.inputs)}
        for node in self.nodes:
            for i, name in enumerate(node.inputs):
                if name not in known and name not in outer:
                    node.refuse(f"inputs[{i}]", f"got {name!r}, which no earlier node makes")
            known.update(node.outputs)
        for entry in self.outputs:
            if entry.name not in known and entry.name not in outer:
                raise ModelError(f"output {entry.name!r}: no node makes it")

    def lower(
        self,
        lowering: Lowering,
        inputs: Sequence[LoweredValue],
        scope: ChainMap[str, LoweredValue],
    ) -> list[LoweredValue]:
        """Lower a graph in an attribute; ``scope`` has the values of the enclosing graphs."""
        if len(inputs) != len(self.inputs):
            raise ModelError(f"has {len(self.inputs)} inputs, must have {len(inputs)}")
        self.check_names(scope)
        values: dict[str, LoweredValue] = {"": None}
        values.update((name, lowering.constant(array)) for name, array in self.constants.items())
        values.update(zip([entry.name for entry in self.inputs], inputs, strict=True))
        scope = scope.new_child(values)
        self.lower_nodes(lowering, scope)
        return [scope[output.name] for output in self.outputs]

    def lower_nodes(self, lowering: Lowering, values: ChainMap[str, LoweredValue]) -> None:
        """Lower the nodes, and add their outputs to the values."""
        for node in self.nodes:
            call = Call(node, lowering, [values[name] for name in node.inputs], values)
            try:
                outputs = OPERATORS[node.operator].outputs(call)
            except LimitError as error:
                raise ModelError(f"{node.label}: {error}") from error
            values.update(zip(node.outputs, outputs, strict=False))
            values[""] = None


def unsupported_nodes(graph: GraphProto, opset: int) -> Iterator[tuple[str, str]]:
    """Yield the labels of all nodes of a graph that vkops cannot run, and the reasons.

    This includes nodes in the body of Loop, but not those in branches of If, of which only one is
    run.
    """
    for index, node in enumerate(graph.node):
        is_own = node.domain in DOMAINS
        if not is_own or node.op_type not in OPERATORS:
            reason = "vkops does not have this operator"
            if is_own and node.op_type in REFUSED:
                reason += f" ({REFUSED[node.op_type]})"
        elif (schema := schema_of(node.op_type, opset)) is None:
            reason = f"opset {opset} does not have this operator"
        elif schema.since_version > (newest := OPERATORS[node.op_type].newest):
            version = schema.since_version
            reason = (
                f"vkops knows this operator up to version {newest}, opset {opset} has {version}"
            )
        else:
            if node.op_type == "Loop":
                for attribute in node.attribute:
                    yield from unsupported_nodes(attribute.g, opset)
            continue
        domain = "" if is_own else f"{node.domain}."
        name = f"{domain}{node.op_type}"  # text, even where a name is bytes that are not UTF-8
        yield label(node, index, name if name.isprintable() else repr(name)), reason
