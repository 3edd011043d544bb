"""The array API's chapters that move data, against array_api_strict, which follows its text.

https://data-apis.org/array-api/2024.12/API_specification: signatures and inspection. What the functions
do is compared with NumPy's: test_creation.py, test_manipulation.py, test_index_arrays.py and
test_numpy_functions.py. What they refuse is in test_refused_calls.py.
"""

import inspect
import re
from inspect import Parameter

import array_api_strict as strict
import numpy as np
import pytest
from arrays import equal
from processes import outcome

import vkops

DTYPES = list(strict.__array_namespace_info__().dtypes())


def functions():
    """The names of the standard's functions in the chapters of movement and of arithmetic."""
    modules = {name: getattr(getattr(strict, name), "__module__", "") for name in strict.__all__}
    chapters = re.compile(
        r"array_api_strict\._(creation|manipulation|indexing|elementwise|statistical|searching|sorting|set"
        r"|utility|linear_algebra|data_type)_functions"
    )
    newer = {"broadcast_shapes", "isin"}  # of the version after 2024.12
    names = [n for n, module in modules.items() if chapters.fullmatch(module) and n not in newer]
    return [*names, "broadcast_arrays", "broadcast_to"]


@pytest.fixture(autouse=True, scope="module")
def version():
    with strict.ArrayAPIStrictFlags(api_version="2024.12"):
        yield


# -- signatures ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", functions())
def test_signatures(name):
    """Every call that the standard allows is allowed; arguments of its own are behind keywords."""
    expected = inspect.signature(getattr(strict, name)).parameters
    actual = inspect.signature(getattr(vkops, name)).parameters
    unnamed = (Parameter.POSITIONAL_ONLY, Parameter.VAR_POSITIONAL)
    by_position = [p for p in expected.values() if p.kind != Parameter.KEYWORD_ONLY]
    for ours, theirs in zip(actual.values(), by_position, strict=False):
        assert ours.kind == theirs.kind
        assert ours.kind in unnamed or ours.name == theirs.name
    for theirs in expected.values():
        if theirs.kind in unnamed:
            continue
        ours, default = actual[theirs.name], theirs.default
        assert theirs.kind != Parameter.KEYWORD_ONLY or ours.kind not in unnamed
        # The standard's defaults are numbers, texts and None; a required argument may have one.
        known = default if isinstance(default, (int, float, str)) else None
        assert default is Parameter.empty or ours.default == known
    extra = actual.keys() - expected.keys()
    assert all(actual[n].kind in unnamed for n in extra if actual[n].default is Parameter.empty)


def test_the_namespace(device):
    x = device.tensor([1, 2])
    for api in (None, "2021.12", "2022.12", "2023.12", "2024.12"):
        assert x.__array_namespace__(api_version=api) is vkops
    assert vkops.__array_api_version__ == "2024.12"
    assert [getattr(vkops, name) for name in DTYPES] == [np.dtype(name) for name in DTYPES]
    assert (vkops.newaxis, vkops.pi, vkops.e, vkops.inf) == (None, np.pi, np.e, np.inf)
    assert vkops.nan != vkops.nan


def test_inspection(device):
    info, theirs = vkops.__array_namespace_info__(), strict.__array_namespace_info__()
    assert info.capabilities().keys() == theirs.capabilities().keys()
    assert info.default_dtypes().keys() == theirs.default_dtypes().keys()
    kinds = "bool|signed integer|unsigned integer|integral|real floating|complex floating|numeric"
    for kind in (None, *kinds.split("|"), ("bool", "integral"), ()):
        assert info.dtypes(kind=kind) == {n: np.dtype(n) for n in theirs.dtypes(kind=kind)}
    assert info.default_device() in info.devices()
    assert device.info in [each.info for each in info.devices()]
    tensor = vkops.zeros(2, device=info.devices()[0])
    assert tensor.device is info.devices()[0]
    assert device.tensor([1]).to_device(tensor.device).device is tensor.device


def test_names_that_are_not_there():
    for name in ("cumsum", "bincount", "linalg", "fft"):
        assert not hasattr(vkops, name)
        numpys = f"numpy.{name} on tensor.numpy()"
        message = f"use {f'vkops.kernels.{name}' if hasattr(vkops.kernels, name) else numpys}"
        with pytest.raises(AttributeError, match=re.escape(message)):
            getattr(vkops, name)
    with pytest.raises(AttributeError, match=r"^module 'vkops' has no attribute 'no_such'$"):
        _ = vkops.no_such


def test_names_that_are_near_to_others():
    assert "'spilt'. Did you mean: 'split'?" in outcome("-c", "import vkops; vkops.spilt")[2]
    # NumPy need not be loaded.
    message = "use numpy.cov on tensor.numpy()"
    assert message in outcome("-c", "import vkops; vkops.cov")[2]


# -- creation --------------------------------------------------------------------------------------


def test_asarray_of_tensors(device):
    x = device.tensor([[1, 2], [3, 4]])
    assert vkops.asarray(x) is x
    assert vkops.asarray(x.T).strides == x.T.strides
    assert vkops.asarray(x, dtype=x.dtype, device=device, copy=False) is x
    copied = vkops.asarray(x, copy=True)
    copied[0] = 0
    equal(x, np.array([[1, 2], [3, 4]]))
    equal(vkops.asarray(x, dtype=vkops.float32), np.float32([[1, 2], [3, 4]]))
    other = vkops.Device(device.info.index)
    assert vkops.asarray(x, device=other).device is other
    with pytest.raises(ValueError, match=r"^ASARRAY copy: got False"):
        vkops.asarray(x, device=other, copy=False)
    equal(vkops.from_dlpack(np.arange(2), device=device, copy=True), np.arange(2))


def test_no_memory():
    """Nothing is computed on the host, or allocated, that does not fit there."""
    for make in (
        vkops.arange,
        vkops.zeros,
        lambda n: vkops.linspace(0, 1, n),
        lambda n: vkops.asarray(np.broadcast_to(np.uint8(1), (n,))),
    ):
        with pytest.raises(MemoryError, match="bytes: "):
            make(1 << 45)
