"""Every function that makes tensors with every dtype that tensors can have, against NumPy."""

from functools import partial

import ml_dtypes
import numpy as np
import pytest
from arrays import equal

import vkops

NATIVE = [
    *("?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "g", "c8", "c16"),
    *("M8[s]", "M8[ns]", "M8[D]", "m8[s]", "m8[h]"),
    *("S1", "S2", "S4", "S8", "S16", "U1", "U2", "U4"),
    *("V1", "V2", "V4", "V8", "V16"),
]
FOREIGN = [kind for kind in (np.dtype(name).newbyteorder() for name in NATIVE) if not kind.isnative]
STRUCTURED = [
    [("number", ">i4"), ("name", "S4")],
    [("name", "U3"), ("number", "f4")],
    [("raw", "V3"), ("flag", "?")],
    [("pair", "i2", (2,)), ("inner", [("name", "S2"), ("number", "u2")])],
    {"names": ["last"], "formats": ["u1"], "offsets": [7], "itemsize": 8},
]
EXTENSIONS = [ml_dtypes.bfloat16, ml_dtypes.float8_e5m2, ml_dtypes.int4]
DTYPES = [np.dtype(kind) for kind in (*NATIVE, *FOREIGN, *STRUCTURED, *EXTENSIONS)]
VALUES = [0, 1, -3, 2.5, True, 1j, "7", b"ab", "2020-01-01", np.int64(300), np.void(b"abcd")]
VALUES += [np.datetime64(5, "s"), np.timedelta64(5, "s"), np.array(6), np.zeros((), STRUCTURED[0])]

OLD_NUMPY = np.lib.NumpyVersion(np.__version__) < "2.0.0"

# Called with vkops or NumPy, and a dtype.
CALLS = {
    **{name: lambda xp, kind, n=name: getattr(xp, n)((2, 3), kind) for name in ("zeros", "ones")},
    **{
        f"{name}_like": lambda xp, kind, n=name: getattr(xp, f"{n}_like")(np.empty(2, kind))
        for name in ("zeros", "ones")
    },
    "zeros_like, dtype": lambda xp, kind: xp.zeros_like([1, 2], dtype=kind),
    "ones_like, dtype": lambda xp, kind: xp.ones_like([1, 2], dtype=kind),
    "empty": lambda xp, kind: xp.empty((2, 0), kind),
    "empty_like": lambda xp, kind: xp.empty_like(np.empty((0, 2), kind)),
    **{f"full, {value!r}": lambda xp, kind, v=value: xp.full(2, v, kind) for value in VALUES},
    **{
        f"full_like, {value!r}": lambda xp, kind, v=value: xp.full_like(np.empty(2, kind), v)
        for value in VALUES
    },
    "full, no dtype": lambda xp, kind: xp.full(2, np.zeros((), kind)),
    **{f"{name}, no dtype": lambda xp, _, n=name: getattr(xp, n)(3) for name in ("zeros", "ones")},
    **{f"full, no dtype, {n!r}": lambda xp, _, n=n: xp.full((), n) for n in (True, -3, 0.5, 1j)},
    "empty, no dtype": lambda xp, _: xp.empty(0),
    "arange": lambda xp, kind: xp.arange(0, 7, 2, kind),
    "arange, stop": lambda xp, kind: xp.arange(2, dtype=kind),
    "arange, scalars": lambda xp, kind: xp.arange(*np.array([1, 4]).astype(kind)[:2], dtype=kind),
    "arange, no dtype": lambda xp, _: xp.arange(7.5, -2, -0.5),
    **{
        f"eye, {n}, {m}, {k}": lambda xp, kind, n=n, m=m, k=k: xp.eye(n, m, k, kind)
        for n, m, k in ((3, 5, 1), (5, 3, -2), (0, 3, 0), (70, 90, -7))
    },
    "eye, no dtype": lambda xp, _: xp.eye(3, k=-1),
    "eye, beyond the matrix": lambda xp, _: xp.eye(4, k=9),
    "linspace": lambda xp, kind: xp.linspace(0, 6, 4, dtype=kind),
    "linspace, no dtype": lambda xp, _: xp.linspace(-1.5, 6, 7, endpoint=False),
    "linspace, one number": lambda xp, _: xp.linspace(5, 6, 1),
    "asarray": lambda xp, kind: xp.asarray(np.zeros(2, kind)),
    "asarray, numbers": lambda xp, kind: xp.asarray([1, 2], kind),
    "asarray, text": lambda xp, kind: xp.asarray(["1", "2"], kind),
    "asarray, no dtype": lambda xp, _: xp.asarray([[1, 2], [3, 4.5]]),
    "asarray, different lengths": lambda xp, _: xp.asarray([[1], [2, 3]]),
}


class On:
    """The functions of vkops, which make their tensors on a device."""

    def __init__(self, device):
        self.device = device

    def __getattr__(self, name):
        return partial(getattr(vkops, name), device=self.device)


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::numpy.exceptions.ComplexWarning")
def test_every_dtype(device, name):
    for kind in DTYPES:
        if OLD_NUMPY and "timedelta64" in name and kind.kind == "U":
            continue  # NumPy 1 writes more characters than the array has
        try:
            expected = CALLS[name](np, kind)
        except Exception:
            with pytest.raises(vkops.VkopsError):
                CALLS[name](On(device), kind)
            continue
        tensor = CALLS[name](On(device), kind)
        assert (tensor.dtype, tensor.shape) == (expected.dtype, expected.shape)
        # The bytes between fields, and those that a long double does not use, are undefined.
        assert repr(tensor.tolist()) == repr(expected.tolist()), kind


def test_what_is_like_a_tensor_is_on_its_device(staged_device):
    tensor = staged_device.tensor([1, 2])
    for made in (vkops.empty_like(tensor), vkops.zeros_like(tensor), vkops.full_like(tensor, 3)):
        assert made.device is staged_device


def test_ranges_of_dates(device):
    """They are NumPy's, whatever the units of the ends, the step and the dtype are.

    A number is a step in the unit of the range. NumPy 2.5 deprecates such steps; vkops takes them.
    """
    day, month = np.datetime64("2020-01-01"), np.datetime64("2020-03")
    second, minute = np.timedelta64(1, "s"), np.timedelta64(1, "m")
    for arguments, unit in (
        ((day, month), None),
        ((day, month, 7), "D"),
        ((day, day + np.timedelta64(2, "D"), np.timedelta64(7, "h")), None),
        ((day, month, np.timedelta64(7, "D"), "M8[s]"), None),
        ((month, day, -1), "D"),
        (("2020-01-01", "2020-01-09", 2, "M8[D]"), None),
        ((day, month, 3600, ">M8[s]"), None),
        ((0 * second, minute, 7), "s"),
        ((minute, 80 * second, 7), "s"),
        ((5 * second,), None),
        ((5 * second, None, 2), "s"),
        ((5, None, 2, "m8[s]"), None),
    ):
        expected = list(arguments)
        if unit is not None:
            expected[2] = np.timedelta64(arguments[2], unit)
        equal(vkops.arange(*arguments, device=device), np.arange(*expected))
