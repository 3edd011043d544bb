"""Plans whose kernels run in the interpreter."""

import numpy as np

from vkops.debug.host_execution import HostHeap, PlanOutput, PlanRun
from vkops.plan.graph import Pipeline


def plan_run(plan, tuning, inputs):
    """A plan on arrays, with random bytes in its outputs, and the numbers of these."""
    pipeline = Pipeline.of(plan)
    arrays = dict(zip(pipeline.inputs, inputs, strict=True))
    arrays |= {number: constant.array() for number, constant in pipeline.constants.items()}
    random = np.random.default_rng(1)
    for number, output in zip(pipeline.outputs, plan.outputs, strict=True):
        arrays[number] = random.integers(0, 256, output.nbytes, np.uint8)
    tensors = {number: HostHeap.holding(array) for number, array in arrays.items()}
    names = {number: f"input {number}" for number in pipeline.inputs}
    result = {str(n): PlanOutput(n, (), (), np.dtype(np.uint8)) for n in pipeline.outputs}
    return PlanRun(pipeline.steps, tensors, names, result, tuning), pipeline.outputs


def bytes_of(run, number):
    """The bytes of a tensor."""
    heap, start, nbytes = run.tensors[number]
    return heap.data[start : start + nbytes]
