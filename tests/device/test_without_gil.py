"""Pythons without a global lock: it stays off, and threads that run at the same time share everything."""

import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from processes import IS_FREE_THREADED, python

import vkops
from vkops.tensors import device_array

PROGRAM = """
import sys
import numpy as np, vkops
device = vkops.Device({name!r})
x = device.tensor(np.arange(6).reshape(2, 3))
assert (vkops.transpose(x).numpy() == np.arange(6).reshape(2, 3).T).all()
assert ((x + 1).numpy() == np.arange(1, 7).reshape(2, 3)).all()
assert vkops.kernels.sum(x).item() == 15
print(sys._is_gil_enabled())
"""


WITHOUT_GIL = pytest.mark.skipif(not IS_FREE_THREADED, reason="this Python has a global lock")


@WITHOUT_GIL
def test_the_lock_stays_off(adapter, monkeypatch):
    monkeypatch.delenv("PYTHON_GIL", raising=False)  # with which scripts/test keeps it off
    assert python("-c", PROGRAM.format(name=adapter.name)) == "False\n"


@pytest.fixture
def quick_switches():
    """Threads that take turns after each few instructions, where they have a lock."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def together(count, *works):
    """Call each function in threads of its own, so many times; all begin at the same time."""
    begin = threading.Barrier(len(works))

    def repeat(work):
        begin.wait()
        for number in range(count):
            work(number)

    with ThreadPoolExecutor(len(works)) as pool:
        for each in [pool.submit(repeat, work) for work in works]:
            each.result()


@pytest.mark.skipif(device_array._HAS_GIL, reason="the lock was on when vkops was imported")
@pytest.mark.parametrize(
    "write", [lambda x: x.fill(1), lambda x: x.__setitem__(..., x + 1), lambda x: x.buffer]
)
def test_memory_is_not_taken_while_an_array_of_it_is_made(device, write):
    """Whoever takes it looks before or after the other thread counts references, never meanwhile."""
    x = device.tensor(np.zeros(4, np.int32))
    write(x)  # what is compiled is compiled
    thread = threading.Thread(target=write, args=(x,))
    with device.vulkan.lock:  # as ``_snapshot``
        thread.start()
        thread.join(0.2)
        assert thread.is_alive()
    thread.join()


X = np.arange(4096, dtype=np.int32).reshape(64, 64)


@pytest.mark.features
@pytest.mark.usefixtures("quick_switches")
def test_threads_use_one_device(device):
    """They allocate and free, run functions, operators, kernels and recordings, and read what is shared."""
    shared = device.tensor(X)
    square = vkops.ElementwiseKernel("T x", "T y", "y = x * x", "square")

    def allocates(number):
        sizes = [(number * 37 + n * 101) % 5000 + 1 for n in range(8)]
        for each in [vkops.full(size, size, "int32", device=device) for size in sizes]:
            assert (each.numpy() == each.size).all()

    def moves(number):
        turned = vkops.roll(vkops.transpose(shared), number, 0)
        assert (turned.numpy() == np.roll(X.T, number, 0)).all()

    def computes(number):
        assert ((shared + number).numpy() == X + number).all()
        assert (square(shared).numpy() == X * X).all()
        assert (
            vkops.kernels.sum(shared, axis=number % 2).numpy().tolist()
            == X.sum(number % 2).tolist()
        )

    def records(number):
        own = device.tensor(X)
        with device.record() as program:
            result = vkops.flip(own) + number
        program.run()
        assert (result.numpy() == X[::-1, ::-1] + number).all()

    def writes(number):
        own = device.tensor(X)
        kept = own.numpy()
        own[number % 64] = -1
        assert (own.numpy()[number % 64] == -1).all()
        assert (kept == X).all()

    together(12, allocates, allocates, moves, computes, computes, records, writes)
    device.synchronize()


@pytest.mark.usefixtures("quick_switches")
def test_threads_compile_and_open_at_the_same_time(adapter):
    kernels = [
        vkops.ElementwiseKernel("T x", "T y", f"y = x + T({n})", f"add_{n}") for n in range(3)
    ]

    def opens(number):
        with vkops.Device(adapter.name) as device:
            x = device.tensor(X)
            for n, kernel in enumerate(kernels):
                assert (kernel(x).numpy() == X + n).all()

    together(2, opens, opens, opens)
