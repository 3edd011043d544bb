"""The ``vkops`` program: its commands, and its exit status and message when one fails."""

from __future__ import annotations

import errno
import importlib
import io
import os
import sys
from collections.abc import Sequence

import click

import vkops
from vkops.cli import options
from vkops.errors import VkopsError, one_line

_CLOSED = {errno.EPIPE, errno.EINVAL} if os.name == "nt" else {errno.EPIPE}
"""The errors of a write to a pipe without a reader."""

# The commands with the module of each, which is imported when the command is used.
COMMANDS = {
    "run": "vkops.cli.model_commands",
    "check": "vkops.cli.model_commands",
    "explain": "vkops.cli.model_commands",
    "devices": "vkops.cli.device_commands",
    "bench": "vkops.cli.bench_commands",
    "rule": "vkops.cli.rule_commands",
    "shader": "vkops.cli.shader_commands",
    "warm": "vkops.cli.bundle_commands",
    "debug": "vkops.cli.debug_commands",
    "completion": "vkops.cli.completion_commands",
}
_SETTINGS = {
    "help_option_names": ["-h", "--help"],
    "show_default": True,
    # DxDispatch spells its options with underscores; hyphens are accepted too.
    "token_normalize_func": lambda token: token.replace("-", "_"),
}


class _Program(click.Group):
    """Imports the module of a command at its first use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command = getattr(importlib.import_module(COMMANDS[cmd_name]), cmd_name)
        assert isinstance(command, click.Command)
        return command


@click.group(cls=_Program, invoke_without_command=True, context_settings=_SETTINGS)
@click.version_option(vkops.__version__, message="vkops %(version)s")
@click.pass_context
def app(context: click.Context) -> None:
    """DirectML's data-movement operators on any Vulkan device."""
    options.help_without_command(context)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit status; errors are one line on standard error.

    Status 0: done. 1: a model, device or file is wrong. 2: the arguments are. 130: interrupted.
    141: nobody reads the output any more, about which nothing is printed.
    """
    # A process can be started without these streams; its output is then discarded.
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        if options.COMPLETE in os.environ:
            from vkops.cli import completion_commands

            return completion_commands.complete(app)
        arguments = sys.argv[1:] if arguments is None else arguments
        try:
            can_be_passed = b"\0" not in b"".join(map(os.fsencode, arguments))
        except UnicodeEncodeError:  # a lone surrogate
            can_be_passed = False
        if not can_be_passed:
            raise click.UsageError("an argument has characters that no shell can pass")
        with app.make_context("vkops", list(arguments)) as context:
            app.invoke(context)
        sys.stdout.flush()
    except click.exceptions.Exit as exit_:
        return exit_.exit_code
    except click.ClickException as error:
        return _fail(f"Failed to parse command-line arguments: {error.format_message()}", 2)
    except OSError as error:
        if error.filename is None and error.errno in _CLOSED:
            return _stop_output()
        return _fail(str(error), 1)
    except VkopsError as error:
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
        if {"VKOPS_MESSAGE_LOG", "VKOPS_CAPTURE"} & os.environ.keys():
            return 130  # `vkops debug`, which runs this command, says so
        return _fail("Interrupted", 130)
    return 0


def _fail(message: str, status: int) -> int:
    try:
        sys.stdout.flush()
    except OSError:
        _stop_output()
    print(one_line(message), file=sys.stderr)
    return status


def _stop_output() -> int:
    """Discard what is still to be printed, because the reader has gone.

    Returns the status of a program that ended by SIGPIPE.
    """
    # Buffered output must not fail again when Python shuts down.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 141
