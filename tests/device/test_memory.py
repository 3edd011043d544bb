"""Buffers and device memory: transfers, limits, and what outlives what."""

import gc

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from processes import call, python

import vkops
from vkops.gpu.adapters import adapter as adapters
from vkops.gpu.memory.pools import held_bytes
from vkops.gpu.run.buffer import Buffer, HostBuffer
from vkops.gpu.run.open_device import release_empty_heaps

pytestmark = pytest.mark.memory


@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_write_and_read_any_bytes(any_device, data):
    size = data.draw(st.integers(1, 300))
    buffer, image = any_device.buffer(size), np.zeros(size, np.uint8)
    buffer.write(image)
    for value in range(1, 4):
        start = data.draw(st.integers(0, size))
        stop = data.draw(st.integers(start, size))
        image[start:stop] = value
        buffer.write(image[start:stop], start)
        assert buffer.read(start, stop - start) == bytes(image[start:stop])
    assert buffer.read() == image.tobytes()


def buffers_without_bytes(index):
    for staged in (False, True):
        with vkops.Device(index, staged=staged) as device:
            used = device.memory_report().used
            for make in (
                HostBuffer,
                lambda n: Buffer(device, n),
                lambda n: Buffer(device, n, device.image_pool),
            ):
                buffer = make(0)
                buffer.write(b"")
                buffer.fill_with([np.empty(0)] * 2)
                assert (buffer.nbytes, buffer.read(), buffer.clone(0, 0).nbytes) == (0, b"", 0)
                assert buffer.array().size == buffer.mapped().size == 0
                with pytest.raises(vkops.BindingError, match="B-04"):
                    buffer.write(b"1")
            del buffer
            assert device.memory_report().used == used
    print("right")


def test_buffers_without_bytes(adapter):
    assert call(buffers_without_bytes, adapter.index) == "right\n"


def test_transfers_larger_than_staging_memory(staged_device):
    data = np.random.default_rng(0).integers(0, 256, (40 << 20) + 5, np.uint8)
    buffer = staged_device.buffer(data.size + 3)
    buffer.write(data, 3)
    np.testing.assert_array_equal(buffer.array(3), data)


WRONG = [(0, 17), (16, 1), (-1, 4), (17, 0), (4, -1), ("0", 4), (0.0, 4), (None, 4)]


@pytest.mark.parametrize(("offset", "size"), WRONG)
def test_reads_stay_inside(any_device, offset, size):
    buffer = any_device.buffer(16)
    with pytest.raises(
        vkops.BindingError,
        match=r"^buffer: got offset .*, must be integers from 0 and end at 16 or before \[B-04\]$",
    ):
        buffer.read(offset, size)
    if size >= 0:
        with pytest.raises(vkops.BindingError, match=r"\[B-04\]"):
            buffer.write(bytes(size), offset)


@pytest.mark.parametrize(
    ("size", "kind", "allowed"),
    [
        *((size, ValueError, "at least 1") for size in (0, -1)),
        *((size, TypeError, "an integer") for size in ("16", 16.0, None, True)),
    ],
)
def test_buffer_sizes_that_are_wrong(device, size, kind, allowed):
    with pytest.raises(kind, match=rf"^nbytes: got .*, must be {allowed} \[T-04\]$"):
        device.buffer(size)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ("text", ""), (5, ""), (None, ""), (np.zeros((4, 4), np.uint8)[:, ::2], ""),
        (np.array([object()]), "it holds Python objects"),
    ],
)  # fmt: skip
def test_only_contiguous_bytes_are_written(device, data, reason):
    text = rf"^data: got .*, must be contiguous bytes: {reason}"
    with pytest.raises(vkops.BindingError, match=text):
        device.buffer(16).write(data)


def test_numpy_integers_are_integers(device):
    buffer = device.buffer(np.int32(64))
    buffer.write(bytes(range(64)), np.uint8(0))
    assert buffer.read(np.int64(2), np.int16(2)) == b"\2\3"


def heap_of(adapter, use):
    """The adapter and the number of the heap that its memory for a use is from."""
    native = adapters.native_adapters()[adapter.index]
    return adapter.index, native.memory_types[native.memory_types_for(use)[0]][0]


def test_devices_of_one_process_share_its_memory(adapter):
    """All count towards one limit, and stop to when they give memory back."""
    source = heap_of(adapter, "mapped" if adapter.unified_memory else "device")
    gc.collect()
    release_empty_heaps()
    before = held_bytes(source)
    with vkops.Device(adapter.index) as one, vkops.Device(adapter.index) as other:
        for device in (one, other):
            device.buffer(32 << 20)
        assert held_bytes(source) >= before + (64 << 20)
    del one, other, device
    gc.collect()
    assert held_bytes(source) == before


def test_close_gives_memory_back(adapter):
    """All but the region table, though the device object lives on."""
    source = heap_of(adapter, "device")
    gc.collect()
    before = held_bytes(source)
    device = vkops.Device(adapter.index, staged=True)
    vkops.split(np.zeros(64 << 10), 2, device=device)
    gc.collect()
    assert held_bytes(source) > before + (1 << 20)
    device.close()
    gc.collect()
    assert held_bytes(source) <= before + (1 << 20)


def test_caches_are_bounded_by_what_they_hold(device):
    """Many pieces in many shapes: what is remembered of them stays small."""
    from vkops.tensors import eager
    from vkops.tensors.array_plan import MAX_KILOBYTES

    for n in range(1, 60):
        vkops.split(np.zeros((n, 500), np.uint8), 500, axis=1, device=device)
    kept = [movement.kilobytes for movement in eager._split.values()]
    assert MAX_KILOBYTES - 503 < sum(kept) <= MAX_KILOBYTES


@pytest.mark.slow
def test_the_largest_buffer_can_be_had(adapter):
    """What is promised can be allocated, written and read; a driver that cannot would crash."""
    code = (
        "import sys, vkops\n"
        "device = vkops.Device(int(sys.argv[1]))\n"
        "n = device.pool.max_range\n"
        "buffer = device.buffer(n)\n"
        "buffer.write(b'ends', n - 4)\n"
        "assert buffer.read(n - 4) == b'ends'\n"
    )
    python("-c", code, adapter.index)
