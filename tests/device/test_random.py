"""Random numbers: Random123's known answers, and the bits of a NumPy model."""

from __future__ import annotations

import copy
import pickle
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from math import factorial, pi

import numpy as np
import pytest
from refusals import check_refusals

import vkops
from vkops.kernels.random import Philox, philox

pytestmark = pytest.mark.features

ANSWERS = [  # counter, key and result, from Random123's kat_vectors
    ([0] * 4, [0] * 2, "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    ([0xFFFFFFFF] * 4, [0xFFFFFFFF] * 2, "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    ([0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344], [0xA4093822, 0x299F31D0],
     "d16cfe09 94fdcceb 5001e420 24126ea1"),
]  # fmt: skip
SEED = 0x0123456789ABCDEF


def rounds(counter, key):
    """Philox4x32-10 of columns of words."""
    x, key = [np.asarray(each, np.uint64) for each in counter], [*key]
    for _ in range(10):
        first, second = x[0] * np.uint64(0xD2511F53), x[2] * np.uint64(0xCD9E8D57)
        x = [second >> 32 ^ x[1] ^ key[0], second & 0xFFFFFFFF,
             first >> 32 ^ x[3] ^ key[1], first & 0xFFFFFFFF]  # fmt: skip
        key = [
            np.uint64(int(k) + n & 0xFFFFFFFF)
            for k, n in zip(key, (0x9E3779B9, 0xBB67AE85), strict=True)
        ]
    return x


def words(count, position=0, seed=SEED):
    at = np.array([(position + i) % 2**64 for i in range(count)], np.uint64)
    key = np.uint64(seed & 0xFFFFFFFF), np.uint64(seed >> 32)
    return rounds([at & np.uint64(0xFFFFFFFF), at >> np.uint64(32), at * 0, at * 0], key)


def bits(count, position=0):
    """The 128 bits of each element, as an integer of Python."""
    return [
        sum(int(w) << 32 * k for k, w in enumerate(each))
        for each in zip(*words(count, position), strict=True)
    ]


def normal(count, dtype, position=0):
    """Box and Muller with the polynomials, all in one data type."""
    real, (w0, w1, w2, w3) = np.dtype(dtype).type, words(count, position)
    terms, steps = (11, 4) if dtype == "float64" else (5, 3)

    def polynomial(x, coefficients):
        value = real(coefficients[-1])
        for each in coefficients[-2::-1]:
            value = value * x + real(each)
        return value

    if dtype == "float64":
        m, e = np.frexp(w3.astype(real) * real(2.0**32) + (w2 & 0xFFFFF800 | 0x400).astype(real))
        e, m = e - 65, m * real(2)
        a = (w1 & 0x1FFFFFFF).astype(real) * real(2.0**-29) + (w0 >> 8).astype(real) * real(
            2.0**-53
        )
    else:
        top = w3 | 1
        e = np.frexp(top.astype(float))[1] - 1
        m = ((top << (31 - e).astype(np.uint64)) >> 8).astype(real) * real(2.0**-23)
        e, a = e - 32, (w1 >> 5 & 0xFFFFFF).astype(real) * real(2.0**-24)
    is_large = m > real(1.4142)
    m, e = np.where(is_large, m * real(0.5), m), (e + is_large).astype(real)
    d = m + real(1)
    r = real(0.985) - real(0.2427) * d
    for _ in range(steps):
        r = r * (real(2) - d * r)
    s = (m - real(1)) * r
    odd = polynomial(s * s, [1 / (2 * k + 1) for k in range(terms)])
    x = real(-2) * (e * real(0.6931471805599453) + (s + s) * odd)
    if dtype == "float64":
        y = (np.uint64(0x5FE6EB50) - (x.view("u8") >> np.uint64(33)) << np.uint64(32)).view(real)
    else:
        y = (np.uint32(0x5F3759DF) - (x.view("u4") >> np.uint32(1))).view(real)
    for _ in range(steps):
        y = y * (real(1.5) - real(0.5) * x * y * y)
    octant = w1 >> 29
    a = np.where(octant & 1, real(1) - a, a) * real(pi / 4)
    sine = a * polynomial(a * a, [(-1) ** k / factorial(2 * k + 1) for k in range(terms)])
    cosine = polynomial(a * a, [(-1) ** k / factorial(2 * k) for k in range(terms + 1)])
    value = x * y * np.where((octant + 1) & 2, sine, cosine)
    return np.where((octant + 2) & 4, -value, value)


def test_known_answers(device):
    assert [" ".join(f"{int(w):08x}" for w in rounds(c, k)) for c, k, _ in ANSWERS] == [
        a for *_, a in ANSWERS
    ]
    kernel = vkops.ElementwiseKernel(
        "raw uint32 c, raw uint32 k", "uint32 z",
        "z = philox(uvec4(c[0], c[1], c[2], c[3]), uvec2(k[0], k[1]))[i]", "known", philox,
    )  # fmt: skip
    for counter, key, answer in ANSWERS:
        inputs = [np.array(each, np.uint32) for each in (counter, key)]
        words = kernel(*inputs, size=4, device=device).numpy()
        assert " ".join(f"{w:08x}" for w in words) == answer


RANGES = [
    ("int32", 0, 10), ("int32", -(2**31), 2**31), ("uint32", 2**31, 2**32), ("int64", -3, 2**40),
    ("int64", -(2**63), 2**63), ("uint64", 5, 2**64), ("int8", -128, 128), ("uint8", 3, 4),
    ("int16", -7, 300), ("uint16", 0, 2**16), ("bool", 0, 2),
]  # fmt: skip


@pytest.mark.parametrize(("dtype", "low", "high"), RANGES)
def test_integers_are_multiples_of_the_range(device, dtype, low, high):
    result = Philox(SEED).integers(low, high, 300, dtype, device=device)
    assert (result.dtype, result.shape) == (dtype, (300,))
    expected = np.array([low + (each * (high - low) >> 128) for each in bits(300)], dtype)
    np.testing.assert_array_equal(result.numpy(), expected)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("position", [0, 2**32 - 700, 2**64 - 300])
def test_floats_have_the_bits_of_the_model(device, dtype, position):
    generator, n = Philox(SEED, position), 53 if dtype == "float64" else 24
    result = generator.random((30, 50), dtype, device=device).numpy()
    expected = np.array([each >> 128 - n for each in bits(1500, position)], dtype) / 2.0**n
    np.testing.assert_array_equal(result, expected.reshape(30, 50))
    assert generator.position == (position + 1500) % 2**64
    generator.position = position
    result = generator.normal(0, 1, (30, 50), dtype, device=device).numpy()
    np.testing.assert_array_equal(
        result, normal(1500, dtype, position).reshape(30, 50).astype(dtype)
    )


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_normal_numbers_are_distributed_so(device, dtype):
    """Moments of a million numbers, and a thousand of them against the exact transformation."""
    result = Philox(3).normal(2, 3, 1_000_000, dtype, device=device).numpy().astype(float)
    x = (result - 2) / 3
    moments = [np.mean(x**k) for k in range(1, 5)]
    np.testing.assert_allclose(moments, [0, 1, 0, 3], atol=0.012)
    w = np.array(words(1000, seed=3), float)
    exact = np.sqrt(-2 * np.log((w[3] + w[2] / 2**32 + 2**-33) / 2**32)) * np.cos(pi * w[1] / 2**31)
    np.testing.assert_allclose(x[:1000], exact, rtol=1e-4, atol=1e-6)


def test_calls_can_be_split(device):
    whole, parts = Philox(1), Philox(1)
    expected = whole.normal(size=1000, dtype="float32", device=device).numpy()
    target = device.tensor(np.zeros((1000, 2), np.float32))
    for first, end in ((0, 1), (1, 200), (200, 200), (200, 1000)):
        assert parts.normal(out=target[first:end, 1]).shape == (end - first,)
    np.testing.assert_array_equal(target[:, 1].numpy(), expected)
    np.testing.assert_array_equal(target[:, 0].numpy(), 0)
    assert (whole.position, parts.position) == (1000, 1000)
    assert Philox(1, 999).normal(dtype="float32", device=device).item() == expected[999]


def test_recorded_numbers_are_the_same_in_each_run(device):
    target = device.tensor(np.zeros(10, np.int32))
    with device.record() as program:
        Philox(4).integers(100, out=target)
    expected = Philox(4).integers(100, size=10, dtype="int32", device=device).numpy()
    for _ in range(2):
        target[...] = 0
        program.run()
        np.testing.assert_array_equal(target.numpy(), expected)


def test_refusals(device, message):
    x, generator = device.tensor(np.zeros(3, np.float16)), Philox(1)
    cases = [
        lambda: Philox(-1), lambda: Philox(0.5), lambda: Philox(1, 2**64),
        lambda: generator.integers(0, dtype="int32", device=device),
        lambda: generator.integers(3, 300, dtype="uint8", device=device),
        lambda: generator.integers(3, dtype="float32", device=device),
        lambda: generator.integers(1.5, dtype="int32", device=device),
        lambda: generator.integers(3, endpoint=1, dtype="int32", device=device),
        lambda: generator.random(3, "int32", device=device), lambda: generator.random(out=x),
        lambda: generator.normal("a", size=3, dtype="float32", device=device),
        lambda: generator.random(-3, "float32", device=device),
        lambda: generator.random(out=np.zeros(3)),
    ]  # fmt: skip
    check_refusals(message, *cases)


@pytest.mark.parametrize("count", [0, 1, 2, 100, 3000])
def test_permutations_have_the_order_of_64_bits(count):
    generator = Philox(SEED, 5)
    low, high = ([each >> 96 for each in bits(count, 5 + k * count)] for k in (0, 1))
    order = np.lexsort((low, high))
    result = generator.permutation(count, dtype="int32").numpy()
    np.testing.assert_array_equal(result, order.astype(np.int32), strict=True)
    assert generator.position == 5 + 2 * count
    array = np.arange(2 * count, dtype=np.int16).reshape(2, count)
    generator.position = 5
    result = generator.permutation(vkops.asarray(array).T).numpy()
    np.testing.assert_array_equal(result, array.T[order], strict=True)


def taken_at_once(device, monkeypatch, *calls):
    """Call in threads that all read the position before one of them goes on, if they can."""
    run = Philox._run
    both = threading.Barrier(len(calls))

    def late(generator, *arguments):
        with suppress(threading.BrokenBarrierError):
            both.wait(1)
        return run(generator, *arguments)

    with monkeypatch.context() as patch, ThreadPoolExecutor(len(calls)) as pool:
        patch.setattr(Philox, "_run", late)
        return [each.result() for each in [pool.submit(call) for call in calls]]


def test_threads_that_share_a_generator_get_different_numbers(device, monkeypatch):
    generator = Philox(SEED)

    def draw():
        return generator.integers(2**32, size=50, dtype="uint32", device=device).tolist()

    rows = taken_at_once(device, monkeypatch, draw, draw)
    expected = Philox(SEED).integers(2**32, size=100, dtype="uint32", device=device).tolist()
    assert sorted(rows) == sorted([expected[:50], expected[50:]])
    assert generator.position == 100


def test_permutations_in_two_threads_are_those_in_a_row(device, monkeypatch):
    generator, alone = Philox(SEED), Philox(SEED)

    def draw(generator=generator):
        return generator.permutation(50, dtype="int32", device=device).tolist()

    rows = taken_at_once(device, monkeypatch, draw, draw)
    assert sorted(rows) == sorted([draw(alone), draw(alone)])


def test_threads_with_a_short_switch_interval(device):
    generator, interval = Philox(1), sys.getswitchinterval()

    def draw(_):
        return [
            tuple(generator.integers(10**9, size=4, dtype="int32", device=device).tolist())
            for _ in range(100)
        ]

    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as pool:
            rows = [row for each in pool.map(draw, range(4)) for row in each]
    finally:
        sys.setswitchinterval(interval)
    assert len(set(rows)) == len(rows) == 400
    assert generator.position == 1600


def test_a_call_that_fails_takes_no_positions(device, monkeypatch):
    generator = Philox(1, 7)
    with pytest.raises(vkops.InvalidDescError):
        generator.normal("a", size=3, dtype="float32", device=device)
    assert generator.position == 7

    def meanwhile(*_):
        monkeypatch.undo()
        generator.random(5, "float32", device=device)
        raise vkops.DeviceError("of the first call alone")

    monkeypatch.setattr(Philox, "_run", meanwhile)
    with pytest.raises(vkops.DeviceError):
        generator.random(3, "float32", device=device)
    assert generator.position == 15


def test_positions_that_are_not_in_the_range():
    generator = Philox(1, 7)
    for position in (-1, 2**64, 0.5):
        with pytest.raises(vkops.InvalidDescError) as refused:
            generator.position = position
        assert (refused.value.rule, refused.value.field) == ("EW-05", "position")
    assert generator.position == 7


def test_generators_can_be_copied():
    generator = Philox(3, 9)
    for copied in (copy.deepcopy(generator), pickle.loads(pickle.dumps(generator))):
        assert (copied.seed, copied.position) == (3, 9)
