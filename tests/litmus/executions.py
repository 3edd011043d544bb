"""The sequential executions of a litmus test: all orders in which its invocations can take turns."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass
from random import Random

from litmus.program import Instruction, Jump, Test

OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "and": operator.and_,
    "or": operator.or_, "xor": operator.xor, "": lambda old, new: new,
    "beq": operator.eq, "bne": operator.ne, "blt": operator.lt, "bgt": operator.gt,
    "ble": operator.le, "bge": operator.ge,
}  # fmt: skip
WORD = 0xFFFFFFFF

MAX_STEPS = 20_000
"""How many states are looked at; only loops that end in few orders have more."""

MAX_JUMPS = 2
"""How often an invocation jumps back; executions in which one does so more often are left out."""


@dataclass(frozen=True)
class Event:
    """An instruction that was executed: who did it, and the values that it read and wrote.

    ``source`` is the number of the event whose value was read, or -1 for the initial one.
    """

    who: int
    code: Instruction
    read: int = 0
    written: int = 0
    source: int = -1


@dataclass(frozen=True)
class Execution:
    """Events in the order in which they were executed, and what registers and variables hold."""

    events: tuple[Event, ...]
    results: dict[str, int]


class Machine:
    """A test that was executed up to some point, in one order.

    What the memory model can tell from other orders is its ``key``: how far each invocation is, what
    it has read, and who wrote each location, one after the other.
    """

    max_jumps: float = MAX_JUMPS

    def __init__(self, test: Test) -> None:
        self.test = test
        self.at = [0] * len(test.invocations)
        self.jumps = [0] * len(test.invocations)
        self.registers: dict[str, int] = {}
        self.memory = dict(test.initial)
        self.last: dict[str, int] = {}
        self.events: list[Event] = []
        self.names: list[tuple[int, int]] = []
        self.seen: dict[tuple[int, int], tuple[int, int] | None] = {}
        self.writers: dict[str, tuple[tuple[int, int], ...]] = {}
        self.is_endless = False
        self.members: dict[str, set[int]] = {}
        for who, invocation in enumerate(test.invocations):
            for code in invocation.code:
                if isinstance(code, Instruction) and code.kind == "barrier":
                    self.members.setdefault(code.instance, set()).add(who)
            self._settle(who)

    def copy(self) -> Machine:
        """Return another one at the same point."""
        other = copy(self)
        for name in (
            "at",
            "jumps",
            "registers",
            "memory",
            "last",
            "events",
            "names",
            "seen",
            "writers",
        ):
            setattr(other, name, getattr(self, name).copy())
        return other

    @property
    def key(self) -> object:
        return (
            tuple(self.at), tuple(self.jumps), frozenset(self.seen.items()), frozenset(self.writers.items())
        )  # fmt: skip

    def _value(self, who: int, value: int | str) -> int:
        return self.registers.get(f"{who}:{value}", 0) if isinstance(value, str) else value & WORD

    def _settle(self, who: int) -> None:
        """Execute what nobody else can see, up to the next instruction."""
        invocation = self.test.invocations[who]
        while self.at[who] < len(invocation.code):
            code = invocation.code[self.at[who]]
            if isinstance(code, Instruction):
                return
            result = OPERATIONS[code.operation](*(self._value(who, each) for each in code.operands))
            if not isinstance(code, Jump):
                self.registers[f"{who}:{code.register}"] = result & WORD
                self.at[who] += 1
                continue
            target = invocation.labels[code.label] if result else self.at[who] + 1
            if target <= self.at[who]:
                self.jumps[who] += 1
                self.is_endless |= self.jumps[who] > self.max_jumps
                if self.is_endless:
                    return
            self.at[who] = target

    def next(self, who: int) -> Instruction | None:
        """Return what an invocation executes next."""
        code = self.test.invocations[who].code
        return code[self.at[who]] if self.at[who] < len(code) else None  # type: ignore[return-value]

    def ready(self) -> list[tuple[int, ...]]:
        """Return who can go on: one invocation, or all that wait in a control barrier."""
        ready: list[tuple[int, ...]] = []
        waiting: dict[str, list[int]] = {}
        for who in range(len(self.at)):
            code = self.next(who)
            if code is not None and code.kind == "barrier":
                waiting.setdefault(code.instance, []).append(who)
            elif code is not None:
                ready.append((who,))
        return ready + [tuple(w) for each, w in waiting.items() if set(w) == self.members[each]]

    def step(self, members: tuple[int, ...]) -> None:
        """Let invocations execute their next instruction."""
        for who in members:
            code = self.next(who)
            assert code is not None
            location = self.test.location(code.variable)
            name = who, sum(each.who == who for each in self.events)
            read = self.memory.get(location, 0)
            source = self.last.get(location, -1)
            written = self._value(who, code.value)
            if code.kind == "change":
                written = OPERATIONS[code.operation](read, written) & WORD
            if code.reads:
                self.registers[f"{who}:{code.register}"] = read
                self.seen[name] = self.names[source] if source >= 0 else None
            if code.writes:
                self.memory[location] = written
                self.last[location] = len(self.events)
                self.writers[location] = (*self.writers.get(location, ()), name)
            self.events.append(Event(who, code, read * code.reads, written * code.writes, source))
            self.names.append(name)
        for who in members:
            self.at[who] += 1
            self._settle(who)

    def ended(self) -> Execution | None:
        """Return the execution if it is whole."""
        if self.is_endless or any(self.next(who) is not None for who in range(len(self.at))):
            return None
        results = dict(self.registers)
        for variable in {each.variable for each in self.test.instructions if each.variable}:
            results[variable] = self.memory.get(self.test.location(variable), 0)
        return Execution(tuple(self.events), results)


def executions(test: Test, limit: int = 400, seed: int = 1) -> Iterator[Execution]:
    """Yield executions that differ for the memory model, those that end.

    They are all, or up to a limit those that are found first in a random order.
    """
    random = Random(seed)
    known: set[object] = set()
    rest = [Machine(test)]
    while rest and limit and len(known) < MAX_STEPS:
        machine = rest.pop()
        ready = [] if machine.is_endless else machine.ready()
        if not ready and (ended := machine.ended()):
            limit -= 1
            yield ended
        random.shuffle(ready)
        for members in ready:
            after = machine.copy()
            after.step(members)
            if (key := after.key) not in known:
                known.add(key)
                rest.append(after)
