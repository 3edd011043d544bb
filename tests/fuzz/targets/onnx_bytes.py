"""ONNX models: the bytes of random ones, changed."""

import math

import numpy as np
import onnx
from onnx_graphs import random_model

from fuzz import target
from fuzz.mutate import mutated
from fuzz.target import EXAMPLES
from vkops.onnx import Model
from vkops.onnx.element_types import STRING
from vkops.onnx.onnx_session import lowered

MODELS = 60
MAX_ELEMENTS = 1 << 16  # of an input: a model may ask for any shape, and is given no more


class Target(target.Target):
    suffix = ".onnx"

    def __init__(self):
        self.models = [proto.SerializeToString() for proto in bases()]

    def make(self, random):
        data = random.choice(self.models)
        if random.random() < 0.3:
            return mutated(random, data, self.models)
        # In place, as lengths come before what they are of.
        raw = bytearray(data)
        for _ in range(random.choice((1, 1, 2, 4))):
            at = random.randrange(len(raw))
            raw[at] = random.choice((random.randrange(256), random.randrange(20), raw[at] ^ 1))
        return bytes(raw)

    def check(self, data):
        model = Model(data, check=len(data) % 2 == 0)
        lowered(model, inputs_of(model))


def bases():
    """Models to change."""
    random = (random_model(seed).model for seed in range(MODELS))
    return [onnx.load(EXAMPLES / "channel_shuffle.onnx"), *random]


def inputs_of(model):
    """The inputs of a model, as it declares them."""
    return {entry.name: elements(entry) for entry in model.required_inputs}


def elements(entry):
    """What fits what is declared, or is small enough to be had."""
    shape = tuple(n if isinstance(n, int) else 2 for n in entry.shape or ())
    while math.prod(shape) > MAX_ELEMENTS:
        shape = shape[1:]
    dtype = np.dtype(np.float32) if entry.dtype is None else entry.dtype
    count = math.prod(shape)
    if dtype == STRING:
        array = np.array([str(i) for i in range(count)], STRING).reshape(shape)
    else:
        array = (np.arange(count) % 5).astype(dtype).reshape(shape)
    return [array, array] if entry.kind == "sequence" else array
