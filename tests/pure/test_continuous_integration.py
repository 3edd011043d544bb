"""What continuous integration runs, and the versions in its images; nothing is built.

Whether the images can be built, and what is in them, scripts/docker-check tests.
"""

import re
import runpy
from importlib import metadata

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from processes import ROOT, finished, outcome

EXTRAS = ("dev", "dask", "docs", "onnx", "plot")  # the extras that scripts/setup installs


def workflow(name: str = "ci.yml") -> dict:
    return yaml.safe_load((ROOT / ".github/workflows" / name).read_text())


@pytest.mark.posix("bash", tests_only=True)
def test_the_workflow_tests_every_driver_that_scripts_test_knows():
    _, shown, _ = finished(ROOT / "scripts/test", "--help")
    known = re.findall(r"\b(?:none|swiftshader|lavapipe)(?:-[a-z0-9]+)*\b", shown)
    matrix = workflow()["jobs"]["drivers"]["strategy"]["matrix"]
    assert sorted(matrix["driver"]) == sorted(set(known))
    options = " ".join([*matrix["options"], *(more["options"] for more in matrix["include"])])
    assert [option for option in options.split() if option not in shown] == []
    assert {more["driver"] for more in matrix["include"]} <= set(known)


@pytest.mark.parametrize(
    ("name", "minutes", "writing"), [("ci.yml", 60, []), ("release.yml", 30, ["release"])]
)
def test_workflows_have_time_limits_and_may_only_read(name, minutes, writing):
    parsed = workflow(name)
    assert parsed["permissions"] == {"contents": "read"}
    assert [name for name, job in parsed["jobs"].items() if "permissions" in job] == writing
    for name, job in parsed["jobs"].items():
        assert 0 < job["timeout-minutes"] <= minutes, name
        for step in job["steps"]:
            assert re.fullmatch(r"[\w-]+/[\w-]+@v\d+", step.get("uses", "a/b@v1"))


def test_a_newer_run_of_the_workflow_ends_an_older_one():
    assert "group" in workflow()["concurrency"]


SLOW = "tests/pure/test_setup_scripts.py::test_a_failed_wheel_keeps_its_log_and_caches_nothing"
SYSTEMS = {"linux": "Linux", "win32": "Windows", "darwin": "Darwin"}


@pytest.mark.parametrize("minor", range(10, 15))
@pytest.mark.parametrize("system", SYSTEMS)
def test_the_lock_has_one_version_of_every_dependency(system, minor):
    """After a change of pyproject.toml: scripts/lock."""
    environment = {
        "python_version": f"3.{minor}", "python_full_version": f"3.{minor}.9",
        "sys_platform": system, "platform_system": SYSTEMS[system], "platform_machine": "x86_64",
    }  # fmt: skip

    def applies(requirement, extra=""):
        marker = requirement.marker
        return marker is None or marker.evaluate({**environment, "extra": extra})

    locked = {}
    for line in (ROOT / "scripts/lock.txt").read_text().splitlines()[1:]:
        requirement = Requirement(line)
        if applies(requirement):
            (pin,) = requirement.specifier
            name = canonicalize_name(requirement.name)
            assert (pin.operator, locked.setdefault(name, pin.version)) == ("==", pin.version)

    kp_wheel = runpy.run_path(str(ROOT / "scripts/kp_wheel.py"), run_name="kp_wheel")
    tools = re.search(r"--constraint scripts/lock.txt (.*)", (ROOT / "scripts/wheels").read_text())
    needed = [Requirement(text) for text in (*kp_wheel["BUILD_REQUIREMENTS"], *tools[1].split())]
    named = map(Requirement, metadata.requires("vkops"))
    needed += [each for each in named if any(applies(each, extra) for extra in EXTRAS)]
    assert len(needed) > 30
    for each in needed:
        version = locked.get(canonicalize_name(each.name), "0")
        built_here = each.name in ("kp", "vkops")
        assert built_here or each.specifier.contains(version, prereleases=True), each


def test_the_workflow_tests_the_lock_and_the_newest_packages():
    """The tests of the images use the lock, as scripts/setup does."""
    jobs = workflow()["jobs"]
    included = jobs["drivers"]["strategy"]["matrix"]["include"]
    newest = [more["driver"] for more in included if "--newest" in more["options"]]
    assert newest == ["none", "lavapipe"]
    steps = (step.get("run", "") for step in jobs["systems"]["steps"])
    installs = [text for text in steps if "'.[dev]'" in text]
    assert installs
    assert all("--constraint scripts/lock.txt" in line for line in installs)
    dockerfile = (ROOT / "docker/Dockerfile").read_text()
    assert set(re.findall(r"PIP_CONSTRAINT=(\S+)", dockerfile)) == {"/src/scripts/lock.txt"}


@pytest.mark.parametrize(("options", "slow"), [([], []), (["-m", "slow or not slow"], [SLOW])])
def test_pytest_leaves_out_what_is_slow(options, slow):
    command = ["-m", "pytest", "--collect-only", "-q", *options, SLOW.partition("::")[0]]
    lines = outcome(*command, cwd=ROOT)[1].splitlines()
    assert [line for line in lines if line == SLOW] == slow
    assert len([line for line in lines if "::" in line]) > 10
