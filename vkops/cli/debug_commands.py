"""``vkops debug``: find faults of shaders, kernels and drivers."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from vkops.cli import options
from vkops.errors import ModelError, VkopsError, one_line, printable
from vkops.shaders import tools

app = typer.Typer(help="Find faults of shaders, kernels and drivers on a device.")

# All other arguments are for the command that is run.
_FORWARDS = {"allow_extra_args": True, "ignore_unknown_options": True}

Target = Annotated[
    str,
    Argument(
        metavar="TARGET [OPTIONS]...",
        help="A model (.json, .onnx) with options of `vkops run`, or a shader (.comp, .spv) with "
        "those of `vkops shader run`.",
    ),
]
_RUN = {".json": ["run"], ".onnx": ["run"], ".comp": ["shader", "run"], ".spv": ["shader", "run"]}


@app.command(context_settings=_FORWARDS)
def printf(
    context: typer.Context,
    target: Target,
    invocation: Annotated[
        str, Option(metavar="X[,Y[,Z]]", help="Show messages of this global invocation only.")
    ] = "",
    rows: Annotated[int, Option(min=1, help="Maximum number of messages to show.")] = 200,
    kernels: Annotated[
        bool, Option("--kernels", help="Print what each invocation of a kernel does.")
    ] = False,
) -> None:
    """Run a model or shader, and show what its shaders print with debugPrintfEXT."""
    from vkops.debug import message_tables
    from vkops.debug.printf import printf as run
    from vkops.runner.console import show

    wanted = _invocation(invocation)
    source = target if Path(target).suffix == ".comp" else ""
    found = run(_vkops(target, context.args), kernels=kernels, source=source)
    shown = [m for m in found.messages if wanted is None or m.invocation == wanted]
    if shown:
        show(message_tables.printed(shown[:rows]))
    if len(shown) > rows:
        typer.echo(f"{len(shown) - rows} more (--rows shows them)")
    if not (shown or found.returncode):
        typer.echo("Nothing was printed" + (f" by invocation {invocation}" if invocation else ""))
    if found.lost:
        raise ModelError(
            "Messages were lost: a dispatch printed more than the layer's buffer holds; print less"
        )
    _end(target, found.returncode)


@app.command(context_settings={**_FORWARDS, "allow_interspersed_args": False})
def validate(
    context: typer.Context,
    target: Annotated[
        str,
        Argument(
            metavar="TARGET [OPTIONS]...",
            help="A model or shader, as for `printf`; or any other program with its arguments.",
        ),
    ],
) -> None:
    """Run a program under Vulkan's validation layer; any message is a failure.

    The layer checks the API, races between commands, and shaders' accesses to buffers.
    """
    from vkops.debug import message_tables
    from vkops.debug.layer_validation import validate as run
    from vkops.runner.console import show

    command = _vkops(target, context.args) if Path(target).suffix in _RUN else None
    verdict = run(command or [target, *context.args])
    for known, count in verdict.known.items():
        times = f"{count} times" if count > 1 else "once"
        typer.echo(f"Known, {times}: {known.id}: {known.part.strip()}: {known.reason}")
    if verdict.unexpected:
        show(*message_tables.faults(verdict.unexpected))
        count = len(verdict.unexpected)
        raise ModelError(f"The validation layer has {count} message{'s' if count > 1 else ''}")
    if not verdict.returncode:
        typer.echo("The validation layer has nothing to say")
    _end(target, verdict.returncode)


@app.command()
def trace(
    model: Annotated[str, Argument(metavar="MODEL.json", help="A DxDispatch model.")],
    element: Annotated[str, Argument(metavar="I[,J...]", help="Index of the element.")],
    output: Annotated[
        str, Option(metavar="TENSOR", help="Such as OutputTensors[1]; needed if there are several.")
    ] = "",
    dispatch: Annotated[int, Option(min=1, help="Number of the operator's dispatch.")] = 1,
    adapter: options.Adapter = "",
    expect: options.Expect = None,
    dml_feature_level: options.Level = "5.0",
    input_path: options.InputPath = None,
    allow_paths: options.AllowPaths = False,
) -> None:
    """Follow an element of an operator's output through the plan and through the device.

    Stop at the first difference, with exit status 1.
    """
    import vkops
    from vkops.debug import message_tables
    from vkops.debug.traced_element import trace_model
    from vkops.dxdispatch import load_model, prepare
    from vkops.runner.console import show

    index = tuple(options.integer("element", text) for text in element.split(","))
    level = options.feature_level(dml_feature_level)
    prepared = prepare(load_model(model, input_path, allow_paths=allow_paths), level)
    with vkops.Device(adapter or None, level, expect=expect) as device:
        typer.echo(printable(f"Running on '{device.name}'"))
        stages = []
        for stage in trace_model(prepared, device, dispatch, output, index):
            stages.append(stage)
            if stage.differs:
                break
    show(message_tables.stages(stages))
    if stages[-1].differs:
        raise ModelError(f"The device differs from the plan: {stages[-1].name}")
    typer.echo("The device did as the plan says")


@app.command(context_settings=_FORWARDS)
def capture(
    context: typer.Context,
    target: Target,
    output: Annotated[Path, Option("-o", "--output", metavar="FILE.rdc")],
) -> None:
    """Run a model or shader, and capture its dispatches in a file for RenderDoc."""
    import os
    import subprocess

    from vkops.debug.dispatch_hooks import CAPTURE
    from vkops.debug.printf import KERNEL_DEFINES
    from vkops.debug.submissions import submissions

    own = {CAPTURE: str(output.absolute()), KERNEL_DEFINES: "DEBUG"}  # with their source lines
    done = subprocess.run(_vkops(target, context.args), env={**os.environ, **own}, check=False)
    _end(target, done.returncode)
    typer.echo(printable(f"Capture written to '{output}'"))
    try:
        for number, submission in enumerate(submissions(output), 1):
            typer.echo(printable(f"  {number}. {submission}"))
    except VkopsError as error:  # what reads them is a package of its own
        typer.echo(str(error), err=True)


@app.command()
def report() -> None:
    """Print what a bug report should contain about this machine."""
    from vkops.debug.bug_report import report as text

    typer.echo(text())


def _vkops(target: str, arguments: list[str]) -> list[str]:
    """Return the command that runs a model or a shader."""
    suffix = Path(target).suffix
    if suffix not in _RUN:
        raise ModelError(f"{target}: expected a {', '.join(_RUN)} file")
    return [sys.executable, "-m", "vkops", *_RUN[suffix], target, *arguments]


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


def _end(target: str, status: int) -> None:
    """Exit with the status of the program that ran; report the signal if one ended it."""
    if status < 0:
        typer.echo(one_line(f"{target}: {tools.status(status)}"), err=True)
    if status:
        raise typer.Exit(status if status > 0 else 128 - status)
