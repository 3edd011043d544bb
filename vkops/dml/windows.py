"""Base of SLICE1 and SLICE_GRAD: windows of a tensor, whose elements are read in steps."""

from __future__ import annotations

from collections.abc import Sequence

from vkops.dml.operator_desc import OperatorDesc
from vkops.errors import show
from vkops.plan.view import Ints


class WindowOperatorDesc(OperatorDesc):
    """The attributes that these operators share, and their rules."""

    input_window_offsets: Sequence[int]
    input_window_sizes: Sequence[int]
    input_window_strides: Sequence[int]

    @property
    def _window(self) -> tuple[Ints, Ints]:
        """The element that is taken first along each dimension, and the signed step from it.

        A window whose stride is negative is read from its last element on.
        """
        windows = zip(
            self.input_window_offsets,
            self.input_window_sizes,
            self.input_window_strides,
            strict=True,
        )
        starts = (first if step > 0 else first + size - 1 for first, size, step in windows)
        return tuple(starts), tuple(self.input_window_strides)

    def _check_windows(
        self, whole: str, part: str, rule: str, strides_rule: str, sizes_rule: str
    ) -> None:
        """Check the windows of a tensor, and the sizes of the tensor of the elements in them."""
        sizes = self._sizes_of(whole, rule), self._sizes_of(part, sizes_rule)
        dimensions = zip(
            self.input_window_offsets,
            self.input_window_sizes,
            self.input_window_strides,
            *sizes,
            strict=True,
        )
        for i, (offset, length, stride, available, size) in enumerate(dimensions):
            field = f"input_window_sizes[{i}]"
            if length < 1:
                self._refuse(field, f"got {length}, must be 1 or more", rule)
            if offset + length > available.value:
                message = (
                    f"the window ends at {show(offset + length)} (offset + size), "
                    f"must be at most {available.origin} = {available.value}"
                )
                self._refuse(field, message, rule)
            if stride == 0:
                self._refuse(f"input_window_strides[{i}]", "got 0, must not be 0", strides_rule)
            most = elements_in_window(length, stride)
            if size.value > most:
                message = (
                    f"got {size.value}, must be at most {most} "
                    "(1 + (window size - 1) div the stride's magnitude)"
                )
                self._refuse(size.origin, message, sizes_rule)


def elements_in_window(length: int, stride: int) -> int:
    """How many elements of a window of some length are ``stride`` apart.

    >>> elements_in_window(9, -2)
    5
    """
    return 1 + (length - 1) // abs(stride)
