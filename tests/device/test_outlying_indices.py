"""Devices with ``indices="directml"``: indices out of range select what DirectML selects, and nothing else."""

import json
from random import Random

import numpy as np
import pytest
from byte_arrays import poisoned
from compiled_operators import compiled
from onnx_models import node_model
from operator_table import OPERATORS
from outlying_indices import NAMES, outlying_case

import vkops
import vkops.pydirectml
from vkops import dml
from vkops.cli import main
from vkops.errors import BindingError, DeviceError
from vkops.onnx import Session

T, B = dml.TensorDataType, dml.BufferTensorDesc


@pytest.fixture(scope="module", params=[False, True], ids=["mapped", "staged"])
def directml(adapter, request):
    with vkops.Device(adapter.index, staged=request.param, indices="directml") as device:
        yield device


def dispatch(device, case):
    """Run an operator in the middle of other bytes, which stay as they are; return its output."""
    buffers = []
    for array in (*case.inputs, case.before):
        buffers.append(device.buffer(array.size + 32))
        buffers[-1].write(poisoned(array.size + 32))
        buffers[-1].write(array, 16)
    bindings = [(b, 16, b.nbytes - 32) for b in buffers]
    compiled(device, case.desc).dispatch(bindings[:-1], bindings[-1:])
    for buffer, array in zip(buffers, case.inputs, strict=False):
        np.testing.assert_array_equal(buffer.array()[16:-16], array)
    result = buffers[-1].array()
    np.testing.assert_array_equal(np.r_[result[:16], result[-16:]], poisoned(32))
    return result[16:-16]


@pytest.mark.parametrize("element_size", [1, 2, 4, 8])
def test_outlying_indices_stay_in_the_tensor(directml, element_size):
    for seed in range(40):
        case = outlying_case(seed, element_size=element_size)
        case.check(dispatch(directml, case))


@pytest.mark.parametrize("element_size", [1, 2, 4, 8])
def test_tensors_in_several_buffers(small_buffers, element_size):
    small_buffers.indices = "directml"
    count = 0
    for seed in range(90):
        case = outlying_case(seed, element_size=element_size, most=14)
        sizes = [data.size + 32 for data in (*case.inputs, case.before)]
        if sizes[1] <= 4096 < max(sizes):
            case.check(dispatch(small_buffers, case))
            count += 1
    assert count > 3


def test_elements_below_a_word_that_are_scattered_anywhere(directml):
    """More than one dispatch may exchange in the words that they are in; each update goes to one place."""
    count = 1 << 16
    data, rows = B(T.UINT8, [count, 2]), B(T.UINT32, [count, 1])
    desc = dml.ScatterOperatorDesc(data, rows, B(T.UINT8, [count, 1]), data, 1)
    old, new = np.arange(2 * count, dtype=np.uint8), np.arange(7, 7 + count, dtype=np.uint8)
    to = (2 * np.random.default_rng(1).permutation(count)).astype(np.uint32)  # in all rows
    indices = to - 2 * np.arange(count, dtype=np.uint32)  # modulo 2**32
    inputs = [directml.tensor(array).buffer for array in (old, indices, new)]
    output = directml.buffer(2 * count)
    compiled(directml, desc).dispatch(inputs, [output])
    old[to] = new
    np.testing.assert_array_equal(output.array(), old)


def graph_of(make):
    """A graph with an input for each tensor, and what ``make`` returns of them as its outputs."""
    graph = dml.Graph()
    table, rows = graph.input(B(T.INT64, [4, 2])), graph.input(B(T.INT32, [1, 5]))
    for made in make(graph, table, rows):
        graph.output(made)
    return graph


TABLE, ROWS = np.arange(8, dtype=np.int64), np.array([1, 4, 5, -5, 2**31 - 1], np.int32)
TAKEN = np.array([[2, 3], [7, 7], [7, 7], [7, 7], [7, 7]], np.int64)
"""Rows 1, 4, 5, -5 and 2**31 - 1 of the table: all but the first one are behind its memory."""


def taken(graph, table, rows):
    return graph.add(dml.GatherOperatorDesc, [table, rows], axis=0, index_dimensions=1)[0]


def upside_down(graph, x):
    rows, columns = x.desc.sizes
    return graph.slice1(x, [0, 0], [rows, columns], [-1, 1])


def copied(graph, x):
    return graph.slice1(x, [0, 0], list(x.desc.sizes), [1, 1])


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda g, t, r: [taken(g, t, r)], [TAKEN]),
        (lambda g, t, r: [upside_down(g, taken(g, t, r))], [TAKEN[::-1]]),
        (lambda g, t, r: [taken(g, copied(g, t), copied(g, r))], [TAKEN]),
        (lambda g, t, r: [taken(g, t, r), copied(g, r)], [TAKEN, ROWS]),
        (
            lambda g, t, r: [g.join([taken(g, t, r), taken(g, upside_down(g, t), r)], 1)],
            [np.concatenate([TAKEN, [[4, 5], *[[1, 1]] * 4]], 1)],
        ),
    ],
)
def test_graphs_give_what_their_operators_give(directml, make, expected):
    ready = directml.compile_graph(graph_of(make))
    inputs = [directml.tensor(array).buffer for array in (TABLE, ROWS)]
    outputs = [directml.buffer(array.nbytes) for array in expected]
    ready.dispatch(inputs, outputs)
    for output, array in zip(outputs, expected, strict=True):
        assert output.read() == array.tobytes()


def test_scatters_of_a_graph(directml):
    """The update that leaves its row is in the next one when it is read."""
    graph = dml.Graph()
    table, rows, new = (graph.input(B(T.INT32, s)) for s in ((3, 4), (3, 1), (3, 1)))
    (written,) = graph.add(dml.ScatterOperatorDesc, [table, rows, new], axis=1)
    graph.output(upside_down(graph, written))
    data = np.arange(12), np.full(3, 4), np.array([90, 91, 92])
    inputs = [directml.tensor(array.astype(np.int32)).buffer for array in data]
    output = directml.buffer(48)
    directml.compile_graph(graph).dispatch(inputs, [output])
    expected = np.array([[91, 9, 10, 11], [90, 5, 6, 7], [0, 1, 2, 3]], np.int32)
    assert output.read() == expected.tobytes()


def test_devices_of_one_adapter_have_rules_of_their_own(adapter):
    """Nothing that is kept for one descriptor or graph is used for the other rule."""
    desc = dml.GatherOperatorDesc(B(T.INT64, [4, 2]), B(T.INT32, [1, 5]), B(T.INT64, [5, 2]), 0, 1)
    graph = graph_of(lambda *inputs: [taken(*inputs)])
    clamped = TABLE.reshape(4, 2)[[1, 3, 3, 0, 3]]
    with vkops.Device(adapter.index) as a, vkops.Device(adapter.index, indices="directml") as b:
        assert (a.indices, b.indices) == ("vkops", "directml")
        for device, expected in ((a, clamped), (b, TAKEN), (a, clamped)):
            inputs = [device.tensor(array).buffer for array in (TABLE, ROWS)]
            for ready in (compiled(device, desc), device.compile_graph(graph)):
                output = device.buffer(80)
                ready.dispatch(inputs, [output])
                assert output.read() == expected.tobytes()


def test_no_tensor_may_be_in_host_memory(directml):
    case = outlying_case(0)
    inputs = [directml.buffer(data.size) for data in case.inputs]
    with pytest.raises(BindingError, match=r"is in host memory, .* \[B-22\]$"):
        compiled(directml, case.desc).dispatch(inputs, [directml.host_buffer(case.before.size)])


@pytest.mark.parametrize("name", sorted({*OPERATORS} - {*NAMES}))
def test_other_operators_have_the_same_results(directml, name):
    case = OPERATORS[name].make(Random(3), dml.TensorDataType.FLOAT32, (3, 4), 1)
    data = case.inputs(Random(4))
    outputs = [poisoned(t.total_tensor_size_in_bytes) for _, t in case.desc.outputs]
    inputs, written = [], []
    for arrays, buffers in ((data, inputs), (outputs, written)):
        for array in arrays:
            buffers.append(directml.buffer(array.size))
            buffers[-1].write(array)
    compiled(directml, case.desc).dispatch(inputs, written)
    case.write(data, outputs)
    for buffer, array in zip(written, outputs, strict=True):
        np.testing.assert_array_equal(buffer.array(), array)


def test_functions_of_numpy_and_onnx_have_rules_of_their_own(directml):
    x = directml.tensor(np.arange(12, dtype=np.float32).reshape(3, 4))
    with pytest.raises(IndexError):
        x[np.array([3])]
    proto, inputs = node_model("Gather", np.arange(3, dtype=np.float32), np.array([2, -1]))
    (result,) = Session(proto, directml).run(inputs)
    assert result.numpy().tolist() == [2, 2]


def test_models(adapter, tmp_path, capsys):
    def resource(*values):
        return {"initialValuesDataType": "INT32", "initialValues": [*values]}

    def tensor(*sizes):
        return {"DataType": "INT32", "Sizes": sizes}

    desc = {"InputTensor": tensor(2, 2), "IndicesTensor": tensor(2, 1)}
    desc |= {"OutputTensor": tensor(2, 1), "Axis": 1}
    names = {"InputTensor": "X", "IndicesTensor": "I", "OutputTensor": "Y"}
    path = tmp_path / "model.json"
    for compile_type in ("DmlCompileOp", "DmlCompileGraph"):
        gather = {"type": "GATHER_ELEMENTS", "desc": desc, "dmlCompileType": compile_type}
        model = {
            "resources": {"X": resource(1, 2, 3, 4), "I": resource(2, 3), "Y": resource(0, 0)},
            "dispatchables": {"g": gather},
            "commands": [
                {"type": "dispatch", "dispatchable": "g", "bindings": names},
                {"type": "print", "resource": "Y"},
            ],
        }
        path.write_text(json.dumps(model))
        for option, result in (([], "2, 4"), (["--indices", "directml"], "3, 4")):
            assert main(["run", str(path), "-a", adapter.name, "--flat", *option]) == 0
            assert result in capsys.readouterr().out


def test_pydirectml(adapter, monkeypatch):
    monkeypatch.setenv("VKOPS_ADAPTER", str(adapter.index))
    api = vkops.pydirectml
    device = api.Device(indices="directml")
    builder = api.GraphBuilder(device)
    x = api.input_tensor(builder, 0, api.TensorDesc(T.FLOAT32, [2, 2]))
    rows = api.input_tensor(builder, 1, api.TensorDesc(T.INT32, [1, 3]))
    y = api.gather(x, rows, 1, 1)
    model = builder.build(api.ExecutionFlags.NONE, [y])
    bindings = [api.Binding(x, np.arange(4)), api.Binding(rows, np.array([0, 2, 9]))]
    (result,) = device.compute(model, bindings, [y])
    assert np.array(result).tolist() == [[0, 2, 3], [2, 3, 3]]


@pytest.mark.parametrize("value", ["numpy", None, 1, ["directml"]])
def test_other_rules_are_refused(adapter, value):
    text = r"^indices: got .*, must be 'vkops' or 'directml' \[DEV-14\]$"
    with pytest.raises(DeviceError, match=text):
        vkops.Device(adapter.index, indices=value)
