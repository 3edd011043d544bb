"""The compiler as a subprocess: its arguments, and the errors when it fails."""

import os
import pickle
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import pytest
from messages import with_slashes
from processes import ROOT, outcome, script
from refusals import NO_FILE, fault

from vkops import shaders
from vkops.errors import ShaderCompileError, VkopsError, printable
from vkops.lavapipe import how_to_install
from vkops.shaders import tools
from vkops.system import processes

pytestmark = pytest.mark.usefixtures("own_cache")

MINIMAL = "#version 450\nvoid main() {}\n"
WITH_INCLUDE = """#version 450
#extension GL_GOOGLE_include_directive : require
#include "inc/value.glsl"
layout(binding = 0) buffer Data { uint data[]; };
void main() { data[gl_GlobalInvocationID.x] = value(); }
"""


@pytest.fixture
def fake_compiler(tmp_path, monkeypatch):
    """Install a shell script as the compiler; ``$output`` is the file it should write."""

    def install(body):
        find_output = 'while [ "$1" != -o ]; do shift; done; output=$2\n'
        path = script(tmp_path / "fake-glslang", find_output + body)
        monkeypatch.setenv("VKOPS_GLSLANG", str(path))
        return path

    return install


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Make a folder of shaders the current folder: ``x.comp`` includes ``inc/value.glsl``."""
    (tmp_path / "shaders/inc").mkdir(parents=True)
    (tmp_path / "shaders/x.comp").write_text(WITH_INCLUDE)
    (tmp_path / "shaders/inc/value.glsl").write_text("uint value() { return VALUE; }\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "shaders"


def failure(source, **options):
    with pytest.raises(ShaderCompileError) as caught:
        shaders.compile(source, **options)
    return caught.value


def test_file_with_include_and_define(project):
    spirv = shaders.compile(Path("shaders/x.comp"), defines={"VALUE": 7})
    assert (7).to_bytes(4, sys.byteorder) in spirv
    shaders.validate(spirv)


def test_text_finds_includes_in_include_dirs_only(project):
    (project / "inc/value.glsl").write_text("uint value() { return 7u; }")
    spirv = shaders.compile(WITH_INCLUDE, include=[Path("shaders")])
    assert spirv == shaders.compile(project / "x.comp")
    assert str(failure(WITH_INCLUDE)) == (
        "<source>:3: '#include' : Could not process include directive for header name: "
        "inc/value.glsl, in '#include \"inc/value.glsl\"'"
    )


def test_includes_need_no_extension(project):
    without = WITH_INCLUDE.replace("#extension GL_GOOGLE_include_directive : require", "")
    options = {"include": [Path("shaders")], "defines": {"VALUE": 7}}
    assert shaders.compile(without, **options) == shaders.compile(WITH_INCLUDE, **options)
    error = failure(without.replace("value()", "value(1)"), **options)
    assert (error.line, error.message.rpartition(", in ")[2]) == (
        5, "'void main() { data[gl_GlobalInvocationID.x] = value(1); }'"
    )  # fmt: skip
    error = failure(without, include=[Path("shaders")])
    assert (error.line, error.message.rpartition(", in ")[2]) == (
        1, "'uint value() { return VALUE; }'"
    )  # fmt: skip


def test_file_name_that_looks_like_an_option(project, monkeypatch):
    monkeypatch.chdir(project)
    Path("-h").write_text(MINIMAL)
    assert shaders.compile(Path("-h")) == shaders.compile(MINIMAL)


def test_debug_adds_the_source():
    assert b"void main() {}" not in shaders.compile(MINIMAL)
    assert b"void main() {}" in shaders.compile(MINIMAL, debug=True)
    debug = [shaders.compile(MINIMAL, debug=True, cache=False) for _ in range(2)]
    assert debug[0] == debug[1]


def test_target_env_sets_the_spirv_version():
    versions = {"vulkan1.0": 0x10000, "vulkan1.1": 0x10300, "vulkan1.2": 0x10500}
    for target_env, version in versions.items():
        spirv = shaders.compile(MINIMAL, target_env=target_env)
        assert int.from_bytes(spirv[4:8], sys.byteorder) == version


def test_boolean_define_is_a_number():
    source = "#version 450\n#if FLAG != 1\n#error no\n#endif\nvoid main() {}"
    assert shaders.compile(source, defines={"FLAG": True}) == shaders.compile(MINIMAL)


def test_error_names_file_and_line(project, message):
    (project / "x.comp").write_text("#version 450\nvoid main() {\n    int a = foo;\n}\n")
    error = failure(Path("shaders/x.comp"))
    message(error, "shaders/x.comp:3: ")
    assert (error.file, error.line) == (str(Path("shaders/x.comp")), 3)
    assert "ERROR: 3 compilation errors.  No code generated." in error.log
    assert isinstance(error, VkopsError)
    copy = pickle.loads(pickle.dumps(error))
    assert (str(copy), vars(copy)) == (str(error), vars(error))


def test_error_in_an_included_file_names_that_file(project, message):
    error = failure(Path("shaders/x.comp"))
    message(error, "shaders/inc/value.glsl:1: ")
    assert (error.file, error.line) == (str(Path("shaders/inc/value.glsl")), 1)


def test_missing_include_names_itself_and_its_line(project):
    (project / "inc/value.glsl").write_text('\n#include "deeper.glsl"\n')
    assert with_slashes(str(failure(Path("shaders/x.comp")))) == (
        "shaders/inc/value.glsl:2: '#include' : Could not process include directive for "
        "header name: deeper.glsl, in '#include \"deeper.glsl\"'"
    )


HINTS = {
    "layout(local_size_x = 1) in;\nvoid main() {}": "the first line must be '#version 450'",
    "#version 450\nvoid main() { double x = sin(double(1)); }": "write sin(float(x))",
    "#version 450\nvoid main() { int x = gl_WorkGroupID.x; }": "of uint to int: write int(x)",
    "#version 450\nvoid main() { int x = 1.5; }": "of float to int: write int(x)",
    "#version 450\nvoid main() { int64_t x; }": "int64_t needs '#extension GL_EXT_shader_explicit",
    "#version 450\nbuffer B { uint8_t b[]; };\nvoid main() {}": "uint8_t needs '#extension GL_EXT_",
    "#version 450\nvoid main() {\n    int x = 1\n    x = 2;\n}": "is a semicolon missing, here or in",
    "#version 450\nvoid main() { int x = 1 }": "is a semicolon missing",
    "#version 450\nuniform float x;\nvoid main() {}": "layout(push_constant) uniform Push { ... };",
}


@pytest.mark.parametrize("text", HINTS)
def test_usual_mistakes_have_a_hint(message, text):
    message(failure(text, name="x"), HINTS[text])


@pytest.mark.parametrize(
    "text",
    [
        "#version 450\nvoid main() { int x = y; }",
        "#version 450\nfloat f(float x) { return x; }\nvoid main() { f(1.0, 2.0); }",
        "#version 450\nvoid main() { int x[2] = int[3](1, 2, 3); }",
        "#version 450\nvoid main() { float sample = 1.0; }",
    ],
)
def test_other_mistakes_have_no_hint(text):
    assert failure(text).message.endswith(f", in {text.splitlines()[-1]!r}")


def test_lines_of_files_outside_are_not_shown(tmp_path):
    (tmp_path / "secret").write_text("it is red\n" * 9)
    text = (
        "#version 450\n#extension GL_GOOGLE_cpp_style_line_directive : require\n"
        f'#line 3 + 2 "{tmp_path}/secret"\nvoid main() {{ y; }}\n'
    )
    assert str(failure(text)) == f"{tmp_path / 'secret'}:5: 'y' : undeclared identifier"
    assert str(failure(text, include=tmp_path)).endswith(", in 'it is red'")
    text = text.replace(f"{tmp_path}/secret", 300 * "x")
    assert str(failure(text)).endswith(":5: 'y' : undeclared identifier")


LINE = "#version 450\n#extension GL_GOOGLE_cpp_style_line_directive : require\n#line {}\nvoid main() {{ foo; }}\n"


@pytest.mark.parametrize(
    ("text", "options", "file", "line"),
    [
        pytest.param("#version 450\nvoid main() { foo; }\n", {}, "<source>", 2, id="text"),
        pytest.param("#version 450\nvoid main() { foo; }\n", {"name": "gen/x.comp"}, "gen/x.comp", 2, id="name"),
        pytest.param("", {}, "<source>", None, id="nothing"),
        pytest.param("#version 450\n", {"name": "empty.comp"}, "empty.comp", None, id="no main"),
        pytest.param(MINIMAL, {"defines": {"X": "/*"}}, "<source>", None, id="define"),
        pytest.param(LINE.format('7 "template.glsl"'), {}, "template.glsl", 7, id="file by #line"),
        pytest.param(LINE.format('1 "\x1b[31mred\x07"'), {}, "\x1b[31mred\x07", 1, id="controls by #line"),
        pytest.param(LINE.format("3"), {"name": "x.comp"}, "x.comp", 3, id="number by #line"),
    ],
)  # fmt: skip
def test_where_errors_are(text, options, file, line, message):
    error = failure(text, **options)
    message(error, printable(file) + (f":{line}: " if line else ": "))
    assert (error.file, error.line) == (file, line)
    if line and "#line" not in text:
        assert f"ERROR: {file}:{line}: 'foo' : undeclared identifier" in error.log


def test_error_that_a_shader_states_is_one_short_printable_line(project):
    (project / "x.comp").write_bytes(b"#version 450\n#error \x1b[2Jx\x07 " + b"yyyy " * 1000)
    error = failure(Path("shaders/x.comp"))
    told = f"'#error' : <bad token> [ 2 Jx <bad token> {'yyyy ' * 1000}"
    line = repr("#error \x1b[2Jx\x07 " + "yyyy " * 9)[:59]
    assert str(error) == f"{Path('shaders/x.comp')}:2: {told[:500]}…, in {line}…"


@pytest.mark.parametrize(("length", "end"), [(499, ""), (500, ""), (501, "…")])
def test_only_a_message_that_is_too_long_is_cut(length, end):
    told = "'#error' : ".ljust(length, "y")
    error = failure(f"#version 450\n#error {told[11:]}")
    assert str(error).startswith(f"<source>:2: {told[:500]}{end}, in ")


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"defines": {"1X": 1}}, "define '1X'"),
        ({"defines": {"X=1 -h": 1}}, "define 'X=1 -h'"),
        ({"defines": {"X": "1\n2"}}, "define X"),
        ({"target_env": "metal"}, "target_env 'metal'"),
    ],
)
def test_bad_options(options, named, message):
    message(failure(MINIMAL, **options), named)


def test_version_the_compiler_does_not_know():
    assert str(failure(MINIMAL, target_env="vulkan1.9")).startswith(
        "<source>: --target-env expected one of: vulkan1.0,"
    )


def test_unreadable_source(tmp_path):
    path = tmp_path / "none.comp"
    for cache in (True, False):
        error = failure(path, cache=cache)
        assert str(error) == f"{path}: {NO_FILE}"
        assert error.file == str(path)
    assert str(failure(tmp_path)) == f"{tmp_path}: Is a directory"


@pytest.mark.usefixtures("no_package")
def test_missing_compiler(tmp_path, monkeypatch, message):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert str(failure(MINIMAL)) == (
        f"glslangValidator is not on PATH: install it ({how_to_install('glslang-tools')}), "
        "or set VKOPS_GLSLANG to its path"
    )
    monkeypatch.setenv("VKOPS_GLSLANG", "/nowhere/glslang")
    assert str(failure(MINIMAL)) == (
        "VKOPS_GLSLANG names '/nowhere/glslang', which is not an executable file"
    )
    said = fault(lambda: shaders.validate(b""), ShaderCompileError)
    message(said, "spirv-val is not on PATH: ", how=how_to_install("spirv-tools"))


FAULT = "; that is a fault of the compiler, not of the shader"


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        ("exit 3", "failed without a diagnostic (exit status 3)"),
        ("kill -SEGV $$", f"failed without a diagnostic (killed by SIGSEGV){FAULT}"),
        ("kill -40 $$", f"failed without a diagnostic (killed by signal 40){FAULT}"),
        ("printf '\\377\\376 no\\0pe\\n'; exit 1", "failed without a diagnostic (exit status 1)"),
        ("exit 0", "reported success and wrote no SPIR-V"),
        (': > "$output"', "reported success and wrote no SPIR-V"),
        ('printf garbage > "$output"', "reported success and wrote 7 bytes that are not SPIR-V"),
    ],
)
def test_misbehaving_compiler(fake_compiler, script, problem):
    path = fake_compiler(script)
    error = failure(MINIMAL, name="x.comp")
    assert str(error) == f"x.comp: {path} {problem}"
    assert (error.file, error.line) == ("x.comp", None)


def test_a_program_that_cannot_be_started(fake_compiler):
    path = fake_compiler("")
    path.write_bytes(b"\x7fELF garbage")
    assert str(failure(MINIMAL)) == f"<source>: {path} cannot be started: Exec format error"


def test_output_of_a_failing_compiler_is_kept(fake_compiler):
    fake_compiler("echo out of luck; echo and of memory >&2; exit 1")
    assert failure(MINIMAL).log == "out of luck\nand of memory\n"


@pytest.mark.posix("limits of a process", tests_only=True)
def test_a_limit_of_the_process_is_no_fault_of_the_compiler(fake_compiler):
    path = fake_compiler("kill -XFSZ $$")
    limit = "a limit of this process (ulimit -f) allows no files that large"
    assert str(failure(MINIMAL)) == f"<source>: {path} was stopped: {limit}"


def test_hanging_compiler_is_stopped_with_its_children(fake_compiler, monkeypatch):
    path = fake_compiler("echo thinking; sleep 600; true")
    start = time.monotonic()
    for seconds in (0.3, 60):  # a slow machine may take longer to start the program
        monkeypatch.setattr(tools, "TIMEOUT_S", seconds)
        error = failure(MINIMAL, name="x.comp")
        if error.log:
            break
    assert time.monotonic() - start < 500
    assert str(error) == f"x.comp: {path} was stopped: not done after {seconds:g} s"
    assert error.log == "thinking\n"


def test_interrupted_compiler_does_not_run_on(fake_compiler, monkeypatch):
    def interrupt(*_args, **_options):
        raise KeyboardInterrupt

    fake_compiler("sleep 600")
    monkeypatch.setattr(subprocess.Popen, "communicate", interrupt)
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        shaders.compile(MINIMAL, cache=False)
    assert time.monotonic() - start < 500


def test_endless_includes_are_stopped_before_memory_is_full(project, monkeypatch):
    monkeypatch.setattr(tools, "MEMORY_BYTES", 100 << 20)
    monkeypatch.setattr(tools, "TIMEOUT_S", 300)
    (project / "inc/value.glsl").write_text('#include "value.glsl"\n')
    error = failure(Path("shaders/x.comp"))
    # The system refuses it memory, or vkops ends it.
    signal = "SIGABRT" if hasattr(processes.os, "fork") else "SIGKILL"
    signal = "signal 9" if os.name == "nt" else signal
    assert str(error).endswith(
        f"failed without a diagnostic (killed by {signal}); does a file include itself?"
    )


def test_no_temporary_folder(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "none"))
    with pytest.raises(FileNotFoundError) as caught:
        (tmp_path / "none" / "folder").mkdir()
    assert str(failure(MINIMAL)) == f"no temporary folder to compile in: {caught.value.strerror}"


def test_invalid_spirv_is_refused():
    spirv = shaders.compile(MINIMAL)
    text = fault(lambda: shaders.validate(spirv[:-4]), ShaderCompileError)
    assert text.startswith("invalid SPIR-V: ")
    assert "Missing OpFunctionEnd at end of module" in text


def test_compiling_needs_only_the_standard_library():
    """The wheel is built where none of vkops' dependencies is, but psutil on other systems than Linux."""
    packages = [] if sys.platform == "linux" else [str(Path(find_spec("psutil").origin).parents[1])]
    code = (
        "from vkops import shaders\n"
        f"assert shaders.compile({MINIMAL!r}, cache=False)\n"
        "from vkops.shaders.variants import VARIANTS"
    )
    assert outcome("-S", "-c", code, PYTHONPATH=os.pathsep.join([str(ROOT), *packages])) == (
        0,
        "",
        "",
    )
