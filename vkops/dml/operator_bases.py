"""Bases of the operators that copy one input to one output, and of those that read indices."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import ClassVar

from vkops.dml import fields
from vkops.dml.operator_desc import OperatorDesc, Size
from vkops.dml.tensor_desc import BufferTensorDesc, dimensions
from vkops.errors import show
from vkops.plan import CopyPlan, Read, Region, View
from vkops.plan.indexing import IndexTensor, with_limits
from vkops.system.threads import cached_property


@fields.descriptor
class UnaryOperatorDesc(OperatorDesc):
    """Base of operators with one input and one output tensor; subclasses add attributes."""

    input_tensor: BufferTensorDesc = fields.tensor("input")
    output_tensor: BufferTensorDesc = fields.tensor("output")

    def _regions(self) -> Sequence[Iterable[Region]]:
        return [self._copies(Read(0, self.input_tensor.view), self.output_tensor.view)]

    @abstractmethod
    def _copies(self, source: Read, target: View) -> Iterable[Region]:
        """The regions that make the output."""


class IndexedOperatorDesc(OperatorDesc):
    """Base of operators that read indices: checks that they share, and index tensors for plans."""

    addresses_memory: ClassVar[bool] = True
    """Whether indices out of range select other elements of the memory in DirectML."""

    def _check_sizes_except(self, path: str, axis: int, rule: str, size: int | None = None) -> None:
        """Check that a tensor has the first input's sizes, except along an axis.

        Along the axis it must have ``size``; None allows any size.
        """
        tensor: BufferTensorDesc = getattr(self, path)
        sizes = self._sizes_of_input(rule)
        sizes[axis] = Size(tensor.sizes[axis] if size is None else size, "", rule)
        self._check_sizes(path, tensor, sizes)

    def _counted_sizes(
        self, name: str, path: str, rule: str, ones_rule: str, minimum: int = 1
    ) -> list[Size]:
        """Check the dimensions of a tensor that an operator uses, and return their sizes.

        The field ``name`` holds their number, which must be at least ``minimum``. They are the
        last dimensions of the tensor; those before them must have size 1.
        """
        count, sizes = getattr(self, name), self._sizes_of(path, rule)
        if not minimum <= count <= len(sizes):
            self._refuse(name, f"got {show(count)}, must be {minimum} to {len(sizes)}", rule)
        for value, origin, _ in sizes[: len(sizes) - count]:
            if value != 1:
                self._refuse(origin, f"got {value}, must be 1: {name} is {count}", ones_rule)
        return sizes[len(sizes) - count :]

    def _sizes_of_slices(
        self, batch: int, counts_rule: str, ones_rule: str, tuples_rule: str
    ) -> list[Size]:
        """Sizes of the slices that index tuples select, after ``batch`` dimensions.

        The last dimension of the indices has the numbers of a tuple.
        """
        data, (*places, count) = (
            self._counted_sizes(f"{name}_dimension_count", f"{name}_tensor", counts_rule, ones_rule)
            for name in ("input", "indices")
        )
        maximum = min(len(data) - 1, len(places))
        if not 0 <= batch <= maximum:
            message = f"got {show(batch)}, must be 0 to {maximum}, less than the other counts"
            self._refuse("batch_dimension_count", message, counts_rule)
        maximum = len(data) - batch
        if count.value > maximum:
            message = f"got {count.value}, must be 1 to {maximum}, indices of a tuple"
            self._refuse(count.origin, message, tuples_rule)
        return [*places, *data[batch + count.value :]]

    def _with_rank(self, sizes: Sequence[Size], path: str, rule: str) -> list[Size]:
        """Return sizes with dimensions of size 1 in front, up to the rank of a tensor."""
        rank = getattr(self, path).dimension_count
        if rank < len(sizes):
            message = f"got {dimensions(rank)}, must have {len(sizes)} or more, for all slices"
            self._refuse(f"{path}.sizes", message, rule)
        ones = [Size(1, "", rule)] * (rank - len(sizes))
        return [*ones, *[size._replace(rule=rule) for size in sizes]]

    @cached_property
    def _plan_with_limits(self) -> CopyPlan:
        return with_limits(self._plan) if self.addresses_memory else self._plan

    def _index_tensor(self, path: str, rank: int | None = None) -> IndexTensor:
        """The input tensor of a field, as the functions of ``vkops.plan.indexing`` take it."""
        number = [name for name, _ in self.inputs].index(path)
        tensor: BufferTensorDesc = getattr(self, path)
        view = tensor.view if rank is None else tensor.view.with_rank(rank)
        return IndexTensor(number, tensor.data_type.numpy_code, view)
