"""The reference of the command line, docs/commands.md: the help of each command.

``python -m vkops.cli.reference`` prints it; scripts/docs writes it.
"""

from __future__ import annotations

from collections.abc import Iterator

import click

from vkops.cli.main import app

_WIDTH = 80

_HEAD = """\
# The command line

This page is the help of each command, which `vkops COMMAND --help` prints. Options can be written
with underscores, as those of DxDispatch, or with hyphens. The exit status is 0 on success, 1 if a
model, device or file is wrong, 2 if the arguments are, and 130 after an interrupt.
"""


def page() -> str:
    """Return the page as Markdown."""
    return "\n".join([_HEAD, *_sections(app, None, "vkops")])


def _sections(command: click.Command, parent: click.Context | None, name: str) -> Iterator[str]:
    context = click.Context(
        command,
        parent,
        info_name=name,
        terminal_width=_WIDTH,
        max_content_width=_WIDTH,
        **command.context_settings,
    )
    yield f"## {context.command_path}\n\n```text\n{command.get_help(context)}\n```\n"
    if isinstance(command, click.Group):
        for child in command.list_commands(context):
            found = command.get_command(context, child)
            assert found is not None
            yield from _sections(found, context, child)


if __name__ == "__main__":
    print(page(), end="")
