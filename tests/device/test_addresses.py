"""Buffer references: tensors as addresses, their order and their lifetime, errors, untrusted models."""

import gc
import json

import numpy as np
import pytest
from refusals import fault

import vkops
from vkops import shaders
from vkops.dxdispatch import load_model
from vkops.errors import BindingError, DeviceError, ModelError

pytestmark = [pytest.mark.features, pytest.mark.memory]

HEAD = """#version 450
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
layout(local_size_x = 8) in;
layout(buffer_reference, std430, buffer_reference_align = 4) buffer Numbers { uint x[]; };
"""
AXPY = f"""{HEAD}
layout(push_constant) uniform Push {{ Numbers source; Numbers target; uint a; }};
void main() {{ uint i = gl_GlobalInvocationID.x; target.x[i] += a * source.x[i]; }}"""
UNIFORM = f"""{HEAD}
struct Pair {{ Numbers one; Numbers other; }};
layout(binding = 0) uniform Settings {{ uint a; Pair pair; Numbers more[2]; }};
layout(std430, binding = 1) buffer Y {{ uint y[]; }};
void main() {{
    uint i = gl_GlobalInvocationID.x;
    y[i] = a * pair.one.x[i] + 10 * pair.other.x[i] + 100 * more[0].x[i] + 1000 * more[1].x[i];
}}"""
TABLE = f"""{HEAD}
layout(std430, binding = 0) readonly buffer Table {{ uint64_t addresses[]; }};
layout(push_constant) uniform Push {{ uint64_t target; }};
void main() {{
    uint i = gl_GlobalInvocationID.x, sum = 0;
    for (uint n = 0; n < addresses.length(); n++) sum += Numbers(addresses[n]).x[i];
    Numbers(target).x[i] = sum;
}}"""
X = np.arange(1, 9, dtype=np.uint32)


def tensors(device, count):
    return [device.tensor(X * 10**n) for n in range(count)]


def test_push_constants_take_tensors_and_views(device):
    shader = device.compile_shader(AXPY, name="x")
    wide, y = device.tensor(np.arange(32, dtype=np.uint32)), device.tensor(X)
    for _ in range(3):
        shader(source=wide[8:16], target=y, a=2, threads=8)
    shader.dispatch({}, push_constants=[y, wide[24:], 3], threads=8)
    expected = X + 6 * np.arange(8, 16, dtype=np.uint32)
    np.testing.assert_array_equal(y.numpy(), expected)
    np.testing.assert_array_equal(wide.numpy(), [*range(24), *(np.arange(24, 32) + 3 * expected)])
    one = device.tensor(np.array([5], np.uint32))  # its element could be taken for the number
    with_one = HEAD + "layout(push_constant) uniform P { Numbers p; }; void main() { p.x[0] = 7; }"
    device.compile_shader(with_one)(p=one, groups=1)
    assert one.numpy().tolist() == [7]


def test_members_of_uniform_blocks_take_tensors(device):
    shader = device.compile_shader(UNIFORM)  # refused where there are no addresses
    a, b, c, d = tensors(device, 4)
    y = device.tensor(np.zeros(8, np.uint32))
    settings = {"a": 3, "pair": {"one": a, "other": b}, "more": [c, d.device_address]}
    shader(settings, y, threads=8)
    np.testing.assert_array_equal(y.numpy(), X * (3 + 10 * 10 + 100 * 100 + 1000 * 1000))


def test_numbers_are_addresses_of_tensors_that_gave_them_out(device):
    shader = device.compile_shader(TABLE)
    sources = tensors(device, 3)
    table = device.tensor(np.array([each.device_address for each in sources], np.uint64))
    assert sources[0][3:].device_address == sources[0].device_address + 12
    y = device.tensor(np.zeros(8, np.uint32))
    bound = shader.bound({"Table": table}, push_constants=[y.device_address], threads=8)
    for n in range(3):
        sources[n][...] = 0  # ordered before what reads it without a binding
        bound.dispatch()
        np.testing.assert_array_equal(y.numpy(), X * (111 - int("1" * (n + 1))))


def test_memory_stays_where_it_is_while_its_address_is_known(device):
    device.compile_shader(TABLE)
    (x,) = tensors(device, 1)
    shown = x.numpy()
    address = x.device_address  # moves it, as ``shown`` must not change
    before = x.numpy()
    x[...] = 5
    assert x.device_address == address
    assert (shown.tolist(), before.tolist(), x.numpy().tolist()) == (
        X.tolist(),
        X.tolist(),
        [5] * 8,
    )
    assert x.copy().device_address != address


def test_memory_that_a_submission_uses_can_be_freed(device):
    shader, y = device.compile_shader(AXPY), device.tensor(np.zeros(8, np.uint32))
    for n in range(20):
        shader(source=device.tensor(X + n), target=y, a=1, threads=8)
    np.testing.assert_array_equal(y.numpy(), 20 * X + sum(range(20)))
    with device.record() as recorded:
        shader(source=device.tensor(X), target=y, a=1, threads=8)
    bound = shader.bound({}, push_constants=[device.tensor(X), y, 1], threads=8)
    gc.collect()
    others = [device.tensor(np.zeros(8, np.uint32)) for _ in range(20)]
    recorded.run()
    bound.dispatch()
    np.testing.assert_array_equal(y.numpy(), 22 * X + sum(range(20)))
    assert not np.any([each.numpy() for each in others])
    recorded.close()
    (x,) = tensors(device, 1)
    count = len(device.vulkan.addressed)
    assert x.device_address
    assert len(device.vulkan.addressed) == count + 1
    x.release()
    assert len(device.vulkan.addressed) == count


@pytest.mark.parametrize("wrong", ["strided", "read-only", "empty", "host", "released"])
def test_errors(device, wrong, message):
    x = device.tensor(np.zeros((4, 8), np.uint32))
    bad = {
        "strided": lambda: x[:, 1], "read-only": lambda: vkops.broadcast_to(x[0], (8,)), "empty": lambda: x[:0],
        "host": lambda: vkops.Tensor.from_array(device, X, on_host=True), "released": lambda: x,
    }[wrong]()  # fmt: skip
    if wrong == "released":
        x.release()
    with pytest.raises((BindingError, DeviceError)) as caught:
        bad.device_address  # noqa: B018
    message(caught.value)


def test_errors_name_the_argument(device):
    shader, settings = (
        device.compile_shader(AXPY, name="x"),
        device.compile_shader(UNIFORM, name="x"),
    )
    x, wide = device.tensor(X), device.tensor(np.zeros((4, 8), np.uint32))
    with pytest.raises(BindingError, match=r"^x push_constants\.source: is a view .* \[SH-12\]$"):
        shader(source=wide[:, 1], target=x, a=1, threads=8)
    values = {"a": 1, "pair": {"one": x, "other": x}, "more": [x, wide[:, 1]]}
    with pytest.raises(BindingError, match=r"^x Settings\.more\[1\]: is a view"):
        settings(values, x, threads=8)


def test_what_does_not_support_them_says_so(device, tmp_path, message):
    assert "bufferDeviceAddress" in shaders.load(AXPY).needs
    (tmp_path / "a.comp").write_text(AXPY)
    pushed = [{"name": name, "type": "UINT64", "value": 0} for name in ("source", "target")]
    pushed += [{"name": "a", "type": "UINT32", "value": 1}]
    model = {
        "resources": {}, "commands": [],
        "dispatchables": {"a": {"type": "glsl", "sourcePath": "a.comp", "pushConstants": pushed}},
    }  # fmt: skip
    (tmp_path / "m.json").write_text(json.dumps(model))
    message(fault(lambda: load_model(tmp_path / "m.json"), ModelError), folder=tmp_path)
    load_model(tmp_path / "m.json", allow_paths=True)
