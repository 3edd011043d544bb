"""Read a model from JSON, and check it without a device.

Errors are raised in the order and with the texts of DxDispatch, but before anything has been
created, dispatched or written.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from vkops.arguments.values import model_option
from vkops.dml import FeatureLevel, TensorDataType
from vkops.errors import ModelError, show
from vkops.models.folders import Folders
from vkops.models.initial_values import PIXELS, dtype_of
from vkops.models.json_reader import Node, parse, quote, read_text
from vkops.models.model import (
    Command,
    Dispatchable,
    DispatchCommand,
    Groups,
    Model,
    Prepared,
    PrintCommand,
    ReadContext,
    WriteFileCommand,
)
from vkops.models.onnx import OnnxDispatchable
from vkops.models.operator import DmlDispatchable
from vkops.models.resources import Resource, Resources, errors_after, lookup
from vkops.models.shader import ShaderDispatchable
from vkops.system.pictures import SUFFIXES

if TYPE_CHECKING:
    from vkops.onnx.free_dimensions import Overrides

MAX_NPY_DIMENSIONS = 32  # NumPy's own limit before 2.0

# The kinds of dispatchables; a type that belongs to none of them is an operator.
_CLASSES: tuple[type[Dispatchable], ...] = (OnnxDispatchable, ShaderDispatchable)
_KINDS = {type: kind for kind in _CLASSES for type in kind.types}


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
    model = _read(parse(read_text(path), str(path)), folders, overrides)
    if strict and model.warnings:
        raise ModelError(model.warnings[0])
    return model


def _path(name: str, value: object) -> Path:
    try:
        return Path(value)  # type: ignore[arg-type]
    except TypeError:
        raise ModelError(f"{name}: got {show(value)}, must be a path") from None


def _read(root: Node, folders: Folders, overrides: Overrides | None) -> Model:
    """Read the sections of a model in order; each can refer to names of the sections before it."""
    sections = (root.required(name) for name in ("resources", "dispatchables", "commands"))
    resources_node, dispatchables_node, commands_node = sections
    resources = Resources.read(resources_node, folders)
    context = ReadContext(folders, resources, overrides)
    dispatchables: dict[str, Dispatchable] = {}
    for name, node in dispatchables_node.members():
        kind = _KINDS.get(node.required("type", "Type").string().lower(), DmlDispatchable)
        dispatchables[name] = kind.read(name, node, context)
    commands = tuple(map(partial(_command, context, dispatchables), commands_node.items()))
    root.warn_of_unknown_fields()
    return Model(resources, dispatchables, commands, tuple(root.document.warnings))


def _command(
    context: ReadContext, dispatchables: Mapping[str, Dispatchable], node: Node
) -> Command:
    kind, resources = node.required("type"), context.resources
    match kind.string().lower():
        case "dispatch":
            dispatchable = lookup(node.required("dispatchable"), dispatchables, "dispatchable")
            bindings = dispatchable.read_bindings(node.required("bindings"), resources)
            return DispatchCommand(node, dispatchable, bindings, _groups(node, resources))
        case "print":
            resource = resources.named(node.required("resource"))
            verbose = node.optional("verbose")
            return PrintCommand(node, resource, verbose is not None and verbose.boolean())
        case "writefile":
            return _write_file(node, resources.named(node.required("resource")), context.folders)
    raise kind.wrong("dispatch, print or writeFile")


def _write_file(node: Node, resource: Resource, folders: Folders) -> WriteFileCommand:
    target = node.required("targetPath")
    if not target.string():
        raise target.wrong("a file name")
    path = folders.inside(target, target.string(), folders.outputs)
    suffix = path.suffix.lower()
    is_typed = suffix == ".npy" or suffix in SUFFIXES
    known = resource if is_typed and not resource.is_deferred else None
    if known is not None and known.data_type is TensorDataType.UNKNOWN:
        raise target.error(f"{quote(resource.name)} has no data type, which a {suffix} file needs")
    if known is not None and suffix in SUFFIXES and known.data_type not in PIXELS:
        names = ", ".join(each.name for each in PIXELS)
        raise target.error(
            f"{quote(known.name)} has {known.data_type.name}, must be one of {names}"
        )
    shape = node.optional("dimensions")
    if shape is None:
        return WriteFileCommand(node, resource, path, None)
    count = len(shape.array())
    if count > MAX_NPY_DIMENSIONS:
        raise shape.error(f"got {count} dimensions, must be 0 to {MAX_NPY_DIMENSIONS}")
    dimensions = shape.uints()
    if known is not None:
        needed = math.prod(dimensions) * dtype_of(known.data_type).itemsize
        if needed > known.size:
            raise shape.error(f"need {needed} bytes, {quote(known.name)} has {known.size}")
    return WriteFileCommand(node, resource, path, dimensions)


def _groups(node: Node, resources: Resources) -> Groups:
    """Read the numbers of workgroups of a shader, which operators ignore."""
    groups = node.optional("threadGroupCount")
    if groups is None:
        return 1, 1, 1
    if isinstance(groups.value, (str, dict)):
        return resources.source(groups)
    counts = groups.uints()
    if len(counts) != 3:
        raise groups.error(f"got {len(counts)} integers, must be 3")
    x, y, z = counts
    return x, y, z


def prepare(model: Model, feature_level: FeatureLevel) -> Prepared:
    """Check everything that can be checked without a device.

    Raises:
        ModelError: in DxDispatch's words, what would fail and where.
    """
    if not isinstance(model, Model):
        raise ModelError(f"model: got {show(model)}, must be what load_model returns")
    for dispatchable in model.dispatchables.values():
        dispatchable.check_level(feature_level)
    for dispatchable in model.dispatchables.values():
        dispatchable.check_initialization()
    return Prepared(model, tuple(map(_prepare_command, model.commands)))


def _prepare_command(command: Command) -> Command:
    if isinstance(command, DispatchCommand):
        with errors_after("ERROR while binding resources"):
            return command.dispatchable.check_bindings(command)
    if isinstance(command, PrintCommand):
        resource = command.resource
        if not resource.is_deferred and resource.data_type is TensorDataType.UNKNOWN:
            wrong = command.node.error(f"{quote(resource.name)} has no data type")
            raise ModelError(f"Failed to print resource: {wrong}")
    return command
