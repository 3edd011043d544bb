"""Random plans with indices: those of the operators of the table, with NumPy's result of each."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import NamedTuple

import numpy as np
from byte_arrays import DTYPES, WORDS, described
from operator_table import OPERATORS, indexed_operators, kinds

from vkops.plan import CopyPlan, Output, View

NAMES = [name for name in indexed_operators() if name != "ONE_HOT"]
"""The operators whose second input has the indices."""

SIZES = (1, 2, 3, 4, 5, 8, 16)


class IndexedCase(NamedTuple):
    """A plan, the bytes of its inputs, the view of its output, and what it must hold."""

    plan: CopyPlan
    inputs: list[np.ndarray]
    target: View
    expected: np.ndarray


def indexed_case(seed, *, element_size=None):
    """Any operator, on strided tensors, with indices that may be anything."""
    random = Random(seed)
    name = random.choice(NAMES)
    reference = [kind for kind in kinds(name) if element_size in (None, DTYPES[kind].itemsize)]
    sizes = tuple(random.choices(SIZES, k=random.randint(1, 3)))
    axis = random.randrange(len(sizes))
    case = OPERATORS[name].make(random, random.choice(reference), sizes, axis)
    plan, tensors = case.desc.lower(), [tensor for _, tensor in case.desc.inputs]
    inputs = case.inputs(random)
    (result,) = case.expect([described(*pair) for pair in zip(tensors, inputs, strict=True)])
    expected = np.ascontiguousarray(result).view(WORDS[plan.element_size])
    return _shifted(random, IndexedCase(plan, inputs, case.desc.output_tensor.view, expected))


def _shifted(random, case):
    """The same with some elements before and behind each tensor, which no descriptor has."""
    (output,) = case.plan.outputs
    indices, size = output.regions[-1].indices, case.plan.element_size
    *shifts, target = (random.choice((0, 0, 1, 4)) for _ in (*case.inputs, output))
    regions = [region.shift(target, shifts[region.input]) for region in output.regions]
    moved = replace(indices, view=indices.view.shift(shifts[indices.input]))
    regions[-1] = replace(regions[-1], indices=moved)

    def room(shift, size, nbytes):
        return shift * size, -(shift * size + nbytes) % 16

    sizes = [4 * indices.words if i == indices.input else size for i in range(len(case.inputs))]
    inputs = [
        np.pad(data, room(shift, size, data.size), constant_values=7)
        for data, shift, size in zip(case.inputs, shifts, sizes, strict=True)
    ]
    nbytes = output.nbytes + sum(room(target, size, output.nbytes))
    plan = CopyPlan(size, tuple(d.size for d in inputs), (Output(nbytes, tuple(regions)),))
    return IndexedCase(plan, inputs, case.target.shift(target), case.expected)
