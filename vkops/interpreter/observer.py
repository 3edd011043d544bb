"""Observers of a machine: checks, and records of what it does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vkops.interpreter.memory import Active
from vkops.interpreter.operations import Array
from vkops.interpreter.program import BasicBlock, Decoded, Function
from vkops.interpreter.values import Pointer, Reason, SourceLine, Value

if TYPE_CHECKING:
    from vkops.interpreter.state import State


class Observer:
    """Is told what a machine does; a class overrides the methods that it needs.

    ``machine`` executes ``machine.step`` for the invocations ``machine.active``. Only
    ``machine.report`` makes findings.
    """

    machine: State
    needs_addresses = False
    """Whether each variable of an invocation must have an address, as it is looked at later."""

    def begin(self) -> None:
        """The machine begins to run."""

    def end(self) -> None:
        """All workgroups have run, or one has stopped the machine."""

    def workgroups(self, active: Active) -> None:
        """Some workgroups begin; they run together."""

    def enter(self, function: Function, active: Active) -> None:
        """A function is called, by ``machine.step`` unless it is the entry point."""

    def leave(self, function: Function, active: Active) -> None:
        """These invocations have returned from a function; others may still be in it."""

    def block(self, block: BasicBlock) -> None:
        """The active invocations begin a block."""

    def branch(self, block: BasicBlock, target: BasicBlock, active: Active) -> None:
        """Invocations leave a block for another one."""

    def instruction(self, step: Decoded) -> None:
        """An instruction is about to be executed."""

    def arithmetic(self, step: Decoded, operands: list[Array], result: Any) -> None:
        """An arithmetic instruction or a function of GLSL was executed on numbers."""

    def result(self, step: Decoded, value: Value | None) -> None:
        """An instruction was executed."""

    def access(self, kind: str, pointer: Pointer, active: Active) -> None:
        """A variable was read ("read"), written ("write") or changed ("atomic")."""

    def barrier(self, scope: int, memory_scope: int, semantics: int, active: Active) -> None:
        """Invocations execute a control barrier."""

    def fence(self, scope: int, semantics: int, active: Active) -> None:
        """Invocations execute a memory barrier, or the one of an atomic operation."""

    def outside(self, name: str, index: str, count: str, active: Active) -> None:
        """Invocations use an index out of bounds: of what has a name and a count of parts."""

    def undefined(self, why: Reason, active: Active) -> None:
        """Invocations use numbers that are not defined."""

    def printed(self, form: str, values: list[Array | str]) -> None:
        """The active invocations call debugPrintfEXT with a format, numbers and texts."""

    def finding(self, kind: str, text: str, who: Any, place: SourceLine) -> None:
        """Invocations have a fault at a place, which they have executed."""


EVENTS = tuple(name for name, each in vars(Observer).items() if callable(each))
"""The names of the methods."""
