"""The reference of the command line, docs/commands.md: the help of each command.

It prints the page, which scripts/docs writes.
"""

from __future__ import annotations

from collections.abc import Iterator

import click

from vkops.cli.main import app

_WIDTH = 80

_HEAD = """\
# The command line

This page is the help of each command, which `vkops COMMAND --help` prints. An option that several
commands have is described once. Options can be written with underscores, as those of DxDispatch,
or with hyphens. The exit status is 0 on success, 1 if a model, device or file is wrong, 2 if the
arguments are, and 130 after an interrupt.
"""


def page() -> str:
    """Return the page as Markdown."""
    return "\n".join([_HEAD, *_sections(app, None, "vkops", {})])


def _sections(
    command: click.Command,
    parent: click.Context | None,
    name: str,
    described: dict[tuple[str, str], str],
) -> Iterator[str]:
    """Yield the section of a command, and those of its subcommands.

    ``described`` has the commands whose sections describe options, by the names and help of these.
    """
    context = click.Context(
        command,
        parent,
        info_name=name,
        terminal_width=_WIDTH,
        max_content_width=_WIDTH,
        **command.context_settings,
    )
    yield f"## {context.command_path}\n\n```text\n{_help(command, context, described)}\n```\n"
    if isinstance(command, click.Group):
        for child in command.list_commands(context):
            found = command.get_command(context, child)
            assert found is not None
            yield from _sections(found, context, child, described)


def _help(
    command: click.Command, context: click.Context, described: dict[tuple[str, str], str]
) -> str:
    """Return the help of a command, with the options that are not described yet.

    The commands of a group have sections of their own.
    """
    formatter = context.make_formatter()
    command.format_usage(context, formatter)
    command.format_help_text(context, formatter)
    options = [param for param in command.get_params(context) if isinstance(param, click.Option)]
    records = [record for option in options if (record := option.get_help_record(context))]
    new: list[tuple[str, str]] = []
    known: dict[str, list[str]] = {}
    for record in records:
        place = described.setdefault(record, context.command_path)
        if place == context.command_path:
            new.append(record)
        elif not record[0].endswith("--help"):
            known.setdefault(place, []).append(record[0].split()[0].rstrip(","))
    if new:
        with formatter.section("Options"):
            formatter.write_dl(new)
    for place, names in known.items():
        with formatter.section(f"Options of {place}"):
            formatter.write_text(" ".join(names))
    return formatter.getvalue().rstrip("\n")


if __name__ == "__main__":
    print(page(), end="")
