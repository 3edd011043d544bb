"""Dispatchables of type ``hlsl``, as in DxDispatch, and of types ``glsl`` and ``spirv``."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from vkops.dml import TensorDataType
from vkops.errors import BindingError, InvalidDescError, ShaderCompileError, printable
from vkops.extent import Extent
from vkops.models.folders import Folders
from vkops.models.initial_values import dtype_of, read_float, read_scalar, read_value_type
from vkops.models.json_reader import Node, quote
from vkops.models.model import (
    CheckedDispatch,
    Dispatchable,
    DispatchCommand,
    Execution,
    OutputArray,
    ReadContext,
    TensorBinding,
)
from vkops.models.resources import Bindings, BindingSource, Resources, errors_after, wrong_count

if TYPE_CHECKING:
    from vkops.models.target import Run
    from vkops.shaders import Number, Shader
    from vkops.shaders.module import Block
    from vkops.shaders.slot import Slot

SUFFIXES = {"glsl": ".comp", "hlsl": ".hlsl", "spirv": ".spv"}
"""The suffix of the source file for each type."""

MAX_GROUPS = 65535
"""The number of workgroups per dimension that every Vulkan device and Direct3D 12 support."""

GROUPS_NBYTES = 12
"""The size in bytes of three numbers of workgroups in a buffer."""

_COMPILERS = {"glsl": ("glslangValidator",), "hlsl": ("dxc", "glslangValidator")}
"""The names of compilers in models; all shaders are compiled with glslang."""

_OPTIONS = {
    "glsl": {"-D": ".+", "-I": r"[^\0]+", "-e": "main", "--target-env": r"vulkan1\.[0-3]"},
    "hlsl": {"-D": ".+", "-I": r"[^\0]+", "-E": ".+", "-T": "cs_(5_[01]|6_[0-7])"},
}
"""The compilers' options, with patterns of their values."""

_KEYWORDS = {"--target-env": "target_env", "-E": "entry"}
_DEBUG = {"glsl": "-g", "hlsl": "-Zi"}
_ALLOWED = {
    "glsl": "-D NAME[=VALUE], -I FOLDER, -g, -e main, --target-env vulkan1.0 to vulkan1.3",
    "hlsl": "-D NAME[=VALUE], -I FOLDER, -Zi, -E NAME, -T cs_5_0 to cs_6_7",
}


@dataclass(frozen=True)
class ShaderDispatchable(Dispatchable):
    """A compute shader and its push constants; ``load`` can load it again with ``debug=True``."""

    types: ClassVar[Sequence[str]] = tuple(SUFFIXES)
    kind: ClassVar[str] = "a shader"

    shader: Shader
    push_constants: tuple[Number, ...]
    load: Callable[..., Shader]
    samplers: Mapping[str, Sequence[Mapping[str, Any]]]

    @classmethod
    def read(cls, name: str, node: Node, context: ReadContext) -> ShaderDispatchable:
        from vkops import shaders
        from vkops.models.shader_images import read_samplers
        from vkops.shaders.constants import constant_key

        folders = context.folders
        source = node.required("sourcePath")
        path = folders.find(source)
        language = node.required("type", "Type").string().lower()
        suffix = SUFFIXES[language]
        if path.suffix != suffix and (suffix == ".spv" or path.suffix in SUFFIXES.values()):
            raise source.error(f"got {quote(path.name)}, must be a {suffix} file")
        compiler, arguments = node.optional("compiler"), node.optional("compilerArgs")
        for member in (compiler, arguments):
            if member is not None and language == "spirv":
                raise member.error("SPIR-V is compiled already")
        if compiler is not None:
            compiler.choice(*_COMPILERS[language])
        options = _read_options(arguments, folders, language)
        values = node.optional("specializationConstants")
        constants: dict[str | int, Number] = {
            constant_key(key): read_float(value)
            for key, value in (values.members() if values else ())
        }
        load = partial(
            shaders.load,
            path,
            language=language,
            constants=constants,
            **options,
            allow_paths=folders.allow_paths,
            root=folders.inputs,
        )
        try:
            shader = load()
        except ShaderCompileError as error:
            raise source.error(printable(str(error))) from error
        except InvalidDescError as error:
            raise (values or node).error(str(error)) from error
        if shader.uses_addresses and not folders.allow_paths:
            raise source.error(
                "uses physical addresses, which have no bounds: only with --allow_paths a model may"
            )
        pushed = _read_push_constants(node.optional("pushConstants"), node, shader)
        samplers = node.optional("samplers")
        for point, settings in samplers.members() if samplers else ():
            block = shader.block(point)
            if block is None or "sampler" not in block.kind:
                raise settings.error("is not a sampler or a combined image sampler of the shader")
        return cls(name, node, shader, pushed, load, read_samplers(samplers))

    def read_bindings(self, node: Node, resources: Resources) -> Bindings:
        from vkops.models.shader_images import as_texels

        def source(node: Node, block: Block | None) -> BindingSource:
            binding = resources.source(node)
            if block is not None and block.kind not in ("storage", "uniform"):
                return as_texels(node, binding, block)
            if not isinstance(node.value, dict):
                return binding
            for member in ("counter", "format"):
                value = node.optional(member)
                if value is not None and value.value not in ("UNKNOWN", "DXGI_FORMAT_UNKNOWN"):
                    raise value.error(f"'{member}' is not for blocks of shaders")
            count = node.optional("elementCount")
            if count is None:
                return binding
            size = binding.resource.element_size(node, "elementCount")
            return replace(binding, count=count.uint(64) * size)

        return {
            point: tuple([source(each, self.shader.block(point)) for each in sources.one_or_more()])
            for point, sources in node.members()
        }

    def check_bindings(self, command: DispatchCommand) -> CheckedDispatch:
        bindings, shader = command.node["bindings"], self.shader
        values: dict[str, Any] = {}
        extents: dict[str, Any] = {}
        nodes: dict[str, Node] = {}
        for point, sources in command.bindings.items():
            block = shader.block(point)
            is_array = block is not None and block.is_array
            if len(sources) != 1 and not is_array:
                raise wrong_count(bindings, point, 1, sources)
            parts = [
                (Extent(each.resource.name, each.offset, each.nbytes), each.resource.size)
                for each in sources
            ]
            values[point], extents[point] = (sources, parts) if is_array else (sources[0], parts[0])
            nodes[point] = bindings[point]
            nodes |= {f"{point}[{number}]": each.node for number, each in enumerate(sources)}
        try:
            shader.check(extents)
            for slot, source in shader.elements(values):
                _check_rows(shader, slot, source)
        except BindingError as error:
            raise nodes.get(error.field, bindings).error(str(error)) from error
        _check_groups(command)
        blocks = tuple(
            TensorBinding(slot.name, slot.block, source, source.shape)
            for slot, source in shader.elements(values)
        )
        for point, settings in self.samplers.items():
            count = self._sampler_count(point, blocks)
            if len(settings) > 1 and count not in (0, len(settings)):
                text = f"got a list of {len(settings)}, must be one sampler or a list of {count}"
                raise self.node["samplers"][point].error(f"{text} [SH-04]")
        written = tuple(each for each in blocks if not each.desc.readonly)
        return CheckedDispatch(command.node, self, blocks, written, command.groups)

    def _sampler_count(self, point: str, bound: Sequence[TensorBinding]) -> int:
        """Return how many samplers a block takes: one for each of its textures, else its length.

        0 means a runtime-sized array.
        """
        block = self.shader.block(point)
        assert block is not None
        textures = sum(each.desc is block for each in bound)
        return textures or (1 if block.length is None else block.length)

    def compile(self, execution: Execution) -> Any:
        with errors_after(f"ERROR creating dispatchable '{self.name}'"):
            return execution.target.compile_shader(self.shader, self.load)

    def bind(self, dispatch: CheckedDispatch, execution: Execution) -> Run:
        elements: dict[Block, list[Any]] = {}
        for each in dispatch.inputs:
            element = execution.texels(each) if each.desc.image else execution.binding(each)
            elements.setdefault(each.desc, []).append(element)
        for point, settings in self.samplers.items():
            block = self.shader.block(point)
            assert block is not None
            samplers = [execution.target.sampler(**each) for each in settings]
            if len(samplers) == 1:
                samplers *= self._sampler_count(point, dispatch.inputs) or 1
            textures = elements.get(block)
            elements[block] = [*zip(textures, samplers, strict=True)] if textures else samplers
        buffers = {block.point: block.bound_to(each) for block, each in elements.items()}
        groups: Any = dispatch.groups
        if isinstance(groups, BindingSource):
            groups = execution.buffers[groups.resource.name], groups.offset
        bind = execution.compiled[self.name]
        return bind(buffers, groups, self.push_constants)  # type: ignore[no-any-return]

    def outputs(self, dispatch: CheckedDispatch, execution: Execution) -> Iterator[OutputArray]:
        for block in dispatch.outputs:
            buffer, offset, nbytes = execution.binding(block)
            dtype = block.source.dtype if block.source and block.desc.image else np.uint8
            yield OutputArray(
                block.name, np.frombuffer(buffer.read(offset, nbytes), dtype), block.desc
            )


def _check_rows(shader: Shader, slot: Slot, source: BindingSource) -> None:
    """Raise an error if the rows of a file's array do not match the numbers of the block (SH-16).

    The data type is not compared, because DxDispatch binds bytes.
    """
    resource, type_ = source.resource, slot.block.type
    shape, is_whole = resource.values.shape, not source.offset and source.count is None
    if shape is None or type_ is None or not is_whole:
        return
    dtype = dtype_of(resource.data_type)
    if dtype.itemsize in {number.nbytes for number in type_.scalars}:
        shader.check_elements(slot.point, slot.block, dtype, shape, bits=True)


def _check_groups(command: DispatchCommand) -> None:
    groups = command.groups
    if not isinstance(groups, BindingSource):
        for axis, count in enumerate(groups):
            if not 1 <= count <= MAX_GROUPS:
                item = command.node["threadGroupCount"].item(axis)
                raise item.error(f"got {count}, must be 1 to {MAX_GROUPS} [SH-07]")
    elif groups.offset % 4 or groups.nbytes < GROUPS_NBYTES:
        raise groups.node.error(
            f"got {groups.nbytes} bytes from byte {groups.offset} on, must be "
            f"{GROUPS_NBYTES} or more from a multiple of 4 on [SH-07]"
        )


def _read_options(node: Node | None, folders: Folders, language: str) -> dict[str, Any]:
    """Read the compiler's arguments, as keyword arguments of ``shaders.load``.

    The value of an option follows it directly, or is the next argument. The options of HLSL are
    dxc's.
    """
    defines: dict[str, str] = {}
    include: list[Path] = []
    options: dict[str, Any] = {"defines": defines, "include": include}
    rest = iter(node.items() if node else ())
    for item in rest:
        argument = item.string()
        option = next((o for o in _OPTIONS[language] if argument.startswith(o)), "")
        value = argument.removeprefix(option)
        if option and not value:
            following = next(rest, None)
            value = "" if following is None else following.string()
        elif option == "--target-env":
            value = value.removeprefix("=")
        pattern = _OPTIONS[language].get(option, _DEBUG[language])
        if not re.fullmatch(pattern, value, re.DOTALL):
            raise item.wrong(_ALLOWED[language])
        if not option:
            options["debug"] = True
        elif option == "-D":
            name, _, text = value.partition("=")
            defines[name] = text
        elif option == "-I":
            include.append(folders.inside(item, value, folders.inputs))
        elif option in _KEYWORDS:
            options[_KEYWORDS[option]] = value
    return options


def _read_push_constants(
    node: Node | None, dispatchable: Node, shader: Shader
) -> tuple[Number, ...]:
    """Read typed values in the order in which the shader declares its push constants."""
    from vkops.shaders.layout import leaves

    items = list(node.items()) if node else []
    numbers = []
    for item, scalar in zip(items, leaves(shader.push), strict=False):
        item.known("name")
        kind = item.required("type")
        data_type = TensorDataType[f"{scalar.type.kind.upper()}{8 * scalar.type.nbytes}"]
        if read_value_type(kind) is not data_type:
            raise kind.wrong(f"{data_type.name}, as {scalar.name} is {scalar.type}")
        numbers.append(read_scalar(item.required("value"), dtype_of(data_type)).item())
    numbers += [0] * (len(items) - len(numbers))  # too many values fail below
    try:
        shader.pack(numbers)
    except InvalidDescError as error:
        raise (node or dispatchable).error(str(error)) from error
    return tuple(numbers)
