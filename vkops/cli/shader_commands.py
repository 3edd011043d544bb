"""``vkops shader``: build, inspect and run kernels and other shaders."""

from __future__ import annotations

from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

import vkops
from vkops.cli import options
from vkops.errors import ShaderCompileError, printable

if TYPE_CHECKING:
    from vkops.shaders import Number

app = typer.Typer(help="Build, inspect and run shaders: the kernels of vkops, and your own.")

Source = Annotated[
    str, Argument(metavar="SHADER", help="A .comp or .spv file, or a kernel's name.")
]
Defines = Annotated[options.Texts, Option("-D", metavar="NAME[=VALUE]", help="Define a macro.")]
Includes = Annotated[
    list[Path] | None, Option("-I", metavar="FOLDER", help="Folder of included files.")
]
Constants = Annotated[
    options.Texts, Option("--spec", metavar="NAME=VALUE", help="Set a specialization constant.")
]


@app.command("list")
def list_() -> None:
    """List the kernels, their sizes, and what they use of the device."""
    from vkops import shaders
    from vkops.runner import console
    from vkops.shaders.module import Module

    table = console.table(f"Kernels, from {shaders.source_dir()}")
    table.add_column("Kernel", no_wrap=True)
    table.add_column("Source", overflow="fold")
    for heading in ("Bytes", "Code", "Loops", "Buffers", "Group", "Shared"):
        table.add_column(heading, justify="right", no_wrap=True)
    for name, variant in shaders.VARIANTS.items():
        module = Module.read(shaders.spirv(name), name)
        table.add_row(
            name,
            " ".join([variant.source, *(f"{key}={n}" for key, n in variant.defines.items())]),
            f"{len(module.spirv):,}",
            str(module.instructions),
            str(module.loops),
            str(len(module.blocks)),
            str(prod(module.local_size)),
            str(module.shared_nbytes),
        )
    table.caption = "Code: instructions; Group: invocations of a workgroup; Shared: bytes"
    console.show(table)


@app.command()
def build(
    shader: Source,
    output: Annotated[
        Path | None, Option("-o", "--output", help="File to write; NAME.spv by default.")
    ] = None,
    define: Defines = None,
    include: Includes = None,
    debug: Annotated[bool, Option("-g", help="Include source lines.")] = False,
) -> None:
    """Compile a shader to SPIR-V, check it, and print what it declares and uses."""
    from vkops import shaders
    from vkops.runner.output_files import write_output
    from vkops.shaders.listing import describe
    from vkops.shaders.module import Module

    name, spirv = _spirv(shader, define, include, debug=debug)
    shaders.validate(spirv)
    target = Path(f"{Path(name).stem}.spv") if output is None else output
    write_output(target, [spirv])
    typer.echo(printable(f"{shader} built to '{target}'"))
    facts = describe(Module.read(spirv, shader))
    width = max(len(heading) for heading, _ in facts)
    for heading, text in facts:
        typer.echo(printable(f"{heading:<{width}}  {text}"))


@app.command()
def disasm(shader: Source, define: Defines = None, include: Includes = None) -> None:
    """Print a shader's SPIR-V as text, with the source lines above their instructions."""
    from vkops import shaders
    from vkops.shaders import sources
    from vkops.shaders.listing import listing

    _, spirv = _spirv(shader, define, include, debug=True)
    path = Path(shader)
    if shader in shaders.VARIANTS and not path.is_file():
        path = shaders.source_dir() / shaders.VARIANTS[shader].source
    # A .spv file may name any file as its source: none is opened for it.
    files = {} if path.suffix == ".spv" else sources.lines(path, include or ())
    typer.echo(listing(spirv, files))


@app.command()
def validate(shader: Source, define: Defines = None, include: Includes = None) -> None:
    """Check a shader with spirv-val, and that Kompute can run it on any device."""
    from vkops import shaders

    _, spirv = _spirv(shader, define, include)
    shaders.load(spirv, name=shader)
    typer.echo(printable(f"{shader} is valid"))


@app.command()
def diff(
    shader: Source,
    other: Annotated[
        str | None,
        Argument(metavar="OTHER", help="The shader to compare with; the same by default."),
    ] = None,
    define: Defines = None,
    to: Annotated[
        options.Texts, Option("--to", metavar="NAME[=VALUE]", help="Define a macro for OTHER only.")
    ] = None,
    include: Includes = None,
) -> None:
    """Compare two builds by their instructions; the exit status is 1 if they differ."""
    from vkops.shaders.listing import difference

    _, before = _spirv(shader, define, include)
    _, after = _spirv(other or shader, [*(define or ()), *(to or ())], include)
    labels = shader, " ".join([other or shader, *(f"-D{text}" for text in to or ())])
    lines = difference(before, after, labels)
    for line in lines:
        typer.echo(line)
    if lines:
        raise typer.Exit(1)
    typer.echo("No difference")


@app.command()
def run(
    shader: Source,
    bind: Annotated[
        options.Texts, Option(metavar="[BLOCK:]FILE.npy", help="Fill a block's buffer from a file.")
    ] = None,
    out: Annotated[
        options.Texts,
        Option(
            metavar="[BLOCK:]TYPE:COUNT",
            help="Print a block of zeros after the run; give only BLOCK if it has a file.",
        ),
    ] = None,
    groups: Annotated[
        str, Option(metavar="X[,Y[,Z]]", help="Number of workgroups to dispatch.")
    ] = "1",
    push: Annotated[
        str, Option(metavar="N,...", help="Push constants, in the order of their declaration.")
    ] = "",
    spec: Constants = None,
    define: Defines = None,
    include: Includes = None,
    output: Annotated[
        options.Texts,
        Option(metavar="[BLOCK:]FILE", help="Write blocks to .npy files, or all to a .npz file."),
    ] = None,
    dispatch_iterations: options.Iterations = 1,
    adapter: options.Adapter = "",
    expect: options.Expect = None,
    debug: options.Debug = False,
) -> None:
    """Run a compute shader on buffers, assigned to its blocks by name or in binding order."""
    from vkops import shaders
    from vkops.debug import dispatch_hooks
    from vkops.dxdispatch.shader_dispatchable import constant_key
    from vkops.runner import RunOptions, shader_files

    name, spirv = _spirv(shader, define, include, debug=True)
    pairs = (text.partition("=") for text in spec or ())
    constants = {constant_key(key): _number(f"--spec {key}", value) for key, _, value in pairs}
    loaded = shaders.load(spirv, constants=constants, name=name)
    given = shader_files.ShaderOptions(
        bind=bind or (),
        out=out or (),
        output=output or (),
        groups=[options.integer("--groups", text) for text in groups.split(",")],
        push=[_number("--push", text) for text in push.split(",") if text],
    )
    with (
        dispatch_hooks.from_environment() as around_dispatch,
        vkops.Device(adapter or None, debug=debug, expect=expect) as device,
    ):
        typer.echo(printable(f"Running on '{device.name}'"))
        run_options = RunOptions(dispatch_iterations, around_dispatch=around_dispatch)
        shader_files.run_shader(loaded, device, run_options, given)


def _spirv(
    shader: str,
    define: options.Texts,
    include: list[Path] | None,
    *,
    debug: bool = False,
) -> tuple[str, bytes]:
    """Return the name and SPIR-V of a shader in a file, or of a kernel."""
    from vkops import shaders
    from vkops.shaders.cache import is_spirv

    defines = {name: value for name, _, value in (text.partition("=") for text in define or ())}
    path = Path(shader)
    variant = shaders.VARIANTS.get(shader)
    if variant is not None and not path.is_file():
        return shader, variant.compile(defines=defines, debug=debug)
    if path.suffix not in (".comp", ".spv"):
        kernels = ", ".join(shaders.VARIANTS)
        raise ShaderCompileError(f"{shader}: must be a .comp or .spv file, or a kernel: {kernels}")
    settings = {"defines": defines, "include_dirs": include or (), "debug": debug}
    spirv = shaders.read(path, **settings, allow_paths=True)  # they are the user's own
    if not is_spirv(spirv):
        raise ShaderCompileError(f"{shader}: {len(spirv)} bytes that are not SPIR-V", file=shader)
    return path.name, spirv


def _number(option: str, text: str) -> Number:
    try:
        return {"true": 1, "false": 0}[text] if text in ("true", "false") else float(text)
    except ValueError:
        return options.integer(option, text)  # perhaps in hexadecimal
