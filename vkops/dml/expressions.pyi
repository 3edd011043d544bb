from collections.abc import Sequence

from vkops.dml.enums import (
    AxisDirection,
    DepthSpaceOrder,
    InterpolationMode,
    PaddingMode,
    TensorDataType,
)
from vkops.dml.fields import ScaleBias, Size2D
from vkops.dml.graph_builder import Expression, Graph

def depth_to_space(input: Expression, block_size: int, order: DepthSpaceOrder = ...) -> Expression:
    """Moves channels into blocks as DEPTH_TO_SPACE does, with a choice of the channels' order."""

def diagonal_matrix(
    graph: Graph,
    output_sizes: Sequence[int],
    value_data_type: TensorDataType,
    value: float,
    diagonal_fill_begin: int,
    diagonal_fill_end: int,
    input: Expression | None = ...,
) -> Expression:
    """Writes a value to some diagonals of matrices, and a tensor or 0 elsewhere."""

def fill_value_constant(
    graph: Graph, output_sizes: Sequence[int], value_data_type: TensorDataType, value: float
) -> Expression:
    """Writes one value to every element of a tensor; there is no input."""

def fill_value_sequence(
    graph: Graph,
    output_sizes: Sequence[int],
    value_data_type: TensorDataType,
    value_start: float,
    value_delta: float,
) -> Expression:
    """Writes ``value_start``, ``value_start + value_delta`` ... to elements in row-major order."""

def gather(input: Expression, indices: Expression, axis: int, index_dimensions: int) -> Expression:
    """Takes elements along a dimension, at indices that are read when the operator runs."""

def gather_elements(input: Expression, indices: Expression, axis: int) -> Expression:
    """Takes an element for each index, which says its place along a dimension."""

def gather_nd(
    input: Expression,
    indices: Expression,
    input_dimension_count: int,
    indices_dimension_count: int,
    batch_dimension_count: int,
) -> Expression:
    """GATHER_ND with batches, each of which has indices of its own."""

def identity(input: Expression, scale_bias: ScaleBias | None = ...) -> Expression:
    """Copies a tensor; with other strides this transposes, broadcasts or changes the layout."""

def join(inputs: Sequence[Expression], axis: int) -> Expression:
    """Puts tensors together along an axis, in order: the inverse of SPLIT."""

def one_hot(indices: Expression, values: Expression, output_length: int, axis: int) -> Expression:
    """Writes one value at the places along a dimension that indices select, another elsewhere."""

def padding(
    input: Expression,
    padding_mode: PaddingMode,
    padding_value: float,
    start_padding: Sequence[int],
    end_padding: Sequence[int],
) -> Expression:
    """Puts a tensor into a larger one, and fills the rest as a mode says."""

def padding1(
    input: Expression,
    padding_mode: PaddingMode,
    padding_value_data_type: TensorDataType,
    padding_value: float,
    start_padding: Sequence[int],
    end_padding: Sequence[int],
) -> Expression:
    """Puts a tensor into a larger one, as PADDING does; the value has the tensors' data type."""

def resample(
    input: Expression,
    output_sizes: Sequence[int],
    interpolation_mode: InterpolationMode,
    rounding_direction: AxisDirection = ...,
    scales: Sequence[float] | None = ...,
    input_pixel_offsets: Sequence[float] | None = ...,
    output_pixel_offsets: Sequence[float] | None = ...,
    antialiased: bool = ...,
) -> Expression:
    """Scales a tensor along each dimension, as RESAMPLE2 does."""

def reverse_subsequences(input: Expression, sequence_lengths: Expression, axis: int) -> Expression:
    """Reverses the order of the first elements along a dimension, and copies the others."""

def scatter_elements(
    input: Expression, indices: Expression, updates: Expression, axis: int
) -> Expression:
    """Copies a tensor, and replaces an element for each index by an update."""

def scatter_nd(
    input: Expression,
    indices: Expression,
    updates: Expression,
    input_dimension_count: int,
    indices_dimension_count: int,
) -> Expression:
    """Copies a tensor, and replaces a slice for each tuple of indices by an update."""

def slice(
    input: Expression,
    input_window_offsets: Sequence[int],
    input_window_sizes: Sequence[int],
    input_window_strides: Sequence[int],
) -> Expression:
    """Copies elements of a window, ``input_window_strides`` apart; negative ones read backwards."""

def slice_grad(
    input_gradient: Expression,
    output_gradient_sizes: Sequence[int],
    input_window_offsets: Sequence[int],
    input_window_sizes: Sequence[int],
    input_window_strides: Sequence[int],
) -> Expression:
    """Puts elements where SLICE1 with the same window would take them from, and 0 elsewhere."""

def space_to_depth(input: Expression, block_size: int, order: DepthSpaceOrder = ...) -> Expression:
    """Moves blocks into channels as SPACE_TO_DEPTH does, with a choice of the channels' order."""

def split(input: Expression, axis: int, output_axis_sizes: Sequence[int]) -> list[Expression]:
    """Cuts a tensor along an axis; output k begins where output k - 1 ends."""

def tile(input: Expression, repeats: Sequence[int]) -> Expression:
    """Repeats a tensor along each dimension, as a whole."""

def unfold(
    input: Expression,
    window_sizes: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    start_padding: Sequence[int],
    end_padding: Sequence[int],
) -> Expression:
    """Copies what a window over the spatial dimensions holds at each of its positions."""

def upsample_2d(
    input: Expression, scale_size: Size2D, interpolation_mode: InterpolationMode
) -> Expression:
    """Repeats each element along the last two dimensions, as ``scale_size`` says."""
