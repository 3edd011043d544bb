"""Devices of one adapter share Vulkan's device and queue: what belongs to one, all can use."""

import gc
import json
import pickle
from itertools import permutations
from weakref import ref

import numpy as np
import onnx
import pytest
from adapters import offer_also
from compiled_operators import identity
from processes import python

import vkops
from vkops.onnx import Model, Session

pytestmark = pytest.mark.memory

MIB = 1 << 20
X = np.arange(24, dtype=np.int32).reshape(4, 6)


@pytest.fixture
def devices(adapter):
    """Three devices of one adapter, one of which moves data through staging memory."""
    with (
        vkops.Device(adapter.index) as one,
        vkops.Device(adapter.index, "5_0") as other,
        vkops.Device(adapter.index, staged=True) as staged,
    ):
        yield one, other, staged


def concat(tensors):
    return vkops.concat(tensors, axis=1).numpy()


def test_functions_take_tensors_of_all(devices):
    for chosen in permutations(devices):
        tensors = [device.tensor(X + i) for i, device in enumerate(chosen)]
        tensors[1] = vkops.flip(tensors[1])
        expected = np.concatenate([X, np.flip(X + 1), X + 2], axis=1)
        np.testing.assert_array_equal(concat(tensors), expected)
        assert vkops.concat(tensors).device is chosen[0]


def test_operators_take_buffers_of_all(devices):
    for mine, source, target in permutations(devices):
        out = target.buffer(X.nbytes)
        identity(mine, *X.shape).dispatch([source.tensor(X)], [out], wait=False)
        assert out.read() == X.tobytes()


def test_sessions_shaders_and_unpickled_tensors_mix(devices, adapter, monkeypatch):
    one, other, _ = devices
    text = """<ir_version: 8, opset_import: ["" : 13]>
    g (int32[N, M] x) => (int32[P, Q] y) { y = Concat <axis = 0> (x, x) }"""
    (y,) = Session(Model(onnx.parser.parse_model(text)), one).run({"x": other.tensor(X)})
    np.testing.assert_array_equal(y.numpy(), np.concatenate([X, X]))
    shader = one.compile_shader(
        "#version 450\nlayout(std430, binding = 0) buffer B { uint b[]; };\nvoid main() { b[0] = 7; }"
    )
    buffer = other.buffer(16)
    shader.dispatch({"B": buffer})
    assert buffer.read(0, 4) == b"\7\0\0\0"
    monkeypatch.setenv("VKOPS_EXPECT", adapter.name)
    code = (
        "import pickle, sys, numpy as np, vkops\n"
        "mine = vkops.Device(int(sys.argv[1])).tensor([1, 2])\n"
        "theirs = pickle.loads(pickle.dumps(mine))\n"
        "print(theirs.device is mine.device, vkops.concat([mine, theirs]).numpy().tolist())\n"
    )
    if len(vkops.devices()) == 1:  # the default device is of this adapter then
        assert python("-c", code, adapter.index) == "False [1, 2, 1, 2]\n"
    assert pickle.loads(pickle.dumps(one.tensor(X))).numpy().tolist() == X.tolist()


def test_one_that_is_closed_leaves_the_others_alone(adapter):
    with vkops.Device(adapter.index) as one:
        other = vkops.Device(adapter.index)
        mine, theirs = one.tensor(X), other.tensor(X)
        both = concat([mine, theirs])
        before = one.memory_report()
        other.close()
        assert one.memory_report() == before
        for use in (theirs.numpy, lambda: concat([mine, theirs]), lambda: concat([theirs, mine])):
            with pytest.raises(vkops.DeviceError, match=r"^the device '.*' is closed$"):
                use()
        np.testing.assert_array_equal(concat([mine, mine]), both)


@pytest.mark.usefixtures("shared_memory")
def test_memory_of_a_device_that_died_is_given_back(adapter):
    """Also what the other device's recorded kernels are bound to."""
    with vkops.Device(adapter.index) as one:
        for close in (True, False):
            other = vkops.Device(adapter.index)
            concat([one.tensor(X), other.tensor(X)])
            memory = ref(other.pool.heaps[0])
            if close:
                other.close()
            del other
            gc.collect()
            concat([one.tensor(X), one.tensor(X)])
            assert memory() is None


def test_to_copies_to_another_device(devices):
    one, other, staged = devices
    tensor = one.tensor(X)
    for view in (tensor, tensor.T[::-1], tensor[:0]):
        assert view.to(one) is view
        for device in (other, staged):
            moved = view.to(device)
            assert moved.device is device
            np.testing.assert_array_equal(moved.numpy(), view.numpy())
    with pytest.raises(TypeError, match=r"^device: got None, must be a Device, the index of an"):
        tensor.to(None)


def test_devices_by_index_and_name(adapter):
    """Each adapter that is named is opened once; its name is that of an existing one."""
    named = vkops.roll([1, 2], 1, device=adapter.index).device
    assert named.info == adapter
    assert vkops.flip([1], device=adapter.name).device is named
    tensor = vkops.Device(adapter.index).tensor([1, 2])
    assert tensor.to(adapter.index).device is named
    with pytest.raises(vkops.DeviceError, match=r"^no adapter whose name contains 'no such'; "):
        vkops.flip([1], device="no such")
    with pytest.raises(vkops.DeviceError, match=r"^no adapter with index 99; "):
        tensor.to(99)


# -- several adapters ------------------------------------------------------------------------------

TWO_ADAPTERS = """
import json, sys
import numpy as np, vkops
from vkops import dml
one, other = map(vkops.Device, sys.argv[1:])
x, y = one.tensor([1, 2]), other.tensor([3, 4])
desc = dml.BufferTensorDesc(dml.TensorDataType.INT64, [2])
operator = one.compile_operator(
    one.create_operator(dml.ElementWiseIdentityOperatorDesc(desc, desc))
)
said = []
for use in (
    lambda: vkops.concat([x, y]),
    lambda: vkops.flip(y, device=one),
    lambda: vkops.take(x, y),
    lambda: x[y],
    lambda: vkops.roll(y, 1, device=one.name),
    lambda: x.__setitem__(..., y),
    lambda: x.fill(y[0]),
    lambda: operator.dispatch([y], [one.buffer(16)]),
):
    try:
        use()
    except vkops.VkopsError as error:
        said.append(str(error))
moved = vkops.concat([x, y.to(one.name)]).numpy().tolist()
print(json.dumps([one.name, other.name, said, moved]))
"""


def test_different_adapters_do_not_mix_and_the_error_names_both(adapter, monkeypatch):
    against = "llvmpipe" if "SwiftShader" in adapter.name else "SwiftShader"
    offer_also(against, monkeypatch)
    mine, theirs, said, moved = json.loads(python("-c", TWO_ADAPTERS, adapter.name, against))
    one = f"<vkops.Device '{mine}' at feature level 6_4>"
    other = f"<vkops.Device '{theirs}' at feature level 6_4>"
    assert said == [
        f"CONCAT tensors[1]: is on {other}, must be on {one}; tensor.to(device) copies it [B-02]",
        f"FLIP x: is on {other}, must be on {one}; tensor.to(device) copies it [B-02]",
        f"TAKE indices: is on {other}, must be on {one}; tensor.to(device) copies it [B-02]",
        f"index: is on {other}, must be on {one}; tensor.to(device) copies it [B-02]",
        f"ROLL tensors[0]: is on {other}, must be on {one}; tensor.to(device) copies it [B-02]",
        f"ASSIGNMENT value: is on {other}, must be on {one}; tensor.to(device) copies it [B-02]",
        f"FILL value: is on {other}, must be on {one}; tensor.to(device) copies it [B-02]",
        f"ELEMENT_WISE_IDENTITY input_tensor: is <vkops.Buffer of 16 bytes on '{theirs}'>, must be "
        f"on '{mine}'; tensor.to(device) copies it [B-02]",
    ]
    assert moved == [1, 2, 3, 4]
