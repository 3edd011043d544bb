"""The checks for undefined results."""

from __future__ import annotations

from typing import Any

import numpy as np

from vkops.interpreter import operations
from vkops.interpreter.memory import Active
from vkops.interpreter.observer import Observer
from vkops.interpreter.operations import Array
from vkops.interpreter.program import Decoded
from vkops.interpreter.values import Reason


class Undefined(Observer):
    """Finds uses of values that are undefined or never written, and integer divisions by zero."""

    def undefined(self, why: Reason, active: Active) -> None:
        other = why.origin.place if why.origin else None
        key = why.message if why.kind == "never written" else str(other)
        self.machine.report(
            why.kind, why.message, active.who, key, why.place, other, block=why.block
        )

    def arithmetic(self, step: Decoded, operands: list[Array], result: Any) -> None:
        if step.op in operations.DIVISIONS:
            rows = _rows(operands[1] == 0)
            self.machine.report_where(rows, "division by zero", "divides an integer by zero")


class Floats(Observer):
    """Finds instructions with finite operands that return NaN or infinity."""

    def arithmetic(self, step: Decoded, operands: list[Array], result: Any) -> None:
        if not isinstance(result, np.ndarray) or result.dtype.kind != "f":
            return
        rows = _rows(~np.isfinite(result))
        for operand in operands if rows.any() else ():
            if isinstance(operand, np.ndarray) and operand.dtype.kind == "f":
                rows = rows & ~_rows(~np.isfinite(operand))
        name = "NaN" if np.isnan(result).any() else "infinity"
        self.machine.report_where(rows, "floats", f"makes {name} of finite numbers")


def _rows(wrong: Array) -> Array:
    """Return which invocations have a True among their numbers."""
    return wrong.reshape(len(wrong), -1).any(1)
