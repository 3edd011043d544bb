"""Options that several commands have, and what becomes of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vkops.errors import ModelError

if TYPE_CHECKING:
    from vkops.dml import FeatureLevel
    from vkops.dxdispatch.onnx_overrides import Overrides

MODEL_HELP = "A DxDispatch model, .json, or an ONNX model, .onnx."
Model = Annotated[str | None, typer.Argument(metavar="MODEL", help=MODEL_HELP)]
Level = Annotated[
    str, typer.Option("--dml_feature_level", metavar="LEVEL", help="DirectML's, 1.0 to 6.4.")
]
InputPath = Annotated[
    Path | None,
    typer.Option("--input_path", help="Folder of sourcePath files; default: the model's."),
]
OutputPath = Annotated[
    Path | None,
    typer.Option("--output_path", help="Folder of targetPath files; default: the current one."),
]
AllowPaths = Annotated[
    bool,
    typer.Option("--allow_paths", help="Let the model name files outside of its own folders."),
]
Strict = Annotated[
    bool,
    typer.Option("--strict", help="Refuse a model that gives warnings, such as unknown fields."),
]
FreeNames = Annotated[
    list[str] | None,
    typer.Option(
        "-f",
        "--onnx_free_dim_name_override",
        metavar="NAME:SIZE",
        help="Size of a free dimension; 1 if left out.",
    ),
]
FreeDenotations = Annotated[
    list[str] | None,
    typer.Option(
        "-F",
        "--onnx_free_dim_denotation_override",
        metavar="DENOTATION:SIZE",
        help="The same, by denotation.",
    ),
]
Shapes = Annotated[
    list[str] | None,
    typer.Option(
        "-b", "--binding_shape", metavar="TENSOR:SHAPE", help="Shape of a tensor, such as x:5,2."
    ),
]
Adapter = Annotated[
    str, typer.Option("-a", "--adapter", help="Part of the adapter's name; first match.")
]
Expect = Annotated[
    str | None,
    typer.Option(
        "--expect",
        metavar="lavapipe|gpu|NAME",
        help="Fail if the adapter is another; default: what VKOPS_EXPECT says.",
    ),
]
Debug = Annotated[bool, typer.Option("-d", "--debug", help="Use Vulkan's validation layer.")]
Iterations = Annotated[
    int, typer.Option("-i", "--dispatch_iterations", min=0, help="Times to dispatch and wait.")
]
MAX_INT = 2**31 - 1
_MAX_DIGITS = 19  # of sizes; Python refuses to convert integers of more than 4,300 digits
Flag = Annotated[bool, typer.Option(hidden=True)]  # for Direct3D 12; accepted, without effect


def overrides(
    names: list[str] | None, denotations: list[str] | None, shapes: list[str] | None
) -> Overrides:
    """The sizes and shapes that the options of the same kind give an ONNX model."""
    from vkops.dxdispatch.onnx_overrides import Overrides

    return Overrides(
        dict(_pair(text, "NAME:SIZE") for text in names or ()),
        dict(_pair(text, "DENOTATION:SIZE") for text in denotations or ()),
        dict(_named_shape(text) for text in shapes or ()),
    )


def _pair(text: str, form: str) -> tuple[str, int]:
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
    """Whether a text is a size of as many digits as any tensor can have."""
    return text.isdecimal() and len(text) <= _MAX_DIGITS


def feature_level(text: str) -> FeatureLevel:
    """The feature level of that name, such as 5.0 or 5_0."""
    from vkops.dml import FeatureLevel

    names = {str(level).replace("_", "."): level for level in FeatureLevel}
    one_of("--dml_feature_level", text.replace("_", "."), *names)
    return names[text.replace("_", ".")]


def one_of(option: str, value: str, *allowed: str) -> None:
    """Refuse a value that is not allowed."""
    if value not in allowed:
        raise typer.BadParameter(
            f"got '{value}', allowed {', '.join(allowed)}", param_hint=f"'{option}'"
        )


def whole(option: str, text: str) -> int:
    """An integer, in any base that Python writes one in."""
    try:
        return int(text, 0)
    except ValueError:
        message = f"got '{text}', must be an integer"
        raise typer.BadParameter(message, param_hint=f"'{option}'") from None
