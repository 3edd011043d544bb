"""Programs for PyDirectML, with one import changed."""

import numpy as np
import pytest
from refusals import fault

import vkops
import vkops.pydirectml as dml
from vkops.gpu.adapters import adapter

FLOAT, INT8 = dml.TensorDataType.FLOAT32, dml.TensorDataType.INT8
NONE, OWNED = dml.ExecutionFlags.NONE, dml.TensorFlags.OWNED_BY_DML


@pytest.fixture(scope="module")
def device():
    with dml.Device() as opened:
        yield opened


@pytest.fixture
def builder(device):
    return dml.GraphBuilder(device)


def data(*sizes, dtype=np.float32):
    return np.arange(np.prod(sizes), dtype=dtype).reshape(sizes)


def test_the_functions_of_pydirectml_that_move_data(device, builder):
    x = dml.input_tensor(builder, 0, dml.TensorDesc(FLOAT, [1, 2, 3, 4]))
    indices = dml.input_tensor(builder, 1, dml.TensorDesc(dml.TensorDataType.UINT32, [1, 1, 1, 2]))
    same = dml.activation_identity(x)
    outputs = [
        dml.padding(x, dml.PaddingMode.REFLECTION, 0, [0, 0, 1, 0], [0, 0, 0, 2]),
        dml.slice(x, [0, 0, 0, 0], [1, 2, 3, 4], [1, -1, 1, 2]),
        dml.join(input=[x, x], axis=1),
        dml.gather(x, indices, axis=3, index_dimensions=1),
        dml.up_sample_2d(x, dml.Size2D(3, 2), dml.InterpolationMode.NEAREST_NEIGHBOR),
        same,
        dml.reinterpret(same, dml.TensorDataType.INT32, [24], None),
        dml.activation_identity(dml.reinterpret(x, FLOAT, new_size=[4, 6], new_strides=[1, 4])),
        dml.activation_identity(
            dml.reinterpret(x, dml.TensorDataType.INT32, [24], new_strides=None)
        ),
    ]
    model = builder.build(NONE, outputs)
    assert isinstance(model, dml.Model)
    array = data(1, 2, 3, 4)
    bindings = [dml.Binding(indices, [3, 0]), dml.Binding(x, array)]  # in any order
    results = device.compute(model, bindings, outputs)
    expected = [
        np.pad(array, ((0, 0), (0, 0), (1, 0), (0, 2)), mode="reflect"),
        array[:, ::-1, :, ::2],
        np.concatenate([array, array], axis=1),
        array[..., [3, 0]],
        array.repeat(2, axis=2).repeat(3, axis=3),
        array,
        array.view(np.int32).reshape(24),
        array.reshape(6, 4).T,
        array.view(np.int32).reshape(24),
    ]
    for result, wanted in zip(results, expected, strict=True):
        np.testing.assert_array_equal(np.array(result), wanted)
        assert np.array(result).dtype == wanted.dtype
    again = device.compute(model, bindings, [outputs[5], outputs[1]])
    np.testing.assert_array_equal(np.array(again[0]), array)
    np.testing.assert_array_equal(np.array(again[1]), expected[1])


def test_outputs_have_the_order_of_their_dimensions(device, builder):
    """Whatever their layout: PyDirectML returns strided arrays."""
    desc = dml.TensorDesc(FLOAT, [1, 3, 2, 2], dml.TensorPolicy.interleaved_channel)
    assert desc.strides == (12, 1, 6, 3)
    x = dml.input_tensor(builder, 0, desc)
    whole = dml.reinterpret(dml.activation_identity(x), FLOAT, [2, 6], [1, 2])
    model = builder.build(NONE, [whole])
    nhwc = data(1, 2, 2, 3)
    (result,) = device.compute(model, [dml.Binding(x, nhwc)], [whole])
    nchw = nhwc.transpose(0, 3, 1, 2)
    np.testing.assert_array_equal(np.array(result), nchw.reshape(6, 2).T)


def test_owned_inputs_are_initialized_once_for_the_same_bindings(device, builder, monkeypatch):
    calls = []
    initialize = vkops.CompiledOperator.initialize
    monkeypatch.setattr(
        vkops.CompiledOperator, "initialize", lambda *args: (calls.append(1), initialize(*args))
    )
    x = dml.input_tensor(builder, 0, dml.TensorDesc(FLOAT, [2, 2]))
    w = dml.input_tensor(builder, 1, dml.TensorDesc(FLOAT, OWNED, [1, 2]))
    y = dml.join([x, w], 0)
    model = builder.build(NONE, [y])
    weights = dml.Binding(w, [7, 8])
    for value in (1, 2, 3):
        if value == 3:
            weights = dml.Binding(w, [9, 9])
        (result,) = device.compute(model, [dml.Binding(x, np.full((2, 2), value)), weights], [y])
        expected = [[value] * 2] * 2 + [[9, 9] if value == 3 else [7, 8]]
        np.testing.assert_array_equal(np.array(result), expected)
    assert len(calls) == 2


def test_models_are_initialized_again_with_the_flags_of_build(device, builder, monkeypatch):
    flags = []
    compile_graph = vkops.Device.compile_graph
    monkeypatch.setattr(
        vkops.Device,
        "compile_graph",
        lambda self, graph, given=NONE: (flags.append(given), compile_graph(self, graph, given))[1],
    )
    w = dml.input_tensor(builder, 0, dml.TensorDesc(FLOAT, OWNED, [2]))
    y = dml.activation_identity(w)
    volatile = dml.ExecutionFlags.DESCRIPTORS_VOLATILE
    model = builder.build(volatile, [y])
    for values in ([1, 2], [3, 4]):
        (result,) = device.compute(model, [dml.Binding(w, values)], [y])
        np.testing.assert_array_equal(np.array(result), values)
    assert flags == [volatile, volatile]


def test_building_models_leaves_the_builder_as_it_is(device, builder):
    desc = dml.TensorDesc(FLOAT, [1, 3, 2, 2], dml.TensorPolicy.interleaved_channel)
    x = dml.input_tensor(builder, 0, desc)
    strided = builder.identity(x, desc.strides)
    builder.output(strided)
    before = builder.desc()
    nhwc = data(1, 2, 2, 3)
    for _ in range(2):
        model = builder.build(NONE, [strided])
        assert builder.desc() == before
        (result,) = device.compute(model, [dml.Binding(x, nhwc)], [strided])
        np.testing.assert_array_equal(np.array(result), nhwc.transpose(0, 3, 1, 2))


def test_inputs_and_nodes_that_are_added_after_build(device, builder, message):
    desc = dml.TensorDesc(FLOAT, [2])
    x = dml.input_tensor(builder, 0, desc)
    joined = dml.join([x, x], 0)
    model = builder.build(NONE, [joined])
    added = dml.input_tensor(builder, 1, desc)
    both = dml.join([x, added], 0)
    given = dml.Binding(x, [1, 2])
    for inputs, outputs in (([given, dml.Binding(added, [3, 4])], [joined]), ([given], [both])):
        text = fault(lambda i=inputs, o=outputs: device.compute(model, i, o), vkops.BindingError)
        message(text, "GRAPH ", "[B-02]")
    (result,) = device.compute(model, [given], [joined])
    np.testing.assert_array_equal(np.array(result), [1, 2, 1, 2])


@pytest.mark.parametrize("name", ["FLOAT16", "INT8", "UINT16", "INT64", "FLOAT64"])
def test_data_types_are_kept(device, builder, name):
    kind = dml.TensorDataType[name]
    x = dml.input_tensor(builder, 0, dml.TensorDesc(kind, [3]))
    y = dml.slice(x, [0], [3], [-1])
    (result,) = device.compute(
        builder.build(NONE, [y]), [dml.Binding(x, data(3, dtype=name.lower()))], [y]
    )
    assert np.array(result).tolist() == [2, 1, 0]
    assert np.array(result).dtype == np.dtype(name.lower())


def test_arguments_of_tensor_descs():
    desc = dml.TensorDesc(FLOAT, [2, 3])
    assert (desc.sizes, desc.strides, desc.flags) == ((2, 3), None, dml.TensorFlags.NONE)
    assert dml.TensorDesc(FLOAT, OWNED, [2, 3]).flags is OWNED
    assert dml.TensorDesc(FLOAT, [2, 3], [1, 2]).strides == (1, 2)
    assert dml.TensorDesc(FLOAT, [2, 3], None).strides is None
    assert dml.TensorDesc(FLOAT, [2, 3], strides=[1, 2]).strides == (1, 2)
    policy = dml.TensorPolicy.interleaved_channel
    assert dml.TensorDesc(FLOAT, OWNED, [1, 2, 3], policy).strides == (6, 1, 2)
    named = dml.TensorDesc(data_type=FLOAT, sizes=[1, 2, 3], tensor_policy=policy)
    assert named == dml.TensorDesc(FLOAT, [1, 2, 3], policy)
    full = dml.TensorDesc(FLOAT, OWNED, [2, 3], [4, 1], 64, 16)
    assert full.total_tensor_size_in_bytes == 64
    assert full.guaranteed_base_offset_alignment == 16
    for args in [(FLOAT,), (FLOAT, OWNED), (FLOAT, [2], [1], 64, 16, 5)]:
        with pytest.raises(TypeError):
            dml.TensorDesc(*args)
    with pytest.raises(TypeError, match="or one of them twice"):
        dml.TensorDesc(FLOAT, [2], sizes=[2])
    with pytest.raises(vkops.InvalidDescTypeError, match=r"tensor_policy: got 3, .* \[T-07\]"):
        dml.TensorDesc(FLOAT, [2], tensor_policy=3)


def test_tensors_that_are_larger_than_their_elements(device, builder):
    x = dml.input_tensor(builder, 0, dml.TensorDesc(INT8, dml.TensorFlags.NONE, [3], None, 16, 0))
    y = dml.activation_identity(x)
    (result,) = device.compute(builder.build(NONE, [y]), [dml.Binding(x, [1, 2, 3])], [y])
    assert np.array(result).tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("kind", "values"),
    [("INT8", [200]), ("UINT32", [-1]), ("UINT8", [1.5]), ("FLOAT32", [1j]), ("INT64", [2**63]), ("FLOAT16", [1e6])],
)  # fmt: skip
def test_data_that_the_data_type_cannot_hold_are_refused(builder, kind, values):
    x = dml.input_tensor(builder, 0, dml.TensorDesc(dml.TensorDataType[kind], [1]))
    text = fault(lambda: dml.Binding(x, values), vkops.InvalidDescTypeError)
    assert f"must be numbers that {kind.lower()} can hold [T-02]" in text


def refused(device, call):
    builder = dml.GraphBuilder(device)
    x = dml.input_tensor(builder, 0, dml.TensorDesc(FLOAT, [2]))
    y = dml.activation_identity(x)
    return call(builder, x, y, builder.build(NONE, [y]), dml.Binding(x, [1, 2]))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda d, b, x, y, m, given: d.compute(m, [], [y]),
         "GRAPH inputs[0]: has no binding [B-01]"),
        (lambda d, b, x, y, m, given: d.compute(m, [given, given], [y]),
         "GRAPH inputs[1]: binds input 0, which is bound before [B-02]"),
        (lambda d, b, x, y, m, given: d.compute(m, [dml.Binding(y, [1, 2])], [y]),
         "GRAPH inputs[0]: is not bound to an input of the model's graph [B-02]"),
        (lambda d, b, x, y, m, given: d.compute(m, [given], [x]),
         "GRAPH outputs[0]: is not an output that the model was built with [B-02]"),
        (lambda d, b, x, y, m, given: d.compute(m, [[1, 2]], [y]),
         "GRAPH inputs[0]: got [1, 2], must be a Binding [B-02]"),
        (lambda d, b, x, y, m, given: d.compute(m, given, [y]), "must be a sequence of bindings"),
        (lambda d, b, x, y, m, given: d.compute(m, [given], y), "must be a sequence of expressions"),
        (lambda d, b, x, y, m, given: d.compute(b, [given], [y]), "model: got "),
        (lambda d, b, x, y, m, given: b.build(NONE, [x]), "use identity [G-05]"),
        (lambda d, b, x, y, m, given: b.build(NONE, []), "[G-02]"),
        (lambda d, b, x, y, m, given: b.build(9, [y]), "[DEV-10]"),
        (lambda d, b, x, y, m, given: dml.Binding(x, [1, 2, 3]),
         "data: got 3 elements, must be 2, as the tensor has [T-12]"),
        (lambda d, b, x, y, m, given: dml.Binding(x, ["a", "b"]),
         "data: got ['a', 'b'], must be numbers that float32 can hold [T-02]"),
        (lambda d, b, x, y, m, given: dml.Binding(1, [1]), "expr: got 1, must be an Expression"),
        (lambda d, b, x, y, m, given: dml.GraphBuilder("gpu"), "device: got 'gpu', must be a"),
        (lambda d, b, x, y, m, given: x + 1.0, "+ is not available"),
    ],
)  # fmt: skip
def test_what_is_refused(device, call, message):
    with pytest.raises(vkops.VkopsError) as caught:
        refused(device, lambda *args: call(device, *args))
    assert message in str(caught.value)


def test_a_model_of_another_device_is_refused(device):
    with (
        dml.Device() as other,
        pytest.raises(vkops.InvalidDescTypeError, match=r"model: got .*\[B-02\]"),
    ):
        refused(device, lambda builder, x, y, model, given: other.compute(model, [given], [y]))


def test_devices_that_run_on_the_cpu(monkeypatch):
    if any(info.type == "CPU" for info in vkops.devices()):
        with dml.Device(use_gpu=False) as cpu:
            assert cpu.info.type == "CPU"
    monkeypatch.setattr(vkops, "devices", list)
    text = fault(lambda: dml.Device(False), vkops.DeviceError)
    assert text == "no adapter runs on the CPU; available: none"
    with pytest.raises(vkops.InvalidDescTypeError, match=r"use_gpu: got 0, .*\[DEV-14\]"):
        dml.Device(0)


def test_the_best_adapter_is_the_default(device):
    assert device.name == adapter.select(None).name


def test_missing_names_say_that_they_compute():
    text = fault(lambda: dml.convolution, AttributeError)
    assert text.endswith("'convolution': vkops only moves data")
    text = fault(lambda: dml.nothing, AttributeError)
    assert text == "module 'vkops.pydirectml' has no attribute 'nothing'"
