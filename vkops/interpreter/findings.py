"""The faults of a run: one finding for each line and kind."""

from __future__ import annotations

import linecache
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import FrameType
from typing import Any

from vkops.interpreter.schedules import described
from vkops.interpreter.values import SourceLine

Invocation = tuple[int, int, int]


@dataclass(frozen=True)
class Finding:
    """A fault of a shader.

    Attributes:
        kind: its kind, such as "data race".
        place: its file and line.
        message: a sentence about it.
        invocations: the global ids of one or two invocations that have it.
        count: how often it happened.
        other: the place of the other access of a data race; or the place where another invocation
            computed an undefined value.
        texts: the source lines of these places, as far as they are known.
        block: the block that is read without having got values, if that is the fault.
        schedule: the name of the order of workgroups and subgroups of the run that had it; "" for
            the usual order.
        subgroup_size: the subgroup size of the run that had it, if only runs with other sizes than
            that of the check had it; otherwise 0.
        caller: the line of Python that ran the shader, if it is known.
    """

    kind: str
    place: SourceLine
    message: str
    invocations: tuple[Invocation, ...]
    count: int
    other: SourceLine | None = None
    texts: tuple[tuple[SourceLine, str], ...] = ()
    block: str = ""
    schedule: str = ""
    subgroup_size: int = 0
    caller: SourceLine | None = None

    def __str__(self) -> str:
        return f"{self.place}: {self.kind}: {self.details}"

    @property
    def details(self) -> str:
        """The message, with the invocations, the number of times, and the kind of run."""
        who = " and ".join(str(each) for each in self.invocations)
        by = f"; invocation{'s' if len(self.invocations) > 1 else ''} {who}" if who else ""
        often = f", {self.count} times" if self.count > 1 else ""
        how = f", with workgroups in {described(self.schedule)}" if self.schedule else ""
        how += f", with subgroups of {self.subgroup_size}" if self.subgroup_size else ""
        return f"{self.message}{by}{often}{how}"

    def called_from(self, frame: FrameType | None) -> Finding:
        """Set the line of Python that a frame executes."""
        if frame is None:
            return self
        caller = SourceLine(frame.f_code.co_filename, frame.f_lineno)
        text = linecache.getline(*caller, frame.f_globals).rstrip()
        return replace(self, caller=caller, texts=(*self.texts, (caller, text)))

    def with_source(self, sources: Mapping[str, Sequence[str]]) -> Finding:
        """Add source lines; ``sources`` has the lines of each file."""
        texts = []
        for place in dict.fromkeys(filter(None, (self.place, self.other))):
            text = "".join(sources.get(place.file, ())[max(place.line - 1, 0) : place.line])
            texts += [(place, text.rstrip())] if text.strip() else []
        return replace(self, texts=tuple(texts))

    @property
    def source(self) -> str:
        """The source lines with their numbers."""
        lines = []
        for place, text in self.texts:
            if place == self.caller:
                continue
            where = str(place.line if place.file == self.place.file else place)
            lines.append(f"{where:>5} | {text.expandtabs()}")
        return "\n".join(lines)

    @property
    def text(self) -> str:
        """The finding, followed by its source lines."""
        return "\n".join(filter(None, (str(self), self.source)))


@dataclass
class Findings:
    """Collects findings: of equal ones, the first is kept, and all are counted."""

    _found: dict[tuple[str, ...], Finding] = field(default_factory=dict)

    def add(self, finding: Finding, key: str) -> None:
        """Add a finding; findings with the same kind, source line and key are equal."""
        known = self._found.get(at := (finding.kind, str(finding.place), key))
        self._found[at] = replace(known, count=known.count + finding.count) if known else finding

    def remove(self, kind: str) -> None:
        """Remove the findings of a kind."""
        self._found = {at: each for at, each in self._found.items() if each.kind != kind}

    def update(self, others: Findings, **how: Any) -> None:
        """Add the findings of another run that are not known yet, with attributes of that run."""
        for key, finding in others._found.items():
            self._found.setdefault(key, replace(finding, **how))

    def __iter__(self) -> Iterator[Finding]:
        return iter(sorted(self._found.values(), key=lambda each: each.place))
