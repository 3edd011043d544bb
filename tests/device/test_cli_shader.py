"""``vkops shader run``: a shader on buffers from files."""

from __future__ import annotations

import os
import re
from pathlib import Path

import numpy as np
import pytest

from vkops.cli import main

SHADER = """#version 450
layout(local_size_x = 8) in;
layout(constant_id = 3) const uint OFFSET = 0u;
layout(constant_id = 4) const bool NEGATE = false;
layout(std430, binding = 1) readonly buffer Source { float source[]; } first;
layout(std430, binding = 4) buffer Target { float target[]; } second;
layout(push_constant) uniform Push { float factor; int shift; };
void main() {
    uint i = gl_GlobalInvocationID.x
        + gl_GlobalInvocationID.y * gl_NumWorkGroups.x * 8u
        + gl_GlobalInvocationID.z * gl_NumWorkGroups.x * gl_NumWorkGroups.y * 8u;
    if (i >= second.target.length()) return;
    float x = i < first.source.length() ? first.source[i] : 0.0;
    second.target[i] = (NEGATE ? -1.0 : 1.0) * x * factor + float(shift) + float(OFFSET) * MORE;
}
"""

IN_PLACE = """#version 450
layout(local_size_x = 1) in;
layout(std430, binding = 0) buffer Words { uint words[]; };
void main() { words[gl_GlobalInvocationID.x] += 0x01010101u; }
"""


@pytest.fixture
def run(tmp_path, monkeypatch, capsys, adapter):
    """Run a shader: status, lines of standard output from the results on, standard error."""
    (tmp_path / "a.comp").write_text(SHADER)
    (tmp_path / "b.comp").write_text(IN_PLACE)
    np.save(tmp_path / "x.npy", np.arange(12, dtype=np.float32))
    np.save(tmp_path / "w.npy", np.arange(8, dtype=np.uint8).reshape(2, 4))
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("VKOPS_EXPECT", raising=False)

    def run(*arguments):
        status = main(["shader", "run", *arguments, "--flat", "-a", adapter.name])
        seen = capsys.readouterr()
        assert "Traceback" not in seen.err
        assert seen.err.count("\n") == (status != 0)
        return status, seen.out.splitlines()[2:], seen.err

    return run


A = ["a.comp", "-DMORE=1.0"]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--bind", "x.npy", "--out", "float32:4", "--push", "2,1"], "[4]: 1, 3, 5, 7"),
        (["--bind", "Source:x.npy", "--out", "Target:float32:4", "--push", "2,1"], "[4]: 1, 3, 5, 7"),
        (["--bind", "first:x.npy", "--out", "second:float32:2", "--push", "2,1"], "[2]: 1, 3"),
        (["--bind", "1:x.npy", "--out", "4:float32:2x2", "--push", "0x10,-1"], "[2, 2]: -1, 15, 31, 47"),
        (["--out", "Target:float32:2", "--bind", "x.npy", "--push", "1e1,0"], "[2]: 0, 10"),
        (["--bind", "x.npy", "--out", "float32:3", "--push", ".5,0", "--constant", "OFFSET=2"], "[3]: 2, 2.5, 3"),
        (["--bind", "x.npy", "--out", "float32:3", "--push", "1,0", "--constant", "3=0x2"], "[3]: 2, 3, 4"),
        (["--bind", "x.npy", "--out", "float32:3", "--push", "1,0", "--constant", "NEGATE=true"], "[3]: 0, -1, -2"),
        (["--bind", "x.npy", "--out", "float32:3", "--push", "1,0", "--constant", "4=0"], "[3]: 0, 1, 2"),
        (["--bind", "x.npy", "--out", "float32:9", "--push", "1,0"], "[9]: 0, 1, 2, 3, 4, 5, 6, 7, 0"),
        (["--bind", "x.npy", "--out", "float32:9", "--push", "1,0", "--groups", "2"], "[9]: 0, 1, 2, 3, 4, 5, 6, 7, 8"),
        (["--bind", "x.npy", "--out", "float32:9", "--push", "1,0", "--groups", "1,2"], "[9]: 0, 1, 2, 3, 4, 5, 6, 7, 8"),
        (["--bind", "x.npy", "--out", "float32:9", "--push", "1,0", "--groups", "1,1,0x2"], "[9]: 0, 1, 2, 3, 4, 5, 6, 7, 8"),
        (["--bind", "x.npy", "--out", "float32:9", "--push", "1,0", "--threads", "9"], "[9]: 0, 1, 2, 3, 4, 5, 6, 7, 8"),
        (["--bind", "x.npy", "--out", "float32:9", "--push", "1,0", "--threads", "8,1"], "[9]: 0, 1, 2, 3, 4, 5, 6, 7, 0"),
        (["--bind", "x.npy", "--out", "float32:9", "--push", "1,0", "--threads", "0"], "[9]: 0, 0, 0, 0, 0, 0, 0, 0, 0"),
        (["--bind", "x.npy", "--out", "float32:3", "--push", "1,0", "-i", "3"], "[3]: 0, 1, 2"),
        (["--bind", "Source=x.npy", "--bind", "Target=float32:3", "--out", "Target", "--push", "factor=1,shift=2"], "[3]: 2, 3, 4"),
        (["--bind", "Source=float32:2", "--out", "float32:2", "--push", "1,2"], "[2]: 2, 2"),
        (["--buffer", "Source=16", "--out", "float32:2", "--push", "1", "--push", "3"], "[2]: 3, 3"),
    ],
)  # fmt: skip
def test_options(run, arguments, expected):
    status, out, err = run(*A, *arguments)
    assert (status, err) == (0, "")
    assert out == [f"Output 'Target' {expected}"]


def test_blocks_with_one_binding_in_several_sets(run):
    Path("sets.comp").write_text(SHADER.replace("binding = 4", "set = 2, binding = 1"))
    command = ["--bind", "x.npy", "--out", "float32:3", "--push", "1,0"]
    assert run("sets.comp", "-DMORE=1.0", *command) == (0, ["Output 'Target' [3]: 0, 1, 2"], "")


def test_in_place_by_name_and_bytes_of_any_type(run, tmp_path):
    """The file's shape and type are the result's."""
    expected = "Output 'Words' [2, 4]: 1, 2, 3, 4, 5, 6, 7, 8"
    for bind, out in (("w.npy", "Words"), ("Words:w.npy", "Words"), ("0:w.npy", "0")):
        assert run("b.comp", "--bind", bind, "--out", out, "--groups", "2") == (0, [expected], "")
    half = np.array([1, 2], np.float16)
    np.save("h.npy", half)
    _, out, _ = run("b.comp", "--bind", "h.npy", "--out", "Words")
    expected = (half.view(np.uint32) + np.uint32(0x01010101)).view(np.float16)
    printed = [float(x) for x in out[0].partition(": ")[2].split(", ")]
    assert printed == pytest.approx(expected.tolist(), rel=1e-3)
    np.save("i.npy", np.array([-2, -3, 5], np.int8))
    _, out, _ = run("b.comp", "--bind", "i.npy", "--out", "Words")
    assert out == ["Output 'Words' [3]: -1, -2, 6"]


def test_workgroups_are_read_from_a_block(run):
    assert run("b.comp", "--bind", "w.npy") == (0, [], "")  # no output
    np.save("g.npy", np.uint32([7, 2, 1, 1]))
    _, out, err = run("b.comp", "--bind", "g.npy", "--out", "Words", "--groups", "Words:4")
    assert (out, err) == (["Output 'Words' [4]: 16843016, 16843011, 1, 1"], "")


def test_files_of_arrays(run, tmp_path):
    np.savez("in.npz", Source=np.float32([1, 2]), Target=np.zeros((2, 1), np.float32))
    command = [*A, "--bind", "in.npz", "--out", "Target", "--push", "3,0"]
    assert run(*command)[1] == ["Output 'Target' [2, 1]: 3, 6"]
    status, out, _ = run(*command, "--output", "new/y.npy", "--output", "Target:z.npy")
    assert (status, out) == (0, ["Target written to 'new/y.npy'", "Target written to 'z.npy'"])
    for name in ("new/y.npy", "z.npy"):
        np.testing.assert_array_equal(np.load(name), np.float32([[3], [6]]))
    command = [*A, "--bind", "in.npz", "--out", "Target", "--out", "Source", "--push", "3,0"]
    status, out, _ = run(*command, "--output", "all.npz")
    assert (status, out) == (0, ["Outputs written to 'all.npz'"])
    with np.load("all.npz") as loaded:
        arrays = {name: array.tolist() for name, array in loaded.items()}
    assert arrays == {"Target": [[3], [6]], "Source": [1, 2]}


def test_arrays_in_any_order_of_memory(run):
    np.save("f.npy", np.asfortranarray(np.arange(6, dtype=np.uint32).reshape(2, 3)))
    by = 0x01010101
    _, out, _ = run("b.comp", "--bind", "f.npy", "--out", "Words", "--groups", "6")
    assert out == [f"Output 'Words' [2, 3]: {', '.join(str(n + by) for n in range(6))}"]
    np.save("big.npy", np.arange(3, dtype=">f4"))
    for out in ("float32:3", ">f4:3"):
        command = [*A, "--bind", "big.npy", "--out", out, "--push", "2,1"]
        assert run(*command)[1] == ["Output 'Target' [3]: 1, 3, 5"]


def test_spirv_and_includes(run, tmp_path):
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "by.glsl").write_text("const uint BY = 0x01010101u;\n")
    include = '#extension GL_GOOGLE_include_directive : require\n#include "by.glsl"\n'
    text = IN_PLACE.replace("450\n", f"450\n{include}").replace("0x01010101u", "BY")
    (tmp_path / "c.comp").write_text(text)
    expected = ["Output 'Words' [2, 4]: 1, 2, 3, 4, 4, 5, 6, 7"]
    assert run("c.comp", "-I", "parts", "--bind", "w.npy", "--out", "Words")[1] == expected
    assert main(["shader", "build", "c.comp", "-I", "parts", "-o", "out/c.spv"]) == 0
    assert run("out/c.spv", "--bind", "w.npy", "--out", "Words")[1][-1:] == expected


X, OUT, PUSH = ["--bind", "x.npy"], ["--out", "float32:4"], ["--push", "1,0"]


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        ([*X, *OUT], 1, "SH-09"),
        ([*X, *OUT, "--push", "1,a"], 2, "'--push': got 'a'"),
        ([*X, *OUT, *PUSH, "--groups", ""], 1, "groups: '' is not a block that has a buffer"),
        ([*X, *OUT, *PUSH, "--groups", "1,a"], 2, "'--groups': got 'a'"),
        ([*X, *OUT, *PUSH, "--groups", "none"], 1, "groups: 'none' is not a block that has a buffer"),
        ([*X, *OUT, *PUSH, "--groups", "Source:b"], 2, "'--groups': got 'b'"),
        ([*X, *OUT, *PUSH, "--groups", "1", "--threads", "1"], 1, "SH-07"),
        ([*X, *OUT, *PUSH, "--threads", "a"], 2, "'--threads': got 'a'"),
        ([*X, *OUT, *PUSH, "--constant", "NONE=1"], 1, "NONE"),
        ([*X, *OUT, *PUSH, "--constant", "OFFSET"], 2, "--constant"),
        ([*X, *PUSH], 1, "SH-04"),
        ([*X, *X, *OUT, *PUSH], 1, "got 3 buffers, must be one for each block at most"),
        (["--bind", "Nothing:x.npy", *OUT, *PUSH], 1, "'Nothing' is not a block; the blocks are "),
        (["--bind", "none.npy", *OUT, *PUSH], 1, "none.npy: cannot be read: No such file"),
        (["--bind", "a.comp", *OUT, *PUSH], 1, "a.comp: is not a .npy or .npz file"),
        (["--bind", ".", *OUT, *PUSH], 1, ".: cannot be read"),
        (["--bind", "text.npy", *OUT, *PUSH], 1, "must be numbers"),
        (["--bind", "empty.npy", *OUT, *PUSH], 1, "Source: got no values, must have at least 1"),
        ([*X, "--out", "float33:4", *PUSH], 1, "float33:4: must be [NAME:]TYPE:COUNT"),
        ([*X, "--out", "float32:0", *PUSH], 1, "float32:0: must be"),
        ([*X, "--out", "float32:4x", *PUSH], 1, "float32:4x: must be"),
        ([*X, "--out", "object:4", *PUSH], 1, "object:4: must be"),
        ([*X, "--out", "a:b:float32:4", *PUSH], 1, "a:b:float32:4: must be"),
        ([*X, "--out", "float32:99999999999999", *PUSH], 1, "must be"),
        ([*X, "--out", "float32:1000000000000", *PUSH], 1, "memory"),
        ([*X, *OUT, *PUSH, "--output", "y.txt"], 1, "y.txt: must be FILE.npz, NAME:FILE.npy or NAME:FILE.png"),
        ([*X, *OUT, *PUSH, "--output", "None:y.npy"], 1, "has no output 'None'; it has 'Target'"),
        ([*X, *OUT, *PUSH, "--output", "x.npy/y.npy"], 1, "x.npy/y.npy: cannot be written"),
        ([*X, *OUT, *PUSH, "--bogus"], 2, "No such option"),
        ([*X, *OUT, *PUSH, "--expect", "no such adapter"], 1, "no such adapter"),
    ],
)  # fmt: skip
def test_errors_are_one_line_and_nothing_is_written(run, tmp_path, arguments, status, message):
    np.save("text.npy", np.array(["a"]))
    np.save("empty.npy", np.zeros(0, np.float32))
    before = sorted(os.listdir())
    got, _, err = run(*A, *arguments)
    assert (got, message in err) == (status, True), err
    assert sorted(os.listdir()) == before


def test_an_output_without_a_name_needs_a_single_block(run):
    command = [*A, *X, *OUT, "--out", "Source", *PUSH, "--output", "y.npy"]
    status, _, err = run(*command)
    assert (status, err) == (1, "y.npy: a.comp has 2 outputs; say NAME:y.npy\n")
    status, _, err = run(*A, *X, "--bind", "Target:x.npy", *PUSH, "--output", "y.npy")
    assert status == 1
    assert "has no outputs" in err or "has 0 outputs" in err
    assert not re.search(r"y\.npy", " ".join(os.listdir()))
