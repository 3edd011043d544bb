"""The scale and bias of ELEMENT_WISE_IDENTITY, which vkops refuses."""

from __future__ import annotations

from dataclasses import dataclass

from vkops.arguments.values import Place


@dataclass(frozen=True)
class ScaleBias:
    """Multiply by scale, then add bias; known, but refused by validation (IDENT-02).

    Source: DML_SCALE_BIAS.

    Raises:
        InvalidDescTypeError: scale or bias is not a number.
    """

    scale: float
    bias: float

    def __post_init__(self) -> None:
        for name in ("scale", "bias"):
            vars(self)[name] = _number(getattr(self, name), Place("", name, "IDENT-02"))


def _number(value: object, place: Place) -> float:
    if not isinstance(value, (bool, str, bytes, bytearray)):
        try:
            return float(value)  # type: ignore[arg-type]
        except Exception:
            pass
    raise place.wrong_kind(value, "a number")
