"""The grammar of SPIR-V, against the one that SPIRV-Tools contain."""

import itertools
import re
import subprocess
from array import array
from concurrent.futures import ThreadPoolExecutor

import pytest

from vkops import shaders
from vkops.shaders import grammar
from vkops.shaders.binary import positions

DEPENDENT = {
    "OpConstant", "OpSpecConstant", "OpSwitch", "OpExtInst", "OpExtInstWithForwardRefsKHR",
    "OpExecutionModeId",
}  # fmt: skip
"""Instructions whose operands depend on other words; ``test_ids_of_modules`` has them."""

FORMER_NAMES = {"OpTypeCooperativeVectorNV": "OpTypeVectorIdEXT"}
SPEC_OPERANDS = [81, 1001, 7]  # OpCompositeExtract and its operands
TEXT = 0x41  # "A"
LITERALS = (0, 1, 2, 5, 11, 32, 4421)


def disassembled(words):
    """Return the instructions of a module as text, or None if SPIRV-Tools refuse it."""
    command = ["spirv-dis", "--raw-id", "--no-header", "--no-indent", "-"]
    done = subprocess.run(command, input=array("I", words).tobytes(), capture_output=True)
    return None if done.returncode else done.stdout.decode()


def ids_of(line):
    """Return the ids in an instruction, without those in its strings."""
    return sorted(int(number) for number in re.findall(r"%(\d+)", re.sub(r'"[^"]*"', "", line)))


def with_operands(pattern, literal, count):
    """Return operands for a pattern; each id is another number."""
    first, _, repeated = pattern.partition("*")
    ids = itertools.count(1003)
    words = []
    for kind in first + repeated * count:
        each = {
            "s": [TEXT],
            "m": [0x1A, 4, next(ids), next(ids)],
            "o": SPEC_OPERANDS,
            "n": [literal],
        }
        words += each.get(kind, [next(ids)])
    return words


def refuted(op):
    """Return how spirv-dis prints an instruction with other ids than the grammar says, or None.

    False stands for an instruction that it does not know.
    """
    name, pattern = grammar.INSTRUCTIONS[op], grammar._PATTERNS[op]
    for literal, count in itertools.product(LITERALS, range(3)):
        words = with_operands(pattern, literal, count)
        line = disassembled([0x07230203, 0x10600, 0, 2000, 0, len(words) + 1 << 16 | op, *words])
        if line is None:
            continue
        printed = re.search(r"Op\w+", line)[0]
        printed = FORMER_NAMES.get(printed, printed)
        ids = sorted(words[place] for place in grammar.id_places(op, words))
        same = ids == ids_of(line) and re.sub("(KHR|EXT|NV|INTEL)$", "", printed) in name
        return None if same else f"{name} {pattern}: {line}"
    return False


def test_which_operands_are_ids():
    ops = [op for op, name in grammar.INSTRUCTIONS.items() if name not in DEPENDENT]
    with ThreadPoolExecutor(4) as pool:
        refutations = dict(zip(ops, pool.map(refuted, ops), strict=True))
    assert [text for text in refutations.values() if text] == []
    assert sum(text is None for text in refutations.values()) > 400


def test_names_of_functions_and_built_in_variables():
    """SPIRV-Tools print the names of all functions of GLSL.std.450, and of the variables that it knows."""
    name = [int.from_bytes(b"GLSL.std.450"[at : at + 4], "little") for at in (0, 4, 8)]
    head = [0x07230203, 0x10600, 0, 2000, 0]
    for function, number in grammar.FUNCTIONS.items():
        calls = ([5 + n << 16 | 12, 2, 3, 1, number, *[4] * n] for n in (1, 2, 3))
        texts = (disassembled([*head, 6 << 16 | 11, 1, *name, 0, *call]) for call in calls)
        assert f" %1 {function} " in next(filter(None, texts))
    names = {}
    for variable, number in grammar.BUILT_IN.items():
        line = disassembled([*head, 4 << 16 | 71, 1, 11, number])
        if line is not None:
            names[variable] = line.split()[-1]
    suffix = re.compile("(KHR|EXT|NV)$")
    assert all(suffix.sub("", a) == suffix.sub("", b) for a, b in names.items())
    assert len(names) > 60


LINES = """#version 450
#extension GL_EXT_shader_atomic_int64 : require
#extension GL_EXT_shader_explicit_arithmetic_types : require
layout(local_size_x_id = 7) in;
layout(constant_id = 1) const uint N = 3;
layout(binding = 0) buffer A { int64_t a[]; };
layout(binding = 1) buffer B { vec4 b[]; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    switch (uint(a[i])) {
        case 4294967295u: b[i] = b[i].wzyx; break;
        case 2u: b[i] = max(b[i], b[i + N]); break;
        default: for (uint n = 0; n < N; ++n) atomicAdd(a[n], 1l);
    }
}
"""


@pytest.mark.parametrize("target_env", ["vulkan1.1", "vulkan1.3"])
@pytest.mark.parametrize("debug", [False, True])
def test_ids_of_modules(target_env, debug):
    words = array("I", shaders.compile(LINES, target_env=target_env, debug=debug))
    lines = re.findall(r'(?:[^"\n]|"(?:[^"\\]|\\.)*")+', disassembled(words))
    for line, (at, op, count) in zip(lines, positions(words), strict=True):
        operands = words[at + 1 : at + count]
        ids = sorted(operands[place] for place in grammar.id_places(op, operands))
        assert ids == ids_of(line), line
        assert grammar.INSTRUCTIONS[op] in line
