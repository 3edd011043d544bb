"""``vkops debug cover``: which lines and branches of shaders ran, and how often, by counts known by hand."""

import json
import re
import shutil
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import coverage
import numpy as np
import pytest
from processes import SLANG, finished
from spirv import assembled

from vkops.debug import coverage_plugin, lcov
from vkops.debug.shader_check import Case
from vkops.debug.shader_coverage import ShaderCoverage, coverage_file
from vkops.interpreter.coverage import BranchTarget, Coverage, FileCoverage
from vkops.shaders import compiler, load

INCLUDED = """int included(int x) {
    if (x > 3)
        return 1;
    return 2;
}
"""
SHADER = """#version 450
#extension GL_GOOGLE_include_directive : require
#include "included.glsl"
layout(local_size_x = 8) in;
layout(constant_id = 3) const int MODE = 0;
layout(std430, binding = 0) buffer Data { int data[]; };
int twice(int x) {
    return 2 * x;                       // 3
}
bool odd(int x) {
    data[gl_LocalInvocationIndex] = x;  // 7
    return (x & 1) == 1;                // 7
}
void main() {
    uint i = gl_GlobalInvocationID.x;   // 8
    int value = data[i];                // 8
    if (i < 3)                          // 8: 3 5
        value = twice(value);           // 3
    for (int k = 0; k < 3; k++) {       // 32: 24 8
        if (k == 2) continue;           // 24: 8 16
        value += k;                     // 16
    }
    switch (value) {                    // 8: 1 2 5
    case 3:
        value = 0;                      // 1
        break;                          // 1
    case 4:
    case 5:
        value = int(i) > 4 ? 50 : 60;   // 2
        break;                          // 2
    default:
        value = 7;                      // 5
    }
    if (value > 0 && odd(value)) {      // 8: 7 1; 5 3
        value = 1;                      // 5
    } else if (value == 0)              // 3: 1 2
        value = 2;                      // 1
    if (MODE == 2)                      // 8: 0 8
        value = included(value);        // 0
    do {
        value--;                        // 28
    } while (value > 49);               // 28: 20 8
    data[i] = value;                    // 8
}
"""
# At the switch, these are 1, 3, 5, 4 and four from 11 on; at the last loop, 1, 2, 60, 60, 1, 1, 1, 1.
VALUES = np.array([0, 1, 2, 3, 10, 11, 12, 13], np.int32)
COUNTS = re.compile(r"// (\d+)(?:: ([\d ;]+))?$")


def expected(text):
    """The counts of lines and of the ways of branches in the comments of a shader."""
    lines, branches = {}, {}
    for number, line in enumerate(text.splitlines(), 1):
        if match := COUNTS.search(line):
            lines[number] = int(match[1])
            for at, ways in enumerate((match[2] or "").split(";")):
                if ways:
                    branches[number, at] = [*map(int, ways.split())]
    return lines, branches


def counted(file):
    """The same of what ran."""
    ways = {key: [way.taken for way in ways] for key, ways in file.branches.items()}
    return dict(file.lines), ways


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with the shader, which is the current one."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "included.glsl").write_text(INCLUDED)
    (tmp_path / "x.comp").write_text(SHADER)
    np.save("values.npy", VALUES)
    return tmp_path


@pytest.fixture
def cover(command, folder):
    """Run ``vkops debug cover``."""
    return partial(command, "debug", "cover")


def files_of(source, buffers=(VALUES,), **settings):
    """The coverage of a shader's files, by their names."""
    observer = Coverage()
    case = Case.of(source, [*buffers], 1, **settings)
    case.run(observers=[observer])
    return {Path(name).name: file for name, file in observer.files().items()}


# -- counts ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("debug_information", ["OpLine", "DebugLine"])
def test_counts_of_lines_branches_and_functions(folder, debug_information):
    file = Path("x.comp")
    if debug_information == "DebugLine":
        argv = [compiler.find_compiler(), "-gVS", "--target-env", "vulkan1.1", "-o", "x.spv", file]
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        if "unrecognized" in done.stdout:
            pytest.skip("glslang is too old to write DebugLine")
        file = Path("x.spv")
    files = files_of(file)
    assert counted(files["x.comp"]) == expected(SHADER)
    assert files["x.comp"].functions == {(7, "twice"): 3, (10, "odd"): 7, (14, "main"): 8}
    assert counted(files["included.glsl"]) == ({2: 0, 3: 0, 4: 0}, {(2, 0): [0, 0]})
    assert files["included.glsl"].functions == {(1, "included"): 0}


def test_a_specialization_constant_chooses_what_runs(folder):
    files = files_of(load(Path("x.comp"), debug=True, constants={"MODE": 2}))
    number = SHADER.splitlines().index("    if (MODE == 2)                      // 8: 0 8") + 1
    assert files["x.comp"].lines[number + 1] == 8
    assert counted(files["x.comp"])[1][number, 0] == [8, 0]
    # Five values are 1, one is 2 and two are 60, which are above 3.
    assert counted(files["included.glsl"]) == ({2: 8, 3: 2, 4: 6}, {(2, 0): [2, 6]})


VARIABLES = """#version 450
layout(local_size_x = 8) in;
layout(std430, binding = 0) buffer Data { int data[]; };
layout(constant_id = 0) const bool FAST = false;
bool odd(int x) {
    data[gl_LocalInvocationIndex] = x;   // 44
    return (x & 1) == 1;                 // 44
}
void main() {
    int x = int(gl_LocalInvocationID.x); // 8
    bool is_small = x < 3;               // 8
    if (is_small)                        // 8: 3 5
        x += 8;                          // 3
    if (FAST)                            // 8: 0 8
        x = 0;                           // 0
    bool is_odd = x > 5 && odd(x);       // 8: 5 3
    // if it is odd, while others are not
    if (is_odd) {                        // 8: 2 6
        if (is_small)                    // 2: 1 1
            x = 4;                       // 1
        else
            x = 5;                       // 1
    }
    bool goes_on = odd(x);               // 8
    while (goes_on) {                    // 11: 3 8
        if (x > 1) x--;                  // 3: 3 0
        goes_on = odd(x);                // 3
    }
    for (bool again = true; again; x++)  // 16: 8 8
        again = x < 0;                   // 8
    if (x > 4 &&                         // 8: 7 1
        odd(x))                          // 8: 7 1
        if (is_small)                    // 7: 3 4
            x = 6;                       // 3
    do {
        x--;                             // 11
        goes_on = odd(x);                // 11
    } while (goes_on);                   // 11: 3 8
    if (x == 4 || odd(x))                // 8: 6 2; 6 2
        x = 0;                           // 6
    if (!goes_on && !odd(x))             // 8: 8 0; 8 0
        x = 1;                           // 8
}
"""


def test_conditions_that_are_variables_are_in_their_lines():
    """glslang gives no line to them."""
    (file,) = files_of(VARIABLES, name="variables.comp", debug=True).values()
    assert counted(file) == expected(VARIABLES)


OF_SLANG = """RWStructuredBuffer<int> data;
[ForceInline]
int grown(int x) {
    if (x > 2)                           // 16: 12 4
        return x + 1;                    // 12
    return x - 1;                        // 4
}
T twice<T : IInteger>(T x) {
    return x + x;                        // 16
}
[shader("compute")]
[numthreads(8, 1, 1)]
void main(uint3 id : SV_DispatchThreadID) {
    int x = data[id.x];                  // 8
    x = grown(x);                        // 8
    x = grown(x);                        // 8
    x = twice<int>(x);                   // 8
    data[id.x] = int(twice<uint>(uint(x))); // 8
}
"""


@SLANG
def test_code_that_slang_inlines_or_makes_for_several_types_is_added_up(folder):
    Path("x.slang").write_text(OF_SLANG)
    # Four values from 0 on: -1, 0, 1 and 4 behind the first call. The first three become smaller.
    (file,) = files_of(Path("x.slang"), [np.array([0, 1, 3, 5, 6, 7, 8, 9], np.int32)]).values()
    assert counted(file) == expected(OF_SLANG)
    assert file.functions[8, "twice"] == 16


def test_hlsl(folder):
    Path("x.hlsl").write_text(OF_HLSL)
    (file,) = files_of(Path("x.hlsl")).values()
    assert counted(file) == expected(OF_HLSL)


OF_HLSL = """RWStructuredBuffer<int> data : register(u0);
int less(int x) {
    if (x < 3)                           // 8: 3 5
        return 0;                        // 3
    int sum = 0;
    for (int k = 0; k < x; ++k)          // 54: 49 5
        sum += data[k];                  // 49
    return sum;                          // 5
}
[numthreads(8, 1, 1)]
void main(uint3 id : SV_DispatchThreadID) { // 8
    data[id.x] = less(data[id.x]);       // 8
}
"""
SEVERAL = """
OpCapability Shader
OpMemoryModel Logical GLSL450
OpEntryPoint GLCompute %one "one"
OpEntryPoint GLCompute %two "two"
OpExecutionMode %one LocalSize 4 1 1
OpExecutionMode %two LocalSize 4 1 1
%file = OpString "several.comp"
OpName %one "one"
OpName %two "two"
OpName %both "both"
%void = OpTypeVoid
%type = OpTypeFunction %void
OpLine %file 10 1
%both = OpFunction %void None %type
%a = OpLabel
OpLine %file 11 1
OpReturn
OpFunctionEnd
OpLine %file 20 1
%one = OpFunction %void None %type
%b = OpLabel
OpLine %file 21 1
%c = OpFunctionCall %void %both
OpReturn
OpFunctionEnd
OpLine %file 30 1
%two = OpFunction %void None %type
%d = OpLabel
OpLine %file 31 1
%e = OpFunctionCall %void %both
OpReturn
OpFunctionEnd
"""


def test_other_entry_points_could_run():
    spirv = assembled(SEVERAL)
    total = FileCoverage()
    for entry, count in ("one", 4), ("two", 0):
        (file,) = files_of(spirv, [], entry=entry).values()
        assert counted(file) == ({11: 4, 21: count, 31: 4 - count}, {})
        total.add(file)
    assert total.lines == {11: 8, 21: 4, 31: 4}
    assert total.functions == {(10, "both"): 8, (20, "one"): 4, (30, "two"): 4}


# -- the command -----------------------------------------------------------------------------------

TRACEFILE = """TN:
SF:{folder}/y.comp
FN:3,main
FNDA:4,main
FNF:1
FNH:1
BRDA:4,0,0,1
BRDA:4,0,1,3
BRDA:6,0,0,0
BRDA:6,0,1,1
BRF:4
BRH:3
DA:4,4
DA:5,1
DA:6,1
DA:7,0
LF:4
LH:3
end_of_record
"""
SMALL = """#version 450
layout(local_size_x = 4) in;
void main() {
    if (gl_LocalInvocationIndex == 2) {
        int x = 1;
        if (gl_NumWorkGroups.x > 1)
            x = 2;
    }
}
"""


def test_a_tracefile_gets_the_sum(cover, folder):
    Path("y.comp").write_text(SMALL)
    assert cover("y.comp", "-o", "a.info")[::2] == (0, "")
    assert Path("a.info").read_text() == TRACEFILE.format(folder=folder)
    once = lcov.read(Path("a.info"))
    cover("y.comp", "-o", "a.info", "--groups", "2")
    (twice,) = lcov.read(Path("a.info")).values()
    assert twice.lines == {4: 12, 5: 3, 6: 3, 7: 2}
    assert [[way.taken for way in ways] for ways in twice.branches.values()] == [[3, 9], [2, 1]]
    assert list(once) == [str(folder / "y.comp")]


def test_the_table_says_what_did_not_run(cover):
    status, out, _ = cover("x.comp", "--bind", "Data:values.npy", "-o", "a.info")
    assert status == 0
    lines = out.splitlines()
    cells = [[cell.strip() for cell in line.split("│")[1:-1]] for line in lines if "│" in line]
    assert cells[0] == ["included.glsl", "0 of 3 (0 %)", "0 of 2 (0 %)", "0 of 1 (0 %)"]
    assert [cells[1][0], cells[1][3], cells[2][0]] == ["x.comp", "3 of 3 (100 %)", "All files"]
    number = SHADER[: SHADER.index("included(value)")].count("\n") + 1
    assert lines[-3:] == [
        "included.glsl: lines not run: 2-4",
        f"x.comp: lines not run: {number}",
        f"x.comp: branches not taken: {number - 1} true",
    ]
    assert cover("a.info")[1] == out.partition("\n")[2]


def test_models_are_covered_with_the_kernels_of_vkops(cover, folder):
    model = Path(__file__).parents[2] / "examples" / "split.json"
    status, out, _ = cover(model, "-o", "a.info")
    assert status == 0
    assert {Path(path).name for path in lcov.read(Path("a.info"))} == {"copy.comp", "region.glsl"}
    assert "region.glsl" in out


def test_faults_do_not_hide_what_ran(cover):
    Path("y.comp").write_text(SMALL.replace("int x = 1;", "int x = 1 / int(gl_WorkGroupID.x);"))
    status, out, err = cover("y.comp")
    assert (status, err) == (0, "1 fault was found: `vkops debug check` shows them\n")
    assert "3 of 4" in out


def test_the_page_has_the_source_and_counts(cover):
    status, out, _ = cover("x.comp", "--bind", "Data:values.npy", "-o", "page.html")
    assert (status, out.splitlines()[0]) == (
        0,
        f"Coverage written to '{Path('page.html').absolute()}'",
    )
    page = Path("page.html").read_text()
    rows = re.findall(
        r'<tr(?: class="(\w+)")?><th scope="row">(\d+)</th><td class="count">([\d,]*)</td>', page
    )
    lines, branches = expected(SHADER)
    size, others = SHADER.count("\n"), INCLUDED.count("\n")
    assert len(rows) == size + others
    assert {int(n): int(times) for _, n, times in rows[others:] if times} == lines
    partial_lines = {line for (line, _), ways in branches.items() if 0 in ways}
    assert {int(n) for state, n, _ in rows[others:] if state == "partial"} == partial_lines
    assert {int(n) for state, n, _ in rows[others:] if state == "missed"} == {
        n for n in lines if not lines[n]
    }
    assert "value &gt; 49" in page
    assert "true: 20, false: 8" in page
    assert "<script" not in page


# -- files -----------------------------------------------------------------------------------------


@pytest.mark.skipif(shutil.which("genhtml") is None, reason="needs genhtml of LCOV")
def test_genhtml_counts_the_same(cover):
    cover("x.comp", "--bind", "Data:values.npy", "-o", "a.info")
    status, out, err = finished("genhtml", "--branch-coverage", "-o", "html", "a.info")
    assert status == 0, err
    lines, branches = expected(SHADER)
    ways = [way for each in branches.values() for way in each]
    ran = sum(count > 0 for count in lines.values())
    assert f"({ran} of {len(lines) + 3} lines)" in out
    assert f"({sum(way > 0 for way in ways)} of {len(ways) + 2} branches)" in out
    assert "(3 of 4 functions)" in out


def test_tracefiles_of_other_tools_are_read(tmp_path):
    path = tmp_path / "a.info"
    path.write_text(
        "# of LCOV 2.2\nTN:\nSF:/x.c\nVER:1\nFNL:0,3,9\nFNA:0,5,f\nFNL:1,4\nFNA:1,0,g,h\n"
        "BRDA:3,e0,0,-\nBRDA:3,e0,x > 1,-\nBRDA:3,1,0,2\nBRDA:3,1,1,0\n"
        "DA:3,5,hash\nMCDC:3,1,t,1,0,x\nend_of_record\n"
        "SF:/x.c\nFN:3,9,f\nFNDA:1,f\nDA:3,1\nDA:4,0\nend_of_record\n"
    )
    (file,) = lcov.read(path).values()
    assert file.lines == {3: 6, 4: 0}
    assert file.functions == {(3, "f"): 6, (4, "g,h"): 0}
    assert file.branches == {
        (3, 0): [BranchTarget(0, 0)] * 2,
        (3, 1): [BranchTarget(0, 2), BranchTarget(0, 0)],
    }


def test_functions_of_the_same_name_are_told_apart(tmp_path):
    path = tmp_path / "a.info"
    calls = Counter({(3, "f"): 2, (8, "f"): 0, (12, "main"): 1})
    file = FileCoverage(Counter({4: 1}), {}, calls)
    path.write_text("\n".join(lcov.records({"/x.comp": file})))
    assert "FN:3,f:3\nFN:8,f:8\nFN:12,main\n" in path.read_text()
    assert lcov.read(path)["/x.comp"].functions == calls


def add_often(path, count):
    file = FileCoverage(
        Counter({4: 1}), {(4, 0): [BranchTarget(5, 1), BranchTarget(0, 0)]}, Counter({(3, "f"): 1})
    )
    for _ in range(count):
        coverage_file(path).add(ShaderCoverage({"/x.comp": file}))


@pytest.mark.parametrize("name", ["a.info", ".coverage"])
def test_several_add_to_a_file_at_the_same_time(tmp_path, name):
    """As processes do that know nothing of each other: those of pytest-xdist."""
    path = tmp_path / name
    with ThreadPoolExecutor(4) as threads:
        [*threads.map(lambda _: add_often(path, 5), range(4))]
    assert [each.name for each in tmp_path.iterdir()] == [name]
    if name == "a.info":
        assert lcov.read(path)["/x.comp"].lines == {4: 20}


def test_a_lock_that_a_process_left_behind_is_taken(tmp_path, monkeypatch):
    monkeypatch.setattr("vkops.system.output_files.LOCK_S", 0.05)
    (tmp_path / ".vkops-a.info.lock").touch()
    add_often(tmp_path / "a.info", 2)
    assert lcov.read(tmp_path / "a.info")["/x.comp"].lines == {4: 2}


def test_texts_that_are_not_files_are_written_beside_it(tmp_path):
    observer = Coverage()
    Case.of(SMALL, [], 1, name="a / shader").run(observers=[observer])
    covered = ShaderCoverage.from_json(ShaderCoverage.of(observer).to_json(set()))
    coverage_file(tmp_path / "a.info").add(covered)
    ((path, file),) = lcov.read(tmp_path / "a.info").items()
    assert Path(path).parent == tmp_path / "a.info.sources"
    assert re.fullmatch(r"a_shader-[0-9a-f]{12}\.comp", Path(path).name)
    assert Path(path).read_text() == SMALL
    assert file.lines == {4: 4, 5: 1, 6: 1, 7: 0}


# -- coverage.py -----------------------------------------------------------------------------------


CONFIGURATION = """[run]
plugins = vkops.debug.coverage_plugin
branch = {}
"""


@pytest.mark.parametrize("branch", [False, True])
def test_coverage_py_reports_and_combines_them(cover, folder, branch):
    Path(".coveragerc").write_text(CONFIGURATION.format(branch))
    Path("program.py").write_text("import sys\nif sys.argv[1:]:\n    print()\n")
    data = coverage.CoverageData(".coverage.python")
    program = str(folder / "program.py")
    if branch:
        data.add_arcs({program: [(-1, 1), (1, 2), (2, -1)]})
    else:
        data.add_lines({program: [1, 2]})
    data.write()
    data.close()
    arguments = "x.comp", "--bind", "Data:values.npy", "-o", ".coverage.shaders"
    for _ in range(2):
        assert cover(*arguments)[::2] == (0, "")
    status, out, err = finished(sys.executable, "-m", "coverage", "combine")
    assert (status, out + err) == (0, "Combined 2 files\n")
    reports = coverage.Coverage()
    reports.load()
    reports.json_report(outfile="coverage.json")
    reports.html_report(directory="html")
    reports.get_data().close()
    assert "included(value);" in re.sub("<.*?>", "", Path("html/x_comp.html").read_text())
    files = json.loads(Path("coverage.json").read_text())["files"]
    assert set(files) == {"included.glsl", "program.py", "x.comp"}
    assert files["program.py"]["missing_lines"] == [3]
    lines, _ = expected(SHADER)
    shader = files["x.comp"]
    assert shader["executed_lines"] == [line for line in lines if lines[line]]
    assert shader["missing_lines"] == [line for line in lines if not lines[line]]
    assert files["included.glsl"]["missing_lines"] == [2, 3, 4]
    if branch:
        # coverage.py knows only branches to other lines: not that of ``&&``, and one of do ... while.
        number = SHADER[: SHADER.index("    if (MODE")].count("\n") + 1
        assert shader["missing_branches"] == [[number, number + 1]]
        assert [number, number + 3] in shader["executed_branches"]
        switch = SHADER[: SHADER.index("    switch")].count("\n") + 1
        ways = [to - switch for line, to in shader["executed_branches"] if line == switch]
        assert ways == [2, 6, 9]


def test_data_keep_their_kind(cover):
    """Those without branches do not get any, whatever the configuration says."""
    for branch in (False, True):
        Path(".coveragerc").write_text(CONFIGURATION.format(branch))
        assert cover("x.comp", "--bind", "Data:values.npy", "-o", ".coverage")[::2] == (0, "")
        data = coverage.CoverageData(".coverage")
        data.read()
        assert not data.has_arcs()
        data.close()


def test_lines_that_its_numbers_cannot_have_are_left_out():
    far = coverage_plugin.POSSIBLE
    file = FileCoverage(
        Counter({far: 1, far - 1: 1}),
        {(2, 0): [BranchTarget(far, 1), BranchTarget(2, 1), BranchTarget(3, 0)]},
    )
    assert {line % far for line, _ in coverage_plugin._arcs(file)} == {far - 1, 2}


# -- errors ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("binary.info", bytes(range(256))),
        ("python.info", b"import sys\n"),
        ("outside.info", b"TN:\nDA:1,2\n"),
        ("twice.info", b"SF:/x\nSF:/y\n"),
        ("count.info", b"SF:/x\nDA:1,-2\nend_of_record\n"),
        ("digits.info", b"SF:/x\nDA:1," + b"9" * 5000 + b"\nend_of_record\n"),
        ("cut.info", b"SF:/x\nDA:1,2\n"),
        (".coverage", b"SQLite format 3\0 that is damaged"),
        (".coverage.text", b"lines"),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_a_damaged_file_is_refused_before_anything_runs(
    cover, monkeypatch, message, folder, name, content
):
    monkeypatch.setattr(Case, "run", None)
    Path(name).write_bytes(content)
    status, out, err = cover("x.comp", "-o", "other.info", "-o", name)
    assert (status, out) == (1, "")
    assert Path(name).read_bytes() == content
    if name.endswith(".info"):
        message(err.rstrip("\n"), name, folder=folder)
        assert cover(name)[0] == 1
    else:
        assert err.startswith(f"{folder / name}: cannot be data of coverage.py: ")


@pytest.mark.parametrize(
    "name", ["folder.info", "folder.html", ".coverage", "x.comp/a.info", "/proc/x/a.info"]
)
def test_a_file_that_cannot_be_written_is_refused_before_anything_runs(
    cover, monkeypatch, folder, name
):
    monkeypatch.setattr(Case, "run", None)
    if "/" not in name:
        Path(name).mkdir()
    status, out, err = cover("x.comp", "-o", name)
    assert (status, out) == (1, "")
    assert err.startswith(f"{folder / name}: ")
    assert "Traceback" not in err


def test_other_errors(cover, message):
    Path("a.info").write_text("TN:\n")
    (spirv := Path("x.spv")).write_bytes(load(SMALL).spirv)
    for arguments in (
        [spirv],
        ["missing.comp"],
        ["missing.info"],
        ["a.info", "--threads", "4"],
        ["x.comp", "--input", "a.npy"],
    ):
        status, out, err = cover(*arguments)
        assert (status, out) == (2 if "is only for" in err else 1, "")
        message(err.rstrip("\n"))


def test_a_wrong_configuration_of_coverage_py(cover):
    Path(".coveragerc").write_text("[run]\nbranch = perhaps\n")
    status, out, err = cover("x.comp", "-o", ".coverage")
    assert (status, out) == (1, "")
    assert err.startswith("coverage.py: ")


def test_without_the_package_coverage(cover, message, monkeypatch):
    monkeypatch.delitem(sys.modules, "vkops.debug.coverage_plugin", raising=False)
    monkeypatch.setitem(sys.modules, "coverage", None)
    status, _, err = cover("x.comp", "-o", ".coverage")
    assert status == 1
    message(err.rstrip("\n"), "pip install 'vkops[coverage]'")


def test_a_report_on_a_file_that_is_gone(tmp_path):
    path = tmp_path / ".coverage"
    add_often(path, 1)
    (tmp_path / ".coveragerc").write_text(CONFIGURATION.format(False))
    reports = coverage.Coverage(data_file=str(path), config_file=str(tmp_path / ".coveragerc"))
    reports.load()
    with pytest.raises(coverage.exceptions.NoSource):
        reports.html_report(directory=str(tmp_path / "html"))
