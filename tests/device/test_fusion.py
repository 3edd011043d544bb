"""Fused functions: the bits of the kernels that they call, in one dispatch."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from instructions import calls
from refusals import check_refusals

import vkops
from vkops import kernels

pytestmark = pytest.mark.features

MUL = vkops.ElementwiseKernel("T x, T y", "T z", "z = T(x * y)", "mul")
ADD = vkops.ElementwiseKernel("T x, T y", "T z", "z = T(x + y)", "add")
BOTH = vkops.ElementwiseKernel(
    "T x, S y", "T low, S high", "low = x; high = y; if (y > S(0)) return; low = less(x); high = S(-y)", "both",
    "T less(T x) { return T(x - T(2)); }",
)  # fmt: skip
LESS = vkops.ElementwiseKernel("T x, T y", "bool z", "z = x < y", "less")
PICK = vkops.ElementwiseKernel("bool c, T x, T y", "T z", "z = c ? x : y", "pick")
NUMBERED = vkops.ElementwiseKernel("T x", "T z", "z = x + T(i % 7) + T(n)", "numbered")
RAW = vkops.ElementwiseKernel("raw T x", "T z", "z = x[i]", "raw_kernel")
NORM = vkops.ReductionKernel(
    "T x, R w", "R y, int32 count", "R(x) * w", "a + b", "y = a; count = n", "R(0)", "norm",
    preamble="R unused() { return R(1); }",
)  # fmt: skip


def chain(x, y, a):
    """Each result follows from all arguments; kernels are called with several data types."""
    low, high = BOTH(MUL(x, y), ADD(y, a))
    picked = PICK(LESS(high, low), ADD(low, 3), MUL(high, low))
    return ADD(picked, MUL(x, a)), LESS(picked, MUL(low, 2))


def random(shape, dtype, seed):
    values = np.random.default_rng(seed).normal(scale=9, size=shape)
    return abs(values).astype(dtype) if np.dtype(dtype).kind == "u" else values.astype(dtype)


def same(got, expected):
    got, expected = ([*each] if isinstance(each, tuple) else [each] for each in (got, expected))
    for one, other in zip(got, expected, strict=True):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        assert one.numpy().tobytes() == other.numpy().tobytes()


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "int32", "uint64"])
def test_results_have_the_bits_of_the_kernels(device, dtype):
    x, y = (device.tensor(random((6, 10), dtype, seed)) for seed in (0, 1))
    fused = vkops.fuse(chain)
    number = 1.7 if dtype.startswith("float") else 5
    for args in (
        (x, y, number),
        (x.T[::2], y[::-1, 0], np.dtype(dtype).type(3)),
        (x[:0], y[:0], 1),
    ):
        same(fused(*args), chain(*args))
    same(fused(x.numpy(), y, number), chain(x.numpy(), y, number))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
@pytest.mark.parametrize("axis", [None, 0, 1, (0, 1)])
def test_reductions_have_the_bits_of_the_kernels(device, axis, dtype):
    def norm(x, y):
        return NORM(ADD(x, MUL(y, 3)), MUL(x, x), axis=axis, keepdims=True)

    def least(x, y):
        return kernels.min(ADD(x, y), axis)

    x, y = device.tensor(random((300, 70), dtype, 3)), random(70, dtype, 4)
    for function in (norm, least, lambda x, y: kernels.mean(ADD(x, y), axis, dtype="float32")):
        fused = vkops.fuse(function)
        for view in (x, x[::3, ::-1]):
            same(fused(view, y), function(view, y))
    same(vkops.fuse(lambda x: kernels.any(LESS(x, 0)))(x), kernels.any(LESS(x, 0)))


def test_a_value_of_a_float_is_kept_between_kernels(device):
    """A driver cannot combine the multiplication of a kernel with the addition of the next."""
    fused = vkops.fuse(lambda x, y: ADD(MUL(x, x), y))
    fused(np.ones(3, np.float32), np.ones(3, np.float32), device=device)
    ((kernel, *_),) = fused._kernels.values()
    assert kernel.source.count(" ^ zero") == 2


def test_one_dispatch_and_few_calls(device):
    x, y = (device.tensor(np.ones((3, 4), np.float32)) for _ in range(2))
    names = []

    def function(x, y):
        names.append(x.dtype)
        return ADD(MUL(MUL(ADD(x, y), y), x), 1.5)

    fused = vkops.fuse(function)
    for _ in range(3):
        fused(x, y), ADD(x, y)
    assert names == [np.float32]
    files = set()
    assert calls(lambda: fused(x, y), files) <= calls(lambda: ADD(x, y), files) + 5
    with device.record() as program:
        result = fused(x, y)
    x[...] = np.full((3, 4), 2, np.float32)
    program.run()
    np.testing.assert_array_equal(result.numpy(), 7.5)


def test_shapes_and_numbers_of_elements(device, message):
    x, y = device.tensor(np.ones((3, 4), np.float32)), device.tensor(np.ones(4, np.float32))
    numbered = vkops.fuse(lambda x, y: ADD(NUMBERED(x), y))
    same(numbered(x, y), ADD(NUMBERED(x), y))
    two = vkops.fuse(lambda x, y: (ADD(x, 1), ADD(x, y)))
    same(two(x, y), (ADD(x, 1), ADD(x, y)))
    same(vkops.fuse(lambda x, y: ADD(y, 1))(x, y), ADD(y, 1))
    inner = vkops.fuse(lambda x, y: MUL(x, y))
    same(vkops.fuse(lambda x, y: ADD(inner(x, y), y))(x, y), ADD(MUL(x, y), y))
    check_refusals(message, lambda: numbered(y, x), lambda: two(y, x))


def test_refusals(device, message):
    x = device.tensor(np.ones(3, np.float32))
    kept = []

    @vkops.fuse
    def outer(v):
        return ADD(kept.append(v) or v, 1)

    outer(x)
    cases = [
        lambda v: v @ v, lambda v: v.reshape(3), lambda v: v[0], lambda v: 1 if v == 1 else 2,
        lambda v: 1 if v else 2, lambda v: v.__iadd__(1), lambda v: vkops.flip(v), lambda v: v,
        lambda v: None, lambda v: (ADD(v, 1),) * 2, lambda v: ADD(v, v, out=x),
        lambda v: ADD(v, x), lambda v: ADD(v, np.ones(3)), lambda v: RAW(v),
        lambda v: ADD(kernels.sum(v), 1), lambda v: kernels.var(v), lambda v: (ADD(v, 1), kernels.sum(v)),
        lambda v: kernels.sum(NUMBERED(v)), lambda v: ADD(v, "a"), lambda v: ADD(v), lambda v: ADD(v, 1e50),
        lambda v: ADD(kept[0], v), lambda v: ADD(x, 2),
    ]  # fmt: skip
    check_refusals(
        message,
        *[partial(vkops.fuse(case), x) for case in cases],
        lambda: vkops.fuse(3),
        lambda: vkops.fuse(chain)(x, [1], 2),
        lambda: vkops.fuse(lambda v, a: ADD(MUL(v, a), PICK(LESS(1, a), v, v)))(x, 2),
        lambda: vkops.fuse(lambda a: kernels.sum(a))(2),
    )
