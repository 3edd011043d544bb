"""Tracebacks of errors end at the line of the program that called vkops."""

import subprocess
import sys

import pytest

import vkops
from vkops import dml
from vkops.errors import InvalidDescError

PROGRAM = """
from vkops import dml

def describe(repeats):
    x = dml.BufferTensorDesc(dml.TensorDataType.FLOAT32, [1, 2])
    dml.TileOperatorDesc(x, x, repeats).validate()  # the caller's line

def test_wrong():
    describe([1, -2])
"""


def shown(*command):
    return subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, timeout=300, check=False
    ).stdout


def test_pytest_shows_the_line_of_the_caller_last(tmp_path):
    (tmp_path / "test_it.py").write_text(PROGRAM)
    command = "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", "/dev/null", str(tmp_path)
    text = shown(*command)
    (last,) = [line for line in text.splitlines() if line.startswith(">") and "Tile" in line]
    assert last.endswith("# the caller's line")
    assert "operator_desc.py" not in text
    assert "operator_desc.py" in shown(*command, "--full-trace")


def test_ipython_hides_all_but_the_innermost_frame(tmp_path):
    pytest.importorskip("IPython", reason="IPython is not installed")
    program = tmp_path / "wrong.py"
    program.write_text(PROGRAM + "test_wrong()\n")
    text = shown("-m", "IPython", "--colors=NoColor", "--no-banner", str(program))
    assert "# the caller's line" in text
    assert "skipping hidden 3 frame" in text


def test_only_frames_of_vkops_are_hidden():
    def call():
        x = dml.BufferTensorDesc(dml.TensorDataType.FLOAT32, [1, 2])
        dml.TileOperatorDesc(x, x, [1, -2]).validate()

    with pytest.raises(InvalidDescError) as caught:
        call()
    frames = [entry.frame.raw for entry in caught.traceback]
    own = [frame for frame in frames if frame.f_globals["__name__"] == __name__]
    assert len(own) == 2
    assert "__tracebackhide__" not in globals()
    others = [frame for frame in frames if frame not in own]
    assert others
    assert all(frame.f_globals["__tracebackhide__"](caught) for frame in others)
    with pytest.raises(AttributeError) as caught:
        vkops.nothing  # noqa: B018
    assert not others[0].f_globals["__tracebackhide__"](caught)
