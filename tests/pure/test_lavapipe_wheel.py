"""How wheels for other systems are made: compilers, libraries that are included, licences, tags."""

import re
import subprocess

import cross_wheel
import debian_packages
import lavapipe_wheel
import pytest
from processes import script
from refusals import fault

LISTED = "https://cloud.example/apt\nhttp://mirror.example/debian/\nhttp://mirror.example/debian-security/\n"


def listed(monkeypatch, text):
    for module in (debian_packages, lavapipe_wheel):
        monkeypatch.setattr(module, "run", lambda *command: text)


def test_the_mirror_is_that_of_the_system_unless_another_is_named(monkeypatch):
    monkeypatch.delenv("DEBIAN_MIRROR", raising=False)
    listed(monkeypatch, LISTED)
    assert debian_packages.mirror() == "http://mirror.example"
    monkeypatch.setenv("DEBIAN_MIRROR", "http://other.example/debian")
    assert debian_packages.mirror() == "http://other.example"


def test_a_system_without_a_mirror_of_debian(monkeypatch, message):
    monkeypatch.delenv("DEBIAN_MIRROR", raising=False)
    listed(monkeypatch, "http://archive.example/ubuntu/\n")
    message(fault(debian_packages.mirror, SystemExit))


@pytest.mark.parametrize(
    ("machine", "package"), [("own", "g++-12"), ("a_64", "g++-12-a-64-linux-gnu")]
)
def test_the_compiler_uses_only_files_of_debian_12(monkeypatch, tmp_path, machine, package):
    monkeypatch.setattr(debian_packages.platform, "machine", lambda: "own")
    sysroot = tmp_path / "root"
    programs = sysroot / "usr/bin"

    def unpack(work, host, suites, *packages):
        assert (work, host, suites) == (tmp_path, "own", ("/debian bookworm",))
        assert packages == (package,)
        programs.mkdir(parents=True)
        for name in ("g++-12", "ar"):
            program = programs / f"{machine}-linux-gnu-{name}"
            script(program, 'echo "$LD_LIBRARY_PATH" "${PATH%%:*}" "$@"')

    monkeypatch.setattr(debian_packages, "unpack", unpack)
    folder = debian_packages.unpack_compiler(tmp_path, machine)
    for name, option in (("g++", f" --sysroot={sysroot}"), ("ar", "")):
        printed = subprocess.check_output([folder / name, "-c", "a b"], text=True)
        assert printed == f"{sysroot}/usr/lib/own-linux-gnu {programs}{option} -c a b\n"


def test_only_the_c_library_and_those_of_the_compiler_are_left_to_the_system(monkeypatch, tmp_path):
    system = ["libc.so.6", "libm.so.6", "libstdc++.so.6", "libgcc_s.so.1", "ld-linux-x86-64.so.2"]
    listed(monkeypatch, "\n".join([*system, "libz.so.1", "libcap.so.2", "libmd.so.0"]))
    assert lavapipe_wheel.needed(tmp_path) == ["libz.so.1", "libcap.so.2", "libmd.so.0"]


def test_licences_with_those_that_they_name(tmp_path):
    root, target = tmp_path / "root", tmp_path / "licences"
    target.mkdir()
    for path, text in {
        "doc/mesa/copyright": "See /usr/share/common-licenses/GPL-2.\n",
        "doc/zlib1g/copyright": "Free.\n",
        "doc/other/copyright": "Not used.\n",
        "common-licenses/GPL-2": "The GPL.\n",
    }.items():
        file = root / "usr/share" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    lavapipe_wheel.copy_licences(root, {"mesa", "zlib1g"}, target)
    names = sorted(path.name for path in target.iterdir())
    assert names == ["common-GPL-2", "mesa", "zlib1g"]
    assert (target / "common-GPL-2").read_text() == "The GPL.\n"


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
