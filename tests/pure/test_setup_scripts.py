"""scripts/setup, scripts/wheels and scripts/kp_wheel.py: what they refuse. Nothing is installed."""

import importlib
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version
from processes import IS_FREE_THREADED, ROOT, finished, wait_for_end
from refusals import fault

from vkops.gpu.adapters import kompute

pytestmark = pytest.mark.posix("bash", tests_only=True)


def program(folder, name, body):
    path = folder / name
    path.write_text(f"#!/bin/bash\n{body}\n")
    path.chmod(0o755)


def test_no_script_names_a_host():
    """Where packages come from is left to the settings of apt, pip and the other tools."""
    scripts = [path for path in (ROOT / "scripts").iterdir() if path.is_file()]
    for path in (*scripts, ROOT / "docker/Dockerfile", ROOT / ".ci/run"):
        # The name of SVG is no host.
        assert not re.findall(r"\w+://(?!www\.w3\.org/2000/svg)\S+", path.read_text()), path


def refused(script, *options):
    """What a script says that refuses its options, without its own name, and prints nothing else."""
    status, out, said = finished(ROOT / "scripts" / script, *options)
    assert (status, out) == (1, "")
    return said.removeprefix(f"{script}: ").removesuffix("\n")


SYSTEMS = "must be windows or arm64; see scripts/emulate --help"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("setup --python 3.99", "no interpreter python3.99; name another with --python"),
        ("setup --python false", "false does not run; name another interpreter with --python"),
        ("setup --numpy 2,1", "--numpy wants a series such as 1.26 or 2, not 2,1"),
        ("setup --numpy", "--numpy needs a value"),
        ("setup --frobnicate", "unknown option --frobnicate; see scripts/setup --help"),
        ("wheels --python", "--python needs a value"),
        ("wheels --python python0", "no interpreter python0"),
        ("wheels --only numpy", "--only: got numpy, must be vkops kp lavapipe compilers"),
        ("wheels --platform win32", "--platform: got win32, must be win_amd64 aarch64"),
        ("wheels --frobnicate", "unknown option --frobnicate; see scripts/wheels --help"),
        ("emulate macos", f"got macos, {SYSTEMS}"),
        ("emulate", f"got nothing, {SYSTEMS}"),
    ],
)
def test_bad_options_are_refused(call, message):
    assert refused(*call.split()) == message


@pytest.mark.parametrize("version", ["3.9", "3.15", "3.12t", "3.15t"])
def test_unsupported_interpreters_are_refused(tmp_path, version):
    """A program that stands for an interpreter answers the questions about its path and version."""
    python, text = tmp_path / "other", f"Python {version}"
    program(tmp_path, "other", f"case $2 in *realpath*) echo {python} ;; *) echo {version} ;; esac")
    assert refused("setup", "--python", python) == (
        f"{python} is Python {version}; vkops needs 3.10 to 3.14: name one with --python"
    )
    program(tmp_path, "other", f'case $* in "-c ") ;; -VV) echo "{text}" ;; *) exit 1 ;; esac')
    assert refused("wheels", "--python", python) == (f"{text}: wheels are for CPython 3.10 to 3.14")


INTERPRETER = r"""
case $* in
  *realpath*) readlink -f "$0" ;;
  *version_info*) echo 3.12 ;;
  *kp_wheel.py*) echo kp.whl ;;
  *"-m venv"*) mkdir -p .venv/bin && cp "$0" .venv/bin/python ;;
  *"-m pip"*) echo "${PIP_CONSTRAINT-}, ${PIP_BUILD_CONSTRAINT-}: $*" >>pip.log ;;
esac"""


@pytest.fixture
def setup(tmp_path, monkeypatch):
    """Return a function that runs a copy of scripts/setup, and returns what it has called pip with."""
    monkeypatch.delenv("PIP_CONSTRAINT", raising=False)
    (tmp_path / "scripts").mkdir()
    for name in ("scripts/setup", "scripts/lock.txt", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "dist").mkdir()  # they take the place of what the system lacks
    for name in ("kp-1-py3-none-any.whl", "vkops_lavapipe-1-py3-none-any.whl"):
        (tmp_path / "dist" / name).touch()
    program(tmp_path, "python3", INTERPRETER)
    log = tmp_path / "pip.log"

    def run(*options, screen=None):
        log.write_text("")
        env = {**os.environ, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
        command = [tmp_path / "scripts/setup", "--no-system", *options]
        if screen:  # a terminal's
            command = ["script", "-qefc", " ".join(map(str, command)), screen]
        status, _, errors = finished(*command, env=env)
        assert status == 0, errors
        assert "\r" not in errors
        return log.read_text().replace(f"{tmp_path}/", "")

    return run


def test_the_lock_chooses_the_versions_unless_the_newest_are_asked_for(setup):
    locked, newest = "scripts/lock.txt, scripts/lock.txt: ", ", : "
    assert setup().startswith(locked)
    assert setup() == ""  # nothing has changed
    first = setup("--newest")
    assert first.startswith(newest)
    assert "--upgrade --upgrade-strategy eager" in first
    assert setup() == ""  # as scripts/test calls it
    assert setup("--newest") == first  # there may be newer ones
    assert setup("--numpy", "1.26") == first.replace("--editable", "numpy==1.26.* --editable")


def test_the_lock_does_not_apply_where_another_numpy_is_asked_for(setup, tmp_path):
    assert setup("--numpy", "1.26").startswith(", : ")
    shutil.rmtree(tmp_path / ".venv")
    assert setup().startswith("scripts/lock.txt, ")
    with (tmp_path / "scripts/lock.txt").open("a") as lock:
        lock.write("new==1\n")
    assert setup().startswith("scripts/lock.txt, ")


def test_a_terminal_shows_what_takes_long(setup, tmp_path):
    """It shows the last line, which pip waits for here, and the seconds."""
    screen = tmp_path / "screen"
    wait = f'echo busy; until grep -q "[0-9] s  busy" {screen}; do sleep 0.1; done'
    program(tmp_path, "python3", INTERPRETER.replace('*"-m pip"*) ', f'*"-m pip"*) {wait}; '))
    setup(screen=screen)
    assert re.search(r"  \d+ s  busy.*\x1b\[K", screen.read_text(), re.DOTALL)


SYSTEM_PROGRAM = r"""
case ${0##*/} in
  sed) [ "${*: -1}" = /etc/os-release ] && echo SUITE || exec PATH_OF_SED "$@" ;;
  id) echo 1000 ;;
  apt-get) echo http://mirror.example/debian/ ;;
  sudo) case $1 in -n) ;; tee) echo "list: $(cat)" ;; *) echo "$*" ;; esac >>CALLS ;;
esac"""


@pytest.mark.parametrize("suite", ["bookworm", "trixie", "forky"])
def test_newer_drivers_come_from_the_backports_of_the_system(setup, tmp_path, suite):
    """Programs that stand for those of another system, where no driver is installed, note their calls."""
    calls = tmp_path / "calls"
    body = SYSTEM_PROGRAM.replace("SUITE", suite).replace("CALLS", str(calls))
    for name in ("sed", "id", "dpkg-query", "apt-get", "sudo", "renderdoccmd"):
        program(tmp_path, name, body.replace("PATH_OF_SED", shutil.which("sed")))
    calls.touch()
    setup("--mesa-backports")
    if suite == "forky":  # has newer ones itself
        assert calls.read_text() == ""
        return
    update, listed, again, install = calls.read_text().splitlines()
    assert update == again == "apt-get update"
    keys = "/usr/share/keyrings/debian-archive-keyring.gpg"
    source = f"http://mirror.example/debian/ {suite}-backports main"
    assert listed == f"list: deb [signed-by={keys}] {source}"
    packages = f"-t {suite}-backports mesa-vulkan-drivers"
    assert f"apt-get install -y --no-install-recommends {packages}" in install


def test_the_readme_names_the_packages_that_shaders_need():
    sources = [path.read_text() for path in (ROOT / "vkops/shaders").glob("*.py")]
    packages = set(re.findall(r'"([a-z]+-tools)"', "".join(sources)))
    (named,) = re.findall(r"shaders need `apt install (.*?)`", (ROOT / "README.md").read_text())
    assert set(named.split()) == packages


def ended_by(number, command, tmp_path, **variables):
    """End a program with a signal once it has started another; return its status.

    It must leave no temporary file, and what it has started must end with it.
    """
    temporary, started = tmp_path / "temporary", tmp_path / "started"
    temporary.mkdir()
    env = {**os.environ, "TMPDIR": str(temporary), "STARTED": str(started), **variables}
    process = subprocess.Popen([*map(str, command)], env=env, stderr=subprocess.PIPE)
    while not started.exists() or not started.read_text():
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.01)
    child = int(started.read_text())
    assert list(temporary.iterdir())
    process.send_signal(number)
    with process:
        try:
            status = process.wait(60)
        finally:
            process.kill()
    assert list(temporary.iterdir()) == []
    wait_for_end(child)
    return status


SLEEPER = 'sleep 600 & echo $! >"$STARTED"; wait'
ENDED = f"""
import sys, tempfile
sys.path.insert(0, {str(ROOT / "scripts")!r})
import kp_wheel
kp_wheel.clean_up_when_ended()
with tempfile.TemporaryDirectory():
    kp_wheel.run("sh", "-c", {SLEEPER!r})
"""


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, -signal.SIGINT), (signal.SIGTERM, 143)]
)
def test_a_signal_ends_the_programs_of_a_script_and_removes_its_files(tmp_path, number, status):
    assert ended_by(number, [sys.executable, "-c", ENDED], tmp_path) == status


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_the_programs_of_wheels_and_removes_its_files(tmp_path, number, status):
    program(tmp_path, "pip", 'echo $$ >"$STARTED"; exec sleep 600')
    venv = f'mkdir -p "$4/bin"; cp {tmp_path}/pip "$4/bin/pip"'
    program(tmp_path, "python3.99", f'case $* in "-m venv"*) {venv} ;; esac')
    (tmp_path / "scripts").mkdir()
    shutil.copy(ROOT / "scripts/wheels", tmp_path / "scripts")
    command = [tmp_path / "scripts/wheels", "--python", tmp_path / "python3.99"]
    assert ended_by(number, command, tmp_path) == status


@pytest.fixture
def kp_wheel(tmp_path, monkeypatch):
    """Return scripts/kp_wheel.py as a module, its cache in ``tmp_path``, with no package index."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", "")
    monkeypatch.delitem(sys.modules, "kp_wheel", raising=False)
    module = importlib.import_module("kp_wheel")
    module.RELEASED = tmp_path / "dist"
    return module


@pytest.mark.slow  # makes virtual environments
def test_a_failed_wheel_keeps_its_log_and_caches_nothing(kp_wheel, capsys):
    log = kp_wheel.cache_folder() / "build.log"
    assert kp_wheel.main([]) == 1
    told, _, tail = capsys.readouterr().err.partition("\n")
    assert told == "kp_wheel: building kp==0.9.0, about a minute"
    assert "No matching distribution found for pybind11" in tail
    failed = "installing the build tools with pip failed; the whole log"
    assert tail.endswith(f"\nkp_wheel: {failed}: {log}\n")
    assert tail.startswith(log.read_text().splitlines()[-kp_wheel.LOG_TAIL :][0])
    assert sorted(path.name for path in log.parent.iterdir()) == ["build.log", "lock"]


def test_a_cached_wheel_is_found_and_never_built_again(kp_wheel, capsys):
    assert kp_wheel.main(["--folder"]) == 0
    wheel = Path(capsys.readouterr().out.rstrip("\n"), "kp-0.9.0-any.whl")
    wheel.parent.mkdir(parents=True)
    wheel.touch()
    assert kp_wheel.main([]) == 0
    assert capsys.readouterr().out == f"{wheel}\n"


@pytest.mark.posix("modes of folders")
def test_a_wheel_that_others_could_have_put_there_is_not_used(kp_wheel, capsys):
    folder = kp_wheel.cache_folder()
    folder.mkdir(parents=True)
    (folder / "kp-0.9.0-any.whl").touch()
    folder.chmod(0o777)
    assert kp_wheel.main([]) == 1
    way = "other users may write to it; remove it, or set XDG_CACHE_HOME to a folder of your own"
    said = f"kp_wheel: the wheel cache {str(folder)!r} is not used: {way}\n"
    assert capsys.readouterr() == ("", said)


def test_each_python_and_recipe_has_its_own_wheel(kp_wheel, monkeypatch):
    folders = {kp_wheel.cache_folder()}
    monkeypatch.setitem(kp_wheel.SWITCHES, "KOMPUTE_OPT_INSTALL", "ON")
    folders.add(kp_wheel.cache_folder())
    monkeypatch.setattr(sysconfig, "get_config_var", lambda _: "cpython-312-another")
    folders.add(kp_wheel.cache_folder())
    monkeypatch.setattr(platform, "freedesktop_os_release", lambda: {"ID": "another"})
    folders.add(kp_wheel.cache_folder())
    assert len(folders) == 4


def test_the_version_is_preferred_to_the_source_and_meets_the_requirement(kp_wheel, monkeypatch):
    version = Version(kp_wheel.version())
    assert str(version) == kp_wheel.version()  # in its normal form, as pip writes file names
    assert version in Requirement(kp_wheel.KP).specifier
    assert version > Version("0.9.0")
    monkeypatch.setattr(kp_wheel, "BUILD_REQUIREMENTS", ("pybind11==1",))
    interface = kompute.INTERFACE
    assert Version(kp_wheel.version()).local.rpartition(".")[0] == f"vkops.{interface}"
    assert Version(kp_wheel.version()) != version


def test_the_metadata_are_changed_only_where_they_are_as_expected(kp_wheel, tmp_path):
    folder = tmp_path / "tree" / "kp-0.9.0.dist-info"
    folder.mkdir(parents=True)
    text = "Name: kp\nVersion: 0.9.0\nRequires-Dist: numpy<2.0.0\n"
    (folder / "METADATA").write_text(text)
    kp_wheel.change_metadata(folder.parent)
    (renamed,) = folder.parent.iterdir()
    assert renamed.name == f"kp-{kp_wheel.version()}.dist-info"
    changed = f"Name: kp\nVersion: {kp_wheel.version()}\nRequires-Dist: numpy>=1.26\n"
    assert (renamed / "METADATA").read_text() == changed
    said = fault(lambda: kp_wheel.change_metadata(folder.parent), kp_wheel.BuildError)
    assert said == f"kp_wheel: 0 fields Version in {renamed / 'METADATA'}, expected one"


@pytest.mark.parametrize(
    ("platforms", "expected"),
    [
        ("manylinux_2_27_x86_64.manylinux_2_28_x86_64", True), ("manylinux_2_36_x86_64", True),
        ("manylinux_2_37_x86_64", False), ("manylinux_3_0_x86_64", False),
        ("manylinux_2_28_aarch64", False), ("musllinux_1_2_x86_64", False), ("linux_x86_64", False),
    ],
)  # fmt: skip
def test_a_wheel_is_loadable_on_its_processor_from_its_glibc_on(
    kp_wheel, monkeypatch, platforms, expected
):
    monkeypatch.setattr(platform, "libc_ver", lambda: ("glibc", "2.36"))
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    assert kp_wheel.loadable(platforms) is expected
    monkeypatch.setattr(platform, "libc_ver", lambda: ("", ""))  # musl
    assert not kp_wheel.loadable(platforms)


def test_a_released_wheel_of_this_version_and_interpreter_is_used(kp_wheel, monkeypatch, capsys):
    monkeypatch.setattr(kp_wheel, "loadable", lambda platforms: platforms == "manylinux_2_28")
    assert kp_wheel.main(["--find"]) == 0
    assert capsys.readouterr().out == "\n"
    tag = "cp{}{}".format(*sys.version_info[:2])
    abi, other = (f"{tag}t", tag) if IS_FREE_THREADED else (tag, f"{tag}t")
    kp_wheel.RELEASED.mkdir()
    for name in (
        f"kp-0.9.0+vkops.0.r0-{tag}-{abi}-manylinux_2_28.whl",
        f"kp-{kp_wheel.version()}-cp39-cp39-manylinux_2_28.whl",
        f"kp-{kp_wheel.version()}-{tag}-{other}-manylinux_2_28.whl",
        f"kp-{kp_wheel.version()}-{tag}-{abi}-another.whl",
    ):
        (kp_wheel.RELEASED / name).touch()
        assert kp_wheel.released_wheel() is None, name
    wheel = kp_wheel.RELEASED / f"kp-{kp_wheel.version()}-{tag}-{abi}-manylinux_2_28.whl"
    wheel.touch()
    for options in ([], ["--find"]):
        assert kp_wheel.main(options) == 0
        assert capsys.readouterr() == (f"{wheel}\n", "")


@pytest.mark.parametrize(
    ("cores", "gigabytes", "expected"), [(64, 256, 9), (4, 64, 4), (16, 3, 3), (2, 0, 1)]
)
def test_compilers_are_bounded_by_cores_memory_and_one_digit(
    kp_wheel, monkeypatch, cores, gigabytes, expected
):
    sizes = {"SC_PHYS_PAGES": gigabytes << 20, "SC_PAGE_SIZE": 1 << 10}
    monkeypatch.setattr(os, "sysconf", sizes.__getitem__)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(cores))
    monkeypatch.setattr(Path, "read_text", lambda _: "max\n")
    assert kp_wheel.jobs() == expected
