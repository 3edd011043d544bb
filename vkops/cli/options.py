"""Options that several commands have, and the conversion of their values."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial, reduce, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import click

if TYPE_CHECKING:
    from vkops.dml import FeatureLevel

F = TypeVar("F", bound=Callable[..., Any])

_SIZE = re.compile(r"\d{1,19}")  # Python refuses to convert integers of more than 4,300 digits
MAX_INT = 2**31 - 1

OptionValues = tuple[str, ...]
"""The values of an option that can be given several times."""

COMPLETE = "_VKOPS_COMPLETE"
"""The variable in which a shell asks to complete a command line, see ``vkops completion``."""

FOLDER = click.Path(path_type=Path, file_okay=False)


def flag(*names: str, help: str) -> Callable[[F], F]:
    """Return an option without a value."""
    return click.option(*names, is_flag=True, help=help)


def file(*names: str, metavar: str = "FILE", help: str, required: bool = False) -> Callable[[F], F]:
    """Return an option whose value is the path of a file."""
    kind = click.Path(path_type=Path)
    return click.option(*names, type=kind, metavar=metavar, required=required, help=help)


def text(*names: str, metavar: str, help: str) -> Callable[[F], F]:
    """Return an option whose value is a text, empty by default."""
    return click.option(*names, default="", show_default=False, metavar=metavar, help=help)


class _Renamed(click.Option):
    """An option that also has the name that it had before, which its help does not show."""

    def __init__(self, *args: Any, old: str, **others: Any) -> None:
        self.old = old
        super().__init__(*args, **others)

    def add_to_parser(self, parser: Any, ctx: click.Context) -> None:
        super().add_to_parser(parser, ctx)
        action = "append" if self.multiple else "store"
        parser.add_option(self, [self.old], self.name, action=action, nargs=self.nargs)


def texts(*names: str, metavar: str, help: str, old: str = "") -> Callable[[F], F]:
    """Return an option that can be given several times, such as texts or [NAME:]FILE."""
    kind = click.Path() if "FILE" in metavar else click.STRING  # shells complete paths
    renamed: dict[str, Any] = {"cls": _Renamed, "old": old} if old else {}
    return click.option(*names, multiple=True, type=kind, metavar=metavar, help=help, **renamed)


def number(
    *names: str, minimum: int = 0, maximum: int | None = None, default: int | None = None, help: str
) -> Callable[[F], F]:
    """Return an option whose value is an integer in a range."""
    kind = click.IntRange(minimum, maximum)
    return click.option(*names, type=kind, default=default, metavar="N", help=help)


def feature_level(_: click.Context, __: click.Parameter, text: str) -> FeatureLevel:
    """Return the feature level of a name such as 5.0 or 5_0."""
    from vkops.dml import FeatureLevel

    names = {str(level).replace("_", "."): level for level in FeatureLevel}
    one_of("--dml_feature_level", text.replace("_", "."), *names)
    return names[text.replace("_", ".")]


model = click.argument("model", type=click.Path())
level = click.option(
    "--dml_feature_level",
    "feature_level",
    metavar="LEVEL",
    callback=feature_level,
    default="5.0",
    help="DirectML feature level, 1.0 to 6.4.",
)
_folder = partial(click.option, type=FOLDER, metavar="FOLDER")
input_path = _folder(
    "--input_path", help="Folder of sourcePath files; the model's folder by default."
)
output_path = _folder(
    "--output_path", help="Folder of targetPath files; the current folder by default."
)
includes = _folder("-I", "include", multiple=True, help="Folder of included files.")
allow_paths = flag("--allow_paths", help="Let the model name files outside of its own folders.")
strict = flag("--strict", help="Refuse a model that gives warnings, such as unknown fields.")
adapter = text(
    "-a", "--adapter", metavar="TEXT", help="Use the first adapter whose name contains this text."
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
cache = number(
    "--cache", minimum=1, default=1024, help="Size of the GPU's cache in KiB, for --traffic."
)


_OVERRIDES = (
    texts(
        "-f",
        "--onnx_free_dim_name_override",
        "names",
        metavar="NAME:SIZE",
        help="Set the size of a free dimension of an ONNX model; it is 1 by default.",
    ),
    texts(
        "-F",
        "--onnx_free_dim_denotation_override",
        "denotations",
        metavar="DENOTATION:SIZE",
        help="Set the size of all free dimensions with a denotation.",
    ),
    texts(
        "-b",
        "--binding_shape",
        "shapes",
        metavar="TENSOR:SHAPE",
        help="Set a shape, such as x:5,2.",
    ),
)


def overrides(command: F) -> F:
    """Add the options for the sizes and shapes of ONNX models, as the argument ``overrides``."""

    @wraps(command)
    def called(
        *args: Any,
        names: OptionValues,
        denotations: OptionValues,
        shapes: OptionValues,
        **others: Any,
    ) -> Any:
        overrides = None
        if names or denotations or shapes:
            from vkops.onnx.free_dimensions import Overrides

            overrides = Overrides(
                _named_sizes("-f", names, "NAME:SIZE", "N:5"),
                _named_sizes("-F", denotations, "DENOTATION:SIZE", "N:5"),
                _named_sizes("-b", shapes, "TENSOR:SHAPE", "x:5,2"),
            )
        return command(*args, overrides=overrides, **others)

    return all_of(*_OVERRIDES)(called)  # type: ignore[return-value]


def all_of(*decorators: Callable[[F], F]) -> Callable[[F], F]:
    """Return a decorator that adds several options."""
    return lambda command: reduce(
        lambda decorated, decorator: decorator(decorated), decorators[::-1], command
    )


def _named_sizes(option: str, texts: OptionValues, form: str, example: str) -> dict[str, Any]:
    """Return the size of each name, or its shape if ``form`` ends in SHAPE."""
    named: dict[str, Any] = {}
    for text in texts:
        name, _, sizes = text.rpartition(":")
        numbers = sizes.split(",") if sizes else []
        is_shape = form.endswith("SHAPE")
        if not (name and (is_shape or len(numbers) == 1) and all(map(_SIZE.fullmatch, numbers))):
            refuse(option, f"got '{text}', must be {form}, such as {example}")
        named[name] = tuple(map(int, numbers)) if is_shape else int(sizes)
    return named


def help_without_command(context: click.Context) -> None:
    """Print the help of a group of commands, if none of them was given."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


def one_of(option: str, value: str, *allowed: str) -> None:
    """Refuse a value that is not allowed."""
    if value not in allowed:
        refuse(option, f"got '{value}', must be {', '.join(allowed)}")


def integer(option: str, text: str) -> int:
    """Return an integer, written in any base that Python has."""
    try:
        return int(text, 0)
    except ValueError:
        refuse(option, f"got '{text}', must be an integer")


def refuse(option: str, message: str) -> NoReturn:
    """Raise the error for the value of an option."""
    raise click.BadParameter(message, param_hint=f"'{option}'") from None
