"""scripts/cross_wheel.py: what it refuses, and the functions of Vulkan in the import library for Windows."""

import re

import cross_wheel
import pytest


@pytest.mark.parametrize(
    ("arguments", "found", "expected"),
    [
        (["kp", "win32", "dist"], True, cross_wheel.__doc__),
        (["kp", "win_amd64"], True, cross_wheel.__doc__),
        (["kp", "aarch64", "dist", "3.12"], True,
         "cross_wheel: Python 3.12 for aarch64: must be 3.11 3.13"),
        (["compilers", "win_amd64", "dist"], False,
         "cross_wheel: x86_64-w64-mingw32-g++-posix is missing: apt install g++-mingw-w64-x86-64-posix"),
    ],
)  # fmt: skip
def test_bad_arguments_and_missing_compilers_are_refused(monkeypatch, arguments, found, expected):
    monkeypatch.setattr(cross_wheel.shutil, "which", lambda name: found and name)
    with pytest.raises(SystemExit, match=f"^{re.escape(expected)}$"):
        cross_wheel.main(arguments)


def test_the_import_library_has_the_functions_of_the_core(tmp_path, monkeypatch):
    (tmp_path / "vulkan").mkdir()
    lines = [
        f"VKAPI_ATTR VkResult VKAPI_CALL {name}(\n    int x);"
        for name in ("vkCreateDevice", "vkQueueSubmit2", "vkQueueSubmit2KHR", "vkQueuePresentKHR")
    ]
    (tmp_path / "vulkan/vulkan_core.h").write_text("\n".join(lines))
    commands = []
    monkeypatch.setattr(cross_wheel, "run", lambda *command: commands.append(command))
    cross_wheel.write_import_library(tmp_path)
    exported = (tmp_path / "vulkan-1.def").read_text().split()
    assert exported == ["LIBRARY", "vulkan-1.dll", "EXPORTS", "vkCreateDevice", "vkQueueSubmit2"]
    assert [command[0] for command in commands] == ["x86_64-w64-mingw32-dlltool"]


def test_the_tag_is_that_of_the_newest_function_of_the_c_library(tmp_path, monkeypatch):
    root, tree = tmp_path / "root", tmp_path / "tree"
    (tree / "kp-0.9.0.dist-info").mkdir(parents=True)
    (tree / "kp.cpython-313-aarch64-linux-gnu.so").touch()
    for name in ("lib/aarch64-linux-gnu/libvulkan.so.1", "share/doc/libvulkan1/copyright"):
        (root / "usr" / name).parent.mkdir(parents=True)
        (root / "usr" / name).write_text(name)
    versions = "Name: GLIBC_2.17\nName: GLIBC_2.34\nName: GLIBC_2.4\n"
    monkeypatch.setattr(cross_wheel, "run", lambda *command: versions)
    assert cross_wheel.add_loader(tree, root) == "manylinux_2_34_aarch64"
    assert (tree / "kp.libs/libvulkan-vkops.so.1").exists()
    assert (tree / "kp-0.9.0.dist-info/LICENSE.vulkan-loader").exists()
