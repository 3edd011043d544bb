"""What the tests rest on: their messages, their seeds, and the faults that scripts/mutate plants."""

import ast
import re
import subprocess
from pathlib import Path

import mutate
import mutate_probe
import pytest
from hypothesis import settings
from messages import lines_of, template

FAULTS = {
    "x = a < b": ["a < b -> a <= b"],
    "x = a not in b": ["a not in b -> a in b"],
    "x: int = a + 1": ["a + 1 -> a - 1", "1 -> 2"],
    "f(a and b)": ["f(a and b) -> None", "a and b -> a or b"],
    "if a: pass": ["a -> not a"],
    "def f(a: int = 0) -> int:\n    return (\n        a\n    )": ["a -> None", "0 -> 1"],
    "x = 'text' + f'{a + 1}'\nraise E(1)\nfrom a import b": [],
    "if TYPE_CHECKING: x = 1": [],
    "match a:\n    case 1: pass": [],
}  # fmt: skip


@pytest.mark.parametrize("text", FAULTS)
def test_each_fault_is_another_module(text):
    faults = list(mutate.faults_of("m.py", text))
    assert sorted(str(each).partition(": ")[2] for each in faults) == sorted(FAULTS[text])
    planted = {ast.unparse(ast.parse(each.planted_in(text))) for each in faults}
    assert len(planted - {ast.unparse(ast.parse(text))}) == len(faults)


@pytest.mark.wine("Git")
def test_a_seed_chooses_the_faults():
    chosen = mutate.chosen_faults(["plan"], 20, 1)
    assert chosen == mutate.chosen_faults(["plan"], 20, 1) != mutate.chosen_faults(["plan"], 20, 2)
    assert all(each.file.startswith("vkops/plan/") for each in chosen)


def test_each_place_of_every_module_can_be_recorded():
    faults = mutate.chosen_faults(mutate.FOLDERS, 1 << 20, 0)
    for file, places in mutate.places_of(faults).items():
        text = (mutate.ROOT / file).read_text(encoding="utf-8")
        recorded = mutate.with_probes(text, places)
        numbers = [int(each) for each in re.findall(r"_reached\((\d+)\)", recorded)]
        assert sorted(numbers) == sorted(places.values())
        compile(recorded, file, "exec")


def test_places_are_recorded_in_the_order_in_which_they_run(monkeypatch):
    text = "from __future__ import annotations\ndef f(a, b=1): return a and a < b or 3\n"
    places = {fault: number for number, fault in enumerate(mutate.faults_of("m.py", text))}
    recorded = []
    monkeypatch.setattr(mutate_probe, "reached", recorded.append)
    exec(mutate.with_probes(text, places), names := {})
    assert names["f"](0) == 3
    names_of_places = {number: str(fault).split(": ")[1] for fault, number in places.items()}
    assert [names_of_places[number].partition(" ->")[0] for number in recorded] == [
        "1", "a and a < b or 3", "a and a < b or 3", "a and a < b", "3",
    ]  # fmt: skip


def test_the_functions_that_use_a_constant():
    text = """\
ONE = 1
TWO = [ONE]
class Parts:
    COUNT = 3
    def all(self):
        return self.COUNT
def f():
    return TWO
def g(): return 4
"""
    users = {
        line: [each.name for each in mutate.functions_that_use(text, mutate.names_from(text, line))]
        for line in (1, 2, 4, 9)
    }
    assert users == {1: ["f"], 2: ["f"], 4: ["all"], 9: ["g"]}
    assert [mutate.runs_at_import(text, line) for line in range(1, 10)] == [True] * 5 + [
        False, True, False, False,
    ]  # fmt: skip


MODULE = """\
from __future__ import annotations
LIMIT = 3
def allowed(n): return n < LIMIT
def unused(n): return n + 1
"""
TEST = """\
from vkops.m import allowed
def test_small_numbers(): assert allowed(2) and not allowed(4)
"""


@pytest.mark.wine("Git")
def test_faults_are_found_by_the_tests_that_reach_them(tmp_path, monkeypatch):
    monkeypatch.setattr(mutate, "ROOT", tmp_path)
    monkeypatch.setattr(mutate, "KEPT", tmp_path / "build")
    monkeypatch.delenv("PYTEST_CURRENT_TEST")  # children record for it
    texts = {
        "vkops/__init__.py": "",
        "vkops/m.py": MODULE,
        "tests/pure/test_m.py": TEST,
        "tests/conftest.py": "from hypothesis import settings\nsettings.register_profile('repeatable')",
        "scripts/mutate_probe.py": Path(mutate_probe.__file__).read_text("utf-8"),
        "pyproject.toml": "[tool.pytest.ini_options]\npythonpath = ['scripts']\n",
    }
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, "utf-8")
    author = ["-c", "user.name=Tests", "-c", "user.email=tests@localhost"]
    for arguments in (["init", "-q"], ["add", *texts], [*author, "commit", "-qm", "Add all"]):
        subprocess.run(["git", *arguments], cwd=tmp_path, check=True)
    faults = {str(each): each for each in mutate.faults_of("vkops/m.py", MODULE)}
    copies = mutate.Copies(["tests/pure"], [*faults.values()])
    seen = {}
    for name, fault in faults.items():
        tests = copies.tests_that_reach(fault)
        seen[name.partition(":")[2]] = len(tests), bool(tests) and copies.is_found(fault, tests)
    assert seen == {
        "2: 3 -> 4": (1, False),
        "3: n < LIMIT -> None": (1, True),
        "3: n < LIMIT -> n <= LIMIT": (1, False),
        "4: n + 1 -> None": (0, False),
        "4: n + 1 -> n - 1": (0, False),
        "4: 1 -> 2": (0, False),
    }


TESTS = Path(__file__).parents[1]


@pytest.mark.parametrize("file", sorted(TESTS.glob("*/*.messages.txt")), ids=lambda path: path.name)
def test_each_line_belongs_to_a_test_and_is_the_only_one_of_its_kind(file):
    source = ast.parse(file.with_name(f"{file.name.partition('.')[0]}.py").read_text("utf-8"))
    functions = {node.name for node in ast.walk(source) if isinstance(node, ast.FunctionDef)}
    for test, texts in lines_of(file).items():
        assert test in functions, "pytest --rewrite-messages removes unused lines"
        assert len({template(text) for text in texts}) == len(texts)


def test_texts_that_differ_in_numbers_and_quoted_values_are_alike():
    shown = "GATHER axis: got -2, must be 0 to 1, not 'a' or (1, 2, 3) [GATH-02]"
    assert template(shown) == template(
        shown.replace("-2", "1e+39").replace("'a'", "'b c'").replace("(1, 2, 3)", "(1, 2)")
    )
    for part in ("GATHER", "axis", "must be", "got"):
        assert template(shown) != template(shown.replace(part, "other"))


def test_hypothesis_has_fresh_seeds_only_where_they_are_asked_for(pytestconfig):
    is_fresh = pytestconfig.getoption("--hypothesis-profile") == "fresh"
    assert settings.default.derandomize != is_fresh


def unseeded(node):
    """Whether a statement or an expression uses random numbers that differ from run to run."""
    if isinstance(node, ast.Import):
        return any(name.name in ("random", "secrets") for name in node.names)
    if isinstance(node, ast.ImportFrom):
        return node.module == "random" and any(name.name != "Random" for name in node.names)
    if isinstance(node, ast.Call) and not node.args:
        return ast.unparse(node.func).rpartition(".")[2] in ("Random", "default_rng")
    return isinstance(node, ast.Constant) and "/dev/urandom" in str(node.value)


def test_every_generator_of_random_numbers_has_a_seed():
    result = [
        f"{path.relative_to(TESTS)}:{getattr(node, 'lineno', '')}"
        for path in sorted(TESTS.rglob("*.py"))
        if path != Path(__file__)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if unseeded(node)
    ]
    assert not result
