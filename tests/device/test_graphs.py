"""Compiled graphs on the device: bound, dispatched and read back like operators."""

import numpy as np
import pytest
from adapters import memory_used
from arrays import Counter
from refusals import fault

from vkops import BindingError, InvalidDescTypeError, dml
from vkops.dml import BufferTensorDesc, ExecutionFlags, Graph, TensorDataType, TensorFlags
from vkops.errors import FeatureLevelError

F32, U8 = TensorDataType.FLOAT32, TensorDataType.UINT8


def tensor(*sizes, kind=F32, **more):
    return BufferTensorDesc(kind, sizes, **more)


def swapped():
    """The halves of a 6 x 8 table change places."""
    graph = Graph()
    x = graph.input(tensor(6, 8))
    left, right = graph.split(x, 1, [3, 5])
    graph.output(graph.join([right, left], 1))
    return graph


def test_a_graph_is_an_ordinary_operator(device):
    x = np.arange(48, dtype=np.float32).reshape(6, 8)
    compiled = device.compile_graph(swapped(), ExecutionFlags.DISABLE_META_COMMANDS)
    out = device.buffer(192)
    compiled.dispatch([device.tensor(x)], [out])
    got = np.frombuffer(out.read(), np.float32).reshape(6, 8)
    np.testing.assert_array_equal(got, np.concatenate([x[:, 3:], x[:, :3]], axis=1))
    assert compiled.binding_properties.temporary_resource_size == 0
    assert [len(output.regions) for output in compiled.plan.outputs] == [2]
    with pytest.raises(BindingError, match=r"GRAPH outputs\[0\]: .* must be at least 192 \[B-06\]"):
        compiled.dispatch([device.tensor(x)], [device.buffer(188)])
    with pytest.raises(BindingError, match=r"GRAPH outputs\[0\]: shares bytes .* \[B-09\]"):
        compiled.dispatch([out], [out])


def test_a_graph_is_one_dispatch_without_memory_between(device):
    graph = Graph()
    y = graph.input(tensor(64, 64))
    for _ in range(20):
        parts = graph.split(y, 0, [16, 48])
        y = graph.identity(graph.reinterpret(graph.join(parts[::-1], 0), strides=[1, 64]))
    graph.output(y)
    compiled = device.compile_graph(graph)
    x = device.tensor(np.random.default_rng(0).random((64, 64), np.float32))
    out = device.buffer(64 * 64 * 4)
    before = memory_used(device)
    bound = compiled.bind([x], [out])
    assert memory_used(device) <= before
    with Counter(device) as counter:
        bound.dispatch()
    assert counter.count == 1
    expected = x.numpy()
    for _ in range(20):
        expected = np.roll(expected, -16, axis=0).T
    np.testing.assert_array_equal(np.frombuffer(out.read(), np.float32).reshape(64, 64), expected)


def test_regions_that_explode_take_a_step_between(device):
    """Columns are interleaved again and again: more submissions, the same result."""
    graph = Graph()
    n = 1 << 12
    y = graph.input(tensor(n, kind=U8))
    for _ in range(12):
        turned = graph.slice1(y, [0], [n], [-1])
        pair = [
            graph.reinterpret(graph.slice1(z, [0], [n // 2], [1]), sizes=[n // 2, 1])
            for z in (turned, y)
        ]
        y = graph.reinterpret(graph.join(pair, 1), sizes=[n])
    graph.output(graph.identity(y))
    compiled = device.compile_graph(graph)
    assert 1 < len(compiled.pipeline.steps) < 12
    assert compiled.binding_properties.temporary_resource_size > 0
    x = np.random.default_rng(0).integers(0, 256, n, np.uint8)
    out = device.buffer(n)
    compiled.dispatch([device.tensor(x)], [out])
    expected = x
    for _ in range(12):
        expected = np.stack([expected[::-1][: n // 2], expected[: n // 2]], axis=1).reshape(-1)
    np.testing.assert_array_equal(np.frombuffer(out.read(), np.uint8), expected)
    # The same where the data is on the host.
    source, target = device.host_buffer(n), device.host_buffer(n)
    source.write(x)
    compiled.dispatch([source], [target])
    np.testing.assert_array_equal(np.frombuffer(target.read(), np.uint8), expected)


@pytest.mark.parametrize("flags", [TensorFlags.NONE, TensorFlags.OWNED_BY_DML])
@pytest.mark.parametrize("is_bound", [False, True])
def test_owned_inputs_and_inputs_that_nothing_reads(device, flags, is_bound):
    graph = Graph()
    graph.input(tensor(3, flags=flags))
    unread = device.tensor(np.zeros(3, np.float32)) if is_bound else None
    owned = graph.input(tensor(2, flags=TensorFlags.OWNED_BY_DML))
    x = graph.input(tensor(3))
    graph.output(graph.join([owned, x], 0))
    compiled = device.compile_graph(graph)
    assert compiled.binding_properties.persistent_resource_size == 8
    held = [unread, device.tensor(np.float32([1, 2]))]
    assert fault(lambda: compiled.initialize([*held, device.buffer(12)]), BindingError) == (
        "GRAPH inputs[2]: is bound at initialisation, must be None: it is not OWNED_BY_DML [B-03]"
    )
    compiled.initialize([*held, None])
    out = device.buffer(20)
    compiled.dispatch([unread, None, device.tensor(np.float32([3, 4, 5]))], [out])
    assert np.frombuffer(out.read(), np.float32).tolist() == [1, 2, 3, 4, 5]


def test_flags_that_do_not_exist_and_levels_without_graphs(device):
    with pytest.raises(InvalidDescTypeError, match=r"GRAPH flags: .* \[DEV-10\]"):
        device.compile_graph(swapped(), 1 << 20)
    level = device.feature_level
    try:
        device.feature_level = type(level).LEVEL_2_0
        with pytest.raises(FeatureLevelError, match=r"GRAPH: not available .* from 2_1"):
            device.compile_graph(swapped())
    finally:
        device.feature_level = level


def test_a_graph_of_expressions_is_compiled_of_its_outputs(device):
    """As dml::Graph::Compile takes them; nodes that none of them needs are left out."""
    graph = dml.Graph()
    x = dml.input_tensor(graph, 0, dml.BufferTensorDesc(dml.TensorDataType.INT32, [4, 6]))
    dml.tile(x, [2, 2])
    left, right = dml.split(x, 1, [2, 4])
    swapped = dml.join([right[::-1], left], axis=1)
    compiled = device.compile_graph([swapped, dml.identity(left)], dml.ExecutionFlags.NONE)
    array = np.arange(24, dtype=np.int32).reshape(4, 6)
    outputs = [device.buffer(96), device.buffer(32)]
    compiled.dispatch([device.tensor(array)], outputs)
    expected = np.concatenate([array[::-1, 2:], array[:, :2]], axis=1)
    assert outputs[0].read() == expected.tobytes()
    assert outputs[1].read() == array[:, :2].tobytes()
    assert len(compiled.pipeline.steps) == 1


@pytest.mark.parametrize("graph", [[], [1], 1, None, "x", dml.Graph])
def test_what_is_no_graph_is_refused(device, graph):
    text = fault(lambda: device.compile_graph(graph), InvalidDescTypeError)
    assert "must be a Graph, a GraphDesc, or a list of expressions [T-18]" in text
