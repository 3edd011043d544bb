"""Nodes with indices, which are known before the graph runs or only on the device."""

from math import prod

import numpy as np

from onnx_graphs.arguments import has_axes, is_small
from onnx_graphs.graph import MAX_ELEMENTS


def indices_tensor(g, indices):
    """Return a tensor of indices; as a graph input, its elements are not known before a run."""
    if g.chance(0.3):
        return g.ints(indices, indices.dtype)
    name = g.input(indices)
    if g.chance(0.3):
        name = g.node("Identity", [name])
    if indices.size and g.chance(0.2):
        name = g.node("Reshape", [g.node("Reshape", [name, g.ints([-1])]), g.ints(indices.shape)])
    return name


def _kind(g):
    return g.rng.choice((np.int32, np.int64))


def _axis(g, rank):
    """Return an axis, and the attribute that says so."""
    axis = g.axis(rank)
    return axis % rank, {} if axis == 0 and g.chance(0.5) else {"axis": axis}


def _numbers(g, whole, sizes, negative=True):
    """Return indices of an axis that is not empty, unless there are none."""
    lowest = -whole if negative else 0
    numbers = [g.rng.randint(lowest, whole - 1) for _ in range(prod(sizes))]
    return np.array(numbers, np.int64).reshape(sizes)


def gather(g, operator):
    data = g.tensor(operator, lambda array: array.ndim and is_small(array))
    array = g.values[data]
    axis, named = _axis(g, array.ndim)
    whole = array.shape[axis]
    sizes = g.rng.choice(((), (1,), (4,), (3,), (2, 3), (0,), (2, 1, 2), (12,))) if whole else (0,)
    indices = _numbers(g, whole, sizes, g.opset >= 11)
    if g.chance(0.3):
        indices = np.sort(indices.reshape(-1)).reshape(sizes)
    g.node(operator, [data, indices_tensor(g, indices.astype(_kind(g)))], **named)


def _part(g, sizes):
    """Return sizes that are not larger, few elements in all."""
    part = [g.rng.randint(min(1, n), n) if g.chance(0.4) else n for n in sizes]
    while prod(part) > 1000:
        part[g.rng.randrange(len(part))] = 1
    return part


def gather_elements(g, operator):
    data = g.tensor(operator, has_axes)
    array = g.values[data]
    axis, named = _axis(g, array.ndim)
    sizes = _part(g, array.shape)
    if prod(sizes) < 100:
        sizes[axis] = g.rng.randint(0, 6) if array.shape[axis] else 0
    indices = _numbers(g, array.shape[axis], sizes)
    g.node(operator, [data, indices_tensor(g, indices.astype(_kind(g)))], **named)


def gather_nd(g, operator):
    data = g.tensor(operator, lambda array: array.ndim and is_small(array))
    sizes = g.values[data].shape
    batch = g.rng.randrange(len(sizes)) if g.opset >= 12 and g.chance(0.4) else 0
    count = g.rng.randint(1, len(sizes) - batch)
    indexed = sizes[batch : batch + count]
    more = [g.rng.randint(0, 4) for _ in range(g.rng.randint(0, 2))]
    shape = [*sizes[:batch], *(more if 0 not in indexed else [0])]
    if prod(shape) * prod(sizes[batch + count :]) > MAX_ELEMENTS:
        return
    numbers = [_numbers(g, size if prod(shape) else 1, shape) for size in indexed]
    indices = indices_tensor(g, np.stack(numbers, -1))
    g.node(operator, [data, indices], batch_dims=batch or None)


def scatter_elements(g, operator):
    data = g.tensor(operator, has_axes)
    array = g.values[data]
    axis, named = _axis(g, array.ndim)
    sizes = _part(g, array.shape)
    whole = array.shape[axis]
    # Each element is written at most once.
    columns = sizes[:axis] + sizes[axis + 1 :]
    chosen = [g.rng.sample(range(whole), sizes[axis]) for _ in range(prod(columns))]
    indices = np.array(chosen, np.int64).reshape(*columns, sizes[axis])
    indices = _some_negative(g, np.moveaxis(indices, -1, axis), whole)
    _scatter(g, operator, data, indices.astype(_kind(g)), sizes, named)


def scatter(g, operator):
    for _ in range(3):  # only two opsets have it
        scatter_elements(g, operator)


def scatter_nd(g, operator):
    data = g.tensor(operator, has_axes)
    sizes = g.values[data].shape
    count = g.rng.randint(1, len(sizes))
    places = prod(sizes[:count])
    shape = (g.rng.randint(0, min(places, 6)),)
    indices = np.array(g.rng.sample(range(places), *shape), np.int64)
    indices = np.stack(np.unravel_index(indices, sizes[:count]), -1) if places else indices
    if shape[0] % 2 == 0 and g.chance(0.3):
        shape = (2, shape[0] // 2)
    indices = indices.reshape(*shape, count)
    indices = _some_negative(g, indices, np.array(sizes[:count], np.int64))
    _scatter(g, operator, data, indices, (*shape, *sizes[count:]), {})


def _some_negative(g, indices, whole):
    return np.where(g.elements(np.dtype(bool), indices.shape), indices - whole, indices)


def _scatter(g, operator, data, indices, shape, named):
    shape = tuple(shape)
    dtype = g.dtype(data)
    # Updates that are made of the same tensor are composed with it.
    updates = g.tensor(operator, lambda array: array.shape == shape, shape, dtype)
    if g.opset >= 16 and g.chance(0.3):
        named["reduction"] = "none"
    g.node(operator, [data, indices_tensor(g, indices), updates], **named)


def tensor_scatter(g, operator):
    data = g.tensor(operator, lambda array: array.ndim >= 2)
    shape = g.values[data].shape
    axis = g.rng.randint(1, len(shape) - 1)
    count = g.rng.randint(0, shape[axis])
    sizes = (*shape[:axis], count, *shape[axis + 1 :])
    updates = g.tensor(operator, lambda array: array.shape == sizes, sizes, g.dtype(data))
    starts = np.array([g.rng.randint(0, shape[axis] - count) for _ in range(shape[0])], np.int64)
    places = indices_tensor(g, starts) if g.chance(0.8) else None
    axis = None if axis == len(shape) - 2 else axis - g.rng.choice((0, len(shape)))
    g.node(operator, [data, updates, places], axis=axis)


def reverse_sequence(g, operator):
    for _ in range(3):  # only one opset has all types
        dtype = g.kind(g.dtypes(operator)) if g.chance(0.7) else None
        data = g.tensor(operator, lambda array: array.ndim >= 2, dtype=dtype)
        time = g.rng.randint(0, 1)
        sizes = g.values[data].shape
        lengths = [g.rng.randint(0, sizes[time]) for _ in range(sizes[1 - time])]
        lengths = indices_tensor(g, np.array(lengths, np.int64))
        named = {"time_axis": time, "batch_axis": 1 - time} if time or g.chance(0.5) else {}
        g.node(operator, [data, lengths], **named)


def one_hot(g, operator):
    depth = g.rng.randint(0 if g.chance(0.1) else 1, 6)
    kind = g.kind([*[np.dtype(np.int64)] * 4, *g.dtypes(operator)])
    sizes = g.rng.choice(((), (1,), (4,), (2, 3), (0,), (3, 1, 2)))
    lowest = -depth - 2 if kind.kind != "u" and g.opset >= 11 else 0
    indices = [g.rng.randint(lowest, depth + 2) for _ in range(prod(sizes))]
    indices = np.array(indices).reshape(sizes).astype(kind)
    on_device = kind.kind in "iu" and kind.itemsize >= 4
    indices_name = g.input(indices) if on_device and g.chance(0.7) else g.numbers(indices)
    kinds = (np.int64, np.int32, np.float32, np.uint8)
    depths = g.ints(g.rng.choice((depth, [depth])), g.rng.choice(kinds))
    dtype = g.kind(g.dtypes(operator, output=True))
    values = g.tensor(operator, lambda array: array.shape == (2,), (2,), dtype)
    rank = indices.ndim + 1
    g.node(operator, [indices_name, depths, values], axis=g.rng.choice((None, g.axis(rank))))


def compress(g, operator):
    data = g.tensor(operator)
    shape = g.values[data].shape
    axis = g.axis(len(shape)) if shape and g.chance(0.7) else None
    size = prod(shape) if axis is None else shape[axis]
    condition = g.elements(np.dtype(bool), (g.rng.randint(0, size) if g.chance(0.3) else size,))
    g.node(operator, [data, g.constant(condition)], axis=axis)


def where(g, operator):
    """Elements of two tensors, chosen by a condition that is known."""
    dtype = g.kind(g.dtypes(operator, output=True))
    first = g.tensor(operator, is_small, dtype=dtype)
    array = g.values[first]
    sizes = tuple(1 if g.chance(0.3) else n for n in array.shape)
    second = g.tensor(operator, lambda a, s=sizes: a.shape == s, sizes, dtype)
    shape = array.shape[g.rng.randint(0, array.ndim) :]
    kind = g.rng.choice(("any", "all", "none"))
    condition = (
        g.elements(np.dtype(bool), shape) if kind == "any" else np.full(shape, kind == "all")
    )
    operands = [first, second]
    g.rng.shuffle(operands)
    g.node(operator, [g.constant(condition), *operands])
