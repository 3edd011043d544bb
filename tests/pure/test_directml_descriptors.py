"""What DirectML.dll said of descriptors, as tests/directml has recorded it, and what vkops says."""

from collections import defaultdict

import pytest
from directml import differences, recording
from operator_table import OPERATORS


@pytest.fixture(scope="module")
def outcomes():
    by_operator = defaultdict(list)
    for outcome in recording.constraints():
        by_operator[outcome.operator].append(outcome)
    return by_operator


@pytest.mark.parametrize("name", OPERATORS)
def test_vkops_accepts_what_directml_accepts(outcomes, name):
    """Except for the differences that have a name, of which vkops gives the reason."""
    assert len(outcomes[name]) >= 30
    assert sum(outcome.same for outcome in outcomes[name]) >= 25
    others = [o.text for o in outcomes[name] if not o.same and differences.name_of(o) is None]
    assert others == []


def test_the_recorded_answers_are_at_most_a_megabyte():
    assert recording.FILE.stat().st_size <= 1_000_000
