"""The check of control barriers."""

from __future__ import annotations

import numpy as np

from vkops.interpreter import program
from vkops.interpreter.memory import Active
from vkops.interpreter.observer import Observer


class Barriers(Observer):
    """Finds barriers that not all invocations of a workgroup reach together."""

    def barrier(self, scope: int, memory_scope: int, semantics: int, active: Active) -> None:
        size, counts = self.machine.group_size, np.bincount(active.groups)
        short = np.flatnonzero((counts > 0) & (counts < size))
        if len(short) and scope != program.SUBGROUP_SCOPE:
            text = f"only {counts[short[0]]} of the {size} invocations of a workgroup reach"
            chosen = active.who[active.groups == short[0]]
            self.machine.report("barrier", f"{text} this barrier", chosen)
