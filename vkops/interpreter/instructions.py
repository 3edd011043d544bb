"""The instructions of SPIR-V other than branches, as a table of functions.

Terms and numbers are those of the SPIR-V specification.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from vkops.interpreter import addresses, cooperative, glsl_functions, images, operations, subgroups
from vkops.interpreter.memory import Active, Memory
from vkops.interpreter.operations import Array, Function, dtype_of
from vkops.interpreter.program import Step, composed, dtype_in, parts_of, scalar_of, shape_of, zeros
from vkops.interpreter.state import State
from vkops.interpreter.undefined_results import OPERATIONS, RULES, Rule, undefined
from vkops.interpreter.values import (
    Choice,
    Outside,
    Partial,
    Pointer,
    Value,
    merge,
    rearranged,
    separated,
    take,
)
from vkops.shaders import layout
from vkops.shaders.binary import Decoration, Op
from vkops.shaders.grammar import OPCODES
from vkops.shaders.layout import Number, Struct

_ELEMENT_ACCESS = (Op.PtrAccessChain, Op.InBoundsPtrAccessChain)


def _declare(run: State, step: Step) -> Pointer:
    _, pointee = run.program.pointee(step.type)
    type_ = run.program.type(pointee)
    frame, id_ = run.frame, step.result
    known = frame.variables.get(id_)
    if known is None:
        variable = run.variable(run.program.name(id_), type_, run.active, frame)
        known = frame.variables[id_] = Pointer(variable, type_, 0)
    if step.operands[1:]:
        run.store(known, run.raw(step.operands[1]))
    return known


def _access(run: State, step: Step) -> Pointer:
    base: Pointer = run.pointer(step.operands[0])
    if isinstance(base, list):
        chosen = _block(run, base, run.value(step.operands[1]), step)
        step = step._replace(operands=(step.operands[0], *step.operands[2:]))
        return run.spread(step.operands[0], chosen, lambda: _access(run, step))
    indices = [*map(run.value, step.operands[1:])]
    if base.variable is None:
        run.refuse("a null pointer")
    part, offset, outside, stride = base.type, base.offset, base.outside, 0
    if step.op in _ELEMENT_ACCESS:
        stride = base.stride or part.nbytes
        offset = offset + indices.pop(0).astype(np.int64) * stride
    for index in indices:
        wide: Any = int(index[0]) if len(index) == 1 else index.astype(np.int64)
        if isinstance(part, Struct):
            member = part.members[wide]
            offset, part = offset + member.offset, member.type
            continue
        assert isinstance(part, layout.Array)
        count = part.count
        if count is None:
            start = offset if isinstance(offset, int) else int(offset[0])
            count = base.variable.room(start) // part.stride
        wrong = np.atleast_1d((wide < 0) | (wide >= count))
        if wrong.any():
            mask = wrong if outside is None else wrong | outside.mask
            name = base.variable.name
            if isinstance(base.variable, Memory):
                name = base.variable.element(int(np.atleast_1d(offset)[0]), part)
            outside = Outside(name, mask, np.atleast_1d(np.asarray(wide)), count)
            wide = np.where(wrong, 0, wide)
        offset, part = offset + wide * part.stride, part.element
    decorations = run.program.found.decorated(step.type)
    stride = decorations.get(Decoration.ARRAY_STRIDE, (stride,))[0]
    return Pointer(base.variable, part, offset, outside, stride)


def _block(run: State, blocks: list[Pointer], index: Array, step: Step) -> Choice:
    """Return the pointers of invocations to blocks of an array."""
    at = np.broadcast_to(index.astype(np.int64), len(run.active.slots))
    ids, found = (step.result, step.operands[1]), run.program.found
    if len(index) > 1 and not any(Decoration.NON_UNIFORM in found.decorated(id_) for id_ in ids):
        _, first, rows = np.unique(run.active.groups, return_index=True, return_inverse=True)
        text = f"chooses one of '{blocks[0].variable.name.removesuffix('[0]')}' by an index that "
        text += "differs in a workgroup, and is not nonuniformEXT"
        run.report_where(at != at[first][rows], "undefined result", text)
    if (wrong := (at < 0) | (at >= len(blocks))).any():
        name = blocks[0].variable.name.removesuffix("[0]")
        outside = Outside(name, wrong, at, len(blocks))
        blocks = [each._replace(outside=outside) for each in blocks]
    return Choice(tuple(blocks), np.where(wrong, 0, at))


def _array_length(run: State, step: Step) -> Array:
    pointer: Pointer = run.raw(step.operands[0])
    array, start = parts_of(pointer.type)[step.operands[1]]
    assert isinstance(array, layout.Array)
    size = max(pointer.variable.nbytes - start, 0)
    return np.array([size // array.stride], np.uint32)


def _same_pointers(run: State, step: Step) -> Array:
    one, other = map(run.pointer, step.operands)
    same = one.offset == other.offset if one.variable is other.variable else False
    return np.atleast_1d(same) == (step.op == Op.PtrEqual)


def _pointer_difference(run: State, step: Step) -> Array:
    one, other = map(run.raw, step.operands)
    count = np.atleast_1d(one.offset - other.offset) // (one.stride or one.type.nbytes)
    return count.astype(dtype_in(run.program.type(step.type)))


def _marked(found: Value, masks: list[Array] | None, known: Partial | None) -> Value:
    """Mark results of undefined numbers: what uses them reports that."""
    if masks is None or known is None:
        return found
    if isinstance(found, list):
        return [_marked(member, masks, known) for member in found]
    missing = np.zeros(found.shape, bool)
    for mask in masks:  # most operations work by components
        if mask.shape[1:] != found.shape[1:]:
            mask = mask.reshape(len(mask), -1).any(1).reshape(-1, *(1,) * (found.ndim - 1))
        missing = missing | mask
    return known._replace(numbers=found, missing=missing, is_computed=True)


def _arithmetic(run: State, step: Step) -> Value:
    entry, rule = operations.TABLE[step.op], OPERATIONS.get(step.op)
    return _computed(run, step, step.operands, entry, rule)


def _computed(
    run: State, step: Step, ids: Sequence[int], entry: tuple[str, Function], rule: Rule | None
) -> Value:
    """Return the result of an operation or a function, with marks on what is undefined."""
    operands, masks, known = separated([run.raw(id_) for id_ in ids])
    dtype = dtype_in(run.program.type(step.type))
    wrong = undefined(rule, dtype, operands, step.place)
    if wrong is not None:
        masks, known = [*(masks or ()), wrong.missing], known or wrong
    found = operations.apply(entry, operands, dtype)
    run.tell("arithmetic", step, operands, found)
    if masks is not None and step.op in operations.LOGICAL:  # one operand can decide
        decides = step.op == operations.LOGICAL[0]
        known_ones = [(a == decides) & ~mask for a, mask in zip(operands, masks, strict=True)]
        masks = [(masks[0] | masks[1]) & ~known_ones[0] & ~known_ones[1]]
        if not masks[0].any():
            return found
    return _marked(found, masks, known)


def _glsl(run: State, step: Step) -> Value:
    name = run.program.found.strings[step.operands[0]]
    number, ids = step.operands[1], step.operands[2:]
    if name == "NonSemantic.DebugPrintf":
        values = [run.value(id_) for id_ in ids[1:]]
        run.tell("printed", run.program.found.strings[ids[0]], values)
        return None
    if name != "GLSL.std.450":
        return None
    if number in glsl_functions.STORING:
        entry, rule, target = glsl_functions.STORING[number], RULES.get(number), run.raw(ids[1])
        first, second = _computed(run, step, ids[:1], entry, rule)
        dtype = dtype_in(target.type)  # of the numbers, but not of the marks on them
        run.store(target, rearranged([second], lambda v: v if v.dtype == bool else v.astype(dtype)))
        return first
    if number not in glsl_functions.FUNCTIONS:
        run.refuse(f"function {number} of GLSL.std.450")
    return _computed(run, step, ids, glsl_functions.FUNCTIONS[number], RULES.get(number))


def _construct(run: State, step: Step) -> Value:
    type_ = run.program.type(step.type)
    parts = [run.raw(id_) for id_ in step.operands]
    if scalar_of(type_) is None:
        return parts
    return rearranged(parts, lambda *given: composed(type_, [*given]))


def _extract(run: State, step: Step) -> Value:
    value = run.raw(step.operands[0])
    for index in step.operands[1:]:
        if isinstance(value, list):
            value = value[index]
        else:
            value = rearranged([value], lambda numbers, at=index: numbers[:, at])
    return value


def _insert(run: State, step: Step) -> Value:
    part, whole = (run.raw(id_) for id_ in step.operands[:2])
    return _inserted(whole, part, step.operands[2:])


def _inserted(whole: Value, part: Value, path: Sequence[int]) -> Value:
    if not path:
        return part
    if isinstance(whole, list):
        made = list(whole)
        made[path[0]] = _inserted(whole[path[0]], part, path[1:])
        return made
    at: Any = (slice(None), *path)

    def changed(before: Array, after: Array) -> Array:
        count = max(len(before), len(after))
        copy = np.array(np.broadcast_to(before, (count, *before.shape[1:])))
        copy[at] = after
        return copy

    return rearranged([whole, part], changed)


def _shuffle(run: State, step: Step) -> Value:
    chosen = [0 if n == 0xFFFFFFFF else n for n in step.operands[2:]]

    def both(one: Array, two: Array) -> Array:
        if max(chosen) < one.shape[1]:
            return one[:, chosen]
        count = max(len(one), len(two))
        wide = [np.broadcast_to(each, (count, each.shape[1])) for each in (one, two)]
        return np.concatenate(wide, 1)[:, chosen]

    return rearranged([run.raw(id_) for id_ in step.operands[:2]], both)


def _dynamic(run: State, step: Step) -> Value:
    wide = _checked_component(run, *step.operands)

    def chosen(value: Array) -> Array:
        count = max(len(value), len(wide))
        return np.broadcast_to(value, (count, value.shape[1]))[np.arange(count), wide]

    return rearranged([run.raw(step.operands[0])], chosen)


def _checked_component(run: State, vector: int, id_: int) -> Array:
    """Return numbers of components of a vector; those out of bounds are a finding."""
    (numbers,), _, _ = separated([run.raw(vector)])
    count = numbers.shape[1]
    wide = run.value(id_).astype(np.int64)
    wrong = (wide < 0) | (wide >= count)
    if wrong.any():
        run.report_outside("a vector", wide, wrong, f"{count} components", run.active)
    return np.clip(wide, 0, count - 1)


def _dynamic_insert(run: State, step: Step) -> Value:
    vector, part, index = step.operands
    at = _checked_component(run, vector, index)

    def changed(value: Array, part: Array) -> Array:
        return np.where(np.arange(value.shape[1]) == at[:, None], part[:, None], value)

    return rearranged([run.raw(vector), run.raw(part)], changed)


def _select(run: State, step: Step) -> Value:
    condition, one, other = map(run.raw, step.operands)
    count = len(run.active.slots)
    if not isinstance(one, (np.ndarray, Partial)):
        mask = np.flatnonzero(np.broadcast_to(run.checked(condition), count))
        base = _wide(other, count) if isinstance(one, list) else other
        return merge(base, take(one, mask), mask, count)
    (chosen, a, b), masks, known = separated([condition, one, other])
    made = operations.select(chosen, a, b)
    if masks is None or known is None:
        return made
    missing = operations.select(chosen, masks[1], masks[2])
    marked = _marked(made, [masks[0]], known)
    missing = missing | marked.missing
    return marked._replace(missing=missing) if missing.any() else made


def _wide(value: Value, count: int) -> Value:
    """Return a value that has one row for each of ``count`` invocations."""
    if isinstance(value, list):
        return [_wide(member, count) for member in value]
    return np.broadcast_to(value, (count, *value.shape[1:]))


def _bitcast(run: State, step: Step) -> Value:
    (value,), masks, known = separated([addresses.numbers(run.raw(step.operands[0]))])
    type_ = run.program.type(step.type)
    flat: Array = np.ascontiguousarray(value).reshape(len(value), -1)
    found = flat.view(dtype_in(type_)).reshape(len(value), *shape_of(type_))
    return _marked(found, masks, known)


def _barrier(run: State, step: Step) -> None:
    scope, memory_scope, semantics = (int(run.value(id_)[0]) for id_ in step.operands)
    run.tell("barrier", scope, memory_scope, semantics, run.active)
    run.tick()


def _fence(run: State, operands: Sequence[int], active: Active) -> None:
    scope, semantics = (int(run.value(id_)[0]) for id_ in operands)
    run.tell("fence", scope, semantics, active)
    run.tick()


class _Exchange:
    """The function that returns its second argument, like a universal function of NumPy."""

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


def _atomic(run: State, step: Step) -> Value:
    pointer: Pointer = run.pointer(step.operands[0])
    pointer, active, mask = run.inside(pointer, run.active)
    if not len(active.slots):
        return zeros(pointer.type)
    memory, number = pointer.variable, pointer.type
    assert isinstance(number, Number)
    _fence(run, step.operands[1:3], active)
    op = Op.AtomicExchange if step.op == Op.AtomicStore else step.op
    old = memory.load(number, pointer.offset, active, step.place)
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
        operand = take(operand, np.flatnonzero(mask))
    if kind and kind != {"int": "s", "uint": "u"}[number.kind]:
        number = Number("int" if kind == "s" else "uint", number.nbytes)
        operand = operations.integers(operand, kind)
    before = memory.change(number, pointer.offset, active, operand, update).view(dtype)
    if isinstance(old, Partial):
        missing = np.broadcast_to(old.missing, len(before)).copy()
        if op == Op.AtomicExchange:  # all but the first find what another one stored
            at = memory.addresses(number, pointer.offset, active)
            first = np.unique(at, return_index=True)[1]
            missing &= np.isin(np.arange(len(missing)), first)
        before = old._replace(numbers=before, missing=missing)
    run.access("atomic", pointer, active)
    if mask is None:
        return before
    return merge(np.zeros(len(mask), dtype), before, np.flatnonzero(mask), len(mask))


def _subgroup(run: State, step: Step) -> Value:
    active, size = run.active, run.settings.subgroup_size
    subgroup = run.subgroup(active.who)
    _, rows = np.unique(subgroup, return_inverse=True)
    where = subgroups.Subgroups(rows, active.who % run.group_size % size, size)
    if step.op in subgroups.OLDER:  # without a scope
        step = step._replace(op=subgroups.OLDER[step.op], operands=(0, *step.operands))
    ids, operation = step.operands[1:], 0
    if step.op == Op.GroupNonUniformPartitionEXT:
        ids = step.operands
    if step.op in subgroups.WITH_OPERATION:
        operation, ids = ids[0], ids[1:]
    if step.op in subgroups.MOVES:
        return _moved(run, step, where, [run.raw(ids[0]), *map(run.value, ids[1:])])
    values = [run.value(id_) for id_ in ids]
    if operation == subgroups.CLUSTERED and values[1][0] > size:
        text = f"uses clusters of {values[1][0]} invocations in subgroups of {size}"
        run.report("subgroup size", text, active.who)
    found = subgroups.execute(step.op, where, operation, values)
    dtype = dtype_in(run.program.type(step.type))
    found = found if found.dtype in (bool, dtype) else found.view(dtype)
    wrong = undefined(OPERATIONS.get(step.op), where, values, step.place)
    return found if wrong is None else _marked(found, [wrong.missing], wrong)


def _moved(run: State, step: Step, where: subgroups.Subgroups, operands: list[Value]) -> Value:
    """Return what other invocations have; it is undefined from those that are not active."""
    (value, *rest), masks, known = separated(operands)
    found = subgroups.moved(step.op, where, [value, *rest], 0)
    mask = np.zeros(value.shape, bool) if masks is None else masks[0]
    missing = subgroups.moved(step.op, where, [mask, *rest], True)
    if not missing.any():
        return found
    if known is None:
        message = "uses what a subgroup operation got from an invocation that is not active"
        known = Partial(found, missing, message, step.place, is_computed=True)
    return known._replace(numbers=found, missing=missing)


def _dot_product(run: State, step: Step) -> Value:
    """Compute with the operands before the format of packed vectors, of which there is one.

    The operations behind OpSUDot have a summand.
    """
    return _arithmetic(run, step._replace(operands=step.operands[: 2 + (step.op > Op.SUDot)]))


def _clock(run: State, step: Step) -> Value:
    """Return the number of instructions that were executed, in one number or two words."""
    words = np.full((1, 1), run.executed, np.uint64)
    is_vector = isinstance(run.program.type(step.type), layout.Array)
    return words.view(np.uint32) if is_vector else words[:, 0]


HANDLERS: dict[int, Callable[[State, Step], Any]] = {
    **cooperative.HANDLERS,
    **images.HANDLERS,
    **dict.fromkeys(operations.TABLE, _arithmetic),
    **dict.fromkeys((*_ATOMIC, Op.AtomicStore), _atomic),
    **dict.fromkeys(subgroups.OPERATIONS, _subgroup),
    **{OPCODES[f"{name}Dot{form}"]: _dot_product
       for name in ("S", "U", "SU") for form in ("", "AccSat")},
    **{op: lambda run, step: None
       for op in (Op.Nop, Op.LifetimeStart, Op.LifetimeStop, Op.AssumeTrueKHR)},
    **{op: lambda run, step: run.raw(step.operands[0])
       for op in (Op.CopyObject, Op.CopyLogical, Op.ExpectKHR)},
    **dict.fromkeys((Op.AccessChain, Op.InBoundsAccessChain, *_ELEMENT_ACCESS), _access),
    **dict.fromkeys((Op.PtrEqual, Op.PtrNotEqual), _same_pointers),
    Op.Undef: lambda run, step: run.program.undefined(step.result, step.type, step.place),
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
    Op.VectorShuffle: _shuffle, Op.CompositeConstruct: _construct,
    Op.CompositeExtract: _extract, Op.CompositeInsert: _insert,
}  # fmt: skip
"""By opcode."""

REFUSED = {
    "DPdx", "DPdy", "DemoteToHelperInvocation", "Fwidth",
    "ImageDrefGather", "ImageQueryLod", "ImageSampleDrefExplicitLod", "ImageSampleDrefImplicitLod",
    "ImageSampleImplicitLod", "ImageSampleProjDrefExplicitLod", "ImageSampleProjDrefImplicitLod",
    "ImageSampleProjImplicitLod", "IsHelperInvocationEXT",
}  # fmt: skip
"""The instructions that are not supported, of all that vkops accepts in a module: those of
depth comparisons and of derivatives, which are for fragment shaders."""
