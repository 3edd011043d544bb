"""ONNX Runtime on the CPU: a model of one node, inputs and outputs bound once."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import onnxruntime
from onnx import TensorProto, helper

from vkops.bench.peers import Program
from vkops.bench.workloads import Array, Case, Join, Permute, Split, Step, Window
from vkops.gpu.adapter import DeviceInfo

_OPSET, _IR_VERSION = 17, 8  # ONNX 1.12: every current runtime reads it
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
        """Prepare a workload; see ``Peer``."""
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
    operator, parameters, attributes = _node(case)
    dtype = helper.np_dtype_to_tensor_dtype(case.dtype)
    inputs, outputs = (
        [helper.make_tensor_value_info(f"{letter}{i}", dtype, s) for i, s in enumerate(shapes)]
        for letter, shapes in (("x", case.shapes), ("y", case.output_shapes))
    )
    constants = [
        helper.make_tensor(f"p{i}", TensorProto.INT64, [len(values)], values)
        for i, values in enumerate(parameters)
    ]
    names = [value.name for value in (*inputs, *constants)]
    node = helper.make_node(operator, names, [value.name for value in outputs], **attributes)
    graph = helper.make_graph([node], "workload", inputs, outputs, constants)
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", _OPSET)], ir_version=_IR_VERSION
    )
    return bytes(model.SerializeToString())


def _node(case: Case) -> tuple[str, list[Sequence[int]], dict[str, Any]]:
    """Return the operator, its inputs after the data, and its attributes."""
    axes = range(len(case.shapes[0]))
    match case.operation:
        case Join(axis):
            return "Concat", [], {"axis": axis}
        case Split(axis, sizes):
            return "Split", [sizes], {"axis": axis}
        case Permute(order):
            return "Transpose", [], {"perm": order}
        case Window(offsets) as window:
            return "Slice", [offsets, window.ends, axes], {}
        case Step(strides):
            starts = [0 if s > 0 else -1 for s in strides]
            ends = [_END if s > 0 else -_END for s in strides]
            return "Slice", [starts, ends, axes, strides], {}
