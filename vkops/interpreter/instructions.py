"""The instructions of SPIR-V other than branches, as a table of functions.

Terms and numbers are those of the SPIR-V specification.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NoReturn

import numpy as np

from vkops.errors import ShaderCompileError
from vkops.interpreter import (
    addresses,
    composites,
    cooperative,
    glsl_functions,
    images,
    operations,
    subgroups,
)
from vkops.interpreter.memory import Active, MemoryVariable
from vkops.interpreter.operations import Array, ArrayFunction, dtype_of
from vkops.interpreter.printing import conversions
from vkops.interpreter.program import (
    SUBGROUP_SCOPE,
    Decoded,
    composed,
    dtype_in,
    parts_of,
    shape_of,
    zeros,
)
from vkops.interpreter.state import State
from vkops.interpreter.undefined_results import OPERATIONS, RULES, Misuse, undefined
from vkops.interpreter.values import (
    Choice,
    Numbers,
    Outside,
    Pointer,
    Reason,
    Value,
    differ,
    merge,
    take,
)
from vkops.shaders.binary import DEBUG_INFO, Decoration, Op
from vkops.shaders.grammar import OPCODES
from vkops.shaders.layout import ArrayType, ScalarType, StructType

_ELEMENT_ACCESS = (Op.PtrAccessChain, Op.InBoundsPtrAccessChain)


def _declare(run: State, step: Decoded) -> Pointer:
    _, pointee = run.program.pointee(step.type)
    type_ = run.program.type(pointee)
    frame, id_ = run.frame, step.result
    known = frame.variables.get(id_)
    if known is None:
        name, call = run.program.argument_names.get(id_, (run.program.name(id_), None))
        variable = run.variable(name, type_, run.active, frame)
        variable.copied_at = call
        known = frame.variables[id_] = Pointer(variable, type_, 0)
    if step.operands[1:]:
        run.store(known, run.raw(step.operands[1]))
    return known


def _access(run: State, step: Decoded) -> Value | None:
    blocks = run.raw(step.operands[0])
    if isinstance(blocks, tuple):
        chosen = _block(run, blocks, run.value(step.operands[1]), step)
        step = step._replace(operands=(step.operands[0], *step.operands[2:]))
        return run.spread(step.operands[0], chosen, lambda: _access(run, step))
    base = blocks if isinstance(blocks, Pointer) else run.pointer(step.operands[0])
    indices = [*map(run.value, step.operands[1:])]
    if base.variable is None:
        run.refuse("a null pointer")
    part, offset, outside, stride = base.type, base.offset, base.outside, 0
    if step.op in _ELEMENT_ACCESS:
        stride = base.stride or part.nbytes
        offset = offset + indices.pop(0).astype(np.int64) * stride
    for index in indices:
        wide: Any = int(index[0]) if len(index) == 1 else index.astype(np.int64)
        if isinstance(part, StructType):
            member = part.members[wide]
            offset, part = offset + member.offset, member.type
            continue
        assert isinstance(part, ArrayType)
        count = part.count
        if count is None:
            start = offset if isinstance(offset, int) else int(offset[0])
            count = base.variable.room(start) // part.stride
        wrong = np.atleast_1d((wide < 0) | (wide >= count))
        if wrong.any():
            mask = wrong if outside is None else wrong | outside.mask
            name = base.variable.name
            if isinstance(base.variable, MemoryVariable):
                name = base.variable.element(int(np.atleast_1d(offset)[0]), part)
            outside = Outside(name, mask, np.atleast_1d(np.asarray(wide)), count)
            wide = np.where(wrong, 0, wide)
        offset, part = offset + wide * part.stride, part.element
    decorations = run.program.declared.decorated(step.type)
    stride = decorations.get(Decoration.ARRAY_STRIDE, (stride,))[0]
    return Pointer(base.variable, part, offset, outside, stride)


def _block(run: State, array: tuple[Value, ...], index: Array, step: Decoded) -> Choice:
    """Return pointers to blocks of an array of blocks; invocations can have different indices."""
    blocks = [block for block in array if isinstance(block, Pointer)]
    at = np.broadcast_to(index.astype(np.int64), len(run.active.slots))
    ids, declared = (step.result, step.operands[1]), run.program.declared
    name = blocks[0].variable.name.removesuffix("[0]")
    if len(index) > 1 and not any(Decoration.NON_UNIFORM in declared.decorated(id_) for id_ in ids):
        _, first, rows = np.unique(run.active.groups, return_index=True, return_inverse=True)
        text = f"chooses one of '{name}' by an index that differs in a workgroup, and is not "
        text += "nonuniformEXT"
        run.report_where(at != at[first][rows], "undefined result", text)
    if (wrong := (at < 0) | (at >= len(blocks))).any():
        outside = Outside(name, wrong, at, len(blocks))
        blocks = [replace(block, outside=outside) for block in blocks]
    return Choice(tuple(blocks), np.where(wrong, 0, at))


def _array_length(run: State, step: Decoded) -> Numbers:
    pointer = run.pointer(step.operands[0])
    array, start = parts_of(pointer.type)[step.operands[1]]
    assert isinstance(array, ArrayType)
    size = max(pointer.variable.nbytes - start, 0)
    return Numbers(np.array([size // array.stride], np.uint32))


def _same_pointers(run: State, step: Decoded) -> Numbers:
    one, other = map(run.pointer, step.operands)
    same = one.offset == other.offset if one.variable is other.variable else False
    return Numbers(np.atleast_1d(same) == (step.op == Op.PtrEqual))


def _pointer_difference(run: State, step: Decoded) -> Numbers:
    one, other = map(run.pointer, step.operands)
    count = np.atleast_1d(one.offset - other.offset) // (one.stride or one.type.nbytes)
    return Numbers(count.astype(dtype_in(run.program.type(step.type))))


def _arithmetic(run: State, step: Decoded) -> Value:
    entry, rule = operations.TABLE[step.op], OPERATIONS.get(step.op)
    return _computed(run, step, step.operands, entry, rule)


def _computed(
    run: State,
    step: Decoded,
    ids: Sequence[int],
    entry: tuple[str, ArrayFunction],
    rule: Misuse | None,
) -> Value:
    """Return the result of an operation or a function; undefined components are marked."""
    operands = [run.numbers(id_) for id_ in ids]
    arrays = [operand.array for operand in operands]
    dtype = dtype_in(run.program.type(step.type))
    result = operations.apply(entry, arrays, dtype)
    run.tell("arithmetic", step, arrays, result)
    causes = [operand for operand in operands if operand.missing is not None]
    if rule is not None:
        causes += undefined(rule, dtype, arrays, step.place)
    if isinstance(result, list):
        return tuple(Numbers(part).marked(*causes) for part in result)
    if not causes:
        return Numbers(result)
    if step.op in _DECIDING:
        return Numbers(result).marked(*operands, combine=partial(_DECIDING[step.op], arrays))
    return Numbers(result).marked(*causes)


def _undecided(by: bool, arrays: Sequence[Array], *reasons: Array) -> Array:
    known = [(array == by) & (each == 0) for array, each in zip(arrays, reasons, strict=True)]
    return np.where(known[0] | known[1], 0, np.maximum(*reasons))


def _chosen(arrays: Sequence[Array], condition: Array, one: Array, other: Array) -> Array:
    return np.maximum(operations.column(condition, one), operations.select(arrays[0], one, other))


_DECIDING: dict[int, Callable[..., Array]] = {
    Op.LogicalOr: partial(_undecided, True), Op.LogicalAnd: partial(_undecided, False),
    Op.Select: _chosen,
}  # fmt: skip
"""Operations that one operand alone can decide, with functions that return the reasons."""


def _print(run: State, ids: Sequence[int]) -> None:
    """Notify observers of a call of debugPrintfEXT; spirv-val does not check its operands."""
    strings = run.program.declared.strings

    def refuse(what: str, id_: int, allowed: str) -> NoReturn:
        got = f"%{id_}" if id_ else "nothing"
        message = f"{what} of DebugPrintf: got {got}, must be {allowed}"
        raise ShaderCompileError(f"{run.step.place}: {message}")

    form, *rest = ids or (0,)
    if form not in strings:
        refuse("the format", form, "an OpString")
    values: list[Array | str] = []
    letters = [match["letter"] for match in conversions(strings[form])]
    for number, (id_, letter) in enumerate(zip(rest, letters, strict=False), 1):
        if letter == "s" and id_ in strings:
            values.append(strings[id_])
            continue
        try:
            value = run.raw(id_)
        except KeyError:  # the id of a type, a label or a function
            value = None
        if not isinstance(value, Numbers):
            allowed = "an OpString for %s" if letter == "s" else "a scalar or a vector"
            refuse(f"argument {number}", id_, allowed)
        values.append(run.checked(value).array)
    if run.waits is not None:
        run.waits.effect(run.active)
    run.tell("printed", strings[form], values)


def _glsl(run: State, step: Decoded) -> Value | None:
    name = run.program.declared.strings.get(step.operands[0], "")
    number, ids = step.operands[1], step.operands[2:]
    if name == "NonSemantic.DebugPrintf":
        _print(run, ids)
    if name.startswith("NonSemantic.") or name in DEBUG_INFO:
        return None
    if name != "GLSL.std.450":
        run.refuse(f"function {number} of {name}")
    if number in glsl_functions.STORING:
        entry, rule, target = glsl_functions.STORING[number], RULES.get(number), run.pointer(ids[1])
        parts = _computed(run, step, ids[:1], entry, rule)
        assert isinstance(parts, tuple)
        first, second = parts
        assert isinstance(second, Numbers)
        array = second.array.astype(dtype_in(target.type))
        run.store(target, Numbers(array, second.missing, second.why))
        return first
    if number not in glsl_functions.FUNCTIONS:
        run.refuse(f"function {number} of GLSL.std.450")
    return _computed(run, step, ids, glsl_functions.FUNCTIONS[number], RULES.get(number))


def _dynamic(run: State, step: Decoded) -> Numbers:
    wide = _checked_component(run, *step.operands)

    def chosen(value: Array) -> Array:
        count = max(len(value), len(wide))
        return np.broadcast_to(value, (count, value.shape[1]))[np.arange(count), wide]

    return run.numbers(step.operands[0]).moved(chosen)


def _checked_component(run: State, vector: int, id_: int) -> Array:
    """Return indices of components of a vector; those out of bounds are a finding."""
    count = run.numbers(vector).array.shape[1]
    wide = run.value(id_).astype(np.int64)
    wrong = (wide < 0) | (wide >= count)
    if wrong.any():
        run.report_outside("a vector", wide, wrong, f"{count} components", run.active)
    return np.clip(wide, 0, count - 1)


def _dynamic_insert(run: State, step: Decoded) -> Numbers:
    vector, part, index = step.operands
    at = _checked_component(run, vector, index)

    def changed(value: Array, part: Array) -> Array:
        return np.where(np.arange(value.shape[1]) == at[:, None], part[:, None], value)

    return run.numbers(vector).moved(changed, run.numbers(part))


def _select(run: State, step: Decoded) -> Value:
    condition, one, other = step.operands
    if isinstance(run.raw(one), Numbers):
        return _arithmetic(run, step)
    count = len(run.active.slots)
    mask = np.flatnonzero(np.broadcast_to(run.value(condition), count))
    return merge(run.raw(other), take(run.raw(one), mask), mask, count)


def _bitcast(run: State, step: Decoded) -> Numbers:
    value = addresses.numbers(run.raw(step.operands[0]))
    assert isinstance(value, Numbers)
    type_ = run.program.type(step.type)
    flat: Array = np.ascontiguousarray(value.array).reshape(len(value.array), -1)
    result = flat.view(dtype_in(type_)).reshape(len(flat), *shape_of(type_))
    return Numbers(result).marked(value)


def _barrier(run: State, step: Decoded) -> None:
    scope, memory_scope, semantics = (int(run.value(id_)[0]) for id_ in step.operands)
    run.tell("barrier", scope, memory_scope, semantics, run.active)
    run.tick()
    if run.waits is not None and scope != SUBGROUP_SCOPE:
        run.waits.barrier(run.active)


def _fence(run: State, operands: Sequence[int], active: Active) -> None:
    scope, semantics = (int(run.value(id_)[0]) for id_ in operands)
    run.tell("fence", scope, semantics, active)
    run.tick()


class _Exchange:
    """A function that returns its second argument, with the interface of a NumPy ufunc."""

    def __call__(self, old: Array, new: Array) -> Array:
        return new

    def accumulate(self, values: Array) -> Array:
        return values


_ATOMIC = operations.by_number(OPCODES, {
    "": {
        "AtomicExchange": _Exchange(), "AtomicIIncrement": np.add, "AtomicIDecrement": np.subtract,
        "AtomicIAdd": np.add, "AtomicISub": np.subtract, "AtomicAnd": np.bitwise_and,
        "AtomicOr": np.bitwise_or, "AtomicXor": np.bitwise_xor, "AtomicFAddEXT": np.add,
        "AtomicFMinEXT": np.fmin, "AtomicFMaxEXT": np.fmax, "AtomicLoad": lambda old, new: old,
        "AtomicCompareExchange": lambda old, pair: np.where(old == pair[:, 1], pair[:, 0], old),
    },
    "s": {"AtomicSMin": np.minimum, "AtomicSMax": np.maximum},
    "u": {"AtomicUMin": np.minimum, "AtomicUMax": np.maximum},
})  # fmt: skip


def _atomic(run: State, step: Decoded) -> Value:
    pointer, active, mask = run.inside(run.pointer(step.operands[0]), run.active)
    if not len(active.slots):
        return zeros(pointer.type)
    memory, number = pointer.variable, pointer.type
    assert isinstance(number, ScalarType)
    _fence(run, step.operands[1:3], active)
    op = Op.AtomicExchange if step.op == Op.AtomicStore else step.op
    old: Numbers = memory.load(number, pointer.offset, active, step.place)
    if op not in (Op.AtomicLoad, Op.AtomicExchange):
        run.checked(old, active)
    kind, update = _ATOMIC[op]
    dtype = dtype_of(number)
    if op in (Op.AtomicLoad, Op.AtomicIIncrement, Op.AtomicIDecrement):
        operand = np.ones(1, dtype)
    elif op == Op.AtomicCompareExchange:
        pair = [run.value(id_).view(dtype) for id_ in step.operands[4:]]
        operand = np.stack(np.broadcast_arrays(*pair), 1)
    else:
        operand = run.value(step.operands[3]).view(dtype)
    if mask is not None:
        operand = Numbers(operand).take(np.flatnonzero(mask)).array
    if kind and kind != {"int": "s", "uint": "u"}[number.kind]:
        number = ScalarType("int" if kind == "s" else "uint", number.nbytes)
        operand = operations.integers(operand, kind)
    before = memory.change(number, pointer.offset, active, operand, update)
    changed = None
    if run.waits is not None:
        count = len(before)
        after = (
            before
            if op == Op.AtomicLoad
            else update(before, np.broadcast_to(operand, (count, *operand.shape[1:])))
        )
        changed = differ(Numbers(before), Numbers(after), np.arange(count))
    before = before.view(dtype)
    missing = np.broadcast_to(0 if old.missing is None else old.missing, len(before))
    if op == Op.AtomicExchange and missing.any():  # all but the first get another's value
        at = memory.addresses(number, pointer.offset, active)
        first = np.unique(at, return_index=True)[1]
        missing = missing * np.isin(np.arange(len(missing)), first)
    result = Numbers(before, missing, old.why)
    run.access("atomic", pointer, active, changed)
    if mask is None:
        return result
    return merge(zeros(pointer.type), result, np.flatnonzero(mask), len(mask))


def _subgroup(run: State, step: Decoded) -> Numbers:
    active, size = run.active, run.settings.subgroup_size
    subgroup = run.subgroup(active.who)
    _, rows = np.unique(subgroup, return_inverse=True)
    where = subgroups.Subgroups(rows, active.who % run.group_size % size, size)
    if step.op in subgroups.OLDER:  # these have no scope
        step = step._replace(op=subgroups.OLDER[step.op], operands=(0, *step.operands))
    ids, operation = step.operands[1:], 0
    if step.op == Op.GroupNonUniformPartitionEXT:
        ids = step.operands
    if step.op in subgroups.WITH_OPERATION:
        operation, ids = ids[0], ids[1:]
    if step.op in subgroups.MOVES:
        return _moved(run, step, where, ids)
    values = [*map(run.value, ids)]
    if operation == subgroups.CLUSTERED and values[1][0] > size:
        text = f"uses clusters of {values[1][0]} invocations in subgroups of {size}"
        run.report("subgroup size", text, active.who)
    result = subgroups.execute(step.op, where, operation, values)
    dtype = dtype_in(run.program.type(step.type))
    result = result if result.dtype in (bool, dtype) else result.view(dtype)
    return Numbers(result).marked(*undefined(OPERATIONS.get(step.op), where, values, step.place))


def _moved(run: State, step: Decoded, where: subgroups.Subgroups, ids: Sequence[int]) -> Numbers:
    """Return the values of other invocations; the value of an inactive invocation is undefined."""
    value, rest = run.numbers(ids[0]), [*map(run.value, ids[1:])]
    result = subgroups.moved(step.op, where, [value.array, *rest], 0)
    message = "uses what a subgroup operation got from an invocation that is not active"
    why = {Reason(message, step.place): 1}
    missing = subgroups.moved(step.op, where, [value.reasons(why), *rest], 1)
    own, *others = why
    how = "uses the result of a subgroup operation"
    return Numbers(result, missing, (own, *[each.passed(how, step.place) for each in others]))


def _dot_product(run: State, step: Decoded) -> Value:
    """Compute a dot product; the operand for the format of packed vectors is ignored.

    The operations with numbers above OpSUDot have an accumulator.
    """
    return _arithmetic(run, step._replace(operands=step.operands[: 2 + (step.op > Op.SUDot)]))


def _clock(run: State, step: Decoded) -> Numbers:
    """Return the number of executed instructions, as one number or as two words."""
    if run.waits is not None:
        run.waits.effect(run.active)
    words = np.full((1, 1), run.executed, np.uint64)
    is_vector = isinstance(run.program.type(step.type), ArrayType)
    return Numbers(words.view(np.uint32) if is_vector else words[:, 0])


HANDLERS: dict[int, Callable[[State, Decoded], Any]] = {
    **cooperative.HANDLERS,
    **images.HANDLERS,
    **dict.fromkeys(operations.TABLE, _arithmetic),
    **dict.fromkeys((*_ATOMIC, Op.AtomicStore), _atomic),
    **dict.fromkeys(subgroups.OPERATIONS, _subgroup),
    **dict.fromkeys(range(Op.SDot, Op.SDot + 6), _dot_product),
    **{op: lambda run, step: None
       for op in (Op.Nop, Op.Undef, Op.LifetimeStart, Op.LifetimeStop, Op.AssumeTrueKHR)},
    **{op: lambda run, step: run.raw(step.operands[0])
       for op in (Op.CopyObject, Op.CopyLogical, Op.ExpectKHR)},
    **dict.fromkeys((Op.AccessChain, Op.InBoundsAccessChain, *_ELEMENT_ACCESS), _access),
    **dict.fromkeys((Op.PtrEqual, Op.PtrNotEqual), _same_pointers),
    Op.Load: lambda run, step: run.load(run.pointer(step.operands[0])),
    Op.Store: lambda run, step: run.store(run.pointer(step.operands[0]), run.raw(step.operands[1])),
    Op.CopyMemory: lambda run, step:
        run.store(run.pointer(step.operands[0]), run.load(run.pointer(step.operands[1]))),
    **{op: lambda run, step: addresses.numbers(run.raw(step.operands[0]))
       for op in (Op.ConvertPtrToU, Op.ConvertUToPtr)},
    Op.MemoryBarrier: lambda run, step: _fence(run, step.operands, run.active),
    Op.ControlBarrier: _barrier, Op.ReadClockKHR: _clock, Op.ExtInst: _glsl, Op.Select: _select,
    Op.Variable: _declare,
    Op.ArrayLength: _array_length, Op.PtrDiff: _pointer_difference, Op.Bitcast: _bitcast,
    Op.VectorExtractDynamic: _dynamic, Op.VectorInsertDynamic: _dynamic_insert,
    Op.CompositeConstruct: lambda run, step:
        composed(run.program.type(step.type), [*map(run.raw, step.operands)]),
    **dict.fromkeys(composites.TABLE, lambda run, step:
        composites.TABLE[step.op](step.operands, run.raw)),
}  # fmt: skip
"""The functions by opcode."""

REFUSED = {
    "DPdx", "DPdy", "DemoteToHelperInvocation", "Fwidth",
    "ImageDrefGather", "ImageQueryLod", "ImageSampleDrefExplicitLod", "ImageSampleDrefImplicitLod",
    "ImageSampleImplicitLod", "ImageSampleProjDrefExplicitLod", "ImageSampleProjDrefImplicitLod",
    "ImageSampleProjImplicitLod", "IsHelperInvocationEXT",
}  # fmt: skip
"""The instructions that are not supported, of all that vkops accepts in a module: those of
depth comparisons and of derivatives, which are for fragment shaders."""
