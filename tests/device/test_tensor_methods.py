"""Methods of tensors named as those of NumPy's arrays, and their text."""

import inspect
import pickle
import re
import warnings
from unittest.mock import Mock

import ml_dtypes
import numpy as np
import pytest
from arrays import Counter, agree, equal, numbered, on_device, small, viewed
from hypothesis import given
from hypothesis import strategies as st

import vkops
from vkops.tensors.view_functions import METHOD_FUNCTIONS

axes = st.integers(-4, 3)

FORWARDING = [function.__name__ for function in METHOD_FUNCTIONS]


@pytest.mark.parametrize("name", FORWARDING)
def test_functions_have_the_docstrings_of_the_methods_that_they_call(name):
    function = getattr(vkops, name)
    method = getattr(vkops.Tensor, {"permute_dims": "transpose"}.get(name, name))
    summary, *details = inspect.getdoc(method).split("\n\n")
    assert inspect.getdoc(function).split("\n\n") == [
        summary,
        f"``Tensor.{method.__name__}`` of ``x``, a tensor or an array, which is sent to ``device``, or "
        "to the default device.",
        *details,
    ]
    assert (function.__name__, pickle.loads(pickle.dumps(function))) == (name, function)
    x, *_, device = inspect.signature(function).parameters.values()
    assert (x.name, x.kind) == ("x", x.POSITIONAL_ONLY)
    assert (device.name, device.kind) == ("device", x.KEYWORD_ONLY)


def test_copies_of_reshape(device):
    tensor = device.tensor(np.arange(6).reshape(2, 3))
    with Counter(device) as counter:
        view = tensor.reshape(3, 2, copy=False)
        assert counter.count == 0
        copy = tensor.reshape(3, 2, copy=True)
        flat = tensor.flatten()
        assert counter.count == 2
    view[0] = 9
    assert (copy[0].tolist(), flat[:2].tolist(), tensor[0, :2].tolist()) == ([0, 1], [0, 1], [9, 9])


@on_device
@given(array=small, data=st.data())
def test_elements_as_objects_of_python(any_device, array, data):
    tensor, array = viewed(data, any_device.tensor(array), array)
    assert (tensor.itemsize, tensor.nbytes) == (array.itemsize, array.nbytes)
    assert repr(tensor.tolist()) == repr(array.tolist())
    indices = st.integers(-7, 6)
    index = data.draw(indices | st.tuples(*[indices] * array.ndim))
    try:
        expected = array.item(index)
    except (IndexError, ValueError):
        with pytest.raises(vkops.InvalidDescError):
            tensor.item(index)
    else:
        assert repr(tensor.item(index)) == repr(expected)
    if array.size == 1:
        assert repr(tensor.item()) == repr(array.item())
    else:
        with pytest.raises(ValueError, match=r"^ITEM tensor: has \d+ elements, must have 1"):
            tensor.item()


@on_device
@given(array=small, data=st.data())
def test_astype(any_device, array, data):
    tensor, array = viewed(data, any_device.tensor(array), array)
    dtype = data.draw(st.sampled_from(["i4", "f8", "?", "U4", "c16", ml_dtypes.bfloat16, "i8"]))
    if np.dtype(dtype).kind in "?iU" and array.dtype.kind in "fcV":
        dtype = "c16" if array.dtype.kind == "c" else array.dtype  # casts that warn, or fail
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        agree(lambda: tensor.astype(dtype), lambda: array.astype(dtype))
    assert tensor.astype(tensor.dtype, copy=False) is tensor
    copied = tensor.astype(tensor.dtype)
    assert copied is not tensor
    equal(copied, array)


@on_device
@given(array=small, data=st.data())
def test_views_of_another_dtype(any_device, array, data):
    """Functions, assignments and other views of them see the new dtype."""
    array = np.array(array)  # which can be written to
    tensor = any_device.tensor(array)
    same = {1: "u1", 2: ml_dtypes.bfloat16, 4: "f4", 8: "M8[s]", 16: "c16"}[array.itemsize]
    backwards = (..., slice(None, None, -1)) if array.ndim else ...
    tensor, array = tensor[backwards].view(same), array[backwards].view(same)
    assert tensor.dtype == same
    equal(tensor, array)
    equal(tensor.T.copy(), array.T)
    equal(vkops.roll(tensor, 1), np.roll(array, 1))
    joined = vkops.concat([tensor.reshape(-1), any_device.tensor(array.ravel())])
    equal(joined, np.concatenate([array.ravel()] * 2))
    if array.size:
        tensor[...] = tensor.flip()
        array[...] = np.flip(array).copy()
        equal(tensor, array)


def test_a_view_of_another_dtype_shares_and_keeps_the_memory(device):
    tensor = device.tensor(np.arange(3, dtype=np.float32))
    view = tensor.view(np.int32)
    tensor[1] = -1
    assert view.tolist() == [0, np.float32(-1).view(np.int32), np.float32(2).view(np.int32)]
    tensor.release()
    assert view[0].item() == 0
    with pytest.raises(ValueError, match=r"ARRAY-10"):
        view[None].broadcast_to((2, 3)).view("u4")[0] = 1


def test_formats(device):
    tensor = device.tensor([1.5, 2.25])
    assert (f"{tensor[1]:.1f}", f"{tensor[0]}", f"{tensor}") == ("2.2", "1.5", repr(tensor))
    with pytest.raises(TypeError, match=r"^unsupported format string"):
        f"{tensor:.1f}"


def test_attributes_that_compute_are_missing(device):
    tensor = device.tensor([1, 2])
    assert not hasattr(tensor, "partition")
    for name, instead in (("partition", "vkops.kernels.partition"), ("choose", ".numpy().choose")):
        text = f"vkops.Tensor has no attribute '{name}': use {instead}"
        with pytest.raises(AttributeError, match=f"^{re.escape(text)}$"):
            getattr(tensor, name)
    with pytest.raises(AttributeError, match=r"^vkops\.Tensor has no attribute 'cuda'"):
        tensor.cuda()


# -- text ------------------------------------------------------------------------------------------


@on_device
@given(array=small, data=st.data())
def test_text_of_few_elements(any_device, array, data):
    """The values are NumPy's own text of them."""
    tensor, array = viewed(data, any_device.tensor(array), array)
    text = repr(tensor)
    assert text.endswith(f"dtype={array.dtype}, device={any_device.name!r})")
    values = np.array2string(array, separator=", ", prefix="vkops.Tensor(", suffix=",")
    assert text.startswith(f"vkops.Tensor({values},")
    assert ("shape=" in text) == (not array.size or array.size > 1000)


@pytest.mark.parametrize("shape", [(5000,), (40, 50), (7, 8, 6, 9), (1, 3000), (6, 1001)])
def test_text_of_many_elements_reads_few(any_device, shape):
    array = numbered(shape, "i4")
    tensor = any_device.tensor(array)
    reads = []
    with pytest.MonkeyPatch.context() as patch:
        numpy = vkops.Tensor.numpy
        patch.setattr(vkops.Tensor, "numpy", lambda t: reads.append(t.nbytes) or numpy(t))
        text = repr(tensor)
    expected = np.array2string(array, separator=", ", prefix="vkops.Tensor(", suffix=",")
    assert text.startswith(f"vkops.Tensor({expected},")
    assert f"shape={shape}, dtype=int32" in text
    assert sum(reads) <= 4 * 7 ** len(shape)


def test_text_without_values(device, monkeypatch):
    tensor = device.tensor(np.zeros((8,) * 6, np.int8))
    text = " ".join(repr(tensor).split())
    assert text.startswith("vkops.Tensor(..., shape=(8, 8, 8, 8, 8, 8), dtype=int8,")
    small = tensor[0, 0, 0, 0, 0]
    with monkeypatch.context() as patch, np.printoptions(threshold=3, edgeitems=1):
        text = " ".join(repr(small).split())
        assert text.startswith("vkops.Tensor([0, ..., 0], shape=(8,), dtype=int8,")
        patch.setattr(vkops.Tensor, "numpy", Mock(side_effect=vkops.DeviceError("x")))
        text = " ".join(repr(small).split())
        assert text.startswith("vkops.Tensor(..., shape=(8,), dtype=int8,")


@on_device
@given(array=small, data=st.data())
def test_flags_and_base(device, array, data):
    tensor, array = viewed(data, device.tensor(array), array)
    same = np.lib.stride_tricks.as_strided(np.empty(1, array.dtype), tensor.shape, tensor.strides)
    assert tensor.flags.c_contiguous == same.flags.c_contiguous
    assert tensor.flags.f_contiguous == same.flags.f_contiguous
    assert tensor.flags.owndata == (tensor.base is None)


def test_flags_of_views(device):
    tensor = device.tensor(np.arange(6).reshape(2, 3))
    assert tensor.flags == (True, False, True, True)
    assert tensor.T.flags == (False, True, False, True)
    assert tensor.broadcast_to((2, 2, 3)).flags == (False, False, False, False)
    assert tensor.T[1:].base is tensor
    assert tensor.T.copy().base is None
