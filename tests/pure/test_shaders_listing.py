"""SPIR-V as text for people: below its source lines, and as a difference of two builds."""

import os
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from spirv import assembled, tool

from vkops import shaders
from vkops.errors import ShaderCompileError
from vkops.shaders import compiler, tools
from vkops.shaders.listing import difference, listing

LABELS = ("one", "other")

SHADER = """#version 450
layout(local_size_x = 4) in;
layout(constant_id = 2) const uint LIMIT = 7u;
layout(std430, binding = 0) readonly buffer Source { uint source[]; };
layout(std430, binding = 1) buffer Target { vec4 target[]; } other;
shared uint both[4];
float twice(float x) { return x * 2.0; }
void main() {
    uint i = gl_GlobalInvocationID.x;
    both[gl_LocalInvocationIndex] = source[i];
    barrier();
    for (uint k = 0u; k < LIMIT; ++k)
        other.target[i] += vec4(twice(float(k)), both[k & 3u], 3.5, FACTOR);
    if (i > 2u && source[i] == 9u) atomicAdd(both[0], 5u);
}
"""


def build(factor="1.5", **more):
    return shaders.compile(SHADER, defines={"FACTOR": factor}, **more)


BUILT = build()


def numbered(spirv):
    """Disassemble a module with numbers as ids."""
    return tool("spirv-dis", "--raw-id", "--no-header", "--no-indent", spirv=spirv).decode()


TEXT = numbered(BUILT)


# -- differences -----------------------------------------------------------------------------------


def test_equal_modules_have_no_difference():
    assert difference(BUILT, build(cache=False), LABELS) == []
    assert difference(BUILT, assembled(TEXT), LABELS) == []
    assert difference(BUILT, build(debug=True), LABELS) == []


@pytest.mark.parametrize("name", list(shaders.VARIANTS))
def test_other_numbers_are_no_difference(name):
    spirv = shaders.spirv(name)
    assert difference(spirv, tool("spirv-opt", "--compact-ids", spirv=spirv), LABELS) == []
    text = numbered(spirv)
    shifted = re.sub(r"%(\d+)\b", lambda m: f"%{int(m[1]) + 1000}", text)
    assert difference(spirv, assembled(shifted), LABELS) == []


def test_a_difference_is_a_unified_diff_of_the_changes():
    lines = difference(BUILT, build(factor="2.5"), LABELS)
    assert lines[:2] == ["--- one", "+++ other"]
    removed = [line for line in lines[2:] if line.startswith("-")]
    added = [line for line in lines[2:] if line.startswith("+")]
    assert "-%float_1_5 = OpConstant %float 1.5" in removed
    assert "+%float_2_5 = OpConstant %float 2.5" in added
    assert 0 < len(removed) <= 4
    assert len(added) == len(removed)


OPPOSITES = {
    "OpIAdd": "OpISub", "OpFAdd": "OpFMul", "OpFMul": "OpFAdd", "OpULessThan": "OpUGreaterThan",
    "OpUGreaterThan": "OpULessThan", "OpLogicalAnd": "OpLogicalOr", "OpBitwiseAnd": "OpBitwiseOr",
    "OpAtomicIAdd": "OpAtomicUMax", "NonWritable": "Coherent", "DontUnroll": "Unroll",
}  # fmt: skip


def others(word, types):
    """Yield words that can be in the place of a word of an instruction."""
    if re.fullmatch(r"-?\d+(\.\d+)?", word):
        yield str(float(word) + 1) if "." in word else str(int(word) + 1)
    if word in OPPOSITES:
        yield OPPOSITES[word]
    yield from (id_ for id_, type_ in types.items() if type_ == types.get(word) and id_ != word)


def mutations(*, with_ids):
    """Yield TEXT with one instruction changed, removed or doubled so that it can be assembled.

    ``with_ids``: in functions, ids are also replaced by others of the same type.
    """
    lines, types = TEXT.splitlines(), {}
    first = next(n for n, line in enumerate(lines) if "OpDecorate" in line)
    for number, line in enumerate(lines):
        words = line.split()
        if "OpFunction" in words and with_ids:
            definitions = re.finditer(r"^(%\d+) = Op\w+ (%\d+)", TEXT, re.MULTILINE)
            types = {match[1]: match[2] for match in definitions}
        if number < first or '"' in line or {"OpTypeInt", "OpTypeFloat"} & {*words}:
            continue  # names, and types of which no other width is valid
        changed = [
            [" ".join([*words[:place], other, *words[place + 1 :]])]
            for place in range(len(words))
            for other in others(words[place], types if place >= 4 or "=" not in words else {})
        ]
        if words[0] in ("OpStore", "OpControlBarrier", "OpDecorate"):
            changed += [[], [line, line]]
        for new in changed:
            yield line, new, "\n".join([*lines[:number], *new, *lines[number + 1 :]])


@settings(max_examples=60)
@given(st.one_of(st.sampled_from([*mutations(with_ids=ids)]) for ids in (False, True)))
def test_any_change_of_an_instruction_is_seen(mutation):
    *changed, text = mutation
    assert difference(BUILT, assembled(text), LABELS) != [], changed


def test_difference_of_damaged_spirv():
    with pytest.raises(ShaderCompileError):
        difference(BUILT, BUILT[:42], LABELS)


# -- listings --------------------------------------------------------------------------------------


def test_each_source_line_is_above_its_instructions(tmp_path):
    path = tmp_path / "it.comp"
    path.write_text(SHADER)
    text = listing(shaders.compile(path, defines={"FACTOR": "1.5"}, debug=True))
    parts = text.split(f"\n; {path}:")
    heads = [part.splitlines()[0] for part in parts[1:]]
    assert "11: barrier();" in heads
    assert "7: float twice(float x) { return x * 2.0; }" in heads
    number = heads.index("11: barrier();") + 1
    assert "OpControlBarrier" in parts[number]
    assert "OpLine" not in text
    numbered = {head.partition(":")[0]: head.partition(": ")[2] for head in heads}
    lines = SHADER.splitlines()
    assert all(lines[int(n) - 1].strip() == code for n, code in numbered.items())


def test_lines_of_included_files(tmp_path):
    (tmp_path / "inc.glsl").write_text("\nfloat half_of(float x) { return x * 0.5; }\n")
    path = tmp_path / "it.comp"
    include = '450\n\n#include "inc.glsl"\n'
    path.write_text(
        SHADER.replace("450\n", include).replace("twice(float(k))", "half_of(float(k))")
    )
    spirv = shaders.compile(path, defines={"FACTOR": "1.5"}, debug=True)
    text = listing(spirv, read_files=True)
    assert re.search(
        r"^; .*inc\.glsl:2: float half_of\(float x\) \{ return x \* 0\.5; \}$", text, re.MULTILINE
    )


def test_lines_after_a_line_directive():
    text = """#version 450
#extension GL_GOOGLE_cpp_style_line_directive : require
layout(binding = 0) buffer B { uint b[]; };
void f() { b[0] = 1; }
#line 7 "template.glsl"
void g() { b[1] = 2; }
#line 20
void main() { f(); g(); }
"""
    lines = listing(shaders.compile(text, debug=True))
    assert re.findall("^; .*: void .*", lines, re.MULTILINE) == [
        "; template.glsl:20: void main() { f(); g(); }",
        f"; {compiler.TEXT}:4: void f() {{ b[0] = 1; }}",
        "; template.glsl:7: void g() { b[1] = 2; }",
    ]


def test_included_files_that_no_longer_exist(tmp_path):
    inc, path = tmp_path / "inc.glsl", tmp_path / "it.comp"
    inc.write_text("void f() {}\n")
    path.write_text('#version 450\n\n#include "inc.glsl"\nvoid main() { f(); }\n')  # fmt: skip
    spirv = shaders.compile(path, debug=True)
    inc.unlink()
    text = listing(spirv)
    # Some compilers keep the text of included files, too.
    assert re.search(r"^; .*inc\.glsl:1:( void f\(\) \{\})?$", text, re.MULTILINE)
    assert re.search(r"^; .*it\.comp:4: void main\(\) \{ f\(\); \}$", text, re.MULTILINE)


def test_a_listing_without_debug_information():
    assert listing(BUILT) == tools.disassemble(BUILT).rstrip("\n")


@pytest.mark.posix("named pipes", tests_only=True)
@pytest.mark.parametrize("name", ["/etc/passwd", "/dev/zero", "pipe", "\x1b[31mred\x07\nnext"])
def test_files_that_a_module_names_are_not_opened(tmp_path, monkeypatch, name):
    """Control characters of its strings do not reach the terminal, and its lines stay lines."""
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")
    text = numbered(shaders.compile("#version 450\nvoid main() {}", debug=True))
    spirv = assembled(text.replace('"<source>"', f'"{name}"'))
    lines = listing(spirv).splitlines()
    assert all(line.isprintable() for line in lines)
    shown = name.replace("\x1b", "\\x1b").replace("\x07", "\\x07").replace("\n", "\\n")
    assert f"; {shown}:2: void main() {{}}" in lines
    assert "root:" not in "".join(lines)
