"""Plans: what type checkers say, and what happens."""

import numpy as np
import numpy.typing as npt
from typing_extensions import assert_type

from vkops import plan

region = plan.Region(plan.View((6, 2), (2, 1)), plan.Read(0, plan.View((6, 2), (1, 6))))
assert_type(region.sizes, tuple[int, ...])
assert_type(region.target, plan.View)
assert_type(region.source_view, plan.View)
assert_type(region.input, int | None)
assert_type(region.source, plan.Read | plan.Fill)
read = plan.Read(0, plan.View((1,), (1,)))
assert_type(read.input, int)
assert_type(read.view, plan.View)
assert_type(plan.Fill(b"\0\0").pattern, bytes)
term = plan.Term(0, 3, 2)
assert_type(term.size, int)
indices = plan.Indices(0, "i4", plan.View((1,), (1,)), (term,), "clamp", plan.View((1,), (0,)))
assert_type(indices.terms, tuple[plan.Term, ...])
assert_type(region.indices, plan.Indices | None)
progression = plan.Progression("f4", 0, 0.5, 3)
assert_type(progression.nbytes, int)
output = plan.Output(48, (region,))
assert_type(output.nbytes, int)
assert_type(output.regions, tuple[plan.Region, ...])
copies = plan.CopyPlan(4, (48,), (output,))
assert_type(copies.element_size, int)
assert_type(copies.inputs, tuple[int, ...])
assert_type(copies.constants, tuple[plan.Progression, ...])
assert_type(copies.outputs, tuple[plan.Output, ...])

assert_type(plan.validate(copies), None)
data = np.zeros(48, np.uint8)
assert_type(plan.execute(copies, [data]), list[npt.NDArray[np.uint8]])
assert_type(plan.execute(copies, [data], [np.zeros(48, np.uint8)]), list[npt.NDArray[np.uint8]])

step = plan.Step(copies, (0,), (1,))
assert_type(step.plan, plan.CopyPlan)
assert_type(step.reads, tuple[int, ...])
assert_type(step.makes, tuple[int, ...])
view = plan.View((2, 6), (6, 1), 0)
assert_type(view.sizes, tuple[int, ...])
assert_type(view.strides, tuple[int, ...])
assert_type(view.offset, int)
pipeline = plan.Pipeline.of(copies)
assert_type(pipeline, plan.Pipeline)
assert_type(pipeline.steps, tuple[plan.Step, ...])
assert_type(pipeline.inputs, tuple[int, ...])
assert_type(pipeline.outputs, tuple[int, ...])
assert_type(pipeline.plan, plan.CopyPlan)
assert_type(pipeline.intermediates, dict[int, int])
