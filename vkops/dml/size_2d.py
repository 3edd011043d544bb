"""Width and height, the value of a field of UPSAMPLE_2D."""

from __future__ import annotations

from dataclasses import dataclass

from vkops.arguments.values import Place, integer


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
