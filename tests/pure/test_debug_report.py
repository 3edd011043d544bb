"""``vkops debug report``, on machines where parts are missing or broken."""

import os
import sys

import numpy
import pytest

import vkops
from vkops.debug import bug_report as module
from vkops.debug.bug_report import report
from vkops.system.vulkan import LOADER


def sections(text):
    """The lines of each section, by its title."""
    first, *parts = text.split("\n## ")
    assert first == f"# vkops {vkops.__version__}\n"
    return {title: body for title, _, body in (part.partition("\n\n") for part in parts)}


@pytest.fixture
def no_drivers(monkeypatch, tmp_path):
    """Query no drivers, as they are not what is tested."""
    monkeypatch.setenv("VK_DRIVER_FILES", str(tmp_path))
    monkeypatch.setattr(module, "_PROBE", "raise SystemExit(3)")


def test_versions(no_drivers):
    lines = sections(report())["Versions"].split("\n")
    python = ".".join(map(str, sys.version_info[:3]))
    assert any(line.startswith(f"- Python: {python} (") for line in lines)
    for name in ("system", "kp", "glslangValidator", "spirv-val", "renderdoccmd"):
        assert any(line.startswith(f"- {name}: ") for line in lines)
    assert f"- numpy: {numpy.__version__}" in lines


@pytest.mark.usefixtures("no_package")
def test_missing_packages_and_programs(no_drivers, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("VKOPS_GLSLANG", raising=False)
    monkeypatch.setattr(module, "_PACKAGES", ("no-such-package",))
    text = sections(report())["Versions"]
    assert "- no-such-package: not installed" in text
    glslang = "pip install 'vkops[lavapipe]', or Debian and Ubuntu: apt install glslang-tools"
    renderdoc = "Debian 12 and Ubuntu: apt install renderdoccmd; Debian 13 has none"
    if os.name == "nt":
        glslang = "pip install 'vkops[windows]', or the Vulkan SDK of vulkan.lunarg.com"
        renderdoc = "RenderDoc of renderdoc.org, with its folder on PATH"
    for program, how in (("glslangValidator", glslang), ("renderdoccmd", renderdoc)):
        assert f"- {program}: {program} is not on PATH: install it ({how})" in text


def test_only_listed_environment_variables_are_shown(no_drivers, monkeypatch):
    for name in list(os.environ):
        if module._VARIABLES.fullmatch(name):
            monkeypatch.delenv(name)
    assert "- " not in sections(report())["Environment"]
    shown = {"VKOPS_EXPECT": "gpu", "LP_NUM_THREADS": "2", "MESA_DEBUG": "a\nb", "VK_X": ""}
    hidden = {"AWS_SECRET": "s3cret", "XVK_A": "s3cret", "VK": "s3cret", "MESA": "s3cret"}
    for name, value in {**shown, **hidden}.items():
        monkeypatch.setenv(name, value)
    text = report()
    assert "s3cret" not in text
    assert sections(text)["Environment"].strip().split("\n") == [
        "- LP_NUM_THREADS: 2",
        "- MESA_DEBUG: a b",
        "- VKOPS_EXPECT: gpu",
        "- VK_X: none",
    ]


ABORTED = "exit status 3" if os.name == "nt" else "killed by SIGABRT"
HOME = "USERPROFILE" if os.name == "nt" else "HOME"


def test_the_home_directory_is_short(no_drivers, monkeypatch, tmp_path):
    home = f"{tmp_path}{os.sep}some one"
    monkeypatch.setenv(HOME, home)
    monkeypatch.setenv("LD_LIBRARY_PATH", f"{home}/lib:{home}:{home}2/lib")
    assert f"- LD_LIBRARY_PATH: ~/lib:~:{home}2/lib" in report()


@pytest.mark.parametrize("home", ["/", ""])
def test_no_home_directory(no_drivers, monkeypatch, home):
    monkeypatch.setenv(HOME, home)
    monkeypatch.setenv("LD_LIBRARY_PATH", "/usr/lib")
    assert "- LD_LIBRARY_PATH: /usr/lib" in report()


@pytest.mark.parametrize(
    ("probe", "told"),
    [
        (
            "import os; os.abort()",
            f"the process that asked the drivers ended ({ABORTED})",
        ),
        (
            "raise SystemExit('why')",
            "the process that asked the drivers ended (exit status 1): why",
        ),
        ("print('not JSON')", "the process that asked the drivers ended (exit status 0)"),
        ("while True: pass", "the drivers did not answer within 1 s"),
    ],
    ids=["crash", "error", "nonsense", "hang"],
)
def test_drivers_that_end_the_process(no_drivers, monkeypatch, probe, told):
    monkeypatch.setattr(module, "_PROBE", probe)
    if "while True" in probe:
        monkeypatch.setattr(module, "_TIMEOUT_S", 1.0)
    text = sections(report())["Vulkan"]
    unknown = ["- Kompute: not known", "- native operations: not known"]
    assert text.strip().split("\n") == [f"- problem: {told}", *unknown]


def test_without_a_loader(monkeypatch, tmp_path):
    missing = f"raise ImportError('{LOADER}: cannot open shared object file')"
    (tmp_path / "vkops_native.py").write_text(missing)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    text = sections(report())["Vulkan"]
    assert text.startswith(f"- problem: no Vulkan loader: {LOADER} was not found")
    assert "\n- loader: " not in text
    assert "\n- Kompute: " in text


def test_an_error_in_one_section(no_drivers, monkeypatch):
    def no_memory():
        raise RuntimeError("no /proc")

    monkeypatch.setattr(module.psutil, "virtual_memory", no_memory)
    parts = sections(report())
    assert list(parts) == ["Versions", "Vulkan", "Drivers", "Environment", "Machine"]
    assert "- not known: RuntimeError('no /proc')" in parts["Machine"]


def test_on_this_machine(monkeypatch):
    """Each line is an item or a heading of limited length."""
    parts = sections(report())
    for body in parts.values():
        for line in filter(None, body.split("\n")):
            assert line.startswith(("- ", "### ", "none of the variables"))
            assert len(line) < 2000
    assert f"{os.cpu_count()} threads" in parts["Machine"]
