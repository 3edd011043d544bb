"""Indexing of tensors: views by basic indices, copies by arrays of indices, as in NumPy."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import as_strided

from vkops.arguments.values import Place, integer
from vkops.errors import InvalidDescError, InvalidDescTypeError, from_builtin, show
from vkops.plan.region import MAX_TERMS
from vkops.plan.view import Ints, View
from vkops.tensors.array_plan import ArrayPlan
from vkops.tensors.index_arrays import Indices, Numbers, as_indices, check_range, tuples
from vkops.tensors.index_plans import gathering
from vkops.tensors.shape_arguments import check_shape, refuse_index
from vkops.tensors.views import Views

if TYPE_CHECKING:
    from typing_extensions import Self

_PLACE = Place("", "index", "ARRAY-09")
_BYTE = np.empty(1, np.uint8)
_ADDRESS = _BYTE.__array_interface__["data"][0]


class _Array(NamedTuple):
    """A part of an index: indices of one axis; of Booleans, how many the axis must have."""

    indices: Indices
    booleans: int | None = None


class Selection(NamedTuple):
    """The elements that arrays of indices select.

    The last axis of ``numbers`` has an index for each of the first axes of ``view``. The others
    stand from ``place`` on among the axes of the result, the rest of ``view`` around them.
    """

    view: View
    numbers: Numbers
    place: int

    @property
    def shape(self) -> Ints:
        """The shape of the result."""
        *shared, count = self.numbers.tensor.view.sizes
        rest = self.view.sizes[count:]
        return (*rest[: self.place], *shared, *rest[self.place :])


class Indexing(Views):
    """Indexing of tensors."""

    __slots__ = ()

    @abstractmethod
    def numpy(self) -> npt.NDArray[Any]:
        """The elements as an array."""

    @abstractmethod
    def _check_device(self, name: str, field: str, value: Any) -> None:
        """Refuse a tensor of another adapter (B-02)."""

    @abstractmethod
    def _run(self, plan: ArrayPlan, inputs: Sequence[Any], dtype: np.dtype[Any]) -> Self:
        """Run a plan on tensors and arrays, and return its only result."""

    def __getitem__(self, index: Any) -> Self:
        """A view by integers, slices, ``...`` and ``None``; a copy where an array is among them.

        Arrays of integers (arrays, lists and tensors) select indices of an axis; several are
        broadcast together and select elements. Arrays of Booleans select where they are true. The
        shape of the result is as in NumPy. Integers and indices in arrays and lists are checked.
        Indices in a tensor are of int32, int64, uint32 or uint64, and are not read back: those that
        are out of range are clamped.

        Raises:
            InvalidDescIndexError: an index that is not in a tensor is out of range, or an index is
                of another kind, such as a tensor of Booleans (ARRAY-09).
            InvalidDescError: a tensor of another adapter (B-02).
            OutOfDeviceMemoryError: no memory for the copy, or more indices than a buffer can hold.

        >>> import vkops
        >>> x = vkops.Device().tensor([[1, 2], [3, 4], [5, 6]])
        >>> x[1:, 0].numpy().tolist()
        [3, 5]
        >>> x[[2, 0, 2], ::-1].numpy().tolist()
        [[6, 5], [2, 1], [6, 5]]
        >>> x[[True, False, True], -1].numpy().tolist()
        [2, 6]
        """
        found = self._select(index)
        if isinstance(found, View):
            return self._over(self.placed()[0], found)
        return self._gather(found)

    def _gather(self, selected: Selection, name: str = "") -> Self:
        """Copy the elements of a selection."""
        view, (memory, numbers), place = selected
        check_shape(name, selected.shape, self.dtype.itemsize)
        plan = gathering(view, numbers, selected.shape, place, self.dtype.itemsize)
        return self._run(plan, [self.placed()[0], memory], self.dtype)

    def item(self, *index: Any) -> Any:
        """The only element, or the one at an index, as an object of Python.

        The index is one number per dimension, or one number that counts the elements row by row.

        Raises:
            InvalidDescError: there are several elements, or none (ARRAY-07).
            InvalidDescIndexError: as for ``self[index]`` (ARRAY-09).

        >>> import vkops
        >>> x = vkops.Device().tensor([[1, 2], [3, 4]])
        >>> x.item(1, 0), x.item(-1), x[0, 0].item()
        (3, 4, 1)
        """
        if len(index) == 1 and not isinstance(index[0], tuple):
            place = integer(index[0], Place("ITEM", "index", "ARRAY-09"))
            if not -self.size <= place < self.size:
                refuse_index(_PLACE, f"got {show(place)}, must be {-self.size} to {self.size - 1}")
            index = tuple(map(int, np.unravel_index(place % self.size, self.shape)))
        chosen = self[index[0] if len(index) == 1 else index] if index else self
        if chosen.size != 1:
            message = f"has {chosen.size} elements, must have 1"
            raise InvalidDescError("ITEM", "tensor", message, "ARRAY-07")
        return chosen.numpy().item()

    def __iter__(self) -> Iterator[Self]:
        """Views at each index of the first dimension."""
        if not self.shape:
            raise InvalidDescTypeError("", "iter", "the tensor has no dimensions", "ARRAY-01")
        return (self[index] for index in range(self.shape[0]))

    def _select(self, index: Any) -> View | Selection:
        """The view of the memory that an index is, or the selection, where it has arrays."""
        items = index if isinstance(index, tuple) else (index,)
        parts = [part for item in items for part in self._parts(item)]
        arrays = {i: part for i, part in enumerate(parts) if isinstance(part, _Array)}
        basic = tuple([slice(None) if i in arrays else part for i, part in enumerate(parts)])
        view = self._basic(basic)
        if not arrays:
            return view
        if len(arrays) > MAX_TERMS:
            refuse_index(_PLACE, f"has {len(arrays)} arrays, must be {MAX_TERMS} at most")
        axes = tuple([_axis(basic, i, len(view.sizes)) for i in arrays])
        for axis, (indices, booleans) in zip(axes, arrays.values(), strict=True):
            size = view.sizes[axis]
            if booleans not in (None, size):
                message = f"has Booleans for {booleans} indices of axis {axis} of size {size}"
                refuse_index(_PLACE, message)
            check_range(indices, axis, size, _PLACE)
        given = [part.indices for part in arrays.values()]
        numbers = tuples(given, [view.sizes[axis] for axis in axes], _PLACE, self._run)
        # Beside arrays, integers are arrays to NumPy, too.
        advanced = [i for i, part in enumerate(parts) if isinstance(part, (_Array, int))]
        adjacent = advanced[-1] - advanced[0] < len(advanced)
        others = [axis for axis in range(len(view.sizes)) if axis not in axes]
        return Selection(view.permute((*axes, *others)), numbers, axes[0] if adjacent else 0)

    def _parts(self, part: Any) -> Sequence[Any]:
        """A part of an index, unchanged or as arrays of one axis each."""
        if part is None or part is ... or isinstance(part, slice):
            return (part,)
        if isinstance(part, (int, np.integer)) and not isinstance(part, bool):
            return (int(part),)
        indices = as_indices(part, _PLACE, masks=True)
        if isinstance(indices, Views):
            self._check_device("", "index", indices)
        elif indices.dtype == bool:
            return list(map(_Array, indices.nonzero(), indices.shape))
        elif not indices.ndim:
            return (int(indices),)
        return (_Array(indices),)

    def _basic(self, parts: tuple[Any, ...]) -> View:
        """The view of the memory that a basic index is.

        NumPy computes it on one byte that stands for every element; with an ellipsis the result is
        always a view, so that no byte is read.
        """
        _, view = self.placed()
        ellipsis = () if any(part is ... for part in parts) else (...,)
        proxy = as_strided(_BYTE, self.shape, view.strides)
        try:
            chosen = proxy[parts + ellipsis]
        except Exception as error:
            raise from_builtin(error, "", "index", "ARRAY-09", "NumPy says: ") from error
        start = chosen.__array_interface__["data"][0] - _ADDRESS
        return View(chosen.shape, chosen.strides, view.offset + start)


def _axis(parts: Sequence[Any], number: int, rank: int) -> int:
    """The axis, in a view of ``rank`` axes, that a slice of a basic index makes."""
    before, after = (
        sum(not isinstance(part, int) for part in side) for side in (parts[:number], parts[number:])
    )
    return rank - after if any(part is ... for part in parts[:number]) else before
