"""Read a model from JSON: check every name, type and size that needs no device."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from vkops.arguments.values import model_option
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
from vkops.errors import ModelError, show
from vkops.plan.rounding import round_up

if TYPE_CHECKING:
    from vkops.onnx.free_dimensions import Overrides

# Two of the largest tensors DirectML can address (2**32 elements of 8 bytes, T-13).
MAX_RESOURCE_BYTES = 2 << 35

MAX_NPY_DIMENSIONS = 32  # NumPy's own limit before 2.0

# Members of a binding that some kind of dispatchable reads, or that DxDispatch does.
_SOURCE_FIELDS = (
    "elementCount", "elementSizeInBytes", "elementOffset", "format", "counter",
    "counterOffsetBytes", "shape",
)  # fmt: skip

_T = TypeVar("_T")
_DataTypes = Mapping[str, Sequence[TensorDataType | None]]  # of the tensors of each bind point
_OTHER_NAMES = {"SCATTER_ELEMENTS": "SCATTER"}
"""Names of DML_OPERATOR_TYPE that have the value of another."""

_NEAR_MOVEMENT = {
    "CAST": "it converts values, and vkops moves data",
    "NONZERO_COORDINATES": "how much it writes depends on the data",
    "FOLD": "it adds elements, and vkops moves data",
}
"""Why operators that are near to those that move data are not available."""


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
        overrides: ``vkops.onnx.free_dimensions.Overrides``: sizes of free dimensions and shapes of
            tensors of the ONNX models.
        allow_paths: whether files may lie outside of these folders; files to read are then also
            searched for in the current folder.
        strict: whether a warning is an error.

    Raises:
        ModelError: in one line, what is wrong and where; also for an argument of the wrong kind.

    Example:
        >>> model = load_model("examples/split.json")
        >>> list(model.dispatchables)
        ['split']
    """
    path = _path("path", path)
    folders = Folders(
        _path("input_path", input_path) if input_path is not None else path.parent,
        _path("output_path", output_path) if output_path is not None else Path.cwd(),
        model_option("allow_paths", allow_paths),
    )
    model_option("strict", strict)
    if overrides is not None:
        from vkops.onnx.free_dimensions import Overrides

        if not isinstance(overrides, Overrides):
            raise ModelError(f"overrides: got {show(overrides)}, must be Overrides or None")
    root = parse(read_text(path), str(path))
    model = _ModelReader(folders, overrides).read(root)
    if strict and model.warnings:
        raise ModelError(model.warnings[0])
    return model


def _path(name: str, value: object) -> Path:
    try:
        return Path(value)  # type: ignore[arg-type]
    except TypeError:
        raise ModelError(f"{name}: got {show(value)}, must be a path") from None


class _ModelReader:
    """Reads the sections of a model in order; each may name what the sections before it hold."""

    def __init__(self, folders: Folders, overrides: Overrides | None) -> None:
        self.folders = folders
        self.overrides = overrides
        self.resources: dict[str, Resource] = {}
        self.dispatchables: dict[str, Dispatchable] = {}

    def read(self, root: Node) -> Model:
        resources, dispatchables, commands = (
            root.required(name) for name in ("resources", "dispatchables", "commands")
        )
        for name, node in resources.members():
            self.resources[name] = self._resource(name, node)
        total = sum(r.size for r in self.resources.values() if isinstance(r, BufferResource))
        if total > MAX_RESOURCE_BYTES:
            raise resources.error(f"got {total} bytes in all, must be 0 to {MAX_RESOURCE_BYTES}")
        for name, node in dispatchables.members():
            self.dispatchables[name] = self._dispatchable(name, node)
        read_commands = tuple(map(self._command, commands.items()))
        root.warn_of_unknown_fields()
        return Model(self.resources, self.dispatchables, read_commands, tuple(root.source.warnings))

    def _resource(self, name: str, node: Node) -> Resource:
        # Buffers are the only type, and nothing is resampled.
        node.known("type", "resampleSize", "resampleMode")
        node.known("initialValuesDataType", "sizeInBytes", "initialValuesOffsetInBytes")
        values_node = node.optional("initialValues")
        if values_node is not None and values_node.value == "deferred":
            return DeferredResource(name)
        data_type, values = read_values(node, self.folders)
        size_node = node.optional("sizeInBytes")
        size = size_node.uint(64) if size_node else round_up(values.nbytes, 4)
        offset = node.optional_uint("initialValuesOffsetInBytes", 64)
        if values.nbytes + offset > size:
            raise (size_node or node).error(
                f"got a size of {size} bytes for {values.nbytes} bytes of initial values"
                + (f" at offset {offset}" if offset else "")
            )
        if size > MAX_RESOURCE_BYTES:
            raise (size_node or node).error(f"got {size} bytes, must be 0 to {MAX_RESOURCE_BYTES}")
        return BufferResource(name, size, data_type, values)

    def _dispatchable(self, name: str, node: Node) -> Dispatchable:
        type_node = node.required("type", "Type")
        kind = type_node.string().lower()
        if kind == "onnx":
            return onnx_dispatchable.read_dispatchable(name, node, self.folders, self.overrides)
        if kind in shader_dispatchable.SUFFIXES:
            return shader_dispatchable.read_dispatchable(name, node, self.folders)
        available = ", ".join(sorted(OPERATORS))
        if kind == "dmlserializedgraph":
            raise type_node.error(
                f"DML graphs are not available, only DirectML operators: {available}"
            )
        operator_name = type_node.string().removeprefix("DML_OPERATOR_")
        operator = OPERATORS.get(_OTHER_NAMES.get(operator_name, operator_name))
        if operator_name in _NEAR_MOVEMENT:
            reason = _NEAR_MOVEMENT[operator_name]
            raise type_node.error(f"operator {operator_name} is not available: {reason}")
        if operator is None:
            name = quote(type_node.string())
            raise type_node.error(f"operator {name} is not available; available: {available}")
        fields = node.optional("desc", "Desc") or node
        compile_type = node.optional("dmlCompileType")
        flags, bindings = node.optional("executionFlags"), node.optional("bindings")
        desc = read_descriptor(fields, operator)
        return DmlDispatchable(
            name=name,
            desc=desc,
            compile_graph=compile_type is not None
            and compile_type.choice("DmlCompileOp", "DmlCompileGraph") == "DmlCompileGraph",
            execution_flags=read_flags(flags, ExecutionFlags, "DML_EXECUTION_FLAG_"),
            init_bindings=self._operator_bindings(bindings, desc) if bindings else {},
            node=fields,
        )

    # -- commands ----------------------------------------------------------------------------------

    def _command(self, node: Node) -> Command:
        kind = node.required("type")
        match kind.string().lower():
            case "dispatch":
                name = node.required("dispatchable")
                dispatchable = _lookup(name, self.dispatchables, "dispatchable")
                bindings = self._dispatch_bindings(node.required("bindings"), dispatchable)
                return DispatchCommand(node, dispatchable, bindings, self._groups(node))
            case "print":
                resource = self._named_resource(node.required("resource"))
                verbose = node.optional("verbose")
                return PrintCommand(node, resource, verbose is not None and verbose.boolean())
            case "writefile":
                return self._write_file(node, self._named_resource(node.required("resource")))
        raise kind.wrong("dispatch, print or writeFile")

    def _write_file(self, node: Node, resource: Resource) -> WriteFileCommand:
        target = node.required("targetPath")
        if not target.string():
            raise target.wrong("a file name")
        path = self.folders.inside(target, target.string(), self.folders.outputs)
        suffix = path.suffix.lower()
        if suffix in (".jpg", ".jpeg", ".png"):
            raise target.error("images are not available; write a .npy file")
        known = resource if isinstance(resource, BufferResource) and suffix == ".npy" else None
        if known is not None and known.data_type is TensorDataType.UNKNOWN:
            raise target.error(f"{quote(resource.name)} has no data type, which a .npy file needs")
        given = node.optional("dimensions")
        if given is None:
            return WriteFileCommand(node, resource, path, None)
        count = len(given.array())
        if count > MAX_NPY_DIMENSIONS:
            raise given.error(f"got {count} dimensions, must be 0 to {MAX_NPY_DIMENSIONS}")
        dimensions = given.uints()
        if known is not None:
            needed = math.prod(dimensions) * dtype_of(known.data_type).itemsize
            if needed > known.size:
                raise given.error(f"need {needed} bytes, {quote(known.name)} has {known.size}")
        return WriteFileCommand(node, resource, path, dimensions)

    # -- bindings ----------------------------------------------------------------------------------

    def _dispatch_bindings(self, node: Node, dispatchable: Dispatchable) -> Bindings:
        if isinstance(dispatchable, DmlDispatchable):
            return self._operator_bindings(node, dispatchable.desc)
        if isinstance(dispatchable, ShaderDispatchable):
            return {
                point: tuple(map(self._shader_source, sources.one_or_more()))
                for point, sources in node.members()
            }
        points = onnx_dispatchable.bind_points(dispatchable)
        return self._bindings(node, dispatchable.name, points, self._onnx_source)

    def _operator_bindings(self, node: Node, desc: OperatorDesc) -> Bindings:
        points = {}
        for field in desc.FIELDS:
            if field.role != "attribute":
                tensors = getattr(desc, field.name)
                tensors = tensors if isinstance(tensors, tuple) else (tensors,)
                points[field.dml_name] = [t and t.data_type for t in tensors]
        return self._bindings(node, desc.operator, points, self._operator_source)

    def _bindings(
        self, node: Node, owner: str, points: _DataTypes, read: Callable[[Node], BindingSource]
    ) -> Bindings:
        """Read bindings; warn of unknown bind points, and of resources of another data type."""
        bindings = {}
        for point, sources in node.members():
            bindings[point] = tuple(map(read, sources.one_or_more()))
            if point not in points:
                sources.warn(f"{owner} has no such bind point (it has {', '.join(points)})")
            for source, data_type in zip(bindings[point], points.get(point, ()), strict=False):
                resource = source.resource
                if (
                    data_type is not None
                    and data_type.size_bits >= 8  # smaller types cannot be initial values
                    and isinstance(resource, BufferResource)
                    and resource.data_type not in (TensorDataType.UNKNOWN, data_type)
                ):
                    source.node.warn(
                        f"{quote(resource.name)} has initial values of type "
                        f"{resource.data_type.name}, the tensor {quote(point)} is of "
                        f"{data_type.name}"
                    )
        return bindings

    def _onnx_source(self, node: Node) -> BindingSource:
        if not isinstance(node.value, dict):
            return BindingSource(self._named_resource(node), 0, node)
        node.known(*_SOURCE_FIELDS)
        resource = self._named_resource(node.required("name"))
        for member in ("elementOffset", "counter", "format"):
            found = node.optional(member)
            if found is not None and found.value != 0:
                raise found.error(f"'{member}' is not for tensors of ONNX models")
        shape = node.optional("shape")
        return BindingSource(resource, 0, node, None if shape is None else shape.uints())

    def _shader_source(self, node: Node) -> BindingSource:
        source = self._operator_source(node)
        if not isinstance(node.value, dict):
            return source
        for member in ("counter", "format"):
            found = node.optional(member)
            if found is not None and found.value not in ("UNKNOWN", "DXGI_FORMAT_UNKNOWN"):
                raise found.error(f"'{member}' is not for blocks of shaders")
        count = node.optional("elementCount")
        if count is None:
            return source
        size = _element_size(node, source.buffer, "elementCount")
        return replace(source, count=count.uint(64) * size)

    def _operator_source(self, node: Node) -> BindingSource:
        name = node.required("name") if isinstance(node.value, dict) else node
        resource = self._named_resource(name)
        if isinstance(resource, DeferredResource):
            raise name.error(
                f"{quote(resource.name)} is deferred, only ONNX models can be bound to it"
            )
        if name is node:
            return BindingSource(resource, 0, node)
        node.known(*_SOURCE_FIELDS)
        for ignored in ("elementCount", "counterOffsetBytes"):  # operators do not use them
            node.optional_uint(ignored, 64)
        counter = node.optional("counter")
        if counter is not None:
            self._named_resource(counter)
        offset = node.optional_uint("elementOffset", 64)
        element_size = _element_size(node, resource, "elementOffset" if offset else "")
        return BindingSource(resource, offset * element_size, node)

    def _groups(self, node: Node) -> tuple[int, int, int] | BindingSource:
        """Read the numbers of workgroups of a shader, which operators ignore."""
        groups = node.optional("threadGroupCount")
        if groups is None:
            return 1, 1, 1
        if isinstance(groups.value, (str, dict)):
            return self._operator_source(groups)
        counts = groups.uints()
        if len(counts) != 3:
            raise groups.error(f"got {len(counts)} integers, must be 3")
        x, y, z = counts
        return x, y, z

    def _named_resource(self, node: Node) -> Resource:
        return _lookup(node, self.resources, "resource")


def _element_size(node: Node, resource: BufferResource, needed_by: str) -> int:
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


def _lookup(node: Node, table: dict[str, _T], kind: str) -> _T:
    if node.string() not in table:
        raise node.error(f"there is no {kind} {quote(node.string())}")
    return table[node.string()]
