"""FILL_VALUE and DIAGONAL_MATRIX in their versions: values in all elements or on diagonals."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod

from vkops.dml import fields
from vkops.dml.enums import TensorDataType
from vkops.dml.operator_desc import OperatorDesc, Size
from vkops.dml.tensor_desc import BufferTensorDesc
from vkops.plan import Fill, Read, Region, View
from vkops.plan.diagonals import fill_diagonals
from vkops.plan.movements import copy, fill
from vkops.plan.region import Progression


@fields.descriptor
class FillValueConstantOperatorDesc(OperatorDesc):
    """Writes one value to every element of a tensor; there is no input.

    Attributes:
        output_tensor: the tensor to fill.
        value_data_type: its data type.
        value: the value, which this data type can hold; rounded to the nearest value that a
            floating-point type has. Integers can be given signed or unsigned, as their bits: −1 is
            255 of UINT8.

    >>> from vkops.dml import BufferTensorDesc, TensorDataType
    >>> tensor = BufferTensorDesc(TensorDataType.FLOAT16, [2, 4])
    >>> FillValueConstantOperatorDesc(tensor, TensorDataType.FLOAT16, 0.5).validate()
    """

    same_data_type = same_dimension_count = "FILL-01"

    output_tensor: BufferTensorDesc = fields.tensor("output")
    value_data_type: TensorDataType = fields.enumeration(TensorDataType, "FILL-01")
    value: float = fields.scalar("FILL-02", "value_data_type")

    def _infer(self) -> Sequence[Sequence[Size]]:
        self._element("value", self.value)
        return [self._sizes_of("output_tensor", "FILL-01")]

    def _regions(self) -> Sequence[Sequence[Region]]:
        return [[fill(Fill(self._element("value", self.value)), self.output_tensor.view)]]


@fields.descriptor
class FillValueSequenceOperatorDesc(OperatorDesc):
    """Writes ``value_start``, ``value_start + value_delta`` ... to elements in row-major order.

    The numbers are made on the host when the operator is compiled, and stored on the device.

    Attributes:
        output_tensor: the tensor to fill.
        value_data_type: its data type.
        value_start: the first number, as the value of FILL_VALUE_CONSTANT.
        value_delta: the step between numbers; integers wrap, so that it may be negative for
            unsigned types.

    >>> from vkops.dml import BufferTensorDesc, TensorDataType
    >>> tensor = BufferTensorDesc(TensorDataType.INT32, [1, 1, 1, 3])
    >>> FillValueSequenceOperatorDesc(tensor, TensorDataType.INT32, 3, 2).validate()
    """

    same_data_type = same_dimension_count = "FILL-01"

    output_tensor: BufferTensorDesc = fields.tensor("output")
    value_data_type: TensorDataType = fields.enumeration(TensorDataType, "FILL-01")
    value_start: float = fields.scalar("FILL-02", "value_data_type")
    value_delta: float = fields.scalar("FILL-02", "value_data_type")

    def _infer(self) -> Sequence[Sequence[Size]]:
        for name in ("value_start", "value_delta"):
            self._element(name, getattr(self, name))
        return [self._sizes_of("output_tensor", "FILL-01")]

    @property
    def _constants(self) -> tuple[Progression, ...]:
        code, count = self.value_data_type.numpy_code, prod(self.output_tensor.sizes)
        return (Progression(code, self.value_start, self.value_delta, count),)

    def _regions(self) -> Sequence[Sequence[Region]]:
        target = self.output_tensor.view
        return [[copy(View.packed(target.sizes), target)]]


@fields.descriptor
class DiagonalMatrixOperatorDesc(OperatorDesc):
    """Makes matrices with a value on one diagonal, and 0 elsewhere; there is no input.

    Attributes:
        output_tensor: the result; its last two dimensions are the matrices.
        offset: the diagonal: elements whose column is their row plus ``offset``. It may be outside
            of the matrix.
        value: the value, of 32 bits; converted where the tensor has another data type, as
            ``TensorDataType.convert`` does.

    >>> from vkops.dml import BufferTensorDesc, TensorDataType
    >>> tensor = BufferTensorDesc(TensorDataType.FLOAT32, [1, 1, 3, 3])
    >>> DiagonalMatrixOperatorDesc(tensor, offset=0, value=1).validate()
    """

    same_data_type = same_dimension_count = "DIAG-04"

    output_tensor: BufferTensorDesc = fields.tensor("output")
    offset: int = fields.attribute(fields.INT, "DIAG-07")
    value: float = fields.attribute(fields.FLOAT, "DIAG-03")

    def _infer(self) -> Sequence[Sequence[Size]]:
        return [self._sizes_of("output_tensor", "DIAG-04")]

    def _regions(self) -> Sequence[Iterable[Region]]:
        value = self._element("value", self.value)
        zero, target = Fill(bytes(len(value))), self.output_tensor.view
        return [fill_diagonals(zero, target, self.offset, self.offset + 1, Fill(value))]


@fields.descriptor
class DiagonalMatrix1OperatorDesc(OperatorDesc):
    """Writes a value to some diagonals of matrices, and a tensor or 0 elsewhere.

    The column of an element of diagonal ``k`` is its row plus ``k``. If ``diagonal_fill_begin`` is
    at most ``diagonal_fill_end``, the value is written to the diagonals from the former to before
    the latter; else, to those before ``diagonal_fill_end`` and those from ``diagonal_fill_begin``
    on.

    Attributes:
        input_tensor: the other elements; None for 0.
        output_tensor: the result, of the sizes of the input; its last two dimensions are the
            matrices.
        value_data_type: the data type of the tensors.
        value: the value, which this data type can hold; rounded to the nearest value that a
            floating-point type has.
        diagonal_fill_begin: the first diagonal to fill; any 32-bit integer.
        diagonal_fill_end: the diagonal after the last one to fill; any 32-bit integer.

    >>> from vkops.dml import BufferTensorDesc, TensorDataType
    >>> tensor = BufferTensorDesc(TensorDataType.UINT8, [4, 5])
    >>> DiagonalMatrix1OperatorDesc(tensor, tensor, TensorDataType.UINT8, 0, -4, 1).validate()
    """

    same_data_type = same_dimension_count = "DIAG-04"

    input_tensor: BufferTensorDesc | None = fields.tensor("input", optional=True)
    output_tensor: BufferTensorDesc = fields.tensor("output")
    value_data_type: TensorDataType = fields.enumeration(TensorDataType, "DIAG-04")
    value: float = fields.scalar("DIAG-03", "value_data_type")
    diagonal_fill_begin: int = fields.attribute(fields.INT, "DIAG-07")
    diagonal_fill_end: int = fields.attribute(fields.INT, "DIAG-07")

    def _infer(self) -> Sequence[Sequence[Size]]:
        self._element("value", self.value)
        return [self._sizes_of(self._first_tensor[0], "DIAG-04")]

    def _regions(self) -> Sequence[Iterable[Region]]:
        value = self._element("value", self.value)
        source = self.input_tensor
        others = Fill(bytes(len(value))) if source is None else Read(0, source.view)
        diagonals = self.diagonal_fill_begin, self.diagonal_fill_end
        return [fill_diagonals(others, self.output_tensor.view, *diagonals, Fill(value))]
