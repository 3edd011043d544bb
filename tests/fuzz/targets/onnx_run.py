"""ONNX models that run: their outputs, against what the host works out when it knows all inputs."""

import math

import numpy as np
from onnx_models import values_of

from fuzz import target
from fuzz.choices import Choices
from fuzz.device import opened
from fuzz.targets.onnx_bytes import elements, form
from fuzz.targets.onnx_nodes import bases, changed
from vkops.onnx import Model, Session

MAX_ELEMENTS = 1 << 18


class Target(target.Target):
    name = "onnx_run"
    share = 7

    def __init__(self):
        self.device = opened()
        self.bases = bases()

    def check(self, data):
        choices = Choices(data)
        check = choices.one_in(2)
        proto = choices.pick(self.bases) if choices.one_in(4) else changed(choices, self.bases)
        model = Model(proto, check=check)
        inputs = {entry.name: elements(entry) for entry in model.required_inputs}
        # A device has no room for anything that the host has no room for.
        lowering = model.lower({name: form(value) for name, value in inputs.items()}, inputs)
        tensors = [lowering[number] for number in range(len(lowering._tensors))]
        if any(math.prod(tensor.shape) > MAX_ELEMENTS for tensor in tensors):
            return
        expected = [values_of(lowering, output) for output in lowering.outputs]
        made = Session(model, self.device).run(inputs)
        for output, got, wanted in zip(model.outputs, made, expected, strict=True):
            target.require(_same(got, wanted), f"{output.name!r}: got {got}, must be {wanted}")


def _same(got, wanted):
    if isinstance(wanted, list):
        return len(got) == len(wanted) and all(map(_same, got, wanted))
    if wanted is None:
        return got is None
    got = np.asarray(got)
    if (got.dtype, got.shape) != (wanted.dtype, wanted.shape):
        return False
    if got.dtype == object:
        return got.tolist() == wanted.tolist()
    return got.tobytes() == wanted.tobytes()
