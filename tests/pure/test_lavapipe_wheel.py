"""scripts/lavapipe_wheel.py: where packages are from, which libraries are included, and licences."""

import subprocess

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
