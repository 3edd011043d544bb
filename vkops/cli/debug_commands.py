"""``vkops debug``: find faults of shaders, kernels and drivers."""

from __future__ import annotations

import shlex
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click
from click.core import ParameterSource

from vkops.cli import options, shader_commands, targets
from vkops.errors import ModelError, ShaderCompileError, VkopsError, printable

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from vkops.debug.host_execution import Subject
    from vkops.debug.shader_check import Case
    from vkops.debug.shader_coverage import ShaderCoverage
    from vkops.dml import FeatureLevel
    from vkops.interpreter.findings import Finding
    from vkops.shaders import Shader
    from vkops.shaders.module import Block


@click.group(invoke_without_command=True)
@click.pass_context
def debug(context: click.Context) -> None:
    """Find faults of shaders, kernels and drivers.

    TARGET is a model (.json, .onnx) with options of `vkops run`, or a shader (.comp, .hlsl, .slang,
    .spv) with those of `vkops shader run`.
    """
    from vkops import console

    options.help_without_command(context)
    console.shows_activity = True


_subject = click.argument("target", metavar="SHADER|MODEL", type=click.Path())
_shader = options.all_of(  # arguments of ``_case``
    shader_commands.bind,
    options.text("--groups", metavar="X[,Y[,Z]]", help="Numbers of workgroups; 1 by default."),
    shader_commands.threads,
    shader_commands.push,
    shader_commands.constant,
    click.option(
        "--subgroup-size",
        type=int,
        metavar="N",
        help="Invocations of a subgroup, 1 to 64; by default, 32, and 8 and 64 to compare.",
    ),
    options.number(
        "--max-iterations",
        minimum=1,
        default=16_384,
        help="A loop does not end if no invocation leaves it in so many iterations.",
    ),
    shader_commands.settings,
)
_schedule = options.text(
    "--schedule",
    metavar="NAME",
    help="The order of workgroups and subgroups that a finding of `check` names.",
)
_explored = options.all_of(
    options.number(
        "--schedules",
        minimum=1,
        help="Run it in N orders of workgroups: ascending, descending, and shuffled ones.",
    ),
    options.number("--seed", default=0, help="Number of the first shuffled order."),
)
_checked_shader = options.all_of(
    _shader,
    options.flag("--floats", help="Report NaN and infinity that are made of finite numbers."),
    options.flag(
        "--no-plain-barriers",
        help="Do not report accesses of a buffer that only a plain barrier() separates.",
    ),
)
_model = options.all_of(
    options.texts(
        "--input",
        metavar="[NAME:]FILE",
        help="Read inputs of a .onnx model from .npy or .npz files; the others are random.",
    ),
    options.overrides,
    options.level,
    options.input_path,
    options.allow_paths,
)


def _names(decorator: Any) -> set[str]:
    """Return the arguments of the options that a decorator adds."""
    return {parameter.name for parameter in decorator(lambda: None).__click_params__}


_OF_SHADERS = _names(options.all_of(_checked_shader, _explored, _schedule))
_OF_MODELS = _names(_model) | {"dispatch"}


@debug.command()
@_subject
@_checked_shader
@_explored
@_model
@options.file("--sarif", help="Write the findings in SARIF, which GitHub shows in pull requests.")
def check(target: str, sarif: Path | None, **arguments: Any) -> None:
    """Find faults of a shader or a model without a device.

    The shader is run in an interpreter. Data races, barriers that not all invocations reach, reads
    of what was never written, indices out of bounds and more are printed with their lines, and the
    exit status is 1. A block without a buffer gets one element for each invocation, with distinct
    values.

    Of a model (.json, .onnx), all dispatches are run with its buffers: those of its own shaders,
    and those of vkops' kernels.
    """
    from vkops.debug.host_execution import run_all
    from vkops.debug.sarif import write_sarif
    from vkops.debug.shader_check import Case

    subject, count = _subject_of(target, arguments), 0
    findings: list[Finding] = []

    def check(name: str, run: Any) -> None:
        nonlocal count
        report, count = run.check(), count + 1
        for invocation, text in report.printed:
            click.echo(printable(f"{name}{invocation}: {text}"))
        for finding in report.findings:
            click.echo(_printable(f"{name}{finding.text}"))
        findings.extend(report.findings)
        if any(each.kind == "loop" for each in findings) and not isinstance(subject, Case):
            raise click.exceptions.Exit(1)  # what comes after it has not the inputs of a device

    with suppress(click.exceptions.Exit):
        run_all(subject, check)
    if sarif is not None:
        write_sarif(sarif, findings)
    kinds = {finding.kind for finding in findings}
    reached = [each for each in findings if each.invocations and each.place.line]
    unfilled = {finding.block for finding in findings} - {""}
    if reached and isinstance(subject, Case):
        click.echo(printable(f"Step to the first: {_step_command(target, reached[0])}"))
    if "out of bounds" in kinds and isinstance(subject, Case):
        places = subject.shader.places.keys() - subject.given
        if names := ", ".join(sorted(subject.shader.places[each][0].point for each in places)):
            about = "Blocks without --bind, of one element for each invocation"
            click.echo(printable(f"{about}: {names}"))
    if unfilled and isinstance(subject, Case):
        given = " ".join(f"--bind {each}=FILE.npy" for each in sorted(unfilled))
        click.echo(printable(f"To give values to what is read: {given}"))
    if kinds:
        raise click.exceptions.Exit(1)
    dispatches = "" if isinstance(subject, Case) else f" in {count} dispatches"
    click.echo(printable(f"{Path(target).name}: nothing was found{dispatches}"))


@debug.command()
@click.argument("target", metavar="SHADER|MODEL|FILE.info", type=click.Path())
@_checked_shader
@_explored
@_model
@options.texts(
    "-o",
    "--output",
    metavar="FILE",
    help="Write a page (.html), or add to data of coverage.py (.coverage*) or LCOV (others).",
)
def cover(target: str, output: Sequence[str], **arguments: Any) -> None:
    """Count how often lines and branches of a shader run.

    The shader or model is run in an interpreter, as by `vkops debug check`, whose options it has.
    Counts are those of invocations, in the first order of workgroups.

    With a tracefile of LCOV (.info), such as one of VKOPS_COVERAGE, nothing is run: it is shown.
    """
    from vkops.console import show
    from vkops.debug.shader_coverage import ShaderCoverage
    from vkops.explain import coverage as explained

    files = [explained.output_file(Path(name)) for name in output]
    if Path(target).suffix == ".info":
        _refuse_given(_OF_SHADERS | _OF_MODELS, "a shader or a model")
        coverage = ShaderCoverage.read(Path(target))
    else:
        coverage = _covered(target, arguments)
    for file in files:
        file.add(coverage)
        click.echo(printable(f"Coverage written to '{file.path}'"))
    show(*explained.render(coverage))


def _covered(target: str, arguments: Mapping[str, Any]) -> ShaderCoverage:
    """Run a shader or a model, and return what ran; say whether there were faults."""
    from vkops.debug.host_execution import run_all
    from vkops.debug.shader_check import NO_LINES, Case
    from vkops.debug.shader_coverage import ShaderCoverage
    from vkops.interpreter.coverage import Coverage

    subject, coverage, count = _subject_of(target, arguments), ShaderCoverage(), 0

    def cover(_name: str, run: Any) -> None:
        nonlocal count
        observer = Coverage()
        findings = run.check([observer]).findings
        coverage.add(ShaderCoverage.of(observer))
        count += len(findings)
        if any(each.kind == "loop" for each in findings) and not isinstance(subject, Case):
            raise click.exceptions.Exit(1)  # what comes after it has not the inputs of a device

    with suppress(click.exceptions.Exit):
        run_all(subject, cover)
    if not coverage.files:
        raise ShaderCompileError(f"{Path(target).name}: {NO_LINES}")
    if count:
        faults = "1 fault was" if count == 1 else f"{count} faults were"
        click.echo(f"{faults} found: `vkops debug check` shows them", err=True)
    return coverage


def _step_command(target: str, finding: Finding) -> str:
    """Return the command that goes to the first fault of an invocation, with the same options."""
    context = click.get_current_context()
    words = ["vkops", "debug", "step", target]
    for parameter in context.command.params[1:]:
        name, option = parameter.name or "", parameter.opts[-1]
        is_shared = any(other.name == name for other in step.params)
        if is_shared and context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            value = context.params[name]
            if value is True:
                words.append(option)
                continue
            for each in value if isinstance(value, (list, tuple)) else [value]:
                words += [option, str(each)]
    if finding.subgroup_size:
        words += ["--subgroup-size", str(finding.subgroup_size)]
    if finding.schedule:
        words += ["--schedule", finding.schedule]
    words += ["--invocation", ",".join(map(str, finding.invocations[0])), "--to-fault"]
    return shlex.join(words)


def _subject_of(target: str, arguments: Mapping[str, Any]) -> Subject:
    """Return a shader or a model with its arguments; refuse options that have no effect on it."""
    from vkops.runner.model_files import FileOptions, ModelFile

    is_model = Path(target).suffix in (".json", ".onnx")
    _refuse_given(*((_OF_SHADERS, "a shader") if is_model else (_OF_MODELS, "a model")))
    if not is_model:
        return case_of(target, arguments)
    names = "feature_level", "input_path", "overrides", "allow_paths"
    file = ModelFile(target, **{name: arguments[name] for name in names})
    files = FileOptions(arguments["input"], random=True)
    return file.read_onnx(files) if file.is_onnx else file.read_json(file.feature_level)


def _refuse_given(names: Collection[str], kind: str) -> None:
    """Refuse options that have no effect on a target of another kind."""
    context = click.get_current_context()
    for parameter in context.command.params:
        name = parameter.name or ""
        is_given = context.get_parameter_source(name) is ParameterSource.COMMANDLINE
        if is_given and name in names:
            options.refuse(parameter.opts[-1], f"is only for {kind}")


@debug.command()
@shader_commands.source
@options.text("--invocation", metavar="X[,Y[,Z]]", help="Global invocation; 0,0,0 by default.")
@click.option(
    "--commands",
    metavar="FILE",
    type=click.File(errors="replace"),
    help="Read commands from a file, not from standard input.",
)
@options.flag("--to-fault", help="Begin at the first fault of the invocation.")
@_schedule
@_checked_shader
def step(
    source: str, invocation: str, commands: TextIO | None, to_fault: bool, **arguments: Any
) -> None:
    """Go through the lines of an invocation, forwards and backwards.

    The shader is run in an interpreter, without a device. The commands are gdb's: next, step,
    finish, continue, also with reverse- before them; until, break, watch, print, display, info,
    list, backtrace, quit. table prints values of all invocations of a subgroup, and invocation and
    workgroup go on with another one. `help` describes them, and an empty line repeats the last one.
    """
    from vkops.debug.stepper import step as run

    run(
        case_of(source, arguments),
        _invocation(invocation) or (0, 0, 0),
        commands,
        to_fault=to_fault,
    )


@shader_commands.named_options()
def case_of(source: str, arguments: Mapping[str, Any]) -> Case:
    """Return a shader with what it is run with."""
    from vkops.debug.shader_check import Case

    settings = {name: arguments[name] for name in ("define", "include", "entry")}
    loaded = shader_commands.loaded(source, arguments["constant"], settings)
    groups, threads = arguments["groups"], arguments["threads"]
    return Case.of(
        loaded,
        _buffers(arguments["bind"], loaded),
        shader_commands.integers("--groups", groups) if groups else None,
        None if threads is None else shader_commands.integers("--threads", threads),
        shader_commands.numbers("--push", arguments["push"]),
        arguments["subgroup_size"],
        floats=arguments.get("floats", False),
        max_iterations=arguments["max_iterations"],
        plain_barriers=not arguments.get("no_plain_barriers", False),
        schedules=arguments.get("schedules"),
        seed=arguments.get("seed", 0),
        schedule=arguments.get("schedule", ""),
    )


def _buffers(texts: Sequence[str], shader: Shader) -> dict[str, Any]:
    """Return what blocks are given: lists for arrays of blocks, and levels of images."""
    from vkops.runner import shader_bindings

    lists: dict[Block, list[Any]] = {}
    for block, value in shader_bindings.assigned(shader_bindings.read(texts, shader.name), shader):
        lists.setdefault(block, []).append(value)
    bound: dict[str, Any] = {}
    for block, values in lists.items():
        if len(values) > 1 and not block.is_array and block.image is None:
            message = f"got {block.point} twice, must be an array of blocks or an image"
            options.refuse("--bind", message)
        bound[block.point] = values if block.is_array or len(values) > 1 else values[0]
    return bound


@debug.command(context_settings=targets.FORWARDS)
@targets.target
@options.text(
    "--invocation", metavar="X[,Y[,Z]]", help="Show messages of this global invocation only."
)
@options.number("--rows", minimum=1, default=200, help="Maximum number of messages to show.")
@options.flag("--kernels", help="Print what each invocation of a kernel does.")
@click.pass_context
def printf(context: click.Context, target: str, invocation: str, rows: int, kernels: bool) -> None:
    """Run a program, and show what debugPrintfEXT prints.

    TARGET may also be a Python program (.py), with its arguments.
    """
    from vkops.console import show
    from vkops.debug.layer import printed as table
    from vkops.debug.printf import printf as run

    chosen = _invocation(invocation)
    source = target if Path(target).suffix in (".comp", ".py") else ""
    printed = run(targets.command(target, context.args), kernels=kernels, source=source)
    shown = [m for m in printed.messages if chosen is None or m.invocation == chosen]
    if shown:
        show(table(shown[:rows]))
    if len(shown) > rows:
        click.echo(f"{len(shown) - rows} more (--rows shows them)")
    if not (shown or printed.returncode):
        click.echo("Nothing was printed" + (f" by invocation {invocation}" if invocation else ""))
    if printed.lost:
        raise ModelError(
            "Messages were lost: a dispatch printed more than the layer's buffer holds; print less"
        )
    targets.end(target, printed.returncode)


@debug.command(context_settings={**targets.FORWARDS, "allow_interspersed_args": False})
@targets.target
@click.pass_context
def validate(context: click.Context, target: str) -> None:
    """Run a program under Vulkan's validation layer.

    Any message of the layer is a failure. The layer checks the API, races between commands, and
    shaders' accesses to buffers. TARGET may also be a Python program (.py) or any other one, with
    its arguments.
    """
    from vkops.console import show
    from vkops.debug.layer import faults
    from vkops.debug.layer import validate as run

    verdict = run(targets.command(target, context.args, any_program=True))
    for known, count in verdict.known.items():
        times = f"{count} times" if count > 1 else "once"
        click.echo(f"Known, {times}: {known.id}: {known.part.strip()}: {known.reason}")
    if verdict.unexpected:
        show(*faults(verdict.unexpected))
        count = len(verdict.unexpected)
        raise ModelError(f"The validation layer has {count} message{'s' if count > 1 else ''}")
    if not verdict.returncode:
        click.echo("The validation layer reported nothing")
    targets.end(target, verdict.returncode)


@debug.command()
@_subject
@click.argument("element", metavar="[ELEMENT]", default="")
@options.text(
    "--output",
    metavar="NAME",
    help="A tensor, such as OutputTensors[1], or a block; needed if there are several.",
)
@options.number("--dispatch", minimum=1, default=1, help="Number of the dispatch of a model.")
@options.number("--rows", minimum=1, default=20, help="Maximum number of lines to show.")
@click.option(
    "--compare",
    metavar="ADAPTER",
    help="Compare with the first adapter whose name contains this text.",
)
@_schedule
@_shader
@_model
def trace(
    target: str,
    element: str,
    output: str,
    dispatch: int,
    rows: int,
    compare: str | None,
    **arguments: Any,
) -> None:
    """Follow an element back to the inputs, without a device.

    ELEMENT is an index such as 0,2 of an output, or a number in a block. The last store to it is
    printed with its line and its invocation, and then the lines that made what was stored; for an
    operator, first the region of the plan and the kernel. The exit status is 1 if the kernel does
    not do what the plan says.

    With --compare, the shader or model is also run on a device, and the first element that differs
    from the interpreter is followed; the exit status is 1 if there is one.
    """
    if not element and compare is None:
        raise ModelError("ELEMENT: got nothing, must be an index; only --compare needs none")
    index = tuple(options.integer("ELEMENT", text) for text in element.split(",") if element)
    subject = _subject_of(target, arguments)
    if compare is not None:
        _compare(subject, compare, rows, level=arguments["feature_level"])
    if element:
        from vkops.debug import model_trace

        traced = model_trace.traced(subject, dispatch, output, index)
        click.echo(_printable(traced.text(rows)))
        if traced.differs:
            raise ModelError(traced.verdict)
        if traced.expected:
            click.echo("The kernel did as the plan says")


def _compare(subject: Subject, adapter: str, rows: int, level: FeatureLevel) -> None:
    """Print the first element that differs on a device, and end; go on if there is none."""
    import vkops
    from vkops.debug import driver_comparison

    with vkops.Device(adapter or None, level) as device:
        click.echo(printable(f"Running on '{device.name}'"))
        difference = driver_comparison.compare(subject, device)
        if difference is None:
            click.echo(printable(f"All outputs are the same on '{device.name}'"))
            return
        click.echo(_printable(difference.text(rows)))
        raise ModelError(difference.verdict)


@debug.command(context_settings=targets.FORWARDS)
@targets.target
@options.file("-o", "--output", required=True, metavar="FILE.rdc", help="File to write.")
@click.pass_context
def capture(context: click.Context, target: str, output: Path) -> None:
    """Run a model or shader, and capture its dispatches for RenderDoc."""
    import os
    import subprocess

    from vkops.debug.capture import submissions
    from vkops.debug.dispatch_hooks import CAPTURE
    from vkops.debug.printf import KERNEL_DEFINES

    if Path(target).suffix == ".py":
        raise ModelError(f"{target}: must be a model or a shader: a capture is of its dispatches")
    extra = {CAPTURE: str(output.absolute()), KERNEL_DEFINES: "DEBUG"}  # with their source lines
    done = subprocess.run(
        targets.command(target, context.args), env={**os.environ, **extra}, check=False
    )
    targets.end(target, done.returncode)
    click.echo(printable(f"Capture written to '{output}'"))
    try:
        for number, submission in enumerate(submissions(output), 1):
            click.echo(printable(f"  {number}. {submission}"))
    except VkopsError as error:  # what reads them is a package of its own
        click.echo(str(error), err=True)


@debug.command()
@options.file("--case", metavar="FILE.zip", help="Add it to this file of vkops.capture_call.")
def report(case: Path | None) -> None:
    """Describe this machine for a bug report."""
    from zipfile import BadZipFile, ZipFile

    from vkops.debug.bug_report import report as text

    described = text()
    click.echo(described)
    if case is not None:
        try:
            with ZipFile(case, "a") as file:
                file.getinfo("call.json")
                file.writestr("report.md", described)
        except (BadZipFile, KeyError) as error:
            raise ModelError(f"{case}: must be a file of vkops.capture_call") from error
        click.echo(printable(f"Added to '{case}'"))


def _printable(text: str) -> str:
    return "\n".join(map(printable, text.split("\n")))


def _invocation(text: str) -> tuple[int, int, int] | None:
    if not text:
        return None
    numbers = [options.integer("--invocation", part) for part in text.split(",")]
    if len(numbers) > 3 or min(numbers) < 0:
        options.refuse(
            "--invocation", f"got '{text}', must be one to three numbers that are not negative"
        )
    x, y, z = [*numbers, 0, 0][:3]
    return x, y, z
