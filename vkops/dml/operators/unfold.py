"""UNFOLD: the contents of a sliding window at all of its positions, side by side."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod

from vkops.dml import fields
from vkops.dml.operator_bases import UnaryOperatorDesc
from vkops.dml.operator_desc import Size
from vkops.errors import show
from vkops.plan import Fill, Read, Region, View
from vkops.plan.size_limits import LimitError
from vkops.plan.unfolding import Sliding, check_unfold, unfold

_MAX_STEP = 2**16 - 1


@fields.descriptor
class UnfoldOperatorDesc(UnaryOperatorDesc):
    """Copies what a window over the spatial dimensions holds at each of its positions.

    Attributes:
        input_tensor: batch, channels, and 1 to 6 spatial dimensions.
        output_tensor: batch; channels times elements of the window; positions of the window. The
            last two are in row-major order.
        window_sizes: elements of the window, per spatial dimension, at least 1.
        strides: distance between positions of the window, per spatial dimension, from 1 to 65,535.
        dilations: distance between elements of the window, per spatial dimension, up to 65,535; 0
            repeats one element.
        start_padding: zeros before the first element, per spatial dimension, up to 65,535.
        end_padding: zeros after the last element, per spatial dimension, up to 65,535.

    >>> from vkops.dml import BufferTensorDesc, TensorDataType
    >>> source = BufferTensorDesc(TensorDataType.FLOAT32, [1, 1, 5, 5])
    >>> target = BufferTensorDesc(TensorDataType.FLOAT32, [1, 9, 9])
    >>> UnfoldOperatorDesc(source, target, [3, 3], [1, 1], [1, 1], [0, 0], [0, 0]).validate()
    """

    same_data_type = "UNF-01"
    same_dimension_count = ""
    first_dimension = 2

    window_sizes: Sequence[int] = fields.attribute(fields.UINTS, "UNF-02")
    strides: Sequence[int] = fields.attribute(fields.UINTS, "UNF-02")
    dilations: Sequence[int] = fields.attribute(fields.UINTS, "UNF-02")
    start_padding: Sequence[int] = fields.attribute(fields.UINTS, "UNF-02")
    end_padding: Sequence[int] = fields.attribute(fields.UINTS, "UNF-02")

    def _infer(self) -> Sequence[Sequence[Size]]:
        for i, value in enumerate(self.window_sizes):
            self._check_positive(f"window_sizes[{i}]", value, "UNF-02")
        for name in ("strides", "dilations", "start_padding", "end_padding"):
            low = int(name == "strides")
            for i, value in enumerate(getattr(self, name)):
                if not low <= value <= _MAX_STEP:
                    message = f"got {show(value)}, must be {low} to {_MAX_STEP}"
                    self._refuse(f"{name}[{i}]", message, "UNF-02")
        for i, axis in enumerate(self._axes):
            if axis.positions < 1:
                message = (
                    f"the window extends over {show(axis.extent)} elements, must be at most "
                    f"{axis.before + axis.size + axis.after}, input_tensor.sizes[{i + 2}] and its "
                    "padding"
                )
                self._refuse(f"window_sizes[{i}]", message, "UNF-02")
        try:
            check_unfold(self._axes)
        except LimitError as error:
            self._refuse_by_bound("start_padding", str(error), "UNF-07")
        (batch, channels), window = self.input_tensor.sizes[:2], prod(self.window_sizes)
        sizes = {
            "input_tensor.sizes[0]": batch,
            "input_tensor.sizes[1] times the product of window_sizes": channels * window,
            "the product of the window's positions": prod(a.positions for a in self._axes),
        }
        return [[Size(size, origin, "UNF-03") for origin, size in sizes.items()]]

    def _copies(self, source: Read, target: View) -> Iterable[Region]:
        return unfold(source, target, self._axes, Fill(bytes(self.data_type.element_size)))

    @property
    def _axes(self) -> list[Sliding]:
        windows = self.window_sizes, self.strides, self.dilations
        values = self.input_tensor.sizes[2:], *windows, self.start_padding, self.end_padding
        return [Sliding(*each) for each in zip(*values, strict=True)]
