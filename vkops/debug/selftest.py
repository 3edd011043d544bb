"""A self-test of drivers: it compares each property that kernels and shaders rely on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import replace
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

import vkops
from vkops import dml, shaders
from vkops.errors import ShaderCompileError, VkopsError
from vkops.gpu.copies.rule import REGIONS, SHADERS, CopyRule
from vkops.shaders.compiler import find_compiler

UNTESTED = "there is no test of it"
"""The reason for a feature that is not checked because no test uses it."""

ROUNDS = 3
"""The number of random shapes for each movement and data type."""

_Array = npt.NDArray[Any]


class Check(NamedTuple):
    """A property; ``passed`` says whether the driver has it, or is None if it was not checked."""

    name: str
    passed: bool | None
    reason: str = ""


def names(device: vkops.Device) -> list[str]:
    """Return the names of a device's checks, and of its features that have no check."""
    features = device.vulkan.features
    probed = [probe for probe in _PROBES.values() if features.issuperset(probe.features)]
    moved = [f"{movement}, by {how}" for movement in _MOVEMENTS for how in _RULES]
    others = features.difference(*(probe.features for probe in probed))
    return [*moved, _ORDER, *(probe.name for probe in probed), *sorted(others)]


def check(device: vkops.Device, name: str) -> Check:
    """Check one property."""
    movement, _, how = name.partition(", by ")
    if how:
        return _movement(device, name, _MOVEMENTS[movement], _RULES[how])
    if name == _ORDER:
        return _order(device)
    if name not in _PROBES or not device.vulkan.features.issuperset(_PROBES[name].features):
        return Check(name, None, UNTESTED)
    try:
        find_compiler()
    except ShaderCompileError as error:
        return Check(name, None, error.message)
    return _shader(device, _PROBES[name])


# -- kernels ---------------------------------------------------------------------------------------


def _scatter(x: Any, index: Any, value: Any) -> Any:
    x[index] = value
    return x


def _addressed(f: Any, x: Any, y: Any, i: Any) -> Any:
    """GATHER_ELEMENTS and SCATTER with an index out of range, by DirectML's rule."""
    if x.dtype.kind == "c":  # DirectML has no type of 128 bits
        return x
    rows, columns = x.shape[0], x.shape[1] // 4 * 4  # which end with a word
    x, y = x[:, :columns].copy(), y[:, :1].copy()
    place = columns + int(i[0]) % 8
    if f is np:
        address = np.arange(rows) * columns + place
        gathered = x.reshape(-1)[np.minimum(address, x.size - 1)]
        scattered = x.copy()
        scattered.reshape(-1)[address[address < x.size]] = y[address < x.size, 0]
        return np.concatenate([gathered[:, None], scattered], axis=1)
    device = copy(x.device)
    device.indices = "directml"
    kind = dml.TensorDataType[x.dtype.name.upper()]
    whole, column = (dml.BufferTensorDesc(kind, [rows, n]) for n in (columns, 1))
    places = dml.BufferTensorDesc(dml.TensorDataType.UINT32, [rows, 1])
    numbers = device.tensor(np.full((rows, 1), place, np.uint32))
    results = [device.tensor(np.zeros(each, x.dtype)) for each in ((rows, 1), x.shape)]
    descs = (
        dml.GatherElementsOperatorDesc(whole, places, column, 1),
        dml.ScatterOperatorDesc(whole, places, column, whole, 1),
    )
    for desc, result in zip(descs, results, strict=True):
        operator = device.compile_operator(device.create_operator(desc))
        operator.dispatch([x, numbers, y][: len(desc.inputs)], [result])
    return vkops.concatenate(results, axis=1)


_DTYPES = ("u1", "u2", "u4", "u8", "c16")
_MOVEMENTS: dict[str, Callable[..., Any]] = {
    # Arguments: vkops or NumPy, two random arrays of one shape, distinct indices of the first axis.
    "gathered rows": lambda f, x, y, i: f.take(x, i, axis=0),
    "gathered elements": lambda f, x, y, i: f.take(x, i % 8, axis=1),
    "one gathered element": lambda f, x, y, i: f.take(x[:, :1], i[:1], axis=0),
    "gathers with several indices": lambda f, x, y, i: x[i, i % 8],
    "scattered rows": lambda f, x, y, i: _scatter(f.roll(x, 0), i, y[: len(i)]),
    "scatters with several indices": lambda f, x, y, i: _scatter(
        f.roll(x, 0), (i, i % 8), y[: len(i), 1]
    ),
    "DirectML's indices behind the rows": _addressed,
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
    "borders": lambda f, x, y, i: f.pad(x, ((1, 2), (3, 1)), mode="reflect"),
    "joined rows": lambda f, x, y, i: f.concatenate([x, y, x], axis=1),
    "many joined rows": lambda f, x, y, i: f.concatenate([x, y[:, 1:]] * 4, axis=1),
}


_RULES = {"kernels": SHADERS, "copies of regions": REGIONS}


def _movement(device: vkops.Device, name: str, move: Callable[..., Any], copies: CopyRule) -> Check:
    device = copy(device)  # others use the original
    device.tuning = replace(device.tuning, copies=copies)
    try:
        reason = _wrong(device, move)
    except VkopsError as error:
        reason = str(error).splitlines()[0]
    return Check(name, not reason, reason)


def _wrong(device: vkops.Device, move: Callable[..., Any]) -> str:
    random = np.random.default_rng(0)
    for dtype in map(np.dtype, _DTYPES):
        for _ in range(ROUNDS):
            rows, columns = map(int, random.integers((8, 16), (30, 90)))
            numbers = random.integers(0, 256, (2, rows, columns * dtype.itemsize), np.uint8)
            x, y = numbers.view(dtype)
            i = random.permutation(rows)[: random.integers(1, 9)]
            expected = move(np, x, y, i)
            result = move(vkops, device.tensor(x), device.tensor(y), i).numpy()
            if result.tobytes() != expected.tobytes():
                return f"wrong bytes, for {dtype} of shape {x.shape}"
    return ""


_ORDER = "order of submissions"


def _order(device: vkops.Device) -> Check:
    """Test that each of many submissions reads the results of the one before."""
    expected = np.arange(4096, dtype=np.int32)
    tensor = device.tensor(expected)
    for shift in range(1, 40):
        tensor, expected = vkops.roll(tensor, shift), np.roll(expected, shift)
    same = np.array_equal(tensor.numpy(), expected)
    return Check(_ORDER, same, "" if same else "a value was read too early")


# -- shaders ---------------------------------------------------------------------------------------


class _Probe(NamedTuple):
    """A shader from X to Y, 256 elements each, and NumPy's result; its name may be a feature.

    ``declared`` is GLSL before the body. ``given`` are the arguments by name.
    """

    name: str
    type: str
    body: str
    expected: Callable[[_Array], _Array]
    shared: str = "uint"
    layout: str = "std430"
    declared: str = ""
    given: Mapping[str, Any] = MappingProxyType({})

    @property
    def features(self) -> frozenset[str]:
        """The optional features that the shader uses."""
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
_EXTENSIONS = """
EXT_shader_explicit_arithmetic_types EXT_shader_16bit_storage EXT_shader_8bit_storage
EXT_shader_atomic_int64 EXT_shader_atomic_float EXT_shader_atomic_float2 EXT_scalar_block_layout
KHR_memory_scope_semantics KHR_shader_subgroup_arithmetic EXT_shader_subgroup_extended_types_int8
"""
_SOURCE = """
{declared}
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
    """Return a probe: all invocations change one element, or each group one in shared memory."""

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


def _small(kind: str, bits: int, block: str) -> _Probe:
    """Return a probe of small integers in push constants or uniform blocks."""
    values = {"a": 3, "b": 200} if kind == "storagePushConstant" else {"U": [3, 200]}
    name = kind + (f"{bits}" if kind == "storagePushConstant" else f"{bits}BitAccess")
    return _Probe(
        *(name, "uint", "y[i] = x[i] + 256 * uint(a) + uint(b);", lambda x: x + 3 * 256 + 200),
        declared=f"layout({block}) uniform U {{ uint{bits}_t a, b; }};",
        given=values,
    )


def _reversed(x: _Array) -> _Array:
    """Return the array with the elements of each workgroup in reverse order."""
    return x.reshape(-1, 64)[:, ::-1].reshape(-1)


def _sum(x: _Array) -> _Array:
    return np.pad(x.sum(keepdims=True, dtype=x.dtype), (0, x.size - 1))


_MODEL = "#pragma use_vulkan_memory_model"
_ADD = "atomicAdd(y[0], x[i], gl_ScopeDevice, 0, gl_SemanticsRelaxed);"
_BARRIER = "controlBarrier(gl_ScopeWorkgroup, gl_ScopeWorkgroup, gl_StorageSemanticsShared, "
_LOOP = "uint n = 65535 - i; uint c = 0; while (c < n) c += 1 + (x[i] >> 8); y[i] = c;"
_ALL = (
    _Probe("loops of 65,535 steps", "uint", _LOOP, lambda x: (65535 - np.arange(256)).astype("u4")),
    _Probe(
        *("barriers of a workgroup", "uint", "s[k] = x[i]; barrier(); y[i] = s[63 - k];"), _reversed
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
    *(_small("storagePushConstant", bits, "push_constant") for bits in (8, 16)),
    *(_small("uniformAndStorageBuffer", bits, "std140, binding = 2") for bits in (8, 16)),
    _Probe(
        *("uniformBufferStandardLayout", "uint", "y[i] = x[i] + u[i % 4];"),
        lambda x: x + np.resize(np.arange(5, 9, dtype="u4"), x.size),
        declared="layout(std430, binding = 2) uniform U { uint u[4]; };",
        given={"U": [5, 6, 7, 8]},
    ),
    _Probe(
        *("vulkanMemoryModel", "uint"),
        f"s[k] = x[i]; {_BARRIER} gl_SemanticsAcquireRelease); y[i] = s[63 - k];",
        _reversed,
        declared=_MODEL,
    ),
    _Probe("vulkanMemoryModelDeviceScope", "uint", _ADD, _sum, declared=_MODEL),
    # Reads far beyond the buffer must not end the process; their values are undefined.
    _Probe(
        *("robustBufferAccess", "uint"),
        "uint far = x[i + 0x10000000u]; y[i] = far == 0x12345678u ? 0 : x[i];",
        lambda x: x,
    ),
    _Probe(
        *("robustBufferAccess2", "uint"),
        "y[i + 0x10000000u] = 1; y[i] = x[i] + x[i + 256] + x[i + 0x10000000u];",
        lambda x: x,
    ),
)
_PROBES = {probe.name: probe for probe in _ALL}


def _shader(device: vkops.Device, probe: _Probe) -> Check:
    numbers = np.arange(256)
    x = ((numbers + numbers // 64) % 4).astype(_TYPES[probe.type][0])
    y = device.tensor(np.zeros_like(x))
    used = "".join(f"#extension GL_{name} : enable\n" for name in _EXTENSIONS.split())
    try:
        loaded = shaders.load("#version 450\n" + used + _SOURCE.format(**probe._asdict()))
        shader = device.compile_shader(replace(loaded, is_builtin=True))
        shader(x, y, **probe.given, threads=x.size)
        wrong = np.flatnonzero(y.numpy() != probe.expected(x))
    except VkopsError as error:
        return Check(probe.name, False, str(error).splitlines()[0])
    reason = f"element {wrong[0]} of {wrong.size} wrong ones" if wrong.size else ""
    return Check(probe.name, not reason, reason)
