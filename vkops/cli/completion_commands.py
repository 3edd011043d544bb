"""``vkops completion``."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from vkops.cli.main import COMPLETE, app


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the completion script of a shell.

    It completes commands, options and files when you press Tab. Add one of these lines to
    ~/.bashrc, ~/.zshrc or ~/.config/fish/config.fish:

    \b
      eval "$(vkops completion bash)"
      eval "$(vkops completion zsh)"
      vkops completion fish | source
    """  # noqa: D301 (click keeps the lines after a backspace as they are)
    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(kind(app, {}, "vkops", COMPLETE).source())
