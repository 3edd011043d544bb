"""A debugger of one invocation of a shader, in the terminal, with the commands of gdb."""

from __future__ import annotations

import cmd
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn, TextIO

from vkops.console import info
from vkops.debug.shader_check import Case
from vkops.errors import InvalidDescError, ShaderCompileError
from vkops.interpreter.findings import Invocation
from vkops.interpreter.recorder import ALONE, MAX_STOPS, Recorder, Scope, Stop
from vkops.interpreter.values import Partial, Place, Pointer
from vkops.shaders.layout import Array, Number, Struct

_ALIASES = {
    "b": "break", "bt": "backtrace", "rs": "reverse_step", "rn": "reverse_next",
    "rc": "reverse_continue",
}  # fmt: skip
_INDEX = r"-?\d{1,18}"
_SHOWN = 200
"""Elements of an array that are printed."""


def step(case: Case, invocation: Invocation, commands: TextIO | None = None) -> None:
    """Run a shader, and let a person go through the lines that an invocation executed.

    ``commands`` are read in place of standard input.

    Raises:
        InvalidDescError: there is no such invocation (SH-07).
        ShaderCompileError: the module has no lines, or uses what the interpreter does not support.
    """
    name, (lx, ly, lz), (gx, gy, _) = case.shader.name, case.shader.module.local_size, case.groups
    sizes = tuple(n * size for n, size in zip(case.groups, (lx, ly, lz), strict=True))
    if any(n >= size for n, size in zip(invocation, sizes, strict=True)):
        message = f"got {invocation}, must be less than {sizes}"
        raise InvalidDescError(name, "invocation", message, "SH-07")
    (x, i), (y, j), (z, k) = map(divmod, invocation, (lx, ly, lz))
    watched = ((z * gy + y) * gx + x) * lx * ly * lz + (k * ly + j) * lx + i
    record = Recorder(watched)
    case.run(observers=[record])
    if len(record.stops) == 1:
        message = "got SPIR-V without source lines (OpLine); compile it with them (glslang -g)"
        raise ShaderCompileError(f"{name}: {message}")
    info(f"{name}: invocation {invocation} executed {len(record.stops) - 1:,} lines; try 'help'")
    stepper = _Stepper(record, commands)
    stepper.show()
    stepper.cmdloop()


class _CommandError(Exception):
    """The user's command is wrong; the text says why."""


def _go(text: str, wanted: Callable[[Any, Stop, int], bool], *, back: bool = False) -> Any:
    """Return a command that goes to another stop; ``wanted`` takes it, and the depth before.

    Backwards, it goes to the middle of a line, after a call in it, only for a fault there.
    """

    def go(self: _Stepper, argument: str) -> None:
        for _ in range(_integer(argument or "1")):
            depth, end = self.stop.scope.depth, len(self.stops)
            ahead = range(self.at - 1, -1, -1) if back else range(self.at + 1, end)
            skips = back and wanted is not _at_halt
            stops = (at for at in ahead if not (skips and self.stops[at].is_return))
            self.at = next((at for at in stops if wanted(self, self.stops[at], depth)), -1)
            if self.at < 0:
                if back:
                    info("No more reverse-execution history.")
                self.at = 0 if back else end - 1
                break
        self.show()

    go.__doc__ = text
    return go


def _anywhere(self: _Stepper, stop: Stop, depth: int) -> bool:
    return True


def _on_new_line(self: _Stepper, stop: Stop, depth: int) -> bool:
    return stop.scope.depth < depth + (not stop.is_return)


def _in_caller(self: _Stepper, stop: Stop, depth: int) -> bool:
    return stop.scope.depth < depth


def _at_halt(self: _Stepper, stop: Stop, depth: int) -> bool:
    return (stop.place in self.breaks.values() and not stop.is_return) or bool(stop.faults)


class _Stepper(cmd.Cmd):
    """The commands, and where the invocation is: ``at`` is the number of a stop."""

    prompt = "(vkops) "
    identchars = cmd.Cmd.identchars + "-"

    def __init__(self, record: Recorder, commands: TextIO | None) -> None:
        super().__init__(stdin=commands)
        self.use_rawinput = self.stdin.isatty()
        self.run, self.globals = record.machine, record.globals
        self.stops, self.at = record.stops, 0
        self.breaks: dict[int, Place] = {}
        self._shown: Scope | None = None
        blocks = (block for f in self.run.program.functions.values() for block in f.blocks)
        self._places = {step.place for block in blocks for step in block.steps if step.place.line}
        self._files = {**{place.file: [] for place in self._places}, **self.run.program.sources}
        self._words = {*re.findall(r"\w+", "\n".join(map("\n".join, self._files.values())))}
        if not self._words:
            info("The module has no source text (OpSource): only numbers of lines are shown.")
        if not any(self.run.program.found.names.values()):
            info("The module has no names (OpName): variables are called %1, %2 and so on.")

    @property
    def stop(self) -> Stop:
        """Where the invocation is."""
        return self.stops[self.at]

    # -- input and output --------------------------------------------------------------------------

    def precmd(self, line: str) -> str:
        """Print a command that nobody types in a terminal."""
        if line == "EOF" or not self.use_rawinput:
            info("" if line == "EOF" else line)
        return line

    def onecmd(self, line: str) -> bool:
        """Execute a command; print what is wrong with it, if anything is."""
        try:
            return bool(super().onecmd(line))
        except _CommandError as error:
            info(str(error))
        return False

    def parseline(self, line: str) -> tuple[str | None, str | None, str]:
        """Split a line into a command, which can be abbreviated, and its argument."""
        name, argument, line = super().parseline(line)
        return (self._command(name) if name else name), argument, line

    def _command(self, text: str) -> str:
        text = _ALIASES.get(text, text).replace("-", "_")
        found = [name[3:] for name in self.get_names() if name.startswith(f"do_{text}")]
        if text not in found and len(found) != 1:
            _refuse(f'{"Ambiguous" if found else "Undefined"} command: "{text}". Try "help".')
        return text if text in found else found[0]

    def show(self) -> None:
        """Print where the invocation is."""
        scope, place, is_return, faults = self.stop
        if self.at == len(self.stops) - 1:
            end = "A loop does not end." if self.run.stopped else "The invocation has ended."
            info("The record is full." if self.at == MAX_STOPS else end)
        else:
            hits = [f"Breakpoint {n}, " for n, at in self.breaks.items() if at == place]
            if scope is not self._shown or (hits and not is_return):
                info("".join(hits[:1]) + self._call(scope, place))
            info(self._line(*place))
            for fault in faults:
                info(f"Fault: {fault}")
        self._shown = scope

    def _call(self, scope: Scope, place: Place) -> str:
        arguments = ", ".join(f"{n}={_text(p)}" for n, p in self._named(scope.parameters).items())
        return f"{scope.function} ({arguments}) at {place}"

    def _line(self, file: str, line: int) -> str:
        text = "".join(self._files[file][line - 1 : line] or f"in {file}")
        return f"{line:<5} {text.expandtabs()}".rstrip()

    # -- commands ----------------------------------------------------------------------------------

    do_step = _go("Go to the next line, also of a function that is called.", _anywhere)
    do_next = _go("Go to the next line of this function.", _on_new_line)
    do_finish = _go("Go to where this function returns.", _in_caller)
    do_continue = _go("Go to the next breakpoint or fault.", _at_halt)
    do_reverse_step = _go("Go back by a line, also into a function.", _anywhere, back=True)
    do_reverse_next = _go("Go back by a line of this function.", _on_new_line, back=True)
    do_reverse_finish = _go("Go back to the call of this function.", _in_caller, back=True)
    do_reverse_continue = _go("Go back to the breakpoint or fault before.", _at_halt, back=True)

    def do_break(self, argument: str) -> None:
        """Set a breakpoint at LINE or FILE:LINE; without one, at this line."""
        file, _, line = argument.rpartition(":")
        wanted = self.stop.place
        if argument:
            wanted = Place(file or wanted.file, _integer(line))
        found = [each for each in self._places if each.file == wanted.file and each >= wanted]
        if not found:
            _refuse(f"There is no code at {wanted}.")
        number = max(self.breaks, default=0) + 1
        self.breaks[number] = min(found)
        info(f"Breakpoint {number} at {min(found)}")

    def do_delete(self, argument: str) -> None:
        """Delete breakpoint N, or all."""
        for number in [_integer(argument)] if argument else list(self.breaks):
            if self.breaks.pop(number, None) is None:
                _refuse(f"There is no breakpoint {number}.")

    def do_backtrace(self, argument: str) -> None:
        """Print the calls that the invocation is in."""
        at: tuple[Scope, Place] | None = (self.stop.scope, self.stop.place)
        if not self.stop.place.line:
            _refuse("No stack.")
        while at is not None:
            info(f"#{self.stop.scope.depth - at[0].depth}  {self._call(*at)}")
            at = at[0].caller

    def do_list(self, argument: str) -> None:
        """List ten lines around this one, or around LINE."""
        file, line = self.stop.place
        first = max((_integer(argument) if argument else line) - 5, 1)
        lines = range(first, min(first + 10, len(self._files[file]) + 1))
        if not lines:
            _refuse(f"Line {first} is out of range: {file} has {len(self._files[file])} lines.")
        for number in lines:
            info(self._line(file, number))

    def do_info(self, argument: str) -> None:
        """Print locals, args, buffers (with shared memory) or breakpoints."""
        kinds = ("locals", "args", "breakpoints", "buffers")
        kind = next((each for each in kinds if argument and each.startswith(argument)), None)
        if kind is None:
            _refuse(f'got "{argument}", must be {" or ".join(kinds)}')
        if kind == "breakpoints":
            lines = [f"{number}  {place}" for number, place in self.breaks.items()]
        elif kind == "buffers":
            shared = {i: p for i, p in self.globals.items() if p.variable.kind != "invocation"}
            lines = [f"{name} = {_text(pointer)}" for name, pointer in self._named(shared).items()]
        else:
            scope = self.stop.scope
            found = self._named(scope.variables if kind == "locals" else scope.parameters)
            # Names that the source does not have are the compiler's.
            names = [n for n in found if n in self._words or not self._words]
            lines = [f"{name} = {_text(found[name])}" for name in names]
        for line in lines or [f"No {kind}."]:
            info(line)

    def do_print(self, argument: str) -> None:
        """Print a variable or a part of it, such as data[i] or v.x."""
        info(f"{argument} = {_text(self._value(argument))}")

    def do_help(self, argument: str) -> None:
        """List the commands; an empty line repeats the last one, a number after it does so, too."""
        names = [name[3:] for name in self.get_names() if name.startswith("do_")]
        for name in [self._command(argument)] if argument else names[1:]:
            info(f"{name.replace('_', '-'):17} {getattr(self, f'do_{name}').__doc__}")

    def do_quit(self, argument: str) -> bool:
        """End; also at the end of input."""
        return True

    do_EOF = do_quit  # noqa: N815

    # -- variables ---------------------------------------------------------------------------------

    def _named(self, variables: Mapping[int, Pointer]) -> dict[str, Pointer]:
        """Return variables as they are here, by name; the members of a block without a name.

        Of several with a name, such as those of two loops, it is the one that was written last.
        """
        names = self.run.program.found.names
        newest: dict[str, Pointer] = {}
        for id_, pointer in variables.items():
            name = names.get((id_,)) or f"%{id_}"
            before = newest.get(name, pointer)
            if pointer.variable.since(self.at) >= before.variable.since(self.at):
                newest[name] = pointer
        found = {n: p._replace(variable=p.variable.at(self.at)) for n, p in newest.items()}
        for name in (f"%{id_}" for id_ in variables if names.get((id_,)) == ""):
            block = found.pop(name)
            found.update({key: _part(block, key) for key in _keys(block)})
        return found

    def _value(self, text: str) -> Pointer:
        """Return what a text such as data[i].x stands for."""
        while index := re.search(rf"\[(?!{_INDEX}\])([^][]*(?:\[{_INDEX}\][^][]*)*)\]", text):
            number = _text(self._value(index[1]))
            text = f"{text[: index.start()]}[{number}]{text[index.end() :]}"
        match = re.fullmatch(rf"([\w%]+)((?:\.\w+|\[{_INDEX}\])*)", text.strip())
        if match is None:
            _refuse(f'got "{text}", must be a variable, with .member and [index]')
        for variables in (self.stop.scope.variables, self.stop.scope.parameters, self.globals):
            if (found := self._named(variables).get(match[1])) is not None:
                for part in re.findall(r"[-\w]+", match[2]):
                    found = _part(found, int(part) if part.strip("-").isdecimal() else part)
                return found
        return _refuse(f'No symbol "{match[1]}" in current context.')


def _refuse(message: str) -> NoReturn:
    raise _CommandError(message)


def _integer(text: str) -> int:
    if not re.fullmatch("0*[1-9][0-9]{0,8}", text):
        _refuse(f'got "{text}", must be a number from 1')
    return int(text)


def _keys(whole: Pointer) -> Sequence[Any]:
    """Return the names of members, or the indices of elements that an array or its buffer has."""
    type_ = whole.type
    if isinstance(type_, Struct):
        return [member.name for member in type_.members]
    if not isinstance(type_, Array):
        return ()
    left = whole.variable.nbytes - int(whole.offset)
    return range(max(left, 0) // type_.stride if type_.count is None else type_.count)


def _part(whole: Pointer, key: Any) -> Pointer:
    """Return a member by its name, or an element by its index or as x, y, z or w."""
    type_, keys = whole.type, _keys(whole)
    if isinstance(type_, Struct) and isinstance(key, int) and len(keys) == 1:  # HLSL's buffers
        return _part(_part(whole, keys[0]), key)
    if isinstance(type_, Array) and type_.form == "vector" and key in (*"xyzw", *"rgba"):
        key = "xrygzbwa".index(key) // 2
    if key not in keys:
        limit = f"0 to {len(keys) - 1}" if isinstance(keys, range) else " or ".join(keys)
        _refuse(f"got {key}, must be {limit}" if keys else f"got {key}, but a number has no parts")
    if isinstance(type_, Struct):
        member = type_.members[keys.index(key)]
        return Pointer(whole.variable, member.type, whole.offset + member.offset)
    assert isinstance(type_, Array)
    return Pointer(whole.variable, type_.element, whole.offset + key * type_.stride)


def _text(pointer: Pointer) -> str:
    """Return a value as gdb prints it, up to 200 numbers."""
    left = _SHOWN

    def text(part: Pointer) -> str:
        nonlocal left
        if isinstance(part.type, Number):
            left -= 1
            value = part.variable.load(part.type, part.offset, ALONE, Place("", 0))
            return "<not written>" if isinstance(value, Partial) else str(value[0]).lower()
        texts = []
        for key in _keys(part):
            if left <= 0:
                texts.append("...")
                break
            name = f"{key} = " if isinstance(part.type, Struct) else ""
            texts.append(name + text(_part(part, key)))
        return f"{{{', '.join(texts)}}}"

    return text(pointer)
