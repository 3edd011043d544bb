"""DirectMLX's functions, which take expressions of a graph and return expressions.

Each function adds a node of the newest version of an operator. Its parameters are the operator's
input tensors and attributes, and the sizes of outputs that cannot be inferred from these.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import cleandoc, signature
from typing import Any, TypeVar

from vkops.arguments.values import ArgumentName, array, integer, integers
from vkops.dml.enums import (
    AxisDirection,
    DepthSpaceOrder,
    InterpolationMode,
    PaddingMode,
    TensorDataType,
)
from vkops.dml.fields import ScaleBias, Size2D, texts_of
from vkops.dml.graph_builder import (
    Expression,
    Graph,
    as_expression,
    as_graph,
    parameter_name,
    with_size,
)
from vkops.dml.operator_desc import OperatorDesc
from vkops.dml.operators.depth_and_space import DepthToSpace1OperatorDesc, SpaceToDepth1OperatorDesc
from vkops.dml.operators.element_wise_identity import ElementWiseIdentityOperatorDesc
from vkops.dml.operators.fill_value import (
    DiagonalMatrix1OperatorDesc,
    FillValueConstantOperatorDesc,
    FillValueSequenceOperatorDesc,
)
from vkops.dml.operators.gather import (
    GatherElementsOperatorDesc,
    GatherNd1OperatorDesc,
    GatherOperatorDesc,
    ReverseSubsequencesOperatorDesc,
)
from vkops.dml.operators.padding import Padding1OperatorDesc, PaddingOperatorDesc
from vkops.dml.operators.resample import Resample3OperatorDesc, Upsample2dOperatorDesc
from vkops.dml.operators.scatter import (
    OneHotOperatorDesc,
    ScatterNdOperatorDesc,
    ScatterOperatorDesc,
)
from vkops.dml.operators.slice import Slice1OperatorDesc, SliceGradOperatorDesc
from vkops.dml.operators.split_and_join import JoinOperatorDesc, SplitOperatorDesc
from vkops.dml.operators.tile import TileOperatorDesc
from vkops.dml.operators.unfold import UnfoldOperatorDesc
from vkops.dml.tensor_desc import UINT32_MAX
from vkops.errors import InvalidDescError
from vkops.plan.view import Ints

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])

_RAISES = """\
Raises:
    InvalidDescError: a rule of {} is broken.
    InvalidDescTypeError: an argument is of the wrong kind, or an expression is of
        another graph (G-03).
    FeatureLevelError: the operator needs a higher feature level than the graph has."""


def _adds(
    kind: type[OperatorDesc], directmlx: str = "", **texts: str
) -> Callable[[FunctionT], FunctionT]:
    """Complete the docstring of a function that adds a node, from the docstring of a descriptor.

    ``directmlx`` is DirectMLX's name of the function, if it has it, and ``texts`` are about the
    parameters that the descriptor does not have.
    """
    told = {"graph": "the graph that gets the node.", **texts}
    told.setdefault("output_sizes", "extent of each dimension of the output.")
    told |= {parameter_name(name): text for name, text in texts_of(kind).items()}
    struct = f"DML_{kind.operator}_OPERATOR_DESC"

    def complete(function: FunctionT) -> FunctionT:
        summary, _, example = cleandoc(function.__doc__ or "").partition("\n")
        source = f"dml::{directmlx}, {struct}" if directmlx else f"{struct}, not in DirectMLX"
        parameters = [f"    {name}: {told[name]}" for name in signature(function).parameters]
        arguments = "\n".join(["Args:", *parameters])
        sections = f"Source: {source}.\n\n{arguments}\n\n{_RAISES.format(kind.operator)}"
        function.__doc__ = f"{summary}\n\n{sections}\n{example}"
        function.__module__ = "vkops.dml"
        return function

    return complete


def _input(kind: type[OperatorDesc], value: object) -> Expression:
    """Return the first input of an operator; raise an error if it is not an expression."""
    return as_expression(
        value, ArgumentName(kind.operator, parameter_name(kind.FIELDS[0].name), "G-03")
    )


def _node(
    kind: type[OperatorDesc],
    inputs: Sequence[Expression],
    attributes: Sequence[Any],
    output_sizes: Sequence[Ints] | None = None,
    graph: Graph | None = None,
) -> Expression:
    """Add a node with one output to a graph, which is that of the first input if left out."""
    graph = graph or _input(kind, inputs[0]).graph
    names = (field.name for field in kind.FIELDS if field.role == "attribute")
    named = dict(zip(names, attributes, strict=True))
    return graph.add(kind, inputs, output_sizes=output_sizes, **named)[0]


def _sizes(kind: type[OperatorDesc], name: str, value: object, rule: str) -> Sequence[Ints]:
    """Check an argument that gives the sizes of the only output, and return them."""
    return [integers(value, ArgumentName(kind.operator, name, rule))]


@_adds(ElementWiseIdentityOperatorDesc, "Identity")
def identity(input: Expression, scale_bias: ScaleBias | None = None) -> Expression:
    """Copies a tensor; with other strides this transposes, broadcasts or changes the layout.

    >>> from vkops import dml
    >>> graph = dml.Graph()
    >>> x = graph.input(dml.BufferTensorDesc(dml.TensorDataType.FLOAT32, [2, 3]))
    >>> dml.identity(x).desc.sizes
    (2, 3)
    """
    return _node(ElementWiseIdentityOperatorDesc, [input], [scale_bias])


@_adds(
    SplitOperatorDesc,
    "Split",
    output_axis_sizes="extent of each output along the axis; together that of the input.",
)
def split(input: Expression, axis: int, output_axis_sizes: Sequence[int]) -> list[Expression]:
    """Cuts a tensor along an axis; output k begins where output k - 1 ends.

    >>> from vkops import dml
    >>> graph = dml.Graph()
    >>> x = graph.input(dml.BufferTensorDesc(dml.TensorDataType.FLOAT32, [4, 6]))
    >>> [part.desc.sizes for part in dml.split(x, 1, [2, 4])]
    [(4, 2), (4, 4)]
    """
    return _input(SplitOperatorDesc, input).graph.split(input, axis, output_axis_sizes)


@_adds(JoinOperatorDesc, "Join")
def join(inputs: Sequence[Expression], axis: int) -> Expression:
    """Puts tensors together along an axis, in order: the inverse of SPLIT.

    >>> from vkops import dml
    >>> graph = dml.Graph()
    >>> x = graph.input(dml.BufferTensorDesc(dml.TensorDataType.FLOAT32, [4, 2]))
    >>> y = graph.input(dml.BufferTensorDesc(dml.TensorDataType.FLOAT32, [4, 4]))
    >>> dml.join([x, y], axis=1).desc.sizes
    (4, 6)
    """
    argument = ArgumentName("JOIN", "inputs", "G-03")
    expressions = array(inputs, argument, as_expression, "expressions")
    if not expressions:
        raise InvalidDescError("JOIN", "inputs", "got none, must be at least 1", "JOIN-01")
    return expressions[0].graph.join(expressions, axis)


@_adds(Slice1OperatorDesc, "Slice")
def slice(
    input: Expression,
    input_window_offsets: Sequence[int],
    input_window_sizes: Sequence[int],
    input_window_strides: Sequence[int],
) -> Expression:
    """Copies elements of a window, ``input_window_strides`` apart; negative ones read backwards.

    >>> from vkops import dml
    >>> graph = dml.Graph()
    >>> x = graph.input(dml.BufferTensorDesc(dml.TensorDataType.FLOAT32, [4, 6]))
    >>> dml.slice(x, [0, 1], [4, 5], [-1, 2]).desc.sizes
    (4, 3)
    """
    return _input(Slice1OperatorDesc, input).graph.slice(
        input, input_window_offsets, input_window_sizes, input_window_strides
    )


@_adds(
    SliceGradOperatorDesc,
    "SliceGrad",
    output_gradient_sizes="extent of each dimension of the output.",
)
def slice_grad(
    input_gradient: Expression,
    output_gradient_sizes: Sequence[int],
    input_window_offsets: Sequence[int],
    input_window_sizes: Sequence[int],
    input_window_strides: Sequence[int],
) -> Expression:
    """Puts elements where SLICE1 with the same window would take them from, and 0 elsewhere.

    >>> from vkops import dml
    >>> graph = dml.Graph()
    >>> x = graph.input(dml.BufferTensorDesc(dml.TensorDataType.FLOAT32, [4, 3]))
    >>> dml.slice_grad(x, [4, 6], [0, 1], [4, 5], [-1, 2]).desc.sizes
    (4, 6)
    """
    sizes = _sizes(
        SliceGradOperatorDesc, "output_gradient_sizes", output_gradient_sizes, "SGRAD-01"
    )
    window = [input_window_offsets, input_window_sizes, input_window_strides]
    return _node(SliceGradOperatorDesc, [input_gradient], window, sizes)


@_adds(TileOperatorDesc, "Tile")
def tile(input: Expression, repeats: Sequence[int]) -> Expression:
    """Repeats a tensor along each dimension, as a whole.

    >>> from vkops import dml
    >>> graph = dml.Graph()
    >>> x = graph.input(dml.BufferTensorDesc(dml.TensorDataType.FLOAT32, [2, 3]))
    >>> dml.tile(x, [1, 4]).desc.sizes
    (2, 12)
    """
    return _node(TileOperatorDesc, [input], [repeats])


@_adds(PaddingOperatorDesc, "Padding")
def padding(
    input: Expression,
    padding_mode: PaddingMode,
    padding_value: float,
    start_padding: Sequence[int],
    end_padding: Sequence[int],
) -> Expression:
    """Puts a tensor into a larger one, and fills the rest as a mode says.

    >>> from vkops import dml
    >>> graph = dml.Graph()
    >>> x = graph.input(dml.BufferTensorDesc(dml.TensorDataType.FLOAT32, [2, 3]))
    >>> dml.padding(x, dml.PaddingMode.EDGE, 0, [1, 0], [0, 2]).desc.sizes
    (3, 5)
    """
    attributes = [padding_mode, padding_value, start_padding, end_padding]
    return _node(PaddingOperatorDesc, [input], attributes)


@_adds(Padding1OperatorDesc)
def padding1(
    input: Expression,
    padding_mode: PaddingMode,
    padding_value_data_type: TensorDataType,
    padding_value: float,
    start_padding: Sequence[int],
    end_padding: Sequence[int],
) -> Expression:
    """Puts a tensor into a larger one, as PADDING does; the value has the tensors' data type.

    >>> from vkops import dml
    >>> graph = dml.Graph()
    >>> x = graph.input(dml.BufferTensorDesc(dml.TensorDataType.FLOAT32, [2, 3]))
    >>> dml.padding1(
    ...     x, dml.PaddingMode.CONSTANT, dml.TensorDataType.FLOAT32, 9.5, [1, 0], [0, 2]
    ... ).desc.sizes
    (3, 5)
    """
    value = [padding_value_data_type, padding_value]
    return _node(Padding1OperatorDesc, [input], [padding_mode, *value, start_padding, end_padding])


@_adds(SpaceToDepth1OperatorDesc, "SpaceToDepth")
def space_to_depth(
    input: Expression, block_size: int, order: DepthSpaceOrder = DepthSpaceOrder.DEPTH_COLUMN_ROW
) -> Expression:
    """Moves blocks into channels as SPACE_TO_DEPTH does, with a choice of the channels' order.

    >>> from vkops import dml
    >>> graph = dml.Graph()
    >>> x = graph.input(dml.BufferTensorDesc(dml.TensorDataType.FLOAT32, [1, 1, 4, 6]))
    >>> dml.space_to_depth(x, block_size=2).desc.sizes
    (1, 4, 2, 3)
    """
    return _node(SpaceToDepth1OperatorDesc, [input], [block_size, order])


@_adds(DepthToSpace1OperatorDesc, "DepthToSpace")
def depth_to_space(
    input: Expression, block_size: int, order: DepthSpaceOrder = DepthSpaceOrder.DEPTH_COLUMN_ROW
) -> Expression:
    """Moves channels into blocks as DEPTH_TO_SPACE does, with a choice of the channels' order.

    >>> from vkops import dml
    >>> graph = dml.Graph()
    >>> x = graph.input(dml.BufferTensorDesc(dml.TensorDataType.FLOAT32, [1, 4, 2, 3]))
    >>> dml.depth_to_space(x, block_size=2).desc.sizes
    (1, 1, 4, 6)
    """
    return _node(DepthToSpace1OperatorDesc, [input], [block_size, order])


@_adds(Upsample2dOperatorDesc, "Upsample2D")
def upsample_2d(
    input: Expression, scale_size: Size2D, interpolation_mode: InterpolationMode
) -> Expression:
    """Repeats each element along the last two dimensions, as ``scale_size`` says.

    >>> from vkops import dml
    >>> graph = dml.Graph()
    >>> x = graph.input(dml.BufferTensorDesc(dml.TensorDataType.FLOAT32, [1, 1, 2, 3]))
    >>> dml.upsample_2d(
    ...     x, dml.Size2D(width=3, height=2), dml.InterpolationMode.NEAREST_NEIGHBOR
    ... ).desc.sizes
    (1, 1, 4, 9)
    """
    return _node(Upsample2dOperatorDesc, [input], [scale_size, interpolation_mode])


@_adds(Resample3OperatorDesc, "Resample")
def resample(
    input: Expression,
    output_sizes: Sequence[int],
    interpolation_mode: InterpolationMode,
    rounding_direction: AxisDirection = AxisDirection.INCREASING,
    scales: Sequence[float] | None = None,
    input_pixel_offsets: Sequence[float] | None = None,
    output_pixel_offsets: Sequence[float] | None = None,
    antialiased: bool = False,
) -> Expression:
    """Scales a tensor along each dimension, as RESAMPLE2 does.

    >>> from vkops import dml
    >>> graph = dml.Graph()
    >>> x = graph.input(dml.BufferTensorDesc(dml.TensorDataType.FLOAT32, [1, 1, 2, 3]))
    >>> dml.resample(x, [1, 1, 5, 5], dml.InterpolationMode.NEAREST_NEIGHBOR).desc.sizes
    (1, 1, 5, 5)
    """
    sizes = _sizes(Resample3OperatorDesc, "output_sizes", output_sizes, "RES-01")
    given = _input(Resample3OperatorDesc, input).desc.sizes
    if scales is None:
        # Sizes of 0 or of more than 32 bits are left to the checks of the operator.
        pairs = zip(sizes[0], given, strict=False)
        scales = [max(0, min(output, UINT32_MAX)) / max(size, 1) for output, size in pairs]
    if input_pixel_offsets is None:
        input_pixel_offsets = [0.5] * len(given)
    if output_pixel_offsets is None:
        output_pixel_offsets = [-0.5] * len(given)
    offsets = input_pixel_offsets, output_pixel_offsets
    attributes = [interpolation_mode, rounding_direction, scales, *offsets, antialiased]
    return _node(Resample3OperatorDesc, [input], attributes, sizes)


@_adds(UnfoldOperatorDesc)
def unfold(
    input: Expression,
    window_sizes: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    start_padding: Sequence[int],
    end_padding: Sequence[int],
) -> Expression:
    """Copies what a window over the spatial dimensions holds at each of its positions.

    >>> from vkops import dml
    >>> graph = dml.Graph()
    >>> x = graph.input(dml.BufferTensorDesc(dml.TensorDataType.FLOAT32, [1, 2, 4, 4]))
    >>> dml.unfold(x, [3, 3], [1, 1], [1, 1], [0, 0], [0, 0]).desc.sizes
    (1, 18, 4)
    """
    attributes = [window_sizes, strides, dilations, start_padding, end_padding]
    return _node(UnfoldOperatorDesc, [input], attributes)


@_adds(DiagonalMatrix1OperatorDesc)
def diagonal_matrix(
    graph: Graph,
    output_sizes: Sequence[int],
    value_data_type: TensorDataType,
    value: float,
    diagonal_fill_begin: int,
    diagonal_fill_end: int,
    input: Expression | None = None,
) -> Expression:
    """Writes a value to some diagonals of matrices, and a tensor or 0 elsewhere.

    >>> from vkops import dml
    >>> graph = dml.Graph()
    >>> dml.diagonal_matrix(graph, [3, 4], dml.TensorDataType.FLOAT32, 1, 0, 1).desc.sizes
    (3, 4)
    """
    sizes = _sizes(DiagonalMatrix1OperatorDesc, "output_sizes", output_sizes, "DIAG-04")
    return _node(
        DiagonalMatrix1OperatorDesc,
        [] if input is None else [input],
        [value_data_type, value, diagonal_fill_begin, diagonal_fill_end],
        sizes,
        as_graph(graph),
    )


@_adds(FillValueConstantOperatorDesc, "FillValueConstant")
def fill_value_constant(
    graph: Graph, output_sizes: Sequence[int], value_data_type: TensorDataType, value: float
) -> Expression:
    """Writes one value to every element of a tensor; there is no input.

    >>> from vkops import dml
    >>> graph = dml.Graph()
    >>> dml.fill_value_constant(graph, [2, 3], dml.TensorDataType.INT8, 7).desc.sizes
    (2, 3)
    """
    sizes = _sizes(FillValueConstantOperatorDesc, "output_sizes", output_sizes, "FILL-01")
    return _node(
        FillValueConstantOperatorDesc, [], [value_data_type, value], sizes, as_graph(graph)
    )


@_adds(FillValueSequenceOperatorDesc, "FillValueSequence")
def fill_value_sequence(
    graph: Graph,
    output_sizes: Sequence[int],
    value_data_type: TensorDataType,
    value_start: float,
    value_delta: float,
) -> Expression:
    """Writes ``value_start``, ``value_start + value_delta`` ... to elements in row-major order.

    >>> from vkops import dml
    >>> graph = dml.Graph()
    >>> dml.fill_value_sequence(graph, [2, 3], dml.TensorDataType.INT8, 0, 2).desc.sizes
    (2, 3)
    """
    sizes = _sizes(FillValueSequenceOperatorDesc, "output_sizes", output_sizes, "FILL-01")
    return _node(
        FillValueSequenceOperatorDesc,
        [],
        [value_data_type, value_start, value_delta],
        sizes,
        as_graph(graph),
    )


@_adds(GatherOperatorDesc, "Gather")
def gather(input: Expression, indices: Expression, axis: int, index_dimensions: int) -> Expression:
    """Takes elements along a dimension, at indices that are read when the operator runs.

    >>> from vkops import dml
    >>> graph = dml.Graph()
    >>> x = graph.input(dml.BufferTensorDesc(dml.TensorDataType.FLOAT32, [9, 4]))
    >>> y = graph.input(dml.BufferTensorDesc(dml.TensorDataType.UINT32, [1, 3]))
    >>> dml.gather(x, y, axis=0, index_dimensions=1).desc.sizes
    (3, 4)
    """
    return _node(GatherOperatorDesc, [input, indices], [axis, index_dimensions])


@_adds(GatherElementsOperatorDesc, "GatherElements")
def gather_elements(input: Expression, indices: Expression, axis: int) -> Expression:
    """Takes an element for each index, which says its place along a dimension.

    >>> from vkops import dml
    >>> graph = dml.Graph()
    >>> x = graph.input(dml.BufferTensorDesc(dml.TensorDataType.FLOAT32, [9, 4]))
    >>> y = graph.input(dml.BufferTensorDesc(dml.TensorDataType.UINT32, [3, 4]))
    >>> dml.gather_elements(x, y, axis=0).desc.sizes
    (3, 4)
    """
    return _node(GatherElementsOperatorDesc, [input, indices], [axis])


@_adds(GatherNd1OperatorDesc, "GatherND")
def gather_nd(
    input: Expression,
    indices: Expression,
    input_dimension_count: int,
    indices_dimension_count: int,
    batch_dimension_count: int,
) -> Expression:
    """GATHER_ND with batches, each of which has indices of its own.

    >>> from vkops import dml
    >>> graph = dml.Graph()
    >>> x = graph.input(dml.BufferTensorDesc(dml.TensorDataType.FLOAT32, [9, 4]))
    >>> y = graph.input(dml.BufferTensorDesc(dml.TensorDataType.UINT32, [3, 2]))
    >>> dml.gather_nd(x, y, 2, 2, 0).desc.sizes
    (1, 3)
    """
    return _node(
        GatherNd1OperatorDesc,
        [input, indices],
        [input_dimension_count, indices_dimension_count, batch_dimension_count],
    )


@_adds(ReverseSubsequencesOperatorDesc, "ReverseSubsequences")
def reverse_subsequences(input: Expression, sequence_lengths: Expression, axis: int) -> Expression:
    """Reverses the order of the first elements along a dimension, and copies the others.

    >>> from vkops import dml
    >>> graph = dml.Graph()
    >>> x = graph.input(dml.BufferTensorDesc(dml.TensorDataType.FLOAT32, [2, 5]))
    >>> y = graph.input(dml.BufferTensorDesc(dml.TensorDataType.UINT32, [2, 1]))
    >>> dml.reverse_subsequences(x, y, axis=1).desc.sizes
    (2, 5)
    """
    return _node(ReverseSubsequencesOperatorDesc, [input, sequence_lengths], [axis])


@_adds(ScatterOperatorDesc, "ScatterElements")
def scatter_elements(
    input: Expression, indices: Expression, updates: Expression, axis: int
) -> Expression:
    """Copies a tensor, and replaces an element for each index by an update.

    >>> from vkops import dml
    >>> graph = dml.Graph()
    >>> x = graph.input(dml.BufferTensorDesc(dml.TensorDataType.FLOAT32, [9, 4]))
    >>> y = graph.input(dml.BufferTensorDesc(dml.TensorDataType.UINT32, [3, 4]))
    >>> z = graph.input(dml.BufferTensorDesc(dml.TensorDataType.FLOAT32, [3, 4]))
    >>> dml.scatter_elements(x, y, z, axis=0).desc.sizes
    (9, 4)
    """
    return _node(ScatterOperatorDesc, [input, indices, updates], [axis])


@_adds(ScatterNdOperatorDesc, "ScatterND")
def scatter_nd(
    input: Expression,
    indices: Expression,
    updates: Expression,
    input_dimension_count: int,
    indices_dimension_count: int,
) -> Expression:
    """Copies a tensor, and replaces a slice for each tuple of indices by an update.

    >>> from vkops import dml
    >>> graph = dml.Graph()
    >>> x = graph.input(dml.BufferTensorDesc(dml.TensorDataType.FLOAT32, [9, 4]))
    >>> y = graph.input(dml.BufferTensorDesc(dml.TensorDataType.UINT32, [3, 1]))
    >>> z = graph.input(dml.BufferTensorDesc(dml.TensorDataType.FLOAT32, [3, 4]))
    >>> dml.scatter_nd(x, y, z, 2, 2).desc.sizes
    (9, 4)
    """
    return _node(
        ScatterNdOperatorDesc,
        [input, indices, updates],
        [input_dimension_count, indices_dimension_count],
    )


@_adds(OneHotOperatorDesc, "OneHot", output_length="extent of the output along the axis.")
def one_hot(indices: Expression, values: Expression, output_length: int, axis: int) -> Expression:
    """Writes one value at the places along a dimension that indices select, another elsewhere.

    >>> from vkops import dml
    >>> graph = dml.Graph()
    >>> x = graph.input(dml.BufferTensorDesc(dml.TensorDataType.UINT32, [3, 1]))
    >>> y = graph.input(dml.BufferTensorDesc(dml.TensorDataType.FLOAT32, [1, 2]))
    >>> dml.one_hot(x, y, output_length=5, axis=1).desc.sizes
    (3, 5)
    """
    length = integer(output_length, ArgumentName("ONE_HOT", "output_length", "HOT-03"))
    axis = integer(axis, ArgumentName("ONE_HOT", "axis", "HOT-02"))
    sizes = with_size(_input(OneHotOperatorDesc, indices).desc.sizes, axis, length)
    return _node(OneHotOperatorDesc, [indices, values], [axis], [sizes])
