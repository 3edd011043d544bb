"""Values as the bytes of push constants and uniform blocks, for all types that have a layout."""

import struct
from fractions import Fraction

import numpy as np
import pytest
from refusals import fault

from vkops import shaders
from vkops.errors import InvalidDescError, InvalidDescTypeError

HEAD = """#version 450
#extension GL_EXT_shader_explicit_arithmetic_types : require
#extension GL_EXT_shader_8bit_storage : require
#extension GL_EXT_shader_16bit_storage : require
struct S { float x; ivec2 y; };
shared float sum;
"""


def pushing(members, use):
    """Load a shader with push constants; ``use`` is a number in them."""
    text = f"layout(push_constant) uniform P {{ {members} }} p;"
    return shaders.load(f"{HEAD}{text} void main() {{ sum = float(p.{use}); }}", name="x")


def uniform(members, use):
    text = f"layout(set = 1, binding = 2) uniform U {{ {members} }} u;"
    return shaders.load(f"{HEAD}{text} void main() {{ sum = float(u.{use}); }}", name="x")


SCALARS = {
    "uint8_t": "B", "int8_t": "b", "uint16_t": "H", "int16_t": "h", "uint": "I", "int": "i",
    "uint64_t": "Q", "int64_t": "q", "float16_t": "e", "float": "f", "double": "d",
}  # fmt: skip


@pytest.mark.parametrize("type_", SCALARS)
def test_numbers_of_each_type(type_):
    shader = pushing(f"{type_} a; {type_} b[2];", "a")
    code = SCALARS[type_]
    integral = code not in "efd"
    info = np.iinfo(np.dtype(code)) if integral else np.finfo(np.dtype(code))
    values = [info.min, info.max, 1] if integral else [float(info.min), float(info.max), -0.0]
    expected = struct.pack(f"<3{code}", *values)
    assert shader.pack(values) == shader.pack(tuple(np.array(values, code))) == expected
    assert shader.pack(np.array(values, code)) == expected
    assert shader.pack({"a": values[0], "b": values[1:]}) == expected
    assert shader.pack(bytearray(expected)) == expected
    beyond = [0.5, int(info.max) + 1, int(info.min) - 1] if integral else [2 * 10**308]
    for wrong in ("1", None, 10**400, *beyond):
        with pytest.raises(InvalidDescError, match=r"^x push_constants\.b\[1\]: got .*SH-09"):
            shader.pack([1, 2, wrong])


def test_integers_may_be_other_numbers_of_the_same_value():
    assert pushing("uint a; float b;", "a").pack([Fraction(2), True]) == struct.pack("<If", 2, 1)


def test_infinity_and_a_gap():
    shader = pushing("int a; layout(offset = 16) float b;", "a")
    assert shader.pack([-1, float("-inf")]) == struct.pack("<i12xf", -1, float("-inf"))
    assert shaders.load("#version 450\nvoid main() {}").pack([]) == b""


NESTED = "uint n; S s[2]; mat2x3 m; layout(row_major) mat2x3 r; vec3 v[2];"
NUMBERS = [1, 0.5, 2, 3, 1.5, 4, 5, *range(6), *range(6, 12), *range(12, 18)]
STRUCTURED = np.dtype(
    [("n", "u4"), ("s", [("x", "f4"), ("y", "i4", 2)], 2), ("m", "f4", (2, 3)),
     ("r", "f4", (2, 3)), ("v", "f4", (2, 3))]
)  # fmt: skip


def expected(layout):
    """The numbers at the offsets of GLSL: columns of matrices, or rows, are vectors."""
    std140 = layout == "std140"
    step = 16 if std140 else 8
    packed = bytearray(struct.pack("<I", 1).ljust(16 if std140 else 8, b"\0"))
    for x, y in ((0.5, (2, 3)), (1.5, (4, 5))):
        packed += struct.pack("<f4x2i", x, *y)
    packed += bytes(-len(packed) % 16)
    for column in ((0, 1, 2), (3, 4, 5)):
        packed += struct.pack("<3f4x", *column)
    for row in ((6, 9), (7, 10), (8, 11)):
        packed += struct.pack("<2f", *row).ljust(step, b"\0")
    packed += bytes(-len(packed) % 16)
    for vector in ((12, 13, 14), (15, 16, 17)):
        packed += struct.pack("<3f4x", *vector)
    return bytes(packed)


def forms():
    """The same values in all forms that a caller may give."""
    record = np.zeros((), STRUCTURED)
    s = [{"x": 0.5, "y": (2, 3)}, {"x": 1.5, "y": np.array([4, 5])}]
    m, r, v = (np.arange(6 * k, 6 * k + 6, dtype=np.float32).reshape(2, 3) for k in range(3))
    for name, value in (("n", 1), ("m", m), ("r", r), ("v", v)):
        record[name] = value
    record["s"]["x"], record["s"]["y"] = [0.5, 1.5], [[2, 3], [4, 5]]
    yield NUMBERS
    yield np.array(NUMBERS)
    yield {"n": 1, "s": s, "m": m, "r": r.tolist(), "v": v}
    yield {"n": 1, "s": [0.5, 2, 3, 1.5, 4, 5], "m": m.ravel(), "r": list(r.flat), "v": v.ravel()}
    yield {"n": 1, "s": record["s"], "m": list(m), "r": r, "v": tuple(map(tuple, v))}
    yield record
    yield record[()]


@pytest.mark.parametrize("form", range(7))
@pytest.mark.parametrize("layout", ["std430", "std140"])
def test_forms_of_values(form, layout):
    value = list(forms())[form]
    if layout == "std430":
        packed = pushing(NESTED, "n").pack(value)
    else:
        shader = uniform(NESTED, "n")
        packed = shader.pack_uniform(shader.blocks[0], value)
    assert packed == expected(layout)


MEMBERS = "uint a; float b[2]; S s; S t[2];"
RIGHT = {"a": 1, "b": [1, 2], "s": {"x": 1, "y": [1, 2]}, "t": [{"x": 1, "y": [1, 2]}] * 2}
WRONG = [
    ({**RIGHT, "c": 1, "d": 2}, ": got 'c', 'd'; the members are a, b, s, t"),
    ({"a": 1, "s": 2}, ": got no value for b, t; the members are a, b, s, t"),
    ({**RIGHT, 1: 1}, ": got 1; the members are a, b, s, t"),
    ({}, ": got no value for a, b, s, t; the members are a, b, s, t"),
    ({**RIGHT, "a": -1}, ".a: got -1, must be uint, from 0 to 4294967295"),
    ({**RIGHT, "a": [1]}, ".a: got [1], must be uint"),
    ({**RIGHT, "b": [1]}, ".b: got 1 values, must be 2"),
    ({**RIGHT, "b": [1, "2"]}, ".b[1]: got '2', must be float"),
    ({**RIGHT, "b": 5}, ".b: got 5, must be a sequence"),
    ({**RIGHT, "b": {"x": 1}}, ".b: got {'x': 1}, must be a sequence"),
    ({**RIGHT, "s": {"x": 1}}, ".s: got no value for y; the members are x, y"),
    ({**RIGHT, "s": [1, 2]}, ".s: got 2 numbers, must be 3: float x, int y[0], int y[1]"),
    ({**RIGHT, "s": {"x": 1, "y": [1, 2.5]}}, ".s.y[1]: got 2.5, must be int, from -2147483648 to 2147483647"),
    ({**RIGHT, "t": [{"x": 1, "y": [1, 2]}]}, ".t: got 1 values, must be 2"),
    ({**RIGHT, "t": [RIGHT["s"], {"x": None, "y": [1, 2]}]}, ".t[1].x: got None, must be float"),
    ({**RIGHT, "t": range(5)}, ".t: got 5 numbers, must be 6: float [0].x, int [0].y[0], "
     "int [0].y[1], float [1].x, int [1].y[0], int [1].y[1]"),
    (b"123", ": got 3 bytes, must be 64"),
    ("abcdefghijkl", ".a: got 'a', must be uint"),
    ([1] * 5, ": got 5 numbers, must be 12: uint a, float b[0], float b[1], float s.x, int s.y[0], int s.y[1], "
     "float t[0].x, int t[0].y[0], int t[0].y[1], float t[1].x, int t[1].y[0], int t[1].y[1]"),
    (np.zeros((), [("a", "u4")]), ": got no value for b, s, t; the members are a, b, s, t"),
]  # fmt: skip


@pytest.mark.parametrize(("value", "said"), WRONG)
def test_values_that_are_wrong(value, said):
    kind = InvalidDescTypeError if said.endswith("a sequence") else InvalidDescError
    text = fault(lambda: pushing(MEMBERS, "a").pack(value), kind)
    assert text == f"x push_constants{said} [SH-09]"
    shader = uniform(MEMBERS, "a")
    text = fault(lambda: shader.pack_uniform(shader.blocks[0], value), kind)
    assert text.startswith(f"x U{said.split('bytes')[0]}")


@pytest.mark.parametrize("value", [5, None, np.float32(5), {1, 2}, iter([1])])
def test_values_of_other_kinds(value):
    said = r"^x push_constants: got .*, must be numbers, a mapping .* or bytes \[SH-09\]$"
    with pytest.raises(InvalidDescTypeError, match=said):
        pushing("uint a;", "a").pack(value)


def test_huge_push_constants_are_not_listed():
    shader = pushing("uint a[100000000];", "a[0]")
    said = r"got 1 numbers, must be 100000000: uint a\[0\], .*, uint a\[15\], \.\.\. \[SH-09\]$"
    with pytest.raises(InvalidDescError, match=said):
        shader.pack([1])


# -- the type of a block ---------------------------------------------------------------------------

ELEMENTS = {  # members of a storage block: its dtype, and the bytes of its smallest number
    "float a[];": ("float32", 4),
    "vec4 a[];": ("float32", 4),
    "mat3 a; float b;": ("float32", 4),
    "uint64_t a[];": ("uint64", 8),
    "double a; dvec2 b[];": ("float64", 8),
    "float16_t a[];": ("float16", 2),
    "int8_t a[];": ("int8", 1),
    "uint a; float b[];": (None, 4),
    "uint a; uint8_t b[];": (None, 1),
    "S a[];": (None, 4),
    "bool a;": ("uint32", 4),
}


@pytest.mark.parametrize("members", ELEMENTS)
def test_the_types_of_a_storage_block(members):
    text = f"layout(std430, binding = 0) buffer B {{ {members} }} b; void main() {{ sum = float("
    use = "b.a" + ("[0]" if "a[" in members else "")
    use += {"vec4": ".x", "mat3": "[0][0]", "S": ".x"}.get(members.split()[0], "")
    (block,) = shaders.load(f"{HEAD}{text}{use}); }}").blocks
    dtype, nbytes = ELEMENTS[members]
    assert block.dtype == (None if dtype is None else np.dtype(dtype))
    assert block.scalar_nbytes == nbytes
