"""The SPIR-V cache: its keys, and several processes; test_system_disk_cache.py has its files."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from processes import ROOT, script

from vkops import shaders
from vkops.errors import ShaderCompileError
from vkops.shaders.compiler import validated

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
            found = shutil.which("glslangValidator")
            script(path, f'echo >> {self.log}\n{before}\nexec {found} "$@"')
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
    # It is found before the other.
    (tmp_path / "one/value.glsl").write_text("uint value() { return 3; }\n")
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


def test_failures_are_not_cached(shader, counting, entries):
    for _ in range(2):
        with pytest.raises(shaders.compiler.ShaderCompileError):
            build(shader, defines={})
    assert counting.calls() == 2
    assert not entries.exists()


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
    outputs = [process.communicate(timeout=300)[0] for process in processes]
    assert outputs == [build(shader, cache=False)] * count
    assert counting.calls() == count + 1
    assert len(list(entries.iterdir())) == 1
    assert build(shader) == outputs[0]
    assert counting.calls() == count + 1


class Shared(dict):
    """A dictionary from which another thread drops each entry right before this thread does."""

    def pop(self, key, *default):
        super().pop(key)
        return super().pop(key, *default)


def test_threads_that_drop_the_same_module_from_memory(monkeypatch):
    # Without a global lock, an OrderedDict is not guarded.
    assert type(shaders.compiler._recent) is dict
    text = "#version 450\nvoid main() {}"
    spirv = shaders.compile(text)
    monkeypatch.setattr(shaders.compiler, "_CACHE", SimpleNamespace(load=lambda key: spirv))
    monkeypatch.setattr(shaders.compiler, "_MAX_RECENT", 2)
    monkeypatch.setattr(shaders.compiler, "_recent", Shared())
    for number in range(5):
        assert shaders.compiler.read(f"{text} // {number}") == spirv
        assert len(shaders.compiler._recent) == min(number + 1, 2)


def test_the_file_of_spirv_val_is_in_the_key_of_valid_shaders(tmp_path, monkeypatch):
    """A newer one can refuse what an older one took, and take what that refused."""
    spirv, log = shaders.compile("#version 450\nvoid main() {}"), tmp_path / "calls"
    real = shutil.which("spirv-val")
    monkeypatch.setenv("PATH", os.pathsep.join([str(tmp_path), os.environ["PATH"]]))
    monkeypatch.setattr(shaders.tools.lavapipe, "programs", lambda: "")

    def install(line):
        script(tmp_path / "spirv-val", f'echo >> {log}\n{line}\nexec {real} "$@"')

    def calls():
        return len(log.read_text().splitlines()) if log.exists() else 0

    install("")
    for _ in range(2):
        assert validated(spirv, "x") == ""
        assert calls() == 1
    install("echo error: a fault that this version finds >&2; exit 1")
    with pytest.raises(ShaderCompileError, match="a fault that this version finds"):
        validated(spirv, "x")
    install("# and this one finds no more")
    count = calls()
    assert validated(spirv, "x") == ""
    assert calls() == count + 1
