"""Arrays of blocks, and memory that shaders access by addresses, in the interpreter."""

import numpy as np
import pytest

from vkops.debug import check
from vkops.interpreter.addresses import BASE

HEAD = """#version 450
#extension GL_EXT_nonuniform_qualifier : require
#extension GL_EXT_buffer_reference2 : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
layout(local_size_x = 8) in;
layout(std430, binding = 0) buffer B { uint n; uint data[]; } b[%s];
layout(std430, binding = 1) writeonly buffer O { uint o[]; };
layout(buffer_reference) buffer Node;
layout(buffer_reference, std430, buffer_reference_align = 4) buffer Node { uint v; uint w; Node next; };
layout(buffer_reference, std430, buffer_reference_align = 4) buffer Numbers { uint at[]; };
layout(push_constant) uniform P { Node first; Numbers numbers; uint k; };
uint i = gl_GlobalInvocationID.x;
void main() { %s }"""
PARTS = [
    np.arange(start, start + count, dtype=np.uint32) for start, count in ((0, 4), (10, 4), (20, 9))
]
NODES = np.zeros((3, 4), np.uint32)
NODES[:, 0], NODES[:, 1] = (10, 20, 30), 7
NODES[:, 2:] = [[word, BASE >> 32] for word in (16, 32, 0)]
"""The first is at the first address, and each has the address of the next one."""


def run(body, count="3", **options):
    buffers = {"B": PARTS, "O": 32}
    push = {"first": NODES, "numbers": np.arange(8, dtype=np.uint32), "k": 1}
    return check(HEAD % (count, body), buffers, push=push, **options)


I = np.arange(8)  # noqa: E741


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("o[i] = b[2].data[i];", 21 + I),
        ("o[i] = b[nonuniformEXT(i % 3)].data[i / 3];", 10 * (I % 3) + 1 + I // 3),
        ("o[i] = b[k + 1].data.length();", 0 * I + 8),
        ("o[i] = b[nonuniformEXT(i % 3)].data.length();", np.array([3, 3, 8])[I % 3]),
        ("o[i] = atomicAdd(b[nonuniformEXT(i / 3)].n, i);", [0, 0, 1, 10, 13, 17, 20, 26]),
        ("o[i] = first.v + first.next.w;", 0 * I + 17),
        ("Node p = first; for (uint j = 0; j < i % 3; ++j) p = p.next; o[i] = p.v;", 10 + I % 3 * 10),
        ("o[i] = (first + i % 3).v;", 10 + I % 3 * 10),
        ("o[i] = Numbers(uint64_t(numbers) + 4 * i).at[0];", I),
        ("Node p = i % 2 == 0 ? first : first.next; o[i] = p.v;", 10 + I % 2 * 10),
        ("o[i] = atomicAdd(numbers.at[0], 1u);", I),
        ("o[i] = uint64_t(first.next) == uint64_t(first) + 16 ? 1 : 0;", 0 * I + 1),
    ],
)  # fmt: skip
def test_results(body, expected):
    report = run(body)
    assert report.ok, str(report)
    np.testing.assert_array_equal(report.buffers["O"][:8], expected)


def test_each_buffer_and_tensor_is_in_the_results():
    report = run("b[nonuniformEXT(i % 3)].data[i / 3] = i; numbers.at[i] = 2 * i; o[i] = 0;", "")
    assert report.ok, str(report)
    assert [report.buffers[f"B[{n}]"].tolist()[1:4] for n in range(3)] == [
        [0, 3, 6], [1, 4, 7], [2, 5, 23],
    ]  # fmt: skip
    assert report.buffers["push_constants.numbers"].tolist() == [*range(0, 16, 2)]
    np.testing.assert_array_equal(report.buffers["push_constants.first"], NODES)


@pytest.mark.parametrize(
    ("body", "name"), [("numbers.at[0]", "push_constants.numbers[0]"), ("b[1].data[0]", "b[1].data[0]")]
)  # fmt: skip
def test_all_that_is_stored_is_compared_between_orders_of_workgroups(body, name):
    body = f"if (i % 8 == 0) atomicExchange({body}, gl_WorkGroupID.x + 7);"
    findings = run(body, groups=3).findings
    assert [(each.kind, each.message) for each in findings] == [
        ("order of workgroups", f"'{name}' is 7 with workgroups in descending order, and 9 with ascending order")
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("body", "kind", "text", "count"),
    [
        ("o[i] = b[nonuniformEXT(i)].n;", "out of bounds", "index 3 of 'b' is out of bounds: it has 3 elements", 5),
        ("o[i] = b[i % 3].n;", "undefined result", "chooses one of 'b' by an index that differs", 5),
        ("o[i] = b[1].data[i];", "out of bounds", "index 3 of 'b[1].data' is out of bounds: it has 3 elements", 5),
        ("b[k].data[i / 4] = i; o[i] = 0;", "data race", "'b[1].data[0]'", 6),
        ("o[i] = numbers.at[i + 2];", "out of bounds", "index 32 of 'push_constants.numbers' is out of bounds: it has 32 bytes", 2),
        ("o[i] = (first + i).v;", "out of bounds", "index 48 of 'push_constants.first' is out of bounds: it has 48 bytes", 5),
        ("Node p = Node(0ul); o[i] = p.v;", "out of bounds", "index 0 of 'memory' is out of bounds: it has no tensor at this address", 8),
        ("Node p = Node(~0ul - 7ul); o[i] = p.v;", "out of bounds", "index 18446744073709551608 of 'memory' is out of bounds: it has no tensor", 8),
        ("o[i] = Numbers(uint64_t(numbers) + i).at[0];", "out of bounds", "must be accessed at multiples of 4", 6),
        ("numbers.at[i / 4] = i; o[i] = 0;", "data race", "'push_constants.numbers[0]'", 6),
    ],
)  # fmt: skip
def test_findings(body, kind, text, count):
    report = run(body)
    assert [(f.kind, f.count) for f in report.findings] == [(kind, count)], str(report)
    assert text in report.findings[0].message


SHARING = """#version 450
layout(local_size_x = 8) in;
layout(std430, binding = 0) {} buffer A {{ uint a[]; }};
layout(std430, binding = 1) {} buffer B {{ uint n; uint b[]; }} to[2];
uint i = gl_GlobalInvocationID.x;
void main() {{ uint x = 1;
{}
{}
atomicMax(to[1].n, x); }}"""
READ, WRITE, CHANGE = "x = a[i + 1];", "to[0].b[i] = x;", "atomicAdd(a[i + 1], i);"


@pytest.mark.parametrize(
    ("one", "other", "first", "second", "text"),
    [
        ("restrict", "restrict", READ, WRITE, "'to[0]' is declared restrict: the first invocation writes it, the second read it as 'a[1]' in line 7"),
        ("restrict", "", READ, WRITE, "'a' is declared restrict: the first invocation writes it, the second read it"),
        ("", "restrict", WRITE, READ, "'to[0]' is declared restrict: the first invocation reads it, the second wrote it as 'to[0].b[0]' in line 7"),
        ("restrict", "", "to[0].n = i;", "atomicAdd(a[0], 1u);", "the first invocation changes it atomically, the second wrote it as 'to[0].n' in line 7"),
        ("restrict", "", READ, "if (i < 4) to[0].b[i] = x;", "writes it"),
        ("", "", READ, WRITE, ""),
        ("restrict", "restrict", READ, "x += to[0].b[i];", ""),
        ("restrict", "restrict", READ, "to[0].b[i + 8] = x;", ""),
        ("restrict", "restrict", READ, "to[1].b[i] = x;", ""),
        ("restrict", "restrict", CHANGE, "x = a[i + 1];", ""),
        ("", "restrict", "to[0].n = 1;", "x = to[1].n;", ""),
    ],
)  # fmt: skip
def test_blocks_that_are_restrict_share_nothing_that_is_written(one, other, first, second, text):
    data = np.arange(32, dtype=np.uint32)
    body = SHARING.format(one, other, first, second)
    found = check(body, {"A": data, "B": [data, data.copy()]}).findings
    found = [each for each in found if each.kind != "data race"]
    assert [each.kind for each in found] == ["restrict"] * bool(text)
    assert all(text in each.message and each.place.line == 8 for each in found), found
    assert not text or found[0].other.line == 7


def test_only_blocks_of_which_all_is_restrict_are_so():
    body = SHARING.replace("A {{ uint a[]", "A {{ restrict uint m; uint a[]")
    data = np.arange(32, dtype=np.uint32)
    assert check(body.format("", "", "x = a[i];", WRITE), {"A": data, "B": [data, data.copy()]}).ok


REFERENCES = """#version 450
#extension GL_EXT_buffer_reference2 : require
#extension GL_EXT_buffer_reference_uvec2 : require
layout(local_size_x = 8) in;
layout(buffer_reference, std430, buffer_reference_align = 4) buffer Ref { uint v[]; };
layout(buffer_reference, std430, buffer_reference_align = 8) buffer Node { Ref next; };
layout(push_constant) uniform P { Ref a; Ref b; Node node; };
uint i = gl_GlobalInvocationID.x, x = 1;
void add(restrict Ref to, restrict Ref from) { to.v[i] += from.v[i]; }
void set(Ref to) { to.v[i] = 2; }
void read(restrict Ref own) {
  x += own.v[i];
  b.v[i] = x; }
Ref same(Ref given) { return given; }
Ref second(Ref given) { return Ref(uvec2(given) + uvec2(64, 0)); }
void main() { Ref q = a; restrict Ref r = a;
BODY }"""


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("r.v[i] = 1;\nx = a.v[i];", "'push_constants.a[0]' is the memory of 'r', which is declared restrict: the first invocation reads it through another reference, the second wrote it through 'r' in line 17"),
        ("x = q.v[i];\nr.v[i] = x;", "writes it through 'r', the second read it through another reference in line 17"),
        ("r.v[i] = 1;\natomicAdd(b.v[i], 1u);", "changes it atomically through another reference, the second wrote it through 'r' in line 17"),
        ("set(b);\nx = r.v[i];", "reads it through 'r', the second wrote it through another reference in line 10"),
        ("restrict Ref s = Ref(uvec2(a)); s.v[i] = 1;\nx = r.v[i];", "reads it through another reference, the second wrote it through 's' in line 17"),
        ("x = r.v[i];\nq.v[r.v[i]] = 1;", "writes it through another reference, the second read it through 'r'"),
        ("read(b);", "'push_constants.a[0]' is the memory of 'own', which is declared restrict: the first invocation writes it through another reference, the second read it through 'own' in line 12"),
        ("add(a, b);", "is the memory of 'from', which is declared restrict: the first invocation writes it through another reference, the second read it through 'from' in the same line"),
        ("restrict Ref s = r; s.v[i] = 1;\nx = r.v[i];", "reads it through another reference, the second wrote it through 's' in line 17"),
        ("r.v[i] = 1; x = r.v[i]; r.v[i] = x;", ""),
        ("restrict Ref s = r; s.v[i] = r.v[i + 8];", ""),
        ("if (i == 0) { node.next = r; q = node.next; q.v[0] = 1; x = r.v[0]; }", ""),
        ("q = r; q.v[i] = 1; x = r.v[i];", ""),
        ("q = same(i > 3 ? r : Ref(uvec2(r))); q.v[i] = 1; x = r.v[i];", ""),
        ("set(r); x = r.v[i];", ""),
        ("r = node.next; x = r.v[i]; r.v[i] = 1;", ""),
        ("restrict Node n = node; n.next.v[i] = 1; x = node.next.v[i]; r = n.next;", ""),
        ("x = r.v[i] + q.v[i] + b.v[i];", ""),
        ("r.v[i] = 1; x = q.v[i + 8];", ""),
        ("q.v[i] = 1; set(b); x = a.v[i];", ""),
        ("q.v[i] = 1; add(b, second(a)); q.v[i] += b.v[i]; add(a, second(b)); x = a.v[i];", ""),
    ],
)  # fmt: skip
def test_restrict_references_are_the_only_way_to_what_is_written(body, text):
    data = np.arange(32, dtype=np.uint32)
    push = {"a": data, "b": data, "node": np.array([BASE], np.uint64)}
    found = check(REFERENCES.replace("BODY", body), push=push).findings
    assert {each.kind for each in found} == ({"restrict"} if text else set()), found
    assert not text or any(text in each.message for each in found), found
