"""``vkops shader``: build, inspect and run kernels and other shaders."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import vkops
from vkops.cli import bundle_commands, options
from vkops.errors import InvalidDescError, ShaderCompileError, printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from vkops.runner.shader_bindings import NumberValues
    from vkops.shaders import Shader


@click.group(invoke_without_command=True)
@click.pass_context
def shader(context: click.Context) -> None:
    """Build, inspect and run shaders.

    SHADER is a .comp, .hlsl, .slang or .spv file of your own, or the name of a kernel of vkops.
    """
    options.help_without_command(context)


shader.add_command(bundle_commands.bundle)
source = click.argument("source", metavar="SHADER", type=click.Path())
_define = options.texts("-D", "define", metavar="NAME[=VALUE]", help="Define a macro.")
_entry = click.option(
    "-e", "--entry", default="main", metavar="NAME", help="Entry point; that of GLSL is main."
)
settings = options.all_of(_define, options.includes, _entry)  # those of ``_spirv``
threads = click.option(
    "--threads",
    metavar="X[,Y[,Z]]",
    help="Numbers of invocations instead, rounded up to whole workgroups.",
)
bind = options.texts(
    "--bind",
    old="--buffer",
    metavar="[BLOCK=]FILE|BYTES|TYPE:SHAPE",
    help="Fill a block's buffer or image from a .npy, .png or .jpg file, or several from a .npz; "
    "or give its size, or zeros, such as float32:4x6.",
)
push = options.texts(
    "--push",
    metavar="[NAME=]N,...",
    help="Push constants by name, or in the order of their declaration.",
)
constant = options.texts(
    "--constant", old="--spec", metavar="NAME=VALUE", help="Set a specialization constant."
)


@contextmanager
def named_options() -> Iterator[None]:
    """Let errors name options, not the arguments of functions."""
    try:
        yield
    except InvalidDescError as error:
        field, _, part = error.field.partition(".")
        named = {"push_constants": "--push", "constants": "--constant"}
        option = {**named, "schedule": "--schedule"}.get(field)
        if option is None:
            raise
        name = f"{option} {part}".rstrip()
        raise InvalidDescError(error.operator, name, error.message, error.rule) from None


@shader.command("list")
@click.argument("bundle", metavar="[FILE.zip]", required=False, type=click.Path())
def list_(bundle: str | None) -> None:
    """List the kernels of vkops, or the shaders of a bundle.

    Kernels have their sizes, and shaders what they need of a device.
    """
    from vkops import console, shaders
    from vkops.shaders.module import Module

    if bundle is not None:
        bundle_commands.list_shaders(bundle)
        return
    title = f"Kernels, from {shaders.source_dir()}"
    headings = ("Bytes", "Code", "Loops", "Buffers")
    rows = []
    for name, variant in shaders.VARIANTS.items():
        module = Module.read(shaders.spirv(name), name)
        defines = (f"{key}={value}" for key, value in variant.defines.items())
        numbers = module.instructions, module.loops, len(module.blocks)
        source = " ".join([Path(variant.source).stem, *defines])
        rows.append((name, source, f"{len(module.spirv):,}", *map(str, numbers)))
    table = console.figures(("Kernel", "Source"), headings, rows, title=title)
    table.caption = "Code: instructions"
    console.show(table)


@shader.command()
@source
@options.file("-o", "--output", help="File to write; NAME.spv by default.")
@settings
@options.flag("-g", "debug", help="Include source lines.")
def build(source: str, output: Path | None, **settings: Any) -> None:
    """Compile a shader to SPIR-V, check and describe it.

    The description has its declarations, and what it needs of a device.
    """
    from vkops.shaders.compiler import validated
    from vkops.shaders.listing import describe
    from vkops.shaders.module import Module
    from vkops.system.output_files import write_output

    name, spirv = _spirv(source, **settings)
    validated(spirv, source)
    module = Module.read(spirv, source, settings["entry"])
    target = Path(f"{Path(name).stem}.spv") if output is None else output
    write_output(target, [spirv])
    click.echo(printable(f"{source} built to '{target}'"))
    facts = describe(module)
    width = max(len(heading) for heading, _ in facts)
    for heading, text in facts:
        click.echo(printable(f"{heading:<{width}}  {text}"))


@shader.command()
@source
@settings
def disasm(source: str, **settings: Any) -> None:
    """Print a shader's SPIR-V as text.

    The lines of the source are above their instructions.
    """
    from vkops.shaders.listing import listing

    _, spirv = _spirv(source, **settings, debug=True)
    # A .spv file may name any file as its source: none is opened for it.
    click.echo(listing(spirv, read_files=Path(source).suffix != ".spv"))


@shader.command()
@source
@settings
def validate(source: str, **settings: Any) -> None:
    """Check a shader with spirv-val.

    It must also be one that vkops can run, on a device with its features.
    """
    from vkops import shaders

    _, spirv = _spirv(source, **settings)
    shaders.load(spirv, name=source, entry=settings["entry"])
    click.echo(printable(f"{source} is valid"))


@shader.command()
@source
@click.argument("other", required=False, type=click.Path())
@_define
@options.texts("--to", metavar="NAME[=VALUE]", help="Define a macro for OTHER only.")
@options.includes
@_entry
def diff(
    source: str,
    other: str | None,
    define: options.OptionValues,
    to: options.OptionValues,
    **settings: Any,
) -> None:
    """Compare the instructions of two shaders.

    The exit status is 1 if they differ. Without OTHER, SHADER is compared with itself, built with
    the macros of --to.
    """
    from vkops.shaders.listing import difference

    _, before = _spirv(source, define, **settings)
    _, after = _spirv(other or source, (*define, *to), **settings)
    labels = source, " ".join([other or source, *(f"-D{text}" for text in to)])
    lines = difference(before, after, labels)
    for line in lines:
        click.echo(line)
    if lines:
        raise click.exceptions.Exit(1)
    click.echo("No difference")


@shader.command()
@click.argument("sources", metavar="[SHADER]...", nargs=-1, type=click.Path())
@click.option(
    "--gpu",
    default="navi31,navi21,vega10",
    metavar="NAME,...",
    help="AMD GPUs, by Mesa's names for them.",
)
@options.flag("--isa", help="Print the machine code too.")
@options.file("--json", help="Write the figures.")
@options.file("--baseline", help="Print what has changed since --json wrote this file.")
@options.flag("--fail-on-regression", help="Exit with 1 if a figure is worse by more than 5 %.")
@settings
def stats(
    sources: tuple[str, ...],
    gpu: str,
    isa: bool,
    json: Path | None,
    baseline: Path | None,
    fail_on_regression: bool,
    **settings: Any,
) -> None:
    """Print what a GPU's compiler makes of shaders.

    Mesa's driver for AMD GPUs compiles them; no GPU is needed, and nothing runs. Without SHADER,
    all kernels of vkops are compiled.
    """
    from vkops import console, shaders
    from vkops.debug import gpu_statistics
    from vkops.debug.driver_compiler import compile_for

    before = None if baseline is None else gpu_statistics.read(baseline)
    loaded = []
    for source in sources or tuple(shaders.VARIANTS):
        _, spirv = _spirv(source, **settings)
        loaded.append(shaders.load(spirv, name=printable(source), entry=settings["entry"]))
    compiled = {family: compile_for(family, loaded) for family in gpu.split(",")}
    figures: dict[str, dict[str, Mapping[str, float]]] = {}
    for family, each in compiled.items():
        programs = dict(zip([shader.name for shader in loaded], each.programs, strict=True))
        figures[family] = {name: program.figures for name, program in programs.items()}
        console.show(gpu_statistics.table(f"{family}: {each.gpu}, {each.driver}", figures[family]))
        for name, program in programs.items() if isa else ():
            click.echo(f"\n{printable(name)} on {family}:\n{program.machine_code}")
    if json is not None:
        gpu_statistics.write(json, figures)
    if before is not None:
        changed = [*gpu_statistics.changes(before, figures)]
        if changed:
            console.show(gpu_statistics.table_of_changes(changed))
        else:
            click.echo(f"No figure has changed since '{baseline}' was written")
        if fail_on_regression and any(change.is_worse for change in changed):
            raise click.exceptions.Exit(1)


@shader.command()
@source
@bind
@options.texts(
    "--out",
    metavar="[BLOCK:]TYPE:COUNT",
    help="Give a block zeros, and print it after the run; BLOCK alone prints one of --bind.",
)
@click.option(
    "--groups",
    metavar="X[,Y[,Z]]|BLOCK[:BYTE]",
    help="Numbers of workgroups, or the block whose buffer has them; 1 by default.",
)
@threads
@push
@constant
@settings
@options.texts(
    "--output",
    metavar="[BLOCK:]FILE",
    help="Write blocks to .npy, .png or .jpg files, or all to a .npz file.",
)
@options.flat
@options.iterations
@options.adapter
@options.expect
@options.debug
@named_options()
def run(
    source: str,
    groups: str | None,
    threads: str | None,
    push: options.OptionValues,
    constant: options.OptionValues,
    flat: bool,
    dispatch_iterations: int,
    adapter: str,
    expect: str | None,
    debug: bool,
    **arguments: Any,
) -> None:
    """Run a compute shader on buffers and images.

    They are assigned to the shader's blocks by name, or in the order of the bindings. An image has
    the shape of its array, rows first, with up to 4 channels; a picture needs vkops[pictures].
    """
    from vkops.debug import dispatch_hooks
    from vkops.runner import shader_files
    from vkops.runner.dispatch_timing import RunOptions

    shader_settings = {name: arguments.pop(name) for name in ("define", "include", "entry")}
    shader = loaded(source, constant, shader_settings)
    shader_options = shader_files.ShaderOptions(
        **arguments,
        groups=None if groups is None else _groups(groups),
        threads=None if threads is None else integers("--threads", threads),
        push=numbers("--push", push),
    )
    with (
        dispatch_hooks.from_environment() as around_dispatch,
        vkops.Device(adapter or None, debug=debug, expect=expect) as device,
    ):
        click.echo(printable(f"Running on '{device.name}'"))
        run_options = RunOptions(dispatch_iterations, flat=flat, around_dispatch=around_dispatch)
        shader_files.run_shader(shader, device, run_options, shader_options)


def _spirv(
    shader: str,
    define: options.OptionValues,
    include: tuple[Path, ...],
    entry: str,
    *,
    debug: bool = False,
) -> tuple[str, bytes]:
    """Return the name and SPIR-V of a shader in a file, or of a kernel."""
    from vkops import shaders
    from vkops.shaders.binary import is_spirv
    from vkops.shaders.foreign import check_file

    defines = {name: value for name, _, value in (text.partition("=") for text in define)}
    path = Path(shader)
    variant = shaders.VARIANTS.get(shader)
    if variant is not None and not path.is_file():
        return shader, variant.compile(defines=defines, debug=debug)
    check_file(path)
    if path.suffix not in (".comp", ".hlsl", ".slang", ".spv"):
        message = "must be a .comp, .hlsl, .slang or .spv file, or a kernel of `vkops shader list`"
        raise ShaderCompileError(f"{shader}: {message}")
    spirv = shaders.read(
        path, entry=entry, defines=defines, include=include, debug=debug, allow_paths=True
    )  # the files are the user's own
    if not is_spirv(spirv):
        raise ShaderCompileError(f"{shader}: {len(spirv)} bytes that are not SPIR-V", file=shader)
    return path.name, spirv


def _groups(text: str) -> list[int] | tuple[str, int]:
    """Return numbers, or a block and the byte of its buffer where the numbers are."""
    if text[:1].isdecimal() or text[:1] == "-":
        return integers("--groups", text)
    block, _, byte = text.partition(":")
    return block, options.integer("--groups", byte) if byte else 0


def loaded(source: str, constant: options.OptionValues, settings: Mapping[str, Any]) -> Shader:
    """Return the shader of a file or a kernel, with source lines and specialization constants."""
    from vkops import shaders
    from vkops.shaders.constants import constant_key

    name, spirv = _spirv(source, **settings, debug=True)
    given = numbers("--constant", constant) or {}
    if not isinstance(given, dict):
        options.refuse("--constant", f"got '{constant[0]}', must be NAME=VALUE")
    constants = {constant_key(key): value for key, value in given.items()}
    return shaders.load(spirv, constants=constants, name=name, entry=settings["entry"])


def numbers(option: str, texts: options.OptionValues) -> NumberValues:
    """Return numbers that commas separate, or those of each name."""
    from vkops.runner import shader_bindings

    try:
        return shader_bindings.numbers(texts)
    except ValueError as error:
        options.refuse(option, str(error))


def integers(option: str, text: str) -> list[int]:
    """Return integers that commas separate."""
    return [options.integer(option, number) for number in text.split(",")]
