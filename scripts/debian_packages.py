"""Packages of Debian for other scripts, unpacked without root.

apt downloads into folders of its own and checks Debian's signatures; the system's own packages do
not matter. The mirror is that in apt's sources, or DEBIAN_MIRROR.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import kp_wheel

KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}  # as Debian calls these processors
PROGRAMS = ("glslangValidator", "spirv-as", "spirv-dis", "spirv-opt", "spirv-val")


def run(*command: str | Path, cwd: Path | None = None) -> str:
    """Return what a command prints; its own messages go to standard error."""
    done = kp_wheel.run(*command, cwd=cwd, stdout=subprocess.PIPE)
    done.check_returncode()
    return done.stdout


def sha256(file: Path) -> str:
    """Return the hash of a file."""
    return hashlib.sha256(file.read_bytes()).hexdigest()


def version_of_glibc(files: Iterable[Path]) -> int:
    """Return the oldest C library that can load some files: 36 for 2.36."""
    versions = re.findall(r"GLIBC_2\.(\d+)", run("readelf", "--version-info", *files))
    return max(map(int, versions))


def pack_wheel(tree: Path, target: Path) -> Path:
    """Pack a wheel, which is then in ``target``, whole or not at all; return its path."""
    packed = tree.with_name(f"packed-{tree.name}")
    packed.mkdir()
    run(sys.executable, "-m", "wheel", "pack", tree, "--dest-dir", packed)
    (wheel,) = packed.iterdir()
    part = target / f".{wheel.name}.part"
    try:
        shutil.copy(wheel, part)
        return part.replace(target / wheel.name)
    finally:
        part.unlink(missing_ok=True)


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
