"""The generated parts of the documentation's pages, as Markdown, which docs/conf.py puts in.

Each takes the place of its name in braces: the rules, the help of each command, what the
capabilities of shaders need, which newer extensions run, and what to use instead of the names of
other libraries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import click
import public_names

import vkops
from vkops.arguments.other_names import row_of, table
from vkops.cli.main import app
from vkops.cli.rule_commands import markdown_lines
from vkops.interpreter.instructions import REFUSED
from vkops.shaders.features import CAPABILITIES, MODES, SUBGROUP

# -- commands --------------------------------------------------------------------------------------

_WIDTH = 80


def _commands(
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
            subcommand = command.get_command(context, child)
            assert subcommand is not None
            yield from _commands(subcommand, context, child, described)


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


# -- capabilities of shaders -----------------------------------------------------------------------

_PLACES = {"Int64Atomics": ("Buffer", "Shared"), "ShaderClockKHR": ("Subgroup", "Device")}


def _table(kind: str, needs: Mapping[str, str]) -> Iterator[str]:
    yield f"| {kind} | needs |"
    yield "|---|---|"
    for name, template in needs.items():
        if name in SUBGROUP:
            needed = f"operations of subgroups: {SUBGROUP[name]}"
        elif kind == "Mode":
            needed = " or ".join(sorted({f"`{template.format(bits)}`" for bits in (16, 32, 64)}))
        else:
            places = _PLACES.get(name, ("Buffer", "Shared"))
            needed = " or ".join(dict.fromkeys(f"`{template.format(place)}`" for place in places))
        yield f"| {name} | {needed if template or name in SUBGROUP else 'nothing'} |"


_NEWER = {
    "integer dot products": ("DotProduct", "DotProductInputAll", "DotProductInput4x8Bit",
                             "DotProductInput4x8BitPacked"),
    "bfloat16": ("BFloat16TypeKHR", "BFloat16DotProductKHR", "BFloat16CooperativeMatrixKHR"),
    "floats of 8 bits": ("Float8EXT", "Float8CooperativeMatrixEXT"),
    "untyped pointers": ("UntypedPointersKHR",),
    "fused multiply and add (`OpFmaKHR`)": ("FMAKHR",),
    "split barriers": ("SplitBarrierEXT",),
    "long vectors": ("LongVectorEXT",),
    "64-bit indices": ("Shader64BitIndexingEXT",),
    "cooperative matrices": ("CooperativeMatrixKHR",),
    "ray queries, acceleration structures": ("RayQueryKHR",),
    "storage images with several samples": ("StorageImageMultisample", "ImageMSArray"),
}  # fmt: skip
"""Extensions of SPIR-V that compilers write, and their capabilities."""


def _newer() -> Iterator[str]:
    yield "| Extension | capabilities | |"
    yield "|---|---|---|"
    for name, capabilities in _NEWER.items():
        known = {each in CAPABILITIES for each in capabilities}
        assert len(known) == 1, name
        status = "runs" if known == {True} else "is refused by name"
        yield f"| {name} | {', '.join(capabilities)} | {status} |"
    yield ""
    yield "Of the instructions that these enable, `vkops debug check` refuses by name those of"
    yield "derivatives, of depth comparisons and of fragment shaders:"
    yield f"{', '.join(sorted(f'`Op{each}`' for each in REFUSED))}."


# -- names of other libraries ----------------------------------------------------------------------

_IN_VKOPS = {"Philox": vkops.kernels.random.Philox} | {
    kind: getattr(vkops, kind)
    for places in public_names.LIBRARIES.values()
    for kind in places.values()
    if hasattr(vkops, kind)
}
_TITLES = {"cupy": "CuPy", "pyopencl": "PyOpenCL", "wgpu": "wgpu", "kp": "Kompute"}


def _other_names() -> Iterator[str]:
    """Yield a section for each library: its names that are in the table, with what to use."""
    used: dict[str, dict[str, dict[str, None]]] = {library: {} for library in _TITLES}
    versions = {}
    for library, versions[library], place, kind, names in public_names.read():
        for name in names:
            row = row_of(name, of_module=kind == "vkops")
            if row is not None and not hasattr(_IN_VKOPS.get(kind, vkops), name):
                instead = table()[row].replace("{name}", "NAME")
                shown = f"{place.removeprefix(f'{library}.')}.{name}" if place != library else name
                used[library].setdefault(instead, {})[shown] = None
    for library, title in _TITLES.items():
        yield f"## {title} {versions[library]}\n"
        yield "| Instead of | use |"
        yield "|---|---|"
        for instead in dict.fromkeys(table().values()):
            instead = instead.replace("{name}", "NAME")
            if names := list(used[library].get(instead, ())):
                yield f"| {', '.join(f'`{name}`' for name in names)} | {instead} |"
        yield ""


PARTS: Mapping[str, Callable[[], str]] = {
    "rules": lambda: "\n".join(markdown_lines()),
    "commands": lambda: "\n".join(_commands(app, None, "vkops", {})),
    "capabilities": lambda: "\n".join(
        [*_table("Capability", CAPABILITIES), "", *_table("Mode", MODES), "", *_newer()]
    ),
    "other_names": lambda: "\n".join(_other_names()),
}


def expanded(text: str) -> str:
    """Return the text of a page with its generated parts."""
    for name, part in PARTS.items():
        if f"\n{{{name}}}\n" in text:
            text = text.replace(f"\n{{{name}}}\n", f"\n{part()}\n")
    return text
