"""The roofs in docs/without_gpu.md against what a GPU measured."""

import re
from pathlib import Path

import numpy as np

DOCS = Path(__file__).parents[2] / "docs"


def ranks(values):
    """Equal values have the mean of their ranks."""
    values = np.array([float(f"{value:.1e}") for value in values])
    return [(values < each).sum() + (values == each).sum() / 2 for each in values]


def number(text):
    return float(text.replace(",", ""))


def test_the_correlation_is_that_of_the_table():
    text = (DOCS / "without_gpu.md").read_text()
    rows = re.findall(r"^\| (W\d+) \|.* \| ([\d,]+) \| ([\d,]*) \|$", text, re.M)
    assert [name for name, *_ in rows] == [f"W{n}" for n in range(1, 28)]
    both = {name: (number(roof), number(seen)) for name, roof, seen in rows if seen}
    measured = (
        (DOCS / "performance.md").read_text().split("## On a GPU")[1].split("The geometric")[0]
    )
    listed = re.findall(r"(W\d+) ([\d,]+)\s\(\d", measured)
    assert {name: number(seen) for name, seen in listed} == {
        n: seen for n, (_, seen) in both.items()
    }
    correlation = np.corrcoef(*map(ranks, zip(*both.values(), strict=True)))[0, 1]
    assert f"measurement is {correlation:.2f}, with both in two digits" in " ".join(text.split())
    assert correlation >= 0.8
