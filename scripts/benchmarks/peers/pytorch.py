"""PyTorch: on the GPU where the measured device is a discrete one and CUDA works, else the CPU."""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np
import torch

from benchmarks.peers import PeerProgram
from vkops.bench import workloads
from vkops.bench.workloads import Array, BenchCase
from vkops.gpu.adapters.adapter import DeviceInfo

# torch supports these types only in part; the signed type of the same width has the same bytes.
_SIGNED = {"uint16": "int16", "uint32": "int32", "uint64": "int64"}


class Peer:
    """PyTorch with one thread per processor."""

    version = str(torch.__version__)

    def __init__(self, info: DeviceInfo) -> None:
        torch.set_num_threads(os.cpu_count() or 1)
        self._cuda = info.type == "DISCRETE_GPU" and torch.cuda.is_available()
        self.label = "PyTorch CUDA" if self._cuda else "PyTorch CPU"

    def prepare(self, case: BenchCase, arrays: Sequence[Array]) -> PeerProgram | None:
        """Prepare a workload; see ``Peer``."""
        inputs = [
            torch.from_numpy(array.view(_SIGNED.get(array.dtype.name, array.dtype)).copy()).to(
                "cuda" if self._cuda else "cpu"
            )
            for array in arrays
        ]
        outputs: list[torch.Tensor] = []

        def run() -> None:
            outputs.clear()  # first, so that their memory can be used again, as NumPy's can
            outputs.extend(_outputs(case, inputs))
            if self._cuda:
                torch.cuda.synchronize()

        def results() -> list[Array]:
            return [np.asarray(output.cpu().numpy()) for output in outputs]

        return PeerProgram(run, results)


def _outputs(case: BenchCase, inputs: list[torch.Tensor]) -> list[torch.Tensor]:
    x = inputs[0]
    match case.operation:
        case workloads.Join(axis):
            return [torch.cat(inputs, axis)]
        case workloads.Split(axis, sizes):
            return [_packed(part) for part in torch.split(x, sizes, axis)]
        case workloads.Permute(order):
            return [_packed(x.permute(order))]
        case workloads.Crop() as window:
            return [_packed(x[window.slices])]
        case workloads.EveryNth(strides):
            return [_step(x, strides)]
        case movement:
            return [_movement(movement, inputs)]


def _movement(movement: workloads.Operation, inputs: list[torch.Tensor]) -> torch.Tensor:
    x = inputs[0]
    match movement:
        case workloads.GatherElements():  # it is a Gather, too
            return torch.gather(x, 1, inputs[1])
        case workloads.Gather():
            return torch.index_select(x, 0, inputs[1])
        case workloads.ScatterRows():
            return x.index_copy(0, inputs[1][:, 0], inputs[2])
        case workloads.PadReflect(width):
            return torch.nn.functional.pad(x, (width,) * 4, mode="reflect")
        case workloads.DepthToSpace(b):
            n, c, h, w = x.shape
            blocks = x.reshape(n, b, b, c // b**2, h, w).permute(0, 3, 4, 1, 5, 2)
            return blocks.reshape(n, c // b**2, h * b, w * b)
        case workloads.Tile(repeats):
            return x.repeat(repeats)
        case workloads.Upsample(factor):
            return torch.nn.functional.interpolate(x, scale_factor=factor, mode="nearest")
        case workloads.OneHot(depth):
            zero, one = inputs[1][0].tolist()
            zeros = torch.full((len(x), depth), zero, dtype=inputs[1].dtype, device=x.device)
            return zeros.scatter_(1, x, one)
        case workloads.ReverseSequences():
            places = torch.arange(x.shape[1], device=x.device)
            lengths = inputs[1][:, None]
            order = torch.where(places < lengths, lengths - 1 - places, places)
            return x[torch.arange(len(x), device=x.device)[:, None], order]
    raise ValueError(f"no operation of PyTorch for {movement}")


def _step(x: torch.Tensor, strides: Sequence[int]) -> torch.Tensor:
    """Slice forwards, as torch can, the elements that are wanted in reverse order; then flip."""
    index = tuple(
        slice(0 if s > 0 else (n - 1) % -s, None, abs(s))
        for n, s in zip(x.shape, strides, strict=True)
    )
    backwards = [axis for axis, s in enumerate(strides) if s < 0]
    return torch.flip(x[index], backwards).contiguous() if backwards else _packed(x[index])


def _packed(view: torch.Tensor) -> torch.Tensor:
    """Return a packed copy; contiguous() would return a packed input itself."""
    return view.clone(memory_format=torch.contiguous_format)
