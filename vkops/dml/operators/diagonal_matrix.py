"""DIAGONAL_MATRIX: a value on one diagonal, and 0 elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from vkops.dml import fields
from vkops.dml.enums import FeatureLevel
from vkops.dml.operator_desc import OperatorDesc, Size
from vkops.dml.tensor_desc import BufferTensorDesc
from vkops.plan import Fill, Region
from vkops.plan.diagonals import fill_diagonals


@dataclass(frozen=True)
class DiagonalMatrixOperatorDesc(OperatorDesc):
    """Makes matrices with a value on one diagonal, and 0 elsewhere; there is no input.

    Source: DML_DIAGONAL_MATRIX_OPERATOR_DESC.

    Attributes:
        output_tensor: what to make; its last two dimensions are the matrices.
        offset: the diagonal: elements whose column is their row plus ``offset``. It may be outside
            of the matrix.
        value: the value, of 32 bits; its fraction is dropped where the tensor holds integers.

    Raises:
        InvalidDescTypeError: a field is of the wrong kind; ``validate`` checks the values.
        InvalidDescOverflowError: ``value`` is too large for 32 bits.

    >>> from vkops.dml import BufferTensorDesc, TensorDataType
    >>> tensor = BufferTensorDesc(TensorDataType.FLOAT32, [1, 1, 3, 3])
    >>> DiagonalMatrixOperatorDesc(tensor, offset=0, value=1).validate()
    """

    operator = "DIAGONAL_MATRIX"
    same_data_type = "DIAG-04"
    same_dimension_count = "DIAG-04"

    output_tensor: BufferTensorDesc = field(metadata=fields.tensor("output"))
    offset: int = field(metadata=fields.attribute("int", "DIAG-07"))
    value: float = field(metadata=fields.attribute("float", "DIAG-03"))

    def _infer(self, level: FeatureLevel) -> Sequence[Sequence[Size]]:
        self._element("value", self.value)
        return [self._sizes_of("output_tensor", "DIAG-04")]

    def _regions(self) -> Sequence[Iterable[Region]]:
        value = self._element("value", self.value)
        zero, target = Fill(bytes(len(value))), self.output_tensor.view
        return [fill_diagonals(zero, target, self.offset, self.offset + 1, Fill(value))]
