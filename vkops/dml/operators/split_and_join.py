"""SPLIT and JOIN: a tensor cut along an axis, and tensors put together along one."""

from __future__ import annotations

from collections.abc import Sequence

from vkops.dml import fields
from vkops.dml.operator_desc import OperatorDesc, Size
from vkops.dml.tensor_desc import BufferTensorDesc
from vkops.plan import Read, Region
from vkops.plan.movements import concat, concat_sizes, split


@fields.descriptor
class SplitOperatorDesc(OperatorDesc):
    """Cuts a tensor along an axis; output k begins where output k - 1 ends.

    Attributes:
        input_tensor: the tensor to cut.
        output_tensors: the pieces, which have the input's sizes except along the axis.
        axis: dimension to cut, 0 being the outermost; the outputs' sizes there add up.

    >>> from vkops.dml import BufferTensorDesc, TensorDataType
    >>> whole, left, right = (
    ...     BufferTensorDesc(TensorDataType.INT32, [2, n]) for n in (5, 2, 3)
    ... )
    >>> SplitOperatorDesc(whole, [left, right], axis=1).validate("5_0")
    """

    same_data_type = "SPLIT-03"
    same_dimension_count = "SPLIT-04"

    input_tensor: BufferTensorDesc = fields.tensor("input")
    output_tensors: Sequence[BufferTensorDesc] = fields.tensors("output", "SPLIT-01", "OutputCount")
    axis: int = fields.attribute(fields.UINT, "SPLIT-02")

    def _infer(self) -> Sequence[Sequence[Size]]:
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


@fields.descriptor
class JoinOperatorDesc(OperatorDesc):
    """Puts tensors together along an axis, in order: the inverse of SPLIT.

    Attributes:
        input_tensors: the pieces, which have equal sizes except along the axis.
        output_tensor: the whole.
        axis: dimension to join, 0 being the outermost; the inputs' sizes there add up.

    >>> from vkops.dml import BufferTensorDesc, TensorDataType
    >>> left, right, whole = (
    ...     BufferTensorDesc(TensorDataType.INT32, [2, n]) for n in (2, 3, 5)
    ... )
    >>> JoinOperatorDesc([left, right], whole, axis=1).validate("5_0")
    """

    same_data_type = "JOIN-03"
    same_dimension_count = "JOIN-04"

    input_tensors: Sequence[BufferTensorDesc] = fields.tensors("input", "JOIN-01", "InputCount")
    output_tensor: BufferTensorDesc = fields.tensor("output")
    axis: int = fields.attribute(fields.UINT, "JOIN-02")

    def _infer(self) -> Sequence[Sequence[Size]]:
        whole = self._sizes_of_input("JOIN-05")
        for path, tensor in self.inputs[1:]:
            for i, (got, expected) in enumerate(zip(tensor.sizes, whole, strict=True)):
                if i != self.axis and got != expected.value:
                    message = f"got {got}, must equal {expected.origin} = {expected.value}"
                    self._refuse(f"{path}.sizes[{i}]", message, expected.rule)
        total = concat_sizes([tensor.sizes for tensor in self.input_tensors], self.axis)[self.axis]
        whole[self.axis] = Size(total, f"the sum of input_tensors' sizes[{self.axis}]", "JOIN-06")
        return [whole]

    def _regions(self) -> Sequence[Sequence[Region]]:
        sources = [Read(i, tensor.view) for i, tensor in enumerate(self.input_tensors)]
        return [concat(sources, self.output_tensor.view, self.axis)]
