"""Time grows as the work does: with bytes, and with outputs.

Ratios of minima within one run, so that no machine's speed is assumed. They leave room for what
caches do; what grows with the square of the work would exceed them many times.
"""

from time import perf_counter

import pytest
from arrays import small_memory
from compiled_operators import compiled

import vkops
from vkops import dml

pytestmark = pytest.mark.slow

MIB = 1 << 20
BUFFER = 128 * MIB
"""Bytes of the largest buffer where tensors are spread: what Vulkan promises at least."""

OUTPUTS = [4**k for k in range(7)]
UINT8 = dml.TensorDataType.UINT8


def fastest(work, times=5):
    """Seconds that it takes when nothing disturbs it."""
    seconds = []
    for _ in range(times):
        start = perf_counter()
        work()
        seconds.append(perf_counter() - start)
    return min(seconds)


def identity(n):
    packed = dml.BufferTensorDesc(UINT8, (n,))
    return dml.ElementWiseIdentityOperatorDesc(packed, packed)


def unaligned_split(n):
    """Rows of 21 bytes, 22 and the rest: no output begins or ends where a word does."""
    rows, widths = n // 64, (21, 22, 21)
    parts = tuple(dml.BufferTensorDesc(UINT8, (rows, width)) for width in widths)
    return dml.SplitOperatorDesc(dml.BufferTensorDesc(UINT8, (rows, 64)), parts, axis=1)


def backwards(n):
    packed = dml.BufferTensorDesc(UINT8, (n,))
    return dml.Slice1OperatorDesc(packed, packed, (0,), (n,), (-1,))


def seconds_per_byte(device, make, nbytes):
    """Of a bound dispatch, on buffers of its own."""
    desc = make(nbytes)
    buffers = [
        [device.buffer(tensor.total_tensor_size_in_bytes) for _, tensor in tensors]
        for tensors in (desc.inputs, desc.outputs)
    ]
    bound = compiled(device, desc).bind(*buffers)
    bound.dispatch()  # memory is there once it has been touched
    return fastest(bound.dispatch) / nbytes


def assert_linear(found, most=2.5):
    """From the second size on, where fixed costs no longer matter."""
    _, reference, *larger = found.values()
    assert max(larger) <= most * reference, found


@pytest.mark.parametrize("make", [identity, unaligned_split, backwards])
def test_time_is_linear_in_bytes(adapter, make):
    """Up to the largest buffer, or where input and output fill the device."""
    with vkops.Device(adapter.index) as device:
        memory = device.pool
        sizes = [1 * MIB, 4 * MIB, 16 * MIB, 64 * MIB]
        while 2 * sizes[-1] <= memory.max_range and memory.fits(4 * sizes[-1] + 64 * MIB):
            sizes.append(2 * sizes[-1])
        assert_linear({n: seconds_per_byte(device, make, n) for n in sizes})


@pytest.mark.parametrize(
    ("make", "most"),
    # Outputs whose rows lie in two buffers are no streams.
    [(identity, 2.5), (unaligned_split, 5), (backwards, 2.5)],
)
def test_time_is_linear_in_bytes_over_several_buffers(adapter, make, most):
    with vkops.Device(adapter.index) as device:
        small_memory(device, BUFFER)
        sizes = [1 * MIB, 4 * MIB, BUFFER, 2 * BUFFER, 4 * BUFFER]
        assert_linear({n: seconds_per_byte(device, make, n) for n in sizes}, most)


@pytest.mark.parametrize("axis", [0, 1])
def test_time_is_linear_in_outputs(device, axis):
    """A split into 4 KiB each: to create, compile and bind it, and to dispatch it."""
    prepared, dispatched = {}, {}
    for count in OUTPUTS:
        part = (16, 256)
        whole = (16 * count, 256) if axis == 0 else (16, 256 * count)
        source = device.buffer(4096 * count)
        targets = [device.buffer(4096) for _ in range(count)]

        def prepare(whole=whole, part=part, source=source, targets=targets):
            parts = tuple(dml.BufferTensorDesc(UINT8, part) for _ in targets)
            desc = dml.SplitOperatorDesc(dml.BufferTensorDesc(UINT8, whole), parts, axis)
            return compiled(device, desc).bind([source], targets)

        bound = prepare()
        bound.dispatch()
        prepared[count] = fastest(prepare) / count
        dispatched[count] = fastest(bound.dispatch, 20) / count
    for found in (prepared, dispatched):
        assert found[OUTPUTS[-1]] <= 2 * min(found.values()), found
