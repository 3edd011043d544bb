"""The table of DirectMLX's functions, which ``expressions`` makes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from vkops.arguments.values import Place, integer, integers
from vkops.dml.enums import AxisDirection, DepthSpaceOrder
from vkops.dml.functions import Given, GraphFunction, OutputSizes, SizeArgument
from vkops.dml.tensor_desc import UINT32_MAX, BufferTensorDesc
from vkops.plan.movements import elements_in_window
from vkops.plan.view import Ints


def _of_parts(descs: Sequence[BufferTensorDesc], arguments: Given) -> Sequence[Ints]:
    axis = integer(arguments["axis"], Place("SPLIT", "axis", "SPLIT-02"))
    return [_replaced(descs[0].sizes, axis, size) for size in arguments["output_axis_sizes"]]


def _of_windows(_: Sequence[BufferTensorDesc], arguments: Given) -> Sequence[Ints]:
    rules = {"input_window_sizes": "SLICE1-02", "input_window_strides": "SLICE1-03"}
    lengths, strides = (
        integers(arguments[name], Place("SLICE1", name, rule)) for name, rule in rules.items()
    )
    # A stride of 0 is refused with the descriptor.
    return [tuple(elements_in_window(n, s or 1) for n, s in zip(lengths, strides, strict=False))]


def _of_one_hot(descs: Sequence[BufferTensorDesc], arguments: Given) -> Sequence[Ints]:
    axis = integer(arguments["axis"], Place("ONE_HOT", "axis", "HOT-02"))
    return [_replaced(descs[0].sizes, axis, arguments["output_length"])]


def _given(name: str, rule: str) -> tuple[OutputSizes, SizeArgument]:
    """The sizes of the only output are those of an argument."""
    return lambda _, arguments: [arguments[name]], SizeArgument(name, rule)


def _replaced(sizes: Ints, axis: int, size: int) -> Ints:
    """Sizes with another one for an axis, if there is that axis: else the operator refuses it."""
    return (*sizes[:axis], size, *sizes[axis + 1 :]) if 0 <= axis < len(sizes) else sizes


def _scales(descs: Sequence[BufferTensorDesc], arguments: Given) -> Sequence[float]:
    sizes = zip(arguments["output_sizes"], descs[0].sizes, strict=False)
    # The operator refuses sizes that are 0 or have more than 32 bits.
    return [max(0, min(output_size, UINT32_MAX)) / max(size, 1) for output_size, size in sizes]


def _offsets(value: float) -> Callable[[Sequence[BufferTensorDesc], Given], Sequence[float]]:
    return lambda descs, _: [value] * descs[0].dimension_count


# -- the table -------------------------------------------------------------------------------------

FUNCTIONS: Mapping[str, GraphFunction] = {
    "identity": GraphFunction("ELEMENT_WISE_IDENTITY", "Identity",
        ([(2, 3)], "dml.identity(x)", "(2, 3)")),
    "split": GraphFunction("SPLIT", "Split",
        ([(4, 6)], "dml.split(x, 1, [2, 4])", "[(4, 2), (4, 4)]"),
        _of_parts,
        SizeArgument("output_axis_sizes", "SPLIT-01",
            "extent of each output along the axis; together that of the input.", is_last=True)),
    "join": GraphFunction("JOIN", "Join", ([(4, 2), (4, 4)], "dml.join([x, y], axis=1)", "(4, 6)")),
    "slice": GraphFunction("SLICE1", "Slice",
        ([(4, 6)], "dml.slice(x, [0, 1], [4, 5], [-1, 2])", "(4, 3)"),
        _of_windows),
    "slice_grad": GraphFunction("SLICE_GRAD", "SliceGrad",
        ([(4, 3)], "dml.slice_grad(x, [4, 6], [0, 1], [4, 5], [-1, 2])", "(4, 6)"),
        *_given("output_gradient_sizes", "SGRAD-01")),
    "tile": GraphFunction("TILE", "Tile", ([(2, 3)], "dml.tile(x, [1, 4])", "(2, 12)")),
    "padding": GraphFunction("PADDING", "Padding",
        ([(2, 3)], "dml.padding(x, dml.PaddingMode.EDGE, 0, [1, 0], [0, 2])", "(3, 5)")),
    "padding1": GraphFunction("PADDING1", "", (
        [(2, 3)],
        "dml.padding1(\n"
        "...     x, dml.PaddingMode.CONSTANT, dml.TensorDataType.FLOAT32, 9.5, [1, 0], [0, 2]\n"
        "... )",
        "(3, 5)")),
    "space_to_depth": GraphFunction("SPACE_TO_DEPTH1", "SpaceToDepth",
        ([(1, 1, 4, 6)], "dml.space_to_depth(x, block_size=2)", "(1, 4, 2, 3)"),
        defaults={"order": DepthSpaceOrder.DEPTH_COLUMN_ROW}),
    "depth_to_space": GraphFunction("DEPTH_TO_SPACE1", "DepthToSpace",
        ([(1, 4, 2, 3)], "dml.depth_to_space(x, block_size=2)", "(1, 1, 4, 6)"),
        defaults={"order": DepthSpaceOrder.DEPTH_COLUMN_ROW}),
    "upsample_2d": GraphFunction("UPSAMPLE_2D", "Upsample2D", (
        [(1, 1, 2, 3)],
        "dml.upsample_2d(\n"
        "...     x, dml.Size2D(width=3, height=2), dml.InterpolationMode.NEAREST_NEIGHBOR\n"
        "... )",
        "(1, 1, 4, 9)")),
    "resample": GraphFunction("RESAMPLE3", "Resample", (
        [(1, 1, 2, 3)],
        "dml.resample(x, [1, 1, 5, 5], dml.InterpolationMode.NEAREST_NEIGHBOR)",
        "(1, 1, 5, 5)"),
        *_given("output_sizes", "RES-01"),
        {"rounding_direction": AxisDirection.INCREASING, "scales": _scales,
         "input_pixel_offsets": _offsets(0.5), "output_pixel_offsets": _offsets(-0.5),
         "antialiased": False}),
    "unfold": GraphFunction("UNFOLD", "", (
        [(1, 2, 4, 4)], "dml.unfold(x, [3, 3], [1, 1], [1, 1], [0, 0], [0, 0])", "(1, 18, 4)")),
    "diagonal_matrix": GraphFunction("DIAGONAL_MATRIX1", "", (
        [], "dml.diagonal_matrix(graph, [3, 4], dml.TensorDataType.FLOAT32, 1, 0, 1)", "(3, 4)"),
        *_given("output_sizes", "DIAG-04")),
    "fill_value_constant": GraphFunction("FILL_VALUE_CONSTANT", "FillValueConstant", (
        [], "dml.fill_value_constant(graph, [2, 3], dml.TensorDataType.INT8, 7)", "(2, 3)"),
        *_given("output_sizes", "FILL-01")),
    "fill_value_sequence": GraphFunction("FILL_VALUE_SEQUENCE", "FillValueSequence", (
        [], "dml.fill_value_sequence(graph, [2, 3], dml.TensorDataType.INT8, 0, 2)", "(2, 3)"),
        *_given("output_sizes", "FILL-01")),
    "gather": GraphFunction("GATHER", "Gather",
        ([(9, 4), (1, 3)], "dml.gather(x, y, axis=0, index_dimensions=1)", "(3, 4)")),
    "gather_elements": GraphFunction("GATHER_ELEMENTS", "GatherElements",
        ([(9, 4), (3, 4)], "dml.gather_elements(x, y, axis=0)", "(3, 4)")),
    "gather_nd": GraphFunction("GATHER_ND1", "GatherND",
        ([(9, 4), (3, 2)], "dml.gather_nd(x, y, 2, 2, 0)", "(1, 3)")),
    "reverse_subsequences": GraphFunction("REVERSE_SUBSEQUENCES", "ReverseSubsequences",
        ([(2, 5), (2, 1)], "dml.reverse_subsequences(x, y, axis=1)", "(2, 5)")),
    "scatter_elements": GraphFunction("SCATTER", "ScatterElements",
        ([(9, 4), (3, 4), (3, 4)], "dml.scatter_elements(x, y, z, axis=0)", "(9, 4)")),
    "scatter_nd": GraphFunction("SCATTER_ND", "ScatterND",
        ([(9, 4), (3, 1), (3, 4)], "dml.scatter_nd(x, y, z, 2, 2)", "(9, 4)")),
    "one_hot": GraphFunction("ONE_HOT", "OneHot",
        ([(3, 1), (1, 2)], "dml.one_hot(x, y, output_length=5, axis=1)", "(3, 5)"),
        _of_one_hot,
        SizeArgument("output_length", "HOT-03", "extent of the output along the axis.",
            annotation="int")),
}  # fmt: skip
"""The functions by name: DirectMLX's name in snake case, or DirectML's name of the operator."""
