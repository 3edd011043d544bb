"""Random calls of the functions of GLSL.std.450, with the differences between devices that Vulkan allows.

Arguments are made exactly: integers below 2**24 divided by powers of two. Each result is of one function, so that its
error is that of this function (Vulkan, "Precision of GLSL.std.450 Instructions"), twice: a device's and the interpreter's.
"""

from __future__ import annotations

from random import Random
from typing import NamedTuple

COUNT = 12  # words that each invocation writes

HEAD = """#version 450
layout(local_size_x = 16) in;
layout(std430, binding = 0) readonly buffer Source { uint source[]; };
layout(std430, binding = 1) buffer Target { uint target[]; };
uint next = gl_GlobalInvocationID.x;
uint word() { next = next * 1664525u + 1013904223u; return source[next % source.length()] ^ (next >> 8); }
float signed_() { return float(int(word() & 0xFFFFu) - 32768); }
float whole() { return float(int(word() & 15u) - 8); }
void put(uint n, float x) { target[gl_GlobalInvocationID.x * COUNTu + n] = floatBitsToUint(x); }
void put(uint n, uint x) { target[gl_GlobalInvocationID.x * COUNTu + n] = x; }
void put(uint n, int x) { put(n, uint(x)); }
void put(uint n, bool x) { put(n, uint(x)); }
"""

NUMBERS = {
    "any": "(signed_() / 256.0)",  # from -128 to 128
    "small": "(signed_() / 4096.0)",  # from -8 to 8
    "unit": "(signed_() / 32768.0)",
    "half": "(signed_() / 65536.0)",
    "positive": "(float(word() & 0xFFFFu) / 256.0 + 0.00390625)",
    "above": "(float(word() & 0xFFFu) / 256.0 + 1.0)",
    "eleven": "(float(word() & 0x3FFu) / 1024.0)",  # bits, which half a word holds
    "special": "uintBitsToFloat(uint[](0u, 1u << 31, 0x7F800000u, 0xFF800000u, 0x3FC00000u, 0xC0A00000u)[word() % 6u])",
    "whole": "whole()",
    "int": "int(word())",
    "uint": "word()",
    "exponent": "(int(word() & 31u) - 16)",
    "normals": "((word() & 0x83FF83FFu) | 0x3C003C00u)",  # two numbers of 16 bits
}
TYPES = {"int": "int", "exponent": "int", "uint": "uint", "normals": "uint"}
"""Those of them that are no floats."""


class TestedFunction(NamedTuple):
    """A function of arguments of kinds: its result differs by ``relative`` times itself plus ``absolute``.

    One ``by_components`` is also called with vectors.
    """

    text: str
    kinds: tuple[str, ...]
    relative: float = 0
    absolute: float = 0
    by_components: bool = True
    type: str = "float"


def of(names, *kinds, relative=0.0, absolute=0.0, type="float"):
    """Functions that are called with arguments."""
    places = ", ".join(f"{{{n}}}" for n in range(len(kinds)))
    each = (f"{name}({places})" for name in names.split())
    return [TestedFunction(text, kinds, relative, absolute, True, type) for text in each]


def whole(*texts, relative=0.0, absolute=0.0, kinds=("whole",) * 9, type="float"):
    """Expressions of numbers."""
    return [TestedFunction(text, kinds, relative, absolute, False, type) for text in texts]


U, V, W = "vec3({0}, {1}, {2})", "vec3({3}, {4}, {5})", "vec3({6}, {7}, {8})"
M2, M3 = "mat2({0}, {1}, {2}, {3})", f"mat3({U}, {V}, {W})"
M4 = "mat4(vec4({0}, {1}, {2}, {3}), vec4({4}, {5}, {6}, {7}), vec4({8}, {0}, {2}, {4}), vec4({1}, {3}, {5}, 1))"

FUNCTIONS = [
    *of("floor ceil trunc roundEven fract abs sign", "any"),
    *whole("round({0} + 0.0009765625)", kinds=("any",)),  # halves may be rounded either way
    *of("min max step", "any", "any"), *of("clamp", "any", "unit", "positive"), *whole("mod({0}, 4.0)", kinds=("any",)),
    *of("mix", "any", "any", "unit", relative=2**-20, absolute=2**-13),
    *of("fma", "small", "small", "small", relative=2**-20, absolute=2**-16),
    *of("radians degrees", "any", relative=2**-20),
    *of("sin cos", "small", absolute=2**-9), *of("tan", "unit", absolute=2**-7),
    *of("asin acos", "unit", relative=2**-9, absolute=2**-9), *of("atan", "any", relative=2**-10),
    *of("atan", "positive", "any", relative=2**-10),
    *of("sinh cosh", "small", relative=2**-15, absolute=2**-15), *of("tanh", "small", relative=2**-10, absolute=2**-15),
    *of("asinh", "small", relative=2**-10, absolute=2**-10), *of("acosh", "above", relative=2**-10, absolute=2**-8),
    *of("atanh", "half", relative=2**-10, absolute=2**-10),
    *of("exp exp2", "small", relative=2**-17), *of("log log2", "positive", relative=2**-20, absolute=2**-19),
    *of("pow", "positive", "small", relative=2**-12),
    *of("sqrt inversesqrt", "positive", relative=2**-20),
    *of("ldexp", "any", "exponent"),
    *of("smoothstep", "half", "above", "any", relative=2**-15, absolute=2**-15),
    *of("floor ceil trunc roundEven abs", "special"), *of("isnan isinf", "special", type="bool"),
    *of("abs sign findMSB findLSB bitCount bitfieldReverse", "int", type="int"),
    *of("findMSB findLSB bitCount", "uint", type="int"), *of("bitfieldReverse", "uint", type="uint"),
    *of("min max", "uint", "uint", type="uint"), *of("min max", "int", "int", type="int"),
    *whole("clamp({0}, min({1}, {2}), max({1}, {2}))", kinds=("int",) * 3, type="int"),
    *whole("clamp({0}, min({1}, {2}), max({1}, {2}))", kinds=("uint",) * 3, type="uint"),
    # The numbers of vectors and matrices are whole ones, of which sums of products are exact.
    *whole(f"dot({U}, {V})", f"cross({U}, {V}).y", f"faceforward({U}, {V}, {W}).z", f"reflect({U}, {V}).x",
           f"(matrixCompMult({M3}, outerProduct({U}, {W})) * {V}).x", f"(transpose({M4}) * {M4})[1].z", f"({V} * {M3}).y"),
    *whole(f"length({U})", f"distance({U}, {V})", f"normalize({U} + 9.0).y", "length({0})", "normalize({0} + 0.5)",
           f"refract({U}, vec3(0, 1, 0), 0.5).y", relative=2**-18, absolute=2**-18),
    *whole(f"determinant({M2})", f"determinant({M3})", f"determinant({M4})", absolute=2**-4, relative=2**-16),
    *whole(f"inverse({M2} + mat2(64))[1].x", f"inverse({M3} + mat3(64))[2].y", f"inverse({M4} + mat4(64))[3].w",
           absolute=2**-16, relative=2**-12),
    *(f for n in range(4) for signed, place in (("S", f"bitfieldExtract(int({{}}), {8 * n}, 8)"), ("U", f"bitfieldExtract({{}}, {8 * n}, 8)"))
      for f in whole(f"float({place.format(f'pack{signed}norm4x8(vec4({{0}}, {{1}}, {{2}}, {{3}}))')})", absolute=1, kinds=("unit",) * 4)),
    *(f for n in range(2) for signed, place in (("S", f"bitfieldExtract(int({{}}), {16 * n}, 16)"), ("U", f"bitfieldExtract({{}}, {16 * n}, 16)"))
      for f in whole(f"float({place.format(f'pack{signed}norm2x16(vec2({{0}}, {{1}}))')})", absolute=1, kinds=("unit",) * 2)),
    *whole("packHalf2x16(vec2({0}, {1}))", kinds=("eleven", "eleven"), type="uint"),
    *whole("unpackHalf2x16({0}).x", "unpackHalf2x16({0}).y", kinds=("normals",)),
    *whole("unpackUnorm4x8({0}).z", "unpackSnorm4x8({0}).y", "unpackUnorm2x16({0}).y", "unpackSnorm2x16({0}).x",
           kinds=("uint",), relative=2**-20),
]  # fmt: skip

STORING = {
    "modf": ("float", ("any", "small")),  # of infinity, SwiftShader's is not 0
    "frexp": ("int", ("any", "small")),
}  # fmt: skip
"""Functions that store a second result of a type, with the kinds of their argument."""

DOUBLES = ["floor({0})", "ceil({0})", "fract({0})", "abs({0})", "sign({0})", "trunc({0})", "roundEven({0})", "min({0}, {1})",
           "max({0}, {1})", "clamp({0}, -1.0LF, 2.0LF)", "step({0}, {1})", "mod({0}, 4.0LF)", "dot(dvec2({0}, {1}), dvec2({1}, 3))",
           "ldexp({0}, 3)", "packDouble2x32(unpackDouble2x32({0}))", "determinant(dmat2(2, {1}, 0, 3))", "fma({0}, 2.0LF, {1})"]  # fmt: skip


def program(seed, *, doubles=False):
    """A program, and for each word that an invocation writes whether it is a float, and the tolerances."""
    random = Random(seed)
    lines, columns = [], []

    def put(text, function):
        lines.append(f"put({len(columns)}u, {text});")
        columns.append((function.type == "float", function.relative, function.absolute))

    while len(columns) < COUNT:
        if random.random() < 0.15:
            name = random.choice([*STORING])
            stored, kinds = STORING[name]
            kind = random.choice(kinds)
            if COUNT - len(columns) < 2:
                continue
            n = len(columns)
            lines.append(f"{stored} w{n}; float r{n} = {name}({NUMBERS[kind]}, w{n});")
            put(f"r{n}", TestedFunction("", ()))
            put(f"w{n}", TestedFunction("", (), type=stored))
        elif doubles and random.random() < 0.2:
            numbers = [f"double({NUMBERS['any']})"] * 2
            put(f"float({random.choice(DOUBLES).format(*numbers)})", TestedFunction("", ()))
        else:
            function = random.choice(FUNCTIONS)
            n, size = len(columns), random.randint(1, 4) if function.by_components else 1
            names = [f"x{n}_{k}" for k in range(len(function.kinds))]
            for kind, argument in zip(function.kinds, names, strict=True):
                scalar = TYPES.get(kind, "float")
                type_ = f"{scalar[0].strip('f')}vec{size}" if size > 1 else scalar
                numbers = ", ".join([NUMBERS[kind]] * size)
                lines.append(f"{type_} {argument} = {type_}({numbers});")
            suffix = f".{random.choice('xyzw'[:size])}" if size > 1 else ""
            put(function.text.format(*names) + suffix, function)
    text = HEAD.replace("COUNT", str(COUNT)) + "void main() {\n  " + "\n  ".join(lines) + "\n}\n"
    return text, columns
