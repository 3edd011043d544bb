"""ONNX Runtime on the CPU: a model of one node, inputs and outputs bound once."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnxruntime
from onnx import helper, numpy_helper

from benchmarks.peers import PeerProgram
from vkops.bench import workloads
from vkops.bench.workloads import Array, BenchCase
from vkops.gpu.adapters.adapter import DeviceInfo

_OPSET, _IR_VERSION = 17, 8  # ONNX 1.12: every current runtime reads it
_END = 2**63 - 1
_CPU = ["CPUExecutionProvider"]
_NotImplemented = onnxruntime.capi.onnxruntime_pybind11_state.NotImplemented


class Peer:
    """ONNX Runtime with one thread per processor."""

    label = "ONNX Runtime CPU"
    version: str = onnxruntime.__version__

    def __init__(self, info: DeviceInfo) -> None:
        self._options = onnxruntime.SessionOptions()
        self._options.intra_op_num_threads = os.cpu_count() or 1
        # Its threads would otherwise keep spinning into the next contender's turn.
        self._options.add_session_config_entry("session.force_spinning_stop", "1")

    def prepare(self, case: BenchCase, arrays: Sequence[Array]) -> PeerProgram | None:
        """Prepare a workload; see ``Peer``."""
        inputs_given = _given(case, arrays)
        try:
            session = onnxruntime.InferenceSession(
                _model(case, inputs_given), self._options, providers=_CPU
            )
        except _NotImplemented:  # it has no kernel for this data type
            return None
        binding = session.io_binding()
        values = [onnxruntime.OrtValue.ortvalue_from_numpy(array.copy()) for array in inputs_given]
        for number, value in enumerate(values):
            binding.bind_ortvalue_input(f"x{number}", value)
        outputs = [
            onnxruntime.OrtValue.ortvalue_from_shape_and_type(list(shape), case.dtype.type)
            for shape in case.output_shapes
        ]
        for number, value in enumerate(outputs):
            binding.bind_ortvalue_output(f"y{number}", value)
        return PeerProgram(
            lambda: session.run_with_iobinding(binding),
            lambda: [value.numpy() for value in outputs],
        )


def _given(case: BenchCase, arrays: Sequence[Array]) -> list[Array]:
    """The inputs as ONNX has them."""
    match case.operation:
        case workloads.OneHot():
            return [arrays[0][:, 0]]
        case workloads.ReverseSequences():
            return [arrays[0], arrays[1].astype(np.int64)]
    return list(arrays)


def _model(case: BenchCase, arrays: Sequence[Array]) -> bytes:
    operator, parameters, attributes = _node(case)
    dtype = helper.np_dtype_to_tensor_dtype(case.dtype)
    inputs = [
        helper.make_tensor_value_info(
            f"x{i}", helper.np_dtype_to_tensor_dtype(array.dtype), array.shape
        )
        for i, array in enumerate(arrays)
    ]
    outputs = [
        helper.make_tensor_value_info(f"y{i}", dtype, shape)
        for i, shape in enumerate(case.output_shapes)
    ]
    # None is an optional input that is left out.
    names = ["" if values is None else f"p{i}" for i, values in enumerate(parameters)]
    constants = [
        numpy_helper.from_array(np.asarray(values), name)
        for name, values in zip(names, parameters, strict=True)
        if name
    ]
    node = helper.make_node(
        operator,
        [*(value.name for value in inputs), *names],
        [value.name for value in outputs],
        **attributes,
    )
    graph = helper.make_graph([node], "workload", inputs, outputs, constants)
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", _OPSET)], ir_version=_IR_VERSION
    )
    return bytes(model.SerializeToString())


def _node(case: BenchCase) -> tuple[str, list[Any], dict[str, Any]]:
    """Return the operator, its inputs after the data, and its attributes."""
    axes = range(len(case.shapes[0]))
    match case.operation:
        case workloads.Join(axis):
            return "Concat", [], {"axis": axis}
        case workloads.Split(axis, sizes):
            return "Split", [sizes], {"axis": axis}
        case workloads.Permute(order):
            return "Transpose", [], {"perm": order}
        case workloads.Crop(offsets) as window:
            return "Slice", [offsets, window.ends, axes], {}
        case workloads.EveryNth(strides):
            starts = [0 if s > 0 else -1 for s in strides]
            ends = [_END if s > 0 else -_END for s in strides]
            return "Slice", [starts, ends, axes, strides], {}
        case movement:
            return _movement(movement)


def _movement(movement: workloads.Operation) -> tuple[str, list[Any], dict[str, Any]]:
    match movement:
        case workloads.GatherElements():  # it is a Gather, too
            return "GatherElements", [], {"axis": 1}
        case workloads.Gather():
            return "Gather", [], {"axis": 0}
        case workloads.ScatterRows():
            return "ScatterND", [], {}
        case workloads.PadReflect() as pad:
            return "Pad", [pad.widths * 2], {"mode": "reflect"}
        case workloads.DepthToSpace(block):
            return "DepthToSpace", [], {"blocksize": block, "mode": "DCR"}
        case workloads.Tile(repeats):
            return "Tile", [repeats], {}
        case workloads.Upsample(factor):
            scales = np.array([1, 1, factor, factor], np.float32)
            modes = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
            return "Resize", [None, scales], {"mode": "nearest", **modes}
        case workloads.OneHot(depth):
            return "OneHot", [[depth], np.array([0, 1], np.uint8)], {}
        case workloads.ReverseSequences():
            return "ReverseSequence", [], {"batch_axis": 0, "time_axis": 1}
    raise ValueError(f"no operator of ONNX for {movement}")
