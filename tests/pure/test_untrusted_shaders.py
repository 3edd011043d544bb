"""Untrusted shaders: the files that they may include, and how much."""

import json
import os
from pathlib import Path

import pytest
from processes import cpu_time

from vkops import shaders
from vkops.dxdispatch import load_model
from vkops.errors import ModelError, ShaderCompileError
from vkops.shaders import sources

HEAD = "#version 450\n#extension GL_GOOGLE_include_directive : require\n"
BODY = "layout(std430, binding = 0) buffer Data { uint data[]; };\nvoid main() { data[0] = value(); }\n"
SECRET = "uint value() { return 1; }\n"
PLAIN = "an include must be a plain name in quotes, unless --allow_paths is given"


ANY_NAME = pytest.mark.posix("names that Windows' glslang cannot open", tests_only=True)


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """The folder of a model, and one beside it that it must not read; the current one is empty."""
    for name in ("model", "model/sub", "secret", "here"):
        (tmp_path / name).mkdir()
    for name in ("secret", "model", "model/sub"):
        (tmp_path / name / "x.glsl").write_text(SECRET)
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path


def fault(do, *arguments, **more):
    with pytest.raises((ModelError, ShaderCompileError)) as caught:
        do(*arguments, **more)
    (line,) = str(caught.value).splitlines()
    return line


def load(folders, directive, arguments=(), file="s.comp", **more):
    """Load a model with a shader that begins with a directive."""
    path = folders / "model" / file
    path.write_bytes(HEAD.encode() + os.fsencode(directive) + b"\n" + BODY.encode())
    resource = {"initialValuesDataType": "UINT32", "initialValues": {"value": 0, "valueCount": 1}}
    command = {"type": "dispatch", "dispatchable": "s", "bindings": {"Data": "A"}}
    shader = {"type": "glsl", "sourcePath": file, "compilerArgs": list(arguments)}
    model = {"resources": {"A": resource}, "dispatchables": {"s": shader}, "commands": [command]}
    (folders / "model" / "m.json").write_text(json.dumps(model))
    return load_model(folders / "model" / "m.json", **more)


def leaves(folders, name):
    """What is said of an include that leads out of the folder of the model."""
    folder = folders / "model"
    place = f"{folder / 'm.json'}: dispatchables.s.sourcePath: include {name!r}"
    option = "which a shader may leave only with --allow_paths"
    return f"{place} is outside of the folder {str(folder)!r}, {option}"


@pytest.mark.parametrize(
    "name",
    [
        "../secret/x.glsl",
        "sub/../../secret/x.glsl",
        "{absolute}/secret/x.glsl",
        "link.glsl",
        "dir/x.glsl",
        "inner.glsl",
        "/../../../../../../../../../../../../../../{absolute}/secret/x.glsl",
    ],
)
def test_includes_outside_of_the_model(folders, name):
    (folders / "model" / "link.glsl").symlink_to(folders / "secret" / "x.glsl")
    (folders / "model" / "dir").symlink_to(folders / "secret")
    (folders / "model" / "inner.glsl").write_text('#include "sub/../../secret/x.glsl"\n')
    parents = "../" * 20
    name = name.replace("{absolute}/", f"{parents}{folders}/".replace("//", "/"))
    leading = "sub/../../secret/x.glsl" if name == "inner.glsl" else name
    assert fault(load, folders, f'#include "{name}"') == leaves(folders, leading)
    assert load(folders, f'#include "{name}"', allow_paths=True)


@pytest.mark.parametrize(
    "directive",
    [
        '#include "..\\secret\\x.glsl"',  # glslang makes slashes of them
        '#include /**/ "../secret/x.glsl"',
        '#include /* "x.glsl" */ "\\x2e\\x2e/secret/x.glsl"',  # there it reads escapes
        '#include /*\n*/ "\\056\\056/secret/x.glsl"',
        '#inc\\\nlude "../secret/x.glsl"',
        '#include "../sec\\\nret/x.glsl"',
        '#inc\\\r\nlude "../secret/x.glsl"',
        '#include "../secret/x.glsl\0junk"',
        f'#include "../secret/x.glsl{"a" * 1100}"',
        f'#include "{"./" * 503}../secret/x.glslaaaaaaa"',  # cut where it is too long
        '#include "a>b/../../secret/x.glsl"',
        '#include "a\nb/../../secret/x.glsl"',
        '/* include x"y */ #include "../secret/x.glsl"',
        '# /* " */ include "../secret/x.glsl"',
        '#\t \tinclude\t"../secret/x.glsl"',
        '\xff#include"../secret/x.glsl"',
        "#include <../secret/x.glsl>",
        '#define N "../secret/x.glsl"\n#include N',
        '#define I include\n#I "../secret/x.glsl"',
        '#define CAT(a, b) a ## b\n#CAT(inc, lude) "../secret/x.glsl"',
        '#define H #\nH include "../secret/x.glsl"',
    ],
)
def test_no_spelling_reaches_a_file_outside(folders, directive, monkeypatch):
    """Whether it is refused before the compiler runs, or by it: nothing outside is read."""
    for name in ("a>b", "a\nb") if os.name == "posix" else ():
        (folders / "model" / name).mkdir()
    before = "if it is read, the shader compiles or the error quotes it"
    (folders / "secret" / "x.glsl").write_text(f"{SECRET}#error {before}\n")
    for again in range(2):
        said = fault(load, folders, directive)
        assert before not in said, again
    read = []
    regular = sources.open_regular
    monkeypatch.setattr(sources, "open_regular", lambda path: read.append(path) or regular(path))
    fault(load, folders, directive)
    assert not [path for path in read if "secret" in os.path.realpath(path)]


@pytest.mark.parametrize(
    "directive",
    ['#include "a\\b"', '#include "a>b"', '#include "a\nb"', '#include /**/ "x.glsl"', '#include "',
     '#include "a\tb"', '#include ""', f'#include "{"a" * 1001}"', '#include <a"b>', '// include "a\\b"'],
)  # fmt: skip
def test_strange_names_are_refused_at_once(folders, directive):
    assert fault(load, folders, directive).endswith(PLAIN)


@pytest.mark.parametrize(
    "directive",
    ['#include "x.glsl"', '#include "sub/x.glsl"', '#include "sub/../x.glsl"', '# include  "./x.glsl"',
     pytest.param('#include "größe 1.glsl"', marks=ANY_NAME), '#include "up.glsl"', '#include "../model/x.glsl"'],
)  # fmt: skip
def test_includes_within_the_model(folders, directive):
    (folders / "model" / "größe 1.glsl").write_text(SECRET)
    (folders / "model" / "up.glsl").write_text('#include "sub/down.glsl"\n')
    (folders / "model" / "sub" / "down.glsl").write_text('#include "../x.glsl"\n')
    assert load(folders, directive)
    if "../model" in directive:
        assert load(folders, directive.replace('"../', '"../../'), file="sub/s.comp")


def test_a_name_is_looked_up_in_the_folders_of_all_included_files(folders):
    """Which of these files is included depends on the compiler, so none may be outside."""
    (folders / "x.glsl").write_text(SECRET)
    (folders / "model" / "sub" / "y.glsl").write_text('#include "../x.glsl"\n')
    assert fault(load, folders, '#include "sub/y.glsl"') == leaves(folders, "../x.glsl")


def test_a_shader_in_a_subfolder_can_include_from_the_models_folder(folders):
    assert load(folders, '#include "../x.glsl"', file="sub/s.comp")
    name = "../../secret/x.glsl"
    assert fault(load, folders, f'#include "{name}"', file="sub/s.comp") == leaves(folders, name)


@pytest.mark.parametrize("folder", ["../secret", "{absolute}", "dir", "sub/../../secret"])
def test_include_folders_outside(folders, folder):
    (folders / "model" / "dir").symlink_to(folders / "secret")
    (folders / "model" / "x.glsl").unlink()
    folder = folder.replace("{absolute}", f"{folders}/secret")
    said = f'dispatchables.s.compilerArgs[0]: "{folder}" is outside of the folder "{folders}/model"'
    for arguments in (["-I", folder], [f"-I{folder}"]):
        text = fault(load, folders, '#include "x.glsl"', arguments)
        assert text.startswith(f"{folders}/model/m.json: {said}, which a model may leave only ")
        assert load(folders, '#include "x.glsl"', arguments, allow_paths=True)


def test_include_folders_inside(folders):
    (folders / "model" / "x.glsl").unlink()
    assert load(folders, '#include "x.glsl"', ["-I", "sub"])
    (folders / "model" / "sub" / "x.glsl").unlink()
    (folders / "model" / "sub" / "x.glsl").symlink_to(folders / "secret" / "x.glsl")
    for directive in ('#include "x.glsl"', "#include <x.glsl>"):
        assert fault(load, folders, directive, ["-I", "sub"]) == leaves(folders, "x.glsl")


@pytest.mark.posix("named pipes", tests_only=True)
def test_includes_of_pipes_and_folders(folders):
    os.mkfifo(folders / "model" / "pipe")
    for name in ("pipe", "sub"):
        said = fault(load, folders, f'#include "{name}"')
        assert said.endswith(f"include {name!r} is not a regular file")


def test_folders_that_look_like_options(folders, monkeypatch):
    monkeypatch.chdir(folders)
    folder = Path("-DX=1")
    folder.mkdir()
    (folder / "s.comp").write_text("#version 450\nvoid main() { X; }\n")
    assert "'X' : undeclared identifier" in fault(shaders.compile, folder / "s.comp")


# -- the library -----------------------------------------------------------------------------------


def test_files_and_text_of_the_library(folders):
    path = folders / "model" / "s.comp"
    path.write_text(f'{HEAD}#include "../secret/x.glsl"\n{BODY}')
    folder = str(folders / "model")
    said = f"include '../secret/x.glsl' is outside of the folder {folder!r}, which a shader"
    for cache in (True, False):
        assert fault(shaders.compile, path, cache=cache).startswith(said)
    assert fault(shaders.load, path).startswith(said)
    assert shaders.load(path, allow_paths=True).blocks
    assert shaders.load(path, root=folders).blocks
    text = f'{HEAD}#include "x.glsl"\n{BODY}'
    assert shaders.load(text, include_dirs=[folders / "secret"]).blocks
    path = Path(folders, "secret", "x.glsl").relative_to(folders.anchor).as_posix()
    text = f'{HEAD}#include "{"../" * 20}{path}"\n{BODY}'
    for more in ({"include_dirs": [folders / "model"]}, {}):
        assert "is outside of the folder" in fault(shaders.load, text, **more)
    assert shaders.load(text, allow_paths=True).blocks


# -- bounds ----------------------------------------------------------------------------------------


@pytest.mark.posix("named pipes", tests_only=True)
def test_sources_without_end(folders):
    for name, most in (("s.comp", sources.MAX_SOURCE_BYTES), ("s.spv", sources.MAX_SPIRV_BYTES)):
        with open(folders / name, "wb") as file:
            file.truncate(1 << 40)
        assert fault(shaders.load, folders / name) == f"{folders}/{name}: longer than {most} bytes"
    assert fault(shaders.load, "a" * 5_000_000) == (
        "got 5000000 bytes of text, must be 4194304 at most"
    )
    os.mkfifo(folders / "pipe.comp")
    assert fault(shaders.load, folders / "pipe.comp").endswith("not a regular file")


def test_includes_without_end(folders):
    with open(folders / "model" / "zeros.glsl", "wb") as file:
        file.truncate(1 << 40)
    said = fault(load, folders, '#include "zeros.glsl"')
    assert said.endswith("more than 4194304 bytes are included")


def test_a_chain_of_includes_longer_than_the_stack(folders):
    """glslang compiles it or fails with an error; vkops does not overflow its stack."""
    for number in range(3000):
        text = f'#include "{number + 1}.glsl"\n' if number < 2999 else SECRET
        (folders / "model" / f"{number}.glsl").write_text(text)
    text = f'{HEAD}#include "0.glsl"\n'
    assert sources.digest(text, [folders / "model"], (), [folders / "model"])
    (folders / "model" / "2999.glsl").write_text('#include "../secret/x.glsl"\n')
    assert fault(load, folders, '#include "0.glsl"') == leaves(folders, "../secret/x.glsl")


def test_lookups_without_end(folders, monkeypatch):
    monkeypatch.setattr(sources, "MAX_LOOKUPS", 3)
    assert load(folders, '#include "x.glsl"\n// include "a" include "b"')
    said = fault(load, folders, '#include "x.glsl"\n// include "a" include "b" include "c"')
    assert said.endswith("included files need more than 3 lookups")


@pytest.mark.parametrize(
    "text", ['include "', "include/*", "include <", "include/**/", "#include \\\n"]
)
def test_texts_that_are_slow_to_search(text):
    long = text * (1_000_000 // len(text))
    with cpu_time(below=30):
        assert sources.digest(long, [Path()], ())
        if "\\" not in text:
            assert len(fault(sources.digest, long, [Path()], (), [Path("/nowhere")])) < 300
