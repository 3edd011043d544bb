"""Arrays of all kinds for tensors and functions in NumPy's manner, and views of them."""

import ml_dtypes
import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

import vkops

# The fuzzing target "tensors" tries many more.
on_device = settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
NAMES = ("?", "i1", "u2", "f2", ">i4", "f4", "i8", "c8", "c16", "M8[s]", "V16", "S2", "U4")
dtypes = st.sampled_from([*NAMES, ml_dtypes.bfloat16])


def numbered(shape, dtype):
    """An array whose elements differ where their size allows."""
    dtype = np.dtype(dtype)
    count = int(np.prod(shape))
    if dtype.kind == "b":
        return (np.arange(count) % 3 == 0).reshape(shape)
    values = bytes(i * 37 % 127 for i in range(count * dtype.itemsize))
    return np.frombuffer(values, dtype).reshape(shape) if count else np.empty(shape, dtype)


def any_numbers(shape, dtype, seed=0):
    """Random numbers: integers of all that the type has."""
    random, dtype = np.random.default_rng(seed), np.dtype(dtype)
    if dtype.kind == "f":
        return random.standard_normal(shape).astype(dtype)
    limits = np.iinfo(dtype)
    return random.integers(limits.min, limits.max, shape, dtype, endpoint=True)


arrays = st.builds(numbered, npst.array_shapes(min_side=0, max_dims=5, max_side=6), dtypes)


def small_arrays(*, min_dims=0, min_side=0):
    """Arrays of at most four dimensions, of at most five elements each."""
    shapes = npst.array_shapes(min_dims=min_dims, min_side=min_side, max_dims=4, max_side=5)
    return st.builds(numbered, shapes, dtypes)


small = small_arrays()


def equal(tensor, array):
    """Shape, dtype and all bytes are the same; a scalar of NumPy's forgets its byte order."""
    assert tensor.shape == array.shape
    assert tensor.dtype == array.dtype or not array.ndim
    assert tensor.dtype.newbyteorder("=") == array.dtype.newbyteorder("=")
    array = np.asarray(array, tensor.dtype)
    assert np.ascontiguousarray(tensor.numpy()).tobytes() == np.ascontiguousarray(array).tobytes()


def viewed(data, tensor, array, steps=3, *, writable=False):
    """The same random view of both: of views of views, which NumPy makes no scalars of.

    NumPy refuses to write to a broadcast array.
    """
    kinds = ["index", "transpose", "flip", "reshape", *([] if writable else ["broadcast"])]
    for _ in range(data.draw(st.integers(0, steps))):
        kind = data.draw(st.sampled_from(kinds))
        if kind == "index":
            index = data.draw(npst.basic_indices(array.shape, allow_newaxis=True, max_dims=6))
            parts = index if isinstance(index, tuple) else (index,)
            ellipsis = () if ... in parts else (...,)
            tensor, array = tensor[index], array[parts + ellipsis]
        elif kind == "transpose":
            axes = data.draw(st.permutations(range(array.ndim)))
            tensor, array = tensor.transpose(axes), array.transpose(axes)
        elif kind == "flip":
            axes = data.draw(st.sets(st.integers(0, array.ndim - 1))) if array.ndim else ()
            tensor = tensor.flip(tuple(axes))
            array = np.flip(array, tuple(axes)) if axes else array
        elif kind == "broadcast" and array.ndim < 5:
            shape = (2, *(3 if n == 1 else n for n in array.shape))
            tensor, array = tensor.broadcast_to(shape), np.broadcast_to(array, shape)
        elif kind == "reshape":
            shape = data.draw(st.permutations(array.shape))
            tensor, array = tensor.reshape(shape), array.reshape(shape)
    return tensor, array


def agree(ours, theirs):
    """Both give the same, or both refuse."""
    try:
        expected = theirs()
    except Exception as error:
        with pytest.raises((vkops.InvalidDescError, IndexError)) as caught:
            ours()
        if isinstance(error, np.exceptions.AxisError):
            assert isinstance(caught.value, IndexError)
            assert isinstance(caught.value, ValueError)
        return
    actual = ours()
    if isinstance(expected, (list, tuple)):
        assert len(actual) == len(expected)
        for one, other in zip(actual, expected, strict=True):
            equal(one, other)
    else:
        equal(actual, np.asarray(expected))


class Counter:
    """Dispatches that a device runs while this is entered."""

    def __init__(self, device):
        self.vulkan = device.vulkan
        self.count = 0

    def __enter__(self):
        start = type(self.vulkan).start

        def counting(function, work, reads, writes, name):
            if name != "a transfer":
                self.count += len(work)
            return start(self.vulkan, function, work, reads, writes, name)

        self.vulkan.start = counting
        return self

    def __exit__(self, *_):
        del self.vulkan.start


def run_work(device, work):
    """Run dispatches and copies, and wait."""
    device.wait(device.submit([each.operation(device.vulkan) for each in work]))


def small_memory(device, nbytes=None):
    """Give a device memory of its own, of whose allocations none has more bytes; return the pool."""
    device.pool = device.vulkan.new_pool("mapped" if device.mapped else "device")
    device.pool.max_range = nbytes or device.pool.max_range
    return device.pool
