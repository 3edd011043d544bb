"""Compare vkops with Microsoft's DirectML.dll. Usage: scripts/test --directml [COMMAND...]

constraints [COUNT [SEED]]   whether both accept COUNT descriptors of each operator, most of them with faults
levels [LEVEL...]            the same for all types and ranks, with the DLL of each feature level
execution [COUNT [SEED]]     the bytes that both make for COUNT random cases of each operator
graphs [COUNT [SEED]]        the same for COUNT graphs of operators
provider [COUNT [SEED]]      the same for COUNT ONNX models, by ONNX Runtime's DirectML provider
record                       write the answers that tests without DirectML compare with (recorded.json)

Without a command: all but the last. What differs must be one of the differences in differences.py, or of models in
provider.py, which are counted.
"""

from __future__ import annotations

import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any

from directml import comparison, dll, graphs, provider, recording
from directml.differences import Difference, name_of

COMPARISONS = {
    "constraints": comparison.constraints,
    "execution": comparison.execution,
    "graphs": graphs.graphs,
    "provider": provider.models,
}
DEFAULTS = {
    "constraints": (700, 1),
    "execution": (350, 1),
    "graphs": (500, 1),
    "provider": (270, 1),
}
"""How many, and the seed."""


class Report:
    """Counts agreements and differences by operator, and prints them."""

    def __init__(self, title: str) -> None:
        self.title, self.start = title, time.monotonic()
        self.agree: Counter[str] = Counter()
        self.named: dict[Difference, list[Any]] = defaultdict(list)
        self.others: list[tuple[str, str]] = []

    def add(self, outcomes: Iterable[comparison.Outcome]) -> None:
        for outcome in outcomes:
            if outcome.same:
                self.agree[outcome.operator] += 1
                continue
            is_model = isinstance(outcome, provider.Ran)
            named = provider.name_of(outcome) if is_model else name_of(outcome)
            if named:
                self.named[named].append(outcome)
            else:
                self.others.append((outcome.operator, outcome.text))

    def show(self) -> bool:
        """Print the report; return whether nothing differs without a name."""
        agree, differ = sum(self.agree.values()), sum(map(len, self.named.values()))
        total = agree + differ + len(self.others)
        print(f"\n{self.title}: {agree} of {total} agree, {time.monotonic() - self.start:.0f} s")
        for difference, outcomes in self.named.items():
            print(f"  {len(outcomes):6} {difference.kind}: {difference.name}")
        for operator, text in self.others[:40]:
            print(f"  NOT NAMED: {operator}: {text}")
        if len(self.others) > 40:
            print(f"  and {len(self.others) - 40} more")
        return not self.others


def main(arguments: list[str]) -> int:
    """Run one command, or all."""
    command, *rest = arguments or [""]
    if command == "record":
        recording.record()
        return 0
    if command == "levels":
        return int(not _levels(rest or dll.LEVELS))
    if command in DEFAULTS:
        return int(not _random(command, *map(int, rest)))
    if command:
        print(__doc__)
        return 2
    good = [_levels(dll.LEVELS), *map(_random, DEFAULTS)]
    return int(not all(good))


def _random(command: str, *given: int) -> bool:
    count, seed = (*given, *DEFAULTS[command][len(given) :])
    report = Report(f"{command} {count} {seed}")
    report.add(COMPARISONS[command](count, seed))
    return report.show()


def _levels(levels: Iterable[str]) -> bool:
    good = True
    for level in levels:
        report = Report(f"feature level {level}")
        report.add(comparison.levels(level))
        good &= report.show()
    return good


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
