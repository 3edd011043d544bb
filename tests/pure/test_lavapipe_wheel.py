"""How wheels for other systems are made: compilers, libraries that are included, licences, tags."""

import re
import subprocess
import zipfile
from pathlib import Path

import cross_wheel
import debian_packages
import lavapipe_wheel
import pytest
from processes import script
from refusals import fault

LISTED = "https://cloud.example/apt\nhttp://mirror.example/debian/\nhttp://mirror.example/debian-security/\n"


@pytest.fixture
def replace_programs(monkeypatch):
    """Return a function that replaces the one with which scripts run programs: ``run``."""

    def replace(run):
        for module in (cross_wheel, debian_packages, lavapipe_wheel):
            monkeypatch.setattr(module, "run", run)

    return replace


def test_the_mirror_is_that_of_the_system_unless_another_is_named(monkeypatch, replace_programs):
    monkeypatch.delenv("DEBIAN_MIRROR", raising=False)
    replace_programs(lambda *_: LISTED)
    assert debian_packages.mirror() == "http://mirror.example"
    monkeypatch.setenv("DEBIAN_MIRROR", "http://other.example/debian")
    assert debian_packages.mirror() == "http://other.example"


def test_a_system_without_a_mirror_of_debian(monkeypatch, replace_programs, message):
    monkeypatch.delenv("DEBIAN_MIRROR", raising=False)
    replace_programs(lambda *_: "http://archive.example/ubuntu/\n")
    message(fault(debian_packages.mirror, SystemExit))


def test_the_programs_are_started_with_the_c_library_that_they_are_built_for(
    replace_programs, tmp_path
):
    root, package = tmp_path / "root/usr", tmp_path / "package with a space"
    for folder in (root / "bin", root / "lib/own-linux-gnu", package / "bin", package / "programs"):
        folder.mkdir(parents=True)
    libraries = [root / "lib/own-linux-gnu" / name for name in ("libc.so.6", "ld-linux-own.so.2")]
    sources = [*(root / "bin" / name for name in debian_packages.PROGRAMS), *libraries]
    for source in sources:
        script(source, 'for one; do echo "$one"; done')
    needs = {"spirv-opt": "libc.so.6\n", "libc.so.6": "ld-linux-own.so.2\n"}
    replace_programs(lambda *command: needs.get(command[-1].name, ""))
    assert lavapipe_wheel.copy_programs(root.parent, package, "own") == sources
    for name in debian_packages.PROGRAMS:
        printed = subprocess.check_output([package / "bin" / name, "-c", "a b"], text=True)
        folder = f"{package}/bin/../programs"
        assert printed.splitlines() == ["--library-path", folder, f"{folder}/{name}", "-c", "a b"]


def test_a_missing_compiler_is_named(monkeypatch, tmp_path):
    monkeypatch.setattr(lavapipe_wheel.shutil, "which", lambda name: None)
    monkeypatch.setattr(lavapipe_wheel.platform, "machine", lambda: "own")
    for machine, package in (("own", "gcc"), ("other", "gcc-other-linux-gnu")):
        with pytest.raises(SystemExit) as error:
            lavapipe_wheel.build(tmp_path, tmp_path, machine)
        missing = f"{machine}-linux-gnu-gcc is missing: apt install {package}"
        assert str(error.value) == f"lavapipe_wheel: {missing}"


def test_only_the_c_library_and_those_of_the_compiler_are_left_to_the_system(
    replace_programs, tmp_path
):
    system = ["libc.so.6", "libm.so.6", "libstdc++.so.6", "libgcc_s.so.1", "ld-linux-x86-64.so.2"]
    replace_programs(lambda *_: "\n".join([*system, "libz.so.1", "libcap.so.2", "libmd.so.0"]))
    assert lavapipe_wheel.needed(tmp_path) == ["libz.so.1", "libcap.so.2", "libmd.so.0"]


@pytest.fixture
def mirror(monkeypatch, replace_programs):
    """Debian with small files: each release has the Mesa and the C library of a test."""
    releases = {"bookworm": ("25.0.7-2~bpo12+1", 36), "trixie": ("26.1.6-1~bpo13+1", 38)}
    asked = []

    def unpack(work, machine, suites, *packages, preferences=""):
        asked.append((suites, packages, preferences))
        release = suites[0].removeprefix("/debian ")
        mesa, glibc = releases[release]
        versions = {"mesa-vulkan-drivers": mesa, "base-files": "1"}
        for folder in ("lib/own-linux-gnu", "bin", "share/vulkan/icd.d", "share/common-licenses"):
            (work / "root/usr" / folder).mkdir(parents=True)
        (work / "root/usr/lib/own-linux-gnu" / lavapipe_wheel.DRIVER).write_text(f"GLIBC_2.{glibc}")
        (work / "root/usr/share/vulkan/icd.d/lvp_icd.json").write_text('{"ICD": {}}')
        for name in debian_packages.PROGRAMS:
            (work / "root/usr/bin" / name).touch()
        archives = []
        for package in packages:
            about = work / "root/usr/share/doc" / package / "copyright"
            about.parent.mkdir(parents=True)
            about.write_text(f"Free: {package}")
            archives.append(work / f"{package}_{versions.get(package, '15.1')}_own.deb")
            archives[-1].touch()
        return archives

    def run(*command):
        match command[0], command[-1].name if hasattr(command[-1], "name") else "":
            case "readelf", name:
                return "".join(file.read_text() for file in command[2:])
            case "dpkg-deb", name:
                package = name.partition("_")[0]
                files = {"mesa-vulkan-drivers": [f"lib/own-linux-gnu/{lavapipe_wheel.DRIVER}"],
                         "glslang-tools": [f"bin/{each}" for each in debian_packages.PROGRAMS]}  # fmt: skip
                return "".join(
                    f"- root/root 1 day hour ./usr/{each}\n" for each in files.get(package, ())
                )
        return ""

    def pack(tree, target):
        (info,) = tree.glob("*.dist-info")
        (tag,) = re.findall(r"Tag: (.*)", (info / "WHEEL").read_text())
        wheel = target / f"{info.stem}-{tag}.whl"
        with zipfile.ZipFile(wheel, "w") as file:
            for path in filter(Path.is_file, tree.rglob("*")):
                file.write(path, path.relative_to(tree))
        return wheel

    monkeypatch.setattr(lavapipe_wheel, "unpack", unpack)
    monkeypatch.setattr(lavapipe_wheel, "pack_wheel", pack)
    monkeypatch.setattr(lavapipe_wheel.shutil, "which", lambda name: name)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")  # which it changes
    replace_programs(run)
    return asked


def test_each_wheel_has_the_mesa_of_a_release_and_the_tag_of_its_c_library(mirror, tmp_path):
    """So pip takes the newest Mesa that the C library of a system can load."""
    work, dist = tmp_path / "work", tmp_path / "dist"
    dist.mkdir()
    wheels = lavapipe_wheel.build(work, dist, "own")
    names = ["25.0.7-py3-none-manylinux_2_36_own", "26.1.6-py3-none-manylinux_2_38_own"]
    assert [wheel.stem.removeprefix("vkops_lavapipe-") for wheel in wheels] == names
    for wheel, glibc in zip(wheels, (36, 38), strict=True):
        with zipfile.ZipFile(wheel) as file:
            metadata, about = (
                next(file.read(name).decode() for name in file.namelist() if name.endswith(end))
                for end in ("METADATA", "__about__.py")
            )
        assert f"GNU C library 2.{glibc} or newer" in metadata
        assert {"glslang-tools", "mesa-vulkan-drivers"} == {
            *re.findall(r"License-File: (.*)", metadata)
        }
        assert f'MESA = "{wheel.name[15:21]}-' in about
    (programs, *_), *drivers = mirror
    assert programs == lavapipe_wheel.PROGRAM_SUITES
    for release, (suites, packages, preferences) in zip(
        ("bookworm", "trixie"), drivers, strict=True
    ):
        assert all(release in suite for suite in suites)
        assert "mesa-vulkan-drivers" in packages
        assert f"Pin: release n={release}-backports\n" in preferences


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


def test_the_import_library_has_the_functions_of_the_core(tmp_path, replace_programs):
    (tmp_path / "vulkan").mkdir()
    lines = [
        f"VKAPI_ATTR VkResult VKAPI_CALL {name}(\n    int x);"
        for name in ("vkCreateDevice", "vkQueueSubmit2", "vkQueueSubmit2KHR", "vkQueuePresentKHR")
    ]
    (tmp_path / "vulkan/vulkan_core.h").write_text("\n".join(lines))
    commands = []
    replace_programs(lambda *command: commands.append(command))
    cross_wheel.write_import_library(tmp_path)
    exported = (tmp_path / "vulkan-1.def").read_text().split()
    assert exported == ["LIBRARY", "vulkan-1.dll", "EXPORTS", "vkCreateDevice", "vkQueueSubmit2"]
    assert [command[0] for command in commands] == ["x86_64-w64-mingw32-dlltool"]


def test_the_tag_is_that_of_the_newest_function_of_the_c_library(tmp_path, replace_programs):
    root, tree = tmp_path / "root", tmp_path / "tree"
    (tree / "kp-0.9.0.dist-info").mkdir(parents=True)
    (tree / "kp.cpython-313-aarch64-linux-gnu.so").touch()
    for name in ("lib/aarch64-linux-gnu/libvulkan.so.1", "share/doc/libvulkan1/copyright"):
        (root / "usr" / name).parent.mkdir(parents=True)
        (root / "usr" / name).write_text(name)
    versions = "Name: GLIBC_2.17\nName: GLIBC_2.34\nName: GLIBC_2.4\n"
    replace_programs(lambda *_: versions)
    assert cross_wheel.add_loader(tree, root) == "manylinux_2_34_aarch64"
    assert (tree / "kp.libs/libvulkan-vkops.so.1").exists()
    assert (tree / "kp-0.9.0.dist-info/LICENSE.vulkan-loader").exists()


@pytest.fixture
def build(monkeypatch, replace_programs, tmp_path):
    """Return a function that builds imitated compilers, and the targets that were built.

    The function takes what happens instead of building the last target.
    """
    targets = []

    def run(*command, cwd=None):
        if "source" in command:
            for name in cross_wheel.SOURCES:
                (cwd / f"{name}_1.2+3.orig.tar.gz").write_text(name)
        elif command[0] == "tar":
            for name in ("LICENSE", "LICENSE.txt"):
                (command[-1] / name).write_text("Free.\n")
        return ""

    def built(last):
        def make(*command, **_):
            made, target = command[2], command[-1]
            targets.append(target)
            (made / "result").mkdir(parents=True, exist_ok=True)
            (made / "result" / f"{target.removesuffix('-standalone')}.exe").touch()
            if target == debian_packages.PROGRAMS[-1]:
                last()
            return subprocess.CompletedProcess(command, 0)

        monkeypatch.setattr(cross_wheel.kp_wheel, "run", make)
        work = tmp_path / f"work{len(targets)}"
        work.mkdir()
        return cross_wheel.make_compilers("win_amd64", work)

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    replace_programs(run)
    monkeypatch.setattr(cross_wheel, "apt_options", lambda *_, **__: ())
    monkeypatch.setattr(cross_wheel, "compiler", lambda platform: "g++")
    return built, targets


@pytest.mark.posix("locks of files", tests_only=True)
def test_an_interrupted_build_goes_on_and_a_finished_one_is_kept(build, tmp_path, capsys):
    built, targets = build

    def interrupt():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        built(interrupt)
    (made,) = tmp_path.glob("cache/vkops/wheels/compilers-win_amd64-*/made")
    (made / "object").touch()
    count = len(targets)
    assert built(lambda: (made / "object").stat()) == (made.parent / "result", "1.2")
    assert len(targets) == 2 * count
    expected = [f"{name}.exe" for name in debian_packages.PROGRAMS]
    expected += [f"LICENSE.{name}" for name in cross_wheel.SOURCES]
    assert sorted(path.name for path in (made.parent / "result").iterdir()) == sorted(expected)
    assert sorted(path.name for path in made.parent.iterdir()) == ["lock", "result"]
    built(interrupt)
    assert len(targets) == 2 * count
    assert "building glslang and SPIRV-Tools, 20 minutes of a core\n" in capsys.readouterr().err


@pytest.mark.posix("locks of files", tests_only=True)
def test_what_a_killed_build_has_left_is_not_used(build, tmp_path):
    """Make was killed, too, and has not removed the files that it had only begun."""
    built, _ = build

    def interrupt():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        built(interrupt)
    (made,) = tmp_path.glob("cache/vkops/wheels/compilers-win_amd64-*/made")
    (made / "object").touch()
    (made.parent / "unfinished").touch()
    with pytest.raises(FileNotFoundError):
        built(lambda: (made / "object").stat())


def test_a_wheel_is_packed_whole_or_not_at_all(monkeypatch, replace_programs, tmp_path):
    tree, target = tmp_path / "tree", tmp_path / "dist"
    target.mkdir()

    def pack(*command):
        (command[-1] / "a-1-py3-none-any.whl").write_text("whole")

    replace_programs(pack)
    wheel = debian_packages.pack_wheel(tree, target)
    assert (wheel.parent, wheel.read_text()) == (target, "whole")

    def interrupted(_, copy):
        copy.write_text("a part")
        raise KeyboardInterrupt

    monkeypatch.setattr(debian_packages.shutil, "copy", interrupted)
    wheel.unlink()
    with pytest.raises(KeyboardInterrupt):
        debian_packages.pack_wheel(tmp_path / "other", target)
    assert list(target.iterdir()) == []
