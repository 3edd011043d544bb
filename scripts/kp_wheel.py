"""Build the Kompute wheel (kp) for the interpreter that runs this, once, and print its path.

PyPI has only the source of Kompute, whose build clones its dependencies from GitHub. This script
builds it with the Vulkan headers and fmt of the system and with pybind11 from PyPI. The wheel has a
second module, vkops_native (vkops/native), which is built in the same run. It is stored in
``${XDG_CACHE_HOME:-~/.cache}/vkops/wheels``. pip gets no options for an index, so that its own
configuration (pip.conf, PIP_* variables) decides where packages come from.

    kp_wheel.py             build unless cached; print the wheel's path
    kp_wheel.py --folder    print the folder where that wheel is or would be; build nothing
"""

from __future__ import annotations

import contextlib
import ctypes.util
import fcntl
import hashlib
import os
import platform
import re
import runpy
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

KP = "kp==0.9.0"
BUILD_REQUIREMENTS = ("pybind11>=2.12,<3", "setuptools<81", "wheel")  # setup.py needs distutils
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

_PACKAGE = Path(__file__).resolve().parents[1] / "vkops"
PATHS = _PACKAGE / "system" / "files.py"
NATIVE = [_PACKAGE / "native" / name for name in ("kompute.cmake", "module.cpp")]


class BuildError(Exception):
    """A build step failed; the message is complete."""


def cache_folder() -> Path:
    """Return the folder of the wheel, which depends on everything that changes the binary."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    try:
        release = platform.freedesktop_os_release()
    except OSError:
        release = {}
    system = release.get("ID", "linux") + release.get("VERSION_ID", "")
    fmt = ctypes.util.find_library("fmt") or "nofmt"  # its soname: libfmt.so.9
    abi = str(sysconfig.get_config_var("SOABI"))  # Python version, processor and C library
    sources = [path.read_text(encoding="utf-8") for path in NATIVE]
    recipe = repr((KP, BUILD_REQUIREMENTS, sorted(SWITCHES.items()), NUMPY_REQUIREMENT, sources))
    digest = hashlib.sha256(recipe.encode()).hexdigest()[:8]
    return Path(base, "vkops", "wheels", f"{abi}-{system}-{fmt}-{digest}")


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


def build(work: Path, log_path: Path) -> Path:
    """Build and repack the wheel under ``work``; return its path there."""
    python = work / "venv" / "bin" / "python"
    toolchain = work / "toolchain.cmake"
    # setup.py does not pass this to CMake because of a missing comma.
    toolchain.write_text(
        f'set(PYTHON_EXECUTABLE "{python}" CACHE FILEPATH "")\n'
        f'set(CMAKE_PROJECT_kompute_INCLUDE "{NATIVE[0]}")\n',
        encoding="utf-8",
    )
    env = os.environ | SWITCHES
    env["CMAKE_TOOLCHAIN_FILE"] = str(toolchain)
    env["KOMPUTE_PYTHON_NUM_PARALLEL_THREADS"] = str(jobs())

    with log_path.open("w", encoding="utf-8") as log:

        def step(what: str, *command: str) -> None:
            log.write(f"$ {' '.join(command)}\n")
            log.flush()
            done = subprocess.run(
                command, cwd=work, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
            if done.returncode:
                lines = log_path.read_text(encoding="utf-8", errors="replace").splitlines()
                tail = "\n".join(lines[-LOG_TAIL:])
                raise BuildError(f"{tail}\nkp_wheel: {what} failed; the whole log: {log_path}")

        def module(what: str, *command: str) -> None:
            step(what, str(python), "-m", *command)

        venv.create(work / "venv", symlinks=True)
        module("making a virtual environment with pip (ensurepip)", "ensurepip", "--default-pip")
        module("installing the build tools with pip", "pip", "install", *BUILD_REQUIREMENTS)
        env["pybind11_DIR"] = subprocess.check_output(
            [python, "-m", "pybind11", "--cmakedir"], text=True
        ).strip()
        env["PATH"] = f"{python.parent}{os.pathsep}{env.get('PATH', os.defpath)}"
        # Not from pip's own cache, which does not depend on the switches and the system's fmt.
        module(
            f"building {KP}",
            *("pip", "wheel", "--no-deps", "--no-build-isolation", "--no-cache-dir"),
            *("--no-binary", "kp", "--wheel-dir", "built", KP),
        )
        (built,) = (work / "built").glob("kp-*.whl")
        module("unpacking the wheel", "wheel", "unpack", str(built), "--dest", "tree")
        (metadata,) = (work / "tree").glob("*/*.dist-info/METADATA")
        text, count = re.subn(
            r"(?m)^Requires-Dist: numpy.*$",
            f"Requires-Dist: {NUMPY_REQUIREMENT}",
            metadata.read_text(encoding="utf-8"),
        )
        if count != 1:
            raise BuildError(f"kp_wheel: {count} NumPy requirements in {metadata}, expected one")
        metadata.write_text(text, encoding="utf-8")
        (work / "packed").mkdir()
        module(
            "packing the wheel",
            *("wheel", "pack", str(metadata.parent.parent), "--dest-dir", "packed"),
        )
        (packed,) = (work / "packed").glob("kp-*.whl")
        module("trying the wheel", "pip", "install", str(packed))
        step("importing kp", str(python), "-c", "import kp, vkops_native")
        return packed


def main(arguments: list[str]) -> int:
    """Print the path of the wheel, or of its folder; return the exit status."""
    folder = cache_folder()
    if arguments == ["--folder"]:
        print(folder)
        return 0
    if arguments:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        # A wheel from there is installed: no other user may have written it.
        with runpy.run_path(str(PATHS))["private_folder"](folder, create=True):
            wheel = cached_wheel(folder)
    except OSError as error:
        print(
            f"kp_wheel: the wheel cache {str(folder)!r} is not used: {error.strerror}; "
            "remove it, or set XDG_CACHE_HOME to a folder of your own",
            file=sys.stderr,
        )
        return 1
    if wheel is None:
        with (folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # two set-ups at once: the second finds the wheel
            wheel = cached_wheel(folder)
            if wheel is None:
                print(f"kp_wheel: building {KP}, about a minute", file=sys.stderr)
                work = folder / "work"
                shutil.rmtree(work, ignore_errors=True)  # left by a build that was killed
                work.mkdir()
                try:
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
    sys.exit(main(sys.argv[1:]))
