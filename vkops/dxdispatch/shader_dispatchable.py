"""Dispatchables of type ``glsl`` and ``spirv``, the counterpart of DxDispatch's ``hlsl``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from vkops.dml import TensorDataType
from vkops.dxdispatch.data_types import dtype_of
from vkops.dxdispatch.folders import Folders
from vkops.dxdispatch.initial_values import read_float, read_scalar, read_value_type
from vkops.dxdispatch.json_model import BindingSource, DispatchCommand, ShaderDispatchable
from vkops.dxdispatch.json_reader import Node, quote
from vkops.errors import BindingError, InvalidDescError, ShaderCompileError, printable
from vkops.extent import Extent

if TYPE_CHECKING:
    from vkops.shaders import Number, Shader

SUFFIXES = {"glsl": ".comp", "spirv": ".spv"}
"""The suffix of the source file for each type."""

MAX_GROUPS = 65535
"""Workgroups in each direction that every Vulkan device, and Direct3D 12, can dispatch."""

MAX_ID_DIGITS = 10
"""Digits of the id of a specialization constant, which has 32 bits."""

_PUSH_CONSTANT_TYPES = {
    "uint": TensorDataType.UINT32,
    "int": TensorDataType.INT32,
    "float": TensorDataType.FLOAT32,
}


def read_dispatchable(name: str, node: Node, folders: Folders) -> ShaderDispatchable:
    """Read a dispatchable, and compile its shader."""
    from vkops import shaders

    source = node.required("sourcePath")
    path = folders.find(source)
    suffix = SUFFIXES[node.required("type", "Type").string().lower()]
    if (path.suffix == ".spv") != (suffix == ".spv"):
        raise source.error(f"got {quote(path.name)}, must be a {suffix} file")
    compiler, arguments = node.optional("compiler"), node.optional("compilerArgs")
    for member in (compiler, arguments):
        if member is not None and suffix == ".spv":
            raise member.error("SPIR-V is compiled already")
    if compiler is not None:
        compiler.choice("glslangValidator")
    options = _read_options(arguments, folders)
    values = node.optional("specializationConstants")
    constants: dict[str | int, Number] = {
        constant_key(key): read_float(value) for key, value in (values.members() if values else ())
    }
    try:
        shader = shaders.load(
            path,
            constants=constants,
            **options,
            allow_paths=folders.allow_paths,
            root=folders.inputs,
        )
    except ShaderCompileError as error:
        raise source.error(printable(str(error))) from error
    except InvalidDescError as error:
        raise (values or node).error(str(error)) from error
    pushed = _read_push_constants(node.optional("pushConstants"), node, shader)
    return ShaderDispatchable(name, shader, pushed, node)


def constant_key(text: str) -> str | int:
    """Return the name of a specialization constant, or its id."""
    return int(text) if text.isdecimal() and len(text) <= MAX_ID_DIGITS else text


def _read_options(node: Node | None, folders: Folders) -> dict[str, Any]:
    """Read the compiler's arguments, as keywords of ``shaders.load``.

    The value of an argument is the rest of it, or the next one.
    """
    defines: dict[str, str] = {}
    options: dict[str, Any] = {"defines": defines, "include_dirs": []}
    rest = iter(node.items() if node else ())
    for item in rest:
        argument = item.string()
        option = next((o for o in ("-D", "-I", "-e", "--target-env") if argument.startswith(o)), "")
        value = argument.removeprefix(option)
        if option and not value:
            following = next(rest, None)
            value = "" if following is None else following.string()
        elif option == "--target-env":
            value = value.removeprefix("=")
        match option, value:
            case "", "-g":
                options["debug"] = True
            case "-D", _ if value:
                name, _, text = value.partition("=")
                defines[name] = text
            case "-I", _ if value and "\0" not in value:
                options["include_dirs"].append(folders.include_folder(item, value))
            case "--target-env", "vulkan1.0" | "vulkan1.1":
                options["target_env"] = value
            case "-e", "main":
                pass
            case _:
                raise item.wrong(
                    "-D NAME[=VALUE], -I FOLDER, -g, -e main, --target-env vulkan1.0 or vulkan1.1"
                )
    return options


def _read_push_constants(
    node: Node | None, dispatchable: Node, shader: Shader
) -> tuple[Number, ...]:
    """Read typed values, in the order in which the shader declares its push constants."""
    items = list(node.items()) if node else []
    numbers = []
    for item, scalar in zip(items, shader.module.push_constants, strict=False):
        item.known("name")
        kind = item.required("type")
        data_type = _PUSH_CONSTANT_TYPES[scalar.type]
        if read_value_type(kind) is not data_type:
            raise kind.wrong(f"{data_type.name}, as {scalar.name} is {scalar.type}")
        numbers.append(read_scalar(item.required("value"), dtype_of(data_type)).item())
    numbers += [0] * (len(items) - len(numbers))  # too many, which is refused next
    try:
        shader.pack(numbers)
    except InvalidDescError as error:
        raise (node or dispatchable).error(str(error)) from error
    return tuple(numbers)


@dataclass(frozen=True)
class BoundShader:
    """A dispatch of a shader, with the source of each bind point."""

    command: DispatchCommand
    dispatchable: ShaderDispatchable
    sources: Mapping[str, BindingSource]


def bind(command: DispatchCommand, dispatchable: ShaderDispatchable) -> BoundShader:
    """Check the bindings of a dispatch as far as possible without a device."""
    bindings = command.node["bindings"]
    for point, found in command.bindings.items():
        if len(found) != 1:
            raise bindings.error(
                f"Bind point '{point}' requires 1 resources, but {len(found)} were bound. [B-01]"
            )
    sources = {point: found[0] for point, found in command.bindings.items()}
    extents = {
        point: (Extent(source.buffer.name, source.offset, source.nbytes), source.buffer.size)
        for point, source in sources.items()
    }
    try:
        dispatchable.shader.bind(extents)
    except BindingError as error:
        place = sources[error.field].node if error.field in sources else bindings
        raise place.error(str(error)) from error
    for axis, count in enumerate(command.groups):
        if not 1 <= count <= MAX_GROUPS:
            item = command.node["threadGroupCount"].item(axis)
            raise item.error(f"got {count}, must be 1 to {MAX_GROUPS} [SH-07]")
    return BoundShader(command, dispatchable, sources)
