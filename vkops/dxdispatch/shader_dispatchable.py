"""Dispatchables of type ``hlsl``, as DxDispatch has them, and of type ``glsl`` and ``spirv``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
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

SUFFIXES = {"glsl": ".comp", "hlsl": ".hlsl", "spirv": ".spv"}
"""The suffix of the source file for each type."""

MAX_GROUPS = 65535
"""Workgroups in each direction that every Vulkan device, and Direct3D 12, can dispatch."""

GROUPS_NBYTES = 12
"""Bytes of three numbers of workgroups in a buffer."""

MAX_ID_DIGITS = 10
"""Digits of the id of a specialization constant, which has 32 bits."""

_COMPILERS = {"glsl": ("glslangValidator",), "hlsl": ("dxc", "glslangValidator")}
"""Names in models; glslang is the compiler of all."""

_OPTIONS = {
    "glsl": {"-D": ".+", "-I": r"[^\0]+", "-e": "main", "--target-env": r"vulkan1\.[0-3]"},
    "hlsl": {"-D": ".+", "-I": r"[^\0]+", "-E": ".+", "-T": "cs_(5_[01]|6_[0-7])"},
}
"""The compiler's options, with patterns of their values."""

_KEYWORDS = {"--target-env": "target_env", "-E": "entry"}
_DEBUG = {"glsl": "-g", "hlsl": "-Zi"}
_ALLOWED = {
    "glsl": "-D NAME[=VALUE], -I FOLDER, -g, -e main, --target-env vulkan1.0 to vulkan1.3",
    "hlsl": "-D NAME[=VALUE], -I FOLDER, -Zi, -E NAME, -T cs_5_0 to cs_6_7",
}


def read_dispatchable(name: str, node: Node, folders: Folders) -> ShaderDispatchable:
    """Read a dispatchable, and compile its shader."""
    from vkops import shaders

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
        constant_key(key): read_float(value) for key, value in (values.members() if values else ())
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
    pushed = _read_push_constants(node.optional("pushConstants"), node, shader)
    return ShaderDispatchable(name, shader, pushed, node, partial(load, debug=True))


def constant_key(text: str) -> str | int:
    """Return the name of a specialization constant, or its id."""
    return int(text) if text.isdecimal() and len(text) <= MAX_ID_DIGITS else text


def _read_options(node: Node | None, folders: Folders, language: str) -> dict[str, Any]:
    """Read the compiler's arguments, as keywords of ``shaders.load``.

    The value of an argument is the rest of it, or the next one. Those of HLSL are dxc's.
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
    """Read typed values, in the order in which the shader declares its push constants."""
    from vkops.shaders.layout import leaves

    items = list(node.items()) if node else []
    numbers = []
    for item, scalar in zip(items, leaves(shader.module.push), strict=False):
        item.known("name")
        kind = item.required("type")
        data_type = TensorDataType[f"{scalar.type.kind.upper()}{8 * scalar.type.nbytes}"]
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
        dispatchable.shader.check(extents)
    except BindingError as error:
        place = sources[error.field].node if error.field in sources else bindings
        raise place.error(str(error)) from error
    groups = command.groups
    if isinstance(groups, BindingSource):
        if groups.offset % 4 or groups.nbytes < GROUPS_NBYTES:
            raise groups.node.error(
                f"got {groups.nbytes} bytes from byte {groups.offset} on, must be "
                f"{GROUPS_NBYTES} or more from a multiple of 4 on [SH-07]"
            )
        return BoundShader(command, dispatchable, sources)
    for axis, count in enumerate(groups):
        if not 1 <= count <= MAX_GROUPS:
            item = command.node["threadGroupCount"].item(axis)
            raise item.error(f"got {count}, must be 1 to {MAX_GROUPS} [SH-07]")
    return BoundShader(command, dispatchable, sources)
