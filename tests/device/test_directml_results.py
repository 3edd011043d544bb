"""Bytes that DirectML.dll made, as tests/directml has recorded them, and those that vkops makes."""

from directml import differences, recording


def test_vkops_makes_the_bytes_of_directml(device):
    """Except for the differences that have a name."""
    outcomes = list(recording.execution())
    assert len(outcomes) >= 400
    others = [o.text for o in outcomes if not o.same and differences.name_of(o) is None]
    assert others == []
    same = {outcome.operator for outcome in outcomes if outcome.same}
    assert len(same) == 31
