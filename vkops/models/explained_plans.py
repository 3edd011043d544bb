"""The plans of a model, with the dispatches that a CPU driver and a GPU run for each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from math import prod
from typing import Any

from vkops.extent import Extent
from vkops.gpu.copies import ImageLimits, rule
from vkops.gpu.kernels.choice import VECTOR
from vkops.gpu.kernels.encoding import CPU, GPU
from vkops.gpu.run.encoded_plan import Dispatch, EncodedPlan
from vkops.models.explanation import Dispatches, Movement, Tensor
from vkops.plan.algebra import coalesce, optimize
from vkops.plan.graph import Step
from vkops.plan.region import CopyPlan

LAVAPIPE_IMAGES = ImageLimits(alignment=64, side=16384)

TUNINGS = {
    "CPU driver": replace(CPU, copies=replace(rule.MESA_25, images=LAVAPIPE_IMAGES)),
    "GPU": replace(GPU, copies=rule.GPU),
}
"""The kinds of drivers. The CPU driver is lavapipe of Mesa 25, on two or three threads."""


def movements(steps: Iterable[Step], tensors: Mapping[int, Tensor]) -> Iterator[Movement]:
    """Describe the plan of each step; ``tensors`` are those that have a name, by number."""
    intermediate: dict[int, Tensor] = {}
    for step in steps:
        plan = step.plan
        for number, output in zip(step.makes, plan.outputs, strict=True):
            name, size, nbytes = f"intermediate {number}", plan.element_size, output.nbytes
            note = "from one step to the next"
            intermediate[number] = Tensor(name, "", (nbytes // size,), (1,), size, nbytes, note)
        named = {**intermediate, **tensors}
        if plan.outputs:
            yield Movement(
                plan=coalesce(plan),
                moved_size=optimize(plan).element_size,
                inputs=tuple(named[number] for number in step.reads),
                outputs=tuple(named[number] for number in step.makes),
                dispatches=tuple(_dispatches(plan, driver) for driver in TUNINGS),
            )


class _NoMemory:
    """Stands for memory, and for its device: nothing is read or written."""

    @property
    def device(self) -> _NoMemory:
        """The device."""
        return self

    def image(self, *_: object) -> str:
        """Stand for an image over it, too."""
        return "an image"


def _dispatches(plan: CopyPlan, driver: str) -> Dispatches:
    """Prepare the dispatches and copies for tensors that all lie in one heap."""
    heap: Any = _NoMemory()
    sizes = [*plan.inputs, *(output.nbytes for output in plan.outputs)]
    places = [(Extent(heap, VECTOR * i, n),) for i, n in enumerate(sizes)]
    inputs, outputs = places[: len(plan.inputs)], places[len(plan.inputs) :]
    regions: Counter[str] = Counter()
    kernels, workgroups = [], 0
    for work in EncodedPlan(plan, TUNINGS[driver]).bind(inputs, outputs):
        if isinstance(work, Dispatch):
            kernels.append(work.table.kernel.name)
            workgroups += prod(work.table.groups)
        else:
            regions[work.command] += len(work.regions)
    return Dispatches(driver, tuple(kernels), workgroups, tuple(regions.items()))
