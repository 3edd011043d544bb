"""The faults that scripts/mutate plants."""

import ast

import mutate
import pytest

FAULTS = {
    "x = a < b": ["a < b -> a <= b"],
    "x = a not in b": ["a not in b -> a in b"],
    "x: int = a + 1": ["a + 1 -> a - 1", "1 -> 2"],
    "f(a and b)": ["f(a and b) -> None", "a and b -> a or b"],
    "if a: pass": ["a -> not a"],
    "def f(a: int = 0) -> int:\n    return (\n        a\n    )": ["a -> None", "0 -> 1"],
    "x = 'text' + f'{a + 1}'\nraise E(1)\nfrom a import b": [],
    "if TYPE_CHECKING: x = 1": [],
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


def test_the_name_of_a_test_is_read_from_coverage():
    names = ["", "|a.py::t[x|y]|run", "a.py::t[x (y)] (call)|", "a.py::t|setup"]
    tests = [mutate.test_of(name) for name in names]
    assert tests == ["", "a.py::t[x|y]", "a.py::t[x (y)]", "a.py::t"]
