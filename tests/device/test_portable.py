"""vkops without POSIX, in processes of their own.

``scripts/test --driver lavapipe-portable`` runs all other tests without POSIX, too.
"""

from pathlib import Path

import pytest
from processes import run_with

ROOT = Path(__file__).parents[2]


@pytest.fixture
def vkops(adapter):
    """Run a command, with a folder in PYTHONPATH: its status, output and errors."""
    where = {"VKOPS_ADAPTER": str(adapter.index), "VKOPS_EXPECT": adapter.name}
    return lambda folder, *command: run_with(folder, ["-m", "vkops", *command], **where)


def test_a_model_runs_without_posix(vkops, tmp_path):
    run = ["run", "examples/split.json"]
    status, output, errors = vkops(ROOT / "tests" / "portable", *run)
    assert (status, errors) == (0, "")
    results = output.partition("Resource")[2]
    assert results.count("Resource") == 2
    assert results == vkops(tmp_path, *run)[1].partition("Resource")[2]


def test_messages_of_the_layer_need_named_pipes(vkops):
    status, _, errors = vkops(
        ROOT / "tests" / "portable", "debug", "validate", "examples/split.json"
    )
    if "is not installed" in errors:
        pytest.skip("needs the validation layer")
    assert (status, errors) == (
        1,
        "no messages of the validation layer: this system has no named pipes that programs can "
        "write to as to files\n",
    )
