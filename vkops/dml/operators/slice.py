"""SLICE, SLICE1 and SLICE_GRAD: windows of a tensor, read or written in steps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from vkops.dml import fields
from vkops.dml.operator_bases import UnaryOperatorDesc
from vkops.dml.operator_desc import OperatorDesc, Size
from vkops.dml.tensor_desc import BufferTensorDesc
from vkops.errors import show
from vkops.plan import Fill, Read, Region, View
from vkops.plan.movements import elements_in_window, fill, window, write_window
from vkops.plan.view import Ints

INT32_MAX = 2**31 - 1


@fields.descriptor
class SliceOperatorDesc(UnaryOperatorDesc):
    """Copies ``sizes`` elements, from ``offsets`` on, ``strides`` apart.

    Attributes:
        input_tensor: the tensor to copy from.
        output_tensor: the result, of ``sizes``.
        offsets: first element to copy, per dimension.
        sizes: number of elements copied, per dimension (SLICE1 counts the window instead).
        strides: distance between copied elements, per dimension, from 1 to 2**31 - 1; in elements
            of the tensor's dimension, not of memory.

    >>> from vkops.dml import BufferTensorDesc, TensorDataType
    >>> source, target = (BufferTensorDesc(TensorDataType.INT32, [n]) for n in (9, 3))
    >>> SliceOperatorDesc(source, target, offsets=[1], sizes=[3], strides=[3]).validate()
    """

    same_data_type = "SLICE-02"
    same_dimension_count = "SLICE-01"

    offsets: Sequence[int] = fields.attribute(fields.UINTS, "SLICE-05")
    sizes: Sequence[int] = fields.attribute(fields.UINTS, "SLICE-03")
    strides: Sequence[int] = fields.attribute(fields.UINTS, "SLICE-04")

    def _infer(self) -> Sequence[Sequence[Size]]:
        windows = zip(self.offsets, self.sizes, self.strides, strict=True)
        tensors = zip(self.input_tensor.sizes, self.output_tensor.sizes, strict=True)
        dimensions = enumerate(zip(windows, tensors, strict=True))
        for i, ((offset, size, stride), (available, expected)) in dimensions:
            if size != expected:
                message = f"got {show(size)}, must equal output_tensor.sizes[{i}] = {expected}"
                self._refuse(f"sizes[{i}]", message, "SLICE-03")
            if not 1 <= stride <= INT32_MAX:
                message = f"got {show(stride)}, must be 1 to {INT32_MAX}"
                self._refuse(f"strides[{i}]", message, "SLICE-04")
            last = offset + (size - 1) * stride
            if last >= available:
                message = (
                    f"the last element copied is {show(last)} (offset + (size - 1) * stride), "
                    f"must be below input_tensor.sizes[{i}] = {available}"
                )
                self._refuse(f"offsets[{i}]", message, "SLICE-05")
        return [Size.each(self.sizes, "sizes[{0}]", "SLICE-03")]

    def _copies(self, source: Read, target: View) -> list[Region]:
        return [window(source, target, tuple(self.offsets), tuple(self.strides))]


class _WindowDesc(OperatorDesc):
    """Base of operators with a window: their attributes and rules."""

    input_window_offsets: Sequence[int]
    input_window_sizes: Sequence[int]
    input_window_strides: Sequence[int]

    @property
    def _windows(self) -> Sequence[tuple[int, int, int]]:
        """The offset, the size and the stride along each dimension."""
        sizes, strides = self.input_window_sizes, self.input_window_strides
        return list(zip(self.input_window_offsets, sizes, strides, strict=True))

    @property
    def _window(self) -> tuple[Ints, Ints]:
        """Return the first element taken along each dimension, and the signed step to the next.

        A window whose stride is negative is read from its last element on.
        """
        starts = (first if step > 0 else first + size - 1 for first, size, step in self._windows)
        return tuple(starts), tuple(self.input_window_strides)

    def _check_windows(self, whole: str, rule: str, strides_rule: str) -> None:
        """Check that the windows are within a tensor, and that strides are not 0."""
        dimensions = zip(self._windows, self._sizes_of(whole, rule), strict=True)
        for i, ((offset, length, stride), available) in enumerate(dimensions):
            if offset + length > available.value:
                message = (
                    f"the window ends at {show(offset + length)} (offset + size), "
                    f"must be at most {available.origin} = {available.value}"
                )
                self._refuse(f"input_window_sizes[{i}]", message, rule)
            if stride == 0:
                self._refuse(f"input_window_strides[{i}]", "got 0, must not be 0", strides_rule)


@fields.descriptor
class Slice1OperatorDesc(UnaryOperatorDesc, _WindowDesc):
    """Copies elements of a window, ``input_window_strides`` apart; negative ones read backwards.

    A positive stride starts at the window's first element, a negative one at its last. The output
    may be smaller than what the window holds: fewer elements are taken.

    Attributes:
        input_tensor: the tensor to copy from.
        output_tensor: the result.
        input_window_offsets: first element of the window, per dimension.
        input_window_sizes: extent of the window, per dimension (SLICE counts copied elements).
        input_window_strides: signed distance between copied elements, per dimension, not 0.

    >>> from vkops.dml import BufferTensorDesc, TensorDataType
    >>> tensor = BufferTensorDesc(TensorDataType.INT32, [9])
    >>> reverse = Slice1OperatorDesc(tensor, tensor, [0], [9], [-1])
    >>> reverse.lower().outputs[0].regions[0].source
    Read(input=0, view=View(sizes=(9,), strides=(-1,), offset=8))
    """

    same_data_type = same_dimension_count = "SLICE1-01"

    input_window_offsets: Sequence[int] = fields.attribute(fields.UINTS, "SLICE1-02")
    input_window_sizes: Sequence[int] = fields.attribute(fields.UINTS, "SLICE1-02")
    input_window_strides: Sequence[int] = fields.attribute(fields.INTS, "SLICE1-03")

    def _infer(self) -> Sequence[Sequence[Size]]:
        for i, length in enumerate(self.input_window_sizes):
            self._check_positive(f"input_window_sizes[{i}]", length, "SLICE1-02")
        self._check_windows("input_tensor", "SLICE1-02", "SLICE1-03")
        sizes = zip(self._sizes_of("output_tensor", "SLICE1-04"), self._windows, strict=True)
        for size, (_, length, stride) in sizes:
            maximum = elements_in_window(length, stride)
            if size.value > maximum:
                message = (
                    f"got {size.value}, must be at most {maximum} "
                    "(1 + (window size - 1) div the stride's magnitude)"
                )
                self._refuse(size.origin, message, size.rule)
        return [self._sizes_of("output_tensor", "SLICE1-04")]

    def _copies(self, source: Read, target: View) -> list[Region]:
        return [window(source, target, *self._window)]


@fields.descriptor
class SliceGradOperatorDesc(_WindowDesc):
    """Puts elements where SLICE1 with the same window would take them from, and 0 elsewhere.

    A window may be smaller than what is written to it, or empty: it only says where to begin. Of a
    negative stride, elements before the output's first one are left out, except in dimensions of
    size 1, which have only one place.

    Attributes:
        input_gradient_tensor: the elements; of the sizes of SLICE1's output, or larger.
        output_gradient_tensor: the result; of the sizes of SLICE1's input.
        input_window_offsets: first element of the window of the output, per dimension.
        input_window_sizes: extent of the window, per dimension.
        input_window_strides: signed distance between elements in the window, per dimension, not 0.

    >>> from vkops.dml import BufferTensorDesc, TensorDataType
    >>> two, five = (BufferTensorDesc(TensorDataType.UINT8, [n]) for n in (2, 5))
    >>> SliceGradOperatorDesc(two, five, [1], [4], [3]).validate()
    """

    same_data_type = same_dimension_count = "SGRAD-02"

    input_gradient_tensor: BufferTensorDesc = fields.tensor("input")
    output_gradient_tensor: BufferTensorDesc = fields.tensor("output")
    input_window_offsets: Sequence[int] = fields.attribute(fields.UINTS, "SGRAD-01")
    input_window_sizes: Sequence[int] = fields.attribute(fields.UINTS, "SGRAD-01")
    input_window_strides: Sequence[int] = fields.attribute(fields.INTS, "SGRAD-03")

    def _infer(self) -> Sequence[Sequence[Size]]:
        self._check_windows("output_gradient_tensor", "SGRAD-01", "SGRAD-03")
        whole = self._sizes_of("output_gradient_tensor", "SGRAD-01")
        sizes = zip(self._sizes_of_input("SGRAD-01"), whole, self._windows, strict=True)
        for size, available, (offset, _, stride) in sizes:
            last = offset + (size.value - 1) * abs(stride)
            if last >= available.value:
                message = (
                    f"got {size.value}, of which the last is at {show(last)} (offset + "
                    "(size - 1) * the stride's magnitude), must be below "
                    f"{available.origin} = {available.value}"
                )
                self._refuse(size.origin, message, size.rule)
        return [whole]

    def _regions(self) -> Sequence[Iterable[Region]]:
        source, (starts, steps) = self.input_gradient_tensor.view, self._window
        target = self.output_gradient_tensor
        zero = Fill(bytes(target.data_type.element_size))
        starts = tuple(start * (n > 1) for start, n in zip(starts, target.sizes, strict=True))
        for axis, (start, step) in enumerate(zip(starts, steps, strict=True)):
            if step < 0:  # leave out elements that would be before the output's first
                count = start // -step + 1
                source = source.narrow(axis, 0, min(count, source.sizes[axis]))
        if 0 in source.sizes:
            return [[fill(zero, target.view)]]
        return [write_window(Read(0, source), target.view, starts, steps, zero)]
