"""Run or check a model file, .json or .onnx, with DxDispatch's order of steps and messages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

import vkops
from vkops import console
from vkops.dml import FeatureLevel
from vkops.errors import ModelError, one_line
from vkops.models.model import Prepared
from vkops.models.model_reader import load_model, prepare
from vkops.models.onnx import OnnxFile, default_input
from vkops.models.resources import errors_after
from vkops.models.target import DeviceTarget
from vkops.plan.indexing import OutOfRange
from vkops.runner import array_files
from vkops.runner.dispatch_timing import RunOptions, run_timed
from vkops.runner.model_execution import print_onnx_bindings, run

if TYPE_CHECKING:
    from vkops.gpu.run.streaming import Progress
    from vkops.onnx.free_dimensions import Overrides

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class ModelFile:
    """A model file, .json or .onnx, and how it is read; the names are those of the command line.

    ``allow_paths`` and ``strict`` are those of ``load_model``.
    """

    path: str
    feature_level: FeatureLevel = FeatureLevel.LEVEL_5_0
    input_path: Path | None = None
    output_path: Path | None = None
    overrides: Overrides | None = None
    allow_paths: bool = False
    strict: bool = False

    @property
    def is_onnx(self) -> bool:
        """Whether it is an ONNX model, by its name; ModelError if it is neither."""
        suffix = Path(self.path).suffix
        if suffix not in (".json", ".onnx"):
            raise ModelError("Expected a .json or .onnx file")
        return suffix == ".onnx"

    def read_onnx(self, files: FileOptions | None = None) -> OnnxFile:
        """Read an ONNX model, and its inputs."""
        onnx = OnnxFile.read(Path(self.path), self.overrides, allow_paths=self.allow_paths)
        return onnx if files is None else onnx._replace(inputs=inputs_of(onnx, files))

    def read_json(self, level: FeatureLevel) -> Prepared:
        """Read a .json model, check it at a feature level, and print its warnings."""
        options: Any = {"allow_paths": self.allow_paths, "strict": self.strict}
        with errors_after("Failed to parse the model"):
            folders = self.input_path, self.output_path
            model = load_model(self.path, *folders, self.overrides, **options)
        with errors_after("Failed to execute the model"):
            prepared = prepare(model, level)
        for warning in model.warnings:
            console.complain(f"Warning: {warning}")
        return prepared


@dataclass(frozen=True)
class FileOptions:
    """Sources of inputs and files of outputs; the names are those of the command line."""

    input: Sequence[str] = ()
    output: Sequence[str] = ()
    random: bool = False
    seed: int = 0


def run_model(
    file: ModelFile,
    options: RunOptions,
    files: FileOptions,
    *,
    adapter: str = "",
    expect: str | None = None,
    debug: bool = False,
    indices: OutOfRange = "vkops",
) -> None:
    """Run a model on the first adapter whose name contains ``adapter``.

    ``expect``, ``debug`` and ``indices`` are passed on to ``Device``.

    Raises:
        VkopsError: in DxDispatch's words, what failed; faults of the model itself before a device
            is opened, and before anything has been written.
    """
    if not file.is_onnx and (files.input or files.output or files.random):
        raise ModelError("--input, --output and --random are for .onnx files; a model has its own")
    if file.is_onnx:
        onnx = file.read_onnx(files)
        names = [entry.name for entry in onnx.model.outputs]
        targets = array_files.targets(names, files.output, "the model")
    else:
        prepared = file.read_json(file.feature_level)
    options_of_device: Any = {"debug": debug, "expect": expect, "indices": indices}
    with _open_device(adapter, file.feature_level, **options_of_device) as device:
        if file.is_onnx:
            _run_onnx(onnx, device, options, targets)
            return
        with errors_after("Failed to execute the model"):
            run(prepared, device, options)


def check_model(file: ModelFile) -> None:
    """Check a model file without a device; print the feature level that each operator needs.

    For an ONNX model, print its operators and a summary of its plan.

    Raises:
        ModelError: what ``run_model`` would refuse; without the table if no level accepts it.
    """
    if file.is_onnx:
        _check_onnx(file)
        return
    model, level = file.read_json(FeatureLevel.LATEST).model, file.feature_level
    rows = []
    for each in model.dispatchables.values():
        lowest = each.lowest_level
        verdict = "accepted" if lowest is None or lowest <= level else "refused"
        rows.append((each.name, each.kind, "none" if lowest is None else str(lowest), verdict))
    headings = "Dispatchable", "Operator", "Lowest level", f"At {level}"
    console.show(console.table(None, headings, rows))
    with errors_after("Failed to execute the model"):
        prepare(model, level)


def _open_device(adapter: str, feature_level: FeatureLevel, **options: Any) -> vkops.Device:
    with errors_after("Failed to create adapter"):
        infos = vkops.devices()
    matches = [info.index for info in infos if adapter.lower() in info.name.lower()]
    if not matches:
        raise ModelError(
            f"Failed to create adapter: No adapter found that contains the substring '{adapter}'."
        )
    with errors_after("Failed to create a device"):
        # Without a substring the device class has its own preference among the adapters.
        choice = matches[0] if adapter else None
        device = vkops.Device(choice, feature_level, **options)
    console.info(f"Running on '{device.name}'")
    return device


# -- ONNX files ------------------------------------------------------------------------------------


def _run_onnx(
    onnx: OnnxFile, device: vkops.Device, options: RunOptions, targets: Mapping[Path, str]
) -> None:
    """Run an ONNX model in a loop, and print or write its outputs."""
    names = [entry.name for entry in onnx.model.outputs]
    results, run = DeviceTarget(device).compile_onnx(onnx.model)(onnx.inputs)
    if options.print_onnx_bindings:
        print_onnx_bindings(onnx.inputs.items(), zip(names, results, strict=True), {})
    outputs: list[Any] = []  # none without an iteration

    def dispatch(progress: Progress) -> None:
        outputs[:] = run(progress, {})

    run_timed(onnx.name, options, dispatch, device)
    arrays: dict[str, Array] = {}
    for name, value in zip(names, outputs, strict=False):
        for key, array in _output_arrays(name, value).items():
            if key in arrays:
                raise ModelError(f"output {name!r}: another output has the name {key!r}")
            arrays[key] = array
    array_files.write_or_print(targets, arrays, flat=options.flat)


def _check_onnx(file: ModelFile) -> None:
    """Check an ONNX model without a device; print its operators and a summary of its plan.

    If there are nodes that vkops cannot run, all of them are printed before the error.
    """
    unsupported: list[tuple[str, str]] = []
    with suppress(ImportError, ModelError):  # reading it again reports why
        from vkops.onnx.graph import unsupported_nodes
        from vkops.onnx.model_file import opset_of, read

        proto = read(Path(file.path), allow_paths=file.allow_paths).proto
        unsupported = list(unsupported_nodes(proto.graph, opset_of(proto)))
    if unsupported:
        console.show(console.table("Nodes that vkops cannot run", ("Node", "Why"), unsupported))
    onnx = file.read_onnx()
    model = onnx.model
    operators = Counter((node.operator, node.version) for node in model.nodes)
    rows = [(name, str(version), str(n)) for (name, version), n in sorted(operators.items())]
    console.show(console.table(f"Opset {model.opset}", ("Operator", "Version", "Nodes"), rows))
    console.info(one_line(_plan_summary(onnx)))


def _plan_summary(onnx: OnnxFile) -> str:
    """Return the size of the plan, if the shapes do not depend on the elements of inputs."""
    from vkops.onnx.lowering import NeedsValueError
    from vkops.onnx.specialization import Specialization
    from vkops.onnx.value_info import TensorType

    types = onnx.overrides.types(onnx.model)
    try:
        plans = Specialization(onnx.model.lower(types, {})).plans
    except NeedsValueError as needed:
        return f"Shapes depend on what input '{needed.name}' holds"
    regions = sum(len(out.regions) for plan in plans for out in plan.outputs)
    nbytes = sum(out.nbytes for plan in plans for out in plan.outputs)
    shapes = ", ".join(
        f"{name} {list(type_.shape)}"
        for name, type_ in types.items()
        if isinstance(type_, TensorType)
    )
    return (
        f"With {shapes or 'no inputs'}: {len(plans)} submission{'s' * (len(plans) != 1)}, "
        f"{regions} region{'s' * (regions != 1)}, {nbytes} bytes written"
    )


def inputs_of(onnx: OnnxFile, files: FileOptions) -> dict[str, Any]:
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
    inputs: dict[str, Any] = {}
    for entry in model.inputs:
        if entry.name in arrays:
            array, dtype = arrays[entry.name], entry.dtype
            # .npy files know only the size of some types.
            is_bytes = dtype is not None and np.dtype(dtype.str) == array.dtype
            inputs[entry.name] = as_array(entry.name, array.view(dtype) if is_bytes else array)
        elif entry.name not in model.constants:
            inputs[entry.name] = default_input(entry, onnx.overrides.shape(entry))
    if files.random:
        from vkops.runner.random_inputs import fill

        drawn = {name for name in inputs if name not in arrays}
        return fill(model, inputs, drawn, np.random.default_rng(files.seed))
    return inputs


def _output_arrays(name: str, value: Any) -> dict[str, Array]:
    """Return the arrays of an output: one, or one for each tensor of a sequence."""
    if isinstance(value, list):
        arrays: dict[str, Array] = {}
        for i, item in enumerate(value):
            arrays.update(_output_arrays(f"{name}[{i}]", item))
        return arrays
    return {} if value is None else {name: np.asarray(value)}
