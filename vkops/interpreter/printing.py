"""The texts that shaders print with debugPrintfEXT."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from vkops.interpreter.findings import Invocation
from vkops.interpreter.observer import Observer
from vkops.interpreter.operations import Array

CONVERSION = re.compile(
    r"%(?P<flags>[-+ #0-9.]*)(?P<vector>v[234])?(?:[ul]*(?P<letter>[dioxXeEfFgGaA])|ul|[ul]*u)"
)
"""A conversion in a format of debugPrintfEXT."""


class Printing(Observer):
    """Collects the texts, each with the invocation."""

    def __init__(self) -> None:
        self.texts: list[tuple[Invocation, str]] = []

    def printed(self, form: str, values: list[Array]) -> None:
        for number, who in enumerate(self.machine.active.who.tolist()):
            arguments = iter([v[number if len(v) > 1 else 0] for v in values])

            def text(match: re.Match[str], arguments: Any = arguments) -> str:
                value = None if match[0] == "%%" else next(arguments, None)
                if value is None:  # the format has more conversions than there are values
                    return match[0].replace("%%", "%")
                spec = f"%{match['flags']}{match['letter'] or 'u'}"
                return ", ".join(spec % part for part in np.atleast_1d(value).tolist())

            line = re.sub(rf"%%|{CONVERSION.pattern}", text, form)
            self.texts.append((self.machine.global_id(who), line))
