"""Each operator of ONNX in each of its versions, against NumPy, on the host."""

import re

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, defs, helper, numpy_helper, parser
from onnx_graphs import random_model, reference
from onnx_graphs.reference import difference
from onnx_models import (
    NEWEST_ONNX,
    array,
    evaluate,
    floats,
    info,
    int8s,
    int32s,
    ints,
    model,
    needs_opset,
    node_model,
    run,
    run_on_device,
    same,
    scalar,
    text,
    types_of,
)
from processes import ROOT

from vkops.errors import ModelError
from vkops.gpu.kernels.encoding import CPU
from vkops.gpu.run.encoded_plan import EncodedPlan
from vkops.onnx import Model
from vkops.onnx.lowering import NeedsValueError
from vkops.onnx.operators import OPERATORS
from vkops.plan.index_runs import runs_of

I32, I64 = np.iinfo(np.int32), np.iinfo(np.int64)


def counted(shape):
    return np.arange(np.prod(shape, dtype=int), dtype=np.float32).reshape(shape)


X, ROW, ONES = map(counted, ((2, 3, 4), (5,), (1, 2, 1, 3, 1)))
EMPTY = np.zeros((2, 0), np.int64)
BYTES = np.arange(9, dtype=np.uint8).reshape(3, 3)
TABLE = np.arange(15, dtype=np.int32).reshape(3, 5)


def filled(shape, value):
    return np.full(shape, value, np.float32)


SPLIT = [
    ((1, 2), [X], {"axis": 2}, (X[..., :2], X[..., 2:])),
    ((1, 2), [X], {"axis": -1}, (X[..., :2], X[..., 2:])),
    ((1, 2), [X], {}, (X[:1], X[1:])),
    ((1, 2), [ROW], {"split": [1, 0, 4]}, (ROW[:1], ROW[1:1], ROW[1:])),
    ((1,), [ROW, floats(2, 3)], {}, (ROW[:2], ROW[2:])),
    ((13,), [EMPTY], {"axis": 1}, (EMPTY, EMPTY)),
    # The last part takes what is left.
    ((18,), [ROW[:4]], {"num_outputs": 3}, (ROW[:2], ROW[2:4], ROW[4:4])),
]
CONCAT = [
    ((1,), [X, X[..., :1]], {"axis": 2}, np.concatenate([X, X[..., :1]], 2)),
    ((1,), [X, X], {}, np.concatenate([X, X], 1)),
]
SLICE = [
    ((1,), [X], {"starts": [0, 1], "ends": [1000, -1]}, X[:, 1:-1]),
    ((1,), [X], {"starts": [1], "ends": [3], "axes": [2]}, X[..., 1:3]),
    ((1,), [X], {"starts": [-2], "ends": [I64.max], "axes": [-1]}, X[..., -2:]),
    ((18,), [X, ints(), ints(), ints(), ints()], {}, X),
    ((18,), [X[:, :0], ints(-1), ints(I64.min), ints(1), ints(-1)], {}, X[:, :0]),
    # By ONNX: start is cut to [0, n] for positive steps and to [0, n - 1] for negative ones, end
    # to [0, n] and to [-1, n - 1]. Backwards to INT_MAX is to the end, as ONNX Runtime has it.
    *[
        ((18,), [ROW, ints(start), ints(end), ints(0), ints(step)], {}, floats(*chosen))
        for start, end, step, chosen in (
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
            (I64.max, I32.max, -1, [4, 3, 2, 1, 0]),
            (I64.max, I64.max, -1, [4, 3, 2, 1, 0]),
        )
    ],
]
PAD = [
    ((1,), [ROW], {"paddings": [1, 2], "value": 3.0}, np.pad(ROW, (1, 2), constant_values=3)),
    ((1,), [ROW], {"paddings": [1, 2], "mode": "edge"}, np.pad(ROW, (1, 2), "edge")),
    ((18,), [X, ints(1, 2, 0, 3), None, ints(-1, 0)], {}, np.pad(X, [(2, 3), (0, 0), (1, 0)])),
    ((18,), [X, ints(), None, ints()], {}, X),
    # Negative numbers cut off elements, also those that were added on the other side.
    *[
        ((18,), [ROW, ints(*pads), floats(9)], {}, floats(*expected))
        for pads, expected in (
            ((-1, -2), [1, 2]),
            ((-1, 2), [1, 2, 3, 4, 9, 9]),
            ((2, -4), [9, 9, 0]),
            ((-5, 0), []),
            ((-2, -3), []),
            ((-5, 2), [9, 9]),
            ((-7, 4), [9, 9]),
            ((4, -7), [9, 9]),
            ((9, -8), [9] * 6),
            ((0, 0), [0, 1, 2, 3, 4]),
        )
    ],
    ((18,), [np.zeros((4, 1, 0), np.float32), ints(10, 6, 6, 5, 6, -3), floats(7)], {},
     filled((19, 13, 3), 7)),
    # Elements that were cut off are not used.
    ((19,), [ints(0, 1, 2, 3, 4), ints(-1, 1)], {"mode": "reflect"}, ints(1, 2, 3, 4, 3)),
    ((19,), [ints(0, 1, 2, 3, 4), ints(-1, 1)], {"mode": "edge"}, ints(1, 2, 3, 4, 4)),
    ((19,), [ints(0, 1, 2, 3, 4), ints(-1, 1)], {"mode": "wrap"}, ints(1, 2, 3, 4, 1)),
    ((18,), [X[:, :0], ints(0, 1, 0, 0, 1, 0), floats(7)], {}, filled((2, 2, 4), 7)),
    ((11,), [X[:0], ints(0, 1, 0, 0, 1, 0)], {"mode": "edge"}, np.zeros((0, 5, 4), np.float32)),
    ((18,), [scalar(5), ints()], {}, scalar(5)),
]  # fmt: skip
RESHAPE = [
    ((1,), [X], {"shape": [0, -1]}, X.reshape(2, 12)),
    ((18,), [ints(3), ints()], {}, scalar(3)),
    ((18,), [scalar(3), ints(1, -1)], {}, ints(3).reshape(1, 1)),
    *[
        ((18,), [EMPTY.T, ints(*shape)], {"allowzero": allowzero}, EMPTY.reshape(expected))
        for shape, allowzero, expected in (
            ((3, 0), 1, (3, 0)),
            ((0, 0), 0, (0, 2)),
            ((0, 0, 9), 1, (0, 0, 9)),
            ((0, 7), 1, (0, 7)),
            ((-1, 5), 1, (0, 5)),
        )
    ],
]
FLATTEN = [
    ((18,), [scalar(2)], {"axis": 0}, ints(2).reshape(1, 1)),
    ((1, 9), [X], {"axis": -1}, X.reshape(-1, X.shape[-1])),
]
# An empty list is all axes of size 1.
SQUEEZE = [((13,), [ONES, ints()], {}, ONES.reshape(2, 3)), ((18,), [scalar(4)], {}, scalar(4))]
UNSQUEEZE = [
    ((18,), [scalar(4), ints(-1, -2)], {}, ints(4).reshape(1, 1)),
    ((18,), [X, ints()], {}, X),
]

INDEX_ROWS = [[2, 0, 0], [1, 2, 2]]
GATHER = [
    ((1, 11), [X, np.array(INDEX_ROWS, np.int32)], {"axis": 1}, X[:, INDEX_ROWS]),
    ((1,), [X, np.zeros((0, 2), np.int64)], {"axis": 2}, X[..., np.zeros((0, 2), int)]),
    ((18,), [X, ints(-1, 0, -4, 3)], {"axis": -1}, X[..., [3, 0, 0, 3]]),
    ((18,), [ROW, np.tile(ints(0, 3, 1), 999)], {}, np.tile(ROW[[0, 3, 1]], 999)),  # many runs
]
GATHER_ELEMENTS = [
    # Along the axis, there may be more indices than elements.
    ((11, 13), [ROW, int32s(*[-1, 0] * 5)], {"axis": 0}, ROW[[-1, 0] * 5]),
    ((18,), [text("a", "b", "ç"), ints(2, 2, 0)], {}, text("ç", "ç", "a")),
    ((18,), [X[:0], ints().reshape(0, 1, 1)], {}, X[:0, :1, :1]),
]
PAIRS_OF_INDICES = ints(0, 2, -1, -3, 1, 1).reshape(3, 2)
GATHER_ND = [
    ((11, 12, 13), [X, PAIRS_OF_INDICES], {}, X[[0, -1, 1], [2, -3, 1]]),
    ((13,), [X[:, :, :0], PAIRS_OF_INDICES], {}, np.zeros((3, 0), np.float32)),
    ((12, 13), [X, ints(0, 1, -1, 2, 3, -4).reshape(2, 3, 1)], {"batch_dims": 2},
     X[[[0], [1]], [[0, 1, 2]], [[0, 1, -1], [2, 3, -4]]]),
    ((13,), [text("a", "b", "ç", "d").reshape(2, 2), ints(1, 0)], {}, scalar("ç", object)),
]  # fmt: skip
SCATTERED = X.copy()
SCATTERED[1, [2, 0], 1] = [-5, -6]
TWICE = X.copy()
TWICE[1, 1] = X[0, 2]
MARKED = np.array([[0, 9, 2], [8, 4, 7], [6, 7, 8]], np.uint8)
SCATTER_ELEMENTS = [
    ((11, 18), [BYTES, int32s(-2, 0, -2).reshape(1, 3), np.uint8([[8, 9, 7]])], {}, MARKED),
    ((18,), [X[1], ints(3, -4).reshape(2, 1), floats(-1, -2).reshape(2, 1)],
     {"axis": -1}, np.block([[X[1, :1, :3], floats(-1)], [floats(-2), X[1, 1:2, 1:]], [X[1, 2:]]])),
    ((18,), [BYTES, ints().reshape(0, 3), BYTES[:0]], {"reduction": "none"}, BYTES),
    ((18,), [text("a", "b", "c"), ints(-1), text("ç")], {}, text("a", "b", "ç")),
    ((18,), [BYTES < 2, ints(2).reshape(1, 1), np.array([[True]])], {"axis": 1},
     np.array([[True, True, True], [False] * 3, [False] * 3])),
]  # fmt: skip
SCATTER = [((9,), [ROW, int32s(1, -1), floats(7, 8)], {"axis": -1}, floats(0, 7, 2, 3, 8))]
SCATTER_ND = [
    ((11, 18), [X, ints(1, 2, 1, 1, -3, -3).reshape(2, 3), floats(-5, -6)], {}, SCATTERED),
    ((18,), [X[..., :0], PAIRS_OF_INDICES, X[0, :, :0]], {}, X[..., :0]),
    ((18,), [text("a", "b"), ints(0).reshape(1, 1), text("ç")], {}, text("ç", "b")),
]
CACHE = X.copy()
CACHE[0, 1:], CACHE[1, :2] = -X[1, :2], -X[0, :2]
TENSOR_SCATTER = [
    ((24,), [X, -X[::-1, :2], ints(1, 0)], {}, CACHE),
    ((24,), [X, -X[..., :3]], {"axis": 2}, np.concatenate([-X[..., :3], X[..., 3:]], 2)),
    ((24,), [X, X[:, :0], ints(3, 0)], {}, X),
    ((24,), [text("a", "b").reshape(1, 2), text("ç").reshape(1, 1), ints(1)], {"axis": -1},
     text("a", "ç").reshape(1, 2)),
]  # fmt: skip
FIRST_ROWS = np.stack([TABLE[[1, 0, 2], 0], TABLE[[2, 1, 0], 1], *TABLE.T[2:]], 1)
REVERSE_SEQUENCE = [
    ((10,), [TABLE, ints(2, 3, 1, 1, 1)], {}, FIRST_ROWS),
    ((10,), [X, ints(1, 3)], {"batch_axis": 0, "time_axis": 1}, np.stack([X[0], X[1, ::-1]])),
    ((10,), [X[:0], ints(0, 0, 0)], {}, X[:0]),
    ((10,), [text("a", "b").reshape(2, 1), ints(2)], {}, text("b", "a").reshape(2, 1)),
]
ONE_HOT = [
    *[
        ((9, 11), [np.array([[0, 2], [3, 9]], dtype), scalar(4, of), np.int8([5, 7])], {"axis": axis},
         np.stack([[[7, 5], [5, 5]], [[5, 5], [5, 5]], [[5, 7], [5, 5]], [[5, 5], [7, 5]]], axis).astype(np.int8))
        for axis in (0, 1, 2, -1, -3)
        for dtype, of in ((np.int32, np.int64), (np.int64, np.float32), (np.uint32, np.uint8), (np.uint64, np.float64))
    ],
    # Version 9 has no indices that count from the end.
    ((9,), [ints(-1, -2, -3), scalar(2), ints(0, 1)], {}, ints(0, 0, 0, 0, 0, 0).reshape(3, 2)),
    ((9,), [int32s(-1, 1), scalar(2), ints(0, 1)], {}, ints(0, 0, 0, 1).reshape(2, 2)),
    ((11,), [ints(-1, -2, -3), scalar(2), ints(0, 1)], {}, ints(0, 1, 1, 0, 0, 0).reshape(3, 2)),
    ((11,), [ints(I64.min, I64.max), scalar(2), ints(0, 1)], {}, ints(0, 0, 0, 0).reshape(2, 2)),
    ((11,), [np.uint64([2**64 - 1, 1]), scalar(2), ints(0, 1)], {}, ints(0, 0, 0, 1).reshape(2, 2)),
    ((11,), [int8s(-1), scalar(2), text("", "ç")], {}, text("", "ç").reshape(1, 2)),
    ((11,), [scalar(1), ints(3), np.array([True, False])], {}, np.array([True, False, True])),
    ((11,), [ints(), floats(2.5), ints(0, 1)], {}, ints().reshape(0, 2)),
    ((11,), [ints(1, 2), scalar(0), ints(0, 1)], {}, ints().reshape(2, 0)),
]  # fmt: skip
EXPAND = [((18,), [ROW, ints(3, -1)], {}, np.tile(ROW, (3, 1)))]  # -1 changes nothing
TILE = [
    ((1,), [X, floats(3), floats(1)], {}, np.tile(X, (1, 3, 1))),
    ((1,), [X, scalar(0, np.float32), scalar(2, np.float32)], {}, X[..., :0]),
    ((18,), [scalar(2), ints()], {}, scalar(2)),
]
SHAPE = [((1,), [X], {}, ints(2, 3, 4)), ((15,), [X], {"end": -9}, ints())]
CAST = [
    ((9,), [ints(300)], {"to": TensorProto.UINT8}, np.array([44], np.uint8)),
    ((1,), [ints(3)], {"to": "FLOAT"}, floats(3)),
    ((1,), [ints(3)], {"to": "int32"}, int32s(3)),
    ((9,), [text("a")], {"to": TensorProto.STRING}, text("a")),  # the same type is only moved
    ((13,), [floats(1.5, -2)], {"to": TensorProto.BFLOAT16}, array(ml_dtypes.bfloat16)(1.5, -2)),
]
SPLIT_TO_SEQUENCE = [
    ((11, 24), [ROW[:0]], {}, []),
    ((18,), [ROW[:2], scalar(1)], {"keepdims": 0}, [ROW[:1], ROW[1:2]]),  # ignored beside lengths
]
WHERE = [
    ((18,), [np.array([True, False]), ints(2, 3), ints(-1, 4)], {}, ints(2, 4)),
    ((18,), [scalar(True, bool), scalar("a", object), text("b")], {}, text("a")),
]
SIGNS = [ints(7, -7, 7, -7), ints(3, 3, -3, -3)]
MOD = [
    ((18,), SIGNS, {}, ints(1, 2, -2, -1)),
    ((18,), SIGNS, {"fmod": 1}, ints(1, -1, 1, -1)),
    ((18,), [floats(5.5), floats(2)], {"fmod": 1}, floats(1.5)),
]
CENTER_CROP_PAD = [
    ((18,), [ROW, ints(4)], {}, ROW[:4]),  # an odd difference: one more is cut off at the end
    ((18,), [X, ints(5, 3, 1)], {}, np.pad(X[:, :, 1:2], ((1, 2), (0, 0), (0, 0)))),
    ((18,), [text("a", "b"), ints(4)], {}, text("", "a", "b", "")),
    ((18,), [scalar(7), ints()], {}, scalar(7)),
]
DIV = [
    ((18,), [ints(7, -7, 7, -7, 6, -6), ints(2, 2, -2, -2, -3, 3)], {}, ints(3, -3, -3, 3, -2, -2)),
    ((18,), [floats(1, -1), floats(0, 0)], {}, floats(np.inf, -np.inf)),
]
EYE_LIKE = [
    ((22,), [EMPTY], {"dtype": TensorProto.BOOL}, np.zeros((2, 0), bool)),
    *[
        ((9,), [TABLE], {"k": k}, np.eye(3, 5, min(9, max(-9, k)), np.int32))
        for k in (-2, -3, 4, 5, I64.max, I64.min)
    ],
]
TRILU = [
    ((14,), [text("a", "b", "c", "d").reshape(2, 2)], {"upper": 0},
     text("a", "", "c", "d").reshape(2, 2)),
    *[
        ((14,), [TABLE, scalar(k)], {"upper": upper}, function(TABLE, min(9, max(-9, k))))
        for upper, function in ((0, np.tril), (1, np.triu))
        for k in (-4, -3, -2, 2, 4, 5, I64.max, I64.min)
    ],
]  # fmt: skip
RANGE = [
    (opsets, [scalar(bound, dtype) for bound in bounds], {}, array(dtype)(*expected))
    for opsets, dtype, bounds, expected in (
        ((11, 27), np.int64, (3, 9, 3), (3, 6)),
        ((11, 27), np.int32, (10, 4, -2), (10, 8, 6)),
        ((11, 27), np.int16, (1, -1, 1), ()),
        ((11, 27), np.float32, (0.5, 2, 0.5), (0.5, 1, 1.5)),
        ((11,), np.int64, (I64.min, I64.max, I64.max), (I64.min, -1, I64.max - 1)),
        ((27,), np.float16, (2048, 2052, 1), (2048, 2049, 2050, 2051)),
        ((27,), ml_dtypes.bfloat16, (4, 0, -1), (4, 3, 2, 1)),
    )
] + [
    # Their number is computed with 64 bits, as in ONNX Runtime, and they themselves with 32.
    (
        (11,),
        [*map(floats, bounds)],
        {},
        floats(*bounds[:1]) + np.arange(count, dtype=np.float32) * np.float32(bounds[2]),
    )
    for bounds, count in (
        ((0, 0.3, 0.1), 4),
        ((-0.1, 2.5, 2.6), 2),
        ((-0.4, 1.2, 0.8), 3),
        ((1, -0.5, -0.3), 5),
    )
]
ADD = [((14,), [int8s(100, -100), int8s(100, 3)], {}, int8s(-56, -97))]  # wraps around
COMPRESS = [
    ((9, 11), [X, array(bool)(True, False, True)], {"axis": 1}, X[:, ::2]),
    ((11,), [X, array(bool)(True)], {"axis": -1}, X[..., :1]),  # the condition may be shorter
    ((9, 28), [X, array(bool)(*[False] * 20, True)], {}, floats(20)),
    ((28,), [ROW, array(bool)(*[False] * 9)], {"axis": 0}, ROW[:0]),  # or longer, if it is false
]
DROPOUT = [
    ((6,), [X], {"is_test": 1}, X),
    ((7,), [X], {"ratio": 0.9}, (X, np.ones_like(X))),
    ((10,), [X], {}, (X, np.ones(X.shape, bool))),
    ((13,), [X, scalar(0.5, np.float32), scalar(False, bool)], {}, (X, np.ones(X.shape, bool))),
]

CASES = {
    "Add": ADD, "Cast": CAST, "CenterCropPad": CENTER_CROP_PAD, "Compress": COMPRESS, "Concat": CONCAT,
    "Div": DIV, "Dropout": DROPOUT, "Expand": EXPAND, "EyeLike": EYE_LIKE, "Flatten": FLATTEN, "Gather": GATHER,
    "GatherElements": GATHER_ELEMENTS, "GatherND": GATHER_ND, "OneHot": ONE_HOT, "ReverseSequence": REVERSE_SEQUENCE,
    "Scatter": SCATTER, "ScatterElements": SCATTER_ELEMENTS, "ScatterND": SCATTER_ND,
    "TensorScatter": TENSOR_SCATTER,
    "Mod": MOD, "Pad": PAD, "Range": RANGE, "Reshape": RESHAPE,
    "Shape": SHAPE, "Slice": SLICE, "Split": SPLIT,
    "SplitToSequence": SPLIT_TO_SEQUENCE, "Squeeze": SQUEEZE, "Tile": TILE,
    "Trilu": TRILU, "Unsqueeze": UNSQUEEZE, "Where": WHERE,
}  # fmt: skip
"""For each operator, opsets, inputs, attributes and the output; several outputs are a tuple.

They are what the random models lack: versions before opset 7, and limits of arguments.
"""

INDEXED = (
    "Gather", "GatherElements", "GatherND", "OneHot", "ReverseSequence", "Scatter", "ScatterElements", "ScatterND",
    "TensorScatter",
)  # fmt: skip
"""Operators whose indices need not be known before the model runs."""


@NEWEST_ONNX
@pytest.mark.parametrize("first", range(0, 200, 50))
def test_random_models_make_what_the_reference_evaluator_makes(first):
    for seed in range(first, first + 50):
        case = random_model(seed)
        for inputs in (case.inputs, case.others):
            outputs = evaluate(case.model, inputs)
            for got, expected in zip(outputs, reference.evaluate(case.model, inputs), strict=True):
                assert not difference(got, expected), f"seed {seed}"


def cases_of(operators):
    """Run a test with all cases of some operators."""
    return pytest.mark.parametrize(
        ("operator", "opset", "inputs", "attributes", "expected"),
        [
            pytest.param(
                operator,
                opset,
                *case,
                id=f"{operator}-{opset}-{number}",
                marks=needs_opset(opset),
            )
            for operator in operators
            for number, (opsets, *case) in enumerate(CASES[operator])
            for opset in opsets
        ],
    )


@cases_of(CASES)
def test_operators(operator, opset, inputs, attributes, expected):
    outputs = list(expected) if isinstance(expected, tuple) else expected
    count = len(expected) if isinstance(expected, tuple) else 1
    same(run(operator, *inputs, outputs=count, opset=opset, **attributes), outputs)


@cases_of(INDEXED)
def test_indices_that_are_known_only_on_the_device(operator, opset, inputs, attributes, expected):
    same(run_on_device(operator, *inputs, opset=opset, **attributes), expected)


OUT_OF_RANGE = [  # Wrong for ONNX: inputs, and what is as near as possible where nothing checks them
    ("Gather", [X, ints(3, I64.max, -4, I64.min)], {"axis": 1}, X[:, [2, 2, 0, 0]]),
    ("Gather", [X, int32s(3, -4, I32.min)], {"axis": 1}, X[:, [2, 0, 0]]),
    ("GatherElements", [ROW, ints(5, -6, I64.max)], {}, ROW[[4, 0, 4]]),
    ("GatherND", [X, ints(-3, 1, 9, 2, -9, 0).reshape(2, 3)], {}, X[[0, 1], [1, 0], [3, 0]]),
    ("ScatterElements", [ROW, ints(5, -6, I64.min, 1), ROW[:4]], {}, floats(0, 3, 2, 3, 4)),
    ("ScatterND", [X, ints(1, 3, -3, 0, 1, 1).reshape(3, 2), X[0]], {}, TWICE),
    ("TensorScatter", [X, -X[:, :2], ints(2, -1)], {"opset": 24}, X),
    ("ReverseSequence", [TABLE, ints(9, 0, -1, I64.min, I64.max)], {},
     np.concatenate([TABLE[::-1, :1], TABLE[:, 1:4], TABLE[::-1, 4:]], 1)),
]  # fmt: skip


@pytest.mark.parametrize(("operator", "inputs", "attributes", "expected"), OUT_OF_RANGE)
def test_indices_out_of_range_on_the_device(operator, inputs, attributes, expected):
    same(run_on_device(operator, *inputs, **attributes), expected)
    if operator != "ReverseSequence":
        text = r"indices\[[\d, ]+\]: got -?\d+, must be -?\d to \d for axis \d$"
        with pytest.raises(ModelError, match=text):
            run(operator, *inputs, **attributes)


@pytest.mark.parametrize("name", ["Transpose", "Slice"])
def test_many_axes_have_few_parts(name):
    """A transpose of 20 axes has one copy for each place along 12 of them, if nothing gathers."""
    data = np.arange(1 << 20, dtype=np.int32).reshape((2,) * 20)
    if name == "Transpose":
        case, expected = node_model(name, data), data.T
    else:
        every, ends = np.arange(20), np.full(20, -9)
        case = node_model(name, data, np.full(20, 1), ends, every, np.resize([-1, -3], 20))
        expected = data[(slice(1, -9, -1), slice(1, -9, -3)) * 10]
    proto, values = case
    (result,) = evaluate(proto, values)
    same(result, expected)
    known = {name: array for name, array in values.items() if name != "i0"}
    lowering = Model(proto).lower(types_of(values), known)
    steps = lowering.graph.lower([value.number for value in lowering.outputs])
    tables = [table for step in steps for table in EncodedPlan(step.plan, CPU)._tables]
    assert sum(len(table.encoded.records) for table in tables) <= 1024


def test_few_indices_that_are_known_are_copied():
    """Without the indices, a copy can be fused with others; many of them are read instead."""
    for count, kinds in ((150, {"copy"}), (9999, {"gather"})):
        indices = np.tile(ints(0, 3, 1), count)
        proto, values = node_model("Gather", ROW, indices)
        lowering = Model(proto).lower(types_of(values), {"i1": indices})
        (step,) = lowering.graph.lower([lowering.outputs[0].number])
        assert {region.kind for region in step.plan.outputs[0].regions} == kinds


def test_split_leaves_out_the_outputs_that_have_no_name():
    node = helper.make_node("Split", ["x"], ["", "b"], num_outputs=2)
    same(evaluate(model([node], [info("x", ROW)], ["b"]), {"x": ROW}), [ROW[3:]])


# -- arithmetic ------------------------------------------------------------------------------------


@pytest.mark.parametrize("opset", [1, 6])
@pytest.mark.parametrize(
    ("shape", "more", "place"),
    [
        ((2, 3, 4), {}, (2, 3, 4)), ((4,), {}, (4,)), ((3,), {"axis": 1}, (3, 1)),
        ((2, 3), {"axis": 0}, (2, 3, 1)), ((), {}, ()), ((3, 4), {"axis": 1}, (3, 4)),
        ((2,), {"axis": -3}, (2, 1, 1)),
    ],
)  # fmt: skip
def test_old_arithmetic_broadcasts_by_axis(opset, shape, more, place):
    b = (counted(shape) + 1).astype(np.float32)  # NumPy 1 makes float64 of a scalar
    more = {"broadcast": 1, **more} if shape != X.shape else more
    functions = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": np.divide}
    for operator, compute in functions.items():
        same(run(operator, X, b, opset=opset, **more), compute(X, b.reshape(place)))


# -- bits -----------------------------------------------------------------------------------------


def test_values_that_compare_unequal_move_bit_by_bit():
    bits = np.array([0x7FC00001, 0xFFC12345, 0x80000000], np.uint32).view(np.float32)
    same(run("Transpose", bits.reshape(3, 1)), bits.reshape(1, 3))


# -- graphs ----------------------------------------------------------------------------------------


def parsed(graph, opset=13):
    return parser.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}]> {graph}')


def test_initializers_are_defaults_of_inputs():
    proto = parsed(
        "g (float[2, 3, 4] x) => (float[N] y) <int64[1] s = {-1}> { y = Reshape (x, s) }"
    )
    proto.graph.input.append(info("s", ints(0)))
    same(evaluate(proto, {"x": X}), [X.reshape(-1)])
    same(evaluate(proto, {"x": X, "s": ints(24)}), [X.reshape(24)])
    assert [entry.name for entry in Model(proto).required_inputs] == ["x"]


def test_shapes_are_computed_without_the_elements():
    """As exporters write x.view(x.size(0), -1)."""
    proto = parsed(
        """g (float[2, 3, 4] x) => (float[A, B] y) <int64 zero = {0}, int64[1] rest = {-1}> {
        shape = Shape (x)  n = Gather (shape, zero)  n1 = Unsqueeze <axes = [0]> (n)
        sizes = Concat <axis = 0> (n1, rest)  y = Reshape (x, sizes) }""",
        opset=11,
    )
    (output,) = Model(proto).lower(types_of({"x": X}), {}).outputs
    assert output.shape == (2, 12)
    same(evaluate(proto, {"x": X}), [X.reshape(2, 12)])


def test_elements_that_shapes_depend_on_are_requested():
    proto, values = node_model("Expand", floats(1), ints(3))
    with pytest.raises(NeedsValueError, match=r"^i1$"):
        Model(proto).lower(types_of(values), {"i0": values["i0"]})


def test_short_lists_of_integers_that_are_computed_with_are_requested():
    proto, values = node_model("Mul", ints(2, 3), ints(4, 5))
    with pytest.raises(NeedsValueError, match=r"^i0$"):
        Model(proto).lower(types_of(values), {})
    same(evaluate(proto, values), [ints(8, 15)])


def test_sequences_whose_elements_are_not_known_move():
    proto, values = node_model("ConcatFromSequence", [X, X[:1]], axis=0)
    (output,) = Model(proto).lower(types_of(values), {}).outputs
    assert output.shape == (3, 3, 4)


def test_sparse_initializers():
    values = helper.make_tensor("c", TensorProto.FLOAT, [2], [3.0, 4.0])
    sparse = helper.make_sparse_tensor(values, numpy_helper.from_array(ints(1, 5)), [2, 3])
    node = helper.make_node("Transpose", ["c"], ["y"])
    proto = model([node], [], ["y"], sparse_initializer=[sparse])
    same(evaluate(proto, {}), [floats(0, 0, 3, 0, 0, 4).reshape(3, 2)])


@pytest.mark.parametrize("indices", [[1, 5], [[0, 1], [1, 2]]], ids=["flat", "by axis"])
def test_sparse_strings_are_empty_where_they_have_no_value(indices):
    values = helper.make_tensor("c", TensorProto.STRING, [2], [b"a", b"b"])
    sparse = helper.make_sparse_tensor(values, numpy_helper.from_array(ints(indices)[0]), [2, 3])
    proto = model(
        [helper.make_node("Identity", ["c"], ["y"])], [], ["y"], sparse_initializer=[sparse]
    )
    (constant,) = Model(proto, check=False).constants.values()
    assert constant.tolist() == [["", "a", ""], ["", "", "b"]]


def test_functions_are_inlined():
    proto = parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 18, "own" : 1]>
        g (float[5] x) => (float[N] q, float[M] p) { p, q = own.Halves (x) }
        <domain: "own", opset_import: ["" : 18]>
        Halves (x) => (a, b) { a, b = Split <num_outputs = 2> (x) }"""
    )
    same(evaluate(proto, {"x": ROW}), [ROW[3:], ROW[:3]])


def test_what_onnx_runtime_takes_though_the_checker_of_onnx_does_not():
    proto = parsed("g (float[2] x) => (float[2] y) { y = Identity (x) }")
    proto.graph.input[0].type.tensor_type.shape.dim[0].dim_value = -1
    assert Model(proto).inputs[0].shape == (None,)
    proto.graph.input[0].type.tensor_type.ClearField("shape")
    proto.graph.output[0].ClearField("type")
    proto.graph.node[0].domain = "ai.onnx"  # the long name of ONNX's own
    before = proto.SerializeToString()
    same(evaluate(proto, {"x": floats(1, 2, 3)}), [floats(1, 2, 3)])
    assert proto.SerializeToString() == before


# -- runs of indices -------------------------------------------------------------------------------


@given(
    st.one_of(
        st.lists(st.integers(-50, 50), max_size=40),
        st.lists(
            st.tuples(st.integers(-9, 9), st.integers(-3, 3), st.integers(1, 6)), max_size=8
        ).map(lambda pieces: [start + step * i for start, step, n in pieces for i in range(n)]),
    )
)
def test_runs_reproduce_the_indices(indices):
    runs = [*runs_of(np.array(indices, np.int64))]
    assert [run.start + run.step * i for run in runs for i in range(run.size)] == indices
    assert [run.target for run in runs] == np.cumsum([0, *(run.size for run in runs)])[:-1].tolist()
    assert len(runs) <= max(1, (len(indices) + 1) // 2) if indices else not runs


@pytest.mark.parametrize("name", OPERATORS)
def test_the_newest_version_is_known(name):
    """An older package of onnx may not know the newest one."""
    newest, known = OPERATORS[name].newest, defs.get_schema(name).since_version
    assert newest == known or newest > defs.onnx_opset_version()


def test_the_documentation_names_the_newest_versions():
    text = (ROOT / "docs/onnx.md").read_text(encoding="utf-8")
    versions = ", ".join(f"{name} {each.newest}" for name, each in OPERATORS.items())
    assert f": {versions}." in " ".join(text.split())


def test_each_operator_has_a_row_in_the_documentation():
    text = (ROOT / "docs/onnx.md").read_text(encoding="utf-8")
    named = {name for row in re.findall(r"^\| ([^|]+) \|", text, re.M) for name in row.split(", ")}
    assert {name.split()[0] for name in named} >= OPERATORS.keys()
