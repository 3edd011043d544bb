"""Whether a driver does what kernels and shaders rely on: each property with a comparison."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

import vkops
from vkops.errors import ShaderCompileError, VkopsError
from vkops.gpu.copies.rule import REGIONS, SHADERS
from vkops.shaders.compiler import find_compiler

ROUNDS = 3
"""Random shapes of each movement and data type."""

_Array = npt.NDArray[Any]


class Check(NamedTuple):
    """A property, and whether the driver has it: None if that was not checked, for the reason."""

    name: str
    passed: bool | None
    reason: str = ""


def selftest(device: vkops.Device) -> Iterator[Check]:
    """Check one property after the other; each is yielded before the next one begins.

    >>> from vkops.debug.selftest import selftest
    >>> with vkops.Device() as device:
    ...     [check.name for check in selftest(device) if check.passed is False]
    []
    """
    random = np.random.default_rng(0)
    tuning = device.executor.tuning
    try:
        for rule, how in ((SHADERS, "kernels"), (REGIONS, "copies of regions")):
            device.executor.tuning = replace(tuning, copies=rule)
            for name in _MOVEMENTS:
                yield _movement(device, f"{name}, by {how}", _MOVEMENTS[name], random)
    finally:
        device.executor.tuning = tuning
    yield _order(device)
    try:
        find_compiler()
    except ShaderCompileError as error:
        yield Check("shaders of your own", None, error.message)
        return
    features = device.executor.queue.kompute.features
    for probe in _PROBES:
        if features.issuperset(probe.features):
            yield _shader(device, probe)
    for name in sorted(features.difference(*(probe.features for probe in _PROBES))):
        yield Check(name, None, "there is no test of it")


# -- kernels ---------------------------------------------------------------------------------------


def _scatter(x: Any, index: Any, value: Any) -> Any:
    x[index] = value
    return x


_DTYPES = ("u1", "u2", "u4", "u8", "c16")
_MOVEMENTS: dict[str, Callable[..., Any]] = {
    # Of vkops or NumPy, random arrays of one shape, and distinct indices of the first axis.
    "strided elements": lambda f, x, y, i: f.stack([x[:, ::-2], y[:, ::-2]], axis=-1),
    "runs of strided elements": lambda f, x, y, i: f.concatenate([x[:, ::-3], y[:, ::3]]),
    "transposes": lambda f, x, y, i: f.concatenate(
        [a.reshape(-1)[:128].reshape(8, 16).T for a in (x, y)]
    ),
    "transposes in tiles": lambda f, x, y, i: f.concatenate(
        [f.tile(a.reshape(-1)[:128].reshape(8, 16), (16, 8)).T for a in (x, y)]
    ),
    "reversed runs": lambda f, x, y, i: f.concatenate(
        [f.flip(a.reshape(-1)[:128]) for a in (x, y)]
    ),
    "runs at any alignment": lambda f, x, y, i: f.pad(x, ((1, 1), (3, 2))),
    "joined rows": lambda f, x, y, i: f.concatenate([x, y, x], axis=1),
    "many joined rows": lambda f, x, y, i: f.concatenate([x, y[:, 1:]] * 4, axis=1),
    "gathered rows": lambda f, x, y, i: f.take(x, i, axis=0),
    "gathered elements": lambda f, x, y, i: f.take(x, i % 8, axis=1),
    "one gathered element": lambda f, x, y, i: f.take(x[:, :1], i[:1], axis=0),
    "gathers with several indices": lambda f, x, y, i: x[i, i % 8],
    "scattered rows": lambda f, x, y, i: _scatter(f.roll(x, 0), i, y[i]),
    "scatters with several indices": lambda f, x, y, i: _scatter(f.roll(x, 0), (i, i % 8), y[i, 1]),
}


def _movement(
    device: vkops.Device, name: str, move: Callable[..., Any], random: np.random.Generator
) -> Check:
    for dtype in map(np.dtype, _DTYPES):
        for _ in range(ROUNDS):
            rows, columns = map(int, random.integers((8, 16), (30, 90)))
            numbers = random.integers(0, 256, (2, rows, columns * dtype.itemsize), np.uint8)
            x, y = numbers.view(dtype)
            i = random.permutation(rows)[: random.integers(1, 9)]
            expected = move(np, x, y, i)
            try:
                found = move(vkops, device.tensor(x), device.tensor(y), i).numpy()
            except VkopsError as error:
                return Check(name, False, str(error).splitlines()[0])
            if found.tobytes() != expected.tobytes():
                return Check(name, False, f"wrong bytes, for {dtype} of shape {x.shape}")
    return Check(name, True)


def _order(device: vkops.Device) -> Check:
    """Each of many submissions reads what the one before has written."""
    expected = np.arange(4096, dtype=np.int32)
    tensor = device.tensor(expected)
    for shift in range(1, 40):
        tensor, expected = vkops.roll(tensor, shift), np.roll(expected, shift)
    same = np.array_equal(tensor.numpy(), expected)
    return Check("order of submissions", same, "" if same else "a value was read too early")


# -- shaders ---------------------------------------------------------------------------------------


class _Probe(NamedTuple):
    """A shader from X to Y, 256 elements each, and NumPy's result; its name may be a feature."""

    name: str
    type: str
    body: str
    expected: Callable[[_Array], _Array]
    shared: str = "uint"
    layout: str = "std430"

    @property
    def features(self) -> frozenset[str]:
        """The optional features that it uses."""
        named = {self.name} if " " not in self.name else set()
        return frozenset(named | {*_TYPES[self.type][1:]})


_TYPES: dict[str, tuple[str, ...]] = {  # NumPy's name, and the features of elements in buffers
    "uint": ("u4",),
    "float": ("f4",),
    "int64_t": ("i8", "shaderInt64"),
    "double": ("f8", "shaderFloat64"),
    "float16_t": ("f2", "shaderFloat16", "storageBuffer16BitAccess"),
    "int16_t": ("i2", "shaderInt16", "storageBuffer16BitAccess"),
    "int8_t": ("i1", "shaderInt8", "storageBuffer8BitAccess"),
}
_EXTENSIONS = (
    *(
        "EXT_shader_explicit_arithmetic_types",
        "EXT_shader_16bit_storage",
        "EXT_shader_8bit_storage",
    ),
    *("EXT_shader_atomic_int64", "EXT_shader_atomic_float", "EXT_shader_atomic_float2"),
    *("EXT_scalar_block_layout", "KHR_shader_subgroup_arithmetic"),
    "EXT_shader_subgroup_extended_types_int8",
)
_SOURCE = """
layout(local_size_x = 64) in;
layout({layout}, binding = 0) readonly buffer X {{ {type} x[]; }};
layout({layout}, binding = 1) buffer Y {{ {type} y[]; }};
shared {shared} s[64];
void main() {{ uint i = gl_GlobalInvocationID.x, k = gl_LocalInvocationID.x; {body} }}
"""
_VALUES: dict[str, Callable[..., _Array]] = {"Add": np.sum, "Max": np.max, "Exchange": np.max}
_ATOMICS = (
    ("uint", "", "Add"),
    ("int64_t", "Int64Atomics", "Add"),
    *((t, f"{n}AtomicAdd", "Add") for t, n in (("float", "Float32"), ("double", "Float64"))),
    *((t, f"{n}Atomics", "Exchange") for t, n in (("float", "Float32"), ("double", "Float64"))),
    *((t, f"{n}AtomicMinMax", "Max") for t, n in (("float", "Float32"), ("double", "Float64"))),
    *(("float16_t", f"Float16Atomic{name}", name[-3:]) for name in ("Add", "MinMax")),
    ("float16_t", "Float16Atomics", "Exchange"),
)


def _atomic(type: str, feature: str, operation: str, place: str) -> _Probe:
    """An atomic operation of all invocations on one element, or of each group's on one shared."""

    def expected(x: _Array) -> _Array:
        groups = x.reshape(-1, 64) if place == "Shared" else x.reshape(1, -1)
        values = _VALUES[operation](groups, axis=1).astype(x.dtype)
        return np.pad(values, (0, x.size - values.size))

    value = f"{type}(3) + x[i] * {type}(0)" if operation == "Exchange" else "x[i]"
    target, around = "y[0]", "{}"
    if place == "Shared":
        target, around = (
            "s[0]",
            "s[k] = y[i]; barrier(); {} barrier(); if (k == 0) y[i / 64] = s[0];",
        )
    body = around.format(f"atomic{operation}({target}, {value});")
    name = f"shader{place}{feature}" if feature else f"atomics in {place.lower()} memory"
    return _Probe(name, type, body, expected, type)


_LOOP = "uint n = 65535 - i; uint c = 0; while (c < n) c += 1 + (x[i] >> 8); y[i] = c;"
_PROBES = (
    _Probe("loops of 65,535 steps", "uint", _LOOP, lambda x: (65535 - np.arange(256)).astype("u4")),
    _Probe(
        *("barriers of a workgroup", "uint", "s[k] = x[i]; barrier(); y[i] = s[63 - k];"),
        lambda x: x.reshape(4, 64)[:, ::-1].reshape(-1),
    ),
    *(
        _Probe(f"values of type {type}", type, "y[i] = x[i] * x[i] + x[i];", lambda x: x * x + x)
        for type in _TYPES
    ),
    *(_atomic(*kind, place) for kind in _ATOMICS for place in ("Buffer", "Shared")),
    _Probe("scalarBlockLayout", "uint", "y[i] = x[i];", lambda x: x, layout="scalar"),
    _Probe(
        *("shaderSubgroupExtendedTypes", "int8_t", "y[i] = subgroupMax(int8_t(x[i] * 0 + 3));"),
        lambda x: np.full_like(x, 3),
    ),
)


def _shader(device: vkops.Device, probe: _Probe) -> Check:
    numbers = np.arange(256)
    x = ((numbers + numbers // 64) % 4).astype(_TYPES[probe.type][0])
    y = device.tensor(np.zeros_like(x))
    used = "".join(f"#extension GL_{name} : enable\n" for name in _EXTENSIONS)
    try:
        shader = device.compile_shader("#version 450\n" + used + _SOURCE.format(**probe._asdict()))
        shader(x, y, threads=x.size)
        wrong = np.flatnonzero(y.numpy() != probe.expected(x))
    except VkopsError as error:
        return Check(probe.name, False, str(error).splitlines()[0])
    reason = f"element {wrong[0]} of {wrong.size} wrong ones" if wrong.size else ""
    return Check(probe.name, not reason, reason)
