"""DirectML operators on the device, against what NumPy makes of the same arrays."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.lib.stride_tricks import as_strided
from operator_table import OPERATORS, kinds

from vkops.dml import (
    BufferTensorDesc,
    ElementWiseIdentityOperatorDesc,
    SplitOperatorDesc,
    TensorDataType,
)

NUMPY = {kind: np.dtype(kind.name.lower()) for kind in TensorDataType if (kind.size_bits or 0) >= 8}
POISON = 0xA5

on_device = settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])


shapes = st.integers(1, 8).flatmap(
    lambda rank: st.lists(st.integers(1, 9 if rank < 4 else 3), min_size=rank, max_size=rank)
)


def array_of(desc, buffer_bytes):
    """The array that a descriptor sees in bytes."""
    dtype = NUMPY[desc.data_type]
    elements = buffer_bytes[: buffer_bytes.size // dtype.itemsize * dtype.itemsize].view(dtype)
    strides = [s * dtype.itemsize for s in desc.effective_strides]
    return as_strided(elements, desc.sizes, strides)


def run(device, desc, expect):
    """Dispatch with random inputs and poisoned outputs; compare all bytes with NumPy's."""
    compiled = device.compile_operator(device.create_operator(desc))
    random = np.random.default_rng(1)
    sources = [
        random.integers(0, 256, t.total_tensor_size_in_bytes, np.uint8) for _, t in desc.inputs
    ]
    targets = [np.full(t.total_tensor_size_in_bytes, POISON, np.uint8) for _, t in desc.outputs]
    buffers = []
    for array in (*sources, *targets):
        buffers.append(device.buffer(array.size + 32))
        buffers[-1].write(np.full(array.size + 32, POISON, np.uint8))
        buffers[-1].write(array, 16)
    bindings = [(b, 16, b.nbytes - 32) for b in buffers]
    compiled.dispatch(bindings[: len(sources)], bindings[len(sources) :])

    inputs = [array_of(t, s) for (_, t), s in zip(desc.inputs, sources, strict=True)]
    for (_, tensor), target, result in zip(desc.outputs, targets, expect(inputs), strict=True):
        array_of(tensor, target)[...] = result
    for buffer, target in zip(buffers[len(sources) :], targets, strict=True):
        guard = np.full(16, POISON, np.uint8)
        np.testing.assert_array_equal(buffer.array(), np.concatenate([guard, target, guard]))


@on_device
@pytest.mark.parametrize("name", OPERATORS)
@given(data=st.data(), sizes=shapes, random=st.randoms(use_true_random=False))
def test_random_descriptors(device, name, data, sizes, random):
    kind = data.draw(st.sampled_from(kinds(name)))
    axis = data.draw(st.integers(0, len(sizes) - 1))
    case = OPERATORS[name].make(random, kind, tuple(sizes), axis)
    run(device, case.desc, case.expect)


@pytest.mark.parametrize("kind", sorted(NUMPY), ids=lambda kind: kind.name)
@pytest.mark.parametrize("rank", range(1, 9))
def test_every_type_at_every_rank(device, kind, rank):
    """Uneven pieces, a single element among them."""
    sizes = [2] * (rank - 1) + [7]
    parts = [[*sizes[:-1], n] for n in (1, 4, 2)]
    desc = SplitOperatorDesc(
        BufferTensorDesc(kind, sizes), [BufferTensorDesc(kind, p) for p in parts], rank - 1
    )
    run(device, desc, lambda arrays: np.split(arrays[0], [1, 5], rank - 1))


@pytest.mark.parametrize("kind", [TensorDataType.UINT8, TensorDataType.FLOAT32])
def test_hundreds_of_outputs(device, kind):
    count = 700
    desc = SplitOperatorDesc(
        BufferTensorDesc(kind, (3, count)), [BufferTensorDesc(kind, (3, 1))] * count, 1
    )
    run(device, desc, lambda arrays: np.split(arrays[0], count, 1))


def test_padding_of_the_input_total_is_ignored(device):
    """TotalTensorSizeInBytes may exceed what the sizes imply (T-12)."""
    wide = BufferTensorDesc(TensorDataType.INT16, (3,), total_tensor_size_in_bytes=64)
    desc = ElementWiseIdentityOperatorDesc(wide, BufferTensorDesc(TensorDataType.INT16, (3,)))
    run(device, desc, lambda arrays: [arrays[0]])
