"""``vkops shader``: build, inspect and run kernels and other shaders."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

import vkops
from vkops.cli import options
from vkops.errors import ShaderCompileError, printable

if TYPE_CHECKING:
    from vkops.shaders import Number


@click.group(invoke_without_command=True)
@click.pass_context
def shader(context: click.Context) -> None:
    """Build, inspect and run shaders.

    SHADER is a .comp or .spv file of your own, or the name of a kernel of vkops.
    """
    options.help_without_command(context)


_source = click.argument("source", metavar="SHADER", type=click.Path())
_define = options.texts("-D", "define", metavar="NAME[=VALUE]", help="Define a macro.")
_include = click.option(
    "-I",
    "include",
    multiple=True,
    type=options.FOLDER,
    metavar="FOLDER",
    help="Folder of included files.",
)


@shader.command("list")
def list_() -> None:
    """List the kernels of vkops.

    The list has their sizes, and what they use of a device.
    """
    from rich.table import Table

    from vkops import shaders
    from vkops.runner import console
    from vkops.shaders.module import Module

    table = Table(title=f"Kernels, from {shaders.source_dir()}", title_justify="left", box=None)
    table.pad_edge, table.padding = False, (0, 1, 0, 0)
    table.add_column("Kernel", no_wrap=True)
    table.add_column("Source")
    for heading in ("Bytes", "Code", "Loops", "Buffers"):
        table.add_column(heading, justify="right", no_wrap=True)
    for name, variant in shaders.VARIANTS.items():
        module = Module.read(shaders.spirv(name), name)
        table.add_row(
            name,
            " ".join(
                [Path(variant.source).stem, *(f"{k}={n}" for k, n in variant.defines.items())]
            ),
            f"{len(module.spirv):,}",
            str(module.instructions),
            str(module.loops),
            str(len(module.blocks)),
        )
    table.caption = "Code: instructions"
    console.show(table)


@shader.command()
@_source
@click.option(
    "-o",
    "--output",
    type=options.FILE,
    metavar="FILE",
    help="File to write; NAME.spv by default.",
)
@_define
@_include
@options.flag("-g", "debug", help="Include source lines.")
def build(
    source: str,
    output: Path | None,
    define: options.Texts,
    include: tuple[Path, ...],
    debug: bool,
) -> None:
    """Compile a shader to SPIR-V, and describe it.

    It is checked, too. The description is what it declares, and what it uses of a device.
    """
    from vkops import shaders
    from vkops.runner.output_files import write_output
    from vkops.shaders.listing import describe
    from vkops.shaders.module import Module

    name, spirv = _spirv(source, define, include, debug=debug)
    shaders.validate(spirv)
    target = Path(f"{Path(name).stem}.spv") if output is None else output
    write_output(target, [spirv])
    click.echo(printable(f"{source} built to '{target}'"))
    facts = describe(Module.read(spirv, source))
    width = max(len(heading) for heading, _ in facts)
    for heading, text in facts:
        click.echo(printable(f"{heading:<{width}}  {text}"))


@shader.command()
@_source
@_define
@_include
def disasm(source: str, define: options.Texts, include: tuple[Path, ...]) -> None:
    """Print a shader's SPIR-V as text.

    The lines of the source are above their instructions.
    """
    from vkops.shaders.listing import listing

    _, spirv = _spirv(source, define, include, debug=True)
    # A .spv file may name any file as its source: none is opened for it.
    click.echo(listing(spirv, read_files=Path(source).suffix != ".spv"))


@shader.command()
@_source
@_define
@_include
def validate(source: str, define: options.Texts, include: tuple[Path, ...]) -> None:
    """Check a shader with spirv-val.

    It must also be one that Kompute can run on any device.
    """
    from vkops import shaders

    _, spirv = _spirv(source, define, include)
    shaders.load(spirv, name=source)
    click.echo(printable(f"{source} is valid"))


@shader.command()
@_source
@click.argument("other", required=False, type=click.Path())
@_define
@options.texts("--to", metavar="NAME[=VALUE]", help="Define a macro for OTHER only.")
@_include
def diff(
    source: str,
    other: str | None,
    define: options.Texts,
    to: options.Texts,
    include: tuple[Path, ...],
) -> None:
    """Compare the instructions of two shaders.

    The exit status is 1 if they differ. Without OTHER, SHADER is compared with itself, built with
    the macros of --to.
    """
    from vkops.shaders.listing import difference

    _, before = _spirv(source, define, include)
    _, after = _spirv(other or source, (*define, *to), include)
    labels = source, " ".join([other or source, *(f"-D{text}" for text in to)])
    lines = difference(before, after, labels)
    for line in lines:
        click.echo(line)
    if lines:
        raise click.exceptions.Exit(1)
    click.echo("No difference")


@shader.command()
@_source
@options.texts("--bind", metavar="[BLOCK:]FILE.npy", help="Fill a block's buffer from a file.")
@options.texts(
    "--out",
    metavar="[BLOCK:]TYPE:COUNT",
    help="Print a block of zeros after the run; give only BLOCK if it has a file.",
)
@click.option(
    "--groups", default="1", metavar="X[,Y[,Z]]", help="Number of workgroups to dispatch."
)
@click.option(
    "--push",
    default="",
    show_default=False,
    metavar="N,...",
    help="Push constants, in the order of their declaration.",
)
@options.texts("--spec", metavar="NAME=VALUE", help="Set a specialization constant.")
@_define
@_include
@options.texts(
    "--output",
    metavar="[BLOCK:]FILE",
    help="Write blocks to .npy files, or all to a .npz file.",
)
@options.flat
@options.iterations
@options.adapter
@options.expect
@options.debug
def run(
    source: str,
    bind: options.Texts,
    out: options.Texts,
    groups: str,
    push: str,
    spec: options.Texts,
    define: options.Texts,
    include: tuple[Path, ...],
    output: options.Texts,
    flat: bool,
    dispatch_iterations: int,
    adapter: str,
    expect: str | None,
    debug: bool,
) -> None:
    """Run a compute shader on buffers.

    The buffers are assigned to the shader's blocks by name, or in the order of the bindings.
    """
    from vkops import shaders
    from vkops.debug import dispatch_hooks
    from vkops.dxdispatch.shader_dispatchable import constant_key
    from vkops.runner import shader_files
    from vkops.runner.dispatch_timing import RunOptions

    name, spirv = _spirv(source, define, include, debug=True)
    pairs = (text.partition("=") for text in spec)
    constants = {constant_key(key): _number(f"--spec {key}", value) for key, _, value in pairs}
    loaded = shaders.load(spirv, constants=constants, name=name)
    given = shader_files.ShaderOptions(
        bind=bind,
        out=out,
        output=output,
        groups=[options.integer("--groups", text) for text in groups.split(",")],
        push=[_number("--push", text) for text in push.split(",") if text],
    )
    with (
        dispatch_hooks.from_environment() as around_dispatch,
        vkops.Device(adapter or None, debug=debug, expect=expect) as device,
    ):
        click.echo(printable(f"Running on '{device.name}'"))
        run_options = RunOptions(dispatch_iterations, flat=flat, around_dispatch=around_dispatch)
        shader_files.run_shader(loaded, device, run_options, given)


def _spirv(
    shader: str,
    define: options.Texts,
    include: tuple[Path, ...],
    *,
    debug: bool = False,
) -> tuple[str, bytes]:
    """Return the name and SPIR-V of a shader in a file, or of a kernel."""
    from vkops import shaders
    from vkops.shaders.cache import is_spirv

    defines = {name: value for name, _, value in (text.partition("=") for text in define)}
    path = Path(shader)
    variant = shaders.VARIANTS.get(shader)
    if variant is not None and not path.is_file():
        return shader, variant.compile(defines=defines, debug=debug)
    if path.suffix not in (".comp", ".spv"):
        kernels = ", ".join(shaders.VARIANTS)
        raise ShaderCompileError(f"{shader}: must be a .comp or .spv file, or a kernel: {kernels}")
    settings = {"defines": defines, "include_dirs": include, "debug": debug}
    spirv = shaders.read(path, **settings, allow_paths=True)  # they are the user's own
    if not is_spirv(spirv):
        raise ShaderCompileError(f"{shader}: {len(spirv)} bytes that are not SPIR-V", file=shader)
    return path.name, spirv


def _number(option: str, text: str) -> Number:
    try:
        return {"true": 1, "false": 0}[text] if text in ("true", "false") else float(text)
    except ValueError:
        return options.integer(option, text)  # perhaps in hexadecimal
