"""The version, the changelog, and the workflow that releases wheels; nothing is built."""

import re
from importlib import metadata

import pytest
import yaml
from processes import ROOT, finished

import vkops

WORKFLOW = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text())
JOBS = WORKFLOW["jobs"]


def versions() -> list[str]:
    """Return the versions of Python that the metadata name."""
    prefix = "Programming Language :: Python :: "
    classifiers = metadata.metadata("vkops").get_all("Classifier")
    listed = [text.removeprefix(prefix) for text in classifiers if text.startswith(prefix)]
    return [version for version in listed if re.fullmatch(r"3\.\d+", version)]


def runs(job: str) -> list[str]:
    return [step["run"] for step in JOBS[job]["steps"] if "run" in step]


def test_each_version_has_a_wheel_that_is_tested():
    (script,) = re.findall(r"\(((?:3\.\d+ ?)+)\)", (ROOT / "scripts/wheels").read_text())
    assert script.split() == versions()
    (build,) = (run for run in runs("kp") if run.startswith("scripts/wheels"))
    assert re.findall(r"--python (\S+)", build) == versions()
    assert JOBS["test"]["strategy"]["matrix"]["python"] == versions()


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
    named = re.findall(r"(?:scripts|tests)/[\w/.]+", str(WORKFLOW))
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
