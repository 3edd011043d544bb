"""Arrays of random numbers of all types that kernels compute with, and comparisons with them."""

from __future__ import annotations

import numpy as np

INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
FLOATS = ["float16", "float32", "float64"]
ALL = ["bool", *INTEGERS, *FLOATS]


def random(shape, dtype, seed=0):
    generator, dtype = np.random.default_rng(seed), np.dtype(dtype)
    if dtype.kind == "f":
        return generator.normal(size=shape).astype(dtype)
    return generator.integers(0, 2 if dtype.kind == "b" else 100, shape).astype(dtype)


def same(got, expected):
    """A tensor has the shape, the dtype and the elements of an array; NaN is equal to NaN."""
    assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
    np.testing.assert_array_equal(got.numpy(), expected)
