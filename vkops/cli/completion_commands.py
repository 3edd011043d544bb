"""``vkops completion``."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from vkops.cli.main import COMPLETE, app


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    r"""Print the completion script of a shell.

    It completes commands, options and files when you press Tab:

    \b
      eval "$(vkops completion bash)"     in ~/.bashrc
      eval "$(vkops completion zsh)"      in ~/.zshrc
      vkops completion fish | source      in ~/.config/fish/config.fish
    """
    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(kind(app, {}, "vkops", COMPLETE).source())
