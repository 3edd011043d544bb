"""Dispatches that are not waited for: complete when they are read, and errors at the wait."""

import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest
from compiled_operators import compiled, identity, reverse

import vkops
from vkops.dml import BufferTensorDesc, JoinOperatorDesc, TensorDataType
from vkops.gpu.run.pending import BackgroundTask
from vkops.gpu.run.vulkan_device import MAX_SUBMISSIONS

pytestmark = pytest.mark.memory

N = 1 << 18
KIND = TensorDataType.INT32


def backwards(device, n=N):
    return reverse(device, n, KIND)


def numbers(buffer, n=N):
    return np.frombuffer(buffer.read(), np.int32)[:n]


X = np.arange(N, dtype=np.int32)


def test_many_submissions_are_pending(device):
    """The time of the device is longer than that of 32 submissions by the host."""
    n = N * (16 if device.info.type == "CPU" else 128)
    turned, source = backwards(device, n), vkops.zeros(n, dtype=np.int32, device=device)
    last, target = device.tensor(X), device.buffer(4 * n)
    device.synchronize()
    for _ in range(32):
        turned.dispatch([source], [target])
    copied = last.copy()
    assert not copied.is_ready
    device.synchronize()
    assert copied.is_ready


def test_more_submissions_than_can_be_pending(device):
    turned, source = backwards(device), device.tensor(X)
    outs = [device.buffer(4 * N) for _ in range(2 * MAX_SUBMISSIONS + 5)]
    handles = [turned.dispatch([source], [out], wait=False) for out in outs]
    for handle in [*reversed(handles), *handles]:  # again: nothing happens
        assert isinstance(handle, vkops.Pending)
        handle.wait()
    for out in outs:
        np.testing.assert_array_equal(numbers(out), X[::-1])


@pytest.mark.parametrize("kind", ["buffer", "host_buffer"])
def test_writing_waits_too(device, kind):
    make, copied = getattr(device, kind), identity(device, N)
    source, out = make(4 * N), make(4 * N)
    for value in range(10):
        source.write(np.full(N, value, np.int32))
        copied.dispatch([source], [out], wait=False)
        source.write(np.full(N, -1, np.int32))
        assert (numbers(out) == value).all()


def test_more_regions_than_a_table_holds(device):
    """All but the last part run at once."""
    n = 6000
    one = BufferTensorDesc(KIND, [1])
    desc = JoinOperatorDesc([one] * n, BufferTensorDesc(KIND, [n]), axis=0)
    joined = compiled(device, desc)
    source, out = device.tensor(np.arange(4 * n, dtype=np.int32)), device.buffer(4 * n)
    joined.dispatch([(source, 16 * i, 4) for i in range(n)], [out], wait=False).wait()
    np.testing.assert_array_equal(numbers(out, n), np.arange(0, 4 * n, 4))


def test_closing_waits_for_submissions(adapter):
    with vkops.Device(adapter.index) as device:
        turned, source, out = backwards(device), device.tensor(X), device.buffer(4 * N)
        view = out.mapped().view(np.int32) if device.mapped and out.is_coherent else None
        turned.dispatch([source], [out])
    if view is not None:
        np.testing.assert_array_equal(view[:N], X[::-1])


def test_what_is_streamed_runs_in_a_thread(device):
    turned = backwards(device)
    source, out = device.host_buffer(4 * N), device.host_buffer(4 * N)
    source.write(X)
    pending = turned.dispatch([source], [out], wait=False)
    np.testing.assert_array_equal(numbers(out), X[::-1])  # waits by itself
    pending.wait()
    for _ in range(10):  # streams that need each other
        first = turned.dispatch([out], [source], wait=False)
        second = turned.dispatch([source], [out], wait=False)
        second.wait()
        first.wait()
    np.testing.assert_array_equal(numbers(out), X[::-1])
    np.testing.assert_array_equal(numbers(source), X)


def test_device_memory_that_is_streamed_to_is_waited_for(device):
    """The stream ends in a buffer of the device, which others read at once."""
    copied = identity(device, N)
    source, middle, last = device.host_buffer(4 * N), device.buffer(4 * N), device.buffer(4 * N)
    for value in range(5):
        source.write(np.full(N, value, np.int32))
        copied.dispatch([source], [middle], wait=False)
        copied.dispatch([middle], [last])
        assert (numbers(last) == value).all()
        copied.dispatch([source], [middle], wait=False)
        copied.dispatch([middle], [last], wait=False)
        assert (numbers(last) == value).all()


def test_streams_beside_threads_that_pack_views(device):
    """Packing uses the device twice over, and must not wait for a stream in between."""
    copied = identity(device, N)
    source, out = device.host_buffer(4 * N), device.host_buffer(4 * N)
    source.write(X)
    table = device.tensor(X.reshape(512, -1))

    def pack(seed):
        for _ in range(30):
            np.testing.assert_array_equal(table.T.pack().numpy()[seed], X.reshape(512, -1)[:, seed])

    with ThreadPoolExecutor(4) as pool:
        packed = pool.map(pack, range(4))
        for _ in range(30):
            copied.dispatch([source], [out], wait=False)
        list(packed)
    np.testing.assert_array_equal(numbers(out), X)


class Interrupted:
    """A native device, with an interrupt at each submission: after it, or before it."""

    def __init__(self, native, *, submits=True):
        self._native, self._submits = native, submits

    def __getattr__(self, name):
        function = getattr(self._native, name)
        return partial(self._interrupt, function) if name in ("submit", "run") else function

    def _interrupt(self, submit, *arguments):
        if self._submits:
            submit(*arguments)
        raise KeyboardInterrupt


@pytest.mark.parametrize("before", [0, 10])
def test_what_was_submitted_before_an_interrupt_is_waited_for(any_device, monkeypatch, before):
    device = any_device
    turned, source, out = backwards(device, 4 * N), device.buffer(16 * N), device.buffer(16 * N)
    source.write(np.arange(4 * N, dtype=np.int32))
    bound, queue = turned.bind([source], [out]), device.vulkan
    for _ in range(before):
        bound.dispatch()
    out.write(np.zeros(4 * N, np.int32))
    with monkeypatch.context() as patch:
        patch.setattr(queue, "native", Interrupted(queue.native))
        with pytest.raises(KeyboardInterrupt):
            bound.dispatch()
    last = [out.allocation.used, out.allocation.written, source.allocation.used]
    assert last == [queue.native.submitted] * 3
    np.testing.assert_array_equal(numbers(out, 4 * N), np.arange(4 * N, dtype=np.int32)[::-1])


def test_an_interrupt_right_after_a_submission(device, monkeypatch):
    """The memory of its tensors counts as used, though they are gone: the host waits to write it."""
    queue = device.vulkan
    long, target = backwards(device, 16 * N), device.buffer(64 * N)
    source, x = device.tensor(np.zeros(16 * N, np.int32)), device.tensor(X)

    for _ in range(20):
        long.dispatch([source], [target])
    with monkeypatch.context() as patch:
        patch.setattr(queue, "native", Interrupted(queue.native))
        with pytest.raises(KeyboardInterrupt):
            vkops.flip(x).copy()
    tensors = [device.tensor(np.full(N, 7, np.int32)) for _ in range(3)]
    device.synchronize()
    assert all((tensor.numpy() == 7).all() for tensor in tensors)


def test_an_interrupt_right_before_a_submission(device, monkeypatch):
    """The next submission has the number that was waited for in vain, and is waited for too."""
    queue, turned = device.vulkan, backwards(device, 16 * N)
    values = np.arange(16 * N, dtype=np.int32)
    source, out = device.tensor(values), device.buffer(64 * N)
    with monkeypatch.context() as patch:
        patch.setattr(queue, "native", Interrupted(queue.native, submits=False))
        with pytest.raises(KeyboardInterrupt):
            turned.dispatch([source], [out])
    out.read()
    turned.dispatch([source], [out])
    np.testing.assert_array_equal(numbers(out, 16 * N), values[::-1])


@pytest.mark.parametrize("begun", [False, True], ids=["before", "after"])
def test_an_interrupt_as_the_thread_of_a_stream_starts(device, monkeypatch, begun):
    """Nobody waits for a stream that has not begun, and all wait for one that has."""
    turned = backwards(device)
    source, out = device.host_buffer(4 * N), device.host_buffer(4 * N)
    source.write(X)
    start = BackgroundTask.start

    def interrupted(self):
        if begun:
            start(self)
            while not self._begun.locked():  # the thread takes it when it begins
                time.sleep(0)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(BackgroundTask, "start", interrupted)
        with pytest.raises(KeyboardInterrupt):
            turned.dispatch([source], [out], wait=False)
    assert (numbers(out) == X[::-1]).all() or not begun
    turned.dispatch([source], [out], wait=False).wait()
    np.testing.assert_array_equal(numbers(out), X[::-1])
    device.synchronize()
    assert not device.vulkan.streams
