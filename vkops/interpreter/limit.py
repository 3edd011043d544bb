"""A limit of the number of instructions."""

from __future__ import annotations

from vkops.interpreter.observer import Observer
from vkops.interpreter.program import Block


class TooManyInstructionsError(Exception):
    """A run was given up."""


class Limit(Observer):
    """Gives a run up when it has executed too many instructions, counted for each invocation."""

    def __init__(self, most: int) -> None:
        self._most = most

    def block(self, block: Block) -> None:
        if self.machine.executed > self._most:
            raise TooManyInstructionsError
