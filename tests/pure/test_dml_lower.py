"""What the operators mean: published examples, and plans against NumPy slicing."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from regions import make_region

from vkops.dml import (
    BufferTensorDesc,
    ElementWiseIdentityOperatorDesc,
    JoinOperatorDesc,
    Slice1OperatorDesc,
    SliceOperatorDesc,
    SplitOperatorDesc,
    TensorDataType,
)
from vkops.plan import CopyPlan, Output, execute
from vkops.plan.view import packed_strides

U32 = TensorDataType.UINT32
DTYPES = {
    TensorDataType.FLOAT32: np.float32,
    TensorDataType.FLOAT16: np.float16,
    TensorDataType.UINT8: np.uint8,
    TensorDataType.INT64: np.int64,
}


def tensor(*sizes, **fields):
    return BufferTensorDesc(U32, sizes, **fields)


def brute_force(plan, inputs):
    """Copy one element at a time: as slow and as plain as can be."""
    size = plan.element_size
    outputs = []
    for output in plan.outputs:
        data = bytearray(output.nbytes)
        for region in output.regions:
            target, source = region.target, region.source_view
            for index in itertools.product(*map(range, region.sizes)):
                at = target.offset + sum(map(int.__mul__, index, target.strides))
                from_ = source.offset + sum(map(int.__mul__, index, source.strides))
                assert at >= 0
                assert from_ >= 0
                element = bytes(inputs[region.input][from_ * size : (from_ + 1) * size])
                assert len(element) == size
                data[at * size : (at + 1) * size] = element
        assert len(data) == output.nbytes
        outputs.append(np.frombuffer(bytes(data), np.uint8))
    return outputs


def run(desc, *arrays):
    """Run an operator by both executors, which must agree; return the outputs' bytes."""
    inputs = []
    for (_, descriptor), array in zip(desc.inputs, arrays, strict=True):
        data = np.zeros(descriptor.total_tensor_size_in_bytes, np.uint8)
        raw = np.frombuffer(array.tobytes(), np.uint8)
        data[: raw.size] = raw[: data.size]
        inputs.append(data)
    plan = desc.lower()
    expected = brute_force(plan, inputs)
    for got, want in zip(execute(plan, inputs), expected, strict=True):
        np.testing.assert_array_equal(got, want)
    return expected


def values(desc, *arrays):
    return [output.view(np.uint32).tolist() for output in run(desc, *arrays)]


def place(desc, array):
    """Lay an array out in memory as a descriptor says."""
    memory = np.zeros(desc.total_tensor_size_in_bytes, np.uint8).view(array.dtype)
    for index in np.ndindex(*array.shape):
        memory[sum(map(int.__mul__, index, desc.effective_strides))] = array[index]
    return memory


def pick(desc, memory):
    """Read an array from memory as a descriptor says."""
    array = np.empty(desc.sizes, memory.dtype)
    for index in np.ndindex(*desc.sizes):
        array[index] = memory[sum(map(int.__mul__, index, desc.effective_strides))]
    return array


ONE_TO_12 = np.arange(1, 13, dtype=np.uint32)
ONE_TO_16 = np.arange(1, 17, dtype=np.uint32)


@pytest.mark.parametrize(
    ("axis", "sizes", "expected"),
    [
        (2, [2, 1, 3], [[1, 2, 3, 4], [5, 6], [7, 8, 9, 10, 11, 12]]),
        (3, [1, 1], [[1, 3, 5, 7, 9, 11], [2, 4, 6, 8, 10, 12]]),
    ],
)
def test_split_check_values(axis, sizes, expected):
    """SPLIT-10, and JOIN as its inverse (JOIN-08)."""
    whole = tensor(1, 1, 6, 2)
    pieces = [
        tensor(*[size if i == axis else n for i, n in enumerate((1, 1, 6, 2))]) for size in sizes
    ]
    assert values(SplitOperatorDesc(whole, pieces, axis), ONE_TO_12) == expected
    arrays = [np.array(piece, np.uint32) for piece in expected]
    assert values(JoinOperatorDesc(pieces, whole, axis), *arrays) == [ONE_TO_12.tolist()]


@pytest.mark.parametrize(
    ("offsets", "sizes", "strides", "expected"),
    [
        ((0, 0, 1, 2), (1, 1, 3, 2), (1, 1, 1, 1), [7, 8, 11, 12, 15, 16]),
        ((0, 0, 1, 0), (1, 1, 2, 2), (1, 1, 2, 3), [5, 8, 13, 16]),
    ],
)
def test_slice_check_values(offsets, sizes, strides, expected):
    """SLICE-08."""
    desc = SliceOperatorDesc(tensor(1, 1, 4, 4), tensor(*sizes), offsets, sizes, strides)
    assert values(desc, ONE_TO_16) == [expected]


@pytest.mark.parametrize(
    ("strides", "expected"), [((1, 1, 2, 2), [2, 4, 10, 12]), ((1, 1, -2, 2), [14, 16, 6, 8])]
)
def test_slice1_check_values(strides, expected):
    """SLICE1-06."""
    desc = Slice1OperatorDesc(
        tensor(1, 1, 4, 4), tensor(1, 1, 2, 2), (0, 0, 0, 1), (1, 1, 4, 3), strides
    )
    assert values(desc, ONE_TO_16) == [expected]


def test_slice1_takes_fewer_elements_than_the_window_holds():
    """SLICE1-04 and -05: the start does not depend on the output's size."""
    desc = Slice1OperatorDesc(tensor(16), tensor(2), [3], [10], [-4])
    assert values(desc, ONE_TO_16) == [[13, 9]]


def test_slice1_reverses():
    desc = Slice1OperatorDesc(tensor(4, 4), tensor(4, 4), [0, 0], [4, 4], [-1, -1])
    assert values(desc, ONE_TO_16) == [ONE_TO_16[::-1].tolist()]


def test_identity_transposes_and_broadcasts():
    """IDENT-03."""
    transposed = ElementWiseIdentityOperatorDesc(tensor(3, 4, strides=(1, 3)), tensor(3, 4))
    assert values(transposed, ONE_TO_12) == [ONE_TO_12.reshape(4, 3).T.ravel().tolist()]
    repeated = ElementWiseIdentityOperatorDesc(tensor(3, 2, strides=(0, 1)), tensor(3, 2))
    assert values(repeated, ONE_TO_12) == [[1, 2] * 3]


def test_identity_in_place_has_equal_layouts():
    """IDENT-04: a plan of equal tensors moves every element onto itself."""
    (output,) = ElementWiseIdentityOperatorDesc(tensor(3, 4), tensor(3, 4)).lower().outputs
    (region,) = output.regions
    assert (region.target.offset, region.target.strides) == (
        region.source_view.offset,
        region.source_view.strides,
    )


def test_join_of_one_input_twice():
    """JOIN-07: inputs may be the same data."""
    half = tensor(2)
    assert values(JoinOperatorDesc([half, half], tensor(4), 0), ONE_TO_12[:2], ONE_TO_12[:2]) == [
        [1, 2, 1, 2]
    ]


def test_plan_of_a_split():
    """One region for each output; sizes in bytes are the totals, not what the sizes imply."""
    whole = tensor(2, 6, strides=(10, 1), total_tensor_size_in_bytes=100)
    left, right = tensor(2, 2), tensor(2, 4, strides=(1, 2), total_tensor_size_in_bytes=48)
    assert SplitOperatorDesc(whole, [left, right], 1).lower() == CopyPlan(
        4,
        (100,),
        (
            Output(16, (make_region((2, 2), 0, (2, 1), (0, 0, (10, 1))),)),
            Output(48, (make_region((2, 4), 0, (1, 2), (0, 2, (10, 1))),)),
        ),
    )


def test_plan_of_a_join():
    """One region for each input."""
    left, right, whole = tensor(2, 2, strides=(0, 1)), tensor(2, 4), tensor(2, 6)
    assert JoinOperatorDesc([left, right], whole, 1).lower() == CopyPlan(
        4,
        (8, 32),
        (
            Output(
                48,
                (
                    make_region((2, 2), 0, (6, 1), (0, 0, (0, 1))),
                    make_region((2, 4), 2, (6, 1), (1, 0, (4, 1))),
                ),
            ),
        ),
    )


def test_plan_is_cached_and_no_part_of_the_value():
    desc, same = (ElementWiseIdentityOperatorDesc(tensor(3), tensor(3)) for _ in range(2))
    assert desc.lower() is desc.lower()
    assert desc == same
    assert hash(desc) == hash(same)


@st.composite
def layout(draw, data_type, sizes):
    """Draw a descriptor of these sizes: packed, or padded and permuted."""
    if draw(st.booleans()):
        return BufferTensorDesc(data_type, sizes)
    order = draw(st.permutations(range(len(sizes))))
    padded = [sizes[i] + draw(st.integers(0, 2)) for i in order]
    strides = dict(zip(order, packed_strides(tuple(padded)), strict=True))
    return BufferTensorDesc(data_type, sizes, [strides[i] for i in range(len(sizes))])


def fill(desc):
    """Make an array of distinct elements (modulo the type), and its memory."""
    array = np.arange(1, np.prod(desc.sizes) + 1).astype(DTYPES[desc.data_type]).reshape(desc.sizes)
    return array, place(desc, array)


def check(desc, memories, expected):
    for output, (_, descriptor), want in zip(
        run(desc, *memories), desc.outputs, expected, strict=True
    ):
        got = pick(descriptor, output.view(DTYPES[descriptor.data_type]))
        np.testing.assert_array_equal(got, want)


boxes = st.lists(st.integers(1, 4), min_size=1, max_size=4)


@given(st.data(), st.sampled_from(sorted(DTYPES)), boxes)
@settings(max_examples=60)
def test_split_and_join_are_numpys(data, data_type, sizes):
    axis = data.draw(st.integers(0, len(sizes) - 1))
    cuts = data.draw(st.lists(st.integers(1, 3), min_size=1, max_size=4))
    whole = data.draw(layout(data_type, [*sizes[:axis], sum(cuts), *sizes[axis + 1 :]]))
    pieces = [data.draw(layout(data_type, [*sizes[:axis], n, *sizes[axis + 1 :]])) for n in cuts]
    array, memory = fill(whole)
    parts = np.split(array, np.cumsum(cuts)[:-1], axis)
    check(SplitOperatorDesc(whole, pieces, axis), [memory], parts)
    memories = [place(piece, part) for piece, part in zip(pieces, parts, strict=True)]
    check(JoinOperatorDesc(pieces, whole, axis), memories, [array])


@given(st.data(), st.sampled_from(sorted(DTYPES)), boxes)
@settings(max_examples=60)
def test_slices_are_numpys(data, data_type, sizes):
    source = data.draw(layout(data_type, sizes))
    array, memory = fill(source)
    offsets = [data.draw(st.integers(0, n - 1)) for n in sizes]
    windows = [data.draw(st.integers(1, n - o)) for n, o in zip(sizes, offsets, strict=True)]
    strides = [data.draw(st.integers(1, 3)) for _ in sizes]
    window = array[tuple(slice(o, o + w) for o, w in zip(offsets, windows, strict=True))]

    part = window[tuple(slice(None, None, s) for s in strides)]
    target = data.draw(layout(data_type, part.shape))
    check(SliceOperatorDesc(source, target, offsets, part.shape, strides), [memory], [part])

    signed = [s * data.draw(st.sampled_from([1, -1])) for s in strides]
    part = window[tuple(slice(None, None, s) for s in signed)]
    part = part[tuple(slice(data.draw(st.integers(1, n))) for n in part.shape)]
    target = data.draw(layout(data_type, part.shape))
    check(Slice1OperatorDesc(source, target, offsets, windows, signed), [memory], [part])
