"""Random structured shaders: integers of all sizes, floats, vectors, matrices, loops, switches, functions, arrays, subgroups."""

import re
from random import Random

COUNT, FLOAT = 16, 2  # words that each invocation writes, and that of a float

HEAD = """#version 450
#extension GL_EXT_shader_explicit_arithmetic_types : require
layout(local_size_x = 16) in;
layout(std430, binding = 0) readonly buffer Source { uint source[]; };
layout(std430, binding = 1) buffer Target { uint target[]; };
EXTENSIONS
shared uint part[16];
struct Pair { uint number; ivec2 place; };
// What min, sign and others make of NaN is not defined.
float sum(float a, float b) { precise float c = a + b; return abs(c) < 1e20 ? c : 1.0; }
float product(float a, float b) { precise float c = a * b; return abs(c) < 1e20 ? c : 2.0; }
"""

UNSIGNED = ("uint", "uint64_t", "uint16_t", "uint8_t")
SIGNED = ("int", "int64_t", "int16_t", "int8_t")
BITS = dict(zip((*UNSIGNED, *SIGNED), (32, 64, 16, 8) * 2, strict=True))


SUBGROUPS = {
    "VOTE": ["uint(subgroupAll({x} > 9u))", "uint(subgroupAny({x} > 99u))", "uint(subgroupAllEqual({x} & 1u))"],
    "ARITHMETIC": ["subgroupAdd({x})", "subgroupMax({x})", "uint(subgroupMin(int({x})))", "subgroupXor({x})", "subgroupMul({x})",
                   "subgroupInclusiveAdd({x})", "subgroupExclusiveAdd({x})", "subgroupInclusiveMin({x})",
                   "subgroupExclusiveOr({x})", "subgroupAdd(uvec2({x}, 1u)).y"],
    "BALLOT": ["subgroupBroadcast({x}, 3u)", "subgroupBroadcastFirst({x})", "subgroupBallot({x} > 9u).x",
               "subgroupBallotBitCount(subgroupBallot({x} > 9u))", "subgroupBallotExclusiveBitCount(subgroupBallot({x} > 9u))",
               "subgroupBallotFindMSB(uvec4({x} | 1u, 0u, 0u, 0u))", "uint(subgroupBallotBitExtract(uvec4({x}), 2u))"],
    "SHUFFLE": ["subgroupShuffle({x}, gl_SubgroupInvocationID ^ 1u)", "subgroupShuffleXor({x}, 2u)"],
    "SHUFFLE_RELATIVE": ["mix(0u, subgroupShuffleUp({x}, 1u), gl_SubgroupInvocationID > 0u)"],
    "CLUSTERED": ["subgroupClusteredAdd({x}, 4u)", "subgroupClusteredMax({x}, 2u)"],
    "QUAD": ["subgroupQuadBroadcast({x}, 2u)", "subgroupQuadSwapHorizontal({x})", "subgroupQuadSwapDiagonal({x})"],
}  # fmt: skip
"""Expressions of a uint for each kind of operations on subgroups."""


class Generator:
    """Writes a program; the same for the same seed. One of its variables has one of the types ``also``.

    It uses the operations on ``subgroups`` of these kinds.
    """

    def __init__(self, seed, also=(*UNSIGNED, *SIGNED), subgroups=()):
        self.random = Random(seed)
        self.subgroups = [kind for kind in SUBGROUPS if kind in subgroups]
        self.functions = []
        self.in_function = False
        types = ["uint", "int", "float", "bool", "uint", self.random.choice(also)]
        self.variables = {f"v{n}": type_ for n, type_ in enumerate(types)}
        self.loops = 0
        self.in_loop = False

    def choice(self, *options):
        return self.random.choice(options)

    def names(self, type_):
        return [name for name, known in self.variables.items() if known == type_]

    def expression(self, type_, depth=3):
        """An expression; in the forms below, <uint> is an expression of uint, and <1 uint> a simple one."""
        if depth <= 0 and type_ != "bool":
            return self.choice(*self.names(type_), *self.names(type_), self.literal(type_))

        def part(match):
            return self.expression(match[2], min(int(match[1] or depth), depth) - 1)

        return re.sub(r"<(\d )?(\w+)>", part, self.choice(*self.forms(type_, depth)))

    def forms(self, type_, depth):
        other = self.choice(*sorted({*self.variables.values()} - {"bool"}))
        if type_ == "bool":
            test = f"(<{other}> {self.choice('<', '>', '<=', '>=', '==', '!=')} <{other}>)"
            kind = f"{self.choice('any', 'all')}({self.choice('lessThan', 'equal')}"
            forms = [test, f"!{test}", f"{kind}(ivec2(<1 int>, <1 int>), ivec2(<1 int>)))"]
            both = f"({test} {self.choice('&&', '||', '^^')} <bool>)" if depth > 1 else None
            return [*forms, both] if both else forms
        if type_ == "float":  # SwiftShader rounds twice when it converts a uint from 2**31 on
            return ["sum(<float>, <float>)", "product(<float>, <float>)", "min(<float>, <float>)",
                    "floor(<float>)", "abs(<float>)", "float(<int>)", "float(<uint> >> 1)", "(-(<float>))",
                    "(<bool> ? <float> : <float>)", "sign(<float>)"]  # fmt: skip
        bits, t = BITS[type_], f"<{type_}>"
        forms = [f"({t} {self.choice('+', '-', '*', '&', '|', '^')} {t})"] * 4
        forms += [f"({t} {self.choice('<<', '>>')} (<1 uint> & {bits - 1}u))"]
        forms += [f"({self.choice('~', '-')}({t}))"]
        forms += [f"{type_}(<{other}>)" if other != "float" else t, f"(<bool> ? {t} : {t})"]
        if type_ in UNSIGNED:
            forms += [f"({t} {self.choice('/', '%')} ({t} | {type_}(1)))"]
        else:  # the remainder of a negative number is undefined in GLSL
            positive = f"(({t} & {type_}(63)) | {type_}(1))"
            forms += [f"({t} / {positive})", f"(({t} & {type_}(127)) % {positive})"]
        if bits == 32:
            forms += [f"{self.choice('min', 'max')}({t}, {t})",
                      f"bitfieldExtract({t}, int(<1 uint> & 15u), int(<1 uint> & 15u))",
                      f"bitfieldInsert({t}, {t}, int(<1 uint> & 15u), 9)",
                      f"bitfieldReverse({t})", f"{type_}(bitCount({t}))",
                      f"{type_}({self.choice('findMSB', 'findLSB')}({t}))",
                      f"{type_}(<2 float> > 0.5 ? 9 : 4)"]  # fmt: skip
        forms += [form for known, form in self.functions if known == type_] * 2
        if type_ == "uint":
            small = "vec3(ivec3(<1 int>, <1 int>, <1 uint>) & 7)"
            forms += [f"uint((mat3({small}, {small}, {small}) * {small}).{self.choice(*'xyz')})",
                      f"uint(({small} * transpose(mat3({small}, {small}, {small}))).x + determinant(outerProduct({small}, vec3(1))))",
                      f"(uvec4({t}, {t}, <1 uint>, 5u) {self.choice('+', '*', '^', '>>')} uvec4(<1 uint> & 31u)).{self.choice(*'xyzw')}",
                      f"uint(dot({small}, {small}))"]  # fmt: skip
        if self.in_function:
            return forms
        if type_ == "uint":
            forms += ["vector.y", "vector[<1 uint> % 3u]", "uint((matrix * vec3(1, 2, 3))[<1 uint> & 1u])",
                      "uint(matrix[<1 uint> % 3u].y)", "(vector.zx * vector.yy).x"]  # fmt: skip
            forms += ["array[<2 uint> % 5u]", "pair.number", "floatBitsToUint(sum(<1 float>, 1.5))",
                      f"(uvec3({t}, {t}, 7u) * 3u).{self.choice('x', 'y', 'z', 'yzx.z')}", "source[at]"]  # fmt: skip
        if type_ == "int":
            forms += ["pair.place.y", "pair.place[<1 uint> & 1u]"]
            forms += [f"(ivec2({t}, {t}).yx - ivec2(3)).x"]
        return forms

    def literal(self, type_):
        if type_ == "float":
            return f"{self.random.randint(-40, 40) / 8!r}"
        number = self.choice(0, 1, 2, 3, 5, 100, self.random.randint(0, 2 ** (BITS[type_] - 1) - 1))
        suffix = "ul" if BITS[type_] == 64 else "u"
        return f"{type_}({number}{suffix})"

    def statement(self, depth):
        of, choice = self.expression, self.choice
        name = choice(*self.variables)
        options = [lambda: f"{name} = {of(self.variables[name])};"] * 4
        options += [
            lambda: f"array[{of('uint', 1)} % 5u] = {of('uint')};",
            lambda: f"vector{choice('.x', '.z', '[' + of('uint', 1) + ' % 3u]')} = {of('uint')};",
            lambda: f"vector.{choice('xy', 'zx')} = vector.{choice('yz', 'xx')} + {of('uint', 1)};",
            lambda: (
                f"matrix[{of('uint', 1)} % 3u]{choice('.x', '.y', '[at & 1u]')} = float({of('uint', 1)} & 7u);"
            ),
            lambda: f"pair.place.{choice('x', 'y')} = {of('int')};",
            lambda: f"pair = Pair({of('uint')}, ivec2({of('int', 1)}));",
            lambda: (
                f"change({choice(*self.names('uint'))}, {of('int', 1)}, {choice(*self.names('int'))});"
            ),
        ]
        if depth > 0:
            options += [lambda: self.condition(depth), lambda: self.switch(depth)]
        if depth > 0 and not self.in_loop:
            options += [lambda: self.loop(depth)] * 2
        return self.choice(*options)()

    def body(self, depth):
        return " ".join(self.statement(depth - 1) for _ in range(self.random.randint(1, 3)))

    def condition(self, depth):
        text = f"if ({self.expression('bool')}) {{ {self.body(depth)} }}"
        return text + self.choice("", f" else {{ {self.body(depth)} }}")

    def switch(self, depth):
        ends = ("break;", "break;", "")
        cases = [f"case {n}u: {self.body(depth)} {self.choice(*ends)}" for n in range(3)]
        return f"switch ({self.expression('uint')} % 5u) {{ {' '.join(cases)} default: {self.body(depth)} }}"

    def loop(self, depth):
        self.loops += 1
        i, self.in_loop = f"i{self.loops}", True
        leave = f"if ({self.expression('bool')}) {self.choice('break', 'continue')};"
        body = f"{self.body(depth)} {self.choice(leave, '')} {self.body(depth)}"
        self.in_loop = False
        end = f"(({self.expression('uint', 1)}) & 7u)"
        # No do-while: where invocations leave one one after the other, lavapipe and SwiftShader
        # execute it for those that have left, too (test_each_invocation_leaves_a_loop_by_itself).
        return f"for (uint {i} = 0u; {i} < {end}; ++{i}) {{ {body} }}"

    def function(self):
        """A function of three parameters, with a branch and a loop; those before it can be called in it."""
        saved, name, result = self.variables, f"f{len(self.functions)}", self.choice("uint", "int")
        self.variables, self.in_function = {"a": "uint", "b": "int", "c": "float"}, True
        text = (
            f"{result} {name}(uint a, int b, float c) {{ if ({self.expression('bool')}) return {self.expression(result)};"
            f" for (uint k = 0u; k < ({self.expression('uint', 1)} & 3u); ++k) {{ a += {self.expression('uint')};"
            f" if ({self.expression('bool', 1)}) {self.choice('break', 'continue', 'return ' + self.expression(result, 1))};"
            f" b = {self.expression('int')}; }} return {self.expression(result)}; }}\n"
        )
        self.variables, self.in_function = saved, False
        self.functions.append((result, f"{name}(<uint>, <1 int>, <1 float>)"))
        return text

    def program(self):
        function = (
            "void change(inout uint a, int b, out int c) { c = b * 3; if (a > 77u) { a ^= uint(b); return; }"
            " for (int k = 0; k < (b & 3); ++k) { a = a * 5u + 1u; if ((a & 64u) != 0u) return; } c += 1; }\n"
        )
        function += "".join(self.function() for _ in range(self.random.randint(0, 2)))
        lines = [
            "uvec3 vector = uvec3(1, 2, 3) * gl_GlobalInvocationID.x; mat3x2 matrix = mat3x2(1, 2, 3, 4, 5, 6);",
            "uint at = gl_GlobalInvocationID.x; uint array[5]; Pair pair = Pair(at, ivec2(source[at], -3));",
            "for (uint k = 0u; k < 5u; ++k) array[k] = source[at] >> k;",
        ]
        for name, type_ in self.variables.items():
            initial = (
                "(source[at] & 1u) == 0u" if type_ == "bool" else f"{type_}(source[at] % 1000u)"
            )
            lines.append(f"{type_} {name} = {initial};")
        for _ in range(3):
            lines += [self.statement(3) for _ in range(3)]
            name = self.choice(*self.names("uint"))
            lines.append(f"part[gl_LocalInvocationIndex] = {name}; barrier();")
            other = f"gl_LocalInvocationIndex + {self.random.randint(1, 15)}u"
            lines.append(f"{name} += part[({other}) & 15u]; barrier();")
            if self.subgroups:
                form = self.choice(*SUBGROUPS[self.choice(*self.subgroups)])
                lines.append(f"{name} ^= {form.format(x=self.choice(*self.names('uint')))};")
        outputs = [*(self.word(name) for name in self.variables), *(f"array[{k}]" for k in range(5)),
                   "pair.number", "uint(pair.place.x)", "uint(pair.place.y)", "vector.x ^ vector.y ^ vector.z",
                   "uint(dot(matrix * vec3(1, 10, 100), vec2(1, 10)))"]  # fmt: skip
        lines += [f"target[at * {COUNT}u + {n}u] = {text};" for n, text in enumerate(outputs)]
        names = [kind.lower() for kind in ("BASIC", *self.subgroups) if self.subgroups]
        extensions = [f"#extension GL_KHR_shader_subgroup_{name} : require" for name in names]
        head = HEAD.replace("EXTENSIONS", "\n".join(extensions))
        return head + function + "void main() {\n  " + "\n  ".join(lines) + "\n}\n"

    def word(self, name):
        type_ = self.variables[name]
        if type_ == "float":
            return f"floatBitsToUint({name})"
        if type_.endswith("64_t"):
            return f"uint({name} ^ ({name} >> 32))"
        return f"uint({name})"
