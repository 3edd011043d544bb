"""The documentation builds without warnings and without Vulkan, and lists every public name."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import vkops
from vkops import dml, onnx, plan
from vkops.onnx import backend

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    """Build the documentation as scripts/docs does, and return the folder."""
    folder = tmp_path_factory.mktemp("docs")
    script = (ROOT / "scripts/docs").read_text()
    options = re.search(r"-m sphinx (.*) \"\$@\"", script)[1].split()
    command = [sys.executable, "-m", "sphinx", *options, "--doctree-dir", folder / ".doctrees"]
    run = subprocess.run(
        [*command, ROOT / "docs", folder],
        env={**os.environ, "VK_DRIVER_FILES": "/nowhere", "VK_ICD_FILENAMES": "/nowhere"},
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")
    return folder


def test_every_page_is_built(built):
    sources = [page.relative_to(ROOT / "docs") for page in (ROOT / "docs").rglob("*.md")]
    assert [page for page in sources if not (built / page.with_suffix(".html")).exists()] == []


def test_the_reference_lists_every_public_name(built):
    anchors = set(re.findall(r'id="(?:module-)?([\w.]+)"', (built / "api.html").read_text()))
    public = {
        f"{module.__name__}.{name}"
        for module in (vkops, dml, onnx, plan)
        for name in module.__all__
    }
    public |= {
        f"{backend.__name__}.{kind.__name__}" for kind in (backend.VkopsBackend, backend.VkopsRep)
    }
    assert sorted(public - anchors) == []


def test_the_reference_lists_every_method(built):
    anchors = set(re.findall(r'id="([\w.]+)"', (built / "api.html").read_text()))
    methods = {
        f"vkops.{kind.__name__}.{name}"
        for kind in (vkops.Device, vkops.CompiledOperator, vkops.BoundOperator, vkops.Tensor)
        for base in kind.__mro__[:-1]
        for name, value in vars(base).items()
        if not name.startswith("_") and (callable(value) or isinstance(value, property))
    }
    assert sorted(methods - anchors) == []
