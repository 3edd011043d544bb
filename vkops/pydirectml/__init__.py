"""PyDirectML's names for the operators that move data: ``import vkops.pydirectml as dml``.

Programs differ in two ways from those for PyDirectML: tensors keep their data types, where
PyDirectML binds and returns FLOAT32 only, and a model is initialized once for the same bindings of
inputs that are OWNED_BY_DML, not in each call of ``Device.compute``. Operators that compute are
missing.

>>> import numpy as np
>>> import vkops.pydirectml as dml
>>> device = dml.Device()
>>> builder = dml.GraphBuilder(device)
>>> x = dml.input_tensor(builder, 0, dml.TensorDesc(dml.TensorDataType.FLOAT32, [2, 3]))
>>> y = dml.join([x, x], 1)
>>> model = builder.build(dml.ExecutionFlags.NONE, [y])
>>> (result,) = device.compute(model, [dml.Binding(x, np.arange(6))], [y])
>>> np.array(result)
array([[0., 1., 2., 0., 1., 2.],
       [3., 4., 5., 3., 4., 5.]], dtype=float32)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from vkops import dml
from vkops.dml import (
    ExecutionFlags,
    Expression,
    InterpolationMode,
    PaddingMode,
    Size2D,
    TensorDataType,
    TensorFlags,
    TensorPolicy,
    gather,
    input_tensor,
    padding,
    slice,
)
from vkops.dml import upsample_2d as up_sample_2d
from vkops.pydirectml.model import Binding, Device, GraphBuilder, Model, TensorDesc

__all__ = [
    "Binding",
    "Device",
    "ExecutionFlags",
    "Expression",
    "GraphBuilder",
    "InterpolationMode",
    "Model",
    "PaddingMode",
    "Size2D",
    "TensorDataType",
    "TensorDesc",
    "TensorFlags",
    "TensorPolicy",
    "activation_identity",
    "gather",
    "input_tensor",
    "join",
    "padding",
    "reinterpret",
    "slice",
    "up_sample_2d",
]


def join(input: Sequence[Expression], axis: int) -> Expression:
    """Put together along an axis. Source: pydirectml.join; see ``vkops.dml.join``."""
    return dml.join(input, axis)


def reinterpret(
    input: Expression,
    new_type: TensorDataType,
    new_size: Sequence[int],
    new_strides: Sequence[int] | None,
) -> Expression:
    """The same bytes as another tensor. Source: pydirectml.reinterpret; see ``vkops.dml``."""
    return dml.reinterpret(input, new_type, new_size, new_strides)


def activation_identity(input: Expression) -> Expression:
    """A copy. Source: pydirectml.activation_identity; it makes a node of ELEMENT_WISE_IDENTITY."""
    return dml.identity(input)


def __getattr__(name: str) -> NoReturn:
    message = f"module {__name__!r} has no attribute {name!r}"
    if name in _MISSING.split():
        message += ": vkops only moves data"
    raise AttributeError(message, name=name)


_MISSING = (
    "FusedActivation activation_linear activation_relu activation_sigmoid activation_soft_max "
    "activation_tanh add average_pooling batch_normalization convolution divide gemm gru "
    "local_response_normalization max_pooling mean_variance_normalization multiply subtract "
    "value_scale_2d"
)
"""PyDirectML's names that are missing."""
