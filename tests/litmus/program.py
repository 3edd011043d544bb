"""Litmus tests: what each invocation does, where it runs, and what is said of the results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

Registers = Mapping[str, int]
"""Values of registers "INVOCATION:NAME", and of variables by their names."""

SUBGROUP, WORKGROUP, QUEUE_FAMILY, DEVICE = range(4)
SCOPES = {
    "sg": SUBGROUP, "wg": WORKGROUP, "qf": QUEUE_FAMILY, "dv": DEVICE,
    "scopesg": SUBGROUP, "scopewg": WORKGROUP, "scopeqf": QUEUE_FAMILY, "scopedev": DEVICE,
}  # fmt: skip


class NotExpressibleError(Exception):
    """One dispatch of a compute shader cannot do what a test does; the message says why."""


@dataclass(frozen=True)
class Instruction:
    """The instructions of one invocation.

    Attributes:
        kind: "load", "store", "change" (an atomic operation that does both), "fence", "barrier", or
            "device" for an operation outside of shaders.
        variable: the name of what is accessed.
        storage: its storage class, which is a number of the test.
        is_atomic: whether it is an atomic operation.
        scope: its own scope, and that of the operations below.
        acquires: whether it acquires.
        releases: whether it releases.
        semantics: the storage classes for which it does that.
        makes_available: whether it has MakeAvailable.
        makes_visible: whether it has MakeVisible.
        is_coherent: whether a plain access makes itself available, or visible.
        is_private: whether a plain access takes no part in the order of invocations.
        register: where a load or a change leaves the value that it read.
        value: what is stored: a number, or a register.
        operation: how a change makes the new value of the old one and of ``value``.
        instance: the number of a control barrier, the same for all who wait in it.
    """

    kind: str
    variable: str = ""
    storage: int = 0
    is_atomic: bool = False
    scope: int = DEVICE
    acquires: bool = False
    releases: bool = False
    semantics: frozenset[int] = frozenset()
    makes_available: bool = False
    makes_visible: bool = False
    is_coherent: bool = False
    is_private: bool = False
    register: str = ""
    value: int | str = 0
    operation: str = ""
    instance: str = ""

    @property
    def reads(self) -> bool:
        return self.kind in ("load", "change")

    @property
    def writes(self) -> bool:
        return self.kind in ("store", "change")


@dataclass(frozen=True)
class Local:
    """A register becomes the result of an operation on numbers or registers."""

    register: str
    operation: str
    operands: tuple[int | str, int | str]


@dataclass(frozen=True)
class Jump:
    """A jump to a label, if a comparison of numbers or registers holds; by default, it does."""

    label: str
    operation: str = "beq"
    operands: tuple[int | str, int | str] = (0, 0)


@dataclass
class Invocation:
    """An invocation: its place, and what it executes; labels are numbers of instructions."""

    subgroup: int = 0
    workgroup: int = 0
    queue_family: int = 0
    code: list[Instruction | Local | Jump] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Claim:
    """The claim of a source about the executions of a test with some results.

    Attributes:
        exists: whether there is such an execution.
        is_racy: whether it has a data race; None if that does not matter.
        holds: which results are meant.
        text: the claim as it is in the source.
    """

    exists: bool
    is_racy: bool | None
    holds: Callable[[Registers], bool]
    text: str


@dataclass
class Test:
    """A litmus test.

    Attributes:
        name: its name.
        invocations: what runs.
        locations: the location of each variable; those with the same location share memory, but are
            other references to it.
        initial: what locations hold at first, if not 0.
        claims: what is said of its executions.
        waits: pairs of invocations of which the first ends before the second begins, outside of
            shaders.
    """

    name: str
    invocations: list[Invocation] = field(default_factory=list)
    locations: dict[str, str] = field(default_factory=dict)
    initial: dict[str, int] = field(default_factory=dict)
    claims: list[Claim] = field(default_factory=list)
    waits: Sequence[tuple[int, int]] = ()

    def location(self, variable: str) -> str:
        """Return where a variable is."""
        return self.locations.get(variable, variable)

    @property
    def instructions(self) -> list[Instruction]:
        """All of them, in no order of execution."""
        every = [each for invocation in self.invocations for each in invocation.code]
        return [each for each in every if isinstance(each, Instruction)]
