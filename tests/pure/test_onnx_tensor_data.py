"""The data of tensors are compared with type and dims before they are read, and read once."""

import io
import sys

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx_models import PROTOBUF_IN_PYTHON, model
from processes import outcome
from refusals import fault

import vkops.onnx.tensor_data
from vkops.cli import main
from vkops.errors import ModelError
from vkops.onnx import Model
from vkops.onnx.element_types import elem_type_of

SIZE = 1 << 24
"""Bytes of a large tensor."""


def external(dims, data_type=TensorProto.FLOAT, **where):
    """An initializer whose data are in another file."""
    tensor = TensorProto(name="w", data_type=data_type, dims=dims)
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in {"location": "w.bin", **where}.items():
        tensor.external_data.add(key=key, value=str(value))
    return tensor


def saved(folder, tensor, *, used=True):
    """A model with an initializer, which a node reads if it is used."""
    kind = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])
    inputs = ["w"] if used else ["x"]
    node = helper.make_node("Identity", inputs, ["y"])
    path = folder / "m.onnx"
    path.write_bytes(model([node], [kind], ["y"], initializer=[tensor]).SerializeToString())
    return path


def refused(path):
    return fault(lambda: Model(path, check=False), ModelError).removeprefix(f"{path}: ")


@pytest.fixture
def opened(monkeypatch):
    """The positions and sizes of all reads of external data."""
    read = []

    class Watched(io.FileIO):
        def read(self, size):
            read.append((self.tell(), size))
            return super().read(size)

    monkeypatch.setattr(vkops.onnx.tensor_data, "open_regular", lambda path, **_: Watched(path))
    return read


@pytest.mark.parametrize(
    ("tensor", "said"),
    [
        (external([16]), "'w.bin'"),
        (external([16], length=60), "'w.bin'"),
        (external([16], offset=8), "'w.bin'"),
        (external([3], TensorProto.INT4, length=3), "'w.bin'"),
        (external([2**40]), "'w.bin'"),
        (external([2**62, 2]), "dims"),
        (external([-1]), "dims"),
        (external([1], TensorProto.STRING), "strings"),
    ],
)  # fmt: skip
def test_external_data_of_another_length_are_refused_unread(
    tmp_path, opened, tensor, said, message
):
    with open(tmp_path / "w.bin", "wb") as file:
        file.truncate(1_900_000_000)
    path = saved(tmp_path, tensor)
    message(refused(path), "external data of tensor 'w': ", said)
    assert opened == []


def test_external_data_are_read_once_and_only_where_they_are_used(tmp_path, opened, capsys):
    with open(tmp_path / "w.bin", "wb") as file:
        file.truncate(1_900_000_000)
    tensor = external([16], offset=1024, length=64)
    assert main(["check", str(saved(tmp_path, tensor))]) == 0
    assert opened == [(1024, 64)]
    opened.clear()
    assert main(["check", str(saved(tmp_path, tensor, used=False))]) == 0
    assert opened == []
    capsys.readouterr()


ALL_TYPES = [
    data_type
    for name, data_type in TensorProto.DataType.items()
    if name not in ("UNDEFINED", "STRING")
]


@pytest.mark.parametrize("data_type", ALL_TYPES)
@pytest.mark.parametrize("raw", [False, True])
def test_every_type_is_read_as_onnx_reads_it(tmp_path, data_type, raw):
    dtype = helper.tensor_dtype_to_np_dtype(data_type)
    whole = np.arange(9000).astype(np.int8).astype(dtype)
    for array in (whole[:5], whole):  # kept in the model, and apart from it
        tensor = numpy_helper.from_array(array, "w")
        if not raw:
            tensor = helper.make_tensor("w", data_type, array.shape, array)
        constant = Model(saved(tmp_path, tensor), check=False).constants["w"]
        expected = numpy_helper.to_array(tensor)
        assert (constant.dtype, constant.shape, constant.tobytes()) == (
            expected.dtype, expected.shape, expected.tobytes()
        )  # fmt: skip
        if raw:
            (tmp_path / "w.bin").write_bytes(b"xx" + tensor.raw_data)
            moved = external(array.shape, data_type, offset=2)
            outside = Model(saved(tmp_path, moved), check=False).constants["w"]
            assert outside.tobytes() == expected.tobytes()


@pytest.mark.parametrize(
    ("tensor", "said"),
    [
        (TensorProto(data_type=1, dims=[4], raw_data=bytes(12)), "raw_data"),
        (TensorProto(data_type=1, dims=[4]), "float_data"),
        (TensorProto(data_type=1, dims=[4], float_data=[1] * 5), "float_data"),
        (TensorProto(data_type=14, dims=[2], float_data=[1] * 3), "float_data"),
        (TensorProto(data_type=22, dims=[3], int32_data=[1] * 3), "int32_data"),
        (TensorProto(data_type=8, dims=[2], string_data=[b"a"]), "string_data"),
        (TensorProto(data_type=7, dims=[0], int64_data=[1]), "int64_data"),
        (TensorProto(data_type=99, dims=[1]), "element type 99"),
    ],
)  # fmt: skip
def test_tensors_with_a_wrong_number_of_values_are_refused(tmp_path, tensor, said, message):
    tensor.name = "w"
    text = refused(saved(tmp_path, tensor))
    message(text, "tensor 'w': ", said)
    node = helper.make_node("Constant", [], ["y"])
    node.attribute.add(name="value", type=onnx.AttributeProto.TENSOR).t.CopyFrom(tensor)
    assert fault(lambda: Model(model([node], [], ["y"]), check=False), ModelError) == text


def test_graphs_that_are_nested_too_deeply_are_refused(message):
    """A message that Python makes may be nested deeper than one that is read from bytes."""
    proto = model([], [], ["y"])
    graph = proto.graph
    for _ in range(2000):
        node = graph.node.add(op_type="If", input=["x"], output=["y"])
        graph = node.attribute.add(name="then_branch", type=onnx.AttributeProto.GRAPH).g
    message(fault(lambda: Model(proto, check=False), ModelError))


def test_a_model_given_as_a_message_stays_as_it_is():
    weights = numpy_helper.from_array(np.arange(9000, dtype=np.float32), "w")
    proto = model([helper.make_node("Identity", ["w"], ["y"])], [], ["y"], initializer=[weights])
    before = proto.SerializeToString()
    assert Model(proto).constants["w"].size == 9000
    assert proto.SerializeToString() == before


def test_entries_of_external_data_of_tensors_that_have_their_own_are_ignored():
    weights = numpy_helper.from_array(np.float32([1, 2]), "w")
    weights.external_data.add(key="data", value="7")
    proto = model([helper.make_node("Identity", ["w"], ["y"])], [], ["y"], initializer=[weights])
    assert Model(proto).constants["w"].tolist() == [1, 2]


def test_sparse_tensors_are_bounded_all_together(monkeypatch, message):
    monkeypatch.setattr(vkops.onnx.tensor_data, "MAX_DENSE_BYTES", 100)
    sparse = []
    for name in ("v", "w"):
        values = numpy_helper.from_array(np.float32([1]), name)
        indices = numpy_helper.from_array(np.int64([5]), f"i{name}")
        sparse.append(helper.make_sparse_tensor(values, indices, [15]))
    nodes = [helper.make_node("Concat", ["v", "w"], ["y"], axis=0)]
    proto = model(nodes, [], ["y"], sparse_initializer=sparse)
    message(fault(lambda: Model(proto, check=False), ModelError), "initializer 'w': ")


@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak memory as Linux counts it")
@pytest.mark.parametrize("kind", ["external", "raw", "typed"])
def test_reading_takes_a_small_multiple_of_the_tensors_memory(tmp_path, kind):
    array = np.ones(SIZE // 4, np.float32)
    if kind == "external":
        (tmp_path / "w.bin").write_bytes(array.tobytes())
        tensor = external(array.shape)
    elif kind == "raw":
        tensor = numpy_helper.from_array(array, "w")
    else:
        tensor = TensorProto(name="w", data_type=elem_type_of(array.dtype), dims=array.shape)
        tensor.float_data.extend(array.tolist())
    path = saved(tmp_path, tensor)
    del tensor, array
    code = (
        "import sys; from vkops.onnx import Model\n"
        "def peak():\n"
        "    lines = open('/proc/self/status').read().splitlines()\n"
        "    return next(int(line.split()[1]) << 10 for line in lines if 'VmHWM' in line)\n"
        "before = peak(); Model(sys.argv[1]); print(peak() - before)"
    )
    status, printed, errors = outcome("-c", code, path, MALLOC_ARENA_MAX="1")
    allowed = {"external": 2, "raw": 4, "typed": 6}[kind]
    if kind == "typed" and PROTOBUF_IN_PYTHON:
        allowed = 25  # a number is an object of up to 48 bytes, which a tuple and a list refer to
    assert status == 0, errors
    assert int(printed) < allowed * SIZE
