"""Graphs of DirectML's operators without a device."""

import numpy as np

from vkops.dml import BufferTensorDesc, TensorDataType
from vkops.plan import execute


def tensor(*sizes, kind=TensorDataType.FLOAT32, **more):
    return BufferTensorDesc(kind, sizes, **more)


def run(desc, *inputs):
    """What a graph makes of arrays, step by step with NumPy: bytes."""
    pipeline = desc.pipeline
    held = dict(zip(pipeline.inputs, (x.reshape(-1).view(np.uint8) for x in inputs), strict=True))
    for step in pipeline.steps:
        outputs = execute(step.plan, [held[number] for number in step.reads])
        held.update(zip(step.makes, outputs, strict=True))
    return [held[number] for number in pipeline.outputs]
