"""Observers of the interpreter: checks, and records of the execution."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vkops.interpreter.memory import Active
from vkops.interpreter.operations import Array
from vkops.interpreter.program import BasicBlock, Decoded, Function
from vkops.interpreter.values import Pointer, Reason, SourceLine, Value

if TYPE_CHECKING:
    from vkops.interpreter.state import State


class Observer:
    """The base class of observers; a class overrides the methods of the events that it needs.

    ``machine`` executes ``machine.step`` for the invocations ``machine.active``. Findings are only
    reported by ``machine.report``.
    """

    machine: State
    needs_addresses = False
    """Whether all variables of invocations must have addresses, to be inspected later."""

    def begin(self) -> None:
        """The run begins."""

    def end(self) -> None:
        """All workgroups have run, or one has stopped the run."""

    def workgroups(self, active: Active) -> None:
        """Some workgroups begin, and run together."""

    def enter(self, function: Function, active: Active) -> None:
        """A function is called: by ``machine.step``, except for the entry point."""

    def leave(self, function: Function, active: Active) -> None:
        """Invocations have returned from a function; others may still be in it."""

    def block(self, block: BasicBlock) -> None:
        """The active invocations begin a block."""

    def branch(self, block: BasicBlock, target: BasicBlock, active: Active) -> None:
        """Invocations leave a block and go to another one."""

    def instruction(self, step: Decoded) -> None:
        """An instruction is about to be executed."""

    def arithmetic(self, step: Decoded, operands: list[Array], result: Any) -> None:
        """An arithmetic instruction or a GLSL function was executed."""

    def result(self, step: Decoded, value: Value | None) -> None:
        """An instruction was executed; ``value`` is its result."""

    def access(self, kind: str, pointer: Pointer, active: Active) -> None:
        """A variable was read ("read"), written ("write") or changed ("atomic")."""

    def barrier(self, scope: int, memory_scope: int, semantics: int, active: Active) -> None:
        """Invocations execute a control barrier."""

    def fence(self, scope: int, semantics: int, active: Active) -> None:
        """Invocations execute a memory barrier, or the memory barrier of an atomic operation."""

    def outside(self, name: str, index: str, count: str, active: Active) -> None:
        """Invocations use an index that is out of bounds; ``name`` has ``count`` parts."""

    def undefined(self, why: Reason, active: Active) -> None:
        """Invocations use undefined numbers, for the reason ``why``."""

    def printed(self, form: str, values: list[Array | str]) -> None:
        """The active invocations call debugPrintfEXT with a format, and with numbers and texts."""

    def finding(self, kind: str, text: str, who: Any, place: SourceLine) -> None:
        """Invocations have a fault at a line that they have executed."""


EVENTS = tuple(name for name, each in vars(Observer).items() if callable(each))
"""The names of the methods that are called for events."""
