"""Tensors: a shape and a NumPy dtype over device memory."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import zip_longest
from math import prod
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from vkops.arguments.values import Place
from vkops.errors import DeviceError, OutOfDeviceMemoryError
from vkops.gpu.adapters import adapter
from vkops.gpu.run.buffer import Buffer, HostBuffer
from vkops.gpu.run.streaming import Progress
from vkops.plan.execute import packed_bytes
from vkops.plan.rounding import ceil_div
from vkops.plan.view import Ints, View
from vkops.runtime.device import OperatorDevice
from vkops.tensors.array_plan import ArrayPlan, Batch, fits, packing
from vkops.tensors.array_protocols import ArrayProtocols
from vkops.tensors.assignment import Assignment, host_view
from vkops.tensors.exchange import Exchange, as_array, as_dtype, numpy_refusals
from vkops.tensors.printing import describe
from vkops.tensors.refused_operators import NoOperators
from vkops.tensors.shape_arguments import may_copy, refuse
from vkops.tensors.views import packed


class Device(OperatorDevice):
    """A Vulkan device that creates, compiles and runs DirectML operators.

    Devices of one adapter share Vulkan's device and queue, so each can use the tensors and buffers
    of the others, in one operator too. A device
    cannot be used in the middle of an operation, as a signal handler or a finalizer on the same
    thread would: that raises a DeviceError.

    Source: IDMLDevice. Validation is capped at ``feature_level`` (DEV-03; default: the newest),
    where DirectML treats the level as a minimum.

    Args:
        adapter: index, or part of an adapter's name; default: the one that the environment's
            VKOPS_ADAPTER names, or a GPU before a CPU driver.
        feature_level: ``FeatureLevel`` or its name, such as ``"5_0"``.
        debug: load the Khronos validation layer (DML_CREATE_DEVICE_FLAG_DEBUG).
        alternative_levels: operators, such as ``"JOIN"``, for which the rows that other sources
            give apply (JOIN-09).
        staged: move data through staging buffers even where the host sees device memory, as
            discrete GPUs must.
        expect: what the adapter has to be: ``"lavapipe"``, ``"gpu"`` or part of a name (default:
            what the environment's VKOPS_EXPECT says, if it is set).

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

    def tensor(self, array: Any) -> Tensor:
        """Copy an array to the device.

        Raises:
            InvalidDescTypeError: its elements are not of 1, 2, 4, 8 or 16 bytes (T-02).
            OutOfDeviceMemoryError: it does not fit.
        """
        return Tensor.from_array(self, array)


DeviceLike: TypeAlias = Device | str | int
"""A device, or the adapter of one: an index, or part of its name."""


@lru_cache(maxsize=1)
def default_device() -> Device:
    """The device used for NumPy arrays when none is given: opened once, of the best adapter."""
    return _device_of(adapter.choose(None).index)


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
    return _device_of(adapter.choose(device).index)


@lru_cache(maxsize=64)
def _device_of(index: int) -> Device:
    return Device(index)


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


class Tensor(Assignment, Exchange, ArrayProtocols, NoOperators):
    """An array in device memory, freed with this object.

    Indexing, ``transpose``, ``reshape`` and similar methods return views: tensors over the same
    memory. A view always shows what its tensor holds, and ``view[...] = x`` writes to
    that tensor. Functions such as ``join`` read the memory of views directly; an operator that is
    bound to a view reads a packed copy, made at that moment with one dispatch.

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

    __slots__ = (
        "__weakref__",
        "_buffer",
        "_device",
        "_dtype",
        "_lazy",
        "_nbytes",
        "_read_only",
        "_shape",
        "_size",
    )

    device: Device
    shape: Ints
    dtype: np.dtype[Any]
    size: int
    nbytes: int
    _buffer: Buffer | HostBuffer | None
    # Of a view: the tensor that owns the memory, and the view of it. One attribute, so that other
    # threads never see half of a change.
    _lazy: tuple[Tensor, View] | None
    _read_only: bool

    def __init__(
        self, device: Device, shape: Ints, dtype: np.dtype[Any], *, on_host: bool = False
    ) -> None:
        self._describe(device, shape, dtype)
        size = self.words * 4
        if size:
            self._buffer = HostBuffer(size) if on_host else Buffer(device.executor, size)

    def _describe(self, device: Device, shape: Ints, dtype: np.dtype[Any]) -> None:
        self._device = device
        self._shape = shape
        self._dtype = dtype
        self._size = prod(shape)
        self._nbytes = self._size * dtype.itemsize
        self._buffer = self._lazy = None
        self._read_only = False

    @classmethod
    def from_array(cls, device: Device, array: Any, *, on_host: bool = False) -> Tensor:
        """Copy an array, or anything that NumPy makes one of, to the device."""
        source = as_array(array)
        return cls.from_arrays(device, [source], source.shape, on_host=on_host)

    @classmethod
    def from_arrays(
        cls,
        device: Device,
        arrays: Sequence[npt.NDArray[Any]],
        shape: Ints,
        *,
        on_host: bool = False,
    ) -> Tensor:
        """Copy arrays of one dtype to the device, one after the other, as a tensor of a shape."""
        tensor = cls(device, shape, arrays[0].dtype, on_host=on_host)
        if tensor._buffer is not None:
            tensor._buffer.fill_with(arrays)
        return tensor

    @classmethod
    def over(
        cls, device: Device, buffer: Buffer | HostBuffer | None, shape: Ints, dtype: np.dtype[Any]
    ) -> Tensor:
        """Make a tensor of a buffer that holds its elements."""
        tensor = cls.__new__(cls)
        tensor._describe(device, shape, dtype)
        tensor._buffer = buffer
        return tensor

    @classmethod
    def make(
        cls,
        plan: ArrayPlan,
        device: Device,
        inputs: Sequence[Tensor | npt.NDArray[Any]],
        dtypes: Sequence[np.dtype[Any]],
        progress: Progress | None = None,
        targets: Sequence[Tensor | None] = (),
        batch: Batch | None = None,
    ) -> list[Tensor]:
        """Run a plan; make a tensor for each result, or write to the tensor in ``targets``.

        With ``batch``, the plan may be run together with others, when the batch is run.

        Inputs are packed: of a view, a packed copy is read. Data that does not fit on the device is
        streamed, if all inputs are on the host.
        """
        # Held until all is done: another thread may release the tensors meanwhile.
        held = [source.buffer if isinstance(source, Tensor) else source for source in inputs]
        given = [target.buffer for target in targets if target is not None]
        on_host = not plan.fits(device.executor, held) or HostBuffer in map(type, given)
        results = [
            Tensor(device, shape, dtype, on_host=on_host) if target is None else target
            for shape, dtype, target in zip_longest(plan.shapes, dtypes, targets)
        ]
        plan.run(device.executor, held, [result.buffer for result in results], progress, batch)
        return results

    # -- description ------------------------------------------------------------------------------

    @property
    def words(self) -> int:
        """Words of 32 bits: whole ones, so that a descriptor of the shape can be bound (T-14)."""
        return ceil_div(self.nbytes, 4)

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return self.dtype.itemsize

    @property
    def strides(self) -> Ints:
        """Bytes from one element to the next along each dimension, in the present memory."""
        lazy = self._lazy
        view = packed(self.shape) if lazy is None else lazy[1]
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
        view = packed(self.shape) if lazy is None else lazy[1]
        columns = view.permute(tuple(reversed(range(self.ndim))))
        by_rows, by_columns = (not self.size or it.is_contiguous for it in (view, columns))
        return Flags(by_rows, by_columns, lazy is None, not self._read_only)

    def __sizeof__(self) -> int:
        # With the elements, as Dask counts memory: of a view, those that it shows.
        lazy = self._lazy
        held = self.nbytes if lazy is None else min(self.nbytes, lazy[0].nbytes)
        return object.__sizeof__(self) + held

    def __repr__(self) -> str:
        if self._buffer is None and self._lazy is None and self.size:
            return f"<released vkops.Tensor {self.shape} {self.dtype} on {self.device.name!r}>"
        return describe(self)

    # -- memory -----------------------------------------------------------------------------------

    @property
    def buffer(self) -> Buffer | HostBuffer | None:
        """The memory that holds the elements, row by row; None if there are none.

        Of a view that is not the whole of its tensor in the same order, it is a packed copy: each
        access makes a new one, with one dispatch.

        Raises:
            DeviceError: the tensor was released.
            OutOfDeviceMemoryError: there is no memory for the copy.
        """
        if self._buffer is not None:
            return self._buffer
        return self.placed()[0]._buffer if self.owns_buffer else self.copy()._buffer

    @property
    def owns_buffer(self) -> bool:
        """Whether ``buffer`` is the memory of the elements, and not a packed copy of them.

        Raises:
            DeviceError: the tensor was released.
        """
        base, view = self.placed()
        return base is self or (not view.offset and self.size == base.size and view.is_contiguous)

    def pack(self) -> Tensor:
        """Copy a view's elements to memory of its own, with one dispatch, and return the tensor."""
        self.placed()
        if self._lazy is not None:
            buffer = self.copy()._buffer
            self.device.executor.exclusive(lambda: self._own(buffer))
        return self

    def _own(self, buffer: Buffer | HostBuffer | None) -> None:
        if self._lazy is not None:  # else another thread was faster
            self._buffer = buffer
            self._lazy = None
            self._read_only = False

    def placed(self) -> tuple[Tensor, View]:
        """The tensor that owns the memory, and the view of it that holds the elements.

        Raises:
            DeviceError: one of the two was released.
        """
        lazy = self._lazy
        base, view = (self, packed(self.shape)) if lazy is None else lazy
        if base._buffer is None and base.size:
            raise DeviceError(f"the tensor {self.shape} {self.dtype} was released")
        return base, view

    def copy(self) -> Tensor:
        """The elements in memory of their own, packed."""
        base, view = self.placed()
        plan = packing(view, self.dtype.itemsize)
        return Tensor.make(plan, self.device, [base], [self.dtype])[0]

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
        memory = Tensor.over(self.device, base._buffer, base.shape, kind)
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
            return self if may_copy("ASTYPE", copy) is False else self.copy()
        with numpy_refusals("ASTYPE", "tensor"):
            made = self.numpy().astype(kind)
        on_host = not fits(self.device.executor, made.nbytes)
        return Tensor.from_array(self.device, made, on_host=on_host)

    def to(self, device: DeviceLike) -> Tensor:
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

    def to_device(self, device: DeviceLike, /, *, stream: None = None) -> Tensor:
        """The same as ``to``, by the array API's name; the copy is complete when it returns.

        Raises:
            InvalidDescTypeError: not a device (B-02), or a stream, which vkops has none of
                (ARRAY-19).
        """
        if stream is not None:
            raise Place("TO_DEVICE", "stream", "ARRAY-19").wrong_kind(stream, "None")
        return self.to(device)

    def release(self) -> None:
        """Give the memory back now; this tensor and its views cannot be used any more.

        A view gives up its share: the memory goes with the tensor that it is a view of. Memory
        that arrays still view, or that is bound to an operator, goes with these.
        """
        self._lazy = self._buffer = None

    def __enter__(self) -> Tensor:
        return self

    def __exit__(self, *exception: object) -> None:
        self.release()

    def numpy(self) -> npt.NDArray[Any]:
        """The elements as a read-only array: a view where the host sees device memory."""
        base, view = self.placed()
        buffer = base._buffer
        if not self.size:
            return np.empty(self.shape, self.dtype)
        if buffer is None:  # released meanwhile
            raise DeviceError(f"the tensor {self.shape} {self.dtype} was released")
        if base is self:
            return buffer.array(0, self.nbytes).view(self.dtype).reshape(self.shape)
        itemsize = self.dtype.itemsize
        start = view.offset * itemsize
        if view.is_contiguous:
            return buffer.array(start, self.nbytes).view(self.dtype).reshape(self.shape)
        if host_view(buffer) is None:
            return self.copy().numpy()
        strides = tuple([stride * itemsize for stride in view.strides])
        memory = buffer.array(0, base.nbytes)
        array: npt.NDArray[Any] = np.ndarray(self.shape, self.dtype, memory, start, strides)
        return array

    if not TYPE_CHECKING:  # to type checkers, all attributes would exist

        def __getattr__(self, name: str) -> Any:
            message = f"vkops.Tensor has no attribute {name!r}"
            if hasattr(np.ndarray, name):
                message += f": tensors only move data; use .numpy().{name}"
            raise AttributeError(message, name=name, obj=self)

    def _check_device(self, name: str, field: str, value: Any) -> None:
        check_device(name, field, value, self.device)

    def _run(self, plan: ArrayPlan, inputs: Sequence[Any], dtype: np.dtype[Any]) -> Tensor:
        return Tensor.make(plan, self.device, inputs, [dtype])[0]

    def _write_plan(self, plan: ArrayPlan, inputs: Sequence[Any]) -> None:
        Tensor.make(plan, self.device, inputs, [self.dtype], targets=[self])

    def __copy__(self) -> Tensor:
        return self.copy()

    def __deepcopy__(self, memo: Any) -> Tensor:
        return self.copy()

    def __reduce__(self) -> tuple[Any, ...]:
        # As bytes: NumPy's own pickles lose the byte order.
        return _unpickled, (packed_bytes(self.numpy()), self.dtype, self.shape)

    def _over(self, base: Tensor, view: View, *, read_only: bool = False) -> Tensor:
        """A view of a tensor's memory; without elements it needs none."""
        made = Tensor.__new__(Tensor)
        made._describe(self.device, view.sizes, self.dtype)
        made._read_only = self._read_only or read_only
        if made.size:
            made._lazy = base, view
        return made


# Read-only: with another shape or dtype, memory of other tensors would be read and written.
# ``attrgetter`` reads as fast as an attribute.
for _name, _doc in {
    "device": "The device that holds the elements.",
    "shape": "Size of each dimension, in elements, outermost first.",
    "dtype": "NumPy's type of the elements.",
    "size": "Number of elements.",
    "nbytes": "Bytes of the elements.",
}.items():
    setattr(Tensor, _name, property(attrgetter(f"_{_name}"), doc=_doc))


def _unpickled(elements: npt.NDArray[np.uint8], dtype: np.dtype[Any], shape: Ints) -> Tensor:
    array = elements.view(dtype).reshape(shape)
    home = default_device()
    try:
        return Tensor.from_array(home, array)
    except OutOfDeviceMemoryError:
        return Tensor.from_array(home, array, on_host=True)


def check_device(name: str, field: str, tensor: Any, home: Device) -> None:
    """Refuse a tensor whose memory a device cannot use: that of another adapter (B-02)."""
    if tensor.device is not home and not tensor.device.shares_memory_with(home):
        message = f"is on {tensor.device!r}, must be on {home!r}; tensor.to(device) copies it"
        refuse(name, field, message, "B-02")
