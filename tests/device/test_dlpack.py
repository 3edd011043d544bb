"""Tensors as exporters and importers of DLPack."""

import ctypes
import gc
import re
import sys
from importlib.util import find_spec

import ml_dtypes
import numpy as np
import pytest
from arrays import arrays, equal, on_device, viewed
from exporter import Exporter
from hypothesis import given
from hypothesis import strategies as st

import vkops
from vkops.tensors.exchange import EXTENSION_TYPES, element_type

pytestmark = pytest.mark.memory

byte_bounds = (np.lib.array_utils if hasattr(np.lib, "array_utils") else np).byte_bounds

READ_ONLY = np.lib.NumpyVersion(np.__version__) >= "2.1.0"
VERSIONS = ({}, {"max_version": (1, 0)})


@on_device
@given(array=arrays, data=st.data())
def test_dlpack(any_device, array, data):
    """What NumPy exports, a tensor exports; what comes in again is the same."""
    tensor, array = viewed(data, any_device.tensor(array), array)
    if array.dtype == ml_dtypes.bfloat16:
        with pytest.raises((BufferError, RuntimeError)):  # NumPy has no such type
            np.from_dlpack(tensor)
        equal(vkops.from_dlpack(tensor, device=any_device), array)
        return
    try:
        array.copy().__dlpack__()
    except BufferError:
        with pytest.raises(BufferError):
            np.from_dlpack(tensor)
        equal(vkops.from_dlpack(tensor, device=any_device), array)
        return
    equal(any_device.tensor(np.from_dlpack(tensor)), array)
    equal(vkops.from_dlpack(tensor, device=any_device, copy=True), array)
    assert vkops.from_dlpack(tensor, device=any_device) is tensor


@pytest.mark.skipif(not READ_ONLY, reason="NumPy before 2.1 asks for no view")
@pytest.mark.usefixtures("shared_memory")
def test_dlpack_shares_memory_read_only(device):
    """Only consumers that ask for it get the memory itself."""
    tensor = device.tensor(np.arange(6).reshape(2, 3))
    shared = np.from_dlpack(tensor[:, 1:], copy=False)
    assert tensor.__dlpack_device__() == (1, 0)
    assert np.shares_memory(shared, tensor.numpy())
    assert not shared.flags.writeable
    del tensor
    gc.collect()
    assert shared.tolist() == [[1, 2], [4, 5]]


VIEWS = {
    "whole": lambda t: t,
    "rows": lambda t: t[1:],
    "transposed": lambda t: t.T,
    "reversed": lambda t: t[::-1],
    "repeated": lambda t: t[0].broadcast_to((3, 4)),
}


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize(
    "options", [{}, {"max_version": (0, 8)}, {"max_version": (1, 0)}, {"max_version": (1, 1)},
                {"max_version": (1, 0), "copy": True}],
)  # fmt: skip
def test_consumers_that_write_to_what_they_get(any_device, view, options):
    """Some ignore the mark of memory as read-only, as PyTorch does: all get a copy."""
    tensor = any_device.tensor(np.arange(12, dtype=np.int32).reshape(3, 4))
    shown = tensor.numpy()
    before = VIEWS[view](shown.copy()) if view != "repeated" else np.tile(shown[0], (3, 1))
    consumed = np.from_dlpack(Exporter(VIEWS[view](tensor).__dlpack__(**options)))
    np.testing.assert_array_equal(consumed, before)
    if np.lib.NumpyVersion(np.__version__) >= "2.2.6":  # others mark copies, too
        assert consumed.flags.writeable or options.get("max_version", (0, 0)) < (1, 0)
    start, end = byte_bounds(consumed)
    ctypes.memset(start, 255, end - start)
    for array in (shown, tensor.numpy()):
        np.testing.assert_array_equal(array, np.arange(12).reshape(3, 4))
    tensor[...] = 7
    assert (consumed == -1).all()


@pytest.mark.skipif(find_spec("torch") is None, reason="needs PyTorch")
def test_dlpack_and_torch(device):
    import torch

    half = torch.arange(6, dtype=torch.bfloat16).reshape(2, 3)
    tensor = vkops.from_dlpack(half, device=device)
    assert torch.equal(torch.from_dlpack(tensor.T), half.T)
    source = torch.arange(12, dtype=torch.float32).reshape(3, 4).T
    tensor = vkops.from_dlpack(source, device=device)
    equal(tensor, source.numpy())
    shown, consumed = tensor.numpy(), torch.from_dlpack(tensor)
    assert torch.equal(consumed, source)
    consumed += 100
    equal(tensor, source.numpy())
    np.testing.assert_array_equal(shown, source.numpy())
    with pytest.raises(vkops.InvalidDescTypeError, match=r"require gradient.*\[T-02\]$"):
        vkops.from_dlpack(torch.ones(2, requires_grad=True), device=device)


# -- what consumers read in a capsule --------------------------------------------------------------


@on_device
@given(array=arrays, data=st.data(), version=st.sampled_from(VERSIONS))
def test_no_negative_strides(any_device, array, data, version):
    """PyTorch aborts at these; 0, for elements that are repeated, it takes."""
    tensor, array = viewed(data, any_device.tensor(array), array)
    try:
        np.array(array).__dlpack__()
    except BufferError:
        return
    imported = np.from_dlpack(Exporter(tensor.__dlpack__(**(version if READ_ONLY else {}))))
    assert (imported.shape, imported.dtype) == (array.shape, array.dtype)
    assert min(imported.strides, default=0) >= 0


@pytest.mark.usefixtures("shared_memory")
def test_a_reversed_view_needs_a_copy(device):
    tensor = device.tensor(np.arange(6).reshape(2, 3))
    with pytest.raises(BufferError, match=r"^__dlpack__ copy: got False, must be True or None: "):
        tensor[::-1].__dlpack__(max_version=(1, 0), copy=False)
    if READ_ONLY:
        repeated = np.from_dlpack(tensor.broadcast_to((2, 2, 3)), copy=False)
        assert np.shares_memory(repeated, tensor)


@pytest.mark.parametrize("dtype", [">i4", "M8[s]", "V16", "U4", ml_dtypes.int4])
def test_dtypes_that_dlpack_does_not_have(device, dtype):
    tensor = device.tensor(np.zeros(2, dtype))
    for version in VERSIONS:
        with pytest.raises(
            vkops.InvalidDescBufferError, match=r"^__dlpack__ dtype: .+ \[ARRAY-11\]$"
        ):
            tensor.__dlpack__(**version)


# -- elements that NumPy has no type for -----------------------------------------------------------


class Foreign:
    """An exporter of such elements, which NumPy makes no array of, as PyTorch's are."""

    def __init__(self, array, code):
        self.array, self.code = array, code

    def __array__(self, *_, **__):
        raise TypeError("Got unsupported ScalarType BFloat16")

    def __dlpack__(self, **options):
        capsule = self.array.__dlpack__(**options)
        element_type(capsule)[0] = self.code
        return capsule

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


@pytest.mark.parametrize(("code", "bits"), EXTENSION_TYPES)
def test_types_of_ml_dtypes(any_device, code, bits):
    """By from_dlpack, and wherever an array may be given; in the order of their elements."""
    bytes_ = np.arange(24 * bits // 8, dtype=np.uint8).view(f"u{bits // 8}").reshape(4, 6)
    expected = bytes_.T[::2].view(getattr(ml_dtypes, EXTENSION_TYPES[code, bits]))
    foreign = Foreign(bytes_.T[::2], code)
    equal(vkops.from_dlpack(foreign, device=any_device), expected)
    equal(any_device.tensor(foreign), expected)
    equal(vkops.flip(foreign, device=any_device), np.flip(expected))


@pytest.mark.parametrize(("code", "bits"), EXTENSION_TYPES)
@pytest.mark.parametrize("version", VERSIONS)
def test_types_of_ml_dtypes_are_exported(any_device, code, bits, version):
    """With DLPack's own type, of a view too; and they come in again as they were."""
    unsigned = np.arange(24 * bits // 8, dtype=np.uint8).view(f"u{bits // 8}").reshape(4, 6)
    known = unsigned.__dlpack__(**(version if READ_ONLY else {}))
    assert [*element_type(known)] == [1, bits, 1, 0]
    array = unsigned.view(getattr(ml_dtypes, EXTENSION_TYPES[code, bits]))
    tensor = any_device.tensor(array).T[1:]
    assert [*element_type(tensor.__dlpack__(**version))] == [code, bits, 1, 0]
    equal(vkops.from_dlpack(tensor, device=any_device), array.T[1:])


@pytest.mark.skipif(not READ_ONLY, reason="NumPy before 2.1 asks for no copy on the host")
def test_exporters_of_other_devices_are_asked_for_a_copy(device):
    asked = []

    class Elsewhere:
        def __dlpack_device__(self):
            return 2, 0  # CUDA

        def __dlpack__(self, *, dl_device=None, copy=None, **options):
            asked.append(dl_device)
            return np.arange(3).__dlpack__(**options)

    assert vkops.from_dlpack(Elsewhere(), device=device).tolist() == [0, 1, 2]
    assert asked == [(1, 0)]


@pytest.mark.skipif(find_spec("jax") is None, reason="needs JAX")
@pytest.mark.parametrize("dtype", ["float32", "int8", "bfloat16", "float8_e4m3fn"])
def test_dlpack_and_jax(device, dtype):
    import jax

    source = jax.numpy.arange(12).reshape(3, 4).astype(dtype)
    tensor = vkops.from_dlpack(source, device=device)
    equal(tensor, np.asarray(source))
    equal(device.tensor(source), np.asarray(source))
    for view in (tensor, tensor.T[1:], tensor[::-1]):
        back = jax.dlpack.from_dlpack(view)
        assert back.dtype == dtype
        np.testing.assert_array_equal(np.asarray(back), view.numpy())


def test_ml_dtypes_is_missing(device, monkeypatch):
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    foreign = Foreign(np.zeros(3, np.uint16), 4)
    message = "x: holds bfloat16, which needs the package ml_dtypes [T-02]"
    for take in (device.tensor, lambda x: vkops.from_dlpack(x, device=device)):
        with pytest.raises(vkops.InvalidDescTypeError, match=f"^{re.escape(message)}$"):
            take(foreign)


def test_types_that_nobody_has(device):
    """A type code of the future is refused, as is what is no capsule."""
    with pytest.raises(vkops.InvalidDescTypeError, match=r"^x: NumPy says: .+ \[T-02\]$"):
        vkops.from_dlpack(Foreign(np.zeros(3, np.uint16), 99), device=device)
    with pytest.raises(vkops.InvalidDescTypeError, match=r"^array: NumPy says: Got unsupported .+"):
        device.tensor(Foreign(np.zeros(3, np.uint16), 99))
    broken = Foreign(np.zeros(3, np.uint16), 4)
    broken.__class__ = type("Broken", (Foreign,), {"__dlpack__": lambda self, **_: object()})
    with pytest.raises(vkops.InvalidDescTypeError, match=r"^x: NumPy says: .+ \[T-02\]$"):
        vkops.from_dlpack(broken, device=device)
