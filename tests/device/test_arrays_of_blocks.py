"""Arrays of blocks: lists of tensors, lengths that calls choose, indices out of bounds, limits, errors."""

from types import SimpleNamespace

import numpy as np
import pytest
from refusals import fault

from vkops import shaders
from vkops.errors import BindingError, InvalidDescError
from vkops.runtime import compiled_shader
from vkops.runtime.shader_checks import check_limits

pytestmark = [pytest.mark.features, pytest.mark.memory]

HEAD = """#version 450
#extension GL_EXT_nonuniform_qualifier : require
layout(local_size_x = 8) in;
layout(std430, binding = 0) buffer Y { uint y[]; };
layout(push_constant) uniform Push { int which; };
"""
FIXED = f"""{HEAD}
layout(std430, binding = 1) buffer X {{ uint x[]; }} xs[3];
layout(binding = 2) uniform Factors {{ uint factor; }} factors[2];
void main() {{
    uint i = gl_LocalInvocationIndex;
    y[i] = xs[0].x[i] + 10 * xs[which].x[i] * factors[which & 1].factor;
    if (which == 2) xs[2].x[i] = i;
}}"""
OPEN = f"""{HEAD}
layout(std430, set = 1, binding = 3) readonly buffer X {{ uint x[]; }} xs[];
void main() {{ uint i = gl_LocalInvocationIndex; y[i] = xs[nonuniformEXT((i + which) % 5)].x[i]; }}"""
CONSTANT = FIXED.replace("which]", "1]").replace("which & 1", "1")
ARRAYS = [np.arange(8, dtype=np.uint32) + 100 * n for n in range(7)]


@pytest.fixture
def y(device):
    return device.tensor(np.zeros(8, np.uint32))


def tensors(device, count):
    return [device.tensor(array) for array in ARRAYS[:count]]


@pytest.mark.parametrize("which", range(3))
def test_each_element_has_its_own_tensor(device, y, which):
    shader = device.compile_shader(FIXED, name="x")
    xs = tensors(device, 3)
    settings = [{"factor": 7}, device.tensor(np.full(4, 3, np.uint32))]
    shader(y, xs, settings, which=which, groups=1)
    expected = ARRAYS[0] + 10 * ARRAYS[which] * [7, 3, 7][which]
    np.testing.assert_array_equal(y.numpy(), expected)
    np.testing.assert_array_equal(xs[2].numpy(), np.arange(8) if which == 2 else ARRAYS[2])


def test_views_and_arrays_are_elements_as_they_are_of_other_blocks(device, y):
    wide = device.tensor(np.arange(16, dtype=np.uint32))
    shader = device.compile_shader(
        FIXED.replace("buffer X", "readonly buffer X").replace("if (which == 2)", "//")
    )
    shader.bound(
        {"Y": y, "X": [wide[::2], wide[8:], wide[::-2]], "factors": [[1], [1]]}, push_constants=[2]
    ).dispatch()
    values = np.arange(16)
    np.testing.assert_array_equal(y.numpy(), values[::2] + 10 * values[::-2])
    shader(y, (ARRAYS[1], ARRAYS[2], ARRAYS[3]), [(1,), (1,)], which=1, threads=8)
    np.testing.assert_array_equal(y.numpy(), ARRAYS[1] + 10 * ARRAYS[2])


def test_calls_choose_the_length_of_an_array_without_one(device, y):
    shader = device.compile_shader(OPEN, name="x")
    is_limited = device.info.type == "CPU" and not device.vulkan.validated
    for count in (5, 3, 5, 6) if is_limited else (5, 6, 5, 7):
        xs = tensors(device, count)
        shader(y, xs, which=1, threads=8)
        chosen = np.minimum(
            (np.arange(8) + 1) % 5, count - 1
        )  # beyond the last one, it is that one on a CPU
        np.testing.assert_array_equal(y.numpy(), np.stack(ARRAYS)[chosen, np.arange(8)])
    assert len(shader._pipelines) == 3


def test_pipelines_of_many_lengths_are_not_all_kept(device, y, monkeypatch):
    monkeypatch.setattr(compiled_shader, "MAX_PIPELINES", 2)
    shader = device.compile_shader(OPEN, name="x")
    for count in (5, 6, 7, 5, 8):
        xs = tensors(device, count)
        shader(y, xs, which=1, threads=8)
        chosen = (np.arange(8) + 1) % 5
        np.testing.assert_array_equal(y.numpy(), np.stack(ARRAYS)[chosen, np.arange(8)])
        assert 1 <= len(shader._pipelines) <= 2
        assert 1 <= len(shader._calls) <= 2


def test_two_arrays_whose_lengths_calls_choose(device, y):
    """Calls with as many tensors in all are different if these are divided in another way."""
    text = f"""{OPEN.partition("void main")[0]}
    layout(std430, set = 2, binding = 0) readonly buffer Z {{ uint z[]; }} zs[];
    void main() {{
        const uint i = gl_LocalInvocationIndex;
        y[i] = xs[nonuniformEXT(which)].x[i] + 1000 * zs[nonuniformEXT(1 - which)].z[i];
    }}"""
    shader = device.compile_shader(text)
    for which in (1, 0, 1):
        xs, zs = tensors(device, 1 + which), tensors(device, 2 - which)
        shader(y, xs, zs, which=which, groups=1)
        np.testing.assert_array_equal(y.numpy(), ARRAYS[which] + 1000 * ARRAYS[1 - which])


def test_sets_are_as_many_as_the_device_has(device, y):
    last = device.info.limits.max_bound_descriptor_sets - 1
    device.compile_shader(OPEN.replace("set = 1", f"set = {last}"))(
        y, tensors(device, 5), threads=8, which=0
    )
    i = np.arange(8)
    np.testing.assert_array_equal(y.numpy(), np.stack(ARRAYS)[i % 5, i])
    with pytest.raises(InvalidDescError, match=r"(set.* got|got set) .* \[SH-0[18]\]"):
        device.compile_shader(OPEN.replace("set = 1", f"set = {last + 1}"))


@pytest.mark.parametrize("which", [3, -1, 1 << 30])
def test_an_index_out_of_bounds_is_that_of_the_last_one(device, y, which):
    if device.info.type != "CPU" or device.vulkan.validated:
        return  # undefined in Vulkan, and the layer is to see it
    shader = device.compile_shader(FIXED)
    shader(y, tensors(device, 3), [[1], [1]], which=which, groups=1)
    np.testing.assert_array_equal(y.numpy(), ARRAYS[0] + 10 * ARRAYS[2])
    far = device.compile_shader(OPEN.replace("[i]", "[i + (1u << 28)]"))
    far(y, tensors(device, 3), which=which, groups=1)  # it changes nothing, or the last element
    np.testing.assert_array_equal(y.numpy()[:7], (ARRAYS[0] + 10 * ARRAYS[2])[:7])


def test_written_elements_are_ordered_and_recorded(device, y):
    shader = device.compile_shader(FIXED)
    xs = tensors(device, 3)
    with device.record() as recorded:
        shader(y, xs, [[1], [1]], which=2, groups=1)
        shader(xs[1], [y, y, xs[0]], [[1], [1]], which=0, groups=1)
    xs[2][...] = ARRAYS[4]
    recorded.run()
    np.testing.assert_array_equal(y.numpy(), ARRAYS[0] + 10 * ARRAYS[4])
    np.testing.assert_array_equal(xs[1].numpy(), 11 * (ARRAYS[0] + 10 * ARRAYS[4]))
    np.testing.assert_array_equal(xs[2].numpy(), np.arange(8))
    recorded.close()


@pytest.mark.parametrize(
    ("xs", "said"),
    [
        (lambda xs: xs[0], "x X [SH-04]"),
        (lambda xs: xs[:2], "x X [SH-04]"),
        (lambda xs: [], "x X [SH-04]"),
        (lambda xs: [*xs[:2], None], "x X[2] [B-02]"),
        (lambda xs: [*xs[:2], xs[2].view(np.float32)], "x X[2] [SH-11]"),
        (lambda xs: [xs[0], xs[0][::2], xs[0]], "x X[1] [SH-06]"),
    ],
    ids=["no list", "too few", "none", "not a tensor", "type", "shared bytes"],
)
def test_errors(device, y, xs, said, message):
    shader = device.compile_shader(CONSTANT, name="x")
    names = {"Y": y, "X": xs(tensors(device, 3)), "factors": [[1], [1]]}
    text = fault(lambda: shader.dispatch(names, push_constants=[0]), BindingError)
    message(text, *said.split())


def test_features_and_limits(device, message):
    dynamic = {"shaderStorageBufferArrayDynamicIndexing", "shaderUniformBufferArrayDynamicIndexing"}
    assert dynamic <= {*shaders.load(FIXED).needs}
    assert not dynamic & {*shaders.load(CONSTANT).needs}
    needs = {*shaders.load(OPEN).needs}
    assert {"runtimeDescriptorArray", "shaderStorageBufferArrayNonUniformIndexing"} <= needs
    small = SimpleNamespace(info=SimpleNamespace(limits=device.info.limits, label="'X'"))
    many = ((1, 3), 1 << 30)
    text = fault(lambda: check_limits(small, shaders.load(OPEN, name="x"), (many,)))
    most = device.info.limits.max_per_stage_descriptor_storage_buffers
    message(text.replace(f"must be {most} ", "must be N "), "storage blocks")
    two = FIXED.replace(
        "binding = 2) uniform Factors { uint factor; } factors[2]",
        "std430, binding = 1) buffer B { uint factor; } factors[2]",
    )
    message(fault(lambda: shaders.load(two, name="x")), "[SH-01]")
