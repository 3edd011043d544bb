"""Measure the elementary functions of vkops. Usage: scripts/elementary.py COMMAND [name ...]

Run it with .venv/bin/python. ``floats`` compares results for all 2**32 numbers of float32, or for
random pairs, with float64 results of NumPy, special values and signs of zeros included.
``doubles`` compares float64 with mpmath, for random and special numbers. ``costs`` prints the
table of docs/arithmetic.md: sizes, compile times, and times compared with GLSL's own functions.
``bits`` writes a file with the bits of results, or compares them with such a file.
"""

import argparse
import os
import time
import warnings
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import vkops
from vkops.kernels.table import TABLE

BLOCK = 1 << 20
PAIRS = 16
"""Blocks of pairs of float32."""

NAMES = [
    "divide", "reciprocal", "sqrt", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p",
    "logaddexp", "pow", "hypot", "sin", "cos", "tan", "asin", "acos", "atan", "atan2",
    "sinh", "cosh", "tanh", "asinh", "acosh", "atanh",
]  # fmt: skip
OWN = {
    "divide": "x / y", "reciprocal": "1.0 / x", "pow": "pow(x, y)", "atan2": "atan(x, y)",
    **dict.fromkeys(("expm1", "log10", "log1p", "logaddexp", "hypot"), ""),
}  # fmt: skip
"""What GLSL has in place of a function of the same name."""

RANGES = {"asin": (-1, 1), "acos": (-1, 1), "atanh": (-1, 1), "acosh": (1, 100), "pow": (0.1, 10)}
POSITIVE = {"log", "log2", "log10", "sqrt", "log1p"}


def numpys(name: str) -> np.ufunc:
    """Return NumPy's function."""
    function: np.ufunc = getattr(np, TABLE[name].ufunc)
    return function


# -- float32 ---------------------------------------------------------------------------------------


def numbers_of(name: str, part: int, piece: slice) -> Iterator[list[np.ndarray]]:
    """Yield blocks of all float32 numbers, or of pairs: random bits, usual and special numbers."""
    if TABLE[name].operands == 1:
        spread = np.arange(0, BLOCK * part, part, dtype=np.uint64)
        for start in range(0, 1 << 32, BLOCK * part)[piece]:
            yield [(spread + np.uint64(start)).astype(np.uint32).view(np.float32)]
        return
    for seed in range(PAIRS)[piece]:
        yield operands_of(name, BLOCK, seed)


def largest(name: str, part: int, piece: slice) -> tuple[float, list[float]]:
    """Return the largest error of a function, in units in the last place, and where it is.

    Raises:
        AssertionError: a result is NaN, infinite or 0, or has a sign, where it should not.
    """
    most, where = 0.5, [0.0]  # of numbers that are rounded to nearest, too
    for operands in numbers_of(name, part, piece):
        found = getattr(vkops, name)(*operands).numpy()
        exact = numpys(name)(*[each.astype(np.float64) for each in operands])
        near = exact.astype(np.float32)
        other = found.view(np.uint32) != near.view(np.uint32)
        other = np.flatnonzero(other & ~(np.isnan(found) & np.isnan(near)))
        found, exact, near = found[other], exact[other], near[other]
        is_wrong = np.isnan(found) | np.isnan(near) | (np.isinf(found) & np.isinf(near))
        is_wrong |= (np.signbit(found) != np.signbit(near)) & ((found == 0) | (near == 0))
        assert not is_wrong.any(), [each[other[is_wrong]][:9] for each in operands]
        scale = np.minimum(np.abs(near), np.finfo(np.float32).max)
        if name == "logaddexp":  # where two terms nearly cancel, in units of the larger one
            scale = np.maximum(scale, np.maximum(*[np.abs(each[other]) for each in operands]))
        # The largest number and infinity are neighbours.
        found = np.where(np.isinf(found), np.copysign(2.0**128, found), found)
        apart = np.abs(found - exact) / np.spacing(scale)
        if apart.size and apart.max() > most:
            most = float(apart.max())
            where = [float(each[other[apart.argmax()]]) for each in operands]
    return most, where


# -- float64 ---------------------------------------------------------------------------------------


def doubles(name: str, count: int) -> Iterator[np.ndarray]:
    """Yield operands: random bits, usual numbers, some near 1 and near multiples of pi / 2."""
    random = np.random.default_rng(sum(map(ord, name)))
    for _ in range(TABLE[name].operands):
        bits = random.integers(0, 1 << 64, count, np.uint64).view(np.float64)
        usual = random.normal(size=count) * 10.0 ** random.integers(-2, 3, count)
        near = 1 + random.normal(size=count) * 2.0 ** -random.integers(0, 50, count)
        turns = random.integers(-1000, 1000, count) * (np.pi / 2)
        turns *= 1 + random.integers(-3, 4, count) * 2.0**-53
        small = random.uniform(-1, 1, count)
        yield np.choose(random.integers(0, 5, count), [bits, usual, near, turns, small])


def largest_of_doubles(name: str, count: int) -> float:
    """Return the largest error of float64, compared with mpmath."""
    mpmath = import_module("mpmath")
    mpmath.mp.prec = 1200  # as sin of the largest numbers needs
    functions = {
        "divide": lambda x, y: x / y, "reciprocal": lambda x: 1 / x,
        "exp2": lambda x: mpmath.power(2, x), "log2": lambda x: mpmath.log(x, 2),
        "pow": mpmath.power,
        "logaddexp": lambda x, y: max(x, y) + mpmath.log1p(mpmath.exp(-abs(x - y))),
    }  # fmt: skip
    function = functions.get(name) or getattr(mpmath, name)
    operands = [*doubles(name, count)]
    found = getattr(vkops, name)(*operands).numpy()
    most = 0.0
    near = numpys(name)(*operands)
    is_normal = np.isfinite(near) & (np.abs(near) >= np.finfo(np.float64).tiny)
    for k in np.flatnonzero(is_normal):
        numbers = [mpmath.mpf(float(each[k])) for each in operands]
        mpmath.mp.prec = 1200 if name in ("sin", "cos", "tan") and abs(numbers[0]) > 1e3 else 160
        exact = function(*numbers)
        scale = abs(near[k])
        if name == "logaddexp":  # where two terms nearly cancel, in units of the larger one
            scale = max(scale, *[abs(float(each)) for each in numbers])
        most = max(most, float(abs(mpmath.mpf(float(found[k])) - exact) / float(np.spacing(scale))))
    return most


# -- costs -----------------------------------------------------------------------------------------


def kernel_of(name: str, expression: str) -> vkops.ElementwiseKernel:
    """Return a kernel of float32 that computes an expression."""
    inputs = ", ".join([f"float32 {each}" for each in "xy"[: TABLE[name].operands]])
    return vkops.ElementwiseKernel(inputs, "float32 z", f"z = {expression}", name)


def clock() -> float:
    """Return the time that processors spent for this process and its children, in seconds."""
    return sum(os.times()[:4])


def costs(names: list[str], size: int, rounds: int) -> None:
    """Print the table: sizes of shaders, and times of the processor.

    Times of GLSL's function and of vkops are measured in turns, and the shortest ones compared.
    """
    os.environ["MESA_SHADER_CACHE_DISABLE"] = "true"
    with TemporaryDirectory() as folder:
        os.environ["VKOPS_CACHE_DIR"] = folder
        random, device = np.random.default_rng(0), vkops.Device()
        out, one = vkops.empty(size, "float32", device=device), np.ones(1, np.float32)
        vkops.abs(device.tensor(one))
        print("| function | SPIR-V, bytes | compile time, ms | time, ms | GLSL's, ms | ratio |")
        print("|---|---|---|---|---|---|")
        for name in names:
            low, high = RANGES.get(name, (0.001, 100) if name in POSITIVE else (-10, 10))
            arguments = ", ".join("xy"[: TABLE[name].operands])
            call = {"divide": "vk_div(x, y)", "reciprocal": "vk_div(1.0, x)"}.get(
                name, f"vk_{name}({arguments})"
            )
            own = OWN.get(name, f"{name}(x)")
            kernels = [kernel_of(name, text) for text in (call, own) if text]
            operands = [
                device.tensor(random.uniform(low, high, size).astype(np.float32))
                for _ in range(TABLE[name].operands)
            ]
            begun = clock()
            kernels[0](*[one] * len(operands), device=device)
            device.synchronize()
            compiled = clock() - begun
            times = [9e9, 9e9]
            for _ in range(rounds):
                for k, kernel in enumerate(kernels):
                    begun = time.process_time()
                    kernel(*operands, out=out)
                    device.synchronize()
                    times[k] = min(times[k], time.process_time() - begun)
            nbytes = len(device.compile_shader(kernels[0].source).shader.spirv)
            texts = [nbytes, compiled * 1e3, times[0] * 1e3, times[1] * 1e3]
            shown = " | ".join([f"{each:.0f}" for each in texts][: 4 if own else 3])
            shown += f" | {times[0] / times[1]:.2f}" if own else " | |"
            print(f"| `{name}` | {shown} |", flush=True)


# -- bits ------------------------------------------------------------------------------------------


def operands_of(name: str, count: int, seed: int = 0) -> list[np.ndarray]:
    """Return random bits, usual numbers and special values of float32."""
    random = np.random.default_rng([seed, len(name)])
    special = np.array([0, -0.0, 1, -1, 2, 0.5, np.inf, -np.inf, np.nan, 1e-38, 1e-45], "f4")
    return [
        np.choose(
            random.integers(0, 3, count),
            [
                random.integers(0, 1 << 32, count, np.uint32).view(np.float32),
                (random.normal(size=count) * 10).astype(np.float32),
                random.choice(special, count),
            ],
        )
        for _ in range(TABLE[name].operands)
    ]


def compare(names: list[str], path: Path, count: int) -> None:
    """Write the bits of results, or print how many differ from those of a file."""
    results = {}
    for name in names:
        found = getattr(vkops, name)(*operands_of(name, count)).numpy()
        found = np.where(np.isnan(found), np.float32(np.nan), found)
        results[name] = found.view(np.uint32)
    print(vkops.Device().info.name)
    if not path.exists():
        np.savez(path, **results)
        return
    with np.load(path) as kept:
        for name, bits in results.items():
            differ = np.flatnonzero(bits != kept[name])
            shown = [tuple(float(each[k]) for each in operands_of(name, count)) for k in differ[:3]]
            print(f"{name}: {len(differ)} of {count} differ {shown or ''}")


def main() -> None:
    """Run a command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("command", choices=["floats", "doubles", "costs", "bits"])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--part", type=int, default=1, help="floats: every Nth number only")
    parser.add_argument("--piece", default="0/1", help="floats: 1/4 is the second of four pieces")
    parser.add_argument("--count", type=int, help="numbers of doubles, costs and bits")
    parser.add_argument("--rounds", type=int, default=6, help="costs: measurements of a function")
    parser.add_argument("--file", type=Path, default=Path("elementary.npz"), help="bits: the file")
    chosen = parser.parse_intermixed_args()
    warnings.simplefilter("ignore")
    names, (first, step) = chosen.names or NAMES, map(int, chosen.piece.split("/"))
    if chosen.command == "costs":
        costs(names, chosen.count or 1 << 24, chosen.rounds)
    elif chosen.command == "bits":
        compare(names, chosen.file, chosen.count or 1 << 18)
    elif chosen.command == "doubles":
        for name in names:
            print(f"{name}: {largest_of_doubles(name, chosen.count or 20000):.3f}", flush=True)
    else:
        for name in names:
            most, where = largest(name, chosen.part, slice(first, None, step))
            print(f"{name}: {most:.3f} at {where}", flush=True)


if __name__ == "__main__":
    main()
