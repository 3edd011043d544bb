"""The scale and bias of ELEMENT_WISE_IDENTITY, which vkops refuses."""

from __future__ import annotations

from dataclasses import dataclass

from vkops.arguments.values import Place, float32


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
