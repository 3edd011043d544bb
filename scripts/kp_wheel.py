"""Build the Kompute wheel (kp) for the interpreter that runs this, once, and print its path.

PyPI has only the source of Kompute, whose build clones its dependencies from GitHub. This script
builds it with the Vulkan headers of the system, and with pybind11 and fmt from PyPI. The wheel has
a second module, vkops_native (vkops/native), which is built in the same run. It is stored in
``${XDG_CACHE_HOME:-~/.cache}/vkops/wheels``; one of the same version that scripts/wheels has
written to dist/ is used instead, if this system can load it. pip gets no options for an index, so
that its own configuration (pip.conf, PIP_* variables) decides where packages come from.

    kp_wheel.py             build unless there is a wheel; print its path
    kp_wheel.py --find      print the path of the wheel if there is one; build nothing
    kp_wheel.py --folder    print the folder in the cache, which names all that the wheel depends on
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import re
import runpy
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
import venv
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

KP = "kp==0.9.0"
# Python 3.14 needs pybind11 3; cmeel-fmt has the headers of fmt; setup.py needs distutils.
BUILD_REQUIREMENTS = ("pybind11>=3,<4", "cmeel-fmt>=10", "setuptools<81", "wheel")
SWITCHES = {
    "KOMPUTE_OPT_INSTALL": "OFF",
    "KOMPUTE_OPT_USE_BUILT_IN_VULKAN_HEADER": "OFF",
    "KOMPUTE_OPT_USE_BUILT_IN_FMT": "OFF",
    "KOMPUTE_OPT_USE_BUILT_IN_PYBIND11": "OFF",
    "KOMPUTE_OPT_DISABLE_VULKAN_VERSION_CHECK": "ON",
    # Headers of Vulkan 1.4 do not compile with them, and they switch validation on silently.
    "KOMPUTE_OPT_DISABLE_VK_DEBUG_LAYERS": "ON",
}
# Metadata says numpy<2.0.0; built with pybind11 2.12 or later it runs with NumPy 2 as well.
NUMPY_REQUIREMENT = "numpy>=1.26"
LOG_TAIL = 25

_ROOT = Path(__file__).resolve().parents[1]
_PACKAGE = _ROOT / "vkops"
RELEASED = _ROOT / "dist"
LOCK = _ROOT / "scripts" / "lock.txt"
PATHS = _PACKAGE / "system" / "files.py"
MODULE = _PACKAGE / "native" / "module.cpp"
NATIVE = sorted((_PACKAGE / "native").glob("*.[ch]*"))  # kompute.cmake and C++


class BuildError(Exception):
    """A build step failed; the message is complete."""


def version() -> str:
    """Return the wheel's version: Kompute's, the interface of vkops_native, and a hash.

    pip prefers this local version, 0.9.0+vkops.1.r0123abcd, to the source on PyPI, and it meets the
    requirement kp==0.9.0. The hash is that of all that this script builds the wheel from.
    """
    sources = {path.name: path.read_text(encoding="utf-8") for path in NATIVE}
    recipe = repr((KP, BUILD_REQUIREMENTS, sorted(SWITCHES.items()), NUMPY_REQUIREMENT, sources))
    digest = hashlib.sha256(recipe.encode()).hexdigest()[:8]
    (interface,) = re.findall(r'module\.attr\("interface"\) = (\d+);', sources["module.cpp"])
    return f"{KP.partition('==')[2]}+vkops.{interface}.r{digest}"


_STARTER = ThreadPoolExecutor(1)  # no signal handler interrupts its thread
_STARTER.submit(int).result()  # begins its thread: an interrupt then would let it wait for ever
_running: list[subprocess.Popen[str]] = []


def run(*command: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a program; an exception, such as an interrupt, ends it and all that it has started."""

    def start() -> subprocess.Popen[str]:
        process = subprocess.Popen(command, text=True, start_new_session=True, **options)
        _running.append(process)
        return process

    try:
        process = _STARTER.submit(start).result()
        output, _ = process.communicate()
    except BaseException:
        end_programs()
        raise
    with contextlib.suppress(ValueError):  # another thread has ended all programs
        _running.remove(process)
    return subprocess.CompletedProcess(command, process.returncode, output)


def end_programs() -> None:
    """End the programs that run now, and all that they have started."""
    _STARTER.submit(int).result()  # what is being started has started then
    while _running:
        process = _running.pop()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        process.wait()


@contextlib.contextmanager
def timed(what: str, expected: str) -> Iterator[None]:
    """Print what begins and how long it should take, and in the end how long it has taken."""
    program = Path(sys.argv[0]).stem
    print(f"{program}: {what}, {expected}", file=sys.stderr, flush=True)
    began = time.monotonic()
    yield
    took = time.monotonic() - began
    print(f"{program}: that took {took:.0f} s", file=sys.stderr, flush=True)


def clean_up_when_ended() -> None:
    """Let SIGTERM end this process by an exception, as an interrupt does."""
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))


def cached(name: str) -> Path:
    """Return the path of a folder in the cache."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base, "vkops", "wheels", name)


def private(folder: Path) -> Path:
    """Make a folder in the cache; OSError if another user may have written to it."""
    with runpy.run_path(str(PATHS))["private_folder"](folder, create=True):
        return folder


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Let one process at a time write to a folder in the cache."""
    import fcntl  # Windows, where tests import this module, has none

    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def cache_folder() -> Path:
    """Return the folder of the wheel, which depends on everything that changes the binary."""
    try:
        release = platform.freedesktop_os_release()
    except OSError:
        release = {}
    system = release.get("ID", "linux") + release.get("VERSION_ID", "")
    abi = str(sysconfig.get_config_var("SOABI"))  # Python version, processor and C library
    return cached(f"{abi}-{system}-{version()}")


def loadable(platforms: str) -> bool:
    """Whether this system can load a wheel with these platform tags, separated by dots."""
    libc, release = platform.libc_ver()
    host_version = tuple(map(int, release.split(".")[:2])) if libc == "glibc" else ()
    tags = re.findall(r"manylinux_(\d+)_(\d+)_(\w+)", platforms)
    return any(
        machine == platform.machine() and (int(major), int(minor)) <= host_version
        for major, minor, machine in tags
    )


def released_wheel() -> Path | None:
    """Return the wheel that scripts/wheels has written for this interpreter, if there is one."""
    tag = "cp{}{}".format(*sys.version_info[:2])
    abi = f"{tag}t" if sysconfig.get_config_var("Py_GIL_DISABLED") else tag
    wheels = RELEASED.glob(f"kp-{version()}-{tag}-{abi}-*.whl")
    return next((path for path in wheels if loadable(path.stem.rpartition("-")[2])), None)


def cached_wheel(folder: Path) -> Path | None:
    """Return the wheel in the cache, if there is one."""
    return next(iter(folder.glob("kp-*.whl")), None)


def jobs() -> int:
    """Return the number of parallel compilers: one per core and GiB, at most 9.

    Kompute's setup.py calls ``make -j`` without a limit (ten compilers that need 5.2 GiB), and
    adds its variable character by character: "12" would become ``-j 1`` and a target 2.
    """
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    with contextlib.suppress(OSError, ValueError):  # no limit says "max"
        memory = min(memory, int(Path("/sys/fs/cgroup/memory.max").read_text()))
    return max(1, min(9, len(os.sched_getaffinity(0)), memory >> 30))


def change_metadata(tree: Path) -> None:
    """Change the version and the NumPy requirement of an unpacked wheel."""
    (folder,) = tree.glob("*.dist-info")
    metadata = folder / "METADATA"
    text = metadata.read_text(encoding="utf-8")
    for field, old, new in (
        ("Version", KP.partition("==")[2], version()),
        ("Requires-Dist", r"numpy.*", NUMPY_REQUIREMENT),
    ):
        text, count = re.subn(rf"(?m)^{field}: {old}$", f"{field}: {new}", text)
        if count != 1:
            raise BuildError(f"kp_wheel: {count} fields {field} in {metadata}, expected one")
    metadata.write_text(text, encoding="utf-8")
    folder.rename(tree / f"kp-{version()}.dist-info")


def build(work: Path, log_path: Path) -> Path:
    """Build and repack the wheel under ``work``; return its path there."""
    python = work / "venv" / "bin" / "python"
    toolchain = work / "toolchain.cmake"
    # setup.py does not pass this to CMake because of a missing comma.
    toolchain.write_text(
        f'set(PYTHON_EXECUTABLE "{python}" CACHE FILEPATH "")\n'
        f'set(CMAKE_PROJECT_kompute_INCLUDE "{_PACKAGE}/native/kompute.cmake")\n',
        encoding="utf-8",
    )
    env = os.environ | SWITCHES | {"TMPDIR": str(work)}  # pip leaves files where it is ended
    env["CMAKE_TOOLCHAIN_FILE"] = str(toolchain)
    env["KOMPUTE_PYTHON_NUM_PARALLEL_THREADS"] = str(jobs())

    with log_path.open("w", encoding="utf-8") as log:

        def step(what: str, *command: str) -> None:
            log.write(f"$ {' '.join(command)}\n")
            log.flush()
            streams = {"stdin": subprocess.DEVNULL, "stdout": log, "stderr": log}
            done = run(*command, cwd=work, env=env, **streams)
            if done.returncode:
                lines = log_path.read_text(encoding="utf-8", errors="replace").splitlines()
                tail = "\n".join(lines[-LOG_TAIL:])
                raise BuildError(f"{tail}\nkp_wheel: {what} failed; the whole log: {log_path}")

        def module(what: str, *command: str) -> None:
            step(what, str(python), "-m", *command)

        venv.create(work / "venv", symlinks=True)
        module("making a virtual environment with pip (ensurepip)", "ensurepip", "--default-pip")
        module(
            "installing the build tools with pip",
            *("pip", "install", "--constraint", str(LOCK), *BUILD_REQUIREMENTS),
        )
        packages = subprocess.check_output(
            [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], text=True
        ).strip()
        env["CMAKE_PREFIX_PATH"] = os.pathsep.join(
            [f"{packages}/pybind11", f"{packages}/cmeel.prefix"]
        )
        env["PATH"] = f"{python.parent}{os.pathsep}{env.get('PATH', os.defpath)}"
        # Not from pip's own cache, which does not depend on the switches.
        module(
            f"building {KP}",
            *("pip", "wheel", "--no-deps", "--no-build-isolation", "--no-cache-dir"),
            *("--no-binary", "kp", "--wheel-dir", "built", KP),
        )
        (built,) = (work / "built").glob("kp-*.whl")
        module("unpacking the wheel", "wheel", "unpack", str(built), "--dest", "tree")
        (tree,) = (work / "tree").iterdir()
        change_metadata(tree)
        # pybind11 is in the modules, and its licence asks for its text beside them.
        for licence in Path(packages).glob("pybind11-*.dist-info/licenses/LICENSE"):
            shutil.copy(licence, tree / f"kp-{version()}.dist-info" / "LICENSE.pybind11")
        (work / "packed").mkdir()
        module("packing the wheel", "wheel", "pack", str(tree), "--dest-dir", "packed")
        (packed,) = (work / "packed").glob("kp-*.whl")
        module("trying the wheel", "pip", "install", "--only-binary", "numpy", str(packed))
        code = "import vkops_native; vkops_native.load_kompute()"
        step("importing the modules", str(python), "-c", code)
        return packed


def main(arguments: list[str]) -> int:
    """Print the path of the wheel, or of its folder; return the exit status."""
    folder = cache_folder()
    if arguments == ["--folder"]:
        print(folder)
        return 0
    if arguments not in ([], ["--find"]):
        print(__doc__, file=sys.stderr)
        return 2
    wheel = released_wheel()
    if wheel is not None or arguments:
        print(wheel or cached_wheel(folder) or "")
        return 0
    try:
        wheel = cached_wheel(private(folder))  # which is installed
    except OSError as error:
        print(
            f"kp_wheel: the wheel cache {str(folder)!r} is not used: {error.strerror}; "
            "remove it, or set XDG_CACHE_HOME to a folder of your own",
            file=sys.stderr,
        )
        return 1
    if wheel is None:
        with locked(folder):
            wheel = cached_wheel(folder)  # that of another set-up at the same time
            if wheel is None:
                work = folder / "work"
                shutil.rmtree(work, ignore_errors=True)  # left by a build that was killed
                work.mkdir()
                try:
                    with timed(f"building {KP}", "about a minute"):
                        packed = build(work, folder / "build.log")
                    wheel = folder / packed.name
                    os.replace(packed, wheel)
                except (BuildError, OSError) as error:
                    print(error, file=sys.stderr)
                    return 1
                finally:
                    shutil.rmtree(work, ignore_errors=True)
    print(wheel)
    return 0


if __name__ == "__main__":
    clean_up_when_ended()
    sys.exit(main(sys.argv[1:]))
