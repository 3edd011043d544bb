"""The texts that shaders print with debugPrintfEXT."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from vkops.interpreter.findings import Invocation
from vkops.interpreter.observer import Observer
from vkops.interpreter.operations import Array

CONVERSION = re.compile(
    r"%(?P<flags>[-+ #0]*\d{0,3}(?:\.\d{0,3})?)(?P<vector>v[234])?"
    r"(?:[ul]*(?P<letter>[dioxXeEfFgGaAs])|ul|[ul]*u)"
)
"""A conversion in a format of debugPrintfEXT, such as ``%d``."""


def conversions(form: str) -> list[re.Match[str]]:
    """Return the conversions in a format; each takes a value."""
    return [m for m in re.finditer(rf"%%|{CONVERSION.pattern}", form) if m[0] != "%%"]


def _formatted(flags: str, letter: str, value: Any) -> str:
    """Return a number or text as C prints it; an integer conversion of a float shows its bits."""
    if letter in "aA":
        text = float(value).hex()
        return f"%{flags.partition('.')[0]}s" % (text.upper() if letter == "A" else text)
    if letter in "diouxX" and isinstance(value, np.floating):
        value = value.view(f"u{value.itemsize}")
    return f"%{flags}{letter}" % (value if isinstance(value, str) else value.item())


class Printing(Observer):
    """Collects the texts, each with the invocation."""

    def __init__(self) -> None:
        self.texts: list[tuple[Invocation, str]] = []

    def printed(self, form: str, values: list[Array | str]) -> None:
        for number, who in enumerate(self.machine.active.who.tolist()):
            arguments = iter(
                [v if isinstance(v, str) else v[number if len(v) > 1 else 0] for v in values]
            )

            def text(match: re.Match[str], arguments: Any = arguments) -> str:
                value = None if match[0] == "%%" else next(arguments, None)
                letter = match["letter"] or "u"
                is_text = isinstance(value, str)
                if value is None or is_text != (letter == "s"):  # no value fits the conversion
                    return match[0].replace("%%", "%")
                parts = [value] if is_text else np.atleast_1d(value)
                return ", ".join(_formatted(match["flags"], letter, part) for part in parts)

            line = re.sub(rf"%%|{CONVERSION.pattern}", text, form)
            self.texts.append((self.machine.global_id(who), line))
