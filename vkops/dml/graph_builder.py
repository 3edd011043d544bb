"""Graphs built from expressions, as in DirectMLX and PyDirectML."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from vkops.arguments.values import Place, array, integer, integers
from vkops.dml.enums import FeatureLevel, TensorDataType
from vkops.dml.graph_desc import (
    OPERATOR,
    GraphDesc,
    InputGraphEdgeDesc,
    IntermediateGraphEdgeDesc,
    OutputGraphEdgeDesc,
)
from vkops.dml.operator_desc import OperatorDesc
from vkops.dml.operators import (
    ElementWiseIdentityOperatorDesc,
    JoinOperatorDesc,
    Slice1OperatorDesc,
    SliceOperatorDesc,
    SplitOperatorDesc,
)
from vkops.dml.tensor_desc import BufferTensorDesc
from vkops.dml.windows import elements_in_window
from vkops.errors import InvalidDescError
from vkops.plan.view import Ints

T = TypeVar("T")

TensorPolicy = Callable[[TensorDataType, Ints], BufferTensorDesc]
"""Function from the data type and sizes of an output to its descriptor."""


@dataclass(frozen=True, eq=False)
class Expression:
    """A tensor of a graph: an input, or an output of a node. Source: dml::Expression.

    ``desc`` is its tensor descriptor.
    """

    graph: Graph = field(repr=False)
    node: int | None
    index: int
    desc: BufferTensorDesc

    def get_output_desc(self) -> BufferTensorDesc:
        """The descriptor. Source: dml::Expression::GetOutputDesc."""
        return self.desc


class Graph:
    """Builds a graph of operators. Source: dml::Graph of DirectMLX.

    Each function makes a node and checks it at once; ``Device.compile_graph`` runs the whole as one
    operator, nearly always without intermediate buffers.

    Args:
        tensor_policy: makes the descriptors of outputs; packed if left out.
        feature_level: at which operators are checked as they are made; the newest if left out.

    >>> from vkops.dml import BufferTensorDesc, TensorDataType
    >>> graph = Graph()
    >>> x = graph.input(BufferTensorDesc(TensorDataType.FLOAT32, [4, 6]))
    >>> left, right = graph.split(x, axis=1, output_axis_sizes=[2, 4])
    >>> graph.output(graph.join([right, left], axis=1))
    0
    >>> graph.desc().lower().outputs[0].nbytes
    96
    """

    def __init__(
        self,
        tensor_policy: TensorPolicy = BufferTensorDesc,
        feature_level: FeatureLevel | int | str = FeatureLevel.LATEST,
    ) -> None:
        if not callable(tensor_policy):
            raise Place(OPERATOR, "tensor_policy", "G-02").wrong_kind(tensor_policy, "a function")
        self._policy = tensor_policy
        self._level = FeatureLevel.of(feature_level, OPERATOR)
        self._inputs: list[BufferTensorDesc] = []
        self._nodes: list[tuple[OperatorDesc, tuple[Expression, ...]]] = []
        self._outputs: list[Expression] = []

    # -- inputs and outputs -----------------------------------------------------------------------

    def input(self, tensor_desc: BufferTensorDesc) -> Expression:
        """The next input of the graph. Source: dml::InputTensor.

        Raises:
            InvalidDescTypeError: no BufferTensorDesc (T-01).
        """
        if not isinstance(tensor_desc, BufferTensorDesc):
            place = Place(OPERATOR, f"inputs[{len(self._inputs)}]", "T-01")
            raise place.wrong_kind(tensor_desc, "a BufferTensorDesc")
        self._inputs.append(tensor_desc)
        return Expression(self, None, len(self._inputs) - 1, tensor_desc)

    def output(self, x: Expression) -> int:
        """Make an expression an output of the graph; returns its index.

        Raises:
            InvalidDescError: it is an input of the graph (G-05).
        """
        (x,) = self._own([x], "output")
        if x.node is None:
            message = f"is input {x.index} of the graph, must be what a node makes; use identity"
            raise InvalidDescError(OPERATOR, f"outputs[{len(self._outputs)}]", message, "G-05")
        self._outputs.append(x)
        return len(self._outputs) - 1

    def desc(self) -> GraphDesc:
        """The graph by its edges. Source: DML_GRAPH_DESC."""
        read = [
            (x, number, place)
            for number, (_, sources) in enumerate(self._nodes)
            for place, x in enumerate(sources)
        ]
        return GraphDesc(
            input_count=len(self._inputs),
            output_count=len(self._outputs),
            nodes=[node for node, _ in self._nodes],
            input_edges=[
                InputGraphEdgeDesc(x.index, number, place)
                for x, number, place in read
                if x.node is None
            ],
            output_edges=[
                OutputGraphEdgeDesc(x.node, x.index, i)
                for i, x in enumerate(self._outputs)
                if x.node is not None
            ],
            intermediate_edges=[
                IntermediateGraphEdgeDesc(x.node, x.index, number, place)
                for x, number, place in read
                if x.node is not None
            ],
        )

    # -- operators --------------------------------------------------------------------------------

    def operator(self, desc: OperatorDesc, inputs: Sequence[Expression]) -> list[Expression]:
        """Add a node of any operator; return its outputs.

        Raises:
            InvalidDescError: the descriptor breaks a rule, or an input has another size in bytes
                than its tensor (G-07).
        """
        sources = self._own(inputs, "inputs")
        if not isinstance(desc, OperatorDesc):
            raise Place(OPERATOR, "desc", "T-18").wrong_kind(desc, "an operator descriptor")
        desc.validate(self._level)
        if len(sources) != len(desc.inputs):
            message = f"got {len(sources)} expressions, must be {len(desc.inputs)}"
            raise InvalidDescError(desc.operator, "inputs", message, "G-04")
        for x, (path, tensor) in zip(sources, desc.inputs, strict=True):
            got, wanted = x.desc.total_tensor_size_in_bytes, tensor.total_tensor_size_in_bytes
            if got != wanted:
                message = f"is fed from a tensor of {got} bytes, must be {wanted}"
                raise InvalidDescError(desc.operator, path, message, "G-07")
        self._nodes.append((desc, tuple(sources)))
        number = len(self._nodes) - 1
        return [Expression(self, number, i, tensor) for i, (_, tensor) in enumerate(desc.outputs)]

    def add(
        self,
        kind: type[OperatorDesc],
        inputs: Sequence[Expression],
        *,
        output_sizes: Sequence[Ints] | None = None,
        output_data_type: TensorDataType | None = None,
        **attributes: Any,
    ) -> list[Expression]:
        """Add a node whose output tensors are inferred from its inputs and attributes.

        Args:
            kind: the class of the operator's descriptor.
            inputs: expressions of this graph, one for each input tensor.
            output_sizes: the sizes of each output, for operators that leave them to the caller.
            output_data_type: their data type, where there are no inputs; ``value_data_type`` if
                the operator has it.
            attributes: the other fields of the descriptor.

        Raises:
            InvalidDescError: a rule of the operator is broken; an input is of another graph (G-03).

        >>> from vkops import dml
        >>> graph = Graph()
        >>> x = graph.input(dml.BufferTensorDesc(dml.TensorDataType.INT32, [2, 3]))
        >>> (joined,) = graph.add(dml.JoinOperatorDesc, [x, x], axis=0)
        >>> joined.desc.sizes
        (4, 3)
        """
        sources = self._own(inputs, "inputs")
        descs = [x.desc for x in sources]
        if not descs and any(f.role == "input" and not f.optional for f in kind.FIELDS):
            message = "got none, must be at least 1"
            raise InvalidDescError(kind.operator, "inputs", message, kind.FIELDS[0].rule)
        if output_sizes is None:
            draft = kind.of_tensors(descs, descs[:1], attributes)  # the output is inferred
            inferred = draft.infer(self._level)
        else:
            data_type: TensorDataType | None
            if descs:
                data_type = kind.of_tensors(descs, descs[:1], attributes).data_type
            else:
                data_type = attributes.get("value_data_type", output_data_type)
            if data_type is None:
                place = Place(kind.operator, "output_data_type", "T-02")
                raise place.wrong_kind(None, "a TensorDataType")
            inferred = tuple((data_type, sizes) for sizes in output_sizes)
        outputs = [self._policy(*output) for output in inferred]
        return self.operator(kind.of_tensors(descs, outputs, attributes), sources)

    def split(self, x: Expression, axis: int, output_axis_sizes: Sequence[int]) -> list[Expression]:
        """Cut along an axis into parts of these sizes. Source: dml::Split.

        Raises:
            InvalidDescError: a rule of SPLIT is broken; ``x`` is of another graph (G-03).
        """
        (x,) = self._own([x], "input")
        axis = integer(axis, Place("SPLIT", "axis", "SPLIT-02"))
        sizes = integers(output_axis_sizes, Place("SPLIT", "output_axis_sizes", "SPLIT-01"))
        parts = [_replaced(x.desc.sizes, axis, size) for size in sizes]
        return self.add(SplitOperatorDesc, [x], output_sizes=parts, axis=axis)

    def join(self, inputs: Sequence[Expression], axis: int) -> Expression:
        """Put together along an axis. Source: dml::Join.

        Raises:
            InvalidDescError: a rule of JOIN is broken; an input is of another graph (G-03).
        """
        return self.add(JoinOperatorDesc, inputs, axis=axis)[0]

    def slice(
        self, x: Expression, offsets: Sequence[int], sizes: Sequence[int], strides: Sequence[int]
    ) -> Expression:
        """Take ``sizes`` elements from ``offsets`` on, ``strides`` apart, one each per dimension.

        Source: DML_SLICE_OPERATOR_DESC.

        Raises:
            InvalidDescError: a rule of SLICE is broken; ``x`` is of another graph (G-03).
        """
        taken = integers(sizes, Place("SLICE", "sizes", "SLICE-03"))
        return self.add(
            SliceOperatorDesc,
            [x],
            output_sizes=[taken],
            offsets=offsets,
            sizes=taken,
            strides=strides,
        )[0]

    def slice1(
        self,
        x: Expression,
        input_window_offsets: Sequence[int],
        input_window_sizes: Sequence[int],
        input_window_strides: Sequence[int],
    ) -> Expression:
        """Take a window's elements, strides apart, backwards if negative. Source: dml::Slice.

        Raises:
            InvalidDescError: a rule of SLICE1 is broken; ``x`` is of another graph (G-03).
        """
        lengths = integers(input_window_sizes, Place("SLICE1", "input_window_sizes", "SLICE1-02"))
        strides = integers(
            input_window_strides, Place("SLICE1", "input_window_strides", "SLICE1-03")
        )
        # A stride of 0 is refused with the descriptor.
        sizes = tuple(elements_in_window(n, s or 1) for n, s in zip(lengths, strides, strict=False))
        return self.add(
            Slice1OperatorDesc,
            [x],
            output_sizes=[sizes],
            input_window_offsets=input_window_offsets,
            input_window_sizes=lengths,
            input_window_strides=strides,
        )[0]

    def identity(self, x: Expression, output_strides: Sequence[int] | None = None) -> Expression:
        """A copy, in a layout of its own if strides (in elements) are given. Source: dml::Identity.

        Raises:
            InvalidDescError: a rule of ELEMENT_WISE_IDENTITY is broken; ``x`` is of another graph
                (G-03).
        """
        if output_strides is None:
            return self.add(ElementWiseIdentityOperatorDesc, [x])[0]
        (x,) = self._own([x], "input")
        made = BufferTensorDesc(x.desc.data_type, x.desc.sizes, output_strides)
        return self.operator(ElementWiseIdentityOperatorDesc(x.desc, made), [x])[0]

    def reinterpret(
        self,
        x: Expression,
        data_type: TensorDataType | None = None,
        sizes: Sequence[int] | None = None,
        strides: Sequence[int] | None = None,
    ) -> Expression:
        """The same bytes as another tensor; nothing is moved. Source: dml::Reinterpret.

        Strides go with sizes: new sizes without strides are packed.

        Raises:
            InvalidDescError: it has another total size (G-07).
        """
        (x,) = self._own([x], "input")
        layout = x.desc.strides if sizes is None and strides is None else strides
        made = BufferTensorDesc(
            x.desc.data_type if data_type is None else data_type,
            x.desc.sizes if sizes is None else sizes,
            layout,
            x.desc.flags,
        )
        got, wanted = made.total_tensor_size_in_bytes, x.desc.total_tensor_size_in_bytes
        if got != wanted:
            message = f"got a tensor of {got} bytes, must be {wanted}"
            raise InvalidDescError("REINTERPRET", "sizes", message, "G-07")
        return replace(x, desc=made)

    # -- arguments --------------------------------------------------------------------------------

    def _own(self, values: Any, name: str) -> list[Expression]:
        """Expressions of this graph."""

        def own(value: object, place: Place) -> Expression:
            if isinstance(value, Expression) and value.graph is self:
                return value
            raise place.wrong_kind(value, "an expression of this graph")

        return list(array(values, Place(OPERATOR, name, "G-03"), own, "expressions"))


def _replaced(sizes: Ints, axis: int, size: int) -> Ints:
    """Sizes with another one for an axis, if there is that axis: else the operator refuses it."""
    return (*sizes[:axis], size, *sizes[axis + 1 :]) if 0 <= axis < len(sizes) else sizes
