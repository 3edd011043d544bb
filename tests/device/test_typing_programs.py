"""The programs that type checkers check also run."""

import runpy
from pathlib import Path

import pytest

PROGRAMS = sorted((Path(__file__).parents[1] / "typing").glob("*.py"))


@pytest.mark.features
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.stem)
def test_runs(program):
    assert runpy.run_path(str(program))["assert_type"]
