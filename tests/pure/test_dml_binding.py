"""The binding rules that need no device."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import fault

from vkops.dml import BufferTensorDesc, TensorDataType
from vkops.dml.binding_rules import bind_tensor, check_hazards
from vkops.errors import BindingError
from vkops.extent import Extent

TENSOR = BufferTensorDesc(TensorDataType.UINT8, (30,), guaranteed_base_offset_alignment=64)


def test_kept():
    assert bind_tensor("SPLIT", "input_tensor", TENSOR, "x", 200, 64, 136) == Extent("x", 64, 32)


@pytest.mark.parametrize(
    ("offset", "size", "rule"),
    [(64, 137, "[B-04]"), (256, 0, "[B-04]"), (16, 64, "[B-05]"), (64, 31, "[B-06]")],
)
def test_broken(offset, size, rule, message):
    placed = ("x", 200, offset, size)
    error = fault(lambda: bind_tensor("SPLIT", "input_tensor", TENSOR, *placed), BindingError)
    message(error, "SPLIT input_tensor: ", rule)


def test_alignment_is_16_at_least():
    packed = BufferTensorDesc(TensorDataType.UINT8, (30,), guaranteed_base_offset_alignment=0)
    with pytest.raises(BindingError, match=r"got offset 8, must be a multiple of 16 \[B-05\]"):
        bind_tensor("SPLIT", "input_tensor", packed, "x", 200, 8, 64)


def overlap(placed, other):
    (_, a), (_, b) = placed, other
    return a.resource == b.resource and max(a.start, b.start) < min(a.end, b.end)


bound = st.tuples(
    st.text("abc", min_size=1, max_size=3),
    st.builds(Extent, st.sampled_from("xy"), st.integers(0, 30), st.integers(1, 12)),
)


@given(st.lists(bound, max_size=4), st.lists(bound, max_size=4), st.booleans())
def test_hazards_against_all_pairs(inputs, outputs, in_place):
    twice = any(overlap(a, b) for i, a in enumerate(outputs) for b in outputs[:i])
    read = any(overlap(a, b) and not (in_place and a[1] == b[1]) for a in inputs for b in outputs)
    rule = "B-07" if twice else "B-09" if read else None
    if rule is None:
        check_hazards("SPLIT", inputs, outputs, in_place=in_place)
    else:
        with pytest.raises(BindingError, match=rf"\[{rule}\]$"):
            check_hazards("SPLIT", inputs, outputs, in_place=in_place)
