"""Graphs of operators by their edges, and the G-* rules."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, ClassVar

from vkops.arguments.values import ArgumentName, array, integer, refuse
from vkops.dml.enums import FeatureLevel, TensorFlags
from vkops.dml.operator_desc import NamedTensor, OperatorDesc
from vkops.dml.tensor_desc import BufferTensorDesc
from vkops.errors import FeatureLevelError, InvalidDescError, show
from vkops.plan import CopyPlan, Pipeline, View
from vkops.plan.algebra import narrow
from vkops.plan.graph import RegionGraph, keeps_size
from vkops.plan.indexing import OutOfRange
from vkops.plan.movements import copy
from vkops.plan.region import Progression
from vkops.plan.size_limits import LimitError
from vkops.system.threads import cached_property

OPERATOR = "GRAPH"
"""The name of graphs in errors."""

MAX_INPUTS_OR_OUTPUTS = 1 << 16
"""Largest number of inputs, and of outputs, of a graph."""

FIRST_LEVEL = FeatureLevel.LEVEL_2_1
"""The feature level that brought graphs."""


@dataclass(frozen=True)
class InputGraphEdgeDesc:
    """From an input of the graph to an input of a node. Source: DML_INPUT_GRAPH_EDGE_DESC."""

    graph_input_index: int
    to_node_index: int
    to_node_input_index: int


@dataclass(frozen=True)
class OutputGraphEdgeDesc:
    """From an output of a node to an output of the graph. Source: DML_OUTPUT_GRAPH_EDGE_DESC."""

    from_node_index: int
    from_node_output_index: int
    graph_output_index: int


@dataclass(frozen=True)
class IntermediateGraphEdgeDesc:
    """From an output of a node to an input of another. Source: DML_INTERMEDIATE_GRAPH_EDGE_DESC."""

    from_node_index: int
    from_node_output_index: int
    to_node_index: int
    to_node_input_index: int


_End = tuple[int | None, int]
"""An end of an edge: a node, or None for the graph, and the index of its input or output."""


@dataclass(frozen=True)
class GraphDesc:
    """Operators connected by edges; tensors between them need no memory.

    Source: DML_GRAPH_DESC.

    An edge carries bytes: the tensors at its ends may differ in all but their total size (G-07).

    Attributes:
        input_count: inputs of the graph; one may feed many nodes, or none.
        output_count: outputs of the graph.
        nodes: operator descriptors.
        input_edges: from the graph's inputs.
        output_edges: to the graph's outputs.
        intermediate_edges: between nodes.

    Raises:
        InvalidDescTypeError: a field is of the wrong kind.

    >>> from vkops.dml import BufferTensorDesc, JoinOperatorDesc, SplitOperatorDesc, TensorDataType
    >>> whole, half = (BufferTensorDesc(TensorDataType.INT32, [n, 3]) for n in (4, 2))
    >>> graph = GraphDesc(
    ...     input_count=1,
    ...     output_count=1,
    ...     nodes=[
    ...         SplitOperatorDesc(whole, [half, half], axis=0),
    ...         JoinOperatorDesc([half, half], whole, axis=0),
    ...     ],
    ...     input_edges=[InputGraphEdgeDesc(0, 0, 0)],
    ...     output_edges=[OutputGraphEdgeDesc(1, 0, 0)],
    ...     intermediate_edges=[
    ...         IntermediateGraphEdgeDesc(0, 0, 1, 1),
    ...         IntermediateGraphEdgeDesc(0, 1, 1, 0),
    ...     ],
    ... )
    >>> [region.sizes for region in graph.lower().outputs[0].regions]  # halves swapped
    [(6,), (6,)]
    """

    input_count: int
    output_count: int
    nodes: Sequence[OperatorDesc]
    input_edges: Sequence[InputGraphEdgeDesc]
    output_edges: Sequence[OutputGraphEdgeDesc]
    intermediate_edges: Sequence[IntermediateGraphEdgeDesc] = ()

    operator: ClassVar[str] = OPERATOR
    runs_in_place: ClassVar[bool] = False

    def __post_init__(self) -> None:
        values = vars(self)
        for name in ("input_count", "output_count"):
            values[name] = integer(getattr(self, name), ArgumentName(OPERATOR, name, "G-02"))
        for name, kind, rule in (
            ("nodes", OperatorDesc, "G-01"),
            ("input_edges", InputGraphEdgeDesc, "G-03"),
            ("output_edges", OutputGraphEdgeDesc, "G-03"),
            ("intermediate_edges", IntermediateGraphEdgeDesc, "G-03"),
        ):
            values[name] = _all_of(kind, getattr(self, name), ArgumentName(OPERATOR, name, rule))

    # -- rules ------------------------------------------------------------------------------------

    def validate(
        self,
        feature_level: FeatureLevel | int | str = FeatureLevel.LATEST,
        alternative_levels: Sequence[str] = (),
    ) -> None:
        """Check every node at a feature level, and the rules of graphs.

        Raises:
            InvalidDescError: the first rule that is broken: a node's, or one of G-01 to G-07.
            FeatureLevelError: a node needs a higher feature level.
        """
        level = FeatureLevel.of(feature_level, OPERATOR)
        if level < FIRST_LEVEL:
            message = f"not available at feature level {level}; allowed from {FIRST_LEVEL}"
            raise FeatureLevelError(OPERATOR, "", message, "DEV-12")
        for name, count, minimum in (
            ("input_count", self.input_count, 0),
            ("output_count", self.output_count, 1),
        ):
            if not minimum <= count <= MAX_INPUTS_OR_OUTPUTS:
                message = f"got {show(count)}, must be {minimum} to {MAX_INPUTS_OR_OUTPUTS}"
                refuse(OPERATOR, name, message, "G-02")
        for i, node in enumerate(self.nodes):
            try:
                node.validate(feature_level, alternative_levels)
            except InvalidDescError as error:
                field = f"nodes[{i}]" + (f".{error.field}" if error.field else "")
                message = f"{error.operator}: {error.message}"
                raise type(error)(OPERATOR, field, message, error.rule) from error
        self._check_edges()
        self._check_connected()
        _ = self._order
        self._check_owned()
        vars(self)["_is_valid"] = True  # valid at this level, which is enough to lower the graph

    def _check_edges(self) -> None:
        """Check that both ends of each edge exist (G-03) and have as many bytes (G-07)."""
        for name, edge in self._named_edges():
            # In this order, the index of a node is checked before indices of its inputs or outputs.
            for field, value in vars(edge).items():
                limit = self._limit(edge, field)
                if not 0 <= value < limit:
                    allowed = f"must be 0 to {limit - 1}" if limit else "there are none"
                    refuse(OPERATOR, f"{name}.{field}", f"got {show(value)}, {allowed}", "G-03")
        for i, edge in enumerate(self.intermediate_edges):
            _, written = self._tensors[edge.from_node_index][1][edge.from_node_output_index]
            _, read = self._read(edge)
            got, expected = read.total_tensor_size_in_bytes, written.total_tensor_size_in_bytes
            if got != expected:
                message = f"ends at a tensor of {got} bytes, must be {expected} as at its start"
                refuse(OPERATOR, f"intermediate_edges[{i}]", message, "G-07")

    def _limit(self, edge: Any, field: str) -> int:
        """Return the number of things (nodes, graph inputs ...) that an edge's field indexes."""
        if field.startswith("graph"):
            return self.input_count if field == "graph_input_index" else self.output_count
        if field.endswith("node_index"):
            return len(self.nodes)
        end = field.partition("_")[0]
        return len(self._tensors[getattr(edge, f"{end}_node_index")][end == "from"])

    def _check_connected(self) -> None:
        """Check that each input has one source, and each output goes somewhere (G-04)."""
        ends: dict[_End, str] = {}
        for name, _, end in self._edges:
            if end in ends:
                kind = "output" if end[0] is None else "input"
                refuse(OPERATOR, name, f"leads to the same {kind} as {ends[end]}", "G-04")
            ends[end] = name
        starts = {start for _, start, _ in self._edges}
        for number, node in enumerate(self.nodes):
            for connected, tensors in zip((ends, starts), self._tensors[number], strict=True):
                for i, (path, _) in enumerate(tensors):
                    if (number, i) not in connected:
                        message = f"{node.operator}: is not connected"
                        refuse(OPERATOR, f"nodes[{number}].{path}", message, "G-04")
        for i in range(self.output_count):
            if (None, i) not in ends:
                refuse(OPERATOR, f"outputs[{i}]", "is not connected", "G-04")

    def _check_owned(self) -> None:
        """Check that OWNED_BY_DML inputs come from the graph's inputs, and readers agree (G-06)."""
        for edge in self.intermediate_edges:
            path, tensor = self._read(edge)
            if TensorFlags.OWNED_BY_DML in tensor.flags:
                message = "is OWNED_BY_DML, which only an input from outside the graph may be"
                refuse(OPERATOR, f"nodes[{edge.to_node_index}].{path}", message, "G-06")
        for i, readers in enumerate(self._readers):
            owned = {TensorFlags.OWNED_BY_DML in tensor.flags for tensor in readers}
            if len(owned) > 1:
                message = "is OWNED_BY_DML for some of its readers, must be for all or none"
                refuse(OPERATOR, f"inputs[{i}]", message, "G-06")

    def _named_edges(self) -> Iterator[tuple[str, Any]]:
        for name in ("input_edges", "output_edges", "intermediate_edges"):
            for i, edge in enumerate(getattr(self, name)):
                yield f"{name}[{i}]", edge

    # -- tensors ----------------------------------------------------------------------------------

    @property
    def inputs(self) -> tuple[tuple[str, BufferTensorDesc | None], ...]:
        """The graph's inputs, each as the largest tensor that reads it; None if it is not read."""
        return tuple(
            (
                f"inputs[{i}]",
                max(readers, key=attrgetter("total_tensor_size_in_bytes")) if readers else None,
            )
            for i, readers in enumerate(self._readers)
        )

    @property
    def outputs(self) -> tuple[NamedTensor, ...]:
        """The graph's outputs, as nodes make them."""
        starts = [self._sources[None, i] for i in range(self.output_count)]
        tensors = [self._tensors[node][1][i][1] for node, i in starts if node is not None]
        return tuple((f"outputs[{i}]", tensor) for i, tensor in enumerate(tensors))

    @cached_property
    def _tensors(self) -> list[tuple[tuple[NamedTensor, ...], tuple[NamedTensor, ...]]]:
        return [(node.inputs, node.outputs) for node in self.nodes]

    def _read(self, edge: InputGraphEdgeDesc | IntermediateGraphEdgeDesc) -> NamedTensor:
        """The input of a node at which an edge ends."""
        return self._tensors[edge.to_node_index][0][edge.to_node_input_index]

    @cached_property
    def _readers(self) -> list[list[BufferTensorDesc]]:
        """The tensors of nodes that each input of the graph feeds."""
        readers: list[list[BufferTensorDesc]] = [[] for _ in range(self.input_count)]
        for edge in self.input_edges:
            readers[edge.graph_input_index].append(self._read(edge)[1])
        return readers

    @cached_property
    def _edges(self) -> list[tuple[str, _End, _End]]:
        """The name, the start and the end of each edge."""
        edges = []
        for name, edge in self._named_edges():
            get = vars(edge).get
            start = get("from_node_index"), get("from_node_output_index", get("graph_input_index"))
            end = get("to_node_index"), get("to_node_input_index", get("graph_output_index"))
            edges.append((name, start, end))
        return edges

    @cached_property
    def _sources(self) -> dict[_End, _End]:
        """The start of the edge to each input of a node, and to each output of the graph."""
        return {end: start for _, start, end in self._edges}

    @cached_property
    def _order(self) -> list[int]:
        """The nodes, each after those that feed it (G-01)."""
        waiting = [0] * len(self.nodes)
        feeds: list[list[int]] = [[] for _ in self.nodes]
        for edge in self.intermediate_edges:
            waiting[edge.to_node_index] += 1
            feeds[edge.from_node_index].append(edge.to_node_index)
        order = [number for number, count in enumerate(waiting) if not count]
        for number in order:  # grows meanwhile
            for fed in feeds[number]:
                waiting[fed] -= 1
                if not waiting[fed]:
                    order.append(fed)
        if len(order) < len(self.nodes):
            stuck = next(number for number, count in enumerate(waiting) if count)
            refuse(OPERATOR, f"nodes[{stuck}]", "feeds itself, a graph must have no cycle", "G-01")
        return order

    def lower(self, indices: OutOfRange = "vkops") -> CopyPlan:
        """Return the plan that makes the graph's outputs, the last step of its pipeline."""
        return self.lower_to_pipeline(indices).plan

    @property
    def pipeline(self) -> Pipeline:
        """The steps that run the graph; see ``lower_to_pipeline``."""
        return self.lower_to_pipeline()

    def lower_to_pipeline(self, indices: OutOfRange = "vkops") -> Pipeline:
        """Return the steps that run the graph; nearly always one. They are cached.

        Args:
            indices: the rule of indices that are out of range; see ``vkops.Device``.

        Raises:
            InvalidDescError: the graph has too many tensors and regions (G-11).
        """
        pipeline = self._pipelines.get(indices)
        if pipeline is None:
            if "_is_valid" not in vars(self):
                self.validate()
            try:
                pipeline = self._pipelines[indices] = self._fused(indices)
            except LimitError as error:
                refuse(OPERATOR, "nodes", str(error), "G-11")
        return pipeline

    @cached_property
    def _pipelines(self) -> dict[OutOfRange, Pipeline]:
        """The pipelines that were made, by the rule of indices that are out of range."""
        return {}

    def _fused(self, indices: OutOfRange) -> Pipeline:
        size = min((node.lower().element_size for node in self.nodes), default=4)
        graph = RegionGraph(gaps=True)  # G-08
        numbers: dict[_End, int] = {}
        constants: dict[int, Progression] = {}
        for i, (_, tensor) in enumerate(self.inputs):
            nbytes = 0 if tensor is None else tensor.total_tensor_size_in_bytes
            numbers[None, i] = graph.leaf(nbytes, size)
        for number in self._order:
            plan = self.nodes[number].lower(indices)
            read = {i: numbers[self._sources[number, i]] for i in range(len(plan.inputs))}
            for i, constant in enumerate(plan.constants, len(read)):
                read[i] = graph.leaf(constant.nbytes, size)
                constants[read[i]] = constant
            for i, output in enumerate(plan.outputs):
                element_size = plan.element_size if keeps_size(output.regions) else size
                regions = narrow(output.regions, plan.element_size, element_size)
                moved = (region.renumber(read) for region in regions)
                numbers[number, i] = graph.make(moved, output.nbytes, element_size)
        outputs: list[int] = []
        for i in range(self.output_count):
            source = numbers[self._sources[None, i]]
            if source in outputs:  # one output of a node may be several of the graph
                nbytes = graph.nbytes(source)
                whole = View.packed((nbytes // size,))
                source = graph.make([copy(whole, whole, source)], nbytes, size)
            outputs.append(source)
        inputs = tuple(numbers[None, i] for i in range(self.input_count))
        return Pipeline(tuple(graph.lower(outputs)), inputs, tuple(outputs), constants)


def _all_of(kind: type, value: object, argument: ArgumentName) -> tuple[Any, ...]:
    def checked(item: object, where: ArgumentName) -> object:
        if not isinstance(item, kind):
            raise where.wrong_kind(item, f"a {kind.__name__}")
        if kind is OperatorDesc:
            return item
        # Change a copy of the caller's edge, which may be used in other graphs.
        indices = {
            name: integer(index, where._replace(field=f"{where.field}.{name}"))
            for name, index in vars(item).items()
        }
        return kind(**indices)

    return array(value, argument, checked, kind.__name__)
