"""Dispatchables of type ``glsl`` and ``spirv``: the counterpart of DxDispatch's ``hlsl``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from vkops import shaders
from vkops.dml import TensorDataType
from vkops.dxdispatch.data_types import dtype_of
from vkops.dxdispatch.folders import Folders
from vkops.dxdispatch.initial_values import read_float, read_scalar, read_value_type
from vkops.dxdispatch.json_model import (
    BindingSource,
    BufferResource,
    DispatchCommand,
    ShaderDispatchable,
)
from vkops.dxdispatch.json_reader import Node, quote
from vkops.errors import BindingError, InvalidDescError, ShaderCompileError, printable
from vkops.shaders.shader import Number, Shader, Span

TYPES = {"glsl": ".comp", "spirv": ".spv"}
"""The types, and what the name of a source ends with."""

MAX_GROUPS = 65535
"""Workgroups in each direction that every Vulkan device, and Direct3D 12, can dispatch."""

_ID_DIGITS = 10

_PUSHED = {
    "uint": TensorDataType.UINT32,
    "int": TensorDataType.INT32,
    "float": TensorDataType.FLOAT32,
}


def read_dispatchable(name: str, node: Node, folders: Folders) -> ShaderDispatchable:
    """Read a dispatchable, and compile its shader.

    Raises:
        ModelError: a member is wrong, or the shader is.
    """
    source = node.required("sourcePath")
    path = folders.find(source)
    suffix = TYPES[node.required("type", "Type").string().lower()]
    if (path.suffix == ".spv") != (suffix == ".spv"):
        raise source.error(f"got {quote(path.name)}, must be a {suffix} file")
    compiler, arguments = node.optional("compiler"), node.optional("compilerArgs")
    for member in (compiler, arguments):
        if member is not None and suffix == ".spv":
            raise member.error("SPIR-V is compiled already")
    if compiler is not None:
        compiler.choice("glslangValidator")
    options = _options(arguments)
    values = node.optional("specializationConstants")
    constants: dict[str | int, Number] = {
        int(key) if key.isdecimal() and len(key) <= _ID_DIGITS else key: read_float(value)
        for key, value in (values.members() if values else ())
    }
    try:
        shader = shaders.load(
            path,
            constants=constants,
            defines=options.defines,
            include_dirs=[folders.folder(*folder) for folder in options.include_dirs],
            target_env=options.target_env,
            debug=options.debug,
            allow_paths=folders.allow_paths,
            root=folders.inputs,
        )
    except ShaderCompileError as error:
        raise source.error(printable(str(error))) from error
    except InvalidDescError as error:
        raise (values or node).error(str(error)) from error
    pushed = _read_pushed(node.optional("pushConstants"), node, shader)
    return ShaderDispatchable(name, shader, pushed, node)


@dataclass
class _Options:
    """The compiler's arguments, as ``shaders.load`` takes them."""

    defines: dict[str, str] = field(default_factory=dict)
    include_dirs: list[tuple[Node, str]] = field(default_factory=list)
    target_env: str = "vulkan1.1"
    debug: bool = False


def _options(node: Node | None) -> _Options:
    """Read the arguments; what one takes is the rest of it, or the next."""
    options = _Options()
    rest = iter(node.items() if node else ())
    for item in rest:
        argument = item.string()
        if argument == "-g":
            options.debug = True
            continue
        option = next((o for o in ("-D", "-I", "-e", "--target-env") if argument.startswith(o)), "")
        value = argument.removeprefix(option)
        if option and not value:
            following = next(rest, None)
            value = "" if following is None else following.string()
        elif option == "--target-env":
            value = value.removeprefix("=")
        if option == "-I" and value and "\0" not in value:
            options.include_dirs.append((item, value))
        elif not _take(options, option, value):
            raise item.wrong(
                "-D NAME[=VALUE], -I FOLDER, -g, -e main, --target-env vulkan1.0 or vulkan1.1"
            )
    return options


def _take(options: _Options, option: str, value: str) -> bool:
    """Take one argument, if it is one."""
    match option, value:
        case "-D", _ if value:
            name, _, text = value.partition("=")
            options.defines[name] = text
        case "--target-env", "vulkan1.0" | "vulkan1.1":
            options.target_env = value
        case "-e", "main":
            pass
        case _:
            return False
    return True


def _read_pushed(node: Node | None, dispatchable: Node, shader: Shader) -> tuple[Number, ...]:
    """The push constants: typed values, in the order in which the shader declares them."""
    numbers = []
    for item, scalar in zip(
        node.items() if node else (), shader.module.push_constants, strict=False
    ):
        item.known("name")
        kind = item.required("type")
        if read_value_type(kind) is not _PUSHED[scalar.type]:
            raise kind.wrong(f"{_PUSHED[scalar.type].name}, as {scalar.name} is {scalar.type}")
        value = read_scalar(item.required("value"), dtype_of(_PUSHED[scalar.type]))
        numbers.append(value.item())
    numbers += [0] * (len(node.items()) - len(numbers) if node else 0)  # too many
    try:
        shader.pack(numbers)
    except InvalidDescError as error:
        raise (node or dispatchable).error(str(error)) from error
    return tuple(numbers)


# -- bindings --------------------------------------------------------------------------------------


def read_count(node: Node) -> int | None:
    """How many elements a binding has, as it says; what GLSL has no use for is refused."""
    for member in ("counter", "format"):
        found = node.optional(member)
        if found is not None and found.value not in ("UNKNOWN", "DXGI_FORMAT_UNKNOWN"):
            raise found.error(f"'{member}' is not for blocks of GLSL")
    count = node.optional("elementCount")
    return None if count is None else count.uint(64)


@dataclass(frozen=True)
class BoundShader:
    """A dispatch of a shader, with the source of each bind point."""

    command: DispatchCommand
    dispatchable: ShaderDispatchable
    sources: Mapping[str, BindingSource]


def bind(command: DispatchCommand, dispatchable: ShaderDispatchable) -> BoundShader:
    """Check the bindings of a dispatch, as far as they need no device.

    Raises:
        ModelError: what would fail.
    """
    for point, found in command.bindings.items():
        if len(found) != 1:
            raise command.node["bindings"].error(
                f"Bind point '{point}' requires 1 resources, but {len(found)} were bound. [B-01]"
            )
    sources = {point: found[0] for point, found in command.bindings.items()}
    try:
        dispatchable.shader.bind({point: _span(source) for point, source in sources.items()})
    except BindingError as error:
        source = sources.get(error.field)
        raise (source.node if source else command.node["bindings"]).error(str(error)) from error
    for axis, count in enumerate(command.groups):
        if not 1 <= count <= MAX_GROUPS:
            item = command.node["threadGroupCount"].item(axis)
            raise item.error(f"got {count}, must be 1 to {MAX_GROUPS} [SH-07]")
    return BoundShader(command, dispatchable, sources)


def _span(source: BindingSource) -> Span:
    resource = source.resource
    assert isinstance(resource, BufferResource)
    return Span(resource.name, resource.size, source.offset, source.nbytes)
