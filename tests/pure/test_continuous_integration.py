"""What continuous integration runs, and the versions in its images; nothing is built.

Whether the images can be built, and what is in them, scripts/docker-check tests.
"""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
EXTRAS = ("dev", "dask", "docs", "onnx", "plot")  # the extras that scripts/setup installs


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


SLOW = "tests/pure/test_setup_scripts.py::test_a_failed_wheel_keeps_its_log_and_caches_nothing"
SYSTEMS = {"linux": "Linux", "win32": "Windows", "darwin": "Darwin"}


@pytest.mark.parametrize("minor", range(10, 15))
@pytest.mark.parametrize("system", SYSTEMS)
def test_the_lock_has_one_version_of_every_dependency(system, minor):
    """After a change of pyproject.toml: scripts/lock."""
    environment = {
        "python_version": f"3.{minor}",
        "python_full_version": f"3.{minor}.9",
        "sys_platform": system,
        "platform_system": SYSTEMS[system],
        "platform_machine": "x86_64",
    }

    def applies(requirement, extra=""):
        marker = requirement.marker
        return marker is None or marker.evaluate({**environment, "extra": extra})

    locked = {}
    for line in (ROOT / "scripts/lock.txt").read_text().splitlines()[1:]:
        requirement = Requirement(line)
        if applies(requirement):
            (pin,) = requirement.specifier
            assert pin.operator == "=="
            assert (
                locked.setdefault(canonicalize_name(requirement.name), pin.version) == pin.version
            )

    kp_wheel = runpy.run_path(str(ROOT / "scripts/kp_wheel.py"), run_name="kp_wheel")
    tools = re.search(r"--constraint scripts/lock.txt (.*)", (ROOT / "scripts/wheels").read_text())
    wanted = [Requirement(text) for text in (*kp_wheel["BUILD_REQUIREMENTS"], *tools[1].split())]
    wanted += [
        requirement
        for requirement in map(Requirement, metadata.requires("vkops"))
        if any(applies(requirement, extra) for extra in EXTRAS)
    ]
    assert len(wanted) > 30
    assert [
        str(requirement)
        for requirement in wanted
        if requirement.name not in ("kp", "vkops")  # they are built here
        and not requirement.specifier.contains(
            locked.get(canonicalize_name(requirement.name), "0"), prereleases=True
        )
    ] == []


def test_the_workflow_tests_the_lock_and_the_newest_packages():
    """The tests of the images use the lock, as scripts/setup does."""
    jobs = workflow()["jobs"]
    newest = [
        more["driver"]
        for more in jobs["drivers"]["strategy"]["matrix"]["include"]
        if "--newest" in more["options"]
    ]
    assert newest == ["none", "lavapipe"]
    installs = [
        step["run"] for step in jobs["systems"]["steps"] if "'.[dev]'" in step.get("run", "")
    ]
    assert installs
    assert all("--constraint scripts/lock.txt" in line for line in installs)
    dockerfile = (ROOT / "docker/Dockerfile").read_text()
    assert set(re.findall(r"PIP_CONSTRAINT=(\S+)", dockerfile)) == {"/src/scripts/lock.txt"}


@pytest.mark.parametrize(("options", "slow"), [([], []), (["-m", "slow or not slow"], [SLOW])])
def test_pytest_leaves_out_what_is_slow(options, slow):
    command = [
        sys.executable,
        "-m",
        "pytest",
        "--collect-only",
        "-q",
        *options,
        SLOW.partition("::")[0],
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    assert [line for line in lines if line == SLOW] == slow
    assert len([line for line in lines if "::" in line]) > 10
