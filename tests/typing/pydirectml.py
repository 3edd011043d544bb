"""PyDirectML's names: what type checkers say, and what happens."""

import numpy as np
from typing_extensions import assert_type

import vkops
import vkops.pydirectml as dml

device = dml.Device(use_gpu=True, use_debug_layer=False)
builder = dml.GraphBuilder(device)
FLOAT32 = dml.TensorDataType.FLOAT32
desc = dml.TensorDesc(FLOAT32, [1, 1, 2, 3])
owned = dml.TensorDesc(FLOAT32, dml.TensorFlags.OWNED_BY_DML, [1, 1, 2, 3])
others = [
    dml.TensorDesc(FLOAT32, [1, 3, 4, 4], dml.TensorPolicy.interleaved_channel),
    dml.TensorDesc(FLOAT32, [4, 4], [1, 4]),
    dml.TensorDesc(FLOAT32, dml.TensorFlags.NONE, [4], None, 16, 0),
]
x = dml.input_tensor(builder, 0, desc)
w = dml.input_tensor(builder, 1, owned)
i = dml.input_tensor(
    builder, 2, dml.TensorDesc(dml.TensorDataType.INT32, dml.TensorFlags.NONE, [1, 1, 1, 2])
)
assert_type(x, dml.Expression)
y = dml.join([x, w], axis=3)
y = dml.padding(y, dml.PaddingMode.CONSTANT, 0, [0, 0, 1, 1], [0, 0, 1, 1])
y = dml.slice(y, [0, 0, 0, 0], [1, 1, 4, 8], [1, 1, 1, -1])
y = dml.gather(y, i, axis=3, index_dimensions=1)
y = dml.up_sample_2d(y, dml.Size2D(2, 2), dml.InterpolationMode.NEAREST_NEIGHBOR)
y = dml.activation_identity(dml.reinterpret(y, FLOAT32, [8, 4], None))
assert_type(y, dml.Expression)
model = builder.build(dml.ExecutionFlags.NONE, [y])
assert_type(model, dml.Model)
data = np.ones((1, 1, 2, 3), np.float32)
bindings = [dml.Binding(x, data), dml.Binding(w, data), dml.Binding(i, [0, 1])]
assert_type(device.compute(model, bindings, [y]), list[vkops.Tensor])
