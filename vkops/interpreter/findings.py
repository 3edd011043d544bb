"""The faults of a run: one finding for each line and kind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from vkops.interpreter.values import SourceLine

Invocation = tuple[int, int, int]


@dataclass(frozen=True)
class Finding:
    """A fault of a shader.

    Attributes:
        kind: what it is, such as "data race".
        place: its file and line.
        message: a sentence about it.
        invocations: the global ids of one or two invocations that have it.
        count: how often it happened.
        other: the place of the other access, of a data race.
        source: the source lines of both places, as far as the module has them.
    """

    kind: str
    place: SourceLine
    message: str
    invocations: tuple[Invocation, ...]
    count: int
    other: SourceLine | None = None
    source: str = ""

    def __str__(self) -> str:
        who = " and ".join(str(each) for each in self.invocations)
        by = f"; invocation{'s' if len(self.invocations) > 1 else ''} {who}" if who else ""
        often = f", {self.count} times" if self.count > 1 else ""
        return f"{self.place}: {self.kind}: {self.message}{by}{often}"

    def with_source(self, sources: Mapping[str, Sequence[str]]) -> Finding:
        """Add source lines, from those of each file."""
        lines = []
        for place in dict.fromkeys(filter(None, (self.place, self.other))):
            text = "".join(sources.get(place.file, ())[max(place.line - 1, 0) : place.line])
            where = f"{place.line:>5}" if place.file == self.place.file else f"{place:>5}"
            lines += [f"{where} | {text.expandtabs().rstrip()}"] if text.strip() else []
        return replace(self, source="\n".join(lines))

    @property
    def text(self) -> str:
        """The finding, and its source lines below."""
        return "\n".join(filter(None, (str(self), self.source)))


@dataclass
class Findings:
    """Collects findings. Of those that are alike, the first is kept, and all are counted."""

    _found: dict[tuple[str, ...], Finding] = field(default_factory=dict)

    def add(self, finding: Finding, key: str) -> None:
        """Add a finding; those with the same kind, place and key are alike."""
        known = self._found.get(at := (finding.kind, str(finding.place), key))
        self._found[at] = replace(known, count=known.count + finding.count) if known else finding

    def update(self, others: Findings) -> None:
        """Add the findings of another run that are not known."""
        self._found = {**others._found, **self._found}

    def __iter__(self) -> Iterator[Finding]:
        return iter(sorted(self._found.values(), key=lambda each: each.place))
