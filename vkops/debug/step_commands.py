"""The commands that go through the recorded execution of one invocation, as those of gdb."""

from __future__ import annotations

import cmd
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TextIO

import numpy as np

from vkops.console import info
from vkops.debug.expressions import FORMATS, CommandError, Context, refuse
from vkops.debug.shader_check import Case
from vkops.interpreter.recorder import (
    MAX_STOPS,
    Recorder,
    Scope,
    Stop,
    VariableBytes,
    function_name,
)
from vkops.interpreter.values import SourceLine

_ALIASES = {
    "b": "break", "bt": "backtrace", "d": "delete", "i": "info", "rs": "reverse_step",
    "rn": "reverse_next", "rc": "reverse_continue", "u": "until",
}  # fmt: skip


@dataclass
class Point:
    """A breakpoint or a watchpoint; ``find`` returns its stops, with the text to print there.

    The stops of a watchpoint follow the changes. ``part`` is the watched part of a global variable.
    """

    text: str
    find: Callable[[], Mapping[int, str]]
    is_watch: bool = False
    part: VariableBytes | None = None
    hits: Mapping[int, str] = field(default_factory=dict)


def _go(text: str, is_stop: Callable[[Any, int, int], bool], *, back: bool = False) -> Any:
    """Return a command that goes to another stop, for which ``is_stop`` returns true.

    ``is_stop`` gets the commands, a stop and the current stop. Backwards, stops after a call in the
    middle of a line are skipped, unless the command goes to halts.
    """

    def go(self: StepCommands, argument: str) -> None:
        for _ in range(number_of(argument or "1")):
            self.go(is_stop, back=back)
        self.show()

    go.__doc__ = text
    return go


def _anywhere(self: StepCommands, at: int, start: int) -> bool:
    return True


def _on_new_line(self: StepCommands, at: int, start: int) -> bool:
    stop = self.stops[at]
    return stop.scope.depth < self.stops[start].scope.depth + (not stop.is_return)


def _in_caller(self: StepCommands, at: int, start: int) -> bool:
    return self.stops[at].scope.depth < self.stops[start].scope.depth


def _on_later_line(self: StepCommands, at: int, start: int) -> bool:
    here, is_later = self.stops[start].scope, self.stops[at].place > self.stops[start].place
    return _in_caller(self, at, start) or (self.stops[at].scope is here and is_later)


def _at_halt(self: StepCommands, at: int, start: int) -> bool:
    return bool(self.hits(at) or self.stops[at].faults)


class StepCommands(cmd.Cmd):
    """The commands, and the current stop ``at`` of the invocation.

    ``recorder`` has recorded the invocation ``watched`` of ``case``, and ``run`` is its machine.
    ``points`` are breakpoints and watchpoints, ``shown`` is the call that was printed last, and
    ``back`` says whether the last command went backwards.
    """

    prompt = "(vkops) "
    identchars = cmd.Cmd.identchars + "-"

    def __init__(self, case: Case, watched: int, commands: TextIO | None) -> None:
        super().__init__(stdin=commands)
        self.use_rawinput = commands is None and self.stdin.isatty()
        self.case, self.watched = case, watched
        self.points: dict[int, Point] = {}
        self._displays: dict[int, str] = {}
        self.back = False
        self.at = 0
        self.record()
        self.shown: Scope | None = None
        program = self.run.program
        blocks = (block for f in program.functions.values() for block in f.blocks)
        self._places = {step.place for block in blocks for step in block.steps if step.place.line}
        self._files = {**{place.file: [] for place in self._places}, **program.sources}
        self._words = program.words
        self._functions = {function_name(program, id_) for id_ in program.functions}

    def record(self, around: int = -1) -> None:
        """Run the shader, and record the invocation, also the states around stop ``around``."""
        parts = [point.part for point in self.points.values() if point.part]
        self.recorder = record = Recorder(self.watched, parts, around)
        self.case.run(observers=[record])
        self.run, self.stops = record.machine, record.stops
        for point in self.points.values():
            point.hits = point.find()
        self.shown = self.stop.scope

    def begin(self, *, to_fault: bool) -> None:
        """Print the first stop, or the stop of the first fault, and what the module lacks."""
        if not self._words:
            info("The module has no source text (OpSource): only numbers of lines are shown.")
        if not any(self.run.program.declared.names.values()):
            info("The module has no names (OpName): variables are called %1, %2 and so on.")
        if to_fault and not self.stop.faults:
            self.go(_at_halt)
        self.show()

    @property
    def stop(self) -> Stop:
        """The current stop."""
        return self.stops[self.at]

    def context(self, at: int | None = None) -> Context:
        """Return the variables that the invocation sees at a stop, by default the current one."""
        at = self.at if at is None else at
        scope, names = self.stops[at].scope, self.run.program.declared.names
        return Context(names, at, scope.variables, scope.parameters, self.recorder.globals)

    def go(self, is_stop: Callable[[Any, int, int], bool], *, back: bool = False) -> None:
        """Go to the next stop for which ``is_stop`` is true, or to the last one."""
        start, end, self.back = self.at, len(self.stops), back
        ahead = range(start - 1, -1, -1) if back else range(start + 1, end)
        skips = back and is_stop is not _at_halt
        stops = (at for at in ahead if not (skips and self.stops[at].is_return))
        self.at = next((at for at in stops if is_stop(self, at, start)), -1)
        if self.at < 0:
            if back:
                info("No more reverse-execution history.")
            self.at = 0 if back else end - 1

    def hits(self, at: int) -> list[tuple[int, Point, str]]:
        """Return breakpoints and watchpoints at a stop; backwards, a change is after the stop."""
        hits = []
        for number, point in self.points.items():
            text = point.hits.get(at + (self.back and point.is_watch))
            if text is not None:
                hits.append((number, point, text))
        return hits

    # -- input and output --------------------------------------------------------------------------

    def precmd(self, line: str) -> str:
        """Print a command that was not typed in a terminal."""
        if line == "EOF" or not self.use_rawinput:
            info("" if line == "EOF" else line)
        return line

    def onecmd(self, line: str) -> bool:
        """Execute a command; print an error if the command is wrong."""
        try:
            return bool(super().onecmd(line))
        except CommandError as error:
            info(str(error))
        return False

    def parseline(self, line: str) -> tuple[str | None, str | None, str]:
        """Split a line into a command, which can be abbreviated, and its argument."""
        name, argument, line = super().parseline(line)
        return (self._command(name) if name else name), argument, line

    def _command(self, text: str) -> str:
        text = _ALIASES.get(text, text).replace("-", "_")
        names = [name[3:] for name in self.get_names() if name.startswith(f"do_{text}")]
        if text not in names and len(names) != 1:
            refuse(f'{"Ambiguous" if names else "Undefined"} command: "{text}". Try "help".')
        return text if text in names else names[0]

    def show(self) -> None:
        """Print the current stop."""
        scope, place, _, faults = self.stop
        hits = self.hits(self.at)
        for number, point, text in hits:
            if point.is_watch:
                info(f"Watchpoint {number}: {point.text}")
            for line in filter(None, text.split("\n")):
                info(line)
        if self.at == len(self.stops) - 1:
            end = "A loop does not end." if self.run.stopped else "The invocation has ended."
            info("The record is full." if self.at == MAX_STOPS else end)
        else:
            breaks = [f"Breakpoint {number}, " for number, point, _ in hits if not point.is_watch]
            if scope is not self.shown or breaks:
                info("".join(breaks[:1]) + self._call(scope, place))
            info(self._line(*place))
            for fault in faults:
                info(f"Fault: {fault}")
        self.shown = scope
        self._show_displays()

    def _show_displays(self) -> None:
        for number, argument in self._displays.items():
            try:
                info(f"{number}: {self.printed(argument)}")
            except CommandError as error:
                info(f"{number}: {argument}: {error}")

    def printed(self, argument: str) -> str:
        """Return an expression, which may begin with a format such as /x, and its value as text."""
        form, text = format_of(argument)
        if form not in FORMATS:
            refuse(f'got "/{form}", must be {" or ".join(f"/{each}" for each in FORMATS if each)}')
        context = self.context()
        return f"{text} = {context.text(context.value(text), form)}"

    def _call(self, scope: Scope, place: SourceLine) -> str:
        context = self.context()
        named = context.named(scope.parameters).items()
        arguments = ", ".join(f"{name}={context.text(pointer)}" for name, pointer in named)
        return f"{scope.function} ({arguments}) at {place}"

    def _line(self, file: str, line: int) -> str:
        text = "".join(self._files[file][line - 1 : line] or f"in {file}")
        return f"{line:<5} {text.expandtabs()}".rstrip()

    # -- commands ----------------------------------------------------------------------------------

    do_step = _go("Go to the next line, also of a function that is called.", _anywhere)
    do_next = _go("Go to the next line of this function.", _on_new_line)
    do_finish = _go("Go to where this function returns.", _in_caller)
    do_continue = _go("Go to the next breakpoint, change of a watched value, or fault.", _at_halt)
    do_reverse_step = _go("Go back by a line, also into a function.", _anywhere, back=True)
    do_reverse_next = _go("Go back by a line of this function.", _on_new_line, back=True)
    do_reverse_finish = _go("Go back to the call of this function.", _in_caller, back=True)
    do_reverse_continue = _go(
        "Go back to the breakpoint, change or fault before.", _at_halt, back=True
    )

    def do_until(self, argument: str) -> None:
        """Go to a later line of this function, out of a loop; or to LINE, or where it returns."""
        line = argument and self._place(self.stop.place.file, number_of(argument)).line

        def wanted(self: StepCommands, at: int, start: int) -> bool:
            stop = self.stops[at]
            is_there = stop.scope is self.stops[start].scope and stop.place.line == line
            return is_there or _in_caller(self, at, start)

        self.go(wanted if line else _on_later_line)
        self.show()

    def do_break(self, argument: str) -> None:
        """Set a breakpoint at LINE, FILE:LINE, FUNCTION or here; "if CONDITION" can follow."""
        match = re.fullmatch(r"(.*?)\s*(?:\bif\b\s*(.*))?", argument.strip())
        where, condition = match.groups("") if match else (argument, "")
        place: SourceLine | None = None
        if where not in self._functions:
            file, _, line = where.rpartition(":")
            if where and not line.isdecimal():
                refuse(f'got "{where}", must be LINE, FILE:LINE or the name of a function')
            at = self.stop.place
            place = self._place(file or at.file, number_of(line) if where else at.line)
        text = f"{place or where}" + (f" if {condition}" if condition else "")
        self.add(Point(text, partial(self._arrivals, place, where, condition)), "Breakpoint")

    def _place(self, file: str, number: int) -> SourceLine:
        """Return the first line with code at or after a line of a file."""
        start = SourceLine(file, number)
        places = [each for each in self._places if each.file == start.file and each >= start]
        if not places:
            refuse(f"There is no code at {start}.")
        return min(places)

    def _arrivals(self, place: SourceLine | None, function: str, condition: str) -> dict[int, str]:
        """Return the stops at a line, or at the beginning of a function, if a condition holds."""
        hits: dict[int, str] = {}
        entered: set[Scope] = set()
        for at, stop in enumerate(self.stops[:-1]):
            is_first = stop.scope not in entered and stop.scope.function == function
            entered.add(stop.scope)
            if (is_first if place is None else stop.place == place) and not stop.is_return:
                context = self.context(at)
                try:
                    if not condition or np.all(context.numbers(context.value(condition))):
                        hits[at] = ""
                except CommandError as error:
                    hits[at] = f"The condition is wrong: {error}"
        return hits

    def add(self, point: Point, kind: str) -> None:
        """Add a breakpoint or a watchpoint."""
        number = max(self.points, default=0) + 1
        self.points[number] = point
        if point.part is None:
            point.hits = point.find()
        else:
            self.record()
        info(f"{kind} {number}{':' if point.is_watch else ' at'} {point.text}")

    def do_delete(self, argument: str) -> None:
        """Delete breakpoint or watchpoint N, or all."""
        _delete(self.points, "breakpoint", argument)

    def do_display(self, argument: str) -> None:
        """Print an expression now and at each stop, in a format such as /x; without one, all."""
        if argument:
            number = max(self._displays, default=0) + 1
            info(f"{number}: {self.printed(argument)}")
            self._displays[number] = argument
        else:
            self._show_displays()

    def do_undisplay(self, argument: str) -> None:
        """Delete display N, or all."""
        _delete(self._displays, "display", argument)

    def do_backtrace(self, argument: str) -> None:
        """Print the calls that the invocation is in."""
        at: tuple[Scope, SourceLine] | None = (self.stop.scope, self.stop.place)
        if not self.stop.place.line:
            refuse("No stack.")
        while at is not None:
            info(f"#{self.stop.scope.depth - at[0].depth}  {self._call(*at)}")
            at = at[0].caller

    def do_list(self, argument: str) -> None:
        """List ten lines around this one, or around LINE."""
        file, line = self.stop.place
        first = max((number_of(argument) if argument else line) - 5, 1)
        lines = range(first, min(first + 10, len(self._files[file]) + 1))
        if not lines:
            refuse(f"Line {first} is out of range: {file} has {len(self._files[file])} lines.")
        for number in lines:
            info(self._line(file, number))

    def do_info(self, argument: str) -> None:
        """Print locals, args, buffers (with shared memory) or breakpoints."""
        kinds = ("locals", "args", "breakpoints", "buffers")
        kind = next((each for each in kinds if argument and each.startswith(argument)), None)
        if kind is None:
            refuse(f'got "{argument}", must be {" or ".join(kinds)}')
        scope, context = self.stop.scope, self.context()
        shared = {i: p for i, p in self.recorder.globals.items() if p.variable.kind != "invocation"}
        variables = {"locals": scope.variables, "args": scope.parameters, "buffers": shared}
        if kind == "breakpoints":
            lines = [f"{number}  {point.text}" for number, point in self.points.items()]
        else:
            # Names of variables that are not in the source come from the compiler.
            lines = [
                f"{name} = {context.text(pointer)}"
                for name, pointer in context.named(variables[kind]).items()
                if kind == "buffers" or name in self._words or not self._words
            ]
        for line in lines or [f"No {kind}."]:
            info(line)

    def do_print(self, argument: str) -> None:
        """Print an expression, such as data[i - 1].x or row * n; /x, /t, /d, /u, /f: its bits."""
        info(self.printed(argument))

    def do_help(self, argument: str) -> None:
        """List the commands; an empty line repeats the last one, a number after it does so, too."""
        names = [name[3:] for name in self.get_names() if name.startswith("do_")]
        for name in [self._command(argument)] if argument else names[1:]:
            info(f"{name.replace('_', '-'):17} {getattr(self, f'do_{name}').__doc__}")

    def do_quit(self, argument: str) -> bool:
        """End; also at the end of input."""
        return True

    do_EOF = do_quit  # noqa: N815


def _delete(numbered: dict[int, Any], what: str, argument: str) -> None:
    """Delete one of several things by its number, or all of them."""
    for number in [number_of(argument)] if argument else [*numbered]:
        if numbered.pop(number, None) is None:
            refuse(f"There is no {what} {number}.")


def format_of(argument: str) -> tuple[str, str]:
    """Return the letters after a slash at the beginning, and the rest."""
    match = re.fullmatch(r"/(\w*)\s*(.*)", argument)
    return (match[1], match[2]) if match else ("", argument)


def number_of(text: str) -> int:
    """Return a number from 1 on, the argument of a command."""
    if not re.fullmatch("0*[1-9][0-9]{0,8}", text):
        refuse(f'got "{text}", must be a number from 1')
    return int(text)
