"""A text for bug reports: versions, adapters with their limits, drivers and the environment."""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict
from importlib import metadata
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psutil

import vkops
from vkops import gpu
from vkops.errors import VkopsError
from vkops.gpu.adapters import adapter, kompute
from vkops.shaders import tools
from vkops.system.processes import cores, describe, processor

_TIMEOUT_S = 60.0

_PACKAGES = ("kp", "numpy", "onnx", "python-rapidjson", "click", "rich", "psutil", "slangpy")

_PROGRAMS = (
    # Name, Debian's package, the variable that names another program, the option for the version.
    ("glslangValidator", "glslang-tools", "VKOPS_GLSLANG", "--version"),
    ("spirv-val", "spirv-tools", None, "--version"),
    ("slangc", "vkops[slang]", "VKOPS_SLANGC", "-v"),
    ("renderdoccmd", "renderdoccmd", None, "version"),
)

_SYSTEM_PACKAGES = (
    *("libvulkan1", "mesa-vulkan-drivers", "vulkan-validationlayers", "glslang-tools"),
    *("spirv-tools", "librenderdoc", "renderdoccmd"),
)

_VARIABLES = re.compile(
    r"(VK|VKOPS|LP|MESA|GALLIUM|LIBGL)_\w+"
    r"|LD_LIBRARY_PATH|LD_PRELOAD|ENABLE_VULKAN_RENDERDOC_CAPTURE"
)

# Runs in a process of its own, because a broken driver may crash it.
_PROBE = "from vkops.debug import bug_report; bug_report._probe()"


def report() -> str:
    """Describe this machine for a bug report, in Markdown; this never fails.

    It shows only those environment variables that concern drivers and vkops; the home directory is
    ``~``.
    """
    lines = [f"# vkops {vkops.__version__}"]
    for section in (_versions, _vulkan, _drivers, _environment, _machine):
        lines += ["", f"## {section.__name__.strip('_').capitalize()}", ""]
        try:
            lines += section()
        except Exception as error:  # an error in one section must not hide the others
            lines.append(_item("not known", repr(error)))
    text, home = "\n".join(lines), os.path.expanduser("~").rstrip(os.sep)
    return re.sub(rf"{re.escape(home)}(?![\w.-])", "~", text) if os.path.isabs(home) else text


def _item(name: str, value: object) -> str:
    return f"- {name}: {' '.join(str(value).split()) or 'none'}"


# -- versions --------------------------------------------------------------------------------------


def _versions() -> Iterator[str]:
    checkout = Path(vkops.__file__).parents[1]
    if (checkout / ".git").exists():
        with suppress(OSError, subprocess.SubprocessError):
            describe = ("git", "-C", str(checkout), "describe", "--always", "--dirty")
            yield _item("commit", _run(*describe, check=True).stdout)
    yield _item("Python", f"{platform.python_version()} ({sys.executable})")
    try:
        system = platform.freedesktop_os_release()["PRETTY_NAME"]
    except OSError:
        system = platform.version()
    kernel = f"{platform.system()} {platform.release()}"
    yield _item("system", f"{system}, {kernel}, {platform.machine()}")
    for package in _PACKAGES:
        try:
            yield _item(package, metadata.version(package))
        except metadata.PackageNotFoundError:
            yield _item(package, "not installed")
    with TemporaryDirectory() as folder:
        variables = {"RENDERDOC_TEMP": folder}  # renderdoccmd leaves a folder there
        for program, package, variable, option in _PROGRAMS:
            try:
                command = [tools.find(program, package, variable), option]
                yield _item(program, tools.run(command, variables=variables)[1].partition("\n")[0])
            except VkopsError as error:
                yield _item(program, error)
    with suppress(OSError, subprocess.SubprocessError):
        # dpkg-query complains about packages that are missing, and lists the others.
        form = "--showformat=${Package} ${Version}\n"
        lines = _run("dpkg-query", "--show", form, *_SYSTEM_PACKAGES).stdout.splitlines()
        installed = ", ".join(line for line in lines if " " in line.strip())
        yield _item("Debian's packages", installed)


def _run(*command: str, check: bool = False) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, check=check, capture_output=True, text=True, errors="replace", timeout=_TIMEOUT_S
    )


# -- Vulkan ----------------------------------------------------------------------------------------


def _vulkan() -> Iterator[str]:
    probed = _probed()
    if problem := probed["problem"]:
        yield _item("problem", problem)
    yield _item("Kompute", probed["kompute"])
    yield _item("native operations", probed["native"])
    if probed["loader"]:
        yield _item("loader", probed["loader"]["version"])
        yield _item("layers", ", ".join(probed["loader"]["layers"]))
    for device in probed["adapters"]:
        yield from ("", f"### Adapter {device['index']}: {device['name']}", "")
        yield from _adapter(device, device["limits"])


def _probed() -> dict[str, Any]:
    """Run ``_probe`` in another process, and return its findings."""
    nothing: dict[str, Any] = {"loader": None, "adapters": []}
    nothing |= dict.fromkeys(("kompute", "native"), "not known")
    try:
        done = _run(sys.executable, "-c", _PROBE)
        return {**nothing, **json.loads(done.stdout.splitlines()[-1])}
    except subprocess.TimeoutExpired:
        problem = f"the drivers did not answer within {_TIMEOUT_S:.0f} s"
    except (ValueError, IndexError):
        how, last = describe(done.returncode), done.stderr.strip().splitlines()[-1:]
        problem = ": ".join([f"the process that asked the drivers ended ({how})", *last])
    return {**nothing, "problem": problem}


def _probe() -> None:
    """Query the loader and its adapters, and print the findings as JSON."""
    state: dict[str, Any] = {"kompute": "loads", "native": "not known", "problem": ""}
    try:
        kompute.load_kompute()
        state["native"] = kompute.native_state()
    except VkopsError as error:
        state["kompute"] = str(error)
    try:
        state["loader"] = kompute.loader()
        state["adapters"] = [asdict(device) for device in adapter.devices()]
        adapter.choose(None)
    except VkopsError as error:
        state["problem"] = str(error)
    print("\n" + json.dumps(state))


def _adapter(device: dict[str, Any], its_limits: dict[str, Any]) -> Iterator[str]:
    yield _item("type", device["type"])
    yield _item("driver", f"{device['driver']}, version {device['driver_version']}")
    yield _item("Vulkan", device["api_version"])
    yield _item("vendor and device", f"{device['vendor_id']:#x}, {device['device_id']:#x}")
    yield _item("host sees device memory", "yes" if device["unified_memory"] else "no")
    heaps, kinds = its_limits.pop("heaps"), its_limits.pop("memory_types")
    has = its_limits.pop("features")
    for name, value in its_limits.items():
        shown = ", ".join(map(str, value)) if isinstance(value, list) else value
        first, *others = name.split("_")
        yield _item(first + "".join(map(str.title, others)), shown)
    for number, heap in enumerate(heaps):
        where = "device" if heap["device_local"] else "host"
        memory_types = [
            f"{index}: {'|'.join(kind['properties']) or 'no property'}"
            for index, kind in enumerate(kinds)
            if kind["heap"] == number
        ]
        size = f"{heap['size']} bytes ({heap['size'] / 2**30:.1f} GiB), {where}"
        yield _item(f"memory heap {number}", f"{size}; memory types {', '.join(memory_types)}")
    lacks = [name for name in kompute.load_native().FEATURES if name not in has]
    yield from _features("features for shaders (the kernels use shaderInt64 at most)", has)
    yield from _features("features it lacks", lacks)


def _features(label: str, names: Iterable[str]) -> Iterator[str]:
    """Yield items of features; those of atomic operations and of floats are items of their own."""
    kinds: dict[str, list[str]] = {"": [], ", atomic operations": [], ", modes of floats": []}
    for name in names:
        is_mode = name.startswith(("shaderDenorm", "shaderRounding", "shaderSignedZero"))
        kind = ", modes of floats" if is_mode else ", atomic operations" * ("Atomic" in name)
        kinds[kind].append(name)
    for kind, of_kind in kinds.items():
        if of_kind or not kind:
            yield _item(label + kind, ", ".join(of_kind))


def _drivers() -> Iterator[str]:
    for driver in gpu.drivers():
        offers = f"offers {', '.join(driver.adapters)}" if driver.usable else driver.reason
        yield _item(driver.path, offers)


# -- the machine -----------------------------------------------------------------------------------


def _environment() -> Iterator[str]:
    names = sorted(filter(_VARIABLES.fullmatch, os.environ))
    for name in names:
        yield _item(name, os.environ[name])
    if not names:
        yield "none of the variables that matter is set"


def _machine() -> Iterator[str]:
    yield _item("processor", processor())
    physical, threads = psutil.cpu_count(logical=False), psutil.cpu_count()
    yield _item("cores", f"{physical}, {threads} threads, {cores()} for this process")
    memory = psutil.virtual_memory()
    yield _item("memory", f"{memory.total} bytes, {memory.available} available")
