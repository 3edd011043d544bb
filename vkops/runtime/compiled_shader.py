"""User-defined compute shaders on a device."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from vkops.arguments.values import Place, integers
from vkops.errors import BindingError, InvalidDescError, show
from vkops.extent import Extent
from vkops.gpu.adapters import adapter
from vkops.gpu.adapters.adapter_limits import Limits, limits
from vkops.gpu.run.executor import Executor
from vkops.gpu.run.open_queues import with_reclaim
from vkops.gpu.run.shader_run import ShaderRun, check_room
from vkops.runtime.bindings import Binding, resolve
from vkops.shaders.shader import SUBGROUP, Number, Shader

_AXES = "xyz"


class CompiledShader:
    """A compute shader on a device, made by ``Device.compile_shader``.

    Attributes:
        name: the name of the shader in errors.
        shader: the shader with its declarations.

    >>> import numpy as np
    >>> from vkops import Device
    >>> text = '''#version 450
    ... layout(local_size_x = 4) in;
    ... layout(std430, binding = 0) readonly buffer Source { uint source[]; };
    ... layout(std430, binding = 1) writeonly buffer Target { uint target[]; };
    ... layout(push_constant) uniform Push { uint factor; };
    ... void main() { uint i = gl_GlobalInvocationID.x; target[i] = factor * source[i]; }'''
    >>> device = Device()
    >>> shader = device.compile_shader(text)
    >>> x, y = device.tensor(np.arange(8, dtype=np.uint32)), device.buffer(32)
    >>> shader.dispatch({"Source": x, "Target": y}, groups=[2], push_constants=[10])
    >>> np.frombuffer(y.read(), np.uint32)
    array([ 0, 10, 20, 30, 40, 50, 60, 70], dtype=uint32)
    """

    def __init__(self, executor: Executor, shader: Shader) -> None:
        executor.check()
        self.name: str = shader.name
        self.shader: Shader = shader
        self._executor = executor
        self._limits: Limits = limits(executor.info.index)
        self._check_limits()
        self._spirv: bytes = shader.spirv
        if executor.info.type == "CPU" and not adapter.under_validation():
            # A CPU driver's buffers are next to this process's own data, which an index out of
            # bounds would overwrite. The validation layer must see the shader as it was written.
            self._spirv = shader.with_limited_indices()

    def dispatch(
        self,
        buffers: Mapping[str, Binding],
        groups: Sequence[int] = (1, 1, 1),
        push_constants: Sequence[Number] = (),
    ) -> None:
        """Run the shader once and wait until its results are in the buffers.

        Args:
            buffers: for each block, by its name or that of its instance, a buffer, a tensor, or
                (buffer or tensor, byte offset, bytes).
            groups: one to three numbers of workgroups.
            push_constants: numbers, in the order in which the shader declares them.

        Raises:
            BindingError: a block has no buffer or a wrong one (SH-04 to SH-06), or one that is
                written is bound to a view of a tensor (B-21).
            InvalidDescError: SH-07, SH-09.
            OutOfDeviceMemoryError: the device has no room for the buffers a second time.
        """
        with self.bound(buffers, groups, push_constants) as run:
            run.dispatch()

    @contextmanager
    def bound(
        self,
        buffers: Mapping[str, Binding],
        groups: Sequence[int] = (1, 1, 1),
        push_constants: Sequence[Number] = (),
    ) -> Iterator[ShaderRun]:
        """Bind once, to dispatch many times; results are in the buffers after the block.

        Arguments and errors are those of ``dispatch``.
        """
        bound = self.shader.bind(self._extents(buffers))
        counts, pushed = self._groups(groups), self.shader.pack(push_constants)
        # Blocks that are bound to the same bytes share them.
        extents = list(dict.fromkeys(extent for _, extent in bound))
        written = {extent for block, extent in bound if not block.readonly}
        sizes = [extent.nbytes for extent in extents]
        with_reclaim(lambda: check_room(self._executor, sizes))  # before anything is copied
        run = with_reclaim(
            lambda: ShaderRun(
                self._executor,
                self._spirv,
                [resource.array(start, nbytes) for resource, start, nbytes in extents],
                {block.binding: extents.index(extent) for block, extent in bound},
                counts,
                pushed,
            )
        )
        yield run
        for number, extent in enumerate(extents):
            if extent in written:
                extent.resource.write(run.content(number), extent.start)

    # -- checks -----------------------------------------------------------------------------------

    def _extents(self, buffers: Mapping[str, Binding]) -> dict[str, tuple[Extent, int]]:
        """The bytes that are bound to each block, with the size of their buffer."""
        if not isinstance(buffers, Mapping):
            message = f"got {show(buffers)}, must be a mapping of blocks' names to buffers"
            raise BindingError(self.name, "buffers", message, "SH-04")
        extents = {}
        for key, binding in buffers.items():
            point = str(key)
            block = self.shader.block(point)
            number = None if block is None else block.binding
            written = any(b.binding == number and not b.readonly for b in self.shader.blocks)
            extent = resolve(self._executor, self.name, point, binding, written=written)
            extents[point] = extent, extent.resource.nbytes
        return extents

    def _groups(self, groups: Sequence[int]) -> tuple[int, int, int]:
        counts = integers(groups, Place(self.name, "groups", "SH-07"))
        limit = self._limits.max_compute_work_group_count
        if not 1 <= len(counts) <= 3:
            message = f"got {len(counts)} numbers, must be one to three"
            raise InvalidDescError(self.name, "groups", message, "SH-07")
        x, y, z = (*counts, 1, 1)[:3]
        for axis, count in enumerate((x, y, z)):
            if not 1 <= count <= limit[axis]:
                message = f"got {count}, must be 1 to {limit[axis]} on this device"
                raise InvalidDescError(self.name, f"groups[{axis}]", message, "SH-07")
        return x, y, z

    def _check_limits(self) -> None:
        """Refuse a shader that the device cannot run (SH-08)."""
        module, limit = self.shader.module, self._limits
        x, y, z = module.local_size
        sizes = zip(_AXES, module.local_size, limit.max_compute_work_group_size, strict=True)
        used = [(f"local_size_{axis}", got, allowed) for axis, got, allowed in sizes]
        used += [
            ("invocations of a workgroup", x * y * z, limit.max_compute_work_group_invocations),
            ("bytes of shared memory", module.shared_nbytes, limit.max_compute_shared_memory_size),
            ("bytes of push constants", module.push_nbytes, limit.max_push_constants_size),
            (
                "buffers",
                max((b.binding + 1 for b in module.blocks), default=1),
                limit.max_per_stage_descriptor_storage_buffers,
            ),
        ]
        for field, got, allowed in used:
            if got > allowed:
                message = f"got {got}, must be {allowed} at most on {self._executor.info.name!r}"
                raise InvalidDescError(self.name, field, message, "SH-08")
        missing = [
            capability
            for capability in module.capabilities
            if capability in SUBGROUP and SUBGROUP[capability] not in limit.subgroup_operations
        ]
        if missing:
            message = f"got {', '.join(missing)}, which {self._executor.info.name!r} does not have"
            raise InvalidDescError(self.name, "capabilities", message, "SH-08")
