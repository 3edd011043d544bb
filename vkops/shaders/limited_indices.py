"""Clamping of indices of arrays in shaders, where no feature of Vulkan limits them.

Devices with robustBufferAccess2 discard accesses out of the bounds of a buffer. No feature does
that for shared memory, local variables and push constants, which a CPU driver has in the memory of
this process, nor for arrays of blocks or images.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import count
from typing import Any

from vkops.shaders.binary import HEADER_WORDS, Declarations, Op, Storage, declarations, positions
from vkops.shaders.constants import numbers, values
from vkops.shaders.grammar import WITH_RESULT

_CLASSES = (4, 6, 7, 9)  # Workgroup, Private, Function, PushConstant
_BLOCKS = (Storage.UNIFORM_CONSTANT, Storage.UNIFORM, Storage.STORAGE_BUFFER)
_UMIN = 38
_RUNTIME_ARRAYS = 5302
Lengths = tuple[tuple[tuple[int, int], int], ...]
"""Sets and bindings with the number of their blocks."""

_GLSL = array("I", b"GLSL.std.450\0\0\0\0")


def _with_lengths(spirv: bytes, lengths: Mapping[tuple[int, int], int]) -> bytes:
    """Return a module whose arrays of blocks have lengths: 1, unless they are given."""
    module, words = declarations(spirv), array("I", spirv)
    free_ids, rewritten = count(words[3]), words[:HEADER_WORDS]
    types = [id_ for id_, type_ in numbers(module).items() if type_ == ("uint", 4)]
    uint = (types or [next(free_ids)])[0]
    first = array("I", [4 << 16 | Op.TypeInt, uint, 32, 0])  # put before all other types
    for at, op, length in positions(words):
        instruction = words[at : at + length]
        if (op, *instruction[1:2]) in ((Op.Capability, _RUNTIME_ARRAYS), (Op.TypeInt, uint)):
            continue
        if Op.TypeVoid <= op < Op.TypeForwardPointer:
            rewritten.extend(first)
            first = array("I")
        if op == Op.Variable:
            _, storage, type_ = module.defined[instruction[1]].words
            kind, parts = module.defined[type_]
            if kind == Op.TypeRuntimeArray:
                size = lengths.get(module.place(instruction[2]), 1)
                id_, type_, instruction[1] = (next(free_ids) for _ in range(3))
                rewritten.extend([4 << 16 | Op.Constant, uint, id_, size])
                rewritten.extend([4 << 16 | Op.TypeArray, type_, parts[1], id_])
                rewritten.extend([4 << 16 | Op.TypePointer, instruction[1], storage, type_])
        rewritten.extend(instruction)
    rewritten[3] = next(free_ids)
    return rewritten.tobytes()


def _unchecked(
    module: Declarations, known: Mapping[int, Any], operands: Sequence[int], of: Mapping[int, int]
) -> Iterator[tuple[int, int]]:
    """Yield which operands of an access chain are indices that may be too large, and the limits."""
    _, storage, pointee = module.defined[of[operands[2]]].words
    for number in range(3, len(operands) if storage in (*_CLASSES, *_BLOCKS) else 3):
        index, (kind, parts) = operands[number], module.defined[pointee]
        if kind == Op.TypeStruct and storage in _BLOCKS:
            break
        if kind == Op.TypeStruct:
            pointee = parts[1 + known[index]]
            continue
        pointee = parts[1]
        size = known.get(parts[2]) if kind == Op.TypeArray else parts[2]
        value = known.get(index)  # even a constant can be too large, if it is specialized
        is_checked = isinstance(size, int) and isinstance(value, int) and 0 <= value < size
        if index in of and isinstance(size, int) and not is_checked:
            yield number, size


@lru_cache(maxsize=64)
def with_limited_indices(spirv: bytes, lengths: Lengths = ()) -> bytes:
    """Return a module in which an index that is too large selects the last element.

    Negative indices count as large ones. Arrays of blocks without a length get ``lengths``.
    """
    module = declarations(spirv)
    if _RUNTIME_ARRAYS in module.capabilities:
        spirv = _with_lengths(spirv, dict(lengths))
        module = declarations(spirv)
    types = numbers(module)
    known = values(module, types)
    words = array("I", spirv)
    rewritten = words[:HEADER_WORDS]
    free_ids = count(words[3])
    glsl = new_import = functions = memory_model = 0
    of: dict[int, int] = {}  # the type of each value
    limits: dict[tuple[int, int], int] = {}  # the constants, by type and number of elements
    for at, op, length in positions(words):
        operands = words[at + 1 : at + length]
        if op == Op.ExtInstImport and operands[1:] == _GLSL:
            glsl = operands[0]
        elif op == Op.MemoryModel:
            memory_model = len(rewritten)
            glsl = glsl or (new_import := next(free_ids))
        elif op == Op.Function and not functions:
            functions = len(rewritten)
        if op in WITH_RESULT:
            of[operands[1]] = operands[0]
        if op in (Op.AccessChain, Op.InBoundsAccessChain):
            for number, size in _unchecked(module, known, operands, of):
                index = operands[number]
                type_ = of[index]
                if (type_, size) not in limits:
                    limits[type_, size] = next(free_ids)
                operands[number] = next(free_ids)
                limited = (operands[number], glsl, _UMIN, index, limits[type_, size])
                rewritten.extend([7 << 16 | Op.ExtInst, type_, *limited])
        rewritten.append(words[at])
        rewritten.extend(operands)
    if not limits:
        return spirv
    for (type_, size), id_ in limits.items():
        nbytes = types[type_].nbytes
        last = min(size, 1 << 8 * nbytes - 1) - 1  # indices are signed
        value = [last] if nbytes <= 4 else [last, 0]
        rewritten[functions:functions] = array(
            "I", [(3 + len(value)) << 16 | Op.Constant, type_, id_, *value]
        )
    if new_import:
        imported = array("I", [(2 + len(_GLSL)) << 16 | Op.ExtInstImport, new_import, *_GLSL])
        rewritten[memory_model:memory_model] = imported
    rewritten[3] = next(free_ids)
    return rewritten.tobytes()
