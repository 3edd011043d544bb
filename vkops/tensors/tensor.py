"""Tensors: a shape and a NumPy dtype over device memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from functools import lru_cache
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, NoReturn, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from vkops.arguments.refused_operators import KERNELS, refuse_operators
from vkops.arguments.values import Place, integer, refuse
from vkops.errors import (
    CONVERSION_ERRORS,
    InvalidDescError,
    InvalidDescTypeError,
    OutOfDeviceMemoryError,
    from_builtin,
    import_late,
    show,
)
from vkops.gpu.adapters import adapter
from vkops.gpu.run.asynchronous import ended
from vkops.gpu.run.buffer import Buffer
from vkops.gpu.run.recording import RecordedProgram
from vkops.notebook import repr_html
from vkops.plan.execute import packed_bytes
from vkops.plan.rounding import ceil_div
from vkops.plan.view import Ints, View
from vkops.runtime.device import OperatorDevice
from vkops.tensors import array_protocols, elements, exchange
from vkops.tensors import shape_arguments as shapes
from vkops.tensors.array_plan import scattering
from vkops.tensors.array_protocols import refuse_to_compute
from vkops.tensors.device_array import DeviceArray, check_device
from vkops.tensors.exchange import as_dtype, numpy_refusals

Number = TypeVar("Number", bool, int, float, complex)


class Flags(NamedTuple):
    """The layout of a tensor's elements in memory, with the names of NumPy's flags."""

    c_contiguous: bool
    """Whether they follow one another row by row."""
    f_contiguous: bool
    """Whether they follow one another column by column."""
    owndata: bool
    """Whether the memory is the tensor's own: False for views."""
    writeable: bool
    """Whether elements can be assigned to: False for views made by ``broadcast_to``."""


_INTERNAL = frozenset(
    """check fits from_array image_pool is_read_only make mapped over owns_buffer pack placed pool
    prepare run_steps settle submit tuning vulkan wait words""".split()  # noqa: SIM905
)
"""Names that other modules of vkops use: ``dir`` leaves them out."""


def _public(self: object) -> list[str]:
    return sorted({*object.__dir__(self)} - _INTERNAL)


class Tensor(DeviceArray):
    """An array in device memory, freed with this object.

    Indexing, ``transpose``, ``reshape`` and similar methods return views: tensors over the same
    memory. A view always shows what its tensor holds, and ``view[...] = x`` writes to that tensor.
    Functions such as ``join`` read the memory of views directly; an operator that is bound to a
    view reads a packed copy, made at that moment with one dispatch.

    Results that do not fit on the device stay on the host. Operators that compute (``+``, ``==``,
    ``<``, ``in`` ...) raise a TypeError: vkops moves data and does not compute; ``t.numpy()`` does.
    Tensors are hashed by identity. A pickled tensor is restored on the default device, or on the
    host if it does not fit there; the pickle has the elements and nothing of the device.

    >>> import numpy as np
    >>> from vkops import Device
    >>> x = Device().tensor(np.arange(6, dtype=np.int16).reshape(2, 3))
    >>> x.shape, x.dtype, x.nbytes
    ((2, 3), dtype('int16'), 12)
    >>> x[::-1, 1:].T.numpy()
    array([[4, 1],
           [5, 2]], dtype=int16)
    >>> x[:, 1] = [7, 8]
    >>> x.numpy()
    array([[0, 7, 2],
           [3, 8, 5]], dtype=int16)
    >>> with x.copy() as y:  # y's memory is free again after this
    ...     int(y[1, 0])
    3
    """

    __hash__: ClassVar[Any] = object.__hash__
    __slots__ = ()

    device: Device

    # -- description -------------------------------------------------------------------------------

    @property
    def words(self) -> int:
        """32-bit words that hold the elements, rounded up as total sizes of tensors are (T-14)."""
        return ceil_div(self.nbytes, 4)

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return self.dtype.itemsize

    @property
    def strides(self) -> Ints:
        """Bytes from one element to the next along each dimension, in the present memory."""
        lazy = self._lazy
        view = shapes.packed(self.shape) if lazy is None else lazy[1]
        return tuple([stride * self.dtype.itemsize for stride in view.strides])

    @property
    def base(self) -> Tensor | None:
        """The tensor whose memory a view shows; None if the tensor has memory of its own."""
        lazy = self._lazy
        return None if lazy is None else lazy[0]

    @property
    def flags(self) -> Flags:
        """The layout of the elements in memory, with the names of NumPy's flags."""
        lazy = self._lazy
        view = shapes.packed(self.shape) if lazy is None else lazy[1]
        columns = view.permute(tuple(reversed(range(self.ndim))))
        by_rows, by_columns = (not self.size or it.is_contiguous for it in (view, columns))
        return Flags(by_rows, by_columns, lazy is None, not self._read_only)

    @property
    def is_ready(self) -> bool:
        """Whether all that was submitted to write the elements has ended.

        Raises:
            DeviceError: the tensor was released, or the device is closed.
        """
        buffer = self.placed()[0]._buffer
        return not isinstance(buffer, Buffer) or buffer.is_ready

    def __len__(self) -> int:
        if not self.shape:
            raise InvalidDescTypeError("", "len", "the tensor has no dimensions", "ARRAY-01")
        return self.shape[0]

    def __sizeof__(self) -> int:
        # With the elements, as Dask counts memory: of a view, those that it shows.
        lazy = self._lazy
        held = self.nbytes if lazy is None else min(self.nbytes, lazy[0].nbytes)
        return object.__sizeof__(self) + held

    _repr_html_ = repr_html

    def __dir__(self) -> list[str]:
        return _public(self)

    def __repr__(self) -> str:
        if self._buffer is None and self._lazy is None and self.size:
            return f"<released vkops.Tensor {self.shape} {self.dtype} on {self.device.info.label}>"
        return elements.describe(self)

    # -- memory ------------------------------------------------------------------------------------

    def view(self, dtype: npt.DTypeLike) -> Tensor:
        """The same memory with the bytes of each element read as another dtype of equal size.

        It keeps the memory until it is released itself.

        Raises:
            InvalidDescError: elements of another size (ARRAY-17), or no dtype (T-02).

        >>> import numpy as np, vkops
        >>> x = vkops.asarray([1, -2], np.float32)
        >>> [f"{bits:x}" for bits in x.view("uint32").tolist()]
        ['3f800000', 'c0000000']
        """
        kind = as_dtype("VIEW", dtype)
        if kind.itemsize != self.itemsize:
            message = (
                f"got {kind} of {kind.itemsize} bytes, must have {self.itemsize} as {self.dtype}"
            )
            refuse("VIEW", "dtype", message, "ARRAY-17")
        base, view = self.placed()
        memory = Tensor.over(self.device, base.buffer, base.shape, kind)
        return memory._over(memory, view, read_only=self._read_only)

    def astype(self, dtype: npt.DTypeLike, *, copy: bool = True) -> Tensor:
        """The elements converted by NumPy, on the host; a copy, unless ``copy`` is False.

        As with NumPy's ``astype``, any cast is allowed. The result is on the same device.

        Raises:
            InvalidDescError: no dtype (T-02), or elements that NumPy cannot convert (ARRAY-10).
            OutOfDeviceMemoryError: the host has no memory for it.

        >>> import vkops
        >>> vkops.asarray([1.5, -2.5]).astype("int8").tolist()
        [1, -2]
        """
        kind = as_dtype("ASTYPE", dtype)
        if kind == self.dtype:
            return self if shapes.may_copy("ASTYPE", copy) is False else self.copy()
        with numpy_refusals("ASTYPE", "tensor"):
            made = self.numpy().astype(kind)
        return Tensor.from_array(self.device, made, on_host=None)

    def to(self, device: Device | str | int) -> Tensor:
        """A copy on another device; the tensor itself if it is on that device.

        The device can also be the index of an adapter, or part of its name.

        Raises:
            InvalidDescTypeError: it is none of these (B-02).
            DeviceError: there is no such adapter.
            OutOfDeviceMemoryError: the copy does not fit.

        >>> import vkops
        >>> t = vkops.Device().tensor([1, 2])
        >>> t.to(t.device) is t
        True
        """
        home = as_device("", device)
        return self if home is self.device else Tensor.from_array(home, self.numpy())

    def to_device(self, device: Device | str | int, /, *, stream: None = None) -> Tensor:
        """The same as ``to``, by the array API's name; the copy is complete when it returns.

        Raises:
            InvalidDescTypeError: not a device (B-02), or a stream, which vkops has none of
                (ARRAY-19).
        """
        if stream is not None:
            raise Place("TO_DEVICE", "stream", "ARRAY-19").wrong_kind(stream, "None")
        return self.to(device)

    def __enter__(self) -> Tensor:
        return self

    def __exit__(self, *exception: object) -> None:
        self.release()

    # -- views -------------------------------------------------------------------------------------

    @property
    def T(self) -> Tensor:  # noqa: N802  # NumPy's name
        """A view with the dimensions in reverse order."""
        return self.transpose()

    @property
    def mT(self) -> Tensor:  # noqa: N802  # NumPy's name
        """A view with the last two dimensions exchanged.

        Raises:
            InvalidDescError: there are fewer than two (ARRAY-01).
        """
        if self.ndim < 2:
            refuse("", "mT", f"the tensor has rank {self.ndim}, must be at least 2", "ARRAY-01")
        return self.swapaxes(-1, -2)

    def transpose(self, *axes: Any) -> Tensor:
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
            given = axes[0] if len(axes) == 1 else axes
            order = shapes.some_axes("TRANSPOSE", given, self.ndim, "axes")
            if len(order) != self.ndim:
                message = f"got {len(order)} axes, must be {self.ndim}, the rank"
                refuse("TRANSPOSE", "axes", message, "ARRAY-02")
        base, view = self.placed()
        return self._over(base, view.permute(order))

    def swapaxes(self, axis1: Any, axis2: Any) -> Tensor:
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

    def moveaxis(self, source: Any, destination: Any) -> Tensor:
        """A view with some dimensions at other places; the others keep their order.

        Raises:
            InvalidDescError: axes out of range, given twice, or not as many of one as of the other
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

    def rot90(self, k: Any = 1, axes: Any = (0, 1)) -> Tensor:
        """A view turned ``k`` times by 90 degrees, from the first towards the second of two axes.

        Raises:
            InvalidDescError: not two different axes, or out of range (ARRAY-01, ARRAY-02).

        >>> import vkops
        >>> vkops.asarray([[1, 2], [3, 4]]).rot90().tolist()
        [[2, 4], [1, 3]]
        """
        turns = integer(k, Place("ROT90", "k", "ARRAY-06")) % 4
        plane = shapes.some_axes("ROT90", axes, self.ndim, "axes")
        if len(plane) != 2:
            refuse("ROT90", "axes", f"got {len(plane)} axes, must be 2", "ARRAY-02")
        if turns % 2 == 0:
            return self.flip(plane if turns else ())
        return self.swapaxes(*plane).flip(plane[0] if turns == 1 else plane[1])

    def reshape(self, *shape: Any, order: str = "C", copy: bool | None = None) -> Tensor:
        """The elements, row by row, under another shape; one size of -1 is inferred.

        A view where strides can express it; else a packed copy, made with one dispatch.

        Args:
            shape: the sizes; the method takes them as several arguments, too.
            order: ``"C"``; or ``"F"``, which takes and writes the elements column by column.
            copy: True always copies, False never does.

        Raises:
            InvalidDescError: a shape of another number of elements (ARRAY-03), another order
                (ARRAY-15), or a copy is needed, but refused (ARRAY-16).

        >>> import vkops
        >>> vkops.asarray([1, 2, 3, 4]).reshape((2, -1)).tolist()
        [[1, 2], [3, 4]]
        """
        given = shape[0] if len(shape) == 1 else shape
        sizes = shapes.one_or_more(given, Place("RESHAPE", "shape", "ARRAY-03"))
        if not (isinstance(order, str) and order in ("C", "F")):
            refuse("RESHAPE", "order", f"got {show(order)}, must be 'C' or 'F'", "ARRAY-15")
        if order == "F":
            return self.T.reshape(sizes[::-1], copy=copy).T
        sizes = shapes.reshaped("RESHAPE", sizes, self.size)
        shapes.check_shape("RESHAPE", sizes, self.dtype.itemsize)
        wanted = shapes.may_copy("RESHAPE", copy)
        base, view = self.placed()
        found = view.reshape(sizes) if self.size else shapes.packed(sizes)
        if found is not None and not wanted:
            return self._over(base, found)
        if wanted is False:
            message = f"got False, must be True or None: no view has the shape {sizes}"
            refuse("RESHAPE", "copy", message, "ARRAY-16")
        return self.copy().reshape(sizes)

    def ravel(self, order: str = "C") -> Tensor:
        """The elements, row by row, in one dimension: ``reshape(-1, order=order)``.

        >>> import vkops
        >>> vkops.asarray([[1, 2], [3, 4]]).ravel("F").tolist()
        [1, 3, 2, 4]
        """
        return self.reshape(-1, order=order)

    def flatten(self, order: str = "C") -> Tensor:
        """A copy of the elements, row by row, in one dimension."""
        return self.reshape(-1, order=order, copy=True)

    def broadcast_to(self, shape: Any) -> Tensor:
        """A view of another shape, repeating elements along new dimensions and those of size 1.

        It is read-only, and so are its views.

        Raises:
            InvalidDescError: the tensor cannot be broadcast to that shape (ARRAY-04).

        >>> import vkops
        >>> vkops.asarray([1, 2]).broadcast_to((2, 2)).tolist()
        [[1, 2], [1, 2]]
        """
        place = Place("BROADCAST_TO", "shape", "ARRAY-04")
        sizes = shapes.one_or_more(shape, place)
        shapes.check_not_negative(sizes, place)
        if shapes.broadcast_shapes([self.shape, sizes]) != sizes:
            message = f"got {show(sizes)}, must end like {self.shape}; only a size of 1 can become "
            refuse(*place[:2], message + "another", "ARRAY-04")
        shapes.check_shape("BROADCAST_TO", sizes, self.dtype.itemsize)
        base, view = self.placed()
        return self._over(base, view.broadcast(sizes), read_only=True)

    def flip(self, axis: Any = None) -> Tensor:
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

    def diagonal(self, offset: Any = 0, axis1: Any = 0, axis2: Any = 1) -> Tensor:
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
        k = integer(offset, Place("DIAGONAL", "offset", "ARRAY-13"))
        base, view = self.placed()
        return self._over(base, view.diagonal(k, *axes), read_only=True)

    def expand_dims(self, axis: Any) -> Tensor:
        """A view with new dimensions of size 1 where the result has these axes.

        Raises:
            InvalidDescError: axes out of range, or given twice (ARRAY-01, ARRAY-02).

        >>> import vkops
        >>> vkops.asarray([1, 2]).expand_dims(1).shape
        (2, 1)
        """
        place = Place("EXPAND_DIMS", "axis", "ARRAY-01")
        rank = self.ndim + len(shapes.one_or_more(axis, place))
        axes = shapes.some_axes("EXPAND_DIMS", axis, rank) if rank else ()
        base, view = self.placed()
        for new in sorted(axes):
            view = view.insert(new)
        shapes.check_shape("EXPAND_DIMS", view.sizes, self.dtype.itemsize)
        return self._over(base, view)

    def squeeze(self, axis: Any = None) -> Tensor:
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
            shapes.one_axis("SQUEEZE", axis, 1)  # as in NumPy, a scalar has the axis 0
        base, view = self.placed()
        for i in sorted(axes, reverse=True):
            if self.shape[i] != 1:
                message = f"names dimension {i} of size {self.shape[i]}, must be of size 1"
                refuse("SQUEEZE", "axis", message, "ARRAY-05")
            view = view.take(i, 0)
        return self._over(base, view)

    # -- indexing ----------------------------------------------------------------------------------

    def __getitem__(self, index: Any) -> Tensor:
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
        found = elements.select(self, index)
        if isinstance(found, View):
            return self._over(self.placed()[0], found)
        return elements.gather(self, found)

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
                message = f"got {show(place)}, must be {-self.size} to {self.size - 1}"
                shapes.refuse_index(elements.INDEX, message)
            index = tuple(map(int, np.unravel_index(place % self.size, self.shape)))
        chosen = self[index[0] if len(index) == 1 else index] if index else self
        if chosen.size != 1:
            message = f"has {chosen.size} elements, must have 1"
            raise InvalidDescError("ITEM", "tensor", message, "ARRAY-07")
        return chosen.numpy().item()

    def __iter__(self) -> Iterator[Tensor]:
        """Views at each index of the first dimension."""
        if not self.shape:
            raise InvalidDescTypeError("", "iter", "the tensor has no dimensions", "ARRAY-01")
        return (self[index] for index in range(self.shape[0]))

    # -- assignment --------------------------------------------------------------------------------

    def __setitem__(self, index: Any, value: Any) -> None:
        """Write to the elements that ``self[index]`` is a view or a copy of, as NumPy does.

        The value is an array, a tensor, a scalar or a nested list. It is broadcast to the shape of
        ``self[index]``, and converted to the dtype: arrays and tensors by any cast
        (``casting="unsafe"``), Python's numbers only where they fit. A value that shares memory
        with this tensor is read before anything is written. If an error is raised, nothing was
        written.

        Where arrays of indices select an element several times, any of its values remains. Integers
        and indices in arrays and lists are checked; indices in a tensor that are out of range are
        skipped.

        Raises:
            InvalidDescIndexError: as for ``self[index]`` (ARRAY-09).
            InvalidDescError: the value cannot be broadcast or converted, or this is a view made by
                ``broadcast_to``, which is read-only as in NumPy (ARRAY-10), or it is a tensor of
                another adapter (B-02).
            OutOfDeviceMemoryError: no memory to send the value.

        >>> import vkops
        >>> x = vkops.tile(0, (2, 3))
        >>> x[1] = [4, 5, 6]
        >>> x[:, :2] = x[:, 1:]
        >>> x.numpy().tolist()
        [[0, 0, 0], [5, 6, 6]]
        >>> x[[1, 0], [0, 2]] = 7, 8
        >>> x.numpy().tolist()
        [[0, 0, 8], [7, 6, 6]]
        """
        found = elements.select(self, index)
        if isinstance(found, View):
            target = self._over(self.placed()[0], found)
            elements.write(target, target._assigned("ASSIGNMENT", target.shape, value))
            return
        source = self._assigned("ASSIGNMENT", found.shape, value)
        elements.write_indexed(self, source, scattering, found, found.shape)

    def fill(self, value: Any) -> None:
        """Write a scalar to all elements; arrays are written by ``tensor[...] = array``.

        Raises:
            InvalidDescError: it is not a scalar, or as for assignment (ARRAY-10).
        """
        self._check_writable("FILL")
        if isinstance(value, (np.ndarray, Tensor)) and value.shape:
            message = (
                f"has shape {value.shape}, must be a scalar; assign arrays with t[...] = array"
            )
            refuse("FILL", "value", message, "ARRAY-10")
        if isinstance(value, Tensor):
            check_device("FILL", "value", value, self.device)
            value = value.numpy()
        scalar = np.empty((), self.dtype)
        with numpy_refusals("FILL"):
            scalar.fill(value)
        elements.write(self, scalar)

    def _check_writable(self, name: str) -> None:
        """Refuse a read-only view (ARRAY-10)."""
        if self._read_only:
            message = "is read-only: broadcast_to repeats its elements"
            refuse(name, "tensor", message, "ARRAY-10")

    def _assigned(self, name: str, shape: Ints, value: Any) -> Tensor | npt.NDArray[Any]:
        """A value with the dtype of this tensor, to be written to elements of this shape."""
        self._check_writable(name)
        if isinstance(value, Tensor):
            check_device(name, "value", value, self.device)
        is_array = isinstance(value, (np.ndarray, Tensor))
        if is_array:  # before its elements are converted
            shapes.check_broadcast(name, value.shape, shape)
            if 0 in shape:  # NumPy checks the cast of dtypes, but converts no element
                value = np.empty(0, value.dtype)
        source = self._converted(name, value)
        if not is_array:
            shapes.check_broadcast(name, source.shape, shape, may_drop=False)
        return source

    def _converted(self, name: str, value: Any) -> Tensor | npt.NDArray[Any]:
        """A value as NumPy converts it to this dtype; a tensor that has the dtype, as it is."""
        if isinstance(value, Tensor):
            base, _ = value.placed()
            if value.dtype == self.dtype and isinstance(base._buffer, Buffer):
                return value
            value = value.numpy()
        with numpy_refusals(name):
            if isinstance(value, np.generic):  # NumPy casts scalars by other rules than arrays
                scalar = np.empty((), self.dtype)
                scalar[...] = value
                return scalar
            return np.asarray(value, self.dtype)

    # -- conversion --------------------------------------------------------------------------------

    def __array__(
        self, dtype: npt.DTypeLike | None = None, copy: bool | None = None
    ) -> npt.NDArray[Any]:
        array, copied = self._elements()
        try:
            wanted = array.dtype if dtype is None else np.dtype(dtype)
            if wanted != array.dtype:
                if copy is False:
                    raise ValueError(f"a {self.dtype} tensor as {wanted} needs a copy")
                return array.astype(wanted)
            if copied and copy is False:
                raise ValueError("the memory cannot be shown without a copy")
        except CONVERSION_ERRORS as error:
            raise from_builtin(error, "__array__", "dtype", "ARRAY-11") from error
        return array.copy() if copy else array

    def __format__(self, spec: str) -> str:
        # As NumPy does: without dimensions, the element's own format.
        return super().__format__(spec) if self.shape else format(self.numpy(), spec)

    def tolist(self) -> Any:
        """The elements as nested lists of Python's objects; without dimensions, the object."""
        return self.numpy().tolist()

    def __dlpack__(
        self,
        *,
        stream: None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """A capsule of the array that ``numpy`` returns, marked read-only.

        It holds a packed copy where elements are in reverse order, since not every consumer can
        express negative strides, and for consumers of DLPack before 1.0, which cannot be told that
        memory is read-only.

        Raises:
            InvalidDescTypeError: an argument of the wrong kind (ARRAY-11).
            InvalidDescBufferError: another device, no copy where one is needed, or a dtype unknown
                to DLPack (ARRAY-11).
        """
        return exchange.export(*self._elements(), stream, max_version, dl_device, copy)

    def __dlpack_device__(self) -> tuple[int, int]:
        return exchange.CPU

    def _number(self, convert: Callable[[Any], Number]) -> Number:
        """The only element, as a number of Python (ARRAY-07)."""
        name = convert.__name__
        if self.size != 1:
            message = f"has {self.size} elements, must have 1 to be a number"
            # NumPy has a ValueError for the one, and a TypeError for the others.
            kind = InvalidDescError if convert is bool else InvalidDescTypeError
            raise kind(name, "tensor", message, "ARRAY-07")
        element = self.numpy().reshape(())
        try:
            return convert(element)
        except CONVERSION_ERRORS as error:
            raise from_builtin(error, name, "tensor", "ARRAY-07") from error

    def __bool__(self) -> bool:
        return self._number(bool)

    def __int__(self) -> int:
        return self._number(int)

    def __float__(self) -> float:
        return self._number(float)

    def __complex__(self) -> complex:
        return self._number(complex)

    def __index__(self) -> int:
        if self.dtype.kind not in "iu" or self.shape:
            message = f"is {self.dtype} {self.shape}, must be an integer without dimensions"
            raise InvalidDescTypeError("index", "tensor", message, "ARRAY-07")
        return self._number(int)

    # -- protocols ---------------------------------------------------------------------------------

    def __copy__(self) -> Tensor:
        return self.copy()

    def __deepcopy__(self, memo: Any) -> Tensor:
        return self.copy()

    def __reduce__(self) -> tuple[Any, ...]:
        # As bytes: NumPy's own pickles lose the byte order.
        return _unpickled, (packed_bytes(self.numpy()), self.dtype, self.shape)

    def __array_namespace__(self, /, *, api_version: str | None = None) -> ModuleType:
        """The module ``vkops``: the array API's functions that move data are its functions.

        Raises:
            InvalidDescError: an unknown version of the array API (ARRAY-19).
        """
        is_known = isinstance(api_version, str) and api_version in array_protocols.API_VERSIONS
        if not (api_version is None or is_known):
            message = (
                f"got {show(api_version)}, must be one of {', '.join(array_protocols.API_VERSIONS)}"
            )
            raise InvalidDescError("__array_namespace__", "api_version", message, "ARRAY-19")
        return import_late("vkops")

    def __array_function__(
        self,
        func: Callable[..., Any],
        types: Iterable[type],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
    ) -> Any:
        """Run a function of NumPy as the function of vkops that has its name (NEP 18).

        ``numpy.split`` keeps NumPy's meaning. Functions that describe, save or read an array
        run as they are, and those that say whether two arrays are the same compare the elements
        on the host; all others raise an error, as operators that compute do.

        Raises:
            InvalidDescTypeError: vkops has no function of this name, or that has no such argument
                (ARRAY-08).
        """
        if not all(issubclass(kind, (Tensor, np.ndarray)) for kind in types):
            return NotImplemented
        if func.__module__ == "numpy" and func.__name__ in array_protocols.COMPARISONS:
            return func(*map(_on_host, args), **{k: _on_host(v) for k, v in kwargs.items()})
        return array_protocols.call_counterpart(func, args, kwargs, self.device)

    def __array_ufunc__(self, ufunc: Any, *_: Any, **__: Any) -> NoReturn:
        refuse_to_compute(f"numpy.{ufunc.__name__}")

    # Weak references to a tensor compare it with itself.

    def __eq__(self, other: object) -> bool:
        return self is other or refuse_to_compute("==")

    def __ne__(self, other: object) -> bool:
        return self is not other and refuse_to_compute("!=")

    if not TYPE_CHECKING:  # to type checkers, all attributes would exist

        def __getattr__(self, name: str) -> Any:
            message = f"vkops.Tensor has no attribute {name!r}"
            if hasattr(np.ndarray, name):
                instead = f"vkops.kernels.{name}" if name in KERNELS else f".numpy().{name}"
                message += f": tensors only move data; use {instead}"
            raise AttributeError(message, name=name, obj=self)


refuse_operators(Tensor, refuse_to_compute)


class Device(OperatorDevice):
    """A Vulkan device that creates, compiles and runs DirectML operators.

    Devices of one adapter share Vulkan's device and queue, so each can use the tensors and buffers
    of the others. A signal handler or a finalizer that uses a device in the middle of an operation
    on the same thread gets a DeviceError.

    Source: IDMLDevice. Validation is capped at ``feature_level`` (DEV-03; default: the newest),
    where DirectML treats the level as a minimum.

    Args:
        adapter: index, or part of an adapter's name; default: the one that the environment's
            VKOPS_ADAPTER names, or a GPU before a CPU driver.
        feature_level: ``FeatureLevel`` or its name, such as ``"5_0"``.
        debug: load the Khronos validation layer (DML_CREATE_DEVICE_FLAG_DEBUG).
        alternative_levels: operators, such as ``"JOIN"``, that take the ranks of DirectML's other
            sources where these contradict the operator's page (JOIN-09).
        staged: move data through staging buffers even where the host sees device memory, as
            discrete GPUs must.
        expect: what the adapter has to be: ``"lavapipe"``, ``"gpu"`` or part of a name (default:
            what the environment's VKOPS_EXPECT says, if it is set).
        printf: print what shaders print with debugPrintfEXT, after each call, which waits (default:
            whether the environment has VKOPS_PRINTF=1). It needs the validation layer.

    Raises:
        DeviceError: no such adapter, driver, loader or layer, another adapter than expected, or an
            argument of the wrong kind (DEV-14).
        InvalidDescError: unknown feature level (DEV-04).

    >>> import numpy as np
    >>> from vkops import dml
    >>> device = Device()
    >>> whole = dml.BufferTensorDesc(dml.TensorDataType.FLOAT32, (6, 2))
    >>> half = dml.BufferTensorDesc(dml.TensorDataType.FLOAT32, (3, 2))
    >>> desc = dml.SplitOperatorDesc(whole, (half, half), axis=0)
    >>> split = device.compile_operator(device.create_operator(desc))
    >>> x = device.tensor(np.arange(12, dtype=np.float32))
    >>> parts = [device.buffer(24), device.buffer(24)]
    >>> split.dispatch([x], parts)
    >>> np.frombuffer(parts[1].read(), np.float32)
    array([ 6.,  7.,  8.,  9., 10., 11.], dtype=float32)
    """

    _repr_html_ = repr_html

    def __dir__(self) -> list[str]:
        return _public(self)

    def tensor(self, array: Any) -> Tensor:
        """Copy an array to the device.

        Raises:
            InvalidDescTypeError: its elements are not of 1, 2, 4, 8 or 16 bytes (T-02).
            OutOfDeviceMemoryError: it does not fit.
        """
        return Tensor.from_array(self, array)

    def empty(self, shape: int | Sequence[int], dtype: Any = None) -> Tensor:
        """Make a tensor whose elements are undefined; see ``vkops.empty``."""
        return undefined("EMPTY", shape, dtype, self)

    def record(self) -> RecordedProgram:
        """Record a program: what this thread does in a ``with`` block is collected, and not run.

        It can be functions, operators, graphs and shaders, on tensors that exist or that are made
        in the block. The shapes and the memory are those of the recording, and so are all values of
        the host: each run copies the same. In the block, elements cannot be read, nor can data be
        streamed.

        Returns:
            the program, as a context manager; see ``RecordedProgram``.

        Raises:
            DeviceError: the device is closed.
        """
        self.check()
        return RecordedProgram(self)

    def synchronize(self) -> None:
        """Wait for all that was submitted to the adapter.

        Raises:
            DeviceError: the device is closed, or was lost.
        """
        self.settle()

    async def synchronize_async(self) -> None:
        """Wait as ``synchronize`` does, while the event loop goes on as the device works.

        It waits for what was submitted before the call. To cancel it ends the wait; the work goes
        on.

        Raises:
            DeviceError: the device is closed, or is lost meanwhile.

        >>> import asyncio, vkops
        >>> async def main():
        ...     x = vkops.zeros(1_000_000)
        ...     y = vkops.roll(x, 1)
        ...     await x.device.synchronize_async()
        ...     return y.is_ready
        >>> asyncio.run(main())
        True
        """
        await ended(self, 0)  # streams, which submit work
        await ended(self, self.vulkan.native.submitted)


DeviceLike: TypeAlias = Device | str | int | None
"""A device, or the adapter of one: an index, or part of its name; None if none is chosen."""


def default_device() -> Device:
    """The device used for NumPy arrays when none is given: that of the best adapter."""
    return _opened(None)


def as_device(name: str, device: Any) -> Device:
    """A device, or the one of an adapter that is named; it is opened once (B-02).

    Raises:
        InvalidDescTypeError: it is of another kind.
        DeviceError: there is no such adapter.
    """
    if isinstance(device, Device):
        return device
    if isinstance(device, bool) or not isinstance(device, (str, int)):
        kinds = "a Device, the index of an adapter, or part of its name"
        raise Place(name, "device", "B-02").wrong_kind(device, kinds)
    return _opened(adapter.choose(device).index)


def _opened(index: int | None) -> Device:
    """The device of an adapter: opened once, and again when it was closed or lost."""
    device = _device_of(index)
    if device.closed:
        _device_of.cache_clear()
        device = _device_of(index)
    return device


@lru_cache(maxsize=64)
def _device_of(index: int | None) -> Device:
    return _opened(adapter.choose(None).index) if index is None else Device(index)


def undefined(name: str, shape: Any, dtype: Any, device: Device | None) -> Tensor:
    """A tensor whose elements are undefined, on a device or the default one."""
    kind = as_dtype(name, dtype)
    sizes = shapes.sizes_of(name, shape, kind.itemsize)
    return Tensor(device or default_device(), sizes, kind, on_host=None)


def _unpickled(data: npt.NDArray[np.uint8], dtype: np.dtype[Any], shape: Ints) -> Tensor:
    home, array = default_device(), data.view(dtype).reshape(shape)
    try:
        return Tensor.from_array(home, array)
    except OutOfDeviceMemoryError:
        return Tensor.from_array(home, array, on_host=True)


def _on_host(value: Any) -> Any:
    """The elements of a tensor; anything else as it is."""
    return np.asarray(value) if isinstance(value, Tensor) else value
