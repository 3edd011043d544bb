"""Bindings: the buffers, tensors and parts of them that callers pass to operators and shaders."""

from __future__ import annotations

from math import prod
from operator import index
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from vkops.errors import BindingError, show
from vkops.extent import Extent, slice_extents
from vkops.gpu.run.buffer import BindableMemory, Buffer, HostBuffer
from vkops.gpu.run.open_device import OpenDevice, movement
from vkops.plan.view import View
from vkops.runtime.shader_argument import ShaderCopy
from vkops.shaders.shader import Shader
from vkops.shaders.slot import Slot

Binding = Any
"""None, a Buffer, a Tensor, or (buffer or tensor, byte offset, bytes)."""

_SOME_ADDRESS = 1 << 40
_MAX_WORK = 1 << 20


def extent_of(
    device: OpenDevice, operator: str, path: str, binding: Binding, *, written: bool
) -> Extent:
    """Check a binding, and return the bytes of a buffer that it names (B-02, B-04, B-21)."""
    target, offset, nbytes = binding, 0, None
    if isinstance(binding, tuple) and len(binding) == 3:
        target, offset, nbytes = binding
    buffer = target
    if type(target) is not Buffer:
        if written and not getattr(target, "owns_buffer", True):
            message = "got a view of a tensor, whose packed copy would be written: must be a tensor"
            raise BindingError(operator, path, f"{message} with memory of its own", "B-21")
        buffer = getattr(target, "buffer", target)
        if not isinstance(buffer, BindableMemory):
            message = f"got {show(binding)}, must be a buffer or tensor, or (buffer, offset, bytes)"
            raise BindingError(operator, path, message, "B-02")
    if not buffer.is_on(device):
        message = f"is {buffer!r}, must be on {device.info.label}; tensor.to(device) copies it"
        raise BindingError(operator, path, message, "B-02")
    if buffer is binding:
        return Extent(buffer, 0, buffer.nbytes)
    start = _count(offset)
    count = None if nbytes is None else _count(nbytes)
    if start is None or (count is None and nbytes is not None):
        message = f"got offset {show(offset)} and {show(nbytes)} bytes, must be integers from 0"
        raise BindingError(operator, path, message, "B-04")
    return Extent(buffer, start, max(0, buffer.nbytes - start) if count is None else count)


def _count(value: Any) -> int | None:
    """A non-negative integer below 2**63 as int; None for any other value."""
    try:
        number = index(value)
    except TypeError:
        return None
    return None if isinstance(value, bool) or number >> 63 else number


def are_integers(value: Any) -> bool:
    """Whether a value is an int or a tuple of ints, so that equal values are interchangeable."""
    return type(value) is int or (type(value) is tuple and {*map(type, value)} == {int})


def is_memory(binding: Any) -> bool:
    """Whether a binding is memory of a device, or a part of it."""
    target = binding[0] if isinstance(binding, tuple) and len(binding) == 3 else binding
    return hasattr(target, "placed") or isinstance(target, BindableMemory)


# -- arguments of shaders --------------------------------------------------------------------------


class Elements(NamedTuple):
    """Elements of a buffer, as a view; ``dtype`` is None if they are bytes."""

    buffer: Buffer | HostBuffer
    view: View
    itemsize: int
    dtype: np.dtype[Any] | None

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return prod(self.view.sizes) * self.itemsize

    def overlaps(self, other: Any) -> bool:
        """Whether both share bytes, or it would take too long to know."""
        other = getattr(other, "elements", other)
        if self.buffer is not other.buffer:
            return False
        shares_memory: Any = np.shares_memory  # NumPy's types of it differ between versions
        try:
            return bool(shares_memory(self._addresses(), other._addresses(), max_work=_MAX_WORK))
        except np.exceptions.TooHardError:
            return True

    def fill_slot(self, device: OpenDevice, shader: Shader, slot: Slot) -> Slot:
        """Check type and size; return the slot with the bytes."""
        point, block = slot.point, slot.block
        start, nbytes = self.view.offset * self.itemsize, self.nbytes
        if self.dtype is not None:
            shader.check_elements(point, block, self.dtype, self.view.sizes)
        alignment = check_size(device, shader, slot, nbytes)
        if self.dtype is None:
            shader.check_bytes(point, block, start, nbytes, self.buffer.nbytes)
        else:
            shader.check_bytes(point, block, 0, nbytes, nbytes)
        bound = slot._replace(start=start, nbytes=nbytes)
        is_storage = block.kind == "storage"
        return bound if self.is_one_run(alignment, storage=is_storage) else bound.in_copy()

    def is_one_run(self, alignment: int, *, storage: bool = False) -> bool:
        """Whether the elements are contiguous, aligned, and in one piece of the device's memory.

        With ``storage``, the memory must serve as a storage buffer only, else also as any other.
        """
        start = self.view.offset * self.itemsize
        extents: Any = getattr(self.buffer, "extents", ())  # memory of the host has none
        in_one_piece = len(slice_extents(extents, start, self.nbytes)) == 1
        if in_one_piece and not storage and extents[0].resource.is_storage_only:
            return False
        return in_one_piece and self.view.is_contiguous and start % alignment == 0

    def copy(self, device: OpenDevice, *, is_written: bool) -> ShaderCopy:
        """Return a packed copy of the elements, to be bound instead of them."""
        source, view, itemsize, _ = self
        if isinstance(source, HostBuffer):
            device.vulkan.refuse_recording("host memory cannot be bound to a shader")
        packed, resource = View.packed(view.sizes), Buffer(device, self.nbytes)
        shader_copy = ShaderCopy(source, resource, is_written, view.offset * itemsize)
        if isinstance(source, Buffer):
            there, here = [source.extents], [resource.extents]
            plan = movement(device.tuning, itemsize, view, packed)
            shader_copy.before = plan.operations(device.vulkan, there, here)
            if is_written:
                plan = movement(device.tuning, itemsize, packed, view)
                shader_copy.after = plan.operations(device.vulkan, here, there)
        return shader_copy

    def _addresses(self) -> Any:
        """Return an array interface of the same layout at made-up addresses, never read."""
        (sizes, strides, offset), size = self.view, self.itemsize
        interface = {
            "data": (_SOME_ADDRESS + offset * size, True), "shape": sizes, "typestr": f"|V{size}",
            "strides": tuple([stride * size for stride in strides]), "version": 3,
        }  # fmt: skip
        return SimpleNamespace(__array_interface__=interface)


def check_size(device: OpenDevice, shader: Shader, slot: Slot, nbytes: int) -> int:
    """Check that a block can have so many bytes (SH-12); return the alignment of their start."""
    limits = device.info.limits
    most, alignment = device.pool.max_range, limits.min_storage_buffer_offset_alignment
    if slot.block.kind == "uniform":
        most = limits.max_uniform_buffer_range
        alignment = limits.min_uniform_buffer_offset_alignment
    if nbytes > most:
        message = f"got {nbytes} bytes, must be {most} at most: {slot.block.kind} blocks have"
        raise BindingError(shader.name, slot.point, f"{message} no more on this device", "SH-12")
    return alignment


def elements(
    device: OpenDevice, shader: str, path: str, binding: Binding, *, written: bool
) -> Elements:
    """Check a shader's binding, and return its elements (B-02, B-04, B-21, SH-05, SH-12)."""
    part = binding[1:] if type(binding) is tuple and len(binding) == 3 else None
    tensor = binding if part is None else binding[0]
    if not hasattr(tensor, "placed"):
        buffer, start, nbytes = extent_of(device, shader, path, binding, written=False)
        argument = Elements(buffer, View((nbytes,), (1,), start), 1, None)
    else:
        base, view = tensor.placed()
        buffer, dtype = base.buffer, tensor.dtype
        if written and tensor.is_read_only:
            raise BindingError(shader, path, "is read-only, must be writable", "B-21")
        # The same as ``Elements(...)``, which would call a Python function.
        argument = tuple.__new__(Elements, (buffer, view, dtype.itemsize, dtype))
        is_whole = type(buffer) is Buffer and part is None
        if is_whole and (buffer._device is device or buffer.is_on(device)):
            return argument  # the usual case
        if buffer is not None:
            extent_of(device, shader, path, buffer, written=False)
        if part is not None and buffer is not None:
            if not view.is_contiguous:
                message = "is a view that is not contiguous, must be: slice the tensor instead"
                raise BindingError(shader, path, message, "B-21")
            _, start, nbytes = extent_of(device, shader, path, (buffer, *part), written=False)
            if part[1] is None:
                nbytes = max(0, tensor.nbytes - start)
            if start + nbytes > tensor.nbytes:
                message = f"got offset {start} and {nbytes} bytes, must end at {tensor.nbytes}"
                raise BindingError(shader, path, f"{message} or before", "SH-05")
            start += view.offset * dtype.itemsize
            argument = Elements(buffer, View((nbytes,), (1,), start), 1, None)
    if buffer is None or not argument.nbytes:
        raise BindingError(shader, path, "has no elements, must have some", "SH-12")
    if type(buffer) is HostBuffer and not argument.view.is_contiguous:
        message = "is a view of host memory that is not contiguous, must be"
        raise BindingError(shader, path, message, "SH-12")
    return argument
