"""ONNX's reference evaluator, corrected where it differs from the operators' specification."""

from __future__ import annotations

import numpy as np
from onnx import FunctionProto, ModelProto
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun
from onnx.reference.ops import load_op
from onnx.reference.ops.op_constant import Constant_12
from onnx.reference.ops.op_pad import Pad_18

from onnx_graphs.elements import STRING, bits_of


class Cast(OpRun):
    """The evaluator cannot convert between some types of ml_dtypes, nor a scalar to float8e8m0."""

    def _run(self, x, **attributes):
        if x.dtype.kind == "V" or x.dtype.name.startswith("float8"):
            x = x.astype(np.float32)  # which has all their values
        (made,) = load_op("", "Cast")._run(self, np.atleast_1d(x), **attributes)
        return (made.reshape(x.shape),)


class Constant(Constant_12):
    """The evaluator returns a sparse value, though the output is a dense tensor."""

    def _run(self, **attributes):
        (made,) = super()._run()
        if self.cst_name != "sparse_value":
            return (made,)
        dense = np.zeros(made.shape, made.values.dtype)
        indices = made.indices
        at = np.unravel_index(indices, made.shape) if indices.ndim == 1 else tuple(indices.T)
        dense[at] = made.values
        return (dense,)


class Equal(OpRun):
    """The evaluator treats strings of two widths as two types."""

    def _run(self, a, b, **attributes):
        result = a.astype(object) == b.astype(object) if a.dtype.kind in "UO" else np.equal(a, b)
        return (np.asarray(result, bool),)


class Expand(OpRun):
    """The evaluator multiplies by ones, which fails for strings and changes NaNs."""

    def _run(self, data, shape):
        return (np.broadcast_to(data, np.broadcast_shapes(data.shape, tuple(shape))),)


class Flatten(OpRun):
    """The evaluator lets NumPy infer a size, which fails for empty tensors."""

    def _run(self, data, axis=None):
        return (data.reshape(np.prod([1, *data.shape[:axis]]), np.prod([1, *data.shape[axis:]])),)


class Gather(OpRun):
    """Before onnx 1.23, the evaluator returns an empty list of any shape for no indices."""

    def _run(self, data, indices, axis=None):
        return (np.asarray(np.take(data, indices, axis), data.dtype),)


class GatherElements(OpRun):
    """The evaluator requires as many indices as elements, and treats a few types only."""

    def _run(self, data, indices, axis=None):
        part = tuple(slice(n) for n in indices.shape)
        whole = (*part[: axis % data.ndim], slice(None), *part[axis % data.ndim + 1 :])
        return (np.take_along_axis(data[whole], indices, axis),)


class GatherND(OpRun):
    """The evaluator fails for empty tensors."""

    def _run(self, data, indices, batch_dims=None):
        batch = np.indices(indices.shape[:-1])[: batch_dims or 0]
        return (np.asarray(data[(*batch, *np.moveaxis(indices, -1, 0))], data.dtype),)


class OneHot(OpRun):
    """The evaluator multiplies the values, even strings."""

    def _run(self, indices, depth, values, axis=None):
        depth = int(np.squeeze(depth))
        indices = indices.astype(np.int64)
        places = np.expand_dims(np.where(indices < 0, indices + depth, indices), axis)
        classes = np.arange(depth).reshape(-1, *[1] * (indices.ndim - axis % places.ndim))
        return (np.where(places == classes, values[1], values[0]).astype(values.dtype),)


class Pad(OpRun):
    """The evaluator refuses negative pads and scalars, and pads strings with the number 0."""

    def _run(self, data, pads=None, constant_value=None, axes=None, mode=None, value=None):
        axes = range(data.ndim) if axes is None else [int(axis) % data.ndim for axis in axes]
        pairs = list(zip(axes, pads[: len(axes)], pads[len(axes) :], strict=True))
        for axis, before, after in pairs:
            kept = slice(max(0, -before), data.shape[axis] - max(0, -after))
            data = data[(slice(None),) * axis + (kept,)]
        if not pairs:
            return (data,)
        if constant_value is None and data.dtype == object:
            constant_value = np.array("", object)
        elif constant_value is None and value is not None:
            constant_value = value
        added = [max(0, n) for side in (1, 2) for n in (pair[side] for pair in pairs)]
        whole = {"constant_value": constant_value, "axes": [axis for axis, _, _ in pairs]}
        return Pad_18._run(self, data, added, mode=mode, **whole)


class Range(OpRun):
    """The evaluator adds with 64 bits, which the operator's function body does not."""

    def _run(self, start, limit, delta, **attributes):
        (made,) = load_op("", "Range")._run(self, start, limit, delta, **attributes)
        wide = np.float32 if start.dtype.itemsize == 2 and start.dtype.kind != "i" else start.dtype
        numbers = np.arange(len(made)).astype(wide) * delta.astype(wide) + start.astype(wide)
        return (numbers.astype(start.dtype),)


class SingleScales(np.ndarray):
    """Scales whose products with sizes have 32 bits, as in ONNX Runtime."""

    def __mul__(self, sizes):
        return np.multiply(np.asarray(self), np.asarray(sizes, np.float32))


class Resize(OpRun):
    """The evaluator lacks version 10 and negative axes, and multiplies elements, even strings.

    It computes sizes with 64 bits.
    """

    def _run(self, x, *inputs, axes=None, extrapolation_value=0, **attributes):
        indices = np.arange(x.size, dtype=np.float64).reshape(x.shape)
        if len(inputs) == 1:  # version 10, as ONNX Runtime has it
            (made,) = Upsample._run(self, indices, inputs[0])
        else:
            inputs = [None if given is None or not given.size else given for given in inputs]
            inputs[1] = None if inputs[1] is None else inputs[1].view(SingleScales)
            axes = None if axes is None else [axis % x.ndim for axis in axes]
            whole = {**attributes, "axes": axes, "extrapolation_value": -1}
            (made,) = load_op("", "Resize")._run(self, indices, *inputs, **whole)
        outside = np.array(extrapolation_value or 0).astype(x.dtype) if x.dtype != object else ""
        places = made.astype(np.int64)
        return (np.where(places < 0, outside, x.reshape(-1)[places]).astype(x.dtype),)


class ReverseSequence(OpRun):
    """Before onnx 1.23, the evaluator fails for sequences of length 0."""

    def _run(self, data, sequence_lens, batch_axis=None, time_axis=None):
        result = data.copy()
        sequences = np.moveaxis(data, (batch_axis, time_axis), (0, 1))
        reversed_ = np.moveaxis(result, (batch_axis, time_axis), (0, 1))
        for sequence, reverse, length in zip(sequences, reversed_, sequence_lens, strict=True):
            reverse[:length] = sequence[:length][::-1]
        return (result,)


class ScatterElements(OpRun):
    """Before onnx 1.23, the evaluator has 4 dimensions at most."""

    def _run(self, data, indices, updates, axis=None, reduction=None):
        assert reduction in (None, "none")
        result = data.copy()
        part = tuple(slice(n) for n in indices.shape)
        whole = (*part[: axis % data.ndim], slice(None), *part[axis % data.ndim + 1 :])
        np.put_along_axis(result[whole], indices, updates, axis)
        return (result,)


class Scatter(ScatterElements):
    """The evaluator has the operator's new name only."""

    def _run(self, data, indices, updates, axis=None):
        return super()._run(data, indices, updates, axis)


class SequenceInsert(OpRun):
    """The evaluator changes its input, and takes the end for the start."""

    def _run(self, sequence, tensor, position=None):
        made = list(sequence)
        made.insert(len(made) if position is None else int(np.squeeze(position)), tensor)
        return (made,)


class Shape(OpRun):
    """The evaluator counts an end before the first axis from the last axis again."""

    def _run(self, data, start=None, end=None):
        return (np.array(data.shape[start:end], np.int64),)


class Slice(OpRun):
    """Backwards, the evaluator returns nothing for a start before 0 and for an end of INT_MAX."""

    def _run(self, data, starts=None, ends=None, axes=None, steps=None):
        axes = range(len(starts)) if axes is None else axes
        steps = [1] * len(starts) if steps is None else steps
        chosen = [slice(None)] * data.ndim
        for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
            if step < 0:
                start = max(start, -data.shape[axis])
                end = None if end in (2**31 - 1, 2**63 - 1) else end
            chosen[axis] = slice(start, end, step)
        return (data[tuple(chosen)],)


class Squeeze(OpRun):
    """Versions 1 and 11 of the evaluator require sorted axes that are not negative."""

    def _run(self, data, axes=None):
        return (np.squeeze(data, None if axes is None else tuple(axes)),)


class Trilu(OpRun):
    """NumPy cannot take a ``k`` of 64 bits, and makes strings of the number 0."""

    def _run(self, data, k=None, upper=None):
        rows, columns = data.shape[-2:]
        k = 0 if k is None else min(columns, max(-rows, int(np.squeeze(k))))
        column = np.arange(columns) - np.arange(rows)[:, None]
        zero = "" if data.dtype.kind in "UO" else data.dtype.type(0)
        return (np.where(column >= k if upper else column <= k, data, zero).astype(data.dtype),)


class Unsqueeze(OpRun):
    """Versions 1 and 11 of the evaluator require sorted axes that are not negative."""

    def _run(self, data, axes):
        return (np.expand_dims(data, tuple(axes)),)


class Upsample(OpRun):
    """The evaluator has integer scales only; others are as ONNX Runtime has them."""

    def _run(self, x, scales, mode=None):
        chosen, scales = [], np.array(scales, np.float32)
        if all(int(np.float32(n) * scale) == n for n, scale in zip(x.shape, scales, strict=True)):
            return (x,)  # ONNX Runtime copies a tensor whose sizes stay
        for n, scale in zip(x.shape, scales, strict=True):
            positions = np.arange(int(np.float32(n) * scale), dtype=np.float32) / scale
            rounded = np.ceil(positions) if scale < 1 else np.floor(positions)
            chosen.append(rounded.clip(0, n - 1).astype(np.int64))
        return (x[np.ix_(*chosen)] if chosen else x,)


class Where(OpRun):
    """The evaluator cuts strings to the width of the first operand."""

    def _run(self, condition, x, y):
        if x.dtype.kind in "UO":
            x, y = x.astype(object), y.astype(object)
        return (np.where(condition, x, y).astype(x.dtype),)


CORRECTED = [
    Cast, Constant, Equal, Expand, Flatten, Gather, GatherElements, GatherND, OneHot, Pad, Range,
    Resize, ReverseSequence, Scatter, ScatterElements, SequenceInsert, Shape, Slice, Squeeze, Trilu,
    Unsqueeze, Upsample, Where,
]  # fmt: skip


def evaluate(proto: ModelProto | FunctionProto, inputs):
    """Return all outputs of a model or function."""
    evaluator = ReferenceEvaluator(proto, new_ops=CORRECTED)
    with np.errstate(all="ignore"):
        return evaluator.run(None, inputs, attributes={})


def difference(got, expected):
    """Describe how an output differs from the expected one; empty where it does not."""
    if isinstance(expected, list):
        if not isinstance(got, list) or len(got) != len(expected):
            return f"got {got}, must be {len(expected)} tensors"
        pairs = zip(got, expected, strict=True)
        result = (f"[{i}]: {difference(*pair)}" for i, pair in enumerate(pairs))
        return next((text for text in result if not text.endswith(": ")), "")
    if expected is None:
        return "" if got is None else f"got {got}, must be nothing"
    got = np.asarray(got)
    if expected.dtype.kind == "U":
        expected = expected.astype(STRING)
    if (got.dtype, got.shape) != (expected.dtype, expected.shape):
        return f"got {got.dtype} {got.shape}, must be {expected.dtype} {expected.shape}"
    if got.dtype == STRING:
        return "" if got.tolist() == expected.tolist() else f"got {got}, must be {expected}"
    ours, theirs = bytes_of(got), bytes_of(expected)
    at = np.flatnonzero(ours != theirs)
    return "" if not at.size else f"got {ours[at[0]]} for byte {at[0]}, must be {theirs[at[0]]}"


def bytes_of(array):
    """Return the bytes of an array, without the bits that its type does not use."""
    data = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    bits = bits_of(array.dtype)
    return data & ((1 << bits) - 1) if bits else data
