"""Layouts of the tensors that a graph makes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from vkops.dml.enums import TensorDataType
from vkops.dml.tensor_desc import BufferTensorDesc
from vkops.plan.view import Ints, packed_strides

Policy = Callable[[TensorDataType, Ints], BufferTensorDesc]
"""Function from the data type and sizes of an output to its descriptor."""


class TensorPolicy:
    """The layouts of DirectMLX, for ``vkops.dml.Graph``; or use others like these.

    Source: dml::TensorPolicy.

    >>> from vkops import dml
    >>> graph = dml.Graph(dml.TensorPolicy.interleaved_channel)
    >>> x = graph.input(dml.BufferTensorDesc(dml.TensorDataType.FLOAT32, [1, 3, 4, 5]))
    >>> dml.identity(x).desc.strides
    (60, 1, 15, 3)
    """

    @staticmethod
    def default(data_type: TensorDataType, sizes: Sequence[int]) -> BufferTensorDesc:
        """A tensor without gaps, in the order of its dimensions.

        Source: dml::TensorPolicy::Default.
        """
        return BufferTensorDesc(data_type, sizes)

    @staticmethod
    def interleaved_channel(data_type: TensorDataType, sizes: Sequence[int]) -> BufferTensorDesc:
        """A tensor without gaps whose second dimension is innermost, such as NHWC for NCHW.

        Source: dml::TensorPolicy::InterleavedChannel.
        """
        order = [0, *range(2, len(sizes)), 1][: len(sizes)]
        inner = packed_strides(tuple(sizes[i] for i in order))
        strides = [inner[order.index(i)] for i in range(len(sizes))]
        return BufferTensorDesc(data_type, sizes, strides)
