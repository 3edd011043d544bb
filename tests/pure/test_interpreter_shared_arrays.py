"""Blocks and images in the interpreter that are given arrays which share bytes."""

from itertools import product

import numpy as np
import pytest

import vkops
from vkops.debug import check

DECLARED = {
    "block": ("std430", "buffer {0}_ {{ uint {0}[]; }};", "{0}[{1}]", "{0}[{1}] = {2};"),
    "texel buffer": ("r32ui", "uniform uimageBuffer {0};", "imageLoad({0}, {1}).x", "imageStore({0}, {1}, uvec4({2}));"),
    "image": ("r32ui", "uniform uimage2D {0};", "imageLoad({0}, ivec2({1}, 0)).x", "imageStore({0}, ivec2({1}, 0), uvec4({2}));"),
}  # fmt: skip
"""Kinds of blocks: their layouts and declarations, and how a shader reads and writes an element."""
VIEWS = {
    "the same array": lambda x: (x, x),
    "equal views": lambda x: (x[:8], x[:8]),
    "a part": lambda x: (x, x[4:12]),
    "the whole of a part": lambda x: (x[4:12], x),
    "overlapping parts": lambda x: (x[3:11], x[1:9]),
    "parts that are apart": lambda x: (x[:8], x[8:]),
    "another type": lambda x: (x, x[4:12].view(np.int32)),
    "bytes that are not aligned to 8": lambda x: (x.view(np.uint8)[4:60].view(np.uint32), x),
}


def head(first, second, body, size=8):
    text = f"#version 450\nlayout(local_size_x = {size}) in;\n"
    for number, (kind, name) in enumerate([(first, "one"), (second, "two")]):
        layout, declared, *_ = DECLARED[kind]
        text += f"layout({layout}, binding = {number}) {declared.format(name)}\n"
    return f"{text}void main() {{ int i = int(gl_LocalInvocationIndex); {body} }}"


def given(kind, array):
    array = array if kind == "block" else array.view(np.uint32)
    return array.reshape(1, -1) if kind == "image" else array


@pytest.mark.parametrize(("first", "second"), [*product(DECLARED, repeat=2)])
def test_a_write_is_seen_in_all_that_shares_the_bytes(first, second):
    never = DECLARED[first][3].format("one", "i", "0u")
    body = f"if (i > 100) {never} {DECLARED[second][3].format('two', 'i', '100u + i')}"
    shader = vkops.shaders.load(head(first, second, body), debug=True)
    for name, views in VIEWS.items():
        x = np.arange(16, dtype=np.uint32)
        one, two = (given(kind, view) for kind, view in zip((first, second), views(x), strict=True))
        report = check(shader, [one, two])
        assert report.ok, (name, str(report))
        two.reshape(-1)[:8] = 100 + np.arange(8)
        results = (report.buffers[block.point] for block in shader.blocks)
        for result, expected in zip(results, (one, two), strict=True):
            np.testing.assert_array_equal(result.reshape(-1), expected.reshape(-1), name)


@pytest.mark.parametrize(("first", "second"), [*product(DECLARED, repeat=2)])
def test_a_race_through_shared_bytes_names_both_elements(first, second):
    """Invocation i reads element i + 3 of all, and writes element i + 1 of a part from 2 on."""
    read = DECLARED[first][2].format("one", "i + 3")
    write = DECLARED[second][3].format("two", "i + 1", f"{read} + 7u")
    x = np.arange(16, dtype=np.uint32)
    report = check(
        head(first, second, write, size=2),
        [given(first, x), given(second, x[3:])],
        name="parts",
    )
    (finding,) = report.findings
    element = {"block": "two[1]", "texel buffer": "two(1)", "image": "two(1, 0)"}[second]
    assert finding.kind == "data race"
    assert f"'{element}'" in finding.message
    assert x[4] == 4


def test_elements_of_arrays_share_memory():
    text = """#version 450
layout(local_size_x = 4) in;
layout(binding = 0, r32ui) uniform uimage2D A[2];
void main() { int i = int(gl_LocalInvocationIndex);
    if (i < 2) imageStore(A[0], ivec2(i, 0), uvec4(3)); else imageStore(A[1], ivec2(i, 0), uvec4(4)); }"""
    x = np.zeros((1, 4), np.uint32)
    report = check(text, {"A": [x, x]})
    assert report.ok
    for name in ("A[0]", "A[1]"):
        np.testing.assert_array_equal(report.buffers[name], [[3, 3, 4, 4]])


@pytest.mark.parametrize(
    "views", [lambda x: (x, x[::2]), lambda x: (x[8:0:-1], x[:8])], ids=["strided", "reversed"]
)
def test_views_whose_order_differs_are_refused_if_one_is_written(views):
    body = "if (i > 100) one[i] = 0u; two[i] = 1u;"
    with pytest.raises(
        vkops.BindingError, match=r"two_: shares bytes with one_, must not"
    ) as caught:
        check(head("block", "block", body), [*views(np.arange(16, dtype=np.uint32))])
    assert caught.value.rule == "SH-06"
    x = np.arange(16, dtype=np.uint32)
    assert check(head("block", "block", body), [x[::2], x[1::2]]).ok
    text = head("block", "block", "if (one[i] + two[i] > 100u) return;").replace(
        "buffer", "readonly buffer"
    )
    assert check(text, [*views(x)]).ok
