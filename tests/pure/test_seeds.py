"""The random tests of the default run are the same in every run."""

import ast
from pathlib import Path

from hypothesis import settings

TESTS = Path(__file__).parents[1]


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
