"""Shaders on random views of all ranks and types, compared with NumPy; bytes around stay the same."""

import gc
import re
from random import Random

import numpy as np
import pytest

import vkops
from vkops.errors import BindingError, InvalidDescError

pytestmark = pytest.mark.memory

STORAGE = "#extension GL_EXT_shader_{}bit_storage : require\n"
ARITHMETIC = "#extension GL_EXT_shader_explicit_arithmetic_types : require\n"
TYPES = {
    **{name: f"{name}_t" for name in ("int8", "uint8", "int16", "uint16", "float16", "int64", "uint64")},
    "int32": "int", "uint32": "uint", "float32": "float", "float64": "double",
}  # fmt: skip
"""Types in GLSL, by NumPy's name."""

HEAD = f"#version 450\n{STORAGE.format(8)}{STORAGE.format(16)}{ARITHMETIC}"
TO = """layout(local_size_x = 16) in;
layout(std430, binding = 0) readonly buffer From {{ {0} from[]; }};
layout(std430, binding = 4) writeonly buffer To {{ {0} to[]; }};
void main() {{
    uint i = gl_GlobalInvocationID.x;
    if (i < from.length()) to[i] = from[i] + {0}(3);
}}"""
IN_PLACE = """layout(local_size_x = 16) in;
layout(std430, set = 1, binding = 2) buffer Data {{ {0} data[]; }};
void main() {{
    uint i = gl_GlobalInvocationID.x;
    if (i < data.length()) data[i] = data[i] + data[i];
}}"""
FOUR = """layout(local_size_x = 4) in;
layout(std140, binding = 0) uniform Four { uvec4 four; };
layout(std430, set = 1, binding = 0) writeonly buffer To { uint to[]; };
void main() { to[gl_GlobalInvocationID.x] = four[gl_LocalInvocationID.x]; }"""
COUNT = """layout(std430, binding = 0) buffer Data { uint data[]; };
void main() { atomicAdd(data[0], 1); }"""
COUNTS = """layout(std430, binding = 0) writeonly buffer Counts { uint counts[]; };
layout(push_constant) uniform Push { uint x, y, z; };
void main() { counts[0] = x; counts[1] = y; counts[2] = z; }"""


def compiled(device, text, *, glsl=None):
    return device.compile_shader(HEAD + (text.format(glsl) if glsl else text), name="x")


def some_view(random, array):
    """An index and an order of axes that select some elements of an array."""
    index = []
    for size in array.shape:
        start = random.randrange(size)
        step = random.choice((1, 1, 2, 3, -1, -2))
        index.append(slice(start, None, step))
    return tuple(index), random.sample(range(array.ndim), array.ndim)


def some_array(random, dtype, rank):
    shape = [random.randint(1, (200, 20, 8, 5, 4, 3)[rank - 1]) for _ in range(rank)]
    values = np.random.default_rng(random.randrange(1 << 30)).integers(0, 60, shape)
    return values.astype(dtype)


@pytest.mark.parametrize("count", [12, pytest.param(600, marks=pytest.mark.slow)])
@pytest.mark.features
@pytest.mark.parametrize("dtype", TYPES)
def test_random_views(any_device, dtype, count):
    device, random = any_device, Random(dtype)
    to, in_place = (compiled(device, text, glsl=TYPES[dtype]) for text in (TO, IN_PLACE))
    for number in range(count):
        x = some_array(random, dtype, number % 6 + 1)
        index, order = some_view(random, x)
        source = x[index].transpose(order)
        # The same elements in memory that is larger, and has others around them.
        shape = [2 * size + 3 for size in source.shape]
        y = np.full(shape, 77, dtype)
        place = tuple(slice(1, 1 + 2 * n, 2) for n in source.shape)
        if random.random() < 0.3:
            place = (*place[:-1], slice(1, 1 + source.shape[-1]))
        a, b = device.tensor(x), device.tensor(y)
        to(a[index].transpose(order), b[place], threads=source.size)
        y[place] = source + x.dtype.type(3)
        np.testing.assert_array_equal(b.numpy(), y, strict=True)
        np.testing.assert_array_equal(a.numpy(), x, strict=True)
        threads = random.randint(1, source.size)
        run = min(-(-threads // 16) * 16, source.size)
        in_place(a[index].transpose(order), threads=threads)
        changed = source.ravel().copy()
        changed[:run] += changed[:run]
        x[index].transpose(order)[...] = changed.reshape(source.shape)
        np.testing.assert_array_equal(a.numpy(), x, strict=True)


@pytest.mark.features
@pytest.mark.parametrize("dtype", TYPES)
def test_runs_at_any_offset_and_interleaved_views(any_device, dtype):
    """Where the driver does not allow the offset, a copy is bound."""
    shader = compiled(any_device, TO, glsl=TYPES[dtype])
    alignment = any_device.info.limits.min_storage_buffer_offset_alignment
    x = np.arange(40).astype(dtype)
    a = any_device.tensor(x)
    for start in range(17):
        for stop in (start + 1, start + 2, start + 7):
            b = any_device.tensor(np.full(40, 9, dtype))
            shader(a[start:stop], b[start:stop], groups=1)
            expected = np.full(40, 9, dtype)
            expected[start:stop] = x[start:stop] + x.dtype.type(3)
            np.testing.assert_array_equal(b.numpy(), expected, strict=True)
            copied = [0, 1] if start * x.itemsize % alignment else []
            assert [*shader._calls.values()][-1].copied == copied
    for step in (2, 3):  # interleaved with another view
        x = np.arange(60).astype(dtype)
        a = any_device.tensor(x)
        shader(a[::step], a[1::step], threads=60 // step)
        x[1::step] = x[::step] + x.dtype.type(3)
        np.testing.assert_array_equal(a.numpy(), x, strict=True)


def test_views_that_overlap_and_outputs_that_are_given(any_device):
    shader = compiled(any_device, TO, glsl="uint")
    x = any_device.tensor(np.arange(20, dtype=np.uint32))
    with pytest.raises(BindingError, match=r"shares bytes with From.*\[SH-06\]"):
        shader(x[::2], x[::4], threads=5)
    shader(x[1::2], x[1::2], threads=10)  # the same elements are one binding
    expected = np.arange(20)
    expected[1::2] += 3
    assert x.numpy().tolist() == expected.tolist()
    y = any_device.tensor(np.zeros(20, np.uint32))
    assert shader(x, groups=any_device.tensor(np.uint32([2, 1, 1])), out=y) is y
    np.testing.assert_array_equal(y.numpy(), x.numpy() + 3)
    assert shader(x[:0], y[:0], threads=0) is None
    assert repr(shader).startswith("<vkops.CompiledShader ")


def test_uniform_blocks(any_device):
    shader = compiled(any_device, FOUR)
    x = np.arange(32, dtype=np.uint32)
    tensor = any_device.tensor(x)
    values = [
        *((tensor[start : start + 4], x[start : start + 4]) for start in (0, 1, 4, 5, 8)),
        (tensor[::5][:4], x[::5][:4]),
        (tensor[7:3:-1], x[7:3:-1]),
        ((tensor, 16, 16), x[4:8]),
        (x[3:7], x[3:7]),
        ([1, 2, 3, 4], [1, 2, 3, 4]),
        ({"four": (5, 6, 7, 8)}, [5, 6, 7, 8]),
        (x[9:13].tobytes(), x[9:13]),
    ]
    for block, expected in values:
        result = shader(Four=block, out=(4,), groups=1)
        assert result.numpy().tolist() == list(expected)
        target = any_device.tensor(np.zeros((4, 3), np.uint32))
        shader(block, target[:, 1], groups=1)
        assert target.numpy()[:, 1].tolist() == list(expected)
        assert not target.numpy()[:, ::2].any()


def test_groups_from_a_tensor(any_device):
    count, counts = compiled(any_device, COUNT), compiled(any_device, COUNTS)
    total = any_device.tensor(np.zeros(1, np.uint32))
    groups = any_device.tensor(np.array([2, 3, 4, 1, 1, 5], np.uint32))
    for offset, expected in ((0, 24), (4, 12), (12, 5)):
        total.fill(0)
        count(total, groups=(groups, offset))
        assert int(total[0]) == expected
    total.fill(0)
    count(total, groups=(groups[3:], 0))
    counts(groups[2:5], x=2, y=2, z=2, groups=1)  # what an earlier dispatch writes
    count(total, groups=(groups, 8))
    bound = count.bound({"Data": total}, (groups, 8))
    counts(groups[2:5], x=1, y=1, z=9, groups=1)
    bound.dispatch()
    assert int(total[0]) == 5 + 8 + 9
    floats = any_device.tensor(np.ones(3, np.float32))
    for wrong, said in (
        ((groups, 2), "begin at byte 2 of the buffer, must begin at a multiple of 4"),
        ((groups, 16), "begin at byte 16 of 24, must have 12 bytes"),
        ((groups, -4), "begin at byte -4 of 24, must have 12 bytes"),
        ((groups[::2], 0), "are a view with gaps, must be contiguous"),
        ((total, 0), "begin at byte 0 of 4, must have 12 bytes"),
        ((floats, 0), "are float32, must be integers of 32 bits"),
    ):
        with pytest.raises(InvalidDescError, match=rf"groups: {said} \[SH-07\]"):
            count(total, groups=wrong)


@pytest.mark.parametrize("first", [62, 63])
def test_groups_on_the_border_of_two_ranges_of_memory(device, change_device, first):
    """They are read where they are, not behind the end of the first range."""
    change_device(max_range=256)
    count = compiled(device, COUNT)
    total = device.tensor(np.zeros(1, np.uint32))
    fillers = [device.tensor(np.full(64, 1000, np.uint32)) for _ in range(64)]
    del fillers[::2]  # so that free ranges are not side by side
    gc.collect()
    groups = device.tensor(np.zeros(128, np.uint32))
    one, two = groups.buffer.extents
    assert (one.resource, one.start + one.nbytes) != (two.resource, two.start)
    groups[first : first + 3] = np.array([2, 3, 4], np.uint32)
    count(total, groups=(groups, 4 * first))
    count(total, groups=groups[first : first + 3])
    assert int(total[0]) == 2 * 24
    bound = count.bound({"Data": total}, (groups, 4 * first))
    with device.record() as program:
        count(total, groups=(groups, 4 * first))
    groups[first + 2] = 5
    bound.dispatch()
    program.run()
    assert int(total[0]) == 2 * 24 + 2 * 30


ATOMIC = "layout(std430, binding = 0) buffer D {{ {0} d[]; }}; void main() {{ atomicAdd(d[0], {0}(1)); }}"
ATOMICS = {
    "int64": ("int64_t", "GL_EXT_shader_atomic_int64"),
    "float32": ("float", "GL_EXT_shader_atomic_float"),
}


@pytest.mark.features
@pytest.mark.parametrize("dtype", ATOMICS)
def test_atomics(any_device, dtype):
    glsl, extension = ATOMICS[dtype]
    shader = compiled(any_device, f"#extension {extension} : require\n{ATOMIC.format(glsl)}")
    x = any_device.tensor(np.array([5, 5, 5], dtype))
    shader(x[1:2], groups=50)
    assert x.numpy().tolist() == [5, 55, 5]


REFUSED = {
    "SH-11": [lambda s, x: s(x.view(np.float32), x, groups=1)],
    "SH-12": [
        lambda s, x: s(x[:0], x, groups=1),
        lambda s, x: s(np.zeros(4, np.uint32), np.zeros(4, np.uint32), groups=1),
        lambda s, x: s(x, out=np.zeros(8, np.uint32), groups=1),
    ],
    "B-21": [
        lambda s, x: s(x, vkops.broadcast_to(x[:1], (4,)), groups=1),
        lambda s, x: s((x[::2], 0, 4), x, groups=1),
    ],
    "SH-05": [
        lambda s, x: s((x[4:], 0, 32), x, groups=1),
        lambda s, x: s((x, 0, 6), x, groups=1),
        lambda s, x: s((x, 2, 4), x, groups=1),
    ],
    "B-04": [  # test_bindings.py has more
        lambda s, x: s((x, -4, 4), x, groups=1),
        lambda s, x: s((x, 0, 1 << 20000), x, groups=1),
    ],
    "B-02": [
        lambda s, x: s(x, 3, groups=1),
        lambda s, x: s.dispatch({"From": None, "To": x}),
        lambda s, x: s.dispatch({"From": np.zeros(4), "To": x}),
        lambda s, x: s((x, 0), x, groups=1),
    ],
    "SH-04": [
        lambda s, x: s(x, groups=1),
        lambda s, x: s(x, x, x, groups=1),
        lambda s, x: s(x, x, Other=x, groups=1),
        lambda s, x: s(x, out=["From", "From"], groups=1),
        lambda s, x: s(x, out="Nobody", groups=1),
        lambda s, x: s(x, out={"Nobody": 8}, groups=1),
        lambda s, x: s(From=x, To=x, out={"To": 8}, groups=1),
        lambda s, x: s(From=x, To=x, out={"4": 8}, groups=1),
        lambda s, x: s(x, out={1: 8}, groups=1),
        lambda s, x: s.dispatch([x, x]),
        lambda s, x: s.dispatch(None),
        lambda s, x: s.dispatch([("From", x)]),
    ],
    "ARRAY-06": [lambda s, x: s(x, out={"To": -1}, groups=1)],
    "T-02": [lambda s, x: s(x, out=(8, "no type"), groups=1)],
    "SH-07": [
        lambda s, x: s(x, x),
        lambda s, x: s(x, x, groups=1, threads=1),
        lambda s, x: s(x, x, threads=-1),
        lambda s, x: s(x, x, threads=float("nan")),
        lambda s, x: s(x, x, groups=(1, 2, 3, 4)),
        lambda s, x: s(x, x, groups=1 << 40),
        lambda s, x: s(x, x, groups=0),
        lambda s, x: s(x, x, groups=[]),
        lambda s, x: s(x, x, groups=np.array([0, 2])),
        lambda s, x: s(x, x, groups=[1.5]),
        lambda s, x: s(x, x, groups=["1"]),
        lambda s, x: s(x, x, groups="111"),
        lambda s, x: s.dispatch({"From": x, "To": x}, [1], threads=1),
    ],
}


@pytest.mark.parametrize(
    ("call", "rule"), [(call, rule) for rule, calls in REFUSED.items() for call in calls]
)
def test_refusals(device, call, rule, message):
    x = device.tensor(np.arange(8, dtype=np.uint32))
    with pytest.raises(vkops.VkopsError) as caught:
        call(compiled(device, TO, glsl="uint"), x)
    assert caught.value.rule == rule
    assert caught.value.operator == "x"
    limits = device.info.limits.max_compute_work_group_count
    text = re.sub(r"(?<=NumPy says: ).*(?= \[)", "...", str(caught.value))
    message(text, f"[{rule}]", device=device.info.label, most=limits[0])
    assert x.numpy().tolist() == list(range(8))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_other_data_types_can_be_converted_or_viewed_if_they_are_as_wide(device, dtype):
    x, shader = device.tensor(np.zeros(4, dtype)), compiled(device, TO, glsl="uint")
    with pytest.raises(vkops.BindingError, match=r"tensor.astype\(\) converts it") as caught:
        shader(x, out=4, groups=1)
    assert ("tensor.view()" in str(caught.value)) == (dtype == np.float32)


def test_structured_elements(device):
    text = """#version 450
    struct Point { float x, y; };
    layout(std430, binding = 0) buffer Points { Point points[]; };
    void main() { points[gl_WorkGroupID.x].y = 2.0 * points[gl_WorkGroupID.x].x; }"""
    points = np.zeros(3, [("x", "f4"), ("y", "f4")])
    points["x"] = [1, 2, 3]
    tensor = device.tensor(points)
    device.compile_shader(text)(tensor, groups=3)
    assert tensor.numpy()["y"].tolist() == [2, 4, 6]
