"""Cooperative matrices in the interpreter, against NumPy."""

import numpy as np
import pytest
from cooperative_products import LOOP, WHOLE, operands, product

from vkops.debug import check


@pytest.mark.parametrize("scale", [LOOP, WHOLE], ids=["by elements", "as a whole"])
@pytest.mark.parametrize("orders", [(0, 0), (0, 1), (1, 0), (1, 1)])
@pytest.mark.parametrize(
    ("size", "tile", "scope"),
    [(8, (8, 16, 8), 3), (32, (16, 16, 16), 3), (64, (5, 8, 7), 3), (96, (16, 8, 16), 2)],
)
@pytest.mark.parametrize(("narrow", "wide"), [("float16", "float32"), ("int8", "int32")])
def test_products_of_tiles(narrow, wide, size, tile, scope, orders, scale):
    (a, b, c), arrays = operands(narrow, wide, tile, orders, 20)
    flags = 15 if narrow == "int8" else 0
    shader = product(narrow, wide, tile, size, orders, flags=flags, scale=scale, scope=scope)
    report = check(shader, arrays, groups=(2, 2), subgroup_size=size if scope == 3 else 32)
    assert report.findings == ()
    expected = 3 * (a.astype(np.int64) @ b.astype(np.int64) + c.astype(np.int64))
    np.testing.assert_array_equal(
        report.buffers["y"].reshape(expected.shape), expected.astype(wide)
    )


@pytest.mark.parametrize(
    ("flags", "is_signed", "saturates"),
    [(15, True, False), (31, True, True), (0, False, False), (16, False, True)],
)
def test_integers_that_are_too_large(flags, is_signed, saturates):
    tile = (8, 8, 8)
    (a, b, c), arrays = operands("int8", "int32", tile, (0, 0))
    c[:] = np.where(c % 2, 2**31 - 1, -(2**31))
    arrays[2] = c.ravel()
    report = check(
        product("int8", "int32", tile, 8, flags=flags), arrays, groups=(2, 2), subgroup_size=8
    )
    wide = np.dtype(np.int32 if is_signed else np.uint32)
    total = c.view(wide).astype(np.int64)
    for k in (slice(8), slice(8, 16)):
        one, other = (each if is_signed else each.view(np.uint8) for each in (a[:, k], b[k]))
        total = total + one.astype(np.int64) @ other.astype(np.int64)
        if saturates:
            total = total.clip(np.iinfo(wide).min, np.iinfo(wide).max)
    np.testing.assert_array_equal(
        report.buffers["y"].view(wide).reshape(16, 16), total.astype(wide)
    )


def test_a_load_out_of_bounds():
    _, arrays = operands("float16", "float32", (16, 16, 16), (0, 0))
    report = check(product("float16", "float32", (16, 16, 16), 32, margin=4), arrays, groups=(2, 2))
    assert {finding.kind for finding in report.findings} == {"out of bounds"}
    assert {finding.message.split("'")[1] for finding in report.findings} == {"a", "b"}


def test_a_race_between_stores():
    _, arrays = operands("float16", "float32", (16, 16, 16), (0, 0))
    report = check(
        product("float16", "float32", (16, 16, 16), 32, stride=16), arrays, groups=(2, 2)
    )
    assert {finding.kind for finding in report.findings} == {"data race"}


def test_matrices_of_numbers_smaller_than_those_of_the_buffer_are_no_race():
    (a, b, c), arrays = operands("float16", "float16", (8, 8, 8), (0, 0), 20)
    report = check(
        product("float16", "float16", (8, 8, 8), 8, packed=2),
        [*arrays[:2], c.view(np.uint32), 4 * c.size // 2],
        groups=(1, 2),
        subgroup_size=8,
    )
    assert report.findings == ()
    found = report.buffers["y"].view(np.float16).reshape(c.shape)
    np.testing.assert_array_equal(found[:, :8], (a @ b + c)[:, :8])


def test_invocations_that_are_missing():
    _, arrays = operands("float16", "float32", (16, 16, 16), (0, 0))
    report = check(
        product("float16", "float32", (16, 16, 16), 16), arrays, groups=(2, 2), subgroup_size=32
    )
    assert "an invocation is not active" in report.findings[0].message
