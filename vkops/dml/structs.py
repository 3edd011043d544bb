"""DirectML's structures of two numbers, which are values of fields of descriptors."""

from __future__ import annotations

from dataclasses import dataclass

from vkops.arguments.values import Place, float32, integer


@dataclass(frozen=True)
class ScaleBias:
    """Multiply by scale, then add bias; known, but refused by validation (IDENT-02).

    Source: DML_SCALE_BIAS.

    Raises:
        InvalidDescError: scale or bias is not a number, or not one that 32 bits can hold.
    """

    scale: float
    bias: float

    def __post_init__(self) -> None:
        for name in ("scale", "bias"):
            vars(self)[name] = float32(getattr(self, name), Place("", name, "IDENT-02"))


@dataclass(frozen=True)
class Size2D:
    """Width and height.

    Source: DML_SIZE_2D.

    Raises:
        InvalidDescTypeError: width or height is not an integer.
    """

    width: int
    height: int

    def __post_init__(self) -> None:
        for name in ("width", "height"):
            vars(self)[name] = integer(getattr(self, name), Place("", name, "UPS-02"))
