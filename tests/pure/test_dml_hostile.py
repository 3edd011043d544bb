"""Whatever a field holds: an error of vkops, or none."""

from __future__ import annotations

import contextlib
import itertools
import math
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vkops import InvalidDescError, VkopsError
from vkops.dml import (
    OPERATORS,
    BufferTensorDesc,
    FeatureLevel,
    FeatureQueryFeatureLevels,
    FeatureQueryTensorDataTypeSupport,
    ScaleBias,
    Size2D,
    TensorDataType,
    check_feature_support,
)


class Hostile:
    """Fails at everything a value may be asked for."""

    def fail(self, *args):
        raise ZeroDivisionError

    __index__ = __int__ = __float__ = __len__ = __iter__ = __getitem__ = fail
    __repr__ = __str__ = __bool__ = __hash__ = __eq__ = __lt__ = __contains__ = fail


class Endless:
    def __len__(self):
        return 3

    def __iter__(self):
        return itertools.count(1)


integers = st.one_of(
    st.integers(-2, 9),
    st.integers(),
    st.sampled_from([2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**64]),
    st.builds(lambda: 10**5000),  # too long for Python to print
    st.integers(0, 9).map(np.int64),
)
scalars = st.one_of(
    integers,
    st.none(),
    st.booleans(),
    st.floats(),
    st.text(max_size=3),
    st.binary(max_size=3),
    st.sampled_from([*TensorDataType, *FeatureLevel, TensorDataType, int, object()]),
    st.builds(Hostile),
    st.builds(Endless),
    st.builds(lambda: itertools.count()),
    st.just(np.array([1, 2])),
    st.just(np.array(3)),
    st.just(np.ones((2, 2), int)),
)
arrays = st.lists(integers, max_size=9)
junk = st.recursive(
    st.one_of(scalars, arrays),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.tuples(inner, inner),
        st.dictionaries(st.text(max_size=2), inner, max_size=2),
    ),
    max_leaves=6,
)


def shapes(draw):
    """Draw sizes of few dimensions that often fit together."""
    return draw(st.lists(st.integers(1, 3), min_size=1, max_size=5))


@st.composite
def tensors(draw):
    sizes = shapes(draw)
    strides = draw(
        st.none() | st.lists(st.integers(0, 9), min_size=len(sizes), max_size=len(sizes))
    )
    return BufferTensorDesc(draw(st.sampled_from(TensorDataType)), sizes, strides)


@given(st.lists(junk, min_size=2, max_size=6))
@settings(max_examples=150)
def test_junk_tensor(values):
    with contextlib.suppress(VkopsError):
        assert BufferTensorDesc(*values).minimum_implied_size >= 0


@pytest.mark.parametrize("operator", OPERATORS)
@given(data=st.data())
@settings(max_examples=120)
def test_junk_operator(operator, data):
    """Nothing but a VkopsError, and what the latest level accepts has a lowest level."""
    valid = {
        "tensor": tensors(),
        "tensor_array": st.lists(tensors(), max_size=3),
        "uint": integers,
        "int": integers,
        "float": integers | st.floats(),
        "scalar": integers | st.floats(),
        "enum": st.sampled_from([*TensorDataType]) | st.integers(0, 5),
        "uint_array": arrays,
        "int_array": arrays,
        "scale_bias": st.none()
        | st.builds(ScaleBias, integers.filter(lambda i: abs(i) < 9), st.just(1)),
        "bool": st.booleans(),
        "float_array": st.lists(st.floats(), max_size=5),
        "size_2d": st.builds(Size2D, integers, integers),
    }
    cls = OPERATORS[operator]
    fields = [data.draw(valid[f.kind] | junk) for f in cls.FIELDS]
    levels = data.draw(st.sampled_from(FeatureLevel) | junk)
    alternatives = data.draw(st.sampled_from([(), ("JOIN",), ["SPLIT"]]) | junk)
    with contextlib.suppress(VkopsError):
        desc = cls(*fields)
        desc.validate(levels, alternatives)
        desc.minimum_feature_level(alternatives)
        desc.lower()


@given(data=st.data())
@settings(max_examples=120)
def test_minimum_feature_level_agrees_with_validate(data):
    sizes = shapes(data.draw)
    data_type = data.draw(st.sampled_from(TensorDataType))
    piece = BufferTensorDesc(data_type, sizes)
    whole = BufferTensorDesc(data_type, [2 * sizes[0], *sizes[1:]])
    rank = len(sizes)
    desc = data.draw(
        st.sampled_from(
            [
                OPERATORS["SPLIT"](whole, [piece, piece], 0),
                OPERATORS["JOIN"]([piece, piece], whole, 0),
                OPERATORS["SLICE"](whole, piece, [0] * rank, sizes, [1] * rank),
                OPERATORS["SLICE1"](whole, piece, [0] * rank, sizes, [1] * rank),
                OPERATORS["ELEMENT_WISE_IDENTITY"](whole, whole),
            ]
        )
    )
    alternatives = data.draw(st.sampled_from([(), ("JOIN",)]))
    accepted = []
    for level in FeatureLevel:
        try:
            desc.validate(level, alternatives)
        except InvalidDescError:
            continue
        accepted.append(level)
    try:
        minimum = desc.minimum_feature_level(alternatives)
    except InvalidDescError:
        assert accepted == []
    else:
        assert accepted == [level for level in FeatureLevel if level >= minimum]


@given(junk, junk)
@settings(max_examples=100)
def test_junk_queries(value, level):
    for make in (FeatureQueryTensorDataTypeSupport, FeatureQueryFeatureLevels, lambda v: v):
        with contextlib.suppress(VkopsError):
            check_feature_support(make(value), level)


@pytest.mark.parametrize("kind", [ScaleBias, Size2D])
@given(junk, junk)
def test_junk_pair(kind, first, second):
    with contextlib.suppress(VkopsError):
        kind(first, second)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (math.nan, "nan"),
        ("x" * 100, "'" + "x" * 58 + "…"),
        (10**5000, "an integer of 16610 bits"),
        (Hostile(), "a value of type Hostile"),
        ([10**5000], "a value of type list"),
    ],
    ids=["nan", "long", "huge", "hostile", "nested"],
)
def test_values_in_messages(value, shown):
    with pytest.raises(VkopsError) as caught:
        BufferTensorDesc(value, [1])
    assert str(caught.value).startswith(
        f"data_type: got {shown}, must be one of UNKNOWN, FLOAT32, "
    )


def test_numpy_integers_are_integers():
    from_numpy = BufferTensorDesc(np.uint8(1), np.array([2, 3]), (np.int32(3), np.uint64(1)))
    assert from_numpy == BufferTensorDesc(TensorDataType.FLOAT32, (2, 3), (3, 1))
    assert [type(n) for n in (*from_numpy.sizes, *from_numpy.strides)] == [int] * 4


def test_import_needs_neither_kompute_nor_vulkan():
    code = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("kp", "vulkan"):
            raise ImportError(name + " is blocked")

sys.meta_path.insert(0, Blocked())
from vkops.dml import BufferTensorDesc, SplitOperatorDesc, TensorDataType
whole, piece = (BufferTensorDesc(TensorDataType.INT8, [n]) for n in (4, 2))
print(SplitOperatorDesc(whole, [piece, piece], 0).lower().outputs[1].regions[0].source)
try:
    import kp
except ImportError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert (
        done.stdout
        == "Read(input=0, view=View(sizes=(2,), strides=(1,), offset=2))\nkp is blocked\n"
    )
