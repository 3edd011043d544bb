"""Plans: what type checkers say, and what happens."""

import numpy as np
import numpy.typing as npt
from typing_extensions import assert_type

from vkops import plan

region = plan.Region(plan.View((6, 2), (2, 1)), plan.Read(0, plan.View((6, 2), (1, 6))))
assert_type(region.input, int | None)
assert_type(region.source, plan.Read | plan.Fill)
assert_type(region.indices, plan.Indices | None)
assert_type(plan.Fill(b"\0\0").pattern, bytes)
read = plan.Read(0, plan.View((1,), (1,)))
term = plan.Term(0, 3, 2)
indices = plan.Indices(0, "i4", plan.View((1,), (1,)), (term,), "clamp", plan.View((1,), (0,)))
assert_type(indices.terms, tuple[plan.Term, ...])
progression = plan.Progression("f4", 0, 0.5, 3)
output = plan.Output(48, (region,))
assert_type(output.regions, tuple[plan.Region, ...])
copies = plan.CopyPlan(4, (48,), (output,))
assert_type(copies.constants, tuple[plan.Progression, ...])
assert_type(copies.outputs, tuple[plan.Output, ...])

assert_type(plan.validate(copies), None)
data = np.zeros(48, np.uint8)
assert_type(plan.execute(copies, [data]), list[npt.NDArray[np.uint8]])
assert_type(plan.execute(copies, [data], [np.zeros(48, np.uint8)]), list[npt.NDArray[np.uint8]])

step = plan.Step(copies, (0,), (1,))
view = plan.View((2, 6), (6, 1), 0)
pipeline = plan.Pipeline.of(copies)
assert_type(pipeline, plan.Pipeline)
assert_type(pipeline.steps, tuple[plan.Step, ...])
assert_type(pipeline.intermediates, dict[int, int])
for made in (step.plan, pipeline.plan):
    assert_type(made, plan.CopyPlan)
for found in (region.target, region.source_view, read.view):
    assert_type(found, plan.View)
for numbers in (
    region.sizes, view.sizes, view.strides, copies.inputs,
    step.reads, step.makes, pipeline.inputs, pipeline.outputs,
):  # fmt: skip
    assert_type(numbers, tuple[int, ...])
for number in (
    read.input, term.size, progression.nbytes, output.nbytes, copies.element_size, view.offset,
):  # fmt: skip
    assert_type(number, int)
