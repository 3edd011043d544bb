"""Elementary functions: their errors, special values, and the same bits in the interpreter."""

from __future__ import annotations

import warnings
import zlib

import numpy as np
import pytest
from kernel_checks import checked

import vkops
from vkops.kernels.table import TABLE

NAMES = [
    "divide", "reciprocal", "sqrt", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "pow", "sin",
    "cos", "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "hypot",
    "logaddexp",
]  # fmt: skip


def ulps(name, *operands):
    """The largest error of normal results, in units in the last place."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        entry, dtype = TABLE[name], operands[0].dtype
        function = getattr(np, entry.ufunc)
        exact = function(*[each.astype(np.longdouble) for each in operands])
        found = getattr(vkops, name)(*operands).numpy()
        near = exact.astype(dtype)
        special = ~np.isfinite(near) | (near == 0)
        np.testing.assert_array_equal(found[special], near[special])
        np.testing.assert_array_equal(np.signbit(found[near == 0]), np.signbit(near[near == 0]))
        kept = ~special & (np.abs(near) >= np.finfo(dtype).tiny)
        scale = np.abs(near)
        if name == "logaddexp":  # where two terms nearly cancel, in units of the larger one
            limited = [np.nan_to_num(np.abs(each), posinf=0) for each in operands]
            scale = np.maximum(scale, np.maximum(*limited))
        apart = np.abs(found[kept] - exact[kept]) / np.spacing(scale[kept])
        return float(apart.max(initial=0))


def operands_of(name, dtype, size=4000):
    """Random bits, numbers near 1, and special values."""
    random, limits = np.random.default_rng(len(name)), np.finfo(dtype)
    special = [0, -0.0, 1, -1, 2, 0.5, np.inf, -np.inf, np.nan, limits.tiny]
    for _ in range(TABLE[name].operands):
        bits = random.integers(0, 256, (size, limits.bits // 8), np.uint8).view(dtype)[:, 0]
        bits = np.where(np.abs(bits) < limits.tiny, dtype(1), bits)
        near = (
            1 + random.normal(size=size) * 2.0 ** -random.integers(0, limits.nmant, size)
        ).astype(dtype)
        usual = (random.normal(size=size) * 10).astype(dtype)
        ends = random.choice(np.array(special, dtype), size)
        yield np.choose(random.integers(0, 4, size), [bits, near, usual, ends])


@pytest.mark.parametrize("name", NAMES)
def test_at_most_two_units_in_the_last_place(device, name):
    for dtype in (np.float32, np.float64):
        if dtype == np.float64 and not {"shaderFloat64", "shaderInt64"} <= device.features:
            continue
        operands = [*operands_of(name, dtype)]
        exactly = name in ("divide", "reciprocal", "sqrt") and dtype == np.float32
        assert ulps(name, *operands) <= (0.5 if exactly else 2)


def test_division_and_square_roots_are_rounded_to_nearest(device):
    random = np.random.default_rng(1)
    for dtype in ("f4", "f8"):
        if dtype == "f8" and not {"shaderFloat64", "shaderInt64"} <= device.features:
            continue
        x, y = (np.abs(random.normal(size=9000)).astype(dtype) for _ in range(2))
        y[::3] = x[::3] * (1 + np.finfo(dtype).eps * random.integers(-5, 6, 3000))
        np.testing.assert_array_equal(vkops.divide(x, y).numpy(), x / y)
        np.testing.assert_array_equal(vkops.sqrt(x).numpy(), np.sqrt(x))


def test_hard_cases(device):
    """Multiples of pi / 2 that floats nearly have, and results near the limits."""
    x = np.float32([1.6367e19, 16367173 * 2.0**72, 3.14159274, 1e-30, 8e37, 355, 1.5707964])
    assert max(ulps(name, x) for name in ("sin", "cos", "tan")) <= 2
    x = np.float32([88.7228, 89.4159, -87.3, 9.02e-9, 17.32868])
    assert max(ulps(name, x) for name in ("exp", "sinh", "cosh", "tanh", "expm1")) <= 2


@pytest.mark.parametrize("name", NAMES)
def test_the_interpreter_has_the_same_bits(device, name):
    operands = [each[:64] for each in operands_of(name, np.float32)]
    operands = [np.where(np.isnan(each), np.float32(3), each) for each in operands]
    with checked((32,)) as names:
        getattr(vkops, name)(*operands)
    assert names


def test_kernels_can_call_them(device):
    x = np.linspace(0.1, 3, 9, dtype=np.float32)
    kernel = vkops.ElementwiseKernel("T x, T y", "T z", "z = vk_div(vk_exp(x), vk_sin(y))")
    separate = vkops.divide(vkops.exp(x), vkops.sin(x[::-1].copy())).numpy()
    np.testing.assert_array_equal(kernel(x, x[::-1].copy()).numpy(), separate)
    assert "vk_tan" not in kernel.source
    logarithms = vkops.ScanKernel("T x", "T y", "vk_exp(x)", "a + b", "y = vk_log(item)")
    sums = vkops.kernels.cumsum(vkops.exp(x))
    np.testing.assert_array_equal(logarithms(x).numpy(), vkops.log(sums).numpy())
    logarithm = vkops.ReductionKernel("T x", "T y", "vk_exp(x)", "a + b", "y = vk_log(a)", "0")
    np.testing.assert_array_equal(
        logarithm(x).numpy(), vkops.log(vkops.kernels.sum(vkops.exp(x))).numpy()
    )
    if {"shaderFloat64", "shaderInt64"} <= device.features:
        wide = x.astype(np.float64)
        expected = vkops.divide(vkops.exp(wide), vkops.sin(wide)).numpy()
        np.testing.assert_array_equal(kernel(wide, wide).numpy(), expected)


# -- the bits of all devices -----------------------------------------------------------------------

BITS = {
    "divide": (0xC78489AA, 0x82AFB679),
    "reciprocal": (0x2D24CEEC, 0x6D6998F6),
    "sqrt": (0x40AA067A, 0xEDEA8374),
    "exp": (0xC42EB0F5, 0x2D821C3D),
    "exp2": (0xB7394DCB, 0x1610D829),
    "expm1": (0x7B6671B5, 0x6AEE5049),
    "log": (0x201C403A, 0xD82E249C),
    "log2": (0x188E9DA6, 0x205C6D05),
    "log10": (0x6800E725, 0x60C5232C),
    "log1p": (0x0A4C83BF, 0x69BD9BAD),
    "pow": (0x7B19B23F, 0xD2926D5F),
    "sin": (0xC9D24461, 0x194D5CFC),
    "cos": (0x6199A1ED, 0x32A09C9C),
    "tan": (0x67475FBF, 0x4D74E0D8),
    "asin": (0x428CD6EE, 0xAEB15545),
    "acos": (0x1735AD42, 0x12DF5203),
    "atan": (0xD84DE644, 0x1B1C1818),
    "atan2": (0x9DCBC962, 0x928B8472),
    "sinh": (0x30D2940A, 0x8825C598),
    "cosh": (0x33E0D366, 0x357AC1D8),
    "tanh": (0x83AA6D7D, 0x2B884A92),
    "asinh": (0x60945E06, 0x77C99C49),
    "acosh": (0x2A69B39B, 0x996D5B20),
    "atanh": (0xE1E3DE3B, 0xDA371303),
    "hypot": (0x438C0727, 0x7BCF3EA6),
    "logaddexp": (0xAB6BF6A3, 0x25A34C7A),
}
"""The CRC of the bits of results for float32 and float64, on every device."""

FLUSHED = {"exp", "exp2", "pow", "logaddexp", "hypot", "atan2"}
"""The functions that have other results on devices that have zeros for denormal numbers."""


def spread(name, dtype, size=6000):
    """Numbers that follow from their index alone: random bits, usual numbers, special values."""
    limits = np.finfo(dtype)
    special = np.array([0, -0.0, 1, -1, 0.5, 2, np.inf, -np.inf, np.nan, limits.max], dtype)
    for k in range(TABLE[name].operands):
        mixed = np.arange(1 + k * size, 1 + (k + 1) * size, dtype=np.uint64)
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):
            mixed = (mixed ^ mixed >> np.uint64(shift)) * np.uint64(factor)
        bits = (mixed >> np.uint64(64 - limits.bits)).astype(f"u{limits.bits // 8}").view(dtype)
        usual = ((mixed >> np.uint64(11)) * 2.0**-53 * 20 - 10).astype(dtype)
        kinds = np.arange(size) // (k + 1) % 4 % 3
        numbers = np.choose(kinds, [bits, usual, special[mixed % np.uint64(special.size)]])
        numbers[np.abs(numbers) < limits.tiny] = 1
        yield numbers


@pytest.mark.parametrize("name", NAMES)
def test_bits_are_those_of_every_device(device, name):
    """Without denormal operands, and with zeros in place of denormal results."""
    for number, dtype in enumerate((np.float32, np.float64)):
        if dtype == np.float64 and not {"shaderFloat64", "shaderInt64"} <= device.features:
            continue
        found = np.array(getattr(vkops, name)(*spread(name, dtype)).numpy())
        found[np.abs(found) < np.finfo(dtype).tiny] = 0
        found[np.isnan(found)] = np.nan
        crc = zlib.crc32(found.tobytes())
        assert crc == BITS[name][number], f"{dtype.__name__}: {crc:#010x}"


def test_functions_with_other_denormal_numbers(device):
    """On devices that flush these; the others have the results of the rest."""
    tiny, differing = np.finfo(np.float32).tiny, set()
    for name in NAMES:
        random = np.random.default_rng(1)
        operands = [
            (random.uniform(-2, 2, 4000) * tiny).astype(np.float32)
            for _ in range(TABLE[name].operands)
        ]
        if name in ("exp", "exp2"):
            operands = [random.uniform(-150, -87, 4000).astype(np.float32)]
        if name == "logaddexp":
            operands[1] = np.float32(-200)
        if name == "pow":
            operands = [random.uniform(0.3, 0.5, 4000).astype(np.float32), np.float32(90)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exact = getattr(np, TABLE[name].ufunc)(*[each.astype(float) for each in operands])
            near = exact.astype(np.float32)
            apart = np.abs(getattr(vkops, name)(*operands).numpy() - exact)
        is_near = apart <= 2 * np.spacing(np.abs(near))
        if not (is_near | ~np.isfinite(near)).all():
            differing.add(name)
    keeps = device.same_bits or "llvmpipe" in device.info.name
    assert differing == (set() if keeps else FLUSHED)
