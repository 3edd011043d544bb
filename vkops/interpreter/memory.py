"""Variables: buffers, shared memory, and variables of each invocation."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from math import gcd
from typing import Any, NamedTuple

import numpy as np

from vkops.interpreter.operations import Array, dtype_of, stored_dtype
from vkops.interpreter.program import is_pointer, parts_of, scalar_of, shape_of, zeros
from vkops.interpreter.shadow import Shadow
from vkops.interpreter.values import Numbers, Reason, SourceLine, Value, merge, take
from vkops.shaders.layout import ArrayType, ScalarType, StructType, Type
from vkops.shaders.module import Module

_ROW_ALIGNMENT = 8

NEVER = Reason("", SourceLine("", 0), is_provisional=True)
"""The reason for values that were never written, until they are read."""


class Active(NamedTuple):
    """The invocations that execute a block, of the batch of invocations that run at the same time.

    ``slots`` are their numbers in the batch, which has ``together`` invocations. ``who`` are their
    numbers in the dispatch, and ``groups`` the numbers of their workgroups in the batch. ``rest``
    is a call of a function that only these invocations still execute, or None.
    """

    slots: Array
    who: Array
    groups: Array
    together: int
    rest: object = None

    @property
    def at(self) -> Array | None:
        """The slots; None if all invocations are active."""
        return None if len(self.slots) == self.together else self.slots

    def some(self, mask: Array) -> Active:
        """Return the invocations that a mask selects."""
        chosen = np.flatnonzero(np.broadcast_to(mask, len(self.slots)))
        return Active(self.slots[chosen], self.who[chosen], self.groups[chosen], self.together)

    def one(self, row: int) -> Active:
        """Return the invocation with the row ``row`` of values."""
        return self.some(np.arange(len(self.who)) == row)


class Variable(ABC):
    """A variable of a shader; ``name`` is its name in the source, or a text such as %12."""

    name: str
    type: Type
    kind: str = "invocation"
    block: str = ""
    is_temporary: bool = False
    copied_at: SourceLine | None = None  # the call for whose argument it is a copy
    shadow: Shadow | None = None

    def why(self, reasons: Iterable[Reason], name: str, place: SourceLine) -> tuple[Reason, ...]:
        """Return the reasons why numbers are undefined, for the line that reads them by a name."""
        message = f"reads '{name}', which was never written"
        if self.block:
            message += f": block {self.block} is given a size, but no values"
        is_copy = self.is_temporary or place == self.copied_at
        never = Reason(message, place, block=self.block, is_provisional=is_copy)

        def reason(stored: Reason) -> Reason:
            if stored.is_provisional:
                return never
            # In shared memory, another invocation may have stored the value.
            return stored.passed(f"reads '{name}'", place) if self.kind == "group" else stored

        return tuple(map(reason, reasons))

    def element(self, offset: int, whole: Type | None = None) -> str:
        """Return the name of the number at an offset, such as ``part[3]``, or of ``whole``."""
        part, text, at = self.type, self.name, offset
        while part is not whole and not isinstance(part, ScalarType):
            if isinstance(part, StructType):
                inside = [member for member in part.members if member.offset <= at]
                if not inside:
                    break
                member = inside[-1]
                name = "" if text and member is part.unnamed else member.name
                text = f"{text}.{name}" if text and name else text or name
                at, part = at - member.offset, member.type
            else:
                number, at = divmod(at, part.stride)
                named = part.form == "vector" and number < 4
                text += f".{'xyzw'[number]}" if named else f"[{number}]"
                part = part.element
        return text

    @abstractmethod
    def load(self, type_: Type, offset: int | Array, active: Active, place: SourceLine) -> Value:
        """Return the value at an offset in bytes."""

    @abstractmethod
    def store(self, type_: Type, offset: int | Array, value: Value, active: Active) -> None:
        """Store a value at an offset in bytes."""


class Register(Variable):
    """A scalar, vector, matrix or pointer of which each invocation has its own.

    ``call`` is the call of the function that declares it, or None.
    """

    def __init__(
        self, name: str, type_: Type, value: Array | None = None, call: object = None
    ) -> None:
        self._call = call
        self.name, self.type = name, type_
        self._number = scalar_of(type_) or ScalarType("uint", 4)
        self._value: Value | None = None if value is None else Numbers(value)
        if value is None and not is_pointer(type_):
            nothing = np.zeros((1, *shape_of(type_)), dtype_of(self._number))
            self._value = Numbers(nothing, np.ones_like(nothing, bool), (NEVER,))

    @property
    def value(self) -> Value | None:
        """The values of all invocations; they are replaced, and never changed in place."""
        return self._value

    def load(self, type_: Type, offset: int | Array, active: Active, place: SourceLine) -> Value:
        if self._value is None:
            return zeros(type_)
        value = take(self._value, active.at)
        if not isinstance(value, Numbers):
            return value
        if shape_of(type_) != value.array.shape[1:]:
            value = value.moved(lambda whole: self._part(whole, type_, offset))
        if value.missing is None:
            return value
        return Numbers(value.array, value.missing, self.why(value.why, self.name, place))

    def _part(self, value: Array, type_: Type, offset: int | Array) -> Array:
        flat, numbers = value.reshape(len(value), -1), self._numbers(type_, offset)
        if len(numbers) == 1:
            part = flat[:, numbers[0]]
        else:
            rows = np.arange(len(flat)) if len(flat) > 1 else np.zeros(1, np.int64)
            part = flat[rows[:, None], numbers]
        return part.reshape(len(part), *shape_of(type_))

    def _numbers(self, type_: Type, offset: int | Array) -> Array:
        """Return the indices of the numbers of a part; one row for each invocation, or for all."""
        first = np.atleast_1d(np.asarray(offset)) // self._number.nbytes
        return first[:, None] + np.arange(int(np.prod(shape_of(type_))))

    def store(self, type_: Type, offset: int | Array, value: Value, active: Active) -> None:
        old = self._value
        if isinstance(value, Numbers) and shape_of(type_) != (shape := shape_of(self.type)):
            at = active.slots[:, None], self._numbers(type_, offset)

            def changed(whole: Array, part: Array) -> Array:
                updated = np.array(np.broadcast_to(whole, (active.together, *shape)))
                updated.reshape(active.together, -1)[at] = part.reshape(len(part), -1)
                return updated

            assert isinstance(old, Numbers)
            self._value = old.moved(changed, value)
            return
        old = None if active.rest is not None and active.rest is self._call else old
        self._value = merge(old, value, active.at, active.together)


class MemoryVariable(Variable):
    """A variable with addresses: the bytes of each instance are a row.

    There is one row for the dispatch (``kind`` is ""), or one for each "group" or "invocation".
    ``block`` is the block that the variable belongs to, if it got no values. Several memories can
    be parts of one memory. Then units are numbered for the whole, and each memory begins at the
    unit ``first``.
    """

    first = 0

    def __init__(
        self, name: str, type_: Type, kind: str, rows: int, nbytes: int, *, is_written: bool = False
    ) -> None:
        self.name, self.type, self.kind, self.nbytes = name, type_, kind, nbytes
        self._row = -(-max(nbytes, 1) // _ROW_ALIGNMENT) * _ROW_ALIGNMENT
        self._data = np.zeros(rows * self._row, np.uint8)
        scalars = [number.nbytes for number in type_.scalars]
        self.unit = min(scalars, default=4)
        # The number of the reason why each unit is undefined; 0 if it is defined.
        self._missing = None if is_written else np.ones(len(self._data) // self.unit, np.uint16)
        self._reasons = {NEVER: 1}
        self._all = 0
        self._asked: tuple[Any, ...] = (None,)

    def follow(self, module: Module) -> None:
        """Enable the tracking of accesses; of single bytes if a module has cooperative matrices.

        Numbers of such matrices can be smaller than those of the memory that they are stored in.
        """
        if "CooperativeMatrixKHR" in module.capabilities:
            self._missing = None if self._missing is None else np.repeat(self._missing, self.unit)
            self.first, self.unit = self.first * self.unit, 1
        self.shadow = Shadow(self.units)

    def share(self, others: Mapping[MemoryVariable, int]) -> None:
        """Make this memory and others parts of one memory; each begins at a byte of this one.

        All of them are written, and have one row.
        """
        if not others:
            return
        starts = {self: 0, **others}
        begin = min(starts.values())
        end = max(start + memory._row for memory, start in starts.items())
        data = np.zeros(end - begin, np.uint8)
        unit = gcd(*(memory.unit for memory in starts), *starts.values())
        for memory, start in starts.items():
            at = slice(start - begin, start - begin + memory.nbytes)
            data[at] = memory.contents()
            memory._data = data[at.start : at.start + memory._row]
            memory.unit, memory.first, memory._all = unit, at.start // unit, len(data) // unit

    def fill(self, data: bytes) -> None:
        """Set the first bytes."""
        self._data[: len(data)] = np.frombuffer(data, np.uint8)

    def contents(self) -> Array:
        """Return the bytes."""
        return self._data[: self.nbytes]

    def state(self, row: int) -> Array:
        """Return a copy of the bytes of a row, followed by which of them are undefined."""
        at = slice(row * self._row, (row + 1) * self._row)
        if self._missing is None:
            return self._data[at].copy()
        marks = self._missing[at.start // self.unit : at.stop // self.unit] != 0
        return np.concatenate((self._data[at], marks))

    def restore(self, state: Array) -> None:
        """Set the only row to a result of ``state``."""
        self._data, marks = state[: self._row], state[self._row :]
        self._missing = marks.astype(np.uint16) if len(marks) else None

    def rows(self) -> Array:
        """Return a copy of the bytes of all rows."""
        return self._data.reshape(-1, self._row).copy()

    def room(self, offset: int) -> int:
        """Return the number of bytes from an offset on."""
        return max(self.nbytes - offset, 0)

    @property
    def units(self) -> int:
        """The number of units, of the whole memory, that are accessed separately."""
        return self._all or len(self._data) // self.unit

    def addresses(self, type_: Type, offset: int | Array, active: Active) -> Array:
        """Return the first byte of each number of a scalar, vector or matrix."""
        asked = type_, offset, active  # observers ask again for the same access
        if all(one is other for one, other in zip(self._asked, asked, strict=False)):
            return self._asked[-1]
        steps: Array = np.zeros((), np.int64)
        part = type_
        while isinstance(part, ArrayType):
            steps = steps[..., None] + np.arange(part.count or 0) * part.stride
            part = part.element
        base: Any = np.atleast_1d(np.asarray(offset, np.int64))
        if self.kind:
            base = base + (active.slots if self.kind == "invocation" else active.groups) * self._row
        self._asked = *asked, base.reshape(-1, *(1,) * steps.ndim) + steps
        return self._asked[-1]

    def _own_parts(
        self, type_: Type, offset: int | Array, active: Active
    ) -> tuple[Any, Array, Array | None] | None:
        """Return the rows of invocations, and all rows' bytes and marks of a part.

        Return None if the part is not a scalar or vector at one offset, or if the kind is not
        "invocation".
        """
        is_short = isinstance(getattr(type_, "element", type_), ScalarType)
        if self.kind != "invocation" or not isinstance(offset, int) or not is_short:
            return None

        def part(data: Array, unit: int) -> Array:
            size = data.itemsize
            row, form = self._row // unit * size, f"V{type_.nbytes // unit * size}"
            return np.ndarray((data.nbytes // row,), form, data, offset // unit * size, (row,))

        rows = slice(None) if active.at is None else active.slots
        marks = None if self._missing is None else part(self._missing, self.unit)
        return rows, part(self._data, 1), marks

    def place_of(self, unit: int) -> int:
        """Return the byte of a unit within the row of its workgroup or invocation."""
        return self._place(unit * self.unit) if self.kind else (unit - self.first) * self.unit

    def _place(self, address: int) -> int:
        return address % self._row if self.kind else address

    def last_change(self, offset: int) -> tuple[int, int]:
        """Return time and invocation of the last change of a byte; time 0 if there was none."""
        assert self.shadow is not None
        return self.shadow.last_change(self.first + offset // self.unit)

    def units_of(self, number: ScalarType, addresses: Array) -> Array:
        """Return the units of numbers, with another axis if a number has several units."""
        first = addresses // self.unit
        if number.nbytes <= self.unit:
            return first
        return first[..., None] + np.arange(number.nbytes // self.unit)

    def touched(self, type_: Type, offset: int | Array, active: Active) -> Iterator[Array]:
        """Yield the units of each scalar, vector or matrix, with a row for each invocation.

        There is one row if all invocations access the same units.
        """
        number = scalar_of(type_)
        if number is not None:
            units = self.units_of(number, self.addresses(type_, offset, active)) + self.first
            yield units.reshape(len(units), -1)
            return
        for part, at in parts_of(type_):
            yield from self.touched(part, offset + at, active)

    def load(self, type_: Type, offset: int | Array, active: Active, place: SourceLine) -> Value:
        """Return a value; its parts are read one after the other."""
        number = scalar_of(type_)
        if number is None:
            parts = parts_of(type_)
            return tuple(self.load(part, offset + at, active, place) for part, at in parts)
        if (own_parts := self._own_parts(type_, offset, active)) is not None:
            rows, data, marks = own_parts
            if marks is None or not marks[rows].copy().view(np.uint16).any():
                array = data[rows].copy()
                array = array.view(stored_dtype(number)).reshape(len(array), *shape_of(type_))
                return Numbers(array != 0 if number.kind == "bool" else array)
        addresses = self.addresses(type_, offset, active)
        array = self._data.view(stored_dtype(number))[addresses // number.nbytes]
        if number.kind == "bool":
            array = array != 0
        if self._missing is None:
            return Numbers(array)
        missing: Any = self._missing[self.units_of(number, addresses)]
        if number.nbytes > self.unit:
            missing = missing.max(-1)
        if not missing.any():
            return Numbers(array)
        numbers: dict[Reason, int] = {}  # the reasons of the numbers that are read
        missing = Numbers(missing, missing, tuple(self._reasons)).reasons(numbers)
        first = self.element(self._place(int(addresses[missing != 0][0])), type_)
        return Numbers(array, missing, self.why(numbers, re.sub(r"\[\d+\]", "", first), place))

    def store(self, type_: Type, offset: int | Array, value: Value, active: Active) -> None:
        number = scalar_of(type_)
        if isinstance(value, tuple):
            for (part, at), each in zip(parts_of(type_), value, strict=True):
                self.store(part, offset + at, each, active)
            return
        assert isinstance(value, Numbers)
        assert number is not None
        numbers, missing = value.array, value.missing
        own_parts = self._own_parts(type_, offset, active)
        if own_parts is not None and missing is None:
            rows, data, own_marks = own_parts
            whole = np.ascontiguousarray(numbers, stored_dtype(number))
            data[rows] = whole.reshape(-1).view(data.dtype)
            if own_marks is not None:
                own_marks[rows] = np.zeros(own_marks.itemsize, np.uint8).view(own_marks.dtype)
            return
        addresses = self.addresses(type_, offset, active)
        if len(addresses) == 1 and len(numbers) > 1:  # the value of the last invocation remains
            value = value.take(np.array([len(numbers) - 1]))
        self._data.view(stored_dtype(number))[addresses // number.nbytes] = value.array
        if self._missing is not None:
            marks = value.reasons(self._reasons)
            if number.nbytes > self.unit:
                marks = marks[..., None]
            self._missing[self.units_of(number, addresses)] = marks

    def change(
        self, number: ScalarType, offset: int | Array, active: Active, operand: Array, update: Any
    ) -> Array:
        """Replace numbers, one invocation after the other; return the values before.

        ``update`` computes the new numbers from the old ones and the operands. If it is a NumPy
        ufunc, it is called for many invocations at once.
        """
        view, count = self._data.view(stored_dtype(number)), len(active.slots)
        index = self.addresses(number, offset, active) // number.nbytes
        index = np.broadcast_to(index, count)
        operand = np.broadcast_to(operand, (count, *operand.shape[1:]))
        order = np.argsort(index, kind="stable")
        starts = np.flatnonzero(np.r_[True, np.diff(index[order]) != 0])
        lengths = np.diff(np.r_[starts, count])
        before = np.zeros(count, view.dtype)
        if hasattr(update, "accumulate") and len(starts) < lengths.max():
            for start, length in zip(starts.tolist(), lengths.tolist(), strict=True):
                chosen = order[start : start + length]
                at = index[chosen[0]]
                all_ = update.accumulate(np.r_[view[at : at + 1], operand[chosen]])
                before[chosen], view[at] = all_[:-1], all_[-1]
        else:
            bits = f"u{view.itemsize}"
            while len(order):  # until each has the value that the one before it stored
                at = index[order]
                before[order] = old = view[at]
                new = update(old, operand[order])
                changes = np.flatnonzero(new.view(bits) != old.view(bits))
                if not len(changes):
                    break
                first = changes[np.flatnonzero(np.diff(at[changes], prepend=-1))]
                view[at[first]] = new[first]
                which = np.searchsorted(at[first[1:]], at, "right")  # by the changed number
                later = np.arange(len(order)) > first[which]
                order = order[later & (at[first[which]] == at)]
        if self._missing is not None:
            self._missing[self.units_of(number, index * number.nbytes)] = 0
        return before
