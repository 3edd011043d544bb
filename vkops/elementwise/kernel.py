"""Kernels that compute one operation for each element of arrays of any layout."""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from itertools import combinations
from math import prod
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from vkops.arguments.values import refuse
from vkops.elementwise.arguments import choose_dtypes, converted, operands_of, shape_of
from vkops.elementwise.indexing import Indexing, broadcast, indexing
from vkops.elementwise.parameters import Operand, Parameter, check_texts, parse
from vkops.elementwise.source import MAX_PUSH_BYTES, generate, scalars_of
from vkops.extent import Extent, slice_extents
from vkops.gpu.kernels.layout import group_counts
from vkops.gpu.memory.pools import ALIGNMENT
from vkops.gpu.run.open_device import OpenDevice
from vkops.gpu.run.shader_dispatch import BoundBytes, ShaderDispatch
from vkops.gpu.run.vulkan_device import VulkanDevice
from vkops.plan.rounding import ceil_div
from vkops.plan.view import Ints
from vkops.runtime.bindings import Elements
from vkops.tensors.device_array import check_device
from vkops.tensors.operations import chosen_device
from vkops.tensors.tensor import Device, DeviceLike, Tensor, default_device

_MAX_LOCAL_SIZE = 256
"""Invocations of a workgroup, if the device allows so many."""

_MAX_PIPELINES = 64
"""Pipelines that a kernel keeps for each device."""

_INDEX = re.compile(r"\bi\b")


class _Pipeline(NamedTuple):
    """A compiled kernel: its GLSL, the native pipeline, its workgroups' size, and its bindings."""

    source: str
    native: Any
    local_size: int
    bindings: Sequence[int]


class ElementwiseKernel:
    """A kernel that computes an operation for each element of arrays, as that of CuPy does.

    Its arguments are tensors, NumPy arrays, which are sent to the device, and numbers. They are
    broadcast together. Tensors can be views of any layout: their elements are read and written
    where they are, with one dispatch.

    Args:
        in_params: the inputs, such as ``"float32 a, T x, raw T table"``. A type is the name of a
            NumPy data type, or a type variable, which arguments decide. The operation indexes
            ``raw`` arrays itself, in C order.
        out_params: the outputs, declared in the same way.
        operation: GLSL statements that assign to the outputs. ``i`` is the index of the element in
            C order, ``n`` is the number of elements, and type variables are types. The last
            semicolon can be left out.
        name: the name of the kernel in errors.
        preamble: GLSL declarations, such as functions that the operation calls.

    Attributes:
        in_params: the inputs as parameters with a type and a name.
        out_params: the outputs.
        operation: the operation.
        name: the name.
        preamble: the preamble.

    Raises:
        InvalidDescError: a declaration is wrong (EW-01).

    >>> import numpy as np, vkops
    >>> axpy = vkops.ElementwiseKernel("float32 a, T x, T y", "T z", "z = a * x + y", "axpy")
    >>> x = vkops.arange(6, dtype="float32").reshape(2, 3)
    >>> axpy(10, x, x[:1, ::-1]).numpy()
    array([[ 2., 11., 20.],
           [32., 41., 50.]], dtype=float32)
    >>> _ = axpy(1, x, np.ones(3, np.float32), out=x[::-1])
    >>> x.numpy()
    array([[4., 5., 6.],
           [1., 2., 3.]], dtype=float32)
    """

    def __init__(
        self,
        in_params: str,
        out_params: str,
        operation: str,
        name: str = "kernel",
        preamble: str = "",
    ) -> None:
        texts = {"in_params": in_params, "out_params": out_params, "operation": operation}
        check_texts(name=name, **texts, preamble=preamble)
        self._params = parse(name, in_params, out_params)
        self.name: str = name
        self.in_params: tuple[Parameter, ...] = tuple(p for p in self._params if not p.is_output)
        self.out_params: tuple[Parameter, ...] = self._params[len(self.in_params) :]
        self.operation: str = operation
        self.preamble: str = preamble
        is_numbered = _INDEX.search(f"{operation} {preamble}") is not None
        self._in_order = is_numbered or any(parameter.raw for parameter in self._params)
        self._pipelines: WeakKeyDictionary[VulkanDevice, dict[Any, _Pipeline]] = WeakKeyDictionary()
        self._source = ""

    @property
    def source(self) -> str:
        """The GLSL of the last call that ran; empty before the first one."""
        return self._source

    def __repr__(self) -> str:
        return f"<vkops.ElementwiseKernel {self.name!r}>"

    def __call__(
        self, *args: Any, out: Any = None, size: Any = None, device: DeviceLike = None
    ) -> Any:
        """Compute the operation, without waiting for it.

        Args:
            args: an argument for each input, and for each output a tensor to write to, or none.
            out: the outputs, if they are not in ``args``: a tensor, or a tuple of several. An input
                that shares elements with an output, and not in the same order, is copied first.
            size: a shape, if all arrays are raw.
            device: where it runs; by default the device of the first tensor.

        Returns:
            The output, which is made if it was not given; a tuple of several.

        Raises:
            InvalidDescError: arguments of the wrong number (EW-02), kind (EW-03), data type
                (EW-04), value (EW-05) or shape (EW-06), too many elements (EW-07), or outputs that
                share elements (EW-08).
            ShaderCompileError: the operation is wrong.
            OutOfDeviceMemoryError: arrays or outputs do not fit on the device.
        """
        operands = operands_of(self.name, self._params, args, out)
        choose_dtypes(self.name, operands)
        shape = shape_of(self.name, operands, size)
        home = chosen_device(self.name, device)
        for each in operands:
            if isinstance(each.value, Tensor):
                home = home or each.value.device
                check_device(self.name, each.parameter.name, each.value, home)
        home = home or default_device()
        is_empty = 0 in shape
        for each in operands:
            if each.value is None:
                each.value = Tensor(home, shape, each.dtype)
            elif not each.is_array:
                each.value = converted(self.name, each)
            elif isinstance(each.value, np.ndarray) and not is_empty:
                each.value = Tensor.from_array(home, each.value)
        if not is_empty:
            self._run(home, shape, operands)
        results = tuple([each.value for each in operands if each.parameter.is_output])
        return results[0] if len(results) == 1 else results

    def _run(self, home: Device, shape: Ints, operands: Sequence[Operand]) -> None:
        """Submit the kernel for operands with tensors and scalars; there are elements."""
        arrays = [each for each in operands if isinstance(each.value, Tensor)]
        arrays.sort(key=lambda each: each.parameter.raw)
        for number, each in enumerate(arrays):
            each.array = number
            each.elements = self._elements(each.parameter, each.value, shape)
        self._separate(arrays, shape)
        memory = [each.elements for each in arrays]
        plain = [each.elements for each in arrays if not each.parameter.raw]
        views, itemsizes = zip(*[(own.view, own.itemsize) for own in plain], strict=True)
        found = indexing(shape, views, itemsizes, ALIGNMENT, in_order=self._in_order)
        scalars = [each.value.astype(each.passed_dtype) for each in scalars_of(operands)]
        numbers = b"".join([scalar.tobytes() for scalar in scalars])
        numbers += struct.pack(f"<{len(found.words)}I", *found.words)
        pushed = len(numbers) <= MAX_PUSH_BYTES
        pipeline = self._pipeline(home, operands, found, pushed=pushed)
        spans = [*found.spans]
        spans += [(own.view.offset * own.itemsize, own.nbytes) for own in memory[len(plain) :]]
        native: list[BoundBytes] = [
            numbers if n == len(arrays) else self._part(arrays[n], spans[n], home)
            for n in pipeline.bindings
        ]
        groups = group_counts(ceil_div(prod(shape), pipeline.local_size))
        push = numbers if pushed else b""
        work = ShaderDispatch(pipeline.native, native, groups, push)
        reads, writes = (
            [each.elements.buffer.allocation for each in own]  # type: ignore[union-attr]
            for own in (arrays, [each for each in arrays if each.parameter.is_output])
        )
        home.submit([work], reads, writes, self.name)

    # -- memory -----------------------------------------------------------------------------------

    def _separate(self, arrays: Sequence[Operand], shape: Ints) -> None:
        """Refuse outputs that share elements (EW-08); copy inputs that the outputs would change."""
        written = [each for each in arrays if each.parameter.is_output]
        for one, other in combinations(written, 2):
            if one.elements.overlaps(other.elements):
                message = f"shares elements with {one.parameter.name}, must not"
                refuse(self.name, other.parameter.name, message, "EW-08")
        for each in arrays:
            if not each.parameter.is_output and any(
                each.elements.overlaps(out.elements)
                for out in written
                if each.parameter.raw or out.elements.view != each.elements.view
            ):
                each.elements = self._elements(each.parameter, each.value.copy(), shape)

    def _elements(self, parameter: Parameter, tensor: Tensor, shape: Ints) -> Elements:
        """The elements of a tensor, broadcast to a shape unless the parameter is raw."""
        base, view = tensor.placed()
        buffer, itemsize = base.buffer, tensor.itemsize
        if buffer is None:
            refuse(self.name, parameter.name, "has no elements, must have some", "EW-06")
        if not parameter.raw:
            view = broadcast(view, shape)
        elif not view.is_contiguous or view.offset * itemsize % ALIGNMENT:
            return self._elements(parameter, tensor.copy(), shape)
        return Elements(buffer, view, itemsize, tensor.dtype)

    def _part(self, operand: Operand, span: tuple[int, int], device: OpenDevice) -> Extent:
        """The bytes of a heap that a span of a buffer has (EW-07)."""
        extents = getattr(operand.elements.buffer, "extents", ())  # those of the host have none
        found = slice_extents(extents, *span)
        most = device.pool.max_range
        if len(found) != 1 or span[1] > most:
            message = f"covers {span[1]} bytes, must be at most {most} in one piece on the device"
            refuse(self.name, operand.parameter.name, message, "EW-07")
        return found[0]

    # -- compilation ------------------------------------------------------------------------------

    def _pipeline(
        self, home: Device, operands: Sequence[Operand], found: Indexing, *, pushed: bool
    ) -> _Pipeline:
        """The kernel for data types and forms, compiled when it is first needed."""
        pipelines = self._pipelines.setdefault(home.vulkan, {})
        local_size = min(_MAX_LOCAL_SIZE, home.tuning.invocations)
        rank = found.rank if "strided" in found.forms else 0
        key = (local_size, rank, found.forms, *[(each.dtype.char, each.array) for each in operands])
        made = pipelines.get(key)
        if made is None:
            texts = self.name, self.operation, self.preamble
            text = generate(
                *texts, operands, rank, found.forms, local_size=local_size, pushed=pushed
            )
            compiled = home.compile_shader(text, name=self.name)
            numbers = sorted({block.binding for block in compiled.shader.blocks})
            if len(pipelines) >= _MAX_PIPELINES:
                pipelines.clear()
            made = pipelines[key] = _Pipeline(text, compiled.pipeline, local_size, numbers)
        self._source = made.source
        return made
