"""What the documentation shows is what happens."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import vkops
from vkops.bench import peers

ROOT = Path(__file__).parents[2]
PAGES = (
    sorted(ROOT.glob("*.md")) + sorted(ROOT.glob("docs/*.md")) + sorted(ROOT.glob("examples/*.md"))
)
# A peer's module needs the peer's packages.
ABSENT = {peers.module(name) for name in set(peers.PEERS) - set(peers.installed())}
MODULES = sorted(
    {module.name for module in pkgutil.walk_packages(vkops.__path__, "vkops.")} - ABSENT
)


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings(name, monkeypatch):
    monkeypatch.chdir(ROOT)  # some read examples/
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_public_names_have_examples():
    names = ("Device", "Tensor", "split", "join", "slice", "devices")
    assert all(">>> " in (getattr(vkops, name).__doc__ or "") for name in names)


def test_readme_examples(capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    assert run_blocks("README.md") == 5
    printed = capsys.readouterr().out
    assert "[[23. 21. 19.]\n [11.  9.  7.]]" in printed
    assert "[ 0.  1.  4.  5.  8.  9.  2.  3.  6.  7. 10. 11.]" in printed


def test_onnx_examples(capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    assert run_blocks("docs/onnx.md") == 2
    assert "[ 0.  1.  4.  5.  8.  9.  2.  3.  6.  7. 10. 11.]" in capsys.readouterr().out


def run_blocks(page):
    """Run a page's Python, all in one; returns the number of blocks."""
    blocks = re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text(), re.M | re.S)
    exec("\n".join(blocks), {})
    return len(blocks)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    links = re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text())
    assert [link for link in links if not (page.parent / link).exists()] == []
