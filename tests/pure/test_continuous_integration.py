"""What continuous integration runs, and the versions in its images; nothing is built.

Whether the images can be built, and what is in them, scripts/docker-check tests.
"""

from __future__ import annotations

import re
import subprocess
from importlib import metadata
from pathlib import Path

import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
EXTRAS = ("dev", "dask", "docs", "onnx", "plot")  # the extras that the images install


def workflow() -> dict:
    return yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())


def test_the_workflow_tests_every_driver_that_scripts_test_knows():
    done = subprocess.run(
        [ROOT / "scripts/test", "--help"], capture_output=True, text=True, check=True, timeout=10
    )
    known = re.findall(r"\b(?:none|swiftshader|lavapipe)(?:-[a-z0-9]+)*\b", done.stdout)
    matrix = workflow()["jobs"]["drivers"]["strategy"]["matrix"]
    assert sorted(matrix["driver"]) == sorted(set(known))
    options = " ".join([*matrix["options"], *(more["options"] for more in matrix["include"])])
    assert [option for option in options.split() if option not in done.stdout] == []
    assert {more["driver"] for more in matrix["include"]} <= set(known)


def test_the_workflow_has_time_limits_and_may_only_read():
    parsed = workflow()
    assert parsed["permissions"] == {"contents": "read"}
    assert "group" in parsed["concurrency"]
    for name, job in parsed["jobs"].items():
        assert "permissions" not in job, name
        assert 0 < job["timeout-minutes"] <= 60, name
        for step in job["steps"]:
            assert re.fullmatch(r"[\w-]+/[\w-]+@v\d+", step.get("uses", "a/b@v1"))


def test_constraints_hold_every_dependency():
    """After a change of pyproject.toml: scripts/docker-check --constraints."""
    lines = (ROOT / "docker/constraints.txt").read_text().splitlines()[1:]
    pinned = dict(re.fullmatch(r"([\w.-]+)==([\w.]+)", line).groups() for line in lines)
    pinned = {canonicalize_name(name): version for name, version in pinned.items()}
    wanted = [Requirement(line) for line in metadata.requires("vkops")]
    wanted = [
        r for r in wanted if not r.marker or any(r.marker.evaluate({"extra": e}) for e in EXTRAS)
    ]
    assert len(wanted) > 15
    built_here = {"kp", "vkops"}
    assert [
        str(r)
        for r in wanted
        if r.name not in built_here
        and not r.specifier.contains(pinned.get(canonicalize_name(r.name), "0"))
    ] == []
