"""The kernels of the package: valid, and in the wheel as SPIR-V that needs no compiler."""

import hashlib
import json
import os
import sys
import zipfile
from pathlib import Path

import hatch_spirv
import pytest
from processes import ROOT, finished, without_compiler
from refusals import fault

from vkops import shaders
from vkops.errors import ShaderCompileError
from vkops.lavapipe import how_to_install

pytestmark = pytest.mark.usefixtures("own_cache")
of_a_checkout = pytest.mark.skipif(
    not Path(shaders.__file__).is_relative_to(ROOT), reason="vkops is imported from a wheel"
)
MISSING = f"glslangValidator is not on PATH: install it ({how_to_install('glslang-tools')}), or set VKOPS_GLSLANG to its path"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Build the wheel; it is then a zip file."""
    folder = tmp_path_factory.mktemp("wheel")
    status, _, errors = build(folder, dict(os.environ))
    assert status == 0, errors
    (path,) = folder.glob("*.whl")
    return path


@pytest.fixture
def unpacked(wheel, tmp_path):
    zipfile.ZipFile(wheel).extractall(tmp_path / "unpacked")
    return tmp_path / "unpacked"


def build(folder, environment):
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder]
    return finished(*command, cwd=ROOT, env=environment)


def run_without_compiler(code, package, folder):
    env = without_compiler(folder)
    env["PYTHONPATH"] = f"{package}{os.pathsep}{env['PYTHONPATH']}"
    return finished(sys.executable, "-c", code, cwd=folder, env=env)


def digests_from(package, tmp_path):
    """SHA-256 of every kernel, as a process without a compiler gets them from ``package``."""
    code = (
        "import hashlib, json; from vkops import shaders\n"
        f"assert shaders.__file__.startswith({str(package)!r})\n"
        "spirv = {n: shaders.spirv(n) for n in shaders.VARIANTS}\n"
        "print(json.dumps({n: hashlib.sha256(s).hexdigest() for n, s in spirv.items()}))"
    )
    return run_without_compiler(code, package, tmp_path)


@pytest.mark.parametrize("name", shaders.VARIANTS)
def test_kernel_is_valid(name):
    shaders.validate(shaders.spirv(name))


def test_kernel_stays_in_memory():
    assert shaders.spirv("copy_4") is shaders.spirv("copy_4")


def test_unknown_kernel(message):
    error = fault(lambda: shaders.spirv("copy_3"), ShaderCompileError)
    message(error, "'copy_3'", kernels=", ".join(shaders.VARIANTS))


@of_a_checkout
def test_sources_of_a_checkout_are_the_top_level_folder():
    assert shaders.source_dir() == ROOT / "shaders"


def test_wheel_has_types_sources_and_spirv(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    assert {"vkops/py.typed", "vkops/__init__.pyi", "vkops/dml/__init__.pyi"} <= set(names)
    glsl = {Path(name).name for name in names if name.startswith("vkops/shaders/glsl/")}
    assert glsl == {path.name for path in (ROOT / "shaders").iterdir()}
    spirv = {Path(name).name for name in names if name.startswith("vkops/shaders/spirv/")}
    assert spirv == {variant.file_name for variant in shaders.VARIANTS.values()}


@of_a_checkout
def test_wheel_works_without_a_compiler(unpacked, tmp_path):
    status, printed, errors = digests_from(unpacked, tmp_path)
    assert status == 0, errors
    assert json.loads(printed) == {
        name: hashlib.sha256(shaders.spirv(name)).hexdigest() for name in shaders.VARIANTS
    }
    assert not (tmp_path / "empty-cache").exists()


def test_the_state_of_the_compiler_says_what_needs_it(unpacked, tmp_path, monkeypatch):
    code = "from vkops import shaders; print(shaders.compiler_state())"
    for package, users in (
        (unpacked, "only GLSL shaders of your own and `vkops debug` need it"),
        (ROOT, "needed"),
    ):
        done = run_without_compiler(code, package, tmp_path)
        assert done == (0, f"none; {users}: {MISSING}\n", "")
    program = tmp_path / "glslang.exe"
    program.touch(0o755)
    monkeypatch.setenv("VKOPS_GLSLANG", str(program))
    assert shaders.compiler_state() == str(program)


@pytest.mark.parametrize("change", ["source", "spirv"])
def test_outdated_or_damaged_spirv_in_the_wheel_is_not_used(unpacked, tmp_path, change):
    """An edited include, or a damaged module: the kernel is compiled instead."""
    if change == "source":
        with (unpacked / "vkops/shaders/glsl/region.glsl").open("a") as file:
            file.write("// edited\n")
    else:
        for path in (unpacked / "vkops/shaders/spirv").iterdir():
            path.write_bytes(path.read_bytes()[:-2])
    _, _, errors = digests_from(unpacked, tmp_path)
    assert errors.splitlines()[-1] == f"vkops.errors.ShaderCompileError: {MISSING}"


def test_wheel_cannot_be_built_without_a_compiler(tmp_path):
    status, _, errors = build(tmp_path, without_compiler(tmp_path))
    assert status == 1
    assert f"The kernels cannot be compiled: {MISSING}" in errors.splitlines()
    assert not list(tmp_path.glob("*.whl"))


def test_editable_install_compiles_nothing(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    build_data = {"force_include": {}}
    builder = hatch_spirv.SpirvBuildHook(str(ROOT), {}, None, None, str(tmp_path), "wheel")
    builder.initialize("editable", build_data)
    builder.finalize("editable", build_data, "")
    assert build_data == {"force_include": {}}
