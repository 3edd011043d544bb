"""Where vkops differs from DirectML on purpose, or DirectML from its own pages.

Of descriptors, vkops/rules/rules.json says it; docs/directml_differences.md describes results.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from byte_arrays import DTYPES, described

from directml.comparison import Outcome
from vkops import dml
from vkops.rules import RULES, STATUSES

FAULT, BOUND, DECISION = "fault of DirectML", "bound of vkops", "decision"


@dataclass(frozen=True)
class Difference:
    """A difference with a name.

    Attributes:
        name: what differs.
        kind: FAULT, BOUND or DECISION.
        explains: whether an outcome that is not the same is of this kind.
    """

    name: str
    kind: str
    explains: Callable[[Outcome], bool]


def _executed(*operators: str) -> Callable[[Callable[[Any, Outcome], bool]], Any]:
    """Make a function of a descriptor and an outcome one of outcomes with bytes of operators."""

    def decorate(matches: Callable[[Any, Outcome], bool]) -> Callable[[Outcome], bool]:
        def explains(outcome: Outcome) -> bool:
            if not outcome.outputs or outcome.raw is None:
                return False
            of_these = not operators or outcome.operator in operators
            return of_these and matches(outcome.raw.desc(), outcome)

        return explains

    return decorate


@_executed()
def _quiet_nan(desc: Any, outcome: Outcome) -> bool:
    """All that differs are signalling NaN of FLOAT16, which DirectML makes quiet ones."""
    if desc.data_type is not dml.TensorDataType.FLOAT16:
        return False
    for (_, tensor), (theirs, ours) in zip(desc.outputs, outcome.outputs, strict=True):
        a, b = (described(tensor, np.frombuffer(each, "u1")).view("u2") for each in (theirs, ours))
        signalling = (b & 0x7E00 == 0x7C00) & (b & 0x1FF != 0)
        if not np.array_equal(
            np.where(signalling, b | 0x200, b), np.where(signalling, a | 0x200, a)
        ):
            return False
    return True


@_executed("RESAMPLE", "RESAMPLE1")
def _eight_bits(desc: Any, outcome: Outcome) -> bool:
    return desc.data_type.size_bits == 8


@_executed("ONE_HOT")
def _values(desc: Any, outcome: Outcome) -> bool:
    packed = dml.BufferTensorDesc(desc.data_type, desc.values_tensor.sizes).effective_strides
    return desc.values_tensor.effective_strides != packed or prod(desc.values_tensor.sizes) > 2


@_executed("ONE_HOT")
def _low_bits(desc: Any, outcome: Outcome) -> bool:
    if desc.indices_tensor.data_type is not dml.TensorDataType.INT64:
        return False
    return bool((_array(outcome, 0, desc.indices_tensor) >= 2**32).any())


@_executed("GATHER")
def _nine_dimensions(desc: Any, outcome: Outcome) -> bool:
    return len(desc.input_tensor.sizes) - 1 - desc.axis + desc.index_dimensions > 8


@_executed("REVERSE_SUBSEQUENCES")
def _long_sequences(desc: Any, outcome: Outcome) -> bool:
    lengths = _array(outcome, 1, desc.sequence_lengths_tensor)
    return bool((lengths > desc.input_tensor.sizes[desc.axis]).any())


@_executed("SLICE1", "SLICE_GRAD")
def _part_of_a_window(desc: Any, outcome: Outcome) -> bool:
    """A window is all of a dimension, of which a part is taken; DirectML joins it to the outer one."""
    sizes = [tensor.sizes for _, tensor in (*desc.inputs, *desc.outputs)]
    whole, part = sizes if desc.operator == "SLICE1" else sizes[::-1]
    axes = zip(whole, desc.input_window_sizes, desc.input_window_strides, part, strict=True)
    return any(n == window > size and stride == 1 for n, window, stride, size in axes)


@_executed("SCATTER", "SCATTER_ND")
def _written_twice(desc: Any, outcome: Outcome) -> bool:
    """Where the results differ, both have an update; an index out of range addresses others' too."""
    size = desc.data_type.element_size
    theirs, ours = (
        np.frombuffer(each[: len(each) // size * size], f"u{size}") for each in outcome.outputs[0]
    )
    updates = _array(outcome, 2, desc.updates_tensor).view(theirs.dtype)
    differ = theirs != ours
    return bool(np.isin(theirs[differ], updates).all() and np.isin(ours[differ], updates).all())


@_executed("SCATTER_ND")
def _fifth_dimension(desc: Any, outcome: Outcome) -> bool:
    return len(desc.updates_tensor.sizes) > 4 >= len(desc.input_tensor.sizes)


def _array(outcome: Outcome, number: int, tensor: dml.BufferTensorDesc) -> np.ndarray:
    assert tensor.data_type in DTYPES
    return described(tensor, np.frombuffer(outcome.inputs[number], "u1"))


@_executed("SLICE_GRAD")
def _before_the_first(desc: Any, outcome: Outcome) -> bool:
    """A window that is too small; elements before a row are written to the one before."""
    first = []
    for axis, count in enumerate(desc.input_gradient_tensor.sizes):
        offset, stride = desc.input_window_offsets[axis], desc.input_window_strides[axis]
        if stride < 0:
            first.append(offset + desc.input_window_sizes[axis] - 1 + (count - 1) * stride)
    return min(first, default=0) < 0


def _doubles(outcome: Outcome) -> bool:
    """Wine's Direct3D has none; DirectML refuses to compile UNFOLD of FLOAT64."""
    if outcome.operator != "UNFOLD" or outcome.raw is None:
        return False
    return bool(outcome.raw.fields["input_tensor"].data_type == dml.TensorDataType.FLOAT64)


def _ranks_of_join(outcome: Outcome) -> bool:
    return (outcome.operator, outcome.level) == ("JOIN", "3_1") and outcome.error is not None


DIFFERENCES = [
    Difference("JOIN of other ranks than 4 and 5 at 3_1", DECISION, _ranks_of_join),
    Difference("signalling NaN of FLOAT16 become quiet", FAULT, _quiet_nan),
    Difference("RESAMPLE and RESAMPLE1 of 8 bits round down", FAULT, _eight_bits),
    Difference("ONE_HOT reads strided values elsewhere", FAULT, _values),
    Difference("ONE_HOT reads 32 bits of INT64", FAULT, _low_bits),
    Difference("GATHER of more than 8 dimensions", FAULT, _nine_dimensions),
    Difference("REVERSE_SUBSEQUENCES longer than the axis", FAULT, _long_sequences),
    Difference("SLICE1 and SLICE_GRAD of a part of a window", FAULT, _part_of_a_window),
    Difference("SLICE_GRAD of elements before a row", FAULT, _before_the_first),
    Difference("UNFOLD of FLOAT64 needs a device with doubles", FAULT, _doubles),
    Difference("SCATTER_ND of 5 dimensions in a tensor of 4", FAULT, _fifth_dimension),
    Difference("which of several updates stays", DECISION, _written_twice),
]


OF_RULES = {
    rule.id: Difference(f"{rule.id}, which is {STATUSES[rule.status][1]}", kind, lambda _: False)
    for rule in RULES.values()
    if (kind := {"choice": DECISION, "bound": BOUND, "fault": FAULT}.get(rule.status))
}
"""Descriptors that DirectML accepts, and vkops refuses by a rule that says so."""


def name_of(outcome: Outcome) -> Difference | None:
    """The difference that explains an outcome that is not the same."""
    if outcome.error is not None and outcome.error.rule in OF_RULES:
        return OF_RULES[outcome.error.rule]
    return next((each for each in DIFFERENCES if each.explains(outcome)), None)
