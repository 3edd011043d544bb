"""Elementwise kernels without a device: declarations, indexing and GLSL."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import vkops
from vkops.elementwise.indexing import fields, indexing
from vkops.elementwise.parameters import Operand, parse
from vkops.elementwise.source import generate
from vkops.errors import InvalidDescError, ShaderCompileError
from vkops.plan.rounding import factor
from vkops.plan.view import View
from vkops.shaders import load


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ((1, "T z", ""), "in_params"),
        (("T x", None, ""), "out_params"),
        (("T x", "T z", b""), "operation"),
        (("T x", "T z", "", "a b"), "name"),
        (("T x", "T z", "", 'a"'), "name"),
        (("T x", "T z", "", "k", 1), "preamble"),
        (("T x,", "T z", ""), "kernel in_params[1]"),
        (("T", "T z", ""), "kernel in_params[0]"),
        (("raw T x y", "T z", ""), "kernel in_params[0]"),
        (("float x", "T z", ""), "kernel in_params[0]"),
        (("T x", "complex64 z", ""), "kernel out_params[0]"),
        (("T i", "T z", ""), "kernel in_params[0]"),
        (("T _x", "T z", ""), "kernel in_params[0]"),
        (("T x", "T gl_z", ""), "kernel out_params[0]"),
        (("T x", "T patch", ""), "kernel out_params[0]"),
        (("T f16vec2", "T z", ""), "kernel in_params[0]"),
        (("T x", "", ""), "kernel out_params[0]"),
        (("T x, U x", "T z", ""), "kernel parameters"),
        (("T U, U x", "T z", ""), "kernel parameters"),
    ],
)  # fmt: skip
def test_wrong_declarations(arguments, named, message):
    with pytest.raises(InvalidDescError) as caught:
        vkops.ElementwiseKernel(*arguments)
    message(caught.value, f"{named}: ", "[EW-01]")


def test_attributes():
    kernel = vkops.ElementwiseKernel(
        "", " float32  z,int8 in_1 ", "z = 1", "ones", preamble="int f;"
    )
    assert [kernel.name, kernel.operation, kernel.preamble] == ["ones", "z = 1", "int f;"]
    assert kernel.in_params == ()
    assert [(p.type, p.name) for p in kernel.out_params] == [("float32", "z"), ("int8", "in_1")]
    assert kernel.source == ""
    assert repr(kernel) == "<vkops.ElementwiseKernel 'ones'>"


@given(size=st.integers(2, 2**31 - 1), index=st.integers(0, 2**31 - 1))
def test_division_by_multiplication(size, index):
    magic, shift = factor(size), (size - 1).bit_length()
    assert magic < 2**32
    for t in (index, index // size * size, max(0, index // size * size - 1), 2**31 - 1):
        high = (magic * t) >> 32
        assert high + t < 2**32
        assert (high + t) >> shift == t // size


def test_generated_source_is_valid_for_all_types_and_forms():
    parameters = parse("k", "bool a, T b, int64 c, raw U d", "float16 z, uint8 y")
    dtypes = [np.dtype(t) for t in ("?", "f8", "i8", "i2", "f2", "u1")]
    forms = ("packed", "strided", "constant")
    for arrays in ([0, None, None, 3, 1, 2], [None, 0, None, 3, 1, 2]):
        operands = [*map(Operand, parameters, dtypes, arrays)]
        for rank, pushed in ((1, True), (3, False)):
            texts = "k", "z = float16_t(b) + z", ""
            text = generate(*texts, operands, rank, forms, local_size=64, pushed=pushed)
            assert ("_quotient(" in text) == (rank > 1)
            shader = load(text, name="k")
            assert shader.push_nbytes <= (128 if pushed else 0)
    texts = "k", "int q = 1;\nz = x", ""
    text = generate(*texts, operands, 1, forms, local_size=64, pushed=True)
    with pytest.raises(ShaderCompileError, match=r"^k:2: 'x' : undeclared"):
        load(text, name="k")


def test_numbers_of_first_elements_are_left_out_only_where_all_are_0():
    whole, rest = View((8,), (1,), 0), View((8,), (1,), 3)
    one = View((8,), (0,), 5)
    packed = indexing((8,), (whole, one, whole), (4,) * 3, 256, in_order=False)
    assert packed[1:3] == (("packed", "constant", "packed"), (8, 5))
    linear = indexing((8,), (whole, one, rest), (4,) * 3, 256, in_order=False)
    assert linear[1:3] == (("linear", "constant", "linear"), (8, 0, 5, 3))


def test_dimensions_are_sorted_by_the_strides_of_the_output_and_bound_from_aligned_bytes():
    """So the output is contiguous, and the other view has its columns 300 elements from byte 512 on."""
    turned, other = View((3, 4), (-1, 3), 2), View((3, 4), (0, 5), 143)
    layout = indexing((3, 4), (other, turned), (4, 4), 256, in_order=False)
    assert layout.forms == ("strided", "packed")
    assert layout.spans == ((512, 4 * 159 - 512), (0, 48))
    assert dict(zip(fields(*layout[:2]), layout.words, strict=True)) == {
        "_n": 12, "_size1": 3, "_magic1": factor(3), "_shift1": 2,
        "_base0": 15, "_stride0_0": 5, "_stride1_0": 0,
    }  # fmt: skip
    in_order = indexing((3, 4), (other, turned), (4, 4), 256, in_order=True)
    assert in_order.forms == ("strided", "strided")
