"""The parts of PyDirectML's sample models that move data, with sizes of these models.

Each builds a graph with the functions that the sample model calls, runs it on random data, and
compares the result with NumPy's.
"""

from __future__ import annotations

import sys

import numpy as np

import vkops.pydirectml as dml

FLOAT32, NONE = dml.TensorDataType.FLOAT32, dml.ExecutionFlags.NONE


def candy(image):
    """The image gets a border, its own pixels mirrored; what convolutions leave over is cut off."""
    padded = dml.padding(image, dml.PaddingMode.REFLECTION, 0.0, [0, 0, 40, 40], [0, 0, 40, 40])
    return dml.slice(padded, [0, 0, 2, 2], [1, 3, 300, 300], [1, 1, 1, 1])


def candy_with_numpy(image):
    return np.pad(image, ((0, 0), (0, 0), (40, 40), (40, 40)), "reflect")[:, :, 2:302, 2:302]


def squeezenet(left, right):
    """The two halves of a fire module are joined along the channels."""
    return dml.join([left, right], 1)


def squeezenet_with_numpy(left, right):
    return np.concatenate([left, right], axis=1)


def superres(channels):
    """Nine channels become blocks of 3 x 3 pixels, which the sample does on the host."""
    blocks = dml.reinterpret(channels, FLOAT32, [1, 224, 3, 224, 3], [1, 224, 150528, 1, 50176])
    return dml.reinterpret(dml.activation_identity(blocks), FLOAT32, [1, 1, 672, 672], None)


def superres_with_numpy(channels):
    blocks = channels.reshape(1, 1, 3, 3, 224, 224).transpose((0, 1, 4, 2, 5, 3))
    return blocks.reshape(1, 1, 672, 672)


# The sample, the same with NumPy, and the shapes of the inputs.
SAMPLES = [
    (candy, candy_with_numpy, [(1, 3, 224, 224)]),
    (squeezenet, squeezenet_with_numpy, [(1, 64, 55, 55), (1, 64, 55, 55)]),
    (superres, superres_with_numpy, [(1, 9, 224, 224)]),
]

random = np.random.default_rng(0)
device = dml.Device()
wrong = []
for sample, with_numpy, shapes in SAMPLES:
    data = [random.random(shape, np.float32) for shape in shapes]
    builder = dml.GraphBuilder(device)
    inputs = [
        dml.input_tensor(builder, i, dml.TensorDesc(FLOAT32, shape))
        for i, shape in enumerate(shapes)
    ]
    output = sample(*inputs)
    model = builder.build(NONE, [output])
    bindings = [dml.Binding(x, array) for x, array in zip(inputs, data, strict=True)]
    (result,) = device.compute(model, bindings, [output])
    equal = np.array_equal(np.array(result), with_numpy(*data))
    wrong += [] if equal else [sample.__name__]
    verdict = "equal to the result of NumPy" if equal else "WRONG"
    print(f"{sample.__name__:<12} {list(result.shape)!s:<20} {verdict}")
sys.exit(bool(wrong))
