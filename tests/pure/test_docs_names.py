"""Documentation, docstrings and comments name only files, tests and Python names that exist."""

import ast
import builtins
import keyword
import re
from functools import cache
from pathlib import Path
from pkgutil import resolve_name

import pytest
from processes import ROOT
from reference_pages import expanded

from vkops import dml

FOLDERS = ("docker", "docs", "examples", "scripts", "shaders", "tests", "vkops")
PATTERNS = ("*.md", "docs/**/*.md", "docker/*.md", "examples/*.md")
PAGES = sorted(page for pattern in PATTERNS for page in ROOT.glob(pattern))
page_of_each = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)


@cache
def files() -> list[str]:
    """The paths of the repository's files and folders, each with a slash in front."""
    paths = [path for name in FOLDERS for path in (ROOT / name, *(ROOT / name).rglob("*"))]
    return [f"/{path.relative_to(ROOT).as_posix()}" for path in paths]


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
    named = {word.rstrip("/") for word in inline_code(page) if re.fullmatch(pattern, word)}
    missing = {name for name in named if not any(f.endswith(f"/{name}") for f in files())}
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
    suffixes = (".py", ".json", ".md", ".zip")  # of files
    for word in inline_code(page):
        if (name := re.match(pattern, word)) and not word.endswith(suffixes):
            resolve_name(f"vkops.{name[0].removeprefix('vkops.')}")


def sources(*suffixes: str) -> list[Path]:
    """The package's files and the scripts with one of these suffixes."""
    paths = [path for name in ("scripts", "shaders", "vkops") for path in (ROOT / name).rglob("*")]
    return [path for path in paths if path.is_file() and path.suffix in suffixes]


def words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text))


def test_files_that_sources_name_exist():
    """Paths that begin at the root, in code as well."""
    pattern = re.compile(rf"(?<![\w./{{}}])(?:{'|'.join(FOLDERS)})/[\w./-]*\.\w+")
    named = {
        (path.name, name)
        for path in sources("", ".py", ".pyi", ".cpp", ".cmake", ".comp", ".glsl", ".txt")
        for name in pattern.findall(path.read_text("utf-8"))
    }
    assert len(named) > 10
    assert {(path, name) for path, name in named if f"/{name}" not in files()} == set()


OF_OTHERS = {
    *("rechunk", "custom_metadata_map", "HOME", "DML_OPERATOR_"),  # Dask, ONNX Runtime, DirectML
    *("sourcePath", "targetPath", "hlsl"),  # DxDispatch
    *("broadcast_tensors", "repeat_interleave", "take_along_dim", "tensor_split"),  # PyTorch
    *("non_blocking", "pin_memory", "pinned_array"),  # PyTorch, numba-vulkan
    "PYTHON_GIL",  # Python
    *("max_work_item_sizes", "max_work_group_size", "local_mem_size"),  # PyOpenCL
    "max_mem_alloc_size",
    *("max_constant_buffer_size", "max_parameter_size", "mem_base_addr_align", "image2d_max_width"),
    *(
        "translate_cucomplex",
        "CUDA_LAUNCH_BLOCKING",
        "dispatch_workgroups_indirect",
        "on_submitted_work_done",
    ),
    *("batch", "DATA_BATCH", "row", "column"),  # examples
    *("SCIPY_ARRAY_API", "accuracy_score", "balanced_accuracy_score", "cohen_kappa_score"),
    *("confusion_matrix", "f1_score", "log_loss", "matthews_corrcoef", "roc_auc_score"),
    *(
        "average_precision_score",
        "array_api_dispatch",
        "config_context",
        "f_oneway",
        "ttest_ind",
    ),  # SciPy, scikit-learn
}
"""Names in the documentation that vkops does not define."""


def test_names_in_docstrings_exist():
    """They are in the same file's code, or the name of a module, class or function of any file."""
    defined = {*dir(builtins), *keyword.kwlist, *OF_OTHERS}
    defined |= {path.stem for path in (ROOT / "vkops").rglob("*") if path.suffix in ("", ".py")}
    trees = {path: ast.parse(path.read_text("utf-8")) for path in sources(".py")}
    for node in (node for tree in trees.values() for node in ast.walk(tree)):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            defined.add(node.name)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            node.value = ast.Constant(None)  # without docstrings; ast leaves out comments
    pattern = re.compile(r"``([A-Za-z_]\w+)(?:\([^`]*\))?``")
    missing = {
        (path.name, name)
        for path, tree in trees.items()
        for named in [set(pattern.findall(path.read_text("utf-8"))) - defined]
        for name in named and named - words(ast.unparse(tree))
    }
    assert missing == set()


@cache
def code() -> set[str]:
    """The words of every file that is no documentation."""
    paths = [path for path in map(ROOT.joinpath, (f[1:] for f in files())) if path.is_file()]
    texts = (path.read_bytes() for path in paths if path.suffix not in (".md", ".pyc"))
    return set().union(*(words(text.decode("utf-8", "replace")) for text in texts))


@page_of_each
def test_names_with_underscores_exist(page):
    pattern = re.compile(r"(?:--)?(?!VK_|DML_|E_|GL_)([A-Za-z]\w*_\w+)(?:[=(].*)?")
    named = {match[1] for match in map(pattern.fullmatch, inline_code(page)) if match}
    assert named - code() - OF_OTHERS == set()


@page_of_each
def test_linked_files_and_headings_exist(page):
    links = re.findall(r"\]\((?!https?:)([^)#]*)#?([^)]*)\)", page.read_text("utf-8"))
    for path, heading in links:
        target = page.parent / path if path else page
        assert target.exists(), path
        if not heading:
            continue
        titles = re.findall(r"^#+ (.*)", expanded(target.read_text("utf-8")), re.M)
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
