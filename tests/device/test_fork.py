"""A device cannot be used across a fork: the child is told so, and can open its own."""

from __future__ import annotations

import os
import warnings

import numpy as np

import vkops


def in_child(work):
    """Run in a forked process and return what it says; a child that hangs fails the test."""
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python warns of forks in processes with threads
        child = os.fork()
    if child == 0:
        os.close(reading)
        try:
            said = work()
        except BaseException as error:
            said = f"{type(error).__name__}: {error}"
        os.write(writing, str(said).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as stream:
        said = stream.read().decode()
    os.waitpid(child, 0)
    return said


def test_a_device_of_the_parent_is_refused(device):
    tensor = device.tensor(np.arange(4))
    uses = (
        lambda: vkops.split(tensor, 2),
        lambda: tensor.numpy(),
        lambda: device.buffer(16),
    )
    for use in uses:
        said = in_child(use)
        assert said.startswith("DeviceError: the device ")
        assert said.endswith(
            "was opened by another process, before a fork; open one in this process"
        )
    assert vkops.split(tensor, 2)[1].numpy().tolist() == [2, 3]


def test_the_child_opens_its_own(device):
    def work():
        with vkops.Device(device.info.index) as own:
            return vkops.split(np.arange(4), 2, device=own)[1].numpy().tolist()

    assert in_child(work) == "[2, 3]"


def test_the_default_device_is_opened_anew():
    vkops.split(np.arange(4), 2)
    assert in_child(lambda: vkops.split(np.arange(4), 2)[1].numpy().tolist()) == "[2, 3]"


def test_the_child_may_drop_what_it_inherited(adapter):
    devices = [vkops.Device(adapter.index)]
    kept = [devices[0].tensor(np.arange(1000))]

    def work():
        devices.clear()
        kept.clear()
        return "dropped"

    assert in_child(work) == "dropped"
