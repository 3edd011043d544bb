"""The check of blocks that are declared restrict."""

from __future__ import annotations

import numpy as np

from vkops.interpreter.memory import Active, Memory
from vkops.interpreter.observer import Observer
from vkops.interpreter.operations import Array
from vkops.interpreter.order import LANE_BITS, LANES
from vkops.interpreter.races import PAST, VERBS
from vkops.interpreter.values import Pointer
from vkops.shaders.binary import Decoration


class Aliases(Observer):
    """Finds what is written through a block, and accessed through another: one is restrict."""

    def begin(self) -> None:
        run, has = self.machine, self.machine.program.declared.has
        pointers_of = {id_: v if isinstance(v, tuple) else (v,) for id_, v in run.variables.items()}
        known = [(id_, each.variable) for id_, pointers in pointers_of.items() for each in pointers]
        self._restrict = {memory for id_, memory in known if has(id_, Decoration.RESTRICT)}
        self._others: dict[Memory, list[Memory]] = {}
        for id_, memory in known:
            others = [m for n, m in known if n != id_ and memory.shadow is m.shadow is not None]
            others = [other for other in others if {memory, other} & self._restrict]
            self._others |= {memory: others} if others else {}
        # The last reads and changes of each unit, with the invocations, as those of a shadow.
        self._seen: dict[Memory, Array] = {
            m: np.zeros((2, m.units), np.int64) for m in self._others
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
                    self._report(kind, memory, other, codes, units, active.who)
            code = run.time << LANE_BITS | (active.who[: len(units), None] + 1)
            self._seen[memory][1 - first, units] = code

    def _report(
        self, kind: str, memory: Memory, other: Memory, codes: Array, units: Array, who: Array
    ) -> None:
        run, place, rows = self.machine, self.machine.step.place, codes.any(1)
        row = run.example(rows, who)
        at = row, int(codes[row].argmax())
        unit, code = int(units[at]), int(codes[at])
        did = "written" if self._seen[other][1, unit] == code else "read"
        where = run.access_places[code >> LANE_BITS]
        one, two = (each.element(unit * each.unit) for each in (memory, other))
        block, name = (memory, one) if memory in self._restrict else (other, two)
        message = (
            f"'{one}' is the same memory as '{two}', and '{block.name or name.partition('[')[0]}' "
            f"is declared restrict: the first invocation {VERBS[kind]}, the second {PAST[did]} "
            f"as '{two}'{where.seen_from(place)}"
        )
        pair = np.array([who[row], (code & LANES) - 1])
        run.report("restrict", message, pair, f"{two} {where}", place, where, int(rows.sum()))
