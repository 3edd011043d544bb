"""Random numbers that are the same on every device."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from math import factorial, pi, prod
from threading import RLock
from typing import Any

import numpy as np

from vkops.arguments.other_names import suggest_names
from vkops.arguments.values import ArgumentName, boolean, integer, number, refuse
from vkops.elementwise.formats import GLSL_TYPES
from vkops.elementwise.kernel import ElementwiseKernel
from vkops.errors import refuse_reentry, show
from vkops.kernels.axis_kernel import builtin
from vkops.kernels.counts import searchsorted
from vkops.kernels.functions import integer_from, require_dtype
from vkops.kernels.sort import argsort, require_room
from vkops.plan.view import Ints
from vkops.system.threads import new_lock
from vkops.tensors.creation import empty
from vkops.tensors.exchange import as_dtype, numpy_refusals
from vkops.tensors.operations import as_tensor, chosen_device
from vkops.tensors.selection import take
from vkops.tensors.shape_arguments import one_axis, one_or_more
from vkops.tensors.tensor import DeviceLike, Tensor, default_device

__all__ = ["Philox"]

_MAX = (1 << 64) - 1

_lock = new_lock()
"""Held while positions are read and written: so briefly that all generators share it."""

philox = """
uvec4 philox(uvec4 counter, uvec2 key) {  // Philox4x32-10
    for (int k = 0; k < 10; ++k) {
        uint high0, low0, high1, low1;
        umulExtended(0xD2511F53u, counter.x, high0, low0);
        umulExtended(0xCD9E8D57u, counter.z, high1, low1);
        counter = uvec4(high1 ^ counter.y ^ key.x, low1, high0 ^ counter.w ^ key.y, low0);
        key += uvec2(0x9E3779B9u, 0xBB67AE85u);
    }
    return counter;
}
"""
"""A function of a counter and a key. Source: Salmon et al., "Parallel random numbers: as easy as
1, 2, 3"."""

_SCALED = {
    4: """
uint scaled(uvec4 w, uint most) {  // the integer part of w * (most + 1) / 2**128
    uint product = 0, high, low, carry, other;
    for (int k = 0; k < 4; ++k) {
        umulExtended(w[k], most, high, low);
        uaddCarry(uaddCarry(low, w[k], carry), product, other);
        product = high + carry + other;
    }
    return product;
}
""",
    8: """
uint64_t scaled(uvec4 w, uint64_t most) {  // the integer part of w * (most + 1) / 2**128
    uint64_t product = 0, low;
    for (int k = 0; k < 4; ++k) {
        low = uint64_t(w[k]) * uint(most) + w[k] + uint(product);
        product = uint64_t(w[k]) * (most >> 32) + (product >> 32) + (low >> 32);
    }
    return product;
}
""",
}

_FRACTIONS = {
    "float32": "float(w.w >> 8) * 5.9604644775390625e-8",
    "float64": "double(w.w) * 2.3283064365386962890625e-10lf"
    " + double(w.z >> 11) * 1.1102230246251565404236316680908203125e-16lf",
}
"""The first 24 or 53 bits of 128, from 0 to below 1; all operations are exact."""

_STARTS = {
    "float32": """
    uint bits = w.w | 1u, rest;  // a number from 0 to 1 is m * 2**(e - 32)
    int e = findMSB(bits);
    precise float m = uintBitsToFloat(0x3f800000u | (bits << (31 - e) >> 8 & 0x7fffffu));
    e -= 32;
    precise float a = float(w.y >> 5 & 0xffffffu) * 5.9604644775390625e-8;
    #define ROUGH(x) uintBitsToFloat(0x5f3759dfu - (floatBitsToUint(x) >> 1))""",
    "float64": """
    precise double m = double(w.w) * 4294967296.0lf + double(w.z & 0xfffff800u | 0x400u);
    uvec2 bits = unpackDouble2x32(m);  // a number from 0 to 1 is m * 2**(e - 64)
    int e = int(bits.y >> 20) - 1023 - 64;
    m = packDouble2x32(uvec2(bits.x, 0x3ff00000u | (bits.y & 0xfffffu)));
    precise double a = double(w.y & 0x1fffffffu) * 1.862645149230957e-09lf
        + double(w.x >> 8) * 1.1102230246251565e-16lf;
    #define ROUGH(x) packDouble2x32(uvec2(0, 0x5fe6eb50u - (unpackDouble2x32(x).y >> 1)))""",
}
"""Statements that begin ``normal``: a number below 1, part of an octant, and a rough 1 / sqrt."""


def normal(dtype: np.dtype[Any]) -> str:
    """A function of 128 random bits with a normal distribution, by the method of Box and Muller.

    It only adds, subtracts and multiplies, in a fixed order: the logarithm, the sine and the cosine
    are polynomials, and division and the square root are Newton's iterations.
    """
    is_double = dtype == np.float64
    real, suffix, terms, steps = ("double", "lf", 11, 4) if is_double else ("float", "", 5, 3)

    def number(value: float) -> str:
        return f"{float(dtype.type(value))!r}{suffix}"

    def polynomial(x: str, coefficients: list[float]) -> str:
        text = number(coefficients[-1])
        for each in coefficients[-2::-1]:
            text = f"({text} * {x} + {number(each)})"
        return text

    sine = polynomial("t", [(-1) ** k / factorial(2 * k + 1) for k in range(terms)])
    cosine = polynomial("t", [(-1) ** k / factorial(2 * k) for k in range(terms + 1)])
    return f"""
{real} normal(uvec4 w) {{ {_STARTS[dtype.name]}
    if (m > {number(1.4142)}) {{ m *= {number(0.5)}; ++e; }}
    precise {real} d = m + {number(1)}, r = {number(0.985)} - {number(0.2427)} * d;
    for (int k = 0; k < {steps}; ++k) r = r * ({number(2)} - d * r);
    precise {real} s = (m - {number(1)}) * r, t = s * s;
    precise {real} logarithm = {real}(e) * {number(0.6931471805599453)}
        + (s + s) * {polynomial("t", [1 / (2 * k + 1) for k in range(terms)])};
    precise {real} x = {number(-2)} * logarithm, y = ROUGH(x);
    for (int k = 0; k < {steps}; ++k) y = y * ({number(1.5)} - {number(0.5)} * x * y * y);
    uint octant = w.y >> 29;
    if ((octant & 1u) != 0u) a = {number(1)} - a;
    a = a * {number(pi / 4)};
    t = a * a;
    precise {real} c = ((octant + 1u) & 2u) != 0u ? a * {sine} : {cosine};
    precise {real} found = x * y * c;
    return ((octant + 2u) & 4u) != 0u ? -found : found;
}}
"""


@lru_cache(64)
def _kernel(name: str, dtype: np.dtype[Any]) -> ElementwiseKernel:
    inputs, preamble = ["uint32 seed0, uint32 seed1, uint32 at0, uint32 at1"], philox
    if name == "random":
        result = _FRACTIONS[dtype.name]
    elif name == "uniform":
        inputs += [f"{dtype} low, {dtype} width"]
        result = f"low + width * ({_FRACTIONS[dtype.name]})"
    elif name == "normal":
        inputs += [f"{dtype} loc, {dtype} scale"]
        preamble += normal(dtype)
        result = "normal(w) * scale + loc"
    else:
        wide = 8 if dtype.itemsize == 8 else 4
        inputs += [f"uint{8 * wide} least, uint{8 * wide} most"]
        preamble += _SCALED[wide]
        result = f"{GLSL_TYPES[dtype.name]}(least + scaled(w, most))"
    operation = f"""uint at = at0 + uint(i);
    uvec4 w = philox(uvec4(at, at1 + uint(at < at0), 0, 0), uvec2(seed0, seed1));
    precise {GLSL_TYPES[dtype.name]} found = {result};
    z = found;"""
    texts = ", ".join(inputs), f"{dtype} z", operation, name, preamble
    return builtin(ElementwiseKernel(*texts))


def _ends(p: Any, count: int) -> Any:
    """Where the probabilities of all elements but the last end, as multiples of 2**-32 (EW-05)."""
    with numpy_refusals("choice", "p", "EW-05"):
        weights = np.asarray(p, np.float64)
    if weights.shape != (count,) or not (weights >= 0).all() or abs(weights.sum() - 1) > 1e-6:
        message = f"got {show(p)}, must be {count} numbers from 0 on, whose sum is 1"
        refuse("choice", "p", message, "EW-05")
    sums = np.cumsum(weights)
    last = int(weights.nonzero()[0][-1])  # nothing after it is chosen
    ends = np.minimum(np.rint(sums[:last] / sums[-1] * 2.0**32), 2.0**32 - 1)
    return ends.astype(np.uint32)


def _unused_lock() -> RLock:
    refuse_reentry(_lock, "a position is being taken")
    return _lock


class Philox:
    """Random numbers of Philox4x32-10, which are the same on every device.

    Each element of a result takes the 128 bits of the next position, in C order: so the numbers do
    not depend on how many of them a call makes. Calls do not wait. In a recorded program they make
    the same numbers in each run. Threads that share a generator get different numbers.

    Args:
        seed: an integer from 0 to 2**64 - 1: the key.
        position: the counter of the first element, in the same range.

    Attributes:
        seed: the seed.

    Raises:
        InvalidDescError: the seed or the position is no such integer (EW-05).

    >>> import vkops
    >>> generator = vkops.kernels.random.Philox(7)
    >>> generator.integers(10, size=8, dtype="int32").numpy()
    array([0, 9, 8, 1, 5, 7, 4, 6], dtype=int32)
    >>> generator.position
    8
    """

    def __init__(self, seed: int, position: int = 0) -> None:
        self.seed: int = integer_from(0, _MAX, seed, "Philox", "seed")
        self.position = position

    @property
    def position(self) -> int:
        """The counter of the next element, which can be set."""
        return self._position

    @position.setter
    def position(self, position: int) -> None:
        known = integer_from(0, _MAX, position, "Philox", "position")
        with _unused_lock():
            self._position = known

    @contextmanager
    def _positions(self, count: int) -> Iterator[int]:
        """Take positions, which no other call gets, and return the first one.

        If the block raises an error, the next call gets them, unless there was one meanwhile.
        """
        with _unused_lock():
            start = self._position
            self._position = end = (start + count) % (1 << 64)
        try:
            yield start
        except BaseException:
            with _unused_lock():
                if self._position == end:
                    self._position = start
            raise

    def __repr__(self) -> str:
        return f"<vkops.kernels.random.Philox {self.seed} at {self.position}>"

    def integers(
        self,
        low: int,
        high: int | None = None,
        size: int | Ints | None = None,
        dtype: Any = np.int64,
        *,
        endpoint: bool = False,
        out: Tensor | None = None,
        device: DeviceLike = None,
    ) -> Tensor:
        """Return integers from ``low`` to below ``high``, as ``numpy.random.Generator.integers``.

        Args:
            low: the least integer; 0 if ``high`` is not given, as the argument is that.
            high: the end of the range.
            size: the shape; a number by default.
            dtype: an integer data type, or bool.
            endpoint: include ``high``.
            out: a tensor that gets the numbers, instead of ``size`` and ``dtype``.
            device: where the tensor is made.

        Raises:
            InvalidDescError: the range is empty or the data type does not hold it (EW-05), the data
                type (EW-04), which the device must have (SH-02), or see ``ElementwiseKernel``.
        """
        first, end = (0, low) if high is None else (low, high)
        first, end = (
            integer(each, ArgumentName("integers", "low", "EW-05")) for each in (first, end)
        )
        end += boolean(endpoint, ArgumentName("integers", "endpoint", "EW-05"))
        allowed = [name for name in GLSL_TYPES if "float" not in name]
        target = self._target("integers", size, dtype, out, device, allowed)
        kind = target.dtype
        limits = (0, 1) if kind.kind == "b" else (np.iinfo(kind).min, np.iinfo(kind).max)
        if not limits[0] <= first < end <= limits[1] + 1:
            got = f"got {show(first)} to below {show(end)}"
            refuse("integers", "low", f"{got}, must be a range of {kind}, not empty", "EW-05")
        mask = (1 << (64 if kind.itemsize == 8 else 32)) - 1
        return self._fill("integers", target, first & mask, end - 1 - first)

    def random(
        self,
        size: int | Ints | None = None,
        dtype: Any = np.float64,
        *,
        out: Tensor | None = None,
        device: DeviceLike = None,
    ) -> Tensor:
        """Return numbers from 0 to below 1, multiples of 2**-24, or of 2**-53 if they are float64.

        Arguments and errors are those of ``integers``; the data type is float32 or float64.
        """
        return self._fill("random", self._target("random", size, dtype, out, device, [*_FRACTIONS]))

    def uniform(
        self,
        low: float = 0.0,
        high: float = 1.0,
        size: int | Ints | None = None,
        dtype: Any = np.float64,
        *,
        out: Tensor | None = None,
        device: DeviceLike = None,
    ) -> Tensor:
        """Return numbers from ``low`` to ``high``: ``low + (high - low) * random()``, rounded.

        Arguments and errors are those of ``random``; ``low`` and ``high`` are finite (EW-05).
        Rounding can make a number ``high``, as in NumPy.
        """
        bounds = {"low": low, "high": high}
        numbers = {
            n: number(each, ArgumentName("uniform", n, "EW-05")) for n, each in bounds.items()
        }
        target = self._target("uniform", size, dtype, out, device, [*_FRACTIONS])
        most = float(np.finfo(target.dtype).max)
        for name, each in numbers.items():
            if not abs(each) <= most:  # as NaN is not
                message = f"got {show(each)}, must be a finite number of {target.dtype}"
                refuse("uniform", name, message, "EW-05")
        first, end = map(float, numbers.values())
        if not abs(end - first) <= most:
            message = f"got {show(high)}, must be within {target.dtype}'s range of low"
            refuse("uniform", "high", message, "EW-05")
        return self._fill("uniform", target, first, end - first)

    def standard_normal(
        self,
        size: int | Ints | None = None,
        dtype: Any = np.float64,
        *,
        out: Tensor | None = None,
        device: DeviceLike = None,
    ) -> Tensor:
        """Return normally distributed numbers: ``normal`` with the mean 0 and the deviation 1."""
        return self.normal(0.0, 1.0, size, dtype, out=out, device=device)

    def normal(
        self,
        loc: float = 0.0,
        scale: float = 1.0,
        size: int | Ints | None = None,
        dtype: Any = np.float64,
        *,
        out: Tensor | None = None,
        device: DeviceLike = None,
    ) -> Tensor:
        """Return normally distributed numbers with the mean ``loc`` and the deviation ``scale``.

        Arguments and errors are those of ``random``. The largest deviation from the mean is 6.7
        times ``scale``, or 8.6 times if the numbers are float64.
        """
        target = self._target("normal", size, dtype, out, device, [*_FRACTIONS])
        return self._fill("normal", target, loc, scale)

    def permutation(
        self, x: Any, axis: int = 0, *, dtype: Any = np.int64, device: DeviceLike = None
    ) -> Tensor:
        """Return an array with an axis in random order, as ``numpy.random.Generator.permutation``.

        The order is that of 64 random bits for each place, which take two positions.

        Args:
            x: an array, or the number n of the integers from 0 to n - 1.
            axis: the axis of an array.
            dtype: the data type of these integers: int32 or int64.
            device: where the tensor is made; by default that of the array.

        Raises:
            InvalidDescError: the number is negative (EW-05) or too large (EW-07), the axis is not
                one of the array (ARRAY-01), or the data type (EW-04), which the device must have
                (SH-02).

        >>> import vkops
        >>> vkops.kernels.random.Philox(7).permutation(5, dtype="int32").numpy()
        array([3, 1, 2, 0, 4], dtype=int32)
        """
        if isinstance(x, (int, np.integer)):
            tensor, count = None, integer_from(0, (1 << 31) - 1, x, "permutation", "x")
            home = chosen_device("permutation", device) or default_device()
        else:
            tensor = as_tensor("permutation", x, device)
            home, dtype = tensor.device, "int32"
            count = tensor.shape[one_axis("permutation", axis, tensor.ndim)]
        result_dtype = as_dtype("permutation", dtype)
        require_dtype("permutation", result_dtype, ["int32", "int64"], home)
        require_room("permutation", 8 * count, home)
        low, high = (empty((count,), dtype="uint32", device=home) for _ in range(2))
        with self._positions(2 * count) as start:
            for part, first in ((low, start), (high, (start + count) % (1 << 64))):
                self._run("integers", part, first, 0, (1 << 32) - 1)
        order = argsort(low, dtype=result_dtype)
        order = take(order, argsort(take(high, order), dtype="int32"))
        return order if tensor is None else take(tensor, order, axis=axis)

    def shuffle(self, x: Tensor, axis: int = 0) -> None:
        """Put an axis of a tensor in random order: that of ``permutation``, which has its errors.

        >>> import vkops
        >>> x = vkops.arange(5, dtype="int32")
        >>> vkops.kernels.random.Philox(7).shuffle(x)
        >>> x.tolist()
        [3, 1, 2, 0, 4]
        """
        if not isinstance(x, Tensor):
            raise ArgumentName("shuffle", "x", "EW-03").wrong_kind(x, "a tensor to write to")
        x[...] = self.permutation(x, axis)

    def choice(
        self,
        a: Any,
        size: int | Ints | None = None,
        replace: bool = True,
        p: Any = None,
        axis: int = 0,
        *,
        dtype: Any = np.int64,
        device: DeviceLike = None,
    ) -> Tensor:
        """Return elements of an array at random places, as ``numpy.random.Generator.choice``.

        Args:
            a: an array, or the number n of the integers from 0 to n - 1.
            size: the shape of what is chosen; one element by default.
            replace: whether an element can be chosen several times.
            p: the probabilities of the elements, in an array on the host; the same by default. They
                are rounded to multiples of 2**-32, and need ``replace``.
            axis: the axis of an array along which elements are chosen.
            dtype: the data type of integers: int32 or int64.
            device: where the tensor is made; by default that of the array.

        Raises:
            InvalidDescError: nothing to choose from, fewer elements than are chosen without
                ``replace``, or wrong probabilities (EW-05), an axis that does not exist (ARRAY-01),
                or as for ``permutation``.

        >>> import vkops
        >>> vkops.kernels.random.Philox(7).choice([10, 20, 30], 5, p=[0.5, 0, 0.5]).tolist()
        [10, 30, 30, 10, 30]
        """
        repeats = boolean(replace, ArgumentName("choice", "replace", "EW-05"))
        tensor = None if isinstance(a, (int, np.integer)) else as_tensor("choice", a, device)
        home = chosen_device("choice", device) or default_device()
        if tensor is None:
            count = integer_from(0, (1 << 31) - 1, a, "choice", "a")
        else:
            home, dtype = tensor.device, "int32"
            count = tensor.shape[one_axis("choice", axis, tensor.ndim)]
        shape = () if size is None else one_or_more(size, ArgumentName("choice", "size", "EW-05"))
        chosen = prod(shape)
        if chosen > (count if not repeats else chosen * bool(count)):
            message = f"chooses {chosen} elements, must choose {count} at most of {count}"
            refuse("choice", "size", message, "EW-05")
        if not repeats:
            if p is not None:
                refuse("choice", "p", "got probabilities, which need replace=True", "EW-05")
            places = self.permutation(count, dtype=dtype, device=home)[:chosen].reshape(shape)
        elif p is None:
            places = self.integers(max(count, 1), size=shape, dtype=dtype, device=home)
        else:
            ends = Tensor.from_array(home, _ends(p, count))
            draws = self.integers(1 << 32, size=shape, dtype="uint32", device=home)
            places = searchsorted(ends, draws, "right", dtype=dtype)
        if tensor is None:
            return places
        along = one_axis("choice", axis, tensor.ndim)
        result = take(tensor, places.reshape(-1), axis=along)
        return result.reshape((*tensor.shape[:along], *shape, *tensor.shape[along + 1 :]))

    def _target(
        self, name: str, size: Any, dtype: Any, out: Any, device: DeviceLike, allowed: list[str]
    ) -> Tensor:
        if out is not None and not isinstance(out, Tensor):
            raise ArgumentName(name, "out", "EW-03").wrong_kind(out, "a tensor to write to")
        home = out.device if out is not None else chosen_device(name, device) or default_device()
        result_dtype = out.dtype if out is not None else as_dtype(name, dtype)
        require_dtype(name, result_dtype, allowed, home)
        shape = () if size is None else size
        return empty(shape, dtype=result_dtype, device=home) if out is None else out

    def _fill(self, name: str, target: Tensor, *numbers: Any) -> Tensor:
        with self._positions(target.size) as start:
            self._run(name, target, start, *numbers)
        return target

    def _run(self, name: str, target: Tensor, position: int, *numbers: Any) -> None:
        seed = integer_from(0, _MAX, self.seed, "Philox", "seed")
        words = [half for each in (seed, position) for half in (each & 0xFFFFFFFF, each >> 32)]
        _kernel(name, target.dtype)(*words, *numbers, out=target)


suggest_names(Philox)
