"""Prepared calls of shaders and elementwise kernels: each call is what it is without the ones before.

A call that was prepared is followed by one that differs from it in one thing alone. Its results and its
errors must be those of a shader or kernel that was never called.
"""

import os
import re
from concurrent.futures import ThreadPoolExecutor
from weakref import ref

import numpy as np
import pytest
from adapters import LAYERS

import vkops
from vkops.runtime.compiled_shader import MAX_CALLS

pytestmark = pytest.mark.memory

AXPY = """#version 450
layout(local_size_x = 16) in;
layout(std430, binding = 0) readonly buffer X { uint x[]; };
layout(std430, binding = 1) buffer Y { uint y[]; };
layout(push_constant) uniform Push { uint a; uint b; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < min(x.length(), y.length())) y[i] = a * x[i] + 100 * y[i] + b;
}"""
UNIFORM = """#version 450
layout(local_size_x = 16) in;
layout(std140, binding = 0) uniform U { uint u; };
layout(std430, binding = 1) buffer Y { uint y[]; };
void main() { y[gl_GlobalInvocationID.x] += u; }"""
TWO = """#version 450
layout(local_size_x = 16) in;
layout(std140, binding = 0) uniform U { uint u; };
layout(std140, binding = 1) uniform V { uint v; };
layout(std430, binding = 2) buffer Y { uint y[]; };
void main() { y[gl_GlobalInvocationID.x] += 1000 * u + v; }"""
AB = {"a": 2, "b": 1}


def shader(device, text=AXPY):
    return device.compile_shader(text, name="axpy")


def kernel(_, raw=""):
    return vkops.ElementwiseKernel(
        f"{raw} T x, T y, int32 k", "T z", f"z = x{'[i]' * bool(raw)} + T(k) * y", "sums"
    )


def sums(_):
    return vkops.ElementwiseKernel("T x, T y", "T z", "z = x + y")


def tensors(device):
    """Three tensors of other memory than those of the last call; rows begin at multiples of 256."""
    data = np.random.default_rng(1).integers(0, 100, (3, 4, 64)).astype(np.uint32)
    return [device.tensor(array) for array in data]


def outcome(run, device, call):
    """What a call leaves in fresh tensors, and what it returns or raises."""
    x, y, z = operands = tensors(device)
    try:
        returned = call(run, x, y, z)
    except vkops.VkopsError as error:
        return str(error)
    if isinstance(returned, vkops.Tensor):
        where = [n for n, each in enumerate(operands) if returned.base is each or returned is each]
        returned = where, returned.device, returned.dtype, returned.tolist()
    return returned, [each.tolist() for each in operands]


def part_of(device, nbytes):
    """Return a part of a new buffer of zeros."""
    buffer = device.buffer(nbytes)
    buffer.fill(np.zeros(nbytes, np.uint8))
    return buffer, 512, 256


def released(run, x, *others, **named):
    x.release()
    return run(x, *others, **named)


def read_only(tensor):
    return tensor.broadcast_to(tensor.shape)


CALLS = {
    "the view of an input": lambda s, x, y, z: s(x[1], y[0], threads=16, **AB),
    "the view of an output": lambda s, x, y, z: s(x[0], y[1], threads=16, **AB),
    "the offset of a view": lambda s, x, y, z: s(x[0], y[2], threads=16, **AB),
    "sizes": lambda s, x, y, z: s(x[0], y[0, :8], threads=16, **AB),
    "no view": lambda s, x, y, z: s(x[0], y, threads=256, **AB),
    "strides": lambda s, x, y, z: s(x.reshape(-1)[:128:2], y[0], threads=16, **AB),
    "the order of elements": lambda s, x, y, z: s(x[0, ::-1], y[0], threads=16, **AB),
    "an offset that is not aligned": lambda s, x, y, z: s(x[0, 1:], y[0], threads=16, **AB),
    "the data type": lambda s, x, y, z: s(x[0].view("float32"), y[0], threads=16, **AB),
    "that an output is read-only": lambda s, x, y, z: s(x[0], read_only(y[0]), threads=16, **AB),
    "an input that was released": lambda s, x, y, z: released(s, x, y[0], threads=16, **AB),
    "an output that was released": lambda s, x, y, z: released(s, y, x[0], threads=16, **AB),
    "that there is no memory": lambda s, x, y, z: s(x[:0], y[0], threads=16, **AB),
    "a buffer": lambda s, x, y, z: s(x[1].copy().buffer, y.buffer, threads=16, **AB),
    "a smaller buffer": lambda s, x, y, z: s(x.device.buffer(2), y[0], threads=16, **AB),
    "a part": lambda s, x, y, z: s((x, 256, 256), y[0], threads=16, **AB),
    "an array": lambda s, x, y, z: s(np.arange(64, dtype=np.uint32), y[0], threads=16, **AB),
    "an array that is written": lambda s, x, y, z: s(x[0], np.zeros(64), threads=16, **AB),
    "no tensor": lambda s, x, y, z: s(x[0], 3, threads=16, **AB),
    "one memory for both": lambda s, x, y, z: s(y[0], y[0], threads=16, **AB),
    "the number of threads": lambda s, x, y, z: s(x[0], y[0], threads=17, **AB),
    "no threads": lambda s, x, y, z: s(x[0], y[0], threads=0, **AB),
    "threads of another type": lambda s, x, y, z: s(x[0], y[0], threads=16.0, **AB),
    "threads as a Boolean": lambda s, x, y, z: s(x[0], y[0], threads=True, **AB),
    "threads of a list": lambda s, x, y, z: s(x[0], y[0], threads=[16, 1, 2.5], **AB),
    "a tuple of another type": lambda s, x, y, z: s(x[0], y[0], threads=(16.0,), **AB),
    "groups": lambda s, x, y, z: s(x[0], y[0], groups=16, **AB),
    "groups and threads": lambda s, x, y, z: s(x[0], y[0], groups=1, threads=16, **AB),
    "a tensor of groups": lambda s, x, y, z: s(
        x[0], y[0], groups=x.device.tensor(np.uint32([3, 1, 1])), **AB
    ),
    "names": lambda s, x, y, z: s(Y=x[0], X=y[0], threads=16, **AB),
    "a name that is wrong": lambda s, x, y, z: s(x[0], Z=y[0], threads=16, **AB),
    "fewer arguments": lambda s, x, y, z: s(x[0], threads=16, **AB),
    "more arguments": lambda s, x, y, z: s(x[0], y[0], z, threads=16, **AB),
    "the order of push constants": lambda s, x, y, z: s(x[0], y[0], threads=16, b=2, a=1),
    "a push constant": lambda s, x, y, z: s(x[0], y[0], threads=16, a=3, b=1),
    "fewer push constants": lambda s, x, y, z: s(x[0], y[0], threads=16, a=2),
    "a push constant that is a tensor": lambda s, x, y, z: s(x[0], y[0], threads=16, a=x, b=1),
    "a push constant out of range": lambda s, x, y, z: s(x[0], y[0], threads=16, a=-1, b=1),
    "a push constant of another type": lambda s, x, y, z: s(x[0], y[0], threads=16, a=2.0, b="1"),
    "the output": lambda s, x, y, z: s(x[0], out=z[0], threads=16, **AB),
    "an output that is made": lambda s, x, y, z: s(x[0], out="X", threads=64, **AB) and None,
    "an output of another name": lambda s, x, y, z: s(Y=x[0], out={"X": z[0]}, threads=16, **AB),
    "outputs that there are not": lambda s, x, y, z: s(x[0], y[0], out=z, threads=16, **AB),
}  # fmt: skip


DISPATCHES = {
    "names": lambda s, x, y, z: s.dispatch({"Y": x[0], "X": y[0]}, 1, [2, 1]),
    "a name": lambda s, x, y, z: s.dispatch({"X": x[0], "Z": y[0]}, 1, [2, 1]),
    "groups": lambda s, x, y, z: s.dispatch({"X": x[0], "Y": y[0]}, 2, [2, 1]),
    "threads": lambda s, x, y, z: s.dispatch({"X": x[0], "Y": y[0]}, None, [2, 1], threads=17),
    "push constants": lambda s, x, y, z: s.dispatch({"X": x[0], "Y": y[0]}, 1, [1, 2]),
    "too few bytes": lambda s, x, y, z: s.dispatch({"X": x[0], "Y": y[0]}, 1, b"1234"),
    "a view": lambda s, x, y, z: s.bound({"X": x[0], "Y": y[1]}, 1, [2, 1]).dispatch(),
    "a data type": lambda s, x, y, z: s.bound({"X": x[0], "Y": y[0].view("float32")}, 1, [2, 1]),
    "an array": lambda s, x, y, z: s.bound({"X": np.zeros(64), "Y": y[0]}, 1, [2, 1]),
}


COPIED = {
    "elements that are shared": lambda s, x, y, z: s(x[0, ::2], x[0, :32], threads=32, **AB),
    "the same elements": lambda s, x, y, z: s(y[0, ::2], y[0, ::2], threads=32, **AB),
    "other elements of one tensor": lambda s, x, y, z: s(x[0, ::2], x[1, :32], threads=32, **AB),
    "another stride": lambda s, x, y, z: s(x[0, 1::2], y[0, :32], threads=32, **AB),
    "a written view": lambda s, x, y, z: s(x[0, :32], y[0, ::2], threads=32, **AB),
}


UNIFORMS = {
    "values": lambda s, x, y, z: s([3], y, threads=16),
    "a value": lambda s, x, y, z: s({"u": 4}, y, threads=16),
    "bytes": lambda s, x, y, z: s(b"123", y, threads=16),
    "a view": lambda s, x, y, z: s(x[1, :1], y, threads=16),
    "an offset": lambda s, x, y, z: s(x[0, 5:6], y, threads=16),
    "a buffer": lambda s, x, y, z: s(x.device.tensor(np.uint32([9])).buffer, y, threads=16),
}


ELEMENTWISE = {
    "the view of an input": lambda k, x, y, z: k(x[1], y[0], 3, out=z[0]),
    "the view of an output": lambda k, x, y, z: k(x[0], y[0], 3, out=z[1]),
    "strides": lambda k, x, y, z: k(x[0, ::-1], y[0], 3, out=z[0]),
    "sizes": lambda k, x, y, z: k(x[0, :1], y[0, :1], 3, out=z[0, :1]),
    "a broadcast input": lambda k, x, y, z: k(x[0, :1], y[0], 3, out=z[0]),
    "all data types": lambda k, x, y, z: k(
        *[each[0].view("float32") for each in (x, y)], 3, out=z[0].view("float32")
    ),
    "one data type": lambda k, x, y, z: k(x[0].view("int32"), y[0], 3, out=z[0]),
    "that an output is read-only": lambda k, x, y, z: k(x[0], y[0], 3, out=read_only(z[0])),
    "a scalar": lambda k, x, y, z: k(x[0], y[0], 4, out=z[0]),
    "a scalar out of range": lambda k, x, y, z: k(x[0], y[0], 2**31, out=z[0]),
    "a scalar of another type": lambda k, x, y, z: k(x[0], y[0], 3.0, out=z[0]),
    "a scalar that is none": lambda k, x, y, z: k(x[0], y[0], "three", out=z[0]),
    "a list instead of a scalar": lambda k, x, y, z: k(x[0], y[0], [4], out=z[0]),
    "a scalar of NumPy": lambda k, x, y, z: k(x[0], y[0], np.int64(5), out=z[0]),
    "a scalar instead of an array": lambda k, x, y, z: k(x[0], 7, 3, out=z[0]),
    "a scalar of another data type": lambda k, x, y, z: k(x[0], np.int32(7), 3, out=z[0]),
    "an array instead of a tensor": lambda k, x, y, z: k(
        x[0], np.arange(64, dtype=np.uint32), 3, out=z[0]
    ),
    "a released tensor": lambda k, x, y, z: released(k, x, y, 3),
    "an output that is made": lambda k, x, y, z: k(x[0], y[0], 3),
    "one memory for input and output": lambda k, x, y, z: k(x[0], z[0], 3, out=z[0]),
    "an output over its input in another order": lambda k, x, y, z: k(x[0], z[0, ::-1], 3, z[0]),
    "one memory for all": lambda k, x, y, z: k(z[0], z[0], 3, out=z[0]),
    "an output by position": lambda k, x, y, z: k(x[0], y[0], 3, z[2]),
    "more outputs": lambda k, x, y, z: k(x[0], y[0], 3, z[0], out=z[0]),
    "too few arguments": lambda k, x, y, z: k(x[0], y[0], out=z[0]),
    "a size": lambda k, x, y, z: k(x[0], y[0], 3, out=z[0], size=64),
    "no elements": lambda k, x, y, z: k(x[:0], y[:0], 3, out=z[:0]),
}


SCALARS = {
    "another data type": lambda k, x, y, z: k(x[0], np.int32(7), 3, out=z[0]),
    "a Boolean": lambda k, x, y, z: k(x[0], True, 3, out=z[0]),
    "a tensor": lambda k, x, y, z: k(x[0], y[0], 3, out=z[0]),
    "a scalar for both": lambda k, x, y, z: k(7, x[0], 3, out=z[0]),
}


OVERLAPPING = {
    "an input over the output": lambda k, x, y, z: k(x[0], z[0, ::-1], 3, out=z[0]),
    "the other input": lambda k, x, y, z: k(z[0], y[0, ::-1], 3, out=z[0]),
    "both inputs": lambda k, x, y, z: k(x[0], x[0, ::-1], 3, out=z[0]),
    "all": lambda k, x, y, z: k(z[0], z[0, ::-1], 3, out=z[0]),
}


RAW = {
    "a size": lambda k, x, y, z: k(x[0], 1, 3, size=33),
    "a size of another type": lambda k, x, y, z: k(x[0], 1, 3, size=32.0),
    "a shape": lambda k, x, y, z: k(x[0], 1, 3, size=(4, 8)),
    "a view that is copied": lambda k, x, y, z: k(x[0, 1:], 1, 3, size=32),
    "no size": lambda k, x, y, z: k(x[0], 1, 3),
}


# What makes a shader or a kernel, the call that was prepared, and the calls that follow it.
GROUPS = {
    "call": (shader, lambda s, x, y, z: s(x[0], y[0], threads=16, **AB), CALLS),
    "call with a tuple": (shader, lambda s, x, y, z: s(x[0], y[0], threads=(16,), **AB), {
        name: call for name, call in CALLS.items() if re.search("threads|groups|tuple", name)}),
    "dispatch": (shader, lambda s, x, y, z: s.dispatch({"X": x[0], "Y": y[0]}, 1, [2, 1]), DISPATCHES),
    "copies": (shader, lambda s, x, y, z: s(x[0, ::2], y[0, :32], threads=32, **AB), COPIED),
    "part of a buffer": (shader, lambda s, x, y, z: s(part_of(y.device, 1024), y, threads=16, **AB), {
        "of a smaller buffer": lambda s, x, y, z: s(part_of(y.device, 700), y, threads=16, **AB)}),
    "uniform block": (lambda d: shader(d, UNIFORM), lambda s, x, y, z: s(x[0, :1], y, threads=16), UNIFORMS),
    "two uniform blocks": (lambda d: shader(d, TWO), lambda s, x, y, z: s(x[0, :1], [3], y, threads=16), {
        "the block that has values": lambda s, x, y, z: s([3], x[0, :1], y, threads=16)}),
    "elementwise": (kernel, lambda k, x, y, z: k(x[0], y[0], 3, out=z[0]), ELEMENTWISE),
    "scalar": (kernel, lambda k, x, y, z: k(x[0], 7, 3, out=z[0]), SCALARS),
    "sums": (sums, lambda k, x, y, z: k(x, y), {
        "an output instead of an input": lambda k, x, y, z: k(x, out=y)}),
    "overlapping": (kernel, lambda k, x, y, z: k(x[0], y[0, ::-1], 3, out=z[0]), OVERLAPPING),
    "raw": (lambda d: kernel(d, "raw"), lambda k, x, y, z: k(x[0], 1, 3, size=32), RAW),
}  # fmt: skip


@pytest.mark.parametrize(
    ("make", "before", "call"),
    [
        pytest.param(make, before, call, id=f"{group}, {name}")
        for group, (make, before, calls) in GROUPS.items()
        for name, call in calls.items()
    ],
)
def test_a_call_that_differs(any_device, make, before, call):
    """It is what it would be alone."""
    warm = make(any_device)
    first = [outcome(warm, any_device, before) for _ in range(3)]
    alone = outcome(make(any_device), any_device, call)
    assert first[0] == first[1] == first[2] != alone
    for _ in range(3):
        assert outcome(warm, any_device, call) == alone
    assert outcome(warm, any_device, before) == first[0]


def test_two_outputs_of_one_memory(device):
    swap = vkops.ElementwiseKernel("T x", "T a, T b", "a = x; b = x + 1", "swap")
    x, y, z = tensors(device)
    for _ in range(3):
        swap(x, out=(y, z))
    assert z.tolist() == (x.numpy() + 1).tolist()
    with pytest.raises(vkops.InvalidDescError, match=r"swap b: shares elements with a, .*EW-08"):
        swap(x, out=(y, y))


@pytest.mark.parametrize(
    ("dtype", "values"),
    [
        ("int8", [-128, 127, True]), ("uint16", [0, 65535]), ("float16", [0.1, 65504.0, 1e-7]),
        ("float32", [0.1, 1e-45, float("inf"), -3.4e38]), ("float32", [16777217, 2**63 - 1]),
        ("bool", [True, False]), ("int64", [2**63 - 1, -(2**63)]), ("float64", [0.1, 1e300]),
    ],
)  # fmt: skip
@pytest.mark.features
def test_scalars_are_converted_as_in_the_first_call(device, dtype, values):
    make = lambda: vkops.ElementwiseKernel(f"{dtype} v", f"{dtype} z", "z = v")  # noqa: E731
    warm, z = make(), device.empty(3, dtype)
    for value in [values[0], *values]:
        assert warm(value, out=z).tolist() == make()(value, out=device.empty(3, dtype)).tolist()
        assert z.tolist() == [np.asarray(value).astype(dtype).item()] * 3


def test_memory_that_is_freed_and_allocated_again(any_device):
    axpy, sums = shader(any_device), kernel(any_device)
    for number in range(40):
        x, y, z = tensors(any_device)
        keep = [any_device.empty(256 * (number % 7) + 1, np.uint8) for _ in range(number % 3)]
        a, b = x.numpy().copy(), y.numpy().copy()
        axpy(x, y, threads=256, **AB)
        sums(x, y, 3, out=z)
        b = 2 * a + 100 * b + 1
        np.testing.assert_array_equal(y.numpy(), b)
        np.testing.assert_array_equal(z.numpy(), a + 3 * b)
        del keep, x, y, z


def test_arrays_that_show_the_memory_do_not_change(any_device):
    axpy, sums = shader(any_device), kernel(any_device)
    x, y, z = tensors(any_device)
    for _ in range(4):
        shown = [each.numpy() for each in (x, y, z)]
        copies = [each.copy() for each in shown]
        axpy(x, y, threads=256, **AB)
        sums(x, y, 3, out=z)
        any_device.synchronize()
        np.testing.assert_array_equal(shown, copies)
        np.testing.assert_array_equal(y.numpy(), 2 * copies[0] + 100 * copies[1] + 1)


def test_a_packed_view_is_another_view(any_device):
    axpy, sums = shader(any_device), kernel(any_device)
    x, y, z = tensors(any_device)
    view = x[1]
    for _ in range(2):
        axpy(view, y[0], threads=64, a=1, b=0)
        sums(view, y[0], 3, out=z[0])
    view.pack()
    x.fill(0)
    expected = view.numpy() + 100 * y[0].numpy()
    axpy(view, y[0], threads=64, a=1, b=0)
    np.testing.assert_array_equal(y[0].numpy(), expected)
    sums(view, y[0], 3, out=z[0])
    np.testing.assert_array_equal(z[0].numpy(), view.numpy() + 3 * expected)


def test_outputs_that_are_made_are_new_each_time(any_device):
    axpy, sums = shader(any_device), kernel(any_device)
    x, y, _ = tensors(any_device)
    for run in (lambda: axpy(x, out="X", threads=256, **AB), lambda: sums(x, y, 3)):
        result = [run() for _ in range(4)]
        assert len({id(each.buffer) for each in result}) == 4
        assert {(each.shape, each.dtype, each.device) for each in result} == {
            (x.shape, x.dtype, any_device)
        }
    for each in result:
        np.testing.assert_array_equal(each.numpy(), x.numpy() + 3 * y.numpy())


def test_memory_in_several_pieces(device, change_device):
    """The same view is in one piece of a tensor, or in several, which is known for each tensor."""
    axpy, sums = shader(device), kernel(device)
    x, y, z = whole = tensors(device)
    for _ in range(2):
        axpy(x, y, threads=256, **AB)
        sums(x, y, 3, out=z)
    change_device(max_range=512)
    pieces = tensors(device)
    assert [len(each.buffer.extents) for each in pieces] == [2] * 3
    for x, y, z in (pieces, whole, pieces):
        expected = x.numpy() * 2 + 100 * y.numpy() + 1
        change_device(max_range=1024)
        axpy(x, y, threads=256, **AB)
        change_device(max_range=512)
        np.testing.assert_array_equal(y.numpy(), expected)
        sums(x[2], y[3], 3, out=z[1])
        np.testing.assert_array_equal(z[1].numpy(), x[2].numpy() + 3 * y[3].numpy())
    with pytest.raises(vkops.InvalidDescError, match=r"in one piece on the device \[EW-07\]"):
        sums(*pieces[:2], 3, out=pieces[2])


@pytest.fixture
def apart(adapter, monkeypatch):
    """Two devices that do not share memory: the environment of Vulkan's layers has changed."""
    with vkops.Device(adapter.index) as one:
        monkeypatch.setenv(LAYERS, os.environ.get(LAYERS, "") + os.pathsep)
        with vkops.Device(adapter.index) as other:
            assert not one.shares_memory_with(other)
            yield one, other


def test_devices_that_share_no_memory(apart):
    axpy, sums = shader(apart[0]), kernel(None)
    expected = outcome(sums, apart[0], lambda k, x, y, z: k(x, y, 3, out=z).tolist())
    for home in (*apart, *apart):
        x, y, _ = tensors(home)
        for _ in range(2):
            assert sums(x, y, 3).device is home
        assert outcome(sums, home, lambda k, x, y, z: k(x, y, 3, out=z).tolist()) == expected
    assert len(sums._calls) == 4  # with an output, and without, on each device
    (x, y, _), theirs = tensors(apart[0]), tensors(apart[1])
    for _ in range(2):
        axpy(x, y, threads=256, **AB)
    for call in (
        lambda: axpy(x, theirs[1], threads=256, **AB),
        lambda: axpy(theirs[0], y, threads=256, **AB),
        lambda: sums(x, theirs[1], 3),
        lambda: sums(x, y, 3, out=theirs[2]),
        lambda: sums(x, y, 3, device=apart[1]),
    ):
        with pytest.raises(vkops.VkopsError, match=r"tensor.to\(device\) copies it \[B-02\]"):
            call()


def test_devices_that_share_memory(device, staged_device):
    sums = kernel(None)
    (x, y, z), theirs = tensors(device), tensors(staged_device)
    for _ in range(2):
        assert sums(x, y, 3).device is device
    assert sums(theirs[0], y, 3).device is staged_device
    assert sums(x, y, 3, device=staged_device).device is staged_device
    for array, tensor in ((x.numpy(), theirs[1]), (theirs[0], y.numpy())):
        assert sums(array, tensor, 3).device is staged_device
    assert sums(x.numpy(), y.numpy(), 3, device=staged_device).device is staged_device
    assert sums(x, theirs[1], 3, out=z).tolist() == (x.numpy() + 3 * y.numpy()).tolist()


@pytest.mark.parametrize("whose", ["the shader's", "the input's", "the output's"])
def test_closed_devices(adapter, whose):
    with vkops.Device(adapter.index) as one, vkops.Device(adapter.index) as other:
        mine = other if whose == "the shader's" else one
        axpy, sums = shader(mine), kernel(None)
        x, y, _ = tensors(one)
        if whose == "the input's":
            x = tensors(other)[0]
        if whose == "the output's":
            y = tensors(other)[1]
        for _ in range(3):
            axpy(x, y, threads=256, **AB)
            axpy.dispatch({"X": x, "Y": y}, 16, [2, 1])
            sums(x, x, 3, y, device=mine)
        other.close()
        for call in (
            lambda: axpy(x, y, threads=256, **AB),
            lambda: axpy.dispatch({"X": x, "Y": y}, 16, [2, 1]),
            lambda: sums(x, x, 3, y, device=mine),
        ):
            with pytest.raises(vkops.DeviceError, match="is closed"):
                call()


def test_a_kernel_does_not_keep_a_device(adapter):
    sums = kernel(None)
    device = vkops.Device(adapter.index)
    for _ in range(2):
        sums(*tensors(device)[:2], 3)
    axpy = shader(device)
    axpy(*tensors(device)[:2], threads=1, **AB)
    watched = ref(device)
    del device, axpy
    assert watched() is None


def test_prepared_calls_are_bounded(device):
    axpy, sums = shader(device), kernel(device)
    x = device.tensor(np.arange(2 * MAX_CALLS, dtype=np.uint32))
    y = device.tensor(np.zeros(2 * MAX_CALLS, np.uint32))
    for n in range(1, MAX_CALLS + 20):
        axpy(x[:n], y[:n], threads=n, **AB)
        sums(x[:n], y[:n], 3)
    for calls in (axpy._calls, sums._calls):
        assert 0 < len(calls) <= MAX_CALLS
    for cache in (axpy._arguments, axpy._group_counts, axpy._slots):
        assert cache.cache_info().maxsize == MAX_CALLS


def test_a_prepared_call_is_recorded(any_device):
    axpy, sums = shader(any_device), kernel(any_device)
    x, y, z = tensors(any_device)
    a, b = x.numpy().copy(), y.numpy().copy()
    for _ in range(2):
        axpy(x, y, threads=256, a=0, b=0)
        b = 100 * b
        sums(x, y, 3, out=z)
    with any_device.record() as program:
        axpy(x, y, threads=256, a=1, b=0)
        sums(x, y, 3, out=z)
    np.testing.assert_array_equal(y.numpy(), b)
    program.run()
    np.testing.assert_array_equal(y.numpy(), a + 100 * b)
    np.testing.assert_array_equal(z.numpy(), a + 3 * (a + 100 * b))


def test_threads_share_prepared_calls(any_device):
    axpy, sums = shader(any_device), kernel(any_device)

    def work(seed):
        x, y, z = tensors(any_device)
        a, b = x.numpy().copy(), y.numpy().copy()
        for number in range(60):
            row = (number + seed) % 4
            axpy(x[row], y[row], threads=64, a=seed, b=number)
            b[row] = seed * a[row] + 100 * b[row] + number
            sums(x[row], y, seed, out=z)
        np.testing.assert_array_equal(y.numpy(), b)
        np.testing.assert_array_equal(z.numpy(), a[row] + np.uint32(seed) * b)

    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(work, seed) for seed in range(1, 9)]:
            done.result()
