"""Tensor descriptors, the T-* rules, and the layouts of the tensors that a graph makes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NoReturn

from vkops.arguments.values import ArgumentName, integer, integers, member
from vkops.dml import addressing
from vkops.dml.enums import TensorDataType, TensorFlags
from vkops.errors import InvalidDescError, show
from vkops.plan import View
from vkops.plan.view import Ints, packed_strides
from vkops.system.threads import cached_property

UINT32_MAX = 2**32 - 1
MAX_DIMENSION_COUNT = 8
MAX_TENSOR_ELEMENTS = 2**32 - 1

_FOUR_BIT = (TensorDataType.UINT4, TensorDataType.INT4)


@dataclass(frozen=True, init=False)
class BufferTensorDesc:
    """A tensor in a buffer.

    Source: DML_BUFFER_TENSOR_DESC.

    The constructor checks only the kinds of its fields. Its values are checked by ``validate`` of
    the operator that uses it, because some rules depend on its role there.

    Attributes:
        data_type: type of the elements.
        sizes: extent of each dimension, outermost first; their number is the rank.
        strides: distance between neighbours in each dimension, in elements; None is packed.
        flags: OWNED_BY_DML for an input that is bound when the operator is initialised.
        total_tensor_size_in_bytes: size in bytes, at least the minimum implied size, which 0 stands
            for.
        guaranteed_base_offset_alignment: alignment of every binding in bytes, a power of two from
            16 on; 0 promises nothing.

    Raises:
        InvalidDescTypeError: a field is of the wrong kind.

    >>> BufferTensorDesc(TensorDataType.INT8, [3, 5]).total_tensor_size_in_bytes
    16
    """

    data_type: TensorDataType
    sizes: tuple[int, ...]
    strides: tuple[int, ...] | None
    flags: TensorFlags
    total_tensor_size_in_bytes: int
    guaranteed_base_offset_alignment: int

    def __init__(
        self,
        data_type: TensorDataType | int,
        sizes: Sequence[int],
        strides: Sequence[int] | None = None,
        flags: TensorFlags | int = TensorFlags.NONE,
        total_tensor_size_in_bytes: int = 0,
        guaranteed_base_offset_alignment: int = 0,
    ) -> None:
        values = vars(self)  # the instance is frozen
        values["data_type"] = member(
            TensorDataType, data_type, ArgumentName("", "data_type", "T-02")
        )
        values["sizes"] = integers(sizes, ArgumentName("", "sizes", "T-04"))
        values["strides"] = (
            None if strides is None else integers(strides, ArgumentName("", "strides", "T-07"))
        )
        values["flags"] = member(TensorFlags, flags, ArgumentName("", "flags", "T-17"))
        total = integer(
            total_tensor_size_in_bytes, ArgumentName("", "total_tensor_size_in_bytes", "T-12")
        )
        values["total_tensor_size_in_bytes"] = total or self.minimum_implied_size
        values["guaranteed_base_offset_alignment"] = integer(
            guaranteed_base_offset_alignment,
            ArgumentName("", "guaranteed_base_offset_alignment", "T-15"),
        )

    @property
    def dimension_count(self) -> int:
        """The rank."""
        return len(self.sizes)

    @cached_property
    def packed_strides(self) -> tuple[int, ...]:
        """Strides, in elements, of a row-major layout without gaps."""
        return packed_strides(self.sizes)

    @property
    def effective_strides(self) -> tuple[int, ...]:
        """The strides in elements: ``strides``, or the packed ones if that is None."""
        return self.packed_strides if self.strides is None else self.strides

    @property
    def view(self) -> View:
        """The elements as a copy plan sees them."""
        return View(self.sizes, self.effective_strides)

    @cached_property
    def minimum_implied_size(self) -> int:
        """Smallest size in bytes that holds every element, a multiple of 4 (T-10).

        0 if sizes or strides are such that ``validate`` refuses them.
        """
        if self._shape_error("", "") is not None:
            return 0
        return (self._spanned_elements * self.data_type.size_bits + 31) // 32 * 4

    @cached_property
    def _spanned_elements(self) -> int:
        return addressing.spanned_elements(self.sizes, self.effective_strides)

    def _shape_error(self, operator: str, path: str) -> InvalidDescError | None:
        """Return an error for the first size or stride that is wrong on its own, if any is."""
        sizes = self.sizes

        def error(field: str, message: str, rule: str) -> InvalidDescError:
            return InvalidDescError(operator, f"{path}.{field}", message, rule)

        if not 1 <= len(sizes) <= MAX_DIMENSION_COUNT:
            return error("sizes", f"got {dimensions(len(sizes))}, must be 1 to 8", "T-03")
        for name, values, low, rule in (
            ("sizes", sizes, 1, "T-04"),
            ("strides", self.strides, 0, "T-07"),
        ):
            if values is None:
                continue
            if len(values) != len(sizes):
                message = f"got length {len(values)}, must be {len(sizes)}, one entry for each of "
                return error(name, f"{message}the sizes", "T-06")
            for i, value in enumerate(values):
                if not low <= value <= UINT32_MAX:
                    message = f"got {show(value)}, must be {low} to {UINT32_MAX}"
                    return error(f"{name}[{i}]", message, rule)
        return None


def check_tensor(operator: str, path: str, tensor: BufferTensorDesc, *, is_output: bool) -> None:
    """Check the rules that hold for a tensor of any operator at any feature level.

    Raises InvalidDescError for the first rule that is broken.
    """

    def refuse(field: str, message: str, rule: str) -> NoReturn:
        raise InvalidDescError(operator, f"{path}.{field}", message, rule)

    data_type = tensor.data_type
    if data_type is TensorDataType.UNKNOWN:
        refuse("data_type", "got UNKNOWN, must be a data type", "T-02")
    if data_type in _FOUR_BIT:
        message = f"got {data_type.name}, which no data-movement operator takes at any level"
        refuse("data_type", message, "T-19")
    error = tensor._shape_error(operator, path)
    if error is not None:
        raise error
    spanned = tensor._spanned_elements
    if spanned > MAX_TENSOR_ELEMENTS:
        message = f"span {spanned} elements with the strides, must be {MAX_TENSOR_ELEMENTS} at most"
        refuse("sizes", message, "T-13")
    if is_output and tensor.strides is not None:
        distinct = addressing.addresses_are_distinct(tensor.sizes, tensor.strides)
        if not distinct:
            problem = (
                "by which two elements of an output share one address"
                if distinct is False
                else "which take too long to check that no two elements share one address"
            )
            if addressing.may_be_distinct(tensor.sizes, tensor.strides):
                problem += " (DirectML accepts this)"
            refuse("strides", f"got {list(tensor.strides)}, {problem}", "T-09")
    total, minimum = tensor.total_tensor_size_in_bytes, tensor.minimum_implied_size
    maximum = MAX_TENSOR_ELEMENTS * data_type.element_size
    if not minimum <= total <= maximum:
        message = f"got {show(total)}, must be {minimum} (what the sizes and strides imply) or more"
        if total > maximum:
            message = (
                f"got {show(total)}, must be at most {maximum} ({MAX_TENSOR_ELEMENTS} elements)"
            )
        refuse("total_tensor_size_in_bytes", message, "T-12")
    alignment = tensor.guaranteed_base_offset_alignment
    if alignment and (not 16 <= alignment <= UINT32_MAX or alignment & (alignment - 1)):
        message = f"got {show(alignment)}, must be 0 or a power of two from 16 to {2**31}"
        refuse("guaranteed_base_offset_alignment", message, "T-15")
    if is_output and tensor.flags.value & TensorFlags.OWNED_BY_DML.value:
        refuse("flags", "got OWNED_BY_DML, which only an input tensor may have", "T-17")


def dimensions(count: int) -> str:
    """Return a number of dimensions in words."""
    return f"{count} dimension{'' if count == 1 else 's'}"


Policy = Callable[[TensorDataType, Ints], BufferTensorDesc]
"""Function from the data type and sizes of an output to its descriptor."""


class TensorPolicy:
    """The layouts of DirectMLX, for ``vkops.dml.Graph``; any function like these can be used.

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
