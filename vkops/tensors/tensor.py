"""Tensors: a shape and a NumPy dtype over device memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from math import prod
from types import ModuleType
from typing import (
    TYPE_CHECKING,
    Any,
    Literal,
    NamedTuple,
    TypeAlias,
    TypeVar,
    overload,
)

import numpy as np
import numpy.typing as npt

from vkops.arguments.other_names import hint, suggest_names
from vkops.arguments.refused_operators import computing_function, refuse_operators
from vkops.arguments.values import ArgumentName, boolean, instance, number, refuse
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
from vkops.gpu.adapters.adapter import DeviceInfo
from vkops.gpu.memory import pinned as pinned_memory
from vkops.gpu.run import shared_memory
from vkops.gpu.run.asynchronous import ended
from vkops.gpu.run.buffer import Buffer
from vkops.gpu.run.event import Event
from vkops.gpu.run.kompute_manager import KomputeManager
from vkops.gpu.run.open_device import with_reclaim
from vkops.gpu.run.recording import RecordedProgram
from vkops.gpu.run.shared_memory import MAX_SECONDS, SharedHandle
from vkops.notebook import repr_html
from vkops.plan.execute import packed_bytes
from vkops.plan.rounding import ceil_div
from vkops.plan.view import Ints
from vkops.runtime.device import OperatorDevice
from vkops.runtime.sampler import Sampler
from vkops.tensors import array_protocols, cuda_exchange, elements, exchange
from vkops.tensors import shape_arguments as shapes
from vkops.tensors.array_protocols import refuse_to_compute
from vkops.tensors.element_methods import ElementMethods
from vkops.tensors.exchange import as_dtype, numpy_refusals
from vkops.tensors.operators import InPlaceOperators, NumpyMethods

Scalar = TypeVar("Scalar", bool, int, float, complex)


class Flags(NamedTuple):
    """The layout of a tensor's elements in memory, with the names of NumPy's flags."""

    c_contiguous: bool
    """Whether the elements are contiguous row by row."""
    f_contiguous: bool
    """Whether the elements are contiguous column by column."""
    owndata: bool
    """Whether the memory is the tensor's own: False for views."""
    writeable: bool
    """Whether elements can be assigned to: False for views made by ``broadcast_to``."""


_INTERNAL = frozenset(
    """check_usable fits from_array image_pool is_read_only make make_ready mapped over
    owns_buffer pack pinned_pool placed pool shared_pool submit tuning vulkan wait words""".split()  # noqa: SIM905
)
"""Names that other modules of vkops use; ``dir`` leaves them out."""


def _public(self: object) -> list[str]:
    return sorted({*object.__dir__(self)} - _INTERNAL)


class Tensor(ElementMethods, InPlaceOperators, NumpyMethods):
    """An array in device memory, freed with this object.

    Indexing, ``transpose``, ``reshape`` and similar methods return views: tensors over the same
    memory. A view always shows what its tensor holds, and ``view[...] = x`` writes to that tensor.
    Functions such as ``join`` read the memory of views directly; an operator that is bound to a
    view reads a packed copy, made at that moment with one dispatch.

    Results that do not fit on the device stay on the host. Operators compute with elements, as
    those of NumPy's arrays do (see ``vkops.add``), so tensors have no hash. A pickled tensor is
    restored on the default device, or on the host if it does not fit there; the pickle has the
    elements and nothing of the device.

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

    __slots__ = ()

    device: Device

    # -- description -------------------------------------------------------------------------------

    @property
    def words(self) -> int:
        """32-bit words that hold the elements, rounded up as total sizes of tensors are (T-14)."""
        return ceil_div(self.nbytes, 4)

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
        # With the elements, as Dask counts memory: for a view, the elements that it shows.
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
            message = f"got {kind} of {kind.itemsize} bytes, must have "
            message += f"{self.itemsize} as {self.dtype}"
            refuse("VIEW", "dtype", message, "ARRAY-17")
        base, view = self.placed()
        memory = Tensor.over(self.device, base.buffer, base.shape, kind)
        return memory._over(memory, view, read_only=self._read_only)

    def astype(self, dtype: npt.DTypeLike, *, copy: bool = True) -> Tensor:
        """The elements converted by NumPy, on the host; a copy, unless ``copy`` is False.

        As with NumPy's ``astype``, any cast is allowed. The result for a float outside the range of
        an integer type depends on the host's processor. The result is on the same device.

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
            converted = self.numpy().astype(kind)
        return Tensor.from_array(self.device, converted, on_host=None)

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
            raise ArgumentName("TO_DEVICE", "stream", "ARRAY-19").wrong_kind(stream, "None")
        return self.to(device)

    def __enter__(self) -> Tensor:
        return self

    def __exit__(self, *exception: object) -> None:
        self.release()

    # -- conversion --------------------------------------------------------------------------------

    def __array__(
        self, dtype: npt.DTypeLike | None = None, copy: bool | None = None
    ) -> npt.NDArray[Any]:
        array, copied = self._elements()
        try:
            kind = array.dtype if dtype is None else np.dtype(dtype)
            if kind != array.dtype:
                if copy is False:
                    raise ValueError(f"a {self.dtype} tensor as {kind} needs a copy")
                return array.astype(kind)
            if copied and copy is False:
                raise ValueError("the memory cannot be shown without a copy")
        except CONVERSION_ERRORS as error:
            raise from_builtin(error, "__array__", "dtype", "ARRAY-11") from error
        return array.copy() if copy else array

    def __format__(self, spec: str) -> str:
        # As in NumPy: without dimensions, the format applies to the element.
        return super().__format__(spec) if self.shape else format(self.numpy(), spec)

    def tolist(self) -> Any:
        """The elements as nested lists of Python's objects; without dimensions, the object."""
        return self.numpy().tolist()

    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """A capsule of a copy of the elements, which its consumer may write to.

        With ``copy=False``, it shows the array that ``numpy`` returns, and is marked read-only.
        PyTorch writes to it nevertheless.

        If the tensor, or its device, was made with ``shared=True``, and CUDA has the same GPU, the
        capsule shows the memory itself to CUDA, for its consumer to read and write, and the
        ``stream`` of CUDA waits for all that was submitted until now: 1 or None for CUDA's default
        stream, 2 for that of the thread, or a handle; with -1, nothing waits. Only ``copy=True``,
        and views that are read-only or in reverse order, make a copy on the GPU. With ``dl_device``
        (1, 0), the elements come as those of other tensors.

        Raises:
            InvalidDescTypeError: an argument of the wrong kind (ARRAY-11).
            DeviceError: for CUDA, the device is closed or lost, or CUDA fails.
            InvalidDescBufferError: another device; a dtype unknown to DLPack; or ``copy=False``
                where a copy is needed: for elements in reverse order, since not every consumer can
                express negative strides, and for consumers of DLPack before 1.0, which cannot be
                told that memory is read-only (ARRAY-11).
        """
        own = self.__dlpack_device__()
        chosen = own if dl_device is None else exchange.pair("dl_device", dl_device)
        if chosen[0] == exchange.CUDA:
            return cuda_exchange.exported(self, chosen, stream, max_version, copy)
        return exchange.export(*self._elements(), stream, max_version, chosen, copy)

    def __dlpack_device__(self) -> tuple[int, int]:
        found = cuda_exchange.device_of(self)
        return exchange.CPU if isinstance(found, str) else (exchange.CUDA, found.number)

    def _number(self, convert: Callable[[Any], Scalar]) -> Scalar:
        """Return the only element as a Python number (ARRAY-07)."""
        name = convert.__name__
        if self.size != 1:
            message = f"has {self.size} elements, must have 1 to be a number"
            # NumPy raises a ValueError in the first case, and a TypeError in the second.
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

    def share(self, timeout: float = 60) -> SharedHandle:
        """Return a handle by which another process of the same user sees the memory, too.

        The tensor, or its device, must have been created with ``shared=True``. This method waits
        for submissions that write the tensor. After that, the processes must synchronize their
        accesses themselves: after it has written, a process waits (``Device.synchronize``) before
        it notifies another one. The handle can be pickled once, for example as an argument of a
        process that Python spawns, and opened once, by ``vkops.open_shared``. If it is not opened,
        it ends with the tensor or after a time.

        Args:
            timeout: seconds after which the handle ends if it was not opened.

        Raises:
            InvalidDescError: neither tensor nor device was created with ``shared=True``; the tensor
                is a view, or has no elements; or the time is not a number above 0 (ARRAY-21).
            DeviceError: the device is closed or lost, or the system cannot pass memory on.

        >>> import vkops
        >>> device = vkops.Device()
        >>> x = device.tensor([1, 2, 3], shared=True)
        >>> y = vkops.open_shared(x.share(), device)
        >>> x[0] = 7
        >>> device.synchronize()
        >>> y.tolist()
        [7, 2, 3]
        """
        self.device.check_usable()
        seconds = number(timeout, ArgumentName("SHARE", "timeout", "ARRAY-21"))
        if not 0 < seconds < MAX_SECONDS:
            message = f"got {show(timeout)}, must be above 0 and less than {MAX_SECONDS:,} seconds"
            refuse("SHARE", "timeout", message, "ARRAY-21")
        base, _ = self.placed()
        buffer = base._buffer
        if base is not self or not shared_memory.is_shared(buffer):
            message = (
                "must be a whole tensor that device.tensor(..., shared=True) has made, or one of a "
                "device that was opened with shared=True"
            )
            refuse("SHARE", "tensor", message, "ARRAY-21")
        return SharedHandle.of(self.device, buffer, self.shape, self.dtype, seconds)

    def __reduce__(self) -> tuple[Any, ...]:
        # As bytes: NumPy's own pickles do not keep the byte order.
        return _unpickled, (packed_bytes(self.numpy()), self.dtype, self.shape)

    def __array_namespace__(self, /, *, api_version: str | None = None) -> ModuleType:
        """The module ``vkops``: the array API's functions that move data are its functions.

        Raises:
            InvalidDescError: an unknown version of the array API (ARRAY-19).
        """
        is_known = isinstance(api_version, str) and api_version in array_protocols.API_VERSIONS
        if not (api_version is None or is_known):
            versions = ", ".join(array_protocols.API_VERSIONS)
            message = f"got {show(api_version)}, must be one of {versions}"
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
        on the host; all others raise an error.

        Raises:
            InvalidDescTypeError: vkops has no function of this name, or that has no such argument
                (ARRAY-08).
        """
        if not all(issubclass(kind, (Tensor, np.ndarray)) for kind in types):
            return NotImplemented
        if func.__module__ == "numpy" and func.__name__ in array_protocols.COMPARISONS:
            return func(*map(_on_host, args), **{k: _on_host(v) for k, v in kwargs.items()})
        return array_protocols.call_counterpart(func, args, kwargs, self.device)

    def __contains__(self, value: Any) -> bool:
        return bool(import_late("vkops.kernels").any(self == value))

    if TYPE_CHECKING:

        @property
        def __cuda_array_interface__(self) -> dict[str, Any]: ...

    else:  # to type checkers, all attributes would exist

        def __getattr__(self, name: str) -> Any:
            if name == "__cuda_array_interface__":  # exists only if CUDA sees them
                return cuda_exchange.interface(self)
            message = f"vkops.Tensor has no attribute {name!r}"
            if suggestion := hint(name):
                message += suggestion
            elif hasattr(np.ndarray, name):
                message += f": use {computing_function(name) or f'.numpy().{name}'}"
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
        shared: give each tensor memory that other processes can see; see ``Tensor.share``.
        expect: the adapter that is required: ``"lavapipe"``, ``"gpu"`` or a part of its name
            (default: the value of VKOPS_EXPECT in the environment, if it is set).
        printf: show the output of debugPrintfEXT in shaders; each call then waits (default: whether
            the environment has VKOPS_PRINTF=1). It needs the validation layer.
        indices: the rule for indices out of range in DirectML's GATHER and SCATTER operators:
            ``"vkops"`` reads the nearest element of the dimension, and writes none; ``"directml"``
            reads and writes the same elements of the tensor as DirectML 1.15.4, bit for bit (see
            "What DirectML does otherwise"). Other functions, and ONNX models, have rules of their
            own.

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

    @overload
    def tensor(self, array: Any, *, shared: bool = False, wait: Literal[True] = True) -> Tensor: ...

    @overload
    def tensor(
        self, array: Any, *, shared: bool = False, wait: Literal[False]
    ) -> tuple[Tensor, Event]: ...

    def tensor(
        self, array: Any, *, shared: bool = False, wait: bool = True
    ) -> Tensor | tuple[Tensor, Event]:
        """Copy an array to the device.

        Args:
            array: an array, or anything that NumPy makes one of.
            shared: whether other processes can see the tensor; see ``Tensor.share``.
            wait: with False, return the tensor and an ``Event``, before the device has read a
                pinned array; see ``Tensor.set``.

        Raises:
            InvalidDescTypeError: its elements are not of 1, 2, 4, 8 or 16 bytes (T-02), or
                ``shared`` or ``wait`` is not True or False (ARRAY-06).
            OutOfDeviceMemoryError: it does not fit.
            DeviceError: the device is closed, or cannot share memory.
        """
        if shared is False and wait is True:
            return Tensor.from_array(self, array)
        waits, source = (
            boolean(wait, ArgumentName("TENSOR", "wait", "ARRAY-06")),
            exchange.as_array(array),
        )
        if boolean(shared, ArgumentName("TENSOR", "shared", "ARRAY-06")):
            tensor = self.empty(source.shape, source.dtype, shared=True)
        else:
            tensor = Tensor(self, source.shape, source.dtype)
        event = tensor.set(source, wait=waits)
        return tensor if waits else (tensor, event)

    def empty(
        self, shape: int | Sequence[int], dtype: Any = None, *, shared: bool = False
    ) -> Tensor:
        """Make a tensor whose elements are undefined; see ``vkops.empty``.

        Those of a ``shared`` one, which other processes can see, are zeros; see ``Tensor.share``.
        """
        if boolean(shared, ArgumentName("EMPTY", "shared", "ARRAY-06")):
            kind = as_dtype("EMPTY", dtype)
            sizes = shapes.sizes_of("EMPTY", shape, kind.itemsize)
            nbytes = ceil_div(prod(sizes) * kind.itemsize, 4) * 4
            memory = shared_memory.new_buffer(self, nbytes) if nbytes else None
            return Tensor.over(self, memory, sizes, kind)
        return undefined("EMPTY", shape, dtype, self)

    def pinned(self, shape: int | Sequence[int], dtype: Any = None) -> npt.NDArray[Any]:
        """Return a NumPy array in memory of the host that the device reads and writes directly.

        Its elements are undefined. The memory is cached by the host where the device has such
        memory, counted by ``memory_report``, and freed with the last view of the array. Copies from
        and to contiguous parts of it need no staging memory: ``tensor[...] = array``,
        ``device.tensor(array)``, ``tensor.numpy(out=array)`` and those of images. It remains usable
        when the device is closed or lost; then it is an array like any other.

        Args:
            shape: its sizes, or one size.
            dtype: NumPy's type of the elements, by default float64.

        Raises:
            InvalidDescError: a negative size (ARRAY-06), too large a shape (ARRAY-03), or a dtype
                whose elements cannot be moved (T-02).
            OutOfDeviceMemoryError: it does not fit.
            DeviceError: the device is closed or lost.

        >>> import vkops
        >>> device = vkops.Device()
        >>> out = device.pinned((2, 2), "int16")
        >>> device.tensor([[1, 2], [3, 4]]).to(device).shape == out.shape
        True
        """
        kind = as_dtype("PINNED", dtype)
        sizes = shapes.sizes_of("PINNED", shape, kind.itemsize)
        nbytes = prod(sizes) * kind.itemsize
        self.check_usable()
        if not nbytes:
            return np.empty(sizes, kind)
        memory = with_reclaim(lambda: pinned_memory.allocate(self.pinned_pool, nbytes))
        return memory.view(kind).reshape(sizes)

    def pinned_like(self, array: Any) -> npt.NDArray[Any]:
        """Make a pinned array with the shape and the dtype of an array or a tensor.

        Errors are those of ``pinned``.

        >>> import numpy as np, vkops
        >>> vkops.Device().pinned_like(np.zeros((2, 3), np.int8)).shape
        (2, 3)
        """
        like = array if isinstance(array, Tensor) else exchange.as_array(array)
        return self.pinned(like.shape, like.dtype)

    @property
    def kompute(self) -> KomputeManager:
        """The maker of Kompute's tensors and algorithms on this device, which runs its operations.

        Raises:
            DeviceError: the device is closed or lost.

        >>> import kp, numpy as np, vkops
        >>> device = vkops.Device()
        >>> a, b = (device.kompute.tensor(np.arange(4) * n) for n in (1, 0))
        >>> device.kompute.run(kp.OpTensorSyncDevice([a, b]), kp.OpTensorCopy([a, b]))
        >>> vkops.flip(device.from_kompute(b)).tolist()  # the same memory
        [3.0, 2.0, 1.0, 0.0]
        """
        self.check_usable()
        return KomputeManager(self)

    def from_kompute(self, tensor: Any) -> Tensor:
        """Return a tensor over the memory of a ``kp.Tensor`` that ``kompute`` has created.

        The type of the ``kp.Tensor`` must not be ``kp.TensorTypes.storage``, and its size must be a
        multiple of 16 bytes. Shaders, functions and operators read and write the memory itself.
        Because of the usage flags of Kompute's buffers, the tensor has no ``device_address``, and
        uniform buffers, texel buffers and numbers of workgroups are copies of it.

        Raises:
            DeviceError: the tensor cannot be used in this way, or another manager has created it;
                the device is closed or lost.
        """
        buffer, dtype = self.kompute.memory(tensor)
        return Tensor.over(self, buffer, (buffer.nbytes // dtype.itemsize,), dtype)

    def event(self) -> Event:
        """Return an event that is done when all that was submitted to the adapter until now is.

        Raises:
            DeviceError: the device is closed, or was lost.

        >>> import vkops
        >>> device = vkops.Device()
        >>> x = vkops.roll(device.tensor([1, 2, 3]), 1)
        >>> event = device.event()
        >>> event.wait()
        >>> x.is_ready
        True
        """
        self.make_ready()
        return Event(self, self.vulkan.native.submitted)

    def record(self) -> RecordedProgram:
        """Record a program: calls of this thread in a ``with`` block are recorded, and not run.

        The calls can be functions, operators, graphs and shaders, on tensors that exist or that are
        created in the block. Each run of the program uses the shapes, the memory and the values of
        the host that the calls had when they were recorded. In the block, elements cannot be read,
        and data cannot be streamed.

        Returns:
            the program, as a context manager; see ``RecordedProgram``.

        Raises:
            DeviceError: the device is closed.
        """
        self.check_usable()
        return RecordedProgram(self)

    def synchronize(self) -> None:
        """Wait for all that was submitted to the adapter.

        Raises:
            DeviceError: the device is closed, or was lost.
        """
        self.make_ready()
        self.vulkan.settle()

    def wait_stream(self, stream: int | None = None) -> None:
        """Let all later submissions wait for a stream of CUDA, on the same GPU.

        They wait for the work that the stream was given until now, which may write tensors that
        CUDA also sees. The host does not wait, if the driver shares semaphores.

        Args:
            stream: None, 0 or 1 for CUDA's default stream, 2 for that of the thread, or a handle:
                ``torch.cuda.current_stream().cuda_stream``, or the pointer of a stream of CuPy.

        Raises:
            InvalidDescTypeError: it is none of these (ARRAY-11).
            DeviceError: CUDA does not have this GPU, and why; or the device is closed or lost.
        """
        refused = cuda_exchange.UNORDERED
        handle = cuda_exchange.stream_of("WAIT_STREAM", stream, refused)
        cuda_exchange.cuda_of(self).let_vulkan_wait(self.vulkan, handle)

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
        await ended(self, 0)  # waits for streams, which submit work
        await ended(self, self.vulkan.native.submitted)


# Not devices, buffers, images, shaders and programs, of which each call reads attributes: where a
# class has __getattr__, CPython finds those that exist more slowly, a tenth of a call.
suggest_names(DeviceInfo, Sampler)


DeviceLike: TypeAlias = Device | str | int | None
"""A device, or its adapter by index or a part of the name; None if none is chosen."""


def open_shared(handle: SharedHandle, device: DeviceLike = None) -> Tensor:
    """Return a tensor over the memory that ``Tensor.share`` gave a handle of.

    The device is one of the same adapter and driver. Nothing orders the work of the two processes:
    see ``Tensor.share``. The memory exists until both have freed it, whichever ends first.

    Raises:
        InvalidDescTypeError: it is no handle (ARRAY-21), or no device (B-02).
        DeviceError: the memory is of another device or driver; or the handle was opened before, its
            tensor is gone, or its time is over; or the device is closed or lost.
        OutOfDeviceMemoryError: the driver has no room for it.

    >>> import vkops
    >>> x = vkops.Device().tensor([1.5], shared=True)
    >>> vkops.open_shared(x.share(), x.device).tolist()
    [1.5]
    """
    argument = ArgumentName("OPEN_SHARED", "handle", "ARRAY-21")
    known = instance(SharedHandle, "a handle of Tensor.share", handle, argument)
    home = default_device() if device is None else as_device("OPEN_SHARED", device)
    return Tensor.over(home, known.opened(home), known.shape, known.dtype)


def default_device() -> Device:
    """Return the device of the best adapter, which arrays are sent to by default."""
    return _opened(None)


def as_device(name: str, device: DeviceLike) -> Device:
    """Return a device; the device of a named adapter is opened once (B-02)."""
    if isinstance(device, Device):
        return device
    if isinstance(device, bool) or not isinstance(device, (str, int)):
        kinds = "a Device, the index of an adapter, or part of its name"
        raise ArgumentName(name, "device", "B-02").wrong_kind(device, kinds)
    return _opened(adapter.choose(device).index)


def _opened(index: int | None) -> Device:
    """Return the device of an adapter; it is opened once, and again after it was closed or lost."""
    device = _device_of(index)
    if device.closed:
        _device_of.cache_clear()
        device = _device_of(index)
    return device


@lru_cache(maxsize=64)
def _device_of(index: int | None) -> Device:
    return _opened(adapter.choose(None).index) if index is None else Device(index)


def undefined(name: str, shape: Any, dtype: Any, device: Device | None) -> Tensor:
    """Return a tensor whose elements are undefined, on a device or on the default one."""
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
    """Return the elements of a tensor as an array; return anything else unchanged."""
    return np.asarray(value) if isinstance(value, Tensor) else value
