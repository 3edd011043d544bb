"""Options that several commands have, and the conversion of their values."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import click

from vkops.errors import ModelError

if TYPE_CHECKING:
    from vkops.dml import FeatureLevel
    from vkops.dxdispatch.json_model import Overrides

F = TypeVar("F", bound=Callable[..., Any])

_MAX_DIGITS = 19  # of sizes; Python refuses to convert integers of more than 4,300 digits
MAX_INT = 2**31 - 1

Texts = tuple[str, ...]
"""The values of an option that can be given several times."""

COMPLETE = "_VKOPS_COMPLETE"
"""The variable in which a shell asks to complete a command line, see ``vkops completion``."""

FILE = click.Path(path_type=Path)
FOLDER = click.Path(path_type=Path, file_okay=False)


def flag(*names: str, help: str) -> Callable[[F], F]:
    """Return an option without a value."""
    return click.option(*names, is_flag=True, help=help)


def texts(*names: str, metavar: str, help: str) -> Callable[[F], F]:
    """Return an option that can be given several times, such as texts or [NAME:]FILE."""
    kind = click.Path() if "FILE" in metavar else click.STRING  # shells complete paths
    return click.option(*names, multiple=True, type=kind, metavar=metavar, help=help)


def number(
    *names: str,
    minimum: int = 0,
    maximum: int | None = None,
    default: int | None = None,
    help: str,
) -> Callable[[F], F]:
    """Return an option whose value is an integer in a range."""
    kind = click.IntRange(minimum, maximum)
    return click.option(*names, type=kind, default=default, metavar="N", help=help)


model = click.argument("model", type=click.Path())
level = click.option(
    "--dml_feature_level",
    metavar="LEVEL",
    default="5.0",
    help="DirectML feature level, 1.0 to 6.4.",
)
input_path = click.option(
    "--input_path",
    type=FOLDER,
    metavar="FOLDER",
    help="Folder of sourcePath files; the model's folder by default.",
)
output_path = click.option(
    "--output_path",
    type=FOLDER,
    metavar="FOLDER",
    help="Folder of targetPath files; the current folder by default.",
)
allow_paths = flag("--allow_paths", help="Let the model name files outside of its own folders.")
strict = flag("--strict", help="Refuse a model that gives warnings, such as unknown fields.")
free_names = texts(
    "-f",
    "--onnx_free_dim_name_override",
    metavar="NAME:SIZE",
    help="Set the size of a free dimension of an ONNX model; it is 1 by default.",
)
free_denotations = texts(
    "-F",
    "--onnx_free_dim_denotation_override",
    metavar="DENOTATION:SIZE",
    help="Set the size of all free dimensions with a denotation.",
)
shapes = texts("-b", "--binding_shape", metavar="TENSOR:SHAPE", help="Set a shape, such as x:5,2.")
adapter = click.option(
    "-a",
    "--adapter",
    default="",
    show_default=False,
    metavar="TEXT",
    help="Use the first adapter whose name contains this text.",
)
expect = click.option(
    "--expect",
    metavar="lavapipe|gpu|NAME",
    help="Fail if the adapter is another one; the default is VKOPS_EXPECT.",
)
debug = flag("-d", "--debug", help="Use Vulkan's validation layer.")
iterations = number("-i", "--dispatch_iterations", default=1, help="How often to dispatch.")
flat = flag("--flat", help="Print the values of a tensor in one line, as DxDispatch does.")
as_json = flag("--json", "as_json", help="Print JSON for programs.")


def overrides(names: Texts, denotations: Texts, shapes: Texts) -> Overrides:
    """Return the sizes and shapes that the options give an ONNX model."""
    from vkops.dxdispatch.json_model import Overrides

    return Overrides(
        dict(_named_size(text, "NAME:SIZE") for text in names),
        dict(_named_size(text, "DENOTATION:SIZE") for text in denotations),
        dict(_named_shape(text) for text in shapes),
    )


def _named_size(text: str, form: str) -> tuple[str, int]:
    name, _, size = text.rpartition(":")
    if not name or not _is_size(size):
        raise ModelError(f"got {text!r}, must be {form}, such as N:5")
    return name, int(size)


def _named_shape(text: str) -> tuple[str, tuple[int, ...]]:
    name, _, sizes = text.rpartition(":")
    numbers = sizes.split(",") if sizes else []
    if not name or not all(map(_is_size, numbers)):
        raise ModelError(f"got {text!r}, must be TENSOR:SHAPE, such as x:5,2")
    return name, tuple(map(int, numbers))


def _is_size(text: str) -> bool:
    return text.isdecimal() and len(text) <= _MAX_DIGITS


def feature_level(text: str) -> FeatureLevel:
    """Return the feature level of a name such as 5.0 or 5_0."""
    from vkops.dml import FeatureLevel

    names = {str(level).replace("_", "."): level for level in FeatureLevel}
    one_of("--dml_feature_level", text.replace("_", "."), *names)
    return names[text.replace("_", ".")]


def help_without_command(context: click.Context) -> None:
    """Print the help of a group of commands, if none of them was given."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


def one_of(option: str, value: str, *allowed: str) -> None:
    """Refuse a value that is not allowed."""
    if value not in allowed:
        refuse(option, f"got '{value}', allowed {', '.join(allowed)}")


def integer(option: str, text: str) -> int:
    """Return an integer, written in any base that Python has."""
    try:
        return int(text, 0)
    except ValueError:
        refuse(option, f"got '{text}', must be an integer")


def refuse(option: str, message: str) -> NoReturn:
    """Raise the error for the value of an option."""
    raise click.BadParameter(message, param_hint=f"'{option}'") from None
