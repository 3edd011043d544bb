"""Arrays that the caller changes in place: results stay, and the next call reads the new elements."""

import numpy as np
import onnx
import pytest

import vkops
from vkops import dml, pydirectml
from vkops.onnx import Session

INT64 = dml.TensorDataType.INT64

RESHAPED = """<ir_version: 9, opset_import: ["" : 18]>
g (int64[6] x, int64[2] s) => (int64[A, B] y, int64[4] t) {
  y = Reshape (x, s)
  t = Concat <axis = 0> (s, s)
}"""
OF_SEQUENCE = """<ir_version: 9, opset_import: ["" : 18]>
g (int64[6] x, seq(int64[N]) q) => (int64[A, B] y, int64[4] t) <int64 zero = {0}> {
  s = SequenceAt (q, zero)
  y = Reshape (x, s)
  t = Concat <axis = 0> (s, s)
}"""
ADD = vkops.ElementwiseKernel("T x, T y", "T z", "z = x + y", "add")


def kernel(device):
    return lambda x, y: ADD(device.tensor(x), y)


def fused(device):
    function = vkops.fuse(lambda x, y: ADD(ADD(x, y), 1))
    return lambda x, y: function(device.tensor(x), y)


def recorded(function):
    """Record a call with an array that changes before the program runs."""

    def make(device):
        def call(x, y):
            tensor, array = device.tensor(x), y.copy()
            with device.record() as program:
                result = function(tensor, array)
            array[:] = 7
            program.run()
            return result

        return call

    return make


def assigned(tensor, y):
    tensor[1:3] = y
    return tensor


def session(text, *, in_a_list=False):
    def make(device):
        opened = Session(onnx.parser.parse_model(text), device)
        name = opened.get_inputs()[1].name

        def call(x, y):
            return opened.run({"x": x, name: [y] if in_a_list else y})[1]

        return call

    return make


def descriptor(device):
    tensor = dml.BufferTensorDesc(INT64, [1, 6])

    def call(x, y):
        repeated = dml.BufferTensorDesc(INT64, [1 * y[0], 6 * y[1]])
        desc = dml.TileOperatorDesc(tensor, repeated, y)
        result = device.empty(repeated.sizes, np.int64)
        device.compile_operator(device.create_operator(desc)).dispatch([device.tensor(x)], [result])
        return result

    return call


def binding(device):
    own = pydirectml.Device()
    builder = pydirectml.GraphBuilder(own)
    x0 = pydirectml.input_tensor(builder, 0, pydirectml.TensorDesc(INT64, [2]))
    y0 = pydirectml.join([x0, x0], 0)
    model = builder.build(pydirectml.ExecutionFlags.NONE, [y0])
    return lambda x, y: own.compute(model, [pydirectml.Binding(x0, y)], [y0])[0]


def chunks(device):
    da = pytest.importorskip("dask.array")
    pytest.importorskip("vkops.dask")
    return lambda x, y: da.from_array(device.tensor(y), chunks=1).compute()


CALLS = {
    "binding": binding,
    "chunks": chunks,
    "descriptor": descriptor,
    "fused kernels": fused,
    "index": lambda device: lambda x, y: device.tensor(x)[y],
    "join": lambda device: lambda x, y: vkops.join([device.tensor(x), y]),
    "kernel": kernel,
    "recorded assignment": recorded(assigned),
    "recorded join": recorded(lambda tensor, y: vkops.join([tensor, y])),
    "recorded kernel": recorded(ADD),
    "recorded take": recorded(vkops.take),
    "repeat": lambda device: lambda x, y: vkops.repeat(device.tensor(x[:2]), y),
    "session": session(RESHAPED),
    "session of a sequence": session(OF_SEQUENCE, in_a_list=True),
    "take": lambda device: lambda x, y: vkops.take(device.tensor(x), y),
    "tensor": lambda device: lambda x, y: device.tensor(y),
    "tile": lambda device: lambda x, y: vkops.tile(device.tensor(x), y),
}


@pytest.mark.features
@pytest.mark.parametrize("name", CALLS)
def test_a_call_reads_what_is_in_the_array_then(device, name):
    make = CALLS[name]
    x, changing = np.arange(6), np.array([2, 3])
    if "kernel" in name:
        x = x[:2]
    call, results, expected = make(device), [], []
    for values in ([2, 3], [3, 2], [2, 3]):
        changing[:] = values
        results.append(call(x, changing))
        expected.append(np.array(make(device)(x, np.array(values))))
    changing[:] = 9
    for result, wanted in zip(results, expected, strict=True):
        np.testing.assert_array_equal(np.asarray(result), wanted)
    assert expected[0].tolist() != expected[1].tolist()
