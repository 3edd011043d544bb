"""Names of files on Windows, by the rules of ``ntpath``; and folders of one's own without POSIX."""

import ntpath
import os
import posixpath
import re
from pathlib import PurePosixPath, PureWindowsPath

import pytest
from hypothesis import given
from hypothesis import strategies as st
from processes import ROOT, outcome

from vkops.errors import ModelError, ShaderCompileError
from vkops.models import folders as folders_module
from vkops.models.folders import Folders
from vkops.models.json_reader import parse
from vkops.shaders import sources
from vkops.system import files
from vkops.system.files import below, named_file

MODELS = PureWindowsPath("C:\\models")


INSIDE = {
    "x.bin": "x.bin", "data\\x.bin": "data\\x.bin", "data/x.bin": "data\\x.bin",
    "data\\..\\x.bin": "x.bin", ".\\x.bin": "x.bin", "C:\\models\\x.bin": "x.bin",
    "c:/MODELS/x.bin": "x.bin", "NUL_x.bin": "NUL_x.bin", "console.bin": "console.bin",
    "COM10": "COM10", ".hidden": ".hidden", "ä ö.bin": "ä ö.bin",
}  # fmt: skip


@pytest.mark.parametrize("name", INSIDE)
def test_names_inside_of_a_folder_on_windows(name):
    assert below(MODELS, name, paths=ntpath) == MODELS / INSIDE[name]


OUTSIDE = r"""
..\x.bin
../x.bin
data\..\..\x.bin
..\models2\x.bin
C:\x.bin
C:\models2\x.bin
D:\models\x.bin
D:x.bin
\x.bin
/x.bin
\\server\share\x.bin
//server/share/x.bin
\\.\NUL
\\.\PhysicalDrive0
\\.\pipe\x
\\?\C:\secret\x.bin
\\?\UNC\server\share\x.bin
"""


@pytest.mark.parametrize("name", OUTSIDE.split())
def test_names_outside_of_a_folder_on_windows(name):
    try:
        path = below(MODELS, name, paths=ntpath)
    except ValueError:  # a character of its prefix is none of a name
        path = None
    assert path is None


def test_a_server_is_not_asked_for_a_file(monkeypatch):
    asked, real = [], ntpath.realpath
    monkeypatch.setattr(ntpath, "realpath", lambda path: asked.append(path) or real(path))
    assert below(MODELS, r"\\server\share\x.bin", paths=ntpath) is None
    assert asked == [MODELS]


DEVICES = [
    "NUL", "nul", "CON", "prn", "AUX", "COM1", "LPT9", "COM¹", "CONIN$", "NUL.txt", "nul .bin",
]  # fmt: skip


@pytest.mark.parametrize(
    "name",
    [
        *DEVICES,
        *(f"data\\{name}" for name in DEVICES),
        *(f"{name}/x.bin" for name in DEVICES),
        *(f"C:\\models\\{name}" for name in DEVICES),
        "x.bin:stream", "x.bin::$DATA", "C:\\models\\x.bin:stream", "data:stream\\x.bin", "x.bin.",
        "x.bin ", "x?.bin", "x*.bin", "x|y", "<x>", 'x".bin', "x\n.bin", "x\0.bin",
    ],
)  # fmt: skip
def test_names_that_no_file_has_on_windows(name):
    with pytest.raises(ValueError, match="is reserved by Windows"):
        below(MODELS, name, paths=ntpath)


@pytest.mark.parametrize("name", ["NUL", "x.bin:stream", "a\\b", "C:\\x", "x.bin."])
def test_these_are_names_of_files_elsewhere(name):
    folder = PurePosixPath("/models")
    assert below(folder, name, paths=posixpath) == folder / name


@given(
    st.lists(
        st.sampled_from(["..", ".", "a", "b.bin", "C:", "D:", "", "NUL", "x:y", "\\\\?", "server"])
    ),
    st.sampled_from("\\/"),
)
def test_no_name_leads_out_of_a_folder_on_windows(parts, separator):
    name = separator.join(parts)
    try:
        path = below(MODELS, name, paths=ntpath)
    except ValueError:
        return
    if path is not None:
        rest = path.relative_to(MODELS)
        assert ".." not in rest.parts
        assert rest.drive == rest.root == ""
        assert not {"NUL", "x:y"} & {*rest.parts}


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("D:\\\\x.bin", "is outside of the folder"),
        ("..\\\\x.bin", "is outside of the folder"),
        ("\\\\\\\\server\\\\share\\\\x.bin", "is outside of the folder"),
        ("NUL", '"NUL" is not a file name'),
        ("x.bin:stream", '"x.bin:stream" is not a file name'),
    ],
)
def test_source_and_target_paths_of_models_on_windows(monkeypatch, name, message):
    """In a JSON model, by the class that all its names go through."""
    monkeypatch.setattr(
        folders_module, "below", lambda folder, name: below(folder, name, paths=ntpath)
    )
    path = Folders(MODELS, MODELS)
    node = parse(b'{"sourcePath": "%s"}' % name.encode(), "m.json").required("sourcePath")
    for use in (path.find, lambda node: path.inside(node, node.string(), MODELS)):
        with pytest.raises(ModelError, match=f"^m.json: sourcePath: .*{re.escape(message)}"):
            use(node)


@pytest.mark.parametrize("name", ["x.glsl:stream", "NUL", "x.glsl."])
def test_includes_of_shaders_on_windows(tmp_path, monkeypatch, name):
    """The compiler would open it: it is refused, not taken as missing."""
    monkeypatch.setattr(sources, "below", lambda root, name: below(root, name, paths=ntpath))
    for file in ("x.glsl", name):
        (tmp_path / file).write_text("", encoding="utf-8")
    for included in ("x.glsl", name):
        text = f'#version 450\n#include "{included}"\nvoid main() {{}}'
        (tmp_path / "m.comp").write_text(text, encoding="utf-8")
        if included == name:
            with pytest.raises(ShaderCompileError, match=rf"^include '{name}' is no file name$"):
                sources.digest(tmp_path / "m.comp", [tmp_path], (), [tmp_path])
        else:
            sources.digest(tmp_path / "m.comp", [tmp_path], (), [tmp_path])


@pytest.mark.parametrize(
    ("text", "name", "file"),
    [
        ("x.npy", "", "x.npy"),
        ("x:y.npy", "x", "y.npy"),
        ("input:0:y.npy", "input:0", "y.npy"),
        ("C:\\data\\x.npy", "", "C:\\data\\x.npy"),
        ("C:/data/x.npy", "", "C:/data/x.npy"),
        ("x:C:\\data\\x.npy", "x", "C:\\data\\x.npy"),
        ("input:0:C:/x.npy", "input:0", "C:/x.npy"),
        ("\\\\server\\share\\x.npy", "", "\\\\server\\share\\x.npy"),
        ("x:\\\\server\\share\\x.npy", "x", "\\\\server\\share\\x.npy"),
        ("", "", ""),
        ("x:", "x", ""),
    ],
)
def test_named_files_on_windows(text, name, file):
    assert named_file(text, paths=ntpath) == (name, file)


@given(st.text(alphabet="aC:\\/."))
def test_a_named_file_is_its_text_again(text):
    for paths in (ntpath, posixpath):
        name, file = named_file(text, paths=paths)
        assert text in (file, f"{name}:{file}")


# -- without POSIX ---------------------------------------------------------------------------------

PRIVATE = """
import errno, os, sys
from vkops.system.files import open_regular, private_folder
os.makedirs("home/own")
os.environ["HOME"] = os.environ["USERPROFILE"] = os.path.abspath("home")
for path in ("home/own", "home/link", "home/new", "elsewhere"):
    try:
        with private_folder(path, create=path == "home/new") as folder:
            folder.write("name", b"123")
            print(path, folder.read("name", 3), os.listdir(path))
            folder.read("name", 2)
    except OSError as error:
        print(path, errno.errorcode[error.errno], error.strerror)
for path, follow in (("home/own/name", False), ("home/file", True), ("home/file", False), ("home", True)):
    try:
        with open_regular(path, follow=follow) as stream:
            print(path, stream.read())
    except OSError as error:
        print(path, follow, errno.errorcode[error.errno])
"""


def test_files_and_folders_of_a_system_without_posix(tmp_path):
    for name in ("home", "elsewhere"):
        (tmp_path / name).mkdir()
    (tmp_path / "home" / "link").symlink_to("own")
    (tmp_path / "home" / "file").symlink_to("own/name")
    path = f"{ROOT / 'tests' / 'portable'}{os.pathsep}{ROOT}"
    variables = {"PYTHONPATH": path} if os.name == "posix" else {}
    _, printed, errors = outcome("-c", PRIVATE, cwd=tmp_path, **variables)
    assert errors == ""
    assert printed.splitlines() == [
        "home/own b'123' ['name']",
        "home/own EFBIG longer than 2 bytes",
        "home/link ENOTDIR Not a directory",
        "home/new b'123' ['name']",
        "home/new EFBIG longer than 2 bytes",
        "elsewhere EPERM it is not in your own folder",
        "home/own/name b'123'",
        "home/file b'123'",
        "home/file False ELOOP",
        "home True EISDIR",
    ]


def test_a_file_that_is_replaced_while_it_is_opened(tmp_path, monkeypatch):
    """Where links cannot be refused by a flag: the file opened is not the one that was looked at."""
    monkeypatch.setattr(files, "_NO_LINKS", 0)
    (tmp_path / "x").write_bytes(b"1")
    (tmp_path / "y").write_bytes(b"2")
    real = os.stat

    def stat(path, **options):
        opened = real(path, **options)
        (tmp_path / "x").unlink()
        (tmp_path / "x").symlink_to("y")
        return opened

    with monkeypatch.context() as patch:
        patch.setattr(files.os, "stat", stat)
        with pytest.raises(OSError, match="replaced while it was opened"):
            files.open_regular(tmp_path / "x", follow=False)
