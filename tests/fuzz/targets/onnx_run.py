"""ONNX models that run: their outputs, against what the host works out when it knows all inputs."""

import math

from onnx_models import same, types_of, values_of

from fuzz import target
from fuzz.choices import Choices
from fuzz.targets.onnx_bytes import bases, inputs_of
from fuzz.targets.onnx_nodes import changed
from vkops.onnx import Model, Session

MAX_ELEMENTS = 1 << 18


class Target(target.Target):
    def __init__(self):
        self.device = target.opened()
        self.bases = bases()

    def check(self, data):
        choices = Choices(data)
        check = choices.one_in(2)
        proto = choices.pick(self.bases) if choices.one_in(4) else changed(choices, self.bases)
        model = Model(proto, check=check)
        inputs = inputs_of(model)
        # A device has no room for anything that the host has no room for.
        lowering = model.lower(types_of(inputs), inputs)
        tensors = [lowering[number] for number in range(len(lowering._tensors))]
        if any(math.prod(tensor.shape) > MAX_ELEMENTS for tensor in tensors):
            return
        expected = [values_of(lowering, output) for output in lowering.outputs]
        result = Session(model, self.device).run(inputs)
        same(result, expected)
