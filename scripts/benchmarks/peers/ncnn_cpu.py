"""ncnn on the CPU: a net of one layer, 32-bit elements of up to four dimensions.

It is not measured on Vulkan: its Python binding has no matrices on a device, so that every run
would upload its inputs and download its outputs.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

import ncnn
import numpy as np

from benchmarks.peers import PeerProgram
from vkops.bench.workloads import Array, BenchCase, Crop, EveryNth, Join, Permute, Split
from vkops.errors import DeviceError
from vkops.gpu.adapters.adapter import DeviceInfo

_MAGIC = 7767517
_MAX_RANK = 4
# These options would convert data to lower precision, or to layouts with interleaved channels.
_DISABLED = (
    "use_bf16_storage",
    "use_fp16_arithmetic",
    "use_fp16_packed",
    "use_fp16_storage",
    "use_packing_layout",
    "use_vulkan_compute",
)


class Peer:
    """ncnn with one thread per processor."""

    label = "ncnn CPU"
    version: str = ncnn.__version__

    def __init__(self, info: DeviceInfo) -> None:
        pass

    def prepare(self, case: BenchCase, arrays: Sequence[Array]) -> PeerProgram | None:
        """Prepare a workload; see ``Peer``."""
        layer = _layer(case)
        if layer is None or case.dtype.itemsize != 4 or len(case.shapes[0]) > _MAX_RANK:
            return None
        inputs = [f"x{number}" for number in range(len(arrays))]
        outputs = [f"y{number}" for number in range(len(case.output_shapes))]
        net = _net(inputs, outputs, *layer)
        # ncnn knows 32-bit floats only; the bytes are the same.
        mats = [ncnn.Mat(array.view(np.float32)).clone() for array in arrays]
        done: list[ncnn.Mat] = []

        def run() -> None:
            extractor = net.create_extractor()
            for name, mat in zip(inputs, mats, strict=True):
                extractor.input(name, mat)
            done.clear()
            for name in outputs:
                status, mat = extractor.extract(name)
                if status:
                    raise DeviceError(f"ncnn: {layer[0]} failed with status {status}")
                done.append(mat)

        return PeerProgram(run, lambda: [np.array(mat) for mat in done])


def _layer(case: BenchCase) -> tuple[str, str] | None:
    """Return the type and the parameters of the layer, as in the description of a net."""
    axes = range(len(case.shapes[0]))
    match case.operation:
        case Join(axis):
            return "Concat", f"0={axis}"
        case Split(axis, sizes):
            return "Slice", f"{_array(0, sizes)} 1={axis}"
        case Permute((1, 0)):
            return "Permute", "0=1"
        case Crop(offsets) as window:
            return "Crop", f"{_array(9, offsets)} {_array(10, window.ends)} {_array(11, axes)}"
        case EveryNth(strides) if set(strides) == {-1}:
            return "Flip", _array(0, axes)
        case _:
            return None


def _array(parameter: int, values: Sequence[int]) -> str:
    return f"{-23300 - parameter}={','.join(map(str, (len(values), *values)))}"


def _net(inputs: Sequence[str], outputs: Sequence[str], kind: str, parameters: str) -> ncnn.Net:
    net = ncnn.Net()
    net.opt.num_threads = os.cpu_count() or 1
    for option in _DISABLED:
        setattr(net.opt, option, False)
    ends = f"{len(inputs)} {len(outputs)} {' '.join(inputs)} {' '.join(outputs)}"
    layers = [f"Input {name} 0 1 {name}" for name in inputs]
    layers.append(f"{kind} layer {ends} {parameters}")
    head = f"{_MAGIC}\n{len(layers)} {len(inputs) + len(outputs)}"
    net.load_param_mem("\n".join((head, *layers, "")))
    net.load_model(ncnn.DataReaderFromEmpty())
    return net
