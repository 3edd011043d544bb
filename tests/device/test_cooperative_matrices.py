"""Cooperative matrices on a device, against NumPy and the interpreter."""

from dataclasses import replace

import numpy as np
import pytest
from cooperative_products import LOOP, TYPES, WHOLE, operands, product
from kernel_checks import checked, interpreted

import vkops
from vkops import InvalidDescError, ShaderCompileError
from vkops.debug import check
from vkops.gpu.adapters.adapter_limits import CooperativeMatrix
from vkops.gpu.run.open_device import OpenDevice
from vkops.shaders import compiler


def usual_shapes(device):
    """The sizes and types of the matrices that the shaders have types for."""
    for shape in device.cooperative_matrices:
        types = shape.a, shape.c
        if (
            types == (shape.b, shape.result)
            and TYPES.keys() >= {*types}
            and shape.scope == "subgroup"
        ):
            yield (shape.m, shape.k, shape.n), *types


@pytest.mark.parametrize("scale", [LOOP, WHOLE], ids=["by elements", "as a whole"])
@pytest.mark.parametrize("orders", [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_products_of_tiles(device, orders, scale):
    size = device.limits.subgroup_size
    for tile, narrow, wide in usual_shapes(device):
        lines = {"margin": 16}  # each line begins at a multiple of 16 bytes, or of its length
        largest = 3 if wide == "float16" else 20  # its integers up to 2048 are exact
        (a, b, c), arrays = operands(narrow, wide, tile, orders, largest, **lines)
        flags = 15 if narrow == "int8" else 0
        shader = product(narrow, wide, tile, size, orders, flags=flags, scale=scale, **lines)
        tensors = [*map(device.tensor, arrays)]
        device.compile_shader(shader)(*tensors, groups=(2, 2))
        result = tensors[-1].numpy()
        expected = 3 * (a.astype(np.int64) @ b.astype(np.int64) + c.astype(np.int64))
        np.testing.assert_array_equal(result.reshape(c.shape), expected.astype(wide))
        report = check(shader, arrays, groups=(2, 2), subgroup_size=size)
        assert report.findings == ()
        np.testing.assert_array_equal(report.buffers["y"], result)


def test_a_device_without_them_is_named(device):
    shader = product("float16", "float32", (8, 8, 8), 8, margin=16)
    if "cooperativeMatrix" not in device.features:
        with pytest.raises(InvalidDescError, match=r"cooperativeMatrix.*SH-02") as caught:
            device.compile_shader(shader)
        assert caught.value.rule == "SH-02"
    assert bool(device.cooperative_matrices) == ("cooperativeMatrix" in device.features)


# -- products of matrices --------------------------------------------------------------------------

FEATURES = {
    "cooperativeMatrix", "vulkanMemoryModel", "shaderFloat16", "shaderInt16", "shaderInt8",
    "storageBuffer16BitAccess", "storageBuffer8BitAccess",
}  # fmt: skip
HALVES = "float16", "float16", "float32", "float32"
BYTES = "int8", "int8", "int32", "int32"
SHAPES = [
    ((32, 16), (16, 64)), ((5, 7), (7, 3)), ((33, 40), (2, 40, 65)), ((2, 1, 31, 17), (3, 17, 70)),
]  # fmt: skip
"""Sizes that are multiples of those of the matrices, and others."""


def is_known_to_the_compiler():
    """Whether glslang has the extension: that of Debian 12 does not."""
    try:
        compiler.compile(
            "#version 450\n#extension GL_KHR_cooperative_matrix : require\nvoid main() {}"
        )
    except ShaderCompileError:
        return False
    return True


def numbers(shape, dtype, seed=0):
    """Integers whose products have exact sums, in any order."""
    return np.random.default_rng(seed).integers(-20, 20, shape).astype(dtype)


def imitate(monkeypatch, device, shape, size, features=FEATURES):
    """Let a device say that it has matrices, for which its shaders are interpreted."""
    matrices = (CooperativeMatrix(*shape),)
    limits = replace(device.info.limits, subgroup_size=size, cooperative_matrices=matrices)
    monkeypatch.setattr(OpenDevice, "info", replace(device.info, limits=limits))
    monkeypatch.setattr(OpenDevice, "features", features)


def stride_of_factors(shader):
    """The bytes of a factor; without cooperative matrices, it was converted to the type of sums."""
    return next(block.stride for block in shader.blocks if block.name == "_Block_a")


@pytest.mark.parametrize(("left", "right"), SHAPES)
@pytest.mark.parametrize(("dtype", "sums"), [
    ("float16", "float16"), ("float16", "float32"), ("int8", "int8"), ("int8", "int32"), ("uint8", "uint32"),
    ("float32", "float32"), ("int32", "int32"),
])  # fmt: skip
@pytest.mark.features
def test_products_whose_sums_are_exact(device, dtype, sums, left, right):
    x, y = numbers(left, dtype), numbers(right, dtype, 1)
    with checked((device.limits.subgroup_size,)) as names:
        result = vkops.matmul(device.tensor(x), y, dtype=sums, same_bits=False)
    assert names
    expected = (x.astype(np.int64) @ y.astype(np.int64)).astype(sums)
    assert result.dtype == sums
    np.testing.assert_array_equal(result.numpy(), expected)


@pytest.mark.features
def test_the_error_of_sums_in_any_order(device):
    random = np.random.default_rng(0)
    x, y = random.normal(size=(50, 300)), random.normal(size=(300, 70))
    x, y = x.astype(np.float16), y.astype(np.float16)
    expected, sizes = (
        each(x.astype(np.float64)) @ each(y.astype(np.float64)) for each in (np.positive, np.abs)
    )
    tensor, other = device.tensor(x), device.tensor(y)
    ordered, free = (
        vkops.matmul(tensor, other, dtype="float32", same_bits=is_ordered).numpy()
        for is_ordered in (True, False)
    )
    assert np.all(np.abs(free - expected) <= 300 * 2.0**-23 * sizes)
    if not device.cooperative_matrices:
        np.testing.assert_array_equal(free, ordered)


@pytest.mark.parametrize(("shape", "size"), [
    ((16, 16, 16, *HALVES), 32), ((16, 16, 16, *HALVES), 64), ((16, 8, 8, *HALVES), 32),
    ((8, 16, 16, *HALVES), 16), ((32, 32, 16, *HALVES), 32), ((8, 8, 32, *BYTES), 8), ((32, 8, 16, *BYTES), 32),
], ids=str)  # fmt: skip
@pytest.mark.features
def test_matrices_and_subgroups_of_other_devices(device, monkeypatch, shape, size):
    """Of an imitated device, with more or fewer matrices in a tile than subgroups."""
    imitate(monkeypatch, device, (*shape, False, "subgroup"), size)
    for left, right in SHAPES[-2:]:
        x, y = numbers(left, shape[3]), numbers(right, shape[3], 1)
        expected = x.astype(shape[5]) @ y.astype(shape[5])
        result = device.tensor(np.zeros(expected.shape, shape[5]))
        arguments = device.tensor(x), device.tensor(y)
        with interpreted(size) as shaders:
            vkops.matmul(*arguments, out=result, dtype=shape[5], same_bits=False)
        np.testing.assert_array_equal(result.numpy(), expected)
        (shader,) = shaders
        assert ("cooperativeMatrix" in shader.needs) == is_known_to_the_compiler()
        assert stride_of_factors(shader) == np.dtype(shape[3]).itemsize
    with interpreted(size) as shaders:
        vkops.matmul(*arguments, out=result, dtype=shape[5])
    assert stride_of_factors(shaders[-1]) == 4


@pytest.mark.parametrize(("shape", "size", "lacking"), [
    ((12, 16, 16, *HALVES, False, "subgroup"), 32, ""),
    ((16, 16, 64, *HALVES, False, "subgroup"), 32, ""),
    ((16, 16, 16, *HALVES, True, "subgroup"), 32, ""),
    ((16, 16, 16, *HALVES, False, "workgroup"), 32, ""),
    ((16, 16, 16, "float16", "float16", "float16", "float16", False, "subgroup"), 32, ""),
    ((16, 16, 16, *BYTES, False, "subgroup"), 32, ""),
    ((16, 16, 16, *HALVES, False, "subgroup"), 24, ""),
    *[((16, 16, 16, *HALVES, False, "subgroup"), 32, name)
      for name in ("cooperativeMatrix", "vulkanMemoryModel", "shaderFloat16", "storageBuffer16BitAccess")],
], ids=str)  # fmt: skip
@pytest.mark.features
def test_matrices_that_do_not_fit_are_not_used(device, monkeypatch, shape, size, lacking):
    x = device.tensor(numbers((20, 20), "float16"))
    expected = vkops.matmul(x, x, dtype="float32")
    imitate(monkeypatch, device, shape, size, FEATURES - {lacking})
    with interpreted(32) as shaders:
        result = vkops.matmul(x, x, dtype="float32", same_bits=False)
    assert stride_of_factors(shaders[-1]) == 4
    np.testing.assert_array_equal(result.numpy(), expected.numpy())


def test_same_bits_is_a_boolean(device, message):
    with pytest.raises(TypeError) as caught:
        vkops.matmul(device.tensor(np.eye(2)), np.eye(2), same_bits="no")
    message(caught.value, "same_bits", "EW-05")
