"""Run or check an ONNX file: inputs from files or random, outputs printed or written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from rich.markup import escape

import vkops
from vkops import console
from vkops.errors import ModelError, one_line
from vkops.models.model import Model, Prepared, RunOptions
from vkops.models.onnx import OnnxDispatchable, default_input, forms_of
from vkops.models.resources import Resources
from vkops.runner import array_files
from vkops.runner.model_execution import DeviceRun

if TYPE_CHECKING:
    from vkops.onnx.free_dimensions import Overrides

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class FileOptions:
    """Sources of inputs and files of outputs; the names are those of the command line."""

    overrides: Overrides | None = None
    input: Sequence[str] = ()
    output: Sequence[str] = ()
    random: bool = False
    seed: int = 0


def run_file(
    path: Path,
    open_device: Callable[[], vkops.Device],
    options: RunOptions,
    files: FileOptions,
    *,
    allow_paths: bool = False,
) -> None:
    """Run an ONNX model in a loop, and print or write its outputs.

    The device is opened when the files of the model and of its inputs have been read.
    """
    prepared = read_file(path, files, allow_paths=allow_paths)
    (bound,) = prepared.dispatches
    names = [tensor.name for tensor in bound.outputs]
    targets = array_files.targets(names, files.output, "the model")
    with open_device() as device:
        run = DeviceRun(prepared, device, options)
        run.run_dispatch(bound)
        outputs = run.results.get(path.stem, ())
        arrays: dict[str, Array] = {}
        for name, value in zip(names, outputs, strict=False):  # none without an iteration
            for key, array in _output_arrays(name, value).items():
                if key in arrays:
                    raise ModelError(f"output {name!r}: another output has the name {key!r}")
                arrays[key] = array
        array_files.write_or_print(targets, arrays, flat=options.flat)


def read_file(path: Path, files: FileOptions, *, allow_paths: bool = False) -> Prepared:
    """Return a model of one dispatch, which runs an ONNX model with the inputs of files."""
    read = OnnxDispatchable.of_file(path, files.overrides, allow_paths=allow_paths)
    onnx = replace(read, values=inputs_of(read, files))
    return Prepared(Model(Resources(), {onnx.name: onnx}), (onnx.alone(),))


def check_file(path: Path, overrides: Overrides | None, *, allow_paths: bool = False) -> None:
    """Check an ONNX model without a device; print its operators and a summary of its plan."""
    _print_unsupported(path, allow_paths)
    read = OnnxDispatchable.of_file(path, overrides, allow_paths=allow_paths)
    model = read.model
    operators = Counter((node.operator, node.version) for node in model.nodes)
    table = console.table(f"Opset {model.opset}", "Operator", "Version", "Nodes")
    for (operator, version), count in sorted(operators.items()):
        table.add_row(operator, str(version), str(count))
    console.show(table)
    console.info(one_line(_plan_summary(read)))


def _print_unsupported(path: Path, allow_paths: bool) -> None:
    """Print every node of a model that vkops cannot run, if there are any."""
    try:
        from vkops.onnx.model_file import read
        from vkops.onnx.onnx_model import unsupported_nodes

        found = unsupported_nodes(read(path, allow_paths=allow_paths))
    except (ImportError, ModelError):
        return  # reading it again reports why
    table = console.table("Nodes that vkops cannot run", "Node", "Why")
    for node in found:
        table.add_row(escape(one_line(node.label)), escape(one_line(node.reason)))
    if found:
        console.show(table)


def _plan_summary(read: OnnxDispatchable) -> str:
    """Return the size of the plan, if the shapes do not depend on the elements of inputs."""
    from vkops.onnx.lowering import NeedsValueError
    from vkops.onnx.specialization import Specialization
    from vkops.onnx.value_info import TensorType

    forms = forms_of(read.required_inputs)
    try:
        plans = Specialization(read.model.lower(forms, {})).plans
    except NeedsValueError as needed:
        return f"Shapes depend on what input '{needed.name}' holds"
    regions = sum(len(out.regions) for plan in plans for out in plan.outputs)
    nbytes = sum(out.nbytes for plan in plans for out in plan.outputs)
    shapes = ", ".join(
        f"{name} {list(form.shape)}" for name, form in forms.items() if isinstance(form, TensorType)
    )
    return (
        f"With {shapes or 'no inputs'}: {len(plans)} submission{'s' * (len(plans) != 1)}, "
        f"{regions} region{'s' * (regions != 1)}, {nbytes} bytes written"
    )


def inputs_of(onnx: OnnxDispatchable, files: FileOptions) -> dict[str, Any]:
    """Return the values of all inputs that a file gives or that have no default."""
    from vkops.onnx.onnx_session import as_array

    model = onnx.model
    names = [entry.name for entry in model.inputs]
    required = [entry.name for entry in model.required_inputs]
    arrays: dict[str, Array] = {}
    for text in files.input:
        for name, array in array_files.read(text, required, "the model"):
            if name not in names:
                listed = ", ".join(map(repr, names)) or "none"
                raise ModelError(f"{text}: the model has no input {name!r}; it has {listed}")
            arrays[name] = array
    generator = np.random.default_rng(files.seed)
    inputs: dict[str, Any] = {}
    for entry in model.inputs:
        if entry.name in arrays:
            array, dtype = arrays[entry.name], entry.dtype
            # .npy files know only the size of some types.
            is_bytes = dtype is not None and np.dtype(dtype.str) == array.dtype
            inputs[entry.name] = as_array(entry.name, array.view(dtype) if is_bytes else array)
        elif entry.name not in model.constants:
            value = default_input(entry, onnx.overrides.shape(entry))
            if files.random and isinstance(value, np.ndarray):
                value = _random(generator, value)
            inputs[entry.name] = value
    return inputs


def _random(generator: np.random.Generator, like: Array) -> Any:
    if like.dtype.hasobject:
        words = [bytes(generator.integers(97, 123, 5, np.uint8)).decode() for _ in range(like.size)]
        return np.array(words, object).reshape(like.shape)
    if like.dtype.kind == "b":
        return generator.integers(0, 2, like.shape).astype(bool)
    if like.dtype.kind in "iu":
        info = np.iinfo(like.dtype)
        return generator.integers(info.min, info.max, like.shape, like.dtype, endpoint=True)
    values = generator.standard_normal(like.shape)
    if like.dtype.kind == "c":
        return (values + 1j * generator.standard_normal(like.shape)).astype(like.dtype)
    return values.astype(like.dtype)


def _output_arrays(name: str, value: Any) -> dict[str, Array]:
    """Return the arrays of an output: one, or one for each tensor of a sequence."""
    if isinstance(value, list):
        arrays: dict[str, Array] = {}
        for i, item in enumerate(value):
            arrays.update(_output_arrays(f"{name}[{i}]", item))
        return arrays
    return {} if value is None else {name: np.asarray(value)}
