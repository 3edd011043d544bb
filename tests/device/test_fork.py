"""Vulkan drivers do not survive a fork: the child is told so, and never hangs."""

import numpy as np
import pytest
from compiled_operators import reverse
from forked_children import REFUSED, in_child
from imitated import START, run
from processes import python

import vkops
from vkops import dml

pytestmark = [pytest.mark.memory, pytest.mark.posix("forks")]


def test_devices_are_refused_in_the_child(device):
    tensor = device.tensor(np.arange(4))
    operator = reverse(device, 16).bind([device.buffer(16)], [device.buffer(16)])
    uses = (
        lambda: vkops.split(tensor, 2),
        lambda: vkops.split(np.arange(4), 2),
        lambda: tensor.numpy(),
        lambda: device.buffer(16),
        lambda: vkops.Device(device.info.index),
        operator.dispatch,
        device.close,
    )
    said = [in_child(use) for use in uses]
    assert said == [REFUSED] * (len(uses) - 1) + ["None"]
    assert vkops.split(tensor, 2)[1].numpy().tolist() == [2, 3]


def test_descriptors_and_plans_work_in_the_child(device):
    desc = dml.BufferTensorDesc(dml.TensorDataType.INT64, (4,))
    identity = dml.ElementWiseIdentityOperatorDesc(desc, desc)
    assert in_child(lambda: identity.lower().inputs) == "(32,)"


def test_the_child_may_drop_what_it_inherited(adapter):
    """Work that is not complete, too, which goes on in the parent."""
    devices = [vkops.Device(adapter.index)]
    x, y = devices[0].tensor(np.arange(100, dtype=np.uint8)), devices[0].buffer(100)
    kept = [x, reverse(devices[0], 100).dispatch([x], [y], wait=False)]

    def work():
        devices.clear()
        kept.clear()
        return "dropped"

    assert in_child(work) == "dropped"
    kept[1].wait()
    assert y.read() == bytes(range(99, -1, -1))


LISTED_BEFORE = """
import os, signal, sys
import numpy as np, vkops
from vkops.gpu.adapters.adapter import native_adapters
index = int(sys.argv[1])
listed, adapters = vkops.devices(), native_adapters()
child = os.fork()
signal.alarm(60)
same = vkops.devices() == listed and (native_adapters() is adapters) == (child != 0)
moved = vkops.roll(np.arange(4), 1, device=vkops.Device(index)).numpy().tolist()
os.write(1, f"{same} {moved}\\n".encode())  # at once: two processes write
if child:
    os.waitpid(child, 0)
"""


def test_devices_open_in_the_child_of_a_process_that_has_listed_them(adapter):
    """The child has none of the threads that a driver may have started for the list."""
    if adapter.type == "CPU":
        assert (
            python("-W", "ignore", "-c", LISTED_BEFORE, adapter.index) == "True [3, 0, 1, 2]\n" * 2
        )


REFUSED_AFTER = """
if child := os.fork():
    os.waitpid(child, 0)
else:
    faulty.fail(b"vkCreateDevice", 0, 1, NO_HOST_MEMORY)
    print(call(lambda: vkops.Device(index)), flush=True)
"""


@pytest.mark.system("cc")
def test_a_driver_that_does_not_survive_the_list_of_its_process(adapter):
    """Those of NVIDIA fail when a device is created."""
    program = START.replace("device = ", "listed = vkops.devices()  # ") + REFUSED_AFTER
    assert run(program, adapter.index, "").stdout == (
        f"DeviceError: {adapter.label} cannot be opened: vk::PhysicalDevice::createDevice: "
        "ErrorOutOfHostMemory; this process was forked off one that had listed the adapters, which some "
        "drivers do not survive: list them after forks only, or start processes by spawning\n"
    )
