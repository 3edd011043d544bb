"""Base of the operators that copy one input to one output."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence

from vkops.dml import fields
from vkops.dml.operator_desc import OperatorDesc
from vkops.dml.tensor_desc import BufferTensorDesc
from vkops.plan import Read, Region, View


@fields.descriptor
class UnaryOperatorDesc(OperatorDesc):
    """The tensors of these operators, which a subclass adds its attributes to."""

    input_tensor: BufferTensorDesc = fields.tensor("input")
    output_tensor: BufferTensorDesc = fields.tensor("output")

    def _regions(self) -> Sequence[Iterable[Region]]:
        return [self._copies(Read(0, self.input_tensor.view), self.output_tensor.view)]

    @abstractmethod
    def _copies(self, source: Read, target: View) -> Iterable[Region]:
        """The regions that make the output."""
