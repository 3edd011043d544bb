"""User-defined compute shaders on a device."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from vkops.arguments.values import ArgumentName, integer
from vkops.errors import CONVERSION_ERRORS, BindingError, InvalidDescError, show
from vkops.extent import Extent
from vkops.gpu.memory.pools import Allocation
from vkops.gpu.run.buffer import HostBuffer
from vkops.gpu.run.open_device import OpenDevice
from vkops.gpu.run.shader_dispatch import Groups, PreparedCall
from vkops.notebook import repr_html
from vkops.plan.view import View
from vkops.runtime.bindings import Binding, Elements, are_integers, elements, is_memory
from vkops.runtime.image import Image, create
from vkops.runtime.shader_argument import ShaderArgument, ShaderCopy, make_copies
from vkops.runtime.shader_arguments import RESOLVERS
from vkops.runtime.shader_arguments.uniform_values import with_addresses
from vkops.runtime.shader_checks import check_features, check_limits, make_pipeline
from vkops.shaders.limited_indices import Lengths
from vkops.shaders.module import Block
from vkops.shaders.shader import Arguments, Shader
from vkops.shaders.slot import Slot

_GROUPS_NBYTES = 12

MAX_CALLS = 256
"""Calls of different signatures that a shader or a kernel keeps prepared."""

MAX_PIPELINES = 64
"""Pipelines that a shader keeps, one for each length of its runtime-sized arrays of blocks."""

PACKING_ERRORS = (struct.error, OverflowError, TypeError, ValueError)
"""The errors that ``struct`` raises for values that it cannot pack."""

Counts = Any
"""One to three numbers, or a tensor, a buffer or (one of these, byte offset) of three numbers."""


class BoundShader:
    """A shader with its bindings, to be dispatched again and again.

    It is bound to memory, not to contents: each dispatch reads the current bytes, and all later
    work sees its results.
    """

    def __init__(
        self,
        device: OpenDevice,
        shader: Shader,
        work: Sequence[Any] = (),
        reads: Sequence[Allocation] = (),
        writes: Sequence[Allocation] = (),
        copies: Sequence[ShaderCopy] = (),
    ) -> None:
        self._device = device
        self._shader = shader
        self._work, self._reads, self._writes = work, reads, writes
        self._copies = copies

    def dispatch(self) -> None:
        """Run the shader; wait for it only if it writes memory of the host.

        Raises:
            DeviceError: the device is closed, or was lost.
        """
        if not self._work:  # it was bound with ``threads=0``
            self._device.check_usable()
            return
        for copy in self._copies:
            copy.send()
        writes, shader = self._writes, self._shader
        if shader.uses_addresses:  # it may use all addresses given out, even after it was bound
            writes = [*writes, *self._device.vulkan.addressed_memory()]
        self._device.submit(self._work, self._reads, writes, shader.name)
        for copy in self._copies:
            copy.fetch()

    def __repr__(self) -> str:
        return f"<vkops.BoundShader {self._shader.name!r}>"

    def __enter__(self) -> BoundShader:
        return self

    def __exit__(self, *exception: object) -> None:
        pass


class CompiledShader:
    """A compute shader on a device, made by ``Device.compile_shader``.

    Attributes:
        name: the name of the shader in errors.
        shader: the shader with its declarations.

    >>> import numpy as np
    >>> from vkops import Device
    >>> text = '''#version 450
    ... layout(local_size_x = 64) in;
    ... layout(std430, binding = 0) readonly buffer Source { uint source[]; };
    ... layout(std430, binding = 1) writeonly buffer Target { uint target[]; };
    ... layout(push_constant) uniform Push { uint factor; };
    ... void main() {
    ...     uint i = gl_GlobalInvocationID.x, step = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
    ...     for (; i < source.length(); i += step) target[i] = factor * source[i];
    ... }'''
    >>> device = Device()
    >>> shader = device.compile_shader(text)
    >>> x = device.tensor(np.arange(8, dtype=np.uint32))
    >>> shader(x, factor=10, threads=8, out="Source").numpy()
    array([ 0, 10, 20, 30, 40, 50, 60, 70], dtype=uint32)
    >>> shader(x[::2], x[1::2], factor=7, threads=4)
    >>> x.numpy()
    array([ 0,  0,  2, 14,  4, 28,  6, 42], dtype=uint32)
    """

    def __init__(self, device: OpenDevice, shader: Shader) -> None:
        device.check_usable()
        self.name: str = shader.name
        self.shader: Shader = shader
        self._device = device
        self._most_groups: Sequence[int] = device.info.limits.max_compute_work_group_count
        self._arguments = lru_cache(MAX_CALLS)(shader.arguments)
        self._slots = lru_cache(MAX_CALLS)(shader.slots)
        self._group_counts = lru_cache(MAX_CALLS)(shader.group_counts)
        self._calls: dict[tuple[Any, ...], PreparedCall] = {}
        self._pipelines: dict[Lengths, Any] = {}
        self._is_open = any(block.length == 0 for block in shader.blocks)
        if self._is_open:
            check_features(device, shader)
            check_limits(device, shader)
        else:
            self._pipeline()

    _repr_html_ = repr_html

    def __repr__(self) -> str:
        blocks = ", ".join(block.point for block in self.shader.blocks) or "none"
        return f"<vkops.CompiledShader {self.name!r} of blocks {blocks}>"

    def _pipeline(self, slots: Sequence[Slot] = ()) -> Any:
        """Return the pipeline, one for each length of runtime-sized arrays of blocks."""
        lengths = self._lengths(slots)
        if lengths not in self._pipelines:
            if len(self._pipelines) >= MAX_PIPELINES:
                self._pipelines.clear()
                self._calls.clear()  # these keep pipelines alive, too
            self._pipelines[lengths] = make_pipeline(self._device, self.shader, lengths)
        return self._pipelines[lengths]

    def _lengths(self, slots: Sequence[Slot]) -> Lengths:
        return tuple(Counter(slot.block.place for slot in slots if slot.block.length == 0).items())

    # -- running ----------------------------------------------------------------------------------

    def __call__(
        self,
        /,
        *buffers: Any,
        groups: Counts | None = None,
        threads: int | Sequence[int] | None = None,
        out: Any = None,
        **named: Any,
    ) -> Any:
        """Run the shader, without waiting for it.

        Args:
            buffers: tensors, buffers, (buffer or tensor, byte offset, bytes), or arrays, which are
                sent: one for each block in the order of bindings. A uniform block also takes
                values: numbers in the order of their declaration, a mapping, a structured NumPy
                scalar, or bytes. An array of blocks takes a list of these.
            groups: one to three numbers of workgroups, or a tensor, a buffer or (one of these, byte
                offset) of three numbers of 32 bits that the device reads.
            threads: one to three numbers of invocations, rounded up to whole workgroups; with 0,
                nothing is run.
            out: the output, for the block that has no buffer. A shape, (shape, data type), or the
                name of a block with that shape makes a tensor; an existing tensor is written to.
                For several outputs, a list of these in the order of their blocks, or a mapping from
                the names of blocks. Elements that the shader does not write are undefined.
            named: buffers by the names of blocks or their instances, and push constants by their
                names. A name that Python or this call uses gets an underscore: ``pass_=1, out_=2``.

        Returns:
            None, or with ``out`` the output, or a tuple of several in the order of ``out``.

        Raises:
            BindingError: a block has no buffer or a wrong one (SH-04 to SH-06, SH-11, SH-12).
            InvalidDescError: wrong numbers of workgroups (SH-07) or values (SH-09).
            OutOfDeviceMemoryError: the device has no room for outputs, or for copies of views.
        """
        outputs: Any = 1
        specs: Sequence[Any] = [out]
        if out is None or isinstance(out, list):
            outputs, specs = (None, ()) if out is None else (len(out), out)
        elif not hasattr(out, "placed") and isinstance(out, Mapping):
            outputs, specs = tuple(out), [*out.values()]
        arguments = self._arguments(len(buffers), (*named,), outputs)
        every = [*buffers, *named.values()]
        counts = self._counts(groups, threads)
        results: Any = ()
        if specs:
            results = [
                spec if hasattr(spec, "placed") else self._made(point, spec, arguments, every)
                for point, spec in zip(arguments.outputs, specs, strict=True)
            ]
            every += results
        if counts is None:
            self._device.check_usable()
        else:
            slots, values = self.shader.expanded(arguments.slots, every)
            for number, value in enumerate(values):
                if isinstance(value, np.ndarray):
                    values[number] = self._sent(slots[number], value)
                elif type(value) is tuple and value and isinstance(value[0], np.ndarray):
                    values[number] = self._sent(slots[number], value[0]), *value[1:]  # a sampler
                elif type(value) is list or (
                    hasattr(value, "__dlpack__") and not hasattr(value, "placed")
                ):
                    values[number] = self._sent_from(slots[number], value)
            pushed, packed = {}, None
            try:
                if arguments.packer is not None and not self.shader.uses_addresses:
                    packed = arguments.packer.pack(*map(every.__getitem__, arguments.order))
            except PACKING_ERRORS:  # ``pack``, which is called below, raises an error that says why
                pass
            if packed is None:
                pushed = {name: every[n] for name, n in arguments.pushed.items()}
            self._run(slots, values, counts, pushed, packed)
        return None if out is None else results[0] if len(results) == 1 else tuple(results)

    def dispatch(
        self,
        buffers: Mapping[str, Binding],
        groups: Counts | None = None,
        push_constants: Any = (),
        *,
        threads: int | Sequence[int] | None = None,
    ) -> None:
        """Run the shader, without waiting for it.

        Args:
            buffers: for each block, by its name or that of its instance, a buffer, a tensor, or
                (buffer or tensor, byte offset, bytes); for a uniform block also values.
            groups: see ``__call__``; one workgroup if there are no ``threads`` either.
            push_constants: numbers, in the order in which the shader declares them, a mapping of
                names to values, a structured NumPy scalar, or bytes.
            threads: see ``__call__``, which has the same errors.
        """
        slots, values, counts = self._mapped(buffers, groups, threads)
        if counts is None:
            self._device.check_usable()
        else:
            self._run(slots, values, counts, push_constants)

    def bound(
        self,
        buffers: Mapping[str, Binding],
        groups: Counts | None = None,
        push_constants: Any = (),
        *,
        threads: int | Sequence[int] | None = None,
    ) -> BoundShader:
        """Bind once, to dispatch many times; the result is also a context manager.

        Arguments and errors are those of ``dispatch``.
        """
        slots, values, counts = self._mapped(buffers, groups, threads)
        if counts is None:
            return BoundShader(self._device, self.shader)
        located = self._located(slots, values)
        return self._bound(*located, counts, self._packed(push_constants))

    def _mapped(
        self, buffers: Mapping[str, Binding], groups: Counts, threads: Any
    ) -> tuple[Sequence[Slot], Sequence[Any], Groups | ShaderCopy | None]:
        """Check the arguments of ``bound``; the number of workgroups is None without threads."""
        if not isinstance(buffers, Mapping):
            message = f"got {show(buffers)}, must be a mapping of blocks' names to buffers"
            raise BindingError(self.name, "buffers", message, "SH-04")
        bound = {str(name): binding for name, binding in buffers.items()}
        if groups is None and threads is None:
            groups = 1
        counts = self._counts(groups, threads)
        slots = () if counts is None else self._slots((*bound,))
        return *self.shader.expanded(slots, [*bound.values()]), counts

    def _run(
        self,
        slots: Sequence[Slot],
        values: Sequence[Any],
        counts: Groups | ShaderCopy,
        push_constants: Any,
        packed: bytes | None = None,
    ) -> None:
        """Check all bindings, and the push constants unless they are ``packed``; run the shader."""
        call, arguments, memory = self._located(slots, values)
        push = self._packed(push_constants) if packed is None else packed
        if not call.copied and not isinstance(counts, ShaderCopy):
            call.run(self._device, memory, counts, push)
            return
        self._bound(call, arguments, memory, counts, push).dispatch()

    def _packed(self, push_constants: Any) -> bytes:
        """Return push constants as bytes, and tensors in them as their addresses."""
        values = with_addresses(self._device, self.shader, "push_constants", push_constants)
        return self.shader.pack(values)

    def _bound(
        self,
        call: PreparedCall,
        arguments: Sequence[ShaderArgument],
        memory: Sequence[Any],
        counts: Groups | ShaderCopy,
        push: bytes,
    ) -> BoundShader:
        """Bind a call, with copies of arguments that cannot be bound in place."""
        copies = make_copies(self._device, call, arguments)
        if copies:
            memory = [copies[n].resource if n in copies else each for n, each in enumerate(memory)]
            # Elements are also bound to a copy if another binding of the same ones needs it.
            if [*copies] != call.copied:
                call = call.with_copies(self._device, copies)
        distinct = [*dict.fromkeys(copies.values())]
        if isinstance(counts, ShaderCopy):
            distinct.append(counts)
            counts = Extent(counts.resource, 0, _GROUPS_NBYTES)
        dispatch, reads, writes = call.bind(self._device, memory, counts, push)
        work = [dispatch]
        for copy in distinct:
            work = [*copy.before, *work, *copy.after]
            writes += copy.used
            if not isinstance(copy.source, HostBuffer):
                (writes if copy.is_written else reads).append(copy.source.allocation)
        return BoundShader(self._device, self.shader, work, reads, writes, distinct)

    def _located(
        self, slots: Sequence[Slot], values: Sequence[Any]
    ) -> tuple[PreparedCall, list[ShaderArgument], list[Any]]:
        """Return the prepared call for bindings, and the argument and the memory of each."""
        kinds: list[Any] = []
        arguments: list[ShaderArgument] = []
        memory: list[Any] = []
        for slot, value in zip(slots, values, strict=True):
            resolve = RESOLVERS[slot.block.kind]
            argument, resource, kind = resolve(self._device, self.shader, slot, value)
            arguments.append(argument)
            memory.append(resource)
            kinds.append(kind)
        if self._is_open:
            kinds.append(self._lengths(slots))
        call = self._calls.get(key := tuple(kinds))
        if call is None:
            if len(self._calls) >= MAX_CALLS:
                self._calls.clear()
            call = self._calls[key] = self._checked(slots, arguments)
        return call, arguments, memory

    def _checked(self, slots: Sequence[Slot], arguments: Sequence[ShaderArgument]) -> PreparedCall:
        """Check all arguments, and decide which can be bound in place; others need copies."""
        pairs = zip(slots, arguments, strict=True)
        filled = [argument.fill_slot(self._device, self.shader, slot) for slot, argument in pairs]
        self.shader.check_complete([slot.block for slot in slots])
        return PreparedCall(self._device, self.shader, self._pipeline(slots), filled)

    # -- arguments --------------------------------------------------------------------------------

    def _made(self, point: str, spec: Any, arguments: Arguments, values: Sequence[Any]) -> Any:
        """Return an output: the tensor or image that ``out`` has, or a new one as ``out`` says."""
        if is_memory(spec) or isinstance(spec, Image):
            return spec
        if isinstance(spec, np.ndarray):
            raise self._written_array(point)
        shape, dtype, block = spec, None, self.shader.block(point)
        if isinstance(spec, (tuple, list)) and len(spec) == 2:
            try:
                integer(spec[1], ArgumentName(self.name, "out", "SH-04"))
            except InvalidDescError:
                shape, dtype = spec
        if isinstance(shape, str):
            shape, dtype = self._shape_of(shape, block, arguments, values)
        if dtype is None:
            dtype = block and block.dtype
            if dtype is None:
                message = "has no single type of numbers: give (shape, data type)"
                raise BindingError(self.name, point, message, "SH-11")
        try:
            if block and block.kind == "storage image":
                return self._made_image(block, shape, dtype)
            return self._device.empty(shape, dtype)
        except InvalidDescError as error:
            field = f"{point}.{error.field}"
            raise type(error)(self.name, field, error.message, error.rule) from None

    def _shape_of(
        self, name: str, block: Block | None, arguments: Arguments, values: Sequence[Any]
    ) -> tuple[Any, Any]:
        """Return the shape for an output like a block's argument, and for some images its dtype."""
        source = self.shader.block(name)
        place = source and source.place
        like = [slot.source for slot in arguments.slots if slot.block.place == place]
        example: Any = values[like[0]] if like and 0 <= like[0] < len(values) else None
        if type(example) is tuple:  # with a sampler, or a part
            example = example[0]
        if not hasattr(example, "shape"):
            message = f"got {show(name)}, must be the name of a block with a tensor or an array"
            raise BindingError(self.name, "out", message, "SH-04")
        shape, dtype = example.shape, None
        if block and block.image:
            rank, format_ = block.image.rank, block.image.format
            channels = shape[rank] if len(shape) > rank else 1
            if format_ is None:
                dtype = example.dtype
            elif format_.channels != {3: 4}.get(channels, channels):
                shape = shape[:rank]
        return shape, dtype

    def _made_image(self, block: Block, shape: Any, dtype: Any) -> Image:
        """Make an image for a block, with the channels of the format that it declares."""
        declared = block.image
        assert declared is not None
        sizes = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
        has_channels = len(sizes) > declared.rank
        channels = declared.format.channels if declared.format and not has_channels else 1
        form = declared.dims, declared.has_layers, channels if channels > 1 else None
        return create(self._device, sizes, dtype, *form, None, 1, declared.is_multisampled)

    def _sent(self, slot: Slot, array: npt.NDArray[Any]) -> Any:
        """Send an array to the device, unless it holds the values of a uniform block."""
        if slot.block.kind == "uniform":
            return array
        if slot.is_written:
            raise self._written_array(slot.point)
        return self._device.tensor(array)

    def _sent_from(self, slot: Slot, value: Any) -> Any:
        """Send a list of numbers (SH-11), or an array of another library."""
        if type(value) is not list:
            return self._sent(slot, value)
        if slot.block.kind != "storage":
            return value
        try:
            array = np.asarray(value, slot.block.dtype)
        except CONVERSION_ERRORS as error:
            message = f"NumPy says: {' '.join(str(error).split())}"
            raise BindingError(self.name, slot.point, message, "SH-11") from error
        return self._sent(slot, array)

    def _written_array(self, point: str) -> BindingError:
        message = "is an array of the host, which the shader would write: must be a tensor"
        return BindingError(self.name, point, f"{message}; a shape as `out` makes one", "SH-12")

    def _counts(
        self, groups: Counts | None, threads: int | Sequence[int] | None
    ) -> Groups | ShaderCopy | None:
        """Return the numbers of workgroups, or the bytes that hold them; None without threads."""
        counts = threads if groups is None else groups
        is_one = groups is None or threads is None
        if is_one and (type(counts) is int or are_integers(counts)):
            return self._group_counts(groups, threads, self._most_groups)
        is_pair = type(groups) is tuple and len(groups) == 2
        pair: Any = groups if is_pair else (groups, 0)
        if threads is None and (is_pair or not isinstance(groups, tuple)) and is_memory(pair[0]):
            return self._indirect(
                pair[0], integer(pair[1], ArgumentName(self.name, "groups", "SH-07"))
            )
        return self.shader.group_counts(groups, threads, self._most_groups)

    def _indirect(self, target: Any, offset: int) -> Extent | ShaderCopy:
        """Check numbers of workgroups in memory; return the bytes, or a copy in one piece."""
        argument = elements(self._device, self.name, "groups", target, written=False)
        buffer, view, itemsize, dtype = argument
        start = view.offset * itemsize + offset
        message = ""
        if isinstance(buffer, HostBuffer):
            message = "are in memory of the host, must be in that of the device"
        elif dtype is not None and (dtype.kind not in "iu" or itemsize != 4):
            message = f"are {dtype}, must be integers of 32 bits"
        elif not view.is_contiguous:
            message = "are a view with gaps, must be contiguous"
        elif start % 4:
            message = f"begin at byte {start} of the buffer, must begin at a multiple of 4"
        elif not 0 <= offset <= argument.nbytes - _GROUPS_NBYTES:
            message = (
                f"begin at byte {offset} of {argument.nbytes}, must have {_GROUPS_NBYTES} bytes"
            )
        if message:
            raise InvalidDescError(self.name, "groups", message, "SH-07")
        bytes_ = Elements(buffer, View((_GROUPS_NBYTES,), (1,), start), 1, None)
        if not bytes_.is_one_run(4):
            return bytes_.copy(self._device, is_written=False)
        return Extent(buffer, start, _GROUPS_NBYTES)
