"""Graphs built from expressions, as in DirectMLX and PyDirectML."""

from __future__ import annotations

import re
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

from vkops.arguments.refused_operators import refuse_operators
from vkops.arguments.values import ArgumentName, array, instance, integer, integers
from vkops.dml.basic_indexing import window_of
from vkops.dml.enums import FeatureLevel, TensorDataType
from vkops.dml.graph_desc import (
    MAX_INPUTS_OR_OUTPUTS,
    OPERATOR,
    GraphDesc,
    InputGraphEdgeDesc,
    IntermediateGraphEdgeDesc,
    OutputGraphEdgeDesc,
)
from vkops.dml.operator_desc import OperatorDesc
from vkops.dml.operators.element_wise_identity import ElementWiseIdentityOperatorDesc
from vkops.dml.operators.slice import Slice1OperatorDesc
from vkops.dml.operators.split_and_join import JoinOperatorDesc, SplitOperatorDesc
from vkops.dml.tensor_desc import BufferTensorDesc, Policy
from vkops.errors import InvalidDescError, InvalidDescTypeError, show
from vkops.plan.movements import elements_in_window
from vkops.plan.view import Ints


@dataclass(frozen=True, eq=False)
class Expression:
    """A tensor of a graph: an input, or an output of a node. Source: dml::Expression.

    ``desc`` is its tensor descriptor. Indexing by integers, slices, ``...`` and None adds a node of
    SLICE1, with the meaning of NumPy's. DirectMLX's operators that compute, such as ``+``, raise a
    TypeError (G-12).

    >>> from vkops import dml
    >>> x = dml.Graph().input(dml.BufferTensorDesc(dml.TensorDataType.FLOAT32, [4, 6]))
    >>> x[::-1, 2:5].desc.sizes, x[-1].desc.sizes, x[..., None, 0].desc.sizes
    ((4, 3), (6,), (4, 1))
    """

    graph: Graph = field(repr=False)
    node: int | None
    index: int
    desc: BufferTensorDesc

    def get_output_desc(self) -> BufferTensorDesc:
        """The descriptor. Source: dml::Expression::GetOutputDesc."""
        return self.desc

    def __getitem__(self, index: Any) -> Expression:
        """The elements that a basic index selects, as an expression of the same graph.

        Raises:
            InvalidDescError: the index selects no element, or does not fit the tensor (G-13).
            InvalidDescTypeError: it has parts of another kind (G-13).
        """
        *window, dimensions = window_of(self.desc.sizes, index)
        x = self.graph.slice1(self, *window)
        if dimensions == [*range(len(x.desc.sizes))]:
            return x
        sizes, strides = x.desc.sizes, x.desc.strides
        return self.graph.reinterpret(
            x,
            sizes=[1 if i is None else sizes[i] for i in dimensions],
            strides=strides and [1 if i is None else strides[i] for i in dimensions],
        )

    __iter__ = None
    __array_ufunc__ = None  # NumPy's scalars leave operators to expressions


def _refuse_to_compute(operator: str) -> NoReturn:
    message = f"{operator} is not available: vkops only moves data"
    raise InvalidDescTypeError(OPERATOR, "expression", message, "G-12")


refuse_operators(Expression, _refuse_to_compute)


class Graph:
    """Builds a graph of operators. Source: dml::Graph of DirectMLX.

    Each function makes a node and checks it at once; ``Device.compile_graph`` runs the whole as one
    operator, nearly always without intermediate buffers.

    Args:
        tensor_policy: makes the descriptors of outputs, such as
            ``TensorPolicy.interleaved_channel``; packed if left out.
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
        tensor_policy: Policy = BufferTensorDesc,
        feature_level: FeatureLevel | int | str = FeatureLevel.LATEST,
    ) -> None:
        if not callable(tensor_policy):
            raise ArgumentName(OPERATOR, "tensor_policy", "G-02").wrong_kind(
                tensor_policy, "a function"
            )
        self._policy = tensor_policy
        self._level = FeatureLevel.of(feature_level, OPERATOR)
        self._input_count = 0
        self._nodes: list[tuple[OperatorDesc, tuple[Expression, ...]]] = []
        self._outputs: list[Expression] = []

    def __repr__(self) -> str:
        counts = (
            f"inputs: {self._input_count}, nodes: {len(self._nodes)}, outputs: {len(self._outputs)}"
        )
        return f"<{type(self).__name__} ({counts})>"

    # -- inputs and outputs -----------------------------------------------------------------------

    def input(self, tensor_desc: BufferTensorDesc, input_index: int | None = None) -> Expression:
        """An input of the graph; the next one, if ``input_index`` is left out.

        Several expressions may read one input. Source: dml::InputTensor.

        Raises:
            InvalidDescTypeError: no BufferTensorDesc (T-01), or the index is not an integer (G-03).
            InvalidDescError: the index is negative or too large (G-03).
        """
        index = self._input_count
        if input_index is not None:
            index = integer(input_index, ArgumentName(OPERATOR, "input_index", "G-03"))
        if not 0 <= index < MAX_INPUTS_OR_OUTPUTS:
            message = f"got {show(index)}, must be 0 to {MAX_INPUTS_OR_OUTPUTS - 1}"
            raise InvalidDescError(OPERATOR, "input_index", message, "G-03")
        argument = ArgumentName(OPERATOR, f"inputs[{index}]", "T-01")
        instance(BufferTensorDesc, "a BufferTensorDesc", tensor_desc, argument)
        self._input_count = max(self._input_count, index + 1)
        return Expression(self, None, index, tensor_desc)

    def output(self, x: Expression) -> int:
        """Make an expression an output of the graph; returns its index.

        Raises:
            InvalidDescError: it is an input of the graph (G-05).
        """
        (x,) = self._own([x], "output")
        self._check_output(len(self._outputs), x)
        self._outputs.append(x)
        return len(self._outputs) - 1

    def desc(self, outputs: Sequence[Expression] | None = None) -> GraphDesc:
        """The graph by its edges. Source: DML_GRAPH_DESC.

        Args:
            outputs: the outputs, as dml::Graph::Compile takes them; nodes that none of them needs
                are left out. If it is left out itself, the graph has all its nodes, and the outputs
                are those that ``output`` was called with.

        Raises:
            InvalidDescError: one of the outputs is an input of the graph (G-05).
            InvalidDescTypeError: one of them is not an expression of this graph (G-03).
        """
        numbers: Sequence[int] = range(len(self._nodes))
        results = self._outputs
        if outputs is not None:
            results = self._own(outputs, "outputs")
            for i, x in enumerate(results):
                self._check_output(i, x)
            numbers = self._needed(results)
        places = {number: place for place, number in enumerate(numbers)}
        input_edges: list[InputGraphEdgeDesc] = []
        edges: list[IntermediateGraphEdgeDesc] = []
        for number, place in places.items():
            for i, x in enumerate(self._nodes[number][1]):
                if x.node is None:
                    input_edges.append(InputGraphEdgeDesc(x.index, place, i))
                else:
                    edges.append(IntermediateGraphEdgeDesc(places[x.node], x.index, place, i))
        output_edges = [
            OutputGraphEdgeDesc(places[x.node], x.index, i)
            for i, x in enumerate(results)
            if x.node is not None
        ]
        nodes = [self._nodes[number][0] for number in numbers]
        return GraphDesc(self._input_count, len(results), nodes, input_edges, output_edges, edges)

    def _check_output(self, index: int, x: Expression) -> None:
        if x.node is None:
            message = f"is input {x.index} of the graph, must be what a node makes; use identity"
            raise InvalidDescError(OPERATOR, f"outputs[{index}]", message, "G-05")

    def _needed(self, results: Sequence[Expression]) -> Sequence[int]:
        """Return the numbers of all nodes on which some expressions depend."""
        needed: set[int] = set()
        waiting = [x.node for x in results]
        while waiting:
            number = waiting.pop()
            if number is not None and number not in needed:
                needed.add(number)
                waiting += [x.node for x in self._nodes[number][1]]
        return sorted(needed)

    # -- operators --------------------------------------------------------------------------------

    def operator(self, desc: OperatorDesc, inputs: Sequence[Expression]) -> list[Expression]:
        """Add a node of any operator; return its outputs.

        Raises:
            InvalidDescError: the descriptor breaks a rule, or an input has another size in bytes
                than its tensor (G-07).
        """
        sources = self._own(inputs, "inputs")
        if not isinstance(desc, OperatorDesc):
            raise ArgumentName(OPERATOR, "desc", "T-18").wrong_kind(desc, "an operator descriptor")
        desc.validate(self._level)
        if len(sources) != len(desc.inputs):
            message = f"got {len(sources)} expressions, must be {len(desc.inputs)}"
            raise InvalidDescError(desc.operator, "inputs", message, "G-04")
        for x, (path, tensor) in zip(sources, desc.inputs, strict=True):
            got, expected = x.desc.total_tensor_size_in_bytes, tensor.total_tensor_size_in_bytes
            if got != expected:
                message = f"is fed from a tensor of {got} bytes, must be {expected}"
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
        if not (
            isinstance(kind, type) and issubclass(kind, OperatorDesc) and hasattr(kind, "operator")
        ):
            raise ArgumentName(OPERATOR, "kind", "T-18").wrong_kind(
                kind, "the class of a descriptor"
            )
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
                argument = ArgumentName(kind.operator, "output_data_type", "T-02")
                raise argument.wrong_kind(None, "a TensorDataType")
            inferred = tuple((data_type, sizes) for sizes in output_sizes)
        outputs = [self._policy(*output) for output in inferred]
        return self.operator(kind.of_tensors(descs, outputs, attributes), sources)

    # The functions of ``vkops.dml`` of these names, which say what they do and raise.

    def split(self, x: Expression, axis: int, output_axis_sizes: Sequence[int]) -> list[Expression]:
        """Cut along an axis into parts of these sizes: ``vkops.dml.split``."""
        (x,) = self._own([x], "inputs")
        axis = integer(axis, ArgumentName("SPLIT", "axis", "SPLIT-02"))
        lengths = integers(
            output_axis_sizes, ArgumentName("SPLIT", "output_axis_sizes", "SPLIT-01")
        )
        sizes = [with_size(x.desc.sizes, axis, length) for length in lengths]
        return self.add(SplitOperatorDesc, [x], output_sizes=sizes, axis=axis)

    def join(self, inputs: Sequence[Expression], axis: int) -> Expression:
        """Put together along an axis: ``vkops.dml.join``."""
        return self.add(JoinOperatorDesc, inputs, axis=axis)[0]

    def slice(
        self,
        x: Expression,
        input_window_offsets: Sequence[int],
        input_window_sizes: Sequence[int],
        input_window_strides: Sequence[int],
    ) -> Expression:
        """Take a window's elements, strides apart, backwards if negative: ``vkops.dml.slice``."""
        lengths = integers(
            input_window_sizes, ArgumentName("SLICE1", "input_window_sizes", "SLICE1-02")
        )
        strides = integers(
            input_window_strides, ArgumentName("SLICE1", "input_window_strides", "SLICE1-03")
        )
        # A stride of 0 is an error of the descriptor: divide by 1 until then.
        pairs = zip(lengths, strides, strict=False)
        return self.add(
            Slice1OperatorDesc,
            [x],
            output_sizes=[tuple(elements_in_window(n, s or 1) for n, s in pairs)],
            input_window_offsets=input_window_offsets,
            input_window_sizes=lengths,
            input_window_strides=strides,
        )[0]

    slice1 = slice
    """The same by the name of the operator, SLICE1."""

    def identity(self, x: Expression, output_strides: Sequence[int] | None = None) -> Expression:
        """A copy, ``vkops.dml.identity``; in a layout of its own if strides are given."""
        if output_strides is None:
            return self.add(ElementWiseIdentityOperatorDesc, [x])[0]
        (x,) = self._own([x], "input")
        output_desc = BufferTensorDesc(x.desc.data_type, x.desc.sizes, output_strides)
        return self.operator(ElementWiseIdentityOperatorDesc(x.desc, output_desc), [x])[0]

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
        desc = BufferTensorDesc(
            x.desc.data_type if data_type is None else data_type,
            x.desc.sizes if sizes is None else sizes,
            layout,
            x.desc.flags,
        )
        got, expected = desc.total_tensor_size_in_bytes, x.desc.total_tensor_size_in_bytes
        if got != expected:
            message = f"got a tensor of {got} bytes, must be {expected}"
            raise InvalidDescError("REINTERPRET", "sizes", message, "G-07")
        return replace(x, desc=desc)

    def _copied(self, outputs: Sequence[Expression]) -> tuple[Graph, list[Expression]]:
        """A copy of the graph, to which nodes can be added, and some expressions in it."""
        graph = copy(self)
        graph._nodes = [*self._nodes]
        return graph, [replace(x, graph=graph) for x in self._own(outputs, "outputs")]

    # -- arguments --------------------------------------------------------------------------------

    def _own(self, values: Any, name: str) -> list[Expression]:
        def own(value: object, argument: ArgumentName) -> Expression:
            if isinstance(value, Expression) and value.graph is self:
                return value
            raise argument.wrong_kind(value, "an expression of this graph")

        return list(array(values, ArgumentName(OPERATOR, name, "G-03"), own, "expressions"))


def input_tensor(graph: Graph, input_index: int, tensor_desc: BufferTensorDesc) -> Expression:
    """An input of a graph, by its index. Source: dml::InputTensor.

    Raises:
        InvalidDescTypeError: no graph (G-03), no index (G-03) or no BufferTensorDesc (T-01).
        InvalidDescError: the index is negative or too large (G-03).

    >>> from vkops import dml
    >>> graph = dml.Graph()
    >>> x = dml.input_tensor(graph, 0, dml.BufferTensorDesc(dml.TensorDataType.FLOAT32, [2, 3]))
    >>> x.get_output_desc().sizes
    (2, 3)
    """
    index = integer(input_index, ArgumentName(OPERATOR, "input_index", "G-03"))
    return as_graph(graph).input(tensor_desc, index)


def reinterpret(
    input: Expression,
    new_type: TensorDataType | None = None,
    new_sizes: Sequence[int] | None = None,
    new_strides: Sequence[int] | None = None,
) -> Expression:
    """The same bytes as another tensor; nothing is moved. Source: dml::Reinterpret.

    What is left out stays; new sizes without strides are packed.

    Raises:
        InvalidDescError: it has another total size in bytes (G-07).
        InvalidDescTypeError: no expression (G-03), or an argument of another wrong kind.

    >>> from vkops import dml
    >>> graph = dml.Graph()
    >>> x = dml.input_tensor(graph, 0, dml.BufferTensorDesc(dml.TensorDataType.FLOAT32, [2, 3]))
    >>> dml.reinterpret(x, new_sizes=[3, 2]).desc.sizes
    (3, 2)
    """
    graph = as_expression(input, ArgumentName("REINTERPRET", "input", "G-03")).graph
    return graph.reinterpret(input, new_type, new_sizes, new_strides)


def with_size(sizes: Ints, axis: int, size: int) -> Ints:
    """Return sizes with that of an axis replaced; unchanged if there is no such axis."""
    return (*sizes[:axis], size, *sizes[axis + 1 :]) if 0 <= axis < len(sizes) else sizes


def parameter_name(field: str) -> str:
    """Return DirectMLX's name of a tensor field, or the name of another field."""
    return re.sub("_tensors?$", "s" if field.endswith("tensors") else "", field)


def as_graph(value: object) -> Graph:
    """Return a value that is a graph; raise an error for any other value."""
    return instance(Graph, "a Graph", value, ArgumentName(OPERATOR, "graph", "G-03"))


def as_expression(value: object, argument: ArgumentName) -> Expression:
    """Return a value that is an expression; raise an error for any other value."""
    return instance(Expression, "an Expression", value, argument)
