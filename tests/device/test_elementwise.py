"""Elementwise kernels on real drivers, against NumPy."""

from __future__ import annotations

import re
from contextlib import contextmanager
from math import prod

import numpy as np
import pytest
from fuzz import hostile
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_numbers import ALL, INTEGERS, same
from refusals import fault

import vkops
from vkops.elementwise import kernel as kernel_module
from vkops.errors import InvalidDescError, ShaderCompileError
from vkops.errors import InvalidDescOverflowError as TooLarge
from vkops.errors import InvalidDescTypeError as WrongKind
from vkops.gpu.run.vulkan_device import VulkanDevice

pytestmark = pytest.mark.features

AXPY = vkops.ElementwiseKernel("float32 a, T x, T y", "T z", "z = T(a) * x + y", "axpy")
COPY = vkops.ElementwiseKernel("T x", "T z", "z = x", "duplicate")
ADD = vkops.ElementwiseKernel("T x, T y", "T z", "z = x + y", "add")
RAW = vkops.ElementwiseKernel("T x", "raw T z", "z[i] = x", "raw")
NUMBERED = vkops.ElementwiseKernel("T x", "int32 z", "z = i * 1000 + n", "numbered")
FEATURES = {
    "int8": {"shaderInt8", "storageBuffer8BitAccess"},
    "int16": {"shaderInt16", "storageBuffer16BitAccess"},
    "int64": {"shaderInt64"},
    "float16": {"shaderFloat16", "storageBuffer16BitAccess"},
    "float64": {"shaderFloat64"},
}
FEATURES |= {f"u{name}": FEATURES[name] for name in ("int8", "int16", "int64")}


def random_array(shape, dtype, seed=0):
    random = np.random.default_rng(seed)
    return random.integers(0, 50, shape).astype(dtype)


# -- views -----------------------------------------------------------------------------------------


@st.composite
def views(draw, shape):
    """The shape of an array, and an index and an order of axes that make a view of a shape of it."""
    order = draw(st.permutations(range(len(shape))))
    whole, index = [], []
    for axis in order:
        n, step = shape[axis], draw(st.sampled_from([1, 1, 1, 2, 3, -1, -2]))
        before, after = draw(st.integers(0, 3)), draw(st.integers(0, 2))
        whole.append(before + max(0, n - 1) * abs(step) + 1 + after)
        first = before if step > 0 else before + (n - 1) * -step
        stop = first + n * step
        index.append(slice(first, None if stop < 0 else stop, step))
    back = tuple(np.argsort(order).tolist())
    return tuple(whole), tuple(index), back


@st.composite
def cases(draw):
    rank = draw(st.integers(0, 5))
    shape = tuple(draw(st.lists(st.integers(1, 6), min_size=rank, max_size=rank)))
    dropped = draw(st.integers(0, rank))
    thin = tuple(draw(st.sampled_from([1, n])) for n in shape[dropped:])
    return shape, draw(views(shape)), draw(views(thin)), draw(views(shape)), draw(st.booleans())


@settings(max_examples=100)
@given(case=cases(), dtype=st.sampled_from(["uint8", "int16", "float32", "int64"]))
def test_random_views(device, case, dtype):
    """Of one type of each size, for which addresses are computed; others are tested below."""
    if not device.features >= FEATURES.get(dtype, set()):
        return
    shape, *layouts, numbered = case
    wholes = [random_array(whole, dtype, seed) for seed, (whole, _, _) in enumerate(layouts)]
    x, _, z = wholes
    tensors = [device.tensor(whole) for whole in wholes]
    (xs, ys, zs), (xt, yt, zt) = (
        [w[(*index, ...)].transpose(back) for w, (_, index, back) in zip(ws, layouts, strict=True)]
        for ws in (wholes, tensors)
    )
    assert zs.shape == zt.shape == shape
    same(ADD(xt, yt), np.asarray(xs + ys))
    kernel = ADD if not numbered else vkops.ElementwiseKernel("T x, T y", "T z", "z = x + y + T(i)")
    kernel(xt, yt, out=zt)
    zs[...] = xs + ys + (np.arange(zs.size).reshape(shape).astype(dtype) if numbered else 0)
    np.testing.assert_array_equal(tensors[2].numpy(), z)  # with the elements around the view
    np.testing.assert_array_equal(tensors[0].numpy(), x)


@pytest.mark.parametrize("rank", [8, 17, 32])
def test_many_dimensions(any_device, rank):
    """Of 32 dimensions, some have size 1; dimensions that are reversed do not merge."""
    ones = (1,) * (8 * (rank // 32))
    shape = (*ones, *(2,) * (rank - 2 * len(ones)), *ones)
    array = random_array(shape, "int32")
    tensor = any_device.tensor(array)
    same(ADD(tensor.T, tensor), array.T + array)
    ADD(tensor, tensor[(slice(None, None, -1),) * rank], tensor.T)
    same(tensor.T, array + array[(slice(None, None, -1),) * rank])


def test_parameters_beyond_push_constants(any_device):
    """Twelve dimensions need more than 128 bytes."""
    array = random_array((2,) * 12, "float32")
    tensor = any_device.tensor(array)
    same(AXPY(3, tensor.transpose(*reversed(range(12))), tensor), 3 * array.T + array)
    assert "push_constant" not in AXPY.source


def test_contiguous_arrays_need_no_division(device):
    x = device.tensor(random_array((4, 6), "float32"))
    for views in ((x, x), (x[1:], x[:3]), (x, x[:1, :1])):
        ADD(*views)
        assert not re.search("_quotient|_stride|/|%", ADD.source.split("void main")[1])
    ADD(x.T, x.T, x.T)
    assert "_quotient" not in ADD.source
    ADD(x, x[:, ::-1])
    assert "_quotient" in ADD.source


def test_more_groups_than_one_axis_has(device):
    kernel = vkops.ElementwiseKernel("int32 x", "int32 z", "z = x == i ? n - i : -1")
    x = np.arange(65535 * 256 + 1, dtype=np.int32)
    same(kernel(device.tensor(x)), x[::-1] + 1)


# -- types -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ALL)
def test_every_type(any_device, dtype):
    array = random_array((5, 7), dtype)
    tensor = any_device.tensor(array)
    same(COPY(tensor), array)
    same(COPY(tensor[::-1, 1::2]), array[::-1, 1::2])
    same(COPY(array), array)
    declared = vkops.ElementwiseKernel(f"{dtype} x, bool b", f"{dtype} z", "z = b ? x : z")
    target = any_device.tensor(array[::-1])
    mask = array.astype(np.float64) > 20
    declared(tensor, any_device.tensor(mask), target)
    same(target, np.where(mask, array, array[::-1]))
    same(declared(array.flat[0], np.ones(3, bool), device=any_device), np.repeat(array.flat[0], 3))


@pytest.mark.parametrize(
    ("dtype", "values"),
    [
        ("bool", [True, False]),
        *[(name, [int(np.iinfo(name).min), int(np.iinfo(name).max)]) for name in INTEGERS],
        ("float16", [65504, -0.5, np.inf]),
        ("float32", [3.4e38, 1e-3, -np.inf, np.nan]),
        ("float64", [1.7e308, 0.1]),
    ],
)
def test_numbers_at_the_limits(device, dtype, values):
    other = vkops.ElementwiseKernel(f"int8 k, {dtype} x, int64 l, T y", f"{dtype} z", "z = x")
    for value in values:
        expected = np.asarray([value], dtype)
        same(other(1, value, 2, np.zeros(1, np.int16), device=device), expected)
        same(other(1, expected[0], 2, True, device=device), expected.reshape(()))


def test_types_of_numbers(device):
    x = device.tensor(np.ones(2, np.float16))
    assert ADD(x, 2).dtype == np.float16
    assert ADD(x, np.float16(2)).dtype == np.float16
    assert COPY(True, device=device).dtype == bool
    assert COPY(2, device=device).dtype == np.int64
    assert ADD(2, 2.5, device=device).numpy() == 4.5
    assert ADD(np.int8(2), 3, device=device).dtype == np.int8


def test_foreign_byte_order(device):
    array = random_array((3, 4), ">f4")
    same(ADD(array, device.tensor(array.astype("<f4"))), (array + array).astype("<f4"))
    tensor = device.tensor(array)
    text = fault(lambda: ADD(tensor, tensor))
    assert text.startswith("add x: has data type >f4, must be of the host's byte order and one of")


# -- shapes and outputs ----------------------------------------------------------------------------


def test_empty_arrays_run_nothing(device, monkeypatch):
    one = device.tensor(np.zeros(1, np.int16))
    monkeypatch.setattr(device.vulkan, "submit", None)
    for shape in ((0,), (3, 0, 2)):
        result = ADD(device.tensor(np.zeros(shape, np.int16)), one)
        assert (result.shape, result.dtype) == (shape, np.int16)


def test_arrays_without_dimensions(any_device):
    x = any_device.tensor(np.float32(3))
    same(AXPY(2, x, 1), np.asarray(7, np.float32))
    y = np.arange(3, dtype=np.float32)
    same(AXPY(2, x, any_device.tensor(y)), y + 6)


def test_in_place(any_device):
    array = random_array((4, 6), "float32")
    x = any_device.tensor(array)
    assert AXPY(2, x, x, x) is x
    same(x, array * 3)
    AXPY(1, x[::2], x[1::2], out=x[::2])
    array = array * 3
    array[::2] += array[1::2]
    same(x, array)


def test_outputs_that_overlap_inputs_in_another_order(any_device):
    array = random_array((5, 5), "int32")
    for change in (np.flipud, np.transpose, lambda a: a[:1], lambda a: a[::-1, ::-1].T):
        x = any_device.tensor(array)
        ADD(x, change(x), out=x)
        same(x, array + change(array))
    x = any_device.tensor(array)
    COPY(x[:-1], x[1:])
    same(x, np.concatenate([array[:1], array[:-1]]))


def test_interleaved_views_are_not_copied(device, monkeypatch):
    x = device.tensor(np.arange(12))
    monkeypatch.setattr(vkops.Tensor, "copy", None)
    ADD(x[::2], x[1::2], x[::2])
    ADD(x.reshape(3, 4)[:, :2], 1, x.reshape(3, 4)[:, 2:])
    assert x.tolist() == [1, 1, 2, 2, 9, 5, 10, 6, 17, 9, 18, 10]


def test_several_outputs(any_device):
    operation = "low = min(x, y); less = x < y"
    kernel = vkops.ElementwiseKernel("T x, T y", "T low, bool less", operation)
    x, y = random_array((3, 4), "int32", 1), random_array(4, "int32", 2)
    low, less = kernel(any_device.tensor(x), y)
    same(low, np.minimum(x, y))
    same(less, x < y)
    again = kernel(x, any_device.tensor(y), low.T.T, out=less)
    assert again[1] is less
    third = kernel(any_device.tensor(x), y, out=(low[::-1], less))
    assert isinstance(third, tuple)
    same(low, np.minimum(x, y)[::-1])
    text = fault(lambda: vkops.ElementwiseKernel("T x", "T a, T b", "a = b = x")(x, low, low))
    assert text == "kernel b: shares elements with a, must not [EW-08]"


def test_outputs_decide_shape_and_type(device):
    fill = vkops.ElementwiseKernel("float32 v", "T z", "z = T(v)", "fill")
    x = device.tensor(np.zeros((3, 2), np.int16))
    fill(7, x[:, 1])
    assert x.tolist() == [[0, 7], [0, 7], [0, 7]]
    assert fault(lambda: fill(7)) == (
        "fill z: has type T, which no input has: its tensor must be given [EW-04]"
    )


def test_raw_arrays(any_device):
    reverse = vkops.ElementwiseKernel("raw T x, int32 k", "T z", "z = x[n - 1 - i]", "reverse")
    array = random_array((4, 6), "float32")
    x = any_device.tensor(array)
    for change in (lambda a: a, lambda a: a[1:], lambda a: a.T, lambda a: a[:, ::-2]):
        changed = change(array)
        same(reverse(change(x), 0, size=changed.size), changed.reshape(-1)[::-1])
    reverse(x, 0, out=x.reshape(24))
    same(x, array[::-1, ::-1])
    assert fault(lambda: reverse(x, 0)).startswith("reverse size: got None, must be given if and")
    text = "reverse x: has no elements, must have some [EW-06]"
    assert fault(lambda: reverse(x[:0], np.zeros(2, np.int32))) == text
    unused = vkops.ElementwiseKernel("raw T x, T y", "T z", "z = y")
    same(unused(x, x[0]), x[0].numpy())


def test_index_and_size(any_device):
    x = any_device.tensor(np.zeros((3, 4), np.int8))
    expected = np.arange(12, dtype=np.int32).reshape(3, 4) * 1000 + 12
    same(NUMBERED(x), expected)
    z = any_device.tensor(np.zeros((4, 3), np.int32))
    NUMBERED(x, z.T[::-1])
    same(z.T[::-1], expected)


def test_preamble_and_statements(device):
    kernel = vkops.ElementwiseKernel(
        "T x", "T z",
        "T t = square(x);  // of the type\nif (x > T(2)) return;\nz = t // all",
        preamble="#define square(v) ((v) * (v))\nint unused(int v) { return v; }",
    )  # fmt: skip
    z = device.tensor(np.full(5, -1, np.int64))
    kernel(np.arange(5), z)
    assert z.tolist() == [0, 1, 4, -1, -1]


# -- running ---------------------------------------------------------------------------------------


def test_kernels_are_compiled_once_for_all_shapes(device, monkeypatch):
    kernel = vkops.ElementwiseKernel("T x, T y", "T z", "z = x + y")
    x = device.tensor(random_array((6, 8), "int32"))
    kernel(x, x)
    kernel(x[1:], x[:-1])
    kernel(x, x[:, ::-1])
    monkeypatch.setattr(kernel_module, "load", None)
    same(kernel(x[3:], x[3:]), 2 * x.numpy()[3:])
    same(kernel(x, x[:, :1]), x.numpy() + x.numpy()[:, :1])
    same(kernel(x[0], x[1]), x.numpy()[0] + x.numpy()[1])


def test_one_dispatch_and_no_wait(device, monkeypatch):
    x = device.tensor(random_array((6, 8), "float32"))
    y = device.tensor(random_array((4, 6), "float32"))
    before = device.vulkan.native.submitted
    monkeypatch.setattr(device.vulkan, "wait", None)
    z = AXPY(2, x.T[::2], y[::-1], x.T[1::2])
    AXPY(2, z, x[:1, :1], z)
    monkeypatch.undo()
    assert device.vulkan.native.submitted == before + 2


# -- errors ----------------------------------------------------------------------------------------


def test_invocations_depend_on_shapes_alone(device):
    """Numbers are no part of what a call is kept for: all that differ in them are one."""
    kernel = vkops.ElementwiseKernel("T x, raw T table, int32 count", "T y", "y = x + count")
    seen = []
    kernel._invocations = lambda *shapes: seen.append(shapes) or prod(shapes[1]["table"])
    x, table = device.tensor(np.ones((4, 1024), np.float32)), device.tensor(np.zeros(4096, "f4"))
    for count in (1, 4096, 1, np.int32(4096), np.int32(2), 4096):
        y = device.tensor(np.zeros((4, 1024), np.float32))
        kernel(x, table, count, y)
        same(y, 1 + np.full((4, 1024), count, np.float32))
    shapes = {"x": (4, 1024), "table": (4096,), "y": (4, 1024)}
    assert seen == [((4, 1024), shapes)] * 2  # for numbers of Python's and of NumPy's
    assert len(kernel._calls) == 2
    y = device.tensor(np.zeros((4, 1024), np.float32))
    kernel(x, table[:1], 1, y)  # too few invocations, as the function says
    assert not y.numpy().all()


def test_errors_of_the_compiler(device):
    x = device.tensor(np.ones(3, np.float32))

    def text(operation, preamble="", inputs="T x"):
        kernel = vkops.ElementwiseKernel(inputs, "T z", operation, "mine", preamble)
        return fault(lambda: kernel(x), ShaderCompileError)

    assert text("z = foo") == "mine:1: 'foo' : undeclared identifier, in 'z = foo'"
    assert text("T y = x;\nz = foo;\n").startswith("mine:2: 'foo'")
    assert text("z = x +").startswith("mine:1: ")
    assert text("x = z").startswith("mine:1: 'assign' :")
    assert text("{ z = x").startswith("mine:1: ")
    assert text("z = x;\n}\n{").startswith("mine:")
    assert text("z = x", "float f( { }").startswith("mine preamble:1: ")
    wrong_name = text("z = x", inputs="T devicecoherent")
    assert re.match(r"mine parameters:\d+: '.*' : syntax error", wrong_name)
    kernel = vkops.ElementwiseKernel("T x", "T z", "z = x", "mine")
    assert kernel.source == ""
    kernel(x)
    assert kernel.source.startswith("#version 450")


def test_features_that_the_device_lacks(device, change_device):
    lacking = device.features - {"shaderFloat64", "storageBuffer8BitAccess"}
    change_device(features=lacking)
    kernel = vkops.ElementwiseKernel("T x", "T z", "z = x", "mine")
    for dtype, feature in (("f8", "shaderFloat64"), ("i1", "storageBuffer8BitAccess")):
        text = fault(lambda dtype=dtype: kernel(device.tensor(np.ones(2, dtype))))
        assert re.fullmatch(rf"mine: needs .*{feature}.*, which '.*' does not have \[SH-02\]", text)


def test_same_bits_needs_modes_for_all_floats_of_the_device(device, monkeypatch, change_device):
    kernel, seen = vkops.ElementwiseKernel("T x", "T z", "z = x"), []

    @contextmanager
    def observer(_, bound):
        seen.append(bound.call.shader)
        yield

    monkeypatch.setattr(VulkanDevice, "observers", [observer])
    kernel(device.tensor(np.ones(2, np.float32)))
    (shader,) = seen
    modes = ("DenormPreserve", "SignedZeroInfNanPreserve", "RoundingModeRTE")
    names = {f"shader{mode}Float32" for mode in modes}
    assert names.intersection(shader.needs) == names & device.features
    widths = [32, *[n for n in (16, 64) if f"shaderFloat{n}" in device.features]]
    names = {f"shader{mode}Float{n}" for mode in modes for n in widths}
    assert device.same_bits == (names <= device.features)
    most = device.features | names | {"VK_KHR_shader_float_controls"}
    for left_out in ("", *sorted(names)):
        change_device(features=most - {left_out})
        assert device.same_bits == (left_out == "")


@pytest.mark.parametrize(
    ("call", "kind", "named"),
    [
        (lambda x: ADD(x), WrongKind, "add arguments [EW-02]"),
        (lambda x: ADD(x, x, x, out=x), WrongKind, "add arguments [EW-02]"),
        (lambda x: ADD(x, out=x), WrongKind, "add arguments [EW-02]"),
        (lambda x: ADD(x, ["a", 2]), WrongKind, "add y [EW-03]"),
        (lambda x: ADD(x.astype("i4"), [1.5, 2, 3]), WrongKind, "add y [EW-05]"),
        (lambda x: ADD(x.astype("u1"), [1, 2, 300]), TooLarge, "add y [EW-05]"),
        (lambda x: RAW(x), InvalidDescError, "raw z [EW-06]"),
        (lambda x: RAW(x, [1.0]), WrongKind, "raw z [EW-03]"),
        (lambda x: vkops.ElementwiseKernel("T x", "T y", "y = x", options="-DA"), WrongKind, "kernel options [EW-01]"),
        (lambda x: vkops.ElementwiseKernel("T x", "T y", "y = x", options=["-std=c++17"]), InvalidDescError, "kernel options [EW-01]"),
        (lambda x: vkops.ElementwiseKernel("T x", "T y", "y = x", no_return=2), WrongKind, "kernel no_return [EW-01]"),
        (lambda x: vkops.ElementwiseKernel("T x", "T y", "y = x", loop_prep=2), InvalidDescError, "loop_prep [EW-01]"),
        (lambda x: ADD(x, x, np.zeros(3, np.float32)), WrongKind, "add z [EW-03]"),
        (lambda x: ADD(x, x, vkops.broadcast_to(x[:1], (3,))), InvalidDescError, "add z [EW-03]"),
        (lambda x: ADD(x, x.astype("f8")), InvalidDescError, "add y [EW-04]"),
        (lambda x: ADD(np.float64(2), x), InvalidDescError, "add y [EW-04]"),
        (lambda x: AXPY(x.astype("f8"), x, x), InvalidDescError, "axpy a [EW-04]"),
        (lambda x: ADD(x, x, x.astype("f8")), InvalidDescError, "add z [EW-04]"),
        (lambda x: NUMBERED(x, x), InvalidDescError, "numbered z [EW-04]"),
        (lambda x: ADD(x.astype("i4"), 2.5), WrongKind, "add y [EW-05]"),
        (lambda x: ADD(x.astype("?"), 1), WrongKind, "add y [EW-05]"),
        (lambda x: ADD(x.astype("i1"), 128), TooLarge, "add y [EW-05]"),
        (lambda x: ADD(x.astype("u8"), -1), TooLarge, "add y [EW-05]"),
        (lambda x: ADD(x, 1e39), TooLarge, "add y [EW-05]"),
        (lambda x: ADD(x, 10**400), TooLarge, "add y [EW-05]"),
        (lambda x: ADD(x, x[:2]), InvalidDescError, "add arguments [EW-06]"),
        (lambda x: ADD(x, x, x.reshape(1, 3)), InvalidDescError, "add z [EW-06]"),
        (lambda x: ADD(x, x, size=3), InvalidDescError, "add size [EW-06]"),
        (lambda x: ADD(*np.broadcast_arrays(np.zeros((1 << 16, 1), "i1"), np.zeros(1 << 15, "i1"))),
         InvalidDescError, "add arguments [EW-07]"),
    ],
)  # fmt: skip
def test_errors(device, call, kind, named, message):
    x = device.tensor(np.ones(3, np.float32))
    message(fault(lambda: call(x), kind), *named.split())


def test_complex_numbers_are_refused(device):
    for value in (np.ones(2, complex), np.complex64(1), np.ones(2, "M8[s]"), np.array(["a"])):
        text = fault(lambda value=value: ADD(value, 1, device=device))
        assert text.startswith(f"add x: has data type {value.dtype}, must be of the host's byte")
    assert "EW-03" in fault(lambda: ADD(1j, 1, device=device), WrongKind)


def test_memory_of_the_host_is_refused(device):
    x = vkops.Tensor(device, (3,), np.dtype("f4"), on_host=True)
    text = r"add x: covers 12 bytes, must be at most \d+ in one piece on the device \[EW-07\]"
    assert re.fullmatch(text, fault(lambda: ADD(x, x)))


def test_tensors_of_several_pieces(device, change_device):
    """A view can be used if it is within one of the pieces, and of no more bytes than a binding has."""
    whole = device.tensor(np.ones(1024, np.float32))
    change_device(max_range=1024)
    array = np.arange(1024, dtype=np.float32)
    x = device.tensor(array)
    assert len(x.buffer.extents) == 4
    for part in (slice(0, 256), slice(300, 500, 7), slice(767, 511, -1)):
        same(ADD(x[part], 1), array[part] + 1)
    ADD(1, x[512:768], out=x[768:])
    same(x[700:], np.concatenate([array[700:768], array[512:768] + 1]))
    for call in (lambda: ADD(x[200:300], 1), lambda: ADD(whole, 1, out=whole)):
        assert "EW-07" in fault(call)
    same(ADD(whole[900:], whole[700:824]), np.full(124, 2, np.float32))


def test_released_tensors_are_refused(device):
    x = device.tensor(np.ones(3, np.float32))
    x.release()
    assert fault(lambda: ADD(x, x), vkops.DeviceError) == "the tensor (3,) float32 was released"


def test_arguments_of_any_kind(device):
    """They raise errors of vkops, or have a result."""
    x = device.tensor(np.ones(4, np.float32))
    calls = [
        lambda v: ADD(x, v),
        lambda v: ADD(v, v, device=device),
        lambda v: ADD(x, x, v),
        lambda v: ADD(x, x, out=v),
        lambda v: ADD(x, x, size=v),
        lambda v: vkops.ElementwiseKernel("raw T x", "T z", "z = x[0]")(x, size=v),
        lambda v: vkops.ElementwiseKernel("T x", "T z", v)(x),
        lambda v: vkops.ElementwiseKernel("T x", "T z", "z = x", preamble=v)(x),
        lambda v: ADD(x, x, device=v),
    ]
    for make in hostile.SINGLE:
        for call in calls:
            try:
                assert isinstance(call(make()), vkops.Tensor)
            except vkops.VkopsError as error:
                text = str(error)
                assert text.isprintable()
