"""Instructions that extract parts of composites, and construct composites.

Each is a function of the instruction's operands, and of a function that returns the values of ids.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from vkops.interpreter.operations import Array
from vkops.interpreter.values import Numbers, Value
from vkops.shaders.binary import Op

ValueOf = Callable[[int], Value]


def _extract(operands: Sequence[int], value_of: ValueOf) -> Value:
    value = value_of(operands[0])
    for number, index in enumerate(operands[1:], 1):
        if isinstance(value, Numbers):
            at = (slice(None), *operands[number:])
            return value.moved(lambda numbers, at=at: numbers[at])
        assert isinstance(value, tuple)
        value = value[index]
    return value


def _insert(operands: Sequence[int], value_of: ValueOf) -> Value:
    part, whole = map(value_of, operands[:2])
    return _inserted(whole, part, operands[2:])


def _inserted(whole: Value, part: Value, path: Sequence[int]) -> Value:
    if not path:
        return part
    if isinstance(whole, tuple):
        first, *rest = path
        return (*whole[:first], _inserted(whole[first], part, rest), *whole[first + 1 :])
    at: Any = (slice(None), *path)

    def changed(before: Array, after: Array) -> Array:
        count = max(len(before), len(after))
        copy = np.array(np.broadcast_to(before, (count, *before.shape[1:])))
        copy[at] = after
        return copy

    assert isinstance(whole, Numbers)
    assert isinstance(part, Numbers)
    return whole.moved(changed, part)


def _shuffle(operands: Sequence[int], value_of: ValueOf) -> Numbers:
    chosen = [0 if n == 0xFFFFFFFF else n for n in operands[2:]]

    def both(one: Array, two: Array) -> Array:
        if max(chosen) < one.shape[1]:
            return one[:, chosen]
        count = max(len(one), len(two))
        wide = [np.broadcast_to(each, (count, each.shape[1])) for each in (one, two)]
        return np.concatenate(wide, 1)[:, chosen]

    one, two = map(value_of, operands[:2])
    assert isinstance(one, Numbers)
    assert isinstance(two, Numbers)
    return one.moved(both, two)


TABLE: dict[int, Callable[[Sequence[int], ValueOf], Value]] = {
    Op.CompositeExtract: _extract, Op.CompositeInsert: _insert, Op.VectorShuffle: _shuffle,
}  # fmt: skip
"""The functions by opcode."""
