"""Cooperative matrices on a device, against NumPy and the interpreter."""

import numpy as np
import pytest
from cooperative_products import LOOP, TYPES, WHOLE, operands, product

from vkops import InvalidDescError
from vkops.debug import check


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
