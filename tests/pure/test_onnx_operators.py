"""Each operator of ONNX in each of its versions, against NumPy, on the host."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper, parser
from onnx_models import evaluate, info, model, node_model, run, same

from vkops.onnx import Model
from vkops.onnx.lowering import NeedsValueError
from vkops.onnx.value_info import SequenceType, TensorType
from vkops.plan.movements import runs_of

I32, I64 = np.iinfo(np.int32), np.iinfo(np.int64)
X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
ROW = np.arange(5, dtype=np.float32)


def ints(*values):
    return np.array(values, np.int64)


def floats(*values):
    return np.array(values, np.float32)


def text(*values):
    return np.array(values, object)


# -- Split -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("opset", [1, 2, 11, 13])
def test_split_is_equal_where_no_lengths_are_given(opset):
    same(run("Split", X, outputs=2, opset=opset, axis=2), [X[..., :2], X[..., 2:]])
    same(run("Split", X, outputs=2, opset=opset), [X[:1], X[1:]])


def test_split_1_takes_lengths_as_an_attribute_or_an_input():
    parts = [ROW[:2], ROW[2:]]
    same(run("Split", ROW, outputs=2, opset=1, split=[2, 3]), parts)
    same(run("Split", ROW, floats(2, 3), outputs=2, opset=1), parts)


@pytest.mark.parametrize("opset", [2, 11])
def test_split_takes_lengths_as_an_attribute(opset):
    same(run("Split", ROW, outputs=3, opset=opset, split=[1, 0, 4]), [ROW[:1], ROW[1:1], ROW[1:]])


@pytest.mark.parametrize("opset", [13, 18])
def test_split_takes_lengths_as_an_input(opset):
    got = run("Split", X, ints(3, 0, 1), outputs=3, opset=opset, axis=2)
    same(got, [X[..., :3], X[..., 3:3], X[..., 3:]])


@pytest.mark.parametrize(("opset", "more"), [(11, {}), (13, {}), (18, {"num_outputs": 3})])
def test_split_counts_negative_axes_from_the_end(opset, more):
    same(run("Split", X, outputs=3, opset=opset, axis=-2, **more), np.split(X, 3, 1))


@pytest.mark.parametrize(
    ("whole", "sizes"),
    [
        (5, [5]),
        (5, [3, 2]),
        (5, [2, 2, 1]),
        (4, [2, 2, 0]),
        (3, [1, 1, 1]),
        (7, [2, 2, 2, 1]),
        (0, [0, 0]),
    ],
)
def test_split_18_gives_the_last_part_what_is_left(whole, sizes):
    data = np.arange(whole, dtype=np.int32)
    got = run("Split", data, outputs=len(sizes), num_outputs=len(sizes))
    same(got, np.split(data, np.cumsum(sizes)[:-1]) if len(sizes) > 1 else data)


def test_split_of_an_empty_axis():
    empty = np.zeros((2, 0), np.int64)
    same(run("Split", empty, outputs=2, opset=13, axis=1), [empty, empty])
    same(run("Split", empty, ints(0, 2), outputs=2), [empty[:0], empty])


def test_split_leaves_out_the_outputs_that_have_no_name():
    node = helper.make_node("Split", ["x"], ["", "b"], num_outputs=2)
    same(evaluate(model([node], [info("x", ROW)], ["b"]), {"x": ROW}), [ROW[3:]])


# -- Concat ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("opset", [1, 4, 11, 13])
def test_concat(opset):
    same(run("Concat", X, X[..., :1], opset=opset, axis=2), np.concatenate([X, X[..., :1]], 2))
    same(run("Concat", X, X[:, :0], X, opset=opset, axis=1), np.concatenate([X, X], 1))
    same(run("Concat", X, opset=opset, axis=0), X)


def test_concat_1_has_a_default_axis():
    same(run("Concat", X, X, opset=1), np.concatenate([X, X], 1))


def test_concat_counts_negative_axes_from_the_end():
    same(run("Concat", X, X, axis=-1), np.concatenate([X, X], 2))


def test_concat_of_empty_tensors_is_empty():
    same(run("Concat", X[:, :0], X[:, :0], axis=1), X[:, :0])


# -- Slice -----------------------------------------------------------------------------------------


def test_slice_1_takes_attributes():
    same(run("Slice", X, opset=1, starts=[0, 1], ends=[1000, -1]), X[:, 1:-1])
    same(run("Slice", X, opset=1, starts=[1], ends=[3], axes=[2]), X[..., 1:3])
    same(run("Slice", X, opset=1, starts=[-2], ends=[I64.max], axes=[-1]), X[..., -2:])


@pytest.mark.parametrize("opset", [10, 11, 13])
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_slice_takes_inputs(opset, dtype):
    def numbers(*values):
        return np.array(values, dtype)

    got = run("Slice", X, numbers(1, 0), numbers(4, 2), numbers(2, 1), numbers(2, 1), opset=opset)
    same(got, X[:, 0:2, 1:4:2])
    same(run("Slice", X, numbers(1), numbers(2), opset=opset), X[1:2])
    got = run("Slice", X, numbers(0, 0, 0), numbers(2, 3, 4), None, numbers(1, 2, 3), opset=opset)
    same(got, X[:, ::2, ::3])


# By ONNX: start is cut to [0, n] for positive steps and to [0, n - 1] for negative ones,
# end to [0, n] and to [-1, n - 1].
@pytest.mark.parametrize(
    ("start", "end", "step", "chosen"),
    [
        (0, I64.max, 1, [0, 1, 2, 3, 4]),
        (0, I32.max, 2, [0, 2, 4]),
        (I64.min, -1, 1, [0, 1, 2, 3]),
        (4, I64.min, -1, [4, 3, 2, 1, 0]),
        (I64.max, I64.min, -2, [4, 2, 0]),
        (I32.max, I32.min, -1, [4, 3, 2, 1, 0]),
        (-1, 0, -1, [4, 3, 2, 1]),
        (-1, -6, -3, [4, 1]),
        (3, 1, 1, []),
        (1, 3, -1, []),
        (5, 9, 1, []),
        (2, 2, 1, []),
        (-100, I64.min, -1, [0]),
        (I64.min, I64.min, -2, [0]),
        (0, 5, I64.max, [0]),
        (4, I64.min, I64.min, [4]),
    ],
)
def test_slice_cuts_its_ends_to_the_axis(start, end, step, chosen):
    got = run("Slice", ROW, ints(start), ints(end), ints(0), ints(step))
    same(got, ROW[np.array(chosen, np.int64)])


def test_slice_backwards_from_beyond_the_end():
    """To the end, as ONNX Runtime has it: nobody writes INT_MAX to get nothing."""
    for end in (I32.max, I64.max):
        got = run("Slice", floats(1, 2), ints(I64.max), ints(end), ints(0), ints(-1))
        same(got, floats(2, 1))


def test_expand_by_minus_1_changes_nothing():
    same(run("Expand", floats(1, 2), ints(3, -1)), np.float32([[1, 2]] * 3))


def test_slice_of_no_axes_is_all():
    same(run("Slice", X, ints(), ints(), ints(), ints()), X)


def test_slice_of_an_empty_axis():
    same(run("Slice", X[:, :0], ints(-1), ints(I64.min), ints(1), ints(-1)), X[:, :0])


# -- Pad -------------------------------------------------------------------------------------------

MODES = [("constant", "constant"), ("reflect", "reflect"), ("edge", "edge"), ("wrap", "wrap")]


def test_pad_1_calls_them_paddings():
    same(
        run("Pad", ROW, opset=1, paddings=[1, 2], value=3.0), np.pad(ROW, (1, 2), constant_values=3)
    )
    same(run("Pad", ROW, opset=1, paddings=[1, 2], mode="edge"), np.pad(ROW, (1, 2), "edge"))


@pytest.mark.parametrize("mode", ["constant", "reflect", "edge"])
def test_pad_2_takes_attributes(mode):
    got = run("Pad", X, opset=2, pads=[0, 1, 2, 1, 0, 3], mode=mode)
    same(got, np.pad(X, [(0, 1), (1, 0), (2, 3)], mode))


@pytest.mark.parametrize("opset", [11, 13, 18, 19, 21, 23])
@pytest.mark.parametrize("mode", ["constant", "reflect", "edge"])
def test_pad_takes_inputs(opset, mode):
    got = run("Pad", X, ints(0, 1, 2, 1, 0, 3), opset=opset, mode=mode)
    same(got, np.pad(X, [(0, 1), (1, 0), (2, 3)], mode))


@pytest.mark.parametrize("opset", [19, 21, 23])
def test_pad_wraps(opset):
    got = run("Pad", X, ints(0, 7, 2, 1, 0, 3), opset=opset, mode="wrap")
    same(got, np.pad(X, [(0, 1), (7, 0), (2, 3)], "wrap"))


def test_pad_18_pads_some_axes():
    same(run("Pad", X, ints(1, 2, 0, 3), None, ints(-1, 0)), np.pad(X, [(2, 3), (0, 0), (1, 0)]))
    same(run("Pad", X, ints(), None, ints()), X)


@pytest.mark.parametrize(
    ("pads", "expected"),
    [
        ((-1, -2), [1, 2]),
        ((-1, 2), [1, 2, 3, 4, 9, 9]),
        ((2, -4), [9, 9, 0]),
        ((-5, 0), []),
        ((-2, -3), []),
        ((-5, 2), [9, 9]),
        ((-7, 4), [9, 9]),  # more than there is, of what was added before it
        ((4, -7), [9, 9]),
        ((0, 0), [0, 1, 2, 3, 4]),
    ],
)
def test_pad_by_negative_numbers_cuts_off(pads, expected):
    same(run("Pad", ROW, ints(*pads), floats(9)), floats(*expected))


@pytest.mark.parametrize("pads", [(4, -7), (-7, 4), (-2, 3), (3, -2)])
def test_pad_of_rows_stays_in_each(pads):
    data = np.arange(15, dtype=np.int32).reshape(3, 5)
    before, after = pads
    framed = np.pad(data, [(0, 0), (max(0, before), max(0, after))], constant_values=-1)
    expected = framed[:, max(0, -before) : framed.shape[1] - max(0, -after)]
    same(run("Pad", data, ints(0, before, 0, after), np.array(-1, np.int32)), expected.copy())


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("reflect", [3, 2, 1, 2, 3, 4, 3]),
        ("edge", [1, 1, 1, 2, 3, 4, 4]),
        ("wrap", [3, 4, 1, 2, 3, 4, 1]),
    ],
)
def test_pad_uses_only_what_is_not_cut_off(mode, expected):
    got = run("Pad", np.arange(6, dtype=np.int64), ints(-1, -1), opset=19)
    same(run("Pad", got, ints(2, 1), opset=19, mode=mode), ints(*expected))
    cut = run("Pad", np.arange(5, dtype=np.int64), ints(-1, 1), opset=19, mode=mode)
    same(cut, ints(1, 2, 3, 4, {"reflect": 3, "edge": 4, "wrap": 1}[mode]))


def test_pad_cuts_off_what_was_added_on_the_other_side():
    got = run("Pad", np.zeros((4, 1, 0), np.float32), ints(10, 6, 6, 5, 6, -3), floats(7))
    same(got, np.full((19, 13, 3), 7, np.float32))
    same(run("Pad", ROW, ints(9, -8), floats(7)), np.full(6, 7, np.float32))


def test_pad_with_nothing_but_padding():
    same(run("Pad", X[:, :0], ints(0, 1, 0, 0, 1, 0), floats(7)), np.full((2, 2, 4), 7, np.float32))
    same(
        run("Pad", X[:0], ints(0, 1, 0, 0, 1, 0), opset=11, mode="edge"),
        np.zeros((0, 5, 4), np.float32),
    )


@pytest.mark.parametrize(
    "dtype", [np.int8, np.uint16, np.float16, np.bool_, np.complex64, np.float64]
)
def test_pad_with_the_zero_of_the_type(dtype):
    same(run("Pad", np.ones(2, dtype), ints(1, 0)), np.array([0, 1, 1], dtype))


def test_pad_of_strings():
    same(run("Pad", text("a"), ints(1, 1)), text("", "a", ""))
    same(run("Pad", text("a"), ints(1, 0), np.array("é", object)), text("é", "a"))


def test_pad_of_a_scalar():
    same(run("Pad", np.array(5, np.int32), ints()), np.array(5, np.int32))


# -- shapes ----------------------------------------------------------------------------------------


def test_reshape_1_takes_an_attribute():
    same(run("Reshape", X, opset=1, shape=[0, -1]), X.reshape(2, 12))


@pytest.mark.parametrize("opset", [5, 13, 14, 19, 21, 23])
@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ((24,), (24,)),
        ((0, 0, 2, 2), (2, 3, 2, 2)),
        ((-1, 0), (8, 3)),
        ((4, -1), (4, 6)),
        ((1, 0, -1), (1, 3, 8)),
    ],
)
def test_reshape(opset, shape, expected):
    same(run("Reshape", X, ints(*shape), opset=opset), X.reshape(expected))


def test_reshape_to_a_scalar():
    same(run("Reshape", floats(3), ints()), np.array(3, np.float32))
    same(run("Reshape", np.array(3, np.float32), ints(1, -1)), floats(3).reshape(1, 1))


@pytest.mark.parametrize(
    ("shape", "allowzero", "expected"),
    [
        ((3, 0), 1, (3, 0)),
        ((0, 0), 0, (0, 5)),
        ((0, 0, 9), 1, (0, 0, 9)),
        ((0, 7), 1, (0, 7)),
        ((5, 0), 1, (5, 0)),
        ((-1, 5), 1, (0, 5)),
    ],
)
def test_reshape_of_nothing(shape, allowzero, expected):
    empty = np.zeros((0, 5), np.float32)
    same(run("Reshape", empty, ints(*shape), allowzero=allowzero), empty.reshape(expected))


@pytest.mark.parametrize("opset", [1, 9, 11, 13, 21, 23])
@pytest.mark.parametrize(("axis", "shape"), [(0, (1, 24)), (1, (2, 12)), (2, (6, 4)), (3, (24, 1))])
def test_flatten(opset, axis, shape):
    same(run("Flatten", X, opset=opset, axis=axis), X.reshape(shape))


def test_flatten_by_default_and_from_the_end():
    same(run("Flatten", X, opset=1), X.reshape(2, 12))
    same(run("Flatten", X, opset=11, axis=-1), X.reshape(6, 4))
    same(run("Flatten", np.array(2, np.float32), axis=0), floats(2).reshape(1, 1))
    same(run("Flatten", X[:, :0]), np.zeros((2, 0), np.float32))


ONES = np.arange(6, dtype=np.float32).reshape(1, 2, 1, 3, 1)


@pytest.mark.parametrize("opset", [1, 11, 13, 21, 23])
def test_squeeze_and_unsqueeze(opset):
    def axes(*values):
        return ([ints(*values)], {}) if opset >= 13 else ([], {"axes": values})

    inputs, attributes = axes(0, 4)
    same(run("Squeeze", ONES, *inputs, opset=opset, **attributes), ONES.reshape(2, 1, 3))
    same(run("Squeeze", ONES, opset=opset), ONES.reshape(2, 3))
    inputs, attributes = axes(0, 3)
    same(run("Unsqueeze", X[0], *inputs, opset=opset, **attributes), X[0].reshape(1, 3, 4, 1))


def test_squeeze_and_unsqueeze_from_the_end():
    same(run("Squeeze", ONES, opset=11, axes=[-1, -3]), ONES.reshape(1, 2, 3))
    same(run("Squeeze", ONES, ints(-1)), ONES.reshape(1, 2, 1, 3))
    same(run("Unsqueeze", X[0], opset=11, axes=[-1, 0]), X[0].reshape(1, 3, 4, 1))
    same(run("Unsqueeze", np.array(4, np.int64), ints(0)), ints(4))
    same(run("Unsqueeze", np.array(4, np.int64), ints(-1, -2)), ints(4).reshape(1, 1))
    same(run("Unsqueeze", X, ints()), X)
    same(run("Squeeze", np.array(4, np.int64)), np.array(4, np.int64))


@pytest.mark.parametrize("opset", [1, 13, 21, 23])
def test_transpose(opset):
    same(run("Transpose", X, opset=opset), X.T.copy())
    same(run("Transpose", X, opset=opset, perm=[1, 0, 2]), X.transpose(1, 0, 2).copy())
    same(run("Transpose", X[:, :0], opset=opset, perm=[2, 1, 0]), np.zeros((4, 0, 2), np.float32))
    same(run("Transpose", np.array(3, np.int8), opset=opset), np.array(3, np.int8))


# -- what repeats and chooses ----------------------------------------------------------------------


@pytest.mark.parametrize("opset", [1, 11, 13])
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_gather(opset, dtype):
    indices = np.array([[2, 0, 0], [1, 2, 2]], dtype)
    same(run("Gather", X, indices, opset=opset, axis=1), X[:, indices])
    same(run("Gather", X, np.array(1, dtype), opset=opset), X[1])
    same(
        run("Gather", X, np.zeros((0, 2), dtype), opset=opset, axis=2),
        X[..., np.zeros((0, 2), int)],
    )


def test_gather_counts_from_the_end():
    same(run("Gather", X, ints(-1, 0, -4, 3), axis=-1), X[..., [3, 0, 0, 3]])


def test_gather_from_strings():
    same(run("Gather", text("a", "b", "ç"), ints(2, 2, 0)), text("ç", "ç", "a"))


def test_gather_of_nothing():
    same(run("Gather", X[:0], ints()), X[:0])
    same(run("Gather", X[:0], ints(1, 1), axis=1), X[:0, :2])


@pytest.mark.parametrize("opset", [8, 13])
@pytest.mark.parametrize(
    ("shape", "wanted"),
    [
        ((3, 1), (2, 1, 6)),
        ((3, 1), (3, 4)),
        ((2, 3), (1,)),
        ((2, 3), ()),
        ((), (2, 2)),
        ((1, 3), (0, 3)),
        ((0, 1), (1, 4)),
        ((4, 1, 3), (5, 1)),
    ],
)
def test_expand(opset, shape, wanted):
    data = np.arange(np.prod(shape, dtype=int), dtype=np.float32).reshape(shape)
    expected = np.broadcast_to(data, np.broadcast_shapes(shape, wanted)).copy()
    same(run("Expand", data, ints(*wanted), opset=opset), expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_tile_1_repeats_along_an_axis(dtype):
    data = X.astype(dtype)
    got = run("Tile", data, np.array([3], dtype), np.array([1], dtype), opset=1)
    same(got, np.tile(data, (1, 3, 1)))
    same(run("Tile", data, np.array(0, dtype), np.array(2, dtype), opset=1), data[..., :0])


@pytest.mark.parametrize("opset", [6, 13])
@pytest.mark.parametrize("repeats", [(1, 1, 1), (2, 1, 3), (1, 2, 1), (0, 1, 1)])
def test_tile(opset, repeats):
    same(run("Tile", X, ints(*repeats), opset=opset), np.tile(X, repeats))


def test_tile_of_a_scalar():
    same(run("Tile", np.array(2, np.int32), ints()), np.array(2, np.int32))


BLOCKS = np.arange(2 * 8 * 2 * 3, dtype=np.float32).reshape(2, 8, 2, 3)


def dcr(data, side):
    n, depth, height, width = data.shape
    cut = data.reshape(n, side, side, depth // side**2, height, width)
    return cut.transpose(0, 3, 4, 1, 5, 2).reshape(n, depth // side**2, height * side, width * side)


def crd(data, side):
    n, depth, height, width = data.shape
    cut = data.reshape(n, depth // side**2, side, side, height, width)
    return cut.transpose(0, 1, 4, 2, 5, 3).reshape(n, depth // side**2, height * side, width * side)


@pytest.mark.parametrize("opset", [1, 11, 13])
def test_depth_to_space_and_back(opset):
    same(run("DepthToSpace", BLOCKS, opset=opset, blocksize=2), dcr(BLOCKS, 2))
    same(run("SpaceToDepth", dcr(BLOCKS, 2), opset=opset, blocksize=2), BLOCKS)
    same(run("DepthToSpace", BLOCKS[:0], opset=opset, blocksize=2), dcr(BLOCKS[:0], 2))


@pytest.mark.parametrize("opset", [11, 13])
def test_depth_to_space_has_two_modes(opset):
    same(run("DepthToSpace", BLOCKS, opset=opset, blocksize=2, mode="DCR"), dcr(BLOCKS, 2))
    same(run("DepthToSpace", BLOCKS, opset=opset, blocksize=2, mode="CRD"), crd(BLOCKS, 2))


# -- what is known beforehand ----------------------------------------------------------------------


@pytest.mark.parametrize("opset", [1, 13, 19, 21, 23])
def test_shape_and_size(opset):
    same(run("Shape", X, opset=opset), ints(2, 3, 4))
    same(run("Shape", np.array(1, np.int8), opset=opset), ints())
    same(run("Size", X, opset=opset), np.array(24, np.int64))
    same(run("Size", X[:, :0], opset=opset), np.array(0, np.int64))


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        (1, None, (3, 4)),
        (-1, None, (4,)),
        (0, -1, (2, 3)),
        (-9, 9, (2, 3, 4)),
        (2, 1, ()),
        (1, 2, (3,)),
        (9, None, ()),
        (None, -9, ()),
    ],
)
@pytest.mark.parametrize("opset", [15, 19, 21, 23])
def test_shape_15_may_be_a_part(opset, start, end, expected):
    given = {"start": start, "end": end}
    given = {name: value for name, value in given.items() if value is not None}
    same(run("Shape", X, opset=opset, **given), ints(*expected))


@pytest.mark.parametrize("opset", [9, 20, 21, 23])
def test_constant_of_shape(opset):
    value = numpy_helper.from_array(np.array([5], np.int8))
    same(run("ConstantOfShape", ints(2, 3), opset=opset), np.zeros((2, 3), np.float32))
    same(run("ConstantOfShape", ints(2), opset=opset, value=value), np.full(2, 5, np.int8))
    same(run("ConstantOfShape", ints(), opset=opset, value=value), np.array(5, np.int8))
    same(run("ConstantOfShape", ints(0, 4), opset=opset, value=value), np.zeros((0, 4), np.int8))


@pytest.mark.parametrize("opset", [1, 9, 11, 12, 13, 19, 21, 23])
def test_constant(opset):
    same(run("Constant", opset=opset, value=numpy_helper.from_array(X)), X)


@pytest.mark.parametrize(
    ("attribute", "value", "expected"),
    [
        ("value_float", 1.5, np.array(1.5, np.float32)),
        ("value_floats", [1.5, -2.0], floats(1.5, -2)),
        ("value_int", -7, np.array(-7, np.int64)),
        ("value_ints", [1, 2], ints(1, 2)),
        ("value_string", "é", np.array("é", object)),
        ("value_strings", ["a", ""], text("a", "")),
    ],
)
@pytest.mark.parametrize("opset", [12, 23])
def test_constant_12_has_short_forms(opset, attribute, value, expected):
    same(run("Constant", opset=opset, **{attribute: value}), expected)


@pytest.mark.parametrize("indices", [ints(1, 5), ints(0, 1, 1, 2).reshape(2, 2)])
def test_constant_11_may_be_sparse(indices):
    values = helper.make_tensor("v", TensorProto.FLOAT, [2], [3.0, 4.0])
    sparse = helper.make_sparse_tensor(values, numpy_helper.from_array(indices), [2, 3])
    same(run("Constant", opset=11, sparse_value=sparse), floats(0, 3, 0, 0, 0, 4).reshape(2, 3))


# -- arithmetic ------------------------------------------------------------------------------------


@pytest.mark.parametrize("opset", [7, 13, 14])
@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.int32, np.uint64, np.float16])
def test_arithmetic_broadcasts(opset, dtype):
    a, b = X.astype(dtype) + 8, np.array([[1], [2], [4]], dtype)
    same(run("Add", a, b, opset=opset), a + b)
    same(run("Sub", a, b, opset=opset), a - b)
    same(run("Mul", a, b, opset=opset), a * b)
    exact = a / b if np.dtype(dtype).kind == "f" else a // b
    same(run("Div", a, b, opset=opset), exact.astype(dtype))


def test_arithmetic_14_is_of_small_integers():
    a, b = np.array([100, -100], np.int8), np.array([100, 3], np.int8)
    same(run("Add", a, b), np.array([-56, -97], np.int8))  # wraps around


@pytest.mark.parametrize("opset", [1, 6])
@pytest.mark.parametrize(
    ("shape", "more", "place"),
    [
        ((2, 3, 4), {}, (2, 3, 4)),
        ((4,), {}, (4,)),
        ((3,), {"axis": 1}, (3, 1)),
        ((2, 3), {"axis": 0}, (2, 3, 1)),
        ((), {}, ()),
        ((3, 4), {"axis": 1}, (3, 4)),
        ((2,), {"axis": -3}, (2, 1, 1)),
    ],
)
def test_old_arithmetic_broadcasts_by_axis(opset, shape, more, place):
    b = np.arange(1, 1 + np.prod(shape, dtype=int), dtype=np.float32).reshape(shape)
    if shape != X.shape:
        more = {"broadcast": 1, **more}
    for operator, compute in (
        ("Add", np.add),
        ("Sub", np.subtract),
        ("Mul", np.multiply),
        ("Div", np.divide),
    ):
        same(run(operator, X, b, opset=opset, **more), compute(X, b.reshape(place)))


def test_integers_are_divided_towards_zero():
    got = run("Div", ints(7, -7, 7, -7, 6, -6), ints(2, 2, -2, -2, -3, 3))
    same(got, ints(3, -3, -3, 3, -2, -2))


def test_floats_are_divided_by_zero():
    same(run("Div", floats(1, -1), floats(0, 0)), floats(np.inf, -np.inf))


@pytest.mark.parametrize("opset", [6, 9, 13, 19, 21, 23])
def test_cast(opset):
    got = run("Cast", floats(1.9, -1.9, 0), opset=opset, to=TensorProto.INT64)
    same(got, ints(1, -1, 0))
    same(run("Cast", ints(0, 3), opset=opset, to=TensorProto.BOOL), np.array([False, True]))
    same(run("Cast", ints(300), opset=opset, to=TensorProto.UINT8), np.array([44], np.uint8))


def test_cast_1_names_the_type():
    same(run("Cast", ints(3), opset=1, to="FLOAT"), floats(3))
    same(run("Cast", ints(3), opset=1, to="int32"), np.array([3], np.int32))


def test_cast_to_the_same_type_moves():
    same(run("Cast", text("a"), opset=9, to=TensorProto.STRING), text("a"))


def test_cast_to_bfloat16():
    got = run("Cast", floats(1.5, -2), opset=13, to=TensorProto.BFLOAT16)
    same(got, np.array([1.5, -2], ml_dtypes.bfloat16))


# -- sequences -------------------------------------------------------------------------------------


@pytest.mark.parametrize("opset", [11, 24])
def test_split_to_sequence(opset):
    same(run("SplitToSequence", X, opset=opset, axis=1), np.split(X, 3, 1))
    same(run("SplitToSequence", X, opset=opset, axis=-2, keepdims=0), [X[:, i] for i in range(3)])
    same(
        run("SplitToSequence", ROW, np.array(2, np.int32), opset=opset),
        [ROW[:2], ROW[2:4], ROW[4:]],
    )
    same(run("SplitToSequence", ROW, np.array(9, np.int64), opset=opset), [ROW])
    same(run("SplitToSequence", ROW, ints(0, 4, 1), opset=opset), [ROW[:0], ROW[:4], ROW[4:]])
    same(run("SplitToSequence", ROW[:0], opset=opset), [])


def test_split_to_sequence_ignores_keepdims_beside_lengths():
    got = run("SplitToSequence", ROW[:2], np.array(1, np.int64), keepdims=0)
    same(got, [ROW[:1], ROW[1:2]])


def test_concat_from_sequence():
    parts = [X, X[:1]]
    same(run("ConcatFromSequence", parts, axis=0), np.concatenate(parts))
    same(run("ConcatFromSequence", [X, X], axis=-1), np.concatenate([X, X], 2))
    same(run("ConcatFromSequence", [X, X], axis=-1, new_axis=1), np.stack([X, X], -1))
    same(run("ConcatFromSequence", [X, X], axis=1, new_axis=1), np.stack([X, X], 1))


@pytest.mark.parametrize("position", [0, 1, -1, -2])
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_sequence_at(position, dtype):
    items = [X, ROW]
    same(run("SequenceAt", items, np.array(position, dtype)), items[position])


def test_identity_of_a_sequence():
    same(run("Identity", [X, ROW], opset=14), [X, ROW])


@pytest.mark.parametrize("opset", [1, 13, 14, 16, 19, 21, 23])
def test_identity(opset):
    same(run("Identity", X, opset=opset), X)


# -- types -----------------------------------------------------------------------------------------

BITS = [
    ml_dtypes.bfloat16,
    ml_dtypes.int4,
    ml_dtypes.uint4,
    ml_dtypes.float8_e4m3fn,
    ml_dtypes.float8_e5m2,
]
PLAIN = [np.bool_, np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64,
         np.float16, np.float32, np.float64, np.complex64, np.complex128]  # fmt: skip


@pytest.mark.parametrize("dtype", [*PLAIN, *BITS])
def test_types_move_unchanged(dtype):
    data = np.array([[0, 1, 1], [1, 0, 1]]).astype(dtype)
    same(run("Transpose", data, opset=21), data.T.copy())
    same(run("Reshape", data, ints(-1), opset=21), data.reshape(-1))


@pytest.mark.parametrize("dtype", [*PLAIN, ml_dtypes.bfloat16])
def test_types_split_and_join(dtype):
    data = np.array([[0, 1, 1, 0], [1, 0, 1, 1]]).astype(dtype)
    same(run("Split", data, outputs=2, axis=1, num_outputs=2), [data[:, :2], data[:, 2:]])
    same(run("Concat", data, data, axis=1), np.concatenate([data, data], 1))


def test_strings_move():
    data = text("a", "", "ß", "a\0b").reshape(2, 2)
    same(run("Split", data, outputs=2, axis=1, num_outputs=2), [data[:, :1], data[:, 1:]])
    same(run("Concat", data, data, axis=0), np.concatenate([data, data]))
    same(run("Expand", data[:1], ints(2, 2)), data[[0, 0]])
    same(run("Slice", data, ints(-1), ints(I64.min), ints(1), ints(-1)), data[:, ::-1])


def test_values_that_compare_unequal_move_bit_by_bit():
    bits = np.array([0x7FC00001, 0xFFC12345, 0x80000000], np.uint32).view(np.float32)
    same(run("Transpose", bits.reshape(3, 1)), bits.reshape(1, 3))


# -- graphs ----------------------------------------------------------------------------------------


def test_initializers_are_defaults_of_inputs():
    node = helper.make_node("Reshape", ["x", "s"], ["y"])
    default = numpy_helper.from_array(ints(-1), "s")
    proto = model([node], [info("x", X), info("s", ints(0))], ["y"], initializer=[default])
    same(evaluate(proto, {"x": X}), [X.reshape(-1)])
    same(evaluate(proto, {"x": X, "s": ints(24)}), [X.reshape(24)])
    assert [entry.name for entry in Model(proto).required_inputs] == ["x"]


def test_shapes_are_computed_without_the_elements():
    # x.view(x.size(0), -1), as exporters write it
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("Gather", ["shape", "zero"], ["n"]),
        helper.make_node("Unsqueeze", ["n"], ["n1"], axes=[0]),
        helper.make_node("Concat", ["n1", "rest"], ["sizes"], axis=0),
        helper.make_node("Reshape", ["x", "sizes"], ["y"]),
    ]
    constants = [
        numpy_helper.from_array(np.array(0, np.int64), "zero"),
        numpy_helper.from_array(ints(-1), "rest"),
    ]
    proto = model(nodes, [info("x", X)], ["y"], opset=11, initializer=constants)
    (output,) = Model(proto).lower({"x": TensorType(X.dtype, X.shape)}, {}).outputs
    assert output.shape == (2, 12)
    same(evaluate(proto, {"x": X}), [X.reshape(2, 12)])


def test_elements_that_shapes_depend_on_are_asked_for():
    proto, values = node_model("Expand", floats(1), ints(3))
    forms = {name: TensorType(value.dtype, value.shape) for name, value in values.items()}
    with pytest.raises(NeedsValueError, match=r"^i1$"):
        Model(proto).lower(forms, {"i0": values["i0"]})


def test_short_lists_of_integers_that_are_computed_with_are_asked_for():
    proto, values = node_model("Mul", ints(2, 3), ints(4, 5))
    forms = {name: TensorType(value.dtype, value.shape) for name, value in values.items()}
    with pytest.raises(NeedsValueError, match=r"^i0$"):
        Model(proto).lower(forms, {})
    same(evaluate(proto, values), [ints(8, 15)])


def test_sequences_that_are_not_known_move():
    forms = {"i0": SequenceType(X.dtype, (X.shape, X[:1].shape))}
    proto, _ = node_model("ConcatFromSequence", [X, X[:1]], axis=0)
    (output,) = Model(proto).lower(forms, {}).outputs
    assert output.shape == (3, 3, 4)


def test_sparse_initializers():
    values = helper.make_tensor("c", TensorProto.FLOAT, [2], [3.0, 4.0])
    sparse = helper.make_sparse_tensor(values, numpy_helper.from_array(ints(1, 5)), [2, 3])
    node = helper.make_node("Transpose", ["c"], ["y"])
    proto = model([node], [], ["y"], sparse_initializer=[sparse])
    same(evaluate(proto, {}), [floats(0, 0, 3, 0, 0, 4).reshape(3, 2)])


def test_outputs_may_be_inputs_and_initializers():
    proto = model([], [info("x", X)], ["x", "c"], initializer=[numpy_helper.from_array(ROW, "c")])
    same(evaluate(proto, {"x": X}), [X, ROW])


def test_functions_are_put_in_place_of_their_calls():
    body = [helper.make_node("Split", ["x"], ["a", "b"], num_outputs=2)]
    halves = helper.make_function(
        "own", "Halves", ["x"], ["a", "b"], body, [helper.make_opsetid("", 18)]
    )
    proto = model(
        [helper.make_node("Halves", ["x"], ["p", "q"], domain="own")], [info("x", ROW)], ["q", "p"]
    )
    proto.functions.append(halves)
    proto.opset_import.append(helper.make_opsetid("own", 1))
    same(evaluate(proto, {"x": ROW}), [ROW[3:], ROW[:3]])


# -- runs ------------------------------------------------------------------------------------------


@given(
    st.one_of(
        st.lists(st.integers(-50, 50), max_size=40),
        st.lists(
            st.tuples(st.integers(-9, 9), st.integers(-3, 3), st.integers(1, 6)), max_size=8
        ).map(lambda pieces: [start + step * i for start, step, n in pieces for i in range(n)]),
    )
)
def test_runs_reproduce_the_indices(indices):
    runs = runs_of(np.array(indices, np.int64))
    assert [run.start + run.step * i for run in runs for i in range(run.size)] == indices
    assert [run.target for run in runs] == np.cumsum([0, *(run.size for run in runs)])[:-1].tolist()
    assert len(runs) <= max(1, (len(indices) + 1) // 2) if indices else not runs


# -- what ONNX Runtime takes, though the checker alone would not ------------------------------------


def test_inputs_and_outputs_without_shapes_and_types():
    proto = parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 13]>
        g (float[2] x) => (float[2] y) { y = Identity (x) }"""
    )
    proto.graph.input[0].type.tensor_type.ClearField("shape")
    proto.graph.output[0].ClearField("type")
    before = proto.SerializeToString()
    x = np.float32([1, 2, 3])
    same(evaluate(proto, {"x": x}), [x])
    assert proto.SerializeToString() == before


def test_the_long_name_of_onnx_own_domain():
    proto = parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 13]>
        g (float[2] x) => (float[2] y) { y = Identity (x) }"""
    )
    proto.graph.node[0].domain = "ai.onnx"
    x = np.float32([1, 2])
    same(evaluate(proto, {"x": x}), [x])


def test_a_negative_size_is_a_free_one():
    proto = parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 13]>
        g (float[2] x) => (float[2] y) { y = Identity (x) }"""
    )
    proto.graph.input[0].type.tensor_type.shape.dim[0].dim_value = -1
    assert Model(proto).inputs[0].shape == (None,)


def test_squeeze_with_an_empty_list_of_axes_removes_all_that_are_1():
    same(run("Squeeze", np.ones((1, 2, 1)), np.array([], np.int64), opset=13), np.ones(2))


# -- shapes that exporters compute -----------------------------------------------------------------


@pytest.mark.parametrize("opset", [11, 13, 19])
def test_equal(opset):
    a, b = np.array([[1, 2], [3, 4]]), np.array([1, 4])
    same(run("Equal", a, b, opset=opset), np.array([[True, False], [False, True]]))


def test_equal_of_strings():
    a, b = np.array(["a", "b"], object), np.array(["a", "c"], object)
    same(run("Equal", a, b, opset=19), np.array([True, False]))


def test_where():
    shape, known = np.array([-1, 4, -1]), np.array([2, 3, 5])
    same(run("Where", shape == -1, known, shape), np.array([2, 4, 5]))
    same(run("Where", np.array(True), np.array("a", object), np.array(["b"], object)),
         np.array(["a"], object))  # fmt: skip


def test_mod():
    a, b = np.array([7, -7, 7, -7]), np.array([3, 3, -3, -3])
    same(run("Mod", a, b), np.array([1, 2, -2, -1]))
    same(run("Mod", a, b, fmod=1), np.array([1, -1, 1, -1]))
    same(run("Mod", np.float32([5.5]), np.float32([2]), fmod=1), np.float32([1.5]))
