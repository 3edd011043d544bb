"""Random descriptors of operators: right ones of the operator table, and the same with faults."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from operator_table import OPERATORS, kinds

from directml.packing import Raw, RawTensor
from vkops import dml
from vkops.dml.fields import TENSOR, TENSORS
from vkops.plan.view import packed_strides

HUGE = [2**31, 2**32 - 1, 2**32 - 2]
VALUES = [0.0, -1.0, math.nan, math.inf, -math.inf, 3e38, 0.5, 1e-45, 1.0, -0.0, 300.0, -129.0]
"""For fields that are floats, and entries of arrays of them."""


def random_raw(random, name: str, faults: int, ranks=range(1, 9)) -> tuple[list[str], Raw]:
    """A descriptor of an operator with so many faults, some of which are none, and their names."""
    raw = right(random, name, random.choice(kinds(name)), random.choice(ranks))
    found = []
    while len(found) < faults:
        fault = _fault_of_tensor if random.random() < 0.6 else _fault_of_attribute
        changed = fault(random, raw)
        if changed:
            found.append(changed[0])
            raw = changed[1]
    return found, raw


def right(random, name: str, kind: dml.TensorDataType, rank: int) -> Raw:
    """A descriptor of the operator table with small tensors."""
    sizes = tuple(random.randint(1, 4 if rank < 6 else 2) for _ in range(rank))
    return Raw.of(OPERATORS[name].make(random, kind, sizes, random.randrange(rank)).desc)


def tensors(raw: Raw) -> list[tuple[str, int | None, RawTensor]]:
    """The tensors of a descriptor: the field, the place in an array, and the tensor."""
    found: list[tuple[str, int | None, RawTensor]] = []
    for field in dml.OPERATORS[raw.operator].FIELDS:
        value = raw.fields[field.name]
        if field.kind is TENSOR and value is not None:
            found.append((field.name, None, value))
        elif field.kind is TENSORS and value:
            found += [(field.name, i, each) for i, each in enumerate(value) if each is not None]
    return found


def with_tensor(raw: Raw, name: str, place: int | None, tensor: RawTensor | None) -> Raw:
    """The descriptor with another tensor."""
    if place is None:
        return raw.with_fields(**{name: tensor})
    array = list(raw.fields[name])
    array[place] = tensor
    return raw.with_fields(**{name: tuple(array)})


def least(tensor: RawTensor) -> int:
    """The least total size of a tensor, a multiple of 4."""
    sizes = tensor.sizes or (1,)
    if 0 in sizes:
        return 4
    strides = tensor.strides or packed_strides(sizes)
    last = sum(
        (n - 1) * stride for n, stride in zip(sizes, strides, strict=False)
    )  # strides may be too few
    try:
        bits = dml.TensorDataType(tensor.data_type).size_bits or 32
    except ValueError:
        bits = 32
    return ((last + 1) * bits + 31) // 32 * 4


def _fault_of_tensor(random, raw: Raw) -> tuple[str, Raw] | None:
    present = tensors(raw)
    if not present:
        return None
    name, place, tensor = random.choice(present)
    fault = random.choice(list(_TENSOR_FAULTS))
    if fault == "null":
        return fault, with_tensor(raw, name, place, None)
    if not tensor.sizes:
        return None
    changed = _TENSOR_FAULTS[fault](random, tensor, tensor.sizes, len(tensor.sizes))
    if changed is None:
        return None
    if not fault.startswith("total"):
        changed = replace(changed, total=least(changed))
    return fault, with_tensor(raw, name, place, changed)


def _changed(values, at: int, value) -> tuple:
    return (*values[:at], value, *values[at + 1 :])


def _one_stride(random, tensor, sizes, wanted, stride):
    """Packed, but for one stride, of a dimension that is wanted."""
    among = [axis for axis, n in enumerate(sizes) if wanted(n)]
    if not among:
        return None
    return replace(tensor, strides=_changed(packed_strides(sizes), random.choice(among), stride))


def _transposed(random, tensor, sizes, rank):
    strides, step = [0] * rank, 1
    for axis in random.sample(range(rank), rank):
        strides[axis] = step
        step *= sizes[axis] + random.choice((0, 0, 1))
    return replace(tensor, strides=tuple(strides))


_TENSOR_FAULTS: dict[str, Any] = {
    "type": lambda random, x, s, n: replace(
        x, data_type=random.choice([*range(14), 14, 15, 255, 2**31])
    ),
    "a dimension more": lambda random, x, s, n: replace(x, sizes=(1, *s), strides=None),
    "a dimension less": lambda random, x, s, n: replace(x, sizes=s[1:], strides=None),
    "a size": lambda random, x, s, n: replace(
        x,
        sizes=_changed(s, at := random.randrange(n), s[at] + random.choice((-1, 1, 1, 2))),
        strides=None,
    ),
    "a size of 0": lambda random, x, s, n: replace(x, sizes=_changed(s, random.randrange(n), 0)),
    "a huge size": lambda random, x, s, n: replace(
        x,
        sizes=_changed(s, random.randrange(n), random.choice((2**16, 2**20, *HUGE))),
        strides=None,
    ),
    "packed strides": lambda random, x, s, n: replace(x, strides=packed_strides(s)),
    "a stride of 0": lambda random, x, s, n: _one_stride(random, x, s, lambda n: n > 1, 0),
    "a stride of 0 for a size of 1": lambda random, x, s, n: _one_stride(
        random, x, s, lambda n: n == 1, 0
    ),
    "strides of 0": lambda random, x, s, n: replace(x, strides=(0,) * n),
    "a huge stride": lambda random, x, s, n: _one_stride(
        random, x, s, lambda n: True, random.choice((2**30, *HUGE))
    ),
    "a huge stride for a size of 1": lambda random, x, s, n: _one_stride(
        random, x, s, lambda n: n == 1, 2**32 - 1
    ),
    "strides of 1": lambda random, x, s, n: replace(x, strides=(1,) * n),
    "random strides": lambda random, x, s, n: replace(
        x, strides=tuple(random.randint(1, 6) for _ in s)
    ),
    "transposed": _transposed,
    "total: less": lambda random, x, s, n: replace(
        x, total=x.total - random.choice((1, 2, 3, 4) if x.total > 4 else (1, 2, 3))
    ),
    "total: not a multiple of 4": lambda random, x, s, n: replace(
        x, total=x.total + random.choice((1, 2, 3))
    ),
    "total: more": lambda random, x, s, n: replace(
        x, total=x.total + random.choice((4, 12, 256, 2**20))
    ),
    "total: huge": lambda random, x, s, n: replace(
        x, total=random.choice((2**32 - 4, 2**32, 2**34 - 4, 2**34, 2**35, 2**40, 2**62, 2**64 - 4))
    ),
    "alignment": lambda random, x, s, n: replace(
        x, alignment=random.choice((1, 2, 4, 8, 16, 32, 256, 2**20, 2**31))
    ),
    "alignment: no power of two": lambda random, x, s, n: replace(
        x, alignment=random.choice((3, 5, 6, 12, 24, 48, 2**32 - 1))
    ),
    "flags": lambda random, x, s, n: replace(x, flags=1),
    "unknown flags": lambda random, x, s, n: replace(x, flags=random.choice((2, 3, 4, 2**31))),
    "null": None,
}


def _fault_of_attribute(random, raw: Raw) -> tuple[str, Raw] | None:
    fields = [field for field in dml.OPERATORS[raw.operator].FIELDS if field.kind is not TENSOR]
    if not fields:
        return None
    field = random.choice(fields)
    value, kind = raw.fields[field.name], field.kind.name
    name = field.name
    if field.kind.entry:
        changed = _array_fault(random, raw, field, list(value))
        return changed and (f"{name}: {changed[0]}", raw.with_fields(**{name: changed[1]}))
    if kind == "bool":
        new: Any = not value
    elif kind in ("uint", "enum"):
        rank = len(tensors(raw)[0][2].sizes or ()) if tensors(raw) else 4
        near = [int(value) + 1, max(0, int(value) - 1), rank, max(0, rank - 1)]
        new = random.choice([0, 1, 2, 3, 4, 5, 8, 13, *near, *HUGE])
    elif kind == "int":
        new = random.choice([0, 1, -1, 5, -5, 100, -100, 2**31 - 1, -(2**31)])
    elif kind == "float":
        new = random.choice(VALUES)
    elif kind == "scalar":
        new = random.choice([0, 1, -1, 100, -5])
    elif kind == "scale_bias":
        new = dml.ScaleBias(
            *random.choice([(1.0, 0.0), (2.0, 1.0), (0.0, 0.0), (math.nan, math.inf)])
        )
    else:
        sizes = [value.width, value.height]
        sizes[random.randrange(2)] = random.choice([0, 1, 2, 3, 5, 2**16, *HUGE])
        new = dml.Size2D(*sizes)
    return name, raw.with_fields(**{name: new})


def _array_fault(random, raw: Raw, field, array: list) -> tuple[str, tuple] | None:
    what = random.choice(["an entry", "an entry", "an entry", "order", "null"])
    kind = field.kind.name
    if not array:
        return None
    at = random.randrange(len(array))
    if kind == "tensor_array":
        if what == "order":
            random.shuffle(array)
            return what, tuple(array)
        if what == "null":
            return "a null tensor", (*array[:at], None, *array[at + 1 :])
        return random.choice(
            [("empty", ()), ("one less", tuple(array[:-1])), ("one more", (*array, array[-1]))]
        )
    if what == "null":
        return None  # it has no count of its own: a null pointer has the length of the others
    if what == "order":
        random.shuffle(array)
    elif kind == "float_array":
        array[at] = random.choice(VALUES)
    elif kind == "int_array":
        array[at] = random.choice([0, 1, -1, 2, -3, 5, 2**16, 2**31 - 1, -(2**31)])
    else:
        array[at] = random.choice([0, 1, 2, 3, 4, array[at] + 1, 2**16, 2**31, *HUGE])
    return what, tuple(array)
