"""User-defined compute shaders on a device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from vkops.arguments.values import Place, integer
from vkops.errors import BindingError, InvalidDescError, show
from vkops.extent import Extent
from vkops.gpu.adapters.adapter_limits import Limits
from vkops.gpu.memory.pools import Allocation
from vkops.gpu.run.buffer import Buffer, HostBuffer, Resource
from vkops.gpu.run.encoded_plan import Work
from vkops.gpu.run.open_device import OpenDevice, RepeatedWork
from vkops.gpu.run.shader_copies import HostCopy, PackedCopy
from vkops.gpu.run.shader_dispatch import BoundBytes, Groups, ShaderDispatch
from vkops.plan.view import View
from vkops.runtime.bindings import Binding, Elements, elements
from vkops.runtime.shader_checks import check_features, check_limits, within_bounds
from vkops.shaders.module import Block
from vkops.shaders.shader import Shader

if TYPE_CHECKING:
    from typing_extensions import Self

_GROUPS_NBYTES = 12

_MAX_LAYOUTS = 256

Counts = Any
"""One to three numbers, or a tensor, a buffer or (one of these, byte offset) of three numbers."""


class _Layout(NamedTuple):
    """How bindings of some views are bound; it is the same for all buffers.

    In the order of sets and bindings, ``places`` are
    the first byte in the buffer and the number of bytes; None for values. ``written`` and
    ``copied`` are the numbers of those that the shader writes and that are bound as copies.
    """

    places: Sequence[tuple[int, int] | None]
    written: Sequence[int]
    copied: Sequence[int]


class BoundShader:
    """A shader with its bindings, to be dispatched again and again.

    It is bound to memory, not to contents: each dispatch reads what is there, and its results are
    there for all that comes after it.
    """

    def __init__(
        self,
        device: OpenDevice,
        name: str,
        work: Sequence[Work],
        reads: Sequence[Allocation],
        writes: Sequence[Allocation],
        on_host: Sequence[HostCopy] = (),
    ) -> None:
        self._device = device
        self._name = name
        self._work = RepeatedWork(device, work, reads, writes, name) if work else None
        self._on_host = on_host

    def dispatch(self) -> None:
        """Run the shader; wait for it only if it writes memory of the host.

        Raises:
            DeviceError: the device is closed, or was lost.
        """
        if self._work is None:  # it was bound for no threads
            self._device.check()
            return
        for copy in self._on_host:
            copy.send()
        self._work.submit()
        for copy in self._on_host:
            copy.fetch()

    def __repr__(self) -> str:
        return f"<vkops.BoundShader {self._name!r}>"

    def __enter__(self) -> Self:
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
        device.check()
        self.name: str = shader.name
        self.shader: Shader = shader
        self._device = device
        self._limits: Limits = device.info.limits
        self._readonly = {
            place: all(block.readonly for block in blocks)
            for place, blocks in shader.places.items()
        }
        self._layouts: dict[Any, _Layout] = {}
        check_features(device, shader)
        check_limits(device, shader)
        spirv, pushed = within_bounds(device, shader), shader.module.push_nbytes
        make = device.vulkan.shader_pipeline
        # That of the native module, for a ``ShaderDispatch``.
        self.pipeline: Any = make(spirv, shader.bindings, shader.entry_point, pushed)

    def __repr__(self) -> str:
        blocks = ", ".join(block.point for block in self.shader.blocks) or "none"
        return f"<vkops.CompiledShader {self.name!r} of blocks {blocks}>"

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
                scalar, or bytes.
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
        bound, pushed = self.shader.keywords(named)
        named_outputs = out if isinstance(out, Mapping) else ()
        bound |= self.shader.by_position(buffers, [*bound, *named_outputs])
        specs = {} if out is None else self._specs(out, self.shader.free(bound))
        blocks = self.shader.named([*bound, *specs])
        counts = self._counts(groups, threads)
        made = {point: self._made(point, blocks, spec, bound) for point, spec in specs.items()}
        if counts is not None:
            bound |= {
                point: self._sent(point, blocks[point], value)
                for point, value in bound.items()
                if isinstance(value, np.ndarray) and point in blocks
            }
            self._bind(blocks, {**bound, **made}, counts, pushed).dispatch()
        else:
            self._device.check()
        results = tuple(made.values())
        return None if out is None else results[0] if len(results) == 1 else results

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
            threads: see ``__call__``.

        Raises:
            BindingError: a block has no buffer or a wrong one (SH-04 to SH-06, SH-11, SH-12).
            InvalidDescError: wrong numbers of workgroups (SH-07) or values (SH-09).
            OutOfDeviceMemoryError: the device has no room for copies of views.
        """
        self.bound(buffers, groups, push_constants, threads=threads).dispatch()

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
        if not isinstance(buffers, Mapping):
            message = f"got {show(buffers)}, must be a mapping of blocks' names to buffers"
            raise BindingError(self.name, "buffers", message, "SH-04")
        bound = {str(name): binding for name, binding in buffers.items()}
        if groups is None and threads is None:
            groups = 1
        counts = self._counts(groups, threads)
        if counts is None:
            return BoundShader(self._device, self.name, (), (), ())
        return self._bind(self.shader.named(bound), bound, counts, push_constants)

    def _bind(
        self,
        blocks: Mapping[str, Block],
        bound: Mapping[str, Any],
        counts: Groups | Elements,
        push_constants: Any,
    ) -> BoundShader:
        """Check all bindings, and bind them."""
        memory = [self._memory(point, block, bound[point]) for point, block in blocks.items()]
        views = (*blocks, *map(_kind, memory))
        layout = self._layouts.get(views)
        if layout is None:
            if len(self._layouts) >= _MAX_LAYOUTS:
                self._layouts.clear()
            layout = self._layouts[views] = self._layout(blocks, memory)
        push = self.shader.pack(push_constants)
        copies = self._copies([*blocks], memory, layout) if layout.copied else {}
        native: list[BoundBytes] = []
        for number, (own, place) in enumerate(zip(memory, layout.places, strict=True)):
            if isinstance(own, bytes) or place is None:
                native.append(own)  # type: ignore[arg-type]
            elif number in copies:
                native.append(copies[number].extent)
            else:
                assert isinstance(own.buffer, Buffer)
                native.append(own.buffer.extents[0].part(*place))
        on_host: list[HostCopy] = []
        before: list[Work] = []
        after: list[Work] = []
        for copy in dict.fromkeys(copies.values()):
            is_written = any(copies.get(number) is copy for number in layout.written)
            if isinstance(copy, HostCopy):
                copy.written = is_written
                on_host.append(copy)
            else:
                before += copy.before
                after += copy.after if is_written else ()
        buffers = [own.buffer if type(own) is Elements else None for own in memory]
        reads = [buffer.allocation for buffer in buffers if isinstance(buffer, Buffer)]
        writes = [each.allocation for n in layout.written if isinstance(each := buffers[n], Buffer)]
        writes += [copy.buffer.allocation for copy in dict.fromkeys(copies.values())]
        if isinstance(counts, Elements):
            assert isinstance(counts.buffer, Buffer)
            reads.append(counts.buffer.allocation)
            counts = counts.buffer.extents[0].part(counts.view.offset, _GROUPS_NBYTES)
        dispatch = ShaderDispatch(self.pipeline, native, counts, push)
        work = [*before, dispatch, *after]
        return BoundShader(self._device, self.name, work, reads, writes, on_host)

    def _layout(self, blocks: Mapping[str, Block], memory: Sequence[Elements | bytes]) -> _Layout:
        """Check types and sizes, and decide what is bound where it is."""
        sizes: dict[str, tuple[Extent, int]] = {}
        for (point, block), own in zip(blocks.items(), memory, strict=True):
            alike = self.shader.places[block.place]
            if isinstance(own, Elements):
                self._check_type(point, alike, own)
            sizes[point] = _sized(own)
            self._check_size(point, alike[0].kind, sizes[point][0].nbytes)
        chosen = [block for block, _ in self.shader.bind(sizes)]
        places: list[tuple[int, int] | None] = [None] * len(memory)
        copied: list[int] = []
        for number, (block, own) in enumerate(zip(chosen, memory, strict=True)):
            if isinstance(own, bytes):
                continue
            start = own.view.offset * own.itemsize
            places[number] = start, own.nbytes
            alignment = self._limits.min_storage_buffer_offset_alignment
            if block.kind == "uniform":
                alignment = self._limits.min_uniform_buffer_offset_alignment
            where_it_is = own.view.is_contiguous and start % alignment == 0
            if isinstance(own.buffer, HostBuffer) or not where_it_is or len(own.buffer.extents) > 1:
                copied.append(number)
        written = [n for n, block in enumerate(chosen) if not block.readonly]
        return _Layout(places, written, copied)

    def _copies(
        self, names: Sequence[str], memory: Sequence[Any], layout: _Layout
    ) -> dict[int, HostCopy | PackedCopy]:
        """Make copies to be bound instead; bindings of the same elements share one.

        Raises:
            BindingError: it shares bytes with another binding, and one of them is written (SH-06).
        """
        used = [n for n, own in enumerate(memory) if isinstance(own, Elements)]
        for one, other in combinations(used, 2):
            first, second = memory[one], memory[other]
            copied = one in layout.copied or other in layout.copied
            written = one in layout.written or other in layout.written
            if copied and written and first != second and first.overlaps(second):
                what = "a view" if isinstance(first.buffer, Buffer) else "host memory"
                message = (
                    f"shares bytes with {names[one]}, must not: one of them is {what} that is "
                    "copied while the shader runs, and one is written"
                )
                raise BindingError(self.name, names[other], message, "SH-06")
        made: dict[Elements, HostCopy | PackedCopy] = {}
        for number in layout.copied:
            own, place = memory[number], layout.places[number]
            if own in made or place is None:
                continue
            if isinstance(own.buffer, HostBuffer):
                made[own] = HostCopy(self._device, own.buffer, *place)
            else:
                made[own] = PackedCopy(self._device, own.buffer, own.view, own.itemsize)
        return {n: made[memory[n]] for n in used if memory[n] in made}

    # -- arguments --------------------------------------------------------------------------------

    def _specs(self, out: Any, free: Sequence[Block]) -> dict[str, Any]:
        """The outputs to be made, by the names of their blocks, which have no buffer."""
        names = ", ".join(block.point for block in free) or "none"
        if isinstance(out, Mapping):
            places = [block.place for block in free]
            for name in out:
                block = self.shader.block(name)
                if block is None or block.place not in places:
                    message = f"got {show(name)}, must be a block without a buffer: {names}"
                    raise BindingError(self.name, "out", message, "SH-04")
            return dict(out)
        given = out if isinstance(out, list) else [out]
        if len(given) != len(free) or not free:
            message = f"got {len(given)}, must be one for each block without a buffer: {names}"
            raise BindingError(self.name, "out", message, "SH-04")
        return dict(zip([block.point for block in free], given, strict=True))

    def _made(
        self, point: str, blocks: Mapping[str, Block], spec: Any, bound: Mapping[str, Any]
    ) -> Any:
        """Make an output, unless it is given."""
        if _is_memory(spec):
            return spec
        if isinstance(spec, np.ndarray):
            raise self._written_array(point)
        shape, dtype = spec, None
        if isinstance(spec, (tuple, list)) and len(spec) == 2:
            try:
                integer(spec[1], Place(self.name, "out", "SH-04"))
            except InvalidDescError:
                shape, dtype = spec
        if isinstance(shape, str):
            source = self.shader.block(shape)
            place = source and source.place
            like = [bound[p] for p, each in blocks.items() if p in bound and each.place == place]
            if not like or not hasattr(like[0], "shape"):
                message = (
                    f"got {show(shape)}, must be the name of a block with a tensor or an array"
                )
                raise BindingError(self.name, "out", message, "SH-04")
            shape = like[0].shape
        if dtype is None:
            dtype = blocks[point].dtype
            if dtype is None:
                message = "has no single type of numbers: give (shape, data type)"
                raise BindingError(self.name, point, message, "SH-11")
        try:
            return self._device.empty(shape, dtype)
        except InvalidDescError as error:
            field = f"{point}.{error.field}"
            raise type(error)(self.name, field, error.message, error.rule) from None

    def _sent(self, point: str, block: Block, value: np.ndarray[Any, Any]) -> Any:
        """Send an array to the device, unless it has the values of a uniform block."""
        if block.kind == "uniform":
            return value
        if not self._readonly[block.place]:
            raise self._written_array(point)
        return self._device.tensor(value)

    def _written_array(self, point: str) -> BindingError:
        message = "is an array of the host, which the shader would write: must be a tensor"
        return BindingError(self.name, point, f"{message}; a shape as `out` makes one", "SH-12")

    def _counts(
        self, groups: Counts | None, threads: int | Sequence[int] | None
    ) -> Groups | Elements | None:
        """The numbers of workgroups, or the bytes that hold them; None if there are no threads."""
        if threads is None and groups is not None:
            if type(groups) is tuple and len(groups) == 2 and _is_memory(groups[0]):
                place = Place(self.name, "groups", "SH-07")
                return self._indirect(groups[0], integer(groups[1], place))
            if type(groups) not in (int, list, tuple) and _is_memory(groups):
                return self._indirect(groups, 0)
        counts = self.shader.group_counts(groups, threads)
        if counts is None:
            return None
        limit = self._limits.max_compute_work_group_count
        for axis, count in enumerate(counts):
            if not 1 <= count <= limit[axis]:
                field, got, most = "groups", count, limit[axis]
                hint = "; use several dimensions, or a loop in the shader" if count > most else ""
                if threads is not None:
                    size = self.shader.module.local_size[axis]
                    field, got, most = "threads", np.atleast_1d(threads)[axis], limit[axis] * size
                    hint = f", {limit[axis]} workgroups of {size}; give fewer, and loop over the "
                    hint += "grid in the shader"
                message = f"got {got}, must be 1 to {most} on this device{hint}"
                raise InvalidDescError(self.name, f"{field}[{axis}]", message, "SH-07")
        return counts

    def _indirect(self, target: Any, offset: int) -> Elements:
        found = elements(self._device, self.name, "groups", target, written=False)
        buffer, view, itemsize, dtype = found
        start = view.offset * itemsize + offset
        wrong = dtype is not None and (dtype.kind not in "iu" or itemsize != 4)
        wrong |= isinstance(buffer, HostBuffer)
        fits = 0 <= offset <= found.nbytes - _GROUPS_NBYTES and start % 4 == 0
        if wrong or not fits or not view.is_contiguous:
            message = (
                f"got {show(target)} and offset {offset}, must be contiguous integers of 32 bits "
                "and a multiple of 4 with 12 bytes behind it"
            )
            raise InvalidDescError(self.name, "groups", message, "SH-07")
        return Elements(buffer, View((_GROUPS_NBYTES,), (1,), start), 1, None)

    # -- memory -----------------------------------------------------------------------------------

    def _memory(self, point: str, block: Block, binding: Any) -> Elements | bytes:
        """The elements that are bound to a block, or the values of a uniform block."""
        if block.kind == "uniform" and not _is_memory(binding):
            return self.shader.pack_uniform(block, binding)
        written = not self._readonly[block.place]
        return elements(self._device, self.name, point, binding, written=written)

    def _check_type(self, point: str, alike: Sequence[Block], own: Elements) -> None:
        """Check elements that are bound to the blocks of one binding (SH-11)."""
        dtypes = [each.dtype for each in alike]
        if own.dtype is not None and not any(_fits(own.dtype, dtype) for dtype in dtypes):
            message = f"got {own.dtype}, must be {dtypes[0]}; tensor.astype() converts it"
            if dtypes[0] is not None and own.itemsize == dtypes[0].itemsize:
                message += ", tensor.view() reads the same bytes"
            raise BindingError(self.name, point, message, "SH-11")

    def _check_size(self, point: str, kind: str, nbytes: int) -> None:
        """Check the bytes that are bound to a block (SH-12)."""
        most = self._device.pool.max_range
        if kind == "uniform":
            most = self._limits.max_uniform_buffer_range
        if nbytes > most:
            message = f"got {nbytes} bytes, must be {most} at most: {kind} blocks have no more"
            raise BindingError(self.name, point, f"{message} on this device", "SH-12")


def _is_memory(binding: Any) -> bool:
    """Whether a binding is memory of a device, or a part of it."""
    target = binding[0] if isinstance(binding, tuple) and len(binding) == 3 else binding
    return hasattr(target, "placed") or isinstance(target, Resource)


def _kind(own: Elements | bytes) -> Any:
    """The properties of a binding that ``_Layout`` depends on: all but the address."""
    if isinstance(own, bytes):
        return len(own)
    return (*own[1:], own.buffer.nbytes, type(own.buffer))


def _sized(own: Elements | bytes) -> tuple[Extent, int]:
    """The bytes that ``Shader.bind`` checks, and the size of their resource."""
    if isinstance(own, bytes):
        return Extent(None, 0, len(own)), len(own)
    if own.dtype is None:
        return Extent(own.buffer, own.view.offset, own.nbytes), own.buffer.nbytes
    return Extent(own.buffer, 0, own.nbytes), own.nbytes


def _fits(given: np.dtype[Any], declared: np.dtype[Any] | None) -> bool:
    """Whether elements of a tensor are what a block declares; signs of integers do not matter."""
    if declared is None or given == declared or given.fields:
        return True
    integers_ = given.kind in "iub" and declared.kind in "iu"
    return integers_ and given.itemsize == declared.itemsize
