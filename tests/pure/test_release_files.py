"""The version, and the changelog."""

import re
from importlib import metadata

from processes import ROOT

import vkops

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
