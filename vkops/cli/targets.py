"""Programs that commands run: models, shaders and Python programs, with their arguments."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

import click

from vkops.errors import ModelError, one_line

FORWARDS = {"allow_extra_args": True, "ignore_unknown_options": True}
"""All other arguments are for the command that is run."""

RUN: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys((".json", ".onnx"), ("-m", "vkops", "run")),
    **dict.fromkeys((".comp", ".hlsl", ".slang", ".spv"), ("-m", "vkops", "shader", "run")),
    ".py": (),
}
"""The arguments of Python before a file, by its suffix."""

target = click.argument("target", metavar="TARGET [OPTIONS]...", type=click.Path())


def command(target: str, arguments: list[str], *, any_program: bool = False) -> list[str]:
    """Return the command that runs a model, a shader or a Python program, or any other one."""
    from vkops.shaders.foreign import check_file

    check_file(Path(target))
    suffix = Path(target).suffix
    if suffix in RUN:
        return [sys.executable, *RUN[suffix], target, *arguments]
    if any_program:
        return [target, *arguments]
    raise ModelError(f"{target}: must be a {', '.join(RUN)} file")


def end(target: str, status: int) -> None:
    """Exit with the status of the program that ran; report the signal if one ended it."""
    if status < 0:
        from vkops.system.processes import describe

        click.echo(one_line(f"{target}: {describe(status)}"), err=True)
    if status:
        raise click.exceptions.Exit(status if status > 0 else 128 - status)
