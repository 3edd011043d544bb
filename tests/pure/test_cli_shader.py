"""``vkops shader``, as far as it needs no device: list, build, disasm, validate, diff."""

import os
import re
from functools import partial
from pathlib import Path

import pytest
from refusals import NO_FILE

from vkops import shaders

SCALE = Path(__file__).parents[2] / "examples" / "scale.comp"
NOT_SPIRV = "that are not SPIR-V"
NEITHER = "must be a .comp, .hlsl, .slang or .spv file, or a kernel of `vkops shader list`"
WRONG = "#version 450\nlayout(local_size_x = 1) in;\nvoid main() {\n    uint i = missing;\n}\n"
INCLUDES = """#version 450
#extension GL_GOOGLE_include_directive : require
#include "by.glsl"
layout(local_size_x = 2, local_size_y = 3) in;
layout(std430, binding = 2) buffer Words { uint words[]; } it;
shared uint both[BY];
void main() { both[0] = WHAT; it.words[0] = both[0]; }
"""


@pytest.fixture
def shader(command, tmp_path, monkeypatch):
    """Run a command of ``vkops shader`` in a folder."""
    (tmp_path / "wrong.comp").write_text(WRONG)
    (tmp_path / "inc.comp").write_text(INCLUDES)
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "by.glsl").write_text("#define BY 5\n")
    (tmp_path / "noise.spv").write_bytes(bytes(range(64)))
    (tmp_path / "empty.spv").write_bytes(b"")
    (tmp_path / "text.txt").write_text("void main() {}")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    return partial(command, "shader")


@pytest.mark.parametrize("width", ["60", "80"])
def test_list_has_every_kernel(shader, width, monkeypatch):
    # Rich leaves one column free there.
    monkeypatch.setenv("COLUMNS", str(int(width) + (os.name == "nt")))
    status, out, err = shader("list")
    assert (status, err) == (0, "")
    lines = [line.split() for line in out.splitlines() if line.strip()]
    rows = {name: cells for name, *cells in lines if name in shaders.VARIANTS}
    assert rows.keys() == shaders.VARIANTS.keys()
    for name, (source, *_, nbytes, code, loops, buffers) in rows.items():
        assert f"{source}.comp" == shaders.VARIANTS[name].source  # whole also at 60 columns
        assert int(nbytes.replace(",", "")) == len(shaders.spirv(name))
        assert int(code) > 100
        assert int(loops) >= 3
        stores_words = name.startswith(("copy_stream", "copy_rows", "copy_grid", "copy_run_wide"))
        others = 3 if name.startswith("copy_") and not stores_words else 4
        assert int(buffers) == (7 if name == "copy_stream" else others)


def test_build_describes_its_result(shader, tmp_path):
    status, out, err = shader("build", "inc.comp", "-I", "parts", "-D", "WHAT=7u")
    assert (status, err) == (0, "")
    built = (tmp_path / "inc.spv").read_bytes()
    assert out.splitlines()[0] == "inc.comp built to 'inc.spv'"
    facts = dict(re.split(r"  +", line, maxsplit=1) for line in out.splitlines()[1:])
    assert facts["Workgroup"] == "2 x 3 x 1 invocations"
    assert facts["Blocks"] == "2 Words it (storage)"
    assert facts["Shared memory"] == "20 bytes"
    assert facts["Code"].endswith(f" instructions, 0 loops, {len(built):,} bytes")
    assert shader("validate", "inc.spv") == (0, "inc.spv is valid\n", "")
    assert shader("diff", "inc.spv", "inc.comp", "-I", "parts", "-DWHAT=7u")[0] == 0
    assert shader("diff", "inc.spv", "inc.comp", "-I", "parts", "-DWHAT=8u")[0] == 1


def test_debug_information_makes_a_module_larger(shader):
    sizes = []
    for options in ([], ["-g"]):
        shader("build", SCALE, *options, "-o", "made/here/it.spv")
        sizes.append(os.path.getsize("made/here/it.spv"))
    assert sizes[0] < sizes[1]


@pytest.mark.parametrize("kernel", ["copy_run", "copy_stream_4", "copy_1"])
def test_kernels_by_name(shader, kernel):
    assert shader("validate", kernel) == (0, f"{kernel} is valid\n", "")
    status, out, _ = shader("build", kernel)
    assert status == 0
    assert Path(f"{kernel}.spv").read_bytes() == shaders.VARIANTS[kernel].compile()
    assert out.startswith(f"{kernel} built to '{kernel}.spv'\n")


def test_a_file_with_a_kernels_name_is_the_file(shader, tmp_path):
    (tmp_path / "copy_4").write_text(INCLUDES)
    assert shader("validate", "copy_4") == (1, "", f"copy_4: {NEITHER}\n")


def test_disasm_has_source_lines(shader):
    status, out, _ = shader("disasm", SCALE)
    assert status == 0
    place = f"\n; {SCALE}:13: target[i] = factor * source[i] + OFFSET;\n"
    assert "OpIMul" in out.partition(place)[2]
    assert shader("disasm", "copy_4", "-D", "DEBUG_PRINTF")[1].count("NonSemantic.DebugPrintf") == 1


def test_diff_of_macros(shader):
    assert shader("diff", "copy_4") == (0, "No difference\n", "")
    assert shader("diff", "copy_4", "--to", "NOTHING=1") == (0, "No difference\n", "")
    status, out, err = shader("diff", "copy_4", "--to", "UNIT=8")
    assert (status, err) == (1, "")
    assert out.splitlines()[:2] == ["--- copy_4", "+++ copy_4 -DUNIT=8"]
    assert shader("diff", "copy_8", "copy_4", "--to", "UNIT=8") == (0, "No difference\n", "")


@pytest.mark.parametrize("subcommand", ["build", "disasm", "validate", "diff", "run"])
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["wrong.comp"], "wrong.comp:4: 'missing' : undeclared identifier"),
        (["none.comp"], f"none.comp: {NO_FILE}"),
        (["none.spv"], f"none.spv: {NO_FILE}"),
        (["none"], f"none: {NEITHER}"),
        (["text.txt"], f"text.txt: {NEITHER}"),
        (["noise.spv"], NOT_SPIRV),
        (["empty.spv"], NOT_SPIRV),
        (["parts"], f"parts: {NEITHER}"),
        (["inc.comp"], "by.glsl"),
        (["wrong.comp", "-D", "2=3"], "define '2' is not an identifier"),
        (["wrong.comp", "-D", ""], "define '' is not an identifier"),
    ],
)
def test_errors_are_one_line(shader, subcommand, arguments, message):
    before = sorted(os.listdir())
    status, out, err = shader(subcommand, *arguments)
    assert (status, out) == (1, "")
    assert message in err
    assert sorted(os.listdir()) == before


def test_build_to_a_path_that_cannot_be_written(shader):
    status, _, err = shader("build", SCALE, "-o", "text.txt/a.spv")
    assert status == 1
    assert "text.txt" in err
    assert shader("build", SCALE, "-o", "parts")[0] == 1
    assert sorted(os.listdir("parts")) == ["by.glsl"]


@pytest.mark.posix("names with control characters", tests_only=True)
def test_file_names_do_not_control_the_terminal(shader):
    name = "a\x1b]0;b\x07\x9b2J"
    shown = r"a\x1b]0;b\x07\x9b2J"
    Path(f"{name}.comp").write_bytes(SCALE.read_bytes())
    status, out, err = shader("build", f"{name}.comp")
    assert (status, err) == (0, "")
    assert out.splitlines()[0] == f"{shown}.comp built to '{shown}.spv'"
    assert shader("validate", f"{name}.spv") == (0, f"{shown}.spv is valid\n", "")
