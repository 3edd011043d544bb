"""A function for each operator, which adds a valid node to a graph."""

from math import prod

import numpy as np

from onnx_graphs import computed, control_flow, indexed, sequences
from onnx_graphs.arguments import has_axes, is_small
from onnx_graphs.elements import elem_type
from onnx_graphs.graph import MAX_ELEMENTS

INT64 = np.iinfo(np.int64)


def identity(g, operator):
    sequences = g.sequences_for(operator)
    if sequences and g.chance(0.5):
        g.node(operator, [g.rng.choice(sequences)])
    else:
        g.node(operator, [g.tensor(operator)])


def transpose(g, operator):
    data = g.tensor(operator)
    rank = g.values[data].ndim
    perm = g.rng.sample(range(rank), rank) if rank and g.chance(0.8) else None
    g.node(operator, [data], perm=perm)


def split(g, operator):
    data = g.tensor(operator, has_axes)
    axis = g.axis(g.values[data].ndim)
    whole = g.values[data].shape[axis]
    named = {} if axis == 0 and g.chance(0.5) else {"axis": axis}
    count = g.rng.randint(1, 5)
    if g.opset >= 18 and g.chance(0.5):
        # As many parts as leave something, or nothing, for the last.
        fitting = [n for n in range(1, 9) if whole - -(-whole // n) * (n - 1) >= 0]
        count = g.rng.choice(fitting)
        g.node(operator, [data], count, num_outputs=count, **named)
    elif g.opset < 18 and g.chance(0.4):
        count = g.rng.choice([n for n in range(1, 7) if whole % n == 0])
        g.node(operator, [data], count, **named)
    else:
        split = g.argument(operator, 13, "split", g.cut(whole, count), named)
        g.node(operator, [data, split], count, **named)


def concat(g, operator):
    first = g.tensor(operator, lambda array: array.ndim and is_small(array))
    array = g.values[first]
    axis = g.axis(array.ndim)
    at = axis % array.ndim
    tensors = [first]
    for _ in range(g.rng.randint(0, 3)):
        sizes = list(array.shape)
        if g.chance(0.5):
            sizes[at] = g.rng.randint(0, 4)
        sizes = tuple(sizes)
        tensors.append(g.tensor(operator, lambda a, s=sizes: a.shape == s, sizes, array.dtype))
    g.rng.shuffle(tensors)
    g.node(operator, tensors, axis=axis)


def slice(g, operator):
    data = g.tensor(operator, has_axes if g.opset < 10 else lambda _: True)
    sizes = g.values[data].shape
    all_axes = g.chance(0.3) and len(sizes) > 0
    axes = list(range(g.rng.randint(1, len(sizes)))) if all_axes else None
    if axes is None:
        axes = g.axes(len(sizes)) if sizes else []
    steps = [g.rng.choice((1, 1, 2, 3, -1, -2, -5, 9)) for _ in axes]
    stepped = g.opset >= 10 and g.chance(0.6)
    starts, ends = [], []
    for axis, step in zip(axes, steps, strict=True):
        n = sizes[axis]
        bounds = [g.rng.randint(-n - 2, n + 2) for _ in range(2)]
        if g.chance(0.7):
            low, high = sorted((g.rng.randint(0, n), g.rng.randint(0, n)))
            bounds = [high, low - n - 1] if stepped and step < 0 else [low, high]
        if g.chance(0.15):
            bounds[1] = int(INT64.min if stepped and step < 0 else INT64.max)
        starts.append(bounds[0])
        ends.append(bounds[1])
    if g.opset < 10:
        g.node(operator, [data], starts=starts, ends=ends, axes=None if all_axes else axes)
        return
    kind = g.rng.choice((np.int32, np.int64))
    if any(abs(end) > 1 << 30 for end in ends):
        kind = np.int64
    arguments = [g.ints(starts, kind), g.ints(ends, kind)]
    arguments.append("" if all_axes else g.ints(axes, kind))
    arguments.append(g.ints(steps, kind) if stepped else "")
    g.node(operator, [data, *arguments])


def reshape(g, operator):
    data = g.tensor(operator)
    array = g.values[data]
    sizes, rest = [], array.size
    for _ in range(g.rng.randint(0, 4)):
        factor = g.rng.choice([n for n in range(1, 9) if rest % n == 0]) if rest else 2
        sizes.append(factor)
        rest //= factor
    if rest != 1 or g.chance(0.2):
        sizes.append(rest)
    g.rng.shuffle(sizes)
    if g.chance(0.2):
        sizes = list(array.shape)
    allowzero = g.opset >= 14 and (0 in sizes or g.chance(0.2))
    if 0 in sizes and not allowzero:
        sizes = list(array.shape)  # whose zeros stay
    if sizes and 0 not in sizes and g.chance(0.3):
        sizes[g.rng.randrange(len(sizes))] = -1
    if not allowzero and array.size:
        for i, n in enumerate(array.shape[: len(sizes)]):
            if sizes[i] == n and g.chance(0.3):
                sizes[i] = 0
    g.node(operator, [data, g.ints(sizes)], allowzero=1 if allowzero else None)


def flatten(g, operator):
    data = g.tensor(operator)
    rank = g.values[data].ndim
    axis = g.rng.randint(-rank, rank)
    g.node(operator, [data], axis=None if axis == 1 and g.chance(0.5) else axis)


def squeeze(g, operator):
    data = g.tensor(operator, lambda array: 1 in array.shape or array.ndim < 2)
    sizes = g.values[data].shape
    ones = [axis for axis, n in enumerate(sizes) if n == 1]
    if not ones or g.chance(0.3):
        g.node(operator, [data])
        return
    axes = g.rng.sample(ones, g.rng.randint(1, len(ones)))
    axes = [axis - len(sizes) if g.chance(0.3) else axis for axis in axes]
    _with_axes(g, operator, data, axes)


def _with_axes(g, operator, data, axes):
    named = {}
    g.node(operator, [data, g.argument(operator, 13, "axes", axes, named)], **named)


def unsqueeze(g, operator):
    data = g.tensor(operator, lambda array: array.ndim < 6)
    more = g.rng.randint(1, 2)
    axes = g.axes(g.values[data].ndim + more, more)
    _with_axes(g, operator, data, axes)


def expand(g, operator):
    data = g.tensor(operator, is_small)
    sizes = list(g.values[data].shape)
    for axis, n in enumerate(sizes):
        if n == 1 and g.chance(0.6):
            sizes[axis] = g.rng.choice((1, 2, 3, 5, 0))
    if g.chance(0.3) and len(sizes) < 6:
        sizes = [g.rng.randint(1, 4), *sizes]
    if prod(sizes) > MAX_ELEMENTS:
        sizes = list(g.values[data].shape)
    sizes = [1 if n and g.chance(0.2) else n for n in sizes]
    g.node(operator, [data, g.ints(sizes[g.rng.randint(0, len(sizes)) if g.chance(0.2) else 0 :])])


def tile(g, operator):
    data = g.tensor(operator, is_small)
    repeats = [g.rng.choice((1, 1, 1, 2, 3, 0)) for _ in g.values[data].shape]
    while prod(repeats) * g.values[data].size > MAX_ELEMENTS:
        repeats[repeats.index(max(repeats))] = 1
    g.node(operator, [data, g.ints(repeats)])


def pad(g, operator):
    data = g.tensor(operator, is_small)
    array = g.values[data]
    modes = ["constant", "constant", "reflect", "edge", *["wrap"] * (g.opset >= 19)]
    mode = g.rng.choice(modes)
    some = g.opset >= 18 and array.ndim and g.chance(0.5)
    axes = g.axes(array.ndim) if some else list(range(array.ndim))
    befores, afters = [], []
    for axis in axes:
        n = array.shape[axis]
        before = g.rng.randint(-min(n, 2), 4) if g.chance(0.6) else 0
        after = g.rng.randint(max(-2, -n - min(before, 0)), 4) if g.chance(0.6) else 0
        if mode != "constant" and n + min(0, before) + min(0, after) <= 0:
            before, after = min(0, before), min(0, after)  # nothing to pad with
        befores.append(before)
        afters.append(after)
    grown = prod(n + 8 for n in array.shape)
    if grown > 4 * MAX_ELEMENTS:
        befores, afters = [0] * len(axes), [min(0, after) for after in afters]
    named = {} if mode == "constant" and g.chance(0.5) else {"mode": mode}
    pads = g.argument(operator, 11, "pads", [*befores, *afters], named)
    if g.opset < 11:
        g.node(operator, [data], value=g.rng.uniform(-9, 9) if g.chance(0.5) else None, **named)
        return
    value = ""
    if array.dtype.name == "float8_e8m0fnu" or g.chance(0.5):  # which has no 0
        value = g.tensor(operator, lambda a: a.ndim == 0, (), array.dtype)
    kind = g.rng.choice((np.int32, np.int64))
    g.node(operator, [data, pads, value, g.ints(axes, kind) if some else ""], **named)


def center_crop_pad(g, operator):
    data = g.tensor(operator, is_small)
    array = g.values[data]
    all_axes = array.ndim == 0 or g.chance(0.5)
    axes = list(range(array.ndim)) if all_axes else g.axes(array.ndim)
    # The reference evaluator pads strings with numbers.
    most = 0 if array.dtype == object or array.size > MAX_ELEMENTS // 100 else 4
    sizes = [max(0, array.shape[axis] + g.rng.randint(-4, most)) for axis in axes]
    shape = g.ints(sizes, g.rng.choice((np.int32, np.int64)))
    g.node(operator, [data, shape], axes=None if all_axes else axes)


def depth_to_space(g, operator):
    side = g.rng.randint(1, 3)
    sizes = (g.rng.randint(1, 2), side**2 * g.rng.randint(1, 3), *g.shape(2))
    blocks = lambda a: a.ndim == 4 and a.shape[1] % side**2 == 0  # noqa: E731
    mode = g.rng.choice((None, "DCR", "CRD")) if g.opset >= 11 else None
    g.node(operator, [g.tensor(operator, blocks, sizes)], blocksize=side, mode=mode)


def space_to_depth(g, operator):
    side = g.rng.randint(1, 3)
    sizes = (g.rng.randint(1, 2), g.rng.randint(0, 3), side * g.rng.randint(1, 3), side * 2)
    blocks = lambda a: a.ndim == 4 and not (a.shape[2] % side or a.shape[3] % side)  # noqa: E731
    mode = g.rng.choice((None, "DCR", "CRD")) if g.opset >= 28 else None
    g.node(operator, [g.tensor(operator, blocks, sizes)], blocksize=side, mode=mode)


def resize(g, operator):
    data = g.tensor(operator, lambda array: array.ndim and array.size and is_small(array))
    array = g.values[data]
    named = {}
    axes = list(range(array.ndim))
    if g.opset >= 18 and g.chance(0.5):
        axes = named["axes"] = g.axes(array.ndim)
    room = (4 * MAX_ELEMENTS // array.size) ** (1 / len(axes))
    factors = [f for f in (0.5, 0.6, 0.7, 1, 1.2, 1.5, 2, 3, g.rng.uniform(0.1, 4)) if f <= room]
    scales = np.array([g.rng.choice(factors) for _ in axes], np.float32)
    if g.opset < 11:
        scales = np.maximum(scales, operator == "Upsample").tolist()
        name = g.argument(operator, 9, "scales", scales, named, np.float32)
        g.node(operator, [data, name], **named)
        return
    modes = ["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"]
    modes += ["half_pixel_symmetric"] * (g.opset >= 19)
    modes += ["tf_crop_and_resize"] * (array.dtype.kind in "fiu" and array.dtype.itemsize > 1)
    mode = g.rng.choice(modes)
    rounding = g.rng.choice(("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"))
    named |= {"coordinate_transformation_mode": mode, "nearest_mode": rounding}
    roi = g.constant(np.float32([])) if g.opset < 13 else ""
    if mode == "tf_crop_and_resize":
        bounds = ((0, 0.1, -0.3, 0.5), (1, 0.5, 1.3))
        roi = [g.rng.choice((*some, g.rng.uniform(-1, 2))) for some in bounds for _ in axes]
        roi = g.constant(np.array(roi, np.float32))
        named["extrapolation_value"] = float(g.rng.randint(0, 9))
    if g.chance(0.5):
        g.node(operator, [data, roi, g.constant(scales)], **named)
        return
    if g.opset >= 18 and g.chance(0.7):
        policies = ("stretch", "not_larger", "not_smaller")
        named["keep_aspect_ratio_policy"] = g.rng.choice(policies)
    sizes = [int(array.shape[axis] * f) + 1 for axis, f in zip(axes, scales, strict=True)]
    absent = g.constant(np.float32([])) if g.opset < 13 else ""
    g.node(operator, [data, roi, absent, g.ints(sizes)], **named)


def trilu(g, operator):
    data = g.tensor(operator, lambda a: a.ndim >= 2)
    rows, columns = g.values[data].shape[-2:]
    k = None
    if g.chance(0.8):
        k = g.rng.choice((INT64.min, INT64.max, *[g.rng.randint(-rows - 1, columns + 1)] * 6))
        k = g.ints([k]) if g.chance(0.3) else g.constant(np.int64(k))
    g.node(operator, [data, k], upper=g.rng.choice((None, 0, 1)))


def eye_like(g, operator):
    data = g.tensor(operator, lambda a: a.ndim == 2, g.shape(2))
    dtype = g.rng.choice((None, g.kind(g.dtypes(operator, output=True))))
    k = g.rng.choice((None, g.rng.randint(-4, 4)))
    g.node(operator, [data], k=k, dtype=None if dtype is None else elem_type(dtype))


def dropout(g, operator):
    data = g.tensor(operator)
    inputs = [data, g.constant(np.float32(0.3)) if g.chance(0.5) else "", ""]
    if g.opset >= 12 and g.chance(0.5):
        inputs[2] = g.constant(np.array(False))
    count = g.rng.randint(1, 2) if g.opset >= 10 else 1  # the evaluator's mask is of Booleans
    g.node(operator, inputs if g.opset >= 12 else [data], count)


ADD_NODE = {
    "Add": computed.arithmetic, "And": computed.compared, "Cast": computed.cast, "CenterCropPad": center_crop_pad,
    "Compress": indexed.compress, "Concat": concat, "ConcatFromSequence": sequences.concat_from_sequence,
    "Constant": computed.constant, "ConstantOfShape": computed.constant_of_shape,
    "DepthToSpace": depth_to_space, "Div": computed.arithmetic, "Dropout": dropout, "Equal": computed.equal,
    "Expand": expand, "EyeLike": eye_like, "Flatten": flatten, "Gather": indexed.gather,
    "GatherElements": indexed.gather_elements, "GatherND": indexed.gather_nd, "Identity": identity,
    "If": control_flow.branches, "Greater": computed.compared, "GreaterOrEqual": computed.compared, "Less": computed.compared,
    "LessOrEqual": computed.compared, "Loop": control_flow.loop, "Not": computed.logical_not, "Or": computed.compared,
    "Mod": computed.modulo, "Mul": computed.arithmetic, "OneHot": indexed.one_hot, "Pad": pad,
    "Range": computed.range_, "Reshape": reshape, "Resize": resize,
    "ReverseSequence": indexed.reverse_sequence, "Scatter": indexed.scatter,
    "ScatterElements": indexed.scatter_elements, "ScatterND": indexed.scatter_nd,
    "SequenceAt": sequences.sequence_at, "SequenceConstruct": sequences.sequence_construct,
    "SequenceEmpty": sequences.sequence_empty, "SequenceErase": sequences.sequence_erase,
    "SequenceInsert": sequences.sequence_insert, "SequenceLength": sequences.sequence_length, "Shape": computed.shape, "Size": computed.size,
    "Slice": slice, "SpaceToDepth": space_to_depth, "Split": split,
    "SplitToSequence": sequences.split_to_sequence, "Squeeze": squeeze, "Sub": computed.arithmetic,
    "TensorScatter": indexed.tensor_scatter, "Tile": tile, "Transpose": transpose, "Trilu": trilu,
    "Unsqueeze": unsqueeze, "Upsample": resize, "Where": indexed.where,
    "Xor": computed.compared,
}  # fmt: skip
