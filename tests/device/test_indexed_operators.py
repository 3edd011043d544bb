"""Operators that read indices: where their tensors may lie."""

import re
from pathlib import Path
from random import Random

import numpy as np
import pytest
from compiled_operators import compiled
from onnx_models import node_model
from operator_cases import run
from operator_table import OPERATORS, indexed_operators

import vkops
from vkops import dml
from vkops.cli import main
from vkops.dml import BufferTensorDesc, TensorDataType, TensorFlags
from vkops.errors import BindingError, OutOfDeviceMemoryError
from vkops.onnx import Session

F32, I32 = TensorDataType.FLOAT32, TensorDataType.INT32
INDEXED = indexed_operators()
BUFFER = 4096


@pytest.mark.parametrize("name", INDEXED)
def test_data_may_be_spread_and_indices_not(small_buffers, name):
    """``run`` binds from byte 16 on."""
    outcomes = set()
    for seed in range(6):
        kind = (TensorDataType.UINT8, TensorDataType.FLOAT64)[seed % 2]
        case = OPERATORS[name].make(Random(seed), kind, (90, 60 + 8 * seed), 1)
        whole = all(
            16 + tensor.total_tensor_size_in_bytes <= BUFFER
            for number, (_, tensor) in enumerate(case.desc.inputs)
            if number in case.indices
        )
        if whole:
            run(small_buffers, case)
        else:
            with pytest.raises(BindingError, match=r"indices are spread over \d+ buffers of the "):
                run(small_buffers, case)
        outcomes.add(whole)
    assert True in outcomes


def test_indices_of_a_node_are_in_one_buffer(small_buffers):
    table, many = np.arange(3000, dtype=np.float32), np.arange(600) - 50
    proto, inputs = node_model("Gather", table, many[:500])
    (taken,) = Session(proto, small_buffers).run(inputs)
    np.testing.assert_array_equal(taken.numpy(), table[many[:500]])
    proto, inputs = node_model("Gather", table, many)
    text = r"indices of 4800 bytes: a buffer of the device holds \d+; use fewer at a time"
    with pytest.raises(OutOfDeviceMemoryError, match=f"^{text}$"):
        Session(proto, small_buffers).run(inputs)


def gather(flags=TensorFlags.NONE):
    """Four rows of a table of eight."""
    table, rows = BufferTensorDesc(F32, (8, 2)), BufferTensorDesc(I32, (1, 4), flags=flags)
    return dml.GatherOperatorDesc(table, rows, BufferTensorDesc(F32, (4, 2)), 0, 1)


@pytest.fixture
def bound(device):
    """The table and the indices that ``gather`` reads, and memory for its result."""
    table = device.tensor(np.arange(16, dtype=np.float32).reshape(8, 2))
    rows = device.tensor(np.array([[7, -7, 1, 100]], np.int32))
    return [table.buffer, rows.buffer, device.buffer(32)]


RESULT = [14, 15, 2, 3, 2, 3, 14, 15]


@pytest.mark.parametrize("number", range(3))
def test_no_tensor_may_be_in_host_memory(device, bound, number):
    path = ["input_tensor", "indices_tensor", "output_tensor"][number]
    bound[number] = device.host_buffer(64)
    text = f"GATHER {path}: is in host memory, must be in device memory: the operator reads indices [B-22]"
    with pytest.raises(BindingError, match=f"^{re.escape(text)}$"):
        compiled(device, gather()).dispatch(bound[:2], bound[2:])


def test_no_tensor_of_a_graph_with_indices_may_be_in_host_memory(device, bound):
    graph = dml.Graph()
    table, rows = (graph.input(tensor) for _, tensor in gather().inputs)
    (taken,) = graph.add(dml.GatherOperatorDesc, [table, rows], axis=0, index_dimensions=1)
    graph.output(graph.identity(graph.slice1(taken, [0, 0], [4, 2], [-1, 1])))
    ready = device.compile_graph(graph)
    ready.dispatch(bound[:2], bound[2:])
    assert np.frombuffer(bound[2].read(), np.float32).reshape(4, 2)[::-1].ravel().tolist() == RESULT
    with pytest.raises(BindingError, match=r"^GRAPH outputs\[0\]: is in host memory, .* \[B-22\]$"):
        ready.dispatch(bound[:2], [device.host_buffer(32)])


def test_indices_made_by_a_graph_are_in_one_buffer(small_buffers):
    """The intermediate has 8 KiB."""
    graph = dml.Graph()
    table = graph.input(BufferTensorDesc(F32, (1, 8)))
    rows = graph.input(BufferTensorDesc(I32, (1, 2048)))
    turned = graph.slice1(rows, [0, 0], [1, 2048], [1, -1])
    graph.output(*graph.add(dml.GatherOperatorDesc, [table, turned], axis=1, index_dimensions=1))
    inputs = small_buffers.buffer(32), small_buffers.buffer(8192)
    ready = small_buffers.compile_graph(graph)
    text = "GRAPH: indices are spread over 2 buffers of the device, must be in 1 [B-23]"
    with pytest.raises(BindingError, match=f"^{re.escape(text)}$"):
        ready.dispatch(inputs, [small_buffers.buffer(8192)])


def test_indices_that_are_owned(device, bound):
    """They are read as they were at initialisation."""
    table, rows, taken = bound
    ready = compiled(device, gather(TensorFlags.OWNED_BY_DML))
    ready.initialize([None, rows])
    rows.write(np.zeros(4, np.int32))
    ready.dispatch([table, None], [taken])
    assert np.frombuffer(taken.read(), np.float32).tolist() == RESULT


def test_a_model_that_does_not_fit_on_the_device(adapter, monkeypatch, capsys):
    """Its memory would be on the host, and the operator streamed."""

    def full(self, nbytes):
        raise OutOfDeviceMemoryError("full")

    monkeypatch.setattr(vkops.Device, "buffer", full)
    model = Path(__file__).parents[2] / "examples" / "gather.json"
    assert main(["run", str(model), "-a", adapter.name]) == 1
    text = "is in host memory, must be in device memory: the operator reads indices [B-22]\n"
    assert capsys.readouterr().err.endswith(text)
