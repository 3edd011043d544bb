"""The table of operators that feeds the tests of rules, levels, devices, graphs and the campaigns.

Whoever adds an operator adds one entry to ``OPERATORS``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from math import prod
from typing import NamedTuple

import numpy as np
import operator_cases
from index_numbers import any_numbers, clamped, distinct_numbers, distinct_tuples, wrapped
from operator_cases import DTYPES, Case

from vkops import dml

LARGEST = {1: 4000, 2: 90, 3: 20, 4: 9, 5: 6, 6: 4, 7: 3, 8: 3}
"""Elements of a dimension, by rank."""

MAX_SPANNED = 1 << 14
"""Elements from the first to the last of a tensor."""

KINDS = sorted(DTYPES)

NEAREST = dml.InterpolationMode.NEAREST_NEIGHBOR
ANY_INDICES = "INT32 INT64 UINT32 UINT64"
"""The data types of tensors that hold indices."""


def tensor(kind, *sizes):
    return dml.BufferTensorDesc(dml.TensorDataType[kind], sizes)


def f32(*sizes):
    return tensor("FLOAT32", *sizes)


class Entry(NamedTuple):
    """What tests need to know of an operator.

    Attributes:
        make: returns a random case, given a random number generator, a data type, sizes and an
            axis. The sizes have 1 to 8 dimensions, and are only a proposal: an operator of a fixed
            rank, or with sizes that have to be divisible, makes its own of them.
        levels: the lowest and highest rank and the data types of all tensors from each feature
            level on, written down from DirectML's documentation; of tensors that hold indices,
            only the ranks.
        index_types: the data types of tensors that hold indices, from each feature level on.
        free_sizes: whether the caller says which sizes outputs have.
        valid: fields of a descriptor that keeps all rules; those that are left out are those of a
            case that is made of the operator's first data type (FLOAT32 for most), sizes (2, 3, 4)
            and axis 1.
        broken: texts of errors, without the name of the operator in front, each with the fields
            that cause it, which replace those of the valid descriptor.
    """

    make: Callable[..., Case]
    levels: Mapping[str, tuple[int, int, str]]
    index_types: Mapping[str, str] = {}
    free_sizes: bool = False
    valid: Mapping[str, object] = {}
    broken: Mapping[str, Mapping[str, object]] = {}


def random_case(random, ranks=range(1, 9)):
    """Any operator, of one of these ranks."""
    rank = random.choice(ranks)
    sizes = tuple(random.randint(1, LARGEST[rank]) for _ in range(rank))
    if random.random() < 0.25:  # what vectors divide has kernels of its own
        sizes = tuple(n if n < 8 else n // 8 * 8 for n in sizes)
    name = random.choice(list(OPERATORS))
    return OPERATORS[name].make(random, random.choice(kinds(name)), sizes, random.randrange(rank))


def kinds(name):
    """The data types that an operator takes at the newest level."""
    *_, text = list(OPERATORS[name].levels.values())[-1]
    return sorted(types(text))


def types(text):
    """Data types by name, or by their bits."""
    words = text.split()
    return {kind for kind in KINDS if kind.name in words or str(kind.size_bits) in words}


# -- the operators ---------------------------------------------------------------------------------


def _split(random, kind, sizes, axis):
    targets = [_output(random, kind, part) for part in _parts(random, sizes, axis)]
    return operator_cases.split(_input(random, kind, sizes), targets, axis)


def _join(random, kind, sizes, axis):
    sources = [_input(random, kind, part) for part in _parts(random, sizes, axis)]
    return operator_cases.join(sources, _output(random, kind, sizes), axis)


def _slice(random, kind, sizes, _):
    offsets = [random.choice((0, random.randrange(n))) for n in sizes]
    strides = [random.choice((1, 1, 2, 3, 5)) for _ in sizes]
    counts = [
        _count(random, 1 + (n - 1 - offset) // stride)
        for n, offset, stride in zip(sizes, offsets, strides, strict=True)
    ]
    source, target = _input(random, kind, sizes), _output(random, kind, counts)
    return operator_cases.slice_(source, target, offsets, strides)


def _slice1(random, kind, sizes, _):
    window, counts = _window(random, sizes)
    source, target = _input(random, kind, sizes), _output(random, kind, counts)
    return operator_cases.slice1(source, target, *window)


def _slice_grad(random, kind, sizes, _):
    window, counts = _window(random, sizes)
    source, target = _input(random, kind, counts), _output(random, kind, sizes)
    desc = dml.SliceGradOperatorDesc(source, target, *window)

    def expect(arrays):
        taken = [
            range(*((o, o + w) if s > 0 else (o + w - 1, o - 1)), s)[:n]
            for o, w, s, n in zip(*window, counts, strict=True)
        ]
        result = np.zeros(sizes, arrays[0].dtype)
        result[np.ix_(*taken)] = arrays[0]
        return [result]

    return Case(desc, expect)


def _window(random, sizes):
    """The attributes of a window of a tensor, and how many elements of it to take."""
    offsets = [random.choice((0, random.randrange(n))) for n in sizes]
    windows = [_count(random, n - offset) for n, offset in zip(sizes, offsets, strict=True)]
    strides = [random.choice((-1, -1, 1, 1, -3, -2, 2, 5)) for _ in sizes]
    counts = [
        _count(random, 1 + (window - 1) // abs(stride))
        for window, stride in zip(windows, strides, strict=True)
    ]
    return (offsets, windows, strides), counts


def _identity(random, kind, sizes, _):
    return operator_cases.identity(_input(random, kind, sizes), _output(random, kind, sizes))


def _tile(random, kind, sizes, _):
    repeats = [1] * len(sizes)
    for axis in random.sample(range(len(sizes)), min(2, len(sizes))):
        repeats[axis] = random.choice((1, 2, 3)) if prod(sizes) < 2000 else 1
    source = _input(random, kind, sizes)
    target = _output(random, kind, tuple(map(int.__mul__, sizes, repeats)))
    desc = dml.TileOperatorDesc(source, target, repeats)
    return Case(desc, lambda arrays: [np.tile(arrays[0], repeats)])


def _space_to_depth(random, kind, sizes, _):
    n, c, h, w, block = _depth_and_block(random, sizes)
    source = _input(random, kind, (n, c, h * block, w * block))
    target = _output(random, kind, (n, c * block**2, h, w))
    desc = dml.SpaceToDepthOperatorDesc(source, target, block)
    return Case(desc, lambda arrays: [_depth_of(arrays[0], block)])


def _space_to_depth1(random, kind, sizes, axis):
    plain, order = _space_to_depth(random, kind, sizes, axis).desc, random.randrange(2)
    tensors, block = (plain.input_tensor, plain.output_tensor), plain.block_size
    desc = dml.SpaceToDepth1OperatorDesc(*tensors, block, dml.DepthSpaceOrder(order))
    return Case(desc, lambda arrays: [_depth_of(arrays[0], block, order)])


def _depth_of(space, block, order=0):
    n, c, h, w = space.shape
    h, w = h // block, w // block
    axes = (0, 1, 3, 5, 2, 4) if order else (0, 3, 5, 1, 2, 4)
    return space.reshape(n, c, h, block, w, block).transpose(axes).reshape(n, -1, h, w)


def _depth_to_space(random, kind, sizes, _):
    n, c, h, w, block = _depth_and_block(random, sizes)
    source = _input(random, kind, (n, c * block**2, h, w))
    target = _output(random, kind, (n, c, h * block, w * block))
    desc = dml.DepthToSpaceOperatorDesc(source, target, block)
    return Case(desc, lambda arrays: [_space_of(arrays[0], block)])


def _depth_to_space1(random, kind, sizes, axis):
    plain, order = _depth_to_space(random, kind, sizes, axis).desc, random.randrange(2)
    tensors, block = (plain.input_tensor, plain.output_tensor), plain.block_size
    desc = dml.DepthToSpace1OperatorDesc(*tensors, block, dml.DepthSpaceOrder(order))
    return Case(desc, lambda arrays: [_space_of(arrays[0], block, order)])


def _space_of(depth, block, order=0):
    n, _, h, w = depth.shape
    if order:
        blocks = depth.reshape(n, -1, block, block, h, w).transpose(0, 1, 4, 2, 5, 3)
    else:
        blocks = depth.reshape(n, block, block, -1, h, w).transpose(0, 3, 4, 1, 5, 2)
    return blocks.reshape(n, -1, h * block, w * block)


def _unfold(random, kind, sizes, _):
    sizes = (*sizes, 1, 1)[: max(3, len(sizes))]
    axes = []
    for size in sizes[2:]:
        before, after = random.choice(((0, 0), (0, 0), (1, 0), (0, 3), (2, 1)))
        window = random.randint(1, min(3, before + size + after))
        dilation = random.randint(1, max(1, (before + size + after - 1) // max(1, window - 1)))
        axes.append((window, random.choice((1, 1, 2, 3)), dilation, before, after))
    windows, strides, dilations, starts, ends = zip(*axes, strict=True)
    pads = [(0, 0), (0, 0), *zip(starts, ends, strict=True)]
    reach = [d * (w - 1) + 1 for w, d in zip(windows, dilations, strict=True)]
    counts = [
        (before + n + after - r) // s + 1
        for (before, after), n, r, s in zip(pads[2:], sizes[2:], reach, strides, strict=True)
    ]
    source = _input(random, kind, sizes)
    target = _output(random, kind, (sizes[0], sizes[1] * prod(windows), prod(counts)))
    desc = dml.UnfoldOperatorDesc(source, target, windows, strides, dilations, starts, ends)

    def expect(arrays):
        axes = tuple(range(2, len(sizes)))
        held = np.lib.stride_tricks.sliding_window_view(np.pad(arrays[0], pads), reach, axes)
        rank = len(sizes)
        held = held[(..., *(slice(None, None, d) for d in dilations))]
        held = held[(slice(None), slice(None), *(slice(None, None, s) for s in strides))]
        order = (0, 1, *range(rank, 2 * rank - 2), *range(2, rank))
        return [held.transpose(order).reshape(target.sizes)]

    return Case(desc, expect)


def _depth_and_block(random, sizes):
    """Batch, channels, height and width, made of sizes of any rank, and the size of a block."""
    return *(*sizes, 1, 1, 1)[:4], random.choice((1, 2, 3)) if prod(sizes) < 2000 else 1


def _fill_value_constant(random, kind, sizes, _):
    value = _value(random, kind)
    desc = dml.FillValueConstantOperatorDesc(_output(random, kind, sizes), kind, value)
    return Case(desc, lambda arrays: [np.full(sizes, value, DTYPES[kind])])


def _fill_value_sequence(random, kind, sizes, _):
    dtype = DTYPES[kind]
    start, delta = random.choice(((0, 1), (100, -2), (3, 7), (-5, 3), (0.5, 0.25)))
    if dtype.kind != "f":
        start, delta = int(start), int(delta)
        start = start % 2**8 if dtype.kind == "u" else start
    output = _output(random, kind, sizes)
    desc = dml.FillValueSequenceOperatorDesc(output, kind, start, delta)

    def expect(arrays):
        numbers = [start + i * delta for i in range(prod(sizes))]
        if dtype.kind != "f":
            bits = 8 * dtype.itemsize
            numbers = [number % 2**bits for number in numbers]
            return [np.array(numbers, f"u{dtype.itemsize}").view(dtype).reshape(sizes)]
        return [np.array(numbers, np.float32).astype(dtype).reshape(sizes)]

    return Case(desc, expect)


def _padding(random, kind, sizes, _):
    """The fraction of the value is dropped for integers."""
    value = random.choice((0, 77.75, 200.5 if kind.name.startswith("UINT") else -100.5))
    return _padded(random, kind, sizes, dml.PaddingOperatorDesc, [value])


def _padding1(random, kind, sizes, _):
    return _padded(random, kind, sizes, dml.Padding1OperatorDesc, [kind, _value(random, kind)])


def _padded(random, kind, sizes, cls, value):
    pads = [(0, 0)] * len(sizes)
    for axis in random.sample(range(len(sizes)), min(2, len(sizes))):
        most = 2 * sizes[axis] + 1 if prod(sizes) < 2000 else 2
        pads[axis] = random.randint(0, most), random.randint(0, most)
    starts, ends = zip(*pads, strict=True)
    mode = random.choice(list(dml.PaddingMode))
    source = _input(random, kind, sizes)
    target = _output(random, kind, tuple(map(sum, zip(starts, sizes, ends, strict=True))))
    desc = cls(source, target, mode, *value, starts, ends)

    def expect(arrays):
        name = {dml.PaddingMode.REFLECTION: "reflect"}.get(mode, mode.name.lower())
        more = {"constant_values": np.array(value[-1]).astype(DTYPES[kind])}
        return [np.pad(arrays[0], pads, name, **(more if name == "constant" else {}))]

    return Case(desc, expect)


def _diagonal_matrix(random, kind, sizes, _):
    sizes = _matrices(sizes)
    offset = random.randint(-sizes[-2] - 1, sizes[-1] + 1)
    value = random.choice((0, 1, 100.9))
    desc = dml.DiagonalMatrixOperatorDesc(_output(random, kind, sizes), offset, value)
    dtype = DTYPES[kind]
    found = np.eye(*sizes[-2:], offset, dtype) * np.float32(value).astype(dtype)
    return Case(desc, lambda arrays: [np.broadcast_to(found, sizes)])


def _diagonal_matrix1(random, kind, sizes, _):
    sizes = _matrices(sizes)
    least, greatest = -(2**31), 2**31 - 1
    begin, end = (
        random.choice((least, greatest, *range(-sizes[-2] - 1, sizes[-1] + 2))) for _ in range(2)
    )
    source = random.choice((None, _input(random, kind, sizes)))
    value = _value(random, kind)
    desc = dml.DiagonalMatrix1OperatorDesc(
        source, _output(random, kind, sizes), kind, value, begin, end
    )

    def expect(arrays):
        d = np.arange(sizes[-1]) - np.arange(sizes[-2])[:, None]
        filled = (begin <= d) & (d < end) if begin <= end else (d < end) | (begin <= d)
        others = arrays[0] if arrays else np.zeros(sizes, DTYPES[kind])
        return [np.where(filled, np.array(value, DTYPES[kind]), others)]

    return Case(desc, expect)


def _matrices(sizes):
    """Sizes of 2 to 4 dimensions."""
    return (*sizes, 3)[: min(4, max(2, len(sizes)))]


def _value(random, kind):
    """A number that the data type can hold, the lowest and the highest among them."""
    dtype = DTYPES[kind]
    if dtype.kind == "f":
        return random.choice((0, 1, 0.1, -np.inf))
    return random.choice((0, 1, int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)))


def _upsample_2d(random, kind, sizes, _):
    sizes = (*sizes, 1, 1, 1)[: random.choice((4, 5)) if len(sizes) > 4 else 4]
    factors = [random.choice((1, 2, 3, 5)) if prod(sizes) < 500 else 1 for _ in range(2)]
    height, width = factors
    source = _input(random, kind, sizes)
    target = _output(random, kind, (*sizes[:-2], sizes[-2] * height, sizes[-1] * width))
    desc = dml.Upsample2dOperatorDesc(source, target, dml.Size2D(width, height), NEAREST)
    return Case(desc, lambda arrays: [arrays[0].repeat(height, -2).repeat(width, -1)])


def _resample(version):
    """The function that makes a case of a version of RESAMPLE."""

    def make(random, kind, sizes, _):
        sizes = sizes[:4]
        counts = [random.randint(1, 2 * n) if prod(sizes) < 5000 else n for n in sizes]
        axes = [_scaling(random, *axis) for axis in zip(sizes, counts, strict=True)]
        scales, inputs, outputs = zip(*axes, strict=True)
        increasing = random.random() < 0.5
        fields = [dml.AxisDirection(not increasing)] if version >= 2 else []
        fields += [scales] if version == 0 else [scales, inputs, outputs]
        fields += [random.random() < 0.5] if version == 3 else []
        desc = (
            dml.ResampleOperatorDesc,
            dml.Resample1OperatorDesc,
            dml.Resample2OperatorDesc,
            dml.Resample3OperatorDesc,
        )[version](_input(random, kind, sizes), _output(random, kind, counts), NEAREST, *fields)
        chosen = []
        for n, count, scale, before, after in zip(
            sizes, counts, scales, inputs, outputs, strict=True
        ):
            if version == 0:
                before, after = 0.5, -0.5
            x = np.arange(count, dtype=np.float32) - np.float32(after)
            x = x / np.float32(scale) - np.float32(before)
            if version < 2:
                x = np.floor(x + np.float32(0.5))
            else:
                x = np.ceil(x) if increasing else np.floor(x)
            chosen.append(x.clip(0, n - 1).astype(int))
        return Case(desc, lambda arrays: [arrays[0][np.ix_(*chosen)]])

    return make


def _scaling(random, size, count):
    """A scale and two offsets of an axis: often usual ones."""
    if random.random() < 0.25:
        return 1, *random.choice(((0, 0), (0.5, -0.5), (2, -2)))
    scale = random.choice((count / size, 2, 3, 0.5, 1.5, random.uniform(0.1, 5), 3e38))
    return scale, random.choice((0, 0.5, random.uniform(-3, 3))), random.choice((0, -0.5, 2))


# -- operators with indices ------------------------------------------------------------------------


def _gather(random, kind, sizes, axis):
    count = random.randint(0, min(3, 9 - len(sizes)))
    places = _few(random, count, MAX_SPANNED * sizes[axis] // prod(sizes))
    rank = _rank(random, len(sizes), len(sizes) - 1 + count)
    own, axis = _raised(sizes, rank), axis + rank - len(sizes)
    indices, content = _indices(random, any_numbers, _raised(places, rank), sizes[axis - rank])
    result = (*sizes[: axis - rank], *places, *sizes[axis - rank :][1:])
    source, target = _input(random, kind, own), _output(random, kind, _raised(result, rank))
    desc = dml.GatherOperatorDesc(source, indices, target, axis, count)

    def expect(arrays):
        numbers = clamped(arrays[1], own[axis]).ravel()
        return [arrays[0].take(numbers, axis).reshape(target.sizes)]

    return Case(desc, expect, {1: content})


def _gather_elements(random, kind, sizes, axis):
    rest = prod(sizes) // sizes[axis]
    count = _few(random, 1, MAX_SPANNED // rest)
    wanted = (*sizes[:axis], *count, *sizes[axis + 1 :])
    indices, content = _indices(random, any_numbers, wanted, sizes[axis])
    source, target = _input(random, kind, sizes), _output(random, kind, wanted)
    desc = dml.GatherElementsOperatorDesc(source, indices, target, axis)

    def expect(arrays):
        return [np.take_along_axis(arrays[0], clamped(arrays[1], sizes[axis]), axis)]

    return Case(desc, expect, {1: content})


def _gather_nd(random, kind, sizes, _):
    return _gathered_slices(random, kind, sizes, 0, dml.GatherNdOperatorDesc)


def _gathered_slices(random, kind, sizes, batch, cls, *batches):
    length = random.randint(1, len(sizes) - batch)
    rest = sizes[batch + length :]
    more = random.randint(0, min(2, 7 - batch, 8 - batch - len(rest)))
    places = (*sizes[:batch], *_few(random, more, MAX_SPANNED // prod(sizes[:batch] + rest)))
    rank = _rank(random, len(sizes), len(places) + 1, len(places) + len(rest))

    def tuples(rng, wanted, dtype):
        indexed = sizes[batch : batch + length]
        return np.stack([any_numbers(rng, wanted[:-1], n, dtype) for n in indexed], -1)

    indices, content = _indices(random, tuples, _raised((*places, length), rank))
    source = _input(random, kind, _raised(sizes, rank))
    target = _output(random, kind, _raised((*places, *rest), rank))
    desc = cls(source, indices, target, len(sizes), len(places) + 1, *batches)

    def expect(arrays):
        data, numbers = arrays[0].reshape(sizes), arrays[1].reshape(*places, length)
        columns = [clamped(numbers[..., k], sizes[batch + k]) for k in range(length)]
        grid = np.indices(places)[:batch]
        return [data[(*grid, *columns)].reshape(target.sizes)]

    return Case(desc, expect, {1: content})


def _gather_nd1(random, kind, sizes, _):
    batch = random.randrange(len(sizes))
    return _gathered_slices(random, kind, sizes, batch, dml.GatherNd1OperatorDesc, batch)


def _reverse_subsequences(random, kind, sizes, axis):
    n = sizes[axis]

    def counts(rng, wanted, dtype):
        return rng.choice(np.array([0, 1, n // 2, n, n + 1, np.iinfo(dtype).max], dtype), wanted)

    wanted = (*sizes[:axis], 1, *sizes[axis + 1 :])
    lengths, content = _indices(random, counts, wanted, kinds="UINT32 UINT64")
    source, target = _input(random, kind, sizes), _output(random, kind, sizes)
    desc = dml.ReverseSubsequencesOperatorDesc(source, lengths, target, axis)

    def expect(arrays):
        place = np.indices(sizes)[axis]
        count = np.minimum(arrays[1], n).astype(np.int64)
        return [
            np.take_along_axis(arrays[0], np.where(place < count, count - 1 - place, place), axis)
        ]

    return Case(desc, expect, {1: content})


def _scatter(random, kind, sizes, axis):
    wanted = (*sizes[:axis], _count(random, sizes[axis]), *sizes[axis + 1 :])
    others = [d for d in range(len(sizes)) if d != axis]
    indices, content = _indices(random, distinct_numbers, wanted, axis, sizes[axis], repeat=others)
    source, target = _input(random, kind, sizes), _output(random, kind, sizes)
    updates = _input(random, kind, wanted)
    desc = dml.ScatterOperatorDesc(source, indices, updates, target, axis)

    def expect(arrays):
        data, numbers, new = arrays
        places = wrapped(numbers, sizes[axis])
        inside = (places >= 0) & (places < sizes[axis])
        grid = [*np.indices(wanted)]
        grid[axis] = places
        result = data.copy()
        result[tuple(places[inside] for places in grid)] = new[inside]
        return [result]

    return Case(desc, expect, {1: content})


def _scatter_nd(random, kind, sizes, _):
    length = random.randint(1, len(sizes))
    indexed, rest = sizes[:length], sizes[length:]
    places = _few(random, random.randint(0, min(2, 8 - len(rest))), prod(indexed))
    rank = _rank(random, len(sizes), len(places) + 1, len(places) + len(rest))

    def tuples(rng, wanted, dtype):
        return distinct_tuples(rng, prod(places), indexed, dtype).reshape(wanted)

    wanted = _raised((*places, length), rank)
    indices, content = _indices(random, tuples, wanted, repeat=())
    source, target = (make(random, kind, _raised(sizes, rank)) for make in (_input, _output))
    updates = _input(random, kind, _raised((*places, *rest), rank))
    counts = len(sizes), len(places) + 1
    desc = dml.ScatterNdOperatorDesc(source, indices, updates, target, *counts)

    def expect(arrays):
        data, numbers = arrays[0].reshape(sizes).copy(), arrays[1].reshape(-1, length)
        found = np.stack([wrapped(numbers[:, k], n) for k, n in enumerate(indexed)], 1)
        inside = ((found >= 0) & (found < indexed)).all(1)
        data[tuple(found[inside].T)] = arrays[2].reshape(-1, *rest)[inside]
        return [data.reshape(target.sizes)]

    return Case(desc, expect, {1: content})


def _one_hot(random, kind, sizes, axis):
    wanted = (*sizes[:axis], 1, *sizes[axis + 1 :])
    indices, content = _indices(random, any_numbers, wanted, sizes[axis])
    few = [random.choice((1, 2, 3)) for _ in sizes]
    few[random.randrange(len(sizes))] = 2
    values, target = _input(random, kind, few), _output(random, kind, sizes)
    desc = dml.OneHotOperatorDesc(indices, values, target, axis)

    def expect(arrays):
        places, values = wrapped(arrays[0], sizes[axis]), np.squeeze(arrays[1])
        off, on = values.reshape(-1, values.shape[-1])[0, :2]
        return [np.where(np.indices(sizes)[axis] == places, on, off)]

    return Case(desc, expect, {0: content})


def _few(random, count, most):
    """Sizes of so many dimensions that have at most so many elements."""
    sizes = []
    for _ in range(count):
        sizes.append(random.randint(1, max(1, min(40, most))))
        most //= sizes[-1]
    return tuple(sizes)


def _rank(random, *ranks):
    """A rank that is not less than any of these."""
    return random.randint(max(ranks), min(8, max(ranks) + 1))


def _raised(sizes, rank):
    """Sizes of a rank: 1 in front of those that are given, or without what is 1 in front."""
    surplus = max(0, len(sizes) - rank)
    return (*(1,) * (rank - len(sizes)), *sizes[surplus:])


def _indices(random, numbers, sizes, *places, repeat=None, kinds=ANY_INDICES):
    """A tensor of indices that a function such as those of ``index_numbers`` makes, and its content.

    They may repeat along one of some dimensions, any of them if left out.
    """
    kind = random.choice(sorted(types(kinds)))
    rng = np.random.default_rng(random.getrandbits(32))
    numbers = numbers(rng, sizes, *places, DTYPES[kind])
    content = numbers.astype(DTYPES[kind])
    desc = _output(random, kind, sizes)
    axes = range(len(sizes)) if repeat is None else repeat
    if axes and random.random() < 0.2:
        strides, axis = list(desc.effective_strides), random.choice(axes)
        strides[axis] = 0
        desc = dml.BufferTensorDesc(kind, sizes, strides)
        content = np.broadcast_to(content.take([0], axis), sizes)
    return desc, content


# -- tensors -----------------------------------------------------------------------------------------


def _count(random, most):
    """All there is as often as not."""
    return random.choice((most, random.randint(1, most)))


def _parts(random, sizes, axis):
    """Shapes that put together along the axis are the whole."""
    n = sizes[axis]
    cuts = sorted(random.sample(range(1, n), min(n - 1, random.randint(0, 6))))
    return [(*sizes[:axis], b - a, *sizes[axis + 1 :]) for a, b in pairwise([0, *cuts, n])]


def _output(random, kind, sizes):
    """Packed, or permuted and padded."""
    if random.random() < 0.5:
        return dml.BufferTensorDesc(kind, sizes)
    strides, step = [0] * len(sizes), 1
    for axis in random.sample(range(len(sizes)), len(sizes)):
        strides[axis] = step
        step = step * sizes[axis] + random.choice((0, 0, 0, 1, 4))
    if step > MAX_SPANNED:
        strides = None
    return dml.BufferTensorDesc(kind, sizes, strides)


def _input(random, kind, sizes):
    """As outputs, and broadcast: a stride may be 0."""
    desc = _output(random, kind, sizes)
    if random.random() < 0.8 or prod(sizes) == 1:
        return desc
    strides = [random.choice((stride, stride, 0)) for stride in desc.effective_strides]
    return dml.BufferTensorDesc(kind, sizes, strides)


SPACE_TO_DEPTH_BROKEN = {
    "output_tensor.data_type: got UINT8, must equal input_tensor.data_type = FLOAT32 [SD-01]": {
        "output_tensor": tensor("UINT8", 2, 3, 4, 1)
    },
    "block_size: got 0, must be 1 or more [SD-02]": {"block_size": 0},
    "input_tensor.sizes[3]: got 6, must be a multiple of block_size = 4 [SD-04]": {
        "input_tensor": f32(1, 2, 4, 6),
        "block_size": 4,
    },
    "output_tensor.sizes[1]: got 2, must equal input_tensor.sizes[1] * block_size**2 = 8 [SD-04]": {
        "input_tensor": f32(1, 2, 4, 6),
        "output_tensor": f32(1, 2, 2, 3),
        "block_size": 2,
    },
}

DEPTH_TO_SPACE_BROKEN = {
    "output_tensor.data_type: got UINT8, must equal input_tensor.data_type = FLOAT32 [SD-01]": {
        "output_tensor": tensor("UINT8", 2, 3, 4, 1)
    },
    "block_size: got 0, must be 1 or more [SD-02]": {"block_size": 0},
    "input_tensor.sizes[1]: got 8, must be a multiple of block_size**2 = 9 [SD-03]": {
        "input_tensor": f32(1, 8, 2, 3),
        "block_size": 3,
    },
    "output_tensor.sizes[2]: got 2, must equal input_tensor.sizes[2] * block_size = 4 [SD-03]": {
        "input_tensor": f32(1, 8, 2, 3),
        "output_tensor": f32(1, 2, 2, 3),
        "block_size": 2,
    },
}

GATHERED = {
    "input_tensor": f32(3, 4),
    "indices_tensor": tensor("INT64", 2, 5),
    "output_tensor": f32(3, 4),
    "axis": 0,
    "index_dimensions": 2,
}
"""Fields of a GATHER."""

SLICES = {
    "input_tensor": f32(1, 3, 4),
    "indices_tensor": tensor("INT64", 1, 5, 2),
    "output_tensor": f32(1, 1, 5),
    "input_dimension_count": 2,
    "indices_dimension_count": 2,
}
"""Fields of a GATHER_ND."""

GATHER_ND_BROKEN = {
    "output_tensor.data_type: got UINT8, must equal input_tensor.data_type = FLOAT32 [GND-01]": {
        "output_tensor": tensor("UINT8", 1, 1, 5)
    },
    "output_tensor.sizes: got 1 dimension, must have 3 like input_tensor [GND-01]": {
        "output_tensor": f32(5)
    },
    "input_dimension_count: got 0, must be 1 to 3 [GND-02]": {"input_dimension_count": 0},
    "indices_dimension_count: got 4, must be 1 to 3 [GND-02]": {"indices_dimension_count": 4},
    "indices_tensor.sizes[2]: got 3, must be 1 to 2, indices of a tuple [GND-03]": {
        "indices_tensor": tensor("INT64", 1, 5, 3)
    },
    "indices_tensor.sizes[0]: got 3, must be 1: of 4 dimensions input_tensor has 3 [GND-04]": {
        "input_tensor": f32(2, 3, 4),
        "indices_tensor": tensor("INT64", 3, 5, 1),
        "input_dimension_count": 3,
        "indices_dimension_count": 3,
    },
    "output_tensor.sizes[2]: got 6, must equal indices_tensor.sizes[1] = 5 [GND-04]": {
        "output_tensor": f32(1, 1, 6)
    },
    "output_tensor.sizes[0]: got 2, must be 1 [GND-04]": {"output_tensor": f32(2, 1, 5)},
    "input_tensor.sizes[0]: got 2, must be 1: input_dimension_count is 2 [GND-08]": {
        "input_tensor": f32(2, 3, 4)
    },
}

UPDATED = {
    "input_tensor": f32(1, 3, 4),
    "indices_tensor": tensor("INT64", 1, 5, 1),
    "updates_tensor": f32(1, 5, 4),
    "output_tensor": f32(1, 3, 4),
    "input_dimension_count": 2,
    "indices_dimension_count": 2,
}
"""Fields of a SCATTER_ND."""

PADDING_BROKEN = {
    "output_tensor.data_type: got UINT8, must equal input_tensor.data_type = FLOAT32 [PAD-01]": {
        "output_tensor": tensor("UINT8", 2, 3, 4)
    },
    "end_padding: got length 1, must be 3, one entry for each dimension of input_tensor [PAD-01]": {
        "end_padding": [2]
    },
    "start_padding[1]: got -1, must be 0 to 4294967295 [PAD-02]": {"start_padding": [0, -1, 0]},
    "output_tensor.sizes[2]: got 7, must equal "
    "start_padding[2] + input_tensor.sizes[2] + end_padding[2] = 9 [PAD-02]": {
        "output_tensor": f32(2, 3, 7),
        "start_padding": [0, 0, 3],
        "end_padding": [0, 0, 2],
    },
    "padding_mode: got 5, must be one of CONSTANT, EDGE, REFLECTION, SYMMETRIC, WRAP "
    "(PaddingMode or its value) [PAD-03]": {"padding_mode": 5},
    "padding_mode: makes 500060001 regions of copies, must be 65536 at most [PAD-14]": {
        "padding_mode": dml.PaddingMode.WRAP,
        "start_padding": [0, 30_000, 200_000],
        "end_padding": [0, 0, 0],
    },
}

OPERATORS = {
    "SPLIT": Entry(
        make=_split,
        levels={
            "1_0": (4, 4, "16 32"),
            "2_1": (4, 4, "8 16 32"),
            "3_0": (1, 8, "8 16 32"),
            "4_1": (1, 8, "8 16 32 64"),
        },
        free_sizes=True,
        valid={
            "input_tensor": f32(1, 1, 6, 2),
            "output_tensors": [f32(1, 1, 2, 2), f32(1, 1, 4, 2)],
            "axis": 2,
        },
        broken={
            "output_tensors: got no tensors, must be at least 1 [SPLIT-01]": {"output_tensors": []},
            "axis: got 4, must be 0 to 3 (input_tensor has 4 dimensions) [SPLIT-02]": {"axis": 4},
            "axis: got -1, must be 0 to 3 (input_tensor has 4 dimensions) [SPLIT-02]": {"axis": -1},
            "output_tensors[1].data_type: got INT32, must equal input_tensor.data_type = FLOAT32 [SPLIT-03]": {
                "output_tensors": [f32(1, 1, 2, 2), tensor("INT32", 1, 1, 4, 2)]
            },
            "output_tensors[1].sizes: got 3 dimensions, must have 4 like input_tensor [SPLIT-04]": {
                "output_tensors": [f32(1, 1, 2, 2), f32(1, 4, 2)]
            },
            "output_tensors[1].sizes[3]: got 4, must equal input_tensor.sizes[3] = 2 [SPLIT-05]": {
                "output_tensors": [f32(1, 1, 2, 2), f32(1, 1, 4, 4)]
            },
            "output_tensors: got sizes[2] that add up to 5, must add up to input_tensor.sizes[2] = 6 [SPLIT-06]": {
                "output_tensors": [f32(1, 1, n, 2) for n in (1, 2, 2)]
            },
        },
    ),
    "JOIN": Entry(
        make=_join,
        levels={
            "1_0": (4, 4, "16 32"),
            "2_1": (4, 4, "8 16 32"),
            "3_0": (4, 5, "8 16 32"),
            "4_1": (1, 8, "8 16 32 64"),
        },
        valid={
            "input_tensors": [f32(1, 1, 2, 2), f32(1, 1, 4, 2)],
            "output_tensor": f32(1, 1, 6, 2),
            "axis": 2,
        },
        broken={
            "input_tensors: got no tensors, must be at least 1 [JOIN-01]": {"input_tensors": []},
            "axis: got 4, must be 0 to 3 (input_tensors[0] has 4 dimensions) [JOIN-02]": {
                "axis": 4
            },
            "input_tensors[1].data_type: got FLOAT16, must equal input_tensors[0].data_type = FLOAT32 [JOIN-03]": {
                "input_tensors": [f32(1, 1, 2, 2), tensor("FLOAT16", 1, 1, 4, 2)]
            },
            "output_tensor.data_type: got UINT32, must equal input_tensors[0].data_type = FLOAT32 [JOIN-03]": {
                "output_tensor": tensor("UINT32", 1, 1, 6, 2)
            },
            "output_tensor.sizes: got 5 dimensions, must have 4 like input_tensors[0] [JOIN-04]": {
                "output_tensor": f32(1, 1, 1, 6, 2)
            },
            "input_tensors[1].sizes[1]: got 3, must equal input_tensors[0].sizes[1] = 1 [JOIN-05]": {
                "input_tensors": [f32(1, 1, 2, 2), f32(1, 3, 4, 2)]
            },
            "output_tensor.sizes[2]: got 5, must equal the sum of input_tensors' sizes[2] = 6 [JOIN-06]": {
                "output_tensor": f32(1, 1, 5, 2)
            },
        },
    ),
    "SLICE": Entry(
        make=_slice,
        levels={
            "1_0": (4, 5, "16 32"),
            "2_1": (4, 5, "8 16 32"),
            "3_0": (1, 8, "8 16 32"),
            "4_1": (1, 8, "8 16 32 64"),
        },
        free_sizes=True,
        valid={
            "input_tensor": f32(4, 4),
            "output_tensor": f32(2, 2),
            "offsets": (0, 0),
            "sizes": (2, 2),
            "strides": (1, 1),
        },
        broken={
            "output_tensor.sizes: got 3 dimensions, must have 2 like input_tensor [SLICE-01]": {
                "output_tensor": f32(2, 2, 1)
            },
            "strides: got length 1, must be 2, one entry for each dimension of input_tensor [SLICE-01]": {
                "strides": (1,)
            },
            "output_tensor.data_type: got INT16, must equal input_tensor.data_type = FLOAT32 [SLICE-02]": {
                "output_tensor": tensor("INT16", 2, 2)
            },
            "sizes[1]: got 3, must equal output_tensor.sizes[1] = 2 [SLICE-03]": {"sizes": (2, 3)},
            "strides[1]: got 0, must be 1 or more [SLICE-04]": {"strides": (1, 0)},
            "offsets[1]: the last element copied is 4 (offset + (size - 1) * stride), must be below input_tensor.sizes[1] = 4 [SLICE-05]": {
                "offsets": (2, 2),
                "strides": (1, 2),
            },
            "offsets[1]: got -1, must be 0 to 4294967295 [SLICE-05]": {"offsets": (0, -1)},
        },
    ),
    "SLICE1": Entry(
        make=_slice1,
        levels={"2_1": (4, 5, "8 16 32"), "3_0": (1, 8, "8 16 32"), "4_1": (1, 8, "8 16 32 64")},
        free_sizes=True,
        valid={
            "input_tensor": f32(4, 4),
            "output_tensor": f32(2, 2),
            "input_window_offsets": (0, 0),
            "input_window_sizes": (2, 2),
            "input_window_strides": (1, 1),
        },
        broken={
            "output_tensor.sizes: got 1 dimension, must have 2 like input_tensor [SLICE1-01]": {
                "output_tensor": f32(2)
            },
            "output_tensor.data_type: got INT8, must equal input_tensor.data_type = FLOAT32 [SLICE1-01]": {
                "output_tensor": tensor("INT8", 2, 2)
            },
            "input_window_offsets: got length 3, must be 2, one entry for each dimension of input_tensor [SLICE1-01]": {
                "input_window_offsets": (0, 0, 0)
            },
            "input_window_sizes[0]: got 0, must be 1 or more [SLICE1-02]": {
                "input_window_sizes": (0, 2)
            },
            "input_window_sizes[0]: the window ends at 5 (offset + size), must be at most input_tensor.sizes[0] = 4 [SLICE1-02]": {
                "input_window_offsets": (3, 0)
            },
            "input_window_offsets[0]: got -1, must be 0 to 4294967295 [SLICE1-02]": {
                "input_window_offsets": (-1, 0)
            },
            "input_window_strides[0]: got 0, must not be 0 [SLICE1-03]": {
                "input_window_strides": (0, 1)
            },
            "output_tensor.sizes[0]: got 3, must be at most 2 (1 + (window size - 1) div the stride's magnitude) [SLICE1-04]": {
                "output_tensor": f32(3, 2),
                "input_window_sizes": (4, 2),
                "input_window_strides": (-2, 1),
            },
        },
    ),
    "SLICE_GRAD": Entry(
        make=_slice_grad,
        levels={"3_0": (4, 5, "8 16 32"), "3_1": (1, 8, "8 16 32"), "4_1": (1, 8, "8 16 32 64")},
        free_sizes=True,
        broken={
            "input_window_sizes[0]: got 0, must be 1 or more [SGRAD-01]": {
                "input_window_sizes": (0, 3, 4)
            },
            "input_window_sizes[2]: the window ends at 9 (offset + size), must be at most output_gradient_tensor.sizes[2] = 4 [SGRAD-01]": {
                "input_window_offsets": (0, 0, 4),
                "input_window_sizes": (2, 3, 5),
                "input_window_strides": (1, 1, 1),
            },
            "input_gradient_tensor.sizes[0]: got 2, must be at most 1 (1 + (window size - 1) div the stride's magnitude) [SGRAD-01]": {
                "input_gradient_tensor": f32(2, 3, 4),
                "input_window_offsets": (0, 0, 0),
                "input_window_sizes": (2, 3, 4),
                "input_window_strides": (-2, 1, 1),
            },
            "output_gradient_tensor.data_type: got UINT8, must equal input_gradient_tensor.data_type = FLOAT32 [SGRAD-02]": {
                "output_gradient_tensor": tensor("UINT8", 2, 3, 4)
            },
            "input_window_strides: got length 1, must be 3, one entry for each dimension of input_gradient_tensor [SGRAD-02]": {
                "input_window_strides": (1,)
            },
            "input_window_strides[0]: got 0, must not be 0 [SGRAD-03]": {
                "input_window_strides": (0, 1, 1)
            },
        },
    ),
    "ELEMENT_WISE_IDENTITY": Entry(
        make=_identity,
        levels={
            "1_0": (4, 5, "FLOAT16 FLOAT32"),
            "2_1": (4, 5, "8 16 32"),
            "3_0": (1, 8, "8 16 32"),
            "4_1": (1, 8, "8 16 32 64"),
        },
        valid={"input_tensor": f32(2, 3), "output_tensor": f32(2, 3)},
        broken={
            "output_tensor.data_type: got INT32, must equal input_tensor.data_type = FLOAT32 [IDENT-01]": {
                "output_tensor": tensor("INT32", 2, 3)
            },
            "output_tensor.sizes: got 3 dimensions, must have 2 like input_tensor [IDENT-01]": {
                "output_tensor": f32(2, 3, 1)
            },
            "output_tensor.sizes[0]: got 3, must equal input_tensor.sizes[0] = 2 [IDENT-01]": {
                "output_tensor": f32(3, 2)
            },
            "scale_bias: not available, must be None: vkops moves data, it does not calculate [IDENT-02]": {
                "scale_bias": dml.ScaleBias(2, 10)
            },
        },
    ),
    "TILE": Entry(
        make=_tile,
        levels={
            "1_0": (4, 4, "FLOAT16 FLOAT32"),
            "2_1": (4, 4, "8 16 32"),
            "3_1": (1, 8, "8 16 32"),
            "4_1": (1, 8, "8 16 32 INT64 UINT64"),
        },
        broken={
            "output_tensor.data_type: got UINT8, must equal input_tensor.data_type = FLOAT32 [TILE-01]": {
                "output_tensor": tensor("UINT8", 2, 3, 4)
            },
            "repeats: got length 1, must be 3, one entry for each dimension of input_tensor [TILE-01]": {
                "repeats": [2]
            },
            "repeats[1]: got 0, must be 1 or more [TILE-02]": {"repeats": [1, 0, 1]},
            "output_tensor.sizes[0]: got 2, must equal input_tensor.sizes[0] * repeats[0] = 6 [TILE-03]": {
                "output_tensor": f32(2, 3, 4),
                "repeats": [3, 1, 1],
            },
        },
    ),
    "SPACE_TO_DEPTH": Entry(
        make=_space_to_depth,
        levels={
            "1_0": (4, 4, "FLOAT16 FLOAT32"),
            "2_1": (4, 4, "8 16 32"),
            "5_0": (4, 4, "8 16 32 64"),
        },
        broken=SPACE_TO_DEPTH_BROKEN,
    ),
    "SPACE_TO_DEPTH1": Entry(
        make=_space_to_depth1,
        levels={"2_1": (4, 4, "8 16 32"), "5_0": (4, 4, "8 16 32 64")},
        broken={
            **SPACE_TO_DEPTH_BROKEN,
            "order: got 2, must be DEPTH_COLUMN_ROW or COLUMN_ROW_DEPTH "
            "(DepthSpaceOrder or its value) [SD-05]": {"order": 2},
        },
    ),
    "DEPTH_TO_SPACE": Entry(
        make=_depth_to_space,
        levels={
            "1_0": (4, 4, "FLOAT16 FLOAT32"),
            "2_1": (4, 4, "8 16 32"),
            "5_0": (4, 4, "8 16 32 64"),
        },
        broken=DEPTH_TO_SPACE_BROKEN,
    ),
    "DEPTH_TO_SPACE1": Entry(
        make=_depth_to_space1,
        levels={"2_1": (4, 4, "8 16 32"), "5_0": (4, 4, "8 16 32 64")},
        broken={
            **DEPTH_TO_SPACE_BROKEN,
            "order: got 2, must be DEPTH_COLUMN_ROW or COLUMN_ROW_DEPTH "
            "(DepthSpaceOrder or its value) [SD-05]": {"order": 2},
        },
    ),
    "DIAGONAL_MATRIX": Entry(
        make=_diagonal_matrix,
        levels={
            "2_0": (4, 4, "FLOAT16 FLOAT32"),
            "2_1": (4, 4, "8 16 32"),
            "4_0": (2, 4, "8 16 32"),
            "5_1": (2, 4, "8 16 32 64"),
        },
        free_sizes=True,
        broken={
            "value: got 256, must be an integer from 0 to 255 (UINT8) [DIAG-03]": {
                "output_tensor": tensor("UINT8", 2, 3, 4),
                "value": 256.5,
            },
            "value: got nan, must be an integer from 0 to 255 (UINT8) [DIAG-03]": {
                "output_tensor": tensor("UINT8", 2, 3, 4),
                "value": np.nan,
            },
            "offset: got 2147483648, must be -2147483648 to 2147483647 [DIAG-07]": {
                "offset": 2**31
            },
        },
    ),
    "DIAGONAL_MATRIX1": Entry(
        make=_diagonal_matrix1,
        levels={"5_1": (2, 4, "8 16 32 64")},
        free_sizes=True,
        broken={
            "value: got 1e+39, must be a number in the range of FLOAT32 [DIAG-03]": {"value": 1e39},
            "value_data_type: got UINT8, must equal output_tensor.data_type = FLOAT32 [DIAG-04]": {
                "input_tensor": None,
                "value_data_type": dml.TensorDataType.UINT8,
            },
            "output_tensor.data_type: got FLOAT32, must equal input_tensor.data_type = UINT8 [DIAG-04]": {
                "input_tensor": tensor("UINT8", 2, 3, 4)
            },
            "output_tensor.sizes: got 3 dimensions, must have 2 like input_tensor [DIAG-04]": {
                "input_tensor": f32(3, 4)
            },
            "output_tensor.sizes[1]: got 3, must equal input_tensor.sizes[1] = 4 [DIAG-04]": {
                "input_tensor": f32(2, 4, 4)
            },
            "diagonal_fill_begin: got -2147483649, must be -2147483648 to 2147483647 [DIAG-07]": {
                "diagonal_fill_begin": -(2**31) - 1
            },
        },
    ),
    "GATHER": Entry(
        make=_gather,
        levels={
            "1_0": (4, 4, "FLOAT16 FLOAT32"),
            "2_1": (4, 4, "8 16 32"),
            "3_0": (1, 8, "8 16 32"),
            "4_1": (1, 8, "8 16 32 64"),
        },
        index_types={"1_0": "UINT32", "3_0": ANY_INDICES},
        valid=GATHERED,
        broken={
            "output_tensor.data_type: got UINT8, must equal input_tensor.data_type = FLOAT32 [GATH-01]": {
                "output_tensor": tensor("UINT8", 2, 3, 4)
            },
            "indices_tensor.sizes: got 1 dimension, must have 2 like input_tensor [GATH-01]": {
                "input_tensor": f32(3, 4),
                "indices_tensor": tensor("UINT32", 5),
                "output_tensor": f32(3, 5),
            },
            "axis: got 2, must be 0 to 1 (input_tensor has 2 dimensions) [GATH-02]": {"axis": 2},
            "index_dimensions: got 3, must be 0 to 2 [GATH-03]": {"index_dimensions": 3},
            "indices_tensor.sizes[0]: got 2, must be 1: index_dimensions is 1 [GATH-03]": {
                "index_dimensions": 1
            },
            "input_tensor.sizes[0]: got 3, must be 1: of 3 dimensions input_tensor has 2 [GATH-04]": {
                "axis": 1
            },
            "output_tensor.sizes[1]: got 4, must equal indices_tensor.sizes[1] = 5 [GATH-04]": {
                "input_tensor": f32(1, 4),
                "indices_tensor": tensor("INT64", 2, 5),
                "output_tensor": f32(2, 4),
                "axis": 1,
                "index_dimensions": 2,
            },
            "output_tensor.sizes[0]: got 3, must be 1 [GATH-04]": {
                "indices_tensor": tensor("INT64", 1, 1),
                "index_dimensions": 0,
            },
        },
    ),
    "GATHER_ELEMENTS": Entry(
        make=_gather_elements,
        levels={"2_1": (4, 4, "8 16 32"), "3_0": (1, 8, "8 16 32"), "4_1": (1, 8, "8 16 32 64")},
        index_types={"2_1": "UINT32", "3_0": ANY_INDICES},
        broken={
            "output_tensor.data_type: got UINT8, must equal input_tensor.data_type = FLOAT32 [GEL-01]": {
                "output_tensor": tensor("UINT8", 2, 3, 4)
            },
            "indices_tensor.sizes: got 1 dimension, must have 3 like input_tensor [GEL-01]": {
                "indices_tensor": tensor("UINT32", 5)
            },
            "axis: got -1, must be 0 to 2 (input_tensor has 3 dimensions) [GEL-01]": {"axis": -1},
            "indices_tensor.sizes[2]: got 3, must equal input_tensor.sizes[2] = 4 [GEL-02]": {
                "indices_tensor": tensor("INT64", 2, 9, 3)
            },
            "output_tensor.sizes[1]: got 3, must equal indices_tensor.sizes[1] = 9 [GEL-03]": {
                "indices_tensor": tensor("INT64", 2, 9, 4),
                "output_tensor": f32(2, 3, 4),
            },
        },
    ),
    "GATHER_ND": Entry(
        make=_gather_nd,
        levels={"2_1": (4, 4, "8 16 32"), "3_0": (1, 8, "8 16 32"), "4_1": (1, 8, "8 16 32 64")},
        index_types={"2_1": "UINT32", "3_0": ANY_INDICES},
        valid=SLICES,
        broken=GATHER_ND_BROKEN,
    ),
    "GATHER_ND1": Entry(
        make=_gather_nd1,
        levels={"3_0": (1, 8, "8 16 32"), "4_1": (1, 8, "8 16 32 64")},
        index_types={"3_0": ANY_INDICES},
        valid={**SLICES, "batch_dimension_count": 0},
        broken={
            **GATHER_ND_BROKEN,
            "batch_dimension_count: got 2, must be 0 to 1, less than the other counts [GND-02]": {
                "batch_dimension_count": 2
            },
            "batch_dimension_count: got -1, must be 0 to 1, less than the other counts [GND-02]": {
                "batch_dimension_count": -1
            },
            "indices_tensor.sizes[1]: got 5, must equal input_tensor.sizes[1] = 3 [GND-05]": {
                "indices_tensor": tensor("INT64", 1, 5, 1),
                "batch_dimension_count": 1,
            },
        },
    ),
    "REVERSE_SUBSEQUENCES": Entry(
        make=_reverse_subsequences,
        levels={
            "2_1": (4, 4, "8 16 32"),
            "3_0": (4, 5, "8 16 32"),
            "4_0": (1, 8, "8 16 32"),
            "5_0": (1, 8, "8 16 32 64"),
        },
        index_types={"2_1": "UINT32", "5_0": "UINT32 UINT64"},
        broken={
            "output_tensor.data_type: got UINT8, must equal input_tensor.data_type = FLOAT32 [REV-01]": {
                "output_tensor": tensor("UINT8", 2, 3, 4)
            },
            "sequence_lengths_tensor.sizes: got 2 dimensions, must have 3 like input_tensor [REV-01]": {
                "sequence_lengths_tensor": tensor("UINT32", 2, 4)
            },
            "output_tensor.sizes[1]: got 4, must equal input_tensor.sizes[1] = 3 [REV-01]": {
                "output_tensor": f32(2, 4, 4)
            },
            "axis: got 3, must be 0 to 2 (input_tensor has 3 dimensions) [REV-02]": {"axis": 3},
            "sequence_lengths_tensor.sizes[1]: got 3, must be 1 [REV-03]": {
                "sequence_lengths_tensor": tensor("UINT64", 2, 3, 4)
            },
            "sequence_lengths_tensor.sizes[0]: got 1, must equal input_tensor.sizes[0] = 2 [REV-03]": {
                "sequence_lengths_tensor": tensor("UINT64", 1, 1, 4)
            },
        },
    ),
    "SCATTER": Entry(
        make=_scatter,
        levels={
            "2_0": (4, 4, "FLOAT16 FLOAT32"),
            "2_1": (4, 4, "8 16 32"),
            "3_0": (1, 8, "8 16 32"),
            "4_1": (1, 8, "8 16 32 64"),
        },
        index_types={"2_0": "UINT32", "3_0": ANY_INDICES},
        broken={
            "updates_tensor.data_type: got UINT8, must equal input_tensor.data_type = FLOAT32 [SCAT-02]": {
                "updates_tensor": tensor("UINT8", 2, 3, 4)
            },
            "updates_tensor.sizes: got 2 dimensions, must have 3 like input_tensor [SCAT-02]": {
                "updates_tensor": f32(3, 4)
            },
            "output_tensor.sizes[0]: got 3, must equal input_tensor.sizes[0] = 2 [SCAT-02]": {
                "output_tensor": f32(3, 3, 4)
            },
            "axis: got 3, must be 0 to 2 (input_tensor has 3 dimensions) [SCAT-03]": {"axis": 3},
            "indices_tensor.sizes[0]: got 1, must equal input_tensor.sizes[0] = 2 [SCAT-03]": {
                "indices_tensor": tensor("INT64", 1, 3, 4)
            },
            "updates_tensor.sizes[1]: got 2, must equal indices_tensor.sizes[1] = 5 [SCAT-03]": {
                "indices_tensor": tensor("INT64", 2, 5, 4),
                "updates_tensor": f32(2, 2, 4),
            },
        },
    ),
    "SCATTER_ND": Entry(
        make=_scatter_nd,
        levels={"2_1": (4, 4, "8 16 32"), "3_0": (1, 8, "8 16 32"), "4_1": (1, 8, "8 16 32 64")},
        index_types={"2_1": "UINT32", "3_0": ANY_INDICES},
        valid=UPDATED,
        broken={
            "output_tensor.sizes[2]: got 5, must equal input_tensor.sizes[2] = 4 [SCAT-02]": {
                "output_tensor": f32(1, 3, 5)
            },
            "indices_tensor.sizes: got 2 dimensions, must have 3 like input_tensor [SCAT-02]": {
                "indices_tensor": tensor("INT64", 5, 1)
            },
            "input_dimension_count: got 4, must be 1 to 3 [SCAT-06]": {"input_dimension_count": 4},
            "indices_tensor.sizes[0]: got 2, must be 1: indices_dimension_count is 2 [SCAT-06]": {
                "indices_tensor": tensor("INT64", 2, 5, 1)
            },
            "indices_tensor.sizes[2]: got 3, must be 1 to 2, indices of a tuple [SCAT-06]": {
                "indices_tensor": tensor("INT64", 1, 5, 3)
            },
            "updates_tensor.sizes[1]: got 4, must equal indices_tensor.sizes[1] = 5 [SCAT-06]": {
                "updates_tensor": f32(1, 4, 4)
            },
        },
    ),
    "ONE_HOT": Entry(
        make=_one_hot,
        levels={
            "2_0": (4, 4, "FLOAT16 FLOAT32"),
            "2_1": (4, 4, "8 16 32"),
            "3_0": (1, 8, "8 16 32"),
            "4_1": (1, 8, "8 16 32 64"),
        },
        index_types={"2_0": "UINT32", "3_0": ANY_INDICES},
        free_sizes=True,
        broken={
            "output_tensor.data_type: got UINT8, must equal values_tensor.data_type = FLOAT32 [HOT-01]": {
                "output_tensor": tensor("UINT8", 2, 3, 4)
            },
            "indices_tensor.sizes: got 2 dimensions, must have 3 like values_tensor [HOT-01]": {
                "indices_tensor": tensor("INT64", 2, 4)
            },
            "axis: got 3, must be 0 to 2 (values_tensor has 3 dimensions) [HOT-02]": {"axis": 3},
            "indices_tensor.sizes[1]: got 3, must be 1 [HOT-03]": {
                "indices_tensor": tensor("INT64", 2, 3, 4)
            },
            "output_tensor.sizes[2]: got 5, must equal indices_tensor.sizes[2] = 4 [HOT-03]": {
                "output_tensor": f32(2, 9, 5)
            },
            "values_tensor.sizes: got [1, 1, 1], must have 2 elements or more [HOT-04]": {
                "values_tensor": f32(1, 1, 1)
            },
        },
    ),
    "UNFOLD": Entry(
        make=_unfold,
        levels={"6_4": (3, 8, "FLOAT16 FLOAT32")},
        broken={
            "output_tensor.data_type: got FLOAT16, must equal input_tensor.data_type = FLOAT32 [UNF-01]": {
                "output_tensor": tensor("FLOAT16", 2, 3, 4)
            },
            "dilations: got length 2, must be 1, one entry for each dimension from 2 on of input_tensor [UNF-01]": {
                "dilations": (1, 1)
            },
            "strides[0]: got 0, must be 1 or more [UNF-02]": {"strides": (0,)},
            "window_sizes[0]: the window extends over 7 elements, must be at most 6, input_tensor.sizes[2] and its padding [UNF-02]": {
                "window_sizes": (3,),
                "dilations": (3,),
                "start_padding": (1,),
                "end_padding": (1,),
            },
            "output_tensor.sizes: got 4 dimensions, must have 3 [UNF-03]": {
                "output_tensor": f32(2, 3, 4, 1)
            },
            "output_tensor.sizes[1]: got 3, must equal input_tensor.sizes[1] times the product of window_sizes = 6 [UNF-03]": {
                "window_sizes": (2,),
                "output_tensor": f32(2, 3, 3),
            },
            "output_tensor.sizes[2]: got 9, must equal the product of the window's positions = 3 [UNF-03]": {
                "window_sizes": (2,),
                "dilations": (1,),
                "strides": (1,),
                "start_padding": (0,),
                "end_padding": (0,),
                "output_tensor": f32(2, 6, 9),
            },
            "start_padding: makes 119996 regions, must be 65536 at most [UNF-07]": {
                "window_sizes": (40000,),
                "strides": (1,),
                "dilations": (1,),
                "start_padding": (39998,),
                "end_padding": (39998,),
            },
            "start_padding: an axis has 100000 positions of its window or elements of it, with padding; must be 65536 at most [UNF-07]": {
                "window_sizes": (100000,),
                "strides": (1,),
                "dilations": (1,),
                "start_padding": (199995,),
                "end_padding": (0,),
            },
        },
    ),
    "FILL_VALUE_CONSTANT": Entry(
        make=_fill_value_constant,
        levels={"2_1": (4, 4, "8 16 32"), "4_0": (1, 8, "8 16 32"), "4_1": (1, 8, "8 16 32 64")},
        free_sizes=True,
        broken={
            "value_data_type: got UINT8, must equal output_tensor.data_type = FLOAT32 [FILL-01]": {
                "value_data_type": dml.TensorDataType.UINT8
            },
            "value: got 1e+39, must be a number in the range of FLOAT32 [FILL-02]": {"value": 1e39},
            "value: got 0.5, must be an integer from -128 to 127 (INT8) [FILL-02]": {
                "output_tensor": tensor("INT8", 2, 3, 4),
                "value_data_type": dml.TensorDataType.INT8,
                "value": 0.5,
            },
            "value: got 65536, must be an integer from 0 to 65535 (UINT16) [FILL-02]": {
                "output_tensor": tensor("UINT16", 2, 3, 4),
                "value_data_type": dml.TensorDataType.UINT16,
                "value": 65536,
            },
            "value: got '1', must be a number [FILL-02]": {"value": "1"},
        },
    ),
    "FILL_VALUE_SEQUENCE": Entry(
        make=_fill_value_sequence,
        levels={
            "2_1": (4, 4, "8 16 32"),
            "4_0": (1, 8, "8 16 32"),
            "5_0": (1, 8, "8 16 32 INT64 UINT64"),
        },
        free_sizes=True,
        broken={
            "value_data_type: got UINT8, must equal output_tensor.data_type = FLOAT32 [FILL-01]": {
                "value_data_type": dml.TensorDataType.UINT8
            },
            "value_start: got 1e+39, must be a number in the range of FLOAT32 [FILL-02]": {
                "value_start": 1e39
            },
            "value_start: got -1, must be an integer from 0 to 255 (UINT8) [FILL-02]": {
                "output_tensor": tensor("UINT8", 2, 3, 4),
                "value_data_type": dml.TensorDataType.UINT8,
                "value_start": -1,
            },
            "value_delta: got -0.5, must be an integer from -128 to 255 [FILL-02]": {
                "output_tensor": tensor("UINT8", 2, 3, 4),
                "value_data_type": dml.TensorDataType.UINT8,
                "value_start": 0,
                "value_delta": -0.5,
            },
            "value_delta: got -129, must be an integer from -128 to 255 [FILL-02]": {
                "output_tensor": tensor("UINT8", 2, 3, 4),
                "value_data_type": dml.TensorDataType.UINT8,
                "value_start": 0,
                "value_delta": -129,
            },
        },
    ),
    "PADDING": Entry(
        make=_padding,
        levels={
            "1_0": (4, 5, "FLOAT16 FLOAT32"),
            "2_1": (4, 5, "8 16 32"),
            "3_1": (1, 8, "8 16 32"),
            "5_0": (1, 8, "8 16 32 64"),
        },
        broken={
            **PADDING_BROKEN,
            "padding_value: got 256, must be an integer from 0 to 255 (UINT8) [PAD-04]": {
                "input_tensor": tensor("UINT8", 2, 3, 4),
                "output_tensor": tensor("UINT8", 2, 3, 4),
                "padding_mode": dml.PaddingMode.CONSTANT,
                "padding_value": 256.7,
            },
            "padding_value: got nan, must be an integer from 0 to 255 (UINT8) [PAD-04]": {
                "input_tensor": tensor("UINT8", 2, 3, 4),
                "output_tensor": tensor("UINT8", 2, 3, 4),
                "padding_mode": dml.PaddingMode.CONSTANT,
                "padding_value": np.nan,
            },
            "padding_value: got 1e+39, must be a number in the range of FLOAT32 [PAD-04]": {
                "padding_value": 1e39
            },
        },
    ),
    "PADDING1": Entry(
        make=_padding1,
        levels={"5_0": (1, 8, "8 16 32 64")},
        broken={
            **PADDING_BROKEN,
            "padding_value: got 0.5, must be an integer from -128 to 127 (INT8) [PAD-04]": {
                "input_tensor": tensor("INT8", 2, 3, 4),
                "output_tensor": tensor("INT8", 2, 3, 4),
                "padding_mode": dml.PaddingMode.CONSTANT,
                "padding_value_data_type": dml.TensorDataType.INT8,
                "padding_value": 0.5,
            },
            "padding_value_data_type: got UINT8, must equal input_tensor.data_type = FLOAT32 [PAD-09]": {
                "padding_mode": dml.PaddingMode.EDGE,
                "padding_value_data_type": dml.TensorDataType.UINT8,
            },
        },
    ),
    "UPSAMPLE_2D": Entry(
        make=_upsample_2d,
        levels={"1_0": (4, 5, "FLOAT16 FLOAT32")},
        broken={
            "output_tensor.data_type: got FLOAT16, must equal input_tensor.data_type = FLOAT32 [UPS-01]": {
                "output_tensor": tensor("FLOAT16", 2, 3, 4, 1)
            },
            "output_tensor.sizes[3]: got 9, must equal input_tensor.sizes[3] * scale_size.width = 8 [UPS-01]": {
                "input_tensor": f32(1, 2, 2, 4),
                "output_tensor": f32(1, 2, 6, 9),
                "scale_size": dml.Size2D(width=2, height=3),
            },
            "scale_size.height: got 0, must be 1 or more [UPS-02]": {
                "scale_size": dml.Size2D(2, 0)
            },
            "scale_size: got 2, must be a Size2D [UPS-02]": {"scale_size": 2},
            "interpolation_mode: got LINEAR, which calculates: vkops moves data; must be NEAREST_NEIGHBOR [UPS-04]": {
                "interpolation_mode": dml.InterpolationMode.LINEAR
            },
        },
    ),
    "RESAMPLE": Entry(
        make=_resample(0),
        levels={
            "2_0": (4, 4, "FLOAT16 FLOAT32"),
            "5_1": (1, 4, "FLOAT16 FLOAT32"),
            "6_2": (1, 4, "FLOAT16 FLOAT32 INT8 UINT8"),
        },
        free_sizes=True,
        broken={
            "output_tensor.sizes: got 2 dimensions, must have 3 like input_tensor [RES-01]": {
                "output_tensor": f32(2, 3)
            },
            "scales: got length 2, must be 3, one entry for each dimension of input_tensor [RES-01]": {
                "scales": [1, 2]
            },
            "scales[1]: got 0.0, must be above 0 [RES-03]": {"scales": [1, 0, 1]},
            "scales[2]: got inf, must be finite [RES-03]": {"scales": [1, 2, np.inf]},
            "scales[0]: got 1e+39, must be a number in the range of FLOAT32 [RES-03]": {
                "scales": [1e39, 1, 1]
            },
            "interpolation_mode: got LINEAR, which calculates: vkops moves data; must be NEAREST_NEIGHBOR [RES-14]": {
                "interpolation_mode": dml.InterpolationMode.LINEAR
            },
            "output_tensor.sizes[0]: got 16777217, must be 16777216 at most where it is resampled [RES-15]": {
                "input_tensor": tensor("INT8", 9, 9),
                "output_tensor": tensor("INT8", 2**24 + 1, 9),
                "scales": [2, 1],
            },
            "output_tensor.sizes: makes 81796 regions, must be 65536 at most [RES-15]": {
                "input_tensor": tensor("INT8", 60000, 60000),
                "output_tensor": tensor("INT8", 60000, 60000),
                "scales": [1.618034, 1.618034],
            },
        },
    ),
    "RESAMPLE1": Entry(
        make=_resample(1),
        levels={
            "2_1": (4, 4, "FLOAT16 FLOAT32"),
            "5_1": (1, 4, "FLOAT16 FLOAT32"),
            "6_2": (1, 4, "FLOAT16 FLOAT32 INT8 UINT8"),
        },
        free_sizes=True,
        broken={
            "output_pixel_offsets[2]: got nan, must be finite [RES-04]": {
                "output_pixel_offsets": [0, 0, np.nan]
            }
        },
    ),
    "RESAMPLE2": Entry(
        make=_resample(2),
        levels={"5_1": (1, 4, "FLOAT16 FLOAT32"), "6_2": (1, 4, "FLOAT16 FLOAT32 INT8 UINT8")},
        free_sizes=True,
        broken={
            "rounding_direction: got 2, must be INCREASING or DECREASING (AxisDirection or its value) [RES-06]": {
                "rounding_direction": 2
            }
        },
    ),
    "RESAMPLE3": Entry(
        make=_resample(3),
        levels={"6_4": (1, 4, "FLOAT16 FLOAT32 INT8 UINT8")},
        free_sizes=True,
        broken={"antialiased: got 1, must be True or False [RES-09]": {"antialiased": 1}},
    ),
}
