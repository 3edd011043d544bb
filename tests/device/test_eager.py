"""vkops.split, join, slice and Tensor, against NumPy."""

import numpy as np
import pytest
from arrays import Counter, arrays, equal, on_device
from hypothesis import given
from hypothesis import strategies as st

import vkops
from vkops.gpu.run import buffer
from vkops.plan.movements import concat, copy, fill, split
from vkops.plan.region import Fill, Read
from vkops.plan.view import View
from vkops.tensors.array_plan import array_plan


@on_device
@given(array=arrays, data=st.data())
def test_split_and_join_again(device, array, data):
    axis = data.draw(st.integers(-array.ndim, array.ndim - 1))
    cuts = sorted(data.draw(st.lists(st.integers(0, array.shape[axis]), max_size=4)))
    sizes = np.diff([0, *cuts, array.shape[axis]]).tolist()
    parts = vkops.split(array, sizes, axis, device=device)
    for part, expected in zip(parts, np.split(array, cuts, axis), strict=True):
        equal(part, expected)
    equal(vkops.join(parts, axis), array)


@on_device
@given(array=arrays, data=st.data())
def test_slice(device, array, data):
    offsets, sizes, strides = [], [], []
    for n in array.shape:
        stride = data.draw(st.sampled_from([-2, -1, 1, 3]))
        offset = data.draw(st.integers(0, max(0, n - 1)))
        room = n - offset if stride > 0 else offset + 1
        sizes.append(data.draw(st.integers(0, -(-room // abs(stride)))) if n else 0)
        offsets.append(offset)
        strides.append(stride)
    index = tuple(np.arange(c) * s + o for o, c, s in zip(offsets, sizes, strides, strict=True))
    equal(vkops.slice(array, offsets, sizes, strides, device=device), array[np.ix_(*index)])


def test_slice_without_dimensions_keeps_the_byte_order(device):
    x = np.array(3, ">i4")
    assert vkops.slice(x, [], [], device=device).numpy().dtype == x.dtype


@pytest.mark.parametrize("steps", [None, (1, 1, 1), (2, -1, 3), (-1, 1, 1)])
def test_of_an_array_only_the_elements_that_are_read_are_sent(device, steps):
    """The result is that of a tensor."""
    x = np.random.default_rng(0).integers(0, 256, (9, 10, 40), np.uint8)
    starts, sizes = (8, 6, 3) if steps and steps[0] < 0 else (1, 6, 3), (4, 3, 7)
    before = device.memory_report().used
    sliced = vkops.slice(x, starts, sizes, steps, device=device)
    assert device.memory_report().used - before <= 512  # for 84 bytes, twice at most
    resident = vkops.slice(device.tensor(x), starts, sizes, steps)
    np.testing.assert_array_equal(sliced.numpy(), resident.numpy())


PADDED = np.dtype([("kind", "u1"), ("count", "<u2")], align=True)
JOINED = {
    "one after the other": ([(2, 5), (0, 5), (3, 5)], 0, "float32"),
    "many small ones": ([(7,)] * 300, 0, "int16"),
    "rows of a single row": ([(1, 3), (1, 4)], 1, "complex128"),
    "structured elements with bytes between the fields": ([(4,), (2,)], 0, PADDED),
    "nothing at all": ([(0, 2), (0, 2)], 0, "int8"),
}


@pytest.mark.parametrize("limit", [64, 16 << 20], ids=["one by one", "together"])
@pytest.mark.parametrize("name", JOINED)
def test_arrays_that_follow_one_another_are_sent_to_their_places(
    any_device, name, limit, monkeypatch
):
    """No shader copies them again; the bytes between fields are kept, and arrays can be strided.

    So they are if only one is sent.
    """
    device = any_device
    monkeypatch.setattr(buffer, "MAX_PACKED_BYTES", limit)
    shapes, axis, dtype = JOINED[name]
    size = np.dtype(dtype).itemsize
    random = np.random.default_rng(0)
    wide = [random.integers(0, 256, (*shape, 2 * size), np.uint8) for shape in shapes]
    parts = [elements.view(dtype)[..., 1] for elements in wide]
    with Counter(device) as counter:
        result = vkops.join(parts, axis, device=device)
    assert counter.count == 0
    assert result.shape == np.concatenate(parts, axis).shape
    sent = [one[..., size:].tobytes() for one in wide]
    assert result.numpy().tobytes() == b"".join(sent)
    assert device.tensor(parts[0]).numpy().tobytes() == sent[0]


VIEW, HALF = View.packed((4, 3)), View.packed((2, 3))


@pytest.mark.parametrize(
    ("inputs", "shapes", "pieces", "expected"),
    [
        ([VIEW], [(4, 3)], [[copy(VIEW, VIEW)]], True),
        ([HALF, HALF], [(4, 3)], [concat([Read(0, HALF), Read(1, HALF)], VIEW, 0)], True),
        ([HALF, HALF], [(4, 3)], [concat([Read(1, HALF), Read(0, HALF)], VIEW, 0)], False),
        ([HALF], [(4, 3)], [concat([Read(0, HALF), Read(0, HALF)], VIEW, 0)], False),
        ([VIEW], [(2, 3)], [[copy(HALF, HALF)]], False),  # the first rows of an input
        ([VIEW], [(3, 4)], [[copy(VIEW.permute((1, 0)), View.packed((3, 4)))]], False),
        ([VIEW], [(2, 3), (2, 3)], [[part] for part in split(Read(0, VIEW), [HALF, HALF], 0)], False),
        ([], [(4, 3)], [[fill(Fill(bytes(4)), VIEW)]], False),
    ],
)  # fmt: skip
def test_plans_that_are_concatenations(inputs, shapes, pieces, expected):
    assert array_plan(4, inputs, shapes, pieces).is_concatenation == expected
