"""The end of a device, a process or a loop while many submissions are in flight."""

import pytest
from processes import python

START = """
import sys, threading
import numpy as np, vkops
SHADER = '''#version 450
layout(local_size_x = 64) in;
layout(std430, binding = 0) buffer Data { uint data[]; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    for (uint k = 0; k < 200; ++k) data[i] = data[i] * 5 + 1;
}'''
N = 1 << 12
device = vkops.Device(int(sys.argv[1]), staged=sys.argv[2] == "staged")
shader = device.compile_shader(SHADER)
x, views = device.tensor(np.zeros(N, np.uint32)), device.tensor(np.zeros((N, 2), np.uint32))
def work(times):
    for _ in range(times):
        shader(x, threads=N)
        shader(views[:, 1], threads=N)
        shader(device.tensor(np.ones(64, np.uint32)), threads=64)  # dropped at once
work(32)
"""
ENDS = {
    "exit": "",
    "exit of a thread": "threading.Thread(target=work, args=[32]).start()",
    "close by another thread": (
        "def others():\n"
        "    try:\n"
        "        work(10**6)\n"
        "    except vkops.DeviceError as error:\n"
        "        assert str(error).endswith('is closed'), error\n"
        "thread = threading.Thread(target=others)\n"
        "thread.start()\n"
        "device.close()\n"
        "thread.join()"
    ),
}


@pytest.mark.parametrize("kind", ["mapped", "staged"])
@pytest.mark.parametrize("end", ENDS)
def test_the_end(adapter, end, kind):
    program = START + ENDS[end] + "\nprint('end')"
    assert python("-W", "ignore", "-c", program, adapter.index, kind) == "end\n"
