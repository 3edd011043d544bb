"""The end of a device, a process or a loop while many submissions are in flight."""

import pytest
from processes import outcome, python

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
def expected(times, value=0):
    for _ in range(200 * times):
        value = (value * 5 + 1) & 0xFFFFFFFF
    return value
work(32)
"""
ENDS = {
    "exit": "",
    "exit of a thread": "threading.Thread(target=work, args=[32]).start()",
    "close": "device.close()",
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
    "with": (
        "with device:\n"
        "    work(32)\n"
        "    held = x.numpy()\n"
        "    assert (held == expected(64)).all()\n"
        "assert (held == expected(64)).all()"
    ),
    "streaming": (
        "n = 96 << 20\n"
        "desc = vkops.dml.BufferTensorDesc(vkops.dml.TensorDataType.UINT8, [n])\n"
        "reverse = vkops.dml.Slice1OperatorDesc(desc, desc, [0], [n], [-1])\n"
        "operator = device.compile_operator(device.create_operator(reverse))\n"
        "source, target = device.host_buffer(n), device.host_buffer(n)\n"
        "stream = operator.dispatch([source], [target], wait=False)"
    ),
}


@pytest.mark.parametrize("kind", ["mapped", "staged"])
@pytest.mark.parametrize("end", ENDS)
def test_the_end(adapter, end, kind):
    program = START + ENDS[end] + "\nprint('end')"
    assert python("-W", "ignore", "-c", program, adapter.index, kind) == "end\n"


@pytest.mark.parametrize("kind", ["mapped", "staged"])
def test_the_end_by_an_exception(adapter, kind):
    program = START + "raise SystemExit(3)"
    assert outcome("-c", program, adapter.index, kind)[::2] == (3, "")
