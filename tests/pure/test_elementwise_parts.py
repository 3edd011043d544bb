"""Elementwise kernels without a device: declarations, indexing and GLSL."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import vkops
from vkops.elementwise.indexing import _divisor, broadcast, fields, indexing
from vkops.elementwise.parameters import Operand, parse
from vkops.elementwise.source import generate
from vkops.errors import InvalidDescError, ShaderCompileError
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
        (("const T x", "T z", ""), "kernel in_params[0]"),
        (("raw T x y", "T z", ""), "kernel in_params[0]"),
        (("float x", "T z", ""), "kernel in_params[0]"),
        (("T x", "complex64 z", ""), "kernel out_params[0]"),
        (("T i", "T z", ""), "kernel in_params[0]"),
        (("T _x", "T z", ""), "kernel in_params[0]"),
        (("T x", "T gl_z", ""), "kernel out_params[0]"),
        (("T x", "", ""), "kernel out_params[0]"),
        (("T x", "raw T z", ""), "kernel out_params[0]"),
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
    magic, shift = _divisor(size)
    assert magic < 2**32
    for t in (index, index // size * size, max(0, index // size * size - 1), 2**31 - 1):
        high = (magic * t) >> 32
        assert high + t < 2**32
        assert (high + t) >> shift == t // size


@st.composite
def cases(draw):
    sizes = draw(st.lists(st.integers(1, 5), max_size=6))
    shape = tuple(sizes)
    found = []
    for _ in range(draw(st.integers(1, 3))):
        own = View.packed(tuple(draw(st.sampled_from([1, n])) for n in shape))
        own = (
            own.permute(tuple(draw(st.permutations(range(len(shape))))))
            if draw(st.booleans())
            else own
        )
        if any(n not in (1, size) for n, size in zip(own.sizes, shape, strict=True)):
            own = View.packed(shape)
        own = own.flip(tuple(axis for axis in range(len(shape)) if draw(st.booleans())))
        found.append(broadcast(own.shift(draw(st.integers(0, 300))), shape))
    out = View.packed(shape).shift(draw(st.integers(0, 9)))
    out = out.flip(tuple(axis for axis in range(len(shape)) if draw(st.booleans())))
    return shape, (*found, out), draw(st.booleans())


def read(found, itemsizes, count):
    """The elements that a kernel with this indexing uses, by index and array."""
    names = dict(zip(fields(found.rank, found.forms), found.words, strict=True))
    assert names["_n"] == count
    for i in range(count):
        at = [
            names.get(f"_base{number}", 0) + (i if form in ("packed", "linear") else 0)
            for number, form in enumerate(found.forms)
        ]
        rest = i
        for axis in reversed(range(found.rank)):
            coordinate = rest
            if axis:
                rest, coordinate = divmod(rest, names[f"_size{axis}"])
            for number, form in enumerate(found.forms):
                if form == "strided":
                    at[number] += coordinate * names[f"_stride{axis}_{number}"]
        yield tuple(
            each % 2**32 + start // size
            for each, (start, nbytes), size in zip(at, found.spans, itemsizes, strict=True)
            if each % 2**32 * size < nbytes
        )


@given(case=cases(), itemsize=st.sampled_from([1, 2, 4, 8]))
def test_indexing_reaches_the_elements_of_views(case, itemsize):
    shape, views, in_order = case
    itemsizes = (itemsize,) * len(views)
    found = indexing(shape, views, itemsizes, 256, in_order=in_order)
    wanted = [
        tuple(view.offset + sum(np.multiply(index, view.strides)) for view in views)
        for index in np.ndindex(shape)
    ]
    got = [*read(found, itemsizes, prod(shape))]
    assert (got if in_order else sorted(got)) == (wanted if in_order else sorted(wanted))
    assert all(start % 256 == 0 for start, _ in found.spans)
    assert all(
        form in ("packed", "linear") or in_order or prod(shape) == 1 for form in found.forms[-1:]
    )


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
            assert (
                shader.module.push_nbytes == 0 if not pushed else shader.module.push_nbytes <= 128
            )
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
