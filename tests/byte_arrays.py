"""Arrays in bytes, as descriptors and views see them."""

import numpy as np
from numpy.lib.stride_tricks import as_strided

from vkops import dml

POISON = 0xA5
DTYPES = {
    kind: np.dtype(kind.name.lower())
    for kind in dml.TensorDataType
    if kind.size_bits in (8, 16, 32, 64)
}
"""NumPy's types, by DirectML's."""

WORDS = {1: "u1", 2: "u2", 4: "u4", 8: "u8", 16: "c16"}  # a type of NumPy's, by its size


def poisoned(nbytes):
    """Bytes of an output that nothing has been written to."""
    return np.full(nbytes, POISON, np.uint8)


def described(tensor, data, at=0):
    """The array that a descriptor sees in bytes, from one on; NumPy checks that it is within."""
    dtype = DTYPES[tensor.data_type]
    strides = [stride * dtype.itemsize for stride in tensor.effective_strides]
    return np.ndarray(tensor.sizes, dtype, data, at, strides)


def elements(stored, view, size):
    """The array that a view sees in bytes."""
    typed = stored[: stored.size // size * size].view(WORDS.get(size))
    strides = tuple(stride * size for stride in view.strides)
    return as_strided(typed[view.offset :], view.sizes, strides)
