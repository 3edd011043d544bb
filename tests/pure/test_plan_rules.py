"""The rules of plans that callers make."""

from dataclasses import replace

import numpy as np
import pytest
from refusals import fault
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


NOWHERE = View((2, 3), (0, 0))
INDICES = Indices(1, "i8", View((2, 3), (1, 2)), (Term(0, 2, 3),), "clamp", NOWHERE)
WITHIN = replace(INDICES, input=0, view=NOWHERE, within=range(6))


def with_indices(**fields):
    region = make_region((2, 3), 0, (3, 1), (0, 0, (0, 1)))
    region = replace(region, indices=replace(INDICES, **fields))
    return CopyPlan(2, (12, 64), (Output(12, (region,)),))


BROKEN = [
    (lambda: with_indices(input=2), "outputs[0].regions[0].indices.input [PLAN-03]"),
    (lambda: with_indices(dtype="i2"), "outputs[0].regions[0].indices.dtype [PLAN-07]"),
    (lambda: with_indices(rule="wrap"), "outputs[0].regions[0].indices.rule [PLAN-07]"),
    (lambda: with_indices(terms=()), "outputs[0].regions[0].indices.terms [PLAN-07]"),
    (lambda: with_indices(terms=INDICES.terms * 2, rule="reverse"), "outputs[0].regions[0].indices.terms [PLAN-07]"),
    (lambda: with_indices(terms=(Term(0, 0, 1),)), "outputs[0].regions[0].indices.terms[0].size [PLAN-02]"),
    (lambda: with_indices(terms=(Term(3, 2, 3),)), "outputs[0].regions[0].indices.view.offset [PLAN-03]"),
    (lambda: with_indices(terms=(Term(0, 3, 3),)), "outputs[0].regions[0].source.view.offset [PLAN-03]"),
    (lambda: with_indices(view=View((2, 2), (1, 1))), "outputs[0].regions[0].indices.view.sizes [PLAN-02]"),
    (lambda: with_indices(rule="reverse", position=View((2, 3), (0, 1))), "outputs[0].regions[0].indices.position [PLAN-07]"),
    (lambda: with_indices(within=range(7)), "outputs[0].regions[0].indices.within [PLAN-03]"),
    (lambda: with_indices(limits=range(7)), "outputs[0].regions[0].indices.limits [PLAN-03]"),
    (lambda: with_indices(limits=range(-1, 5)), "outputs[0].regions[0].indices.limits [PLAN-03]"),
    (lambda: with_indices(limits=range(0)), "outputs[0].regions[0].indices.limits [PLAN-07]"),
    (lambda: with_indices(limits=range(0, 6, 2)), "outputs[0].regions[0].indices.limits [PLAN-07]"),
    (lambda: with_indices(limits=range(2**70), within=range(6)), "outputs[0].regions[0].indices.limits [PLAN-07]"),
    (lambda: with_indices(limits=6), "outputs[0].regions[0].indices.limits [PLAN-01]"),
    (lambda: with_indices(limits=range(6), within=range(7)), "outputs[0].regions[0].indices.within [PLAN-03]"),
    (lambda: with_indices(limits=range(6), rule="reverse"), "outputs[0].regions[0].indices.limits [PLAN-07]"),
    (lambda: with_region(indices=WITHIN, source=Read(0, View((2, 3), (0,)))), "outputs[0].regions[0].source.view.strides [PLAN-02]"),
    (lambda: None, "plan [PLAN-01]"),
    (lambda: replace(PLAN, element_size="2"), "element_size [PLAN-01]"),
    (lambda: replace(PLAN, element_size=True), "element_size [PLAN-01]"),
    (lambda: replace(PLAN, element_size=3), "element_size [PLAN-02]"),
    (lambda: replace(PLAN, inputs=[12]), "inputs [PLAN-01]"),
    (lambda: replace(PLAN, inputs=(-1,)), "inputs[0] [PLAN-02]"),
    (lambda: replace(PLAN, outputs=3), "outputs [PLAN-01]"),
    (lambda: replace(PLAN, outputs=("x",)), "outputs[0] [PLAN-01]"),
    (lambda: replace(PLAN, outputs=(Output(-2, ()),)), "outputs[0].nbytes [PLAN-02]"),
    (lambda: replace(PLAN, outputs=(Output(2, None),)), "outputs[0].regions [PLAN-01]"),
    (lambda: replace(PLAN, outputs=(Output(2, (1,)),)), "outputs[0].regions[0] [PLAN-01]"),
    (lambda: with_target(sizes=(2, 0)), "outputs[0].regions[0].target.sizes[1] [PLAN-02]"),
    (lambda: with_target(sizes=(2, 1.5)), "outputs[0].regions[0].target.sizes[1] [PLAN-01]"),
    (lambda: with_target(offset=None), "outputs[0].regions[0].target.offset [PLAN-01]"),
    (lambda: with_target(offset=1), "outputs[0].regions[0].target.offset [PLAN-03]"),
    (lambda: with_target(offset=10**60), "outputs[0].regions[0].target.offset [PLAN-03]"),
    (lambda: with_target(strides=(3,)), "outputs[0].regions[0].target.strides [PLAN-02]"),
    (lambda: with_target(strides=(3, 0)), "outputs[0].regions[0].target.strides[1] [PLAN-05]"),
    (lambda: with_region(source=7), "outputs[0].regions[0].source [PLAN-01]"),
    (lambda: with_region(source=Fill("ab")), "outputs[0].regions[0].source.pattern [PLAN-01]"),
    (lambda: with_region(source=Fill(b"a")), "outputs[0].regions[0].source.pattern [PLAN-04]"),
    (lambda: with_read(1), "outputs[0].regions[0].source.input [PLAN-03]"),
    (lambda: with_read(-1), "outputs[0].regions[0].source.input [PLAN-03]"),
    (lambda: with_read(offset=3), "outputs[0].regions[0].source.view.offset [PLAN-03]"),
    (lambda: with_region(target=((2,), (1,), 0)), "outputs[0].regions[0].target [PLAN-01]"),
    (lambda: with_region(source=Read(0, None)), "outputs[0].regions[0].source.view [PLAN-01]"),
    (lambda: with_read(strides=(0,)), "outputs[0].regions[0].source.view.strides [PLAN-02]"),
    (lambda: with_read(sizes=(2, 2)), "outputs[0].regions[0].source.view.sizes [PLAN-02]"),
    (lambda: replace(PLAN, outputs=(Output(12, (REGION, REGION)),)), "outputs[0].regions [PLAN-05]"),
]  # fmt: skip


@pytest.mark.parametrize(("make", "named"), BROKEN)
def test_broken_plans(make, named, message):
    kind = InvalidDescTypeError if named.endswith("[PLAN-01]") else InvalidDescError
    message(fault(lambda: execute(make(), [BYTES]), kind), *named.split())


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: ([],), "inputs [PLAN-06]"),
        (lambda: (None,), "inputs [PLAN-06]"),
        (lambda: ([BYTES[:8]],), "inputs[0] [PLAN-06]"),
        (lambda: ([np.zeros(24, np.uint8)[::2]],), "inputs[0] [PLAN-06]"),
        (lambda: ([b"abc"],), "inputs[0] [PLAN-06]"),
        (lambda: ([BYTES], [BYTES, BYTES]), "outputs [PLAN-06]"),
        (lambda: ([BYTES], [np.frombuffer(bytes(12), np.uint8)]), "outputs[0] [PLAN-06]"),
    ],
)  # fmt: skip
def test_arrays_that_do_not_fit(make, named, message):
    with pytest.raises(VkopsError) as caught:
        execute(PLAN, *make())
    message(caught.value, *named.split())


def test_a_dimension_of_one_needs_no_stride():
    region = make_region((1, 6), 0, (0, 1), (0, 0, (0, 1)))
    (result,) = execute(
        replace(PLAN, outputs=(Output(12, (region,)),)), [np.arange(12, dtype="u1")]
    )
    np.testing.assert_array_equal(result, np.arange(12))
