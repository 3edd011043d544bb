"""The SPIR-V cache: its keys, damaged entries, several processes, folders that cannot be used."""

import errno
import os
import shutil
import subprocess
import sys
from pathlib import Path

import platformdirs
import pytest
from processes import ROOT

from vkops import shaders
from vkops.system import disk_cache, files

SOURCE = """#version 450
#extension GL_GOOGLE_include_directive : require
#include "value.glsl"
layout(binding = 0) buffer Data { uint data[]; };
void main() { data[0] = value(); }
"""
VALUE = "uint value() { return VALUE; }\n"


@pytest.fixture(autouse=True)
def entries(own_cache):
    """Return the folder of the entries in an own cache."""
    return own_cache / "spirv"


@pytest.fixture
def counting(tmp_path, monkeypatch):
    """Make compilers that count compilations; ``counting.calls()`` returns their number."""

    class Counting:
        log = tmp_path / "compilations"

        def use(self, before="", folder="bin"):
            path = tmp_path / folder / "glslangValidator"
            path.parent.mkdir(exist_ok=True)
            path.write_text(
                f'#!/bin/sh\necho >> {self.log}\n{before}\nexec {shutil.which("glslangValidator")} "$@"\n'
            )
            path.chmod(0o755)
            monkeypatch.setenv("VKOPS_GLSLANG", str(path))

        def calls(self):
            return len(self.log.read_text().splitlines()) if self.log.exists() else 0

    compilers = Counting()
    compilers.use()
    return compilers


@pytest.fixture
def shader(tmp_path):
    """Write a shader with an include."""
    path = tmp_path / "x.comp"
    path.write_text(SOURCE)
    (tmp_path / "value.glsl").write_text(VALUE)
    return path


def build(path, **options):
    return shaders.compile(path, **{"defines": {"VALUE": 1}, "allow_paths": True, **options})


def test_second_time_is_not_compiled(shader, counting):
    assert build(shader) == build(shader)
    assert counting.calls() == 1
    build(shader, cache=False)
    assert counting.calls() == 2


def test_the_key_depends_on_all_inputs(shader, counting):
    def change_source():
        shader.write_text(SOURCE + "// changed\n")

    def change_include():
        (shader.parent / "value.glsl").write_text(VALUE.replace("VALUE;", "VALUE + 1;"))

    build(shader)
    for options in (
        {"defines": {"VALUE": 2}},
        {"defines": {"VALUE": 1, "OTHER": 1}},
        {"target_env": "vulkan1.2"},
        {"debug": True},
    ):
        before = counting.calls()
        assert build(shader, **options) == build(shader, **options)
        assert counting.calls() == before + 1, options
    for change in (change_source, change_include):
        change()
        before = counting.calls()
        assert build(shader) == build(shader)
        assert counting.calls() == before + 1, change


def test_order_of_defines_and_folder_of_sources_are_not_in_the_key(shader, counting):
    first = build(shader, defines={"VALUE": 1, "OTHER": 2})
    moved = Path(shutil.copytree(shader.parent, shader.parent / "moved", ignore=lambda *_: ["bin"]))
    assert build(moved / "x.comp", defines={"OTHER": 2, "VALUE": 1}) == first
    assert counting.calls() == 1


def test_debug_spirv_holds_paths_so_the_folder_counts(shader, counting):
    moved = Path(shutil.copytree(shader.parent, shader.parent / "moved", ignore=lambda *_: ["bin"]))
    assert os.fsencode(shader) in build(shader, debug=True)
    assert os.fsencode(moved / "x.comp") in build(moved / "x.comp", debug=True)
    assert counting.calls() == 2


def test_the_compilers_file_is_in_the_key(shader, counting, monkeypatch):
    """Its resolved path, size and time: it is not asked for its version, which takes long."""
    build(shader)
    path = Path(os.environ["VKOPS_GLSLANG"])
    (path.parent / "link").symlink_to(path)
    monkeypatch.setenv("VKOPS_GLSLANG", str(path.parent / "link"))
    build(shader)
    assert counting.calls() == 1
    os.utime(path, (1, 1))
    build(shader)
    assert counting.calls() == 2
    counting.use(folder="newer")
    build(shader)
    assert counting.calls() == 3


def test_time_stamps_do_not_count(shader, counting):
    first = build(shader, defines={"VALUE": "11"})
    stamp = (shader.parent / "value.glsl").stat().st_mtime_ns
    os.utime(shader, ns=(0, 0))
    os.utime(shader.parent / "value.glsl", ns=(0, 0))
    assert build(shader, defines={"VALUE": "11"}) == first
    assert counting.calls() == 1
    (shader.parent / "value.glsl").write_text(VALUE.replace("VALUE", "22222"))  # of equal length
    os.utime(shader.parent / "value.glsl", ns=(stamp, stamp))
    assert build(shader, defines={"VALUE": "11"}) != first
    assert counting.calls() == 2


@pytest.mark.parametrize(
    "directive",
    [
        '#include "deep/a.glsl"',
        '  #  include   "deep/a.glsl" // comment',
        '/* */ # /* */ include /* */ "deep/a.glsl"',
        '#inc\\\nlude "deep/a.glsl"',
    ],
)
def test_includes_of_includes_count_however_they_are_written(tmp_path, counting, directive):
    """``b.glsl`` is found beside the file that includes ``a.glsl``, as glslang finds it."""
    (tmp_path / "deep").mkdir()
    (tmp_path / "x.comp").write_text(
        "#version 450\n#extension GL_GOOGLE_include_directive : require\n"
        f"{directive}\nvoid main() {{ uint x = value(); }}\n"
    )
    (tmp_path / "deep/a.glsl").write_text('#include "b.glsl"\n')
    (tmp_path / "b.glsl").write_text("uint value() { return 1; }\n")
    assert build(tmp_path / "x.comp") == build(tmp_path / "x.comp")
    assert counting.calls() == 1
    (tmp_path / "b.glsl").write_text("uint value() { return 2; }\n")
    build(tmp_path / "x.comp")
    assert counting.calls() == 2
    (tmp_path / "deep/b.glsl").write_text("uint value() { return 3; }\n")  # now found first
    build(tmp_path / "x.comp")
    assert counting.calls() == 3


def test_include_dirs_in_order(tmp_path, counting):
    for name, value in (("one", 1), ("two", 2)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "value.glsl").write_text(f"uint value() {{ return {value}; }}\n")
    folders = [tmp_path / "one", tmp_path / "two"]
    first = shaders.compile(SOURCE, include=folders)
    assert shaders.compile(SOURCE, include=folders[::-1]) != first
    (tmp_path / "one/value.glsl").unlink()
    second = shaders.compile(SOURCE, include=folders)
    assert second != first
    (tmp_path / "one/value.glsl").write_text(
        "uint value() { return 3; }\n"
    )  # found before the other
    assert shaders.compile(SOURCE, include=folders) not in (first, second)
    before = counting.calls()
    assert shaders.compile(SOURCE, include=folders) not in (first, second)
    assert counting.calls() == before


def test_files_that_include_each_other_have_a_key(tmp_path, counting):
    for name, other in (("a", "b"), ("b", "a")):
        include = f'#include "../{tmp_path.name}/{other}.glsl"'  # each a longer path to the same
        (tmp_path / f"{name}.glsl").write_text(
            f"#ifndef {name}_\n#define {name}_\n{include}\n#endif\n"
        )
    (tmp_path / "x.comp").write_text(
        "#version 450\n#extension GL_GOOGLE_include_directive : require\n"
        '#include "a.glsl"\nvoid main() {}\n'
    )
    assert build(tmp_path / "x.comp") == build(tmp_path / "x.comp")
    assert counting.calls() == 1


def test_sources_edited_during_compilation_are_not_cached(shader, counting, entries):
    value = shader.parent / "value.glsl"
    counting.use(before=f"echo 'uint value() {{ return 5; }}' > {value}", folder="editing")
    build(shader)
    assert not entries.exists()


@pytest.mark.parametrize(
    "damage",
    [
        lambda entry: b"",
        lambda entry: entry[:10],
        lambda entry: entry[:-4],
        lambda entry: entry[:-1],
        lambda entry: entry[:60] + bytes([entry[60] ^ 1]) + entry[61:],
        lambda entry: b"garbage" * 100,
        lambda entry: bytes(len(entry)),
    ],
    ids=["empty", "short", "word lost", "byte lost", "bit flipped", "garbage", "zeros"],
)
def test_damaged_entry_is_compiled_again_and_replaced(shader, counting, entries, damage):
    spirv = build(shader)
    (entry,) = entries.iterdir()
    good = entry.read_bytes()
    entry.write_bytes(damage(good))
    assert build(shader) == spirv
    assert counting.calls() == 2
    assert entry.read_bytes() == good


def sparse(entry):
    with open(entry, "wb") as file:
        file.truncate(40 << 30)


def of_another_user(entry):
    if not hasattr(files.os, "geteuid"):
        pytest.skip("needs POSIX: owners of files")
    if os.geteuid() != 0:
        pytest.skip("only root can give files away")
    os.chown(entry, 65534, -1)


@pytest.mark.posix("named pipes, and owners of files", tests_only=True)
@pytest.mark.parametrize(
    "replace",
    [
        lambda entry: (entry.unlink(), os.mkfifo(entry)),
        lambda entry: (entry.unlink(), entry.symlink_to("/dev/zero")),
        lambda entry: entry.symlink_to(entry.rename(entry.parent.parent / "elsewhere")),
        sparse,
        of_another_user,
        lambda entry: shutil.copy(
            next(path for path in entry.parent.iterdir() if path != entry), entry
        ),
    ],
    ids=["pipe", "device", "link", "40 GiB", "another user's", "entry of another shader"],
)
def test_an_entry_of_another_kind_is_replaced(shader, counting, entries, replace):
    build(shader, defines={"VALUE": 2})
    (other,) = entries.iterdir()
    spirv = build(shader)
    (entry,) = set(entries.iterdir()) - {other}
    good = entry.read_bytes()
    replace(entry)
    assert build(shader) == spirv
    assert counting.calls() == 3
    assert (entry.is_symlink(), entry.read_bytes()) == (False, good)
    assert other.read_bytes() != good


@pytest.mark.posix("owners and modes of folders")
@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda folder, _: folder.chmod(0o770), "other users may write to it"),
        (lambda folder, _: folder.chmod(0o777), "other users may write to it"),
        (
            lambda _, patch: patch.setattr("vkops.system.files.os.geteuid", lambda: 4711),
            "it belongs to another user",
        ),
        (
            lambda folder, _: folder.symlink_to(folder.rename(folder.parent / "elsewhere")),
            "Not a directory",
        ),
    ],
    ids=["group", "world", "owner", "link"],
)
def test_a_folder_that_others_can_change_is_not_used(
    shader, counting, entries, monkeypatch, caplog, change, reason
):
    disk_cache._warn_once.cache_clear()
    spirv = build(shader)
    with monkeypatch.context() as patch:
        change(entries, patch)
        before = sorted(entries.iterdir())
        assert [build(shader, defines={"VALUE": n}) == spirv for n in (1, 1, 2)] == [1, 1, 0]
        assert sorted(entries.iterdir()) == before
    assert counting.calls() == 4
    assert [(record.name, record.levelname, record.message) for record in caplog.records] == [
        ("vkops", "WARNING", f"the shader cache {str(entries)!r} is not used: {reason}")
    ]


@pytest.mark.posix("modes of files", tests_only=True)
def test_modes_of_folders_and_entries(shader, entries):
    before = os.umask(0)
    try:
        build(shader)
    finally:
        os.umask(before)
    (entry,) = entries.iterdir()
    modes = [oct(path.stat().st_mode & 0o777) for path in (entry, entries, entries.parent)]
    assert modes == ["0o600", "0o700", "0o700"]


def test_failures_are_not_cached(shader, counting, entries):
    for _ in range(2):
        with pytest.raises(shaders.compiler.ShaderCompileError):
            build(shader, defines={})
    assert counting.calls() == 2
    assert not entries.exists()


@pytest.mark.posix("/proc", tests_only=True)
@pytest.mark.parametrize("folder", ["/proc/vkops", "x.comp", "x.comp/below"])
def test_cache_folder_that_cannot_exist(shader, counting, monkeypatch, folder):
    """/proc has no new folders, and a file is no folder, for root as well."""
    monkeypatch.setenv("VKOPS_CACHE_DIR", str(shader.parent / folder))
    assert build(shader) == build(shader)
    assert counting.calls() == 2


@pytest.mark.parametrize(
    ("function", "error"), [("_make_private", errno.EROFS), ("os.replace", errno.ENOSPC)]
)
def test_read_only_and_full_cache_folders(shader, counting, entries, monkeypatch, function, error):
    def refuse(*_args, **_options):
        raise OSError(error, os.strerror(error))

    monkeypatch.setattr(f"vkops.system.files.{function}", refuse)
    assert build(shader) == build(shader)
    assert counting.calls() == 2
    assert not entries.exists() or list(entries.iterdir()) == []


@pytest.mark.parametrize(("home", "count"), [("home", 1), ("~", 0)], ids=["home", "no home"])
def test_default_folder(shader, monkeypatch, tmp_path, home, count):
    """A user without a home has none: the folder is not made below the current one."""
    monkeypatch.delenv("VKOPS_CACHE_DIR")
    monkeypatch.chdir(tmp_path)
    folder = Path(home) if home == "~" else tmp_path / home
    monkeypatch.setattr(platformdirs, "user_cache_path", lambda name: folder / name)
    build(shader)
    assert len(list((tmp_path / home).glob("vkops/spirv/*"))) == count
    assert (tmp_path / home).exists() == (count > 0)


def test_several_processes_at_once(shader, counting, entries):
    """All compile (the compiler waits until each has begun), and all get the whole module."""
    count = 4
    counting.use(before=f"while [ $(wc -l < {counting.log}) -lt {count} ]; do sleep 0.02; done")
    code = (
        "import sys; from pathlib import Path; from vkops import shaders\n"
        f"spirv = shaders.compile(Path({str(shader)!r}), defines={{'VALUE': 1}})\n"
        "sys.stdout.buffer.write(spirv)"
    )
    processes = [
        subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE)
        for _ in range(count)
    ]
    outputs = [process.communicate(timeout=60)[0] for process in processes]
    assert outputs == [build(shader, cache=False)] * count
    assert counting.calls() == count + 1
    assert len(list(entries.iterdir())) == 1
    assert build(shader) == outputs[0]
    assert counting.calls() == count + 1
