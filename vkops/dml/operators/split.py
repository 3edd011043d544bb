"""SPLIT: one tensor cut along an axis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from vkops.dml import fields
from vkops.dml.enums import FeatureLevel
from vkops.dml.operator_desc import OperatorDesc, Size
from vkops.dml.tensor_desc import BufferTensorDesc
from vkops.plan import Read, Region
from vkops.plan.movements import split


@dataclass(frozen=True)
class SplitOperatorDesc(OperatorDesc):
    """Cuts a tensor along an axis; output k begins where output k - 1 ends.

    Source: DML_SPLIT_OPERATOR_DESC.

    Attributes:
        input_tensor: what to cut.
        output_tensors: the pieces, which have the input's sizes except along the axis.
        axis: dimension to cut, 0 being the outermost; the outputs' sizes there add up.

    Raises:
        InvalidDescTypeError: a field is of the wrong kind; ``validate`` checks the values.

    >>> from vkops.dml import BufferTensorDesc, TensorDataType
    >>> whole, left, right = (
    ...     BufferTensorDesc(TensorDataType.INT32, [2, n]) for n in (5, 2, 3)
    ... )
    >>> SplitOperatorDesc(whole, [left, right], axis=1).validate("5_0")
    """

    operator = "SPLIT"
    same_data_type = "SPLIT-03"
    same_dimension_count = "SPLIT-04"

    input_tensor: BufferTensorDesc = field(metadata=fields.tensor("input"))
    output_tensors: Sequence[BufferTensorDesc] = field(
        metadata=fields.tensors("output", "SPLIT-01", "OutputCount")
    )
    axis: int = field(metadata=fields.attribute("uint", "SPLIT-02"))

    def _infer(self, level: FeatureLevel) -> Sequence[Sequence[Size]]:
        self._check_axis(self.axis, "SPLIT-02")
        axis, whole = self.axis, self._sizes_of_input("SPLIT-05")
        pieces = [tensor.sizes[axis] for tensor in self.output_tensors]
        if sum(pieces) != whole[axis].value:
            message = (
                f"got sizes[{axis}] that add up to {sum(pieces)}, "
                f"must add up to {whole[axis].origin} = {whole[axis].value}"
            )
            self._refuse("output_tensors", message, "SPLIT-06")
        before, (_, origin, rule), after = whole[:axis], whole[axis], whole[axis + 1 :]
        return [[*before, Size(piece, origin, rule), *after] for piece in pieces]

    def _regions(self) -> Sequence[Sequence[Region]]:
        targets = [tensor.view for tensor in self.output_tensors]
        return [[r] for r in split(Read(0, self.input_tensor.view), targets, self.axis)]
