"""Interrupts and exceptions at any moment: no crash, no wrong result after."""

import gc
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from random import Random

import numpy as np
import pytest
from compiled_operators import reverse
from interrupts import interrupted_at
from models import SPLIT
from processes import call

import vkops
from vkops.errors import is_held

N = 4096
DATA = np.arange(N, dtype=np.uint32).astype(np.uint8)
INTERRUPTS = 60
ADD = """#version 450
layout(local_size_x = 64) in;
layout(std430, binding = 0) buffer Data { uint data[]; };
void main() { data[gl_GlobalInvocationID.x] += 1u; }"""
random = Random(0)


def bound(device):
    x, y = device.buffer(N), device.buffer(N)
    x.write(DATA)
    return reverse(device, N).bind([x], [y]), y


def dispatch(device, one, other):
    one.dispatch()
    other.dispatch()


def submission(device, one, other):
    first, _ = one.start(), other.start()
    first.wait()


def allocate(device, one, other):
    random.shuffle([device.buffer(random.randrange(1, 10**5)) for _ in range(5)])


def new_shapes(device, one, other):
    size = random.randrange(1, N)
    vkops.split(DATA, [size, N - size], device=device)


def streamed(device, one, other):
    x, y = device.host_buffer(64), device.buffer(64)
    stream = reverse(device, 64).dispatch([x], [y], wait=False)
    y.read()
    stream.wait()


def shaders(device, one, other):
    """Of views, which are copied before and after."""
    views = device.tensor(np.zeros((N, 2), np.uint32))
    add = device.compile_shader(ADD)
    for number in range(3):
        add(views[:, number % 2], threads=N)
    assert (views.numpy() == [2, 1]).all()


@pytest.mark.posix("alarms", tests_only=True)
@pytest.mark.parametrize("work", [dispatch, submission, allocate, new_shapes, streamed, shaders])
def test_interrupts_at_any_moment(adapter, work):
    # In a process of its own: what measures coverage does not survive an interrupt in its locks.
    assert call(interrupted, adapter.index, work.__name__) == "right\n"


def interrupted(index, name):
    """Have KeyboardInterrupt raised at any moment of some work, again and again."""
    work, sys.unraisablehook = globals()[name], lambda _: None  # an interrupt in a finalizer
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    with vkops.Device(index) as device:
        (one, result), (other, _) = bound(device), bound(device)
        work(device, one, other)
        start = time.perf_counter()
        work(device, one, other)
        seconds = time.perf_counter() - start
        came = []  # as sys.last_value would keep one: their tracebacks hold all frames
        for _ in range(INTERRUPTS):
            try:
                signal.setitimer(signal.ITIMER_REAL, random.uniform(1e-6, 4 * seconds))
                repeat(work, device, one, other, seconds=8 * seconds + 0.05)
                signal.setitimer(signal.ITIMER_REAL, 0)
                time.sleep(0)  # where one that came at the very end is raised
            except KeyboardInterrupt as interrupt:
                came.append(interrupt)
            assert not is_held(device.vulkan.lock)
            result.write(bytes(N))
            one.dispatch()
            assert result.read() == DATA[::-1].tobytes()
        assert len(came) > INTERRUPTS // 2
    print("right")


def repeat(work, *arguments, seconds):
    """Work until an interrupt: Python discards one that comes in a finalizer.

    In a function of its own, as no ``except`` beside a loop gets an exception that is raised
    between its iterations in Python 3.13.
    """
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        work(*arguments)


def record_and_run(device, x):
    with device.record() as program:
        x.copy()
    program.run()


AT_EACH_POINT = {
    "a copy": lambda device, x: x.copy(),
    "an array": lambda device, x: vkops.split(DATA, 4, device=device),
    "host writes": lambda device, x: x.__setitem__(..., DATA),
    "host reads": lambda device, x: x.tolist(),
    "host writes beside an array": lambda device, x: write_beside_an_array(x),
    "a recording": record_and_run,
    "a recording that fails": lambda device, x: failing(device, x),
    "a bound operator": lambda device, x: reverse(device, N).bind([x], [x.copy()]).dispatch(),
}


def write_beside_an_array(x):
    shown = x.numpy()
    x[:2] = DATA[:2]
    assert np.array_equal(shown, DATA)


def failing(device, x):
    with suppress(StopError), device.record():
        x.copy()
        raise StopError


@pytest.mark.parametrize("staged", [False, True], ids=["mapped", "staged"])
@pytest.mark.parametrize("name", AT_EACH_POINT)
def test_an_interrupt_at_each_point_leaves_nothing(adapter, monkeypatch, name, staged):
    """No lock, no recording and no memory."""
    monkeypatch.setattr(sys, "unraisablehook", lambda _: None)  # an interrupt in a generator's end
    with vkops.Device(adapter.index, staged=staged) as device:
        x, queue, work = device.tensor(DATA), device.vulkan, AT_EACH_POINT[name]
        work(device, x)
        gc.collect()
        used = device.memory_report().used
        gc.disable()  # a finalizer would swallow an interrupt
        try:
            number = 1
            while interrupted_at(number, lambda: work(device, x)):
                assert not is_held(queue.lock), number
                assert queue.recording is None, number
                assert device.memory_report().used == used, number
                assert x.copy().numpy().tobytes() == DATA.tobytes(), number
                number += 1
        finally:
            gc.enable()
        assert number > 20


class StopError(Exception):
    pass


@pytest.mark.parametrize("kind", [StopError, KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("chunks", [0, 1, 2])
def test_an_exception_in_progress(device, chunks, kind):
    """The other chunk is at work then, and its memory must not go before."""
    n = 80 << 20
    x, y = device.host_buffer(n), device.host_buffer(n)
    x.bytes[...] = 0
    x.write(b"first")
    operator = reverse(device, n).bind([x], [y])

    def progress(done, total):
        if done >= chunks * total // 5:
            raise kind

    with pytest.raises(kind):
        operator.dispatch(progress)
    gc.collect()
    operator.dispatch()
    assert y.read(n - 5) == b"tsrif"


@pytest.mark.posix("signals to other processes", tests_only=True)
@pytest.mark.parametrize("threads", [False, True])
def test_ctrl_c_in_a_program(adapter, threads):
    """Also one whose threads use the device; the main thread goes on with it."""
    code = (
        "import sys, threading\n"
        "import numpy as np, vkops\n"
        "device = vkops.Device(int(sys.argv[1]))\n"
        "stop = threading.Event()\n"
        "def work():\n"
        "    while not stop.is_set():\n"
        "        vkops.split(np.arange(100), 4, device=device)\n"
        f"threads = [threading.Thread(target=work) for _ in range({3 * threads})]\n"
        "for thread in threads: thread.start()\n"
        "print('ready', flush=True)\n"
        "try:\n"
        "    work()\n"
        "except KeyboardInterrupt:\n"
        "    stop.set()\n"
        "for thread in threads: thread.join()\n"
        "print(vkops.split(np.arange(4), 2, device=device)[1].numpy().tolist())\n"
    )
    command = [sys.executable, "-c", code, str(adapter.index)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=300) == ("[2, 3]\n", "")
    assert process.returncode == 0


@pytest.mark.posix("signals to other processes", tests_only=True)
def test_ctrl_c_in_vkops_run(adapter, tmp_path):
    (tmp_path / "m.json").write_text(json.dumps(SPLIT))
    command = [sys.executable, "-m", "vkops", "run", str(tmp_path / "m.json"), "-i", "100000000"]
    process = subprocess.Popen(
        [*command, "--adapter", adapter.name],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout.readline().startswith("Running on")
    time.sleep(0.5)
    os.killpg(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=300)
    assert process.returncode == 130
    assert said.splitlines()[-1] == "Interrupted"
    assert "Traceback" not in said
