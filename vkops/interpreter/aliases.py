"""The check of blocks that are declared restrict."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from vkops.interpreter.memory import Active, Memory
from vkops.interpreter.observer import Observer
from vkops.interpreter.operations import Array
from vkops.interpreter.order import LANE_BITS, LANES
from vkops.interpreter.races import PAST, VERBS
from vkops.interpreter.values import Pointer, Value
from vkops.shaders.binary import Decoration


class Aliases(Observer):
    """Finds what is written through a block, and accessed through another: one is restrict."""

    def begin(self) -> None:
        run, found = self.machine, self.machine.program.found
        known = [(id_, memory) for id_, each in run.variables.items() for memory in _memories(each)]
        self._restrict = {m for id_, m in known if found.has(id_, Decoration.RESTRICT)}
        self._others = {
            memory: [
                other
                for other_id, other in known
                if id_ != other_id
                and memory.shadow is other.shadow is not None
                and {memory, other} & self._restrict
            ]
            for id_, memory in known
        }
        # The last reads and changes of each unit, with the invocations, as those of a shadow.
        self._seen: dict[Memory, Array] = {
            memory: np.zeros((2, memory.units), np.int64)
            for memory, others in self._others.items()
            if others
        }

    def access(self, kind: str, pointer: Pointer, active: Active) -> None:
        memory = pointer.variable
        if memory not in self._seen:
            return
        run, first = self.machine, int(kind == "read")  # two reads do not conflict
        for units in memory.touched(pointer.type, pointer.offset, active):
            for other in self._others[memory]:
                codes = self._seen[other][first:, units].max(0)
                if codes.any():
                    row = run.example(codes.any(1), active.who)
                    self._report(kind, memory, other, codes, units, int(active.who[row]), row)
            code = run.time << LANE_BITS | (active.who[: len(units), None] + 1)
            self._seen[memory][1 - first, units] = code

    def _report(
        self,
        kind: str,
        memory: Memory,
        other: Memory,
        codes: Array,
        units: Array,
        who: int,
        row: int,
    ) -> None:
        run, column = self.machine, int(codes[row].argmax())
        unit, code = int(units[row, column]), int(codes[row, column])
        did = "written" if self._seen[other][1, unit] == code else "read"
        where, place = run.access_places[code >> LANE_BITS], run.step.place
        one, two = (each.element(unit * each.unit) for each in (memory, other))
        block, name = (memory, one) if memory in self._restrict else (other, two)
        declared = block.name or name.partition("[")[0]
        message = (
            f"'{one}' is the same memory as '{two}', and '{declared}' is declared restrict: the "
            f"first invocation {VERBS[kind]}, the second {PAST[did]} as '{two}'"
        )
        message += where.seen_from(place)
        pair, count = np.array([who, (code & LANES) - 1]), int(np.count_nonzero(codes.any(1)))
        run.report("restrict", message, pair, f"{two} {where}", place, where, count)


def _memories(value: Value) -> Iterator[Memory]:
    """Yield the memory of a block, of each element of an array of blocks, or of a variable."""
    for each in value if isinstance(value, list) else [value]:
        yield each.variable
