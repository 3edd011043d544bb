"""Plans as movements: what is copied, and what a CPU driver or a GPU runs for it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from vkops.explain.facts import Movement, Run, Tensor
from vkops.gpu.dispatch import prepare
from vkops.gpu.memory import Range
from vkops.gpu.table import CPU, GPU
from vkops.plan.algebra import coalesce, optimize
from vkops.plan.graph import Step
from vkops.plan.region import CopyPlan

TUNINGS = {"CPU driver": CPU, "GPU": GPU}


def movements(steps: Iterable[Step], tensors: Mapping[int, Tensor]) -> Iterator[Movement]:
    """What each step copies; tensors that have no name are those between steps."""
    between: dict[int, Tensor] = {}
    for step in steps:
        plan = step.plan
        for number, output in zip(step.makes, plan.outputs, strict=True):
            between[number] = _between(number, output.nbytes, plan.element_size)
        named = {**between, **tensors}
        if plan.outputs:
            yield Movement(
                plan=coalesce(plan),
                moved_size=optimize(plan).element_size,
                inputs=tuple(named[number] for number in step.reads),
                outputs=tuple(named[number] for number in step.makes),
                runs=tuple(_run(plan, driver) for driver in TUNINGS),
            )


def _between(number: int, nbytes: int, size: int) -> Tensor:
    sizes = (nbytes // size,)
    return Tensor(f"between {number}", "", sizes, (1,), size, nbytes, "from step to step")


def _run(plan: CopyPlan, driver: str) -> Run:
    """What is dispatched where all tensors are in one heap."""
    heap: Any = object()  # nothing is read or written
    inputs = [Range(heap, 0, nbytes) for nbytes in plan.inputs]
    outputs = [Range(heap, 0, output.nbytes) for output in plan.outputs]
    dispatches = prepare(plan, TUNINGS[driver]).bind(inputs, outputs)
    kernels = tuple(dispatch.kernel.name for dispatch in dispatches)
    return Run(driver, kernels, sum(dispatch.groups for dispatch in dispatches))
