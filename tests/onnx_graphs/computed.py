"""Nodes whose result is known before the graph runs."""

from math import prod

import numpy as np
from onnx import numpy_helper

from onnx_graphs.elements import elem_type


def shape(g, operator):
    data = g.tensor(operator)
    rank = g.values[data].ndim
    keys = ("start", "end") if g.opset >= 15 else ()
    bounds = {key: g.rng.randint(-rank - 2, rank + 2) for key in keys if g.chance(0.5)}
    g.node(operator, [data], **bounds)


def size(g, operator):
    g.node(operator, [g.tensor(operator)])


def constant(g, operator):
    array = g.elements(g.kind(g.dtypes(operator)), g.shape())
    g.node(operator, [], **g.constant_attribute(array))


def constant_of_shape(g, operator):
    value = None
    if g.chance(0.9):
        value = numpy_helper.from_array(g.elements(g.kind(g.dtypes(operator, output=True)), (1,)))
    g.node(operator, [g.ints(g.shape())], value=value)


def arithmetic(g, operator):
    dtype = g.kind(g.dtypes(operator))
    lowest = 0 if dtype.kind == "u" else -9
    whole = g.shape(g.rng.randint(0, 3))
    first = g.known_integers(dtype) if g.chance(0.5) else None
    if first:
        whole = g.values[first].shape
    elif operator == "Sub" and dtype.kind == "u":
        first = g.numbers(_numbers(g, 9, 18, whole, dtype))
    else:
        first = g.numbers(_numbers(g, lowest, 9, whole, dtype))
    sizes = tuple(1 if g.chance(0.3) else n for n in whole)
    second = _numbers(g, lowest, 9, sizes[g.rng.randint(0, len(sizes)) :], dtype)
    if operator == "Div":
        second = np.where(second.astype(np.float64) <= 0, dtype.type(3), second)
    operands = [first, g.numbers(second)]
    if operator in ("Add", "Mul") and g.chance(0.3):
        operands.reverse()
    g.node(operator, operands)


def range_(g, operator):
    dtype = g.kind(g.dtypes(operator))
    delta = g.rng.choice((-3, -1, 1, 2))
    start = g.rng.randint(-9, 9)
    limit = start + delta * g.rng.randint(-1, 8) + g.rng.randint(-1, 1)
    if dtype.kind not in "iu":  # tenths, of which sums and quotients are rounded
        start, limit, delta = start / 10, limit / 10, delta / 10
    g.node(operator, [g.numbers(np.array(n, dtype)) for n in (start, limit, delta)])


def equal(g, operator):
    whole = g.shape(g.rng.randint(0, 3))
    first = g.elements(g.kind(g.dtypes(operator)), whole)
    second = first.copy()
    for index in np.ndindex(first.shape):
        if g.chance(0.5):
            second[index] = g.elements(first.dtype, (1,))[0]
    g.node(operator, [g.numbers(first), g.numbers(second)])


def modulo(g, operator):
    dtype = g.kind(g.dtypes(operator))
    whole = g.shape(g.rng.randint(0, 3))
    lowest = 0 if dtype.kind == "u" else -9
    second = _numbers(g, lowest, 9, whole, dtype)
    second = np.where(second.astype(np.float64) == 0, dtype.type(4), second)
    is_float = dtype.kind not in "iu"
    first = g.numbers(_numbers(g, lowest, 9, whole, dtype))
    g.node(operator, [first, g.numbers(second)], fmod=1 if is_float or g.chance(0.3) else None)


def compared(g, operator):
    dtype = g.kind(g.dtypes(operator))
    sizes = g.shape(g.rng.randint(0, 3))
    arrays = [g.elements(dtype, sizes), g.elements(dtype, sizes[g.rng.randint(0, len(sizes)) :])]
    g.node(operator, map(g.numbers, arrays))


def logical_not(g, operator):
    g.node(operator, [g.numbers(g.elements(np.dtype(bool), g.shape()))])


def _numbers(g, lowest, highest, sizes, dtype):
    numbers = [g.rng.randint(lowest, highest) for _ in range(prod(sizes))]
    return np.array(numbers).reshape(sizes).astype(dtype)


def cast(g, operator):
    source = g.kind([dtype for dtype in g.dtypes(operator) if dtype.kind != "O"])
    target = g.kind([dtype for dtype in g.dtypes(operator, output=True) if dtype.kind != "O"])
    numbers = [n for n in CASTED if _is(n, source) and _is_cast(n, source, target)]
    sizes = g.shape()
    array = np.array([g.rng.choice(numbers) for _ in range(prod(sizes))]).reshape(sizes)
    saturate = g.rng.randint(0, 1) if g.opset >= 19 and g.chance(0.3) else None
    modes = ("up", "down", "nearest")
    mode = g.rng.choice(modes) if g.opset >= 24 and g.chance(0.3) else None
    numbers = g.numbers(array.astype(source))
    g.node(operator, [numbers], to=elem_type(target), saturate=saturate, round_mode=mode)


CASTED = (1, 0, -1, 2, 3, 5, 7, -2, -8, 0.5, 1.25, 100, 240, 1000, -70000, 1e30)


def _is(number, dtype):
    """Whether a type can represent a number."""
    with np.errstate(all="ignore"):
        if dtype.kind in "iu" and not np.iinfo(dtype).min <= number <= np.iinfo(dtype).max:
            return False
        return np.float64(number).astype(dtype).astype(np.float64) == number


def _is_cast(number, given, made):
    """Whether the cast of a number to another type is defined."""
    if made.name == "float8_e8m0fnu":
        return number >= 0
    wraps = given.kind in "iu" and made.kind in "iu"
    return wraps or _is(number, made) or "float" in made.name
