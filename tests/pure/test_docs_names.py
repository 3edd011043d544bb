"""The documentation names only files, tests and Python names that exist."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from pkgutil import resolve_name

import pytest

from vkops import dml

ROOT = Path(__file__).parents[2]
FOLDERS = ("docker", "docs", "examples", "scripts", "shaders", "tests", "vkops")
PATTERNS = ("*.md", "docs/**/*.md", "docker/*.md", "examples/*.md")
PAGES = sorted(page for pattern in PATTERNS for page in ROOT.glob(pattern))
page_of_each = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)


@cache
def files() -> list[str]:
    """The paths of the repository's files and folders, each with a slash in front."""
    paths = [path for name in FOLDERS for path in (ROOT / name, *(ROOT / name).rglob("*"))]
    return [f"/{path.relative_to(ROOT)}" for path in paths]


@cache
def functions() -> set[str]:
    """The names of all test functions."""
    texts = (path.read_text("utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    return {name for text in texts for name in re.findall(r"^def (test_\w+)", text, re.M)}


def inline_code(page: Path) -> list[str]:
    """The words in a page's inline code; blocks of code are left out."""
    text = re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.M | re.S)
    return [word for code in re.findall(r"`([^`]+)`", text) for word in code.split()]


@page_of_each
def test_files_exist(page):
    """A path may begin at the root, or at a package: ``plan/cut.py``."""
    pattern = rf"(?:{'|'.join(FOLDERS)})/[\w./-]*|(?:[\w-]+/)*[\w-]+\.(?:py|glsl|comp)"
    named = {word for word in inline_code(page) if re.fullmatch(pattern, word)}
    missing = {
        name for name in named if not any(f.endswith(f"/{name.rstrip('/')}") for f in files())
    }
    assert missing == set()


@page_of_each
def test_tests_exist(page):
    named = {word for word in inline_code(page) if re.fullmatch(r"test_\w+", word)}
    assert named - functions() == set()


@page_of_each
def test_python_names_exist(page):
    """A name may begin at a package: ``gpu.kernels``; ``dask`` and ``onnx`` are those of PyPI."""
    packages = {folder.name for folder in (ROOT / "vkops").iterdir()} - {"dask", "onnx"}
    pattern = rf"(?:vkops|{'|'.join(filter(str.isalpha, packages))})(?:\.[A-Za-z_]\w*)+"
    suffixes = (".py", ".json", ".md")  # of files
    for word in inline_code(page):
        if (name := re.match(pattern, word)) and not word.endswith(suffixes):
            resolve_name(f"vkops.{name[0].removeprefix('vkops.')}")


@page_of_each
def test_linked_headings_exist(page):
    for path, heading in re.findall(r"\]\((?!https?:)([^)#]*)#([^)]+)\)", page.read_text("utf-8")):
        target = page.parent / path if path else page
        titles = re.findall(r"^#+ (.*)", target.read_text("utf-8"), re.M)
        slugs = {re.sub(r"[^\w -]", "", title).replace(" ", "-").lower() for title in titles}
        assert heading in slugs, f"{path}#{heading}"


def test_the_readme_lists_every_operator():
    row = re.search(r"^\| Operators \| (.*) \|$", (ROOT / "README.md").read_text("utf-8"), re.M)[1]
    assert set(re.findall(r"\b[A-Z][A-Z0-9_]+\b", row)) == set(dml.OPERATORS)


def test_every_fault_has_a_test():
    section = (ROOT / "docs/reliability.md").read_text("utf-8").split("## ")[1]
    rows = re.findall(r"^\| .* \|$", section, re.M)[1:]
    assert len(rows) > 15
    assert [row for row in rows if "`test_" not in row.split(" | ")[-1]] == []


def test_every_promise_for_untrusted_models_has_a_test():
    section = (ROOT / "SECURITY.md").read_text("utf-8").split("## ")[1]
    promises = section.split("\n- ")[1:]
    assert len(promises) > 6
    assert [promise for promise in promises if "`test_" not in promise] == []
