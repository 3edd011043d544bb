"""The way of a number in the output of a shader: the store that made it, back to the inputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from vkops.debug.interpreter.slices import Line, RecordedRun
from vkops.debug.shader_check import Case, results_of
from vkops.shaders.module import Block

MAX_INVOCATIONS = 64
"""Invocations whose values are followed."""

MAX_RUNS = 8
"""Runs: each also follows the invocations whose values those before it have read."""


@dataclass(frozen=True)
class Trace:
    """The way of a number of a block: the store that made it is the first of the lines.

    There are none if no invocation stored it.
    """

    name: str
    value: str
    lines: Sequence[Line]

    def text(self, rows: int) -> str:
        """Describe it, with so many lines at most."""
        if not self.lines:
            return f"{self.name} = {self.value}, which no invocation stored"
        more = len(self.lines) - rows
        rest = [f"{more} more (--rows shows them)"] if more > 0 else []
        return "\n".join([*map(str, self.lines[:rows]), *rest])


def trace_byte(case: Case, block: Block, at: int) -> Trace:
    """Run a shader, and follow the number of a block at a byte."""
    watched: set[int] = set()
    runs = 0
    while True:
        runs += 1
        made, memory = case.run(kind=partial(RecordedRun, watched=watched))
        assert isinstance(made, RecordedRun)
        own = memory[block.place]
        assert own.shadow is not None
        numbers = results_of(block, own)
        name, value = own.element(at), str(numbers[at // numbers.itemsize])
        when, who = own.shadow.last_change(at // own.unit)
        if not when:
            return Trace(name, value, ())
        last = made.changes.get((when, who))
        new = {who} if last is None else made.unknown(last) - watched
        is_last = not new or len(watched | new) > MAX_INVOCATIONS or runs == MAX_RUNS
        if last is not None and is_last:
            return Trace(name, value, [*made.lines(last)])
        watched |= new
