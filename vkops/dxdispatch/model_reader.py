"""From JSON to a Model: every name, type and size that needs no device is checked here."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import NoneType
from typing import TypeVar

import rapidjson

from vkops.dml import OPERATORS, ExecutionFlags, OperatorDesc, TensorDataType
from vkops.dxdispatch import onnx_dispatchable, shader_dispatchable
from vkops.dxdispatch.data_types import dtype_of
from vkops.dxdispatch.descriptors import read_descriptor, read_flags
from vkops.dxdispatch.folders import Folders
from vkops.dxdispatch.initial_values import read_values
from vkops.dxdispatch.json_model import (
    Bindings,
    BindingSource,
    BufferResource,
    Command,
    DeferredResource,
    Dispatchable,
    DispatchCommand,
    DmlDispatchable,
    Model,
    PrintCommand,
    Resource,
    ShaderDispatchable,
    WriteFileCommand,
)
from vkops.dxdispatch.json_reader import Node, parse, quote, read_text
from vkops.dxdispatch.onnx_overrides import Overrides
from vkops.errors import ModelError, show

# Two of the largest tensors DirectML can address (2**32 elements of 8 bytes, T-13).
MAX_RESOURCE_BYTES = 2 << 35

MAX_NPY_DIMENSIONS = 32  # NumPy's own limit before 2.0

# Fields of a binding for dispatchables of other kinds.
_SOURCE_FIELDS = (
    "elementCount", "elementSizeInBytes", "elementOffset", "format", "counter",
    "counterOffsetBytes", "shape",
)  # fmt: skip

_T = TypeVar("_T")
_OTHER_KINDS = {
    "hlsl": "HLSL shaders are not available, only GLSL and SPIR-V: types 'glsl' and 'spirv'",
    "dmlserializedgraph": "DML graphs are not available, only DirectML operators: "
    + ", ".join(sorted(OPERATORS)),
}


def load_model(
    path: str | Path,
    input_path: str | Path | None = None,
    output_path: str | Path | None = None,
    overrides: Overrides | None = None,
    *,
    allow_paths: bool = False,
    strict: bool = False,
) -> Model:
    """Read a DxDispatch model and check all that needs neither a device nor a feature level.

    Args:
        path: the .json file.
        input_path: where ``sourcePath`` files are (default: the model's folder).
        output_path: where ``targetPath`` files go (default: the current folder).
        overrides: sizes of free dimensions and shapes of tensors of the ONNX models.
        allow_paths: whether files may lie outside of these folders, too; what is read is then
            also looked for in the current folder.
        strict: whether what the model would be warned of is an error.

    Raises:
        ModelError: in one line, what is wrong and where; also of an argument of the wrong kind.

    Example:
        >>> model = load_model("examples/split.json")
        >>> list(model.dispatchables)
        ['split']
    """
    path = _path("path", path)
    folders = Folders(
        _path("input_path", input_path) if input_path is not None else path.parent,
        _path("output_path", output_path) if output_path is not None else Path.cwd(),
        allow_paths,
    )
    if not isinstance(overrides, (Overrides, NoneType)):
        raise ModelError(f"overrides: got {show(overrides)}, must be Overrides or None")
    root = parse(read_text(path), str(path))
    model = _read_model(root, folders, overrides or Overrides())
    if strict and model.warnings:
        raise ModelError(model.warnings[0])
    return model


def _path(name: str, value: object) -> Path:
    try:
        return Path(value)  # type: ignore[arg-type]
    except TypeError:
        raise ModelError(f"{name}: got {show(value)}, must be a path") from None


def _read_model(root: Node, folders: Folders, overrides: Overrides) -> Model:
    sections = {name: root.required(name) for name in ("resources", "dispatchables", "commands")}
    resources = {
        name: _read_resource(name, node, folders) for name, node in sections["resources"].members()
    }
    total = sum(r.size for r in resources.values() if isinstance(r, BufferResource))
    if total > MAX_RESOURCE_BYTES:
        raise sections["resources"].error(
            f"got {total} bytes in all, allowed 0 to {MAX_RESOURCE_BYTES}"
        )
    dispatchables = {
        name: _read_dispatchable(name, node, resources, folders, overrides)
        for name, node in sections["dispatchables"].members()
    }
    commands = tuple(
        _read_command(node, resources, dispatchables, folders)
        for node in sections["commands"].items()
    )
    root.warn_of_unknown_fields()
    return Model(resources, dispatchables, commands, tuple(root.source.warnings))


def _read_resource(name: str, node: Node, folders: Folders) -> Resource:
    node.known("type", "resampleSize", "resampleMode")  # buffers are all there is
    node.known("initialValuesDataType", "sizeInBytes", "initialValuesOffsetInBytes")
    values_node = node.optional("initialValues")
    if values_node is not None and values_node.value == "deferred":
        return DeferredResource(name)
    data_type, values = read_values(node, folders)
    size_node = node.optional("sizeInBytes")
    size = size_node.uint(64) if size_node else -(-values.nbytes // 4) * 4
    offset_node = node.optional("initialValuesOffsetInBytes")
    offset = offset_node.uint(64) if offset_node else 0
    if values.nbytes + offset > size:
        raise (size_node or node).error(
            f"got a size of {size} bytes for {values.nbytes} bytes of initial values"
            + (f" at offset {offset}" if offset else "")
        )
    if size > MAX_RESOURCE_BYTES:
        raise (size_node or node).error(f"got {size} bytes, allowed 0 to {MAX_RESOURCE_BYTES}")
    return BufferResource(name, size, data_type, values)


def _read_dispatchable(
    name: str,
    node: Node,
    resources: dict[str, Resource],
    folders: Folders,
    overrides: Overrides,
) -> Dispatchable:
    kind = node.required("type", "Type")
    if kind.string().lower() == "onnx":
        return onnx_dispatchable.read_dispatchable(name, node, folders, overrides)
    if kind.string().lower() in shader_dispatchable.TYPES:
        return shader_dispatchable.read_dispatchable(name, node, folders)
    operator = kind.string().removeprefix("DML_OPERATOR_")
    if kind.string().lower() in _OTHER_KINDS:
        raise kind.error(_OTHER_KINDS[kind.string().lower()])
    if operator not in OPERATORS:
        raise kind.error(
            f"operator {quote(kind.string())} is not available; available: "
            + ", ".join(sorted(OPERATORS))
        )
    fields = node.optional("desc", "Desc") or node
    compile_type, flags = node.optional("dmlCompileType"), node.optional("executionFlags")
    bindings = node.optional("bindings")
    desc = read_descriptor(fields, OPERATORS[operator])
    return DmlDispatchable(
        name=name,
        desc=desc,
        compile_graph=compile_type is not None
        and compile_type.choice("DmlCompileOp", "DmlCompileGraph") == "DmlCompileGraph",
        execution_flags=read_flags(flags, ExecutionFlags, "DML_EXECUTION_FLAG_")
        if flags
        else ExecutionFlags.NONE,
        init_bindings=_read_bindings(bindings, resources, desc) if bindings else {},
        node=fields,
    )


def _read_bindings(node: Node, resources: dict[str, Resource], desc: OperatorDesc) -> Bindings:
    tensors = {
        field.dml_name: getattr(desc, field.name)
        for field in desc.FIELDS
        if field.role != "attribute"
    }
    bindings = _named_sources(node, resources, desc.operator, list(tensors), _read_source)
    for point, sources in bindings.items():
        bound = tensors.get(point)
        for source, tensor in zip(
            sources, bound if isinstance(bound, tuple) else (bound,), strict=False
        ):
            if tensor is not None:
                _warn_of_other_type(source, point, tensor.data_type)
    return bindings


def _warn_of_other_type(source: BindingSource, point: str, data_type: TensorDataType) -> None:
    """Warn of a resource whose initial values are of another type than the tensor it stands for."""
    resource = source.resource
    if (
        isinstance(resource, BufferResource)
        and resource.data_type not in (TensorDataType.UNKNOWN, data_type)
        and data_type.size_bits >= 8  # smaller ones cannot be initial values
    ):
        source.node.warn(
            f"{quote(resource.name)} has initial values of type {resource.data_type.name}, "
            f"the tensor {quote(point)} is of {data_type.name}"
        )


def _named_sources(
    node: Node,
    resources: dict[str, Resource],
    owner: str,
    points: list[str],
    read: Callable[[Node, dict[str, Resource]], BindingSource],
) -> Bindings:
    bindings = {}
    for point, sources in node.members():
        bindings[point] = tuple(read(item, resources) for item in sources.one_or_more())
        if point not in points:
            sources.warn(f"{owner} has no such bind point (it has {', '.join(points)})")
    return bindings


def _read_onnx_source(node: Node, resources: dict[str, Resource]) -> BindingSource:
    if not isinstance(node.value, dict):
        return BindingSource(_lookup(node, resources, "resource"), 0, node)
    node.known(*_SOURCE_FIELDS)
    resource = _lookup(node.required("name"), resources, "resource")
    return BindingSource(resource, 0, node, onnx_dispatchable.read_shape(node))


def _read_shader_source(node: Node, resources: dict[str, Resource]) -> BindingSource:
    source = _read_source(node, resources)
    if not isinstance(node.value, dict):
        return source
    count = shader_dispatchable.read_count(node)
    if count is None:
        return source
    assert isinstance(source.resource, BufferResource)
    size = _element_size(node, source.resource, "elementCount")
    return replace(source, count=count * size)


def _read_source(node: Node, resources: dict[str, Resource]) -> BindingSource:
    name = node.required("name") if isinstance(node.value, dict) else node
    resource = _lookup(name, resources, "resource")
    if isinstance(resource, DeferredResource):
        raise name.error(f"{quote(resource.name)} is deferred, only ONNX models can be bound to it")
    if name is node:
        return BindingSource(resource, 0, node)
    node.known(*_SOURCE_FIELDS)
    for member in ("elementCount", "counterOffsetBytes"):  # shaders use them, operators do not
        ignored = node.optional(member)
        if ignored is not None:
            ignored.uint(64)
    counter = node.optional("counter")
    if counter is not None:
        _lookup(counter, resources, "resource")
    offset_node = node.optional("elementOffset")
    offset = offset_node.uint(64) if offset_node else 0
    element_size = _element_size(node, resource, "elementOffset" if offset else "")
    return BindingSource(resource, offset * element_size, node)


def _element_size(node: Node, resource: BufferResource, needed_by: str) -> int:
    """Bytes of what a binding counts."""
    size_node = node.optional("elementSizeInBytes")
    if size_node is not None:
        return size_node.uint(64)
    if resource.data_type is not TensorDataType.UNKNOWN:
        return resource.data_type.element_size
    if needed_by:
        raise node.error(
            f"'{needed_by}' needs 'elementSizeInBytes': {quote(resource.name)} has no data type"
        )
    return 0


def _read_command(
    node: Node,
    resources: dict[str, Resource],
    dispatchables: dict[str, Dispatchable],
    folders: Folders,
) -> Command:
    kind = node.required("type")
    text = str(rapidjson.dumps(node.object(), ensure_ascii=False))
    match kind.string().lower():
        case "dispatch":
            dispatchable = _lookup(node.required("dispatchable"), dispatchables, "dispatchable")
            bindings = _dispatch_bindings(node.required("bindings"), resources, dispatchable)
            return DispatchCommand(text, node, dispatchable, bindings, _read_groups(node))
        case "print":
            resource = _lookup(node.required("resource"), resources, "resource")
            verbose = node.optional("verbose")
            return PrintCommand(text, node, resource, verbose is not None and verbose.boolean())
        case "writefile":
            resource = _lookup(node.required("resource"), resources, "resource")
            return _read_write_file(text, node, resource, folders)
    raise kind.wrong("dispatch, print or writeFile")


def _dispatch_bindings(
    node: Node, resources: dict[str, Resource], dispatchable: Dispatchable
) -> Bindings:
    if isinstance(dispatchable, DmlDispatchable):
        return _read_bindings(node, resources, dispatchable.desc)
    if isinstance(dispatchable, ShaderDispatchable):
        return {
            point: tuple(_read_shader_source(item, resources) for item in sources.one_or_more())
            for point, sources in node.members()
        }
    points = onnx_dispatchable.bind_points(dispatchable)
    bindings = _named_sources(node, resources, dispatchable.name, list(points), _read_onnx_source)
    for point, sources in bindings.items():
        data_type = points.get(point)
        if sources and data_type is not None:
            _warn_of_other_type(sources[0], point, data_type)
    return bindings


def _read_groups(node: Node) -> tuple[int, int, int]:
    """Read the group count of shaders; operators choose their own."""
    count = node.optional("threadGroupCount")
    counts = [1, 1, 1] if count is None else [item.uint() for item in count.items()]
    if count is not None and len(counts) != 3:
        raise count.error(f"got {len(counts)} integers, allowed 3")
    x, y, z = counts
    return x, y, z


def _read_write_file(
    text: str, node: Node, resource: Resource, folders: Folders
) -> WriteFileCommand:
    target = node.required("targetPath")
    if not target.string():
        raise target.wrong("a file name")
    path = folders.target(target)
    suffix = path.suffix.lower()
    if suffix in (".jpg", ".jpeg", ".png"):
        raise target.error("images are not available; write a .npy file")
    known = resource if isinstance(resource, BufferResource) and suffix == ".npy" else None
    if known is not None and known.data_type is TensorDataType.UNKNOWN:
        raise target.error(f"{quote(resource.name)} has no data type, which a .npy file needs")
    node_dimensions = node.optional("dimensions")
    if node_dimensions is None:
        return WriteFileCommand(text, node, resource, path, None)
    if len(node_dimensions.array()) > MAX_NPY_DIMENSIONS:
        raise node_dimensions.error(
            f"got {len(node_dimensions.array())} dimensions, allowed 0 to {MAX_NPY_DIMENSIONS}"
        )
    dimensions = tuple(item.uint() for item in node_dimensions.items())
    if known is not None:
        needed = math.prod(dimensions) * dtype_of(known.data_type).itemsize
        if needed > known.size:
            raise node_dimensions.error(
                f"need {needed} bytes, {quote(known.name)} has {known.size}"
            )
    return WriteFileCommand(text, node, resource, path, dimensions)


def _lookup(node: Node, table: dict[str, _T], kind: str) -> _T:
    if node.string() not in table:
        raise node.error(f"there is no {kind} {quote(node.string())}")
    return table[node.string()]
