"""The versions of packages and of Python that scripts, releases and pages name; nothing is built."""

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


WITHOUT_LOCK = "3.14t"
"""The Python without a global lock that is released for."""


def versions() -> list[str]:
    """Return the versions of Python that the metadata name."""
    classifiers = metadata.metadata("vkops").get_all("Classifier")
    named = (
        re.fullmatch(r"Programming Language :: Python :: (3\.\d+)", text) for text in classifiers
    )
    return [match[1] for match in named if match]


def test_each_version_has_a_wheel_that_is_tested():
    (script,) = re.findall(r"\(((?:3\.\d+t? ?)+)\)", (ROOT / "scripts/wheels").read_text())
    built = [*versions(), WITHOUT_LOCK]
    assert script.split() == built
    jobs = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text())["jobs"]
    assert re.findall(r"--python ([\w.]+)", str(jobs["kp"])) == built
    assert jobs["test"]["strategy"]["matrix"]["python"] == built


@pytest.mark.parametrize("name", ["README.md", "docs/index.md", "scripts/setup", "scripts/wheels"])
def test_help_and_pages_name_the_oldest_and_the_newest_version(name):
    spans = re.findall(r"3\.\d+ to 3\.\d+", (ROOT / name).read_text())
    assert set(spans) == {f"{versions()[0]} to {versions()[-1]}"}


@pytest.mark.posix("bash", tests_only=True)
def test_the_notes_of_a_release_are_those_of_its_version():
    status, shown, _ = finished(ROOT / "scripts/wheels", "--notes")
    first, *others = shown.splitlines()
    assert status == 0
    assert re.fullmatch(r"## \[(Unreleased|\d+\.\d+\.\d+)\](?: - \d{4}-\d\d-\d\d)?", first)
    assert (ROOT / "CHANGELOG.md").read_text().split("\n## ")[1].startswith(first[3:])
    assert "### Added" in others
    assert not any(line.startswith("## ") for line in others)


SLOW = "tests/pure/test_setup_scripts.py::test_a_failed_wheel_keeps_its_log_and_caches_nothing"


@pytest.mark.parametrize(("options", "slow"), [([], []), (["-m", "slow or not slow"], [SLOW])])
def test_pytest_leaves_out_what_is_slow(options, slow):
    command = ["-m", "pytest", "--collect-only", "-q", *options, SLOW.partition("::")[0]]
    lines = outcome(*command, cwd=ROOT)[1].splitlines()
    assert [line for line in lines if line == SLOW] == slow
    assert len([line for line in lines if "::" in line]) > 10


def test_the_version_is_in_one_place():
    assert metadata.version("vkops") == vkops.__version__
    numbered = re.compile(rf"^version.*{re.escape(vkops.__version__)}", re.M)
    for name in ("pyproject.toml", "CITATION.cff", "docs/conf.py"):
        assert not numbered.search((ROOT / name).read_text()), name


KINDS = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


def test_the_changelog_is_one_of_keep_a_changelog():
    text = (ROOT / "CHANGELOG.md").read_text()
    versions = re.findall(r"^## \[(.*?)\](?: - \d{4}-\d\d-\d\d)?$", text, re.M)
    assert versions[0] == "Unreleased"
    assert len(versions) == text.count("\n## ")
    kinds = re.findall(r"^### (.*)$", text, re.M)
    assert kinds
    assert set(kinds) <= KINDS
    assert vkops.__version__ in text


@pytest.mark.posix("bash", tests_only=True)
def test_the_help_of_scripts_test_names_each_driver():
    _, drivers, _ = finished(ROOT / "scripts/test", "--list-drivers")
    _, shown, _ = finished(ROOT / "scripts/test", "--help")
    assert len(drivers.split()) > 10
    assert {*drivers.split()} <= {*shown.replace(",", " ").split()}


@pytest.mark.parametrize(("name", "writing"), [("ci.yml", []), ("release.yml", ["release"])])
def test_workflows_may_only_read_but_for_releases(name, writing):
    workflow = yaml.safe_load((ROOT / ".github/workflows" / name).read_text())
    assert workflow["permissions"] == {"contents": "read"}
    assert [name for name, job in workflow["jobs"].items() if "permissions" in job] == writing
