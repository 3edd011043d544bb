"""The package vkops_lavapipe: another module of that name takes its place here."""

import os
import stat
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import vkops
from vkops.gpu.adapters import adapter, loader_files
from vkops.shaders import tools

MODULE = """
from pathlib import Path
def manifest(): return str(Path(__file__).parent / "lib" / "lvp_icd.json")
def programs(): return str(Path(__file__).parent / "bin")
"""
ADDED = "VK_ADD_DRIVER_FILES"


@pytest.fixture
def forget(monkeypatch):
    """Look for the package again, now and after the test."""
    for name in [name for name in sys.modules if name.startswith("vkops_lavapipe")]:
        monkeypatch.delitem(sys.modules, name)
    caches = (vkops.lavapipe.package, vkops.lavapipe._compilers)
    for cache in caches:
        cache.cache_clear()
    yield
    for cache in caches:
        cache.cache_clear()
    for name in [name for name in sys.modules if name.startswith(("vkops_lavapipe", "vkops_comp"))]:
        del sys.modules[name]


@pytest.mark.parametrize(
    ("system", "package", "extra"),
    [
        ("linux", "glslang-tools", "lavapipe"),
        ("linux", "mesa-vulkan-drivers", "lavapipe"),
        ("linux", "renderdoccmd", None),
        ("win32", "spirv-tools", "windows"),
        ("win32", "mesa-vulkan-drivers", None),
        ("darwin", "glslang-tools", None),
    ],
)
def test_an_extra_is_named_where_it_has_the_package(system, package, extra):
    text = vkops.lavapipe.how_to_install(package, system)
    assert text.startswith(f"pip install 'vkops[{extra}]', or " if extra else ""), text
    assert ("pip install" in text) == bool(extra)


@pytest.fixture
def absent(forget, monkeypatch):
    monkeypatch.setitem(sys.modules, "vkops_lavapipe", None)


@pytest.fixture
def folder(forget, tmp_path, monkeypatch):
    """The folder of a package."""
    path = tmp_path / "vkops_lavapipe"
    path.mkdir()
    (path / "__init__.py").write_text(MODULE)
    (path / "__about__.py").write_text('__version__, MESA, DATE = "9.8.7", "9.8.7-1", "2025-01-02"')
    monkeypatch.syspath_prepend(tmp_path)
    for variable in ("VK_DRIVER_FILES", "VK_ICD_FILENAMES", ADDED):
        monkeypatch.delenv(variable, raising=False)
    return path


def test_without_the_package(absent, monkeypatch, message):
    assert loader_files.packaged() == []
    with pytest.raises(vkops.MissingPackageError) as caught:
        vkops.lavapipe.manifest()
    assert caught.value.name == "vkops_lavapipe"
    message(caught.value)
    monkeypatch.setenv(ADDED, "/a.json")
    with loader_files.environment({}, loader_files.packaged()):
        assert os.environ[ADDED] == "/a.json"


@pytest.mark.parametrize("before", [None, "/a.json"])
def test_the_loader_is_told_only_while_it_looks_for_drivers(folder, monkeypatch, before):
    if before:
        monkeypatch.setenv(ADDED, before)
    manifest = vkops.lavapipe.manifest()
    assert Path(manifest) == folder / "lib" / "lvp_icd.json"
    with loader_files.environment({}, loader_files.packaged()):
        assert os.environ[ADDED] == os.pathsep.join(filter(None, [before, manifest]))
    assert os.environ.get(ADDED) == before


def test_it_is_one_of_the_drivers_unless_they_are_named(folder, monkeypatch):
    assert loader_files.manifests()[-1] == folder / "lib" / "lvp_icd.json"
    monkeypatch.setenv("VK_DRIVER_FILES", "/a.json")
    assert loader_files.manifests() == [Path("/a.json")]


def test_its_adapter_comes_after_those_of_the_system(folder, monkeypatch):
    ours, theirs, gpu = (
        SimpleNamespace(driver=f"llvmpipe Mesa {text}")
        for text in ("9.8.7-1 (LLVM 1)", "9.8.7 (LLVM 1)", "1.2.3")
    )
    instance = SimpleNamespace(adapters=lambda: [ours, theirs, gpu])
    monkeypatch.setattr(
        adapter, "load_native", lambda: SimpleNamespace(Instance=lambda *_: instance)
    )
    assert adapter.instances.__wrapped__(0, None, None) == (theirs, gpu, ours)


@pytest.mark.posix("executable files")
@pytest.mark.parametrize("name", ["vkops_lavapipe", "vkops_compilers"])
def test_its_programs_come_before_those_on_path(folder, tmp_path, monkeypatch, name):
    if name != folder.name:
        monkeypatch.setitem(sys.modules, folder.name, None)
        folder = folder.rename(tmp_path / name)
    (tmp_path / "path").mkdir()
    (folder / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    for place in (tmp_path / "path", folder / "bin"):
        program = place / "spirv-val"
        program.write_text("#!/bin/sh\n")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        assert tools.find("spirv-val", "spirv-tools") == str(program)
