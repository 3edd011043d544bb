"""Bundles: what they have, use without a compiler, and damaged ones; the line about compilations."""

import hashlib
import io
import json
import logging
import os
import re
import subprocess
import sys
import time
import tracemalloc
import zipfile
from collections import Counter
from dataclasses import replace

import pytest
from processes import SLANG, finished, without_compiler
from refusals import fault

import vkops
from vkops import shaders
from vkops.cli import main
from vkops.errors import InvalidDescTypeError, ShaderCompileError
from vkops.runner import recorded_run
from vkops.shaders import bundle_file, bundle_use, compile_notice, compiler, recorded_shaders, tools
from vkops.shaders.bundle_file import FORMAT, MAX_SHADERS
from vkops.shaders.recorded_shaders import Record

SCALE = """#version 450
#include "factor.glsl"
layout(local_size_x = 64) in;
layout(std430, binding = 0) buffer Data { float data[]; };
void main() { data[gl_GlobalInvocationID.x] *= FACTOR; }
"""
FACTOR = "#define FACTOR 3.0\n"
HLSL = "RWStructuredBuffer<uint> data : register(u0); [numthreads(32, 1, 1)] void run(uint3 id : SV_DispatchThreadID) { data[id.x] += 1; }"
PACKED = """#version 450
#extension GL_EXT_scalar_block_layout : require
#extension GL_ARB_gpu_shader_int64 : require
layout(scalar, binding = 0) buffer Data { float first[2]; vec3 second; uint64_t third; };
void main() { second.x = first[0]; third = 1ul; }
"""
PROGRAM = f"""
import hashlib, os, subprocess, sys
from pathlib import Path
from vkops import shaders

folder = Path(__file__).parent
def show(shader):
    print(shader.name, hashlib.sha256(shader.spirv).hexdigest(), shader.local_size, *shader.needs)
show(shaders.load(folder / "scale.comp"))
show(shaders.load({HLSL!r}, language="hlsl", entry="run", name="hlsl"))
show(shaders.load({PACKED!r}, name="packed"))
show(shaders.load((folder / "own.spv").read_bytes(), name="own"))
shaders.load(folder / "scale.comp", debug=True)
print(hashlib.sha256(shaders.spirv("copy_4")).hexdigest())
print(sys.argv[1:])
if sys.argv[1:] != ["child"]:
    sys.stdout.flush()
    sys.exit(subprocess.run([sys.executable, __file__, "child"]).returncode)
show(shaders.load({SCALE!r}, include={{"factor.glsl": "#define FACTOR 5.0"}}, name="of the child"))
"""


def bundled(folder, file, *arguments):
    """What ``vkops shader bundle`` prints for the program in a folder."""
    command = [sys.executable, "-m", "vkops", "shader", "bundle", folder / "program.py"]
    status, printed, errors = finished(*command, *arguments, "-o", file)
    assert (status, errors) == (0, "")
    return printed


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """A folder with a program, its shaders, and a bundle of what it uses."""
    folder = tmp_path_factory.mktemp("recorded")
    (folder / "program.py").write_text(PROGRAM)
    (folder / "scale.comp").write_text(SCALE)
    (folder / "factor.glsl").write_text(FACTOR)
    own = shaders.compile("#version 450\nvoid main() {}", target_env="vulkan1.2")
    (folder / "own.spv").write_bytes(own)
    (folder / "printed").write_text(bundled(folder, folder / "shaders.zip", "x", "--rows=3"))
    return folder


@pytest.fixture
def used(monkeypatch):
    """No bundles are used; those of a test are forgotten after it."""
    for name in ("_modules", "_entries"):
        monkeypatch.setattr(bundle_use, name, {})
    monkeypatch.setattr(bundle_use, "_paths", [])
    monkeypatch.delenv(bundle_use.VARIABLE, raising=False)
    bundle_use._use_from_environment.cache_clear()
    yield
    bundle_use._use_from_environment.cache_clear()


@pytest.fixture
def no_programs(monkeypatch, tmp_path):
    """This process finds no compilers, and nothing in its caches."""
    hide_programs(monkeypatch, tmp_path)


def hide_programs(monkeypatch, tmp_path):
    for variable in ("PATH", "VKOPS_GLSLANG"):
        monkeypatch.setenv(variable, "")
    monkeypatch.setenv("VKOPS_CACHE_DIR", str(tmp_path / "empty"))
    monkeypatch.setattr("vkops.lavapipe.package", lambda: None)


def content(program):
    """The shaders of the bundle of a program, and the entry of scale.comp without source lines."""
    found = bundle_file.read(str(program / "shaders.zip"), "")
    scale = [entry for entry in found if entry.name == "scale.comp"]
    return found, min(scale, key=lambda entry: len(found[entry]))


# -- use -------------------------------------------------------------------------------------------


def test_a_program_runs_without_a_compiler_in_another_folder(program, tmp_path):
    """Shaders of files, texts, SPIR-V, child processes, kernels, and those with source lines."""
    for name in ("program.py", "scale.comp", "factor.glsl", "own.spv"):
        (tmp_path / name).write_bytes((program / name).read_bytes())
    env = without_compiler(tmp_path, VKOPS_BUNDLE=str(program / "shaders.zip"))
    command = [sys.executable, tmp_path / "program.py", "x", "--rows=3"]
    status, printed, errors = finished(*command, env=env)
    assert (status, errors) == (0, "")
    *lines, last = (program / "printed").read_text().splitlines()
    assert printed.splitlines() == lines
    assert "scalarBlockLayout" in printed
    assert last.startswith("7 shaders written to")
    assert not (tmp_path / "empty-cache").exists()
    del env["VKOPS_BUNDLE"]
    status, _, errors = finished(*command, env=env)
    assert (status, "glslangValidator is not on PATH" in errors) == (1, True)


def test_the_same_run_writes_the_same_bytes(program, tmp_path):
    """Also from the cache, and with a bundle."""
    expected = (program / "shaders.zip").read_bytes()
    bundled(program, tmp_path / "again.zip", "x")
    assert (tmp_path / "again.zip").read_bytes() == expected
    records = [
        Record(entry.name, entry.key, 0.0, spirv)
        for entry, spirv in bundle_file.read(str(program / "shaders.zip"), "").items()
    ]
    bundle_file.write(tmp_path / "reversed.zip", recorded_run.bundled(records[::-1]))
    assert (tmp_path / "reversed.zip").read_bytes() == expected


def test_entries(program, capsys):
    path = str(program / "shaders.zip")
    entries = {entry.name: entry for entry in bundle_file.read(path, "")}
    assert [*entries] == ["copy_4", "hlsl", "of the child", "own", "packed", "scale.comp"]
    assert entries["packed"].features == ("shaderInt64", "scalarBlockLayout")
    assert entries["own"].key == entries["own"].spirv
    assert entries["own"].vulkan == "1.2"
    assert entries["hlsl"].vulkan == "1.1"
    assert {entry.vkops for entry in entries.values()} == {vkops.__version__}
    assert main(["shader", "list", path]) == 0
    shown = capsys.readouterr().out
    assert all(f"\n{name} " in shown for name in entries)


def test_use_bundle(program, used, no_programs, message):
    load = lambda: shaders.load(program / "scale.comp")  # noqa: E731
    assert "bundle" not in fault(load, ShaderCompileError)
    vkops.use_bundle(program / "shaders.zip")
    assert load().local_size == (64, 1, 1)
    (program / "factor.glsl").write_text("#define FACTOR 4.0\n")
    try:
        error = fault(load, ShaderCompileError)
    finally:
        (program / "factor.glsl").write_text(FACTOR)
    missing = tools_missing("glslangValidator", "glslang-tools", "VKOPS_GLSLANG")
    message(
        error, "scale.comp", "vkops shader bundle", path=program / "shaders.zip", missing=missing
    )
    unknown = (program / "own.spv").read_bytes().replace(b"main", b"loop")
    error = fault(lambda: shaders.load(unknown, name="x.spv", entry="loop"), ShaderCompileError)
    missing = tools_missing("spirv-val", "spirv-tools")
    message(error, "x.spv", path=program / "shaders.zip", missing=missing)


def tools_missing(*arguments):
    return fault(lambda: tools.find(*arguments), ShaderCompileError)


def test_a_bundle_of_another_version_is_named(program, tmp_path, used, no_programs, message):
    found = bundle_file.read(str(program / "shaders.zip"), "")
    older = {replace(entry, vkops="0.0.9"): spirv for entry, spirv in found.items()}
    bundle_file.write(tmp_path / "older.zip", older)
    vkops.use_bundle(tmp_path / "older.zip")
    assert shaders.load(program / "scale.comp").local_size == (64, 1, 1)
    error = fault(lambda: shaders.load("#version 450\nvoid main() {}"), ShaderCompileError)
    missing = tools_missing("glslangValidator", "glslang-tools", "VKOPS_GLSLANG")
    version = vkops.__version__
    message(error, "0.0.9", path=tmp_path / "older.zip", missing=missing, version=version)


def test_several_bundles(program, tmp_path, used, no_programs, monkeypatch):
    """Of the variable, and of calls, the last of which counts."""
    found, scale = content(program)
    hlsl, other = (next(each for each in found if each.name == name) for name in ("hlsl", "own"))
    paths = [tmp_path / "hlsl.zip", tmp_path / "scale.zip"]
    for path, entry in zip(paths, (hlsl, scale), strict=True):
        bundle_file.write(path, {entry: found[entry]})
    monkeypatch.setenv(bundle_use.VARIABLE, os.pathsep.join(map(str, paths)))
    assert shaders.load(program / "scale.comp").name == "scale.comp"
    assert shaders.load(HLSL, language="hlsl", entry="run").local_size == (32, 1, 1)
    replaced = {replace(scale, spirv=other.spirv): found[other]}
    bundle_file.write(tmp_path / "last.zip", replaced)
    vkops.use_bundle(tmp_path / "last.zip")
    assert shaders.load(program / "scale.comp").spirv == found[other]


@SLANG
def test_slang(tmp_path, used, monkeypatch):
    source = "RWStructuredBuffer<float> x; [numthreads(8,1,1)] void main(uint3 i : SV_DispatchThreadID) { x[i.x] = 1; }"
    code = (
        f"from vkops import shaders; print(shaders.load({source!r}, language='slang').local_size)"
    )
    (tmp_path / "program.py").write_text(code)
    bundled(tmp_path, tmp_path / "slang.zip")
    vkops.use_bundle(tmp_path / "slang.zip")
    hide_programs(monkeypatch, tmp_path)
    monkeypatch.setattr("importlib.util.find_spec", lambda *_: None)
    assert shaders.load(source, language="slang").local_size == (8, 1, 1)


def test_spirv_of_a_bundle_is_validated_where_that_is_possible(program, tmp_path, used, message):
    """A module with the right hash that is not valid; without spirv-val, it is at least readable."""
    found, entry = content(program)
    wrong = bytearray(found[entry])
    wrong[-4:] = (1 << 16 | 400).to_bytes(4, "little")
    bundle_file.write(tmp_path / "wrong.zip", forged(entry, bytes(wrong)))
    vkops.use_bundle(tmp_path / "wrong.zip")
    error = fault(lambda: shaders.load(program / "scale.comp"), ShaderCompileError)
    assert error.startswith("scale.comp: invalid SPIR-V")


def test_spirv_of_a_bundle_is_read_without_spirv_val(program, tmp_path, used, no_programs, message):
    found, entry = content(program)
    wrong = found[entry][:100] + bytes(40) + found[entry][140:]
    bundle_file.write(tmp_path / "wrong.zip", forged(entry, wrong))
    vkops.use_bundle(tmp_path / "wrong.zip")
    message(fault(lambda: shaders.load(program / "scale.comp"), ShaderCompileError), "scale.comp")


def test_robust_accesses_are_recorded(tmp_path, used, monkeypatch):
    """What spirv-opt makes for drivers on the CPU without a feature."""
    spirv = shaders.load(SCALE, include={"factor.glsl": FACTOR}, name="scale").spirv
    monkeypatch.setenv(recorded_shaders.FOLDER, str(tmp_path))
    robust = compiler.with_robust_access(spirv, "scale")
    assert robust != spirv
    records = recorded_shaders.records(tmp_path)
    assert {record.spirv for record in records} == {robust}
    bundle_file.write(tmp_path / "robust.zip", recorded_run.bundled(records))
    vkops.use_bundle(tmp_path / "robust.zip")
    hide_programs(monkeypatch, tmp_path)
    assert compiler.with_robust_access(spirv, "scale") == robust
    error = fault(lambda: compiler.with_robust_access(robust, "twice"), ShaderCompileError)
    assert "twice: is not in the bundle" in error


# -- damaged bundles -------------------------------------------------------------------------------


def forged(entry, spirv):
    """The content of a bundle with the right hash of a module that is wrong."""
    hash_ = bundle_file.hashlib.sha256(spirv).hexdigest()
    return {replace(entry, spirv=hash_): spirv}


def repacked(data, change=lambda members: None, compression=zipfile.ZIP_STORED):
    """A bundle with other members."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    change(members)
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", compression) as archive:
        for name, member in members.items():
            archive.writestr(name, member)
    return stream.getvalue()


def described(change):
    """A bundle with another bundle.json: ``change`` is called with what it has."""

    def changed(data):
        def edit(members):
            content = json.loads(members["bundle.json"])
            members["bundle.json"] = json.dumps(change(content) or content).encode()

        return repacked(data, edit)

    return changed


def first(**fields):
    return described(lambda content: content["shaders"][0].update(fields))


def other_module(data):
    def change(members):
        name = next(name for name in members if name.endswith(".spv"))
        members[name] = members[name][:-4] + b"abcd"

    return repacked(data, change)


def many(data):
    end = bundle_file._END
    *head, directory, offset, comment = end.unpack(data[-end.size :])
    head[3] = head[4] = 0xFFFF
    return data[: -end.size] + end.pack(*head, directory, offset, comment)


def claimed(data):
    """A member that claims to be larger than the file, in the directory."""
    at = data.index(b"PK\1\2")
    size = (20 << 20).to_bytes(4, "little")
    return data[: at + 20] + size * 2 + data[at + 28 :]


def overlapping(data):
    """Two members that are the same bytes, as in a bomb: the sum is larger than the file."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        infos = archive.infolist()
    large = max(infos, key=lambda info: info.file_size)
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("bundle.json", b"{}")
        archive.writestr(large.filename, bytes(large.file_size))
        (_, module) = archive.infolist()
        for n in range(9):
            alias = zipfile.ZipInfo(f"{n}.spv")
            alias.header_offset, alias.CRC = module.header_offset, module.CRC
            alias.file_size = alias.compress_size = module.file_size
            archive.filelist.append(alias)
    return stream.getvalue()


DAMAGES = {
    "empty": lambda data: b"",
    "not a zip file": lambda data: b"PK" + bytes(1000),
    "truncated": lambda data: data[:-30],
    "cut in half": lambda data: data[: len(data) // 2],
    "without its beginning": lambda data: data[500:],
    "a comment": lambda data: data[:-2] + b"\1\0x",
    "64-bit sizes": lambda data: data[:-22] + b"PK\6\7" + bytes(16) + data[-22:],
    "another zip file": lambda data: repacked(data, lambda members: members.pop("bundle.json")),
    "compressed": lambda data: repacked(data, compression=zipfile.ZIP_DEFLATED),
    "a bomb": lambda data: repacked(
        data, lambda members: members.update(x=bytes(1 << 27)), zipfile.ZIP_DEFLATED
    ),
    "overlapping members": overlapping,
    "a large member": claimed,
    "too many members": many,
    "a changed byte": lambda data: data[:200] + bytes([data[200] ^ 1]) + data[201:],
    "another module": other_module,
    "a module too many": lambda data: repacked(data, lambda m: m.update({"x.spv": b"x"})),
    "a folder": lambda data: repacked(data, lambda m: m.update({"../../x": b"x"})),
    "a module too few": lambda data: repacked(
        data, lambda m: m.pop(next(name for name in m if name.endswith(".spv")))
    ),
    "no JSON": lambda data: repacked(data, lambda m: m.update({"bundle.json": b"{"})),
    "nested JSON": lambda data: repacked(data, lambda m: m.update({"bundle.json": b"[" * 100_000})),
    "a list": described(lambda content: [content]),
    "the next format": described(lambda content: content.update(format=FORMAT + 1)),
    "no format": described(lambda content: content.pop("format") and None),
    "too many shaders": described(
        lambda content: content.update(shaders=content["shaders"] * (MAX_SHADERS // 7 + 1))
    ),
    "a long bundle.json": lambda data: repacked(
        data, lambda m: m.update({"bundle.json": b"[" + b"[]," * (3 << 20)})
    ),
    "another field": first(path="/"),
    "a number as a name": first(name=1),
    "a long name": first(name="x" * 1000),
    "another hash": first(spirv="0" * 64),
    "a key that is none": first(key="../x"),
    "features of a wrong type": first(features=[1]),
    "many features": first(features=["x"] * 1000),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_bundles(program, tmp_path, used, message, damage):
    path = tmp_path / "damaged.zip"
    path.write_bytes(DAMAGES[damage]((program / "shaders.zip").read_bytes()))
    tracemalloc.start()
    error = re.sub("[0-9a-f]{64}", "{hash}", str(fault(lambda: vkops.use_bundle(path))))
    message(error, "use_bundle path: ", "[BUN-0", path=path)  # compilers have SPIR-V of their own
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 24 << 20
    assert (bundle_use._paths, bundle_use._modules) == ([], {})
    assert os.listdir(tmp_path) == ["damaged.zip"]


def test_any_changed_byte_gives_one_error_or_the_same_shaders(program, tmp_path, used):
    data = (program / "shaders.zip").read_bytes()
    expected, path = bundle_file.read(str(program / "shaders.zip"), ""), tmp_path / "x.zip"
    outcomes = Counter()
    for at in [*range(0, 300, 7), *range(len(data) - 1500, len(data), 7)]:
        path.write_bytes(data[:at] + bytes([data[at] ^ 0x41]) + data[at + 1 :])
        try:
            found = bundle_file.read(str(path), "")
        except vkops.InvalidDescError as error:
            outcomes[error.rule] += 1
        else:  # a time, or a version of the format of zip files
            assert found == expected
            outcomes["same"] += 1
    assert outcomes["BUN-01"] > 100
    assert {*outcomes} <= {"BUN-01", "BUN-02", "same"}


def test_paths(tmp_path, used, monkeypatch, message):
    for path in (tmp_path / "missing.zip", tmp_path, "a\0b"):
        message(fault(lambda path=path: vkops.use_bundle(path)), "[BUN-01]", path=tmp_path)
    message(fault(lambda: vkops.use_bundle(3), InvalidDescTypeError), "path: got 3", "[BUN-01]")
    large = tmp_path / "large.zip"
    with large.open("wb") as file:
        file.truncate((64 << 20) + 1)
    message(fault(lambda: vkops.use_bundle(large)), "[BUN-02]", path=large)
    monkeypatch.setenv(bundle_use.VARIABLE, str(large))
    for _ in range(2):  # each call says so
        error = fault(lambda: shaders.load("#version 450\nvoid main() {}"))
        message(error, "VKOPS_BUNDLE: got", path=large)


def test_a_bundle_of_the_most_shaders_is_read(program, tmp_path):
    ((entry, spirv), *_) = bundle_file.read(str(program / "shaders.zip"), "").items()
    shaders_ = {}
    for n in range(MAX_SHADERS):
        module = spirv[:20] + n.to_bytes(4, "little")  # the head of a module, and another word
        digest = hashlib.sha256(module).hexdigest()
        shaders_[replace(entry, name=str(n), spirv=digest)] = module
    bundle_file.write(tmp_path / "x.zip", shaders_)
    assert bundle_file.read(str(tmp_path / "x.zip"), "") == shaders_


def test_a_bundle_that_would_be_too_large_is_not_written(program, tmp_path, message):
    ((entry, spirv), *_) = bundle_file.read(str(program / "shaders.zip"), "").items()
    shaders_ = {replace(entry, name=str(n)): spirv for n in range(MAX_SHADERS + 1)}
    error = fault(lambda: bundle_file.write(tmp_path / "x.zip", shaders_))
    message(error.replace(f"{len(spirv)}", ""), "[BUN-02]", bytes=error.split()[4])
    assert not os.listdir(tmp_path)


# -- commands --------------------------------------------------------------------------------------


def test_programs_that_fail_or_use_no_shaders(tmp_path, command, message):
    program = tmp_path / "program.py"
    for text, status in (("import sys; sys.exit(3)", 3), ("print()", 1)):
        program.write_text(text)
        outcome = command("shader", "bundle", program, "-o", tmp_path / "x.zip")
        assert outcome[0] == status
    message(outcome[2].strip(), "no shaders", program=program)
    assert not (tmp_path / "x.zip").exists()
    status, _, error = command("shader", "bundle", tmp_path / "none", "-o", tmp_path / "x.zip")
    assert (status, str(tmp_path / "none") in error) == (1, True)


def test_invalid_shaders_are_left_out_with_a_warning(capsys):
    spirv = shaders.compile("#version 450\nvoid main() {}")
    wrong = spirv[:-4] + (1 << 16 | 400).to_bytes(4, "little")
    records = [Record("right", "0" * 64, 0.0, spirv), Record("wrong", "1" * 64, 0.0, wrong)]
    assert [entry.name for entry in recorded_run.bundled(records)] == ["right"]
    assert capsys.readouterr().err.startswith("Warning: not in the bundle: wrong: invalid SPIR-V")


def test_warm(tmp_path, command, own_cache):
    text = "from vkops import shaders\nfor n in range(2): shaders.load(f'#version 450\\nvoid main() {{ uint x = {n}u; }}')"
    (tmp_path / "program.py").write_text(text)
    status, printed, _ = command("warm", tmp_path / "program.py")
    assert status == 0
    assert printed.startswith("2 shaders, 2 compiled in ")
    expected = (0, "2 shaders, none compiled; all are in the cache\n", "")
    assert command("warm", tmp_path / "program.py") == expected


# -- the line about compilations -------------------------------------------------------------------


@pytest.fixture
def notice(monkeypatch):
    """As in a process that has compiled nothing."""
    for name in ("_names", "_seconds", "_lines"):
        monkeypatch.setattr(compile_notice, name, [])
    monkeypatch.setattr(compile_notice, "_calls", compile_notice.count())


def test_one_line_while_a_shader_is_compiled(notice, monkeypatch, caplog, message):
    for n in range(5):
        with compile_notice.compiling(f"fast_{n}"):
            pass
    assert caplog.messages == []
    monkeypatch.setattr(compile_notice, "DELAY_S", 0.2)
    with compile_notice.compiling("slow"):
        deadline = time.monotonic() + 20
        while not caplog.messages and time.monotonic() < deadline:
            time.sleep(0.01)
        (line,) = caplog.messages  # before it is compiled
    message(line, "fast_3, fast_4, slow and 3 more", "vkops warm")
    with compile_notice.compiling("later"):
        time.sleep(0.3)
    assert len(caplog.messages) == 1


def test_seconds_of_several_shaders_are_added(notice, monkeypatch, caplog):
    monkeypatch.setattr(compile_notice, "DELAY_S", 0.3)
    for n in range(20):
        with compile_notice.compiling(f"shader_{n}"):
            time.sleep(0.05)
    assert len(caplog.messages) == 1


@pytest.mark.parametrize("is_quiet", [False, True])
def test_the_line_is_on_standard_error_unless_the_logger_is_quiet(tmp_path, is_quiet):
    program = f"""
import logging
from vkops import shaders
from vkops.shaders import compile_notice
compile_notice.DELAY_S = 0.0
if {is_quiet}:
    logging.getLogger("vkops").setLevel(logging.ERROR)
for n in range(2):
    shaders.load(f"#version 450\\nvoid main() {{{{ uint x = {{n}}u; }}}}", name=f"shader_{{n}}")
"""
    env = {**os.environ, "VKOPS_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0
    assert done.stderr.count("compiling shaders") == done.stderr.count("\n") == (not is_quiet)
    assert logging.getLogger("vkops").level == logging.NOTSET
