"""The origins of values: the instructions that computed them, back to the inputs of a shader."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from vkops.interpreter import subgroups
from vkops.interpreter.findings import Invocation
from vkops.interpreter.memory import Active, MemoryVariable, Variable
from vkops.interpreter.observer import Observer
from vkops.interpreter.operations import Array
from vkops.interpreter.program import BasicBlock, Decoded, Function
from vkops.interpreter.values import Numbers, Pointer, SourceLine, Value
from vkops.shaders.binary import Op

_COLLECTIVE = subgroups.OPERATIONS | {Op.CooperativeMatrixMulAddKHR}


@dataclass(eq=False)
class Made:
    """A value that an invocation stored in memory ("store"), read ("read") or computed ("").

    ``name`` is the name of the memory, such as ``data[3]``, or of the result, if it has one.
    ``sources`` are the values that it was computed from; for a read, the values stored there.
    ``note`` describes a read without sources. ``unknown`` are invocations that are not watched, and
    stored the value that is read.
    """

    kind: str
    place: SourceLine
    who: int
    name: str
    value: Any
    sources: tuple[Made, ...]
    time: int
    note: str = ""
    unknown: tuple[int, ...] = ()


class Line(NamedTuple):
    """A value that an invocation stored, or a named result, and the sources of the value.

    ``sources`` has the name and the value of each, and a note for those that are not followed.
    """

    place: SourceLine
    text: str
    invocation: Invocation
    name: str
    value: str
    sources: tuple[tuple[str, str, str], ...]

    def __str__(self) -> str:
        of = ", ".join(f"{n} = {v}" + (f" ({note})" if note else "") for n, v, note in self.sources)
        head = f"{self.place}: {self.name} = {self.value}, by invocation {self.invocation}"
        return "\n    ".join(filter(None, (head, self.text, f"from {of}" if of else "")))


class Tracer(Observer):
    """Records how the invocations ``watched`` computed their values.

    Afterwards, ``changes`` has the values that they stored in buffers and shared memory, by time
    and invocation. It must be notified of accesses before Races is.
    """

    def __init__(self, watched: Collection[int]) -> None:
        self.watched = np.array(sorted(watched), np.int64)
        self.changes: dict[tuple[int, int], Made] = {}
        self._results: dict[tuple[int, int], Made] = {}
        self._local: dict[tuple[int, Variable, int], Made] = {}
        self._reads: dict[int, list[Made]] = {}
        self._overwritten: list[tuple[Made, int]] = []
        self._time = 0

    @staticmethod
    def unknown(last: Made) -> set[int]:
        """Return the invocations that stored sources of a value, and are not watched."""
        seen, rest = {last}, [last]
        while rest:
            new = {*rest.pop().sources} - seen
            seen |= new
            rest += new
        return {who for made in seen for who in made.unknown}

    def lines(self, last: Made) -> Iterator[Line]:
        """Yield the lines that computed a value, the latest first."""
        pending, seen = {last}, {last}
        while pending:
            line = max(pending, key=lambda made: made.time)
            pending.remove(line)
            read: dict[tuple[str, str, str], None] = {}
            rest = [*line.sources[::-1]]
            while rest:
                made = rest.pop()
                if made.name and made.kind != "read":
                    if made not in seen:
                        seen.add(made)
                        pending.add(made)
                    if made.kind == "store":
                        continue
                if made.name:
                    read[made.name, text_of(made.value), made.note] = None
                if made.kind == "read" or not made.name:
                    rest += made.sources[::-1]
            text, who = self.machine.program.text(line.place), self.machine.global_id(line.who)
            yield Line(line.place, text, who, line.name, text_of(line.value), tuple(read))

    # -- what happens ------------------------------------------------------------------------------

    def result(self, step: Decoded, value: Value | None) -> None:
        if step.result and step.op != Op.Variable:
            name = self.machine.program.declared.names.get((step.result,), "")
            for row, who in self._rows(self.machine.active):
                number, reads = _row(value, row), self._reads.get(who, [])
                if len(reads) == 1:  # the value before an atomic operation, or a decoded texel
                    reads[0].value = number
                is_call = step.op == Op.FunctionCall
                of_operands = self._returned(who, step) if is_call else self._sources(who, step)
                peers: list[int] = []
                if step.op in _COLLECTIVE:  # it depends on values of other invocations, too
                    active = self.machine.active
                    together = self.machine.subgroup(active.who)
                    peers = active.who[together == together[row]].tolist()
                    of_operands = [source for peer in peers for source in self._sources(peer, step)]
                sources = (*reads, *of_operands)
                made = self._made("", step.place, who, name, number, sources) if sources else None
                if made is not None:
                    made.unknown = tuple({*peers} - {*self.watched.tolist()})
                self._remember(who, step.result, made)
        for made, row in self._overwritten:
            made.value = _row(value, row)
        self._reads, self._overwritten = {}, []

    def access(self, kind: str, pointer: Pointer, active: Active) -> None:
        rows = self._rows(active)
        if kind != "write":
            for row, who in rows:
                self._reads.setdefault(who, []).append(self._read(pointer, active, row, who))
        for row, who in rows if kind != "read" else ():
            alike = _alike(pointer, active, row) if kind == "atomic" else np.zeros(0, np.int64)
            before, later = alike[alike < row], alike[alike > row]
            if len(before):
                last = self.machine.time, int(active.who[before[-1]])
                self._link(self._reads[who][-1], [last])
            made = self._change(pointer, active, row, who)
            if len(later):  # the next invocation reads this value
                self._overwritten.append((made, int(later[0])))

    def workgroups(self, active: Active) -> None:
        self._slots = active.slots[np.isin(active.who, self.watched)]

    def enter(self, function: Function, active: Active) -> None:
        """Record that the parameters of a function are copies of the arguments."""
        for id_, argument in zip(function.parameters, self.machine.step.operands[1:], strict=False):
            for _, who in self._rows(active):
                self._remember(who, id_, self._results.get((who, argument)))

    def branch(self, block: BasicBlock, target: BasicBlock, active: Active) -> None:
        """Record that the phis of a block are copies of the values for this branch."""
        phis = target.phis
        for _, who in self._rows(active) if phis else ():
            incoming = [dict(zip(p.operands[1::2], p.operands[::2], strict=True)) for p in phis]
            values = [self._results.get((who, ids.get(block.label, 0))) for ids in incoming]
            for phi, each in zip(phis, values, strict=True):
                self._remember(who, phi.result, each)

    # -- values ------------------------------------------------------------------------------------

    def _rows(self, active: Active) -> list[tuple[int, int]]:
        """Return the rows and the numbers of the watched invocations that are active."""
        if not len(active.slots) or not len(self._slots):
            return []
        rows = np.minimum(np.searchsorted(active.slots, self._slots), len(active.slots) - 1)
        rows = rows[active.slots[rows] == self._slots]
        return [*zip(rows.tolist(), active.who[rows].tolist(), strict=True)]

    def _made(
        self, kind: str, place: SourceLine, who: int, name: str, value: Any, sources: Sequence[Made]
    ) -> Made:
        self._time += 1
        return Made(kind, place, who, name, value, tuple(sources), self._time)

    def _remember(self, who: int, id_: int, made: Made | None) -> None:
        self._results.pop((who, id_), None)  # a result of an earlier iteration of a loop
        if made is not None:
            self._results[who, id_] = made

    def _sources(self, who: int, step: Decoded) -> list[Made]:
        results = (self._results.get((who, id_)) for id_ in step.ids)
        return [made for made in results if made is not None]

    def _returned(self, who: int, step: Decoded) -> list[Made]:
        """Return the value that a function returned: the latest of its possible values."""
        blocks = self.machine.program.functions[step.operands[0]].blocks
        ends = [block.steps[-1] for block in blocks if block.steps[-1].op == Op.ReturnValue]
        results = [made for end in ends for made in self._sources(who, end)]
        return sorted(results, key=lambda made: made.time)[-1:]

    def _read(self, pointer: Pointer, active: Active, row: int, who: int) -> Made:
        variable, offset = pointer.variable, _offset(pointer, row)
        name = _name(pointer, offset)
        reader, place = active.one(row), self.machine.step.place
        value = _row(variable.load(pointer.type, offset, reader, place), 0)
        made = self._made("read", place, who, name, value, ())
        if variable.shadow is not None:
            first, unit = variable.addresses(pointer.type, offset, reader).item(0), variable.unit
            numbers = range(first // unit, -(-(first + pointer.type.nbytes) // unit))
            self._link(made, {variable.last_change(number * unit) for number in numbers})
        else:
            known = map(self._local.get, _numbers(who, pointer, offset))
            made.sources = tuple(dict.fromkeys(filter(None, known)))
        is_buffer = isinstance(variable, MemoryVariable) and variable.kind == ""
        if is_buffer and not made.sources and not made.note:
            made.note = "input"
        return made

    def _link(self, read: Made, changes: Collection[tuple[int, int]]) -> None:
        """Set the sources of a read to changes of memory, given by time and invocation."""
        read.sources, read.note, read.unknown = (), "", ()
        for when, writer in changes:
            known = self.changes.get((when, writer))
            if known is not None:
                read.sources += (known,)
            elif when:
                read.unknown += (writer,)
                where = self.machine.access_places[when].seen_from(read.place)
                read.note = f"stored{where} by invocation {self.machine.global_id(writer)}"

    def _change(self, pointer: Pointer, active: Active, row: int, who: int) -> Made:
        variable, offset, step = pointer.variable, _offset(pointer, row), self.machine.step
        value = _row(variable.load(pointer.type, offset, active.one(row), step.place), 0)
        sources = [*self._reads.get(who, ()), *self._sources(who, step)]
        name = _name(pointer, offset)
        made = self._made("store", step.place, who, name, value, sources)
        if variable.shadow is not None:
            self.changes[self.machine.time, who] = made
        else:
            self._local |= dict.fromkeys(_numbers(who, pointer, offset), made)
        return made


def _alike(pointer: Pointer, active: Active, row: int) -> Array:
    """Return, in order, the invocations of an atomic operation with the same address as one."""
    at = pointer.variable.addresses(pointer.type, pointer.offset, active).reshape(-1)
    wide = np.broadcast_to(at, len(active.who))
    return np.flatnonzero(wide == wide[row])


def _numbers(who: int, pointer: Pointer, offset: int) -> list[tuple[int, Variable, int]]:
    """Return keys for the numbers that a pointer of an invocation points to."""
    smallest = min((number.nbytes for number in pointer.variable.type.scalars), default=4)
    offsets = range(offset, offset + pointer.type.nbytes, smallest)
    return [(who, pointer.variable, at) for at in offsets]


def _name(pointer: Pointer, offset: int) -> str:
    """Return the name of the memory that a pointer points to; "" if the source has none."""
    name: str = pointer.variable.element(offset, pointer.type)
    return "" if name.startswith("%") else name


def _offset(pointer: Pointer, row: int) -> int:
    offset = pointer.offset
    return offset if isinstance(offset, int) else int(offset[row if len(offset) > 1 else 0])


def _row(value: Value | None, row: int) -> Any:
    """Return the value of one invocation: a number, an array or a tuple; None if undefined."""
    if isinstance(value, tuple):
        return tuple(_row(member, row) for member in value)
    if not isinstance(value, Numbers):
        return None
    element = value.take(np.array([row]))
    return element.array[0] if element.missing is None else None


def text_of(value: Any) -> str:
    """Return a value as text; None means that it was never written."""
    if value is None:
        return "never written"
    if isinstance(value, tuple):
        return f"{{{', '.join(map(text_of, value))}}}"
    if np.ndim(value):
        return f"({', '.join(map(text_of, value))})"
    return str(value).lower() if isinstance(value, np.bool_) else str(value)
