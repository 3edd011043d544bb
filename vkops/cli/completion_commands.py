"""``vkops completion``."""

from __future__ import annotations

import os
import re

import click
from click import shell_completion

from vkops.cli.options import COMPLETE


class _Bash(shell_completion.BashComplete):
    """Bash takes a colon, as in NAME:FILE, for a word of its own."""

    def get_completion_args(self) -> tuple[list[str], str]:
        args, incomplete = super().get_completion_args()
        *args, incomplete = re.sub("\0?:\0?", ":", "\0".join([*args, incomplete])).split("\0")
        return args, incomplete


shell_completion.add_completion_class(_Bash)


def complete(app: click.Command) -> int:
    """Answer the question of a shell about the program, and return the exit status."""
    return shell_completion.shell_complete(app, {}, "vkops", COMPLETE, os.environ[COMPLETE])


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the completion script of a shell.

    It completes commands, options and files when you press Tab. Add one of these lines to
    ~/.bashrc, ~/.zshrc or ~/.config/fish/config.fish:

    \b
      eval "$(vkops completion bash)"
      eval "$(vkops completion zsh)"
      vkops completion fish | source
    """  # noqa: D301 (click keeps the lines after a backspace as they are)
    kind = shell_completion.get_completion_class(shell)
    assert kind is not None
    click.echo(kind(context.find_root().command, {}, "vkops", COMPLETE).source())
