"""Dispatches that are not waited for: complete when they are read, and errors at the wait."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import vkops
from vkops.dml import (
    BufferTensorDesc,
    ElementWiseIdentityOperatorDesc,
    JoinOperatorDesc,
    Slice1OperatorDesc,
    TensorDataType,
)
from vkops.errors import BindingError, DeviceError
from vkops.gpu.run.queue import MAX_SUBMISSIONS

N = 1 << 18
KIND = TensorDataType.INT32


def backwards(device, n=N):
    """An operator that turns a list around."""
    desc = Slice1OperatorDesc(
        BufferTensorDesc(KIND, [n]), BufferTensorDesc(KIND, [n]), [0], [n], [-1]
    )
    return device.compile_operator(device.create_operator(desc))


def identity(device, n):
    desc = BufferTensorDesc(KIND, [n])
    return device.compile_operator(
        device.create_operator(ElementWiseIdentityOperatorDesc(desc, desc))
    )


def numbers(buffer, n=N):
    return np.frombuffer(buffer.read(), np.int32)[:n]


X = np.arange(N, dtype=np.int32)


def test_a_handle_to_wait_for(device):
    turned, out = backwards(device), device.buffer(4 * N)
    pending = turned.dispatch([device.tensor(X)], [out], wait=False)
    assert isinstance(pending, vkops.Pending)
    pending.wait()
    pending.wait()
    np.testing.assert_array_equal(numbers(out), X[::-1])
    assert device.executor.queue.submissions == []


def test_reading_waits_by_itself(device):
    turned = backwards(device)
    source = device.tensor(X)
    for _ in range(20):
        out = device.buffer(4 * N)
        turned.dispatch([source], [out], wait=False)
        np.testing.assert_array_equal(numbers(out), X[::-1])


def test_two_submissions_are_pending_and_a_third_waits(device):
    turned, source = backwards(device), device.tensor(X)
    outs = [device.buffer(4 * N) for _ in range(5)]
    handles = []
    for count, out in enumerate(outs, 1):
        handles.append(turned.dispatch([source], [out], wait=False))
        assert len(device.executor.queue.submissions) == min(count, MAX_SUBMISSIONS)
    for handle in reversed(handles):
        handle.wait()
    for out in outs:
        np.testing.assert_array_equal(numbers(out), X[::-1])


def test_what_needs_a_result_waits_for_it(device):
    turned = backwards(device)
    a, b, c = device.tensor(X), device.buffer(4 * N), device.buffer(4 * N)
    for _ in range(10):
        turned.dispatch([a], [b], wait=False)
        turned.dispatch([b], [c], wait=False)  # reads what is written
        turned.dispatch([c], [b], wait=False)  # writes what is read
        turned.dispatch([a], [c], wait=False)  # writes what is written
    np.testing.assert_array_equal(numbers(b), X[::-1])
    np.testing.assert_array_equal(numbers(c), X[::-1])
    turned.dispatch([a], [b], wait=False)
    turned.dispatch([b], [c])
    np.testing.assert_array_equal(numbers(c), X)


@pytest.mark.parametrize("kind", ["buffer", "host_buffer"])
def test_writing_waits_too(device, kind):
    make, copied = getattr(device, kind), identity(device, N)
    source, out = make(4 * N), make(4 * N)
    for value in range(10):
        source.write(np.full(N, value, np.int32))
        copied.dispatch([source], [out], wait=False)
        source.write(np.full(N, -1, np.int32))
        assert (numbers(out) == value).all()


def test_nobody_need_wait(device):
    turned, source = backwards(device), device.tensor(X)
    for _ in range(50):
        turned.dispatch([source], [device.buffer(4 * N)], wait=False)
    out = device.buffer(4 * N)
    turned.dispatch([source], [out], wait=False)
    np.testing.assert_array_equal(numbers(out), X[::-1])


def test_more_regions_than_a_table_holds(device):
    """All but the last part run at once."""
    n = 6000
    one = BufferTensorDesc(KIND, [1])
    desc = JoinOperatorDesc([one] * n, BufferTensorDesc(KIND, [n]), axis=0)
    joined = device.compile_operator(device.create_operator(desc))
    source, out = device.tensor(np.arange(4 * n, dtype=np.int32)), device.buffer(4 * n)
    joined.dispatch([(source, 16 * i, 4) for i in range(n)], [out], wait=False).wait()
    np.testing.assert_array_equal(numbers(out, n), np.arange(0, 4 * n, 4))


def test_bindings_are_checked_at_once(device):
    with pytest.raises(BindingError, match="B-06"):
        backwards(device).dispatch([device.tensor(X)], [device.buffer(4)], wait=False)


def test_errors_of_the_device_arrive_at_the_wait(adapter):
    with vkops.Device(adapter.index) as device:
        turned, source, out = backwards(device), device.tensor(X), device.buffer(4 * N)
        bound = turned.bind([source], [out])
    pending = bound.start()
    for _ in range(2):
        with pytest.raises(DeviceError, match="is closed"):
            pending.wait()


def test_closing_waits_for_submissions(adapter):
    with vkops.Device(adapter.index) as device:
        turned, source, out = backwards(device), device.tensor(X), device.buffer(4 * N)
        view = out.array().view(np.int32)
        pending = turned.dispatch([source], [out], wait=False)
    pending.wait()
    if device.executor.mapped:
        np.testing.assert_array_equal(view[:N], X[::-1])


def test_asyncio(device):
    turned, source = backwards(device), device.tensor(X)

    async def one():
        out = device.buffer(4 * N)
        pending = turned.dispatch([source], [out], wait=False)
        await asyncio.to_thread(pending.wait)
        return numbers(out)

    async def many():
        return await asyncio.gather(*(one() for _ in range(8)))

    for result in asyncio.run(many()):
        np.testing.assert_array_equal(result, X[::-1])


def test_from_many_threads(device):
    n = 5000

    def work(seed):
        x = np.random.default_rng(seed).integers(0, 99, n, np.int32)
        turned, source = backwards(device, n), device.tensor(x)
        for i in range(20):
            out = device.buffer(4 * n)
            pending = turned.dispatch([source], [out], wait=False)
            if i % 2:
                pending.wait()
            np.testing.assert_array_equal(numbers(out, n), x[::-1])

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(16)))


def test_what_is_streamed_runs_in_a_thread(device):
    turned = backwards(device)
    source, out = device.host_buffer(4 * N), device.host_buffer(4 * N)
    source.write(X)
    pending = turned.dispatch([source], [out], wait=False)
    np.testing.assert_array_equal(numbers(out), X[::-1])  # waits by itself
    pending.wait()
    back = device.host_buffer(4 * N)
    turned.dispatch([out], [back], wait=False)
    turned.dispatch([back], [out], wait=False).wait()
    np.testing.assert_array_equal(numbers(out), X[::-1])


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


def test_streams_that_need_each_other_end(device):
    turned = backwards(device)
    a, b = device.host_buffer(4 * N), device.host_buffer(4 * N)
    a.write(X)
    for _ in range(10):
        first = turned.dispatch([a], [b], wait=False)
        second = turned.dispatch([b], [a], wait=False)
        second.wait()
        first.wait()
    np.testing.assert_array_equal(numbers(a), X)


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
