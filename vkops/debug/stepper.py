"""A debugger of one invocation of a shader, in the terminal, with the commands of gdb."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from typing import TextIO

from vkops.console import info
from vkops.debug.expressions import CommandError, Context, refuse
from vkops.debug.shader_check import NO_LINES, Case
from vkops.debug.step_commands import Point, StepCommands, format_of
from vkops.errors import InvalidDescError, ShaderCompileError
from vkops.interpreter.findings import Invocation
from vkops.interpreter.recorder import VariableBytes
from vkops.interpreter.values import Pointer, SourceLine


def step(
    case: Case, invocation: Invocation, commands: TextIO | None = None, *, to_fault: bool = False
) -> None:
    """Run a shader, and let a user step through the lines that an invocation executed.

    ``commands`` are read instead of standard input. With ``to_fault``, it begins at the first fault
    of the invocation.
    """
    name = case.shader.name
    try:
        watched = number(case, invocation)
    except CommandError as error:
        raise InvalidDescError(name, "invocation", str(error), "SH-07") from None
    stepper = _Stepper(case, watched, commands)
    if len(stepper.stops) == 1:
        raise ShaderCompileError(f"{name}: {NO_LINES}")
    count = len(stepper.stops) - 1
    info(f"{name}: invocation {invocation} executed {count:,} lines; try 'help'")
    stepper.begin(to_fault=to_fault)
    stepper.cmdloop()


def number(case: Case, invocation: Invocation) -> int:
    """Return the number of an invocation in the dispatch, from its global id."""
    (lx, ly, lz), (gx, gy, _) = case.shader.local_size, case.groups
    sizes = tuple(n * size for n, size in zip(case.groups, (lx, ly, lz), strict=True))
    if any(n >= size for n, size in zip(invocation, sizes, strict=True)):
        refuse(f"got {invocation}, must be less than {sizes}")
    (x, i), (y, j), (z, k) = map(divmod, invocation, (lx, ly, lz))
    return ((z * gy + y) * gx + x) * lx * ly * lz + (k * ly + j) * lx + i


class _Stepper(StepCommands):
    """Adds the commands that need more of the dispatch than the record of one invocation."""

    def do_watch(self, argument: str) -> None:
        """Halt where a variable, a member or an element changes; backwards, at the last change."""
        pointer = self.context().value(argument)
        if not isinstance(pointer, Pointer):
            refuse(f'got "{argument}", must be a variable, a member or an element')
        history, type_, offset = pointer.variable, pointer.type, int(pointer.offset)
        part = None
        for id_, other in self.recorder.globals.items():
            if other.variable is history:
                part = VariableBytes(id_, offset, type_.nbytes or history.nbytes - offset)
        find = partial(self._changes, pointer, part)
        self.add(Point(history.name(type_, offset), find, True, part), "Watchpoint")
        if part is not None:
            writes = [write for write in self._writes(part) if write[0] <= self.at]
            info(self._written(*writes[-1]) if writes else "Not written so far.")

    def _changes(self, pointer: Pointer, part: VariableBytes | None) -> dict[int, str]:
        """Return the stops after changes of a part of a variable, with the values."""
        writes: dict[int, str] = {}
        if part is not None:
            if part.id not in self.recorder.globals:  # the invocation has not run
                return {}
            pointer = replace(pointer, variable=self.recorder.globals[part.id].variable)
            writes = {write[0]: "\n" + self._written(*write) for write in self._writes(part)}
        hits: dict[int, str] = {}
        before = None
        for at in pointer.variable.stops:
            text = Context({}, at).text(pointer)
            if before not in (None, text):
                hits[at] = f"Old value = {before}\nNew value = {text}{writes.get(at, '')}"
            before = text
        return hits

    def _writes(self, part: VariableBytes) -> list[tuple[int, int, SourceLine]]:
        return self.recorder.writes[self.recorder.parts.index(part)]

    def _written(self, _: int, who: int, place: SourceLine) -> str:
        source = self.run.program.text(place)
        return f"Written by invocation {self.run.global_id(who)} at {place}: {source}"

    def do_table(self, argument: str) -> None:
        """Print expressions, with commas between, for each lane of the subgroup; /w: workgroup."""
        form, text = format_of(argument)
        form, of_group = form.replace("w", ""), "w" in form
        expressions = [each.strip() for each in text.split(",")]
        for each in expressions:
            self.printed(f"/{form} {each}")
        if not self.stop.place.line:
            refuse("The invocation has ended.")
        self.record(around=self.at)
        run = self.run
        rows = [("", "invocation", *expressions)]
        for lane in self.recorder.lanes:
            who, is_active, scopes = lane
            if of_group or run.subgroup(who) == run.subgroup(self.watched):
                context, cells = Context(run.program.declared.names, self.at, *scopes), []
                for each in expressions:
                    try:
                        cells.append(context.text(context.value(each), form))
                    except CommandError:
                        cells.append("?")
                mark = "*" if who == self.watched else " " if is_active else "-"
                rows.append((mark, str(run.global_id(who)), *cells))
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        for row in rows:
            info("  ".join(text.rjust(width) for text, width in zip(row, widths, strict=True)))
        if any(row[0] == "-" for row in rows):
            info("- is not in this line")

    def do_invocation(self, argument: str) -> None:
        """Go on with another invocation X[,Y[,Z]], in the same line; without one, name this one."""
        self._switch(argument)

    def do_workgroup(self, argument: str) -> None:
        """Go on in another workgroup X[,Y[,Z]], as the same one of its invocations."""
        self._switch(argument, of_group=True)

    def _switch(self, argument: str, *, of_group: bool = False) -> None:
        ids, (lx, ly, lz) = self.run.global_id(self.watched), self.run.local
        if argument:
            numbers = argument.replace(",", " ").split()
            if len(numbers) > 3 or not all(re.fullmatch("[0-9]{1,9}", each) for each in numbers):
                refuse(f'got "{argument}", must be one to three numbers from 0')
            x, y, z = (*map(int, numbers), 0, 0)[:3]
            if of_group:
                x, y, z = x * lx + ids[0] % lx, y * ly + ids[1] % ly, z * lz + ids[2] % lz
            watched, place = number(self.case, (x, y, z)), self.stop.place
            visits = [stop.place for stop in self.stops[: self.at + 1]].count(place)
            # Variables of functions are other objects in another invocation.
            self.points = {
                n: point for n, point in self.points.items() if point.part or not point.is_watch
            }
            self.watched, self.at = watched, 0
            self.record()
            self.shown, self.back = None, False
            same = [at for at, stop in enumerate(self.stops) if stop.place == place]
            self.at = ([0, *same])[min(visits, len(same))] if place.line else len(self.stops) - 1
        x, y, z = self.run.global_id(self.watched)
        info(f"Invocation {(x, y, z)} of workgroup {(x // lx, y // ly, z // lz)}")
        self.show()
