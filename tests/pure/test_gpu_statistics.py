"""Figures of shaders on GPUs: files, tables, and what has become worse."""

import pytest

from vkops.debug import gpu_statistics
from vkops.errors import ModelError

FIGURES = {"VGPRs": 40, "Subgroups per SIMD": 32, "Instructions": 200, "Branches": 8, "Hash": 1}
BEFORE = {"navi31": {"a": FIGURES}}


def changed(**figures):
    after = {"navi31": {"a": {**FIGURES, **figures}}}
    return [*gpu_statistics.changes(BEFORE, after)]


@pytest.mark.parametrize(
    ("figure", "value", "is_worse"),
    [
        ("VGPRs", 42, False),
        ("VGPRs", 43, True),
        ("VGPRs", 20, False),
        ("Branches", 9, True),
        ("Subgroups per SIMD", 31, False),
        ("Subgroups per SIMD", 30, True),
        ("Subgroups per SIMD", 64, False),
    ],
)
def test_changes_of_more_than_5_percent_are_worse(figure, value, is_worse):
    (change,) = changed(**{figure: value})
    assert (change.figure, change.after, change.is_worse) == (figure, value, is_worse)


def test_what_is_not_in_both_or_not_a_measure_is_no_change():
    assert changed(Hash=2, VALU=7) == []
    assert [*gpu_statistics.changes({}, BEFORE)] == []


def test_a_file_of_figures(tmp_path):
    gpu_statistics.write(tmp_path / "f.json", BEFORE)
    assert gpu_statistics.read(tmp_path / "f.json") == BEFORE
    (tmp_path / "f.json").write_text('{"navi31": {"a": {"VGPRs": "12"}}}')
    assert gpu_statistics.read(tmp_path / "f.json") == {"navi31": {"a": {"VGPRs": 12}}}


@pytest.mark.parametrize(
    "text", ["", "[]", '{"a": 1}', '{"a": {"b": {"c": "d"}}}', '{"a": {"b": 1}}']
)
def test_other_files_are_refused(tmp_path, text):
    (tmp_path / "f.json").write_text(text)
    with pytest.raises(ModelError, match="must be a file that `vkops shader stats --json`"):
        gpu_statistics.read(tmp_path / "f.json")
    with pytest.raises(ModelError, match="cannot be read: No such file"):
        gpu_statistics.read(tmp_path / "none.json")
