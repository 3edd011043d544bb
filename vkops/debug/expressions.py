"""Expressions of a shader's variables in a debugger: their values, and the values as text."""

from __future__ import annotations

import ast
import functools
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from vkops.interpreter.recorder import ALONE
from vkops.interpreter.values import Numbers, Pointer, SourceLine
from vkops.shaders.layout import ArrayType, ScalarType, StructType

_SHOWN = 200
"""The number of elements of an array that are printed."""

FORMATS: Mapping[str, Callable[[Any], str]] = {
    "": lambda number: str(number).lower(), "x": hex, "t": bin, "u": str, "d": str, "f": str,
}  # fmt: skip
"""The formats of numbers, by the letter of ``print/x`` and so on, which reinterprets the bits."""

_NAME = re.compile(r"(?:^|(?<=[-+*/%(\[<>=!&|~^]))\s*%(\d+)|\b[A-Za-z_]\w*")
_OF_C = (
    (r"&&", " and "),
    (r"\|\|", " or "),
    (r"!(?!=)", " not "),
    (r"\b(0x[\da-fA-F]+|\d+)[uU]\b", r"\1"),
)


_ERRORS = (
    SyntaxError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError,
    MemoryError,
)  # fmt: skip
"""The errors that Python raises for invalid expressions and for operands of wrong types."""


def _quotient(a: Any, b: Any) -> Any:
    is_float = any(np.asarray(each).dtype.kind == "f" for each in (a, b))
    return np.true_divide(a, b) if is_float else (a - np.fmod(a, b)) // b


_OPERATORS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Mod: np.fmod,
    ast.Div: _quotient, ast.BitAnd: operator.and_, ast.BitOr: operator.or_,
    ast.BitXor: operator.xor, ast.LShift: operator.lshift, ast.RShift: operator.rshift,
    ast.Invert: operator.invert, ast.UAdd: operator.pos, ast.USub: operator.neg,
    ast.Not: np.logical_not, ast.And: np.logical_and, ast.Or: np.logical_or,
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le,
    ast.Gt: operator.gt, ast.GtE: operator.ge,
}  # fmt: skip


_COMPONENTS = ("xyzw", "rgba", "stpq")
"""The letters of the components of vectors."""


class CommandError(Exception):
    """The user's command is wrong; the text says why."""


def refuse(message: str) -> NoReturn:
    """Raise a CommandError."""
    raise CommandError(message)


class Context:
    """The variables that expressions can name at a stop; the innermost scope comes first."""

    def __init__(
        self, names: Mapping[tuple[int, ...], str], stop: int, *scopes: Mapping[int, Pointer]
    ) -> None:
        self._names, self._stop, self._scopes = names, stop, scopes

    def named(self, variables: Mapping[int, Pointer]) -> dict[str, Pointer]:
        """Return variables by name; members of a block without a name are variables, too.

        If several variables have a name, as in two loops, it is the one that was written last.
        """
        newest: dict[str, Pointer] = {}
        for id_, pointer in variables.items():
            name = self._names.get((id_,)) or f"%{id_}"
            before = newest.get(name, pointer)
            if pointer.variable.since(self._stop) >= before.variable.since(self._stop):
                newest[name] = pointer
        for name in (f"%{id_}" for id_ in variables if self._names.get((id_,)) == ""):
            block = newest.pop(name)
            newest.update({key: _part(block, key) for key in _keys(block)})
        return newest

    def value(self, text: str) -> Any:
        """Return the value of an expression: numbers, or a pointer to a variable or a part."""
        named = _NAME.sub(lambda m: f"p{m[1]}" if m[1] else f"v_{m[0]}", text.strip())
        for pattern, python in _OF_C:
            named = re.sub(pattern, python, named)
        try:
            with np.errstate(all="ignore"):
                return self._value(ast.parse(named.strip(), mode="eval").body)
        except _ERRORS:
            refuse(f'got "{text}", must be an expression such as data[i - 1] or row * size.k')

    def _value(self, node: ast.AST) -> Any:
        match node:
            case ast.Name(id=name):
                return self._variable(name[2:] if name[0] == "v" else f"%{name[1:]}")
            case ast.Attribute(value=whole, attr=name):
                return self._member(self._value(whole), name[2:])
            case ast.Subscript(value=whole, slice=index):
                return _part(self._value(whole), int(self.numbers(self._value(index))))
            case ast.Constant(value=int() | float() as number):
                return number
            case ast.UnaryOp(op=op, operand=operand):
                return self._applied(op, operand)
            case ast.BinOp(left=left, op=op, right=right):
                return self._applied(op, left, right)
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                return self._applied(op, left, right)
            case ast.BoolOp(op=op, values=values):
                return functools.reduce(_OPERATORS[type(op)], map(self._number_of, values))
        raise SyntaxError

    def _member(self, whole: Any, name: str) -> Any:
        """Return a member of a structure, or the components of a vector that letters select."""
        letters = next((each for each in _COMPONENTS if {*name} <= {*each}), "")
        is_memory = isinstance(whole, Pointer)
        is_vector = not is_memory or getattr(whole.type, "form", "") == "vector"
        if not (letters and is_vector):
            return _part(whole, name)
        size = len(_keys(whole)) if is_memory else np.size(whole) * np.ndim(whole)
        chosen = [*map(letters.index, name)]
        if max(chosen) >= size:
            refuse(f"got .{name}, must be of {letters[:size]}" if size else "a number has no parts")
        if is_memory and not name[1:]:
            return _part(whole, chosen[0])
        return self.numbers(whole)[chosen if name[1:] else chosen[0]]

    def _number_of(self, node: ast.AST) -> Any:
        return self.numbers(self._value(node))

    def _applied(self, op: ast.AST, *nodes: ast.AST) -> Any:
        """Return an operator's result; literal numbers get the type of the other operands."""
        numbers = [*map(self._number_of, nodes)]
        types = [number.dtype for number in numbers if hasattr(number, "dtype")]
        for n, number in enumerate(numbers):
            if types and not hasattr(number, "dtype"):
                is_whole = isinstance(number, int) or types[0].kind == "f"
                numbers[n] = np.array(number).astype(types[0] if is_whole else "f4")[()]
        return _OPERATORS[type(op)](*numbers)

    def _variable(self, name: str) -> Any:
        if name in ("true", "false"):
            return np.bool_(name == "true")
        for variables in self._scopes:
            if (pointer := self.named(variables).get(name)) is not None:
                return pointer
        return refuse(f'No symbol "{name}" in current context.')

    def numbers(self, value: Any) -> Any:
        """Return the number or vector that a pointer points to; return other values unchanged."""
        if not isinstance(value, Pointer):
            return value
        if not isinstance(value.type, ScalarType) and getattr(value.type, "form", "") != "vector":
            refuse("a structure or an array is no number")
        numbers = self._load(value)
        if numbers.missing is not None:
            refuse(f"{value.variable.name(value.type, value.offset)} is not written")
        return numbers.array[0]

    def _load(self, pointer: Pointer) -> Numbers:
        memory = pointer.variable.at(self._stop)
        numbers: Numbers = memory.load(pointer.type, pointer.offset, ALONE, SourceLine("", 0))
        return numbers

    def text(self, value: Any, form: str = "") -> str:
        """Return a value as gdb prints it, with up to 200 numbers."""
        left = _SHOWN

        def text(part: Any) -> str:
            nonlocal left
            if isinstance(part, Pointer) and isinstance(part.type, ScalarType):
                numbers = self._load(part)
                part = None if numbers.missing is not None else numbers.array[0]
            if (
                isinstance(part, Pointer)
                and isinstance(part.type, StructType)
                and part.type.unnamed
            ):
                return text(_part(part, part.type.unnamed.name))
            if not isinstance(part, Pointer):
                left -= 1
                return "<not written>" if part is None else _formatted(part, form)
            texts = []
            for key in _keys(part):
                if left <= 0:
                    texts.append("...")
                    break
                name = f"{key} = " if isinstance(part.type, StructType) else ""
                texts.append(name + text(_part(part, key)))
            return f"{{{', '.join(texts)}}}"

        return text(value)


def _formatted(numbers: Any, form: str) -> str:
    if np.ndim(numbers):
        return f"{{{', '.join(_formatted(number, form) for number in numbers)}}}"
    if form:
        number = np.asarray(numbers)[()]
        kind = {"d": "i", "f": "f"}.get(form, "u")
        if kind == "f" and number.itemsize == 1:
            refuse("a number of 8 bits is no float")
        numbers = number.view(f"{kind}{number.itemsize}")
    return FORMATS[form](numbers)


def _keys(whole: Pointer) -> Sequence[Any]:
    """Return the names of members, or the indices of the elements of an array."""
    type_ = whole.type
    if isinstance(type_, StructType):
        return [member.name for member in type_.members]
    if not isinstance(type_, ArrayType):
        return ()
    left = whole.variable.nbytes - int(whole.offset)
    return range(max(left, 0) // type_.stride if type_.count is None else type_.count)


def _part(whole: Pointer, key: Any) -> Pointer:
    """Return a member by its name, or an element by its index."""
    type_, keys = whole.type, _keys(whole)
    if isinstance(type_, StructType) and type_.unnamed and key not in keys:
        return _part(_part(whole, type_.unnamed.name), key)
    if key not in keys:
        limit = f"0 to {len(keys) - 1}" if isinstance(keys, range) else " or ".join(keys)
        refuse(f"got {key}, must be {limit}" if keys else f"got {key}, but a number has no parts")
    if isinstance(type_, StructType):
        member = type_.members[keys.index(key)]
        return Pointer(whole.variable, member.type, whole.offset + member.offset)
    assert isinstance(type_, ArrayType)
    return Pointer(whole.variable, type_.element, whole.offset + key * type_.stride)
