"""Types: all that is public says what it is.

``tests/typing`` holds programs with the exact types of what is public; ``scripts/lint`` has pyright
check them, and ``tests/device/test_typing_programs.py`` runs them.
"""

import json
import os
import re
import sys
from pathlib import Path

import function_stubs
import pytest
from processes import ROOT, outcome

import vkops
from vkops import dml, onnx, plan, pydirectml

# What users get to see of these is in the signatures of others.
INNER = (
    "vkops.bench.", "vkops.cli.", "vkops.debug.step_commands.", "vkops.gpu.kernels.layout.",
    "vkops.interpreter.",
)  # fmt: skip


def test_no_error_of_numpys_types_is_ignored():
    """They differ between versions: what one refuses, another takes, and mypy refuses the comment."""
    ignored = re.compile(r"\bnp\..*# type: ignore")
    assert not [path for path in (ROOT / "vkops").rglob("*.py") if ignored.search(path.read_text())]


def test_the_type_stub_of_arithmetic_is_that_of_its_functions():
    committed = (ROOT / "vkops" / "kernels" / "ufuncs.pyi").read_text("utf-8")
    assert committed == function_stubs.stub(), "write it again: scripts/function_stubs.py"


@pytest.mark.wine("Node.js, which pyright needs")
def test_types_are_known():
    """Nothing is of an unknown type, and no checker has to infer one."""
    # The interpreter whose packages it looks at is the first on PATH, whatever it is told.
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    command = ["-m", "pyright", "--verifytypes", "vkops", "--ignoreexternal", "--outputjson"]
    _, printed, _ = outcome(*command, PATH=path)
    completeness = json.loads(printed)["typeCompleteness"]
    symbols = completeness["symbols"]
    names = {symbol["name"] for symbol in symbols}
    assert {f"vkops.{name}" for name in vkops.__all__} - {"vkops.dml"} <= names
    assert completeness["exportedSymbolCounts"]["withUnknownType"] == 0
    inferred = {
        symbol["name"]: diagnostic["message"]
        for symbol in symbols
        for diagnostic in symbol["diagnostics"]
        # The others say that something is partly unknown because of these.
        if re.match("Type is missing type annotation|Ambiguous base class", diagnostic["message"])
    }
    assert {n: why for n, why in inferred.items() if not n.startswith(INNER)} == {}


def test_typed_programs_use_every_public_name():
    programs = "\n".join(page.read_text() for page in ROOT.glob("tests/typing/*.py"))
    used = set(re.findall(r"\w+", programs))
    public = {name for module in (vkops, dml, onnx, plan, pydirectml) for name in module.__all__}
    # Descriptors of operators are typed alike: the programs use those of several kinds of fields.
    public -= {desc.__name__ for desc in dml.OPERATORS.values()}
    assert sorted(public - used) == []
