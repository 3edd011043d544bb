"""The plans of a model, with the dispatches that a CPU driver and a GPU run for each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from vkops.explain.explanation import Dispatches, Movement, Tensor
from vkops.gpu.kernels.encoding import CPU, GPU
from vkops.gpu.memory.heaps import Range
from vkops.gpu.run.dispatch import Dispatch, prepare
from vkops.plan.algebra import coalesce, optimize
from vkops.plan.graph import Step
from vkops.plan.region import CopyPlan

TUNINGS = {"CPU driver": CPU, "GPU": GPU}


def movements(steps: Iterable[Step], tensors: Mapping[int, Tensor]) -> Iterator[Movement]:
    """Describe the plan of each step; ``tensors`` are those that have a name, by number."""
    intermediate: dict[int, Tensor] = {}
    for step in steps:
        plan = step.plan
        for number, output in zip(step.makes, plan.outputs, strict=True):
            intermediate[number] = _intermediate(number, output.nbytes, plan.element_size)
        named = {**intermediate, **tensors}
        if plan.outputs:
            yield Movement(
                plan=coalesce(plan),
                moved_size=optimize(plan).element_size,
                inputs=tuple(named[number] for number in step.reads),
                outputs=tuple(named[number] for number in step.makes),
                dispatches=tuple(_dispatches(plan, driver) for driver in TUNINGS),
            )


def _intermediate(number: int, nbytes: int, size: int) -> Tensor:
    sizes = (nbytes // size,)
    return Tensor(
        f"intermediate {number}", "", sizes, (1,), size, nbytes, "from one step to the next"
    )


def _dispatches(plan: CopyPlan, driver: str) -> Dispatches:
    """Prepare the dispatches for tensors that all lie in one heap."""
    heap: Any = object()  # nothing is read or written
    inputs = [Range(heap, 0, nbytes) for nbytes in plan.inputs]
    outputs = [Range(heap, 0, output.nbytes) for output in plan.outputs]
    work = prepare(plan, TUNINGS[driver]).bind(inputs, outputs)
    dispatches = [dispatch for dispatch in work if isinstance(dispatch, Dispatch)]
    kernels = tuple(dispatch.kernel.name for dispatch in dispatches)
    return Dispatches(driver, kernels, sum(dispatch.groups for dispatch in dispatches))
