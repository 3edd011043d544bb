"""The number of Python calls between a function and the device: most of the time of small work."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import vkops
from vkops import dml

PACKAGE = str(Path(vkops.__file__).parent)


def calls(run):
    """The number of Python calls that ``run`` makes, and the files of vkops that they are in."""
    count, files = 0, set()

    def profile(frame, event, _argument):
        nonlocal count
        if event == "call":
            count += 1
            if frame.f_code.co_filename.startswith(PACKAGE):
                files.add(frame.f_code.co_filename)

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        run()
    finally:
        sys.setprofile(before)
    return count - 1, files  # without ``run`` itself


@pytest.mark.usefixtures("shared_memory")
def test_a_split_that_was_done_before(device):
    tensor = device.tensor(np.arange(8, dtype=np.float32))
    for _ in range(3):
        vkops.split(tensor, 2)
    count, files = calls(lambda: vkops.split(tensor, 2))
    assert count <= 60
    assert len(files) <= 8, sorted(files)


@pytest.mark.usefixtures("shared_memory")
def test_a_split_of_a_new_shape(device):
    for n in (10, 12, 14):  # a number of workgroups, or of words, may be the first of its kind
        vkops.split(device.tensor(np.arange(n, dtype=np.float32)), 2)
    tensor = device.tensor(np.arange(16, dtype=np.float32))
    assert calls(lambda: vkops.split(tensor, 2))[0] <= 300


def test_a_binding(device):
    whole = dml.BufferTensorDesc(dml.TensorDataType.FLOAT32, [4, 6])
    parts = [dml.BufferTensorDesc(dml.TensorDataType.FLOAT32, [n, 6]) for n in (1, 3)]
    desc = dml.SplitOperatorDesc(whole, parts, axis=0)
    operator = device.compile_operator(device.create_operator(desc))
    inputs, outputs = [device.buffer(96)], [device.buffer(24), device.buffer(72)]
    operator.bind(inputs, outputs)
    assert calls(lambda: operator.bind(inputs, outputs))[0] <= 35
