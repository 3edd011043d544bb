"""The methods of ``Tensor`` that return views, which move no data."""

from __future__ import annotations

from collections.abc import Sized
from typing import TYPE_CHECKING, Any

from vkops.arguments.values import ArgumentName, integer, refuse
from vkops.errors import show
from vkops.plan.view import Ints
from vkops.tensors import shape_arguments as shapes
from vkops.tensors.device_array import DeviceArray

if TYPE_CHECKING:
    from typing_extensions import Self


class ViewMethods(DeviceArray):
    """Transposed, reshaped, broadcast and other views of a ``Tensor``."""

    __slots__ = ()

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def T(self) -> Self:  # noqa: N802  # NumPy's name
        """A view with the dimensions in reverse order."""
        return self.transpose()

    @property
    def mT(self) -> Self:  # noqa: N802  # NumPy's name
        """A view with the last two dimensions exchanged.

        Raises:
            InvalidDescError: there are fewer than two (ARRAY-01).
        """
        if self.ndim < 2:
            refuse("", "mT", f"the tensor has rank {self.ndim}, must be at least 2", "ARRAY-01")
        return self.swapaxes(-1, -2)

    def transpose(self, *axes: Any) -> Self:
        """A view whose dimension ``i`` is dimension ``axes[i]`` of this tensor; default: reversed.

        Raises:
            InvalidDescError: not each dimension once (ARRAY-01, ARRAY-02).

        >>> import vkops
        >>> vkops.asarray([[1, 2, 3]]).transpose().shape
        (3, 1)
        """
        if not axes or (len(axes) == 1 and axes[0] is None):
            order: Ints = tuple(reversed(range(self.ndim)))
        else:
            value = axes[0] if len(axes) == 1 else axes
            order = shapes.some_axes("TRANSPOSE", value, self.ndim, "axes")
            if len(order) != self.ndim:
                message = f"got {len(order)} axes, must be {self.ndim}, the rank"
                refuse("TRANSPOSE", "axes", message, "ARRAY-02")
        base, view = self.placed()
        return self._over(base, view.permute(order))

    def swapaxes(self, axis1: Any, axis2: Any) -> Self:
        """A view with two dimensions exchanged.

        Raises:
            InvalidDescError: axes out of range (ARRAY-01).

        >>> import vkops
        >>> vkops.zeros((1, 2, 3)).swapaxes(0, 2).shape
        (3, 2, 1)
        """
        first, second = shapes.two_axes("SWAPAXES", axis1, axis2, self.ndim)
        order = list(range(self.ndim))
        order[first], order[second] = second, first
        return self.transpose(order)

    def moveaxis(self, source: Any, destination: Any) -> Self:
        """A view with some dimensions at other places; the others keep their order.

        Raises:
            InvalidDescError: axes out of range, given twice, or different numbers of axes
                (ARRAY-01, ARRAY-02).

        >>> import vkops
        >>> vkops.zeros((1, 2, 3)).moveaxis(-1, 0).shape
        (3, 1, 2)
        """
        sources, targets = (
            shapes.some_axes("MOVEAXIS", axes, self.ndim, name)
            for name, axes in (("source", source), ("destination", destination))
        )
        if len(sources) != len(targets):
            message = f"got {len(targets)} axes, must be {len(sources)}, as many as source"
            refuse("MOVEAXIS", "destination", message, "ARRAY-02")
        order = [axis for axis in range(self.ndim) if axis not in sources]
        for target, axis in sorted(zip(targets, sources, strict=True)):
            order.insert(target, axis)
        return self.transpose(order)

    def rot90(self, k: Any = 1, axes: Any = (0, 1)) -> Self:
        """A view turned ``k`` times by 90 degrees, from the first towards the second of two axes.

        Raises:
            InvalidDescError: not two different axes, or out of range (ARRAY-01, ARRAY-02).

        >>> import vkops
        >>> vkops.asarray([[1, 2], [3, 4]]).rot90().tolist()
        [[2, 4], [1, 3]]
        """
        turns = integer(k, ArgumentName("ROT90", "k", "ARRAY-06")) % 4
        plane = shapes.some_axes("ROT90", axes, self.ndim, "axes")
        if len(plane) != 2:
            refuse("ROT90", "axes", f"got {len(plane)} axes, must be 2", "ARRAY-02")
        if turns % 2 == 0:
            return self.flip(plane if turns else ())
        return self.swapaxes(*plane).flip(plane[0] if turns == 1 else plane[1])

    def reshape(self, *shape: Any, order: str = "C", copy: bool | None = None) -> Self:
        """The elements, row by row, under another shape; one size of -1 is inferred.

        A view where strides can express it; else a packed copy, made with one dispatch.

        Args:
            shape: the sizes; the method takes them as several arguments, too.
            order: ``"C"``; or ``"F"``, which takes and writes the elements column by column.
            copy: True always copies, False never does.

        Raises:
            InvalidDescError: a shape of another number of elements (ARRAY-03), another order
                (ARRAY-15), or a copy is needed, but ``copy`` is False (ARRAY-16).

        >>> import vkops
        >>> vkops.asarray([1, 2, 3, 4]).reshape((2, -1)).tolist()
        [[1, 2], [3, 4]]
        """
        value = shape[0] if len(shape) == 1 else shape
        sizes = shapes.one_or_more(value, ArgumentName("RESHAPE", "shape", "ARRAY-03"))
        if not (isinstance(order, str) and order in ("C", "F")):
            refuse("RESHAPE", "order", f"got {show(order)}, must be 'C' or 'F'", "ARRAY-15")
        if order == "F":
            return self.T.reshape(sizes[::-1], copy=copy).T
        sizes = shapes.reshaped("RESHAPE", sizes, self.size)
        shapes.check_shape("RESHAPE", sizes, self.dtype.itemsize)
        copying = shapes.may_copy("RESHAPE", copy)
        base, view = self.placed()
        reshaped = view.reshape(sizes) if self.size else shapes.packed(sizes)
        if reshaped is not None and not copying:
            return self._over(base, reshaped)
        if copying is False:
            message = f"got False, must be True or None: no view has the shape {sizes}"
            refuse("RESHAPE", "copy", message, "ARRAY-16")
        return self.copy().reshape(sizes)

    def ravel(self, order: str = "C") -> Self:
        """The elements, row by row, in one dimension: ``reshape(-1, order=order)``.

        >>> import vkops
        >>> vkops.asarray([[1, 2], [3, 4]]).ravel("F").tolist()
        [1, 3, 2, 4]
        """
        return self.reshape(-1, order=order)

    def flatten(self, order: str = "C") -> Self:
        """A copy of the elements, row by row, in one dimension."""
        return self.reshape(-1, order=order, copy=True)

    def broadcast_to(self, shape: Any) -> Self:
        """A view of another shape, repeating elements along new dimensions and those of size 1.

        It is read-only, and so are its views.

        Raises:
            InvalidDescError: the tensor cannot be broadcast to that shape (ARRAY-04).

        >>> import vkops
        >>> vkops.asarray([1, 2]).broadcast_to((2, 2)).tolist()
        [[1, 2], [1, 2]]
        """
        argument = ArgumentName("BROADCAST_TO", "shape", "ARRAY-04")
        sizes = shapes.one_or_more(shape, argument)
        shapes.check_not_negative(sizes, argument)
        if shapes.broadcast_shapes([self.shape, sizes]) != sizes:
            message = f"got {show(sizes)}, must end like {self.shape}; only a size of 1 can become "
            refuse(*argument[:2], message + "another", "ARRAY-04")
        shapes.check_shape("BROADCAST_TO", sizes, self.dtype.itemsize)
        base, view = self.placed()
        return self._over(base, view.broadcast(sizes), read_only=True)

    def flip(self, axis: Any = None) -> Self:
        """A view with the elements in reverse order along an axis, several, or all (None).

        Raises:
            InvalidDescError: axes out of range, or given twice (ARRAY-01, ARRAY-02).

        >>> import vkops
        >>> vkops.asarray([[1, 2], [3, 4]]).flip(1).tolist()
        [[2, 1], [4, 3]]
        """
        everything = tuple(range(self.ndim))
        axes = everything if axis is None else shapes.some_axes("FLIP", axis, self.ndim)
        base, view = self.placed()
        return self._over(base, view.flip(axes))

    def diagonal(self, offset: Any = 0, axis1: Any = 0, axis2: Any = 1) -> Self:
        """A view of a diagonal, as the last dimension, in place of two others.

        It has the elements whose index along ``axis2`` is that along ``axis1`` plus ``offset``, and
        is read-only, as in NumPy.

        Raises:
            InvalidDescError: axes out of range, or the same twice (ARRAY-01, ARRAY-02).

        >>> import vkops
        >>> vkops.asarray([[1, 2], [3, 4]]).diagonal().tolist()
        [1, 4]
        """
        axes = shapes.two_axes("DIAGONAL", axis1, axis2, self.ndim)
        if axes[0] == axes[1]:
            message = f"got {show(axis2)}, must be another dimension than axis1"
            refuse("DIAGONAL", "axis2", message, "ARRAY-02")
        k = integer(offset, ArgumentName("DIAGONAL", "offset", "ARRAY-13"))
        base, view = self.placed()
        return self._over(base, view.diagonal(k, *axes), read_only=True)

    def expand_dims(self, axis: Any) -> Self:
        """A view with new dimensions of size 1 where the result has these axes.

        Raises:
            InvalidDescError: axes out of range, or given twice (ARRAY-01, ARRAY-02).

        >>> import vkops
        >>> vkops.asarray([1, 2]).expand_dims(1).shape
        (2, 1)
        """
        rank = self.ndim + len(
            shapes.one_or_more(axis, ArgumentName("EXPAND_DIMS", "axis", "ARRAY-01"))
        )
        axes = shapes.some_axes("EXPAND_DIMS", axis, rank) if rank else ()
        base, view = self.placed()
        for new in sorted(axes):
            view = view.insert(new)
        shapes.check_shape("EXPAND_DIMS", view.sizes, self.dtype.itemsize)
        return self._over(base, view)

    def squeeze(self, axis: Any = None) -> Self:
        """A view without some dimensions of size 1; default: all of them.

        Raises:
            InvalidDescError: axes out of range, given twice, or of another size (ARRAY-01,
                ARRAY-02, ARRAY-05).

        >>> import vkops
        >>> vkops.asarray([[[1, 2]]]).squeeze(0).shape
        (1, 2)
        """
        ones = tuple(i for i, n in enumerate(self.shape) if n == 1)
        axes: Ints = ()
        if axis is None:
            axes = ones
        elif self.shape or isinstance(axis, Sized):
            axes = shapes.some_axes("SQUEEZE", axis, self.ndim)
        else:
            shapes.one_axis("SQUEEZE", axis, 1)  # in NumPy, a scalar has the axis 0
        base, view = self.placed()
        for i in sorted(axes, reverse=True):
            if self.shape[i] != 1:
                message = f"names dimension {i} of size {self.shape[i]}, must be of size 1"
                refuse("SQUEEZE", "axis", message, "ARRAY-05")
            view = view.take(i, 0)
        return self._over(base, view)
