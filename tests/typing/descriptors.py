"""Descriptors, graphs and features: what type checkers say, and what happens."""

from collections.abc import Mapping

from typing_extensions import assert_type

from vkops import dml
from vkops.plan import CopyPlan, Pipeline, View

FLOAT32 = dml.TensorDataType.FLOAT32
whole = dml.BufferTensorDesc(FLOAT32, [4, 6])
part = dml.BufferTensorDesc(FLOAT32, (2, 6), None, dml.TensorFlags.NONE, 48, 16)
assert_type(whole.data_type, dml.TensorDataType)
assert_type(whole.strides, tuple[int, ...] | None)
assert_type(whole.flags, dml.TensorFlags)
assert_type(whole.view, View)
for numbers in (whole.sizes, whole.packed_strides, whole.effective_strides):
    assert_type(numbers, tuple[int, ...])
for number in (
    whole.total_tensor_size_in_bytes, whole.guaranteed_base_offset_alignment,
    whole.dimension_count, whole.minimum_implied_size,
):  # fmt: skip
    assert_type(number, int)

split = dml.SplitOperatorDesc(whole, [part, part], axis=0)
assert_type(split, dml.SplitOperatorDesc)
assert_type(split.input_tensor, dml.BufferTensorDesc)
assert_type(split.axis, int)
assert_type(split.operator, str)
assert_type(split.FIELDS, tuple[dml.Field, ...])
for named in (split.inputs, split.outputs):
    assert_type(named, tuple[tuple[str, dml.BufferTensorDesc], ...])
assert_type(split.validate("5_0", alternative_levels=["JOIN"]), None)
assert_type(split.minimum_feature_level(), dml.FeatureLevel)
assert_type(split.lower(), CopyPlan)
assert_type(split.pipeline, Pipeline)
assert_type(split.runs_in_place, bool)
descs: list[dml.OperatorDesc] = [
    split,
    dml.JoinOperatorDesc([part, part], whole, 0),
    dml.SliceOperatorDesc(whole, part, [0, 0], [2, 6], [2, 1]),
    dml.Slice1OperatorDesc(whole, part, [0, 0], [4, 6], [-2, 1]),
    dml.ElementWiseIdentityOperatorDesc(whole, whole, dml.ScaleBias(1.0, 0.0)),
    dml.Upsample2dOperatorDesc(
        whole, whole, dml.Size2D(1, 1), dml.InterpolationMode.NEAREST_NEIGHBOR
    ),
    dml.Resample3OperatorDesc(
        whole, part, dml.InterpolationMode.NEAREST_NEIGHBOR, dml.AxisDirection.DECREASING,
        scales=[0.5, 1], input_pixel_offsets=[0.0, 0.5], output_pixel_offsets=(0, -0.5),
        antialiased=False,
    ),
]  # fmt: skip
assert_type(dml.OPERATORS, Mapping[str, type[dml.OperatorDesc]])
field = split.FIELDS[0]
assert_type(field.name, str)
assert_type(field.dml_name, str)
assert_type(field.optional, bool)
assert_type(field.count, str | None)


# Graphs
def policy(data_type: dml.TensorDataType, sizes: tuple[int, ...]) -> dml.BufferTensorDesc:
    """A layout."""
    return dml.BufferTensorDesc(data_type, sizes)


graph = dml.Graph(policy, "6_0")
x = graph.input(whole)
assert_type(x, dml.Expression)
assert_type(x.get_output_desc(), dml.BufferTensorDesc)
assert_type(x.node, int | None)
assert_type(x.index, int)
parts = graph.split(x, 0, [2, 2])
assert_type(parts, list[dml.Expression])
for made in (
    graph.join(parts, 0), graph.slice(x, [0, 0], [2, 6], [2, 1]),
    graph.slice1(x, [0, 0], [4, 6], [-1, 1]), graph.identity(x, [1, 4]),
    graph.reinterpret(x, dml.TensorDataType.INT32, [24]),
):  # fmt: skip
    assert_type(made, dml.Expression)
assert_type(graph.operator(split, [x]), list[dml.Expression])

graph = dml.Graph()
assert_type(graph.output(graph.identity(graph.input(whole))), int)
desc = graph.desc()
assert_type(desc, dml.GraphDesc)
assert_type(desc.validate("5_0"), None)
assert_type(desc.lower(), CopyPlan)
assert_type(desc.pipeline, Pipeline)
edges = (
    dml.InputGraphEdgeDesc(0, 0, 0),
    dml.OutputGraphEdgeDesc(0, 0, 0),
    dml.IntermediateGraphEdgeDesc(0, 0, 1, 0),
)
for number in (
    edges[0].graph_input_index, edges[1].graph_output_index, edges[2].from_node_output_index,
):  # fmt: skip
    assert_type(number, int)

# Features and enumerations
levels = dml.check_feature_support(dml.FeatureQueryFeatureLevels(["2_0", 0x5000]), "4_1")
assert_type(levels, dml.FeatureDataFeatureLevels)
assert_type(levels.max_supported_feature_level, dml.FeatureLevel)
types = dml.check_feature_support(dml.FeatureQueryTensorDataTypeSupport(FLOAT32))
assert_type(types, dml.FeatureDataTensorDataTypeSupport)
assert_type(types.is_supported, bool)
for number in (FLOAT32.size_bits, FLOAT32.element_size):
    assert_type(number, int)
assert_type(dml.FeatureLevel.of("5_0"), dml.FeatureLevel)
enumerations: list[int] = [
    dml.DepthSpaceOrder.COLUMN_ROW_DEPTH, dml.ExecutionFlags.NONE,
    dml.InterpolationMode.LINEAR, dml.PaddingMode.WRAP,
]  # fmt: skip

# Functions of DirectMLX
nchw = dml.BufferTensorDesc(FLOAT32, [1, 4, 6, 6])
indices = dml.BufferTensorDesc(dml.TensorDataType.UINT32, [1, 4, 6, 6])
nearest = dml.InterpolationMode.NEAREST_NEIGHBOR
graph = dml.Graph(dml.TensorPolicy.interleaved_channel)
assert_type(dml.TensorPolicy.default(FLOAT32, [4]), dml.BufferTensorDesc)
x = dml.input_tensor(graph, 0, nchw)
i = dml.input_tensor(graph, 1, indices)
assert_type(dml.split(x, 3, [2, 4]), list[dml.Expression])
assert_type(x[:, ::-1, 0, None], dml.Expression)
for made in (
    dml.identity(x),
    dml.join([x, x], axis=1),
    dml.slice(x, [0, 0, 0, 0], [1, 4, 6, 6], [1, 1, -2, 1]),
    dml.slice_grad(x, [1, 4, 6, 12], [0, 0, 0, 0], [1, 4, 6, 12], [1, 1, 1, 2]),
    dml.tile(x, (1, 1, 2, 2)),
    dml.padding(x, dml.PaddingMode.EDGE, 0, [0, 0, 1, 1], [0, 0, 1, 1]),
    dml.padding1(x, dml.PaddingMode.EDGE, FLOAT32, 0.5, [0, 0, 1, 1], [0, 0, 1, 1]),
    dml.space_to_depth(x, 2),
    dml.depth_to_space(x, 2, dml.DepthSpaceOrder.COLUMN_ROW_DEPTH),
    dml.upsample_2d(x, dml.Size2D(2, 2), nearest),
    dml.resample(x, [1, 4, 3, 3], nearest, dml.AxisDirection.DECREASING, scales=[1, 1, 0.5, 0.5]),
    dml.unfold(x, [2, 2], [1, 1], [1, 1], [0, 0], [0, 0]),
    dml.diagonal_matrix(graph, [3, 3], FLOAT32, 1, 0, 1),
    dml.fill_value_constant(graph, [3, 3], FLOAT32, 1.5),
    dml.fill_value_sequence(graph, [3, 3], FLOAT32, 0, 1),
    dml.gather(x, i[..., :1, :1, :], 0, 1),
    dml.gather_elements(x, i, axis=3),
    dml.gather_nd(x, i[..., :4], 4, 4, 0),
    dml.reverse_subsequences(x, i[..., :1], axis=3),
    dml.scatter_elements(x, i, x, axis=1),
    dml.scatter_nd(x, i[..., :4], x[:, :1, :4], 4, 4),
    dml.one_hot(i[..., :1], x, 6, axis=3),
    dml.reinterpret(x, dml.TensorDataType.INT32, [144], [1]),
):
    assert_type(made, dml.Expression)
