"""The rules of plans that callers make."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from regions import make_region

from vkops.errors import InvalidDescError, InvalidDescTypeError, VkopsError
from vkops.plan import CopyPlan, Fill, Indices, Output, Read, Term, View, execute

REGION = make_region((2, 3), 0, (3, 1), (0, 5, (-3, -1)))
PLAN = CopyPlan(2, (12,), (Output(12, (REGION,)),))
BYTES = np.zeros(12, np.uint8)


def with_region(**fields):
    return replace(PLAN, outputs=(Output(12, (replace(REGION, **fields),)),))


def with_target(**fields):
    return with_region(target=REGION.target._replace(**fields))


def with_read(input=0, **fields):
    return with_region(source=Read(input, REGION.source.view._replace(**fields)))


R = "outputs[0].regions[0]"
NOWHERE = View((2, 3), (0, 0))
INDICES = Indices(1, "i8", View((2, 3), (1, 2)), (Term(0, 2, 3),), "clamp", NOWHERE)


def with_indices(**fields):
    region = make_region((2, 3), 0, (3, 1), (0, 0, (0, 1)))
    region = replace(region, indices=replace(INDICES, **fields))
    return CopyPlan(2, (12, 64), (Output(12, (region,)),))


BROKEN = [
    (with_indices(input=2), f"{R}.indices.input: got 2, must be 0 to 1 [PLAN-03]"),
    (with_indices(dtype="i2"), f"{R}.indices.dtype: got 'i2', must be one of i4, i8, u4, u8 [PLAN-07]"),
    (with_indices(rule="wrap"), f"{R}.indices.rule: got 'wrap', must be one of clamp, skip, reverse [PLAN-07]"),
    (with_indices(terms=()), f"{R}.indices.terms: got 0 terms, must be 1 to 8 [PLAN-07]"),
    (with_indices(terms=INDICES.terms * 2, rule="reverse"), f"{R}.indices.terms: got 2 terms, must be 1 to 1 [PLAN-07]"),
    (with_indices(terms=(Term(0, 0, 1),)), f"{R}.indices.terms[0].size: got 0, must be at least 1 [PLAN-02]"),
    (with_indices(terms=(Term(3, 2, 3),)), f"{R}.indices.view.offset: reaches elements 3 to 8, there are 8 [PLAN-03]"),
    (with_indices(terms=(Term(0, 3, 3),)), f"{R}.source.view.offset: reaches elements 0 to 8, there are 6 [PLAN-03]"),
    (with_indices(view=View((2, 2), (1, 1))), f"{R}.indices.view.sizes: got (2, 2), must equal target.sizes = (2, 3) [PLAN-02]"),
    (with_indices(rule="reverse", position=View((2, 3), (0, 1))), f"{R}.indices.position: reaches positions 0 to 2, must be 0 to 1 [PLAN-07]"),
    (with_indices(within=range(7)), f"{R}.indices.within: got range(0, 7), must be within range(0, 6) [PLAN-03]"),
    (None, "plan: got None, must be a CopyPlan [PLAN-01]"),
    (replace(PLAN, element_size="2"), "element_size: got '2', must be an int [PLAN-01]"),
    (replace(PLAN, element_size=True), "element_size: got True, must be an int [PLAN-01]"),
    (replace(PLAN, element_size=3), "element_size: got 3, must be 1, 2, 4, 8 or 16 [PLAN-02]"),
    (replace(PLAN, inputs=[12]), "inputs: got [12], must be a tuple [PLAN-01]"),
    (replace(PLAN, inputs=(-1,)), "inputs[0]: got -1, must be at least 0 [PLAN-02]"),
    (replace(PLAN, outputs=3), "outputs: got 3, must be a tuple [PLAN-01]"),
    (replace(PLAN, outputs=("x",)), "outputs[0]: got 'x', must be an Output [PLAN-01]"),
    (replace(PLAN, outputs=(Output(-2, ()),)), "outputs[0].nbytes: got -2, must be at least 0 [PLAN-02]"),
    (replace(PLAN, outputs=(Output(2, None),)), "outputs[0].regions: got None, must be a tuple [PLAN-01]"),
    (replace(PLAN, outputs=(Output(2, (1,)),)), f"{R}: got 1, must be a Region [PLAN-01]"),
    (with_target(sizes=(2, 0)), f"{R}.target.sizes[1]: got 0, must be at least 1 [PLAN-02]"),
    (with_target(sizes=(2, -1)), f"{R}.target.sizes[1]: got -1, must be at least 1 [PLAN-02]"),
    (with_target(sizes=(2, 1.5)), f"{R}.target.sizes[1]: got 1.5, must be an int [PLAN-01]"),
    (with_target(offset=None), f"{R}.target.offset: got None, must be an int [PLAN-01]"),
    (with_target(offset=1), f"{R}.target.offset: reaches elements 1 to 6, there are 6 [PLAN-03]"),
    (with_target(offset=10**60), f"{R}.target.offset: reaches elements an integer of 200 bits to an integer of 200 bits, there are 6 [PLAN-03]"),
    (with_target(strides=(3,)), f"{R}.target.strides: got 1 numbers, must be 2, one for each size [PLAN-02]"),
    (with_target(strides=(3, 0)), f"{R}.target.strides[1]: got 0, must be another number [PLAN-05]"),
    (with_region(source=7), f"{R}.source: got 7, must be a Read or a Fill [PLAN-01]"),
    (with_region(source=Fill("ab")), f"{R}.source.pattern: got 'ab', must be bytes [PLAN-01]"),
    (with_region(source=Fill(b"a")), f"{R}.source.pattern: got 1 bytes, must be 2 [PLAN-04]"),
    (with_read(1), f"{R}.source.input: got 1, must be 0 to 0 [PLAN-03]"),
    (with_read(-1), f"{R}.source.input: got -1, must be 0 to 0 [PLAN-03]"),
    (with_read(offset=3), f"{R}.source.view.offset: reaches elements -2 to 3, there are 6 [PLAN-03]"),
    (with_region(target=((2,), (1,), 0)), f"{R}.target: got ((2,), (1,), 0), must be a View [PLAN-01]"),
    (with_region(source=Read(0, None)), f"{R}.source.view: got None, must be a View [PLAN-01]"),
    (with_read(strides=(0,)), f"{R}.source.view.strides: got 1 numbers, must be 2, one for each size [PLAN-02]"),
    (with_read(sizes=(2, 2)), f"{R}.source.view.sizes: got (2, 2), must equal target.sizes = (2, 3) [PLAN-02]"),
    (replace(PLAN, inputs=()), f"{R}.source.input: got 0, there are no inputs [PLAN-03]"),
    (replace(PLAN, outputs=(Output(12, (REGION, REGION)),)), "outputs[0].regions: write 12 elements, the output has 6 [PLAN-05]"),
]  # fmt: skip


@pytest.mark.parametrize(("plan", "message"), BROKEN)
def test_broken_plans(plan, message):
    with pytest.raises(InvalidDescError) as caught:
        execute(plan, [BYTES])
    assert str(caught.value) == message
    assert isinstance(caught.value, InvalidDescTypeError) == message.endswith("[PLAN-01]")


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        (([],), "inputs: got 0 arrays, must be a list of 1 arrays [PLAN-06]"),
        ((None,), "inputs: got None, must be a list of 1 arrays [PLAN-06]"),
        (([BYTES[:8]],), "inputs[0]: got 8 bytes, must be 12 or more, contiguous [PLAN-06]"),
        (([np.zeros(24, np.uint8)[::2]],), "inputs[0]: got 12 bytes, must be 12 or more, contiguous [PLAN-06]"),
        (([b"abc"],), "inputs[0]: got b'abc', must be a 1-D array of uint8 [PLAN-06]"),
        (([BYTES], [BYTES, BYTES]), "outputs: got 2 arrays, must be a list of 1 arrays [PLAN-06]"),
        (([BYTES], [np.frombuffer(bytes(12), np.uint8)]), "outputs[0]: is read-only, must be writeable [PLAN-06]"),
    ],
)  # fmt: skip
def test_arrays_that_do_not_fit(arrays, message):
    with pytest.raises(VkopsError) as caught:
        execute(PLAN, *arrays)
    assert str(caught.value) == message
