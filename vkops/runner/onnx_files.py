"""``vkops run MODEL.onnx``: inputs from files or at random, outputs printed or written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from rich.markup import escape
from rich.table import Table

from vkops.dxdispatch.onnx_dispatchable import read_onnx
from vkops.dxdispatch.onnx_overrides import Overrides, form_of
from vkops.errors import ModelError, one_line
from vkops.runner import array_files, console, dispatch_timing
from vkops.runner.console import show
from vkops.runner.dispatch_timing import RunOptions
from vkops.runner.onnx_execution import binding_lines, nothing

if TYPE_CHECKING:
    from vkops.device import Device
    from vkops.onnx import Model
    from vkops.onnx.forms import Declared

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class FileOptions:
    """Where inputs come from and outputs go; the names are those of the command line."""

    overrides: Overrides = field(default_factory=Overrides)
    input: Sequence[str] = ()
    output: Sequence[str] = ()
    random: bool = False
    seed: int = 0


def run_file(
    path: Path,
    device: Device,
    options: RunOptions,
    files: FileOptions,
    *,
    allow_paths: bool = False,
) -> None:
    """Run an ONNX model once or again and again, and print or write its outputs.

    Raises:
        ModelError: the model, a file or an option is at fault; nothing was run.
    """
    model = read_onnx(path, allow_paths=allow_paths)
    from vkops.onnx import Session

    files.overrides.check(model)
    given = _inputs(model, files)
    names = [entry.name for entry in model.outputs]
    targets = array_files.targets(names, files.output, "the model")
    session = Session(model, device)
    results: list[Any] = session.specialize(given).results
    if options.print_onnx_bindings:
        named = [("Input", *pair) for pair in given.items()]
        named += [("Output", *pair) for pair in zip(names, results, strict=True)]
        for role, name, value in named:
            if hasattr(value, "shape"):
                where = "implicit (Vulkan)"
                for line in binding_lines(role, name, where, value.dtype, value.shape):
                    console.info(one_line(line))
    made: list[Any] = []

    def dispatch(report: Any) -> None:
        made[:] = session.run(given, report)

    name = path.stem
    with console.progress(name) as report:
        samples = dispatch_timing.measure(name, options, partial(dispatch, report))
    for line in dispatch_timing.report(
        name, samples, options.warmup_samples, options.timing_verbosity
    ):
        console.info(line)
    arrays = {
        key: array
        for name, value in zip(names, made, strict=False)
        for key, array in _arrays(name, value)
    }
    if targets:
        array_files.write(targets, arrays)
    else:
        for key, array in arrays.items():
            array_files.show(key, array)


def check_file(path: Path, overrides: Overrides, *, allow_paths: bool = False) -> None:
    """Check an ONNX model without a device; print its operators and the plan that it becomes.

    Raises:
        ModelError: what ``run_file`` would refuse; every node that cannot run has been listed.
    """
    _list_unsupported(path, allow_paths)
    model = read_onnx(path, allow_paths=allow_paths)
    overrides.check(model)
    operators = Counter((node.operator, node.version) for node in model.nodes)
    table = Table(title=f"Opset {model.opset}", title_justify="left")
    for heading in ("Operator", "Version", "Nodes"):
        table.add_column(heading)
    for (operator, version), count in sorted(operators.items()):
        table.add_row(operator, str(version), str(count))
    show(table)
    console.info(one_line(_plan_line(model, overrides)))


def _list_unsupported(path: Path, allow_paths: bool) -> None:
    """Print every node of a model that vkops cannot run, if there are any."""
    try:
        from vkops.onnx.model import unsupported_nodes
        from vkops.onnx.reading import read

        found = unsupported_nodes(read(path, allow_paths=allow_paths))
    except (ImportError, ModelError):
        return  # reading it again says why
    table = Table(title="Nodes that vkops cannot run", title_justify="left")
    for heading in ("Node", "Why"):
        table.add_column(heading, overflow="fold")
    for node in found:
        table.add_row(escape(one_line(node.label)), escape(one_line(node.reason)))
    if found:
        show(table)


def _plan_line(model: Model, overrides: Overrides) -> str:
    """What the graph becomes, where its shapes do not depend on what the inputs hold."""
    from vkops.onnx.forms import TensorForm
    from vkops.onnx.specialized import Specialized
    from vkops.onnx.trace import NeedsValueError

    forms = {e.name: form_of(e, overrides.shape(e)) for e in model.required_inputs}
    try:
        plans = Specialized(model.lower(forms, {})).plans
    except NeedsValueError as needed:
        return f"Shapes depend on what input '{needed.name}' holds"
    regions = sum(len(out.regions) for plan in plans for out in plan.outputs)
    nbytes = sum(out.nbytes for plan in plans for out in plan.outputs)
    shapes = ", ".join(
        f"{name} {list(form.shape)}" for name, form in forms.items() if isinstance(form, TensorForm)
    )
    return (
        f"With {shapes or 'no inputs'}: {len(plans)} submission{'s' * (len(plans) != 1)}, "
        f"{regions} region{'s' * (regions != 1)}, {nbytes} bytes written"
    )


# -- inputs ----------------------------------------------------------------------------------------


def _inputs(model: Model, files: FileOptions) -> dict[str, Any]:
    """Every input that has no default, or that a file gives."""
    names = [entry.name for entry in model.inputs]
    arrays: dict[str, Array] = {}
    for text in files.input:
        required = [entry.name for entry in model.required_inputs]
        for name, array in array_files.read(text, required, "the model"):
            if name not in names:
                listed = ", ".join(map(repr, names)) or "none"
                raise ModelError(f"{text}: the model has no input {name!r}; it has {listed}")
            arrays[name] = array
    random = np.random.default_rng(files.seed)
    given: dict[str, Any] = {}
    for entry in model.inputs:
        if entry.name in arrays:
            given[entry.name] = _typed(arrays[entry.name], entry)
        elif entry.name not in model.constants:
            empty = nothing(entry, files.overrides.shape(entry))
            is_random = files.random and isinstance(empty, np.ndarray)
            given[entry.name] = _random(random, empty) if is_random else empty
    return given


def _typed(array: Array, entry: Declared) -> Array:
    """An array of a type that .npy files know by its size only."""
    dtype = entry.dtype
    if array.dtype.kind != "V" or dtype is None or dtype.itemsize != array.itemsize:
        return array
    return array.view(dtype)


def _random(random: np.random.Generator, like: Array) -> Any:
    """Elements of a type at random."""
    if like.dtype.hasobject:
        words = [bytes(random.integers(97, 123, 5, np.uint8)).decode() for _ in range(like.size)]
        return np.array(words, object).reshape(like.shape)
    if like.dtype.kind == "b":
        return random.integers(0, 2, like.shape).astype(bool)
    if like.dtype.kind in "iu":
        info = np.iinfo(like.dtype)
        return random.integers(info.min, info.max, like.shape, like.dtype, endpoint=True)
    values = random.standard_normal((2, *like.shape))
    if like.dtype.kind == "c":
        return (values[0] + 1j * values[1]).astype(like.dtype)
    return values[0].astype(like.dtype)


# -- outputs ---------------------------------------------------------------------------------------


def _arrays(name: str, value: Any) -> list[tuple[str, Array]]:
    """An output as arrays: a sequence is many."""
    if isinstance(value, list):
        return [pair for i, item in enumerate(value) for pair in _arrays(f"{name}[{i}]", item)]
    return [] if value is None else [(name, np.asarray(value))]
