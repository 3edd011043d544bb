"""Resize and Upsample: each element of the output is a copy of the nearest one of the input."""

from __future__ import annotations

from math import isfinite, prod
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import numpy_helper

from vkops.onnx.element_types import STRING
from vkops.onnx.lowering import LoweredTensor
from vkops.onnx.onnx_node import Call, OnnxNode
from vkops.plan.index_runs import IndexRun, choose
from vkops.plan.movements import fill_around
from vkops.plan.region import Read
from vkops.plan.resampling import MAX_RESAMPLED_SIZE, resampled_runs
from vkops.plan.size_limits import MAX_PIECES, LimitError
from vkops.plan.view import Ints, View

Floats = npt.NDArray[np.float64]

_ROUNDINGS = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
_POLICIES = ("stretch", "not_larger", "not_smaller")
_ONE_TARGET = "scales and sizes", "exactly one of the two must be given"


def coordinate_modes(version: int) -> tuple[str, ...]:
    """Return the coordinate transformation modes that a version of Resize has, the default first.

    Only version 11 documents ``tf_half_pixel_for_nn``, but ONNX's node tests and ONNX Runtime have
    it in later versions, too.

    >>> coordinate_modes(11)[-1]
    'tf_half_pixel_for_nn'
    """
    return (
        "half_pixel",
        "pytorch_half_pixel",
        "align_corners",
        "asymmetric",
        "tf_crop_and_resize",
        *(["half_pixel_symmetric"] if version >= 19 else []),
        "tf_half_pixel_for_nn",
    )


def check_node(node: OnnxNode) -> None:
    """Raise the error for a node that interpolates, has no target, or is wrong in its version."""
    node.choice("mode", "nearest", reason=": vkops moves data, it does not interpolate")
    for name in ("antialias", "exclude_outside"):
        value = node.attributes.get(name)
        node.require(not value, name, value, "0: it is for interpolation")
    node.choice("coordinate_transformation_mode", *coordinate_modes(node.version))
    node.choice("nearest_mode", *_ROUNDINGS)
    node.choice("keep_aspect_ratio_policy", *_POLICIES)
    if node.operator == "Resize" and node.version > 11 and not any(node.inputs[2:]):
        node.refuse(*_ONE_TARGET)


def resize(call: Call) -> list[LoweredTensor]:
    """Lower Resize and Upsample."""
    data = call.tensor("X")
    axes = call.axes("axes", data.rank, range(data.rank))
    sizes, scales = _target(call, data.shape, axes)
    crop = call.attribute("coordinate_transformation_mode") == b"tf_crop_and_resize"
    bounds = _bounds(call, axes) if crop else {}
    runs, starts, kept = [], [], []
    for axis, (size, count, scale) in enumerate(zip(data.shape, sizes, scales, strict=True)):
        if count and not size:
            call.refuse("X", f"axis {axis} is empty, there is nothing to copy")
        start, chosen = 0, [IndexRun(0, count, 0, 1)] if count else []
        is_whole = np.allclose(bounds.get(axis, (0, 1)), (0, 1), rtol=1e-9, atol=0)  # ONNX's
        if count and (count != size or scale != 1 or not is_whole):
            if count > MAX_RESAMPLED_SIZE:
                message = f"would be resized to {count}, must be {MAX_RESAMPLED_SIZE} at most"
                call.refuse("X", f"axis {axis} {message}")
            start, indices = _chosen_indices(call, size, count, scale, bounds.get(axis))
            try:
                chosen = resampled_runs(indices)
            except LimitError as error:
                call.refuse("X", f"axis {axis}: {error}")
            count = len(indices)
        runs.append(chosen)
        starts.append(start)
        kept.append(count)
    target, ones = View.packed(sizes), (1,) * len(sizes)
    pieces = prod(map(len, runs))
    if pieces > MAX_PIECES:
        call.refuse("X", f"would be resized by {pieces} pieces, must be {MAX_PIECES} at most")
    box = tuple(starts), tuple(kept), ones
    regions = [*choose(data.read, target.window(*box), runs)]
    if tuple(kept) != sizes:
        value = _extrapolation_value(call, data)
        regions += fill_around(target, *box, [(value, value)] * len(sizes))
    return [call.lowering.make(data.dtype, sizes, regions)]


def _target(call: Call, shape: Ints, axes: Ints) -> tuple[Ints, list[float]]:
    """Return the size of each axis of the output, and by how much it is scaled."""
    array, new_sizes = call.array("scales"), call.ints("sizes")
    if call.version == 1:  # Upsample, of images
        array = np.array([1, 1, call.attribute("height_scale"), call.attribute("width_scale")])
    # In version 11, inputs that are left out are empty lists.
    if (array is None or not array.size) == (not new_sizes) and axes:
        call.refuse(*_ONE_TARGET)
    sizes, scales, per_axis = list(shape), [1.0] * len(shape), f"{len(axes)}, one for each axis"
    if new_sizes:
        call.require(len(new_sizes) == len(axes), "sizes", f"{len(new_sizes)} values", per_axis)
        call.require_at_least(0, "sizes", new_sizes)
        for axis, size in zip(axes, new_sizes, strict=True):
            sizes[axis], scales[axis] = size, size / (shape[axis] or 1)
        policy = call.node.choice("keep_aspect_ratio_policy", *_POLICIES)
        if policy != "stretch":
            scale = (min if policy == "not_larger" else max)(scales[axis] for axis in axes)
            for axis in axes:
                sizes[axis], scales[axis] = _scaled(shape[axis], scale, 0.5), scale
    elif array is not None:
        if array.ndim != 1:
            call.refuse("scales", f"got {array.ndim} dimensions, must have 1")
        call.require(array.size == len(axes), "scales", f"{array.size} values", per_axis)
        factors = array.astype(np.float32).tolist()  # attributes are 32-bit floats, too
        for i, (axis, scale) in enumerate(zip(axes, factors, strict=True)):
            call.require(isfinite(scale) and scale > 0, f"scales[{i}]", scale, "above 0 and finite")
            sizes[axis], scales[axis] = _scaled(shape[axis], scale), scale
    if call.version < 11 and tuple(sizes) == shape:
        scales = [1.0] * len(shape)  # as in ONNX Runtime: a tensor whose sizes stay is copied
    return tuple(sizes), scales


def _scaled(size: int, scale: float, added: float = 0) -> int:
    """Return a size that is scaled and rounded down, after adding ``added``.

    The product has 32 bits, as in ONNX Runtime: models are made for the sizes that it computes.

    >>> _scaled(10, 0.7)
    7
    """
    with np.errstate(over="ignore"):
        product = float(np.float32(size) * np.float32(scale))
    return int(min(product + added, 2.0**63))


def _bounds(call: Call, axes: Ints) -> dict[int, tuple[Any, Any]]:
    """Return the first and the last coordinate of the region of interest, for each axis.

    They stay NumPy scalars, because ONNX's reference multiplies with their precision.
    """
    roi = call.array("roi")
    if roi is None:
        call.refuse("roi", "is missing, tf_crop_and_resize needs it")
    shape = (2 * len(axes),)
    call.require(roi.shape == shape, "roi", f"shape {roi.shape}", f"{shape}, two for each axis")
    if not np.isfinite(roi).all():
        call.refuse("roi", "must be finite")
    return {axis: (roi[i], roi[i + len(axes)]) for i, axis in enumerate(axes)}


def _chosen_indices(
    call: Call, size: int, count: int, scale: float, bounds: tuple[Any, Any] | None
) -> tuple[int, npt.NDArray[np.int64]]:
    """Return the indices of an axis that an axis of the output copies, from its first one on.

    With bounds, indices of the output whose coordinates are outside of the input are left out.
    """
    first = 0
    if call.attribute("nearest_mode") is None:  # older versions, as ONNX Runtime has them
        single = np.arange(count, dtype=np.float32) / np.float32(scale)
        nearest = np.ceil(single) if scale < 1 else np.floor(single)
    else:
        with np.errstate(all="ignore"):
            mode = call.attribute("coordinate_transformation_mode").decode()
            x = _coordinates(mode, size, count, scale, bounds)
        if bounds:
            (inside,) = np.nonzero((x >= 0) & (x <= size - 1))
            first = int(inside[0]) if len(inside) else 0
            x = x[inside]
        nearest = _rounded(x, call.attribute("nearest_mode").decode())
    return first, np.clip(nearest, 0, size - 1).astype(np.int64)


def _coordinates(
    mode: str, size: int, count: int, scale: float, bounds: tuple[Any, Any] | None
) -> Floats:
    """Return the coordinates in the input of the indices of the output, as ONNX's reference does.

    It uses 64-bit floats, except for products that contain only ``bounds``. For the size of the
    output it uses ``width``, which may have a fraction.
    """
    y = np.arange(count, dtype=np.float64)
    width = scale * size
    if bounds:
        start, end = bounds
        x: Floats = y * (end - start) * (size - 1) / (width - 1)
        if width == 1:
            x[:] = (end - start) * (size - 1) / 2
        x += start * (size - 1)
        return x
    match mode:
        case "align_corners":
            return np.zeros(count) if width == 1 else y * (size - 1) / (width - 1)
        case "asymmetric":
            return y / scale
        case "tf_half_pixel_for_nn":
            return (y + 0.5) / scale
        case "half_pixel_symmetric":
            return size / 2 * (1 - count / width) + (y + 0.5) / scale - 0.5
        case "pytorch_half_pixel" if width == 1:
            return np.full(count, -0.5)
    return (y + 0.5) / scale - 0.5


def _rounded(x: Floats, mode: str) -> Floats:
    """Return the nearest whole numbers.

    Like ONNX's reference, this computes two candidates by additions and chooses one of them, so
    that the rounding errors are the same.
    """
    fraction = x - np.floor(x)
    up: Any = {
        "round_prefer_floor": fraction > 0.5,
        "round_prefer_ceil": fraction >= 0.5,
        "floor": False,
        "ceil": True,
    }[mode]
    nearest: Floats = np.ceil(x + 1) - 2 + (up | (fraction == 0))
    return nearest


def _extrapolation_value(call: Call, data: LoweredTensor) -> Read:
    """Return the element for coordinates outside of the input."""
    if data.dtype == STRING:
        call.refuse("X", "has strings, which tf_crop_and_resize cannot extrapolate")
    value = np.array(call.attribute("extrapolation_value"), np.float64)
    if data.dtype.kind not in "bc":
        value = numpy_helper.saturate_cast(value, data.dtype)
    return call.lowering.constant(value.astype(data.dtype)).read
