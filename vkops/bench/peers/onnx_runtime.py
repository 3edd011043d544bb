"""ONNX Runtime on the CPU: a model of one node, inputs and outputs bound once."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import onnxruntime
from onnx import TensorProto, helper

from vkops.bench.movement import Array, Join, Permute, Split, Step, Window
from vkops.bench.peers import Program
from vkops.bench.works import Case
from vkops.gpu.adapter import DeviceInfo

_OPSET, _IR_VERSION = 17, 8  # ONNX 1.12: what every runtime of today reads
_END = 2**63 - 1
_CPU = ["CPUExecutionProvider"]


class Peer:
    """ONNX Runtime with one thread per processor."""

    label = "ONNX Runtime CPU"
    version: str = onnxruntime.__version__

    def __init__(self, info: DeviceInfo) -> None:
        self._options = onnxruntime.SessionOptions()
        self._options.intra_op_num_threads = os.cpu_count() or 1
        # Its threads would otherwise keep spinning into the next contender's turn.
        self._options.add_session_config_entry("session.force_spinning_stop", "1")

    def prepare(self, case: Case, arrays: Sequence[Array]) -> Program | None:
        """See the protocol."""
        session = onnxruntime.InferenceSession(_model(case), self._options, providers=_CPU)
        binding = session.io_binding()
        values = [onnxruntime.OrtValue.ortvalue_from_numpy(array.copy()) for array in arrays]
        for number, value in enumerate(values):
            binding.bind_ortvalue_input(f"x{number}", value)
        outputs = [
            onnxruntime.OrtValue.ortvalue_from_shape_and_type(list(shape), case.dtype.type)
            for shape in case.output_shapes
        ]
        for number, value in enumerate(outputs):
            binding.bind_ortvalue_output(f"y{number}", value)
        return Program(
            lambda: session.run_with_iobinding(binding),
            lambda: [value.numpy() for value in outputs],
        )


def _model(case: Case) -> bytes:
    inputs = [f"x{number}" for number in range(len(case.shapes))]
    outputs = [f"y{number}" for number in range(len(case.output_shapes))]
    operator, parameters, attributes = _node(case)
    names = [f"p{number}" for number in range(len(parameters))]
    dtype = helper.np_dtype_to_tensor_dtype(case.dtype)
    graph = helper.make_graph(
        [helper.make_node(operator, inputs + names, outputs, **attributes)],
        "work",
        [
            helper.make_tensor_value_info(name, dtype, shape)
            for name, shape in zip(inputs, case.shapes, strict=True)
        ],
        [
            helper.make_tensor_value_info(name, dtype, shape)
            for name, shape in zip(outputs, case.output_shapes, strict=True)
        ],
        [
            helper.make_tensor(name, TensorProto.INT64, [len(values)], values)
            for name, values in zip(names, parameters, strict=True)
        ],
    )
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", _OPSET)], ir_version=_IR_VERSION
    )
    return bytes(model.SerializeToString())


def _node(case: Case) -> tuple[str, list[Sequence[int]], dict[str, Any]]:
    """The operator, its inputs beside the data, and its attributes."""
    axes = range(len(case.shapes[0]))
    match case.movement:
        case Join(axis):
            return "Concat", [], {"axis": axis}
        case Split(axis, sizes):
            return "Split", [sizes], {"axis": axis}
        case Permute(order):
            return "Transpose", [], {"perm": order}
        case Window(offsets, sizes):
            ends = [o + n for o, n in zip(offsets, sizes, strict=True)]
            return "Slice", [offsets, ends, axes], {}
        case Step(strides):
            starts = [0 if s > 0 else -1 for s in strides]
            ends = [_END if s > 0 else -_END for s in strides]
            return "Slice", [starts, ends, axes, strides], {}
