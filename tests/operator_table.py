"""The table of operators that feeds the tests of rules, levels, devices, graphs and the campaigns.

Whoever adds an operator adds one entry to ``OPERATORS``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from math import frexp, prod
from pathlib import Path
from typing import NamedTuple

import numpy as np
import operator_cases
from index_numbers import any_numbers, clamped, distinct_numbers, distinct_tuples, wrapped
from operator_cases import DTYPES, Case

from vkops import dml

LARGEST = {1: 4000, 2: 90, 3: 20, 4: 9, 5: 6, 6: 4, 7: 3, 8: 3}  # elements of a dimension, by rank
MAX_SPANNED = 1 << 14  # elements from the first to the last of a tensor
KINDS = sorted(DTYPES)

DIRECTML = json.loads((Path(__file__).parent / "pure/directml.json").read_text("utf-8"))
"""Facts about DirectML; scripts/directml_levels.py writes those about feature levels."""

_ALL = sorted(kind.name for kind in DTYPES)
PUBLISHED = DIRECTML["levels"] | {
    # DirectML's pages name no data types of UNFOLD (UNF-05), and do not have FLOAT64 for TILE (TILE-05).
    "TILE": DIRECTML["levels"]["TILE"]
    | {"5_0": {"InputTensor": [1, 8, *_ALL], "OutputTensor": [1, 8, *_ALL]}},
    "UNFOLD": {"6_4": {"InputTensor": [3, 8, *_ALL], "OutputTensor": [3, 8, *_ALL]}},
}
"""Ranks, lowest and highest, and data types of each tensor, from each feature level on."""

NEAREST = dml.InterpolationMode.NEAREST_NEIGHBOR
ANY_INDICES = "INT32 INT64 UINT32 UINT64"  # the data types of tensors that hold indices


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
        free_sizes: whether the caller says which sizes outputs have.
        valid: fields of a descriptor that keeps all rules; those that are left out are those of a
            case that is made of the operator's first data type (FLOAT32 for most), sizes (2, 3, 4)
            and axis 1.
        broken: the rule and the field that an error names, and the fields that cause it, which replace
            those of the valid descriptor.
    """

    make: Callable[..., Case]
    free_sizes: bool = False
    valid: Mapping[str, object] = {}
    broken: Sequence[tuple[str, str, Mapping[str, object]]] = ()


def indexed_operators():
    """The names of the operators that have tensors of indices."""
    fields = {name: dml.OPERATORS[name].FIELDS for name in OPERATORS}
    return [name for name, own in fields.items() if any(field.holds_indices for field in own)]


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
    tensor = next(field for field in dml.OPERATORS[name].FIELDS if not field.holds_indices)
    newest = list(PUBLISHED[name].values())[-1]
    return sorted(dml.TensorDataType[kind] for kind in newest[tensor.dml_name][2:])


def packed(desc):
    """A descriptor with all its tensors packed."""
    return with_tensors(desc, lambda t: dml.BufferTensorDesc(t.data_type, t.sizes))


def with_tensors(desc, change):
    """A descriptor with other tensors, which a function makes of its own."""
    tensors = {}
    for field in desc.FIELDS:
        value = getattr(desc, field.name)
        if field.role != "attribute" and value is not None:
            several = value if field.kind.name == "tensor_array" else [value]
            result = [*map(change, several)]
            tensors[field.name] = result if several is value else result[0]
    return replace(desc, **tensors)


def longer(desc, more):
    """A descriptor whose tensors have so many bytes more than their elements need."""
    return with_tensors(
        desc, lambda t: replace(t, total_tensor_size_in_bytes=t.minimum_implied_size + more)
    )


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
    (offsets, windows, strides), counts = _window(random, sizes)
    if random.random() < 0.3:  # windows that are smaller than what is written
        windows = [random.randint(0, size) for size in windows]
    source, target = _input(random, kind, counts), _output(random, kind, sizes)
    desc = dml.SliceGradOperatorDesc(source, target, offsets, windows, strides)

    def expect(arrays):
        result = np.zeros(sizes, arrays[0].dtype)
        places = [
            (offset if stride > 0 else offset + size - 1) + np.arange(count) * stride
            for offset, size, stride, count in zip(offsets, windows, strides, counts, strict=True)
        ]
        places = [place * (n > 1) for place, n in zip(places, sizes, strict=True)]
        written = [place >= 0 for place in places]
        targets = [place[inside] for place, inside in zip(places, written, strict=True)]
        result[np.ix_(*targets)] = arrays[0][np.ix_(*written)]
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


def _blocks(cls, rearranged):
    """The function that makes a case of a version of SPACE_TO_DEPTH or DEPTH_TO_SPACE."""

    def make(random, kind, sizes, _):
        n, c, h, w = (*sizes, 1, 1, 1)[:4]  # batch, channels, height and width
        block = random.choice((1, 2, 3)) if prod(sizes) < 2000 else 1
        space, depth = (n, c, h * block, w * block), (n, c * block**2, h, w)
        before, after = (space, depth) if rearranged is space_to_depth else (depth, space)
        source, target = _input(random, kind, before), _output(random, kind, after)
        order = [dml.DepthSpaceOrder(random.randrange(2))] * any(f.enum for f in cls.FIELDS)
        desc = cls(source, target, block, *order)
        return Case(desc, lambda arrays: [rearranged(arrays[0], block, *order)])

    return make


def space_to_depth(space, block, order=0):
    """NumPy's meaning of SPACE_TO_DEPTH, by DirectML's number of the order."""
    n, c, h, w = space.shape
    h, w = h // block, w // block
    axes = (0, 1, 3, 5, 2, 4) if order else (0, 3, 5, 1, 2, 4)
    return space.reshape(n, c, h, block, w, block).transpose(axes).reshape(n, -1, h, w)


def depth_to_space(depth, block, order=0):
    """NumPy's meaning of DEPTH_TO_SPACE, by DirectML's number of the order."""
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
        dilation = random.randint(0, max(1, (before + size + after - 1) // max(1, window - 1)))
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
        for axis, (d, window) in enumerate(zip(dilations, windows, strict=True), rank):
            held = held.take(np.arange(window) * d, axis)
        held = held[(slice(None), slice(None), *(slice(None, None, s) for s in strides))]
        order = (0, 1, *range(rank, 2 * rank - 2), *range(2, rank))
        return [held.transpose(order).reshape(target.sizes)]

    return Case(desc, expect)


def _fill_value_constant(random, kind, sizes, _):
    value = _value(random, kind)
    desc = dml.FillValueConstantOperatorDesc(_output(random, kind, sizes), kind, value)
    return Case(desc, lambda arrays: [np.full(sizes, value, DTYPES[kind])])


def _fill_value_sequence(random, kind, sizes, _):
    dtype = DTYPES[kind]
    pairs = [(0, 1), (100, -2), (3, 7), (-5, 3), (0.5, 0.25)]
    pairs += [(0.1, 0.1), (2, np.inf), (np.inf, 1), (0, 60000)] if dtype.kind == "f" else []
    start, delta = random.choice(pairs)
    if dtype.kind != "f":
        start, delta = int(start), int(delta)
        start = start % 2**8 if dtype.kind == "u" else start
    output = _output(random, kind, sizes)
    desc = dml.FillValueSequenceOperatorDesc(output, kind, start, delta)

    def expect(arrays):
        wide = np.dtype("f4" if dtype.kind == "f" else "i8").type
        first, step = (
            wide(dtype.type(n)) if wide is np.float32 else wide(n) for n in (start, delta)
        )
        with np.errstate(all="ignore"):
            numbers = first + np.arange(prod(sizes), dtype=wide) * step
            if dtype == np.float16:
                numbers = _toward_zero(numbers)
            return [numbers.astype(dtype).reshape(sizes)]  # integers wrap

    return Case(desc, expect)


def _toward_zero(numbers):
    """Numbers that FLOAT16 can hold."""
    last_bit = np.ldexp(1.0, np.maximum(np.frexp(numbers)[1] - 11, -24))
    finite = np.clip(np.trunc(numbers / last_bit) * last_bit, -65504, 65504)
    return np.where(np.isfinite(numbers), finite, numbers)


def _padding(random, kind, sizes, _):
    """The value is converted, as TensorDataType.convert says."""
    value = random.choice((0, 77.75, -100.5, 300, 3e9, -np.inf))
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
        element = value[-1]
        if cls is dml.PaddingOperatorDesc:
            element = _converted(element, kind)
        more = {"constant_values": np.array(element).astype(DTYPES[kind])}
        return [np.pad(arrays[0], pads, name, **(more if name == "constant" else {}))]

    return Case(desc, expect)


def _converted(value, kind):
    """The element that DirectML makes of a FLOAT: bits of a signed integer of 32 or 64 bits."""
    dtype = DTYPES[kind]
    if dtype.kind == "f":
        with np.errstate(over="ignore"):  # infinity, as in DirectML
            return dtype.type(value)
    wide = np.int64 if dtype.itemsize == 8 or kind.name == "UINT32" else np.int32
    least, greatest = np.iinfo(wide).min, np.iinfo(wide).max
    return wide(int(value) if least <= value <= greatest else least).astype(dtype)


def _diagonal_matrix(random, kind, sizes, _):
    sizes = _matrices(sizes)
    offset = random.randint(-sizes[-2] - 1, sizes[-1] + 1)
    value = random.choice((0, 1, 100.9, -1, 1e9, np.inf))
    desc = dml.DiagonalMatrixOperatorDesc(_output(random, kind, sizes), offset, value)
    result = np.where(
        np.eye(*sizes[-2:], offset, bool), _converted(value, kind), DTYPES[kind].type(0)
    )
    return Case(desc, lambda arrays: [np.broadcast_to(result, sizes)])


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
        cls = dml.OPERATORS[f"RESAMPLE{version or ''}"]
        desc = cls(_input(random, kind, sizes), _output(random, kind, counts), NEAREST, *fields)
        chosen = []
        for n, count, (scale, before, after) in zip(sizes, counts, axes, strict=True):
            if version == 0:
                before, after = 0.5, -0.5
            x = np.arange(count, dtype=np.float32) - np.float32(after)
            factor, before = np.float32(1) / np.float32(scale), np.float32(before)
            if version >= 2 and increasing and frexp(scale)[0] != 0.5 and scale != np.inf:
                factor = np.nextafter(factor, np.float32(-np.inf))
                before = np.nextafter(before, np.float32(np.inf))
            with np.errstate(invalid="ignore"):
                x = x * factor - before
            if version < 2:
                x = np.floor(x + np.float32(0.5))
            else:
                x = np.ceil(x) if increasing else np.floor(x)
            chosen.append(np.nan_to_num(x).clip(0, n - 1).astype(int))  # 0 instead of NaN
        return Case(desc, lambda arrays: [arrays[0][np.ix_(*chosen)]])

    return make


def _scaling(random, size, count):
    """A scale and two offsets of an axis: often usual ones."""
    if random.random() < 0.25:
        return 1, *random.choice(((0, 0), (0.5, -0.5), (2, -2)))
    if random.random() < 0.1:
        values = np.inf, -np.inf, 0, 1
        return random.choice((1, 2, np.inf)), random.choice(values), random.choice(values)
    scale = random.choice((count / size, 2, 3, 0.5, 1.5, random.uniform(0.1, 5), 3e38))
    return scale, random.choice((0, 0.5, random.uniform(-3, 3))), random.choice((0, -0.5, 2))


# -- operators with indices ------------------------------------------------------------------------


def _gather(random, kind, sizes, axis):
    count = random.randint(0, min(3, 9 - len(sizes)))
    places = _few(random, count, MAX_SPANNED * sizes[axis] // prod(sizes))
    rank = _rank(random, len(sizes), len(sizes) - 1 + count)
    if random.random() < 0.3:  # then the first dimensions of the result may be left out
        rank = max(len(sizes), count)
    raised, axis = _raised(sizes, rank), axis + rank - len(sizes)
    indices, content = _indices(random, any_numbers, _raised(places, rank), raised[axis])
    whole = (*raised[:axis], *places, *raised[axis + 1 :])
    source, target = _input(random, kind, raised), _output(random, kind, _raised(whole, rank))
    desc = dml.GatherOperatorDesc(source, indices, target, axis, count)

    def expect(arrays):
        numbers = clamped(arrays[1], raised[axis]).ravel()
        result = arrays[0].take(numbers, axis).reshape(whole)
        return [result[(0,) * (len(whole) - rank)].reshape(target.sizes)]

    return Case(desc, expect, {1: content})


def _gather_elements(random, kind, sizes, axis):
    rest = prod(sizes) // sizes[axis]
    count = _few(random, 1, MAX_SPANNED // rest)
    shape = (*sizes[:axis], *count, *sizes[axis + 1 :])
    indices, content = _indices(random, any_numbers, shape, sizes[axis])
    source, target = _input(random, kind, sizes), _output(random, kind, shape)
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
    few = tuple(_count(random, size) for size in sizes[:batch])
    places = (*few, *_few(random, more, MAX_SPANNED // prod(sizes[:batch] + rest)))
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

    shape = (*sizes[:axis], 1, *sizes[axis + 1 :])
    lengths, content = _indices(random, counts, shape, kinds="UINT32 UINT64")
    source, target = _input(random, kind, sizes), _output(random, kind, sizes)
    desc = dml.ReverseSubsequencesOperatorDesc(source, lengths, target, axis)

    def expect(arrays):
        place = np.indices(sizes)[axis]
        count = np.minimum(arrays[1], n).astype(np.int64)
        places = np.where(place < count, count - 1 - place, place)
        return [np.take_along_axis(arrays[0], places, axis)]

    return Case(desc, expect, {1: content})


def _scatter(random, kind, sizes, axis):
    shape = (*sizes[:axis], _count(random, sizes[axis]), *sizes[axis + 1 :])
    others = [d for d in range(len(sizes)) if d != axis]
    indices, content = _indices(random, distinct_numbers, shape, axis, sizes[axis], repeat=others)
    source, target = _input(random, kind, sizes), _output(random, kind, sizes)
    updates = _input(random, kind, shape)
    desc = dml.ScatterOperatorDesc(source, indices, updates, target, axis)

    def expect(arrays):
        data, numbers, new = arrays
        places = wrapped(numbers, sizes[axis])
        inside = (places >= 0) & (places < sizes[axis])
        grid = [*np.indices(shape)]
        grid[axis] = places
        result = data.copy()
        result[tuple(places[inside] for places in grid)] = new[inside]
        return [result]

    return Case(desc, expect, {1: content})


def _scatter_nd(random, kind, sizes, _):
    length = random.randint(1, len(sizes))
    indexed, rest = sizes[:length], sizes[length:]
    places = _few(random, random.randint(0, min(2, 8 - len(rest))), prod(indexed))
    rank = _rank(random, len(sizes))

    def tuples(rng, wanted, dtype):
        return distinct_tuples(rng, prod(places), indexed, dtype).reshape(wanted)

    shape = _raised((*places, length), _rank(random, len(places) + 1))
    indices, content = _indices(random, tuples, shape, repeat=())
    source, target = (make(random, kind, _raised(sizes, rank)) for make in (_input, _output))
    updates = (*places, *rest)
    updates = _input(random, kind, _raised(updates, _rank(random, 1, len(updates))))
    counts = len(sizes), len(places) + 1
    desc = dml.ScatterNdOperatorDesc(source, indices, updates, target, *counts)

    def expect(arrays):
        data, numbers = arrays[0].reshape(sizes).copy(), arrays[1].reshape(-1, length)
        columns = np.stack([wrapped(numbers[:, k], n) for k, n in enumerate(indexed)], 1)
        inside = ((columns >= 0) & (columns < indexed)).all(1)
        data[tuple(columns[inside].T)] = arrays[2].reshape(-1, *rest)[inside]
        return [data.reshape(target.sizes)]

    return Case(desc, expect, {1: content})


def _one_hot(random, kind, sizes, axis):
    shape = (*sizes[:axis], 1, *sizes[axis + 1 :])
    indices, content = _indices(random, any_numbers, shape, sizes[axis])
    few = [random.choice((1, 2, 3)) for _ in random.choice((sizes, range(random.randint(1, 8))))]
    few[random.randrange(len(few))] = 2
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
    kind = random.choice(sorted(map(dml.TensorDataType.__getitem__, kinds.split())))
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
    """Packed, or padded, and permuted as often as not."""
    if random.random() < 0.5:
        return _longer(random, dml.BufferTensorDesc(kind, sizes))
    strides, step = [0] * len(sizes), 1
    order = range(len(sizes))[::-1]
    for axis in random.sample(order, len(sizes)) if random.random() < 0.5 else order:
        strides[axis] = step
        step = step * sizes[axis] + random.choice((0, 0, 0, 1, 4))
    if step > MAX_SPANNED:
        strides = None
    return _longer(random, dml.BufferTensorDesc(kind, sizes, strides))


def _longer(random, desc):
    """The same tensor, with bytes after its elements now and then (T-14)."""
    more = random.choice((0,) * 8 + (1, 2, 3, 4, 21))
    return replace(desc, total_tensor_size_in_bytes=desc.minimum_implied_size + more)


def _input(random, kind, sizes):
    """As outputs, and broadcast: a stride may be 0."""
    desc = _output(random, kind, sizes)
    if random.random() < 0.8 or prod(sizes) == 1:
        return desc
    strides = [random.choice((stride, stride, 0)) for stride in desc.effective_strides]
    return dml.BufferTensorDesc(kind, sizes, strides)


SPACE_TO_DEPTH_BROKEN = [
    ("SD-01", "output_tensor.data_type", {"output_tensor": tensor("UINT8", 2, 3, 4, 1)}),
    ("SD-02", "block_size", {"block_size": 0}),
    ("SD-04", "input_tensor.sizes[3]", {"input_tensor": f32(1, 2, 4, 6), "block_size": 4}),
    ("SD-04", "output_tensor.sizes[1]", {"input_tensor": f32(1, 2, 4, 6), "output_tensor": f32(1, 2, 2, 3), "block_size": 2}),
]  # fmt: skip

DEPTH_TO_SPACE_BROKEN = [
    ("SD-01", "output_tensor.data_type", {"output_tensor": tensor("UINT8", 2, 3, 4, 1)}),
    ("SD-02", "block_size", {"block_size": 0}),
    ("SD-03", "input_tensor.sizes[1]", {"input_tensor": f32(1, 8, 2, 3), "block_size": 3}),
    ("SD-03", "output_tensor.sizes[2]", {"input_tensor": f32(1, 8, 2, 3), "output_tensor": f32(1, 2, 2, 3), "block_size": 2}),
]  # fmt: skip

SLICES = {
    "input_tensor": f32(1, 3, 4), "indices_tensor": tensor("INT64", 1, 5, 2), "output_tensor": f32(1, 1, 5),
    "input_dimension_count": 2, "indices_dimension_count": 2,
}  # fmt: skip
"""Fields of a GATHER_ND."""

GATHER_ND_BROKEN = [
    ("GND-01", "output_tensor.data_type", {"output_tensor": tensor("UINT8", 1, 1, 5)}),
    ("GND-01", "output_tensor.sizes", {"output_tensor": f32(5)}),
    ("GND-02", "input_dimension_count", {"input_dimension_count": 0}),
    ("GND-02", "indices_dimension_count", {"indices_dimension_count": 4}),
    ("GND-03", "indices_tensor.sizes[2]", {"indices_tensor": tensor("INT64", 1, 5, 3)}),
    ("GND-04", "input_tensor.sizes", {"input_tensor": f32(2, 3, 4), "indices_tensor": tensor("INT64", 3, 5, 1), "input_dimension_count": 3, "indices_dimension_count": 3}),
    ("GND-04", "output_tensor.sizes[2]", {"output_tensor": f32(1, 1, 6)}),
    ("GND-04", "output_tensor.sizes[0]", {"output_tensor": f32(2, 1, 5)}),
    ("GND-08", "input_tensor.sizes[0]", {"input_tensor": f32(2, 3, 4)}),
]  # fmt: skip

PADDING_BROKEN = [
    ("PAD-01", "output_tensor.data_type", {"output_tensor": tensor("UINT8", 2, 3, 4)}),
    ("PAD-01", "end_padding", {"end_padding": [2]}),
    ("PAD-02", "start_padding[1]", {"start_padding": [0, -1, 0]}),
    ("PAD-02", "output_tensor.sizes[2]", {"output_tensor": f32(2, 3, 7), "start_padding": [0, 0, 3], "end_padding": [0, 0, 2]}),
    ("PAD-03", "padding_mode", {"padding_mode": 5}),
    ("PAD-14", "padding_mode", {"padding_mode": dml.PaddingMode.WRAP, "start_padding": [0, 30_000, 200_000], "end_padding": [0, 0, 0]}),
]  # fmt: skip

OPERATORS = {
    "SPLIT": Entry(_split, free_sizes=True, valid={
        "input_tensor": f32(1, 1, 6, 2), "output_tensors": [f32(1, 1, 2, 2), f32(1, 1, 4, 2)], "axis": 2,
    }, broken=[
        ("SPLIT-01", "output_tensors", {"output_tensors": []}),
        ("SPLIT-02", "axis", {"axis": 4}),
        ("SPLIT-02", "axis", {"axis": -1}),
        ("SPLIT-03", "output_tensors[1].data_type", {"output_tensors": [f32(1, 1, 2, 2), tensor("INT32", 1, 1, 4, 2)]}),
        ("SPLIT-04", "output_tensors[1].sizes", {"output_tensors": [f32(1, 1, 2, 2), f32(1, 4, 2)]}),
        ("SPLIT-05", "output_tensors[1].sizes[3]", {"output_tensors": [f32(1, 1, 2, 2), f32(1, 1, 4, 4)]}),
        ("SPLIT-06", "output_tensors", {"output_tensors": [f32(1, 1, n, 2) for n in (1, 2, 2)]}),
    ]),
    "JOIN": Entry(_join, valid={
        "input_tensors": [f32(1, 1, 2, 2), f32(1, 1, 4, 2)], "output_tensor": f32(1, 1, 6, 2), "axis": 2,
    }, broken=[
        ("JOIN-01", "input_tensors", {"input_tensors": []}),
        ("JOIN-02", "axis", {"axis": 4}),
        ("JOIN-03", "input_tensors[1].data_type", {"input_tensors": [f32(1, 1, 2, 2), tensor("FLOAT16", 1, 1, 4, 2)]}),
        ("JOIN-03", "output_tensor.data_type", {"output_tensor": tensor("UINT32", 1, 1, 6, 2)}),
        ("JOIN-04", "output_tensor.sizes", {"output_tensor": f32(1, 1, 1, 6, 2)}),
        ("JOIN-05", "input_tensors[1].sizes[1]", {"input_tensors": [f32(1, 1, 2, 2), f32(1, 3, 4, 2)]}),
        ("JOIN-06", "output_tensor.sizes[2]", {"output_tensor": f32(1, 1, 5, 2)}),
    ]),
    "SLICE": Entry(_slice, free_sizes=True, valid={
        "input_tensor": f32(4, 4), "output_tensor": f32(2, 2), "offsets": (0, 0), "sizes": (2, 2), "strides": (1, 1),
    }, broken=[
        ("SLICE-01", "output_tensor.sizes", {"output_tensor": f32(2, 2, 1)}),
        ("SLICE-01", "strides", {"strides": (1,)}),
        ("SLICE-02", "output_tensor.data_type", {"output_tensor": tensor("INT16", 2, 2)}),
        ("SLICE-03", "sizes[1]", {"sizes": (2, 3)}),
        ("SLICE-04", "strides[1]", {"strides": (1, 0)}),
        ("SLICE-04", "strides[0]", {"output_tensor": f32(1, 2), "sizes": (1, 2), "strides": (2**31, 1)}),
        ("SLICE-05", "offsets[1]", {"offsets": (2, 2), "strides": (1, 2)}),
        ("SLICE-05", "offsets[1]", {"offsets": (0, -1)}),
    ]),
    "SLICE1": Entry(_slice1, free_sizes=True, valid={
        "input_tensor": f32(4, 4), "output_tensor": f32(2, 2), "input_window_offsets": (0, 0), "input_window_sizes": (2, 2), "input_window_strides": (1, 1),
    }, broken=[
        ("SLICE1-01", "output_tensor.sizes", {"output_tensor": f32(2)}),
        ("SLICE1-01", "output_tensor.data_type", {"output_tensor": tensor("INT8", 2, 2)}),
        ("SLICE1-01", "input_window_offsets", {"input_window_offsets": (0, 0, 0)}),
        ("SLICE1-02", "input_window_sizes[0]", {"input_window_sizes": (0, 2)}),
        ("SLICE1-02", "input_window_sizes[0]", {"input_window_offsets": (3, 0)}),
        ("SLICE1-02", "input_window_offsets[0]", {"input_window_offsets": (-1, 0)}),
        ("SLICE1-03", "input_window_strides[0]", {"input_window_strides": (0, 1)}),
        ("SLICE1-04", "output_tensor.sizes[0]", {"output_tensor": f32(3, 2), "input_window_sizes": (4, 2), "input_window_strides": (-2, 1)}),
    ]),
    "SLICE_GRAD": Entry(_slice_grad, free_sizes=True, broken=[
        ("SGRAD-01", "input_window_sizes[0]", {"input_window_sizes": (3, 3, 4)}),
        ("SGRAD-01", "input_window_sizes[2]", {"input_window_offsets": (0, 0, 4), "input_window_sizes": (2, 3, 5), "input_window_strides": (1, 1, 1)}),
        ("SGRAD-01", "input_gradient_tensor.sizes[0]", {"input_gradient_tensor": f32(2, 3, 4), "input_window_offsets": (0, 0, 0), "input_window_sizes": (2, 3, 4), "input_window_strides": (-2, 1, 1)}),
        ("SGRAD-02", "output_gradient_tensor.data_type", {"output_gradient_tensor": tensor("UINT8", 2, 3, 4)}),
        ("SGRAD-02", "input_window_strides", {"input_window_strides": (1,)}),
        ("SGRAD-03", "input_window_strides[0]", {"input_window_strides": (0, 1, 1)}),
    ]),
    "ELEMENT_WISE_IDENTITY": Entry(_identity, valid={"input_tensor": f32(2, 3), "output_tensor": f32(2, 3)}, broken=[
        ("IDENT-01", "output_tensor.data_type", {"output_tensor": tensor("INT32", 2, 3)}),
        ("IDENT-01", "output_tensor.sizes", {"output_tensor": f32(2, 3, 1)}),
        ("IDENT-01", "output_tensor.sizes[0]", {"output_tensor": f32(3, 2)}),
        ("IDENT-02", "scale_bias", {"scale_bias": dml.ScaleBias(2, 10)}),
    ]),
    "TILE": Entry(_tile, broken=[
        ("TILE-01", "output_tensor.data_type", {"output_tensor": tensor("UINT8", 2, 3, 4)}),
        ("TILE-01", "repeats", {"repeats": [2]}),
        ("TILE-02", "repeats[1]", {"repeats": [1, 0, 1]}),
        ("TILE-03", "output_tensor.sizes[0]", {"output_tensor": f32(2, 3, 4), "repeats": [3, 1, 1]}),
    ]),
    "SPACE_TO_DEPTH": Entry(_blocks(dml.SpaceToDepthOperatorDesc, space_to_depth), broken=SPACE_TO_DEPTH_BROKEN),
    "SPACE_TO_DEPTH1": Entry(_blocks(dml.SpaceToDepth1OperatorDesc, space_to_depth), broken=[
        *SPACE_TO_DEPTH_BROKEN,
        ("SD-05", "order", {"order": 2}),
    ]),
    "DEPTH_TO_SPACE": Entry(_blocks(dml.DepthToSpaceOperatorDesc, depth_to_space), broken=DEPTH_TO_SPACE_BROKEN),
    "DEPTH_TO_SPACE1": Entry(_blocks(dml.DepthToSpace1OperatorDesc, depth_to_space), broken=[
        *DEPTH_TO_SPACE_BROKEN,
        ("SD-05", "order", {"order": 2}),
    ]),
    "DIAGONAL_MATRIX": Entry(_diagonal_matrix, free_sizes=True, broken=[
        ("DIAG-03", "value", {"value": 1e39}),
        ("DIAG-07", "offset", {"offset": 2**31}),
    ]),
    "DIAGONAL_MATRIX1": Entry(_diagonal_matrix1, free_sizes=True, broken=[
        ("DIAG-03", "value", {"value": 1e39}),
        ("DIAG-04", "value_data_type", {"input_tensor": None, "value_data_type": dml.TensorDataType.UINT8}),
        ("DIAG-04", "output_tensor.data_type", {"input_tensor": tensor("UINT8", 2, 3, 4)}),
        ("DIAG-04", "output_tensor.sizes", {"input_tensor": f32(3, 4)}),
        ("DIAG-04", "output_tensor.sizes[1]", {"input_tensor": f32(2, 4, 4)}),
        ("DIAG-07", "diagonal_fill_begin", {"diagonal_fill_begin": -(2**31) - 1}),
    ]),
    "GATHER": Entry(_gather, valid={
        "input_tensor": f32(3, 4), "indices_tensor": tensor("INT64", 2, 5), "output_tensor": f32(3, 4), "axis": 0, "index_dimensions": 2,
    }, broken=[
        ("GATH-01", "output_tensor.data_type", {"output_tensor": tensor("UINT8", 2, 3, 4)}),
        ("GATH-01", "indices_tensor.sizes", {"input_tensor": f32(3, 4), "indices_tensor": tensor("UINT32", 5), "output_tensor": f32(3, 5)}),
        ("GATH-02", "axis", {"axis": 2}),
        ("GATH-03", "index_dimensions", {"index_dimensions": 3}),
        ("GATH-03", "indices_tensor.sizes[0]", {"index_dimensions": 1}),
        ("GATH-04", "output_tensor.sizes[0]", {"axis": 1}),
        ("GATH-04", "output_tensor.sizes[1]", {"input_tensor": f32(1, 4), "indices_tensor": tensor("INT64", 2, 5), "output_tensor": f32(2, 4), "axis": 1, "index_dimensions": 2}),
        ("GATH-04", "output_tensor.sizes[0]", {"indices_tensor": tensor("INT64", 1, 1), "index_dimensions": 0}),
    ]),
    "GATHER_ELEMENTS": Entry(_gather_elements, broken=[
        ("GEL-01", "output_tensor.data_type", {"output_tensor": tensor("UINT8", 2, 3, 4)}),
        ("GEL-01", "indices_tensor.sizes", {"indices_tensor": tensor("UINT32", 5)}),
        ("GEL-01", "axis", {"axis": -1}),
        ("GEL-02", "indices_tensor.sizes[2]", {"indices_tensor": tensor("INT64", 2, 9, 3)}),
        ("GEL-03", "output_tensor.sizes[1]", {"indices_tensor": tensor("INT64", 2, 9, 4), "output_tensor": f32(2, 3, 4)}),
    ]),
    "GATHER_ND": Entry(_gather_nd, valid=SLICES, broken=GATHER_ND_BROKEN),
    "GATHER_ND1": Entry(_gather_nd1, valid={**SLICES, "batch_dimension_count": 0}, broken=[
        *GATHER_ND_BROKEN,
        ("GND-02", "batch_dimension_count", {"batch_dimension_count": 2}),
        ("GND-02", "batch_dimension_count", {"batch_dimension_count": -1}),
        ("GND-05", "indices_tensor.sizes[1]", {"indices_tensor": tensor("INT64", 1, 5, 1), "batch_dimension_count": 1}),
    ]),
    "REVERSE_SUBSEQUENCES": Entry(_reverse_subsequences, broken=[
        ("REV-01", "output_tensor.data_type", {"output_tensor": tensor("UINT8", 2, 3, 4)}),
        ("REV-01", "sequence_lengths_tensor.sizes", {"sequence_lengths_tensor": tensor("UINT32", 2, 4)}),
        ("REV-01", "output_tensor.sizes[1]", {"output_tensor": f32(2, 4, 4)}),
        ("REV-02", "axis", {"axis": 3}),
        ("REV-03", "sequence_lengths_tensor.sizes[1]", {"sequence_lengths_tensor": tensor("UINT64", 2, 3, 4)}),
        ("REV-03", "sequence_lengths_tensor.sizes[0]", {"sequence_lengths_tensor": tensor("UINT64", 1, 1, 4)}),
    ]),
    "SCATTER": Entry(_scatter, broken=[
        ("SCAT-02", "updates_tensor.data_type", {"updates_tensor": tensor("UINT8", 2, 3, 4)}),
        ("SCAT-02", "updates_tensor.sizes", {"updates_tensor": f32(3, 4)}),
        ("SCAT-02", "output_tensor.sizes[0]", {"output_tensor": f32(3, 3, 4)}),
        ("SCAT-03", "axis", {"axis": 3}),
        ("SCAT-03", "indices_tensor.sizes[0]", {"indices_tensor": tensor("INT64", 1, 3, 4)}),
        ("SCAT-03", "indices_tensor.sizes[1]", {"indices_tensor": tensor("INT64", 2, 4, 4), "updates_tensor": f32(2, 4, 4)}),
        ("SCAT-03", "updates_tensor.sizes[1]", {"indices_tensor": tensor("INT64", 2, 1, 4), "updates_tensor": f32(2, 2, 4)}),
    ]),
    "SCATTER_ND": Entry(_scatter_nd, valid={
        "input_tensor": f32(1, 3, 4), "indices_tensor": tensor("INT64", 1, 5, 1), "updates_tensor": f32(1, 5, 4), "output_tensor": f32(1, 3, 4),
        "input_dimension_count": 2, "indices_dimension_count": 2,
    }, broken=[
        ("SCAT-02", "output_tensor.sizes[2]", {"output_tensor": f32(1, 3, 5)}),
        ("SCAT-02", "output_tensor.sizes", {"output_tensor": f32(3, 4)}),
        ("SCAT-06", "input_dimension_count", {"input_dimension_count": 4}),
        ("SCAT-06", "indices_tensor.strides[1]", {"indices_tensor": dml.BufferTensorDesc(dml.TensorDataType.INT64, [1, 5, 1], [0, 0, 0])}),
        ("SCAT-06", "updates_tensor.sizes", {"updates_tensor": f32(20)}),
        ("SCAT-06", "indices_tensor.sizes[0]", {"indices_tensor": tensor("INT64", 2, 5, 1)}),
        ("SCAT-06", "indices_tensor.sizes[2]", {"indices_tensor": tensor("INT64", 1, 5, 3)}),
        ("SCAT-06", "updates_tensor.sizes[1]", {"updates_tensor": f32(1, 4, 4)}),
    ]),
    "ONE_HOT": Entry(_one_hot, free_sizes=True, broken=[
        ("HOT-01", "output_tensor.data_type", {"output_tensor": tensor("UINT8", 2, 3, 4)}),
        ("HOT-01", "output_tensor.sizes", {"indices_tensor": tensor("INT64", 2, 4)}),
        ("HOT-02", "axis", {"axis": 3}),
        ("HOT-03", "indices_tensor.sizes[1]", {"indices_tensor": tensor("INT64", 2, 3, 4)}),
        ("HOT-03", "output_tensor.sizes[2]", {"output_tensor": f32(2, 9, 5)}),
        ("HOT-04", "values_tensor.sizes", {"values_tensor": f32(1, 1, 1)}),
    ]),
    "UNFOLD": Entry(_unfold, broken=[
        ("UNF-01", "output_tensor.data_type", {"output_tensor": tensor("FLOAT16", 2, 3, 4)}),
        ("UNF-01", "dilations", {"dilations": (1, 1)}),
        ("UNF-02", "strides[0]", {"strides": (0,)}),
        ("UNF-02", "strides[0]", {"strides": (65536,)}),
        ("UNF-02", "dilations[0]", {"dilations": (65536,)}),
        ("UNF-02", "end_padding[0]", {"end_padding": (65536,)}),
        ("UNF-02", "window_sizes[0]", {"window_sizes": (3,), "dilations": (3,), "start_padding": (1,), "end_padding": (1,)}),
        ("UNF-03", "output_tensor.sizes", {"output_tensor": f32(2, 3, 4, 1)}),
        ("UNF-03", "output_tensor.sizes[1]", {"window_sizes": (2,), "output_tensor": f32(2, 3, 3)}),
        ("UNF-03", "output_tensor.sizes[2]", {"window_sizes": (2,), "dilations": (1,), "strides": (1,), "start_padding": (0,), "end_padding": (0,), "output_tensor": f32(2, 6, 9)}),
        ("UNF-07", "start_padding", {"window_sizes": (40000,), "strides": (1,), "dilations": (1,), "start_padding": (39998,), "end_padding": (39998,)}),
        ("UNF-07", "start_padding", {"input_tensor": f32(1, 1, 200000), "window_sizes": (100000,), "strides": (1,), "dilations": (1,), "start_padding": (65535,), "end_padding": (0,)}),
    ]),
    "FILL_VALUE_CONSTANT": Entry(_fill_value_constant, free_sizes=True, broken=[
        ("FILL-01", "value_data_type", {"value_data_type": dml.TensorDataType.UINT8}),
        ("FILL-02", "value", {"value": 1e39}),
        ("FILL-02", "value", {"output_tensor": tensor("INT8", 2, 3, 4), "value_data_type": dml.TensorDataType.INT8, "value": 0.5}),
        ("FILL-02", "value", {"output_tensor": tensor("UINT16", 2, 3, 4), "value_data_type": dml.TensorDataType.UINT16, "value": 65536}),
        ("FILL-02", "value", {"value": "1"}),
    ]),
    "FILL_VALUE_SEQUENCE": Entry(_fill_value_sequence, free_sizes=True, broken=[
        ("FILL-01", "value_data_type", {"value_data_type": dml.TensorDataType.UINT8}),
        ("FILL-02", "value_start", {"value_start": 1e39}),
        ("FILL-02", "value_start", {"output_tensor": tensor("UINT8", 2, 3, 4), "value_data_type": dml.TensorDataType.UINT8, "value_start": -129}),
        ("FILL-02", "value_delta", {"output_tensor": tensor("UINT8", 2, 3, 4), "value_data_type": dml.TensorDataType.UINT8, "value_start": 0, "value_delta": -0.5}),
        ("FILL-02", "value_delta", {"output_tensor": tensor("UINT8", 2, 3, 4), "value_data_type": dml.TensorDataType.UINT8, "value_start": 0, "value_delta": -129}),
        *[("FILL-02", "value_delta", {"output_tensor": tensor(kind, 2, 3, 4), "value_data_type": dml.TensorDataType[kind], "value_start": 0, "value_delta": delta})
          for kind in ("UINT8", "UINT64", "INT32") for delta in (np.nan, np.inf, -np.inf)],
    ]),
    "PADDING": Entry(_padding, broken=[
        *PADDING_BROKEN,
        ("PAD-04", "padding_value", {"padding_value": 1e39}),
    ]),
    "PADDING1": Entry(_padding1, broken=[
        *PADDING_BROKEN,
        ("PAD-04", "padding_value", {"input_tensor": tensor("INT8", 2, 3, 4), "output_tensor": tensor("INT8", 2, 3, 4), "padding_mode": dml.PaddingMode.CONSTANT, "padding_value_data_type": dml.TensorDataType.INT8, "padding_value": 0.5}),
        ("PAD-09", "padding_value_data_type", {"padding_mode": dml.PaddingMode.EDGE, "padding_value_data_type": dml.TensorDataType.UINT8}),
    ]),
    "UPSAMPLE_2D": Entry(_upsample_2d, broken=[
        ("UPS-01", "output_tensor.data_type", {"output_tensor": tensor("FLOAT16", 2, 3, 4, 1)}),
        ("UPS-01", "output_tensor.sizes[3]", {"input_tensor": f32(1, 2, 2, 4), "output_tensor": f32(1, 2, 6, 9), "scale_size": dml.Size2D(width=2, height=3)}),
        ("UPS-02", "scale_size.height", {"scale_size": dml.Size2D(2, 0)}),
        ("UPS-02", "scale_size", {"scale_size": 2}),
        ("UPS-04", "interpolation_mode", {"interpolation_mode": dml.InterpolationMode.LINEAR}),
    ]),
    "RESAMPLE": Entry(_resample(0), free_sizes=True, broken=[
        ("RES-01", "output_tensor.sizes", {"output_tensor": f32(2, 3)}),
        ("RES-01", "scales", {"scales": [1, 2]}),
        ("RES-03", "scales[1]", {"scales": [1, 0, 1]}),
        ("RES-03", "scales[2]", {"scales": [1, 2, np.nan]}),
        ("RES-03", "scales[1]", {"scales": [np.inf, 1e-7, 1]}),
        ("RES-03", "scales[0]", {"scales": [1e39, 1, 1]}),
        ("RES-14", "interpolation_mode", {"interpolation_mode": dml.InterpolationMode.LINEAR}),
        ("RES-15", "output_tensor.sizes[0]", {"input_tensor": tensor("INT8", 9, 9), "output_tensor": tensor("INT8", 2**24 + 1, 9), "scales": [2, 1]}),
        ("RES-15", "output_tensor.sizes", {"input_tensor": tensor("INT8", 60000, 60000), "output_tensor": tensor("INT8", 60000, 60000), "scales": [1.618034, 1.618034]}),
    ]),
    "RESAMPLE1": Entry(_resample(1), free_sizes=True, broken=[
        ("RES-04", "output_pixel_offsets[2]", {"output_pixel_offsets": [0, 0, 1e39]}),
    ]),
    "RESAMPLE2": Entry(_resample(2), free_sizes=True, broken=[
        ("RES-06", "rounding_direction", {"rounding_direction": 2}),
    ]),
    "RESAMPLE3": Entry(_resample(3), free_sizes=True, broken=[
        ("RES-09", "antialiased", {"antialiased": 1}),
    ]),
}  # fmt: skip
