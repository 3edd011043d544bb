"""The check of indices."""

from __future__ import annotations

from vkops.interpreter.memory import Active
from vkops.interpreter.observer import Observer


class Bounds(Observer):
    """Finds indices of arrays and vectors that are out of bounds."""

    def outside(self, name: str, index: str, count: str, active: Active) -> None:
        message = f"index {index} of {name} is out of bounds: it has {count}"
        self.machine.report("out of bounds", message, active.who, f"{name} {count}")
