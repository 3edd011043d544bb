"""The end of a device, a process or a loop while many submissions are in flight."""

import os
import subprocess
import sys

import pytest
from processes import python

START = """
import gc, os, signal, sys, threading, time
import numpy as np, vkops
SHADER = '''#version 450
layout(local_size_x = 64) in;
layout(std430, binding = 0) buffer Data { uint data[]; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    for (uint k = 0; k < 200; ++k) data[i] = data[i] * 5 + 1;
}'''
N = 1 << 14
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
    "dropped": "del device, shader, x, views\ngc.collect()",
    "dropped in a cycle": (
        "cycle = [device, shader, x, views, x.numpy()]\n"
        "cycle.append(cycle)\n"
        "del device, shader, x, views, cycle\n"
        "gc.collect()"
    ),
    "streaming": (
        "n = 96 << 20\n"
        "desc = vkops.dml.BufferTensorDesc(vkops.dml.TensorDataType.UINT8, [n])\n"
        "reverse = vkops.dml.Slice1OperatorDesc(desc, desc, [0], [n], [-1])\n"
        "operator = device.compile_operator(device.create_operator(reverse))\n"
        "source, target = device.host_buffer(n), device.host_buffer(n)\n"
        "stream = operator.dispatch([source], [target], wait=False)"
    ),
    "another device": (
        "other = vkops.Device(int(sys.argv[1]))\n"
        "y = other.tensor(np.zeros(3, np.int8))\n"
        "device.close()\n"
        "assert y.copy().numpy().tolist() == [0, 0, 0]"
    ),
    "interrupts": (
        "sys.unraisablehook = lambda _: None  # an interrupt in a finalizer\n"
        # Python 3.12 and 3.13 miss an interrupt between the rounds of a loop that a try statement holds.
        "def until_interrupted(delay):\n"
        "    signal.setitimer(signal.ITIMER_REAL, delay * 3e-4)\n"
        "    until = time.monotonic() + 0.1  # Python discards an interrupt in a finalizer\n"
        "    while time.monotonic() < until:\n"
        "        shader(views[:, 0], threads=N)\n"
        "        if delay % 2:\n"
        "            device.synchronize()\n"
        "for delay in range(1, 40):\n"
        "    signal.signal(signal.SIGALRM, signal.default_int_handler)\n"
        "    try:\n"
        "        until_interrupted(delay)\n"
        "    except KeyboardInterrupt:\n"
        "        pass\n"
        "    first = views.numpy()[:, 0].copy()\n"
        "    device.synchronize()\n"
        "    assert (views.numpy()[:, 0] == first).all()\n"
        "    assert (first == first[0]).all()\n"
        "assert (views.numpy()[:, 1] == expected(32)).all()\n"
        "assert (x.numpy() == expected(32)).all()"
    ),
    "fork": (
        "child = os.fork()\n"
        "if not child:\n"
        "    try:\n"
        "        work(1)\n"
        "    except vkops.DeviceError:\n"
        "        os._exit(7)\n"
        "    os._exit(1)\n"
        "_, status = os.waitpid(child, 0)\n"
        "assert os.waitstatus_to_exitcode(status) == 7\n"
        "assert (x.numpy() == expected(32)).all()"
    ),
}


@pytest.mark.posix("signals and forks")
@pytest.mark.parametrize("kind", ["mapped", "staged"])
@pytest.mark.parametrize("end", ENDS)
def test_the_end(adapter, end, kind):
    program = START + ENDS[end] + "\nprint('end')"
    assert python("-W", "ignore", "-c", program, adapter.index, kind) == "end\n"


@pytest.mark.parametrize("kind", ["mapped", "staged"])
def test_the_end_by_an_exception(adapter, kind):
    command = [sys.executable, "-c", START + "raise SystemExit(3)", str(adapter.index), kind]
    done = subprocess.run(command, capture_output=True, check=False, timeout=60, env=os.environ)
    assert (done.returncode, done.stderr) == (3, b"")
