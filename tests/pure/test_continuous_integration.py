"""What continuous integration and releases run, and the versions in their images; nothing is built.

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

import vkops

EXTRAS = ("dev", "test", "dask", "docs", "onnx")  # the extras that scripts/setup installs


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


# -- releases --------------------------------------------------------------------------------------

JOBS = workflow("release.yml")["jobs"]
WITHOUT_LOCK = "3.14t"
"""The Python without a global lock that is released for."""


def versions() -> list[str]:
    """Return the versions of Python that the metadata name."""
    prefix = "Programming Language :: Python :: "
    classifiers = metadata.metadata("vkops").get_all("Classifier")
    listed = [text.removeprefix(prefix) for text in classifiers if text.startswith(prefix)]
    return [version for version in listed if re.fullmatch(r"3\.\d+", version)]


def runs(job: str) -> list[str]:
    return [step["run"] for step in JOBS[job]["steps"] if "run" in step]


def test_each_version_has_a_wheel_that_is_tested():
    (script,) = re.findall(r"\(((?:3\.\d+t? ?)+)\)", (ROOT / "scripts/wheels").read_text())
    built = [*versions(), WITHOUT_LOCK]
    assert script.split() == built
    (build,) = (run for run in runs("kp") if run.startswith("scripts/wheels"))
    assert re.findall(r"--python (\S+)", build) == built
    assert JOBS["test"]["strategy"]["matrix"]["python"] == built


@pytest.mark.posix("bash", tests_only=True)
def test_help_and_pages_name_the_oldest_and_the_newest_version():
    span = f"{versions()[0]} to {versions()[-1]}"
    for script in ("setup", "wheels"):
        assert span in finished(ROOT / "scripts" / script, "--help")[1], script
    for page in ("README.md", "docs/index.md"):
        named = re.findall(r"3\.\d+ to 3\.\d+", (ROOT / page).read_text())
        assert set(named) == {span}, page


def test_jobs_may_only_read_until_all_tests_have_passed():
    assert JOBS["release"]["permissions"] == {"contents": "write"}
    assert JOBS["release"]["if"] == "github.ref_type == 'tag'"
    assert JOBS["release"]["needs"] == "test"
    assert JOBS["test"]["needs"] == ["vkops", "kp", "lavapipe"]


@pytest.mark.posix("bash", tests_only=True)
def test_the_notes_of_a_release_are_those_of_its_version():
    (notes,) = (run for run in runs("release") if "notes.md" in run and "gh" not in run)
    assert notes.startswith("scripts/wheels --notes | tee notes.md | grep ")
    assert "--notes-file notes.md" in runs("release")[-1]
    status, shown, _ = finished(ROOT / "scripts/wheels", "--notes")
    assert status == 0
    first, *others = shown.splitlines()
    assert (ROOT / "CHANGELOG.md").read_text().split("\n## ")[1].startswith(first[3:])
    assert "### Added" in others
    assert not any(line.startswith("## ") for line in others)


def test_jobs_run_scripts_that_exist():
    named = re.findall(r"(?:scripts|tests)/[\w/.]+", str(JOBS))
    assert len(named) > 5
    assert [path for path in named if not (ROOT / path).exists()] == []


KINDS = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


def test_the_version_is_in_one_place():
    assert metadata.version("vkops") == vkops.__version__
    numbered = re.compile(rf"^version.*{re.escape(vkops.__version__)}", re.M)
    for name in ("pyproject.toml", "CITATION.cff", "docs/conf.py"):
        assert not numbered.search((ROOT / name).read_text()), name


def test_the_changelog_is_one_of_keep_a_changelog():
    text = (ROOT / "CHANGELOG.md").read_text()
    versions = re.findall(r"^## \[(.*?)\](?: - \d{4}-\d\d-\d\d)?$", text, re.M)
    assert versions[0] == "Unreleased"
    assert len(versions) == text.count("\n## ")
    kinds = re.findall(r"^### (.*)$", text, re.M)
    assert kinds
    assert set(kinds) <= KINDS
    assert vkops.__version__ in text
