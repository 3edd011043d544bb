"""Options that several commands have, and the conversion of their values."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

from typer import Argument, BadParameter, Option

from vkops.errors import ModelError

if TYPE_CHECKING:
    from vkops.dml import FeatureLevel
    from vkops.dxdispatch.json_model import Overrides

_MAX_DIGITS = 19  # of sizes; Python refuses to convert integers of more than 4,300 digits
MAX_INT = 2**31 - 1

Texts = list[str] | None

Model = Annotated[
    str, Argument(metavar="MODEL", help="A DxDispatch model (.json) or an ONNX model (.onnx).")
]
Level = Annotated[
    str, Option("--dml_feature_level", metavar="LEVEL", help="DirectML feature level, 1.0 to 6.4.")
]
InputPath = Annotated[
    Path | None,
    Option("--input_path", help="Folder of sourcePath files; the model's folder by default."),
]
OutputPath = Annotated[
    Path | None,
    Option("--output_path", help="Folder of targetPath files; the current folder by default."),
]
AllowPaths = Annotated[
    bool, Option("--allow_paths", help="Let the model name files outside of its own folders.")
]
Strict = Annotated[
    bool, Option("--strict", help="Refuse a model that gives warnings, such as unknown fields.")
]
FreeNames = Annotated[
    Texts,
    Option(
        "-f",
        "--onnx_free_dim_name_override",
        metavar="NAME:SIZE",
        help="Set the size of a free dimension of an ONNX model; it is 1 by default.",
    ),
]
FreeDenotations = Annotated[
    Texts,
    Option(
        "-F",
        "--onnx_free_dim_denotation_override",
        metavar="DENOTATION:SIZE",
        help="Set the size of all free dimensions with a denotation.",
    ),
]
Shapes = Annotated[
    Texts,
    Option("-b", "--binding_shape", metavar="TENSOR:SHAPE", help="Set a shape, such as x:5,2."),
]
Adapter = Annotated[
    str, Option("-a", "--adapter", help="Use the first adapter whose name contains this text.")
]
Expect = Annotated[
    str | None,
    Option(
        "--expect",
        metavar="lavapipe|gpu|NAME",
        help="Fail if the adapter is another one; the default is VKOPS_EXPECT.",
    ),
]
Debug = Annotated[bool, Option("-d", "--debug", help="Use Vulkan's validation layer.")]
Iterations = Annotated[
    int, Option("-i", "--dispatch_iterations", min=0, help="How often to dispatch and wait.")
]


def overrides(names: Texts, denotations: Texts, shapes: Texts) -> Overrides:
    """Return the sizes and shapes that the options give an ONNX model."""
    from vkops.dxdispatch.json_model import Overrides

    return Overrides(
        dict(_named_size(text, "NAME:SIZE") for text in names or ()),
        dict(_named_size(text, "DENOTATION:SIZE") for text in denotations or ()),
        dict(_named_shape(text) for text in shapes or ()),
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
    raise BadParameter(message, param_hint=f"'{option}'") from None
