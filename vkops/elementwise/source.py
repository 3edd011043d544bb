"""The GLSL of a kernel for arguments of certain data types and forms."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from vkops.elementwise.formats import GLSL_TYPES
from vkops.elementwise.indexing import fields
from vkops.elementwise.numeric import functions
from vkops.elementwise.parameters import Operand, renamings

MAX_PUSH_BYTES = 128
"""The bytes of push constants that every device supports."""

HEAD = """#version 450
#extension GL_GOOGLE_cpp_style_line_directive : require
#extension GL_EXT_shader_explicit_arithmetic_types : require
#extension GL_EXT_shader_8bit_storage : require
#extension GL_EXT_shader_16bit_storage : require
#extension GL_EXT_control_flow_attributes : require"""
"""The extensions that texts of kernels can use."""

_ATOMICS = [
    "#extension GL_KHR_memory_scope_semantics : enable",
    *[f"#extension GL_EXT_shader_atomic_{kind} : enable" for kind in ("float", "float2", "int64")],
]
"""The extensions of atomic functions; not every compiler supports all of them."""

_FLOATS = np.dtype(np.float32), np.dtype(np.float64)

_QUOTIENT = """uint _quotient(uint index, uint magic, uint shift) {
    uint high, low;
    umulExtended(index, magic, high, low);
    return (high + index) >> shift;
}"""

GROUP = "const uint _group = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;"
"""The statement that computes the number of the workgroup."""

MAIN = (
    f"""void main() {{
    {GROUP}
    const uint _i = _group * gl_WorkGroupSize.x + gl_LocalInvocationID.x;
    if (_i >= _n) return;""",
    "}",
)
"""The texts before and after the statements for the element of index ``_i``."""

BATCH = 4
"""The elements of an invocation on GPUs: several reads at once are 1.3 times as fast on an H200."""

BATCHES = (
    f"""void main() {{
    {GROUP}
    const uint _first = _group * gl_WorkGroupSize.x * {BATCH} + gl_LocalInvocationID.x;
    [[unroll]] for (uint _k = 0; _k < {BATCH}; ++_k) {{
    const uint _i = _first + _k * gl_WorkGroupSize.x;
    if (_i >= _n) return;""",
    "    }\n}",
)
"""The same texts for ``BATCH`` elements."""

MAINS: dict[int, tuple[str, str]] = {1: MAIN, BATCH: BATCHES}
"""The texts by the number of elements of an invocation."""


def generate(
    name: str,
    operation: str,
    preamble: str,
    operands: Sequence[Operand],
    rank: int,
    forms: tuple[str, ...],
    *,
    local_size: int,
    pushed: bool,
    main: tuple[str, ...] = MAIN,
    index: str = "_i",
) -> str:
    """Return the GLSL; ``forms`` are those of the arrays that are not raw, by their numbers.

    Workgroups have ``local_size`` invocations, each of which computes one element.
    Scalars, sorted by falling size, and the numbers of ``indexing`` are push constants if they are
    ``pushed``. Otherwise, they have a uniform block after the blocks of arrays. The operation's
    ``i`` is the ``index``, and its ``n`` the number of elements, or a scalar with this name. The
    statements for an element are between each two texts of ``main``; the last ones alone read and
    write outputs.
    The functions of ``numeric`` that these texts call are in the GLSL, for float, and for double if
    there is an operand of this type.
    """
    types = {each.parameter.type: each.type for each in operands if each.parameter.is_variable}
    blocks = [each.block for each in operands if each.array is not None]
    scalars = scalars_of(operands)
    elements = [each for each in operands if not each.parameter.raw]
    kind = "push_constant) uniform" if pushed else f"std140, binding = {len(blocks)}) uniform"
    numbers = {"i": index, "n": "_n"}
    for each in scalars:
        numbers.pop(each.parameter.name, None)
    declared = [f"const int {name}" for name in numbers]
    for each in elements:
        access = "inout" if each.parameter.is_output else "const"
        declared.append(f"{access} {each.type} {each.parameter.variable}")
    function = f"void _operation({', '.join(declared)})"
    codes = dict.fromkeys([each.code.functions for each in operands if each.code])
    read, last = (
        "\n    ".join(_body(elements, rank, forms, [*numbers.values()], reads_outputs))
        for reads_outputs in (False, True)
    )
    called = "\n".join([operation, preamble, *main])
    is_double = any(each.type == "double" for each in operands)
    lines = [
        HEAD,
        *(_ATOMICS if "atomic" in called else ()),
        *codes,
        *[functions(called, dtype) for dtype in _FLOATS[: 1 + is_double]],
        *[f"#define {variable} {type_}" for variable, type_ in types.items()],
        f'#line 1 "{name} preamble"',
        preamble,
        f'#line 1 "{name} parameters"',
        f"layout(local_size_x = {local_size}) in;",
        *blocks,
        f"layout({kind} _Parameters {{",
        *[f"    {GLSL_TYPES[s.passed_dtype.name]} _value_{s.parameter.name};" for s in scalars],
        *[f"    uint {field};" for field in fields(rank, forms)],
        "};",
        f"{function};",
        *([_QUOTIENT] if rank > 1 else []),
        *[f"{text}\n    {read}" for text in main[:-2]],
        f"{main[-2]}\n    {last}",
        *[f"    {line}" for line in _stored(elements)],
        main[-1],
        f"{function} {{",
        *renamings([each.parameter for each in operands]),
        f'#line 1 "{name}"',
        operation,
        f'#line {operation.count(chr(10)) + 1} "{name}"',
        ";}",
    ]
    return "\n".join(lines)


def scalars_of(operands: Sequence[Operand]) -> list[Operand]:
    """Return the scalars in the order in which they are passed: 8 bytes first, for alignment."""
    scalars = [each for each in operands if each.array is None]
    return sorted(scalars, key=lambda each: -each.passed_dtype.itemsize)


def _body(
    elements: Sequence[Operand],
    rank: int,
    forms: tuple[str, ...],
    numbers: Sequence[str],
    reads_outputs: bool,
) -> Iterator[str]:
    """Return the statements for index ``_i``: find the elements, read them, and compute."""
    for number, form in enumerate(forms):
        start = {"packed": "_i", "linear": f"_base{number} + _i"}.get(form, f"_base{number}")
        yield f"uint _at{number} = {start};"
    strided = [number for number, form in enumerate(forms) if form == "strided"]
    if strided:
        yield "uint _rest = _i, _next, _coordinate;"
    for axis in reversed(range(rank if strided else 0)):
        if axis:
            yield f"_next = _quotient(_rest, _magic{axis}, _shift{axis});"
            yield f"_coordinate = _rest - _next * _size{axis};"
            yield "_rest = _next;"
        for number in strided:
            yield f"_at{number} += {'_coordinate' if axis else '_rest'} * _stride{axis}_{number};"
    for each in elements:
        is_read = reads_outputs or not each.parameter.is_output
        value = each.expression if is_read else f"{each.type}(0)"
        yield f"{each.type} _element_{each.parameter.name} = {value};"
    passed = [f"int({number})" for number in numbers]
    passed += [f"_element_{each.parameter.name}" for each in elements]
    yield f"_operation({', '.join(passed)});"


def _stored(elements: Sequence[Operand]) -> Iterator[str]:
    """Return the statements that write outputs."""
    for each in elements:
        if each.parameter.is_output:
            yield each.stored
