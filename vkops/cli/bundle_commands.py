"""``vkops shader bundle`` and ``vkops warm``: run a program, and record its shaders."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from vkops.cli import options, targets
from vkops.errors import ShaderCompileError, printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vkops.shaders.recorded_shaders import Record


@click.command(context_settings=targets.FORWARDS)
@targets.target
@options.file("-o", "--output", required=True, metavar="FILE.zip", help="File to write.")
@click.pass_context
def bundle(context: click.Context, target: str, output: Path) -> None:
    """Run a program, and write the shaders that it uses.

    TARGET is a Python program (.py), a model (.json, .onnx), a shader (.comp, .hlsl, .slang, .spv)
    or any other program, with its arguments. Arguments behind `--` are never options of this
    command. vkops.use_bundle(FILE.zip), or VKOPS_BUNDLE=FILE.zip, takes the shaders from the file
    where there are no compilers. They are those of this run on this device: another device may need
    others. If the program fails, nothing is written.
    """
    from vkops.runner.recorded_run import bundled
    from vkops.shaders import bundle_file

    shaders = bundled(_records(context, target))
    bundle_file.write(output, shaders)
    nbytes = output.stat().st_size
    click.echo(printable(f"{_shaders(len(shaders))} written to '{output}' ({nbytes:,} bytes)"))


@click.command(context_settings=targets.FORWARDS)
@targets.target
@click.pass_context
def warm(context: click.Context, target: str) -> None:
    """Run a program, so that its shaders are in the cache.

    TARGET is that of `vkops shader bundle`. The cache is that of this user, on this machine, or
    VKOPS_CACHE_DIR.
    """
    records = _records(context, target)
    modules = {record.spirv for record in records}
    seconds = [record.seconds for record in records if record.seconds]
    compiled = f"{len(seconds)} compiled in {sum(seconds):.1f} s" if seconds else "none compiled"
    click.echo(f"{_shaders(len(modules))}, {compiled}; all are in the cache")


def list_shaders(file: str) -> None:
    """Print the shaders of a bundle."""
    from vkops import console
    from vkops.shaders.bundle_file import read

    shaders = read(file, "list", "FILE.zip")
    rows = [
        (entry.name, entry.spirv[:16], ", ".join(entry.features), entry.vulkan, f"{len(spirv):,}")
        for entry, spirv in sorted(shaders.items())
    ]
    versions = ", ".join(sorted({entry.vkops for entry in shaders}))
    title = f"{_shaders(len(shaders))} in {file}, of vkops {versions}"
    texts, numbers = ("Shader", "SPIR-V", "Features"), ("Vulkan", "Bytes")
    console.show(console.figures(texts, numbers, rows, title=console.bounded(title)))


def _records(context: click.Context, target: str) -> Sequence[Record]:
    """Run a program, and return the shaders that it used; end if it fails, or used none."""
    from vkops.runner import recorded_run

    done = recorded_run.run(targets.command(target, context.args, any_program=True))
    targets.end(target, done.status)  # which a program that failed has explained
    if not done.records:
        raise ShaderCompileError(f"{target}: the program used no shaders of vkops")
    return done.records


def _shaders(count: int) -> str:
    return f"{count} shader{'s' * (count != 1)}"
