"""The examples in the documentation run, and print what it shows."""

from __future__ import annotations

import ast
import doctest
import importlib
import os
import pkgutil
import re
import sys
from contextlib import redirect_stdout
from glob import glob
from io import StringIO
from pathlib import Path

import pytest
import yaml
from adapters import LAYERS, MANIFESTS, refused_by_layer, require_sharing, without_validation
from processes import SLANG, finished, script

import vkops
from vkops import dml
from vkops.gpu.adapters.adapter import select

ROOT = Path(__file__).parents[2]
PAGES_WITH_PROGRAMS = (
    "index",
    "elementwise",
    "kernels",
    "asynchronous",
    "moving_data",
    "directml_differences",
    "shader_bundles",
)
PAGES = [
    *(ROOT / f"docs/{name}.md" for name in PAGES_WITH_PROGRAMS),
    *sorted(ROOT.glob("docs/tutorials/*.md")),
]
SHADER_FEATURES = {"shaderInt64", "shaderFloat64", "shaderFloat16", "shaderInt8"}
"""What the pages and examples of shaders and kernels use of a device."""

PAGE_FEATURES = {
    **dict.fromkeys(("shaders", "kernels", "dask"), SHADER_FEATURES),
    "images": {"shaderStorageImageMultisample"},
}
"""The features of the device without which a page prints something else."""

NEEDED = {
    "ci": [pytest.mark.system("lvp_icd")],
    "debugging": [pytest.mark.system("VkLayer_khronos_validation")],
    "shaders": [pytest.mark.system("spirv-link"), SLANG],
}
"""What tutorials use that vkops_lavapipe or a Python without a global lock does not have."""

MODULES = sorted(module.name for module in pkgutil.walk_packages(vkops.__path__, "vkops."))


def require_features(needed):
    """Skip a test where the device lacks a feature."""
    if missing := needed - vkops.Device().features:
        pytest.skip(f"the device has no {', '.join(sorted(missing))}")


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings(name, monkeypatch):
    monkeypatch.chdir(ROOT)  # some read examples/
    if name.startswith("vkops.kernels."):
        require_features(SHADER_FEATURES)
    elif name == "vkops.tensors.tensor":
        require_sharing(vkops.Device())
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_public_names_have_examples():
    names = ("Device", "ElementwiseKernel", "Tensor", "split", "join", "slice", "devices")
    assert all(">>> " in (getattr(vkops, name).__doc__ or "") for name in names)


def test_readme_examples(capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    blocks = blocks_of(ROOT / "README.md")
    for kind, block in blocks:
        if kind == "python":
            exec(block, {})  # each runs alone
    arrays, shader, *race = capsys.readouterr().out.splitlines()
    assert "\n".join(race) == next(block for kind, block in blocks if kind == "text").strip()
    assert arrays == "(9, 3) [18. 19. 20. 21. 22. 23.]"
    assert shader == "[ 1.  4.  7. 10.]"


def marked(page):
    """A case for a page."""
    return pytest.param(page, marks=NEEDED.get(page.stem, []), id=page.stem)


@pytest.mark.parametrize("page", [*map(marked, PAGES)])
def test_tutorials(page, tmp_path, monkeypatch):
    """Python blocks and commands run, and print the text below them."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("VKOPS_EXPECT", select(None).name)  # no message about CPU drivers
    if page.stem == "ci":  # it chooses its own driver
        monkeypatch.delenv("VKOPS_EXPECT")
        monkeypatch.setenv("VK_DRIVER_FILES", ":".join(glob(MANIFESTS["llvmpipe"])))
    if page.stem == "debugging":
        if reason := refused_by_layer(select(None).name):
            pytest.skip(reason)
        monkeypatch.setenv(LAYERS, without_validation())  # it would report the wrong shader
    if page.stem == "moving_data":
        require_sharing(vkops.Device())
    require_features(PAGE_FEATURES.get(page.stem, set()))
    names, printed = {}, ""
    for kind, block in blocks_of(page):
        file = re.match(r"# (\w+\.py)\n", block)
        if kind == "text":
            assert_printed(block, printed)
            printed = ""
            continue
        assert printed == "", "the page does not show what this prints"
        if file:
            Path(file[1]).write_text(block)
        elif kind == "python":
            printed = printed_by(block, names)
        elif kind == "diff":  # a program before and after
            before, after = sides(block)
            ast.parse(before)
            printed = printed_by(after, names)
        elif kind == "py":  # for another library, which need not be installed
            ast.parse(block)
        elif kind == "cpp":
            assert_names_exist(block)
        elif kind == "console":
            run_commands(block)
        elif kind == "c":  # lines of the shader that the page is about
            assert block.strip("\n") in (ROOT / "examples/transpose_wrong.comp").read_text()
        else:
            assert page.stem == "ci", f"nothing tests blocks of {kind}"
    assert printed == ""


def test_programs_for_onnx_runtime_print_the_same(monkeypatch):
    """What the tutorial shows before the change, with ONNX Runtime itself."""
    pytest.importorskip("onnxruntime")
    monkeypatch.chdir(ROOT)
    blocks = blocks_of(ROOT / "docs/tutorials/onnx.md")
    i = next(i for i, (kind, _) in enumerate(blocks) if kind == "diff")
    before, _ = sides(blocks[i][1])
    assert "import onnxruntime" in before
    assert_printed(blocks[i + 1][1], printed_by(before, {}))


def printed_by(program, names):
    """Run a program, and return what it prints."""
    with redirect_stdout(StringIO()) as output:
        exec(program, names)
    return output.getvalue()


def sides(block):
    """Return the program before and after a change."""
    lines = [(line[:1], line[1:]) for line in block.splitlines()]
    assert {sign for sign, _ in lines} <= {"", " ", "+", "-"}
    before, after = ("\n".join(line for sign, line in lines if sign != other) for other in "+-")
    return before, after


def assert_names_exist(block):
    """Check that vkops.dml has the functions of DirectMLX that a page shows."""
    named = set(re.findall(r"dml::([A-Z]\w+)", block)) - {"TensorDesc"}
    assert named
    for name in named:
        snake_case = re.sub("(?<=[a-z])(?=[A-Z]|2D)", "_", name).lower()
        assert hasattr(dml, name) or hasattr(dml, snake_case), name


def blocks_of(page):
    """Return the language and the text of each block of a page."""
    return re.findall(r"^```(\w+)\n(.*?)^```", page.read_text(), re.M | re.S)


def run_commands(block):
    """Run the lines after prompts; the other lines are the expected output."""
    commands = re.findall(r"^\$ (.*)\n", block, re.M)
    shown = re.sub(r"^\$ .*\n", "", block, flags=re.M)
    status, printed, _ = finished("bash", "-euc", "\n".join(["exec 2>&1", *commands]))
    assert_printed(shown, printed)
    assert status == 0


def assert_printed(shown, printed):
    """Check that a page shows what was printed; ``...``, names of adapters and times match anything.

    Only some devices measure times themselves, and only some versions of glslang count closing braces as
    lines.
    """
    for pattern, stand_in in (
        (r", [0-9.]+ ms median \(GPU\)", ""),
        (r"[0-9.]+ ms", "0 ms"),
        (r"(on |device=)'.*?'", r"\1'adapter'"),
        (r"executed \d+ lines", "executed 6 lines"),
    ):
        shown, printed = (re.sub(pattern, stand_in, text) for text in (shown, printed))
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    assert doctest.OutputChecker().check_output(shown, printed, flags), f"{shown}\n--\n{printed}"


@pytest.mark.posix("bash", tests_only=True)
def test_the_workflow_with_wheels(tmp_path):
    """Its steps run, with stand-ins for GitHub's program and pip, and find the driver and a test."""
    blocks = blocks_of(ROOT / "docs/tutorials/ci.md")
    (text, *_) = (block for kind, block in blocks if kind == "yaml")
    (tmp_path / "tests.yml").write_text(text)
    program = Path(sys.executable).with_name("check-jsonschema")
    schema = "--builtin-schema", "vendor.github-workflows", "tests.yml"
    assert finished(program, *schema, cwd=tmp_path)[0] == 0
    job = yaml.safe_load(text)["jobs"]["tests"]
    assert any(step.get("with", {}).get("cache") == "pip" for step in job["steps"])
    assert "~/.cache/mesa_shader_cache_db" in str(job["steps"])
    for _, block in blocks:
        if file := re.match(r"# (\w+\.py)\n", block):
            (tmp_path / file[1]).write_text(block)
    (tmp_path / "bin").mkdir()
    for program in ("gh", "pip"):
        script(tmp_path / "bin" / program, f'echo {program} "$@" >> called')
    created = next(block for _, block in blocks if block.startswith("gh release create"))
    steps = [step["run"] for step in job["steps"] if "run" in step]
    variables = dict(os.environ, VKOPS_EXPECT=select(None).name)
    variables["PATH"] = f"{tmp_path}/bin:{Path(sys.executable).parent}:{os.environ['PATH']}"
    status, printed, errors = finished(
        "bash", "-euc", "\n".join(steps), env=variables, cwd=tmp_path
    )
    assert status == 0, printed + errors
    assert "3 passed" in printed
    downloaded, installed = (tmp_path / "called").read_text().splitlines()
    assert created.split()[3] == downloaded.split()[3]
    assert downloaded.split()[-1] == installed.split()[installed.split().index("--find-links") + 1]


def test_continuous_integration():
    """The packages are those of scripts/setup, and the files that the pipeline names exist."""
    blocks = blocks_of(ROOT / "docs/tutorials/ci.md")
    needed = re.findall(r"^ *need(?:_or_wheel)? (\S+)", (ROOT / "scripts/setup").read_text(), re.M)
    # The packages of the chosen interpreter, under the names of those of python3.
    needed = {name.strip('"').replace("$debian_python", "python3") for name in needed}
    commands = [block.replace("\\\n", " ") for kind, block in blocks if kind == "sh"]
    lines = [line for line in commands if "apt-get" in line]
    packages = {word for line in lines for word in line.split("--no-install-recommends")[1].split()}
    assert packages == needed - {"python3", "renderdoccmd"}
    assert "On Debian 12, `renderdoccmd`" in (ROOT / "docs/tutorials/ci.md").read_text()
    pipelines = [yaml.safe_load(block) for kind, block in blocks if kind == "yaml"]
    scripts = re.findall(r"vkops/(scripts/\S+?)(?=['\s\]])", str(pipelines))
    assert {"scripts/setup", "scripts/kp_wheel.py"} <= {*scripts}
    assert [script for script in scripts if not (ROOT / script).exists()] == []
