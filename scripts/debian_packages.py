"""Packages of Debian for other scripts: unpacked without root, or built from their sources.

apt downloads into folders of its own and checks Debian's signatures; the system's own packages do
not matter. The mirror is that in apt's sources, or DEBIAN_MIRROR.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import kp_wheel

KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}  # as Debian calls these processors
BINUTILS = ("ar", "nm", "ranlib")
SOURCES = {
    "glslang": "",
    "spirv-tools": "External/spirv-tools",
    "spirv-headers": "External/spirv-tools/external/spirv-headers",
}
"""The sources of Debian's packages and the folders where glslang's build looks for them."""
PROGRAMS = ("glslangValidator", "spirv-as", "spirv-dis", "spirv-opt", "spirv-val")


class Source(NamedTuple):
    """The source of a package: its version, its hash and the file of its licence."""

    name: str
    version: str
    digest: str
    licence: Path


def run(*command: str | Path, cwd: Path | None = None) -> str:
    """Return what a command prints; its own messages go to standard error."""
    return subprocess.run(command, cwd=cwd, check=True, stdout=subprocess.PIPE, text=True).stdout


def sha256(file: Path) -> str:
    """Return the hash of a file."""
    return hashlib.sha256(file.read_bytes()).hexdigest()


def mirror() -> str:
    """Return the address above the folders debian and debian-security."""
    listed = run("apt-get", "indextargets", "--format", "$(REPO_URI)", "Identifier: Packages")
    addresses = [os.environ.get("DEBIAN_MIRROR", ""), *listed.split()]
    for match in filter(None, (re.fullmatch(r"(.*)/debian/?", one) for one in addresses)):
        return match[1]
    raise SystemExit("debian_packages: apt's sources name no mirror of Debian: set DEBIAN_MIRROR")


def apt_options(
    work: Path, architecture: str, *suites: str, kind: str = "deb", preferences: str = ""
) -> list[str]:
    """Return options of apt-get for its own folder ``work``, whose lists are made and filled."""
    if not KEYRING.exists():
        raise SystemExit(
            f"debian_packages: {KEYRING} is missing: apt install debian-archive-keyring"
        )
    for folder in ("state/lists/partial", "cache/archives/partial"):
        (work / folder).mkdir(parents=True)
    (work / "status").touch()  # nothing is installed
    (work / "preferences").write_text(preferences)
    address = mirror()
    sources = [f"{kind} [signed-by={KEYRING}] {address}{suite} main\n" for suite in suites]
    (work / "sources.list").write_text("".join(sources))
    settings = {
        "APT::Architecture": architecture,
        "APT::Architectures": architecture,
        "APT::Sandbox::User": "root",
        "Acquire::Languages": "none",
        "Debug::NoLocking": "true",
        "Dir::Cache": work / "cache",
        "Dir::Etc::preferences": work / "preferences",
        "Dir::Etc::preferencesparts": "/dev/null",
        "Dir::Etc::sourcelist": work / "sources.list",
        "Dir::Etc::sourceparts": "/dev/null",
        "Dir::State": work / "state",
        "Dir::State::status": work / "status",
    }
    options = [word for key, value in settings.items() for word in ("-o", f"{key}={value}")]
    run("apt-get", "-qq", *options, "update")
    return options


def unpack(
    work: Path, machine: str, suites: tuple[str, ...], *packages: str, preferences: str = ""
) -> list[Path]:
    """Unpack packages, and all that they need, in ``work / "root"``; return the packages' files."""
    architecture, apt = ARCHITECTURES[machine], work / "apt"
    options = apt_options(apt, architecture, *suites, preferences=preferences)
    install = ("install", "--yes", "--download-only", "--no-install-recommends")
    run("apt-get", "-qq", *options, *install, *packages)
    archives = sorted((apt / "cache/archives").glob("*.deb"))
    for archive in archives:
        run("dpkg-deb", "--extract", archive, work / "root")
    return archives


def unpack_compiler(work: Path, machine: str) -> Path:
    """Unpack Debian 12's compiler for this or another processor; return the folder of its programs.

    These are gcc, g++, ar, nm and ranlib. They run on Debian 12 and newer, and what they build
    needs no newer C library than that of Debian 12.
    """
    host = platform.machine()
    package = "g++-12" if machine == host else f"g++-12-{machine.replace('_', '-')}-linux-gnu"
    unpack(work, host, ("/debian bookworm",), package)
    usr, folder = work / "root/usr", work / "bin"
    folder.mkdir()
    for link in filter(Path.is_symlink, (work / "root/lib64").glob("*")):
        path = link.readlink()  # absolute: it would lead to the C library of this system
        link.unlink()
        link.symlink_to(f"..{path}")
    for name in ("gcc", "g++", *BINUTILS):
        version = "" if name in BINUTILS else f"-12 --sysroot={work / 'root'}"
        (folder / name).write_text(
            f"#!/bin/sh\nPATH={usr}/bin:$PATH LD_LIBRARY_PATH={usr}/lib/{host}-linux-gnu "
            f'exec {usr}/bin/{machine}-linux-gnu-{name}{version} "$@"\n'
        )
        (folder / name).chmod(0o755)
    return folder


def build_compilers(work: Path, settings: Mapping[str, str | Path]) -> list[Source]:
    """Build glslang and SPIRV-Tools of Debian 13; return their sources.

    ``settings`` are CMake's. The programs are then in ``work / "bin"``, and shared libraries in
    ``work / "lib"``.
    """
    work.mkdir()
    options = apt_options(work / "apt", "amd64", "/debian trixie", kind="deb-src")
    run("apt-get", "-qq", *options, "source", "--tar-only", "--download-only", *SOURCES, cwd=work)
    sources = []
    for name, folder in SOURCES.items():
        (archive,), target = work.glob(f"{name}_*.orig.tar.gz"), work / "source" / folder
        target.mkdir(parents=True, exist_ok=True)
        run("tar", "xzf", archive, "--strip-components=1", "-C", target)
        licence = target / ("LICENSE.txt" if name == "glslang" else "LICENSE")
        version = archive.name.removesuffix(".orig.tar.gz").partition("_")[2]
        sources.append(Source(name, version, sha256(archive), licence))
    result = {
        "CMAKE_BUILD_TYPE": "Release",
        "CMAKE_RUNTIME_OUTPUT_DIRECTORY": work / "bin",
        "CMAKE_LIBRARY_OUTPUT_DIRECTORY": work / "lib",
        "SPIRV_SKIP_TESTS": "ON",
        "GLSLANG_TESTS": "OFF",
        **settings,
    }
    arguments = [f"-D{key}={value}" for key, value in result.items()]
    run("cmake", "-S", work / "source", "-B", work / "made", *arguments)
    build = ("cmake", "--build", work / "made", "--parallel", str(kp_wheel.jobs()), "--target")
    run(*build, "glslang-standalone", *PROGRAMS[1:])
    for built in (work / "bin").glob("glslang*"):
        shutil.move(built, built.with_stem(PROGRAMS[0]))
    return sources
