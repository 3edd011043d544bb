"""Cooperative matrices (SPV_KHR_cooperative_matrix).

The elements of a matrix are numbered row by row. A scope has ``size`` invocations. Its invocation
``i`` has the elements ``i``, ``i + size``, ``i + 2 * size`` and so on; the invocation's value is an
array of these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from vkops.interpreter.memory import MemoryVariable
from vkops.interpreter.operations import Array, integers
from vkops.interpreter.order import subgroup_of
from vkops.interpreter.program import Decoded
from vkops.interpreter.state import State
from vkops.interpreter.subgroups import Subgroups
from vkops.interpreter.values import Numbers, Outside, Pointer, Reason
from vkops.shaders.binary import Op
from vkops.shaders.layout import ArrayType, ScalarType, StructType

_ROW_MAJOR, _COLUMN_MAJOR = 0, 1
_SATURATING = 16
"""The operand of a product whose sums saturate; the lower bits say which matrices are signed."""


class _Matrix(NamedTuple):
    """The type of a matrix; each invocation has ``length`` elements."""

    number: ScalarType
    size: int
    rows: int
    columns: int
    length: int

    @classmethod
    def of(cls, run: State, type_: int) -> _Matrix:
        """Return the type with an id."""
        program = run.program
        _, _, scope, *sizes = program.declared.defined[type_].words
        rows, columns = map(program.number, sizes[:2])
        array: Any = program.type(type_)
        size = program.scopes[program.number(scope)]
        return cls(array.element, size, rows, columns, array.count)

    def lanes(self, run: State) -> Array:
        """Return the numbers of the active invocations within their scopes."""
        return run.active.who % run.group_size % self.size

    def whole(self, group: Subgroups, value: Array, fill: Any) -> Array:
        """Return the matrices of all scopes; elements of inactive invocations are ``fill``."""
        value = np.broadcast_to(value, (len(group.row), self.length))
        flat = np.swapaxes(group.table(value, fill), 1, 2).reshape(group.rows, -1)
        return flat[:, : self.rows * self.columns].reshape(-1, self.rows, self.columns)

    def parts(self, group: Subgroups, whole: Array) -> Array:
        """Return the elements of each invocation from the matrices of all scopes."""
        flat = np.zeros((group.rows, self.length * self.size), whole.dtype)
        flat[:, : self.rows * self.columns] = whole.reshape(group.rows, -1)
        table = np.swapaxes(flat.reshape(group.rows, self.length, self.size), 1, 2)
        return table[group.row, group.column]


def _array_of(pointer: Pointer) -> tuple[ArrayType | None, Array]:
    """Return the array that a pointer points into, and its offset for each invocation."""
    part, at = pointer.variable.type, np.atleast_1d(np.asarray(pointer.offset, np.int64))
    start = np.zeros_like(at)
    while isinstance(part, StructType) or (isinstance(part, ArrayType) and part.form == "array"):
        if isinstance(part, StructType):
            first = int((at - start)[0])
            inside = [member for member in part.members if member.offset <= first]
            if not inside:
                return None, start
            start, part = start + inside[-1].offset, inside[-1].type
        elif part.element is pointer.type:
            return part, start
        else:
            start, part = start + (at - start) // part.stride * part.stride, part.element
    return None, start


def _elements(run: State, type_: int, ids: Sequence[int]) -> Iterator[tuple[Pointer, Array]]:
    """Yield pointers to the elements of each invocation, and which invocations have an element.

    ``ids`` are those of the pointer, the layout and the stride.
    """
    matrix, pointer = _Matrix.of(run, type_), run.pointer(ids[0])
    order = int(run.value(ids[1])[0])
    if order not in (_ROW_MAJOR, _COLUMN_MAJOR):
        run.refuse(f"the layout {order} of a cooperative matrix")
    stride = run.value(ids[2]).astype(np.int64) * pointer.type.nbytes if ids[2:] else 0
    memory, array, start = pointer.variable, None, np.zeros(1, np.int64)
    if isinstance(memory, MemoryVariable):
        array, start = _array_of(pointer)
    count = matrix.rows * matrix.columns
    for number in range(matrix.length):
        at = number * matrix.size + matrix.lanes(run)
        row, column = np.divmod(np.minimum(at, count - 1), matrix.columns)
        if order == _COLUMN_MAJOR:
            row, column = column, row
        offset = pointer.offset + row * stride + column * matrix.number.nbytes
        outside = pointer.outside
        if array is not None:
            length = array.count or memory.room(int(start[0])) // array.stride
            index = (offset - start) // array.stride
            wrong = (index < 0) | (index >= length)
            if outside is None and wrong.any():
                outside = Outside(memory.element(int(start[0]), array), wrong, index, length)
            offset = np.where(wrong, start, offset)
        yield Pointer(memory, matrix.number, offset, outside), at < count


def _load(run: State, step: Decoded) -> Numbers:
    elements = _elements(run, step.type, step.operands[:3])
    first, *others = [run.load_numbers(pointer) for pointer, _ in elements]
    return first.moved(lambda *arrays: np.stack(np.broadcast_arrays(*arrays), 1), *others)


def _store(run: State, step: Decoded) -> None:
    pointer_id, id_, *rest = step.operands[:4]
    value, active = run.numbers(id_), run.active
    for number, (pointer, has) in enumerate(
        [*_elements(run, run.program.value_types[id_], (pointer_id, *rest))]
    ):
        part = value.moved(lambda whole, at=number: whole[:, at])
        if not has.all():
            rows = np.flatnonzero(has)
            run.active, pointer, part = active.some(has), pointer.take(rows), part.take(rows)
        if has.any():
            run.store(pointer, part)
        run.active = active


def _multiply_add(run: State, step: Decoded) -> Numbers:
    ids, flags = step.operands[:3], (*step.operands[3:], 0)[0]
    matrices = [_Matrix.of(run, run.program.value_types[id_]) for id_ in ids]
    values = [*map(run.numbers, ids)]
    result = matrices[2]
    _, rows = np.unique(
        subgroup_of(run.active.who, run.group_size, result.size), return_inverse=True
    )
    group = Subgroups(rows, result.lanes(run), result.size)
    kinds = ["s" if flags >> n & 1 else "u" for n in range(4)]
    wide = []
    for matrix, numbers, kind in zip(matrices, values, kinds, strict=False):
        exact: Any = np.float64
        value = numbers.array
        if matrix.number.kind != "float":
            value = integers(np.ascontiguousarray(value), kind)
            is_short = matrices[0].number.nbytes <= 2 and result.number.nbytes <= 4
            exact = np.int64 if is_short else object
        wide.append(matrix.whole(group, value, 0).astype(exact))
    total = wide[0] @ wide[1] + wide[2]
    dtype = values[2].array.dtype
    elements = result.parts(group, _narrowed(total, dtype, kinds[3], flags & _SATURATING))
    run.tell("arithmetic", step, [each.sum((1, 2))[group.row] for each in wide], elements)
    message = "multiplies a cooperative matrix of which an invocation is not active"
    why = {Reason(message, step.place): 1}
    reasons = [each.reasons(why) for each in values]
    a, b, c = (m.whole(group, each, 1) for m, each in zip(matrices, reasons, strict=True))
    missing = np.maximum(np.maximum(a.max(2)[:, :, None], b.max(1)[:, None]), c)
    own, *others = why
    how = "uses the product of cooperative matrices"
    passed = (own, *[each.passed(how, step.place) for each in others])
    return Numbers(elements, result.parts(group, missing), passed)


def _narrowed(total: Array, dtype: np.dtype[Any], kind: str, saturating: int) -> Array:
    """Convert exact numbers to the result's type; ``kind`` says whether they saturate as signed."""
    if dtype.kind == "f":
        return total.astype(dtype)
    as_integer = np.dtype(f"{'i' if kind == 's' else 'u'}{dtype.itemsize}")
    if saturating:
        return (
            np.clip(total, np.iinfo(as_integer).min, np.iinfo(as_integer).max)
            .astype(as_integer)
            .view(dtype)
        )
    return (total & np.iinfo(f"u{dtype.itemsize}").max).astype(f"u{dtype.itemsize}").view(dtype)


HANDLERS: dict[int, Callable[[State, Decoded], Any]] = {
    Op.CooperativeMatrixLoadKHR: _load,
    Op.CooperativeMatrixStoreKHR: _store,
    Op.CooperativeMatrixMulAddKHR: _multiply_add,
    Op.CooperativeMatrixLengthKHR: lambda run, step: Numbers(
        np.array([_Matrix.of(run, step.operands[0]).length], np.uint32)
    ),
}
"""The functions by opcode."""
