"""Nodes that make sequences, and tensors of them."""

import numpy as np

from onnx_graphs.arguments import has_axes
from onnx_graphs.elements import elem_type


def split_to_sequence(g, operator):
    data = g.tensor(operator, has_axes)
    axis = g.axis(g.values[data].ndim)
    whole = g.values[data].shape[axis]
    named = {} if axis == 0 and g.chance(0.5) else {"axis": axis}
    if g.chance(0.5):
        named["keepdims"] = g.rng.randint(0, 1)
    form = g.rng.choice(("ones", "size", "sizes"))
    kind = g.rng.choice((np.int32, np.int64))
    split = ""
    if form == "size" or whole > 20:
        split = g.ints(g.rng.randint(max(1, whole // 10), whole + 2), kind)
    elif form == "sizes":
        split = g.ints(g.cut(whole, g.rng.randint(1, 4)), kind)
    g.node(operator, [data, split], **named)


def _sequence(g):
    """A sequence that is not empty."""
    names = [name for name in g.sequences_for("SequenceAt") if g.values[name]]
    if names and g.chance(0.8):
        return g.rng.choice(names[-4:])
    if g.chance(0.4):
        return g.input_sequence()
    split_to_sequence(g, "SplitToSequence")
    return _sequence(g)


def _position(g, lowest, highest):
    return g.ints(g.rng.randint(lowest, highest), g.rng.choice((np.int32, np.int64)))


def sequence_at(g, operator):
    sequence = _sequence(g)
    count = len(g.values[sequence])
    g.node(operator, [sequence, _position(g, -count, count - 1)])


def concat_from_sequence(g, operator):
    sequence = _sequence(g)
    shapes = [item.shape for item in g.values[sequence]]
    rank = len(shapes[0])
    if len(set(shapes)) == 1 and (rank == 0 or g.chance(0.5)):
        g.node(operator, [sequence], new_axis=1, axis=g.axis(rank + 1))
        return
    fitting = [a for a in range(rank) if len({(len(s), s[:a] + s[a + 1 :]) for s in shapes}) == 1]
    if fitting:
        axis = g.rng.choice(fitting)
        g.node(operator, [sequence], axis=axis - rank if g.chance(0.3) else axis)


def sequence_construct(g, operator):
    first = g.tensor(operator)
    dtype = g.values[first].dtype
    more = [g.tensor(operator, dtype=dtype) for _ in range(g.rng.randint(0, 3))]
    g.node(operator, [first, *more])


def sequence_empty(g, operator):
    dtype = g.rng.choice(g.dtypes("SequenceAt"))
    g.node(operator, [], dtype=elem_type(dtype))


def sequence_insert(g, operator):
    sequence = _sequence(g)
    tensor = g.tensor(operator, dtype=g.dtype(sequence))
    count = len(g.values[sequence])
    g.node(operator, [sequence, tensor, _position(g, -count, count) if g.chance(0.7) else ""])


def sequence_erase(g, operator):
    sequence = _sequence(g)
    count = len(g.values[sequence])
    g.node(operator, [sequence, _position(g, -count, count - 1) if g.chance(0.7) else ""])


def sequence_length(g, operator):
    g.node(operator, [_sequence(g)])
