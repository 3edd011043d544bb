"""The ``vkops`` program: its commands, and its exit status and message when one fails."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

import vkops
from vkops.cli import bench_commands as bench
from vkops.cli import debug_commands as debug
from vkops.cli import device_commands as devices
from vkops.cli import model_commands as models
from vkops.cli import rule_commands as rules
from vkops.cli import shader_commands as shaders
from vkops.errors import VkopsError, one_line

# DxDispatch spells its options with underscores; hyphens are accepted too.
_SETTINGS = {
    "help_option_names": ["-h", "--help"],
    "token_normalize_func": lambda token: token.replace("-", "_"),
}
# ClickException is defined by typer itself or by click, depending on typer's version.
_UsageError: type[Exception] = next(
    base for base in typer.BadParameter.__mro__ if base.__name__ == "ClickException"
)

app = typer.Typer(
    add_completion=False,
    context_settings=_SETTINGS,
    help="DirectML's data-movement operators on any Vulkan device.",
    pretty_exceptions_enable=False,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit status; errors are one line on standard error.

    Status 0: done. 1: a model, device or file is wrong. 2: the arguments are. 130: interrupted.
    """
    # A process can be started without these streams; its output is then discarded.
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        command = typer.main.get_command(app)
        arguments = sys.argv[1:] if arguments is None else arguments
        with command.make_context("vkops", list(arguments)) as context:
            command.invoke(context)
        sys.stdout.flush()
    except typer.Exit as exit_:
        return exit_.exit_code
    except _UsageError as error:
        reason = error.format_message()  # type: ignore[attr-defined]
        return _fail(f"Failed to parse command-line arguments: {reason}", 2)
    except BrokenPipeError:
        return _fail("Standard output was closed", 1)
    except (VkopsError, OSError) as error:
        return _fail(str(error), 1)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] == "vkops":
            raise
        package = error.name.split(".")[0]
        return _fail(
            f"The package {package} is not installed, which vkops needs: pip install vkops", 1
        )
    except MemoryError:
        return _fail("Out of memory", 1)
    except KeyboardInterrupt:
        return _fail("Interrupted", 130)
    return 0


def _fail(message: str, status: int) -> int:
    try:
        sys.stdout.flush()
    except OSError:
        # The reader has gone; buffered output must not fail again when Python shuts down.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    print(one_line(message), file=sys.stderr)
    return status


@app.callback(invoke_without_command=True)
def _vkops(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Show the version.")] = False,
) -> None:
    if version:
        typer.echo(f"vkops {vkops.__version__}")
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help())


_COMMANDS = (models.run, models.check, models.explain, devices.devices, bench.bench, rules.rule)
for _command in _COMMANDS:
    app.command()(_command)
app.add_typer(shaders.app, name="shader")
app.add_typer(debug.app, name="debug")
